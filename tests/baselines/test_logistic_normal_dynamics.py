"""Dynamics behind a softmax: particle Gibbs is right, and would be caught if not."""

from dataclasses import dataclass, replace
from functools import partial

import numba
import numpy as np
import pytest
from scipy import stats

import naive_particle_gibbs as naive
from joint import Law, first_and_second
from polystick.baselines.logistic_normal_dynamics import LogisticNormalDynamics, Rows, Statistics
from polystick.conjugate_dynamics import MatrixNormalInverseWishart
from polystick.inference.execution import Threads
from polystick.inference.gibbs import Gibbs
from polystick.keys import Key
from polystick.models.chain_sums import PairSums, added
from statistics_tools import MAX_Z

PLAIN = bool(numba.config.DISABLE_JIT)
needs_jit = pytest.mark.skipif(PLAIN, reason="thousands of sweeps need the compiler")
DYNAMICS = MatrixNormalInverseWishart([[0.4]], [[20.0]], [[14.0]], 20.0)
LEVEL = np.array([0.8, 0.0, -0.8])
SETTINGS = (DYNAMICS, LEVEL, np.array([0.7]), np.array([[0.8]]), 1.0, 0.3, 4)
MODEL = LogisticNormalDynamics(*SETTINGS)
TOTALS = [np.array([5, 0, 8]), np.array([4])]


@pytest.fixture
def rng():
    return np.random.default_rng(2014)


# the sweep against the law


def sweep(model, everything, i, rng):
    parameters, rows, counts = everything
    key, prior = Key(11, i), model.prepare(parameters)
    states = np.split(rows.states, [3])
    shards = model.shards(counts, size=1)
    parts = [model.draw_rows(prior, s, Rows(z), key) for s, z in zip(shards, states)]
    parameters = model.draw_parameters(parameters, added(parts[0][1], parts[1][1]), key)
    rows = Rows(np.concatenate([part[0].states for part in parts]))
    return parameters, rows, model.simulate_counts(parameters, rows, TOTALS, rng)


def summarise(everything):
    parameters, rows, counts = everything
    laws = [parameters.dynamics, parameters.dynamics_cov, parameters.emission[:2]]
    shares = np.concatenate(counts)[[0, 2], :2] / 5
    return first_and_second([*laws, parameters.emission_bias[:2], rows.states, shares])


LAW = Law(lambda rng: MODEL.simulate(TOTALS, rng), summarise)


