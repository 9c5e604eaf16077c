"""Kernels of regressions: each against what it says in NumPy, row by row and group by group."""

import numpy as np
import pytest

from polystick.kernels import regression, spreads

RNG = np.random.default_rng(5)
N, Q, K, M = 17, 3, 4, 5
LOWER = np.tril_indices(K)


def a_covariance(k=K):
    root = RNG.standard_normal((k, k + 2))
    return root @ root.T / k


@pytest.mark.parametrize("tell_rows", [regression.tell_rows, regression.tell_rows_scalar])
def test_rows_tell_of_their_line_by_the_formula(tell_rows):
    cov, omega = a_covariance(), RNG.gamma(1.0, 1.0, (N, K))
    kappa = RNG.standard_normal((N, K))
    weight, linear = np.empty((N, len(LOWER[0]))), np.empty((N, K))
    tell_rows(kappa, omega, cov, weight, linear)
    for i in range(N):
        np.testing.assert_allclose(
            weight[i], np.linalg.inv(cov + np.diag(1 / omega[i]))[LOWER], rtol=1e-9
        )
        expected = np.linalg.solve(np.eye(K) + omega[i][:, None] * cov, kappa[i])
        np.testing.assert_allclose(linear[i], expected, rtol=1e-9, atol=1e-12)


def unpacked(weight, is_diagonal):
    if is_diagonal:
        return np.stack([np.diag(each) for each in weight])
    whole = np.zeros((len(weight), K, K))
    whole[:, *LOWER] = weight
    return whole + np.tril(whole, -1).transpose(0, 2, 1)


@pytest.mark.parametrize("is_diagonal", [True, False])
def test_sums_over_rows_are_those_of_einsum(is_diagonal):
    c = K if is_diagonal else len(LOWER[0])
    w, weight = RNG.standard_normal((N, Q)), RNG.standard_normal((N, c))
    linear, group = RNG.standard_normal((N, K)), RNG.integers(0, M, N)
    pairs, lines = np.zeros((Q, Q * c)), np.zeros((Q, K))
    packed, group_linear, cross = np.zeros((M, c)), np.zeros((M, K)), np.zeros((M, Q * c))
    regression.add_rows(w, group, weight, linear, pairs, lines, packed, group_linear, cross)
    whole, group_weight = np.zeros((Q, K, Q, K)), np.zeros((M, K, K))
    crossed = np.zeros((M, K, Q, K))
    regression.unpack_pairs(pairs, whole)
    regression.unpack_groups(packed, cross, group_weight, crossed)
    each, has = unpacked(weight, is_diagonal), np.eye(M)[group]
    for found, expected in (
        (whole, np.einsum("na,nb,njm->ajbm", w, w, each)),
        (lines, w.T @ linear),
        (group_weight, np.einsum("ng,njm->gjm", has, each)),
        (group_linear, has.T @ linear),
        (crossed, np.einsum("ng,na,njm->gjam", has, w, each)),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_groups_are_eliminated_by_triangular_systems():
    weight, linear = np.stack([a_covariance() for _ in range(M)]), RNG.standard_normal((M, K))
    cross = RNG.standard_normal((M, K, Q * K))
    factor, half, half_linear = np.empty_like(weight), np.empty_like(cross), np.empty_like(linear)
    regression.eliminate_groups(weight, linear, cross, factor, half, half_linear)
    x = linear.copy()
    regression.solve_groups_in_place(factor, x)
    for g in range(M):
        root = np.linalg.cholesky(weight[g])
        np.testing.assert_allclose(np.triu(factor[g]), root.T, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(half[g], np.linalg.solve(root, cross[g]), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(
            half_linear[g], np.linalg.solve(root, linear[g]), rtol=1e-8, atol=1e-10
        )
        np.testing.assert_allclose(x[g], np.linalg.solve(root.T, linear[g]), rtol=1e-8, atol=1e-10)


def test_covariances_are_bartletts():
    """cov = L (T T')^-1 L', with L L' the scale of the inverse Wishart and T T' a standard Wishart."""
    outer, size, nu, scale = a_covariance(), RNG.gamma(2.0, 1.0, K), 2.0, 1.5
    normals, gammas = RNG.standard_normal((K, K)), RNG.gamma(3.0, 1.0, 2 * K)
    cov, new_size = np.empty((K, K)), np.empty(K)
    spreads.redraw(outer, size, nu, scale, normals, gammas, cov, new_size)
    bartlett = np.triu(normals, 1) + np.diag(np.sqrt(2 * gammas[:K]))
    root = np.linalg.cholesky(outer + nu * np.diag(size**2))
    expected = root @ np.linalg.inv(bartlett @ bartlett.T) @ root.T
    np.testing.assert_allclose(cov, expected, rtol=1e-8)
    rate = 0.5 / scale**2 + 0.5 * nu * np.diag(np.linalg.inv(expected))
    np.testing.assert_allclose(new_size, np.sqrt(gammas[K:] / rate), rtol=1e-8)


@pytest.mark.parametrize("is_diagonal", [False, True])
def test_a_step_is_both_halves_of_the_interweaving(is_diagonal):
    """Covariance and scales given rows; then scales d | t = e / d, with its flip, and all that follows it."""
    outer, curvature, slope = a_covariance(), a_covariance(), RNG.standard_normal(K)
    nu, scale, before = 2.0, 1.5, RNG.gamma(2.0, 1.0, K)
    normals, gammas = RNG.standard_normal((K + 1, K)), RNG.gamma(3.0, 1.0, 2 * K)
    cov, size, by = np.empty((K, K)), before.copy(), np.empty(K)
    law, sums = spreads.Law(nu, scale, is_diagonal), spreads.Sums(outer, curvature, slope)
    spreads.step_in_place(law, sums, normals, gammas, spreads.Spread(cov, size), by)
    first, drawn = np.empty((K, K)), np.empty(K)
    if is_diagonal:
        first = np.diag(0.5 * (nu * before**2 + np.diag(outer)) / gammas[:K])
        rate = 0.5 / scale**2 + 0.5 * nu / np.diag(first)
        drawn = np.sqrt(gammas[K:] / rate)
    else:
        spreads.redraw(outer, before, nu, scale, normals[:K], gammas, first, drawn)
    told = curvature / np.outer(drawn, drawn) + np.eye(K) / scale**2
    root = np.linalg.cholesky(told)
    d = np.linalg.solve(told, slope / drawn) + np.linalg.solve(root.T, normals[K])
    np.testing.assert_allclose(by, d / drawn, rtol=1e-9)
    np.testing.assert_allclose(size, np.abs(d), rtol=1e-9)
    np.testing.assert_allclose(cov, np.outer(by, by) * first, rtol=1e-9)
    assert (by < 0).any()
