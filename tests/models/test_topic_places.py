"""Topics that go together stand together in a tree."""

import numpy as np
import pytest

from polystick.decomposition import Decomposition
from polystick.models.topic_places import leaves, likeness, places


def grouped(rng, groups, n=4000):
    """Return log shares of topics that rise and fall with their groups (T,)."""
    common = rng.standard_normal((n, max(groups) + 1))
    return common[:, groups] + 0.3 * rng.standard_normal((n, len(groups)))


def groups_below(decomposition, order, groups, node):
    return {groups[topic] for topic in order[leaves(decomposition.children, node)]}


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_parted_at_the_top_of_a_balanced_tree(seed):
    rng = np.random.default_rng(seed)
    groups, tree = rng.permutation(np.repeat(np.arange(4), 4)), Decomposition.balanced(16)
    order = places(tree.children, likeness(grouped(rng, groups)), ())
    assert sorted(order) == list(range(16))
    below = [node for pair in tree.children[~tree.children[0]] for node in pair]
    assert [len(groups_below(tree, order, groups, node)) for node in below] == [1, 1, 1, 1]


def test_a_tree_of_any_shape_gets_as_many_as_it_has_leaves():
    rng = np.random.default_rng(1)
    groups, tree = np.array([0, 1, 0, 1, 0]), Decomposition.from_tuples(((0, 1), (2, (3, 4))))
    order = places(tree.children, likeness(grouped(rng, groups)), ())
    assert groups_below(tree, order, groups, tree.children[0, 0]) == {1}
    assert groups_below(tree, order, groups, tree.children[0, 1]) == {0}


def test_topics_that_are_held_keep_their_leaves():
    rng = np.random.default_rng(2)
    groups, tree = np.repeat([0, 1], 4), Decomposition.balanced(8)
    order = places(tree.children, likeness(grouped(rng, groups)), np.array([1, 6]))
    assert order[[1, 6]].tolist() == [1, 6]
    assert groups_below(tree, order, groups, tree.children[0, 0]) == {0}
    both = places(tree.children, likeness(grouped(rng, groups)), np.array([0, 4, 7, 1, 2]))
    assert both[[0, 4, 7, 1, 2]].tolist() == [0, 4, 7, 1, 2]
    assert sorted(both) == list(range(8))


def test_topics_without_documents_do_no_harm():
    for log_shares in (np.zeros((0, 5)), np.zeros((3, 5)), np.zeros((1, 5))):
        found = likeness(log_shares) if len(log_shares) else np.zeros((5, 5))
        assert np.isfinite(found).all()
        order = places(Decomposition.balanced(5).children, found, ())
        assert sorted(order) == list(range(5))


def test_likeness_is_the_correlation():
    log_shares = np.random.default_rng(3).standard_normal((50, 4))
    away = log_shares - log_shares.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(likeness(log_shares), np.corrcoef(away, rowvar=False))
