"""One category of all rows at once, with its part of a factor law, behind a softmax:

psi_ik = weights_k . (1, factors_i) + sqrt(noise_k) e_ik,   x_i ~ Multinomial(N_i, softmax(psi_i)).

Rows drawn given the law, then the law given rows, follow each other slowly where counts tell little of each
row. Here e and the factors are held, and the law moves under the likelihood itself, rows with it (ancillary
to sufficient: Yu and Meng 2011): noise_k by a slice, then weights_k along a random direction by another
(Neal 2003: steps out are shared between the sides at random, so that a limit keeps the law).
"""

import math

import numpy as np

from polystick.kernels import kernel, softmax_rows, streams

MOST_STEPS = 60  # of a slice: it shrinks to where it was
MOST_OUT = 8  # first widths that a slice may have
LOWEST, HIGHEST = math.log(1e-3), math.log(1e3)  # of the noise's standard deviation
OF_SCALE, OF_DIRECTION = 0, 1  # kinds of slices
SCALE_WIDTH = 1.0  # first width of a slice of the scale, in log sd
WIDTH = 2.5  # of a slice, in standard deviations that the counts and the law would leave


@kernel
def _height(kind, t, first, second, case, base, along):
    """Return the log density of a step t of one category: its law and its likelihood against the rest.

    OF_SCALE : psi = base + sd along, log sd = first + t, sd half-Cauchy of scale `second`, cut off
    OF_DIRECTION : psi = base + t along, law exp(first t - second t^2 / 2)
    """
    own, totals, rest = case
    if kind == OF_SCALE:
        log_sd = first + t
        if not LOWEST < log_sd < HIGHEST:
            return -math.inf
        c = math.exp(log_sd)
        z = c / second
        value = log_sd - math.log1p(z * z)
    else:
        c = t
        value = t * (first - 0.5 * second * t)
    for i in range(base.shape[0]):
        gap = base[i] + c * along[i] - rest[i]
        value += own[i] * gap - totals[i] * (max(gap, 0.0) + math.log(1.0 + math.exp(-abs(gap))))
    return value


@kernel
def _draw_step(kind, first, second, width, case, base, along, s0, s1):
    """Draw t by a slice from t = 0; return it and the new state."""
    fall, s0, s1 = streams.exponential(s0, s1)
    floor = _height(kind, 0.0, first, second, case, base, along) - fall
    u, s0, s1 = streams.uniform(s0, s1)
    low, high = -u * width, (1.0 - u) * width
    u, s0, s1 = streams.uniform(s0, s1)
    out = int(MOST_OUT * u)
    for _ in range(out):
        if not _height(kind, low, first, second, case, base, along) > floor:
            break
        low -= width
    for _ in range(MOST_OUT - 1 - out):
        if not _height(kind, high, first, second, case, base, along) > floor:
            break
        high += width
    for _ in range(MOST_STEPS):
        u, s0, s1 = streams.uniform(s0, s1)
        t = low + u * (high - low)
        if _height(kind, t, first, second, case, base, along) > floor:
            return t, s0, s1
        if t < 0.0:
            low = t
        else:
            high = t
    return 0.0, s0, s1


@kernel(inline="always")
def _width(told, along, least):
    """Return the first width of a slice along a direction: it may not depend on where the chain is on it."""
    information = least
    for i in range(told.shape[0]):
        information += told[i] * along[i] * along[i]
    return WIDTH / math.sqrt(information)


@kernel(inline="always")
def _see_category(k, counts, totals, psi, sums, case, told):
    """Write counts of category k, how much they tell, and the logarithm of what all others sum to."""
    exponential, reference, total, greatest = sums
    own, _, rest = case
    for i in range(psi.shape[0]):
        x, n = float(counts[i, k]), float(totals[i])
        own[i] = x
        told[i] = x * (n - x) / max(n, 1.0)
        left = total[i] - exponential[i, k]
        if left < softmax_rows.SMALL_REST * greatest[i]:
            rest[i] = softmax_rows.log_rest(psi[i], k)
        else:
            rest[i] = reference[i] + math.log(left)


@kernel(inline="always")
def _put_back_in_place(k, psi, sums):
    """Renew the sums of exponentials now that category k has moved."""
    exponential, reference, total, greatest = sums
    for i in range(psi.shape[0]):
        left = total[i] - exponential[i, k]
        is_small = left < softmax_rows.SMALL_REST * greatest[i]
        if is_small or psi[i, k] - reference[i] > softmax_rows.FAR:
            reference[i], total[i] = softmax_rows.exponentials(psi[i], exponential[i])
            greatest[i] = total[i]
        else:
            exponential[i, k] = math.exp(psi[i, k] - reference[i])
            total[i] = left + exponential[i, k]
            greatest[i] = max(greatest[i], total[i])


@kernel
def move_in_place(key, chosen, counts, totals, factors, scale, prior, weights, noise, psi):
    """Move some categories of all rows, one after another.

    key : uint64
    chosen : (m,) categories
    counts, totals : (n, K), (n,)
    factors : (n, 1 + H), the first all 1
    scale : of the half-Cauchy law of the noise's standard deviations
    prior : (centre, precision) of the weights, both (K, 1 + H)
    weights, noise, psi : (K, 1 + H), (K,), (n, K) in and out
    """
    centre, precision = prior
    n, h = factors.shape
    base, along, told, direction = np.empty(n), np.empty(n), np.empty(n), np.empty(h)
    case = np.empty(n), np.empty(n), np.empty(n)
    sums = np.empty(psi.shape), np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        case[1][i] = float(totals[i])
        sums[1][i], sums[2][i] = softmax_rows.exponentials(psi[i], sums[0][i])
        sums[3][i] = sums[2][i]
    for number in range(chosen.shape[0]):
        k = chosen[number]
        s0, s1 = streams.open_stream(key, np.uint64(k))
        _see_category(k, counts, totals, psi, sums, case, told)
        log_sd = 0.5 * math.log(noise[k])
        for i in range(n):
            base[i] = 0.0
            for p in range(h):
                base[i] += weights[k, p] * factors[i, p]
            along[i] = (psi[i, k] - base[i]) / math.exp(log_sd)
        t, s0, s1 = _draw_step(OF_SCALE, log_sd, scale, SCALE_WIDTH, case, base, along, s0, s1)
        log_sd += t
        noise[k] = math.exp(2.0 * log_sd)
        linear, bend = 0.0, 0.0
        for p in range(h):  # as wide as the law lets each weight be
            direction[p], s0, s1 = streams.normal(s0, s1)
            if p > 0:
                direction[p] /= math.sqrt(precision[k, p])
            linear -= precision[k, p] * (weights[k, p] - centre[k, p]) * direction[p]
            bend += precision[k, p] * direction[p] * direction[p]
        for i in range(n):
            base[i] += math.exp(log_sd) * along[i]
            along[i] = 0.0
            for p in range(h):
                along[i] += direction[p] * factors[i, p]
        width = _width(told, along, bend)
        t, s0, s1 = _draw_step(OF_DIRECTION, linear, bend, width, case, base, along, s0, s1)
        for p in range(h):
            weights[k, p] += t * direction[p]
        for i in range(n):
            psi[i, k] = base[i] + t * along[i]
        _put_back_in_place(k, psi, sums)
