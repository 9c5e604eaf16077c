"""Gaussian processes behind a softmax: what the paper's GP is compared with (section 4)::

f_c ~ N(0, C)                                  c = 1..K, over the M inputs
pi  = softmax over c of level_c + f_c
x_m ~ Multinomial(N_m, pi_m)                   m = 1..M

Categories are drawn one after another, each given all the others, by elliptical slice sampling. So there is
one block, whose rows are the categories, and threads serve chains. The covariance is fixed. The state is
kept white, f = R w with a root R of C, as the solvers have it: a turn of f is the same turn of w.
"""

import functools
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

from polystick.augmentation import Potential
from polystick.kernels import softmax_slice
from polystick.scores import log_coefficients

CLIMBS = 5  # Newton's steps to the start of a chain
MOST_STEPS = 100  # of Newton's, and halvings of one
LEAST_GAIN = 1e-4  # of what the slope promises (Armijo)
SETTLED = 1e-10  # nats
SMALLEST = 1e-300  # share of a category


class Parameters(NamedTuple):
    """What a sweep leaves beside the values: the covariance is fixed."""

    n_looks: np.ndarray  # () points of the ellipse looked at, on average over categories


class Rows(NamedTuple):
    """Where the categories of a chain stand."""

    white: np.ndarray  # (K, n_white)
    f: np.ndarray  # (K, M)


class Statistics(NamedTuple):
    """What a sweep tells. There is one block, so these are never added up."""

    n_looks: float
    value: float  # log likelihood


class Shard(NamedTuple):
    """The block of all categories."""

    rows: np.ndarray  # (K,) uint64 ids, which key the random streams
    counts: np.ndarray  # (K, M) float64
    totals: np.ndarray  # (M,) float64
    log_coefficient: float


@dataclass(frozen=True)
class LogisticNormalProcess:
    """The model: a family of covariances, of which the one at theta0 is used, and the level (K,)."""

    family: Any
    level: np.ndarray

    parameter_type: ClassVar = Parameters
    dims: ClassVar = {
        "n_looks": (),
        "white": ("category", "white_entry"),
        "probabilities": ("category", "input"),
    }
    identified: ClassVar = ("probabilities",)
    rhat_limit: ClassVar = 1.05

    @property
    def n_categories(self):
        return len(self.level)

    @functools.cached_property
    def theta(self):
        """The parameters of the covariance."""
        return self.family.theta0

    @property
    def solver(self):
        return self.family.at(self.theta)

    def shards(self, counts):
        """Return counts (M, K) as one block."""
        table = np.ascontiguousarray(counts.T, dtype=np.float64)
        ids = np.arange(len(table), dtype=np.uint64)
        return [Shard(ids, table, table.sum(axis=0), log_coefficients(counts).sum())]

    # simulate

    def simulate(self, n_trials, rng):
        """Draw (parameters, rows, counts) from the joint law, for the totals (M,) of the inputs."""
        rows = self._rows(rng.standard_normal((self.n_categories, self.solver.n_white)))
        return Parameters(np.array(1.0)), rows, self.simulate_counts(rows, n_trials, rng)

    def simulate_counts(self, rows, n_trials, rng):
        """Draw counts (M, K) given the values."""
        return rng.multinomial(n_trials, self.probabilities(rows.f.T))

    def probabilities(self, f):
        """Return pi (..., K) of f (..., K)."""
        return softmax(self.level + f, axis=-1)

    def _rows(self, white):
        return Rows(white, np.ascontiguousarray(self.solver.unwhiten(white)))

    # Gibbs

    def initial_parameters(self, shards, key):
        return Parameters(np.array(1.0))

    def prepare(self, parameters):
        """Return the solver, which has the prior of each category."""
        return self.solver

    def initial_rows(self, prior, shard, key):
        """Start near the posterior, and apart: a draw from its approximation about the top.

        Elliptical slice sampling by itself would climb for thousands of sweeps.
        """
        noise = key.normals("start", shard.rows, prior.noise_size)
        return self._rows(
            prior.draw(self._potential(shard, self._climb(prior, shard)), noise).white
        )

    def _climb(self, prior, shard):
        """Return f (K, M) near the mode: Newton's steps for all categories at once, while they gain."""
        share = np.maximum(softmax(self.level), SMALLEST)[:, None]
        smooth = np.log((shard.counts + share) / (shard.totals + 1.0))
        f = prior.mean(self._potential(shard, smooth - np.log(share)))
        value = self._log_likelihood(shard, f)
        for _ in range(CLIMBS):
            trial = prior.mean(self._potential(shard, f))
            reached = self._log_likelihood(shard, trial)
            if not reached > value:
                break
            f, value = trial, reached
        return f

    def _potential(self, shard, f):
        """Return the likelihood's quadratic form about f, each category by itself."""
        pi = self.probabilities(f.T).T
        omega = shard.totals * pi * (1.0 - pi)
        return Potential(shard.counts - shard.totals * pi + omega * f, omega)

    def _log_likelihood(self, shard, f):
        return np.sum(shard.counts * log_softmax(self.level[:, None] + f, axis=0))

    def draw_rows(self, prior, shard, rows, key):
        """The values of each category | those of all others."""
        noise = key.normals("fresh", shard.rows, prior.n_white)
        fresh = np.ascontiguousarray(prior.unwhiten(noise))
        f, turns = rows.f.copy(), np.empty((self.n_categories, 2))
        n_looks, value = softmax_slice.draw_categories_in_place(
            key.at("slice"), shard.rows, shard.counts, shard.totals, self.level, f, fresh, turns
        )
        white = turns[:, :1] * rows.white + turns[:, 1:] * noise
        return Rows(white, f), Statistics(n_looks / len(f), value + shard.log_coefficient)

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        """Take over what the sweep tells."""
        return Parameters(np.array(statistics.n_looks))

    def log_likelihood(self, statistics):
        return statistics.value

    def describe_rows(self, shard, rows):
        """Return white (K, n_white) and probabilities (K, M)."""
        return {"white": rows.white, "probabilities": self.probabilities(rows.f.T).T}

    # new inputs given white values: predictions and scores

    def predict(self, white, predictor, noise):
        """Return probabilities (..., M', K) of new inputs at standard normals (..., M' or 1, K)."""
        mean, variance = predictor.given(white)
        return self.probabilities(mean.T + np.sqrt(variance)[:, None] * noise)

    def log_weights(self, white, predictor, counts, points):
        """Return log weights (P, M') whose exponentials average to p(counts) at new inputs, given white.

        The values at an input are proposed about their mode, in units of their standard deviation, with
        its curvature (Laplace), which is the unit matrix plus a diagonal one minus an outer product.
        The multinomial coefficient is left out.
        """
        mean, variance = predictor.given(white)
        centre, scale = self.level + mean.T, np.sqrt(variance)[:, None]
        mode = _find_mode(counts, centre, scale)
        step, log_det = _spread(counts, centre + scale * mode, scale, points)
        proposed = mode + step
        value = _log_joint(counts, centre, scale, proposed)
        return value + 0.5 * (np.square(points).sum(axis=1)[:, None] - log_det)


