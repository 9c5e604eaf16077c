"""Sums over binary splits."""

import math

import numpy as np

from polystick.kernels import elementary, kernel

# factors 1 + e^-|x| are multiplied and the product's logarithm is taken, unless 1 swallows too much of them
SMALLEST, LARGEST = 1.0 + 1e-6, 1e300


@kernel
def log_likelihood(successes, trials, psi):
    """Return the sum over rows of log p(successes | trials, psi), without binomial coefficients.

    successes, trials, psi : (n, k)
    """
    terms = np.empty(psi.shape[1])
    total = 0.0
    for i in range(len(psi)):
        most = 0
        for j in range(psi.shape[1]):
            most = max(most, trials[i, j])
        if most > 1:
            total += _of_counts(successes, trials, psi, i, terms)
        else:
            total += _of_singles(successes, trials, psi, i)
    return total


@kernel(inline="always")
def _of_counts(successes, trials, psi, i, terms):
    """Return the log likelihood of row i; the loop over its splits is vectorised."""
    for j in range(psi.shape[1]):
        x, n = psi[i, j], float(trials[i, j])
        tail = n * elementary.log_1p(elementary.exp(-abs(x)))
        # x successes - trials log(1 + e^x), with the exponential of a negative number only
        term = min(x, 0.0) * n - (n - float(successes[i, j])) * x - tail
        terms[j] = term if n > 0.0 else 0.0
    row = 0.0
    for j in range(psi.shape[1]):
        row += terms[j]
    return row


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
