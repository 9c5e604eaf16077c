"""The waist: drawn and expected potentials agree, and empty sticks leave nothing."""

import numba
import numpy as np
import pytest
from scipy.stats import binom

from polystick import augmentation
from polystick.decomposition import Decomposition, RaggedSplits, Splits
from polystick.keys import Key
from statistics_tools import MAX_Z, z_scores

N = 300 if numba.config.DISABLE_JIT else 20_000
COUNTS = np.array([[3, 0, 5, 0], [0, 0, 0, 0], [0, 40, 0, 2]])
PSI = np.array([[0.7, -1.2, 0.1], [1.0, 2.0, -3.0], [-4.0, 1.5, 9.0]])
SPLITS = Decomposition.sticks(range(4)).split(COUNTS)
ROWS = np.arange(3, dtype=np.uint64)


def test_expected_potential_is_the_mean_of_drawn_ones():
    for i in range(len(COUNTS)):
        splits = Splits(*(np.repeat(part[i : i + 1], N, axis=0) for part in SPLITS))
        psi = np.repeat(PSI[i : i + 1], N, axis=0)
        rows = np.arange(N, dtype=np.uint64)
        drawn = augmentation.draw_potential(splits, psi, Key(1).at("omega"), rows)
        expected = augmentation.expected_potential(Splits(*(p[i] for p in SPLITS)), PSI[i])
        np.testing.assert_array_equal(drawn.kappa[0], expected.kappa)
        active = SPLITS.trials[i] > 0
        z = z_scores(drawn.omega[:, active], expected.omega[active])
        assert np.abs(z).max(initial=0) < MAX_Z
        assert not drawn.omega[:, ~active].any()
        wrong = z_scores(drawn.omega[:, active], 1.05 * expected.omega[active])
        assert numba.config.DISABLE_JIT or not active.any() or np.abs(wrong).max() > MAX_Z


def test_empty_sticks_are_zero_zero():
    for potential in (
        augmentation.draw_potential(SPLITS, PSI, Key(1).at("omega"), ROWS),
        augmentation.expected_potential(SPLITS, np.abs(PSI)),
        augmentation.quadratic_potential(SPLITS, PSI),
    ):
        empty = SPLITS.trials == 0
        assert empty.any()
        assert not potential.kappa[empty].any()
        assert not potential.omega[empty].any()


def test_ragged_rows_have_the_bits_of_dense_ones():
    row, node = np.nonzero(SPLITS.trials)
    starts = np.searchsorted(row, np.arange(4))
    ragged = RaggedSplits(starts, node, SPLITS.successes[row, node], SPLITS.trials[row, node])
    key = Key(1).at("omega")
    dense = augmentation.draw_potential(SPLITS, PSI, key, ROWS)
    flat = augmentation.draw_potential(ragged, PSI[row, node], key, ROWS)
    for whole, part in zip(dense, flat):
        np.testing.assert_array_equal(whole[row, node], part)


def test_log_likelihood_is_binomial():
    splits = Splits(np.array([[3, 0, 7]]), np.array([[5, 0, 7]]))
    psi = np.array([[0.3, 2.0, -800.0]])
    value = augmentation.log_likelihood(splits, psi)
    p = 1 / (1 + np.exp(-0.3))
    assert value[0, 0] == pytest.approx(binom.logpmf(3, 5, p) - np.log(10))
    assert value[0, 1] == 0
    assert value[0, 2] == pytest.approx(-5600.0)


def test_quadratic_potential_is_the_second_order_expansion():
    splits, psi, h = Splits(np.array([3.0]), np.array([10.0])), np.array([0.8]), 1e-4
    kappa, omega = augmentation.quadratic_potential(splits, psi)
    values = [augmentation.log_likelihood(splits, psi + d)[0] for d in (-h, 0, h)]
    slope, curvature = (
        (values[2] - values[0]) / (2 * h),
        (values[2] - 2 * values[1] + values[0]) / h**2,
    )
    assert (kappa - omega * psi)[0] == pytest.approx(slope, rel=1e-5)
    assert omega[0] == pytest.approx(-curvature, rel=1e-5)


