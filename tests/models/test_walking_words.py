"""Walking words: the sweep draws from the law, walks are those of the dense Gaussian, changes are found."""

import itertools
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from dated_tools import (
    N_SLICES,
    SLICES,
    STEPS,
    TOTALS,
    WALKING,
    cut_and_resume,
    dated_corpus,
    law_of,
    sweep,
)
from naive_chain import joint, walk_problem
from polystick import augmentation
from polystick.alignment import align
from polystick.decomposition import Decomposition
from polystick.estimators.dynamic_topics import DynamicTopicModel
from polystick.inference.execution import Threads
from polystick.inference.gibbs import Gibbs
from polystick.keys import Key
from polystick.models import folding, tree_words, walking_words
from polystick.models.topic_factors import assemble
from polystick.models.topic_shares import Sticks
from polystick.models.tree_words import draw_law_of_nodes
from polystick.models.walking_shares import WalkingShares
from polystick.models.walking_words import WalkingWords
from statistics_tools import MAX_Z
from topic_tools import JIT, needs_jit

STICKS = Decomposition.sticks([0, 1, 2])
WORD_TREE = Decomposition.from_tuples((((0, 1), (2, 3)), 4))
WORDS = WalkingWords(WORD_TREE, N_SLICES, 1.0)
MODEL = assemble(WORDS, WALKING, Sticks(STICKS))


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


@pytest.fixture
def mild(monkeypatch):
    """Let nodes be near 0: under the weak prior a chain without much data goes round slowly."""
    for name, value in {"STRENGTH": 1.0, "DEGREES": 8.0, "SCALE": 1.0}.items():
        monkeypatch.setattr(tree_words, name, value)
    monkeypatch.setattr(walking_words, "STEP_DEGREES", 8.0)
    monkeypatch.setattr(walking_words, "STEP_SCALE", 0.5)


# the sweep against the law


def nodes(p):
    """Return the first slice and the steps of some nodes, squashed, and logs of variances."""
    psi, steps = np.tanh(p.node_psi / 3), np.tanh(np.diff(p.node_psi, axis=1) / 2)
    law = [np.tanh(p.node_mean[[0, 3]] / 3), np.log(p.node_variance[[0, 3]]), np.log(p.node_step)]
    some = [psi[0, 0, :2], psi[2, 2, 3], steps[0, :, 0], steps[1, :, 3], p.topics[[0, 10, 13], 0]]
    return [*some, np.abs(steps).mean(), *law]


MILD, WEAK = law_of(MODEL, nodes), law_of(MODEL, nodes)


