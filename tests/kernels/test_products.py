"""Sandwiches a' n a: loops and tiles against NumPy, at sizes around whole vectors."""

import numba
import numpy as np
import pytest

from polystick.kernels import products

PLAIN = bool(numba.config.DISABLE_JIT)
SIZES = [1, 2, 3, 4, 5, 7, 8, 10, 12, 13]


def problem(d):
    rng = np.random.default_rng(d)
    a, half, out = rng.normal(size=(3, d, d))
    n = half + half.T
    return a, n, out, np.triu(out + a.T @ n @ a)


@pytest.mark.parametrize("d", SIZES)
def test_loops(d):
    a, n, out, _ = problem(d)
    a[0] = 0.0
    expected = np.triu(out + a.T @ n @ a)
    products.sandwich_in_place(out, a, n, np.full((d, d), np.nan))
    np.testing.assert_allclose(np.triu(out), expected, rtol=1e-12, atol=1e-12 * d)


@pytest.mark.skipif(PLAIN, reason="vectors need the compiler")
@pytest.mark.parametrize("d", SIZES)
def test_tiles(d):
    a, n, out, expected = problem(d)
    below = np.tril(out, -1)
    whole = [products.padded(matrix).ravel() for matrix in (a, n)]
    scratch = [np.full_like(whole[0], np.nan) for _ in range(2)]
    products.sandwich_tiles_in_place(out, (*whole, *scratch))
    np.testing.assert_allclose(np.triu(out), expected, rtol=1e-12, atol=1e-12 * d)
    np.testing.assert_array_equal(np.tril(out, -1), below)
