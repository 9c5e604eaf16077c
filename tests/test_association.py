"""The sparse gauge: nothing where nothing is, whatever variances, gauge or order; truths where they are."""

import numpy as np
import pytest

from polystick.association import correlations, double_centred, sparse_gauge


@pytest.fixture
def rng():
    return np.random.default_rng(2012)


def scaled(correlation, rng):
    """Return a covariance with these correlations and unequal variances."""
    sd = np.exp(0.5 * rng.normal(size=len(correlation)))
    return correlation * np.outer(sd, sd)


def block_truth(k=20, size=4, strength=0.7):
    truth = np.eye(k)
    truth[:size, :size] += strength * (1 - np.eye(size))
    return truth


def factor_truth(rng, k=30):
    """Return correlations of one factor that moves a fifth of the categories."""
    loadings = np.zeros(k)
    loadings[:6] = np.array([1.0, 1.2, 0.8, -1.0, -0.9, 1.1])
    cov = np.outer(loadings, loadings) + np.eye(k)
    sd = np.sqrt(np.diag(cov))
    return cov / np.outer(sd, sd)


def off_diagonal(a):
    return a[np.triu_indices(len(a), 1)]


def rms(a):
    return np.sqrt(np.mean(np.square(a)))


@pytest.mark.parametrize("k", [5, 16, 60])
def test_independent_categories_have_none_whatever_their_variances(k, rng):
    cov = np.diag(np.exp(1.5 * rng.normal(size=k)))
    assert np.abs(off_diagonal(correlations(cov))).max() < 1e-6
    np.testing.assert_allclose(np.diag(sparse_gauge(cov)), np.diag(cov), rtol=1e-5)
    centred = double_centred(cov)  # negative control: what centred log-ratios would say
    sd = np.sqrt(np.diag(centred))
    assert np.abs(off_diagonal(centred / np.outer(sd, sd))).max() > 1e-2


def test_only_log_ratios_matter(rng):
    cov = scaled(block_truth(), rng)
    a = 3.0 * rng.normal(size=len(cov))
    np.testing.assert_allclose(correlations(cov + a[:, None] + a), correlations(cov), atol=1e-9)
    np.testing.assert_allclose(correlations(double_centred(cov)), correlations(cov), atol=1e-9)


def test_any_order_and_any_unit(rng):
    cov, order = scaled(block_truth(), rng), rng.permutation(20)
    found = correlations(cov)
    np.testing.assert_allclose(
        correlations(cov[np.ix_(order, order)]), found[np.ix_(order, order)], atol=1e-9
    )
    np.testing.assert_allclose(correlations(1e-6 * cov), found, atol=1e-6)


def test_truths_are_found_again(rng):
    """To rms 0.02; the gauge that makes all correlations sum to nothing (SparCC's) is further off."""
    for truth in (block_truth(), factor_truth(rng)):
        for _ in range(5):
            found = correlations(double_centred(scaled(truth, rng)))
            assert rms(off_diagonal(found - truth)) < 0.02
            assert (np.abs(off_diagonal(found)) <= 1.0).all()


def test_many_draws_at_once_are_as_one_by_one(rng):
    root = rng.normal(size=(3, 2, 8, 11))
    draws = root @ np.swapaxes(root, -1, -2)
    found = correlations(draws)
    assert found.shape == draws.shape
    for i in np.ndindex(3, 2):
        np.testing.assert_allclose(found[i], correlations(draws[i]), rtol=0, atol=1e-12)


def test_results_are_correlations(rng):
    root = rng.normal(size=(50, 6, 7))
    found = correlations(root @ np.swapaxes(root, -1, -2))
    np.testing.assert_allclose(np.diagonal(found, axis1=1, axis2=2), 1.0, rtol=1e-12)
    np.testing.assert_allclose(found, np.swapaxes(found, 1, 2), atol=1e-12)
    assert np.abs(found).max() <= 1.0


def test_a_category_that_hardly_varies_harms_nobody(rng):
    cov = np.diag([1e-8, *np.exp(rng.normal(size=9))])
    found = correlations(cov)
    assert np.isfinite(found).all()
    assert np.abs(off_diagonal(found)).max() < 0.1


def test_double_centred_is_the_covariance_of_centred_log_ratios(rng):
    psi = rng.normal(size=(50, 5)) * [1, 2, 3, 1, 1]
    centred = psi - psi.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(double_centred(np.cov(psi.T)), np.cov(centred.T), atol=1e-12)
    np.testing.assert_allclose(double_centred(np.cov(psi.T)).sum(axis=1), 0.0, atol=1e-12)
