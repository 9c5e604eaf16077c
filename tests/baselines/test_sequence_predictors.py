"""What compared models predict, given parameters: against all paths, or a fine grid of states."""

import numba
import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax

import naive_hidden_markov as naive
from polystick.baselines import sequence_predictors
from polystick.baselines.hidden_markov import HiddenMarkov
from polystick.baselines.logistic_normal_dynamics import LogisticNormalDynamics
from polystick.conjugate_dynamics import MatrixNormalInverseWishart
from polystick.keys import Key
from polystick.models.sequence_filter import SHOWS
from statistics_tools import MAX_Z, MIN_P, chi_square_pvalue

PLAIN = bool(numba.config.DISABLE_JIT)


@pytest.fixture
def rng():
    return np.random.default_rng(1989)


# hidden Markov models

MARKOV = HiddenMarkov(3, 4, 1.0, 1.0, 0.7)
COUNTS = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 1, 1]])
TOKENS = np.array([0, -1, 3, 1])


def markov_predictor(rng):
    parameters, *_ = MARKOV.simulate([np.ones(2, int)], rng)
    return parameters, MARKOV.predictor(parameters._asdict())


def given(table, steps, parameters, t):
    """Return p(state_t | the steps), (S,), by a sum over paths."""
    lookups = np.where(steps >= 0, np.arange(len(steps)), -1)
    paths, weights = naive.joint(lookups, table, parameters.initial, parameters.transition)
    law = np.bincount(paths[:, t], weights, minlength=3)
    return law / law.sum()


@pytest.mark.parametrize("sequence", [COUNTS, TOKENS], ids=["counts", "tokens"])
def test_hidden_markov_filter_is_the_sum_over_paths(sequence, rng):
    parameters, predictor = markov_predictor(rng)
    counts = sequence if sequence.ndim == 2 else np.eye(4)[sequence] * (sequence >= 0)[:, None]
    table = np.exp(counts @ np.log(parameters.emission.T))
    (shard,) = MARKOV.shards([sequence])
    found = predictor.filter(shard, Key(1), show=SHOWS)
    bare = predictor.filter(shard, Key(1))
    np.testing.assert_array_equal(found.values, bare.values)
    assert bare.predicted is None
    for t in range(len(sequence)):
        steps = np.arange(t + 1)
        now = given(table, steps, parameters, t)
        np.testing.assert_allclose(found.states[t], now)
        np.testing.assert_allclose(found.spread[t], now * (1 - now))
        np.testing.assert_allclose(found.current[t], now @ parameters.emission)
        before = given(table, np.where(steps < t, steps, -1), parameters, t)
        np.testing.assert_allclose(found.predicted[t], before @ parameters.emission)
        np.testing.assert_allclose(found.values[t], np.log(before @ table[t]), atol=1e-12)


def test_hidden_markov_paths_have_the_law_of_the_chain(rng):
    parameters, predictor = markov_predictor(rng)
    (shard,) = MARKOV.shards([TOKENS, TOKENS[:3]])
    after = predictor.filter(shard, Key(1)).after
    n = 4000
    paths = predictor.forecast(after, 2, Key(1), n)
    assert paths.shape == (n, 2, 2, 4)
    gaps = np.abs(paths[..., None, :] - parameters.emission).max(axis=-1)
    states = gaps.argmin(axis=-1)
    assert gaps.min(axis=-1).max() < 1e-12
    for i in range(2):
        expected = after.law[i][:, None] * parameters.transition
        counts = np.zeros((3, 3))
        np.add.at(counts, (states[:, i, 0], states[:, i, 1]), 1)
        assert chi_square_pvalue(counts, n * expected) > MIN_P
    assert (states[:, 0] != states[:, 1]).any()


def test_forecasts_belong_to_the_row_not_to_the_block(rng):
    _, predictor = markov_predictor(rng)
    sequences = [TOKENS, TOKENS[:3]]
    whole = [predictor.filter(shard, Key(1)).after for shard in MARKOV.shards(sequences)]
    parts = [predictor.filter(shard, Key(1)).after for shard in MARKOV.shards(sequences, size=1)]
    assert (len(whole), len(parts)) == (1, 2)
    expected = predictor.forecast(whole[0], 3, Key(1), 5)
    for i, after in enumerate(parts):
        found = predictor.forecast(after, 3, Key(1), 5)
        np.testing.assert_array_equal(found[:, 0], expected[:, i])