@needs_jit
def test_geweke(rng, mild):
    z = MILD.z(partial(sweep, MODEL), 1500, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@pytest.mark.slow
@needs_jit
def test_geweke_under_the_weak_prior(rng):
    z = WEAK.z(partial(sweep, MODEL), 30_000, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@dataclass(frozen=True)
class TokensForAllTime(WalkingWords):
    """Tokens count in all slices."""

    def _draw_walks(self, parameters, counts, t, key):
        everywhere = np.tile(counts.sum(axis=0), (self.n_slices, 1))
        return super()._draw_walks(parameters, everywhere, t, key)


@dataclass(frozen=True)
class LawOfAllSlices(WalkingWords):
    """The law of the first slice is learned from all of them."""

    def draw(self, parameters, counts, key, ordered_map):
        fields = super().draw(parameters, counts, key, ordered_map)
        psi = fields["node_psi"].reshape(-1, self.n_words - 1)
        mean, variance = draw_law_of_nodes(psi, key.generator("wrong"))
        return {**fields, "node_mean": mean, "node_variance": variance}


@dataclass(frozen=True)
class StepsLikeTheStart(WalkingWords):
    """Nodes step as far as they start from their mean."""

    def _draw_walks(self, parameters, counts, t, key):
        far = parameters._replace(node_step=parameters.node_variance[:1])
        return super()._draw_walks(far, counts, t, key)


@dataclass(frozen=True)
class SharedNoise(WalkingWords):
    """All topics have the noise of the first."""

    def _draw_walks(self, parameters, counts, t, key):
        first = parameters._replace(node_psi=parameters.node_psi[t:])
        return super()._draw_walks(first, counts, 0, key)


@dataclass(frozen=True)
class FewerSteps(WalkingWords):
    """The steps are thought to be fewer by a fifth than those that were summed."""

    def draw(self, parameters, counts, key, ordered_map):
        fields = super().draw(parameters, counts, key, ordered_map)
        return {**fields, "node_step": 1.25 * fields["node_step"]}


WRONG = {
    TokensForAllTime: 1000,
    LawOfAllSlices: 1500,
    StepsLikeTheStart: 500,
    SharedNoise: 1000,
    FewerSteps: 1000,
}


@needs_jit
@pytest.mark.parametrize(("wrong", "n_iter"), WRONG.items())
def test_geweke_rejects_a_sabotaged_sweep(wrong, n_iter, rng, mild):
    twin = assemble(wrong(WORD_TREE, N_SLICES, 1.0), WALKING, Sticks(STICKS))
    assert MILD.worst_z(partial(sweep, twin), n_iter, rng) > MAX_Z


# walks against the dense Gaussian


class Chosen(Key):
    """A key with normals of our choice."""

    value = 0.0

    def normals(self, site, rows, size):
        return np.full((len(rows), size), self.value)


@pytest.mark.parametrize("t", [0, 2])
def test_walks_are_drawn_from_the_dense_gaussian(t, rng):
    parameters, _, _ = MODEL.simulate(TOTALS, rng, slices=SLICES)
    counts = rng.integers(0, 6, (N_SLICES, 5))
    counts[1] = 0
    found = WORDS._draw_walks(parameters, counts, t, Chosen(4))
    ids = np.arange(N_SLICES, dtype=np.uint64) + np.uint64(t * N_SLICES)
    kappa, omega = augmentation.draw_potential(
        WORD_TREE.split(counts), parameters.node_psi[t], Key(4).at("node omega"), ids
    )
    for j in range(4):
        law = (parameters.node_mean[j], parameters.node_variance[j], parameters.node_step[0])
        truth = joint(walk_problem(*law, kappa[:, j], omega[:, j]))
        np.testing.assert_allclose(found[:, j], truth.mean[:, 0], rtol=1e-9, atol=1e-12)


def test_topics_have_streams_of_their_own(rng):
    parameters, _, _ = MODEL.simulate(TOTALS, rng, slices=SLICES)
    same = parameters._replace(node_psi=np.zeros_like(parameters.node_psi))
    none = np.zeros((N_SLICES, 5), dtype=np.int64)
    walks = np.stack([WORDS._draw_walks(same, none, t, Key(2)) for t in range(3)])
    start = np.broadcast_to(parameters.node_mean, (3, 1, 4))
    steps = np.diff(walks, axis=1, prepend=start)
    assert len(np.unique(np.round(steps, 9))) == steps.size


def test_many_tokens_decide_the_topics_of_each_slice(rng):
    parameters, _, _ = MODEL.simulate(TOTALS, rng, slices=SLICES)
    truth = rng.dirichlet([2.0] * 5, (N_SLICES, 3))  # (S, T, V)
    counts = np.zeros((N_SLICES * 5, 8), np.int32)
    counts[:, :3] = np.round(1e6 * truth).swapaxes(1, 2).reshape(-1, 3)
    for i in range(100):
        words = WORDS.draw(parameters, counts, Key(1, i), map)
        parameters = parameters._replace(**words)
    found = MODEL.describe_parameters(parameters)["topics"]
    np.testing.assert_allclose(found, truth.swapaxes(0, 1), atol=0.005)


# words of a slice


def test_words_are_numbered_by_slice():
    """A cell's number, document by document, some of which have no words."""
    counts, slices = dated_corpus(12, 5, 3)
    counts[[0, 1, 5, 6, -1]] = 0
    (shard,) = MODEL.shards(counts, slices=slices)
    truth = [s * 5 + v for row, s in zip(counts, slices) for v in np.flatnonzero(row)]
    np.testing.assert_array_equal(WORDS.cells(shard), truth)


def test_words_are_numbered_by_slice_while_some_are_hidden():
    """Annealing shows a document word by word."""
    counts, slices = dated_corpus(12, 5, 3)
    counts[[0, 1, 5, 6, -1]] = 0
    (shard,) = MODEL.shards(counts, slices=slices)
    tokens = folding.in_random_order(shard, 1)
    stages = folding._stages(shard, 7)
    for before, after in itertools.pairwise(stages):
        fresh = tokens._replace(starts=tokens.starts + before, stops=tokens.starts + after)
        found = WORDS.cells(fresh)
        for i, (a, b) in enumerate(zip(fresh.starts, fresh.stops)):
            np.testing.assert_array_equal(found[a:b], slices[i] * 5 + tokens.words[a:b])


@pytest.mark.parametrize("order", [[1, 2, 0], [0, 2, 1], [2, 1, 0]])
def test_renamed_topics_tell_the_same_of_documents(order, rng):
    parameters, rows, _ = MODEL.simulate(TOTALS, rng, slices=SLICES)
    renamed = MODEL.rename(parameters, np.array(order), Key(3))
    followed = MODEL.link.rename(rows.psi, renamed.move)
    words = []
    for psi, p in ((rows.psi, parameters), (followed, renamed)):
        topics = MODEL.describe_parameters(p)["topics"][:, SLICES]
        words.append(np.einsum("nt,tnv->nv", MODEL.link.shares(psi), topics))
        np.testing.assert_allclose(
            MODEL.describe_parameters(p)["topics"], WORD_TREE.probabilities(p.node_psi), rtol=1e-6
        )
    np.testing.assert_allclose(*words, rtol=1e-6)
    assert (renamed.node_psi != parameters.node_psi).any()


# a topic that changes


def changing_corpus(rng, n_slices=6, n=360, n_words=24):
    """Return counts, slices (n,) and topics (3, S, V): the first swaps words 0-3 for 8-11 in time."""
    topics = np.full((3, n_slices, n_words), 0.01)
    weight = np.linspace(1.0, 0.0, n_slices)[:, None]
    topics[0, :, 0:4] += weight
    topics[0, :, 4:8] += 1.0
    topics[0, :, 8:12] += 1.0 - weight
    topics[1, :, 12:18] += 1.0
    topics[2, :, 18:24] += 1.0
    topics /= topics.sum(axis=2, keepdims=True)
    slices, shares = np.arange(n) % n_slices, rng.dirichlet([0.5] * 3, n)
    words = np.einsum("nt,tnv->nv", shares, topics[:, slices])
    return rng.multinomial(40, words), slices, topics


def evolved(counts, slices, topics):
    """Return a fitted face, and which of its topics is which."""
    model = DynamicTopicModel(
        3, evolving=True, inference=Gibbs(100, 100, n_chains=1), random_state=1, n_jobs=1
    ).fit(counts, times=slices)
    assert model.topics_.shape == topics.shape
    return model, align([topics.reshape(3, -1), model.topics_.reshape(3, -1)]).order[1]


def moved(topics):
    """Return the weight of the words that the first topic loses and of those it gains, (2, S)."""
    return np.stack([topics[0, :, a : a + 4].sum(axis=1) for a in (0, 8)])


@needs_jit
def test_a_change_of_words_is_found(rng):
    counts, slices, topics = changing_corpus(rng)
    model, order = evolved(counts, slices, topics)
    found = model.topics_[order]
    for left, right in zip(moved(found), moved(topics)):
        assert np.corrcoef(left, right)[0, 1] > 0.95
    assert np.abs(moved(found) - moved(topics)).max() < 0.12
    gap = 0.5 * np.abs(found - topics).sum(axis=2)
    assert gap.max() < 0.2, gap
    still = 0.5 * np.abs(found[1:, 0] - found[1:, -1]).sum(axis=1)
    assert still.max() < 0.2, still
    first, last = (set(model.topics(4, time=s).loc[order[0], 1:]) for s in (0, 5))
    assert first <= set(model.words_[:8])
    assert last <= set(model.words_[4:12])


@needs_jit
def test_a_change_is_not_found_where_there_is_none(rng):
    """The same documents with the time stamps of others."""
    counts, slices, topics = changing_corpus(rng)
    model, order = evolved(counts, rng.permutation(slices), topics)
    found = model.topics_[order]
    assert np.abs(moved(found) - moved(topics)).max() > 0.18  # a constant misses by 0.24
    assert np.ptp(moved(found), axis=1).max() < 0.2


# bits


TREE_IN_BITS = Decomposition.balanced(20)
MODEL_IN_BITS = assemble(
    WalkingWords(TREE_IN_BITS, 4, 0.1), WalkingShares(4, *STEPS), Sticks(STICKS)
)
SHORT = Gibbs(4, 8, n_chains=2, keep=("proportions",)) if JIT else Gibbs(2, 2, n_chains=1)
NAMES = ("levels", "cov", "step_cov", "topics", "share", "node_step")


def same(left, right):
    for name in NAMES:
        np.testing.assert_array_equal(left[name], right[name])
    np.testing.assert_array_equal(left.running("proportions"), right.running("proportions"))
    np.testing.assert_array_equal(left.log_likelihood, right.log_likelihood)


def test_threads_leave_the_bits():
    counts, slices = dated_corpus(300 if JIT else 12, 20, 4)
    shards = MODEL_IN_BITS.shards(counts, 128 if JIT else 5, slices=slices)
    assert len(shards) == 4
    serial = SHORT.run(MODEL_IN_BITS, shards, seed=3)
    for n in (1, 2, 4) if JIT else (2,):
        same(SHORT.run(MODEL_IN_BITS, shards, seed=3, execution=Threads(n)), serial)


@pytest.mark.parametrize("sweep", [1, 3, 5, 9, 11] if JIT else [1, 3])
def test_a_run_that_was_cut_goes_on_in_the_same_bits(tmp_path, sweep):
    counts, slices = dated_corpus(30 if JIT else 12, 20, 4)
    shards = MODEL_IN_BITS.shards(counts, slices=slices)
    same(*cut_and_resume(SHORT, MODEL_IN_BITS, shards, tmp_path, sweep))


# corpora at the edge


@pytest.mark.parametrize("used", [[1, 2], [0, 2], [0, 1], [1], []], ids=str)
def test_empty_slices_anywhere(used):
    """Even where there are documents, but none with words."""
    counts, slices = dated_corpus(12, 6, 3)
    slices = np.array(used)[np.arange(12) % len(used)] if used else slices
    counts = counts if used else np.zeros_like(counts)
    counts[[0, -1]] = 0
    tree = Decomposition.balanced(6)
    model = assemble(WalkingWords(tree, 3, 0.1), WALKING, Sticks(STICKS))
    posterior = SHORT.run(model, model.shards(counts, slices=slices), seed=1)
    np.testing.assert_allclose(posterior["topics"].sum(axis=-1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(posterior.running("proportions")[0].sum(axis=1), 1.0)


@pytest.mark.parametrize("n_words", [2, 6])
def test_one_slice_only(n_words):
    counts, _ = dated_corpus(12, n_words, 3)
    model = DynamicTopicModel(3, evolving=True, inference=SHORT, random_state=0, n_jobs=1)
    model.fit(counts, times=[1999] * 12)
    assert model.topics_.shape == (3, 1, n_words)
    assert model.shares_over_time().mean.shape == (1, 3)
    assert np.isfinite(model.score(counts, times=[1999] * 12))
