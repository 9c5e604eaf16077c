"""States in a chain: x_1 ~ N(initial_mean, initial_cov), x_s = A x_{s-1} + b + N(0, Q).

Each step has a dense potential exp(h' x - x' J x / 2), which may be 0: a step at which nothing was
seen. In the room A, Q and b are the dynamics, their covariance and bias, and Q = R R'.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from polystick.kernels import chain

__all__ = ["Chain", "ChainMoments"]


class ChainMoments(NamedTuple):
    """The moments of the states given the potentials, and the log of what these integrate to."""

    mean: np.ndarray  # (S, D)
    cov: np.ndarray  # (S, D, D)
    cross: np.ndarray  # (S - 1, D, D) Cov(x_{s+1}, x_s)
    log_normaliser: float


class _White(NamedTuple):
    """The chain of w = R^-1 x, whose noise is standard; w_1 = start + spread N(0, I)."""

    dynamics: np.ndarray  # (D, D)
    bias: np.ndarray  # (D,)
    start: np.ndarray  # (D,)
    spread: np.ndarray  # (D, D)


def _contiguous(*arrays):
    """Give kernels the one kind of array they are compiled for."""
    return [np.require(array, np.float64, ["C", "W"]) for array in arrays]


class _Root(NamedTuple):
    """A root of a covariance, lower triangular in the order of the largest variances first.

    In another order a coordinate of small noise would be the difference of two large ones.
    """

    triangle: np.ndarray  # (D, D)
    order: np.ndarray  # (D,)
    matrix: np.ndarray  # (D, D) the triangle with its rows in their own order

    @classmethod
    def of(cls, cov):
        """Factor a covariance; NaN if it is not positive definite."""
        triangle, pivots, _, failed = lapack.dpstrf(cov, tol=0.0, lower=1)
        triangle = np.full_like(cov, np.nan) if failed else np.tril(triangle)
        matrix = np.empty_like(cov)
        matrix[pivots - 1] = triangle
        return cls(triangle, pivots - 1, matrix)

    def solve(self, x):
        """Return root^-1 x."""
        columns = x[self.order].reshape(len(x), -1)
        white = blas.dtrsm(1.0, self.triangle, columns, lower=1)
        return np.ascontiguousarray(white.reshape(x.shape))


@dataclass(frozen=True, eq=False)
class Chain:
    """States x_1 ~ N(initial_mean, initial_cov), x_s = dynamics x_{s-1} + bias + noise.

    The covariances must be positive definite; the dynamics may be any matrix. A potential is
    linear h (S, D) and precision J (S, D, D), symmetric and positive semi-definite.
    """

    initial_mean: np.ndarray  # (D,)
    initial_cov: np.ndarray  # (D, D)
    dynamics: np.ndarray  # (D, D)
    dynamics_cov: np.ndarray  # (D, D)
    bias: np.ndarray | None = None  # (D,)

    def __post_init__(self):
        if self.bias is None:
            object.__setattr__(self, "bias", np.zeros(len(self.dynamics)))
        for name in ("initial_mean", "initial_cov", "dynamics", "dynamics_cov", "bias"):
            object.__setattr__(self, name, *_contiguous(getattr(self, name)))

    @classmethod
    def random_walk(cls, initial_mean, initial_cov, step_cov):
        """Build the chain x_s = x_{s-1} + N(0, step_cov)."""
        return cls(initial_mean, initial_cov, np.eye(len(step_cov)), step_cov)

    @cached_property
    def _noise_root(self):
        """The root R of the dynamics' covariance."""
        return _Root.of(self.dynamics_cov)

    @cached_property
    def _white(self):
        A, solve = self.dynamics, self._noise_root.solve
        return _White(
            dynamics=A if _is_scalar(A) else solve(A @ self._noise_root.matrix),
            bias=solve(self.bias),
            start=solve(self.initial_mean),
            spread=solve(_Root.of(self.initial_cov).matrix),
        )

    def draw(self, linear, precision, noise):
        """Draw the states (S, D) given the potentials, an affine function of noise (S, D)."""
        factor, message, _ = self._pass_back(linear, precision)
        return self._draw_forward(factor, message, noise)

    def moments(self, linear, precision):
        """Return the moments of the states given the potentials."""
        factor, message, log_normaliser = self._pass_back(linear, precision)
        mean = self._draw_forward(factor, message, np.zeros_like(message))
        cov, cross = np.empty_like(factor), np.empty_like(factor[1:])
        chain.moments_forward(self._white.dynamics, self._white.spread, factor, cov, cross)
        R = self._noise_root.matrix
        cov, cross = R @ cov @ R.T, R @ cross @ R.T
        return ChainMoments(mean, 0.5 * (cov + cov.swapaxes(1, 2)), cross, log_normaliser)

    def _pass_back(self, linear, precision):
        linear, precision = _contiguous(linear, precision)
        message, factor = np.empty_like(linear), np.empty_like(precision)
        chain.whiten_potentials(self._noise_root.matrix, linear, precision, message, factor)
        log_normaliser = chain.pass_back_in_place(*self._white, message, factor)
        return factor, message, log_normaliser

    def _draw_forward(self, factor, message, noise):
        (noise,) = _contiguous(noise)
        states = np.empty_like(message)
        chain.draw_forward(*self._white, factor, message, noise, states)
        return states @ self._noise_root.matrix.T


def _is_scalar(a):
    """Tell whether a is a multiple of I, which whitening must not blur with rounding."""
    return np.array_equal(a, a[0, 0] * np.eye(len(a)))
