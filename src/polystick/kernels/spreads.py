"""A covariance and its scales, drawn given rows: Huang and Wand's inverse Wishart, by Bartlett's roots.

`step` is both halves of an interweaving: covariance and scales given rows, scales given rows in their units.
"""

import math
from typing import NamedTuple

import numpy as np

from polystick.kernels import kernel, linalg

TINY = 1e-100


class Law(NamedTuple):
    """A law of covariances."""

    nu: float
    scale: float
    is_diagonal: bool


class Sums(NamedTuple):
    """What rows tell of a covariance and of its scales."""

    outer: np.ndarray  # (k, k) of rows
    curvature: np.ndarray  # (k, k) of the scales, as `HuangWand.rescale` has it
    slope: np.ndarray  # (k,)


class Chance(NamedTuple):
    """What a step needs of chance; those of several turns have one axis more."""

    normals: np.ndarray  # (k + 1, k) of the covariance, and of the scales
    gammas: np.ndarray  # (2 k,) as `redraw` or `redraw_diagonal` have them


class Spread(NamedTuple):
    """Where a covariance is."""

    cov: np.ndarray  # (k, k)
    size: np.ndarray  # (k,)


@kernel(inline="always")
def redraw(outer, size, nu, scale, normals, gammas, cov, new_size):
    """Draw cov ~ InverseWishart(nu diag(size^2) + outer, .) and then scales given it.

    outer, size : (k, k), (k,) the sum of outer products of rows, and the scales before
    normals     : (k, k) standard normals, of which those above the diagonal are read
    gammas      : (2 k,) standard gammas: half of the degrees less k - 1, ..., 0, then (nu + k) / 2
    cov, new_size : (k, k), (k,) out
    """
    k = len(size)
    factor, bartlett = np.empty((k, k)), np.empty((k, k))
    of_cov, of_precision = np.zeros((k, k)), np.zeros((k, k))
    for i in range(k):
        for j in range(i, k):
            factor[i, j] = 0.5 * (outer[i, j] + outer[j, i])
            bartlett[i, j] = normals[i, j]
        factor[i, i] += nu * size[i] ** 2
        bartlett[i, i] = math.sqrt(2.0 * gammas[i])
    linalg.cholesky_in_place(factor)
    _divide(bartlett, factor, of_cov)
    _divide(factor, bartlett, of_precision)
    for i in range(k):
        told = 0.0
        for p in range(i, k):
            told += of_precision[i, p] ** 2
        new_size[i] = math.sqrt(gammas[k + i] / (0.5 / scale**2 + 0.5 * nu * told))
        for j in range(i + 1):
            total = 0.0
            for p in range(j + 1):
                total += of_cov[p, i] * of_cov[p, j]
            cov[i, j] = total
            cov[j, i] = total


@kernel
def _divide(a, b, x):
    """Write into x the solution of a x = b, all upper triangular (k, k)."""
    k = len(a)
    for i in range(k - 1, -1, -1):
        for j in range(i, k):
            x[i, j] = b[i, j]
        for p in range(i + 1, k):
            for j in range(p, k):
                x[i, j] -= a[i, p] * x[p, j]
        for j in range(i, k):
            x[i, j] /= a[i, i]


@kernel(inline="always")
def redraw_diagonal(outer, size, nu, scale, gammas, cov, new_size):
    """Do as redraw, where entries of rows are independent: cov is diagonal, of inverse gammas.

    gammas : (2 k,) standard gammas: half of the degrees k times, then (nu + 1) / 2
    """
    k = len(size)
    for i in range(k):
        for j in range(k):
            cov[i, j] = 0.0
        rate = 0.5 * (nu * size[i] ** 2 + outer[i, i])
        cov[i, i] = max(rate / max(gammas[i], TINY), TINY)
        new_size[i] = math.sqrt(gammas[k + i] / (0.5 / scale**2 + 0.5 * nu / cov[i, i]))


@kernel(inline="always")
def rescale_in_place(curvature, slope, scale, normals, cov, size, by):
    """Draw scales given rows in their units; write by what rows are to be multiplied into by (k,).

    curvature, slope : (k, k), (k,) what is told of scales, as `HuangWand.rescale` has it
    normals          : (k,)
    """
    k = len(size)
    told, drawn = np.empty((k, k)), np.empty(k)
    for i in range(k):
        drawn[i] = slope[i] / size[i]
        for j in range(i, k):
            told[i, j] = curvature[i, j] / (size[i] * size[j])
        told[i, i] += 1.0 / scale**2
    linalg.cholesky_in_place(told)
    linalg.solve_lower_in_place(told, drawn)
    for i in range(k):
        drawn[i] += normals[i]
    linalg.solve_upper_in_place(told, drawn)
    for i in range(k):
        by[i] = drawn[i] / size[i]
        size[i] = abs(drawn[i])
    for i in range(k):
        for j in range(k):
            cov[i, j] *= by[i] * by[j]


@kernel
def step_in_place(law, sums, normals, gammas, spread, by):
    """Draw cov (k, k) and its scales (k,) given rows, then scales given rows in their units.

    law, sums, spread : Law, Sums, Spread
    normals, gammas   : as Chance has them
    by                : (k,) out: by what rows are to be multiplied
    """
    k, cov, size = len(by), spread.cov, spread.size
    if law.is_diagonal:
        redraw_diagonal(sums.outer, size, law.nu, law.scale, gammas, cov, size)
    else:
        redraw(sums.outer, size, law.nu, law.scale, normals[:k], gammas, cov, size)
    rescale_in_place(sums.curvature, sums.slope, law.scale, normals[k], cov, size, by)


@kernel
def invert(a, inverse):
    """Write the inverse of a (k, k), symmetric and positive definite, into inverse."""
    k = len(a)
    factor, half = np.empty((k, k)), np.empty((k, k))
    for i in range(k):
        for j in range(i, k):
            factor[i, j] = a[i, j]
    linalg.cholesky_in_place(factor)
    linalg.invert_factor(factor, half)
    linalg.gram_of_inverse(half, inverse)
    linalg.mirror_in_place(inverse)
