"""Sums over binary splits."""

import math

import numpy as np

from polystick.kernels import elementary, kernel

# factors 1 + e^-|x| are multiplied and the product's logarithm is taken, unless 1 swallows too much of them
SMALLEST, LARGEST = 1.0 + 1e-6, 1e300
TOGETHER = 256  # splits of neighbouring rows whose terms are made in one loop: rows may be short


@kernel
def log_likelihood(successes, trials, psi):
    """Return the sum over rows of log p(successes | trials, psi), without binomial coefficients.

    successes, trials, psi : (n, k)
    """
    n, k = psi.shape
    most, terms, total = np.empty(n, np.int64), np.empty(max(TOGETHER, k)), 0.0
    for i in range(n):
        most[i] = 0
        for j in range(k):
            most[i] = max(most[i], trials[i, j])
    yes, all_trials, x = successes.ravel(), trials.ravel(), psi.ravel()
    step = max(1, TOGETHER // max(k, 1))
    for first in range(0, n, step):
        last = min(first + step, n)
        any_counts = False
        for i in range(first, last):
            any_counts |= most[i] > 1
        if any_counts:
            _of_counts(yes[first * k :], all_trials[first * k :], x[first * k : last * k], terms)
        for i in range(first, last):
            if most[i] > 1:
                row = 0.0
                for j in range(k):
                    row += terms[(i - first) * k + j]
                total += row
            else:
                total += _of_singles(successes, trials, psi, i)
    return total


@kernel(inline="always")
def _of_counts(successes, trials, psi, terms):
    """Write the log likelihood of each split into terms; the loop is vectorised."""
    for j in range(psi.shape[0]):
        x, n = psi[j], float(trials[j])
        tail = n * elementary.log_1p(elementary.exp(-abs(x)))
        # x successes - trials log(1 + e^x), with the exponential of a negative number only
        term = min(x, 0.0) * n - (n - float(successes[j])) * x - tail
        terms[j] = term if n > 0.0 else 0.0


@kernel(inline="always")
def _of_singles(successes, trials, psi, i):
    """Return the log likelihood of row i, whose splits see one trial at most: few logarithms."""
    row, product = 0.0, 1.0
    for j in range(psi.shape[1]):
        if trials[i, j] != 0:
            x = psi[i, j]
            row += min(x, 0.0) - (1 - successes[i, j]) * x
            factor = 1.0 + math.exp(-abs(x))
            if factor > SMALLEST:
                product *= factor
                if product > LARGEST:
                    row -= math.log(product)
                    product = 1.0
            else:
                row -= math.log1p(math.exp(-abs(x)))
    return row - math.log(product)
