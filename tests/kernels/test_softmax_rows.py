"""Softmax rows, category by category: as their twin, true to the law, safe where sums cancel."""

import numba
import numpy as np
import pytest
from scipy import stats

import naive_softmax_rows as naive
from polystick.kernels import softmax_rows
from statistics_tools import MAX_Z, MIN_P

JIT = not numba.config.DISABLE_JIT
KEY = np.uint64(20150618)


@pytest.fixture
def rng():
    return np.random.default_rng(2015)


def ids(n):
    return np.arange(n, dtype=np.uint64) * np.uint64(7)


def law(k, rng, size=1.0):
    root = size * rng.normal(size=(k, k + 3))
    return rng.normal(size=k), np.linalg.inv(root @ root.T + size**2 * np.eye(k))


def problem(n, k, rng, size=1.0, totals=None):
    """Return counts, mean, precision and psi; the second row has no counts."""
    mean, precision = law(k, rng, size)
    psi = mean + size * rng.normal(size=(n, k))
    p = np.exp(psi - psi.max(axis=1, keepdims=True))
    totals = rng.integers(1, 300, n) if totals is None else np.full(n, totals)
    totals[1] = 0
    return rng.multinomial(totals, p / p.sum(axis=1, keepdims=True)), mean, precision, psi


def redraw(counts, mean, precision, psi, key=KEY, rows=None):
    psi = psi.copy()
    rows = ids(len(psi)) if rows is None else rows
    value = softmax_rows.redraw_rows_in_place(
        key, rows, counts, counts.sum(axis=1), mean[None], precision, psi
    )
    return psi, value


def assert_as_the_twin(counts, mean, precision, psi):
    """Up to 1e-9, or to the rounding of slopes, which are differences of counts and what is expected."""
    rounding = max(1e-9, 1e-13 * counts.sum(axis=1).max())
    found, value = redraw(counts, mean, precision, psi)
    for i, row in enumerate(ids(len(psi))):
        expected = naive.redraw_row(KEY, row, counts[i], mean, precision, psi[i])
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(
            found[i], expected, rtol=0, atol=rounding * scale, err_msg=str(i)
        )
    assert value == pytest.approx(naive.log_likelihood(counts, found), rel=1e-10, abs=1e-8)


@pytest.mark.parametrize("k", [2, 3, 9])
@pytest.mark.parametrize("size", [0.05, 1.0, 30.0])
def test_rows_equal_their_twin(k, size, rng):
    for totals in (None, 1, 10**6):
        assert_as_the_twin(*problem(7, k, rng, size, totals))


@pytest.mark.parametrize("gap", [30.0, 800.0, 5000.0])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_giant_at_the_start_leaves_the_others_told(gap, place, rng):
    """What counts say brings the giant down at once: the others' sum was below the rounding of the whole."""
    counts, mean, precision, psi = problem(6, 5, rng)
    psi[:, place] += gap
    assert_as_the_twin(counts, mean, precision, psi)
    psi[:, place] -= 2 * gap
    assert_as_the_twin(counts, mean, precision, psi)


@pytest.mark.parametrize("fall", [8.0, 13.0, 25.0])
def test_giants_that_fall_one_after_another_lose_no_digits(fall, rng):
    """Each is by itself too small a fall to be seen; in the end the first sum is 1e16 times the last."""
    k = 9
    psi = np.tile(fall * np.arange(k)[::-1], (4, 1)) + rng.normal(size=(4, k))
    counts = np.ones((4, k), dtype=np.int64)
    assert_as_the_twin(counts, np.zeros(k), np.eye(k), psi)


def test_one_category_takes_all(rng):
    counts = np.zeros((5, 6), dtype=np.int64)
    counts[:, 2] = [1, 10, 10**3, 10**6, 10**9]
    mean, precision = law(6, rng)
    assert_as_the_twin(counts, mean, precision, rng.normal(size=(5, 6)))
    found, _ = redraw(counts, mean, precision, rng.normal(size=(5, 6)))
    assert np.isfinite(found).all()


def test_without_counts_rows_have_the_normal_law(rng):
    n = 40_000 if JIT else 400
    mean, precision = law(3, rng)
    nothing = np.zeros((n, 3), dtype=np.int64)
    psi = rng.multivariate_normal(mean, np.linalg.inv(precision), size=n)
    found, value = redraw(nothing, mean, precision, psi)
    assert value == 0.0
    white = (found - mean) @ np.linalg.cholesky(precision)
    assert np.abs(white.mean(axis=0) * np.sqrt(n)).max() < MAX_Z
    products = white.T @ white / n - np.eye(3)
    assert np.abs(products * np.sqrt(n / 2)).max() < MAX_Z
    assert (found != psi).all()


@pytest.mark.skipif(not JIT, reason="too few draws to have power")
@pytest.mark.parametrize("counts", [(3, 4), (0, 40), (0, 10**6), (500, 3)])
def test_two_categories_have_the_law_of_one_split(counts, rng):
    """The log-ratio of two categories, from starts far away, after a few sweeps, by a fine grid."""
    n, mean, cov = 20_000, np.array([0.3, -0.5]), np.array([[1.0, 0.4], [0.4, 0.7]])
    many, psi = np.tile(counts, (n, 1)), 5.0 * rng.normal(size=(n, 2))
    for sweep in range(60):
        psi, _ = redraw(many, mean, np.linalg.inv(cov), psi, key=np.uint64(sweep))
    middle, variance = mean[0] - mean[1], cov[0, 0] + cov[1, 1] - 2 * cov[0, 1]
    grid = np.linspace(-20.0, 20.0, 400_001)
    height = counts[0] * grid - sum(counts) * np.logaddexp(0, grid)
    height -= 0.5 * (grid - middle) ** 2 / variance
    weight = np.cumsum(np.exp(height - height.max()))
    cdf = lambda x: np.interp(x, grid, weight / weight[-1])
    assert stats.kstest(psi[:, 0] - psi[:, 1], cdf).pvalue > MIN_P
    wider = np.cumsum(np.exp(1.2 * (height - height.max())))
    cdf = lambda x: np.interp(x, grid, wider / wider[-1])
    assert stats.kstest(psi[:, 0] - psi[:, 1], cdf).pvalue < MIN_P


def test_a_row_is_drawn_the_same_in_any_company(rng):
    counts, mean, precision, psi = problem(6, 4, rng)
    whole, _ = redraw(counts, mean, precision, psi)
    some = np.array([4, 1])
    part, _ = redraw(counts[some], mean, precision, psi[some], rows=ids(6)[some])
    np.testing.assert_array_equal(whole[some], part)
    other, _ = redraw(counts, mean, precision, psi, key=KEY + np.uint64(1))
    assert (whole != other).all()


def test_what_is_not_finite_ends(rng):
    counts, mean, precision, psi = problem(4, 4, rng)
    psi[0, 1], mean[2] = np.nan, np.inf
    found, _ = redraw(counts, mean, precision, psi)
    assert found.shape == psi.shape


@pytest.mark.skipif(not JIT, reason="needs the compiler")
def test_one_signature(rng):
    redraw(*problem(3, 4, rng))
    assert len(softmax_rows.redraw_rows_in_place.signatures) == 1
