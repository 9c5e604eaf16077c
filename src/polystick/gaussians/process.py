"""Functions under a Gaussian process: f_i ~ N(0, C) at M inputs, each row i under its own potential.

A solver is made for one covariance C at the inputs. It is a frozen dataclass with

    size, noise_size, n_white    M; the standard normals of one draw; the length of w
    draw(potential, noise)       w given the potential, as `Drawn`; an affine function of the noise
    draws(potential, noises)     the same for noises (n, r, noise_size), n draws of each row
    unwhiten(white)              f = R w (r, M), where C = R R'
    mean(potential)              the mean of f given the potential (r, M)
    weights(omega)               weights D near omega for which `dual` is exact and cheap
    dual(linear, weights)        `Dual` of q(f) = N(C linear, (C^-1 + diag D)^-1)
    predictor(cross, variance)   f at new inputs, from their covariances with the M inputs and variances
    conditional(potential)       w given a potential with omega such as `weights` gives, as one with
                                 the methods of `Conditional`; None if that is not cheap
    spectrum                     the `Spectrum` of C over the directions of w, if it is cheap; else None

where a conditional has

    log_normaliser               (r,) log of the integral of prior times potential
    white(rest)                  w (r, n_white) from `rest` of that shape, which is standard normal; affine
    values(rest)                 f = R w (r, M)
    rest(white)                  the inverse of `white`

and a predictor has

    collapsed(potential)         mean and variance (r, M*) given the potential, f integrated out
    given(white)                 mean (r, M*) and variance (M*,) given f
    dual(linear, weights)        mean and variance (r, M*) under q

`potential` has fields kappa and omega (r, M), which may be 0: an input at which nothing was seen. C is
never inverted and may be singular: directions whose variance is below 1e-13 of the largest are dropped.
With R symmetric, noise (e1, e2) gives

    f = R e1 + C alpha,   w = e1 + R alpha,   alpha = kappa + omega^(1/2) e2 - omega f,

and zeros give the mean (Matheron's rule: a draw of the prior, corrected). `Dense` does this with one
Cholesky factor for each row. It is the obvious solver, for small problems; the others match it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from polystick.gaussians import Potential
from polystick.gaussians.surrogate import Spectrum

__all__ = [
    "Conditional",
    "Dense",
    "DensePredictor",
    "Drawn",
    "Dual",
    "Eigenbasis",
    "NotConverged",
    "OfMatrix",
    "shrink",
]

LARGEST_CONDITIONAL = 200  # inputs: products of matrices for each row take longer than one spectrum
DROPPED = 1e-13  # of the largest eigenvalue: below it there is rounding and nothing else


class Drawn(NamedTuple):
    """Draws of w and how many iterations the slowest row took."""

    white: np.ndarray  # (r, n_white)
    n_iterations: int


class Dual(NamedTuple):
    """The moments of q(f) = N(C linear, (C^-1 + diag D)^-1)."""

    mean: np.ndarray  # (r, M)
    variance: np.ndarray  # (r, M)
    log_det: np.ndarray  # (r,) log|I + D^(1/2) C D^(1/2)|


class NotConverged(FloatingPointError):  # noqa: N818
    """An iterative solver did not reach its tolerance."""


class Eigenbasis(NamedTuple):
    """The eigenvectors of a covariance and the roots of its eigenvalues, without what is rounding."""

    roots: np.ndarray  # (rank,)
    vectors: np.ndarray  # (n, rank)

    @classmethod
    def of(cls, cov):
        """Decompose a covariance."""
        values, vectors = np.linalg.eigh(cov)
        kept = values > DROPPED * values[-1]
        return cls(np.sqrt(values[kept]), np.ascontiguousarray(vectors[:, kept]))

    @property
    def scaled(self):
        """Return P with cov = P P'."""
        return self.vectors * self.roots


