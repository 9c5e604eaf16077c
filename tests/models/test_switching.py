"""Dynamics that switch: the law, sweeps, and wrong ones; one regime is the plain model; regimes are found."""

import functools
from dataclasses import dataclass

import numba
import numpy as np
import pytest

from dynamics_tools import inputs_for, make_model
from joint import Law, first_and_second
from polystick.decomposition import Decomposition
from polystick.keys import Key
from polystick.models import dynamics
from polystick.models.chain_sums import added
from polystick.models.memory import Memory
from polystick.models.switching import Rows, SwitchingDynamics
from statistics_tools import MAX_Z

PLAIN = bool(numba.config.DISABLE_JIT)
needs_jit = pytest.mark.skipif(PLAIN, reason="thousands of sweeps need the compiler")
TOTALS = [np.array([3, 0, 4, 2, 5, 1]), np.array([2]), np.array([4, 0, 3])]
TREE = Decomposition.sticks(range(3))


def make(kind=SwitchingDynamics, n_regimes=2, *, m=0, d=2, **more):
    inputs = ("states", "emissions") if m else ()
    return kind(make_model(d, 2, inputs=inputs, m=m, **more), n_regimes, 2.0, 1.0)


@pytest.fixture
def rng():
    return np.random.default_rng(1978)


def resample(model, totals, inputs=None):
    """Return what a `Law` wants: a sweep of blocks, then new counts."""

    def sweep(everything, i, rng):
        parameters, rows, counts = everything
        prior, at, parts, key = model.prepare(parameters), 0, [], Key(5, i)
        for shard in model.shards(counts, inputs, size=6):
            stop = at + shard.n_steps
            mine, at = Rows(*(part[at:stop] for part in rows)), stop
            parts.append(model.draw_rows(prior, shard, mine, key))
        total = functools.reduce(added, (part[1] for part in parts))
        parameters = model.draw_parameters(parameters, total, key)
        rows = Rows(*(np.concatenate(part) for part in zip(*(each for each, _ in parts))))
        return parameters, rows, model.simulate_counts(parameters, rows, totals, rng, inputs)

    return sweep


def summarise(everything):
    """Return moments of what must not be named, and of the first regime, whose name says nothing."""
    parameters, rows, counts = everything
    r, z, e = rows.regimes, rows.states, parameters.emission
    stays = parameters.transition[0, 0]
    scale = np.log(np.linalg.det(parameters.dynamics_cov[0]))
    dynamics_of = parameters.coefficients[r, :, :2]
    gaps = [(z[t] - dynamics_of[t] @ z[t - 1], t) for t in (1, 2, 4, 5)]
    moved = [gap @ np.linalg.solve(parameters.dynamics_cov[r[t]], gap) for gap, t in gaps]
    pull = (parameters.coefficients[0] ** 2).sum()
    return first_and_second(
        [stays, scale, np.log(moved), np.log(np.linalg.norm(gaps[0][0])), np.arctan(pull),
         (r[1:5] == 0).astype(float), np.tanh(e[:, :2] @ z[[0, 2, 5, 8]].T).ravel(), e[:, 2],
         np.concatenate(counts)[[0, 2, 4, 9], 0]]
    )  # fmt: skip


LAW = Law(lambda rng: make().simulate(TOTALS, rng), summarise)


