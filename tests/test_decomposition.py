"""Splits, maps and densities of a decomposition; how trees are described is in test_tree_forms."""

import copy
import pickle

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import naive_decomposition as naive
from polystick.decomposition import Decomposition
from random_trees import seeds, short, trees

MANY = 300 if numba.config.DISABLE_JIT else 10_000


def some_counts(rng, n, K):
    return rng.poisson(rng.choice([0.0, 0.3, 3.0], K), (n, K))


# Content


def test_equal_trees_are_equal_and_hash_alike():
    one, other = Decomposition.sticks([1, 0, 2]), Decomposition.from_tuples((1, (0, 2)))
    assert one == other
    assert hash(one) == hash(other)
    assert one != Decomposition.sticks([0, 1, 2])
    assert one != "sticks"


def test_pickles_and_copies_stay_frozen():
    made = Decomposition.balanced(5)
    made.paths()
    for twin in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert twin == made
        with pytest.raises(ValueError, match="read-only"):
            twin.children[0, 0] = 3


def test_the_given_children_may_be_changed_afterwards():
    children = np.array([[0, 1]])
    made = Decomposition(children)
    children[0, 0] = 1
    assert made == Decomposition.balanced(2)


@pytest.mark.parametrize(
    "children",
    [
        [[0, -2], [1, 1]],  # a category twice
        [[0, -2], [1, 3]],  # a category that does not exist
        [[0, 1], [-2, 2]],  # a node below itself
        [[0, 1], [-3, 2], [-2, 3]],  # two nodes below each other
        [[-3, -2], [0, 1], [2, 3]],  # not in preorder
        [[-2, 0], [-2, 1], [2, 3]],  # a node twice
    ],
)
def test_children_that_are_no_tree_in_preorder(children):
    with pytest.raises(ValueError, match="numbered in preorder"):
        Decomposition(children)


def test_children_of_a_wrong_shape():
    with pytest.raises(ValueError, match=r"shape \(K-1, 2\); got \(2, 3\)"):
        Decomposition(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="at least 2 categories; got 1"):
        Decomposition(np.zeros((0, 2)))


# Counts -> binary splits


@short
@given(trees(), seeds)
def test_split_equals_the_recursive_twin(tree, rng):
    made = Decomposition.from_tuples(tree)
    counts = some_counts(rng, 3, made.n_categories)
    expected = np.array([naive.split(tree, row) for row in counts])
    for dtype, kept in [(np.int32, np.int64), (np.uint8, np.int64), (np.float32, np.float64)]:
        successes, trials = made.split(counts.astype(dtype))
        np.testing.assert_array_equal(successes, expected[:, 0])
        np.testing.assert_array_equal(trials, expected[:, 1])
        assert successes.dtype == trials.dtype == kept


def test_split_of_sticks_is_the_papers():
    x = np.array([3, 0, 2, 5, 1])
    for ours, paper in zip(Decomposition.sticks(range(5)).split(x), naive.stick_splits(x)):
        np.testing.assert_array_equal(ours, paper)


def test_split_takes_any_leading_axes_and_layout():
    made, counts = Decomposition.balanced(4), np.arange(24).reshape(2, 3, 4)
    whole = made.split(np.asfortranarray(counts)).trials
    np.testing.assert_array_equal(whole[1, 2], made.split(counts[1, 2]).trials)
    assert made.split(counts[:0]).trials.shape == (0, 3, 3)


def dense_of_ragged(ragged, n_nodes):
    rows = np.repeat(np.arange(len(ragged.starts) - 1), np.diff(ragged.starts))
    successes, trials = np.zeros((2, len(ragged.starts) - 1, n_nodes), ragged.trials.dtype)
    successes[rows, ragged.nodes], trials[rows, ragged.nodes] = ragged.successes, ragged.trials
    return successes, trials


