"""Exact draws of one split given its Gaussian law, against quadrature."""

import numba
import numpy as np
import pytest
from scipy import stats

from polystick.kernels import exact_cells
from statistics_tools import MAX_Z

JIT = not numba.config.DISABLE_JIT
N = 40_000 if JIT else 300
CASES = [  # successes, trials, mean, variance
    (0, 1_000_000, -9.0, 4.0),
    (3, 100_000, -6.0, 9.0),
    (0, 50, 0.0, 1.0),
    (0, 5000, 0.0, 1e4),
    (5000, 5000, 0.0, 100.0),
    (10**9, 10**9, -500.0, 1e4),
    (500, 1000, 0.0, 1.0),
    (0, 1, 40.0, 900.0),
    (0, 1_000_000, -9.0, 1e-8),
]


def drawn(y, n, mean, variance, size=N, start=None):
    """Return draws, each in a row of its own."""
    psi = np.full((size, 1), mean if start is None else start)
    exact_cells.redraw_rows_in_place(
        np.uint64(5), np.arange(size, dtype=np.uint64), np.full((size, 1), y), np.full((size, 1), n),
        np.ones((size, 1), bool), np.array([[mean]]), np.array([[1.0 / variance]]), psi,
    )  # fmt: skip
    return psi[:, 0]


def law(y, n, mean, variance):
    """Return the distribution function by a fine grid about the mode."""
    wide = np.linspace(mean - 12 * np.sqrt(variance), mean + 12 * np.sqrt(variance), 400_001)
    height = y * wide - n * np.logaddexp(0, wide) - 0.5 * (wide - mean) ** 2 / variance
    some = wide[height > height.max() - 40]
    grid = np.linspace(some[0] - 1e-9, some[-1] + 1e-9, 400_001)
    height = y * grid - n * np.logaddexp(0, grid) - 0.5 * (grid - mean) ** 2 / variance
    weight = np.cumsum(np.exp(height - height.max()))
    return lambda x: np.interp(x, grid, weight / weight[-1])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_draws_have_their_law(case):
    assert stats.kstest(drawn(*case), law(*case)).pvalue > 1e-4


@pytest.mark.skipif(not JIT, reason="too few draws to have power")
@pytest.mark.parametrize("case", CASES[:4], ids=str)
def test_another_law_is_rejected(case):
    y, n, mean, variance = case
    assert stats.kstest(drawn(*case), law(y, n, mean, 1.3 * variance)).pvalue < 1e-4


@pytest.mark.parametrize("start", [-300.0, 60.0])
def test_a_start_far_away_does_not_matter(start):
    case = (0, 5000, 0.0, 100.0)
    assert stats.kstest(drawn(*case, start=start), law(*case)).pvalue > 1e-4


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_ends(bad):
    """No tangents: the chain stays, and the run names the row."""
    with np.errstate(invalid="ignore"):  # where plain Python runs the kernels
        assert drawn(3, 10, bad, 1.0, size=2, start=0.5).shape == (2,)
        assert drawn(0, 10, 0.0, 1.0, size=1, start=bad).shape == (1,)


def test_only_chosen_splits_move_each_given_the_others():
    """Two splits without trials: the second given the first is a normal regression."""
    rng, size = np.random.default_rng(1), 4000 if JIT else 100
    mean, cov = np.array([1.0, -2.0]), np.array([[2.0, 1.2], [1.2, 3.0]])
    psi = rng.normal(size=(size, 2))
    before = psi.copy()
    nothing = np.zeros((size, 2), dtype=np.int64)
    chosen = np.tile([False, True], (size, 1))
    ids = np.arange(size, dtype=np.uint64)
    exact_cells.redraw_rows_in_place(
        np.uint64(1), ids, nothing, nothing, chosen, mean[None], np.linalg.inv(cov), psi
    )
    np.testing.assert_array_equal(psi[:, 0], before[:, 0])
    residual = psi[:, 1] - (mean[1] + 0.6 * (psi[:, 0] - mean[0]))
    variance = 3.0 - 1.2**2 / 2
    z = np.array([residual.mean() / np.sqrt(variance), (residual * psi[:, 0]).mean()])
    assert np.abs(z * np.sqrt(size)).max() < MAX_Z
    assert abs((residual**2).mean() / variance - 1) * np.sqrt(size / 2) < MAX_Z


def test_a_row_draws_the_same_in_any_company():
    rng, size, k = np.random.default_rng(2), 150, 3
    trials = rng.integers(0, 10_000, (size, k))
    successes = rng.binomial(trials, rng.choice([0.0, 0.001, 0.5, 1.0], (size, k)))
    chosen, ids = rng.random((size, k)) < 0.7, np.arange(size, dtype=np.uint64)
    mean, precision = np.array([-3.0, 0.0, 2.0]), np.linalg.inv(np.eye(k) + 0.5)
    whole = rng.normal(size=(size, k))
    rows = (ids, successes, trials, chosen)
    for start, end in ((0, 1), (3, 70), (60, 150)):
        part = whole[start:end].copy()
        cut = (each[start:end] for each in rows)
        exact_cells.redraw_rows_in_place(np.uint64(7), *cut, mean[None], precision, part)
        again = whole.copy()
        exact_cells.redraw_rows_in_place(np.uint64(7), *rows, mean[None], precision, again)
        np.testing.assert_array_equal(part, again[start:end])
        np.testing.assert_array_equal(
            part[~chosen[start:end]], whole[start:end][~chosen[start:end]]
        )
