"""Our own dense algebra: against NumPy's, its scalar twin, and the order in which it promises to add up."""

from fractions import Fraction

import numpy as np
import pytest

from polystick.kernels import algebra, dense, simd

SIZES = [1, 2, 4, 5, 8, 9, 23]
CLOSE = {"rtol": 1e-11, "atol": 1e-11}


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def wishart(k, rng):
    x = rng.normal(size=(2 * k + 3, k))
    return x.T @ x + np.eye(k)


@pytest.mark.parametrize("k", SIZES)
def test_products(k, rng):
    for n, m in ((0, 3), (1, 1), (7, 5), (40, 17)):
        a, b = rng.normal(size=(k, n)), rng.normal(size=(n, m))
        np.testing.assert_allclose(algebra.multiply(a, b), a @ b, **CLOSE)
        np.testing.assert_allclose(algebra.multiply(a, b[:, 0]), a @ b[:, 0], **CLOSE)
        gram = algebra.gram(a.T)
        np.testing.assert_allclose(gram, a @ a.T, **CLOSE)
        np.testing.assert_array_equal(gram, gram.T)


@pytest.mark.parametrize("k", SIZES)
def test_triangles(k, rng):
    a, b = wishart(k, rng), rng.normal(size=(k, 6))
    u, other = algebra.root(a), algebra.root(wishart(k, rng))
    np.testing.assert_array_equal(np.tril(u, -1), 0.0)
    np.testing.assert_allclose(u.T @ u, a, **CLOSE)
    np.testing.assert_allclose(u.T @ algebra.solve_lower(u, b), b, **CLOSE)
    np.testing.assert_allclose(u @ algebra.solve_upper(u, b), b, **CLOSE)
    np.testing.assert_allclose(a @ algebra.solve(u, b[:, 0]), b[:, 0], **CLOSE)
    np.testing.assert_allclose(algebra.inverted(a) @ a, np.eye(k), **CLOSE)
    np.testing.assert_allclose(algebra.log_det(u), np.linalg.slogdet(a)[1], **CLOSE)
    np.testing.assert_allclose(algebra.quadratic(a, b[:, 0]), b[:, 0] @ a @ b[:, 0], **CLOSE)
    for solve, one, shape in (
        (algebra.solve_upper, other, algebra.UPPER),
        (algebra.solve_lower, other.T, algebra.LOWER),
    ):  # where a triangle is known, zeros are left out
        np.testing.assert_allclose(solve(u, one, shape), solve(u, one), **CLOSE)
        np.testing.assert_allclose(algebra.gram(one, shape), one.T @ one, **CLOSE)


@pytest.mark.parametrize("k", SIZES)
def test_a_root_with_the_largest_first(k, rng):
    a = wishart(k, rng) * np.outer(*2 * [10.0 ** rng.uniform(-6, 6, k)])
    u, order = algebra.pivoted_root(a)
    assert sorted(order) == list(range(k))
    np.testing.assert_allclose(u.T @ u, a[np.ix_(order, order)], rtol=1e-9)
    pivots = np.diag(u)
    assert (pivots[:-1] >= pivots[1:] * (1 - 1e-12)).all()


@pytest.mark.parametrize("root", [algebra.root, lambda a: algebra.pivoted_root(a)[0]])
def test_what_is_not_positive_definite_leaves_nan(root):
    for spoiled in (np.diag([1.0, -1.0, 2.0]), np.ones((9, 9)) - 2 * np.eye(9), np.zeros((2, 2))):
        assert np.isnan(root(spoiled)).all()
    assert np.isnan(algebra.inverted(np.diag([1.0, np.nan]))).all()


@pytest.mark.skipif(not simd.ENABLED, reason="there is only the scalar kernel")
def test_twins_agree(rng):
    x, y = rng.normal(size=(9, 16)), rng.normal(size=(9, 24))
    tiles = np.empty((2, dense.BLOCK * dense.SPAN))
    for fill, tile in zip((dense.fill_tile_scalar, dense.fill_tile_simd), tiles):
        fill((x.ravel(), 16, 8), (y.ravel(), 24, 16), (2, 7), tile)
    np.testing.assert_allclose(*tiles, rtol=1e-12, atol=1e-12)
    expected = x[2:7, 8:12].T @ y[2:7, 16:24]
    np.testing.assert_allclose(tiles[0].reshape(4, 8), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(not simd.ENABLED, reason="the scalar kernel rounds products too")
def test_sums_go_by_rows_and_round_once(rng):
    """So they are the same on every processor: BLAS adds up in an order of its own for each."""
    x = rng.normal(size=(13, 9))
    found = algebra.gram(x)
    for i, j in ((0, 0), (2, 8), (7, 3)):
        total = 0.0
        for a, b in zip(x[:, i].tolist(), x[:, j].tolist()):
            total = float(Fraction(a) * Fraction(b) + Fraction(total))
        assert found[i, j] == total


def test_each_kernel_is_compiled_for_one_kind_of_array(rng):
    a = wishart(5, rng)
    for like in (a, a.T, a.astype(np.float32), np.asfortranarray(a), a[::1, ::1]):
        u = algebra.root(like)
        algebra.solve(u, like)
        algebra.multiply(like, like[0])
        algebra.gram(like)
    for kernel in (dense.root, dense.gram, dense.product, dense.solve_lower, dense.solve_upper):
        assert len(getattr(kernel, "signatures", [1])) == 1
