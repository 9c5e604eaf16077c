"""Variational EM for the correlated topic model of Blei and Lafferty (2007), with priors.

The model is that of topics with a `Softmax` for a link. q(psi_d) is normal with a diagonal covariance, and
mean, cov and topics are set to the values that maximise bound + log prior density. Topics come out as
(expected counts + concentration), normalised, which maximises under a Dirichlet law of 1 + concentration;
so a word that a topic never had keeps a little probability.
"""

from dataclasses import dataclass

import numpy as np

from polystick.gaussians.normal import Normal
from polystick.models.softmax_link import Softmax
from polystick.models.topic_factors import ExpectedPrior, VariationalTopicModel
from polystick.models.topic_shares import ExpectedNormal, NormalShares
from polystick.models.topic_words import DirichletWords, wide


@dataclass(frozen=True)
class Modes:
    """A factor is where the priors have come to, and parameters are at its mode."""

    def expect(self, model, factor):
        normal = Normal(factor.shares.mean, _mode_of_cov(factor.shares))
        law = ExpectedNormal(normal, -0.5 * np.linalg.slogdet(normal.cov)[1])
        return ExpectedPrior(law, ModalTopics(factor.topics, factor.topics.sum(axis=0)))

    def divergences(self, model, factor):
        """Return what lowers the bound: log prior densities but for their constants, with a minus."""
        law, words = self.expect(model, factor)
        topics = model.words.concentration * np.log(words.topics / words.sizes).sum()
        return -_log_density(model.shares.law, law.normal), -topics

    def draw(self, model, factor, rng):
        """Return the mode: EM has no other draws."""
        law = {"mean": factor.shares.mean, "cov": _mode_of_cov(factor.shares)}
        return law, wide(factor.topics)


@dataclass(frozen=True, eq=False)
class ModalTopics:
    """Topics at their mode."""

    topics: np.ndarray  # (V, T), not normalised
    sizes: np.ndarray  # (T,)

    def at(self, vocabulary):
        """Return the topics for some words, (u, T)."""
        return self.topics[vocabulary] / self.sizes


def logistic_normal_topics(n_words, concentration, prior):
    """Return the model, sampled or fitted by EM. The prior has a dimension for each topic."""
    link = Softmax(len(prior.mean), float(prior.mean.mean()))
    words = DirichletWords(n_words, concentration)
    return VariationalTopicModel(words, NormalShares(prior), link, Modes())


def _mode_of_cov(normal):
    """Return the covariance at which, with its best mean, a NormalInverseWishart is densest."""
    return normal.scale / (normal.degrees + len(normal.mean) + 2.0)


def _log_density(prior, normal):
    """Return the log density of a mean and covariance under a prior, but for its constant."""
    gap = normal.mean - prior.mean
    power = prior.degrees + len(gap) + 2.0
    distance = np.vdot(prior.scale, normal.precision)
    distance += prior.strength * gap @ normal.precision @ gap
    return -0.5 * (power * np.linalg.slogdet(normal.cov)[1] + distance)
