"""Rows of counts behind a softmax: the logistic-normal multinomial (Aitchison and Shen 1980)::

mean, cov ~ law                                NormalInverseWishart, LearnedScale or SparseFactors
psi_i     ~ N(mean, cov)                       i = 1..n, one entry for each category
x_i       ~ Multinomial(N_i, softmax(psi_i))

No category comes first: in another order of the columns it is the same law. Only log-ratios of shares are
seen, so mean and cov are told with the level taken out (of centred log-ratios).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import log_softmax, softmax

from polystick.association import double_centred
from polystick.augmentation import Potential
from polystick.gaussians.normal import Normal
from polystick.kernels import algebra, softmax_columns, softmax_rows
from polystick.models import watched
from polystick.models.multinomial import (
    DISPERSION,
    ROWS_PER_BLOCK,
    Rows,
    Statistics,
)
from polystick.models.normal_points import standard_normal_points
from polystick.scores import log_coefficients

__all__ = ["SoftmaxCounts"]

MOST_MOVED = 24  # categories of a sweep, so that these moves cost no more than rows
LONGEST_STEP = 4.0  # of a climb, in each log abundance
FIRST_STEPS, NEXT_STEPS = 20, 3  # of a climb under the first prior, and from there under the next
LEAST_SHARE = 1e-12  # of a determinant, which rounding could make negative


class Shard(NamedTuple):
    """A block of rows."""

    rows: np.ndarray  # (n,) uint64 ids, which key the random streams
    counts: np.ndarray  # (n, K)
    totals: np.ndarray  # (n,)
    log_coefficient: float  # sum of log multinomial coefficients


class Population(NamedTuple):
    """What is told of the law of rows: mean and covariance of centred log-ratios."""

    mean: np.ndarray  # (K,)
    cov: np.ndarray  # (K, K)


@dataclass(frozen=True)
class SoftmaxCounts:
    """The model: the law of mean and covariance."""

    law: Any

    dims: ClassVar = {
        "mean": ("category",),
        "cov": ("category", "category_too"),
        "probabilities": ("row", "category"),
    }
    identified: ClassVar = ("mean", "cov", "probabilities")
    rhat_limit: ClassVar = 1.05
    population_type: ClassVar = Population

    @property
    def parameter_type(self):
        return self.law.parameter_type

    @property
    def n_dims(self):
        """Entries of psi."""
        return len(self.law.centre)

    @property
    def n_noise(self):
        """Standard normals that a proposal of a row takes."""
        return self.n_dims + 1

    def probabilities(self, psi):
        return softmax(psi, axis=-1)

    def shards(self, counts, size=ROWS_PER_BLOCK):
        """Cut counts (n, K), dense or CSR, into blocks of rows."""
        starts = range(0, counts.shape[0], size)
        return [self._shard(counts[i : i + size], i) for i in starts]

    def _shard(self, counts, first):
        dense = counts.toarray() if scipy.sparse.issparse(counts) else counts
        dense = np.ascontiguousarray(dense, dtype=np.int64)  # what kernels are compiled for
        ids = np.arange(first, first + len(dense), dtype=np.uint64)
        return Shard(ids, dense, dense.sum(axis=1), log_coefficients(dense).sum())

    # simulate

    def simulate(self, n_trials, rng):
        """Draw (parameters, rows, counts) from the joint law, for the totals (n,) of the rows."""
        parameters = self.law.draw(rng)
        noise = rng.standard_normal((len(n_trials), self.n_dims))
        rows = Rows(parameters.mean + noise @ np.linalg.cholesky(parameters.cov).T)
        return parameters, rows, self.simulate_counts(rows, n_trials, rng)

    def simulate_counts(self, rows, n_trials, rng):
        """Draw counts given the rows' psi."""
        return rng.multinomial(n_trials, self.probabilities(rows.psi))

    # Gibbs

    def initial_parameters(self, shards, key):
        return self.law.start(key.generator("start"))

    def prepare(self, parameters):
        """Return the rows' Gaussian."""
        return Normal(parameters.mean, parameters.cov, parameters.precision)

    def initial_rows(self, prior, shard, key):
        """Start from the likelihood alone, chains further apart than it leaves them."""
        smoothed = shard.counts + 0.5
        noise = key.normals("start", shard.rows, self.n_dims)
        return Rows(np.log(smoothed) + DISPERSION * noise / np.sqrt(smoothed))

    def move_together(self, parameters, shards, rows, key, ordered_map=map):
        """Move categories of all rows with their part of the law, where it is one of factors."""
        if not hasattr(self.law, "draw_factors"):
            return parameters, rows
        counts, totals = (np.concatenate([shard[part] for shard in shards]) for part in (1, 2))
        ids = np.concatenate([shard.rows for shard in shards])
        psi = _new_levels(parameters, np.concatenate([part.psi for part in rows]), ids, key)
        noise = key.normals("factors", ids, self.law.shape[1])
        factors = self.law.draw_factors(parameters, psi, noise)
        weights, known = self.law.weights(parameters)
        variances = parameters.noise.copy()
        chosen = np.arange(self.n_dims)
        if self.n_dims > MOST_MOVED:
            rng = key.generator("chosen")
            chosen = np.sort(rng.choice(self.n_dims, MOST_MOVED, replace=False))
        softmax_columns.move_in_place(
            key.at("columns"),
            chosen,
            counts,
            totals,
            factors,
            self.law.scale,
            known,
            weights,
            variances,
            psi,
        )
        moved = self.law.moved(parameters, weights, variances, key.generator("moved"))
        ends = np.cumsum([len(part.psi) for part in rows])[:-1]
        return moved, [Rows(part) for part in np.split(psi, ends)]

    def draw_rows(self, prior, shard, rows, key):
        """Each psi: the level of its row, then category by category | the others of its row, x."""
        psi = rows.psi.copy()
        value = softmax_rows.redraw_rows_in_place(
            key.at("psi"),
            shard.rows,
            shard.counts,
            shard.totals,
            prior.mean[None],
            prior.precision,
            psi,
        )
        value += shard.log_coefficient
        return Rows(psi), Statistics(len(psi), psi.sum(axis=0), algebra.gram(psi), value)

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        """mean, cov | psi; then the level of the mean and of all rows, which nobody sees, at once.

        Rows follow in the next sweep, which draws their level given the mean before all else.
        """
        rng = key.generator("parameters")
        n_rows, total, outer, _ = statistics
        return self.law.recentre(self.law.redraw(parameters, n_rows, total, outer, rng), rng)

    def log_likelihood(self, statistics):
        return statistics.value

    def describe_parameters(self, parameters):
        """Tell mean and covariance of centred log-ratios."""
        mean = parameters.mean - parameters.mean.mean()
        return {"mean": mean, "cov": double_centred(parameters.cov)}

    def describe_rows(self, shard, rows):
        return {"probabilities": self.probabilities(rows.psi)}

    def watch(self, shards):
        """Judge a run by the probabilities of some cells, rare ones among them."""
        cells = watched.choose_cells(_cells(shard) for shard in shards)
        return watched.CategoryWatch(cells, self.n_dims)

    # rows given the population: scores and predictions

    def population(self, mean, cov):
        """Return a Gaussian whose shares have the law that is told; its level is of no importance."""
        return Normal(mean, cov + np.trace(cov) / len(mean))

    def log_population(self, population, n_points=512):
        """Return log probabilities (n_points, K) of rows of a population."""
        normal = self.population(*population)
        points = standard_normal_points(n_points, self.n_dims)
        return log_softmax(normal.mean + algebra.multiply(points, normal.root), axis=1)

    def propose_rows(self, priors, shard, n_points, noise=None):
        """Propose psi of each row under each prior, as `CorrelatedCounts.propose_rows` does."""
        psi = np.log(shard.counts + 0.5)
        if noise is None:
            noise = standard_normal_points(len(priors) * n_points, self.n_noise)[None]
        proposed, log_weights = [], []
        for number, prior in enumerate(priors):
            for _ in range(FIRST_STEPS if number == 0 else NEXT_STEPS):
                found = laplace(prior, shard, psi).mean
                psi = psi + np.clip(found - psi, -LONGEST_STEP, LONGEST_STEP)
            mine = noise[:, number * n_points : (number + 1) * n_points]
            drawn, log_density = draw_about(prior, shard, psi, mine)
            log_likelihood = np.einsum("nk,ndk->nd", shard.counts, log_softmax(drawn, axis=2))
            log_prior = prior.log_density(drawn.reshape(-1, self.n_dims)).reshape(drawn.shape[:2])
            proposed.append(drawn)
            log_weights.append(log_likelihood + log_prior - log_density)
        return np.concatenate(proposed, axis=1), np.concatenate(log_weights, axis=1)


