"""Factors that lean on each other: moves that change what factors are and not what they say.

Rows are d_i = weights z_i + noise, z_i = (1, factors) and factors ~ N(0, I). For any a and c these leave
weights z as they are:

    lean:   z_h += a z_g,  weights_g -= a weights_h         h a factor, g any other entry of z
    scale:  z_h *= c,      weights_h /= c

Given rows, factors and weights follow each other in steps as small as the noise; along these directions they
move as far as the rows let them (parameter expansion: Liu and Wu 1999). The weights' law is normal, so `a` is
drawn exactly; log c is drawn by a slice.

gram    : (1 + H, 1 + H) sums over rows of z z'
cross   : (1 + H, K) sums over rows of z d'
weights, centre, known : (K, 1 + H) the weights, and mean and precision of their law
"""

import math

import numpy as np

from polystick.kernels import kernel, streams

MOST_STEPS = 60
WIDTH = 0.5  # of log c


@kernel(inline="always")
def _lean(g, h, e, gram, cross, weights, centre, known):
    """Let factor h lean on entry g."""
    k, size = weights.shape
    precision, linear = gram[g, g], -gram[g, h]
    for j in range(k):
        precision += known[j, g] * weights[j, h] * weights[j, h]
        linear += known[j, g] * weights[j, h] * (weights[j, g] - centre[j, g])
    a = linear / precision + e / math.sqrt(precision)
    for j in range(k):
        weights[j, g] -= a * weights[j, h]
        cross[h, j] += a * cross[g, j]
    for p in range(size):
        gram[h, p] += a * gram[g, p]
    for p in range(size):
        gram[p, h] += a * gram[p, g]


@kernel(forceinline=True)
def _height(t, power, square, loaded):
    """Return the log density of t = log c."""
    return power * t - 0.5 * (math.exp(2.0 * t) * square + math.exp(-2.0 * t) * loaded)


@kernel(inline="always")
def _draw_scale(power, square, loaded, s0, s1):
    """Return log c and the new state: one slice from 0."""
    e, s0, s1 = streams.exponential(s0, s1)
    floor = _height(0.0, power, square, loaded) - e
    u, s0, s1 = streams.uniform(s0, s1)
    low, high = -u * WIDTH, (1.0 - u) * WIDTH
    for _ in range(MOST_STEPS):
        if not _height(low, power, square, loaded) > floor:
            break
        low -= WIDTH
    for _ in range(MOST_STEPS):
        if not _height(high, power, square, loaded) > floor:
            break
        high += WIDTH
    for _ in range(MOST_STEPS):
        u, s0, s1 = streams.uniform(s0, s1)
        t = low + u * (high - low)
        if _height(t, power, square, loaded) > floor:
            return t, s0, s1
        if t < 0.0:
            low = t
        else:
            high = t
    return 0.0, s0, s1


@kernel
def move_in_place(key, gram, cross, weights, centre, known):
    """Let each factor lean on each other entry, and scale it.

    key : uint64
    """
    k, size = weights.shape
    for h in range(1, size):
        s0, s1 = streams.open_stream(key, np.uint64(h))
        for g in range(size):
            if g != h:
                e, s0, s1 = streams.normal(s0, s1)
                _lean(g, h, e, gram, cross, weights, centre, known)
        loaded = 0.0
        for j in range(k):
            loaded += known[j, h] * weights[j, h] * weights[j, h]
        t, s0, s1 = _draw_scale(gram[0, 0] - k, gram[h, h], loaded, s0, s1)
        c = math.exp(t)
        for j in range(k):
            weights[j, h] /= c
            cross[h, j] *= c
        for p in range(size):
            gram[h, p] *= c
        for p in range(size):
            gram[p, h] *= c
