"""Assignments of tokens to topics, against exact probabilities and the obvious program."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from naive_topics import SMALLEST, corpus, expect, random_corpus
from polystick.kernels import assignments
from polystick.kernels.simd32 import WIDTH
from statistics_tools import MIN_P, chi_square_pvalue

PLAIN = bool(numba.config.DISABLE_JIT)
N_TOKENS = 2000 if PLAIN else 200_000
KEY = np.uint64(0xFEED_5EED)
SIZES = [2, 3, 8, 9, 50]


def draw(problem, key=KEY):
    """Return (value, pairs, topic counts)."""
    pairs = np.full(int(problem.counts.sum()), -1, np.int32)
    topic_counts = np.full(problem.weights.shape, -1, np.int64)
    return assignments.draw_assignments(key, *problem, pairs, topic_counts), pairs, topic_counts


def tallies(problem, pairs):
    """Return how often each topic, padding included, was drawn in each cell: (cells, Tp)."""
    size = problem.topics.shape[1]
    cell = np.repeat(np.arange(len(problem.counts)), problem.counts)
    assert (pairs // size == problem.words[cell]).all()
    table = np.zeros((len(problem.counts), size), np.int64)
    np.add.at(table, (cell, pairs % size), 1)
    return table


def law_pvalue(counts, probabilities):
    """Return a p-value of one cell's tally; topics that are rarely expected are taken together."""
    expected = np.zeros(len(counts))
    expected[: len(probabilities)] = counts.sum() * probabilities
    assert (counts[expected == 0] == 0).all()
    often = expected > 10
    rare = expected[~often].sum()
    if rare < 10:  # too few for chi-square: the largest topic takes them
        assert counts[~often].sum() < 60
        often_counts, often_expected = counts[often].astype(float), expected[often]
        often_expected[often_expected.argmax()] += rare
        often_counts[often_expected.argmax()] += counts[~often].sum()
        return chi_square_pvalue(often_counts, often_expected) if often.sum() > 1 else 1.0
    return chi_square_pvalue([*counts[often], counts[~often].sum()], [*expected[often], rare])


def law_problem(n_topics):
    """Two documents, three words with zeros among their topics, many tokens."""
    rng = np.random.default_rng(n_topics)
    topics = rng.gamma(3.0, size=(3, n_topics))
    topics[1, ::2] = 0.0
    topics[2, -1] = 50.0
    weights = rng.dirichlet(np.full(n_topics, 5.0), 2)
    weights[1, 0] = 1e-40
    return corpus([[(0, N_TOKENS), (2, N_TOKENS)], [(1, N_TOKENS), (0, 7)]], weights, topics)


@pytest.mark.parametrize("n_topics", SIZES)
def test_topics_have_their_probabilities(n_topics):
    problem = law_problem(n_topics)
    table = tallies(problem, draw(problem)[1])
    exact, _ = problem.probabilities()
    for cell in range(3):
        assert law_pvalue(table[cell], exact[cell]) > MIN_P


@pytest.mark.parametrize("n_topics", SIZES)
def test_that_test_rejects_wrong_probabilities(n_topics):
    problem = law_problem(n_topics)
    weights = problem.weights.copy()
    weights[:, ::2] *= 3.0 if PLAIN else 1.1
    table = tallies(problem, draw(problem._replace(weights=weights))[1])
    exact, _ = problem.probabilities()
    assert min(law_pvalue(table[cell], exact[cell]) for cell in range(2)) < MIN_P


@pytest.mark.parametrize("n_topics", SIZES)
def test_a_word_of_one_topic_belongs_to_it(n_topics):
    cells = [[(word, 20) for word in range(n_topics)]]
    problem = corpus(cells, np.linspace(1.0, 2.0, n_topics)[None], np.eye(n_topics))
    _, pairs, topic_counts = draw(problem)
    assert (topic_counts == 20).all()
    assert (pairs == np.repeat(np.arange(n_topics) * (problem.topics.shape[1] + 1), 20)).all()


