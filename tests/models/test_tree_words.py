"""Correlated words: the sweep draws from the law, branches are learned, trees hold each word once."""

import itertools
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import scipy.sparse

from dated_tools import cut_and_resume, dated_corpus
from joint import Law, first_and_second, one_sweep
from naive_chain import joint, walk_problem
from polystick import augmentation
from polystick.alignment import align
from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.estimators.topics import CorrelatedTopicModel
from polystick.inference.execution import Threads
from polystick.inference.gibbs import Gibbs
from polystick.keys import Key
from polystick.models import tree_words
from polystick.models.topic_factors import assemble
from polystick.models.topic_shares import NormalShares, Sticks
from polystick.models.tree_words import (
    TreeWords,
    draw_law_of_nodes,
    similar_words,
    simulate_law_of_nodes,
    smoothed_logits,
)
from statistics_tools import MAX_Z, z_scores
from topic_tools import JIT, PRIOR, TOTALS, needs_jit

WORD_TREE = Decomposition.from_tuples((((0, 1), (2, 3)), 4))
STICKS = Decomposition.sticks([0, 1, 2])
PARTS = (NormalShares(PRIOR), Sticks(STICKS))
WORDS = TreeWords(WORD_TREE, 1.0)
MODEL = assemble(WORDS, *PARTS)


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


# the sweep against the law


def sweep(model, everything, i, rng):
    parameters, rows, counts = everything
    (shard,) = model.shards(counts)
    parameters, rows = one_sweep(model, parameters, rows, shard, i)
    return parameters, rows, model.simulate_counts(parameters, rows, TOTALS, rng)


def summarise(everything):
    """Variances have no variance, so their logs are taken, and what they scale is squashed."""
    p, (psi, _), counts = everything
    nodes = [np.tanh(p.node_psi[[0, 0, 1, 2], [0, 1, 0, 3]] / 3), np.tanh(p.node_mean[[0, 3]] / 3)]
    spread = np.abs(p.node_psi - p.node_mean)[[0, 1], [0, 3]] / np.sqrt(p.node_variance[[0, 3]])
    words = p.topics[:2, 0] / p.sizes[0]
    values = [p.mean, np.log(np.diag(p.cov)), np.tanh(psi[[0, 5], [0, 1]] / 3), words]
    logs = np.log(p.node_variance[[0, 2, 3]])
    return first_and_second([*values, *nodes, logs, spread, counts[5, :3] / 12])


MILD, WEAK = (Law(lambda rng: MODEL.simulate(TOTALS, rng), summarise) for _ in range(2))


@pytest.fixture
def mild(monkeypatch):
    """Let nodes be near 0: under the weak prior a chain without much data goes round slowly."""
    for name, value in {"STRENGTH": 1.0, "DEGREES": 8.0, "SCALE": 1.5}.items():
        monkeypatch.setattr(tree_words, name, value)


