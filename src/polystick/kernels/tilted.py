"""Moments of a Gaussian times one binomial likelihood, N(x | m, v) exp(y x - n log(1 + e^x)).

The density is log-concave, and may be very skewed: nothing of a million under a wide Gaussian has a tail as
wide as that on one side of its mode and a cliff on the other. So each side has a scale of its own, the
distance over which the logarithm falls by FALL, with Gauss-Legendre points between.
"""

import math

import numpy as np

from polystick.kernels import kernel

FALL = 22.0  # of the log density from the mode to where it is given up
ENOUGH = 1.3  # times FALL is near enough: a scale needs no digits
MOST_STEPS = 100  # of each search; 5 to 30 are needed
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(28)
POINTS, WEIGHTS = 0.5 * (POINTS + 1.0), 0.5 * WEIGHTS  # of the unit interval
N_POINTS = len(POINTS)


@kernel
def moment_cells(successes, trials, mean, variance, new_mean, new_variance):
    """Write the moments of each cell: those of the Gaussian if there are no trials.

    successes, trials : (n,) float64
    mean, variance : (n,) of the Gaussians; variance > 0
    new_mean, new_variance : (n,) out; NaN from what is not finite
    """
    for i in range(trials.shape[0]):
        y, n, m, v = successes[i], trials[i], mean[i], variance[i]
        new_mean[i], new_variance[i] = m, v
        if not n > 0.0:
            continue
        mode = _find_mode(y, n, m, v)
        total, first, second = 0.0, 0.0, 0.0
        for side in range(2):
            reach = _find_reach(y, n, m, v, mode, 2.0 * side - 1.0)
            for j in range(N_POINTS):
                t = reach * POINTS[j]
                w = abs(reach) * WEIGHTS[j] * math.exp(_rise(y, n, m, v, mode, t))
                total += w
                first += w * t
                second += w * t * t
        first /= total
        new_mean[i], new_variance[i] = mode + first, second / total - first * first


@kernel(inline="always")
def _find_mode(y, n, m, v):
    """Find where y - n sigma(x) = (x - m) / v: Newton's steps within a bracket that shrinks."""
    low, high = m - (n - y) * v, m + y * v
    x = min(max(math.log((y + 0.5) / (n - y + 0.5)), low), high)
    for _ in range(MOST_STEPS):
        p = _sigma(x)
        slope = y - n * p - (x - m) / v
        if slope > 0.0:
            low = x
        else:
            high = x
        curvature = n * p * (1.0 - p) + 1.0 / v
        step = slope / curvature
        if not abs(step) * math.sqrt(curvature) > 1e-3:  # the mode is a place to stand, no more
            break
        x += step
        if x <= low or x >= high:
            x = 0.5 * (low + high)
    return x


@kernel(inline="always")
def _find_reach(y, n, m, v, mode, sign):
    """Find the signed distance over which the log density falls by FALL, from outside: it is concave."""
    t = (
        sign * math.sqrt(2.0 * FALL * v) * 1.1
    )  # the Gaussian alone falls so far, seen from its mode
    for _ in range(MOST_STEPS):
        fall = _rise(y, n, m, v, mode, t) + FALL
        if not fall < (1.0 - ENOUGH) * FALL:
            break
        t -= fall / (y - n * _sigma(mode + t) - (mode + t - m) / v)
    return t


@kernel(forceinline=True)
def _rise(y, n, m, v, mode, t):
    """Return the log density at mode + t less that at the mode."""
    more = _softplus(mode + t) - _softplus(mode)
    return y * t - n * more - t * (0.5 * t + mode - m) / v


@kernel(forceinline=True)
def _sigma(x):
    return 1.0 / (1.0 + math.exp(-x)) if x > 0.0 else 1.0 - 1.0 / (1.0 + math.exp(x))


@kernel(forceinline=True)
def _softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))
