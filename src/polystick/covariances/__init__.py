"""Covariances that scikit-learn lacks, in its own terms: they work wherever its kernels do.

    OnColumns(kernel, columns)    a kernel of some columns of the inputs
    Separable(*kernels)           their product over columns of their own: on a grid a Kronecker product
    OwnNoise(variance)            noise of each input's own, to be added
    unit_sphere(lat, long)        places as points in space, so that any kernel of distance is valid

A kernel of great-circle distance need not be positive definite; one of the chord through the earth is, and
up to 2000 km the two distances agree within 0.5 %.
"""

from functools import reduce
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel, Product

from polystick.arguments import Counts
from polystick.covariances.own_noise import OwnNoise

__all__ = ["OnColumns", "OwnNoise", "Separable", "unit_sphere"]


def unit_sphere(latitude: ArrayLike, longitude: ArrayLike, radius: float = 6371.0) -> np.ndarray:
    """Return places, given in degrees, as points (n, 3) on a sphere: by default the earth's, in km."""
    latitude, longitude = np.broadcast_arrays(*map(np.atleast_1d, (latitude, longitude)))
    for name, angle, most in (("latitude", latitude, 90), ("longitude", longitude, 360)):
        if not (np.abs(angle) <= most).all():  # NaN is not, either
            wrong = angle[~(np.abs(angle) <= most)][0]
            raise ValueError(
                f"{name} must be in degrees, from -{most} to {most}; got {wrong}; look at the order of "
                "the arguments: latitude comes first"
            )
    phi, lam = np.radians(latitude), np.radians(longitude)
    flat = np.cos(phi)
    return radius * np.stack([flat * np.cos(lam), flat * np.sin(lam), np.sin(phi)], axis=-1)


def _prefixed(prefix, kernel):
    """Return the hyperparameters of a kernel under the names that a kernel around it gives them."""
    return [
        Hyperparameter(f"{prefix}__{h.name}", h.value_type, h.bounds, h.n_elements)
        for h in kernel.hyperparameters
    ]


def _deep_params(prefix, kernel):
    return {f"{prefix}__{name}": value for name, value in kernel.get_params().items()}


class _Around(Kernel):
    """A kernel that works through another one, `_inner`, with the same parameters."""

    _inner: Kernel

    @property
    def theta(self) -> np.ndarray:
        """The logarithms of the parameters that are not fixed, (p,)."""
        return self._inner.theta

    @theta.setter
    def theta(self, theta):
        self._inner.theta = theta

    @property
    def bounds(self) -> np.ndarray:
        """The logarithms of the parameters' bounds, (p, 2)."""
        return self._inner.bounds

    @property
    def requires_vector_input(self) -> bool:
        """Whether inputs are vectors: always, for columns are chosen."""
        return True

    def is_stationary(self) -> bool:
        """Tell whether the kernel depends on differences of inputs only."""
        return self._inner.is_stationary()


