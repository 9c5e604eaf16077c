"""Scales and levels of psi that move with their law keep it, and wrong moves do not."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.special import expit

from joint import Law, first_and_second
from polystick import augmentation
from polystick.decomposition import Decomposition
from polystick.inference.moving import moved
from polystick.kernels import stick_moves
from polystick.keys import Key
from polystick.models import topic_moves
from polystick.models.topic_factors import assemble
from polystick.models.topic_shares import NormalShares, Sticks
from polystick.models.topic_words import DirichletWords
from polystick.population import LearnedScale
from statistics_tools import MAX_Z
from topic_tools import JIT, needs_jit

TREE = Decomposition.balanced(4)
LIGHT = LearnedScale(np.array([0.3, -0.4, 0.2]), 0.7, nu=6.0)
HEAVY = LearnedScale(np.array([0.3, -0.4, 0.2]), 2.0, nu=2.0)
TOTALS = np.array([0, 3, 8, 40, 200, 30])
N_MOVES = 20


def model_of(law):
    return assemble(DirichletWords(5, 1.0), NormalShares(law), Sticks(TREE))


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


def summarise(everything):
    """Use bounded or light-tailed functions of all that moves."""
    p, (psi, tokens), _ = everything
    successes, trials = TREE.split(tokens[3:])
    surprise = (successes - trials * expit(psi[3:])) / np.sqrt(1 + trials)
    away = np.tanh((psi - p.mean) / np.sqrt(np.diag(p.cov)))
    away = np.round(away, 6)  # no right move changes it, but for rounding
    told = [np.tanh(surprise), np.square(away).mean(axis=0), away.mean(axis=0)]
    told.append(np.round(np.tanh(np.log(p.spread * np.diag(p.cov)) / 2), 6))
    law = [np.tanh(p.mean / 3), np.tanh(np.log(np.diag(p.cov)) / 4), np.tanh(np.log(p.spread) / 4)]
    sd = np.sqrt(np.diag(p.cov))
    correlation = (p.cov / np.outer(sd, sd))[np.triu_indices(3, 1)]
    return first_and_second([*law, *told, correlation, np.tanh(psi[[0, 2, 4]] / 4)])


def only_moves(model, everything, i, rng):
    """Move scales in one step, levels in the next; nothing else."""
    parameters, rows, counts = everything
    parameters, (rows,) = moved(model, parameters, model.shards(counts), [rows], Key(7, i))
    return parameters, rows, counts


def drift(law, wrong, n_starts, rng):
    """Return z-scores of moves, under draws from the law `law`, by that of `wrong`."""
    joint = Law(partial(model_of(law).simulate, TOTALS), summarise)
    return joint.drift_z(partial(only_moves, model_of(wrong)), n_starts, N_MOVES, rng)


@needs_jit
@pytest.mark.parametrize("n_starts", [1000, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("law", [LIGHT, HEAVY], ids=["light", "heavy"])
def test_moves_keep_the_law(law, n_starts, rng):
    z = drift(law, law, n_starts, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


class NoCounts(LearnedScale):
    """What the counts say is not heard."""

    def move(self, parameters, gains, stretch, shift, rng):
        return super().move(parameters, 0.0 * gains, stretch, shift, rng)


class ScaleLeftBehind(LearnedScale):
    """The scale that cov is drawn from does not follow."""

    def move(self, parameters, gains, stretch, shift, rng):
        moved, *done = super().move(parameters, gains, stretch, shift, rng)
        return moved._replace(spread=parameters.spread), *done


class MeanLeftBehind(LearnedScale):
    """Rows are shifted without their mean."""

    def move(self, parameters, gains, stretch, shift, rng):
        moved, *done = super().move(parameters, gains, stretch, shift, rng)
        return moved._replace(mean=parameters.mean), *done


class WeakLaw(LearnedScale):
    """Whatever the law of scales says, stretches only hear the counts."""

    def move(self, parameters, gains, stretch, shift, rng):
        wide = LearnedScale(self.centre, 1e3, self.nu)
        return wide.move(parameters, gains, stretch, shift, rng)


@needs_jit
@pytest.mark.parametrize("wrong", [NoCounts, ScaleLeftBehind, MeanLeftBehind, WeakLaw])
def test_wrong_moves_are_caught(wrong, rng):
    z = drift(LIGHT, wrong(LIGHT.centre, LIGHT.scale, LIGHT.nu), 600, rng)
    assert np.abs(z).max() > MAX_Z, np.abs(z).max()


def test_gains_are_those_of_the_log_likelihood(rng):
    trials = rng.poisson(3.0, (9, 4))
    splits = Decomposition.sticks(range(5)).split(rng.poisson(2.0, (9, 5)))
    splits = splits._replace(trials=np.maximum(splits.trials, trials))
    psi, mean = rng.normal(0.0, 4.0, (9, 4)), rng.normal(size=4)
    stretch, shift = np.exp(rng.normal(size=4)), rng.normal(size=4)
    new = topic_moves.moved(psi, mean, stretch, shift)
    change = augmentation.log_likelihood(splits, new) - augmentation.log_likelihood(splits, psi)
    found = topic_moves.gains(splits, psi, mean, stretch, shift)
    np.testing.assert_allclose(found, change.sum(axis=0), rtol=1e-9)


def test_blocks_of_documents_leave_the_decision(rng):
    """Documents in one block or in three get the same moves, but for the rounding of sums."""
    model = model_of(LIGHT)
    parameters, rows, _ = model.simulate(TOTALS, rng)
    parts = [type(rows)(*(value[i : i + 2] for value in rows)) for i in (0, 2, 4)]
    for sweep in (3, 4):
        one, (whole,) = moved(model, parameters, [None], [rows], Key(1, sweep))
        three, pieces = moved(model, parameters, [None] * 3, parts, Key(1, sweep))
        np.testing.assert_allclose(one.cov, three.cov)
        np.testing.assert_allclose(whole.psi, np.concatenate([part.psi for part in pieces]))


@pytest.mark.parametrize("order", [[3, 2, 1, 0], [1, 2, 0, 3]])
def test_documents_follow_new_names_before_the_next_sweep(order, rng):
    """Scales and levels wait for the sweep after that."""
    model, order = model_of(LIGHT), np.array(order)
    parameters, rows, _ = model.simulate(TOTALS, rng)
    renamed = model.rename(parameters, order, Key(1))
    same, (followed,) = moved(model, renamed, [None], [rows], Key(1, 3))
    for name in ("mean", "cov", "spread", "topics", "share"):
        np.testing.assert_array_equal(getattr(same, name), getattr(renamed, name))
    np.testing.assert_array_equal(same.move, np.arange(4))
    np.testing.assert_array_equal(followed.tokens, rows.tokens[:, order])
    shares = model.link.shares
    np.testing.assert_allclose(shares(followed.psi), shares(rows.psi)[:, order], rtol=1e-9)


@pytest.mark.skipif(not JIT, reason="there are no signatures without the compiler")
def test_one_signature(rng):
    model = model_of(replace(LIGHT))
    parameters, rows, _ = model.simulate(TOTALS, rng)
    for sweep in (1, 2):
        moved(model, parameters, [None], [rows], Key(1, sweep))
    for name in ("add_gains", "stretch_in_place", "shift_in_place"):
        assert len(getattr(stick_moves, name).signatures) == 1
