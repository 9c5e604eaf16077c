"""Multinomial dynamics: the sweep is right, would be caught if not, and gives the same bits anyhow."""

from dataclasses import dataclass, replace

import numba
import numpy as np
import pytest

from dynamics_tools import RAGGED, inputs_for, make_composition, make_model, resample
from joint import Law, first_and_second, ranks, uniform_pvalues
from polystick.decomposition import Decomposition
from polystick.inference.execution import Threads
from polystick.inference.gibbs import Gibbs
from polystick.keys import Key
from polystick.models.chain_sums import FirstSums
from polystick.models.composition import CompositionDynamics
from polystick.models.dynamics import MultinomialDynamics
from statistics_tools import MAX_Z

PLAIN = bool(numba.config.DISABLE_JIT)
needs_jit = pytest.mark.skipif(PLAIN, reason="thousands of sweeps need the compiler")
MODEL = make_model(1, 2)
PUSHED = make_model(2, 2, inputs=("states", "emissions"), m=1, drift=True)
WALK, RETURN = (make_composition(2, walks=walks) for walks in (True, False))


@pytest.fixture
def rng():
    return np.random.default_rng(1911)


# the sweep against the law


def summarise(everything):
    parameters, rows, counts = everything
    z, table = rows.states, np.concatenate(counts)
    laws = [
        parameters.coefficients[0],
        np.linalg.slogdet(parameters.dynamics_cov)[1],
        parameters.initial_mean[0],
        np.log(parameters.initial_cov[0, 0]),
        parameters.emission[:, [0, -1]],
    ]
    steps = [z[[0, 1, 2, -1], 0], parameters.emission[:, 0] * z[1, 0], table[[0, 2, -1], 0]]
    return first_and_second([*laws, *steps])


def law_of(model, totals=RAGGED):
    inputs = inputs_for(totals, 1) if model.inputs else None
    return Law(lambda rng: model.simulate(totals, rng, inputs), summarise)


MODELS = {"plain": MODEL, "inputs": PUSHED, "walk": WALK, "return": RETURN}
LAWS = {name: law_of(model) for name, model in MODELS.items()}
MANY = [20 * total for total in RAGGED]
LAW_OF_MANY = law_of(MODEL, MANY)


