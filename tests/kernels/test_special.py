import numpy as np
import pytest
from scipy.special import digamma, gammaln

from polystick.kernels import special


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return np.exp(rng.uniform(np.log(1e-3), np.log(1e6), (40, 7)))


def test_exp_digamma(table):
    rows = np.array([3, 0, 39, 3], dtype=np.int32)
    shift, out = np.linspace(0.0, 2.0, 7), np.empty((4, 7))
    special.exp_digamma_rows(table, rows, shift, out)
    np.testing.assert_allclose(out, np.exp(digamma(table[rows]) - shift), rtol=1e-12, atol=1e-300)


def test_dirichlet_sum(table):
    shift = digamma(table.sum(axis=0))
    expected = np.sum((table - 0.05) * (digamma(table) - shift) - gammaln(table))
    assert special.dirichlet_sum(table, 0.05, shift) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("x", [1e-8, 0.05, 1.0, 7.999, 8.0, 1e3, 1e12])
def test_single_values(x):
    """A table of one entry, with what multiplies digamma switched on and off."""
    one, zero = np.array([[x]]), np.zeros(1)
    assert special.dirichlet_sum(one, x, zero) == pytest.approx(-gammaln(x), rel=1e-13, abs=1e-13)
    expected = digamma(x) - gammaln(x)
    assert special.dirichlet_sum(one, x - 1.0, zero) == pytest.approx(expected, rel=1e-12, abs=1e-9)
