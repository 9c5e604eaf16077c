"""Weighted sums of products, against dense algebra and the scalar twin."""

import numpy as np
import pytest

from polystick.kernels import grams, simd


def problem(n, k):
    rng = np.random.default_rng(n + k)
    x = np.zeros((n, grams.padded(k)))
    x[:, :k] = rng.normal(size=(n, k))
    return x, rng.normal(size=n)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 4), (30, 8), (17, 19), (40, 25)])
def test_sums_are_those_of_dense_algebra(n, k):
    x, w = problem(n, k)
    tile, gram, row = np.empty(grams.BLOCK * grams.SPAN), np.ones((k, k)), np.ones(k)
    grams.add_in_place(x.ravel(), w, tile, gram)
    expected = 1.0 + x[:, :k].T @ (w[:, None] * x[:, :k])
    np.testing.assert_allclose(np.triu(gram), np.triu(expected), rtol=1e-12, atol=1e-12)
    assert (np.tril(gram, -1) == np.tril(np.ones((k, k)), -1)).all()
    grams.add_row_in_place(x.ravel(), w, k - 1, tile, row)
    np.testing.assert_allclose(row, expected[k - 1], rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(not simd.ENABLED, reason="there is only the scalar kernel")
def test_twins_agree():
    x, w = problem(23, 19)
    tiles = np.empty((2, grams.BLOCK * grams.SPAN))
    grams.fill_tile_scalar(x.ravel(), w, 24, 4, 8, tiles[0])
    grams.fill_tile_simd(x.ravel(), w, 24, 4, 8, tiles[1])
    np.testing.assert_allclose(*tiles, rtol=1e-12, atol=1e-12)
