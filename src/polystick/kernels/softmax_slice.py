"""Gaussian processes behind a softmax, one category after another, by elliptical slice sampling.

Given the other categories, the values of one are drawn anew on the ellipse through them and a fresh draw
from their prior (Murray, Adams and MacKay 2010). What a proposal costs does not grow with the number of
categories: the sum of the others' exponentials is carried along. It is held relative to an anchor for each
input, and where one category has nearly all of it, the rest is added up anew: a difference would cancel.
"""

import math

import numpy as np

from polystick.kernels import kernel
from polystick.kernels.streams import exponential, open_stream, uniform

LEAST_REST = 1e-2  # relative to the anchor: a smaller difference has lost too many digits
HIGHEST = 1.0  # above the anchor: a category beyond it becomes the anchor
LARGEST_EXPONENT = 700.0  # no overflow yet, and more than any sum that is carried along


@kernel
def _sum_from_top(level, f, left_out, m):
    """Return the largest psi[j, m] over j != left_out, and the sum of exp(psi[j, m]) relative to it."""
    top = -math.inf
    for j in range(f.shape[0]):
        if j != left_out:
            top = max(top, level[j] + f[j, m])
    total = 0.0
    for j in range(f.shape[0]):
        if j != left_out:
            total += math.exp(level[j] + f[j, m] - top)
    return top, total


@kernel(inline="always")
def _take_out_in_place(level, f, k, anchor, total):
    """Leave in total the sum of the categories other than k, relative to the anchor."""
    for m in range(f.shape[1]):
        rest = total[m] - math.exp(level[k] + f[k, m] - anchor[m])
        if rest < LEAST_REST:
            anchor[m], rest = _sum_from_top(level, f, k, m)
        total[m] = rest


@kernel(inline="always")
def _put_in_in_place(level, f, k, anchor, rest):
    """Add category k to the sum of the others; undoes `_take_out_in_place`."""
    for m in range(f.shape[1]):
        above = level[k] + f[k, m] - anchor[m]
        if above > HIGHEST:
            anchor[m] += above
            rest[m] = 1.0 + rest[m] * math.exp(-above)
        else:
            rest[m] += math.exp(above)


@kernel
def _log_likelihood(counts, totals, level, old, new, cosine, sine, anchor, rest):
    """Return what the likelihood makes of one category's level + cosine * old + sine * new."""
    value = 0.0
    for m in range(totals.shape[0]):
        if totals[m] > 0.0:
            above = level + (cosine * old[m] + sine * new[m]) - anchor[m]
            value += counts[m] * above
            if above < LARGEST_EXPONENT:
                value -= totals[m] * math.log(rest[m] + math.exp(above))
            else:
                value -= totals[m] * above
    return value


@kernel
def _find_angle(counts, totals, level, old, new, anchor, rest, s0, s1):
    """Draw the cosine and sine of a point on the ellipse; return how many were looked at, too.

    A point that is not a number is taken as it is, for the caller to find.
    """
    now = _log_likelihood(counts, totals, level, old, new, 1.0, 0.0, anchor, rest)
    fall, s0, s1 = exponential(s0, s1)
    share, s0, s1 = uniform(s0, s1)
    angle = 2.0 * math.pi * share
    low, high = angle - 2.0 * math.pi, angle
    n_looks = 1
    while True:
        cosine, sine = math.cos(angle), math.sin(angle)
        value = _log_likelihood(counts, totals, level, old, new, cosine, sine, anchor, rest)
        if not value < now - fall:
            return cosine, sine, n_looks
        if angle < 0.0:
            low = angle
        else:
            high = angle
        share, s0, s1 = uniform(s0, s1)
        angle = low + share * (high - low)
        n_looks += 1


@kernel
def draw_categories_in_place(key, rows, counts, totals, level, f, fresh, turns):
    """Draw each f[k] given the others, k = 0 ... K - 1, where pi = softmax over k of level + f.

    Returns the number of points looked at and the log likelihood without multinomial coefficients.

    key    : uint64
    rows   : (K,) uint64 ids of the categories
    counts : (K, M) float64
    totals : (M,) float64 sums of the counts over k
    level  : (K,)
    f      : (K, M)
    fresh  : (K, M) independent draws from the prior of f
    turns  : (K, 2) out: f[k] is now turns[k, 0] f[k] + turns[k, 1] fresh[k]
    """
    n_categories, n_inputs = f.shape
    anchor, total = np.empty(n_inputs), np.empty(n_inputs)
    for m in range(n_inputs):
        anchor[m], total[m] = _sum_from_top(level, f, -1, m)
    n_looks, value = 0, 0.0
    for k in range(n_categories):
        s0, s1 = open_stream(key, rows[k])
        _take_out_in_place(level, f, k, anchor, total)
        cosine, sine, looks = _find_angle(
            counts[k], totals, level[k], f[k], fresh[k], anchor, total, s0, s1
        )
        turns[k, 0], turns[k, 1] = cosine, sine
        n_looks += looks
        for m in range(n_inputs):
            f[k, m] = cosine * f[k, m] + sine * fresh[k, m]
            value += counts[k, m] * (level[k] + f[k, m])
        _put_in_in_place(level, f, k, anchor, total)
    for m in range(n_inputs):
        value -= totals[m] * (anchor[m] + math.log(total[m]))
    return n_looks, value
