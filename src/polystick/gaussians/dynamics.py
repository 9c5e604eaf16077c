"""States in a chain: x_1 ~ N(initial_mean, initial_cov), x_s = A x_{s-1} + b + c_s + N(0, Q).

Each step has a dense potential exp(h' x - x' J x / 2), which may be 0: a step at which nothing was
seen. In the room A, Q and b are the dynamics, their covariance and bias, Q = R R', and c_s are the
shifts, what inputs add. Several sequences lie one after the other: number i is the steps
starts[i]:starts[i + 1]. They share the chain and are independent; without starts all is one.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from polystick.gaussians import filtering
from polystick.kernels import algebra, chain, sequences, simd
from polystick.kernels.buffers import as_buffers

__all__ = ["Chain", "ChainMoments", "WhiteChain"]


class ChainMoments(NamedTuple):
    """The moments of the states given the potentials, and the log of what these integrate to."""

    mean: np.ndarray  # (S, D)
    cov: np.ndarray  # (S, D, D)
    cross: np.ndarray  # Cov(x_{s+1}, x_s) where both are of one sequence: (S - n, D, D)
    log_normaliser: float | np.ndarray  # (n,) of the sequences where starts were given


class _Root(NamedTuple):
    """A root of a covariance, its transpose upper triangular in the order of the largest variances first.

    In another order a coordinate of small noise would be the difference of two large ones.
    """

    upper: np.ndarray  # (D, D)
    order: np.ndarray  # (D,)
    matrix: np.ndarray  # (D, D) its transpose with rows in their own order

    @classmethod
    def of(cls, cov):
        """Factor a covariance; NaN if it is not positive definite."""
        upper, order = algebra.pivoted_root(cov)
        matrix = np.empty_like(cov)
        matrix[order] = upper.T
        return cls(upper, order, matrix)

    def solve(self, x):
        """Return root^-1 x."""
        return algebra.solve_lower(self.upper, x[self.order])


@dataclass(frozen=True, eq=False)
class Chain:
    """States x_1 ~ N(initial_mean, initial_cov), x_s = dynamics x_{s-1} + bias + shift_s + noise.

    The covariances must be positive definite; the dynamics may be any matrix. A potential is
    linear h (S, D) and precision J (S, D, D), symmetric and positive semi-definite. Shifts (S, D)
    are added to the states besides the bias, but for the first of each sequence.
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
            object.__setattr__(self, name, *as_buffers(getattr(self, name)))

    @classmethod
    def random_walk(
        cls, initial_mean: np.ndarray, initial_cov: np.ndarray, step_cov: np.ndarray
    ) -> Self:
        """Build the chain x_s = x_{s-1} + N(0, step_cov)."""
        return cls(initial_mean, initial_cov, np.eye(len(step_cov)), step_cov)

    @cached_property
    def _noise_root(self):
        """The root R of the dynamics' covariance."""
        return _Root.of(self.dynamics_cov)

    @cached_property
    def white(self) -> "WhiteChain":
        """The same chain for potentials of w = R^-1 x."""
        A, solve = self.dynamics, self._noise_root.solve
        return WhiteChain(
            root=self._noise_root,
            dynamics=A if _is_scalar(A) else solve(algebra.multiply(A, self._noise_root.matrix)),
            bias=solve(self.bias),
            start=solve(self.initial_mean),
            spread=solve(_Root.of(self.initial_cov).matrix),
        )

    @property
    def root(self) -> np.ndarray:
        """R (D, D): a potential on psi = E x + d is one on psi = (E R) w + d."""
        return self._noise_root.matrix

    def draw(
        self,
        linear: np.ndarray,
        precision: np.ndarray,
        noise: np.ndarray,
        *,
        shifts: np.ndarray | None = None,
        starts: np.ndarray | None = None,
    ) -> np.ndarray:
        """Draw the states (S, D) given the potentials, an affine function of noise (S, D)."""
        white = self._whiten(linear, precision)
        return self.white.draw_in_place(*white, noise, shifts=shifts, starts=starts)

    def moments(
        self,
        linear: np.ndarray,
        precision: np.ndarray,
        *,
        shifts: np.ndarray | None = None,
        starts: np.ndarray | None = None,
    ) -> ChainMoments:
        """Return the moments of the states given the potentials."""
        white = self._whiten(linear, precision)
        return self.white.moments_in_place(*white, shifts=shifts, starts=starts)

    def filter(
        self,
        linear: np.ndarray,
        precision: np.ndarray,
        *,
        shifts: np.ndarray | None = None,
        starts: np.ndarray | None = None,
    ) -> filtering.Filtered:
        """Return the moments of each state given the potentials before its step and up to it."""
        white = self._whiten(linear, precision)
        return self.white.filter(*white, shifts=shifts, starts=starts)

    def forecast(
        self,
        mean: np.ndarray,
        cov: np.ndarray,
        n_steps: int,
        *,
        shifts: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the moments (n_steps, D) and (n_steps, D, D) of the states after x ~ N(mean, cov).

        Shifts (n_steps, D) are those of the new steps.
        """
        pushes = self._pushes(n_steps, shifts)
        return filtering.forecast(self.dynamics, self.dynamics_cov, pushes, mean, cov)

    def extend(
        self, states: np.ndarray, noise: np.ndarray, *, shifts: np.ndarray | None = None
    ) -> np.ndarray:
        """Draw the states (n, n_steps, D) after states (n, D), given noise of the same shape."""
        pushes = self._pushes(noise.shape[1], shifts)
        return filtering.extend(self.dynamics, self.root, pushes, states, noise)

    def _pushes(self, n_steps, shifts):
        pushes = np.zeros((n_steps, len(self.dynamics))) if shifts is None else shifts
        return pushes + self.bias

    def _whiten(self, linear: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        linear, precision = as_buffers(linear, precision)
        message, factor = np.empty_like(linear), np.empty_like(precision)
        chain.whiten_potentials(self.root, linear, precision, message, factor)
        return message, factor


@dataclass(frozen=True, eq=False)
class WhiteChain:
    """A chain whose potentials are those of w = root^-1 x, whose noise is standard.

    w_1 = start + spread N(0, I), w_s = dynamics w_{s-1} + bias + root^-1 shift_s + N(0, I). Of a
    precision the upper triangle is read. States and moments are still those of x.
    """

    root: _Root
    dynamics: np.ndarray  # (D, D)
    bias: np.ndarray  # (D,)
    start: np.ndarray  # (D,)
    spread: np.ndarray  # (D, D)

    def draw_in_place(self, linear, precision, noise, *, shifts=None, starts=None):
        """Draw the states; the potentials, writable and contiguous, are overwritten."""
        law = self._law(len(linear), shifts, starts)
        self._pass_back(law, linear, precision)
        return self._draw_forward(law, precision, linear, noise)

    def draws_in_place(self, linear, precision, noises, *, shifts=None, starts=None):
        """Draw the states once for each of several noises, from one factorisation; zeros give the mean."""
        law = self._law(len(linear), shifts, starts)
        self._pass_back(law, linear, precision)
        return [self._draw_forward(law, precision, linear, noise) for noise in noises]

    def moments_in_place(self, linear, precision, *, shifts=None, starts=None):
        """Return the moments of the states; the potentials are overwritten."""
        law = self._law(len(linear), shifts, starts)
        log_normaliser = self._pass_back(law, linear, precision)
        mean = self._draw_forward(law, precision, linear, np.zeros_like(linear))
        n_pairs = np.maximum(np.diff(law[-1]) - 1, 0).sum()
        cov, cross = np.empty_like(precision), np.empty((n_pairs, *precision.shape[1:]))
        sequences.moments_forward(self.dynamics, self.spread, law[-1], precision, cov, cross)
        cov, cross = self._covs_of_x(cov), _sandwiched(self.root.matrix, cross)
        log = log_normaliser if starts is not None else float(log_normaliser[0])
        return ChainMoments(mean, cov, cross, log)

    def filter(self, linear, precision, *, shifts=None, starts=None):
        """Return the moments of each state given the potentials before its step and up to it."""
        law = self._law(len(linear), shifts, starts)
        means, covs = np.empty((2, *linear.shape)), np.empty((2, *precision.shape))
        logs = np.empty(len(linear))
        sequences.filter_forward(*law, *as_buffers(linear, precision), means, covs, logs)
        means, covs = np.einsum("pti,ki->ptk", means, self.root.matrix), self._covs_of_x(covs)
        return filtering.Filtered(means[0], covs[0], means[1], covs[1], logs)

    def _law(self, n_steps, shifts, starts):
        """Return what kernels want to know of the chain: its last entry is where sequences start."""
        bias = np.tile(self.bias, (n_steps, 1))
        if shifts is not None and n_steps > 0:
            bias += self.root.solve(np.asarray(shifts, dtype=np.float64).T).T
        starts = np.require([0, n_steps] if starts is None else starts, np.int64, ["C", "W"])
        return self.dynamics, bias, self.start, self.spread, starts

    @cached_property
    def _is_tiled(self):
        """Whether vectors are faster than loops, which skip the zeros of a random walk."""
        n_dims, n_entries = len(self.dynamics), np.count_nonzero(self.dynamics)
        return simd.ENABLED and n_dims > simd.WIDTH and 2 * n_entries > n_dims**2

    def _pass_back(self, law, message, factor):
        log_normaliser = np.empty(len(law[-1]) - 1)
        sequences.pass_back_in_place(*law, message, factor, log_normaliser, self._is_tiled)
        return log_normaliser

    def _draw_forward(self, law, factor, message, noise):
        (noise,) = as_buffers(noise)
        states = np.empty_like(message)
        sequences.draw_forward(*law, factor, message, noise, states)
        return algebra.multiply(states, self.root.matrix.T)

    def _covs_of_x(self, covs):
        covs = _sandwiched(self.root.matrix, covs)
        return 0.5 * (covs + covs.swapaxes(-1, -2))


def _sandwiched(root, covs):
    """Return root cov root' for each of many, each with the same bits in any company."""
    return np.einsum("...ij,kj->...ik", np.einsum("ij,...jk->...ik", root, covs), root)


def _is_scalar(a):
    """Tell whether a is a multiple of I, which whitening must not blur with rounding."""
    return np.array_equal(a, a[0, 0] * np.eye(len(a)))
