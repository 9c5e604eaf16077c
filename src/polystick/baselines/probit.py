"""The multinomial probit of Albert and Chib (1993), for single labels explained by covariates::

B_ac   ~ N(mean_ac, scale_a^2)      coefficients of p columns, on K categories
z_ic   ~ N(x_i' B_c, 1)             utilities
y_i    = argmax_c z_ic

A sweep draws utilities given labels, the winner's above the others and the others below it, and B given
utilities. What all categories share is not seen by labels.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from polystick.models.regression_state import (
    ROWS_PER_BLOCK,
    Data,
    Parameters,
    RegressionPrior,
    cut,
)

__all__ = ["ProbitRegression"]

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
LOG_WEIGHTS = np.log(WEIGHTS) - 0.5 * np.log(2.0 * np.pi)


class Shard(NamedTuple):
    """A block of rows."""

    rows: np.ndarray  # (n,) uint64 ids, which key the random streams
    counts: np.ndarray  # (n, K) 0 and 1
    labels: np.ndarray  # (n,)
    data: Data


class Rows(NamedTuple):
    """Where each row of a chain stands."""

    utilities: np.ndarray  # (n, K)


class Statistics(NamedTuple):
    """Sums over rows."""

    gram: np.ndarray  # (p, p) x'x
    cross: np.ndarray  # (p, K) x'z
    value: float  # log likelihood


@dataclass(frozen=True)
class ProbitRegression:
    """The model: its prior, without groups and overdispersion."""

    prior: RegressionPrior

    parameter_type: ClassVar = Parameters
    dims: ClassVar = {"coefficients": ("column", "category")}
    identified: ClassVar = ("coefficients",)
    rhat_limit: ClassVar = 1.05

    def probabilities(self, psi):
        """Return how likely each utility about psi (..., K) is the largest."""
        return np.exp(self.log_probabilities(psi))

    def log_probabilities(self, psi):
        found = np.stack([log_win(psi, c) for c in range(psi.shape[-1])], axis=-1)
        return found - logsumexp(found, axis=-1, keepdims=True)

    def shards(self, counts, x, groups, size=ROWS_PER_BLOCK):
        """Cut single labels, told as counts (n, K), and covariates (n, p) into blocks of rows."""
        counts, ids = np.asarray(counts), np.arange(len(counts), dtype=np.uint64)
        labels = counts.argmax(axis=1)
        return [
            Shard(ids[part], counts[part], labels[part], self.prior.data(x[part], groups[part]))
            for part in cut(len(counts), size)
        ]

    # simulate

    def simulate(self, x, rng):
        """Draw (parameters, rows, labels) from the joint law."""
        parameters = self.prior.draw(rng)
        return parameters, *self.simulate_rows(parameters, x, rng)

    def simulate_rows(self, parameters, x, rng):
        """Draw utilities and labels given the parameters."""
        line = x @ parameters.coefficients
        utilities = line + rng.standard_normal(line.shape)
        return Rows(utilities), utilities.argmax(axis=1)

    # Gibbs

    def initial_parameters(self, shards, key):
        return self.prior.start(key.generator("start"))

    def prepare(self, parameters):
        return parameters

    def initial_rows(self, parameters, shard, key):
        """Start on the line, the label's utility just above the others."""
        utilities = self.prior.line(parameters, shard.data)
        utilities[np.arange(len(utilities)), shard.labels] = utilities.max(axis=1) + 0.5
        return Rows(utilities)

    def draw_rows(self, parameters, shard, rows, key):
        """The winner's utility | the others; then theirs | it."""
        line = self.prior.line(parameters, shard.data)
        utilities = self.draw_utilities(line, shard, rows.utilities, key)
        value = log_win(line, shard.labels).sum()
        x = shard.data.x
        return Rows(utilities), Statistics(x.T @ x, x.T @ utilities, value)

    def draw_utilities(self, line, shard, utilities, key):
        """Return utilities (n, K) given labels and the lines (n, K) that they are about."""
        noise = key.normals("utilities", shard.rows, line.shape[1])
        everyone, winner = np.arange(len(line)), shard.labels
        others = utilities.copy()
        others[everyone, winner] = -np.inf
        own = line[everyone, winner]
        top = own + normal_above(others.max(axis=1) - own, noise[everyone, winner])
        drawn = line - normal_above(line - top[:, None], noise)
        drawn[everyone, winner] = top
        return drawn

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        """B | utilities: K regressions with the same columns."""
        precision = self.prior.scale**-2.0
        root = np.linalg.cholesky(statistics.gram + np.diag(precision))
        linear = statistics.cross + precision[:, None] * self.prior.mean
        noise = key.generator("coefficients").standard_normal(linear.shape)
        half = solve_triangular(root, linear, lower=True) + noise
        return parameters._replace(coefficients=solve_triangular(root, half, lower=True, trans=1))

    def log_likelihood(self, statistics):
        return statistics.value

    def describe_parameters(self, parameters):
        """Tell all with the level taken out."""
        b = parameters.coefficients
        return {"coefficients": b - b.mean(axis=1, keepdims=True)}

    def describe_rows(self, shard, rows):
        return {}


def normal_above(bound, noise):
    """Return a standard normal given that it is above a bound, from a free one: exact far out, too."""
    return -ndtri_exp(log_ndtr(noise) + log_ndtr(-bound))


def log_win(psi, winner):
    """Return the log probability that a category, or each row's own (n,), has the largest utility."""
    winner = np.broadcast_to(winner, psi.shape[:-1])[..., None]
    ahead = np.take_along_axis(psi, winner, axis=-1) - psi
    told = log_ndtr(NODES[:, None] + ahead[..., None, :])  # (..., node, K)
    np.put_along_axis(
        told, np.broadcast_to(winner[..., None, :], (*told.shape[:-1], 1)), 0.0, axis=-1
    )
    return logsumexp(told.sum(axis=-1) + LOG_WEIGHTS, axis=-1)
