"""Topics find their partners again."""

import numpy as np
import pytest

from polystick.alignment import align


def test_permuted_noisy_copies_are_matched():
    rng = np.random.default_rng(1)
    first = rng.dirichlet(np.full(60, 0.1), 12)
    orders = [rng.permutation(12) for _ in range(3)]
    # row orders[c][t] of the copy is topic t, spoilt and on another scale
    copies = []
    for scale, order in zip((1, 7, 1e4), orders):
        copy = np.empty_like(first)
        copy[order] = scale * (0.8 * first + 0.2 * rng.dirichlet(np.full(60, 0.1), 12))
        copies.append(copy.astype(np.float32))
    found = align(chain for chain in [first, *copies])
    np.testing.assert_array_equal(found.order, [np.arange(12), *orders])
    for copy, order, similarity in zip(copies, found.order[1:], found.similarity[1:]):
        matched = copy[order] / copy[order].sum(axis=1, keepdims=True, dtype=float)
        np.testing.assert_allclose(similarity, np.sqrt(first * matched).sum(axis=1), rtol=1e-6)
        distance2 = 0.5 * ((np.sqrt(first) - np.sqrt(matched)) ** 2).sum(axis=1)
        np.testing.assert_allclose(similarity, 1 - distance2, rtol=1e-6)
    np.testing.assert_array_equal(found.similarity[0], 1)


def test_the_whole_is_matched_and_not_topic_by_topic():
    first = np.array([[0.5, 0.5, 0.0], [0.4, 0.4, 0.2]])
    other = np.array([[0.45, 0.45, 0.1], [0.1, 0.1, 0.8]])  # both are nearest to its first topic
    found = align([first, other])
    np.testing.assert_array_equal(found.order[1], [0, 1])
    np.testing.assert_array_equal(align([first[::-1], other]).order[1], [1, 0])


def test_equal_topics_within_the_first_chain_stay_in_place():
    found = align([np.full((4, 3), 1 / 3)] * 2)
    np.testing.assert_array_equal(found.order[0], np.arange(4))
    np.testing.assert_array_equal(np.sort(found.order[1]), np.arange(4))
    np.testing.assert_allclose(found.similarity, 1)


@pytest.mark.parametrize(
    ("chains", "message"),
    [
        ([], "at least one chain; got none"),
        ([np.ones((2, 3)), np.ones((3, 3))], r"one shape; got \[\(2, 3\), \(3, 3\)\]"),
        ([np.ones(3)], r"chain 0 must have shape \(T, V\); got \(3,\)"),
        ([np.ones((1, 2)), [[1.0, -1.0]]], "chain 1 must be finite, non-negative"),
        ([[[0.0, 0.0]]], "not all zero in any row"),
        ([[[np.nan, 1.0]]], "must be finite"),
        ([[[np.inf, 1.0]]], "must be finite"),
    ],
)
def test_bad_topics(chains, message):
    with pytest.raises(ValueError, match=message):
        align(chains)