@short
@given(trees(), seeds, st.sampled_from([np.int32, np.float64]))
def test_sparse_split_equals_dense(tree, rng, dtype):
    made = Decomposition.from_tuples(tree)
    counts = some_counts(rng, 5, made.n_categories).astype(dtype)
    ragged = made.split_sparse(sparse.csr_array(counts))
    dense = made.split(counts)
    np.testing.assert_array_equal(dense_of_ragged(ragged, made.n_categories - 1), dense)
    assert ragged.successes.dtype == dense.successes.dtype
    assert ragged.starts.dtype == ragged.nodes.dtype == np.int64
    assert (ragged.trials > 0).all()
    for row in np.split(ragged.nodes, ragged.starts[1:-1]):
        assert (np.diff(row) > 0).all()


@short
@given(trees(), seeds)
def test_sparse_split_sums_doubled_unsorted_and_zero_entries(tree, rng):
    made = Decomposition.from_tuples(tree)
    K, n_entries = made.n_categories, 12
    indptr = np.array([0, 5, 5, n_entries])
    indices, data = rng.integers(0, K, n_entries), rng.integers(0, 3, n_entries)
    matrix = sparse.csr_matrix((data, indices, indptr), shape=(3, K))
    ragged = made.split_sparse(matrix)
    np.testing.assert_array_equal(dense_of_ragged(ragged, K - 1), made.split(matrix.toarray()))
    assert (ragged.trials > 0).all()


def test_sparse_split_of_other_formats_and_of_no_rows():
    made, counts = Decomposition.balanced(3), np.array([[1, 0, 2], [0, 0, 0]])
    ragged = made.split_sparse(sparse.coo_array(counts))
    np.testing.assert_array_equal(ragged.starts, [0, 2, 2])
    np.testing.assert_array_equal(made.split_sparse(sparse.csr_array((0, 3))).starts, [0])


@short
@given(trees())
def test_paths_equal_the_recursive_twin(tree):
    starts, nodes, sides = Decomposition.from_tuples(tree).paths()
    for category in range(len(starts) - 1):
        part = slice(starts[category], starts[category + 1])
        assert list(zip(nodes[part], sides[part])) == naive.path(tree, category)


def check_factorisation(made, counts, psi, successes, trials):
    log_pi = made.log_probabilities(psi)
    multinomial = naive.multinomial_log_probability(counts, log_pi)
    binomials = naive.binomial_log_probability(successes, trials, psi)
    np.testing.assert_allclose(binomials, multinomial, rtol=1e-11, atol=1e-11)


@short
@given(trees(), seeds)
def test_binomials_of_the_splits_multiply_to_the_multinomial(tree, rng):
    made = Decomposition.from_tuples(tree)
    counts, psi = rng.poisson(2.0, made.n_categories), 2 * rng.normal(size=made.n_categories - 1)
    check_factorisation(made, counts, psi, *made.split(counts))


def test_the_factorisation_sees_failures_in_the_place_of_successes():
    made, counts, psi = Decomposition.balanced(4), np.array([5, 1, 0, 2]), np.array([1.0, -1, 0.5])
    successes, trials = made.split(counts)
    with pytest.raises(AssertionError):
        check_factorisation(made, counts, psi, trials - successes, trials)


# psi <-> pi


@short
@given(trees(), seeds, st.sampled_from([0.1, 3.0, 100.0]))
def test_log_probabilities_equal_the_twin_and_come_back(tree, rng, scale):
    made = Decomposition.from_tuples(tree)
    psi = scale * rng.normal(size=(2, 3, made.n_categories - 1))
    log_pi = made.log_probabilities(psi)
    np.testing.assert_allclose(log_pi[1, 2], naive.log_probabilities(tree, psi[1, 2]), rtol=1e-14)
    np.testing.assert_allclose(np.exp(log_pi).sum(-1), 1, rtol=1e-14)
    rounding = 4 * made.n_categories * np.finfo(float).eps * abs(log_pi).max()
    np.testing.assert_allclose(made.psi_from_log(log_pi), psi, rtol=0, atol=rounding)
    np.testing.assert_allclose(
        made.psi_from_log(log_pi - 5.0), psi, rtol=0, atol=2 * rounding + 1e-14
    )


