"""Correlated words: the sweep draws from the law, branches are learned as such, trees hold every word once."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse

from joint import first_and_second, geweke_z
from polystick import augmentation
from polystick.alignment import align
from polystick.decomposition import Decomposition
from polystick.estimators.topics import CorrelatedTopicModel
from polystick.inference.execution import Threads
from polystick.inference.gibbs import Gibbs
from polystick.keys import Key
from polystick.models import word_trees
from polystick.models.word_trees import CorrelatedWords, draw_law_of_nodes, similar_words
from statistics_tools import MAX_Z, z_scores
from topic_tools import JIT, PRIOR, TOTALS, needs_jit

WORD_TREE = Decomposition.from_tuples((((0, 1), (2, 3)), 4))
STICKS = Decomposition.sticks([0, 1, 2])
MODEL = CorrelatedWords(5, 1.0, PRIOR, STICKS, WORD_TREE)


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


# the sweep against the law


def sweep(model, everything, i, rng):
    parameters, rows, counts = everything
    (shard,) = model.shards(counts)
    key = Key(7, i)
    rows, statistics = model.draw_rows(model.prepare(parameters), shard, rows, key)
    parameters = model.draw_parameters(parameters, statistics, key)
    return parameters, rows, model.simulate_counts(parameters, rows, TOTALS, rng)


def summarise(everything):
    """Variances have no variance, so their logs are taken, and what they scale is squashed."""
    p, (psi,), counts = everything
    nodes = [np.tanh(p.node_psi[[0, 0, 1, 2], [0, 1, 0, 3]] / 3), np.tanh(p.node_mean[[0, 3]] / 3)]
    spread = np.abs(p.node_psi - p.node_mean)[[0, 1], [0, 3]] / np.sqrt(p.node_variance[[0, 3]])
    words = p.topics[:2, 0] / p.sizes[0]
    values = [p.mean, np.log(np.diag(p.cov)), np.tanh(psi[[0, 5], [0, 1]] / 3), words]
    logs = np.log(p.node_variance[[0, 2, 3]])
    return first_and_second([*values, *nodes, logs, spread, counts[5, :3] / 12])


def geweke(model, rng, n_iter):
    return geweke_z(
        lambda rng: model.simulate(TOTALS, rng),
        lambda everything, i, rng: sweep(model, everything, i, rng),
        summarise,
        n_iter,
        rng,
    )


@pytest.fixture
def mild(monkeypatch):
    """Let nodes be near 0: under the weak prior a chain without much data goes round slowly."""
    for name, value in {"STRENGTH": 1.0, "DEGREES": 8.0, "SCALE": 1.5}.items():
        monkeypatch.setattr(word_trees, name, value)


@needs_jit
def test_geweke(rng, mild):
    z = geweke(MODEL, rng, 2000)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@pytest.mark.slow
@needs_jit
def test_geweke_under_the_weak_prior(rng):
    z = geweke(MODEL, rng, 60_000)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@dataclass(frozen=True)
class ForgottenTilt(CorrelatedWords):
    """Omega of the nodes ~ PG(trials, 0)."""

    def _draw_nodes(self, parameters, counts, t, key):
        still = parameters._replace(node_psi=np.zeros_like(parameters.node_psi))
        return super()._draw_nodes(still, counts, t, key)


@dataclass(frozen=True)
class ForgottenMean(CorrelatedWords):
    """Nodes are drawn about 0."""

    def _draw_nodes(self, parameters, counts, t, key):
        centred = parameters._replace(node_mean=np.zeros_like(parameters.node_mean))
        return super()._draw_nodes(centred, counts, t, key)


@dataclass(frozen=True)
class SquaredVariances(CorrelatedWords):
    """Nodes are drawn with the square of their variance."""

    def _draw_nodes(self, parameters, counts, t, key):
        squared = parameters._replace(node_variance=parameters.node_variance**2)
        return super()._draw_nodes(squared, counts, t, key)


@dataclass(frozen=True)
class SharedNoise(CorrelatedWords):
    """All topics have the noise of the first."""

    def _draw_nodes(self, parameters, counts, t, key):
        first = parameters._replace(node_psi=parameters.node_psi[t:])
        return super()._draw_nodes(first, counts, 0, key)


@dataclass(frozen=True)
class OtherTree(CorrelatedWords):
    """Tokens are split by the tree of other words."""

    def _draw_nodes(self, parameters, counts, t, key):
        return super()._draw_nodes(parameters, np.roll(counts, 1, axis=1), t, key)


@dataclass(frozen=True)
class TrebledTopics(CorrelatedWords):
    """The law of the nodes counts each topic three times."""

    def draw_words(self, parameters, counts, key, ordered_map):
        fields = super().draw_words(parameters, counts, key, ordered_map)
        thrice = np.concatenate([fields["node_psi"]] * 3)
        mean, variance = draw_law_of_nodes(thrice, key.generator("nodes"))
        return {**fields, "node_mean": mean, "node_variance": variance}


WRONG = {
    ForgottenTilt: 1500,
    ForgottenMean: 1000,
    SquaredVariances: 1500,
    SharedNoise: 1500,
    OtherTree: 1000,
    TrebledTopics: 1500,
}


@needs_jit
@pytest.mark.parametrize(("wrong", "n_iter"), WRONG.items())
def test_geweke_rejects_a_sabotaged_sweep(wrong, n_iter, rng, mild):
    z = geweke(wrong(5, 1.0, PRIOR, STICKS, WORD_TREE), rng, n_iter)
    assert np.abs(z).max() > MAX_Z, np.sort(np.abs(z))[-5:]
