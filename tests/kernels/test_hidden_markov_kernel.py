"""Hidden Markov chains: filters are exact, paths have their law, nothing underflows."""

import numba
import numpy as np
import pytest

import naive_hidden_markov as naive
from polystick.kernels import hidden_markov
from polystick.kernels.hidden_markov import LEAST
from statistics_tools import MIN_P, chi_square_pvalue

PLAIN = bool(numba.config.DISABLE_JIT)
KEY = np.uint64(19700101)
LOOKUPS = np.array([1, -1, 0, 2, 2])


@pytest.fixture
def rng():
    return np.random.default_rng(1970)


def ids(n):
    return np.arange(n, dtype=np.uint64) * np.uint64(7)


def law(rng, n_states=3, n_rows=4):
    """Return a table of weights, the initial law and the transitions."""
    table = rng.uniform(0.05, 1.0, (n_rows, n_states))
    return table, rng.dirichlet(np.ones(n_states)), rng.dirichlet(np.ones(n_states), n_states)


def draw(rows, starts, lookups, table, initial, transition, key=KEY):
    states = np.full(len(lookups), -1, dtype=np.int32)
    value = hidden_markov.draw_states(
        key, rows, np.asarray(starts), lookups, table, initial, transition, states
    )
    return states, value


def run_filter(starts, lookups, table, initial, transition):
    n, size = len(starts) - 1, len(initial)
    out = np.empty((len(lookups), size)), np.empty(len(lookups)), np.empty((n, size))
    hidden_markov.filter_sequences(np.asarray(starts), lookups, table, initial, transition, *out)
    return out


@pytest.mark.parametrize("n_states", [1, 2, 3, 4])
def test_filter_equals_the_sum_over_paths(n_states, rng):
    table, initial, transition = law(rng, n_states)
    predicted, values, after = run_filter([0, 5], LOOKUPS, table, initial, transition)
    total = 1.0
    for t in range(len(LOOKUPS) + 1):
        seen = np.append(LOOKUPS[:t], -1)
        paths, weights = naive.joint(seen, table, initial, transition)
        expected = np.bincount(paths[:, t], weights, n_states) / weights.sum()
        np.testing.assert_allclose([*predicted, after[0]][t], expected, rtol=1e-12)
        if t > 0:
            assert values[t - 1] == pytest.approx(np.log(weights.sum() / total), abs=1e-12)
        total = weights.sum()
    _, value = draw(ids(1), [0, 5], LOOKUPS, table, initial, transition)
    assert value == pytest.approx(values.sum(), rel=1e-12)


def path_pvalue(lookups, given, drawn_with, n=20_000):
    """Return the p-value of drawn paths against the sum over all."""
    paths, weights = naive.joint(lookups, *given)
    starts = np.arange(n + 1) * len(lookups)
    states, _ = draw(ids(n), starts, np.tile(lookups, n), *drawn_with)
    place = len(given[1]) ** np.arange(len(lookups))[::-1]
    found = np.bincount(states.reshape(n, -1) @ place, minlength=len(paths))
    np.testing.assert_array_equal(paths @ place, np.arange(len(paths)))
    return chi_square_pvalue(found, n * weights / weights.sum())


@pytest.mark.parametrize("n_states", [2, 3])
def test_paths_have_their_law(n_states, rng):
    given = law(rng, n_states)
    n = 2000 if PLAIN else 100_000
    assert path_pvalue(np.array([1, -1, 0, 2]), given, given, n) > MIN_P


@pytest.mark.skipif(PLAIN, reason="so many paths need the compiler")
def test_paths_of_another_law_are_noticed(rng):
    table, initial, transition = law(rng)
    n = 100_000
    for wrong in (
        (table, initial, np.ascontiguousarray(transition.T)),
        (table, np.ones(3) / 3, transition),
        (np.ones_like(table), initial, transition),
    ):
        assert path_pvalue(np.array([1, -1, 0, 2]), (table, initial, transition), wrong, n) < MIN_P


