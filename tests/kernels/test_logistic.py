"""Logistic-normal rows: the site-by-site sweep leaves the posterior alone, the climb reaches the top."""

import numba
import numpy as np
import pytest
from scipy import optimize

import naive_logistic as naive
from polystick.kernels import logistic
from statistics_tools import MAX_Z, z_scores

JIT = not numba.config.DISABLE_JIT
KEY = np.uint64(20130711)
needs_jit = pytest.mark.skipif(not JIT, reason="needs the compiler: a million draws, IEEE's NaN")


@pytest.fixture
def rng():
    return np.random.default_rng(2013)


def ids(n):
    return np.arange(n, dtype=np.uint64) * np.uint64(7)


def law(n_topics, rng):
    """Return a precision and a mean; neighbours are correlated."""
    roots = rng.normal(size=(n_topics, n_topics + 4))
    precision = np.linalg.inv(roots @ roots.T / n_topics)
    return np.ascontiguousarray(0.5 * (precision + precision.T)), rng.normal(size=n_topics)


def documents(n, precision, mean, rng, n_tokens=20):
    """Return psi (n, T) of the law and counts; the middle row is empty."""
    psi = rng.multivariate_normal(mean, np.linalg.inv(precision), size=n)
    totals = rng.integers(0, 2 * n_tokens, n)
    totals[n // 2] = 0
    return psi, draw_counts(psi, totals, rng)


def draw_counts(psi, totals, rng):
    pi = np.exp(psi - psi.max(axis=1, keepdims=True))
    return rng.multinomial(totals, pi / pi.sum(axis=1, keepdims=True))


def sweep(key, rows, counts, precision, mean, psi):
    psi, means = psi.copy(), np.tile(mean, (len(psi), 1))
    logistic.draw_logistic_rows_in_place(key, rows, counts, precision, means, psi)
    return psi


# the sweep


@pytest.mark.parametrize("n_topics", [2, 3, 9])
@pytest.mark.parametrize("size", [1.0, 40.0, 1e3, 1e6])
def test_sweep_equals_its_twin(n_topics, size, rng):
    """Up to sizes at which a sum of exponentials keeps nothing of any term but one."""
    precision, mean = law(n_topics, rng)
    psi, counts = documents(12, precision, mean, rng)
    psi *= size
    drawn = sweep(KEY, ids(12), counts, precision, mean, psi)
    for row, one, before, after in zip(ids(12), counts, psi, drawn):
        expected = naive.sweep_row(KEY, row, one, precision, mean, before)
        np.testing.assert_allclose(after, expected, rtol=1e-10, atol=1e-12 * size)


@pytest.mark.parametrize("spike", [[0, 0, 60], [60, 0, 0], [0, 900, -900], [-800, -800, 0]])
def test_sum_of_the_others_survives_a_giant(spike):
    """A total less the giant leaves nothing, and with it a logit of infinity."""
    psi = np.array([spike], dtype=float)
    for t in range(3):
        expected = np.logaddexp.reduce(np.delete(psi[0], t))
        assert logistic.log_sum_of_others(psi, 0, t) == pytest.approx(expected, rel=1e-14)
    counts = np.array([[4, 3, 2]])
    drawn = sweep(KEY, ids(1), counts, np.eye(3), np.zeros(3), psi)
    expected = naive.sweep_row(KEY, ids(1)[0], counts[0], np.eye(3), np.zeros(3), psi[0])
    np.testing.assert_allclose(drawn[0], expected, rtol=1e-10)


def test_a_row_draws_the_same_in_any_company(rng):
    precision, mean = law(5, rng)
    psi, counts = documents(9, precision, mean, rng)
    together = sweep(KEY, ids(9), counts, precision, mean, psi)
    some = np.array([7, 2])
    apart = sweep(KEY, ids(9)[some], counts[some], precision, mean, psi[some])
    np.testing.assert_array_equal(apart, together[some])


def joint_z(step, rng, n, n_sweeps, n_tokens=10):
    """Geweke over independent documents: start from the law, sweep, draw new counts; stay in the law."""
    cov = np.array([[3.0, 1.2, -0.6], [1.2, 3.0, 0.0], [-0.6, 0.0, 3.0]])
    precision, mean, totals = np.linalg.inv(cov), np.zeros(3), np.full(n, n_tokens)

    def fresh():
        psi = rng.multivariate_normal(mean, cov, size=n)
        return psi, draw_counts(psi, totals, rng)

    def moments(psi, counts):
        both = np.concatenate([psi, counts / n_tokens], axis=1)
        i, j = np.triu_indices(both.shape[1])
        return np.concatenate([both, both[:, i] * both[:, j]], axis=1)

    psi, counts = fresh()
    for i in range(n_sweeps):
        psi = step(i, counts, precision, mean, psi)
        counts = draw_counts(psi, totals, rng)
    right = moments(*fresh())
    error = right.std(axis=0) / np.sqrt(n)
    return z_scores(moments(psi, counts), right.mean(axis=0), error)


@needs_jit
def test_geweke(rng):
    step = lambda i, *state: sweep(np.uint64(i), ids(100_000), *state)
    assert np.abs(joint_z(step, rng, 100_000, 25)).max() < MAX_Z


@needs_jit
def test_geweke_rejects_stale_omega(rng):
    """All omega before the scan: variances of psi grow by 7 %, covariances shift (K = 3, N = 10)."""
    twin = lambda i, *state, stale: naive.sweep_rows(*state, rng, stale=stale)
    stale = joint_z(lambda *state: twin(*state, stale=True), rng, 40_000, 10)
    right = joint_z(lambda *state: twin(*state, stale=False), rng, 40_000, 10)
    assert np.abs(stale).max() > 2 * MAX_Z
    assert np.abs(right).max() < MAX_Z


def test_documents_without_words_follow_the_prior(rng):
    n = 20_000 if JIT else 300
    precision, mean = law(4, rng)
    cov = np.linalg.inv(precision)
    psi = rng.multivariate_normal(mean, cov, size=n)
    counts = np.zeros((n, 4), dtype=np.int64)
    for i in range(8):
        psi = sweep(np.uint64(i), ids(n), counts, precision, mean, psi)
    centred = psi - mean
    second = (centred[:, :, None] * centred[:, None, :]).reshape(n, -1)
    assert np.abs(z_scores(psi, mean)).max() < MAX_Z
    assert np.abs(z_scores(second, cov.ravel())).max() < MAX_Z


def test_documents_without_words_leave_a_bad_start(rng):
    precision, mean = np.linalg.inv(0.5 * np.eye(3) + 0.5), np.array([1.0, 0.0, -1.0])
    psi = np.tile(mean + 50.0, (300, 1))
    for i in range(30):
        psi = sweep(np.uint64(i), ids(300), np.zeros((300, 3), np.int64), precision, mean, psi)
    assert np.abs(z_scores(psi, mean)).max() < MAX_Z


# the climb


def fit(counts, precision, mean, location, variance, n_steps=100, tolerance=1e-13):
    location, variance = location.copy(), variance.copy()
    counts = counts.astype(np.float64)
    logistic.fit_logistic_rows_in_place(
        counts, precision, mean, location, variance, n_steps, tolerance
    )
    return location, variance


def bounds(counts, precision, mean, location, variance):
    out = np.empty(len(counts))
    totals = counts.sum(axis=1).astype(np.float64)
    logistic.bound_logistic_rows(totals, precision, mean, location, variance, out)
    return out + (counts * location).sum(axis=1) + 0.5 * np.linalg.slogdet(precision)[1]


def starts(n, n_topics, rng, size=1.0):
    return size * rng.normal(size=(n, n_topics)), np.exp(size * rng.normal(size=(n, n_topics)))


def test_bound_equals_its_terms(rng):
    precision, mean = law(5, rng)
    _, counts = documents(7, precision, mean, rng)
    location, variance = starts(7, 5, rng)
    found = bounds(counts, precision, mean, location, variance)
    rows = zip(counts, location, variance)
    expected = [naive.bound(one, precision, mean, m, v) for one, m, v in rows]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_best_zeta_is_in_place(rng):
    precision, mean = law(3, rng)
    location, variance = (part[0] for part in starts(1, 3, rng))
    best = np.exp(location + variance / 2).sum()
    value = lambda zeta: naive.bound(np.array([3, 1, 2]), precision, mean, location, variance, zeta)
    assert value(best) > max(value(0.99 * best), value(1.01 * best))
    assert value(best) == naive.bound(np.array([3, 1, 2]), precision, mean, location, variance)


@pytest.mark.parametrize("n_tokens", [5, 100, 20_000])
def test_gradient_is_zero_at_the_top(n_tokens, rng):
    precision, mean = law(4, rng)
    _, counts = documents(5, precision, mean, rng, n_tokens)
    location, variance = fit(counts, precision, mean, *starts(5, 4, rng))
    for one, m, v in zip(counts, location, variance):
        value = lambda x, one=one: naive.bound(one, precision, mean, x[:4], np.exp(x[4:]))
        top = np.concatenate([m, np.log(v)])
        step = 1e-5
        for unit in np.eye(8):
            up, down = value(top + step * unit), value(top - step * unit)
            curvature = (2 * value(top) - up - down) / step**2
            assert curvature > 0
            assert abs(up - down) / (2 * step) < 1e-3 * np.sqrt(curvature)


def test_no_other_optimiser_gets_higher(rng):
    precision, mean = law(3, rng)
    _, counts = documents(5, precision, mean, rng)
    location, variance = fit(counts, precision, mean, *starts(5, 3, rng))
    reached = bounds(counts, precision, mean, location, variance)
    for one, value in zip(counts, reached):
        negative = lambda x, one=one: -naive.bound(one, precision, mean, x[:3], np.exp(x[3:]))
        found = optimize.minimize(negative, np.zeros(6), method="BFGS", options={"gtol": 1e-8})
        assert value == pytest.approx(-found.fun, abs=1e-6)


@pytest.mark.parametrize("size", [1.0, 6.0])
def test_bound_never_falls(size, rng):
    """From wild starts too: a full step of Newton's would overshoot."""
    n, n_topics = (200, 8) if JIT else (10, 3)
    precision, mean = law(n_topics, rng)
    _, counts = documents(n, precision, mean, rng, 300)
    state = starts(n, n_topics, rng, size)
    trace = [bounds(counts, precision, mean, *state)]
    for _ in range(30):
        state = fit(counts, precision, mean, *state, n_steps=1)
        trace.append(bounds(counts, precision, mean, *state))
    trace = np.array(trace)
    assert (np.diff(trace, axis=0) >= -1e-12 * np.abs(trace[1:])).all()
    top = bounds(counts, precision, mean, *fit(counts, precision, mean, *state, n_steps=1000))
    np.testing.assert_allclose(trace[-1], top, rtol=1e-9)


def test_without_words_the_climb_ends_at_the_prior(rng):
    precision, mean = law(4, rng)
    counts = np.zeros((2, 4))
    location, variance = fit(counts, precision, mean, *starts(2, 4, rng))
    np.testing.assert_allclose(location, np.tile(mean, (2, 1)), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(variance, np.tile(1 / np.diag(precision), (2, 1)), rtol=1e-6)


@needs_jit
def test_a_bad_precision_leaves_nan(rng):
    precision = np.diag([1.0, -1.0, 1.0])
    location, _ = fit(np.zeros((1, 3)), precision, np.zeros(3), *starts(1, 3, rng))
    assert np.isnan(location).all()


@needs_jit
def test_one_signature_each(rng):
    test_a_row_draws_the_same_in_any_company(rng)
    test_bound_equals_its_terms(rng)
    test_a_bad_precision_leaves_nan(rng)
    for compiled in (
        logistic.draw_logistic_rows_in_place,
        logistic.fit_logistic_rows_in_place,
        logistic.bound_logistic_rows,
    ):
        assert len(compiled.signatures) == 1
