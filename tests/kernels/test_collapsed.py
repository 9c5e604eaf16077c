"""The collapsed sweep, against the obvious program and exact probabilities."""

from typing import NamedTuple

import numba
import numpy as np
import pytest

from polystick.kernels import collapsed, streams
from polystick.kernels.simd32 import WIDTH
from statistics_tools import MIN_P, chi_square_pvalue

PLAIN = bool(numba.config.DISABLE_JIT)
SIZES = [2, 3, 8, 9, 13, 50]
N_WORDS, ETA = 12, 0.3


class Problem(NamedTuple):
    """Tokens and a prior."""

    rows: np.ndarray
    starts: np.ndarray
    words: np.ndarray
    alpha: np.ndarray

    def state(self):
        """Return random assignments with their word_topics and totals."""
        n_topics = len(self.alpha)
        assignments = np.random.default_rng(0).integers(n_topics, size=len(self.words))
        word_topics = np.zeros((N_WORDS, -(-n_topics // WIDTH) * WIDTH), np.float32)
        np.add.at(word_topics, (self.words, assignments), 1)
        return (
            assignments.astype(np.int32),
            word_topics,
            word_topics.sum(axis=0, dtype=float)[:n_topics],
        )

    def sweep(self, key, assignments, word_topics, totals):
        return collapsed.sweep_in_place(
            np.uint64(key), self.rows, self.starts, self.words, assignments, self.alpha, ETA,
            word_topics, totals,
        )  # fmt: skip


def problem(n_topics, n=30, longest=20):
    """Documents of any length, 0 included, whose ids are not their places."""
    rng = np.random.default_rng(n_topics)
    lengths = rng.integers(0, longest, n)
    lengths[[1, -1]] = 0
    starts = np.concatenate([[0], np.cumsum(lengths)])
    words = rng.choice(N_WORDS, lengths.sum(), p=rng.dirichlet(np.ones(N_WORDS)))
    ids = rng.integers(2**40, size=n, dtype=np.uint64)
    return Problem(ids, starts, words.astype(np.int32), rng.gamma(1.0, size=n_topics) + 0.05)


def place_at(weights, u):
    """Return the topic at the share u of all weight, with topics in the order of the lanes."""
    order = np.argsort(np.arange(len(weights)) % WIDTH, kind="stable")
    ends = np.cumsum(weights[order])
    return order[np.searchsorted(ends, u * ends[-1], side="right")]


def naive_sweep(key, problem, topics, eta):
    """Do it token by token, counting everything anew each time; return the log likelihood."""
    value, n_topics = 0.0, len(problem.alpha)
    document = np.repeat(np.arange(len(problem.rows)), np.diff(problem.starts))
    state = {d: streams.open_stream(np.uint64(key), row) for d, row in enumerate(problem.rows)}
    for i, (d, v) in enumerate(zip(document, problem.words)):
        u, *state[d] = streams.uniform(*map(np.uint64, state[d]))
        topics[i] = -1
        weights = conditional(topics, document, problem, d, v, eta)
        topics[i] = place_at(weights, u)
        with_it = conditional(topics, document, problem, d, v, eta)
        value += np.log(with_it.sum() / ((document == d).sum() + problem.alpha.sum()))
    assert (topics < n_topics).all()
    return value


def conditional(topics, document, problem, d, v, eta):
    """Return the weight of each topic for a token of word v in document d."""
    every = np.arange(len(problem.alpha))
    here = (topics[document == d, None] == every).sum(axis=0)
    of_word = (topics[problem.words == v, None] == every).sum(axis=0)
    totals = (topics[:, None] == every).sum(axis=0)
    return (here + problem.alpha) * (of_word + eta) / (totals + N_WORDS * eta)


@pytest.mark.parametrize("n_topics", SIZES)
def test_sweeps_are_those_of_the_obvious_program(n_topics):
    small = problem(n_topics, n=12 if PLAIN else 30)
    state = small.state()
    naive = state[0].copy()
    for key in range(3):
        value = small.sweep(key, *state)
        expected = naive_sweep(key, small, naive, ETA)
        np.testing.assert_array_equal(state[0], naive)
        assert value == pytest.approx(expected, rel=1e-5)


@pytest.mark.skipif(PLAIN, reason="vectors need the compiler")
@pytest.mark.parametrize("size", [WIDTH, 3 * WIDTH, 25 * WIDTH])
def test_vectors_give_the_bits_of_scalars(size):
    rng = np.random.default_rng(size)
    weight, counts = (rng.random(n).astype(np.float32) for n in (size, 3 * size))
    for old in range(size):
        sums = np.full((2, size), np.nan, np.float32)
        given = weight, counts, size, np.float32(0.3), old, np.float32(0.125)
        collapsed.run_lanes_scalar(*given, sums[0])
        collapsed.run_lanes_simd(*given, sums[1])
        np.testing.assert_array_equal(sums[0], sums[1])
        assert np.isfinite(sums).all()


@pytest.mark.parametrize("n_topics", SIZES)
def test_counts_stay_those_of_the_assignments(n_topics):
    many = problem(n_topics, n=40 if PLAIN else 300)
    assignments, word_topics, totals = many.state()
    for key in range(5):
        many.sweep(key, assignments, word_topics, totals)
    counted, of_documents = np.zeros_like(word_topics), np.zeros((len(many.rows), n_topics), int)
    collapsed.count_words(many.words, assignments, counted)
    collapsed.count_documents(many.starts, assignments, of_documents)
    np.testing.assert_array_equal(word_topics, counted)
    np.testing.assert_array_equal(totals, counted.sum(axis=0)[:n_topics])
    np.testing.assert_array_equal(of_documents.sum(axis=1), np.diff(many.starts))
    np.testing.assert_array_equal(of_documents.sum(axis=0), totals)


@pytest.mark.parametrize("n_topics", [3, 11])
def test_the_first_token_has_its_conditional_law(n_topics):
    """Catches a token that is not taken out: it would keep its topic too often."""
    small = problem(n_topics, n=6, longest=8)
    start = small.state()
    small.sweep(0, *start)
    others = start[0].copy()
    others[0] = -1
    document = np.repeat(np.arange(len(small.rows)), np.diff(small.starts))
    weights = conditional(others, document, small, document[0], small.words[0], ETA)
    counts = np.zeros(n_topics)
    for key in range(1, 300 if PLAIN else 20_000):
        state = [part.copy() for part in start]
        small.sweep(key, *state)
        counts[state[0][0]] += 1
    expected = weights / weights.sum() * counts.sum()
    assert chi_square_pvalue(counts, expected) > MIN_P
    kept = conditional(start[0], document, small, document[0], small.words[0], ETA)
    wrong = kept / kept.sum() * counts.sum()
    assert PLAIN or chi_square_pvalue(counts, wrong) < MIN_P


def sums_along_lanes(weights):
    """Return what `_pick` searches."""
    width = -(-len(weights) // WIDTH) * WIDTH
    sums = np.zeros(width + collapsed.MARGIN, np.float32)
    sums[: len(weights)] = weights
    lanes = np.cumsum(sums[:width].reshape(-1, WIDTH), axis=0, dtype=np.float32)
    sums[:width] = lanes.reshape(-1)
    sums[width:] = np.inf
    return sums


@pytest.mark.parametrize("n_topics", [2, 7, 8, 9, 24, 25, 50, 64, 200])
def test_each_place_leads_to_its_topic(n_topics):
    rng = np.random.default_rng(n_topics)
    weights = rng.integers(0, 8, n_topics).astype(
        float
    )  # sums are exact, some topics weigh nothing
    weights[0] += 1.0
    sums = sums_along_lanes(weights)
    for u in (np.arange(weights.sum()) + 0.5) / weights.sum():
        topic, total = collapsed._pick(u, sums, n_topics)
        assert total == weights.sum()
        assert topic == place_at(weights, u)


@pytest.mark.parametrize("n_topics", range(2, 20))
def test_the_last_place_is_a_topic(n_topics):
    """A uniform next to 1 becomes 1 in single precision."""
    topic, _ = collapsed._pick(
        np.nextafter(1.0, 0.0), sums_along_lanes(np.ones(n_topics)), n_topics
    )
    assert 0 <= topic < n_topics


def test_one_signature_each():
    if PLAIN:
        pytest.skip("nothing is compiled")
    small = problem(3)
    small.sweep(0, *small.state())
    assert len(collapsed.sweep_in_place.signatures) == 1
