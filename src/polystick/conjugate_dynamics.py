"""Conjugate parameters of dynamics: a matrix with the covariance of its noise; a variance.

In the room M, K, Psi, nu are the mean, strength, scale and degrees of

    Q ~ InverseWishart(Psi, nu),    A | Q ~ MatrixNormal(M, Q, K^-1),

so that row i and column j of A have Cov(A_ik, A_jl) = Q_ij (K^-1)_kl.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from polystick.conjugate import LOG_2PI, InverseWishart
from polystick.kernels import algebra

__all__ = ["DynamicsParameters", "InverseGamma", "MatrixNormalInverseWishart"]


class DynamicsParameters(NamedTuple):
    """A matrix and the covariance of the noise around it."""

    dynamics: np.ndarray  # (D, p)
    dynamics_cov: np.ndarray  # (D, D)


@dataclass(frozen=True, eq=False)
class MatrixNormalInverseWishart:
    """The conjugate law of A (D, p) and Q (D, D) in y = A x + N(0, Q).

    Parameters
    ----------
    mean : array (D, p)
        The mean of A; p is D for plain dynamics and more with a bias or inputs.
    strength : array (p, p)
        Positive definite: what the sum of x x' over the rows that the mean is worth would be.
    scale : array (D, D)
        Positive definite. E[Q] is scale / (degrees - D - 1).
    degrees : float
        Above D - 1.
    """

    mean: np.ndarray  # (D, p)
    strength: np.ndarray  # (p, p)
    scale: np.ndarray  # (D, D)
    degrees: float

    def __post_init__(self):
        for name in ("mean", "strength", "scale"):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=np.float64))
        object.__setattr__(self, "degrees", float(self.degrees))
        self._check()

    def _check(self):
        """Raise unless the law is proper."""
        if self.mean.ndim != 2:
            raise ValueError(f"mean must be a matrix; got an array of shape {self.mean.shape}")
        p = self.mean.shape[1]
        if self.strength.shape != (p, p):
            raise ValueError(
                f"strength must be ({p}, {p}) like the columns of mean; got {self.strength.shape}"
            )
        if not (np.isfinite(self.mean).all() and np.isfinite(self.strength).all()):
            raise ValueError("mean and strength must be finite")
        if np.isnan(self._strength_root[0, 0]):
            raise ValueError("strength must be positive definite")
        d = len(self.mean)
        if self.scale.shape != (d, d):
            raise ValueError(f"scale must be ({d}, {d}) like the mean; got {self.scale.shape}")
        self.of_cov._check()

    @cached_property
    def _strength_root(self):
        """The upper triangular root of K."""
        return algebra.root(self.strength)

    @cached_property
    def of_cov(self) -> InverseWishart:
        """The law of Q alone."""
        return InverseWishart._known(self.scale, self.degrees)

    def posterior(
        self, n: float, xx: np.ndarray, yx: np.ndarray, yy: np.ndarray
    ) -> "MatrixNormalInverseWishart":
        """Return the law given n pairs and their sums of x x' (p, p), y x' (D, p), y y' (D, D).

        The sums are taken about M first, so that a good prior mean does not cancel.
        """
        M, strength = self.mean, self.strength + xx
        root = algebra.root(strength)
        rest_x = yx - algebra.multiply(M, xx)
        rest = yy - algebra.multiply(M, yx.T) - algebra.multiply(rest_x, M.T)
        half = algebra.solve_lower(root, rest_x.T)
        scale = self.scale + rest - algebra.gram(half)
        mean = M + algebra.solve_upper(root, half).T
        return MatrixNormalInverseWishart(mean, strength, 0.5 * (scale + scale.T), self.degrees + n)

    def draw(self, rng: np.random.Generator) -> DynamicsParameters:
        """Draw A and Q."""
        Q = self.of_cov.draw(rng)
        rng.standard_normal(len(Q))  # of a mean that there was once: seeds keep their bits
        noise = algebra.multiply(rng.standard_normal(self.mean.shape).T, algebra.root(Q))
        spread = algebra.solve_upper(self._strength_root, noise).T
        return DynamicsParameters(self.mean + spread, Q)

    @property
    def expected_precision(self) -> np.ndarray:
        """Return E[Q^-1]."""
        return self.of_cov.expected_precision

    @property
    def expected_log_det_precision(self) -> float:
        """Return E[log|Q^-1|]."""
        return self.of_cov.expected_log_det_precision

    @cached_property
    def expected_excess(self) -> np.ndarray:
        """Return E[A' Q^-1 A] - M' E[Q^-1] M, which is D K^-1 (p, p)."""
        return len(self.mean) * algebra.inverse(self._strength_root)

    @property
    def log_normaliser(self) -> float:
        """Return the log of the integral of |Q|^(-(nu + D + p + 1) / 2) exp(...).

        The log evidence of n pairs is the posterior's less the prior's, less n D log(2 pi) / 2.
        """
        d, p = self.mean.shape
        log_det = algebra.log_det(self._strength_root)
        return self.of_cov.log_normaliser + 0.5 * d * (p * LOG_2PI - log_det)

    def kl(self, other: "MatrixNormalInverseWishart") -> float:
        """Return KL(self || other)."""
        return self.of_cov.kl(other.of_cov) + self._kl_of_matrices(other)

    def _kl_of_matrices(self, other):
        """Return what the laws of A given Q add."""
        d, p = self.mean.shape
        between = algebra.solve_lower(self._strength_root, other._strength_root.T, algebra.LOWER)
        log_ratio = 2.0 * np.log(np.diag(self._strength_root) / np.diag(other._strength_root)).sum()
        gap = algebra.multiply(other._strength_root, (self.mean - other.mean).T)
        distance = np.sum(self.expected_precision * algebra.gram(gap))
        return 0.5 * (d * (np.sum(between**2) - p + log_ratio) + distance)


@dataclass(frozen=True, eq=False)
class InverseGamma:
    """The conjugate law of variances, any number of them at once.

    The density of each is proportional to q^(-shape - 1) exp(-scale / q). The fields are broadcast
    against each other and results have their common shape.
    """

    shape: np.ndarray
    scale: np.ndarray

    def __post_init__(self):
        for name in ("shape", "scale"):
            value = np.asarray(getattr(self, name), dtype=np.float64)
            if not (np.isfinite(value).all() and (value > 0).all()):
                raise ValueError(f"{name} must be positive and finite; got {value.min()} at least")
            object.__setattr__(self, name, value)

    def posterior(self, n: float | np.ndarray, squares: float | np.ndarray) -> "InverseGamma":
        """Return the law given n normal values of mean 0 and the sum of their squares."""
        return InverseGamma(self.shape + 0.5 * np.asarray(n), self.scale + 0.5 * squares)

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw the variances."""
        shape, scale = np.broadcast_arrays(self.shape, self.scale)
        return scale / rng.standard_gamma(shape)

    @property
    def expected_precision(self) -> np.ndarray:
        """Return E[1 / q]."""
        return self.shape / self.scale

    @property
    def expected_log(self) -> np.ndarray:
        """Return E[log q]."""
        return np.log(self.scale) - digamma(self.shape)

    @property
    def log_normaliser(self) -> np.ndarray:
        """Return the log of the integral of q^(-shape - 1) exp(-scale / q)."""
        return gammaln(self.shape) - self.shape * np.log(self.scale)

    def kl(self, other: "InverseGamma") -> np.ndarray:
        """Return KL(self || other) of each variance."""
        gap = (self.shape - other.shape) * -self.expected_log
        excess = (other.scale - self.scale) * self.expected_precision
        return gap + excess + other.log_normaliser - self.log_normaliser
