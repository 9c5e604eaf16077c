import numpy as np
import pytest

from polystick.kernels import linalg


def _matrix(k, seed=0):
    roots = np.random.default_rng(seed).normal(size=(k, k + 2))
    return roots @ roots.T + 0.1 * np.eye(k)


def _factor(a):
    factor = a.copy()
    linalg.cholesky_in_place(factor)
    return factor


@pytest.mark.parametrize("k", [1, 2, 5, 17])
def test_factor_and_log_det(k):
    a = _matrix(k)
    factor = _factor(a)
    np.testing.assert_allclose(np.triu(factor).T, np.linalg.cholesky(a), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(linalg.log_det(factor), np.linalg.slogdet(a)[1], rtol=1e-12)


def test_log_det_does_not_overflow():
    factor = np.diag(np.full(60, 1e30))
    np.testing.assert_allclose(linalg.log_det(factor), 120 * np.log(1e30), rtol=1e-14)


@pytest.mark.parametrize("k", [1, 2, 5, 17])
def test_solves(k):
    a, b = _matrix(k), np.random.default_rng(1).normal(size=k)
    factor, x = _factor(a), b.copy()
    linalg.solve_lower_in_place(factor, x)
    np.testing.assert_allclose(np.linalg.cholesky(a) @ x, b, atol=1e-11)
    linalg.solve_upper_in_place(factor, x)
    np.testing.assert_allclose(a @ x, b, atol=1e-10)


@pytest.mark.parametrize("k", [0, 1, 4, 5, 17])
def test_dot(k):
    x, y = np.random.default_rng(2).normal(size=(2, k))
    np.testing.assert_allclose(linalg.dot(x, y), x @ y, rtol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 5, 17])
def test_inverse(k):
    a = _matrix(k)
    inverse, cov = np.full((k, k), np.nan), np.full((k, k), np.nan)
    linalg.invert_factor(_factor(a), inverse)
    linalg.gram_of_inverse(inverse, cov)
    linalg.mirror_in_place(cov)
    np.testing.assert_allclose(np.tril(inverse) @ np.linalg.cholesky(a), np.eye(k), atol=1e-11)
    np.testing.assert_allclose(cov @ a, np.eye(k), atol=1e-10)


def test_an_indefinite_matrix_leaves_nan():
    a = np.array([[1.0, 2.0], [2.0, 1.0]])
    with np.errstate(invalid="ignore"):
        try:
            factor = _factor(a)
        except ValueError:  # math.sqrt without the compiler
            pytest.skip("plain Python raises")
    assert np.isnan(factor[1, 1])
