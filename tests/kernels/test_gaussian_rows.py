"""Row kernels against dense linear algebra: draws are affine in noise, so nothing is random."""

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

from naive_gaussian import Potential, draws, posteriors, problem
from polystick.kernels import gaussian

PLAIN = bool(numba.config.DISABLE_JIT)
SHAPES = [(1, 1), (5, 1), (1, 3), (9, 4), (7, 8)] + [(11, 19), (6, 30)] * (not PLAIN)


def run_draws(p, noise):
    psi, log_det = np.full(noise.shape, np.nan), np.full(len(noise), np.nan)
    gaussian.draw_rows(*p.natural, noise, psi, log_det)
    return psi, log_det


def run_moments(p):
    n, k = p.potential.kappa.shape
    out = np.full((n, k), np.nan), np.full((n, k), np.nan), np.zeros((k, k)), np.full(n, np.nan)
    gaussian.moment_rows(*p.natural, *out)
    return out


def run_condition(p, noise):
    psi = np.full(p.potential.kappa.shape, np.nan)
    gaussian.condition_rows(*p.moment, noise, psi)
    return psi


def assert_close(ours, theirs, scale, tolerance=1e-10):
    assert np.isfinite(ours).all()
    assert np.max(np.abs(ours - theirs) / scale) < tolerance


def affine_parts(function, n, size):
    """Return the value at zero (n, k) and the response to unit vectors (n, size, k)."""
    mean = function(np.zeros((n, size)))
    units = [function(np.broadcast_to(unit, (n, size)).copy()) for unit in np.eye(size)]
    return mean, np.stack(units, axis=1) - mean[:, None]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("exponent", [0, 8])
