"""Regression with groups: held against one dense normal law of all unknowns."""

import itertools

import numpy as np
import pytest

from polystick.augmentation import Potential
from polystick.gaussians import regression

N, Q, K, G = 23, 3, 2, 4
RNG = np.random.default_rng(11)
W = RNG.standard_normal((N, Q))
GROUP = np.concatenate([np.arange(G), RNG.integers(0, G, N - G)])
OMEGA = RNG.gamma(2.0, 1.0, (N, K)) * (RNG.random((N, K)) < 0.8)  # some splits have no counts
KAPPA = np.where(OMEGA > 0, RNG.standard_normal((N, K)), 0.0)
COV = np.array([[0.7, 0.3], [0.3, 0.5]])
PRIOR = regression.Prior(
    np.stack([np.eye(K) * (1.0 + a) for a in range(Q)]),
    RNG.standard_normal((Q, K)),
    np.linalg.inv(np.array([[0.6, -0.2], [-0.2, 0.9]])),
    RNG.standard_normal((G, K)),
)


def dense(cov, with_groups):
    """Return precision and linear of (B, U), noise integrated out of all (B, U, e) by a Schur complement."""
    groups = np.eye(G)[GROUP] if with_groups else np.zeros((N, 0))
    rows = np.kron(np.column_stack([W, groups]), np.eye(K))  # psi = rows @ unknowns + e
    weights = [*PRIOR.weight, *([PRIOR.group_weight] * groups.shape[1])]
    linear = np.concatenate([PRIOR.linear, PRIOR.group_linear[: groups.shape[1]]]).ravel()
    precision = np.zeros((len(linear), len(linear)))
    for i, weight in enumerate(weights):
        precision[i * K : (i + 1) * K, i * K : (i + 1) * K] = weight
    omega, kappa = np.diag(OMEGA.ravel()), KAPPA.ravel()
    precision, linear = precision + rows.T @ omega @ rows, linear + rows.T @ kappa
    if cov is not None:
        of_noise = omega + np.kron(np.eye(N), np.linalg.inv(cov))
        both = rows.T @ omega
        precision = precision - both @ np.linalg.solve(of_noise, both.T)
        linear = linear - both @ np.linalg.solve(of_noise, kappa)
    return precision, linear


def drawn(cov, with_groups, noise, edges=(0, 9, N)):
    """Draw from sums over blocks, cut at the edges."""
    sums = []
    for start, end in itertools.pairwise(edges):
        potential = Potential(KAPPA[start:end], OMEGA[start:end])
        rows = regression.group_rows(GROUP[start:end]) if with_groups else None
        told = regression.tell_of_line(potential, cov)
        sums.append(regression.row_sums(W[start:end], rows, *told))
    n_groups = G if with_groups else 0
    prior = PRIOR._replace(group_linear=PRIOR.group_linear[:n_groups])
    b, groups = regression.draw(
        prior,
        regression.assembled(sums, n_groups),
        noise[: Q * K].reshape(Q, K),
        noise[Q * K :].reshape(n_groups, K),
    )
    return np.concatenate([b.ravel(), groups.ravel()])


@pytest.mark.parametrize("most_entries", [0, 60], ids=["LAPACK", "kernel"])
@pytest.mark.parametrize("with_groups", [True, False])
@pytest.mark.parametrize(
    "cov", [COV, np.diag(np.diag(COV)), None], ids=["full", "diagonal", "none"]
)
def test_draws_have_the_mean_and_the_covariance_of_the_dense_law(
    cov, with_groups, most_entries, monkeypatch
):
    monkeypatch.setattr(regression, "MOST_ENTRIES", most_entries)
    precision, linear = dense(cov, with_groups)
    size = len(linear)
    mean = drawn(cov, with_groups, np.zeros(size))
    np.testing.assert_allclose(mean, np.linalg.solve(precision, linear), rtol=1e-9, atol=1e-10)
    root = np.stack([drawn(cov, with_groups, unit) - mean for unit in np.eye(size)], axis=1)
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(precision), rtol=1e-8, atol=1e-10)


def test_where_rows_are_cut_does_not_matter():
    noise = RNG.standard_normal((Q + G) * K)
    whole, cut = (drawn(COV, True, noise, edges) for edges in ((0, N), (0, 2, 11, N)))
    np.testing.assert_allclose(cut, whole, rtol=1e-10, atol=1e-12)


def test_noise_of_any_size_is_integrated_out():
    """Nothing divides by omega or by noise: both limits are those of the formula."""
    potential = Potential(KAPPA, OMEGA)
    lower = np.tril_indices(K)
    weight, linear = regression.tell_of_line(potential, 1e-14 * np.eye(K))
    expected = (OMEGA[:, :, None] * np.eye(K))[:, *lower]
    np.testing.assert_allclose(weight, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(linear, KAPPA, rtol=1e-9, atol=1e-9)
    weight, linear = regression.tell_of_line(potential, 1e12 * np.eye(K))
    assert np.abs(weight).max() < 1e-9
    told = OMEGA > 0
    centre = np.divide(KAPPA, OMEGA, where=told, out=np.zeros_like(KAPPA))
    own = weight[:, lower[0] == lower[1]]
    np.testing.assert_allclose(linear[told], (own * centre)[told], rtol=1e-2, atol=1e-9)


@pytest.mark.parametrize("cov", [COV, None], ids=["full", "none"])
def test_products_of_matrices_have_the_sums_of_loops(cov, monkeypatch):
    told = regression.tell_of_line(Potential(KAPPA, OMEGA), cov)
    rows = regression.group_rows(GROUP)
    loops = regression.row_sums(W, rows, *told)
    monkeypatch.setattr(regression, "MOST_COLUMNS", 1)
    sums = [loops, regression.row_sums(W, rows, *told)]
    for found, expected in zip(*(regression.assembled([each], G) for each in sums)):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("columns", [None, slice(1, 3)], ids=["groups", "columns"])
@pytest.mark.parametrize("cov", [COV, None], ids=["full", "none"])
def test_scales_are_told_what_rows_say_of_them(cov, columns):
    """Row by row: e' weight e of a row's effect, and e (linear - weight of the rest)."""
    potential = Potential(KAPPA, OMEGA)
    b, groups = RNG.standard_normal((Q, K)), RNG.standard_normal((G, K))
    told = regression.tell_of_line(potential, cov)
    sums = [regression.row_sums(W, regression.group_rows(GROUP), *told)]
    found = regression.tell_of_scales(regression.assembled(sums, G), b, groups, columns)
    curvature, slope = np.zeros((K, K)), np.zeros(K)
    inverse = np.zeros((K, K)) if cov is None else np.linalg.inv(cov)
    for w, group, kappa, omega in zip(W, GROUP, KAPPA, OMEGA):
        e = groups[group] if columns is None else w[columns] @ b[columns]
        rest = w @ b + groups[group] - e
        weight, linear = np.diag(omega), kappa
        if cov is not None:
            weight = inverse @ np.linalg.solve(inverse + weight, weight)
            linear = inverse @ np.linalg.solve(inverse + np.diag(omega), kappa)
        curvature += np.outer(e, e) * weight
        slope += e * (linear - weight @ rest)
    np.testing.assert_allclose(found[0], curvature, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found[1], slope, rtol=1e-9, atol=1e-10)
