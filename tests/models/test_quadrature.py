"""Integrals over one stick against a fine sum, for tiny and huge counts and variances."""

import tracemalloc

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, log_expit, logit

from polystick.models.quadrature import (
    effective_logit,
    expected_logistic,
    log_binomial_evidence,
    log_moments,
)

CASES = [
    (0, 0, 1.0, 2.0),
    (1, 1, 0.0, 100.0),
    (1, 1, -30.0, 4.0),
    (3, 10, 1.0, 0.5),
    (20_000, 50_000, 0.0, 3.0),
    (0, 50_000, 2.0, 1.0),
    (5, 5, -40.0, 1600.0),
    (2, 700_000, -5.0, 0.01),
]


def summed(successes, trials, mean, variance):
    """Return the log evidence by a trapezoidal sum over a range that holds the mode."""
    ends = mean + np.array([-40, 40]) * np.sqrt(variance) + np.array([-1e-3, 1e-3])
    psi = np.linspace(*ends, 2_000_001)
    height = successes * log_expit(psi) + (trials - successes) * log_expit(-psi)
    height = height + stats.norm.logpdf(psi, mean, np.sqrt(variance))
    top = height.max()
    return top + np.log(np.trapezoid(np.exp(height - top), psi))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_evidence(case):
    assert log_binomial_evidence(*case) == pytest.approx(summed(*case), rel=1e-9, abs=1e-9)


def test_no_variance_is_the_likelihood():
    found = log_binomial_evidence(3, 10, np.array([0.2, -1.0]), 0.0)
    np.testing.assert_allclose(found, stats.binom.logpmf(3, 10, expit([0.2, -1.0])) - np.log(120))


def test_arrays_broadcast():
    mean, variance = np.linspace(-3, 3, 5)[:, None], np.array([0.1, 1.0, 9.0])
    found = log_binomial_evidence(2, np.array(7), mean, variance)
    one_by_one = [[log_binomial_evidence(2, 7, m, v) for v in variance] for m in mean[:, 0]]
    np.testing.assert_allclose(found, one_by_one, rtol=1e-12)


def test_expected_logistic():
    mean, variance = np.array([-2.0, 0.0, 1.5]), np.array([0.3, 25.0, 4.0])
    exact = [np.exp(summed(1, 1, m, v)) for m, v in zip(mean, variance)]
    np.testing.assert_allclose(expected_logistic(mean, variance), exact, rtol=1e-9)
    np.testing.assert_allclose(effective_logit(mean, variance), logit(exact), rtol=1e-8, atol=1e-9)


def test_far_tails_keep_their_digits():
    """E sigma(psi) and 1 - E sigma(psi) mirror each other, where one of them rounds to 1."""
    np.testing.assert_allclose(effective_logit(60.0, 1.0), -effective_logit(-60.0, 1.0), rtol=1e-12)
    assert effective_logit(60.0, 1.0) == pytest.approx(59.5, rel=1e-6)


def test_moments_of_both_sides():
    mean, variance = np.array([-30.0, -2.0, 0.0, 1.5, 40.0]), np.array([560.0, 0.3, 25.0, 4.0, 1.0])
    for found, power, yes in zip(log_moments(mean, variance), (1, 1, 2, 2), (1, 0, 1, 0)):
        exact = [summed(power * yes, power, m, v) for m, v in zip(mean, variance)]
        np.testing.assert_allclose(found, exact, rtol=1e-7, atol=1e-9)


def test_many_integrals_need_little_room():
    """Five arrays of the size of what is asked for, not one for each node."""
    mean = np.zeros(2**17)
    tracemalloc.start()
    try:
        log_binomial_evidence(1.0, 2.0, mean, 1.0)
        assert tracemalloc.get_traced_memory()[1] < 8 * mean.nbytes
    finally:
        tracemalloc.stop()
