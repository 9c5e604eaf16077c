"""Moments of Gaussians times binomial likelihoods, against a fine grid and at extremes."""

import itertools

import numba
import numpy as np
import pytest

from naive_tilted import moments
from polystick.kernels import tilted

JIT = not numba.config.DISABLE_JIT
LIKELIHOODS = [(0, 1), (1, 1), (1, 3), (0, 20), (7, 20), (0, 5000), (1, 5000), (4999, 5000),
               (0, 10**6), (3, 10**6), (5 * 10**5, 10**6), (10**6, 10**6), (0, 10**9)]  # fmt: skip
GAUSSIANS = [*itertools.product((-30.0, 0.0, 5.0), (1e-12, 1e-6, 0.01, 1.0, 100.0, 1000.0, 1e6))]


def found(cells):
    columns = [np.array(column, dtype=np.float64) for column in zip(*cells)]
    out = np.empty((2, len(cells)))
    tilted.moment_cells(*columns, *out)
    return out


def test_moments_match_a_fine_grid():
    cells = [like + gauss for like, gauss in itertools.product(LIKELIHOODS, GAUSSIANS)]
    cells = cells if JIT else cells[::9]
    mean, variance = found(cells)
    expected, spread = np.array([moments(*cell) for cell in cells]).T
    assert np.abs((mean - expected) / np.sqrt(spread)).max() < 2e-4
    assert np.abs(variance / spread - 1.0).max() < 2e-4


def test_the_skewed_ones_are_skewed():
    """Laplace's variance, which a wrong program might return, is far from the right one."""
    (mean,), (variance,) = found([(0, 10**6, 0.0, 1000.0)])
    assert -45.0 < mean < -35.0
    assert 200.0 < variance < 300.0
    laplace = 1.0 / (1e6 * np.exp(-18.0) + 1e-3)
    assert variance > 2.0 * laplace


def test_no_trials_give_the_gaussian_back():
    mean, variance = found([(0, 0, 3.25, 7.5), (0, 0, -1e9, 1e-300)])
    assert (mean == [3.25, -1e9]).all()
    assert (variance == [7.5, 1e-300]).all()


def test_either_outcome_may_be_called_success():
    cells = [(0, 5000, 1.3, 9.0), (2, 40, -0.4, 0.01), (11, 30, 2.0, 1e5)]
    mean, variance = found(cells)
    turned, as_wide = found([(n - y, n, -m, v) for y, n, m, v in cells])
    np.testing.assert_allclose(turned, -mean, rtol=1e-6)
    np.testing.assert_allclose(as_wide, variance, rtol=1e-5)


@pytest.mark.parametrize("cell", [(0, 50, np.nan, 1.0), (0, 50, 0.0, np.nan), (0, 50, np.inf, 1.0),
                                  (0, 50, 0.0, -1.0), (0, 50, 0.0, 0.0)])  # fmt: skip
def test_what_is_not_finite_ends(cell):
    """It comes back as no number, or no variance: no search goes on for ever."""
    (mean,), (variance,) = found([cell])
    assert not (np.isfinite(mean) and variance > 0.0)


def test_one_signature():
    found([(1, 2, 0.0, 1.0)])
    if JIT:
        assert len(tilted.moment_cells.signatures) == 1
