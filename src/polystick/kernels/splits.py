"""Sums over binary splits."""

import math

from polystick.kernels import kernel


@kernel
def log_likelihood(successes, trials, psi):
    """Return the sum over rows of log p(successes | trials, psi), without binomial coefficients.

    successes, trials, psi : (n, k)
    """
    total = 0.0
    for i in range(psi.shape[0]):
        row = 0.0
        for j in range(psi.shape[1]):
            if trials[i, j] != 0:
                x = psi[i, j]
                # x successes - trials log(1 + e^x), with the exponential of a negative number only
                row += min(x, 0.0) * trials[i, j] - (trials[i, j] - successes[i, j]) * x
                row -= trials[i, j] * math.log1p(math.exp(-abs(x)))
        total += row
    return total