class OnColumns(_Around):
    """A kernel of some columns of the inputs; the others do not matter to it.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        The kernel, of as many columns as are chosen.
    columns : int or sequence of int
        The columns, counted from 0.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, Matern
    >>> from polystick.covariances import OnColumns
    >>> OnColumns(Matern(30.0, nu=2.5), 0) * OnColumns(RBF(5.0), [1, 2])
    OnColumns(Matern(length_scale=30, nu=2.5), 0) * OnColumns(RBF(length_scale=5), [1, 2])
    """

    def __init__(self, kernel: Kernel, columns: Any) -> None:
        self.kernel = kernel
        self.columns = columns

    @property
    def _inner(self):
        return self.kernel

    @property
    def indices(self) -> Any:
        """The columns as an array."""
        indices = np.atleast_1d(self.columns)
        if indices.ndim > 1 or indices.size == 0 or indices.dtype.kind not in "iu":
            raise TypeError(f"columns must be an integer or some of them; got {self.columns!r}")
        if indices.min() < 0 or len(np.unique(indices)) < len(indices):
            raise ValueError(f"columns must be from 0 and differ; got {self.columns!r}")
        return indices

    def select(self, X: Counts) -> np.ndarray:
        """Return the columns of X, (n, d) -> (n, len(columns))."""
        X, indices = np.atleast_2d(X), self.indices
        if indices.max() >= X.shape[1]:
            raise ValueError(
                f"columns must be below the number of columns of the inputs, {X.shape[1]}; got "
                f"{self.columns!r}; the first column is 0"
            )
        return X[:, indices]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return kernel, columns and, if deep, what kernel has."""
        own = {"kernel": self.kernel, "columns": self.columns}
        return {**own, **_deep_params("kernel", self.kernel)} if deep else own

    @property
    def hyperparameters(self) -> list[Any]:
        """The parameters with their bounds."""
        return _prefixed("kernel", self.kernel)

    def __call__(self, X, Y=None, eval_gradient=False):
        """Return the covariances of X and Y (or X), and on demand their gradient in theta."""
        Y = None if Y is None else self.select(Y)
        return self.kernel(self.select(X), Y, eval_gradient=eval_gradient)

    def diag(self, X: np.ndarray) -> np.ndarray:
        """Return the variances at X."""
        return self.kernel.diag(self.select(X))

    def __eq__(self, other):
        """Compare kernels and columns."""
        return (
            type(self) is type(other)
            and self.kernel == other.kernel
            and np.array_equal(np.atleast_1d(self.columns), np.atleast_1d(other.columns))
        )

    def __repr__(self):
        """Show the kernel and its columns."""
        return f"{type(self).__name__}({self.kernel!r}, {self.columns!r})"


class Separable(_Around):
    """A product of kernels, each of columns of its own.

    The factors are named k1, k2, ... as in scikit-learn's products. Where the inputs form a grid, complete
    or with holes, the covariance is a Kronecker product, and `MultinomialGP` is fast and exact.

    Parameters
    ----------
    *kernels : OnColumns
        The factors. A variance may stand in one of them: ``OnColumns(10.0 * Matern(), 0)``.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, Matern
    >>> from polystick.covariances import OnColumns, Separable
    >>> kernel = Separable(OnColumns(Matern(30.0, nu=2.5), 0), OnColumns(RBF(5.0), [1, 2]))
    >>> kernel.theta.round(3)
    array([3.401, 1.609])
    """

    def __init__(self, *kernels: Any) -> None:
        if not kernels:
            raise TypeError("Separable needs at least one kernel; got none")
        for kernel in kernels:
            if not isinstance(kernel, OnColumns):
                raise TypeError(
                    f"the factors of Separable must be OnColumns; got {kernel!r}; say which columns "
                    "it is of: OnColumns(kernel, columns)"
                )
        self.kernels = kernels
        _refuse_overlap(kernels)

    @property
    def _inner(self):
        return reduce(Product, self.kernels)

    def _names(self):
        return [f"k{i}" for i in range(1, len(self.kernels) + 1)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the factors and, if deep, what they have."""
        own = dict(zip(self._names(), self.kernels))
        if not deep:
            return own
        return own | {
            name: value
            for k, kernel in own.items()
            for name, value in _deep_params(k, kernel).items()
        }

    def set_params(self, **params: Any) -> Self:
        """Set factors (k1=...) or their parameters (k1__kernel__length_scale=...)."""
        own = self.get_params(deep=False)
        factors = {name: params[name] for name in own if name in params}
        Separable.__init__(self, *{**own, **factors}.values())
        super().set_params(**{k: value for k, value in params.items() if k not in factors})
        _refuse_overlap(self.kernels)
        return self

    def __sklearn_clone__(self):
        """Return an independent copy."""
        return type(self)(*map(clone, self.kernels))

    @property
    def hyperparameters(self) -> list[Any]:
        """The parameters with their bounds."""
        return [h for k, kernel in zip(self._names(), self.kernels) for h in _prefixed(k, kernel)]

    def __call__(self, X, Y=None, eval_gradient=False):
        """Return the covariances of X and Y (or X), and on demand their gradient in theta."""
        return self._inner(X, Y, eval_gradient=eval_gradient)

    def diag(self, X: np.ndarray) -> np.ndarray:
        """Return the variances at X."""
        return self._inner.diag(X)

    def __eq__(self, other):
        """Compare the factors, in their order."""
        return type(self) is type(other) and self.kernels == other.kernels

    def __repr__(self):
        """Show the factors."""
        return f"{type(self).__name__}({', '.join(map(repr, self.kernels))})"


def _refuse_overlap(kernels):
    columns = np.concatenate([kernel.indices for kernel in kernels])
    values, counts = np.unique(columns, return_counts=True)
    if (counts > 1).any():
        raise ValueError(
            f"the factors of Separable must have columns of their own; column {values[counts > 1][0]} is in "
            "more than one; multiply such kernels: OnColumns(k1 * k2, columns)"
        )
