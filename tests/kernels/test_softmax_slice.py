"""Elliptical slice sampling behind a softmax: as its twin, true to the law, safe where sums cancel."""

import numba
import numpy as np
import pytest
from scipy.special import log_expit

import naive_softmax as naive
from polystick.kernels import softmax_slice
from statistics_tools import MAX_Z, standard_error

PLAIN = bool(numba.config.DISABLE_JIT)
KEY = np.uint64(20100513)


@pytest.fixture
def rng():
    return np.random.default_rng(2010)


def ids(n):
    return np.arange(n, dtype=np.uint64) * np.uint64(11)


def problem(n_categories, n_inputs, rng, size=1.0):
    """Return counts, level, f and a fresh draw; the middle input has no counts."""
    f, fresh = size * rng.normal(size=(2, n_categories, n_inputs))
    level = rng.normal(size=n_categories)
    pi = np.exp(level[:, None] + f - (level[:, None] + f).max(axis=0))
    totals = rng.integers(1, 30, n_inputs)
    totals[n_inputs // 2] = 0
    counts = rng.multinomial(totals, (pi / pi.sum(axis=0)).T).T
    return np.ascontiguousarray(counts, dtype=float), level, f, fresh


def sweep(key, rows, counts, level, f, fresh):
    f, turns = f.copy(), np.empty((len(f), 2))
    n_looks, value = softmax_slice.draw_categories_in_place(
        key, rows, counts, counts.sum(axis=0), level, f, fresh, turns
    )
    return f, turns, n_looks, value


@pytest.mark.parametrize("n_categories", [2, 3, 9])
@pytest.mark.parametrize("size", [0.1, 1.0, 40.0, 1e3])
def test_sweep_equals_its_twin(n_categories, size, rng):
    """Up to sizes at which a sum of exponentials keeps nothing of any term but one."""
    for repeat in range(5):
        counts, level, f, fresh = problem(n_categories, 7, rng, size)
        key = KEY + np.uint64(repeat)
        found, turns, n_looks, value = sweep(key, ids(n_categories), counts, level, f, fresh)
        expected = naive.sweep(key, ids(n_categories), counts, level, f, fresh)
        np.testing.assert_allclose(turns, expected[1], rtol=1e-9)
        np.testing.assert_allclose(found, expected[0], rtol=1e-9, atol=1e-9 * size)
        assert n_looks == expected[2]
        after = naive.log_likelihood(counts, level[:, None] + found)
        assert value == pytest.approx(after, rel=1e-10, abs=1e-10)


def test_turns_tell_what_was_done(rng):
    counts, level, f, fresh = problem(4, 6, rng)
    found, turns, *_ = sweep(KEY, ids(4), counts, level, f, fresh)
    np.testing.assert_array_equal(found, turns[:, :1] * f + turns[:, 1:] * fresh)
    np.testing.assert_allclose(np.square(turns).sum(axis=1), 1.0)


@pytest.mark.parametrize("giant", [40.0, 300.0, 900.0, 1e5])
@pytest.mark.parametrize("place", [0, 2])
def test_sum_of_the_others_survives_a_giant(giant, place, rng):
    """A total less the giant leaves nothing; what it leaves decides once the giant has come down."""
    counts, level, f, fresh = problem(3, 5, rng)
    f[place] += giant
    found, _, n_looks, value = sweep(KEY, ids(3), counts, level, f, fresh)
    expected, _, looks = naive.sweep(KEY, ids(3), counts, level, f, fresh)
    assert n_looks == looks
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert value == pytest.approx(naive.log_likelihood(counts, level[:, None] + found), rel=1e-10)


def test_sum_is_exact_after_many_falls(rng):
    """Giants come down one after another: each loses digits of what the next one leaves."""
    level, heights = np.zeros(12), np.linspace(0.0, 60.0, 12)[::-1]
    f = np.repeat(heights[:, None], 4, axis=1)
    anchor, total = np.full(4, 60.0), np.exp(f - 60.0).sum(axis=0)
    for k in range(12):
        softmax_slice._take_out_in_place(level, f, k, anchor, total)
        others = np.delete(f[:, 0], k)
        assert anchor[0] + np.log(total[0]) == pytest.approx(np.logaddexp.reduce(others), rel=1e-13)
        f[k] -= 200.0
        softmax_slice._put_in_in_place(level, f, k, anchor, total)
        whole = np.logaddexp.reduce(f[:, 0])
        assert anchor[0] + np.log(total[0]) == pytest.approx(whole, rel=1e-13)


def test_without_counts_the_first_point_is_taken(rng):
    _, level, f, fresh = problem(4, 6, rng)
    *_, n_looks, value = sweep(KEY, ids(4), np.zeros((4, 6)), level, f, fresh)
    assert (n_looks, value) == (4, 0.0)


def test_inputs_without_counts_do_not_matter(rng):
    counts, level, f, fresh = problem(4, 6, rng)
    some = counts.sum(axis=0) > 0
    whole = sweep(KEY, ids(4), counts, level, f, fresh)
    part = sweep(KEY, ids(4), *(np.ascontiguousarray(a[:, some]) for a in (counts,)), level,
                 *(np.ascontiguousarray(a[:, some]) for a in (f, fresh)))  # fmt: skip
    np.testing.assert_array_equal(whole[1], part[1])


def test_streams_belong_to_key_and_category(rng):
    counts, level, f, fresh = problem(3, 5, rng)
    turns = lambda key, rows: sweep(key, rows, counts, level, f, fresh)[1]
    base = turns(KEY, ids(3))
    np.testing.assert_array_equal(base, turns(KEY, ids(3)))
    other = turns(KEY, ids(4)[[0, 1, 3]])
    np.testing.assert_array_equal(base[:2], other[:2])
    assert (base[2] != other[2]).all()
    assert (base != turns(KEY + np.uint64(1), ids(3))).all()


def test_what_is_not_a_number_is_left_for_the_caller(rng):
    counts, level, f, fresh = problem(3, 5, rng)
    fresh[1, 0] = np.nan
    found, *_ = sweep(KEY, ids(3), counts, level, f, fresh)
    assert np.isnan(found[1, 0])


# the law of two categories at two inputs, against quadrature

COV = np.array([[2.0, 1.2], [1.2, 1.5]])
LEVEL = np.array([0.4, -0.3])
COUNTS = np.array([[5.0, 0.0], [1.0, 3.0]])


def exact_moments():
    """Return the mean of (f_0 - f_1) at both inputs, and its second moments.

    f_0 + f_1 is not touched by the counts: it is independent of the difference, N(0, 2 COV).
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    points = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), -1).reshape(-1, 2)
    gap = points @ np.linalg.cholesky(2 * COV).T
    psi = gap + LEVEL[0] - LEVEL[1]
    log_weight = (COUNTS[0] * log_expit(psi) + COUNTS[1] * log_expit(-psi)).sum(axis=1)
    weight = np.outer(weights, weights).ravel() * np.exp(log_weight)
    return (moments(gap, 0.0) * weight[:, None]).sum(axis=0)[:5] / weight.sum()


def moments(gap, total):
    """Return first and second moments of the difference, and those of the sum."""
    total = np.broadcast_to(total, gap.shape)
    products = lambda a: np.stack([a[:, 0] ** 2, a[:, 0] * a[:, 1], a[:, 1] ** 2], axis=1)
    return np.concatenate([gap, products(gap), total, products(total)], axis=1)


def law_z(step, n_sweeps, rng):
    """Return the z-scores of a long chain's moments."""
    root, f = np.linalg.cholesky(COV), np.zeros((2, 2))
    chain = np.empty((n_sweeps, 2, 2))
    fresh = rng.standard_normal((n_sweeps, 2, 2)) @ root.T
    for i in range(n_sweeps):
        f = step(np.uint64(i), ids(2), COUNTS, LEVEL, f, fresh[i])[0]
        chain[i] = f
    seen = moments(chain[100:, 0] - chain[100:, 1], chain[100:, 0] + chain[100:, 1])
    prior = np.array([0.0, 0.0, 2 * COV[0, 0], 2 * COV[0, 1], 2 * COV[1, 1]])
    expected = np.concatenate([exact_moments(), prior])
    return (seen.mean(axis=0) - expected) / standard_error(seen)


def test_law(rng):
    assert np.abs(law_z(sweep, 2000 if PLAIN else 200_000, rng)).max() < MAX_Z


@pytest.mark.skipif(PLAIN, reason="streams need the compiler: thousands of sweeps")
@pytest.mark.parametrize("wrong", ["forgetful", "narrow"])
def test_law_rejects_a_sabotaged_twin(wrong, rng):
    step = lambda *state: naive.sweep(*state, **{wrong: True})
    assert np.abs(law_z(step, 6000, rng)).max() > MAX_Z


@pytest.mark.skipif(PLAIN, reason="needs the compiler")
def test_one_signature(rng):
    test_turns_tell_what_was_done(rng)
    assert len(softmax_slice.draw_categories_in_place.signatures) == 1
