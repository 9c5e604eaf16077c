"""Integrals over one stick: a binomial likelihood under a Gaussian psi.

Given omega the sticks are independent, so what a prediction needs is a product of such integrals (paper,
appendix B). The integrand is log-concave: its mode and the places where it is negligible are found by
bisection, and each side is integrated by Gauss-Legendre. So counts may be huge and variances large.
"""

import functools

import numpy as np
from scipy.special import expit

__all__ = ["effective_logit", "expected_logistic", "log_binomial_evidence", "log_moments"]

NEGLIGIBLE = 45.0  # nats below the mode
N_NODES = 48
N_HALVINGS = 40  # of where the mode may be; it need not be exact, nor need the ends
SMALLEST = 1e-14  # variance
AT_ONCE = 2**13  # integrals: what they need then fits a cache


def log_binomial_evidence(successes, trials, mean, variance):
    """Return log E[sigma(psi)^successes (1 - sigma(psi))^(trials - successes)], psi ~ N(mean, variance)."""
    variance = np.maximum(variance, SMALLEST)
    cells = np.broadcast_arrays(successes, np.subtract(trials, successes), mean, variance)
    found, flat = np.empty(cells[0].shape), [np.asarray(c, np.float64).reshape(-1) for c in cells]
    for start in range(0, found.size, AT_ONCE):
        part = slice(start, start + AT_ONCE)
        found.reshape(-1)[part] = _log_evidence(*(values[part] for values in flat))
    return found[()]


def _log_evidence(s, f, m, v):
    """Integrate for successes s, failures f, means m and variances v, (n,) each."""

    def height(psi):
        rest = np.log1p(np.exp(-np.abs(psi)))
        likelihood = s * np.minimum(psi, 0.0) - f * np.maximum(psi, 0.0) - (s + f) * rest
        return likelihood - np.square(psi - m) / (2.0 * v)

    mode = _bisect(lambda psi: s - (s + f) * expit(psi) > (psi - m) / v, *_around_mode(s, f, m, v))
    top, far = height(mode), np.sqrt(2.0 * NEGLIGIBLE * v)
    lowest = top - NEGLIGIBLE
    left = _bisect(lambda psi: height(psi) < lowest, mode - far, mode)
    right = _bisect(lambda psi: height(psi) > lowest, mode, mode + far)
    total = sum(_integral(lambda psi: height(psi) - top, mode, end) for end in (left, right))
    return top + np.log(total) - 0.5 * np.log(2.0 * np.pi * v)


def _around_mode(s, f, m, v):
    """Return bounds of the mode: the counts pull by at most v s and v f, and by e^-1 beyond the logs."""
    with np.errstate(divide="ignore"):
        low = np.maximum(m - v * f, np.minimum(m, -np.log(v * f)) - 1.0)
        high = np.minimum(m + v * s, np.maximum(m, np.log(v * s)) + 1.0)
    return low, high


def log_moments(mean, variance):
    """Return the logarithms of E[sigma(psi)], E[1 - sigma(psi)] and of the same with squares.

    Of the two sides the one of at most one half is integrated; the other one then follows without a loss.
    """
    low, high = np.asarray(mean) <= 0, -np.abs(mean)
    first, second = (log_binomial_evidence(n, n, high, variance) for n in (1.0, 2.0))
    share = np.exp(first)
    others = np.log1p(-share), np.log1p(np.exp(second) - 2.0 * share)
    sides = (((a, b) if yes else (b, a)) for a, b in zip((first, second), others) for yes in (1, 0))
    return tuple(np.where(low, *side) for side in sides)


def effective_logit(mean, variance):
    """Return the logit of E[sigma(psi)], precise in both tails."""
    smaller = log_binomial_evidence(1.0, 1.0, -np.abs(mean), variance)
    return np.where(np.asarray(mean) > 0, -1.0, 1.0) * (smaller - np.log1p(-np.exp(smaller)))


def expected_logistic(mean, variance):
    """Return E[sigma(psi)] for psi ~ N(mean, variance)."""
    return expit(effective_logit(mean, variance))


def _bisect(is_below, low, high):
    """Return about where a condition that holds to the left of a point ceases to hold."""
    for _ in range(N_HALVINGS):
        middle = 0.5 * (low + high)
        below = is_below(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


def _integral(height, start, end):
    """Return the integral of exp(height) between start and end, one after the other or not."""
    half = 0.5 * (end - start)
    total = 0.0
    for node, weight in _legendre():
        total += weight * np.exp(height(start + half * (1.0 + node)))
    return np.abs(half) * total


@functools.cache
def _legendre():
    """Return pairs of nodes on (-1, 1) and weights."""
    return list(zip(*np.polynomial.legendre.leggauss(N_NODES)))
