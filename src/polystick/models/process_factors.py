"""Mean field for multinomial Gaussian processes.

A stick has q(f) = N(C linear, (C^-1 + diag(weights))^-1), the dual form (Opper and Archambeau 2009): nothing
inverts C. When theta moves, q(omega) is held fixed and the mean of f follows, for under strong counts it is f
and not `linear` that the counts hold: else theta could hardly move. The best weights are E[omega]. Where a
solver can treat only some weights exactly and cheaply (rank one on a grid), it takes the nearest of those if
they raise the bound, which so remains a bound. Theta, level and scale have point masses, at their most
probable values.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from polystick import augmentation

MOST_STEPS = 4  # of the search for theta in one sweep
KNOWN = ("linear", "weights", "scale")  # for sure, of what is described, with the level


@dataclass(frozen=True)
class KernelFactor:
    """The point mass of theta."""

    theta: np.ndarray  # (p,)


class RowFactors(NamedTuple):
    """Each q(f_j), and the point masses of level and scale."""

    linear: np.ndarray  # (r, M)
    weights: np.ndarray  # (r, M)
    omega: np.ndarray  # (r, M) of q(omega), which is the best one for the others
    level: np.ndarray  # (r,)
    scale: np.ndarray  # (r,)


class ExpectedStatistics(NamedTuple):
    """What the global step needs."""

    blocks: tuple  # of pairs (shard, row factors)
    value: float  # the sticks' part of the bound


class VariationalProcess:
    """The mean-field half of `ProcessCounts`."""

    family: Any
    level: Any
    learn: Any
    level_sd: float
    scale_sd: float
    learns_kernel: Any
    log_prior: Any
    _standing: Any
    level_regression: Any

    def initial_factor(self, shards, key):
        return KernelFactor(np.array(self.family.theta0, dtype=np.float64))

    def expect(self, factor):
        return self.family.at(factor.theta)

    def initial_row_factors(self, prior, shard):
        """Start from the prior at the level, with the weights that omega has there."""
        level, scale = self.level[shard.rows.astype(int)], np.ones(len(shard.rows))
        tilt = np.abs(np.broadcast_to(level[:, None], shard.trials.shape))
        omega = augmentation.expected_potential(shard.splits, tilt).omega
        return RowFactors(np.zeros(omega.shape), prior.weights(omega), omega, level, scale)

    def update_rows(self, prior, shard, rows, key):
        """q(f), then level and scale, then q(omega)."""
        rows = self._follow(prior, shard, rows)
        rows, dual = self._best_weights(prior, shard, rows)
        rows = self._best_levels(shard, rows, dual)
        rows = rows._replace(omega=self._expected_potential(shard, rows, dual).omega)
        value = self._bounds(shard, rows, dual).sum() + shard.log_coefficient
        return rows, ExpectedStatistics(((shard, rows),), value)

    def _follow(self, prior, shard, rows):
        """Take the best mean of f under a prior, given q(omega)."""
        level, scale = rows.level[:, None], rows.scale[:, None]
        kappa = scale * (augmentation.kappa(shard.splits) - rows.omega * level)
        omega = scale**2 * rows.omega
        mean = prior.mean(augmentation.Potential(kappa, omega))
        return rows._replace(linear=kappa - omega * mean)

    def _expected_potential(self, shard, rows, dual):
        return augmentation.expected_potential(shard.splits, np.sqrt(_moments(rows, dual)[1]))

    def _best_weights(self, prior, shard, rows):
        """Take the weights nearest to omega, that of f, for the sticks whose bound they raise."""
        omega = np.square(rows.scale[:, None]) * rows.omega
        new = rows._replace(weights=prior.weights(omega))
        dual = prior.dual(new.linear, new.weights)
        if new.weights is omega:
            return new, dual
        old = prior.dual(rows.linear, rows.weights)
        better = self._bounds(shard, new, dual) >= self._bounds(shard, rows, old)
        chosen = np.where(better[:, None], new.weights, rows.weights)
        both = ((a, b) for a, b in zip(dual, old))
        dual = type(dual)(
            *(np.where(better if a.ndim == 1 else better[:, None], a, b) for a, b in both)
        )
        return rows._replace(weights=chosen), dual

    def _best_levels(self, shard, rows, dual):
        """Maximise the bound over those of level and scale that are learned, given q(omega)."""
        names = [name for name in ("level", "scale") if name in self.learn]
        if not names:
            return rows
        potential = self._expected_potential(shard, rows, dual)
        squares = np.square(dual.mean) + dual.variance
        precision, linear = self.level_regression(
            potential, dual.mean, squares, shard, rows.level, rows.scale
        )
        found = np.linalg.solve(precision, linear[..., None])[..., 0]
        return rows._replace(**dict(zip(names, found.T)))

    def _bounds(self, shard, rows, dual):
        """Return the bound of each stick (r,), without multinomial coefficients."""
        mean, second = _moments(rows, dual)
        log_cosh = augmentation.log_two_cosh(np.sqrt(second))
        likelihood = augmentation.kappa(shard.splits) * mean - shard.trials * log_cosh
        quadratic = rows.linear * dual.mean - rows.weights * dual.variance
        gaussian = -0.5 * (quadratic.sum(axis=1) + dual.log_det)
        return likelihood.sum(axis=1) + gaussian + self._log_prior_of_levels(shard, rows)

    def _log_prior_of_levels(self, shard, rows):
        """Return the log density of level and scale, up to a constant; 0 where they are not learned."""
        away = (rows.level - self.level[shard.rows.astype(int)]) / self.level_sd
        return -0.5 * (np.square(away) + np.square((rows.scale - 1.0) / self.scale_sd))

    def update_factor(self, factor, statistics):
        """Move theta to where the bound is higher, q(omega) and the weights of the sticks held fixed."""
        if not self.learns_kernel:
            return factor

        def loss(theta):
            solver = self.family.at(theta)
            found = [self._bound_at(solver, *block) for block in statistics.blocks]
            return -sum(found) - self.log_prior(theta)

        found = minimize(
            loss,
            factor.theta,
            method="L-BFGS-B",
            bounds=self.family.bounds,
            options={"maxiter": MOST_STEPS},
        )
        return KernelFactor(found.x) if found.fun < loss(factor.theta) else factor

    def _bound_at(self, solver, shard, rows):
        rows = self._follow(solver, shard, rows)
        return self._bounds(shard, rows, solver.dual(rows.linear, rows.weights)).sum()

    def elbo(self, factor, statistics):
        return statistics.value + (self.log_prior(factor.theta) if self.learns_kernel else 0.0)

    def draw_from_factor(self, factor, key):
        return self._standing(factor.theta)

    def draw_described_rows(self, prior, shard, rows):
        """Return two values of psi with the moments of q, and what is known for sure."""
        rows = self._follow(prior, shard, rows)
        dual = prior.dual(rows.linear, rows.weights)
        mean = rows.level[:, None] + rows.scale[:, None] * dual.mean
        sd = np.abs(rows.scale[:, None]) * np.sqrt(dual.variance)
        known = {name: getattr(rows, name)[None] for name in KNOWN} | {"mean": rows.level[None]}
        return {"psi": np.stack([mean - sd, mean + sd]), **known}

    def latent_of_factor(self, factor, predictor):
        """Return mean and variance (k, M*) of psi at new inputs under q.

        factor : name -> array: linear, weights, mean, scale of all sticks
        """
        mean, variance = predictor.dual(factor["linear"], factor["weights"])
        level, scale = factor["mean"][:, None], factor["scale"][:, None]
        return level + scale * mean, scale**2 * variance


def _moments(rows, dual):
    """Return E[psi] and E[psi^2], (r, M)."""
    mean = rows.level[:, None] + rows.scale[:, None] * dual.mean
    return mean, np.square(mean) + np.square(rows.scale[:, None]) * dual.variance
