"""Sums over binary splits."""

import math

import numpy as np

from polystick.kernels import elementary, kernel

# factors 1 + e^-|x| are multiplied and the product's logarithm is taken, unless 1 swallows too much of them
SMALLEST, LARGEST = 1.0 + 1e-6, 1e300
TOGETHER = 512  # splits, whose loop is vectorised


@kernel
def log_likelihood(successes, trials, psi):
    """Return the sum over rows of log p(successes | trials, psi), without binomial coefficients.

    successes, trials, psi : (n, k)
    """
    n, k = psi.shape
    span = max(TOGETHER // max(k, 1), 1)
    terms = np.empty(span * k)
    total = 0.0
    for start in range(0, n, span):
        stop = min(start + span, n)
        _fill_terms(
            successes[start:stop].ravel(),
            trials[start:stop].ravel(),
            psi[start:stop].ravel(),
            terms,
        )
        for i in range(start, stop):
            most = 0
            for j in range(k):
                most = max(most, trials[i, j])
            if most > 1:
                total += _sum(terms[(i - start) * k : (i + 1 - start) * k])
            else:
                total += _of_singles(successes, trials, psi, i)
    return total


@kernel(inline="always")
def _fill_terms(successes, trials, psi, terms):
    """Write the log likelihood of each split."""
    for p in range(psi.shape[0]):
        x, n = psi[p], float(trials[p])
        tail = n * elementary.log_1p(elementary.exp(-abs(x)))
        # x successes - trials log(1 + e^x), with the exponential of a negative number only
        term = min(x, 0.0) * n - (n - float(successes[p])) * x - tail
        terms[p] = term if n > 0.0 else 0.0


@kernel(inline="always")
def _sum(terms):
    """Add terms up in four sums that need not wait for each other."""
    a = b = c = d = 0.0
    whole = terms.shape[0] // 4 * 4
    for i in range(0, whole, 4):
        a += terms[i]
        b += terms[i + 1]
        c += terms[i + 2]
        d += terms[i + 3]
    for i in range(whole, terms.shape[0]):
        a += terms[i]
    return (a + b) + (c + d)


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
