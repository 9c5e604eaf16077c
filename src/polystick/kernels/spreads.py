"""A covariance and its scales, drawn given rows: Huang and Wand's inverse Wishart, by Bartlett's roots."""

import math

import numpy as np

from polystick.kernels import kernel, linalg


@kernel
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
