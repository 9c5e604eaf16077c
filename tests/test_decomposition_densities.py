"""Appendix A for any tree: Jacobians, densities, moments (REFERENCE rows 7-10)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

import naive_decomposition as naive
from polystick.decomposition import Decomposition
from random_trees import seeds, short, trees

THREE = [(0, (1, 2)), ((0, 1), 2), ((2, 0), 1)]


def log_jacobians_by_differences(made, psi, step=1e-5):
    """One value per coordinate of pi that is left out."""
    shifts = step * np.eye(len(psi))
    slopes = (made.probabilities(psi + shifts) - made.probabilities(psi - shifts)) / (2 * step)
    return [
        np.linalg.slogdet(np.delete(slopes, left_out, axis=1))[1]
        for left_out in range(made.n_categories)
    ]


def check_log_jacobian(made, psi, value):
    np.testing.assert_allclose(value, log_jacobians_by_differences(made, psi), rtol=0, atol=1e-5)


@short
@given(trees(most=6), seeds)
def test_jacobian_by_finite_differences_whichever_coordinate_is_left_out(tree, rng):
    made = Decomposition.from_tuples(tree)
    psi = rng.uniform(-1.5, 1.5, made.n_categories - 1)
    check_log_jacobian(made, psi, made.log_jacobian(psi))


def test_finite_differences_see_a_jacobian_without_the_masses():
    made, psi = Decomposition.balanced(4), np.array([0.3, -0.2, 0.1])
    without = np.sum(special.log_expit(psi) + special.log_expit(-psi))
    with pytest.raises(AssertionError):
        check_log_jacobian(made, psi, without)


@short
@given(st.integers(2, 9), seeds)
def test_appendix_a_for_sticks(K, rng):
    made = Decomposition.sticks(range(K))
    psi, alpha = rng.normal(size=K - 1), rng.uniform(0.2, 5.0, K)
    pi = made.probabilities(psi)
    np.testing.assert_allclose(made.log_jacobian(psi), naive.stick_log_jacobian(pi), rtol=1e-12)
    np.testing.assert_allclose(
        made.dirichlet_log_density(psi, alpha),
        naive.stick_dirichlet_log_density(psi, alpha),
        rtol=1e-11,
        atol=1e-11,
    )
    np.testing.assert_allclose(
        made.dirichlet_moments(alpha), naive.stick_dirichlet_moments(alpha), rtol=1e-11, atol=1e-12
    )


@short
@given(trees(), seeds)
def test_dirichlet_density_is_the_change_of_variables(tree, rng):
    made = Decomposition.from_tuples(tree)
    psi, alpha = rng.normal(size=made.n_categories - 1), rng.uniform(0.2, 5.0, made.n_categories)
    changed = naive.dirichlet_log_density(made.probabilities(psi), alpha) + made.log_jacobian(psi)
    np.testing.assert_allclose(
        made.dirichlet_log_density(psi, alpha), changed, rtol=1e-11, atol=1e-11
    )


def on_the_triangle(size=150):
    """Gauss-Legendre points pi (n, 3) and weights for Lebesgue measure on (pi_0, pi_1)."""
    x, w = np.polynomial.legendre.leggauss(size)
    x, w = (x + 1) / 2, w / 2
    u, v = np.meshgrid(x, x, indexing="ij")
    pi = np.stack([u, (1 - u) * v, (1 - u) * (1 - v)], -1)
    return pi.reshape(-1, 3), (np.outer(w, w) * (1 - u)).ravel()


@pytest.mark.parametrize("tree", THREE)
def test_gaussian_density_on_the_simplex_integrates_to_one(tree):
    pi, weights = on_the_triangle()
    cov = np.array([[1.0, -0.4], [-0.4, 0.8]])
    density = np.exp(Decomposition.from_tuples(tree).log_density(pi, [0.3, -0.5], cov))
    np.testing.assert_allclose(weights @ density, 1, rtol=1e-6)


@pytest.mark.parametrize("tree", THREE)
@pytest.mark.parametrize("alpha", [1.0, [0.7, 2.0, 4.0]])
def test_dirichlet_density_on_psi_integrates_to_one(tree, alpha):
    grid = np.linspace(-45, 45, 721)
    psi = np.stack(np.meshgrid(grid, grid), -1)
    density = np.exp(Decomposition.from_tuples(tree).dirichlet_log_density(psi, alpha))
    np.testing.assert_allclose(density.sum() * (grid[1] - grid[0]) ** 2, 1, rtol=1e-9)


def test_gaussian_density_takes_one_row_or_many_and_a_mean_per_row():
    made, rng = Decomposition.balanced(4), np.random.default_rng(0)
    pi, means = rng.dirichlet(np.ones(4), (2, 3)), rng.normal(size=(2, 3, 3))
    many = made.log_density(pi, means, np.eye(3))
    one = made.log_density(pi[1, 2], means[1, 2], np.eye(3))
    assert np.ndim(one) == 0
    np.testing.assert_allclose(one, many[1, 2], rtol=1e-13)


def test_gaussian_density_is_zero_where_a_probability_is():
    log_density = Decomposition.balanced(3).log_density(
        [[0, 0.5, 0.5], [0, 0, 1], [0.2, 0.3, 0.5]], np.zeros(2), np.eye(2)
    )
    np.testing.assert_array_equal(np.isneginf(log_density), [True, True, False])


def check_moments_by_draws(made, alpha, mean, variance, n=40_000):
    psi = made.psi(np.random.default_rng(1).dirichlet(alpha, n))
    squares = (psi - mean) ** 2
    z = (psi.mean(0) - mean) / np.sqrt(variance / n)
    z_squares = (squares.mean(0) - variance) / (squares.std(0) / np.sqrt(n))
    assert abs(z).max() < 5
    assert abs(z_squares).max() < 5
    correlations = np.corrcoef(psi.T) - np.eye(psi.shape[1])
    assert abs(correlations).max() * np.sqrt(n) < 5


ALPHA = np.array([0.8, 2.0, 1.0, 3.0, 0.5])


@pytest.mark.parametrize("tree", [(0, (1, (2, (3, 4)))), ((0, (4, 1)), (2, 3))])
def test_dirichlet_moments_by_draws(tree):
    made = Decomposition.from_tuples(tree)
    check_moments_by_draws(made, ALPHA, *made.dirichlet_moments(ALPHA))


def test_draws_see_a_second_side_that_counts_the_whole_node():
    made = Decomposition.sticks(range(5))
    first, total = made.split(ALPHA)
    mean = special.digamma(first) - special.digamma(total)
    variance = special.polygamma(1, first) + special.polygamma(1, total)
    with pytest.raises(AssertionError):
        check_moments_by_draws(made, ALPHA, mean, variance)


def test_dirichlet_moments_of_the_papers_figures():
    mean, variance = Decomposition.sticks(range(9)).dirichlet_moments(1.0)
    np.testing.assert_allclose([mean[0], variance[0]], [-2.59, 1.78], atol=0.005)
    np.testing.assert_allclose([mean[-1], variance[-1]], [0, np.pi**2 / 3], atol=1e-14)
    mean, variance = Decomposition.sticks(range(3)).dirichlet_moments([1, 1, 1])
    np.testing.assert_allclose(mean, [-1, 0], atol=1e-14)
    np.testing.assert_allclose(variance, [2.290, 3.290], atol=5e-4)


def test_dirichlet_moments_of_many_sticks():
    """The authors' quadrature on [-10, 10] gives a variance of .799 here (REFERENCE row 10)."""
    _, variance = Decomposition.sticks(range(1000)).dirichlet_moments(2.0)
    np.testing.assert_allclose(variance[0], 0.645, atol=1e-3)


def test_a_side_of_little_weight_is_not_lost_to_cancellation():
    mean, _ = Decomposition.sticks(range(3)).dirichlet_moments([1e12, 1e-8, 1e-8])
    np.testing.assert_allclose(mean[0], np.log(1e12) - special.digamma(2e-8), rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, [1.0, -1.0, 1.0], [1.0, np.nan, 1.0], np.inf])
def test_alpha_must_be_positive(alpha):
    made, message = Decomposition.balanced(3), r"alpha must be finite and above 0; got .*; try"
    with pytest.raises(ValueError, match=message):
        made.dirichlet_moments(alpha)
    with pytest.raises(ValueError, match=message):
        made.dirichlet_log_density(np.zeros(2), alpha)