def _log_joint(counts, centre, scale, e):
    """Return log p(counts | centre + scale e) - e'e / 2 without coefficients, (..., M')."""
    psi = centre + scale * e
    value = (counts * psi).sum(axis=-1) - counts.sum(axis=-1) * logsumexp(psi, axis=-1)
    return value - 0.5 * np.square(e).sum(axis=-1)


def _find_mode(counts, centre, scale):
    """Climb to the e (M', K) of largest `_log_joint`, by Newton's steps, halved until they gain."""
    e = np.zeros_like(centre)
    value = _log_joint(counts, centre, scale, e)
    for _ in range(MOST_STEPS):
        pi = softmax(centre + scale * e, axis=-1)
        gradient = scale * (counts - counts.sum(axis=-1, keepdims=True) * pi) - e
        step = _solve_curvature(counts, pi, scale, gradient)
        promise = (gradient * step).sum(axis=-1)
        if not (promise > SETTLED).any():
            break
        rate = np.ones_like(value)
        for _ in range(MOST_STEPS):
            trial = _log_joint(counts, centre, scale, e + rate[:, None] * step)
            short = trial - value < LEAST_GAIN * rate * promise - SETTLED
            if not short.any():
                break
            rate[short] *= 0.5
        e, value = e + rate[:, None] * step, trial
    return e


def _curvature(counts, pi, scale):
    """Return D and c of the curvature D - c pi pi', and 1 - pi' D^-1 pi c, which cannot cancel."""
    c = np.square(scale) * counts.sum(axis=-1, keepdims=True)
    D = 1.0 + c * pi
    return D, c, (pi / D).sum(axis=-1, keepdims=True)


def _solve_curvature(counts, pi, scale, gradient):
    """Return (D - c pi pi')^-1 gradient (Sherman and Morrison)."""
    D, c, left = _curvature(counts, pi, scale)
    along = (pi * gradient / D).sum(axis=-1, keepdims=True)
    return (gradient + c * pi * along / left) / D


def _spread(counts, psi, scale, points):
    """Return normals (P, M', K) with the inverse curvature at psi as covariance, and its log|.|, (M',).

    D - c pi pi' = D^(1/2) (1 - u u') D^(1/2), whose inverse has the root D^(-1/2) (1 - u u')^(-1/2).
    """
    pi = softmax(psi, axis=-1)
    D, c, left = _curvature(counts, pi, scale)
    u = np.sqrt(c / D) * pi
    root = np.sqrt(left)
    along = (u * points[:, None]).sum(axis=-1, keepdims=True)
    normals = (points[:, None] + u * along / (root * (1.0 + root))) / np.sqrt(D)
    return normals, np.log(D).sum(axis=-1) + np.log(left[:, 0])
