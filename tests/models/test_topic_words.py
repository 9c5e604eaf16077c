"""Counts of words by topic add up over blocks, whatever the blocks."""

import numpy as np
import pytest

from polystick.models.topic_words import ExpectedWords, Pairs, padded


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


@pytest.mark.parametrize(("n", "wide"), [(1, 8), (8, 8), (9, 16), (50, 56), (200, 200)])
def test_padded(n, wide):
    assert padded(n) == wide


def test_pairs_are_counted(rng):
    words, topics = rng.integers(0, 20, 500), rng.integers(0, 8, 500)
    pairs = (words * 8 + topics).astype(np.int32)
    blocks = [
        Pairs([part], np.bincount(part % 8, minlength=8), 160)
        for part in np.split(pairs, [0, 3, 120, 120, 499])
    ]
    expected = np.zeros((20, 8), int)
    for word, topic in zip(words, topics):
        expected[word, topic] += 1
    total = sum(blocks[1:], start=blocks[0])
    np.testing.assert_array_equal(total.table(20, 8), expected)
    np.testing.assert_array_equal(total.table(20, 8), expected)  # a second look changes nothing
    assert total.table(20, 8).dtype == np.int32
    np.testing.assert_array_equal(total.tokens, expected.sum(axis=0))


def blocks_of(rng, sizes, n_words=15, n_topics=3):
    for size in sizes:
        vocabulary = np.sort(rng.choice(n_words, size, replace=False)).astype(np.int32)
        yield ExpectedWords(n_words, vocabulary, rng.gamma(1.0, size=(size, n_topics)))


def dense(blocks, n_words=15, n_topics=3):
    table = np.zeros((n_words, n_topics))
    for block in blocks:
        for i, word in enumerate(block.vocabulary):
            table[word] += block.values[i]
    return table


@pytest.mark.parametrize("sizes", [(4,), (4, 7), (1, 0, 15, 3), (0, 0)])
def test_expected_words_add_up(sizes, rng):
    blocks = list(blocks_of(rng, sizes))
    expected = dense(blocks)
    total = sum(blocks[1:], start=blocks[0])
    np.testing.assert_allclose(total.table(), expected, rtol=1e-14)
    np.testing.assert_allclose(total.scaled(2.5).table(), 2.5 * expected, rtol=1e-14)


def test_sums_leave_blocks_as_they_were(rng):
    blocks = list(blocks_of(rng, (5, 6, 7)))
    before = [block.table().copy() for block in blocks]
    sum(blocks[1:], start=blocks[0])
    for block, table in zip(blocks, before):
        np.testing.assert_array_equal(block.table(), table)


def test_scaled_words_add_up_too(rng):
    blocks = list(blocks_of(rng, (5, 6, 7)))
    expected = 3 * dense(blocks[:2]) + dense(blocks[2:])
    found = (blocks[0] + blocks[1]).scaled(3.0) + blocks[2]
    np.testing.assert_allclose(found.table(), expected, rtol=1e-14)


def test_tokens_are_tallied_once_they_are_more_than_cells(rng):
    blocks = [rng.integers(0, 40, 15).astype(np.int32) for _ in range(9)]
    total = Pairs([blocks[0]], np.bincount(blocks[0] % 8, minlength=8), 40)
    held = []
    for pairs in blocks[1:]:
        before = None if total.tallied is None else total.tallied.copy()
        new = total + Pairs([pairs], np.bincount(pairs % 8, minlength=8), 40)
        if before is not None:
            np.testing.assert_array_equal(total.tallied, before)
        total = new
        held.append(sum(map(len, total.blocks)))
    assert max(held) <= 40
    expected = np.bincount(np.concatenate(blocks), minlength=40).reshape(5, 8)
    np.testing.assert_array_equal(total.table(5, 8), expected)
    np.testing.assert_array_equal(total.tokens, expected.sum(axis=0))
    halves = [
        sum(
            (Pairs([p], np.zeros(8, int), 40) for p in part[1:]),
            start=Pairs([part[0]], np.zeros(8, int), 40),
        )
        for part in (blocks[:5], blocks[5:])
    ]
    np.testing.assert_array_equal((halves[0] + halves[1]).table(5, 8), expected)
