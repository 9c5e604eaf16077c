"""The correlated topic model of Blei and Lafferty (2007): shares of topics have a logistic-normal law::

topics_t  ~ Dirichlet(concentration)           t = 1..T, over the V words
mean, cov ~ NIW(prior)
psi_d     ~ N(mean, cov)                       d = 1..n, one entry for each topic
topic     ~ Categorical(softmax(psi_d))        for each token of document d
word      ~ Categorical(topics_topic)

All but the link and what depends on it is `CorrelatedTopics`. Gibbs draws psi site by site (Chen et al.
2013). The variational half is their EM, with priors: q(psi_d) is normal with a diagonal covariance, and
mean, cov and topics are set to the values that maximise bound + log prior density. Topics come out as
(expected counts + concentration), normalised, which maximises under a Dirichlet law of 1 + concentration;
so a word that a topic never had keeps a little probability.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax, softmax

from polystick.gaussians.normal import Normal
from polystick.kernels import logistic
from polystick.models.multinomial import standard_normal_points
from polystick.models.topic_factors import ExpectedPrior, ExpectedStatistics, RowFactors
from polystick.models.topics import CorrelatedTopics
from polystick.models.word_counts import ExpectedWords

LOCAL_STEPS = 3  # at most, for a document in a sweep; on AP 1 to 4 climb as fast, 10 half as fast
LOCAL_CHANGE = 1e-3  # of E psi, on average over topics, below which a document is settled
LOCAL_GAIN = 1e-10  # nats


@dataclass(frozen=True)
class LogisticNormalTopics(CorrelatedTopics):
    """The model: its priors. That of mean and cov has a dimension for each topic."""

    decomposition: Any = None  # topics are not decomposed

    dims: ClassVar = {
        **CorrelatedTopics.dims,
        "mean": ("topic",),
        "cov": ("topic", "topic_too"),
    }

    @property
    def n_topics(self):
        return len(self.prior.mean)

    @property
    def n_sticks(self):
        """The dimension of psi."""
        return self.n_topics

    # the link between psi and the shares of topics

    def proportions(self, psi):
        return softmax(psi, axis=-1)

    def psi(self, log_proportions):
        """Shares know psi but for a constant: let it be about the prior's mean."""
        centre = log_proportions.mean(axis=-1, keepdims=True) - self.prior.mean.mean()
        return log_proportions - centre

    def log_population(self, described, n_points=512):
        """Return log shares (n_points, T) of documents that recorded parameters would give."""
        points = standard_normal_points(n_points, self.n_topics)
        root = np.linalg.cholesky(described["cov"])
        return log_softmax(described["mean"] + points @ root.T, axis=-1)

    # Gibbs

    def draw_psi(self, prior, shard, counts, psi, key):
        """Omega and psi | counts, topic by topic."""
        psi, normal = psi.copy(), prior.normal
        logistic.draw_logistic_rows_in_place(
            key.at("psi"), shard.rows, counts, normal.precision, normal.mean, psi
        )
        return psi

    def renamed(self, psi, move):
        return np.ascontiguousarray(psi[:, move])

    def rename_law(self, parameters, order, key):
        """Permute: here a new order of topics is but new labels."""
        return {"mean": parameters.mean[order], "cov": parameters.cov[np.ix_(order, order)]}

    # variational EM: a factor is where the priors have come to, and parameters are at its mode

    def expect(self, factor):
        normal = Normal(factor.normal.mean, _mode_of_cov(factor.normal))
        return ExpectedPrior(
            normal,
            -0.5 * np.linalg.slogdet(normal.cov)[1],
            factor.topics,
            factor.topics.sum(axis=0),
        )

    def _expected_topics(self, prior, shard):
        """Return the topics for the words of the block, (u, T)."""
        return prior.topics[shard.vocabulary] / prior.normaliser

    def expected_log_proportions(self, rows):
        """Return E log shares but for a number that topics have in common, (n, T)."""
        return rows.mean

    def update_rows(self, prior, shard, rows, key):
        """q(z) and q(psi) in turns until they settle, then q(z): the documents' part of the bound."""
        topics = self._expected_topics(prior, shard)
        rows = self._climb(prior, shard, rows, topics)
        words = np.zeros_like(topics)
        _, value = self._expect_assignments(shard, rows, topics, words)
        value += self._bound_but_for_words(prior, shard, rows)
        outer = rows.mean.T @ rows.mean + np.diag(rows.variance.sum(axis=0))
        expected = ExpectedWords(self.n_words, shard.vocabulary, words)
        return rows, ExpectedStatistics(
            float(len(rows.mean)), rows.mean.sum(axis=0), outer, expected, value
        )

    def _climb(self, prior, shard, rows, topics):
        """Move each document until it settles, whatever the others do."""
        mean, variance = rows.mean.copy(), rows.variance.copy()
        active, nothing = np.arange(len(mean)), np.empty((0, self.n_topics))
        law = prior.normal.precision, prior.normal.mean
        for _ in range(LOCAL_STEPS):
            part = shard._replace(starts=shard.starts[active], stops=shard.stops[active])
            moved = RowFactors(mean[active], variance[active])
            counts, _ = self._expect_assignments(part, moved, topics, nothing)
            logistic.fit_logistic_rows_in_place(counts, *law, *moved, 1, LOCAL_GAIN)
            change = np.abs(moved.mean - mean[active]).mean(axis=1)
            mean[active], variance[active] = moved
            active = active[~(change < LOCAL_CHANGE)]
            if len(active) == 0:
                break
        return RowFactors(mean, variance)

    def _bound_but_for_words(self, prior, shard, rows):
        bound, totals = np.empty(len(rows.mean)), shard.totals.astype(np.float64)
        law = prior.normal.precision, prior.normal.mean
        logistic.bound_logistic_rows(totals, *law, *rows, bound)
        return bound.sum() + len(bound) * prior.constant

    def elbo(self, factor, statistics):
        """Return the bound of the log likelihood plus the log prior density, but for its constants."""
        prior = self.expect(factor)
        topics = self.concentration * np.log(prior.topics / prior.normaliser).sum()
        return statistics.value + _log_density(self.prior, prior.normal) + topics

    def draw_from_factor(self, factor, key):
        """Return the mode: EM has no other draws."""
        sums = factor.topics.sum(axis=0) - self.n_words * self.concentration
        law = {"mean": factor.normal.mean, "cov": _mode_of_cov(factor.normal)}
        return self.parameters(law, self.pad(factor.topics), sums / sums.sum())

    def draw_described_rows(self, prior, shard, rows, n_draws=64):
        """Draw from each q(psi_d), with the same points for each document."""
        points = standard_normal_points(n_draws, self.n_topics)[:, None]
        return {"proportions": self.proportions(rows.mean + np.sqrt(rows.variance) * points)}


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