def test_sequences_do_not_touch_each_other(rng):
    """Ragged, empty and short ones: the bits of each are its own, wherever it stands."""
    given, lengths = law(rng), [4, 0, 1, 30, 0]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    lookups = rng.integers(-1, 4, starts[-1])
    states, value = draw(ids(5), starts, lookups, *given)
    parts = [
        draw(ids(5)[i : i + 1], [0, lengths[i]], lookups[starts[i] : starts[i + 1]], *given)
        for i in range(5)
    ]
    np.testing.assert_array_equal(states, np.concatenate([part[0] for part in parts]))
    assert value == pytest.approx(sum(part[1] for part in parts))
    other, _ = draw(ids(5), starts, lookups, *given, key=KEY + np.uint64(1))
    assert (states != other).any()
    predicted, values, after = run_filter(starts, lookups, *given)
    np.testing.assert_array_equal(after[[1, 4]], [given[1]] * 2)
    np.testing.assert_array_equal(predicted[starts[3]], given[1])
    assert values.sum() == pytest.approx(value)
    assert (values[lookups < 0] == 0.0).all()


def test_what_is_nearly_impossible_does_not_underflow(rng):
    """Every step asks for another state, and transitions forbid to leave."""
    n = 300 if PLAIN else 3000
    table = np.array([[1.0, LEAST], [LEAST, 1.0]])
    transition = np.array([[1.0, LEAST], [LEAST, 1.0]])
    lookups, initial = np.arange(n) % 2, np.array([1.0, LEAST])
    states, value = draw(ids(1), [0, n], lookups, table, initial, transition)
    expected = naive.log_evidence(lookups, table, initial, transition)
    assert value == pytest.approx(expected, rel=1e-12)
    assert ((states >= 0) & (states < 2)).all()
    _, values, _ = run_filter([0, n], lookups, table, initial, transition)
    assert values.sum() == pytest.approx(expected, rel=1e-12)


def test_counts_are_those_of_the_paths(rng):
    starts, n_steps = np.array([0, 5, 5, 6, 40]), 40
    states = rng.integers(0, 3, n_steps).astype(np.int32)
    initial, transitions = np.zeros(3, np.int64), np.zeros((3, 3), np.int64)
    hidden_markov.count_states(starts, states, initial, transitions)
    np.testing.assert_array_equal(initial, np.bincount(states[[0, 5, 6]], minlength=3))
    expected = np.zeros((3, 3), int)
    for t in sorted(set(range(1, n_steps)) - {5, 6}):
        expected[states[t - 1], states[t]] += 1
    np.testing.assert_array_equal(transitions, expected)
    counts = rng.integers(0, 3, (n_steps, 4))
    offsets = np.concatenate([[0], np.cumsum((counts > 0).sum(axis=1))])
    categories, emissions = np.nonzero(counts)[1].astype(np.int32), np.zeros((3, 4), np.int64)
    hidden_markov.count_emissions(offsets, categories, counts[counts > 0], states, emissions)
    np.testing.assert_array_equal(emissions, np.eye(3, dtype=int)[states].T @ counts)


def test_weights_of_counts_are_likelihoods(rng):
    counts = np.array([[2, 0, 1], [0, 0, 0], [0, 9, 0], [10**6, 0, 3]])
    emission = rng.dirichlet(np.ones(3), 2)
    offsets = np.concatenate([[0], np.cumsum((counts > 0).sum(axis=1))])
    categories, weights, tops = np.nonzero(counts)[1].astype(np.int32), np.ones((4, 2)), np.ones(4)
    hidden_markov.weigh_counts(
        offsets, categories, counts[counts > 0], np.log(emission.T).copy(), weights, tops
    )
    expected = counts @ np.log(emission.T)
    np.testing.assert_allclose(tops, expected.max(axis=1), rtol=1e-12)
    np.testing.assert_allclose(
        weights, np.maximum(np.exp(expected - tops[:, None]), LEAST), rtol=1e-9
    )
    assert weights.min() == LEAST


@pytest.mark.skipif(PLAIN, reason="needs the compiler")
def test_one_signature(rng):
    test_sequences_do_not_touch_each_other(rng)
    assert len(hidden_markov.draw_states.signatures) == 1
    assert len(hidden_markov.filter_sequences.signatures) == 1
