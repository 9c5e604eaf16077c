"""What a kernel is at given inputs: a series in time, a product over a grid, or neither."""

import math
from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, Product, Sum, WhiteKernel

from polystick.covariances import OnColumns, OwnNoise, Separable

__all__ = ["Cells", "Series", "as_factors", "as_series", "describe", "places_among"]


class Series(NamedTuple):
    """A Matérn process of one column, and noise of each input's own."""

    variance: float
    length: float
    smoothness: float
    column: int
    noise: float = 0.0


def _split_product(kernel):
    """Return the product of the constants in a product of kernels, and the list of its other factors."""
    if type(kernel) is ConstantKernel:
        return float(kernel.constant_value), []
    if type(kernel) not in (Product, Separable):
        return 1.0, [kernel]
    factors = kernel.kernels if type(kernel) is Separable else (kernel.k1, kernel.k2)
    constants, others = zip(*map(_split_product, factors))
    return math.prod(constants), [factor for part in others for factor in part]


def as_series(kernel, n_columns):
    """Return the `Series` that a kernel of n_columns is, or None."""
    kernel, noise = _split_noise(kernel)
    found = _as_smooth_series(kernel, n_columns)
    return found and found._replace(noise=noise)


def _split_noise(kernel):
    """Return a kernel without the noise of each input's own that is added to it, and its variance."""
    if type(kernel) is Sum:
        for rest, noise in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if type(noise) is OwnNoise:
                return rest, float(noise.variance)
    return kernel, 0.0


def _as_smooth_series(kernel, n_columns):
    constant, others = _split_product(kernel)
    if len(others) != 1:
        return None
    (factor,) = others
    if type(factor) is OnColumns:
        inner = _as_smooth_series(factor.kernel, len(factor.indices))
        return inner and inner._replace(
            variance=constant * inner.variance, column=int(factor.indices[inner.column])
        )
    if type(factor) is not Matern or factor.nu not in (0.5, 1.5, 2.5) or n_columns != 1:
        return None
    if np.size(factor.length_scale) != 1:  # not of these inputs: whoever calls the kernel will hear
        return None
    return Series(constant, float(np.squeeze(factor.length_scale)), factor.nu, 0)


def as_factors(kernel):
    """Return the constant and the `OnColumns` factors over disjoint columns that make a kernel, or None.

    White noise is one value for each input, not one for each place or time, so no factor may have it.
    """
    constant, factors = _split_product(kernel)
    if not factors or not all(type(factor) is OnColumns for factor in factors):
        return None
    columns = np.concatenate([factor.indices for factor in factors])
    white = any(isinstance(part, WhiteKernel) for part in kernel.get_params().values())
    return None if white or len(np.unique(columns)) < len(columns) else (constant, factors)


def places_among(inputs, new):
    """Return where each of new (n, d) is among inputs (M, d), which differ; -1 if nowhere."""
    rows = np.vstack([inputs, new])
    values, ids = np.unique(rows, axis=0, return_inverse=True)
    place = np.full(len(values), -1)
    place[ids.reshape(-1)[: len(inputs)]] = np.arange(len(inputs))
    return place[ids.reshape(-1)[len(inputs) :]]


class Cells(NamedTuple):
    """Inputs as cells of a grid."""

    places: tuple  # for each factor the values (n, columns) that occur
    flat: np.ndarray  # (M,) of each input, in C order

    @classmethod
    def of(cls, factors, inputs):
        """Find the grid that the inputs lie on, complete or not."""
        found = [
            np.unique(factor.select(inputs), axis=0, return_inverse=True) for factor in factors
        ]
        places, indices = zip(*found)
        shape = tuple(map(len, places))
        return cls(places, np.ravel_multi_index([i.reshape(-1) for i in indices], shape))

    @property
    def shape(self):
        return tuple(map(len, self.places))

    @property
    def n_cells(self):
        return math.prod(self.shape)

    @property
    def differ(self):
        return len(np.unique(self.flat)) == len(self.flat)


def describe(thing):
    """Return a kernel, or a parameter of one, as plain values."""
    if hasattr(thing, "get_params"):
        parts = sorted(thing.get_params(deep=False).items())
        return (type(thing).__qualname__, *((name, describe(value)) for name, value in parts))
    if isinstance(thing, list | tuple):
        return tuple(map(describe, thing))
    if isinstance(thing, Real):
        return float(thing)
    plain = isinstance(thing, str | np.ndarray | None)
    return thing if plain else getattr(thing, "__qualname__", repr(thing))