class Laplace(NamedTuple):
    """The normal law with the curvature of a row's posterior about psi: its precision is J - n p p'."""

    mean: np.ndarray  # (n, K)
    omega: np.ndarray  # (n, K): J is the prior's precision and omega on the diagonal
    direction: np.ndarray  # (n, K) J^-1 p, so long that cov is J^-1 and its outer product
    share: np.ndarray  # (n, 1) |J - n p p'| / |J|
    p: np.ndarray  # (n, K)


def laplace(prior, shard, psi):
    """Expand the log likelihood about psi: diag(n p) - n p p', a potential but for one rank."""
    p, n = softmax(psi, axis=1), shard.totals[:, None].astype(np.float64)
    omega = n * p
    kappa = shard.counts - omega + omega * (psi - np.sum(p * psi, axis=1, keepdims=True))
    mean = _mean(prior, kappa, omega)
    direction = _mean(prior, p, omega) - _mean(prior, np.zeros_like(p), omega)  # J^-1 p
    share = np.maximum(1.0 - n * np.sum(p * direction, axis=1, keepdims=True), LEAST_SHARE)
    mean = mean + n * direction * np.sum(p * mean, axis=1, keepdims=True) / share
    return Laplace(mean, omega, direction * np.sqrt(n / share), share, p)