class _Factor(NamedTuple):
    """B = I + S C S = L L' over the inputs with omega > 0, S = omega^(1/2)."""

    active: np.ndarray  # (a,) indices
    scale: np.ndarray  # (a,) S
    triangle: np.ndarray  # (a, a) L

    @classmethod
    def of(cls, cov, omega):
        """Factor B; NaN if the covariance is not positive semi-definite."""
        active = np.flatnonzero(omega)
        scale = np.sqrt(omega[active])
        among = cov[np.ix_(active, active)] * scale * scale[:, None]
        among.ravel()[:: len(among) + 1] += 1.0
        triangle, failed = lapack.dpotrf(among.T, lower=1, overwrite_a=1)
        return cls(active, scale, np.full_like(triangle, np.nan) if failed else triangle)

    def halve(self, columns):
        """Return L^-1 S columns, for columns (a, n)."""
        if not len(self.active):  # LAPACK knows no empty matrices
            return columns
        return lapack.dtrtrs(self.triangle, self.scale[:, None] * columns, lower=1)[0]

    def solve(self, y):
        """Return B^-1 y."""
        if not len(self.active):
            return y
        return lapack.dpotrs(self.triangle, y, lower=1)[0]

    @property
    def log_det(self):
        return 2.0 * np.sum(np.log(np.diag(self.triangle)))


@dataclass(frozen=True, eq=False)
class Conditional:
    """w = L^-T (half + rest) with L L' = I + R diag(omega) R and half = L^-1 R kappa, row by row."""

    root: np.ndarray  # (M, M) R
    triangles: list  # of each row, (M, M)
    half: np.ndarray  # (r, M)
    log_normaliser: np.ndarray  # (r,)

    @classmethod
    def of(cls, root, potential):
        """Factor the precision of w for each row; NaN where that fails."""
        triangles = [_triangle(root, omega) for omega in potential.omega]
        pulls = np.asarray(potential.kappa) @ root
        half = np.array([lapack.dtrtrs(t, b, lower=1)[0] for t, b in zip(triangles, pulls)])
        log_dets = np.array([np.sum(np.log(t.diagonal())) for t in triangles])
        return cls(root, triangles, half, 0.5 * np.sum(half**2, axis=1) - log_dets)

    def white(self, rest):
        moved = self.half + rest
        return np.array(
            [lapack.dtrtrs(t, b, lower=1, trans=1)[0] for t, b in zip(self.triangles, moved)]
        )

    def values(self, rest):
        return self.white(rest) @ self.root

    def rest(self, white):
        return np.array([w @ t for t, w in zip(self.triangles, white)]) - self.half


def _triangle(root, omega):
    precision = (root * omega) @ root
    precision.ravel()[:: len(precision) + 1] += 1.0
    triangle, failed = lapack.dpotrf(precision.T, lower=1, clean=1, overwrite_a=1)
    return np.full_like(triangle, np.nan) if failed else triangle


def shrink(cov, omega, cross, variance):
    """Return variance - diag(cross S B^-1 S cross'), the variance at new inputs given omega (M,)."""
    factor = _Factor.of(cov, omega)
    explained = np.sum(factor.halve(cross[:, factor.active].T) ** 2, axis=0)
    return np.maximum(variance - explained, 0.0)


class OfMatrix:
    """The sizes of a solver that holds its whole covariance (M, M)."""

    cov: np.ndarray

    @property
    def size(self) -> int:
        return len(self.cov)

    @property
    def n_white(self) -> int:
        return len(self.cov)

    @property
    def noise_size(self) -> int:
        return 2 * len(self.cov)


