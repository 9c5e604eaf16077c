"""Variational EM for the correlated topic model of Blei and Lafferty (2007), with priors.

The model is that of topics with a `Softmax` for a link. q(psi_d) is normal with a diagonal covariance, and
mean, cov and topics are set to the values that maximise bound + log prior density. Topics come out as
(expected counts + concentration), normalised, which maximises under a Dirichlet law of 1 + concentration;
so a word that a topic never had keeps a little probability.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from polystick.conjugate import NormalInverseWishart
from polystick.gaussians.normal import Normal
from polystick.models.softmax_link import Softmax
from polystick.models.topic_factors import VariationalTopicModel
from polystick.models.topic_shares import ExpectedNormal, NormalShares
from polystick.models.topic_words import DirichletWords, wide


@dataclass(frozen=True)
class ModalShares:
    """A factor is where the prior has come to, and mean and cov are at its mode."""

    prior: NormalInverseWishart

    def expect(self, factor):
        normal = Normal(factor.mean, _mode_of_cov(factor))
        return ExpectedNormal(normal, -0.5 * np.linalg.slogdet(normal.cov)[1])

    def divergence(self, factor):
        """Return minus the log prior density at the mode, but for its constant."""
        prior, normal = self.prior, Normal(factor.mean, _mode_of_cov(factor))
        gap = normal.mean - prior.mean
        power = prior.degrees + len(gap) + 2.0
        distance = np.vdot(prior.scale, normal.precision)
        distance += prior.strength * gap @ normal.precision @ gap
        return 0.5 * (power * np.linalg.slogdet(normal.cov)[1] + distance)

    def draw_from(self, factor, rng):
        """Return the mode: EM has no other draws."""
        return {"mean": factor.mean, "cov": _mode_of_cov(factor)}


@dataclass(frozen=True)
class ModalWords:
    """So it is with topics."""

    concentration: float

    def expect(self, factor):
        return partial(np.take, factor / factor.sum(axis=0), axis=0)

    def divergence(self, factor):
        return -self.concentration * np.log(factor / factor.sum(axis=0)).sum()

    def draw_from(self, factor, rng):
        return wide(factor)


def _mode_of_cov(normal):
    """Return the covariance at which, with its best mean, a NormalInverseWishart is densest."""
    return normal.scale / (normal.degrees + len(normal.mean) + 2.0)


def logistic_normal_topics(n_words, concentration, prior):
    """Return the model, sampled or fitted by EM. The prior has a dimension for each topic."""
    parts = DirichletWords(n_words, concentration), NormalShares(prior)
    link = Softmax(len(prior.mean), float(prior.mean.mean()))
    return VariationalTopicModel(*parts, link, (ModalShares(prior), ModalWords(concentration)))
