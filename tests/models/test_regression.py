"""Regression of counts: the sweep is right, and would be caught if it were not."""

from dataclasses import replace
from functools import partial

import numba
import numpy as np
import pytest

from joint import Law, first_and_second, one_sweep
from polystick.decomposition import Decomposition
from polystick.keys import Key
from polystick.models import regression_slices
from polystick.models.regression import StickRegression
from polystick.models.regression_state import RegressionPrior, Rows, Statistics
from polystick.models.softmax_regression import SoftmaxRegression
from regression_twins import (
    ForgotLine,
    NoFlip,
    NoiseNotIntegrated,
    OneByOne,
    WeakPriorOfScale,
    WrongLaws,
)
from statistics_tools import MAX_Z

slow = pytest.mark.slow
needs_jit = pytest.mark.skipif(
    numba.config.DISABLE_JIT, reason="thousands of sweeps need the compiler"
)
N = 12
TOTALS = np.array([0, 1, 2, 3, 2, 4, 0, 2, 1, 1, 3, 2])
X = np.column_stack([np.ones(N), np.linspace(-1, 1, N)])
ONE = np.array([0, 0, 1, 1, 2, 2, 2, 0, 3, 3, 1, 0])[:, None]
CROSSED = np.column_stack([ONE[:, 0], [0, 1, 0, 1, 0, 1, 1, 0, 0, 0, 1, 1]])
EVEN = np.array([[-0.5, 0.3, 0.4], [0.2, 0.0, 0.1]])
MEAN = np.array([[-0.5, 0.3], [0.2, 0.0]])


def stick(groups, overdispersion, kind=StickRegression, mean=MEAN):
    sizes = tuple(int(each.max()) + 1 for each in groups.T)
    prior = RegressionPrior(mean, np.array([0.8, 0.6]), sizes, overdispersion, 0.7)
    return kind(prior, Decomposition.balanced(3)), groups


def softmax(groups, overdispersion, kind=SoftmaxRegression, mean=EVEN):
    sizes = tuple(int(each.max()) + 1 for each in groups.T)
    return kind(RegressionPrior(mean, np.array([0.8, 0.6]), sizes, overdispersion, 0.7)), groups


NONE = np.zeros((N, 0), int)
MODELS = {
    "groups and full": stick(ONE, "full"),
    "crossed and diagonal": stick(CROSSED, "diagonal"),
    "crossed alone": stick(CROSSED, None),
    "full alone": stick(NONE, "full"),
    "neither": stick(NONE, None),
    "softmax": softmax(NONE, None),
    "softmax, crossed and full": softmax(CROSSED, "full"),
    "softmax, groups and diagonal": softmax(ONE, "diagonal"),
}
ALIKE = MODELS | {"groups alone": stick(ONE, None), "diagonal alone": stick(NONE, "diagonal")}
QUICK = ("groups and full", "crossed and diagonal", "softmax, crossed and full")


def sweep(model, groups, everything, i, rng):
    parameters, rows, counts = everything
    (shard,) = model.shards(counts, X, groups)
    parameters, rows = one_sweep(model, parameters, rows, shard, i)
    return parameters, rows, model.simulate_counts(rows, counts.sum(axis=1), rng)


def summarise(everything):
    """Use bounded or light-tailed functions, so that their averages have standard errors."""
    parameters, rows, counts = everything
    sd = np.sqrt(np.diagonal(parameters.covs, axis1=1, axis2=2))
    i, j = np.triu_indices(parameters.covs.shape[-1], 1)
    correlation = parameters.covs[:, i, j] / (sd[:, i] * sd[:, j])
    squashed = np.tanh(rows.psi[[0, 2, 5]] / 3)
    shares = counts[[5, 10], :-1] / counts[[5, 10]].sum(axis=1, keepdims=True)
    return first_and_second(
        [
            np.tanh(parameters.coefficients),
            np.tanh(parameters.effects[:2, 0]),
            np.log(sd[:, 0]),
            np.log(parameters.sizes[:, :1]),
            correlation,
            np.tanh(parameters.effects[:1, 0] * parameters.effects[:1, 1]),
            squashed[:, 0],
            squashed[2:, 1],
            shares[:, 0],
        ]
    )


def law_of(model, groups):
    return Law(lambda rng: model.simulate(TOTALS, X, groups, rng), summarise)


LAWS = {name: law_of(*each) for name, each in MODELS.items()}


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


