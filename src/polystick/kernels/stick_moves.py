"""Metropolis moves of one stick of all rows together with its part of a law that learns its scales.

A *stretch* multiplies psi_ij - mean_j, row and column j of cov, and the square root of the scale that cov_jj
is drawn from, by s: the density of rows and cov stays as it is, as in `stick_scale`. A *shift* adds c to
psi_ij and mean_j. What is left is the likelihood of the counts, whose gain blocks of rows add up, and the
laws of the scale and of the mean. `stick_scale` draws the same stretch by a slice, for which all rows are
at hand.

successes, trials : (n, k)
psi, mean         : (n, k), (n, k)
heights           : (k,) logs of uniforms
away              : (k,) the mean less the centre of its law
strength          : rows that the mean is worth
"""

import math

from polystick.kernels import kernel


@kernel(forceinline=True)
def _softplus(x):
    return max(x, 0.0) + math.log(1.0 + math.exp(-abs(x)))


@kernel
def add_gains(successes, trials, psi, mean, stretch, shift, gains):
    """Add to gains (k,) what the log likelihood gains if psi is stretched about the mean, then shifted."""
    for i in range(psi.shape[0]):
        for j in range(psi.shape[1]):
            if trials[i, j] > 0:
                x = psi[i, j]
                y = mean[i, j] + shift[j] + stretch[j] * (x - mean[i, j])
                gains[j] += successes[i, j] * (y - x) - trials[i, j] * (_softplus(y) - _softplus(x))


@kernel
def stretch_in_place(heights, gains, away, strength, rate, stretch, cov, precision, spread):
    """Decide stick by stick; stretch becomes 1 where it is refused.

    rate    : of the law of 1 / spread
    stretch : (k,) in: what is proposed, out: what is done to psi
    cov, precision, spread : (k, k), (k, k), (k,) in and out
    """
    k = len(away)
    for j in range(k):
        s, linear = stretch[j], 0.0
        for p in range(k):
            if p != j:
                linear += precision[j, p] * away[p]
        bend = precision[j, j] * away[j] * (1.0 / (s * s) - 1.0) + 2.0 * linear * (1.0 / s - 1.0)
        change = gains[j] - rate * (s * s - 1.0) / spread[j] - 0.5 * strength * away[j] * bend
        if not heights[j] < change:
            stretch[j] = 1.0
            continue
        spread[j] /= s * s
        for p in range(k):
            cov[j, p] *= s
            precision[j, p] /= s
        for p in range(k):
            cov[p, j] *= s
            precision[p, j] /= s


@kernel
def shift_in_place(heights, gains, precision, strength, away, shift):
    """Decide stick by stick; shift becomes 0 where it is refused.

    away, shift : (k,) in and out
    """
    k = len(away)
    for j in range(k):
        c, linear = shift[j], 0.0
        for p in range(k):
            linear += precision[j, p] * away[p]
        change = gains[j] - 0.5 * strength * c * (2.0 * linear + c * precision[j, j])
        if heights[j] < change:
            away[j] += c
        else:
            shift[j] = 0.0
