"""Gaussian process regression of several targets that share a covariance and a noise variance::

y_j = f_j + noise_j,   f_j ~ N(0, C),   noise_j ~ N(0, noise I)                j = 1..k

C is a Kronecker product over the axes of a grid, C = U S U' with U = kron(U_1, U_2, ...): the evidence and
its gradient then cost as much as the eigenvectors of the axes. Inputs in no order are a grid of one axis.
"""

import functools
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import Kernel

from polystick.covariances import Separable
from polystick.covariances.structure import Cells, as_factors

NOISE_BOUNDS = (1e-5, 1e5)
MOST_NEGATIVE = 1e-8  # eigenvalue, relative to the largest one, that rounding may leave


@dataclass(frozen=True, eq=False)
class Grid:
    """Inputs (M, d) that fill a grid: input m is at cell cells[m], the last axis fastest.

    axes : the places on each axis, (n_i, columns)
    """

    kernel: Kernel
    inputs: np.ndarray
    axes: tuple[np.ndarray, ...]
    cells: np.ndarray

    @classmethod
    def of(cls, kernel, inputs):
        """Find the grid that inputs, each given once, fill; if there is none, they are its one axis."""
        if isinstance(kernel, Separable) and as_factors(kernel):
            cells = Cells.of(kernel.kernels, inputs)
            if cells.differ and cells.n_cells == len(inputs):
                return cls(kernel, inputs, *cells)
        return cls(kernel, inputs, (inputs,), np.arange(len(inputs)))

    @property
    def parts(self):
        """The kernel of each axis."""
        if len(self.axes) == 1:
            return [self.kernel]
        return [part.kernel for part in self.kernel.kernels]

    def spread(self, table):
        """Return a table (M, n) over the cells, (n_1, ..., n_J, n)."""
        out = np.empty_like(table)
        out[self.cells] = table
        return out.reshape(*(len(axis) for axis in self.axes), -1)


@dataclass(frozen=True, eq=False)
class Regression:
    """A regression under the kernel of its grid and a noise variance.

    targets : (M, k)
    """

    grid: Grid
    noise: float
    targets: np.ndarray

    @functools.cached_property
    def _bases(self):
        """Eigenvalues and eigenvectors of each axis."""
        return [_eigenbasis(k(axis)) for k, axis in zip(self.grid.parts, self.grid.axes)]

    @functools.cached_property
    def _values(self):
        """Eigenvalues of C + noise I, (n_1, ..., n_J)."""
        return self._product(range(len(self._bases))) + self.noise

    @functools.cached_property
    def _scaled(self):
        """U' (C + noise I)^-1 y, (n_1, ..., n_J, k)."""
        return self._turn(self.targets) / self._values[..., None]

    def _product(self, axes):
        """Return the product of the eigenvalues of some axes, to be broadcast over the grid."""
        n_axes = len(self._bases)
        parts = (np.expand_dims(self._bases[i][0], _others(i, n_axes)) for i in axes)
        return functools.reduce(np.multiply, parts, np.ones((1,) * n_axes))

    def _turn(self, table):
        """Return U' table, for a table (M, n)."""
        turned = self.grid.spread(table)
        for i, (_, vectors) in enumerate(self._bases):
            turned = np.moveaxis(np.tensordot(vectors, turned, axes=(0, i)), 0, i)
        return turned

    def log_evidence(self):
        """Return log p(y), summed over the targets."""
        squares = np.sum(np.square(self._scaled) * self._values[..., None])
        log_det = np.log(2.0 * np.pi * self._values).sum()
        return -0.5 * (squares + self.targets.shape[1] * log_det)

    def gradient(self):
        """Return the slopes of the log evidence in the kernel's theta and in log noise, (p + 1,)."""
        n_targets = self.targets.shape[1]
        noise = np.square(self._scaled).sum() - n_targets * np.sum(1.0 / self._values)
        slopes = [self._slopes(i) for i in range(len(self._bases))]
        return np.concatenate([*slopes, [0.5 * self.noise * noise]])

    def _slopes(self, i):
        """Return the slopes in the parameters of axis i: <dC_i, U_i (B - k diag(a)) U_i'> / 2."""
        _, change = self.grid.parts[i](self.grid.axes[i], eval_gradient=True)
        others = _others(i, len(self._bases))
        weight = self._product(others)
        flat = (len(self.grid.axes[i]), -1)
        scaled = np.moveaxis(self._scaled, i, 0).reshape(flat)
        weighted = np.moveaxis(self._scaled * weight[..., None], i, 0).reshape(flat)
        a = np.sum(weight / self._values, axis=others)
        vectors = self._bases[i][1]
        inner = vectors @ (weighted @ scaled.T - self.targets.shape[1] * np.diag(a)) @ vectors.T
        return 0.5 * np.einsum("ab,abp->p", inner, change)

    def predict(self, inputs):
        """Return the mean (n, k) and the variance (n,) of f at new inputs."""
        kernel = self.grid.kernel
        cross = self._turn(kernel(inputs, self.grid.inputs).T)
        explained = np.square(cross) / self._values[..., None]
        flat = (self._values.size, -1)
        mean = cross.reshape(flat).T @ self._scaled.reshape(flat)
        variance = kernel.diag(inputs) - explained.reshape(flat).sum(axis=0)
        return mean, np.maximum(variance, 0.0)


def _others(i, n_axes):
    return tuple(j for j in range(n_axes) if j != i)


def _eigenbasis(cov):
    values, vectors = np.linalg.eigh(cov)
    if values[0] < -MOST_NEGATIVE * values[-1]:
        raise ValueError(
            "the kernel must be positive semi-definite; its covariance has eigenvalues from "
            f"{values[0]:.3g} to {values[-1]:.3g}; try another kernel"
        )
    return np.maximum(values, 0.0), vectors


def fit(regression):
    """Return the regression of most evidence near the one given, and whether the climb settled.

    Climbs by L-BFGS in the kernel's theta, which is logarithmic, and in log noise.
    """
    grid, size = regression.grid, regression.targets.size
    exact = _tells_gradient(grid.kernel, grid.inputs)

    def at(point):
        kernel = grid.kernel.clone_with_theta(point[:-1])
        return replace(
            regression, grid=replace(grid, kernel=kernel), noise=float(np.exp(point[-1]))
        )

    def loss(point):
        here = at(point)
        value = -here.log_evidence() / size
        return (value, -here.gradient() / size) if exact else value

    bounds = np.vstack([np.reshape(grid.kernel.bounds, (-1, 2)), np.log(NOISE_BOUNDS)])
    start = np.clip(np.append(grid.kernel.theta, np.log(regression.noise)), *bounds.T)
    found = minimize(loss, start, jac=exact or None, method="L-BFGS-B", bounds=bounds)
    return at(found.x), bool(found.success)


def _tells_gradient(kernel, inputs):
    """Say whether a kernel gives its gradient."""
    try:
        kernel(inputs[:1], eval_gradient=True)
    except (TypeError, NotImplementedError):
        return False
    return True
