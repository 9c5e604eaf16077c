"""Particles behind a softmax: as their twin, true to the law, safe where exponentials overflow."""

import itertools

import numba
import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import norm

import naive_particle_gibbs as naive
from polystick.kernels import emission_slice, particle_gibbs, softmax_slice
from statistics_tools import MAX_Z, standard_error, z_scores

PLAIN = bool(numba.config.DISABLE_JIT)
KEY = np.uint64(20140601)


@pytest.fixture
def rng():
    return np.random.default_rng(2014)


def ids(n):
    return np.arange(n, dtype=np.uint64) * np.uint64(13)


def cells(counts):
    """Return what each step shows."""
    offsets = np.concatenate([[0], np.cumsum((counts > 0).sum(axis=1))])
    return offsets, np.nonzero(counts)[1].astype(np.int32), counts[counts > 0].astype(np.int64)


def problem(rng, n_dims=2, n_categories=3, n_steps=6, size=1.0):
    """Return counts with a step of none, the law, the emission and a path."""
    law = 0.4 * rng.normal(size=(n_dims, n_dims)), rng.normal(size=n_dims), np.eye(n_dims) + 0.1
    emission, bias = size * rng.normal(size=(n_categories, n_dims)), rng.normal(size=n_categories)
    counts = rng.multinomial(rng.integers(1, 4, n_steps), np.ones(n_categories) / n_categories)
    counts[n_steps // 2] = 0
    return counts, law, emission, bias, rng.normal(size=(n_steps, n_dims))


def draw(rows, starts, counts, law, emission, bias, path, n=7, key=KEY):
    states = path.copy()
    value = particle_gibbs.draw_paths_in_place(
        key, rows, np.asarray(starts), cells(counts), law, emission, bias, n, states
    )
    return states, value


# exponentials


def test_exponentials_are_exact_to_rounding(rng):
    x = -np.concatenate([rng.exponential(size=500) * 60, [0.0, 1e-300, 0.5, 699.9, 700.0]])
    found = np.array([particle_gibbs.exp_below(value) for value in x])
    np.testing.assert_allclose(found, np.exp(np.maximum(x, -700.0)), rtol=1e-15)
    far = particle_gibbs.exp_below(np.float64(-np.inf))
    assert far == pytest.approx(np.exp(-700.0), rel=1e-15)


@pytest.mark.parametrize("n_categories", [2, 16, 17, 40])
@pytest.mark.parametrize("size", [0.1, 3.0, 1e3])
def test_weights_are_likelihoods(n_categories, size, rng):
    """Over several blocks of categories, up to sizes at which an exponential would overflow."""
    counts, _, emission, bias, _ = problem(rng, 5, n_categories, 4, size)
    particles, out = rng.normal(size=(5, 9)), np.empty(9)
    scratch = np.empty((particle_gibbs.BLOCK, 9)), np.empty(9), np.empty(9)
    log_pi = log_softmax(particles.T @ emission.T + bias, axis=1)
    for t in range(4):
        particle_gibbs._weigh(particles, cells(counts), t, emission, bias, *scratch, out)
        np.testing.assert_allclose(out, log_pi @ counts[t], rtol=1e-11, atol=1e-11 * size)


# paths


@pytest.mark.parametrize("n_dims", [1, 2, 5])
@pytest.mark.parametrize("size", [0.5, 5.0])
def test_paths_equal_those_of_the_twin(n_dims, size, rng):
    for repeat in range(5):
        *given, path = problem(rng, n_dims, 4, size=size)
        key = KEY + np.uint64(repeat)
        found, value = draw(ids(2)[1:], [0, 6], *given, path, key=key)
        expected, log_likelihood = naive.draw_path(key, ids(2)[1], *given, 7, path)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
        assert value == pytest.approx(log_likelihood, rel=1e-10)


def test_one_particle_is_the_path_before(rng):
    *given, path = problem(rng)
    np.testing.assert_array_equal(draw(ids(1), [0, 6], *given, path, n=1)[0], path)


def test_sequences_do_not_touch_each_other(rng):
    counts, *given, path = problem(rng, n_steps=9)
    starts = [0, 4, 4, 5, 9]
    states, value = draw(ids(4), starts, counts, *given, path)
    parts = [
        draw(ids(4)[i : i + 1], [0, b - a], counts[a:b], *given, path[a:b])
        for i, (a, b) in enumerate(itertools.pairwise(starts))
    ]
    np.testing.assert_array_equal(states, np.concatenate([part[0] for part in parts]))
    assert value == pytest.approx(sum(part[1] for part in parts))
    assert (states != draw(ids(4), starts, counts, *given, path, key=KEY + np.uint64(1))[0]).any()


# the law of two steps in one dimension, against quadrature

LAW = np.array([[0.8]]), np.array([0.5]), np.array([[1.5]])
EMISSION, BIAS = np.array([[1.2], [-0.7], [0.2]]), np.array([0.6, -0.4, 0.0])
COUNTS = np.array([[2, 0, 1], [0, 3, 0]])


def quadrature():
    """Return the points, their posterior probabilities and the evidence."""
    grid = np.linspace(-9, 9, 361)
    first, second = np.meshgrid(grid, grid, indexing="ij")
    log_pi = log_softmax(grid[:, None] * EMISSION.T + BIAS, axis=1) @ COUNTS.T
    prior = norm.logpdf(first, 0.5, 1.5) + norm.logpdf(second, 0.8 * first, 1.0)
    weights = np.exp(prior + log_pi[:, 0, None] + log_pi[:, 1]) * (grid[1] - grid[0]) ** 2
    evidence = weights.sum()
    return np.stack([first.ravel(), second.ravel()], axis=1), weights.ravel() / evidence, evidence


def moments(path):
    a, b = path[..., 0], path[..., 1]
    return np.stack([a, b, a * a, a * b, b * b], axis=-1)


def law_z(step, n_sweeps):
    path, chain = np.zeros((2, 1)), np.empty((n_sweeps, 2))
    for i in range(n_sweeps):
        path = step(np.uint64(i), path)
        chain[i] = path[:, 0]
    points, probabilities, _ = quadrature()
    seen = moments(chain[50:])
    return (seen.mean(axis=0) - probabilities @ moments(points)) / standard_error(seen)


@pytest.mark.parametrize("n", [2, 5])
def test_law(n):
    step = lambda key, path: draw(ids(1), [0, 2], COUNTS, LAW, EMISSION, BIAS, path, n, key)[0]
    assert np.abs(law_z(step, 1500 if PLAIN else 60_000)).max() < MAX_Z


@pytest.mark.skipif(PLAIN, reason="thousands of sweeps need the compiler")
@pytest.mark.parametrize("wrong", ["forgets", "by_weight"])
def test_law_rejects_a_sabotaged_twin(wrong):
    def step(key, path):
        given = COUNTS, LAW, EMISSION, BIAS, 2, path
        return naive.draw_path(key, ids(1)[0], *given, **{wrong: True})[0]

    assert np.abs(law_z(step, 6000)).max() > MAX_Z


# the filter


def run_filter(n, n_particles, counts=COUNTS):
    """Filter n copies of one sequence."""
    n_steps = len(counts)
    out = (
        np.empty((n * n_steps, 1, n_particles)),
        np.empty(n * n_steps),
        np.empty((n, 1, n_particles)),
    )
    starts = np.arange(n + 1) * n_steps
    table = cells(np.tile(counts, (n, 1)))
    particle_gibbs.filter_sequences(KEY, ids(n), starts, table, LAW, EMISSION, BIAS, *out)
    return out


def test_filter_estimates_the_evidence_without_bias():
    _, values, _ = run_filter(200 if PLAIN else 20_000, 5)
    estimates = np.exp(values.reshape(-1, 2).sum(axis=1))
    assert abs(z_scores(estimates, quadrature()[2])) < MAX_Z


def test_particles_after_the_last_step_follow_the_filter():
    """Few copies with many particles: their bias is small beside the spread of the copies."""
    _, _, after = run_filter(20 if PLAIN else 100, 200 if PLAIN else 2000)
    points, probabilities, _ = quadrature()
    mean = 0.8 * probabilities @ points[:, 1]
    assert abs(z_scores(after.mean(axis=(1, 2)), mean)) < MAX_Z


def test_steps_without_counts_tell_nothing():
    predicted, values, _ = run_filter(50, 100, np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0]]))
    np.testing.assert_array_equal(values.reshape(-1, 3)[:, [0, 2]], 0.0)
    assert (values.reshape(-1, 3)[:, 1] < 0.0).all()
    spread = predicted.reshape(50, 3, 100)[:, 0]
    assert np.abs(z_scores(spread.ravel(), 0.5)) < MAX_Z
    assert np.abs(z_scores((spread.ravel() - 0.5) ** 2, 1.5**2)) < MAX_Z