# logistic normal dynamics, in one dimension, by a grid

DYNAMICS = MatrixNormalInverseWishart([[0.7]], [[20.0]], [[14.0]], 20.0)
NORMAL = LogisticNormalDynamics(
    DYNAMICS, np.array([0.5, 0.0, -0.5]), np.array([0.6]), np.array([[0.9]]), 1.0, 0.3
)
ROWS = np.array([[2, 0, 1], [0, 0, 0], [0, 1, 3], [1, 0, 0]])
GRID = np.linspace(-12, 12, 2401)


def grid_filter(parameters, counts):
    """Yield p(z_t | before) and p(z_t | before and x_t) on the grid, and the value of each step."""
    A, sd = parameters.dynamics[0, 0], np.sqrt(parameters.dynamics_cov[0, 0])
    move = stats.norm.pdf(GRID[:, None], A * GRID, sd)
    law = stats.norm.pdf(GRID, 0.6, np.sqrt(0.9))
    psi = GRID[:, None] * parameters.emission[:, 0] + parameters.emission_bias
    log_pi = log_softmax(psi, axis=1)
    for row in counts:
        law = law / law.sum()
        weights = np.exp(log_pi @ row)
        now = law * weights
        yield law, now / now.sum(), np.log(now.sum())
        law = move @ (now / now.sum())


def test_particles_come_to_the_grid(rng, monkeypatch):
    monkeypatch.setattr(sequence_predictors, "NUMBERS_AT_ONCE", 7)  # a block for each step
    parameters, *_ = NORMAL.simulate([np.ones(2, int)], rng)
    predictor = NORMAL.predictor(parameters._asdict())
    (shard,) = NORMAL.shards([ROWS])
    n = 1000 if PLAIN else 20_000
    runs = 6
    found = [predictor.filter(shard, Key(i), show=SHOWS, n_particles=n) for i in range(runs)]
    pi = NORMAL.probabilities(parameters.emission, parameters.emission_bias, GRID[:, None])
    steps = list(grid_filter(parameters, ROWS))
    mean = [now @ GRID for _, now, _ in steps]
    exact = {
        "values": [value for *_, value in steps],
        "predicted": [law @ pi for law, *_ in steps],
        "current": [now @ pi for _, now, _ in steps],
        "states": [[m] for m in mean],
        "spread": [[now @ (GRID - m) ** 2] for m, (_, now, _) in zip(mean, steps)],
    }
    for name, expected in exact.items():
        draws = np.stack([getattr(each, name) for each in found])
        error = np.maximum(draws.std(axis=0, ddof=1) / np.sqrt(runs), 1e-12)
        t = np.abs(draws.mean(axis=0) - expected) / error
        assert stats.t.sf(t.max(), runs - 1) > 1e-5, (name, t)
        assert (error < 0.05).all()


def test_particles_go_on_as_the_chain_does(rng):
    parameters, *_ = NORMAL.simulate([np.ones(2, int)], rng)
    predictor = NORMAL.predictor(parameters._asdict())
    (shard,) = NORMAL.shards([ROWS])
    n = 1000 if PLAIN else 20_000
    after = predictor.filter(shard, Key(3), n_particles=n).after
    paths = predictor.forecast(after, 2, Key(3), n)
    assert paths.shape == (n, 1, 2, 3)
    gaps = np.vstack([ROWS, np.zeros((2, 3), int)])
    pi = NORMAL.probabilities(parameters.emission, parameters.emission_bias, GRID[:, None])
    for s, (law, *_) in enumerate(list(grid_filter(parameters, gaps))[-2:]):
        mean, squares = law @ pi, law @ np.square(pi)
        spread = np.sqrt(squares - np.square(mean))
        # particles share ancestors: as if they were fewer
        assert (np.abs(paths[:, 0, s].mean(axis=0) - mean) / spread).max() < MAX_Z * 3 / np.sqrt(n)
        np.testing.assert_allclose(paths[:, 0, s].std(axis=0), spread, rtol=0.1)
    some = predictor.forecast(after, 2, Key(3), 3 * n)
    assert some.shape == (3 * n, 1, 2, 3)
