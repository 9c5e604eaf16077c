"""From a kernel and inputs to a solver: a family is the covariances at the inputs, for all theta.

    kernel, inputs, solver_name        what it was made of
    theta0, bounds, names              the kernel's free parameters: where they start, (p, 2), p names
    at(theta)                          the solver (see `gaussians.process`) at these parameters
    predictor(theta, new_inputs)       its predictor for new inputs
    n_crossed                          the covariances that each of these has there
    prior_draws(theta, inputs, rng, n) draws of f at any inputs

theta is the logarithm of the parameters, as everywhere in scikit-learn. The solver is chosen by what the
kernel and the inputs are: "markov" in time, "separable" on a grid, else "dense" while that is quick, and
"unstructured". All are exact, the iterative ones up to their tolerance.
"""

import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import lapack
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from polystick.covariances.structure import Cells, as_factors, as_series, describe, places_among
from polystick.gaussians.markov import Markov
from polystick.gaussians.noisy import Noisy
from polystick.gaussians.process import Dense
from polystick.gaussians.spectral import Grid, Spectral
from polystick.validation import check_integer, check_positive

__all__ = ["check_start", "choose_family"]

LARGEST_DENSE = 500  # inputs up to which one factorisation per stick is quick enough
LARGEST_MATRIX = 20_000  # inputs of a matrix that may be decomposed
SHORTEST_SERIES = 300  # times from which a chain is worth its overhead
SMALLEST_GRID = 100  # inputs
MOST_CELLS = 4  # of a grid, per input, for it to be chosen
MOST_CELLS_FORCED = 100  # for it to be taken at all
LOOSEST = 1e-2  # tolerance: coarser draws would pass for draws from another law
SMALLEST_EIGENVALUE = -1e-8  # of the largest one: rounding makes no smaller ones


# ---- the families


class _Holder:
    """What is not a field: a checkpoint tells families apart by their description."""

    kernel: Kernel
    _check: Callable[[], None]
    _make: Callable[..., Any]


@dataclass(frozen=True, eq=False)
class _Family(_Holder):
    """What all families share."""

    covariance: InitVar[Kernel]
    inputs: np.ndarray  # (M, d)
    tolerance: float
    max_iterations: int
    description: tuple = field(init=False)

    solver_name: ClassVar[str]

    def __post_init__(self, covariance):
        object.__setattr__(self, "kernel", clone(covariance))
        object.__setattr__(self, "description", describe(covariance))
        self._check()

    @cached_property
    def theta0(self):
        return np.array(self.kernel.theta, dtype=np.float64)

    @cached_property
    def bounds(self):
        return np.reshape(np.asarray(self.kernel.bounds, dtype=np.float64), (-1, 2))

    @property
    def names(self):
        return [
            h.name if h.n_elements == 1 else f"{h.name}[{i}]"
            for h in self.kernel.hyperparameters
            if not h.fixed
            for i in range(h.n_elements)
        ]

    @property
    def n_crossed(self):
        return len(self.inputs)

    def at(self, theta):
        """Return the solver at theta; the last one is kept, for theta often stands still."""
        key = np.asarray(theta, dtype=np.float64).tobytes()
        held = self.__dict__.get("_held")
        if held is None or held[0] != key:
            held = (key, self._make(self.kernel.clone_with_theta(theta)))
            self.__dict__["_held"] = held
        return held[1]

    def __getstate__(self):
        """Travel without the solver that was kept."""
        return {name: value for name, value in self.__dict__.items() if name != "_held"}

    def predictor(self, theta, new_inputs):
        """Return the predictor for new inputs (M*, d)."""
        kernel = self.kernel.clone_with_theta(theta)
        return self.at(theta).predictor(kernel(new_inputs, self.inputs), kernel.diag(new_inputs))

    def predictor_here(self, theta):
        """Return the predictor for the very values at the inputs, with any noise that they have."""
        return self.predictor(theta, self.inputs)

    def prior_draws(self, theta, inputs, rng, n):
        """Draw f (n, M') at any inputs (M', d); where inputs are equal, f is."""
        places, index = np.unique(np.asarray(inputs), axis=0, return_inverse=True)
        kernel = self.kernel.clone_with_theta(theta)
        solver = choose_family(kernel, places).at(kernel.theta)
        return solver.unwhiten(rng.standard_normal((n, solver.n_white)))[:, index.reshape(-1)]


class DenseFamily(_Family):
    """Any kernel, few inputs."""

    solver_name: ClassVar[str] = "dense"

    def _check(self):
        _check_memory(len(self.inputs), "inputs")

    def _make(self, kernel):
        return Dense(_cov(kernel, self.inputs))

    def predictor_here(self, theta):
        kernel = self.kernel.clone_with_theta(theta)
        return self.at(theta).predictor(_cov(kernel, self.inputs), kernel.diag(self.inputs))