@needs_jit
@pytest.mark.parametrize("n_iter", [800, pytest.param(20_000, marks=pytest.mark.slow)])
def test_geweke(n_iter, rng):
    z = LAW.z(resample(make(), TOTALS), n_iter, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@needs_jit
@pytest.mark.slow
def test_geweke_with_inputs(rng):
    inputs = inputs_for(TOTALS, 1)
    model = make(m=1, n_regimes=3)
    law = Law(lambda rng: model.simulate(TOTALS, rng, inputs), summarise_inputs)
    z = law.z(resample(model, TOTALS, inputs), 4000, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


def summarise_inputs(everything):
    parameters, rows, counts = everything
    push = np.arctan(parameters.coefficients[:, 0, 2])
    return first_and_second(
        [push, parameters.emission[:, 3], np.tanh(rows.states[[1, 4], 0]),
         np.log(np.diagonal(parameters.transition)), np.concatenate(counts)[[0, 2, 9], 0]]
    )  # fmt: skip


@dataclass(frozen=True)
class MixedUp(SwitchingDynamics):
    """A step goes to the sums of the other regime."""

    def pairs(self, shard, rows):
        return super().pairs(shard, rows._replace(regimes=1 - rows.regimes))


@dataclass(frozen=True)
class DeafRegimes(SwitchingDynamics):
    """The regimes are drawn without their transitions."""

    def draw_regimes(self, prior, shard, states, key):
        flat = np.full_like(prior.transition, 0.5)
        return super().draw_regimes(prior._replace(transition=flat), shard, states, key)


@needs_jit
@pytest.mark.parametrize("wrong", [pytest.param(MixedUp, marks=pytest.mark.slow), DeafRegimes])
def test_geweke_rejects_a_sabotaged_sweep(wrong, rng):
    assert LAW.worst_z(resample(make(wrong), TOTALS), 4000, rng) > MAX_Z


@pytest.mark.parametrize("n_regimes", [1, 3])
def test_the_stretch_leaves_the_law_alone(n_regimes, rng):
    """The log determinant of each covariance has the same spread after it; not if it forgets that regime."""
    model, n = make(n_regimes=n_regimes), 200 if PLAIN else 3000
    drawn = [model.draw_from_prior(rng) for _ in range(n)]
    size = np.array([np.linalg.slogdet(parameters.dynamics_cov[-1])[1] for parameters in drawn])
    size -= size.mean()

    def z(stretches):
        more = np.square(size + 4.0 * np.log(stretches)) - np.square(
            size
        )  # 4: twice the dimensions
        return more.mean() / (more.std() / np.sqrt(n))

    assert abs(z([model.draw_stretch(parameters, rng) for parameters in drawn])) < MAX_Z
    few = [model.base.draw_stretch(as_plain(parameters), rng) for parameters in drawn]
    assert PLAIN or (abs(z(few)) < MAX_Z) == (n_regimes == 1)


# one regime


def as_plain(parameters):
    names = dynamics.Parameters._fields
    found = {name: getattr(parameters, name) for name in names}
    found |= {name: found[name][0] for name in ("coefficients", "dynamics_cov")}
    return dynamics.Parameters(**found)


def test_one_regime_is_the_plain_model(rng):
    """The same states from the same noise and omega, and the same sums."""
    inputs = inputs_for(TOTALS, 2)
    model = make(n_regimes=1, m=2)
    parameters, rows, counts = model.simulate(TOTALS, rng, inputs)
    (shard,) = model.shards(counts, inputs)
    plain = dynamics.Rows(rows.states)
    found, sums = model.draw_rows(model.prepare(parameters), shard, rows, Key(3))
    base = model.base
    expected, others = base.draw_rows(base.prepare(as_plain(parameters)), shard, plain, Key(3))
    np.testing.assert_allclose(found.states, expected.states, rtol=1e-8, atol=1e-10)
    for one, other in zip(sums.pairs, others.pairs):
        np.testing.assert_allclose(one[0], other, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(sums.linear, others.linear, rtol=1e-8, atol=1e-9)
    assert sums.value == pytest.approx(others.value)
    one = model.draw_stretch(parameters, np.random.default_rng(0))
    assert one == base.draw_stretch(as_plain(parameters), np.random.default_rng(0))


def test_a_draw_is_recalled(rng):
    for m in (0, 2):
        model = make(m=m, n_regimes=3)
        parameters = model.draw_from_prior(rng)._replace(stretch=np.asarray(1.0))
        described = model.describe_parameters(parameters)
        assert set(described) <= set(model.dims)
        assert {name: len(model.dims[name]) for name in described} == {
            name: np.ndim(part) for name, part in described.items()
        }
        for name, part in model.recall(described)._asdict().items():
            np.testing.assert_array_equal(part, getattr(parameters, name), err_msg=name)


def test_regimes_are_named_by_how_far_psi_goes(rng):
    model = make(n_regimes=3)
    parameters = model.draw_from_prior(rng)
    size = np.array([4.0, 0.01, 1.0])[:, None, None]
    mixed = parameters._replace(dynamics_cov=size * np.eye(2))
    (named,) = model.agree([mixed], Key(0))
    np.testing.assert_array_equal(named.dynamics_cov[:, 0, 0], [0.01, 1.0, 4.0])
    order = [1, 2, 0]
    np.testing.assert_array_equal(named.transition, mixed.transition[np.ix_(order, order)])
    np.testing.assert_array_equal(named.coefficients, mixed.coefficients[order])


# what it predicts


def predictors(rng, n_regimes=1, **more):
    model = make(n_regimes=n_regimes, **more)
    parameters, _, counts = model.simulate([np.array([4, 0, 9, 1, 6, 2])] * 2, rng)
    described = model.describe_parameters(parameters)
    return model, parameters, counts, model.predictor(described)


@needs_jit
def test_its_filter_with_one_regime_agrees_with_the_plain_one(rng):
    """Two particle filters of the same law: estimates of the same evidence, states and probabilities."""
    model, parameters, counts, predictor = predictors(rng)
    plain = model.base.predictor(model.base.describe_parameters(as_plain(parameters)))
    (shard,) = model.shards(counts)
    runs, show = 16, ("predicted", "current")
    one, other = (
        [each.filter(shard, Key(i), show=show, n_particles=800) for i in range(runs)]
        for each in (predictor, plain)
    )
    for name in ("values", "predicted", "current", "states", "spread"):
        a, b = (np.stack([getattr(found, name) for found in part]) for part in (one, other))
        error = np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / runs)
        gap = np.abs(a.mean(axis=0) - b.mean(axis=0))
        assert (gap < 6 * error + 1e-9).all(), (name, (gap / (error + 1e-12)).max())


@needs_jit
def test_its_evidence_is_that_of_simulated_sequences(rng):
    """The mean over paths from the prior of p(x | path) is p(x), whatever regimes do."""
    model, parameters, counts, predictor = predictors(rng, n_regimes=2, d=1)
    counts = [counts[0][:4]]
    (shard,) = model.shards(counts)
    found = [predictor.filter(shard, Key(i)).values.sum() for i in range(20)]
    n = 20_000
    totals = [np.ones(4, int)] * n
    rows = model.simulate_rows(parameters, totals, rng)
    psi = rows.states.reshape(n, 4, 1) @ parameters.emission[:, :1].T + parameters.emission[:, 1]
    log_pi = model.decomposition.log_probabilities(psi)
    likelihood = np.exp((log_pi * counts[0]).sum(axis=(1, 2)))
    mean, error = likelihood.mean(), likelihood.std() / np.sqrt(n)
    estimates = np.exp(found)
    both = np.hypot(error, estimates.std(ddof=1) / np.sqrt(20))
    assert abs(estimates.mean() - mean) < 5 * both, (estimates.mean(), mean, both)
    assert estimates.std(ddof=1) / estimates.mean() < 0.3


def test_a_filter_goes_on_as_in_one_run(rng):
    model, _, counts, predictor = predictors(rng, n_regimes=3)
    counts, show = counts[:1], ("predicted",)
    (shard,) = model.shards(counts)
    whole, before = predictor.filter(shard, Key(1), show=show, n_particles=30), None
    for cut in ([0, 1], [1, 4], [4, 6]):
        (part,) = model.shards([counts[0][slice(*cut)]])
        found = predictor.filter(part, Key(1), show=show, before=before, n_particles=30)
        np.testing.assert_array_equal(found.values, whole.values[slice(*cut)])
        np.testing.assert_array_equal(found.predicted, whole.predicted[slice(*cut)])
        before = found.after
    paths = (predictor.forecast(each.after, 3, Key(1), 7) for each in (found, whole))
    np.testing.assert_array_equal(*paths)


def test_it_has_a_memory_too(rng):
    memory = Memory(TREE, np.array([3.0, 2.0, 1.0]), (5.0,), 1)
    model = make(tree=TREE, memory=memory, learns_bias_scale=True)
    totals = [np.ones(7, int), np.array([1, 0, 1, 1])]
    everything = model.simulate(totals, rng)
    for i in range(3):
        everything = resample(model, totals)(everything, i, rng)
    predictor = model.predictor(model.describe_parameters(everything[0]))
    (shard,) = model.shards(everything[2])
    found = predictor.filter(shard, Key(0), show=("predicted",), n_particles=20)
    np.testing.assert_allclose(found.predicted.sum(axis=1), 1.0)
    assert predictor.forecast(found.after, 2, Key(0), 3).shape == (3, 2, 2, 3)
