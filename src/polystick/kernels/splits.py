"""Sums over binary splits."""

import math

from polystick.kernels import kernel

# factors 1 + e^-|x| are multiplied and the product's logarithm is taken, unless 1 swallows too much of them
SMALLEST, LARGEST = 1.0 + 1e-6, 1e300


@kernel
def log_likelihood(successes, trials, psi):
    """Return the sum over rows of log p(successes | trials, psi), without binomial coefficients.

    successes, trials, psi : (n, k)
    """
    total = 0.0
    for i in range(psi.shape[0]):
        row, product = 0.0, 1.0
        for j in range(psi.shape[1]):
            if trials[i, j] != 0:
                x = psi[i, j]
                # x successes - trials log(1 + e^x), with the exponential of a negative number only
                row += min(x, 0.0) * trials[i, j] - (trials[i, j] - successes[i, j]) * x
                factor = 1.0 + math.exp(-abs(x))
                if trials[i, j] == 1 and factor > SMALLEST:
                    product *= factor
                    if product > LARGEST:
                        row -= math.log(product)
                        product = 1.0
                else:
                    row -= trials[i, j] * math.log1p(math.exp(-abs(x)))
        total += row - math.log(product)
    return total
