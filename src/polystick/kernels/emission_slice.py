"""The rows of a linear emission behind a softmax, one category after another, by elliptical slice sampling.

psi[m, k] = level[k] + coefficients[k] . features[:, m], and each row of coefficients has a normal prior of
mean 0. Its values at all steps lie on an ellipse as it does, so the walk is that of `softmax_slice`, with
the same sum of the others' exponentials carried along; but no table of all categories by all steps is held.
"""

import math

import numpy as np

from polystick.kernels import kernel
from polystick.kernels.softmax_slice import HIGHEST, LEAST_REST, _find_angle
from polystick.kernels.streams import open_stream


@kernel
def _evaluate(row, features, out):
    """Write row . features[:, m] into out (M,)."""
    out[:] = 0.0
    for p in range(row.shape[0]):
        c = row[p]
        for m in range(out.shape[0]):
            out[m] += c * features[p, m]


@kernel
def _sum_from_top(level, coefficients, features, left_out, m, psi):
    """Return the largest psi[m, k] over k != left_out and the sum of exp(psi[m, k]) relative to it."""
    top, total = -math.inf, 0.0
    for k in range(level.shape[0]):
        psi[k] = level[k]
        for p in range(features.shape[0]):
            psi[k] += coefficients[k, p] * features[p, m]
        if k != left_out:
            top = max(top, psi[k])
    for k in range(level.shape[0]):
        if k != left_out:
            total += math.exp(psi[k] - top)
    return top, total


@kernel(inline="always")
def _take_out_in_place(level, coefficients, features, k, old, anchor, total, psi):
    """Leave in total the sum of the categories other than k, relative to the anchor."""
    for m in range(old.shape[0]):
        rest = total[m] - math.exp(level[k] + old[m] - anchor[m])
        if rest < LEAST_REST:
            anchor[m], rest = _sum_from_top(level, coefficients, features, k, m, psi)
        total[m] = rest


@kernel(inline="always")
def _put_in_in_place(level, now, anchor, rest):
    """Add a category to the sum of the others."""
    for m in range(now.shape[0]):
        above = level + now[m] - anchor[m]
        if above > HIGHEST:
            anchor[m] += above
            rest[m] = 1.0 + rest[m] * math.exp(-above)
        else:
            rest[m] += math.exp(above)


@kernel
def draw_rows_in_place(key, rows, cells, totals, features, level, coefficients, fresh):
    """Draw each row of coefficients given the others; return the number of points looked at.

    key          : uint64
    rows         : (K,) uint64 ids of the categories
    cells        : (offsets (K + 1,) int64, steps int64, counts float64): where each category is seen
    totals       : (M,) float64 counts of each step
    features     : (P, M)
    level        : (K,)
    coefficients : (K, P) in and out
    fresh        : (K, P) independent draws from the prior of the coefficients
    """
    offsets, steps, seen = cells
    n_categories, n_steps = level.shape[0], totals.shape[0]
    anchor, total, psi = np.empty(n_steps), np.empty(n_steps), np.empty(n_categories)
    old, new, counts = np.empty(n_steps), np.empty(n_steps), np.zeros(n_steps)
    for m in range(n_steps):
        anchor[m], total[m] = _sum_from_top(level, coefficients, features, -1, m, psi)
    n_looks = 0
    for k in range(n_categories):
        s0, s1 = open_stream(key, rows[k])
        _evaluate(coefficients[k], features, old)
        _evaluate(fresh[k], features, new)
        for c in range(offsets[k], offsets[k + 1]):
            counts[steps[c]] += seen[c]
        _take_out_in_place(level, coefficients, features, k, old, anchor, total, psi)
        cosine, sine, looks = _find_angle(counts, totals, level[k], old, new, anchor, total, s0, s1)
        n_looks += looks
        for p in range(features.shape[0]):
            coefficients[k, p] = cosine * coefficients[k, p] + sine * fresh[k, p]
        for m in range(n_steps):
            old[m] = cosine * old[m] + sine * new[m]
        _put_in_in_place(level[k], old, anchor, total)
        for c in range(offsets[k], offsets[k + 1]):
            counts[steps[c]] = 0.0
    return n_looks
