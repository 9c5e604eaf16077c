"""States behind whole sequences: the likeliest path and the probabilities of each, against all paths."""

import numba
import numpy as np
import pandas as pd
import pytest

import naive_hidden_markov as naive
from polystick import Gibbs
from polystick.baselines.hidden_markov import HiddenMarkov, Parameters
from polystick.baselines.sequence_models import MultinomialHMM
from polystick.keys import Key

PLAIN = bool(numba.config.DISABLE_JIT)
MODEL = HiddenMarkov(3, 4, 1.0, 1.0, 0.7)
COUNTS = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 1, 1], [0, 0, 0, 2], [5, 0, 0, 0]])
TOKENS = np.array([0, -1, 3, 1, 1, 2])


@pytest.fixture
def rng():
    return np.random.default_rng(1967)


def all_paths(sequence, parameters):
    """Return all paths and the weight of each together with the sequence."""
    counts = sequence if sequence.ndim == 2 else np.eye(4)[sequence] * (sequence >= 0)[:, None]
    table = np.prod(parameters.emission[None] ** counts[:, None], axis=2)
    return naive.joint(np.arange(len(sequence)), table, parameters.initial, parameters.transition)


@pytest.mark.parametrize("sequences", [[TOKENS], [COUNTS], [TOKENS[:1], TOKENS, TOKENS[3:]]])
def test_the_likeliest_path_is_that_of_brute_force(sequences, rng):
    for _ in range(10):
        parameters, *_ = MODEL.simulate([np.ones(2, int)], rng)
        (shard,) = MODEL.shards(sequences)
        states, values = MODEL.likeliest_paths(parameters, shard)
        found = np.split(states, shard.starts[1:-1])
        for sequence, path, value in zip(sequences, found, values):
            paths, weights = all_paths(sequence, parameters)
            np.testing.assert_array_equal(path, paths[weights.argmax()])
            np.testing.assert_allclose(value, np.log(weights.max()))


def test_a_path_takes_no_step_that_cannot_be(rng):
    """Logarithms of zeros: a chain that only goes up."""
    transition = np.triu(np.ones((3, 3))) / np.array([[3], [2], [1]])
    emission = np.array([[1.0, 0, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.1, 0.9]])
    parameters = Parameters(np.array([0.5, 0.5, 0.0]), transition, emission)
    for tokens, expected in (([0, 2, 2, 3], [0, 1, 1, 2]), ([1, -1, 3, 2], [1, 2, 2, 2])):
        (shard,) = MODEL.shards([np.array(tokens)])
        states, values = MODEL.likeliest_paths(parameters, shard)
        paths, weights = all_paths(np.array(tokens), parameters)
        assert np.log(weights.max()) == pytest.approx(values[0])
        assert weights[(paths == states).all(axis=1)] == pytest.approx(weights.max())
        assert list(states) == expected
    (shard,) = MODEL.shards([np.array([3, 0])])
    assert MODEL.likeliest_paths(parameters, shard)[1] == [-np.inf]


@pytest.mark.parametrize("sequence", [TOKENS, COUNTS], ids=["tokens", "counts"])
def test_states_given_all_are_sums_over_paths(sequence, rng):
    parameters, *_ = MODEL.simulate([np.ones(2, int)], rng)
    sequences = [sequence[2:], sequence]
    (shard,) = MODEL.shards(sequences)
    smoothed = MODEL.smooth(MODEL.prepare(parameters), shard)
    for each, found in zip(sequences, np.split(smoothed, shard.starts[1:-1])):
        paths, weights = all_paths(each, parameters)
        for t in range(len(each)):
            law = np.bincount(paths[:, t], weights, minlength=3) / weights.sum()
            np.testing.assert_allclose(found[t], law)


def test_states_given_all_are_the_mean_of_those_drawn(rng):
    """The sweep and the smoother look at one law: also where states of a sequence are many."""
    parameters, *_ = MODEL.simulate([np.ones(2, int)], rng)
    tokens, prior = [rng.integers(4, size=20)], MODEL.prepare(parameters)
    (shard,) = MODEL.shards(tokens)
    rows = MODEL.initial_rows(prior, shard, Key(0))
    n = 300
    drawn = [MODEL.draw_rows(prior, shard, rows, Key(i))[0].states for i in range(n)]
    law = MODEL.smooth(prior, shard)
    error = np.sqrt(np.maximum(law * (1 - law), 1e-3) / n)
    gap = np.mean(np.eye(3)[np.stack(drawn)], axis=0) - law
    assert np.abs(gap / error).max() < 5


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(3)
    states = np.arange(200) // 20 % 2
    tokens = np.where(rng.random(200) < 0.9, 3 * states, rng.integers(4, size=200))
    n = 5 if PLAIN else 60
    model = MultinomialHMM(2, inference=Gibbs(n, n, n_chains=2), random_state=0, n_jobs=1)
    return model.fit(tokens), states, tokens


def test_a_face_decodes_and_smooths(fitted):
    model, states, tokens = fitted
    (path,), (smooth,), (law,) = model.decode(), model.smooth(), model.state_probabilities()
    assert isinstance(path.log_probability, float)
    np.testing.assert_array_equal(path.states, model.decode(tokens)[0].states)
    np.testing.assert_array_equal(law, smooth.states)
    np.testing.assert_allclose(law.sum(axis=1), 1.0)
    np.testing.assert_allclose(smooth.probabilities.sum(axis=1), 1.0)
    assert (smooth.lower <= smooth.upper).all()
    if not PLAIN:
        same = max(np.mean(path.states == states), np.mean(path.states == 1 - states))
        assert same > 0.95
        assert np.mean(law.argmax(axis=1) == path.states) > 0.95
        assert (
            law.max(axis=1).mean() > 0.9
        )  # chains have names of their own, which are made to agree


def test_paths_have_the_index_of_their_sequence(fitted):
    model, *_ = fitted
    days = pd.date_range("2026-01-01", periods=6, name="day")
    counts = pd.DataFrame(np.eye(4, dtype=int)[[0, 0, 3, 3, 0, 1]], index=days)
    for found in (model.decode([counts, [0, 1]]), model.smooth([counts, [0, 1]])):
        pd.testing.assert_index_equal(found[0].index, days)
        assert found[1].index is None
    with pytest.raises(ValueError, match="level must be a probability"):
        model.smooth(level=2)
