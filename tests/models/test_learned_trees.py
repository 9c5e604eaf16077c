"""Trees learned from tokens and from rows of counts: what is seen together is together."""

import numpy as np
import pytest

from polystick.models.learned_trees import learn_from_counts, learn_from_tokens


@pytest.fixture
def rng():
    return np.random.default_rng(1990)


def sides_of_root(tree):
    """Return the categories on both sides of the first split."""
    masses = np.eye(tree.n_categories)
    first = tree.sides(masses)[0][:, 0] > 0
    return {frozenset(np.flatnonzero(first).tolist()), frozenset(np.flatnonzero(~first).tolist())}


GROUPS = {frozenset({0, 3, 4, 7}), frozenset({1, 2, 5, 6})}


def test_tokens_of_the_same_stretches_are_together(rng):
    first, second = map(sorted, GROUPS)
    stretches = [rng.choice([first, second][i % 2], 30) for i in range(40)]
    tree = learn_from_tokens([np.concatenate(stretches)], 8)
    assert sides_of_root(tree) == GROUPS


def test_categories_that_vary_together_are_together(rng):
    first, _ = map(sorted, GROUPS)
    shift = 2.0 * rng.standard_normal((200, 1)) * np.isin(np.arange(8), first)
    counts = rng.poisson(30.0 * np.exp(shift))
    assert sides_of_root(learn_from_counts([counts[:90], counts[90:]])) == GROUPS


def test_what_was_never_seen_is_spread_over_the_tree(rng):
    tokens = rng.choice([0, 2, 3, 5], 300)
    tokens[7] = -1
    tree = learn_from_tokens([tokens], 8)
    assert all(len(side & {1, 4, 6, 7}) == 2 for side in sides_of_root(tree))
    assert learn_from_tokens([tokens], 8) == tree
    counts = np.zeros((3, 4), dtype=np.int64)
    counts[:, 2] = 5
    assert learn_from_counts([counts]).n_categories == 4