@pytest.mark.parametrize("excluded", [1e-40, 1e-24])  # products of 0 and subnormal ones
def test_totals_too_small_for_float32_keep_their_law(excluded):
    # The one word lives in topics that the document all but excludes.
    topics = np.zeros((1, 11))
    topics[0, [2, 5, 10]] = 1e-20, 3e-20, 4e-20
    weights = np.full((1, 11), excluded)
    weights[0, 0] = 1.0
    problem = corpus([[(0, N_TOKENS // 10)]], weights, topics)
    value, pairs, topic_counts = draw(problem)
    exact, _ = problem.probabilities()
    assert law_pvalue(tallies(problem, pairs)[0], exact[0]) > MIN_P
    assert law_pvalue(topic_counts[0], exact[0]) > MIN_P
    assert value == pytest.approx(problem.log_likelihood(), rel=1e-12)
    wrong = np.where(exact[0] > 0, 1 / 3, 0.0)
    assert law_pvalue(topic_counts[0], wrong) < MIN_P


def test_a_word_of_no_topic_follows_the_weights():
    weights = np.array([[0.5, 0.0, 0.3, 0.2]])
    problem = corpus([[(0, N_TOKENS // 10)]], weights, np.zeros((1, 4)))
    value, _, topic_counts = draw(problem)
    assert law_pvalue(topic_counts[0], weights[0]) > MIN_P
    assert law_pvalue(topic_counts[0], np.array([0.3, 0.0, 0.5, 0.2])) < MIN_P
    assert value == pytest.approx(problem.counts.sum() * np.log(SMALLEST), rel=1e-12)


@pytest.mark.parametrize("n_topics", SIZES)
def test_log_likelihood(n_topics):
    problem = random_corpus(np.random.default_rng(n_topics), 12, 30, n_topics)
    assert draw(problem)[0] == pytest.approx(problem.log_likelihood(), rel=1e-6)


@pytest.mark.parametrize("size", [1e-28, 1e-3, 1e30])
def test_log_likelihood_of_a_long_document_is_finite(size):
    problem = corpus([[(0, 1500)]], [[0.4, 0.6]], [[size, 2.0 * size]])
    assert draw(problem)[0] == pytest.approx(problem.log_likelihood(), rel=1e-6)


def test_counts_are_those_of_the_pairs():
    problem = random_corpus(np.random.default_rng(1), 9, 20, 9)
    _, pairs, topic_counts = draw(problem)
    table = tallies(problem, pairs)
    for i, (start, stop) in enumerate(zip(problem.starts, problem.stops)):
        np.testing.assert_array_equal(table[start:stop].sum(0)[:9], topic_counts[i])


def test_draws_depend_on_neither_block_nor_order():
    problem = random_corpus(np.random.default_rng(2), 9, 20, 9)
    _, pairs, topic_counts = draw(problem)
    ends = np.cumsum([problem.counts[a:b].sum() for a, b in zip(problem.starts, problem.stops)])
    order = np.random.default_rng(0).permutation(9)
    moved = problem._replace(
        rows=problem.rows[order],
        starts=problem.starts[order],
        stops=problem.stops[order],
        weights=problem.weights[order],
    )
    _, moved_pairs, moved_counts = draw(moved)
    parts = np.split(pairs, ends[:-1])
    np.testing.assert_array_equal(moved_pairs, np.concatenate([parts[i] for i in order]))
    np.testing.assert_array_equal(moved_counts, topic_counts[order])
    assert (draw(problem, np.uint64(1))[1] != pairs).any()


@pytest.mark.skipif(PLAIN, reason="vectors are LLVM's")
@pytest.mark.parametrize("size", [WIDTH, 3 * WIDTH, 25 * WIDTH])
def test_vectors_and_scalars_agree_to_the_bit(size):
    rng = np.random.default_rng(size)
    scaled, topics = (rng.random(n).astype(np.float32) for n in (size, 3 * size))
    sums = np.full((2, size), np.nan, np.float32)
    assignments.run_lanes_scalar(scaled, topics, size, sums[0])
    assignments.run_lanes_simd(scaled, topics, size, sums[1])
    np.testing.assert_array_equal(sums[0], sums[1])
    assert np.isfinite(sums).all()


@pytest.mark.parametrize("setting", [{"POLYSTICK_SIMD": "0"}, {"NUMBA_DISABLE_JIT": "1"}])
def test_the_scalar_twin_is_selected(setting):
    program = (
        "from polystick.kernels import assignments as a, collapsed as c\n"
        "assert a.run_lanes is a.run_lanes_scalar\n"
        "assert c.run_lanes is c.run_lanes_scalar\n"
    )
    subprocess.run([sys.executable, "-c", program], env=os.environ | setting, check=True)


def test_tally():
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 5 * 8, 300).astype(np.int32)
    counts = rng.integers(0, 9, (5, 8)).astype(np.int32)
    expected = counts + np.bincount(pairs, minlength=40).reshape(5, 8)
    assignments.tally_in_place(pairs, counts)
    np.testing.assert_array_equal(counts, expected)


# ---- expectations


def run_expect(problem, counts, topics, words):
    expected = np.full(problem.weights.shape, np.nan)
    value = assignments.expect_assignments(
        problem.starts,
        problem.stops,
        problem.words,
        counts,
        problem.weights,
        topics,
        expected,
        words,
    )
    return expected, value


@pytest.mark.parametrize("n_topics", SIZES)
def test_expectations(n_topics):
    rng = np.random.default_rng(n_topics)
    problem = random_corpus(rng, 7, 12, n_topics)
    counts = np.where(rng.random(problem.counts.size) < 0.5, 1.0, rng.gamma(1.0))
    topics = rng.gamma(1.0, size=(12, n_topics))
    before = rng.gamma(1.0, size=(12, n_topics))
    words = before.copy()
    ours, value = run_expect(problem, counts, topics, words)
    of_topics, of_words, naive_value = expect(problem, counts, topics)
    np.testing.assert_allclose(ours, of_topics, rtol=1e-12, atol=0)
    np.testing.assert_allclose(words, before + of_words, rtol=1e-12, atol=0)
    assert value == pytest.approx(naive_value, rel=1e-12)
    alone, same_value = run_expect(problem, counts, topics, np.empty((0, n_topics)))
    np.testing.assert_array_equal(alone, ours)
    assert same_value == value


@pytest.mark.parametrize("size", [0.0, 1e-300])
def test_a_cell_of_sum_zero_is_shared_by_the_weights(size):
    problem = corpus([[(0, 2), (1, 3)]], [[0.25, 0.75]], [[1, 1], [0, 0]])
    topics, words = np.array([[1.0, 1.0], [size, size]]), np.zeros((2, 2))
    ours, value = run_expect(problem, problem.counts.astype(float), topics, words)
    np.testing.assert_allclose(ours, [[1.25, 3.75]], rtol=1e-14)
    np.testing.assert_allclose(words, [[0.5, 1.5], [0.0, 0.0]], rtol=1e-14)
    assert value == pytest.approx(3 * np.log(SMALLEST), rel=1e-12)


@pytest.mark.skipif(PLAIN, reason="nothing is compiled")
def test_one_signature_each():
    draw(law_problem(3))
    assert len(assignments.draw_assignments.signatures) == 1
    assert len(assignments.tally_in_place.signatures) <= 1
    assert len(assignments.expect_assignments.signatures) <= 1