# sites by their moments


def marginals(prior, sites):
    """Return mean and variance of psi under N(mean, cov) and sites, the obvious way."""
    mean, cov = prior
    precision = np.linalg.inv(cov)
    cov = np.linalg.inv(precision + np.diag(sites.omega))
    return cov @ (precision @ mean + sites.kappa), np.diag(cov)


def test_one_split_is_matched_at_once():
    """Prior times site then has the very moments of prior times likelihood."""
    for yes, trials, variance in [(0, 5000, 100.0), (3, 9, 0.1), (40, 40, 1e4)]:
        splits = Splits(np.array([yes]), np.array([trials]))
        prior = np.array([-1.0]), np.array([[variance]])
        nothing = augmentation.Potential(np.zeros(1), np.zeros(1))
        sites = augmentation.match_sites(splits, nothing, *marginals(prior, nothing), damping=1.0)
        expected = augmentation.tilted_moments(splits, prior[0], prior[1][0])
        np.testing.assert_allclose(marginals(prior, sites), expected, rtol=1e-9)


def test_many_splits_come_near_the_posterior():
    """Expectation propagation against importance sampling, for counts that are lopsided."""
    cov = 4.0 * np.exp(-np.abs(np.subtract.outer(np.arange(4), np.arange(4))) / 2.0)
    prior = np.array([-3.0, -3.0, 0.0, 0.0]), cov
    splits = Splits(np.array([0, 1, 5, 0]), np.array([1000, 1000, 12, 0]))
    sites = augmentation.Potential(np.zeros(4), np.zeros(4))
    for _ in range(40):
        sites = augmentation.match_sites(splits, sites, *marginals(prior, sites))
    draws = np.random.default_rng(4).multivariate_normal(*prior, size=20 * N)
    weight = np.exp(augmentation.log_likelihood(splits, draws).sum(axis=1) + 20)
    weight /= weight.sum()
    mean = weight @ draws
    sd = np.sqrt(weight @ (draws - mean) ** 2)
    found, variance = marginals(prior, sites)
    loose = 0.05 + 3.0 * np.sqrt(np.sum(weight**2))  # of the draws that weigh something
    assert np.abs((found - mean) / sd).max() < loose
    assert np.abs(np.sqrt(variance) / sd - 1.0).max() < loose
    assert not sites.kappa[3]
    assert not sites.omega[3]


def test_sites_never_go_wrong():
    """Omega stays finite and not negative, even where the marginals make no sense."""
    splits = Splits(*(np.full(6, n) for n in (0, 10**6)))
    sites = augmentation.Potential(np.full(6, -2.0), np.full(6, 3.0))
    mean = np.array([0.0, -20.0, np.nan, 1e300, -1e-300, 0.0])
    variance = np.array([10.0, 1e-12, 1.0, 1e8, np.inf, 0.0])
    found = augmentation.match_sites(splits, sites, mean, variance)
    assert np.isfinite(found.kappa).all()
    assert (found.omega >= 0.0).all()
    assert (found.kappa[2], found.omega[2]) == (-2.0, 3.0)
    assert found.omega[0] != 3.0


def test_average_sites_leave_less_to_vary_than_any_other():
    """Of log likelihood less potential, over a normal law of psi; softening is undone."""
    splits = Splits(np.array([0, 3]), np.array([400, 900]))
    mean, variance = np.array([-7.0, -5.5]), np.array([1.0, 0.3])
    kappa, omega = augmentation.average_site(splits, mean, variance)
    full = omega / augmentation.SOFTER
    kappa = kappa + (full - omega) * mean
    psi = mean + np.sqrt(variance) * np.random.default_rng(1).standard_normal((200_000, 2))
    value = augmentation.log_likelihood(splits, psi)

    def left(a, b):
        return (value - a * psi + 0.5 * b * psi**2).var(axis=0)

    best = left(kappa, full)
    for slope, bend in ((0.2, 1.0), (-0.2, 1.0), (0.0, 1.2), (0.0, 0.8)):
        other = bend * full
        assert (left(kappa + slope + (other - full) * mean, other) > best).all()
