"""Exponential and logarithm without a branch or a call, so that loops over them are vectorised.

Divisions are what costs: the exponential is a Taylor sum, the logarithm fdlibm's (Sun Microsystems 1993).
Their errors are a few units in the last place at most.
"""

import math

import numpy as np

from polystick.kernels import kernel
from polystick.kernels.streams import wrapping

SHIFTER = 1.5 * 2.0**52  # adding it leaves a whole number in the lowest bits
SHIFTER_BITS = np.int64(0x4338000000000000)
LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12 = (1.0 / math.factorial(i) for i in range(2, 13))
MANTISSA, BIAS = np.uint64(52), np.int64(1023)
BELOW = np.uint64(
    0x0009_5F62_0000_0000
)  # added to bits, the exponent rises from about the root of 2 on


@wrapping
@kernel(forceinline=True)
def exp(x):
    """Return e^x, with x taken into [-700, 700]; any number if x is NaN."""
    x = min(max(x, -700.0), 700.0)
    shifted = np.float64(x * LOG2_E + SHIFTER)
    k = shifted - SHIFTER
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + r2 * (C2 + r * C3)
    middle = (C4 + r * C5) + r2 * (C6 + r * C7)
    high = (C8 + r * C9) + r2 * (C10 + r * C11) + r4 * C12
    found = np.float64(low + r4 * (middle + r4 * high))
    power = np.uint64(shifted.view(np.uint64) << MANTISSA)
    return np.uint64(found.view(np.uint64) + power).view(np.float64)


@wrapping
@kernel(forceinline=True)
def log(x):
    """Return log x for a positive x that is neither subnormal nor infinite."""
    bits = np.float64(x).view(np.uint64)
    k = np.int64(np.uint64(bits + BELOW) >> MANTISSA) - BIAS
    m = np.uint64(bits - np.uint64(np.uint64(k) << MANTISSA)).view(np.float64) - 1.0
    s = m / (2.0 + m)
    z = s * s
    w = z * z
    even = w * (
        3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01)
    )
    odd = z * (
        6.666666666666735130e-01
        + w
        * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01))
    )
    half = 0.5 * m * m
    power = np.int64(k + SHIFTER_BITS).view(np.float64) - SHIFTER
    return power * LN2_HIGH - ((half - (s * (half + (even + odd)) + power * LN2_LOW)) - m)


@kernel(forceinline=True)
def log_1p(u):
    """Return log(1 + u) for u > -1, as exact as `log` where u is small too."""
    x = 1.0 + u
    return log(x) + (u - (x - 1.0) if x < 2.0 else 0.0)  # what 1 swallowed of a small u
