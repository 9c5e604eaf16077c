"""The tree kernels: one compiled signature, blocks of rows, sums that do not lose digits."""

import math
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from hypothesis import given
from scipy import sparse, special

import naive_decomposition as naive
from polystick.decomposition import Decomposition
from polystick.kernels import trees as kernels
from polystick.trees import in_preorder
from random_trees import seeds, short, trees


def use_every_kernel(dtype, K=5):
    """Call the public methods with arrays of many kinds: read-only, strided, transposed."""
    made = Decomposition.sticks(range(K))
    counts = np.arange(2 * K).reshape(K, 2).T.astype(dtype)
    psi = np.zeros((4, K - 1), np.float32)[::2]
    frozen = made.log_probabilities(psi)
    frozen.flags.writeable = False
    made.psi_from_log(frozen)
    made.psi(np.asfortranarray(np.exp(frozen)))
    made.split(counts)
    made.split_sparse(sparse.csr_matrix(counts))
    matrix = sparse.csr_array(counts)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    matrix.data.flags.writeable = False
    made.split_sparse(matrix)
    made.paths()
    Decomposition.from_linkage(np.asfortranarray([[0, 1, 1.0, 2], [2, 3, 1.0, 3]]))


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_each_kernel_compiles_once_per_kind_of_number():
    for dtype in (np.int64, np.uint8, np.float64, np.float32):
        use_every_kernel(dtype)
    once = [kernels.number_in_preorder, kernels.category_depths, kernels.fill_paths]
    once += [kernels.log_probabilities, kernels.psi_from_log]
    twice = [kernels.split_rows, kernels.count_active, kernels.split_sparse_rows]
    assert [len(kernel.signatures) for kernel in once] == [1] * len(once)
    assert [len(kernel.signatures) for kernel in twice] == [2] * len(twice)


def scrambled(tree, rng):
    """The children of a tree with its nodes in a random numbering, and the root's number."""
    nodes = naive.nodes(tree)
    number = rng.permutation(len(nodes))
    of = {id(node): number[k] for k, node in enumerate(nodes)}
    children = np.empty((len(nodes), 2), np.int64)
    for node in nodes:
        children[of[id(node)]] = [~of[id(c)] if isinstance(c, tuple) else c for c in node]
    return children, number[0]


@short
@given(trees(), seeds)
def test_preorder_undoes_any_numbering(tree, rng):
    expected = Decomposition.from_tuples(tree).children
    np.testing.assert_array_equal(in_preorder(*scrambled(tree, rng)), expected)


def test_blocks_on_threads_give_the_bits_of_one_call():
    made, rng = Decomposition.balanced(40), np.random.default_rng(0)
    psi, counts = 3 * rng.normal(size=(64, 39)), rng.poisson(1.0, (64, 40))
    blocks = [slice(i, i + 7) for i in range(0, 64, 7)]
    with ThreadPoolExecutor(4) as pool:
        log_pi = list(pool.map(lambda block: made.log_probabilities(psi[block]), blocks))
        trials = list(pool.map(lambda block: made.split(counts[block]).trials, blocks))
    np.testing.assert_array_equal(np.concatenate(log_pi), made.log_probabilities(psi))
    np.testing.assert_array_equal(np.concatenate(trials), made.split(counts).trials)


def test_inputs_are_not_changed():
    made, rng = Decomposition.balanced(6), np.random.default_rng(0)
    psi, counts = rng.normal(size=(3, 5)), rng.poisson(1.0, (3, 6))
    matrix = sparse.csr_array(counts)
    before = [a.copy() for a in (psi, counts, matrix.data, matrix.indices)]
    log_pi = made.log_probabilities(psi)
    kept = log_pi.copy()
    made.psi_from_log(log_pi), made.split(counts), made.split_sparse(matrix)
    for ours, theirs in zip([*before, kept], [psi, counts, matrix.data, matrix.indices, log_pi]):
        np.testing.assert_array_equal(ours, theirs)


def check_every_digit(log_pi, psi):
    """Compare with exactly rounded sums along the sticks, at some of them."""
    broken, left = special.log_expit(psi), special.log_expit(-psi)
    some = range(0, len(psi), len(psi) // 50)
    exact = [math.fsum([*left[:k], broken[k]]) for k in some]
    np.testing.assert_allclose(log_pi[some], exact, rtol=4 * np.finfo(float).eps)


def test_compensated_sums_keep_the_digits_that_plain_sums_lose():
    K = 4000
    psi = np.full(K - 1, -9.2)  # equal terms: the rounding errors of a plain sum share a sign
    check_every_digit(Decomposition.sticks(range(K)).log_probabilities(psi), psi)
    plain = np.concatenate([[0], np.cumsum(special.log_expit(-psi))[:-1]]) + special.log_expit(psi)
    with pytest.raises(AssertionError):
        check_every_digit(plain, psi)
