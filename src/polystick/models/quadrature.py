"""Integrals over one stick: a binomial likelihood under a Gaussian psi.

Given omega the sticks are independent, so what a prediction needs is a product of such integrals (paper,
appendix B). The integrand is log-concave: its mode and the places where it is negligible are found by
bisection, and each side is integrated by Gauss-Legendre. So counts may be huge and variances large.
"""

import functools

import numpy as np
from scipy.special import expit, log_expit, logsumexp

__all__ = ["effective_logit", "expected_logistic", "log_binomial_evidence"]

NEGLIGIBLE = 45.0  # nats below the mode
N_NODES, N_HALVINGS = 48, 60
SMALLEST = 1e-14  # variance


def log_binomial_evidence(successes, trials, mean, variance):
    """Return log E[sigma(psi)^successes (1 - sigma(psi))^(trials - successes)], psi ~ N(mean, variance)."""
    variance = np.maximum(variance, SMALLEST)
    s, f, m, v = np.broadcast_arrays(successes, np.subtract(trials, successes), mean, variance)
    mode = _bisect(
        lambda psi: s * expit(-psi) - f * expit(psi) > (psi - m) / v, m - v * f, m + v * s
    )

    def height(psi):
        return s * log_expit(psi) + f * log_expit(-psi) - np.square(psi - m) / (2.0 * v)

    lowest, far = height(mode) - NEGLIGIBLE, np.sqrt(2.0 * NEGLIGIBLE * v)
    left = _bisect(lambda psi: height(psi) < lowest, mode - far, mode)
    right = _bisect(lambda psi: height(psi) > lowest, mode, mode + far)
    sides = [_log_integral(height, *ends) for ends in ((left, mode), (mode, right))]
    return np.logaddexp(*sides) - 0.5 * np.log(2.0 * np.pi * v)


def effective_logit(mean, variance):
    """Return the logit of E[sigma(psi)], precise in both tails."""
    yes, no = (log_binomial_evidence(success, 1.0, mean, variance) for success in (1.0, 0.0))
    return yes - no


def expected_logistic(mean, variance):
    """Return E[sigma(psi)] for psi ~ N(mean, variance)."""
    return expit(effective_logit(mean, variance))


def _bisect(is_below, low, high):
    """Return where a condition that holds to the left of a point ceases to hold."""
    for _ in range(N_HALVINGS):
        middle = 0.5 * (low + high)
        below = is_below(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


def _log_integral(height, low, high):
    """Return the log of the integral of exp(height) from low to high."""
    half = 0.5 * (high - low)
    heights = [weight + height(low + half * (1.0 + node)) for node, weight in _legendre()]
    with np.errstate(divide="ignore"):  # a side may be empty: the mode at an end
        return logsumexp(heights, axis=0) + np.log(half)


@functools.cache
def _legendre():
    """Return pairs of nodes on (-1, 1) and log weights."""
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    return list(zip(nodes, np.log(weights)))
