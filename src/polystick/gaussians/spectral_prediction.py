"""Gaussian processes at new inputs, from the eigenbasis of the covariance of the old ones.

A new input has covariances c with the old ones and features phi = S^(-1/2) U' c. Given v its mean is
phi' v and its variance c** - phi' phi; given the potential only, phi' A^-1 phi comes on top. For an x
near A^-1 b, the form (b + r)' x with r = b - A x errs by the square of x's error only, so a solution to
the root of the tolerance will do.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from polystick.gaussians import conjugate_gradients, kronecker
from polystick.gaussians.kronecker import Rotation, System
from polystick.gaussians.process import shrink

__all__ = ["SpectralPredictor", "UnstructuredPredictor"]

ITERATIONS = 10  # of conjugate gradients for one variance, to judge what is cheaper


@dataclass(frozen=True, eq=False)
class SpectralPredictor:
    """f at new inputs of a `Grid`, row by row, so that memory stays that of one."""

    solver: Any
    cross: np.ndarray  # (M*, n_1, ..., n_F) covariances of the new inputs with the cells
    variance: np.ndarray  # (M*,)

    @cached_property
    def features(self):
        """The features phi of the new inputs, (M*, m_1, ..., m_F)."""
        scaled = [basis.vectors / basis.roots for basis in self.solver.bases]
        return kronecker.apply(kronecker.transposed(scaled), self.cross)

    @cached_property
    def left(self):
        """The variance that is left where f is known at all cells."""
        return np.maximum(self.variance - np.sum(_flat(self.features) ** 2, axis=1), 0.0)

    def collapsed(self, potential):
        """Return mean and variance (r, M*) given the potential."""
        shape = (len(potential.omega), len(self.variance))
        mean, variance = np.empty(shape), np.empty(shape)
        for rows in self.solver.batches(len(mean)):
            v, _ = self.solver.solve(potential.omega[rows], potential.kappa[rows])
            mean[rows] = _flat(v) @ _flat(self.features).T
        for row, omega in zip(variance, potential.omega):
            row[:] = self._collapse_variance(omega)
        return mean, variance

    def given(self, white):
        """Return mean (r, M*) and variance (M*,) given w."""
        grid = np.reshape(white, (len(white), *self.solver.shape))
        v = kronecker.apply(kronecker.transposed(self.solver.vectors), grid)
        return _flat(v) @ _flat(self.features).T, self.left

    def dual(self, linear, weights):
        """Return mean and variance (r, M*) under q."""
        factors = self.solver.factors_of(weights)
        variance = np.empty((len(linear), len(self.variance)))
        for i, row in enumerate(variance):
            rotation = Rotation.of(self.solver.matrices, [d[i : i + 1] for d in factors])
            turned = kronecker.apply([v[0].T for v in rotation.vectors], self.features)
            row[:] = self.left + np.sum(_flat(turned**2 / rotation.eigenvalues), axis=1)
        return linear @ self.solver.read(self.cross).T, variance

    def _collapse_variance(self, omega):
        active = np.flatnonzero(omega)
        if self._prefers_dense(len(active)):
            among = self.solver.cov_among(active)
            cross = self.solver.read(self.cross)[:, active]
            return shrink(among, omega[active], cross, self.variance)
        return self._solve_variance(self.solver.fill(omega[None]))

    def _prefers_dense(self, n_active):
        """Compare the operations of a Cholesky factor with those of conjugate gradients."""
        n_new, shape = len(self.variance), self.solver.shape
        dense = n_active**3 / 3 + n_active**2 * n_new
        return dense < 4.0 * ITERATIONS * n_new * self.solver.n_white * sum(shape)

    def _solve_variance(self, omega):
        matrices, features = self.solver.matrices, self.features
        if len(matrices) > 1:
            rotation = Rotation.of(matrices, kronecker.product_of_marginals(omega))
            matrices = [turned[0] for turned in rotation.turn(matrices)]
            features = kronecker.apply([v[0].T for v in rotation.vectors], features)
        diagonal, variance = System(matrices, omega).diagonal, np.empty(len(self.variance))
        for rows in self.solver.batches(len(variance)):
            b, left = features[rows], self.left[rows]
            system = System(matrices, np.broadcast_to(omega, (len(b), *omega.shape[1:])))
            guess = left + np.sum(_flat(b**2 / diagonal), axis=1)
            limit = np.sqrt(self.solver.tolerance * guess)
            found = conjugate_gradients.solve(system, b, limit, self.solver.max_iterations)
            variance[rows] = left + np.sum(_flat((b + found.residual) * found.x), axis=1)
        return variance


class UnstructuredPredictor(SpectralPredictor):
    """The same for `Spectral`, whose q may have any weights."""

    def dual(self, linear, weights):
        """Return mean and variance (r, M*) under q."""
        given = (self.cross, self.variance)
        (cov,) = self.solver.covs
        variance = [shrink(cov, row, *given) for row in weights]
        return linear @ self.cross.T, np.reshape(variance, (len(linear), len(self.variance)))


def _flat(grid):
    return grid.reshape(len(grid), -1)
