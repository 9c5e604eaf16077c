"""The scale of one stick of all rows: rows, their part of the covariance and its scale move together.

psi_ij - mean_j, row and column j of cov, and the square root of the scale that cov_jj is drawn from, are all
multiplied by c: under a law that learns its scales the density of rows and cov stays as it is. What is
left of log c is its likelihood, the law of the scale and that of the mean,

    exp( -rate c^2 - (bend / c^2 + 2 linear / c) / 2 ).

Where counts vary no more than chance would have them, rows, cov and scale would follow each other to zero in
small steps (a funnel); here they go there at once, by a slice.
"""

import math

import numpy as np

from polystick.kernels import kernel, streams

MOST_STEPS = 60
MOST_OUT = 8
WIDTH = 1.0  # of a slice, in log c


@kernel
def _height(t, law, successes, trials, stick, level, gap):
    """Return the log density of t = log c."""
    rate, bend, linear = law
    c = math.exp(t)
    value = -rate * c * c - 0.5 * bend / (c * c) - linear / c
    for i in range(gap.shape[0]):
        x = level + c * gap[i]
        value += successes[i, stick] * x
        value -= trials[i, stick] * (max(x, 0.0) + math.log(1.0 + math.exp(-abs(x))))
    return value


@kernel(inline="always")
def _draw(key, law, successes, trials, stick, level, gap):
    """Return t by a slice from 0, stepping out on shares of the sides that are drawn first (Neal 2003)."""
    s0, s1 = streams.open_stream(key, np.uint64(stick))
    fall, s0, s1 = streams.exponential(s0, s1)
    floor = _height(0.0, law, successes, trials, stick, level, gap) - fall
    u, s0, s1 = streams.uniform(s0, s1)
    low, high = -u * WIDTH, (1.0 - u) * WIDTH
    u, s0, s1 = streams.uniform(s0, s1)
    out = int(MOST_OUT * u)
    for _ in range(out):
        if not _height(low, law, successes, trials, stick, level, gap) > floor:
            break
        low -= WIDTH
    for _ in range(MOST_OUT - 1 - out):
        if not _height(high, law, successes, trials, stick, level, gap) > floor:
            break
        high += WIDTH
    for _ in range(MOST_STEPS):
        u, s0, s1 = streams.uniform(s0, s1)
        t = low + u * (high - low)
        if _height(t, law, successes, trials, stick, level, gap) > floor:
            return t
        if t < 0.0:
            low = t
        else:
            high = t
    return 0.0


@kernel
def move_in_place(key, counts, away, strength, scale, psi, mean, cov, precision, spread):
    """Move the scale of each stick in turn.

    key : uint64
    counts : successes and trials (n, k)
    away : (k,) the mean less the centre of its law
    strength, scale : of the mean, and of the standard deviations
    psi, mean : (n, k), (k,); psi in and out
    cov, precision, spread : (k, k), (k, k), (k,) in and out; 2 nu / spread is the scale of cov
    """
    successes, trials = counts
    n, k = psi.shape
    gap = np.empty(n)
    for j in range(k):
        for i in range(n):
            gap[i] = psi[i, j] - mean[j]
        linear = 0.0
        for p in range(k):
            if p != j:
                linear += precision[j, p] * away[p]
        law = (
            1.0 / (scale * scale * spread[j]),
            strength * precision[j, j] * away[j] * away[j],
            strength * linear * away[j],
        )
        t = _draw(key, law, successes, trials, j, mean[j], gap)
        c = math.exp(t)
        for i in range(n):
            psi[i, j] = mean[j] + c * gap[i]
        spread[j] /= c * c
        for p in range(k):
            cov[j, p] *= c
            precision[j, p] /= c
        for p in range(k):
            cov[p, j] *= c
            precision[p, j] /= c
