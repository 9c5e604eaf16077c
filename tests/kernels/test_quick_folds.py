"""Climbing documents: against the obvious twin, and where they must not end."""

import numpy as np
import pytest

from naive_topics import corpus, dirichlet_shares, log_posterior, random_corpus
from polystick.decomposition import Decomposition
from polystick.kernels import quick_folds

STEPS, TOLERANCE = 400, 1e-7
TREES = {"sticks": Decomposition.sticks(range(5)), "balanced": Decomposition.balanced(5)}


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def documents(rng):
    return random_corpus(rng, 6, 12, 5)


def words_of(documents, sizes):
    places = documents.starts, documents.stops, documents.words, documents.counts
    return quick_folds.Words(*places, documents.topics, sizes)


def settle_sticks(documents, tree, precision, means, sizes=None):
    n, k = means.shape
    counts, psi = np.empty((n, k + 1)), np.empty((n, k))
    quick_folds.settle_sticks(
        words_of(documents, np.ones(k + 1) if sizes is None else sizes), tree.children, precision, means,
        tree.psi_from_log(np.zeros(k + 1)), STEPS, TOLERANCE, counts, psi,
    )  # fmt: skip
    return counts, psi


def settle_dirichlet(documents, alpha, sizes):
    counts = np.empty((len(documents.rows), len(alpha)))
    quick_folds.settle_dirichlet(words_of(documents, sizes), alpha, STEPS, TOLERANCE, counts)
    return counts


@pytest.mark.parametrize("name", TREES)
def test_no_step_leads_higher(name, documents, rng):
    tree, root = TREES[name], rng.normal(size=(4, 4))
    precision, means = root @ root.T + np.eye(4), rng.normal(size=(6, 4))
    sizes = rng.uniform(0.5, 2.0, 5)
    counts, psi = settle_sticks(documents, tree, precision, means, sizes)
    given = (documents, tree, precision, means, documents.topics[:, :5] / sizes)
    best = log_posterior(psi, *given)
    for _ in range(50):
        step = 0.02 * rng.normal(size=psi.shape)
        assert (log_posterior(psi + step, *given) < best + 1e-4).all()
    np.testing.assert_allclose(
        counts.sum(axis=1), np.bincount(documents.documents, documents.counts), rtol=1e-5
    )


def test_dirichlet_shares_are_those_of_the_twin(documents, rng):
    alpha, sizes = rng.uniform(0.2, 1.0, 5), rng.uniform(0.5, 2.0, 5)
    counts = settle_dirichlet(documents, alpha, sizes)
    expected = dirichlet_shares(documents, documents.topics[:, :5] / sizes, alpha, STEPS)
    found = (counts + alpha) / (counts + alpha).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=2e-4)


@pytest.mark.parametrize("name", TREES)
def test_many_equal_words_overrule_the_law(name):
    """All of 7000 tokens are of the topic that has the word, however rare the law takes it to be."""
    topics = np.full((2, 5), 1e-4)
    topics[0, 4], topics[1, :4] = 0.9, 0.9
    one = corpus([[(0, 7000)]], np.ones((1, 5)), topics)
    tree = TREES[name]
    means = tree.psi_from_log(np.log([[0.9, 0.05, 0.03, 0.0199, 0.0001]]))
    _, psi = settle_sticks(one, tree, np.eye(4), means)
    assert tree.probabilities(psi)[0, 4] > 0.98


def test_words_that_no_topic_knows_say_nothing():
    topics = np.array([[0.0] * 5, [0.5, 0.1, 0.1, 0.1, 0.2]])
    known = corpus([[(1, 3)]], np.ones((1, 5)), topics)
    both = corpus([[(0, 9), (1, 3)]], np.ones((1, 5)), topics)
    given = (TREES["balanced"], np.eye(4), np.zeros((1, 4)))
    for a, b in zip(settle_sticks(known, *given), settle_sticks(both, *given)):
        np.testing.assert_array_equal(a, b)