def test_draws_equal_dense_algebra(shape, exponent):
    rng = np.random.default_rng(shape)
    p = problem(*shape, rng, exponent=exponent)
    noise = rng.normal(size=(shape[0], 3, shape[1]))
    psi, log_det = run_draws(p, noise)
    _, covs, expected_log_det = posteriors(p)
    sd = np.sqrt(np.diagonal(covs, axis1=1, axis2=2))[:, None]
    expected = draws(p, noise)
    assert_close(psi, expected, sd + np.abs(expected))
    np.testing.assert_allclose(log_det, expected_log_det, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_zeros_give_the_mean_and_unit_vectors_a_root(shape):
    n, k = shape
    p = problem(n, k, np.random.default_rng(1))
    mean, root = affine_parts(lambda e: run_draws(p, e[:, None])[0][:, 0], n, k)
    means, covs, _ = posteriors(p)
    assert_close(mean, means, 1 + np.abs(means))
    assert_close(np.einsum("nsi,nsj->nij", root, root), covs, np.abs(covs).max())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("exponent", [0, 8])
def test_moments_equal_dense_algebra(shape, exponent):
    p = problem(*shape, np.random.default_rng(2), exponent=exponent)
    mean, variance, cov_sum, log_det = run_moments(p)
    means, covs, log_dets = posteriors(p)
    expected_variance = np.diagonal(covs, axis1=1, axis2=2)
    assert_close(mean, means, np.sqrt(expected_variance) + np.abs(means))
    assert_close(variance, expected_variance, expected_variance)
    assert_close(cov_sum, covs.sum(axis=0), np.abs(covs).sum())
    np.testing.assert_allclose(log_det, log_dets, rtol=1e-10, atol=1e-10)


def test_covariances_are_added():
    p = problem(6, 3, np.random.default_rng(3))
    before = np.full((3, 3), 7.0)
    out = np.empty((6, 3)), np.empty((6, 3)), before, np.empty(6)
    gaussian.moment_rows(*p.natural, *out)
    np.testing.assert_allclose(before - 7.0, run_moments(p)[2], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_conditioning_has_the_law_of_the_information_form(shape, share):
    n, k = shape
    p = problem(n, k, np.random.default_rng(4), share=share)
    mean, root = affine_parts(lambda e: run_condition(p, e), n, 2 * k)
    means, covs, _ = posteriors(p)
    assert_close(mean, means, 1 + np.abs(means))
    assert_close(np.einsum("nsi,nsj->nij", root, root), covs, np.abs(covs).max())


@pytest.mark.parametrize("exponent", [4, 8])
def test_conditioning_with_extreme_omega(exponent):
    p = problem(9, 6, np.random.default_rng(5), exponent=exponent)
    mean = run_condition(p, np.zeros((9, 12)))
    # C kappa is rounded first, and kappa ~ sqrt(omega) here
    assert_close(mean, posteriors(p)[0], 1.0, tolerance=1e-15 * 10**exponent + 1e-10)


def test_an_empty_row_is_the_prior():
    p = problem(5, 4, np.random.default_rng(6), share=0.0)
    noise = np.random.default_rng(7).normal(size=(5, 8))
    expected = p.mean + noise[:, :4] @ p.root
    np.testing.assert_allclose(run_condition(p, noise), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(
        run_moments(p)[0], np.broadcast_to(p.mean, (5, 4)), rtol=1e-10, atol=1e-11
    )


def test_the_tests_see_a_wrong_program():
    """Negative controls: a forgotten kappa, omega for its root, noise solved with L for L'."""
    p = problem(9, 4, np.random.default_rng(8))
    noise = np.random.default_rng(9).normal(size=(9, 3, 4))
    expected, scale = draws(p, noise), 1.0
    wrong = [
        p._replace(potential=Potential(0 * p.potential.kappa, p.potential.omega)),
        p._replace(potential=Potential(p.potential.kappa, np.sqrt(p.potential.omega))),
    ]
    for sabotaged in wrong:
        with pytest.raises(AssertionError):
            assert_close(run_draws(sabotaged, noise)[0], expected, scale)
    reversed_noise = np.ascontiguousarray(noise[..., ::-1])
    with pytest.raises(AssertionError):
        assert_close(run_draws(p, reversed_noise)[0], expected, scale)


def all_outputs(p, noise, noise2):
    return (*run_draws(p, noise), *run_moments(p), run_condition(p, noise2))


def take(p, noise, noise2, rows):
    part = Potential(*(np.ascontiguousarray(a[rows]) for a in p.potential))
    return p._replace(potential=part), noise[rows], noise2[rows]


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("size", [1, 3, 4, 7])
def test_bits_do_not_depend_on_the_split_or_the_threads(n_threads, size):
    n, k = 22, 5 if PLAIN else 18
    rng = np.random.default_rng(11)
    p = problem(n, k, rng, share=0.3)
    noise, noise2 = rng.normal(size=(n, 2, k)), rng.normal(size=(n, 2 * k))
    whole = all_outputs(p, noise, noise2)
    parts = [take(p, noise, noise2, slice(i, i + size)) for i in range(0, n, size)]
    with ThreadPoolExecutor(n_threads) as pool:
        pieces = list(pool.map(lambda part: all_outputs(*part), parts))
    for number, output in enumerate(whole):
        if number != 4:  # the sum of covariances is a sum over its own block
            np.testing.assert_array_equal(np.concatenate([x[number] for x in pieces]), output)


def test_covariances_are_summed_in_the_order_of_the_rows():
    p = problem(10, 5, np.random.default_rng(12))
    total = np.zeros((5, 5))
    for i in range(10):
        rows = Potential(*(a[i : i + 1] for a in p.potential))
        total += run_moments(p._replace(potential=rows))[2]
    np.testing.assert_array_equal(run_moments(p)[2], total)


@pytest.mark.skipif(PLAIN, reason="math.sqrt raises in plain Python")
def test_a_bad_row_leaves_nan_and_its_neighbours_alone():
    rng = np.random.default_rng(13)
    p = problem(9, 6, rng, share=1.0)
    noise, noise2 = rng.normal(size=(9, 1, 6)), rng.normal(size=(9, 12))
    good = all_outputs(p, noise, noise2)
    p.potential.omega[2] = -1e3
    p.potential.omega[4, 1] = np.nan
    bad = all_outputs(p, noise, noise2)
    others = [0, 1, 3, 5, 6, 7, 8]
    for number in (0, 1, 2, 3, 5, 6):
        np.testing.assert_array_equal(good[number][others], bad[number][others])
    assert np.isnan(bad[0][[2, 4]]).any(axis=(1, 2)).all()
    assert np.isnan(bad[6][[2, 4]]).any(axis=1).all()


@pytest.mark.skipif(PLAIN, reason="needs the compiler")
def test_one_signature_per_kernel():
    p = problem(5, 3, np.random.default_rng(14))
    rng = np.random.default_rng(15)
    all_outputs(p, rng.normal(size=(5, 2, 3)), rng.normal(size=(5, 6)))
    for name in ("draw_rows", "moment_rows", "condition_rows"):
        assert len(getattr(gaussian, name).signatures) == 1


def test_quadratic_rows():
    p = problem(6, 4, np.random.default_rng(16))
    psi, out = np.random.default_rng(17).normal(size=(6, 4)), np.empty(6)
    gaussian.quadratic_rows(p.precision, p.mean, psi, out)
    shift = psi - p.mean
    np.testing.assert_allclose(out, np.sum(shift @ p.precision * shift, axis=1), rtol=1e-12)