@needs_jit
def test_geweke(mild):
    """The chain is slow: one seed in 24 is beyond the limit here, and none of three after 20 000 sweeps."""
    z = MILD.z(partial(sweep, MODEL), 2000, np.random.default_rng(2))
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@pytest.mark.slow
@needs_jit
def test_geweke_under_the_weak_prior(rng):
    z = WEAK.z(partial(sweep, MODEL), 40_000, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@dataclass(frozen=True)
class ForgottenTilt(TreeWords):
    """Omega of the nodes ~ PG(trials, 0)."""

    def _draw_nodes(self, parameters, counts, t, key):
        still = parameters._replace(node_psi=np.zeros_like(parameters.node_psi))
        return super()._draw_nodes(still, counts, t, key)


@dataclass(frozen=True)
class ForgottenMean(TreeWords):
    """Nodes are drawn about 0."""

    def _draw_nodes(self, parameters, counts, t, key):
        centred = parameters._replace(node_mean=np.zeros_like(parameters.node_mean))
        return super()._draw_nodes(centred, counts, t, key)


@dataclass(frozen=True)
class HalvedVariances(TreeWords):
    """Nodes are drawn with half of their variance."""

    def _draw_nodes(self, parameters, counts, t, key):
        halved = parameters._replace(node_variance=0.5 * parameters.node_variance)
        return super()._draw_nodes(halved, counts, t, key)


@dataclass(frozen=True)
class SharedNoise(TreeWords):
    """All topics have the noise of the first."""

    def _draw_nodes(self, parameters, counts, t, key):
        first = parameters._replace(node_psi=parameters.node_psi[t:])
        return super()._draw_nodes(first, counts, 0, key)


@dataclass(frozen=True)
class OtherTree(TreeWords):
    """Tokens are split by the tree of other words."""

    def _draw_nodes(self, parameters, counts, t, key):
        return super()._draw_nodes(parameters, np.roll(counts, 1, axis=1), t, key)


@dataclass(frozen=True)
class TrebledTopics(TreeWords):
    """The law of the nodes counts each topic three times."""

    def draw(self, parameters, counts, key, ordered_map):
        fields = super().draw(parameters, counts, key, ordered_map)
        thrice = np.concatenate([fields["node_psi"]] * 3)
        mean, variance = draw_law_of_nodes(thrice, key.generator("nodes"))
        return {**fields, "node_mean": mean, "node_variance": variance}


WRONG = {
    ForgottenTilt: 1500,
    ForgottenMean: 1000,
    HalvedVariances: 1500,
    SharedNoise: 1500,
    OtherTree: 1000,
    TrebledTopics: 1500,
}


@needs_jit
@pytest.mark.parametrize(("wrong", "n_iter"), WRONG.items())
def test_geweke_rejects_a_sabotaged_sweep(wrong, n_iter, rng, mild):
    twin = assemble(wrong(WORD_TREE, 1.0), *PARTS)
    assert MILD.worst_z(partial(sweep, twin), n_iter, rng) > MAX_Z


# conditionals in their plainest form


class Silent(Key):
    """A key whose normals are 0."""

    def normals(self, site, rows, size):
        return np.zeros((len(rows), size))


@pytest.mark.parametrize("t", [0, 2])
def test_nodes_are_drawn_about_the_mean_of_a_scalar_gaussian(t, rng):
    p, _, _ = MODEL.simulate(TOTALS, rng)
    counts = np.array([[4, 0, 3, 0, 9]])
    found = WORDS._draw_nodes(p, counts, t, Silent(4))
    ids = np.array([t], dtype=np.uint64)
    splits, old = WORD_TREE.split(counts), p.node_psi[t : t + 1]
    kappa, omega = augmentation.draw_potential(splits, old, Key(4).at("node omega"), ids)
    np.testing.assert_array_equal(splits.trials[0], [16, 7, 4, 3])
    for j in range(4):
        truth = joint(
            walk_problem(p.node_mean[j], p.node_variance[j], 1.0, kappa[:, j], omega[:, j])
        )
        np.testing.assert_allclose(found[0, j], truth.mean[0, 0], rtol=1e-9, atol=1e-12)
        noisy = WORDS._draw_nodes(p, counts, t, Key(4))[0, j] - found[0, j]
        noise = Key(4).normals("node psi", ids, 4)[0, j]
        np.testing.assert_allclose(noisy, noise * np.sqrt(truth.cov[0, 0, 0, 0]), rtol=1e-9)


def moments_of_law(draw, n):
    """Return 1 / variance, mean / variance and mean^2 / variance of n draws, (n, 3 nodes)."""
    mean, variance = (np.stack(part) for part in zip(*(draw() for _ in range(n))))
    return np.concatenate([1 / variance, mean / variance, mean**2 / variance], axis=1)


def expected_moments(law):
    """Return what `moments_of_law` must be on average, of one node with a normal-inverse-Wishart law."""
    return np.array([law.expected_precision[0, 0], law.expected_linear[0], law.expected_quadratic])


def prior_of_node():
    degrees = tree_words.DEGREES
    return NormalInverseWishart([0.0], tree_words.STRENGTH, [[degrees * tree_words.SCALE]], degrees)


def test_the_law_of_nodes_is_normal_inverse_gamma(rng):
    psi = rng.normal([[1.0, -2.0]], [[0.5, 3.0]], size=(4, 2))
    drawn = moments_of_law(lambda: draw_law_of_nodes(psi, rng), 4000)
    laws = [prior_of_node().posterior(4, x.sum(keepdims=True), [[x @ x]]) for x in psi.T]
    truth = np.stack([expected_moments(law) for law in laws], axis=1).ravel()
    assert np.abs(z_scores(drawn, truth)).max() < MAX_Z
    other = [prior_of_node().posterior(5, x.sum(keepdims=True), [[x @ x]]) for x in psi.T]
    wrong = np.stack([expected_moments(law) for law in other], axis=1).ravel()
    assert np.abs(z_scores(drawn, wrong)).max() > MAX_Z


def test_simulated_nodes_have_this_law_too(rng):
    drawn = moments_of_law(lambda: simulate_law_of_nodes(2, rng), 4000)
    truth = np.repeat(expected_moments(prior_of_node()), 2)
    assert np.abs(z_scores(drawn, truth)).max() < MAX_Z


def test_topics_of_one_word_can_be_simulated(rng):
    """Probabilities that round to a little more than 1 are no error."""
    parameters, rows, _ = MODEL.simulate(np.full(200, 3), rng)
    certain = WORDS._fields(np.full((3, 4), 40.0), parameters.node_mean, parameters.node_variance)
    counts = MODEL.simulate_counts(parameters._replace(**certain), rows, np.full(200, 3), rng)
    np.testing.assert_array_equal(counts[:, 0], 3)


def test_a_start_has_the_shares_of_the_tokens():
    counts = np.array([[900, 0], [0, 0], [100, 0], [0, 500], [0, 500]])  # (V, T)
    found = WORD_TREE.probabilities(smoothed_logits(WORD_TREE, counts))
    np.testing.assert_allclose(found, (counts / 1000).T, atol=0.01)
    assert (found > 0).all()
    nothing = smoothed_logits(WORD_TREE, np.zeros((5, 2)))
    np.testing.assert_array_equal(nothing, np.zeros((2, 4)))


@pytest.mark.parametrize("order", [[1, 2, 0], [0, 2, 1], [2, 1, 0]])
def test_renamed_topics_tell_the_same_of_documents(order, rng):
    parameters, rows, _ = MODEL.simulate(TOTALS, rng)
    renamed = MODEL.rename(parameters, np.array(order), Key(3))
    followed = MODEL.link.rename(rows.psi, renamed.move)
    words = [
        MODEL.link.shares(psi) @ MODEL.describe_parameters(p)["topics"]
        for psi, p in ((rows.psi, parameters), (followed, renamed))
    ]
    np.testing.assert_allclose(*words, rtol=1e-6)
    for p in (parameters, renamed):
        topics = MODEL.describe_parameters(p)["topics"]
        np.testing.assert_allclose(topics, WORD_TREE.probabilities(p.node_psi), rtol=1e-6)
    assert (renamed.node_psi != parameters.node_psi).any()


# topics of whole branches


def branch_corpus(n, seed=5, n_words=256, n_tokens=25):
    """Return counts of words from topics that favour quarters of the words, and eighths within."""
    rng = np.random.default_rng(seed)
    topics = np.full((4, n_words), 0.05)
    for t, quarter in enumerate(np.array_split(np.arange(n_words), 4)):
        topics[t, quarter] += 1.0
        topics[t, quarter[: len(quarter) // 2]] += 2.0
    topics /= topics.sum(axis=1, keepdims=True)
    shares = rng.dirichlet([0.4] * 4, n)
    return rng.multinomial(n_tokens, shares @ topics), topics


@needs_jit
def test_a_known_tree_beats_words_on_their_own_and_a_wrong_one():
    """With hardly more tokens than words in all topics, branches say what words alone can't."""
    counts, topics = branch_corpus(180)
    train, test = counts[:60], counts[60:] * counts[:60].any(axis=0)
    mixed = np.random.default_rng(2).permutation(256).reshape((2,) * 8).tolist()
    trees = {"none": None, "right": Decomposition.balanced(256), "wrong": nested(mixed)}
    score, gap = {}, {}
    for name, tree in trees.items():
        model = CorrelatedTopicModel(
            4, word_tree=tree, inference=Gibbs(80, 80, n_chains=1), random_state=2, n_jobs=1
        ).fit(train)
        order = align([topics, model.topics_]).order[1]
        gap[name] = 0.5 * np.abs(model.topics_[order] - topics).sum(axis=1).mean()
        score[name] = model.score(test)
    assert score["right"] > max(score["none"], score["wrong"]) + 0.04, score
    assert gap["right"] < 0.9 * min(gap["none"], gap["wrong"]), gap


def nested(pairs):
    """Return nested lists of two as nested tuples."""
    return tuple(map(nested, pairs)) if isinstance(pairs, list) else pairs


# bits and edges

SHORT = Gibbs(4, 8, n_chains=2, keep=("proportions",)) if JIT else Gibbs(2, 2, n_chains=1)
NAMES = ("mean", "cov", "topics", "share", "node_mean", "node_variance")
MODEL_IN_BITS = assemble(TreeWords(Decomposition.balanced(20), 0.1), *PARTS)


def same(left, right):
    for name in NAMES:
        np.testing.assert_array_equal(left[name], right[name])
    np.testing.assert_array_equal(left.running("proportions"), right.running("proportions"))
    np.testing.assert_array_equal(left.log_likelihood, right.log_likelihood)


def test_threads_leave_the_bits():
    counts, _ = dated_corpus(300 if JIT else 12, 20, 4)
    shards = MODEL_IN_BITS.shards(counts, 128 if JIT else 5)
    assert len(shards) == 4
    serial = SHORT.run(MODEL_IN_BITS, shards, seed=3)
    for n in (1, 2, 4) if JIT else (2,):
        same(SHORT.run(MODEL_IN_BITS, shards, seed=3, execution=Threads(n)), serial)


@pytest.mark.parametrize("sweep", [1, 3, 5, 9, 11] if JIT else [1, 3])
def test_a_run_that_was_cut_goes_on_in_the_same_bits(tmp_path, sweep):
    counts, _ = dated_corpus(30 if JIT else 12, 20, 4)
    same(*cut_and_resume(SHORT, MODEL_IN_BITS, MODEL_IN_BITS.shards(counts), tmp_path, sweep))


CORPORA = {
    "one document": [[3, 0, 1, 2, 0]],
    "one word": [[0, 0, 0, 1, 0], [0, 0, 0, 1, 0]],
    "no word": [[0] * 5] * 3,
    "empty ends": [[0] * 5, [2, 1, 0, 4, 0], [0] * 5, [0, 0, 3, 0, 9], [0] * 5],
}


@pytest.mark.parametrize("counts", CORPORA.values(), ids=CORPORA.keys())
def test_corpora_at_the_edge(counts):
    posterior = SHORT.run(MODEL, MODEL.shards(np.array(counts)), seed=1)
    np.testing.assert_allclose(posterior["topics"].sum(axis=-1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(posterior.running("proportions")[0].sum(axis=1), 1.0)


# a tree from the words' documents


def leaves(tree):
    """Return the nodes above each word, as sets."""
    starts, nodes, _ = tree.paths()
    return [set(nodes[a:b]) for a, b in itertools.pairwise(starts)]


def distance(above, i, j):
    """Return the number of nodes on the path from word i to word j."""
    return len(above[i] ^ above[j]) + 1


def similar(counts, **options):
    counts = np.asarray(counts)
    tree = similar_words(scipy.sparse.csr_array(counts), **options)
    assert tree.n_categories == counts.shape[1]
    starts, _, _ = tree.paths()
    assert np.diff(starts).max() <= np.ceil(np.log2(counts.shape[1]))  # balanced
    np.testing.assert_array_equal(
        np.sort(tree.children[tree.children >= 0]), np.arange(counts.shape[1])
    )
    return tree


@pytest.mark.parametrize("n_words", [2, 3, 4, 5, 17, 40])
@pytest.mark.parametrize("n", [1, 2, 3, 60])
def test_every_word_is_a_leaf_once(n, n_words, rng):
    similar(1 + rng.poisson(1.0, (n, n_words)))


@pytest.mark.parametrize(
    "change",
    [
        lambda counts: counts * (np.arange(12) != 7),  # a word nobody used
        lambda counts: counts * (np.arange(12) == 7),  # only one word
        lambda counts: counts * (np.arange(30) == 4)[:, None],  # only one document with words
        lambda counts: np.tile(counts[0], (30, 1)),  # all documents alike
        lambda counts: np.tile(counts[:, :1], (1, 12)),  # all words alike
        lambda counts: counts[:4],  # fewer documents than directions
        lambda counts: counts * 1000,
        lambda counts: counts.astype(np.int32),
        lambda counts: counts.astype(np.float64),
    ],
)
def test_trees_of_corpora_at_the_edge(change, rng):
    similar(change(1 + rng.poisson(1.0, (30, 12))))


def nearness(counts, kinds):
    """Return the mean distance of words of one kind and that of words of two."""
    above, pairs = leaves(similar(counts)), list(itertools.combinations(range(len(kinds)), 2))
    alike = np.array([kinds[i] == kinds[j] for i, j in pairs])
    far = np.array([distance(above, i, j) for i, j in pairs])
    return far[alike].mean(), far[~alike].mean()


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.3])
def test_words_that_share_documents_are_close(noise, rng):
    """Eight kinds of documents with four words each, in random columns, and a few strangers.

    The best tree has 7 / 3 and 55 / 7; a median may cut through a kind, so some words are far apart.
    """
    kinds = rng.permutation(np.repeat(np.arange(8), 4))
    counts = (kinds == np.arange(400)[:, None] % 8) * rng.poisson(3.0, (400, 32))
    counts += rng.poisson(noise, counts.shape)
    near, far = nearness(counts, kinds)
    assert near < 0.6 * far
    near, far = nearness(rng.permuted(counts, axis=0), kinds)  # no two words go together
    assert near > 0.8 * far


def test_the_tree_is_the_same_each_time(rng):
    counts = rng.poisson(0.5, (50, 30))
    assert similar(counts) == similar(counts)
