"""Categories of all rows with their part of a factor law: as their twin, true to the law, bounded."""

import numba
import numpy as np
import pytest

import naive_softmax_rows as naive
from polystick.kernels import softmax_columns
from statistics_tools import MAX_Z, standard_error

JIT = not numba.config.DISABLE_JIT
KEY, SCALE = np.uint64(20150618), 2.0


@pytest.fixture
def rng():
    return np.random.default_rng(2015)


def problem(n, k, h, rng, totals=None, size=1.0):
    """Return counts, factors, prior, weights, noise and psi; the second row has no counts."""
    precision = rng.gamma(1.0, size=(k, 1 + h)) + 0.1
    centre = np.zeros((k, 1 + h))
    centre[:, 0] = rng.normal(size=k)
    weights = centre + rng.normal(size=(k, 1 + h)) / np.sqrt(precision)
    factors = np.column_stack([np.ones(n), rng.normal(size=(n, h))])
    noise = np.exp(rng.normal(size=k))
    psi = size * (factors @ weights.T + np.sqrt(noise) * rng.normal(size=(n, k)))
    p = np.exp(psi - psi.max(axis=1, keepdims=True))
    totals = rng.integers(1, 300, n) if totals is None else np.full(n, totals)
    totals[1] = 0
    counts = rng.multinomial(totals, p / p.sum(axis=1, keepdims=True))
    return counts, factors, (centre, precision), weights, noise, psi


def move(counts, factors, prior, weights, noise, psi, chosen=None, key=KEY):
    moved = weights.copy(), noise.copy(), psi.copy()
    chosen = np.arange(psi.shape[1]) if chosen is None else np.asarray(chosen)
    softmax_columns.move_in_place(
        key, chosen, counts, counts.sum(axis=1), factors, SCALE, prior, *moved
    )
    return moved


def widths(told, along, bend):
    """Return first widths as the kernel takes them."""
    if bend is None:
        return softmax_columns.SCALE_WIDTH
    return softmax_columns.WIDTH / np.sqrt(bend + np.sum(told * along**2))


def twin(counts, factors, prior, *state, chosen=None, key=KEY):
    n_looks = 0
    for k in range(counts.shape[1]) if chosen is None else chosen:
        *state, looks = naive.move_category(
            key, k, counts, factors, SCALE, prior, *state, widths, softmax_columns.MOST_OUT
        )
        n_looks = max(n_looks, looks)
    return state, n_looks


def assert_as_the_twin(counts, factors, prior, *state, **options):
    expected, n_looks = twin(counts, factors, prior, *state, **options)
    for found, right in zip(move(counts, factors, prior, *state, **options), expected):
        scale = max(1.0, np.abs(right).max())
        np.testing.assert_allclose(found, right, rtol=1e-8, atol=1e-9 * scale)
    return n_looks


@pytest.mark.parametrize("shape", [(7, 2, 1), (12, 5, 2), (30, 4, 4)])
@pytest.mark.parametrize("totals", [None, 1, 10**6])
def test_categories_equal_their_twin(shape, totals, rng):
    for repeat in range(3):
        n_looks = assert_as_the_twin(*problem(*shape, rng, totals), key=KEY + np.uint64(repeat))
        assert n_looks < 2 * (softmax_columns.MOST_OUT + 40)


@pytest.mark.parametrize("gap", [-800.0, 30.0, 800.0])
def test_a_giant_leaves_the_others_told(gap, rng):
    """The sum of the others is below the rounding of the whole; counts bring the giant down."""
    counts, factors, prior, weights, noise, psi = problem(8, 5, 2, rng)
    psi[:, 1] += gap
    weights[1, 0] += gap
    assert_as_the_twin(counts, factors, prior, weights, noise, psi)
    assert_as_the_twin(counts, factors, prior, weights, noise, 20.0 * psi)


def test_only_chosen_categories_move(rng):
    case = problem(9, 5, 2, rng)
    weights, noise, psi = move(*case, chosen=[3, 1])
    held = [0, 2, 4]
    for new, old in zip((weights, noise, psi.T), (*case[3:5], case[5].T)):
        np.testing.assert_array_equal(new[held], old[held])
        assert (new[[1, 3]] != old[[1, 3]]).all()
    assert_as_the_twin(*case, chosen=[3, 1])


def test_the_noise_in_its_units_and_the_factors_are_held(rng):
    """What moves is the law; rows follow it."""
    counts, factors, prior, weights, noise, psi = problem(9, 4, 2, rng)
    after = move(counts, factors, prior, weights, noise, psi)
    units = lambda w, v, x: (x - factors @ w.T) / np.sqrt(v)
    np.testing.assert_allclose(units(*after), units(weights, noise, psi), rtol=1e-9, atol=1e-10)


# without counts: the law of noise and weights themselves


def chain_without_counts(n_sweeps, step, rng):
    counts, factors, prior, *state = problem(3, 2, 1, rng)
    prior[1][:, 0] = 0.01  # a mean that is hardly known: slices meet their limits
    nothing, seen = np.zeros_like(counts), []
    for sweep in range(n_sweeps):
        state = step(nothing, factors, prior, *state, key=np.uint64(sweep))
        white = (state[0] - prior[0]) * np.sqrt(prior[1])
        sure = np.arctan(np.sqrt(state[1]) / SCALE) * 2 / np.pi  # half-Cauchy: uniform
        seen.append([*np.tanh(white).ravel(), *np.tanh(white).ravel() ** 2, *sure, *sure**2])
    return np.array(seen)


def exact_without_counts():
    grid = np.linspace(-12, 12, 200_001)
    weight = np.exp(-0.5 * grid**2)
    square = np.sum(weight * np.tanh(grid) ** 2) / weight.sum()
    return np.array([0.0] * 4 + [square] * 4 + [0.5] * 2 + [1 / 3] * 2)


def z_without_counts(n_sweeps, step, rng):
    seen = chain_without_counts(n_sweeps, step, rng)
    return (seen.mean(axis=0) - exact_without_counts()) / standard_error(seen)


@pytest.mark.skipif(not JIT, reason="thousands of sweeps need the compiler")
def test_without_counts_the_law_is_kept(rng):
    z = z_without_counts(50_000, move, rng)
    assert np.abs(z).max() < MAX_Z, z


def pulled(counts, factors, prior, weights, noise, psi, key):
    """Sabotage: weights are pulled towards their centre before they move."""
    wrong = weights + 0.3 * (prior[0] - weights)
    return move(counts, factors, prior, wrong, noise, psi, key=key)


@pytest.mark.skipif(not JIT, reason="thousands of sweeps need the compiler")
def test_a_sabotaged_move_loses_the_law(rng):
    assert np.abs(z_without_counts(10_000, pulled, rng)).max() > MAX_Z


@pytest.mark.skipif(not JIT, reason="needs the compiler")
def test_one_signature(rng):
    move(*problem(3, 2, 1, rng))
    assert len(softmax_columns.move_in_place.signatures) == 1
