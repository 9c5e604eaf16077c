"""Every way to describe a tree, and what is said when a description is wrong."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster import hierarchy

import naive_decomposition as naive
from polystick.decomposition import Decomposition, decompose
from random_trees import seeds, short, trees


def nested(made, child=-1):
    """The nested pairs of a decomposition."""
    return child if child >= 0 else tuple(nested(made, int(c)) for c in made.children[~child])


def newick(tree, decorate=str):
    if not isinstance(tree, tuple):
        return decorate(tree)
    return f"({newick(tree[0], decorate)},{newick(tree[1], decorate)})"


@short
@given(trees())
def test_tuples_come_back(tree):
    assert nested(Decomposition.from_tuples(tree)) == tree


@short
@given(trees())
def test_names_stand_for_indices(tree):
    names = "abcdefghi"[: len(naive.leaves(tree))]
    named = eval(newick(tree, lambda c: repr(names[c])))
    assert Decomposition.from_tuples(named, names) == Decomposition.from_tuples(tree)


@short
@given(trees())
def test_newick_equals_tuples(tree):
    text = newick(tree, lambda c: f"[&x=(1]'it''s {c}'[;]:1.5e-3") + "root:0 ;\n"
    names = [f"it's {c}" for c in range(len(naive.leaves(tree)))]
    assert Decomposition.from_newick(text, names) == Decomposition.from_tuples(tree)
    assert Decomposition.from_newick(newick(tree)) == Decomposition.from_tuples(tree)


@short
@given(st.integers(2, 12), seeds)
def test_linkage_equals_scipys_own_tree(K, rng):
    linkage = hierarchy.linkage(rng.normal(size=(K, 2)), "average")

    def walk(node):
        return node.id if node.is_leaf() else (walk(node.left), walk(node.right))

    assert nested(Decomposition.from_linkage(linkage)) == walk(hierarchy.to_tree(linkage))


def test_sticks_follow_the_order():
    assert nested(Decomposition.sticks([2, 0, 3, 1])) == (2, (0, (3, 1)))
    assert nested(Decomposition.sticks([1, 0])) == (1, 0)


def test_frequency_falls_and_ties_keep_their_order():
    assert nested(Decomposition.by_frequency([1, 5, 1, 7, 5])) == (3, (1, (4, (0, 2))))


@pytest.mark.parametrize("K", [2, 3, 4, 5, 7, 8, 9, 31, 33, 64])
def test_balanced_depth(K):
    tree = nested(Decomposition.balanced(K))
    assert naive.depth(tree) == math.ceil(math.log2(K))
    assert naive.leaves(tree) == list(range(K))


def total_depth(made, weights):
    return int(np.dot(weights, np.diff(made.paths().starts)))


def test_huffman_is_optimal_and_balanced_is_not():
    cases = [
        (1, 1, 1, 1, 1),
        (0, 0, 3, 1),
        *itertools.product([1, 2, 5], [0, 4], [3, 9], [1, 8], [7]),
    ]
    least = [naive.least_total_depth(weights) for weights in cases]
    assert [total_depth(Decomposition.huffman(w), w) for w in cases] == least
    assert [total_depth(Decomposition.balanced(len(w)), w) for w in cases] != least


def test_huffman_puts_the_heavier_child_first_and_breaks_ties_by_age():
    assert nested(Decomposition.huffman([1, 2, 9])) == (2, (1, 0))
    assert nested(Decomposition.huffman([1, 1, 1, 1])) == ((0, 1), (2, 3))


def test_trees_deeper_than_pythons_stack():
    K = 3000
    expected = Decomposition.sticks(range(K))
    text = "".join(f"({c}," for c in range(K - 1)) + str(K - 1) + ")" * (K - 1)
    tree = K - 1
    for category in range(K - 2, -1, -1):
        tree = (category, tree)
    assert Decomposition.from_tuples(tree) == Decomposition.from_newick(text) == expected


# decompose


@pytest.mark.parametrize(
    ("spec", "tree"),
    [
        (None, (1, (2, 0))),
        ("frequency", (1, (2, 0))),
        ("given", (0, (1, 2))),
        ("balanced", ((0, 1), 2)),
        ("huffman", ((2, 0), 1)),
        (np.array([2, 1, 0]), (2, (1, 0))),
        ([2, 1, 0], (2, (1, 0))),
        ((("c", "a"), "b"), ((2, 0), 1)),
        ([["c", "a"], "b"], ((2, 0), 1)),
        (np.array([[0, 2, 0.1, 2], [1, 3, 0.5, 3]]), (1, (0, 2))),
        (" [&R] ((a,c),b);", ((0, 2), 1)),
        (Decomposition.sticks([1, 0, 2]), (1, (0, 2))),
    ],
)
def test_decompose_takes_every_form(spec, tree):
    made = decompose(spec, weights=np.array([3, 7, 5]), names=["a", "b", "c"])
    assert made == Decomposition.from_tuples(tree)
    assert decompose(made, n_categories=3) is made


def test_decompose_without_weights_keeps_the_order():
    assert decompose(n_categories=4) == Decomposition.sticks(range(4))
    assert decompose("balanced", names="abc") == Decomposition.balanced(3)


def test_newick_takes_underscores_for_blanks_only_where_needed():
    names = ["New York", "New_Haven", "a_b"]
    made = Decomposition.from_newick("((New_York,New_Haven),'a_b')", names)
    assert nested(made) == ((0, 1), 2)
    with pytest.raises(ValueError, match="not among the names: 'New_York'"):
        Decomposition.from_newick("(('New_York',New_Haven),a_b)", names)


ERRORS = [
    ("sticks", {}, r"'sticks'; try 'frequency'"),
    (3.5, {}, r"an array of float64 with shape \(\)"),
    (np.ones((3, 3)), {}, r"an array of float64 with shape \(3, 3\)"),
    ("frequency", {"n_categories": 3}, "'frequency' needs weights; got none"),
    ("huffman", {}, "'huffman' needs weights"),
    ("balanced", {}, "'balanced' needs n_categories"),
    (None, {}, "'given' needs n_categories"),
    (None, {"weights": [1, 2], "names": "abc"}, "must agree on K; got .*'weights': 2, 'names': 3"),
    (None, {"weights": [1, -2]}, "finite, not negative"),
    ("huffman", {"weights": [1, np.nan]}, "finite, not negative"),
    ("frequency", {"weights": [[1, 2]]}, r"one per category; got shape \(1, 2\)"),
    ("huffman", {"weights": [1]}, "at least 2 categories; got 1"),
    ("given", {"n_categories": 1}, "at least 2 categories; got 1"),
    ("balanced", {"n_categories": 1}, "at least 2 categories; got 1"),
    ([0, 2, 2], {}, r"each category 0..K-1 once; got \[0 2 2\]"),
    ([0, 1, 2], {"n_categories": 4}, "the 4 categories of the data; got one of 3; try"),
    ((0, 1, 2), {}, r"2 children; got one with 3; try to nest"),
    ((0, (1, ())), {}, "2 children; got one with 0"),
    ((0, (1, 1)), {}, "more than once: 1"),
    ((0, (1, 3)), {}, "missing: 2"),
    ((0, "b"), {}, r"must be category indices; got 'b'; try names"),
    ((0, "c"), {"names": ["a", "b"]}, "not among the names: 0, 'c'"),
    (("a", "b"), {"names": ["a", "b", "c"]}, "missing: 'c'"),
    (("a", "b"), {"names": ["a", "a"]}, "names must differ; got 'a' more than once"),
    ("(a,(b,b));", {"names": ["a", "b"]}, "more than once: 'b'"),
    ("(a,b,c);", {"names": "abc"}, "2 children; got one with 3"),
    ("((a),b);", {"names": "ab"}, "2 children; got one with 1"),
    ("(a,b);", {}, "must be category indices; got 'a'"),
    ("(0,(1,2)", {}, "1 '\\(' left open"),
    ("(0,1));", {}, r"more '\)' than '\('"),
    ("(0,1),2;", {}, "2 trees"),
    ("(0,);", {}, r"got '\)' at position 3"),
    ("(0 1,2);", {}, "got '1' at position 3"),
    ("(0,1); x", {}, "got 'x' at position 7"),
    ("(0,'1);", {}, 'got "\'" at position 3'),
    ("(0,1[);", {}, r"got '\[' at position 4"),
    ("(0,", {}, "a string that breaks off"),
    ([[0, 1], [2, 3]], {"n_categories": 5}, "the 5 categories of the data; got one of 4"),
    (np.array([[0, 4, 1, 2], [1, 2, 1, 3.0]]), {}, "merge each cluster once, after the row"),
    (np.array([[0, 1, 1, 2], [0, 3, 1, 3.0]]), {}, "merge each cluster once"),
    (np.array([[0, np.nan, 1, 2]]), {}, "merge each cluster once"),
]


@pytest.mark.parametrize(("spec", "arguments", "message"), ERRORS)
def test_errors_name_what_came(spec, arguments, message):
    with pytest.raises(ValueError, match=message):
        decompose(spec, **arguments)


def test_a_linkage_of_a_wrong_shape():
    with pytest.raises(ValueError, match=r"got shape \(3,\); try scipy"):
        Decomposition.from_linkage([0, 1, 2])


def test_leaves_may_be_numbers_of_columns_that_have_names():
    names = ["a", "b", "c", "d"]
    found = decompose(((0, 1), (3, 2)), names=names)
    assert found == decompose((("a", "b"), ("d", "c")), names=names)
    swapped = decompose(((0, 1), 2), names=[2, 1, 0])  # names come first
    assert swapped == Decomposition.from_tuples(((2, 1), 0))
    with pytest.raises(ValueError, match="missing: 3"):
        decompose(((0, 1), (2, 4)), names=names)