def _mean(prior, kappa, omega):
    """Return the mean of each row under prior and potential."""
    nowhere = np.zeros((len(kappa), 1, kappa.shape[1]))
    return prior.draws(Potential(kappa, omega), nowhere)[0][:, 0]


def draw_about(prior, shard, psi, noise):
    """Draw from the Gaussian with the curvature at psi; return the draws and their log density."""
    mean, omega, direction, share, p = laplace(prior, shard, psi)
    nothing, k = np.zeros_like(omega), psi.shape[1]
    noise = np.broadcast_to(noise, (len(psi), *noise.shape[1:]))
    drawn, log_det = prior.draws(Potential(nothing, omega), np.ascontiguousarray(noise[..., :k]))
    drawn -= _mean(prior, nothing, omega)[:, None]
    drawn += noise[..., k:] * direction[:, None]
    along = shard.totals[:, None] * np.einsum("ndk,nk->nd", drawn, p) ** 2
    distance = np.einsum("ndk,ndk->nd", drawn @ prior.precision, drawn) - along
    distance += np.einsum("ndk,nk->nd", drawn**2, omega)
    log_det = log_det[:, None] + np.log(share) - k * np.log(2 * np.pi)
    return drawn + mean[:, None], 0.5 * (log_det - distance)


def _new_levels(parameters, psi, ids, key):
    """Draw the level of each row, which its counts do not see, given the law."""
    weight = parameters.precision.sum(axis=0)
    noise = key.normals("levels", ids, 1)
    told = np.sum((psi - parameters.mean) * weight, axis=1, keepdims=True)
    return psi + noise / np.sqrt(weight.sum()) - told / weight.sum()


def _cells(shard):
    """Return each category of each row as a split from all others."""
    n, k = shard.counts.shape
    category = np.tile(np.arange(k), n)
    return watched.Cells(
        np.repeat(shard.rows, k), category, shard.counts.ravel(), np.repeat(shard.totals, k)
    )
