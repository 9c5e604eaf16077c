"""Processes in time that are Markov: f with a Matérn covariance of smoothness 1/2, 3/2 or 5/2.

The state is f with its first derivatives, each scaled to unit variance; between two times, as far apart as
they like, it moves by a matrix and an innovation in closed form (Hartikainen and Särkkä 2010). So all
is exact and linear in the number of times. The white values are the innovations of the chain: f = root white,
as with the other solvers of `gaussians.process`, whose protocol this one keeps.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from math import comb, factorial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammainc

from polystick.gaussians import Potential
from polystick.gaussians.process import Drawn, Dual
from polystick.kernels import markov
from polystick.kernels.buffers import as_buffers

__all__ = ["Markov", "MarkovPredictor"]

LONGEST = 750.0  # exp(-LONGEST) is 0


# ---- the chain of a Matérn process, for gaps in units of length / sqrt(2 smoothness)


class _Motion(NamedTuple):
    """Powers of the gap u, times exp(-u), that make a transition and the response to a shock."""

    transition: np.ndarray  # (m, m, m)
    response: np.ndarray  # (m, m)


@cache
def _motion(m):
    """Expand exp(u F) = exp(-u) exp(u (F + I)): (d/du + 1)^m f = shock, so F + I is nilpotent."""
    nilpotent = np.eye(m) + np.eye(m, k=1)
    nilpotent[-1] -= [comb(m, j) for j in range(m)]
    powers = np.stack([np.linalg.matrix_power(nilpotent, n) / factorial(n) for n in range(m)])
    response = powers[:, :, -1]
    scale = np.sqrt(np.diag(_products(response, np.array([np.inf]))[0]))
    return _Motion(powers * scale / scale[:, None], response / scale)


def _products(response, gaps):
    """Integrate products of responses exp(-u) sum_n response[n] u^n from 0 to each gap, (n, m, m).

    The integrals are incomplete gamma functions. Each has all its digits, and what is left after
    their sum is never much smaller than they are, so that the result serves for any gap.
    """
    total = np.zeros((len(gaps), response.shape[1], response.shape[1]))
    for a, left in enumerate(response):
        for b, right in enumerate(response):
            n = a + b
            integral = factorial(n) / 2.0 ** (n + 1) * gammainc(n + 1, 2.0 * gaps)
            total += integral[:, None, None] * np.outer(left, right)
    return total


def _transitions(gaps, m):
    """Return the matrices that move a state over each gap, (n, m, m)."""
    u = np.minimum(gaps, LONGEST)
    powers = np.exp(-u) * u ** np.arange(m)[:, None]
    return np.tensordot(powers.T, _motion(m).transition, axes=1)


def _roots(gaps, m):
    """Return lower triangular roots of the innovations' covariances over each gap, (n, m, m).

    A tiny gap makes derivatives vary more than f by orders of magnitude; a Cholesky factor does not mind
    the scales of its rows. No gap leaves zeros.
    """
    cov = _products(_motion(m).response, gaps)
    root = np.zeros_like(cov)
    for j in range(m):
        rest = cov[:, j:, j] - np.einsum("nip,np->ni", root[:, j:, :j], root[:, j, :j])
        root[:, j:, j] = _divide(rest, np.sqrt(np.maximum(rest[:, :1], 0.0)))
    return root


def _divide(a, b):
    """Return a / b, and 0 where b is 0."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0.0)


def _solve_lower(root, x):
    """Return root^-1 x for each of (n, m, m) and (n, m)."""
    solution = np.zeros_like(x)
    for i in range(x.shape[1]):
        rest = x[:, i] - np.einsum("np,np->n", root[:, i, :i], solution[:, :i])
        solution[:, i] = _divide(rest, root[:, i, i])
    return solution


# ---- the solver


class _Targets(NamedTuple):
    """Values f = past' x_{step-1} + innovation' w_step + N(0, variance), in units of the process."""

    step: np.ndarray  # (n,)
    past: np.ndarray  # (n, m)
    innovation: np.ndarray  # (n, m)
    variance: np.ndarray  # (n,)