@needs_jit
@pytest.mark.parametrize("n_iter", [3000, pytest.param(60_000, marks=pytest.mark.slow)])
def test_geweke(n_iter, rng):
    z = LAW.z(partial(sweep, MODEL), n_iter, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@dataclass(frozen=True)
class ForgottenBias(LogisticNormalDynamics):
    """Particles are weighed as if there were no bias, as the authors' code does."""

    def prepare(self, parameters):
        return super().prepare(parameters)._replace(bias=np.zeros(3))


@dataclass(frozen=True)
class ForgottenPath(LogisticNormalDynamics):
    """The path before is resampled like any particle: a filter, not particle Gibbs."""

    def draw_rows(self, prior, shard, rows, key):
        counts = np.zeros((shard.n_steps, 3))
        counts[np.repeat(np.arange(shard.n_steps), np.diff(shard.offsets)), shard.categories] = (
            shard.counts
        )
        law = prior.law, prior.emission, prior.bias, 4, rows.states
        path, _ = naive.draw_path(key.at("states"), shard.rows[0], counts, *law, forgets=True)
        states = path @ prior.root.T
        return Rows(states), self._sum(shard, states, 0, 0.0)


@dataclass(frozen=True)
class OtherEllipse(LogisticNormalDynamics):
    """Rows of the emission go through draws of another prior."""

    def draw_emission(self, parameters, pieces, key):
        return replace(MODEL, emission_variance=2.0).draw_emission(parameters, pieces, key)


@needs_jit
@pytest.mark.parametrize("wrong", [ForgottenBias, ForgottenPath, OtherEllipse])
def test_geweke_rejects_a_sabotaged_sweep(wrong, rng):
    assert LAW.worst_z(partial(sweep, wrong(*SETTINGS)), 4000, rng) > MAX_Z


# pieces


def wide_model():
    prior = MatrixNormalInverseWishart(np.zeros((3, 3)), np.eye(3), np.eye(3), 5.0)
    return LogisticNormalDynamics(prior, np.zeros(5), np.zeros(3), np.eye(3), n_particles=8)


def test_whitened_chain_is_the_chain(rng):
    model = wide_model()
    parameters, rows, _ = model.simulate([np.ones(4, int)], rng)
    root, (dynamics, start, spread), emission, bias = model.prepare(parameters)
    A, Q, E, d, *_ = parameters
    np.testing.assert_allclose(root @ root.T, Q)
    np.testing.assert_allclose(root @ dynamics, A @ root)
    np.testing.assert_allclose(root @ start, model.initial_mean)
    np.testing.assert_allclose(root @ spread @ spread.T @ root.T, model.initial_cov, atol=1e-14)
    white = np.linalg.solve(root, rows.states.T).T
    np.testing.assert_allclose(white @ emission.T + bias, rows.states @ E.T + d)


def test_statistics_are_sums_over_pairs(rng):
    model = wide_model()
    totals = [np.ones(3, int), np.ones(1, int), np.zeros(0, int), np.ones(4, int)]
    _, rows, counts = model.simulate(totals, rng)
    (shard,) = model.shards(counts)
    found = model._sum(shard, rows.states, 0, 0.0)
    pairs = [(t - 1, t) for t in (1, 2, 5, 6, 7)]
    x, y = (rows.states[[pair[i] for pair in pairs]] for i in (0, 1))
    assert found.pairs.n == 5
    for part, expected in zip(found.pairs[1:], (x.T @ x, y.T @ x, y.T @ y)):
        np.testing.assert_allclose(part, expected)


def test_statistics_join_in_order():
    one, two = (Statistics(PairSums(i, *np.ones((3, 1))), 1, 0.5, (i,)) for i in (1, 2))
    both = added(one, two)
    assert both.pieces == (1, 2)
    assert both.pairs == (3, 2.0, 2.0, 2.0)


def test_log_likelihood_is_the_multinomial_one(rng):
    model = wide_model()
    parameters, rows, counts = model.simulate([np.array([3, 0, 7]), np.array([2])], rng)
    (shard,) = model.shards(counts)
    rows, statistics = model.draw_rows(model.prepare(parameters), shard, rows, Key(1))
    pi = model.probabilities(parameters.emission, parameters.emission_bias, rows.states)
    table = np.concatenate(counts)
    expected = stats.multinomial.logpmf(table, table.sum(axis=1), pi).sum()
    assert model.log_likelihood(statistics) == pytest.approx(expected)


def test_a_sweep_leaves_its_input_alone(rng):
    model = wide_model()
    parameters, rows, counts = model.simulate([np.full(6, 3)], rng)
    (shard,) = model.shards(counts)
    before = [part.copy() for part in (*parameters, *rows)]
    fresh, statistics = model.draw_rows(model.prepare(parameters), shard, rows, Key(1))
    after = model.draw_parameters(parameters, statistics, Key(1))
    for part, old in zip((*parameters, *rows), before):
        np.testing.assert_array_equal(part, old)
    assert (after.emission != parameters.emission).all()
    kept = (fresh.states == rows.states).all(axis=1)
    assert float(after.renewed) == np.mean(~kept) > 0.0


def test_a_bias_without_variance_is_the_level(rng):
    model = replace(wide_model(), bias_variance=0.0, level=np.arange(5.0))
    *_, counts = model.simulate([np.full(6, 3)], rng)
    posterior = Gibbs(3, 0, n_chains=1).run(model, model.shards(counts), seed=1)
    np.testing.assert_array_equal(posterior["emission_bias"][0], np.tile(np.arange(5.0), (3, 1)))


# chains


def run(counts, n_draws=3, n_chains=2, **options):
    model = wide_model()
    settings = Gibbs(n_draws, 2, n_chains=n_chains, keep=("states",))
    return settings.run(model, model.shards(counts, size=6), seed=5, **options)


NAMES = ("dynamics", "dynamics_cov", "emission", "emission_bias", "states", "renewed")


def test_bits_depend_neither_on_threads_nor_on_other_chains(rng):
    *_, counts = wide_model().simulate([np.full(n, 2) for n in (4, 3, 5, 1)], rng)
    runs = [run(counts, n_chains=1), run(counts), run(counts, execution=Threads(2))]
    for name in NAMES:
        np.testing.assert_array_equal(runs[0][name][0], runs[1][name][0])
        np.testing.assert_array_equal(runs[1][name], runs[2][name])
    assert (runs[1]["emission"][0] != runs[1]["emission"][1]).all()


def test_a_run_goes_on_from_its_checkpoint(rng, tmp_path):
    *_, counts = wide_model().simulate([np.full(n, 2) for n in (4, 3, 5, 1)], rng)
    whole = run(counts, 4)
    run(counts, 2, checkpoint=tmp_path)
    resumed = run(counts, 4, checkpoint=tmp_path, resume=True)
    for name in NAMES:
        np.testing.assert_array_equal(whole[name], resumed[name])


# predictions


def test_prediction_is_the_average_over_particles(rng):
    """The values of the filter are the logarithms of what is expected of each token."""
    model = wide_model()
    parameters, _, counts = model.simulate([np.ones(5, int), np.ones(2, int)], rng)
    prior, (shard,) = model.prepare(parameters), model.shards(counts)
    filtered = model.filter(prior, shard, Key(3), 50)
    pi = model.expected_probabilities(prior, filtered.predicted)
    np.testing.assert_allclose(pi.sum(axis=1), 1.0)
    np.testing.assert_allclose(filtered.values, np.log(pi[np.arange(7), shard.lookups]))
    assert model.expected_probabilities(prior, filtered.after).shape == (2, 5)


@needs_jit
def test_the_filter_knows_more_than_the_level(rng):
    """With the parameters that made the tokens, it predicts them better than their frequencies."""
    sticky = MatrixNormalInverseWishart(0.95 * np.eye(2), 1e6 * np.eye(2), 100 * np.eye(2), 1000.0)
    model = LogisticNormalDynamics(sticky, np.zeros(4), np.zeros(2), np.eye(2), 6.0, 0.01)
    parameters, _, counts = model.simulate([np.ones(600, int)], rng)
    (shard,) = model.shards(counts)
    values = model.filter(model.prepare(parameters), shard, Key(3), 100).values
    use = np.bincount(shard.lookups, minlength=4) / shard.n_steps
    assert values.mean() > np.log(use[shard.lookups]).mean() + 0.05