class UnstructuredFamily(DenseFamily):
    """Any kernel."""

    solver_name: ClassVar[str] = "unstructured"

    def _make(self, kernel):
        return Spectral(_cov(kernel, self.inputs), self.tolerance, self.max_iterations)


class SeparableFamily(_Family):
    """A product of kernels over columns of their own, inputs on a grid."""

    solver_name: ClassVar[str] = "separable"

    def _check(self):
        if as_factors(self.kernel) is None:
            raise ValueError(
                "solver='separable' needs a product of OnColumns kernels over columns of their own, without "
                f"white noise; got {self.kernel!r}; try Separable(OnColumns(...), OnColumns(...)), or "
                "solver='auto'"
            )
        grid, n = self._cells, len(self.inputs)
        sizes = " x ".join(map(str, grid.shape))
        if not grid.differ:
            raise ValueError(
                f"solver='separable' needs inputs that differ in the kernel's columns; got {n} inputs on a "
                f"grid of {sizes}, some in the same cell; merge them, or try solver='auto'"
            )
        if grid.n_cells > MOST_CELLS_FORCED * n:
            raise ValueError(
                f"solver='separable' needs inputs on a grid; got {n} inputs on one of {sizes} cells; round "
                "them to a grid, or try solver='unstructured'"
            )
        for size in grid.shape:
            _check_memory(size, "values of a factor")

    @property
    def n_crossed(self):
        return self._cells.n_cells

    @cached_property
    def _cells(self):
        return Cells.of(as_factors(self.kernel)[1], self.inputs)

    def _make(self, kernel):
        constant, factors = as_factors(kernel)
        covs = [_cov(factor.kernel, p) for factor, p in zip(factors, self._cells.places)]
        covs[0] = constant * covs[0]
        return Grid(tuple(covs), self._cells.flat, self.tolerance, self.max_iterations)

    def predictor(self, theta, new_inputs):
        """Return the predictor for new inputs (M*, d), which need not lie on the grid."""
        kernel = self.kernel.clone_with_theta(theta)
        constant, factors = as_factors(kernel)
        cross = [f.kernel(f.select(new_inputs), p) for f, p in zip(factors, self._cells.places)]
        cross[0] = constant * cross[0]
        return self.at(theta).predictor(tuple(cross), kernel.diag(new_inputs))


class MarkovFamily(_Family):
    """A Matérn kernel of time, which may have noise of each input's own."""

    solver_name: ClassVar[str] = "markov"

    def _check(self):
        if self._series(self.kernel) is None:
            raise ValueError(
                "solver='markov' needs a kernel of one column, Matern(nu=0.5, 1.5 or 2.5) or a constant "
                f"times it, with or without OwnNoise(...); got {self.kernel!r} for "
                f"{self.inputs.shape[1]} columns; say which column is time with "
                "OnColumns(kernel, column), or try solver='auto'"
            )
        if not _takes_noise(self._series(self.kernel), self.inputs):
            raise ValueError(
                "solver='markov' needs inputs that differ if they have noise of their own; got "
                f"{len(self.inputs)}, some of them equal; merge them, or try solver='auto'"
            )

    def _series(self, kernel):
        return as_series(kernel, self.inputs.shape[1])

    def _make(self, kernel):
        variance, length, smoothness, column, noise = self._series(kernel)
        chain = Markov(self.inputs[:, column], variance, length, smoothness)
        return Noisy(chain, noise) if noise > 0.0 else chain

    def predictor(self, theta, new_inputs):
        """Return the predictor for new inputs (M*, d)."""
        solver, new_inputs = self.at(theta), np.asarray(new_inputs, dtype=np.float64)
        times = new_inputs[:, self._series(self.kernel).column]
        if isinstance(solver, Markov):
            return solver.predictor(times)
        places = places_among(self.inputs, new_inputs)
        return solver.predictor(solver.smooth.predictor(times), places)


FAMILIES = {
    family.solver_name: family
    for family in (DenseFamily, UnstructuredFamily, SeparableFamily, MarkovFamily)
}


# ---- the choice