@dataclass(frozen=True)
class Markov:
    """A Matérn process at M times, which may come in any order; white values are in order of time."""

    times: np.ndarray  # (M,)
    variance: float
    length: float
    smoothness: float  # 0.5, 1.5 or 2.5

    spectrum = None  # of the covariance: not cheap here

    def __post_init__(self):
        object.__setattr__(self, "times", *as_buffers(self.times))

    @property
    def size(self) -> int:
        return len(self.times)

    @property
    def n_coordinates(self) -> int:
        return int(self.smoothness + 0.5)

    @property
    def n_white(self) -> int:
        return self.size * self.n_coordinates

    @property
    def noise_size(self) -> int:
        return self.n_white

    @cached_property
    def _order(self):
        return np.argsort(self.times, kind="stable")

    @cached_property
    def _place(self):
        """The place of each input in the order of time."""
        return np.argsort(self._order)

    @cached_property
    def _gaps(self):
        return self._in_units(np.diff(self.times[self._order], prepend=-np.inf))

    @cached_property
    def _transition(self):
        return _transitions(self._gaps, self.n_coordinates)

    @cached_property
    def _root(self):
        return _roots(self._gaps, self.n_coordinates)

    def _in_units(self, gaps):
        return gaps * (np.sqrt(2.0 * self.smoothness) / self.length)

    def _standard(self, kappa, omega):
        """Return the potential of a process of variance 1, in order of time."""
        kappa, omega = np.asarray(kappa)[:, self._order], np.asarray(omega)[:, self._order]
        return as_buffers(np.sqrt(self.variance) * kappa, self.variance * omega)

    def draw(self, potential: Potential, noise: np.ndarray) -> Drawn:
        """Draw the white values given the potential, an affine function of noise (r, noise_size)."""
        (noise,) = as_buffers(noise)
        shape = (len(noise), self.size, self.n_coordinates)
        white = np.empty(shape)
        kappa, omega = self._standard(*potential)
        markov.draw_rows(self._transition, self._root, kappa, omega, noise.reshape(shape), white)
        return Drawn(white.reshape(noise.shape), 0)

    def draws(self, potential: Potential, noises: np.ndarray) -> Drawn:
        """Draw the white values (n, r, n_white) given the potential, from noises of that shape."""
        return Drawn(np.array([self.draw(potential, noise).white for noise in noises]), 0)

    def conditional(self, potential: Potential) -> Any:
        """Return the white values given the potential."""
        return Conditional.of(self, potential)

    def unwhiten(self, white: np.ndarray) -> np.ndarray:
        """Return f (r, M)."""
        return np.sqrt(self.variance) * self._states(white)[:, self._place, 0]

    def _states(self, white):
        (white,) = as_buffers(white)
        states = np.empty((len(white), self.size, self.n_coordinates))
        markov.run_rows(self._transition, self._root, white.reshape(states.shape), states)
        return states

    def mean(self, potential: Potential) -> np.ndarray:
        """Return the mean of f (r, M) given the potential."""
        return self._moments(potential.kappa, potential.omega, self._here)[0]

    def weights(self, omega: np.ndarray) -> np.ndarray:
        """Return omega: any weights are exact."""
        return omega

    def dual(self, linear: np.ndarray, weights: np.ndarray) -> Dual:
        """Return the moments of N(C linear, (C^-1 + diag(weights))^-1) and its log determinant."""
        mean, variance, log_det = self._dual_at(linear, weights, self._here)
        return Dual(mean, variance, log_det)

    def predictor(self, times: np.ndarray) -> "MarkovPredictor":
        """Return a predictor for new times (M*,) in any order."""
        return MarkovPredictor(self, self._targets(np.asarray(times, dtype=np.float64)))

    @cached_property
    def _here(self):
        """The inputs themselves."""
        nothing = np.zeros((self.size, self.n_coordinates))
        past = np.eye(1, self.n_coordinates) + nothing
        return _Targets(self._place + 1, past, nothing, np.zeros(self.size))

    def _targets(self, times):
        """Split new times into what the state before them and the innovation after them tell.

        Far before the first time the state is 0 with a stationary innovation; what comes after the last
        time tells nothing.
        """
        known = np.concatenate([[-np.inf], self.times[self._order], [np.inf]])
        step = np.searchsorted(known[1:-1], times, side="right")
        before, after = self._in_units(times - known[step]), self._in_units(known[step + 1] - times)
        root = _roots(before, self.n_coordinates)
        cov = root[:, :, 0] * root[:, :1, 0]
        moved = np.einsum("nij,nj->ni", _transitions(after, self.n_coordinates), cov)
        innovation = _solve_lower(self._root[np.minimum(step, self.size - 1)], moved)
        left = root[:, 0, 0] ** 2 - np.sum(innovation**2, axis=1)
        past = np.ascontiguousarray(_transitions(before, self.n_coordinates)[:, 0])
        return _Targets(step, past, innovation, np.maximum(left, 0.0))

    def _moments(self, kappa, omega, targets):
        """Return mean and variance (r, n) of targets given a potential, and log determinants (r,)."""
        kappa, omega = self._standard(kappa, omega)
        step, past, innovation, left = targets
        mean, variance = np.empty((2, len(kappa), len(step)))
        log_det = np.empty(len(kappa))
        chain = (self._transition, self._root, kappa, omega)
        markov.moment_rows(*chain, step, past, innovation, mean, variance, log_det)
        return np.sqrt(self.variance) * mean, self.variance * (variance + left), log_det

    def _dual_at(self, linear, weights, targets):
        nothing = np.zeros(np.shape(linear))
        mean, _, _ = self._moments(linear, nothing, targets)
        _, variance, log_det = self._moments(nothing, weights, targets)
        return mean, variance, log_det


