"""Probabilities in one walk down the tree: the mean of each particle's own, on any tree."""

import numpy as np
import pytest

from polystick.decomposition import Decomposition
from polystick.kernels import simd, tree_means


def grown(leaves, rng):
    if len(leaves) == 1:
        return leaves[0]
    cut = rng.integers(1, len(leaves))
    return grown(leaves[:cut], rng), grown(leaves[cut:], rng)


TREES = {
    "two": Decomposition.sticks([1, 0]),
    "sticks": Decomposition.sticks(np.random.default_rng(0).permutation(23)),
    "backward": Decomposition.from_tuples((((((0, 1), 2), 3), 4), 5)),
    "balanced": Decomposition.balanced(37),
    "any": Decomposition.from_tuples(grown(list(range(30)), np.random.default_rng(1))),
}


def slots_of(tree):
    slots = np.full(len(tree.children), -1, np.int64)
    tree_means.assign_slots(tree.children, slots)
    return slots


def means(tree, rows, offsets, clouds, kernel=tree_means.mean_probabilities):
    found = np.full((len(clouds), tree.n_categories), np.nan)
    kernel(tree.children, slots_of(tree), rows, offsets, clouds, found)
    return found


@pytest.mark.skipif(not simd.ENABLED, reason="there are no vectors without the compiler")
@pytest.mark.parametrize("size", [1.0, 40.0])
def test_simd_equals_scalar_to_rounding(size):
    rng, tree = np.random.default_rng(3), TREES["any"]
    rows, offsets = rng.normal(size=(29, 4)), size * rng.normal(size=(6, 29))
    given = rows, offsets, rng.normal(size=(6, 4, 21))
    expected = means(tree, *given, tree_means.mean_probabilities_scalar)
    np.testing.assert_allclose(means(tree, *given), expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize(("n_dims", "n"), [(1, 1), (3, 64), (5, 13), (11, 8)])
def test_the_walk_is_the_mean_of_particles(name, n_dims, n):
    rng, tree = np.random.default_rng(n), TREES[name]
    k = tree.n_categories - 1
    rows, offsets = rng.normal(size=(k, n_dims)), 2.0 * rng.normal(size=(4, k))
    clouds = rng.normal(size=(4, n_dims, n))
    psi = np.swapaxes(clouds, 1, 2) @ rows.T + offsets[:, None]
    expected = tree.probabilities(psi).mean(axis=1)
    np.testing.assert_allclose(means(tree, rows, offsets, clouds), expected, rtol=1e-12)


@pytest.mark.parametrize("size", [40.0, 650.0, 1e6])
def test_far_out_it_stays_a_law(size):
    """Of splits that are all but sure small shares keep their digits, and no share is NaN."""
    rng, tree = np.random.default_rng(5), TREES["balanced"]
    rows, clouds = np.zeros((36, 1)), np.zeros((3, 1, 8))
    offsets = size * rng.choice([-1.0, 1.0], (3, 36))
    found = means(tree, rows, offsets, clouds)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
    expected = tree.probabilities(offsets)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("name", TREES)
def test_a_slot_is_free_when_it_is_taken(name):
    """What waits is never written over: each node finds the share that was put there for it."""
    children, slots = TREES[name].children, slots_of(TREES[name])
    holds = {0: 0}
    for node, pair in enumerate(children):
        assert holds.pop(slots[node]) == node
        for child in pair[pair < 0]:
            assert slots[~child] not in holds
            holds[slots[~child]] = ~child
    assert holds == {}
    assert slots.max() < {"sticks": 1, "backward": 1, "two": 1, "balanced": 6}.get(name, 10)


def test_one_signature():
    assert len(tree_means.mean_probabilities.signatures) <= 1
