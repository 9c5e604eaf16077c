"""Exact draws of psi of one split given its Gaussian law: a density with a concave logarithm

    g(x) = y x - n log(1 + e^x) - precision (x - mean)^2 / 2,

by rejection (Devroye 1986) from three tangents of g: one near the mode and one on each side of it. However
lopsided the split is, a draw does not depend on where the chain was. Which tangents are taken does, but
whatever they are the draw has the right law. `hats` draws many splits side by side.
"""

import math

from polystick.kernels import kernel, streams

MOST_STEPS = 60  # of a climb, and of a search for tangents
MOST_TRIES = 1000  # of a rejection: each succeeds with a probability above a half
CLOSE = 0.1  # to the mode, in standard deviations
ASIDE = 1.2  # from it, in standard deviations


@kernel(forceinline=True)
def _slope(y, n, mean, precision, x):
    """Return g'(x) and -g''(x)."""
    e = math.exp(-abs(x))
    one = 1.0 / (1.0 + e)
    p = one if x > 0.0 else e * one
    return y - n * p - precision * (x - mean), n * e * one * one + precision


@kernel(forceinline=True)
def _height(y, n, mean, precision, x):
    """Return g(x) and g'(x)."""
    e, gap = math.exp(-abs(x)), x - mean
    p = (1.0 if x > 0.0 else e) / (1.0 + e)
    bend = max(x, 0.0) + math.log1p(e)
    return y * x - n * bend - 0.5 * precision * gap * gap, y - n * p - precision * gap


@kernel
def draw(y, n, mean, precision, x, s0, s1):
    """Return a draw and the new state; x, from where to climb, if no tangents are found."""
    slope, bend = _slope(y, n, mean, precision, x)
    for _ in range(MOST_STEPS):
        step = slope / bend
        if abs(step) * math.sqrt(bend) < CLOSE:
            break
        longest = 3.0 + 0.5 * abs(x)
        x += min(max(step, -longest), longest)
        slope, bend = _slope(y, n, mean, precision, x)
    aside = ASIDE / math.sqrt(bend)
    left, right = x - aside, x + aside
    top, slope = _height(y, n, mean, precision, x)
    a, rise = _height(y, n, mean, precision, left)
    b, fall = _height(y, n, mean, precision, right)
    if not (rise > max(slope, 0.0) and fall < min(slope, 0.0)):
        return x, s0, s1
    # heights of the outer tangents at x, relative to g(x), and where they meet the middle one
    a += rise * aside - top
    b -= fall * aside + top
    from_left, from_right = -a / (rise - slope), b / (slope - fall)
    low, high = slope * from_left, slope * from_right
    most = max(low, high)  # the middle tangent is nearly flat: a box will do
    left_area, right_area = math.exp(low) / rise, -math.exp(high) / fall
    area = left_area + math.exp(most) * (from_right - from_left) + right_area
    for _ in range(MOST_TRIES):
        u, s0, s1 = streams.uniform(s0, s1)
        v, s0, s1 = streams.uniform(s0, s1)
        e, s0, s1 = streams.exponential(s0, s1)
        u *= area
        if u < left_area:
            gap = from_left + math.log1p(-v) / rise
            hat = a + rise * gap
        elif u < left_area + right_area:
            gap = from_right + math.log1p(-v) / fall
            hat = b + fall * gap
        else:
            gap = from_left + v * (from_right - from_left)
            hat = most
        found, _ = _height(y, n, mean, precision, x + gap)
        if found - top >= hat - e:
            return x + gap, s0, s1
    return x, s0, s1
