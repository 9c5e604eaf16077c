"""Rows whose categories depend on each other in one way only: their shares sum to one::

alpha = A m,   m ~ Dirichlet(a, ..., a),   A / K ~ F(2, 2)
pi_i  ~ Dirichlet(alpha)                                        i = 1..n
x_i   ~ Multinomial(N_i, pi_i)

pi is integrated out in closed form, and alpha is a point: where the density of log alpha given the counts has
its mode. The prior is proper and has its own mode at alpha = 1, so that there is one whatever was counted.

Say that each row's counts are drawn one by one, each a copy of an earlier one or else fresh (Blackwell and
MacQueen 1973). Then a is how many more fresh counts each category has than the data, and the slopes of the
log density are sums of expected numbers of fresh counts, their curvatures of variances.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, zeta

LARGE = 100.0  # from here on differences are taken of Stirling's series, term by term
CONCAVE = 0.9  # how far the curvature of A may offset the others where there is no maximum
LONGEST_STEP = 3.0  # in log alpha
HALVINGS = 6
EPSILON = float(np.finfo(float).eps)


class Cells(NamedTuple):
    """Counts that are not zero."""

    rows: np.ndarray  # (c,)
    columns: np.ndarray  # (c,)
    counts: np.ndarray  # (c,)
    totals: np.ndarray  # (n,)

    @classmethod
    def of(cls, counts):
        """Read them from a CSR array (n, K)."""
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        totals = np.bincount(rows, counts.data, minlength=counts.shape[0])
        return cls(rows, counts.indices, counts.data.astype(np.float64), totals)


class Slopes(NamedTuple):
    """What the log density is made of, at some alpha; gradient = more - alpha * less."""

    more: np.ndarray  # (K,) a, and the expected number of fresh counts
    less: float  # the same fresh counts of all categories for each unit of A, and the prior's part
    variance: np.ndarray  # (K,) of the number of fresh counts
    bend: float  # - d less / d A


def log_evidence(alpha, cells, seen=0.0, seen_totals=0.0):
    """Return log p(x_i | counts seen before), (n,), without the multinomial coefficient.

    seen        : (c,) what was seen before in the categories of the cells
    seen_totals : (n,)
    """
    values = log_rising(alpha[cells.columns] + seen, cells.counts)
    sums = np.bincount(cells.rows, values, minlength=len(cells.totals))
    return sums - log_rising(alpha.sum() + seen_totals, cells.totals)


def log_density(log_alpha, cells, a):
    """Return the log density of log alpha given the counts, but for its constant."""
    alpha = np.exp(log_alpha)
    A, K = alpha.sum(), len(alpha)
    log_prior = a * log_alpha.sum() - (K * a - 1.0) * np.log(A) - 2.0 * np.log(A + K)
    return log_evidence(alpha, cells).sum() + log_prior


def slopes(alpha, cells, a):
    """Return the slopes and curvatures of `log_density`."""
    A, K = alpha.sum(), len(alpha)
    own = alpha[cells.columns]
    fresh = own * digamma_rise(own, cells.counts)
    variance = fresh - np.square(own) * trigamma_fall(own, cells.counts)
    fresh, variance = (np.bincount(cells.columns, part, minlength=K) for part in (fresh, variance))
    less = digamma_rise(A, cells.totals).sum() + (K * a - 1.0) / A + 2.0 / (A + K)
    bend = trigamma_fall(A, cells.totals).sum() + (K * a - 1.0) / A**2 + 2.0 / (A + K) ** 2
    return Slopes(a + fresh, less, variance, bend)


def newton_step(alpha, at):
    """Return a step uphill in log alpha, and what it would gain if the density were Gaussian.

    The curvature is minus a diagonal plus a multiple of alpha alpha'. At the maximum this is Newton's step;
    elsewhere both parts are made such that they have one.
    """
    diagonal = np.maximum(alpha * at.less, at.more) - at.variance
    gradient = at.more - alpha * at.less
    step, along = gradient / diagonal, alpha / diagonal
    size = alpha @ along
    offset = at.bend * size if at.bend * size < 1.0 else CONCAVE
    step = step + along * (alpha @ step) * offset / (size * (1.0 - offset))
    return step, 0.5 * gradient @ step


def sure_step(alpha, at, a):
    """Return a step that never goes down: it maximises a bound that touches at alpha (Minka 2000)."""
    A, K = alpha.sum(), len(alpha)
    rest = max(1.0 - K * a, 0.0) / A  # concave in A, so it is shared out instead
    return np.log((at.more + alpha * rest) / (at.less + rest)) - np.log(alpha)


def ascend(log_alpha, value, step, sure, density, resolution):
    """Return the first point along the step that is not lower, or else that of the sure step."""
    step = step * min(1.0, LONGEST_STEP / np.abs(step).max())
    for _ in range(HALVINGS):
        there = density(log_alpha + step)
        if there >= value - resolution:
            return log_alpha + step, there
        step = step / 2.0
    return log_alpha + sure, density(log_alpha + sure)


def fit(cells, n_categories, a, tolerance, max_iter):
    """Return alpha, the steps made, and whether the last one gained less than the tolerance, in nats.

    Where counts are huge, the tolerance is what rounding leaves of the log density.
    """
    sums = np.bincount(cells.columns, cells.counts, minlength=n_categories) + 1.0
    log_alpha = np.log(n_categories * sums / sums.sum())

    def density(point):
        return log_density(point, cells, a)

    value = density(log_alpha)
    for number in range(1, max_iter + 1):
        alpha = np.exp(log_alpha)
        at = slopes(alpha, cells, a)
        step, gain = newton_step(alpha, at)
        resolution = 4.0 * EPSILON * (cells.totals @ np.log(cells.totals + alpha.sum() + 2.0))
        if gain <= max(tolerance, resolution):
            return np.exp(log_alpha + step), number, True
        sure = sure_step(alpha, at, a)
        log_alpha, value = ascend(log_alpha, value, step, sure, density, resolution)
    return np.exp(log_alpha), max_iter, False


def log_rising(a, x):
    """Return log Gamma(a + x) - log Gamma(a), without cancellation where a is large."""
    b = np.maximum(a, LARGE)
    far = (b - 0.5) * np.log1p(x / b) + x * (np.log(b + x) - 1.0) + _rest(b + x) - _rest(b)
    return np.where(a < LARGE, gammaln(a + x) - gammaln(a), far)


def digamma_rise(a, x):
    """Return digamma(a + x) - digamma(a), without cancellation where a is large."""
    b = np.maximum(a, LARGE)
    far = np.log1p(x / b) + _digamma_rest(b + x) - _digamma_rest(b)
    return np.where(a < LARGE, digamma(a + x) - digamma(a), far)


def trigamma_fall(a, x):
    """Return trigamma(a) - trigamma(a + x), without cancellation where a is large."""
    b = np.maximum(a, LARGE)
    far = x / (b * (b + x)) + _trigamma_rest(b) - _trigamma_rest(b + x)
    return np.where(a < LARGE, zeta(2.0, a) - zeta(2.0, a + x), far)


def _rest(z):
    """Return what Stirling's formula leaves of log Gamma(z)."""
    return 1.0 / (12.0 * z) - 1.0 / (360.0 * z**3) + 1.0 / (1260.0 * z**5)


def _digamma_rest(z):
    return -1.0 / (2.0 * z) - 1.0 / (12.0 * z**2) + 1.0 / (120.0 * z**4) - 1.0 / (252.0 * z**6)


def _trigamma_rest(z):
    return 1.0 / (2.0 * z**2) + 1.0 / (6.0 * z**3) - 1.0 / (30.0 * z**5) + 1.0 / (42.0 * z**7)