@short
@given(trees(), seeds)
def test_psi_equals_the_twin_and_comes_back(tree, rng):
    made = Decomposition.from_tuples(tree)
    pi = rng.dirichlet(np.full(made.n_categories, 0.5)) + 1e-30
    np.testing.assert_allclose(made.psi(pi), naive.psi(tree, pi), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(made.probabilities(made.psi(pi)), pi / pi.sum(), rtol=1e-12)


@pytest.mark.parametrize("value", [-800.0, 800.0])
@pytest.mark.parametrize("made", [Decomposition.sticks(range(MANY)), Decomposition.balanced(MANY)])
def test_extreme_psi_over_many_categories(made, value):
    psi = np.full(made.n_categories - 1, value)
    log_pi = made.log_probabilities(psi)
    assert np.isfinite(log_pi).all()
    np.testing.assert_allclose(np.exp(log_pi).sum(), 1, rtol=1e-12)
    np.testing.assert_allclose(log_pi.min(), -800.0 * np.round(log_pi.min() / -800), rtol=1e-14)


def test_extreme_psi_come_back_where_log_pi_can_hold_them():
    made, psi = Decomposition.sticks(range(4)), np.array([800.0, -800.0, 37.5])
    np.testing.assert_allclose(made.psi_from_log(made.log_probabilities(psi)), psi, atol=1e-12)
    with (
        np.errstate(divide="ignore"),
        pytest.raises(AssertionError),
    ):  # repeated subtraction: 1 - 1 = 0
        assert np.isfinite(np.log(naive.stick_probabilities(psi))).all()


def test_rounding_does_not_pile_up_along_many_sticks():
    made = Decomposition.sticks(range(MANY))
    uniform = -np.log(np.arange(MANY - 1, 0, -1.0))
    np.testing.assert_allclose(made.log_probabilities(uniform), -np.log(MANY), rtol=4e-16 * 4)
    np.testing.assert_allclose(made.psi(np.full(MANY, 1 / MANY)), uniform, rtol=0, atol=1e-14)


def test_zero_probabilities_are_limits():
    made = Decomposition.from_tuples(((0, 1), (2, 3)))
    pi = np.array([[0.0, 1, 0, 0], [0.25, 0.75, 0, 0], [0, 0, 0.5, 0.5], [0, 0.5, 0, 0.5]])
    inf, odds = np.inf, np.log(1 / 3)
    expected = [[inf, -inf, 0], [inf, odds, 0], [-inf, 0, 0], [0, -inf, -inf]]
    np.testing.assert_allclose(made.psi(pi), expected, rtol=1e-15)
    np.testing.assert_allclose(made.probabilities(made.psi(pi)), pi, rtol=1e-15)


def test_psi_that_is_not_a_number_is_passed_on():
    pi = Decomposition.sticks(range(3)).probabilities([0.0, np.nan])
    np.testing.assert_array_equal(pi, [0.5, np.nan, np.nan])


@pytest.mark.parametrize(
    ("method", "width"),
    [("split", 3), ("psi", 3), ("psi_from_log", 3), ("log_probabilities", 2), ("log_jacobian", 2)],
)
def test_a_wrong_width_is_named(method, width):
    with pytest.raises(ValueError, match=rf"must have {width} columns .* got shape \(2, 7\); try"):
        getattr(Decomposition.balanced(3), method)(np.ones((2, 7)))


def test_a_wrong_width_of_a_sparse_matrix_is_named():
    with pytest.raises(ValueError, match=r"counts must have 3 columns .* got shape \(2, 7\)"):
        Decomposition.balanced(3).split_sparse(sparse.csr_array((2, 7)))