@dataclass(frozen=True)
class Conditional:
    """The white values of a chain given a potential: those of each step given what came before."""

    chain: Markov
    systems: np.ndarray  # (r, M, m, 2 m + 1)
    log_normaliser: np.ndarray  # (r,)

    @classmethod
    def of(cls, chain, potential):
        """Pass messages back."""
        kappa, omega = chain._standard(*potential)
        shape = (chain.size, chain.n_coordinates)
        systems = np.empty((len(kappa), *shape, 2 * shape[1] + 1))
        log_det = np.empty(len(kappa))
        markov.pass_back_rows(chain._transition, chain._root, kappa, omega, systems, log_det)
        found = cls(chain, systems, log_det)
        mean = found.values(np.zeros((len(kappa), chain.n_white)))
        pulled = np.sum(potential.kappa * mean, axis=1)
        return cls(chain, systems, 0.5 * (pulled - log_det))

    def white(self, rest):
        return self._run(markov.follow_rows, rest)

    def values(self, rest):
        return self.chain.unwhiten(self.white(rest))

    def rest(self, white):
        return self._run(markov.retrace_rows, white)

    def _run(self, kernel, values):
        (values,) = as_buffers(values)
        steps = values.reshape(len(values), self.chain.size, self.chain.n_coordinates)
        out = np.empty_like(steps)
        kernel(self.chain._transition, self.chain._root, self.systems, steps, out)
        return out.reshape(values.shape)


@dataclass(frozen=True)
class MarkovPredictor:
    """f at new times, from what is known at those of a chain."""

    chain: Markov
    targets: _Targets

    def collapsed(self, potential):
        """Return mean and variance (r, M*) given the potential."""
        mean, variance, _ = self.chain._moments(potential.kappa, potential.omega, self.targets)
        return mean, variance

    def given(self, white):
        """Return mean (r, M*) and variance (M*,) given the white values, derivatives included."""
        step, past, innovation, left = self.targets
        states = np.pad(self.chain._states(white), [(0, 0), (1, 0), (0, 0)])
        white = np.pad(np.reshape(white, states[:, 1:].shape), [(0, 0), (0, 1), (0, 0)])
        mean = np.einsum("nm,rnm->rn", past, states[:, step])
        mean += np.einsum("nm,rnm->rn", innovation, white[:, step])
        return np.sqrt(self.chain.variance) * mean, self.chain.variance * left

    def dual(self, linear, weights):
        """Return mean and variance (r, M*) under N(C linear, (C^-1 + diag(weights))^-1)."""
        mean, variance, _ = self.chain._dual_at(linear, weights, self.targets)
        return mean, variance