# rows of the emission


@pytest.mark.parametrize("size", [0.3, 3.0, 50.0])
def test_rows_of_the_emission_move_as_their_values_would(size, rng):
    """The walk of softmax_slice over values at all steps, from the same streams."""
    n_categories, n_steps = 6, 11
    features, level = rng.normal(size=(3, n_steps)), rng.normal(size=n_categories)
    rows, fresh = size * rng.normal(size=(2, n_categories, 3))
    counts = rng.integers(0, 3, (n_categories, n_steps)) * rng.integers(0, 2, n_steps)
    f, turns = rows @ features, np.empty((n_categories, 2))
    looks, _ = softmax_slice.draw_categories_in_place(
        KEY, ids(n_categories), counts.astype(float), counts.sum(axis=0).astype(float), level, f,
        fresh @ features, turns,
    )  # fmt: skip
    where = np.concatenate([[0], np.cumsum((counts > 0).sum(axis=1))]), np.nonzero(counts)[1]
    found = rows.copy()
    n_looks = emission_slice.draw_rows_in_place(
        KEY, ids(n_categories), (*where, counts[counts > 0].astype(float)),
        counts.sum(axis=0).astype(float), features, level, found, fresh,
    )  # fmt: skip
    assert n_looks == looks
    np.testing.assert_allclose(found, turns[:, :1] * rows + turns[:, 1:] * fresh, rtol=1e-8)


@pytest.mark.skipif(PLAIN, reason="needs the compiler")
def test_one_signature(rng):
    test_sequences_do_not_touch_each_other(rng)
    test_rows_of_the_emission_move_as_their_values_would(1.0, rng)
    assert len(particle_gibbs.draw_paths_in_place.signatures) == 1
    assert len(emission_slice.draw_rows_in_place.signatures) == 1