@needs_jit
@pytest.mark.parametrize(
    ("name", "n_iter"),
    [*((name, 800) for name in QUICK), *(pytest.param(n, 15_000, marks=slow) for n in MODELS)],
)
def test_geweke(name, n_iter, rng):
    model, groups = MODELS[name]
    z = LAWS[name].z(partial(sweep, model, groups), n_iter, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


# turns in one kernel, and one by one


@pytest.mark.parametrize(
    "name", ["groups and full", "groups alone", "full alone", "diagonal alone"]
)
def test_turns_in_one_kernel_are_those_one_by_one(name, rng):
    model, groups = ALIKE[name]
    other = replace(model, prior=OneByOne(**vars_of(model.prior)))
    parameters, rows, counts = model.simulate(TOTALS, X, groups, rng)
    (shard,) = model.shards(counts, X, groups)
    drawn = [each.move_together(parameters, [shard], [rows], Key(3, 1)) for each in (model, other)]
    for found, expected in zip(*([*parameters, rows[0].psi] for parameters, rows in drawn)):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


# sweeps that are wrong


class OneForAll(StickRegression):
    """Lopsided splits are drawn about zero, and not about the line."""

    def draw_rows(self, law, shard, rows, key):
        line = self.prior.line(law.parameters, shard.data)
        wrong = shard._replace(data=shard.data._replace(x=0.0 * shard.data.x))
        psi = super().draw_rows(law, wrong, rows, key)[0].psi
        e = psi - line
        return Rows(psi), Statistics(len(psi), e.T @ e, 0.0, psi.size)


def wrong_laws(name, law):
    model, groups = MODELS[name]
    prior = WrongLaws(**vars_of(model.prior), law=law)
    return replace(model, prior=prior), groups


def vars_of(prior):
    return {name: getattr(prior, name) for name in RegressionPrior.__dataclass_fields__}


WRONG = {
    "no line in kappa": ("groups and full", *stick(ONE, "full", ForgotLine)),
    "weak prior of scale": ("groups and full", *wrong_laws("groups and full", WeakPriorOfScale)),
    "no flip of Q": ("groups and full", *wrong_laws("groups and full", NoFlip)),
    "noise not integrated": ("full alone", *stick(NONE, "full", NoiseNotIntegrated)),
}


@needs_jit
@pytest.mark.parametrize("name", [n if "line" in n else pytest.param(n, marks=slow) for n in WRONG])
def test_a_wrong_sweep_is_caught(name, rng):
    of, model, groups = WRONG[name]
    worst = LAWS[of].worst_z(partial(sweep, model, groups), 8000, rng)
    assert worst > MAX_Z, name


# where totals are large, and splits lopsided


LARGE = np.array([0, 2, 10, 5000, 300, 30, 1000, 400, 8000, 100, 20_000, 50])
LOW = np.array([[-2.5, -2.0], [0.2, 0.0]])


def simulate_large(model, groups):
    return lambda rng: model.simulate(LARGE, X, groups, rng)


def summarise_noise(everything):
    """Say how far rows are from the line, in standard deviations of noise."""
    parameters, rows, _ = everything
    sd = np.sqrt(np.diagonal(parameters.covs, axis1=1, axis2=2))
    far = np.tanh((rows.psi - X @ parameters.coefficients - parameters.effects[ONE[:, 0]]) / sd[-1])
    of_rows = [far.mean(axis=0), (far**2).mean(axis=0), [(far[:, 0] * far[:, 1]).mean()]]
    return np.concatenate([np.tanh(parameters.coefficients.ravel()), *np.log(sd), *of_rows])


def sweep_only(model, groups, everything, i, rng):
    parameters, rows, counts = everything
    (shard,) = model.shards(counts, X, groups)
    return *one_sweep(model, parameters, rows, shard, i), counts


RARE = np.array([[0.5, -2.0, -3.5], [0.2, 0.0, 0.1]])


class Slices(StickRegression):
    """All sticks have slices, needed or not."""

    slices_from = 0.0


LOPSIDED = {
    "stick": stick(ONE, "full", Slices, mean=LOW),
    "softmax": softmax(ONE, "full", mean=RARE),
}
LARGE_LAWS = {name: Law(simulate_large(*each), summarise_noise) for name, each in LOPSIDED.items()}


@needs_jit
@pytest.mark.parametrize(
    ("name", "n_starts"),
    [("stick", 250), *(pytest.param(name, 1000, marks=slow) for name in LOPSIDED)],
)
def test_sweeps_keep_the_law_where_splits_are_lopsided(name, n_starts, rng):
    model, groups = LOPSIDED[name]
    z = LARGE_LAWS[name].drift_z(partial(sweep_only, model, groups), n_starts, 4, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@needs_jit
def test_a_wrong_draw_of_lopsided_splits_is_caught(rng):
    model, groups = stick(ONE, "full", OneForAll, mean=LOW)
    z = LARGE_LAWS["stick"].drift_z(partial(sweep_only, model, groups), 200, 4, rng)
    assert np.abs(z).max() > MAX_Z


def slices_only(model, groups, everything, i, rng):
    """Make the moves without omega alone."""
    parameters, (psi,), counts = everything
    shards = model.shards(counts, X, groups)
    if isinstance(model, StickRegression):
        parameters, (rows,) = model.move_lopsided(parameters, shards, [Rows(psi)], Key(7, i))
        return parameters, rows, counts
    for j in range(model.prior.k):
        parameters, (psi,) = model.move_lopsided(parameters, shards, [psi], j, rng)
    return parameters, Rows(psi), counts


@needs_jit
@pytest.mark.parametrize(
    ("name", "n_starts"),
    [*((n, 150) for n in LOPSIDED), *(pytest.param(n, 1500, marks=slow) for n in LOPSIDED)],
)
def test_moves_without_omega_keep_the_law(name, n_starts, rng):
    model, groups = LOPSIDED[name]
    z = LARGE_LAWS[name].drift_z(partial(slices_only, model, groups), n_starts, 4, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@needs_jit
@pytest.mark.parametrize("name", LOPSIDED)
def test_moves_that_look_beside_the_line_are_caught(name, rng, monkeypatch):
    whole = regression_slices.log_likelihood
    monkeypatch.setattr(regression_slices, "log_likelihood", lambda s, psi: whole(s, psi + 0.7))
    model, groups = LOPSIDED[name]
    z = LARGE_LAWS[name].drift_z(partial(slices_only, model, groups), 150, 4, rng)
    assert np.abs(z).max() > MAX_Z, np.sort(np.abs(z))[-5:]