@dataclass(frozen=True, eq=False)
class Dense(OfMatrix):
    """Any covariance, by one Cholesky factor of B = I + S C S for each row."""

    cov: np.ndarray  # (M, M)

    @cached_property
    def basis(self) -> Eigenbasis:
        return Eigenbasis.of(self.cov)

    @cached_property
    def root(self) -> np.ndarray:
        """The symmetric root R of the covariance."""
        return self.basis.scaled @ self.basis.vectors.T

    def draw(self, potential: Potential, noise: np.ndarray) -> Drawn:
        """Draw w given the potential from noise (r, 2 M)."""
        white, n_iterations = self.draws(potential, noise[None])
        return Drawn(white[0], n_iterations)

    def draws(self, potential: Potential, noises: np.ndarray) -> Drawn:
        """Draw w (n, r, M) given the potential from noises (n, r, 2 M), with one factor for each row."""
        e1, e2 = np.split(noises, 2, axis=2)
        alpha = self._residuals(potential, self.unwhiten(e1), e2)
        return Drawn(e1 + alpha @ self.root, 0)

    def conditional(self, potential: Potential) -> Any:
        """Return w given the potential, of not too many inputs."""
        if len(self.cov) > LARGEST_CONDITIONAL:
            return None
        return Conditional.of(self.root, potential)

    def unwhiten(self, white: np.ndarray) -> np.ndarray:
        """Return f = R w."""
        return white @ self.root

    @property
    def spectrum(self) -> Spectrum:
        return Spectrum(self.basis.roots**2, [self.basis.vectors], (len(self.cov),))

    def mean(self, potential: Potential) -> np.ndarray:
        """Return the mean of f given the potential."""
        return self.residuals(potential) @ self.cov

    def residuals(self, potential: Potential) -> np.ndarray:
        """Return alpha = kappa - omega m, where m = C alpha is the mean of f."""
        zeros = np.zeros((1, *np.shape(potential.kappa)))
        return self._residuals(potential, zeros, zeros)[0]

    def _residuals(self, potential, prior, noise):
        """Solve alpha = kappa + S noise - omega (prior + C alpha), for n values (n, r, M) of each row."""
        alpha = np.array(np.broadcast_to(potential.kappa, np.shape(prior)), float)
        unseen = np.where(potential.omega > 0, 0.0, potential.kappa)
        if unseen.any():
            prior = prior + unseen @ self.cov
        for i, omega in enumerate(potential.omega):
            factor = _Factor.of(self.cov, omega)
            on, scale = factor.active, factor.scale
            columns = alpha[:, i, on] / scale + noise[:, i, on] - scale * prior[:, i, on]
            alpha[:, i, on] = scale * factor.solve(columns.T).T
        return alpha

    def weights(self, omega: np.ndarray) -> np.ndarray:
        """Return omega: any weights will do."""
        return omega

    def dual(self, linear: np.ndarray, weights: np.ndarray) -> Dual:
        """Return the moments of q."""
        prior, (r, m) = np.diag(self.cov), np.shape(linear)
        variance, log_det = np.empty((r, m)), np.empty(r)
        for i, row in enumerate(weights):
            factor = _Factor.of(self.cov, row)
            explained = np.sum(factor.halve(self.cov[factor.active]) ** 2, axis=0)
            variance[i] = np.maximum(prior - explained, 0.0)
            log_det[i] = factor.log_det
        return Dual(linear @ self.cov, variance, log_det)

    def predictor(self, cross: np.ndarray, variance: np.ndarray) -> Any:
        """Return the predictor for new inputs: cross (M*, M), variance (M*,)."""
        return DensePredictor(self, cross, variance)


@dataclass(frozen=True, eq=False)
class DensePredictor:
    """f at new inputs, row by row."""

    solver: Dense
    cross: np.ndarray  # (M*, M) covariances of the new inputs with the old ones
    variance: np.ndarray  # (M*,)

    def collapsed(self, potential):
        """Return mean and variance (r, M*) given the potential."""
        return self.dual(self.solver.residuals(potential), potential.omega)

    def given(self, white):
        """Return mean (r, M*) and variance (M*,) given w."""
        basis = self.solver.basis
        features = (self.cross @ basis.vectors) / basis.roots
        left = np.maximum(self.variance - np.sum(features**2, axis=1), 0.0)
        return (white @ basis.vectors) @ features.T, left

    def dual(self, linear, weights):
        """Return mean and variance (r, M*) under q."""
        given = (self.cross, self.variance)
        variance = [shrink(self.solver.cov, row, *given) for row in weights]
        return linear @ self.cross.T, np.reshape(variance, (len(linear), len(self.variance)))
