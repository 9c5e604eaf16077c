import numba
import numpy as np
import pytest
from scipy import stats

from naive_gaussian import Potential, posteriors, problem
from polystick.gaussians import normal
from polystick.gaussians.normal import Normal, Shifted

K = 24 if numba.config.DISABLE_JIT else 40  # large enough for both forms


def mixed(n=9, k=K, seed=0):
    """Make a problem whose rows need both forms."""
    p = problem(n, k, np.random.default_rng(seed), share=0.9)
    keep = np.ones((n, k))
    keep[::2, 2:] = 0.0
    return p._replace(potential=Potential(*(keep * a for a in p.potential)))


def test_both_constructors_agree():
    p = mixed()
    direct, natural = Normal(p.mean, p.cov), Normal.natural(p.precision, p.linear)
    for name in ("mean", "cov", "precision", "linear", "root"):
        np.testing.assert_allclose(
            getattr(direct, name), getattr(natural, name), rtol=1e-6, atol=1e-8
        )
    np.testing.assert_allclose(direct.root.T @ direct.root, p.cov, rtol=1e-10, atol=1e-12)


def test_a_given_precision_is_kept():
    p = mixed()
    assert Normal(p.mean, p.cov, 2.0 * p.precision).precision[0, 0] == 2.0 * p.precision[0, 0]


def test_draw_is_affine_with_the_posterior_moments():
    p = mixed()
    n, k = p.potential.kappa.shape
    few = normal.few_active(p.potential.omega)
    assert 0 < few.sum() < n
    block = Normal(p.mean, p.cov)
    mean = block.draw(p.potential, np.zeros((n, 2 * k)))
    units = [block.draw(p.potential, np.tile(unit, (n, 1))) - mean for unit in np.eye(2 * k)]
    root = np.stack(units, axis=1)
    means, covs, _ = posteriors(p)
    np.testing.assert_allclose(mean, means, rtol=1e-8, atol=1e-9)
    gram = np.einsum("nsi,nsj->nij", root, root)
    np.testing.assert_allclose(gram, covs, atol=1e-9 * np.abs(covs).max())


def test_rows_about_means_of_their_own_are_normal_rows():
    """Each row of the block is drawn as `Normal` with its mean draws it, but for rounding."""
    p = mixed()
    n, k = p.potential.kappa.shape
    rng = np.random.default_rng(2)
    means, noise = rng.normal(size=(n, k)), rng.normal(size=(n, 2 * k))
    found = Shifted(means, Normal(np.zeros(k), p.cov)).draw(p.potential, noise)
    for i, mean in enumerate(means):
        one = Potential(*(a[i : i + 1] for a in p.potential))
        expected = Normal(mean, p.cov).draw(one, noise[i : i + 1])[0]
        np.testing.assert_allclose(found[i], expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_row_draws_the_same_in_any_company(size):
    p = mixed(n=11)
    block, noise = Normal(p.mean, p.cov), np.random.default_rng(1).normal(size=(11, 2 * K))
    pieces = [
        block.draw(Potential(*(a[i : i + size] for a in p.potential)), noise[i : i + size])
        for i in range(0, 11, size)
    ]
    np.testing.assert_array_equal(np.concatenate(pieces), block.draw(p.potential, noise))


def test_draws_share_the_mean_and_know_their_density():
    p = mixed(k=5)
    block, noise = Normal(p.mean, p.cov), np.random.default_rng(2).normal(size=(9, 3, 5))
    psi, log_det = block.draws(p.potential, noise)
    means, covs, _ = posteriors(p)
    ours = 0.5 * (log_det[:, None] - np.sum(noise**2, axis=2) - 5 * np.log(2 * np.pi))
    for i in range(9):
        expected = stats.multivariate_normal(means[i], covs[i]).logpdf(psi[i])
        np.testing.assert_allclose(ours[i], expected, rtol=1e-9, atol=1e-9)


def test_moments():
    p = mixed(k=6)
    q = Normal(p.mean, p.cov).moments(p.potential)
    means, covs, log_det = posteriors(p)
    np.testing.assert_allclose(q.mean, means, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(q.variance, np.diagonal(covs, axis1=1, axis2=2), rtol=1e-9)
    np.testing.assert_allclose(q.cov_sum, covs.sum(axis=0), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(q.second, means**2 + q.variance, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(q.log_det, log_det, rtol=1e-9)


def test_log_density():
    p = mixed(k=4)
    psi = np.random.default_rng(3).normal(size=(7, 4))
    expected = stats.multivariate_normal(p.mean, p.cov).logpdf(psi)
    np.testing.assert_allclose(Normal(p.mean, p.cov).log_density(psi), expected, rtol=1e-10)


def test_no_rows():
    p = mixed(k=4)
    empty = Potential(np.empty((0, 4)), np.empty((0, 4)))
    block = Normal(p.mean, p.cov)
    assert block.draw(empty, np.empty((0, 8))).shape == (0, 4)
    assert block.moments(empty).mean.shape == (0, 4)


def test_an_indefinite_covariance_gives_nan_not_an_error():
    block = Normal(np.zeros(2), np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert np.isnan(block.precision).all()
    assert np.isnan(block.root).all()


def test_other_memory_orders_and_types_are_taken():
    p = mixed(k=4)
    block, noise = Normal(p.mean, p.cov), np.random.default_rng(4).normal(size=(9, 8))
    odd = Potential(*(np.asfortranarray(a) for a in p.potential))
    expected = block.draw(p.potential, noise)
    np.testing.assert_array_equal(block.draw(odd, np.asfortranarray(noise)), expected)


def test_a_dense_row_reads_the_first_half_of_its_noise_and_a_sparse_one_its_active_sticks():
    p = mixed()
    n, k = p.potential.kappa.shape
    few = normal.few_active(p.potential.omega)
    noise = np.random.default_rng(5).normal(size=(n, 2 * k))
    unread = np.concatenate(
        [np.zeros((n, k), bool), ~few[:, None] | (p.potential.omega == 0)], axis=1
    )
    block = Normal(p.mean, p.cov)
    np.testing.assert_array_equal(
        block.draw(p.potential, np.where(unread, np.nan, noise)), block.draw(p.potential, noise)
    )