@needs_jit
@pytest.mark.parametrize("n_iter", [1200, pytest.param(40_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MODELS)
def test_geweke(name, n_iter, rng):
    model = MODELS[name]
    inputs = inputs_for(RAGGED, 1) if model.inputs else None
    z = LAWS[name].z(resample(model, RAGGED, inputs), n_iter, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@dataclass(frozen=True)
class NoBias(MultinomialDynamics):
    """States are drawn as if psi had no bias, as in the authors' particle filter."""

    def draw_states(self, prior, shard, potential, key):
        return super().draw_states(prior, replace(shard, known=0 * shard.known), potential, key)


@dataclass(frozen=True)
class BoldStretch(MultinomialDynamics):
    """The stretch forgets that the emission shrinks with it."""

    def draw_stretch(self, parameters, rng):
        return super().draw_stretch(parameters, rng) * np.sqrt(1 + self.n_sticks / 3)


@dataclass(frozen=True)
class StateOfBefore(MultinomialDynamics):
    """The emission is regressed on states one step late."""

    def emission_sums(self, prior, shard, states, potential):
        return super().emission_sums(prior, shard, np.roll(states, 1, axis=0), potential)


@dataclass(frozen=True)
class FixedStart(MultinomialDynamics):
    """The law of the first states learns nothing."""

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        first = statistics.first
        blind = statistics._replace(first=FirstSums(0, 0 * first.total, 0 * first.outer))
        return super().draw_parameters(parameters, blind, key)


@needs_jit
@pytest.mark.parametrize("wrong", [NoBias, BoldStretch, StateOfBefore, FixedStart])
def test_geweke_rejects_a_sabotaged_sweep(wrong, rng):
    much = wrong in (NoBias, StateOfBefore)
    law, totals = (LAW_OF_MANY, MANY) if much else (LAWS["plain"], RAGGED)
    assert law.worst_z(resample(make_model(1, 2, wrong), totals), 2000, rng) > MAX_Z


@dataclass(frozen=True)
class Shortcut(CompositionDynamics):
    """A walk whose noise is that of a state about 0."""

    def draw_dynamics(self, pairs, rng):
        return super().draw_dynamics(pairs._replace(xx=0 * pairs.xx, yx=0 * pairs.yx), rng)


@needs_jit
def test_geweke_rejects_a_walk_about_0(rng):
    wrong = make_composition(2, walks=True, kind=Shortcut)
    assert LAWS["walk"].worst_z(resample(wrong, RAGGED), 2500, rng) > MAX_Z


def sbc(model, n_simulations, rng, n_draws=49):
    """Ranks of what does not depend on signs and scales of states."""
    totals, found = [np.full(30, 4), np.full(10, 4)], []
    law = make_model(1, 2)
    for seed in range(n_simulations):
        parameters, rows, counts = law.simulate(totals, rng)
        gibbs = Gibbs(n_draws, n_burn=100, thin=10, n_chains=1, keep=("states",))
        posterior = gibbs.run(model, model.shards(counts), seed=seed)
        described = law.describe_parameters(parameters)
        pairs = [(described[n], posterior[n][0]) for n in ("dynamics", "emission_bias")]
        drawn = posterior["emission"][0] * posterior["states"][0, :, [5]].reshape(-1, 1, 1)
        pairs.append((described["emission"] * rows.states[5], drawn))
        found.append(np.concatenate([ranks(t, d).ravel() for t, d in pairs]))
    return uniform_pvalues(np.array(found), n_draws)


@pytest.mark.slow
@needs_jit
def test_sbc(rng):
    p = sbc(MODEL, 200, rng)
    assert p.min() > 1e-4, p


@pytest.mark.slow
@needs_jit
def test_sbc_rejects_a_sabotaged_sweep(rng):
    p = sbc(make_model(1, 2, StateOfBefore), 200, rng)
    assert p.min() < 1e-4, p


# parts


def test_the_stretch_leaves_psi_and_the_law_of_states_alone(rng):
    parameters, _, _ = PUSHED.simulate(RAGGED, rng, inputs_for(RAGGED, 1))
    parameters = parameters._replace(stretch=np.asarray(3.0))
    prior, plain = (
        PUSHED.prepare(p) for p in (parameters, parameters._replace(stretch=np.ones(())))
    )
    np.testing.assert_allclose(prior.emission[:, :2] * 3, plain.emission[:, :2])
    np.testing.assert_allclose(prior.chain.dynamics, plain.chain.dynamics)
    np.testing.assert_allclose(prior.chain.dynamics_cov, 9 * plain.chain.dynamics_cov)
    np.testing.assert_allclose(prior.push, 3 * plain.push)
    np.testing.assert_allclose(prior.white, plain.white)


def test_chains_start_apart():
    shard = MODEL.shards([np.zeros(5, dtype=int)])[0]
    model = make_model(3, 2)
    starts = [model.initial_parameters([shard], Key(1).chain(c)) for c in range(4)]
    for name in ("coefficients", "dynamics_cov"):
        sizes = np.log([np.diag(getattr(start, name)) for start in starts])
        assert (sizes.std(axis=0) > 0.02).all(), name
    assert np.std([start.emission for start in starts], axis=0).min() > 0.0
    assert all(abs(np.linalg.eigvals(start.coefficients)).max() < 1 for start in starts)


def test_parameters_are_recalled_from_what_is_said_of_them(rng):
    for model in (MODEL, PUSHED, WALK, RETURN):
        inputs = inputs_for(RAGGED, 1) if model.inputs else None
        parameters = model.simulate(RAGGED, rng, inputs)[0]
        again = model.recall(model.describe_parameters(parameters))
        for name in set(parameters._fields) - {"stretch", "rate"}:
            np.testing.assert_array_equal(getattr(again, name), getattr(parameters, name))


def test_blocks_and_the_order_of_sequences_do_not_matter(rng):
    everything = MODEL.simulate(RAGGED, rng)
    parts = []
    for size in (1, 100):
        prior, states = MODEL.prepare(everything[0]), []
        for shard in MODEL.shards(everything[2], size=size):
            start = int(shard.steps[0])
            mine = everything[1]._replace(
                states=everything[1].states[start : start + shard.n_steps]
            )
            states.append(MODEL.draw_rows(prior, shard, mine, Key(3, 1))[0].states)
        parts.append(np.concatenate(states))
    np.testing.assert_array_equal(*parts)


def test_a_step_at_which_nothing_is_seen_has_no_splits(rng):
    shards = MODEL.shards([np.array([0, -1, 2]), np.array([[0, 1, 0], [0, 0, 0]])])
    assert len(shards) == 1
    np.testing.assert_array_equal(np.diff(shards[0].splits.starts) > 0, [1, 0, 1, 1, 0])


def test_explosive_dynamics_name_the_sweep_and_the_spectral_radius():
    model = make_model(2, 2)
    shard = model.shards([np.zeros(2000, dtype=int)])[0]
    parameters = model.initial_parameters([shard], Key(1))
    wild = parameters._replace(coefficients=np.diag([4.0, 0.5]), emission=0 * parameters.emission)
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match=r"sweep 7.*radius 4"):
        model.draw_rows(
            model.prepare(wild), shard, model.initial_rows(None, shard, None), Key(1, 7)
        )


@needs_jit
@pytest.mark.parametrize("model", [MODEL, WALK], ids=["plain", "walk"])
def test_threads_and_resumption_leave_the_bits_alone(model, rng, tmp_path):
    totals = [np.full(n, 3) for n in (20, 3, 40)]
    counts = model.simulate(totals, rng)[2]
    shards = model.shards(counts, size=8)
    short, long = (Gibbs(n, n_burn=4, n_chains=2, keep=("states",)) for n in (3, 8))
    plain = long.run(model, shards, seed=5)
    threads = long.run(model, shards, seed=5, execution=Threads(3))
    short.run(model, shards, seed=5, checkpoint=tmp_path / "run", every=0)
    resumed = long.run(model, shards, seed=5, checkpoint=tmp_path / "run", resume=True)
    for other in (threads, resumed):
        for name in plain.names():
            np.testing.assert_array_equal(plain[name], other[name])


@needs_jit
def test_what_is_learned_comes_near_what_was_simulated(rng):
    """States that explain the counts, under sticks and under a tree."""
    for tree in (None, Decomposition.balanced(4)):
        model = make_model(2, 3, tree=tree)
        parameters, rows, counts = model.simulate([np.full(300, 20)], rng)
        posterior = Gibbs(100, n_burn=200, n_chains=2).run(model, model.shards(counts), seed=1)
        everything = parameters, rows, counts
        key = Key(0, 0)
        prior = model.prepare(parameters._replace(stretch=np.ones(())))
        shard = model.shards(counts)[0]
        value = model.draw_rows(prior, shard, rows, key)[1].value
        found = posterior.log_likelihood
        assert abs(found.mean() - value) < 6 * np.hypot(found.std(), 1.0), everything[0]
