"""Shares that move with time and depend on covariates: sweeps keep the law, wrong ones do not."""

from functools import partial

import numpy as np
import pytest

from joint import Law, first_and_second, one_sweep
from polystick.conjugate import InverseWishart, NormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.inference.moving import moved
from polystick.keys import Key
from polystick.models.regressed_walk import RegressedWalk
from polystick.models.topic_factors import assemble
from polystick.models.topic_shares import Sticks
from polystick.models.topic_words import DirichletWords
from polystick.models.walking_shares import WalkingShares
from polystick.population import LearnedScale
from statistics_tools import MAX_Z
from topic_tools import needs_jit

LEVEL_PRIOR = NormalInverseWishart(np.array([0.3, -0.4]), 2.0, 6.0 * np.eye(2), 9.0)
STEP_PRIOR = InverseWishart(np.array([[3.0, 1.0], [1.0, 2.0]]), 10.0)
WALK = WalkingShares(3, LEVEL_PRIOR, STEP_PRIOR, LearnedScale(np.zeros(2), 0.7, nu=6.0))
SLICES = np.array([0, 2, 0, 2, 2, 0, 0, 2, 2, 0])  # nobody wrote in slice 1
X = np.column_stack([np.linspace(-1.5, 1.5, 10), np.tile([1.0, -1.0], 5), (SLICES - 1.0) / 2])
TERMS = np.array([0, 1, 1])  # the last column is told from levels by their smoothness alone
TOTALS = np.array([0, 0, 4, 8, 1, 12, 8, 12, 60, 40])
GIVEN = {"slices": SLICES, "covariates": X}


def model_of(kind=RegressedWalk):
    shares = kind(WALK, TERMS, np.cov(X, rowvar=False))
    return assemble(DirichletWords(5, 1.0), shares, Sticks(Decomposition.balanced(3)))


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


def summarise(everything):
    """Use bounded or light-tailed functions of all there is."""
    p, (psi, _), counts = everything
    scatter = np.sqrt(np.diag(p.cov))
    steps = np.diff(p.levels, axis=0) / np.sqrt(np.diag(p.step_cov))
    slopes = [np.tanh(p.coefficients / 2), np.tanh(p.coefficients / scatter)]
    scales = [np.tanh(np.log(p.shrinkage) / 3), np.tanh(np.log(p.spread) / 4), np.log(scatter)]
    rows = np.tanh((psi - p.levels[SLICES] - X @ p.coefficients) / scatter)
    moments = [rows.mean(axis=0), np.square(rows).mean(axis=0), np.tanh(psi[[0, 5, 8]] / 3)]
    fit = np.tanh(X.T @ rows / 3)
    level = [np.tanh(p.levels[[0, 2]] / 2), np.tanh(steps), np.log(np.diag(p.step_cov))]
    words = counts[[3, 5, 8, 9], :2] / TOTALS[[3, 5, 8, 9], None]
    return first_and_second([*level, *scales, *slopes, *moments, fit, words.mean(axis=0)])


LAW = Law(partial(model_of().simulate, TOTALS, **GIVEN), summarise)


def sweep(model, everything, i, rng):
    parameters, rows, counts = everything
    (shard,) = model.shards(counts, **GIVEN)
    return *one_sweep(model, parameters, rows, shard, i), counts


def moves_only(model, everything, i, rng):
    parameters, rows, counts = everything
    shards = model.shards(counts, **GIVEN)
    parameters, (rows,) = moved(model, parameters, shards, [rows], Key(7, i))
    return parameters, rows, counts


@needs_jit
@pytest.mark.parametrize("n_starts", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("step", [sweep, moves_only])
def test_sweeps_keep_the_law(n_starts, step, rng):
    z = LAW.drift_z(partial(step, model_of()), n_starts, 4, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


class OtherDocuments(RegressedWalk):
    """Covariates are those of other documents."""

    def statistics(self, psi, given):
        return super().statistics(psi, {**given, "covariates": given["covariates"][::-1]})


class LevelsOfPsi(RegressedWalk):
    """Levels are drawn as if covariates explained nothing."""

    def draw(self, parameters, sums, rng):
        nothing = parameters._replace(coefficients=0.0 * parameters.coefficients)
        return super().draw(nothing, sums, rng)


class OtherLevels(RegressedWalk):
    """Coefficients are drawn about the levels of other slices."""

    def _draw_regression(self, parameters, levels, sums, rng):
        return super()._draw_regression(parameters, levels[::-1], sums, rng)


class NoShrinkage(RegressedWalk):
    """Coefficients have no prior, almost."""

    def _draw_regression(self, parameters, levels, sums, rng):
        weak = parameters._replace(shrinkage=1e-3 * parameters.shrinkage)
        return super()._draw_regression(weak, levels, sums, rng)


class CoefficientsLeftBehind(RegressedWalk):
    """A stick that is stretched leaves its coefficients where they are."""

    def move(self, parameters, gains, stretch, shift, rng):
        moved, *done = super().move(parameters, gains, stretch, shift, rng)
        return moved._replace(coefficients=parameters.coefficients), *done


@needs_jit
@pytest.mark.parametrize("wrong", [OtherDocuments, LevelsOfPsi, OtherLevels, NoShrinkage])
def test_wrong_sweeps_are_caught(wrong, rng):
    z = LAW.drift_z(partial(sweep, model_of(wrong)), 300, 4, rng)
    assert np.abs(z).max() > MAX_Z, np.abs(z).max()


@needs_jit
def test_wrong_moves_are_caught(rng):
    z = LAW.drift_z(partial(moves_only, model_of(CoefficientsLeftBehind)), 300, 20, rng)
    assert np.abs(z).max() > MAX_Z, np.abs(z).max()


def test_sums_of_blocks_are_those_of_all(rng):
    psi, shares = rng.standard_normal((10, 2)), model_of().shares
    whole = shares.statistics(psi, GIVEN)
    first, second = (
        shares.statistics(psi[part], {name: value[part] for name, value in GIVEN.items()})
        for part in (slice(4), slice(4, None))
    )
    for name, value in vars(first + second).items():
        np.testing.assert_allclose(value, getattr(whole, name), atol=1e-12)
