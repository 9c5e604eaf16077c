"""Regression of counts: the sweep is right, and would be caught if it were not."""

from dataclasses import dataclass, replace
from functools import partial

import numba
import numpy as np
import pytest

from joint import Law, first_and_second, one_sweep
from polystick.decomposition import Decomposition
from polystick.models.regression import StickRegression
from polystick.models.regression_state import RegressionPrior
from polystick.population import HuangWand, Spread
from statistics_tools import MAX_Z

needs_jit = pytest.mark.skipif(
    numba.config.DISABLE_JIT, reason="thousands of sweeps need the compiler"
)
N = 12
TOTALS = np.array([0, 1, 2, 3, 2, 4, 0, 2, 1, 1, 3, 2])
X = np.column_stack([np.ones(N), np.linspace(-1, 1, N)])
ONE = np.array([0, 0, 1, 1, 2, 2, 2, 0, 3, 3, 1, 0])[:, None]
CROSSED = np.column_stack([ONE[:, 0], [0, 1, 0, 1, 0, 1, 1, 0, 0, 0, 1, 1]])
MEAN = np.array([[-0.5, 0.3], [0.2, 0.0]])


def stick(groups, overdispersion, kind=StickRegression, mean=MEAN):
    sizes = tuple(int(each.max()) + 1 for each in groups.T)
    prior = RegressionPrior(mean, np.array([0.8, 0.6]), sizes, overdispersion, 0.7)
    return kind(prior, Decomposition.balanced(3)), groups


NONE = np.zeros((N, 0), int)
MODELS = {
    "groups and full": stick(ONE, "full"),
    "crossed and diagonal": stick(CROSSED, "diagonal"),
    "crossed alone": stick(CROSSED, None),
    "full alone": stick(NONE, "full"),
    "neither": stick(NONE, None),
}


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
@pytest.mark.parametrize("n_iter", [2000, pytest.param(40_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MODELS)
def test_geweke(name, n_iter, rng):
    model, groups = MODELS[name]
    z = LAWS[name].z(partial(sweep, model, groups), n_iter, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]
