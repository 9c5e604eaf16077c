"""Documents under given topics: the sweep is right, and would be caught if it were not."""

from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import softmax

from joint import Law, one_sweep
from polystick.association import double_centred
from polystick.inference.execution import Threads
from polystick.inference.gibbs import Gibbs
from polystick.keys import Key
from polystick.models import given_topics
from polystick.models.given_topics import GivenTopics, Rows
from polystick.models.multinomial import Rows as RowsOfCounts
from polystick.models.softmax_counts import SoftmaxCounts
from polystick.models.topic_words import wide
from polystick.population import SparseFactors
from statistics_tools import MAX_Z
from topic_tools import needs_jit, weak_model

CENTRE = np.array([0.5, -0.5, 0.2, 0.0])
TOTALS = np.array([0, 1, 4, 12, 30, 30])
WORDS = weak_model(4, 5)
TOPICS = np.array(
    [[6, 1, 1, 1, 1], [1, 8, 2, 1, 1], [1, 1, 9, 4, 0], [0, 1, 1, 1, 9]], dtype=np.float32
)
SIZES = np.array([1.0, 3.0, 0.4, 1.7])  # topics are never normalised


def state_of(topics):
    words = wide((topics / topics.sum(axis=1, keepdims=True)).T * SIZES)
    return SimpleNamespace(**words)


def model_of(*states, n_first=1, n_each=1):
    law = SoftmaxCounts(SparseFactors(CENTRE, 2, scale=0.7, sparsity=0.5, wide=1.0))
    return GivenTopics(law, WORDS, tuple(map(state_of, states)), n_first, n_each)


MODEL = model_of(TOPICS)


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


def summarise(everything):
    """Say what words could tell, in bounded functions: of the law, of contrasts, of topics and words."""
    parameters, (psi, counts), words = everything
    sd = np.sqrt(np.diag(double_centred(parameters.cov)))
    contrasts = np.diff(psi, axis=1)
    n = np.maximum(1, counts.sum(axis=1, keepdims=True))
    expected = counts.sum(axis=1, keepdims=True) * softmax(psi, axis=1)
    topics, words = (counts / n)[1:], (words / n)[1:]
    values = [
        np.tanh(np.diff(parameters.mean) / 3),
        np.tanh(np.log(sd) / 2),
        np.tanh(contrasts / 3).mean(axis=0),
        np.square(np.tanh(contrasts / 3)).mean(axis=0),
        (np.tanh(contrasts[1:, :, None] / 3) * topics[:, None, :-1]).mean(axis=0).ravel(),
        np.tanh(np.square(counts - expected) / (expected + 1))[3:].mean(axis=0),
        (topics[:, :, None] * words[:, None, :-1]).mean(axis=0).ravel(),
        topics[[0, -1], :-1].ravel(),
    ]
    return np.concatenate(values)


LAW = Law(lambda rng: MODEL.simulate(TOTALS, rng), summarise)


def sweep_only(model, everything, i, rng):
    parameters, rows, words = everything
    (shard,) = model.topic_model.shards(words)
    return *one_sweep(model, parameters, rows, shard, i), words


def sweep(model, everything, i, rng):
    """Given a document's topics, words hardly move: both are drawn anew."""
    parameters, (psi, _), _ = sweep_only(model, everything, i, rng)
    counts = model.shares.simulate_counts(RowsOfCounts(psi), TOTALS, rng)
    return parameters, Rows(psi, counts), model.simulate_words(counts, rng)


@needs_jit
@pytest.mark.parametrize("times", [1, pytest.param(12, marks=pytest.mark.slow)])
def test_geweke(times, rng):
    z = LAW.z(partial(sweep, MODEL), 2500 * times, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@needs_jit
@pytest.mark.parametrize("n_starts", [400, pytest.param(6000, marks=pytest.mark.slow)])
def test_sweeps_keep_the_law_from_starts_that_have_it(n_starts, rng):
    z = LAW.drift_z(partial(sweep_only, MODEL), n_starts, 4, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


# sabotaged sweeps


@dataclass(frozen=True)
class Lawless(GivenTopics):
    """Topics of tokens are drawn from the words alone, as if all topics were as likely."""

    def _draw_counts(self, shard, psi, key):
        return super()._draw_counts(shard, np.zeros_like(psi), key)


@dataclass(frozen=True)
class Sizeless(GivenTopics):
    """Topics are taken for normalised."""

    def state_at(self, sweep):
        state = super().state_at(sweep)
        return SimpleNamespace(topics=state.topics, sizes=np.ones_like(state.sizes))


@dataclass(frozen=True)
class Late(GivenTopics):
    """Documents move given the topics that tokens had before."""

    def draw_rows(self, prior, shard, rows, key):
        new, _ = super().draw_rows(prior, shard, rows, key)
        table = given_topics._as_table(shard, rows.counts)
        plain, statistics = self.shares.draw_rows(prior, table, RowsOfCounts(rows.psi), key)
        return Rows(plain.psi, new.counts), statistics


@dataclass(frozen=True)
class Mixed(GivenTopics):
    """Joint moves take each document for its neighbour."""

    def move_together(self, parameters, shards, rows, key, ordered_map=map):
        wrong = [part._replace(counts=np.roll(part.counts, 1, axis=0)) for part in rows]
        parameters, moved = super().move_together(parameters, shards, wrong, key, ordered_map)
        return parameters, [new._replace(counts=old.counts) for new, old in zip(moved, rows)]


@needs_jit
@pytest.mark.parametrize("wrong", [Lawless, Sizeless, Late, Mixed])
def test_wrong_sweeps_are_caught(wrong, rng):
    model = wrong(MODEL.shares, WORDS, MODEL.states, 1, 1)
    z = LAW.drift_z(partial(sweep_only, model), 400, 3, rng)
    assert np.abs(z).max() > MAX_Z, np.abs(z).max()


# the schedule


def test_each_state_has_its_sweeps():
    model = replace(MODEL, states=("a", "b", "c"), n_first=3, n_each=2)
    told = "".join(model.state_at(sweep) for sweep in range(12))
    assert told == "aaaaabbccccc"


def test_topics_of_another_state_take_over(rng):
    """Where the last state has its topics the other way round, tokens change their topics."""
    model = model_of(TOPICS, TOPICS[::-1], n_first=1, n_each=1)
    words = model.simulate_words(np.tile([40, 0, 0, 0], (5, 1)), rng)
    (shard,) = WORDS.shards(words)
    psi = np.zeros((5, 4))
    early, late = (model._draw_counts(shard, psi, Key(3, sweep)) for sweep in (1, 2))
    assert early.sum(axis=0).argmax() == 0
    assert late.sum(axis=0).argmax() == 3


def test_same_bits_on_any_number_of_threads(rng):
    words = MODEL.simulate(np.full(40, 10), rng)[2]
    shards = WORDS.shards(words, 10)
    short = Gibbs(5, 5, n_chains=2)
    one, two = (
        short.run(MODEL, shards, seed=3, execution=execution)["cov"]
        for execution in (None, Threads(2))
    )
    np.testing.assert_array_equal(one, two)


def test_documents_without_words_are_allowed(rng):
    words = MODEL.simulate(np.array([0, 0, 3]), rng)[2]
    (shard,) = WORDS.shards(words)
    parameters = MODEL.initial_parameters([shard], Key(1))
    rows = MODEL.initial_rows(MODEL.prepare(parameters), shard, Key(1))
    parameters, rows = one_sweep(MODEL, parameters, rows, shard, 2)
    assert np.isfinite(rows.psi).all()
    np.testing.assert_array_equal(rows.counts.sum(axis=1), [0, 0, 3])