def choose_family(kernel, inputs, solver="auto", tolerance=1e-8, max_iterations=1000):
    """Return the family of a kernel at inputs (M, d), by the solver's name or by what suits them.

    tolerance, max_iterations : of the iterative solvers, "separable" and "unstructured"
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"kernel must be one of scikit-learn's or of polystick.covariances; got {kernel!r}; try "
            "sklearn.gaussian_process.kernels.RBF()"
        )
    if solver not in ("auto", *FAMILIES):
        raise ValueError(f"solver must be 'auto' or one of {', '.join(FAMILIES)}; got {solver!r}")
    _check_tolerance(tolerance)
    check_integer("max_iterations", max_iterations, at_least=1)
    inputs = np.ascontiguousarray(inputs, dtype=np.float64)
    kernel.diag(inputs[:1])  # a kernel that does not fit the inputs says so here
    name = _suitable(kernel, inputs) if solver == "auto" else solver
    family = FAMILIES[name](kernel, inputs, float(tolerance), int(max_iterations))
    family.at(family.theta0)
    return family


def _check_tolerance(tolerance):
    check_positive("tolerance", tolerance)
    if tolerance > LOOSEST:
        raise ValueError(
            f"tolerance must be at most {LOOSEST:g}, the error of a draw in its standard deviations; got "
            f"{tolerance:g}; 1e-8 is the default"
        )


def check_start(family):
    """Raise unless the parameters start within their bounds, which matters where they are learned."""
    low, high = family.bounds.T
    outside = np.flatnonzero((family.theta0 < low) | (family.theta0 > high))
    if len(outside):
        i = outside[0]
        start, low, high = np.exp([family.theta0[i], low[i], high[i]])
        raise ValueError(
            f"{family.names[i]} of the kernel must lie within its bounds, {low:g} to {high:g}; got {start:g}"
        )


def _suitable(kernel, inputs):
    n = len(inputs)
    series = as_series(kernel, inputs.shape[1]) if n > SHORTEST_SERIES else None
    if series and _takes_noise(series, inputs):
        return "markov"
    if n > SMALLEST_GRID and _on_grid(kernel, inputs):
        return "separable"
    return "dense" if n <= LARGEST_DENSE else "unstructured"


def _takes_noise(series, inputs):
    """Tell whether noise, if there is any, is one value for each input."""
    return series.noise == 0.0 or len(np.unique(inputs, axis=0)) == len(inputs)


def _on_grid(kernel, inputs):
    found = as_factors(kernel)
    if found is None or len(found[1]) < 2:
        return False
    grid = Cells.of(found[1], inputs)
    return grid.differ and grid.n_cells <= MOST_CELLS * len(inputs)


# ---- covariances


def _cov(kernel, inputs):
    """Return the covariance at inputs after a look at whether it is one."""
    cov = np.ascontiguousarray(kernel(inputs), dtype=np.float64)
    if not np.isfinite(cov).all():
        raise ValueError(
            f"covariances must be finite; those of {kernel!r} are not; look at its parameters and bounds"
        )
    shifted = cov.copy()
    shifted[np.diag_indices_from(shifted)] -= SMALLEST_EIGENVALUE * cov.diagonal().max(initial=0.0)
    if lapack.dpotrf(shifted.T, overwrite_a=1)[1]:  # it may be; only then is the long way taken
        _refuse_indefinite(kernel, np.linalg.eigvalsh(cov))
    return cov


def _refuse_indefinite(kernel, eigenvalues):
    smallest, largest = eigenvalues[[0, -1]]
    if smallest < SMALLEST_EIGENVALUE * largest or largest < 0.0:
        raise ValueError(
            f"a kernel must be positive definite; {kernel!r} has an eigenvalue of {smallest:.3g} at these "
            f"inputs, the largest being {largest:.3g}; for places on a sphere use points in space "
            "(polystick.covariances.unit_sphere) with a kernel of distance"
        )


def _check_memory(n, things):
    """Raise unless a few n x n matrices fit."""
    needed, available = 3 * 8 * n**2, _available_memory()
    if n > LARGEST_MATRIX or needed > 0.75 * available:
        raise ValueError(
            f"the covariance of {n} {things} needs about {needed / 1e9:.2g} GB with its decomposition, and "
            f"{available / 1e9:.2g} GB are available (at most {LARGEST_MATRIX} {things} are taken); use "
            "inputs on a grid with Separable(OnColumns(...), ...), a Matern kernel of time alone, or fewer "
            "inputs"
        )


def _available_memory():
    """Return the bytes that this process may still take, as far as the system and the cgroup tell."""
    return min(_read_memory(_system_memory), _read_memory(_cgroup_memory))


def _read_memory(source):
    try:
        return source()
    except (OSError, KeyError, ValueError):  # not told, or "max": no limit
        return math.inf


def _system_memory():
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return 1024 * int(lines["MemAvailable"].split()[0])


def _cgroup_memory(folder="/sys/fs/cgroup"):
    most, current = (int(Path(folder, f"memory.{n}").read_text()) for n in ("max", "current"))
    return most - current
