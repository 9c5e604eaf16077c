"""The variational half of correlated topics: closed-form coordinate ascent (paper, appendix C).

The factors are q(topics) q(mean, cov) prod_d q(psi_d) q(z_d) q(omega_d | z_d). Keeping omega given z makes
each token that reaches a stick carry a PG(1, tilt) variable, tilt^2 = E psi^2, so that

    E log pi_t  is replaced by its bound  sum over the path of t of (+-E psi / 2 - log 2 cosh(tilt / 2))

in the update of z, and every update climbs on one objective.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from polystick import augmentation
from polystick.conjugate import NormalInverseWishart
from polystick.gaussians.normal import Normal
from polystick.kernels import assignments, special
from polystick.models.multinomial import standard_normal_points
from polystick.models.word_counts import ExpectedWords

LOCAL_STEPS = 5  # at most, for the documents of a block; more cost time and gained nothing on AP
LOCAL_CHANGE = 1e-3  # of E psi, on average, below which a block is settled


@dataclass(frozen=True, eq=False)
class TopicFactor:
    """q(mean, cov) and q(topics)."""

    normal: NormalInverseWishart
    topics: np.ndarray  # (V, T) parameters of Dirichlet laws over words, one for each topic


class RowFactors(NamedTuple):
    """Marginal moments of each q(psi_d)."""

    mean: np.ndarray  # (n, k)
    variance: np.ndarray  # (n, k)


class ExpectedStatistics(NamedTuple):
    """Sums over documents of expectations."""

    n_rows: float
    total: np.ndarray  # (k,) of psi
    outer: np.ndarray  # (k, k) of psi psi'
    words: ExpectedWords
    value: float  # the documents' part of the bound


class ExpectedPrior(NamedTuple):
    """What the local steps of a sweep share."""

    normal: Normal
    constant: float  # of the Gaussian part of the bound, for each document
    topics: np.ndarray  # as in the factor
    normaliser: np.ndarray  # (T,) digamma of their sums


class VariationalTopics:
    """What `MeanField` and `StochasticVI` ask of `CorrelatedTopics`."""

    prior: Any
    decomposition: Any
    concentration: Any
    n_words: Any
    n_topics: Any
    n_sticks: Any
    parameters: Any
    proportions: Any
    pad: Any
    moments_of: Any
    _warm_start: Any
    _path_signs: Any

    def initial_factor(self, shards, key):
        """Start from collapsed LDA, with the largest topics first."""
        start = self._warm_start(shards, key)
        n, total, outer = self.moments_of(start)
        by = sum(len(shard.rows) for shard in shards) / max(n, 1)
        normal = self.prior.posterior(by * n, by * total, by * outer)
        return TopicFactor(normal, start.word_topics * by + self.concentration)

    def expect(self, factor):
        normal = factor.normal
        constant = 0.5 * (normal.expected_log_det_precision - normal.expected_quadratic)
        return ExpectedPrior(
            Normal.natural(normal.expected_precision, normal.expected_linear),
            constant,
            factor.topics,
            digamma(factor.topics.sum(axis=0)),
        )

    def initial_row_factors(self, prior, shard):
        shape = (len(shard.rows), self.n_sticks)
        variance = np.diag(prior.normal.cov)
        return RowFactors(
            np.tile(prior.normal.mean, (shape[0], 1)), np.tile(variance, (shape[0], 1))
        )

    def update_rows(self, prior, shard, rows, key):
        """q(z) and q(psi) in turns until they settle, then q(z): the documents' part of the bound."""
        topics = self._expected_topics(prior, shard)
        nothing = np.empty((0, self.n_topics))
        for _ in range(LOCAL_STEPS):
            counts, _ = self._expect_assignments(shard, rows, topics, nothing)
            moments = self._moments(prior, counts, rows)
            change = np.abs(moments.mean - rows.mean).mean()
            rows = RowFactors(moments.mean, moments.variance)
            if change < LOCAL_CHANGE:
                break
        words = np.zeros_like(topics)
        _, value = self._expect_assignments(shard, rows, topics, words)
        outer = rows.mean.T @ rows.mean + moments.cov_sum
        value += self._gaussian_part(prior, rows, moments, outer)
        expected = ExpectedWords(self.n_words, shard.vocabulary, words)
        return rows, ExpectedStatistics(
            float(len(rows.mean)), rows.mean.sum(axis=0), outer, expected, value
        )

    def _expected_topics(self, prior, shard):
        """Return exp E log topics for the words of the block, (u, T)."""
        out = np.empty((len(shard.vocabulary), self.n_topics))
        special.exp_digamma_rows(prior.topics, shard.vocabulary, prior.normaliser, out)
        return out

    def _expect_assignments(self, shard, rows, topics, words):
        """Return the expected topic counts of each document and its part of the bound; fill words."""
        log_weights = self.expected_log_proportions(rows)
        top = log_weights.max(axis=1, keepdims=True)
        counts = np.empty(log_weights.shape)
        value = assignments.expect_assignments(
            shard.starts, shard.stops, shard.columns, shard.counts.astype(np.float64),
            np.exp(log_weights - top), topics, counts, words,
        )  # fmt: skip
        return counts, value + shard.totals @ top[:, 0]

    def expected_log_proportions(self, rows):
        """Return the bound of E log pi, (n, T)."""
        log_cosh = augmentation.log_two_cosh(np.sqrt(rows.mean**2 + rows.variance))
        signs = self._path_signs
        return 0.5 * rows.mean @ signs - log_cosh @ np.abs(signs)

    def _moments(self, prior, counts, rows):
        tilt = np.sqrt(rows.mean**2 + rows.variance)
        splits = self.decomposition.split(counts)
        return prior.normal.moments(augmentation.expected_potential(splits, tilt))

    def _gaussian_part(self, prior, rows, moments, outer):
        """Return E log p(psi) - E log q(psi)."""
        return (
            len(rows.mean) * (prior.constant + 0.5 * self.n_sticks)
            + prior.normal.linear @ rows.mean.sum(axis=0)
            - 0.5 * np.vdot(prior.normal.precision, outer)
            - 0.5 * moments.log_det.sum()
        )

    def update_factor(self, factor, statistics):
        """q(mean, cov) and q(topics)."""
        topics = self.concentration + statistics.words.table()
        return TopicFactor(self.prior.posterior(*statistics[:3]), topics)

    def elbo(self, factor, statistics):
        return statistics.value - factor.normal.kl(self.prior) - self._kl_of_topics(factor.topics)

    def _kl_of_topics(self, topics):
        """Return KL(q(topics) || Dirichlet(concentration))."""
        eta, sums = self.concentration, topics.sum(axis=0)
        theirs = self.n_topics * (gammaln(self.n_words * eta) - self.n_words * gammaln(eta))
        mine = gammaln(sums).sum() + special.dirichlet_sum(topics, eta, digamma(sums))
        return mine - theirs

    # stochastic

    def scale(self, statistics, by):
        n_rows, total, outer, words, value = statistics
        return ExpectedStatistics(by * n_rows, by * total, by * outer, words.scaled(by), by * value)

    def blend(self, factor, other, rate):
        topics = (1.0 - rate) * factor.topics + rate * other.topics
        return TopicFactor(factor.normal.blend(other.normal, rate), topics)

    # what to record

    def draw_from_factor(self, factor, key):
        rng = key.generator("factor")
        mean, cov = factor.normal.draw(rng)[:2]
        words = self.pad(rng.standard_gamma(factor.topics))
        sums = factor.topics.sum(axis=0) - self.n_words * self.concentration
        return self.parameters({"mean": mean, "cov": cov}, words, sums / max(sums.sum(), 1e-300))

    def draw_described_rows(self, prior, shard, rows, n_draws=64):
        """Draw from each q(psi_d), with the same points for each document."""
        topics = self._expected_topics(prior, shard)
        counts, _ = self._expect_assignments(shard, rows, topics, np.empty((0, self.n_topics)))
        tilt = np.sqrt(rows.mean**2 + rows.variance)
        potential = augmentation.expected_potential(self.decomposition.split(counts), tilt)
        points = standard_normal_points(n_draws, self.n_sticks)
        psi, _ = prior.normal.draws(potential, np.broadcast_to(points, (len(tilt), *points.shape)))
        return {"proportions": np.moveaxis(self.proportions(psi), 1, 0)}
