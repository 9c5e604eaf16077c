"""One category of all rows at once, with its part of a factor law, behind a softmax:

psi_ik = weights_k . (1, factors_i) + sqrt(noise_k) e_ik,   x_i ~ Multinomial(N_i, softmax(psi_i)).

Rows drawn given the law, then the law given rows, follow each other slowly where counts tell little of each
row. Here e and the factors are held, and the law moves under the likelihood itself, rows with it (ancillary
to sufficient: Yu and Meng 2011): noise_k by a slice, then weights_k along a random direction by another.
"""

import math

import numpy as np

from polystick.kernels import kernel, streams

MOST_STEPS = 60  # of a slice: it shrinks to where it was
MOST_OUT = 6  # steps out on each side
LOWEST, HIGHEST = math.log(1e-3), math.log(1e3)  # of the noise's standard deviation
SCALE_STEP, DIRECTION_STEP = (
    1.0,
    0.5,
)  # first widths of slices: of log sd, and of the weights' lengths


@kernel
def _likelihood(counts, totals, rest, base, along, c, k):
    """Return the log likelihood of category k against the rest, at psi = base + c along."""
    value = 0.0
    for i in range(base.shape[0]):
        if totals[i] != 0:
            x = base[i] + c * along[i]
            gap = x - rest[i]
            value += counts[i, k] * x
            value -= totals[i] * (max(gap, 0.0) + rest[i] + math.log1p(math.exp(-abs(gap))))
    return value


@kernel(forceinline=True)
def _log_scale_prior(t, log_sd, scale):
    """Return the log density of log sd + t for a half-Cauchy sd that is cut off."""
    log_sd += t
    if not LOWEST < log_sd < HIGHEST:
        return -math.inf
    z = math.exp(log_sd) / scale
    return log_sd - math.log1p(z * z)


@kernel(forceinline=True)
def _log_direction_prior(t, linear, bend):
    return t * (linear - 0.5 * bend * t)


@kernel
def _slice_scale(counts, totals, rest, base, e, k, log_sd, scale, s0, s1):
    """Return a new log sd less the old one; psi = base + sd e."""
    floor, s0, s1 = streams.exponential(s0, s1)
    sd = math.exp(log_sd)
    floor = (
        _likelihood(counts, totals, rest, base, e, sd, k)
        + _log_scale_prior(0.0, log_sd, scale)
        - floor
    )
    u, s0, s1 = streams.uniform(s0, s1)
    low, high = -u * SCALE_STEP, (1.0 - u) * SCALE_STEP
    for side in range(2):
        for _ in range(MOST_OUT):
            t = low if side == 0 else high
            found = _likelihood(counts, totals, rest, base, e, sd * math.exp(t), k)
            if not found + _log_scale_prior(t, log_sd, scale) > floor:
                break
            if side == 0:
                low -= SCALE_STEP
            else:
                high += SCALE_STEP
    for _ in range(MOST_STEPS):
        u, s0, s1 = streams.uniform(s0, s1)
        t = low + u * (high - low)
        found = _likelihood(counts, totals, rest, base, e, sd * math.exp(t), k)
        if found + _log_scale_prior(t, log_sd, scale) > floor:
            return t, s0, s1
        if t < 0.0:
            low = t
        else:
            high = t
    return 0.0, s0, s1


@kernel
def _slice_direction(counts, totals, rest, base, along, k, linear, bend, s0, s1):
    """Return a step along a direction, on which psi = base + step along."""
    floor, s0, s1 = streams.exponential(s0, s1)
    floor = _likelihood(counts, totals, rest, base, along, 0.0, k) - floor
    u, s0, s1 = streams.uniform(s0, s1)
    low, high = -u * DIRECTION_STEP, (1.0 - u) * DIRECTION_STEP
    for side in range(2):
        for _ in range(MOST_OUT):
            t = low if side == 0 else high
            found = _likelihood(counts, totals, rest, base, along, t, k)
            if not found + _log_direction_prior(t, linear, bend) > floor:
                break
            if side == 0:
                low -= DIRECTION_STEP
            else:
                high += DIRECTION_STEP
    for _ in range(MOST_STEPS):
        u, s0, s1 = streams.uniform(s0, s1)
        t = low + u * (high - low)
        found = _likelihood(counts, totals, rest, base, along, t, k)
        if found + _log_direction_prior(t, linear, bend) > floor:
            return t, s0, s1
        if t < 0.0:
            low = t
        else:
            high = t
    return 0.0, s0, s1


@kernel(inline="always")
def _log_rests(psi, k, rest):
    """Write the logarithm of the sum of e^psi of all categories but one."""
    for i in range(psi.shape[0]):
        top = -math.inf
        for j in range(psi.shape[1]):
            if j != k:
                top = max(top, psi[i, j])
        total = 0.0
        for j in range(psi.shape[1]):
            if j != k:
                total += math.exp(psi[i, j] - top)
        rest[i] = top + math.log(total)


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
    rest, base, e, direction = np.empty(n), np.empty(n), np.empty(n), np.empty(h)
    for number in range(chosen.shape[0]):
        k = chosen[number]
        s0, s1 = streams.open_stream(key, np.uint64(k))
        _log_rests(psi, k, rest)
        sd = math.sqrt(noise[k])
        for i in range(n):
            base[i] = 0.0
            for p in range(h):
                base[i] += weights[k, p] * factors[i, p]
            e[i] = (psi[i, k] - base[i]) / sd
        t, s0, s1 = _slice_scale(counts, totals, rest, base, e, k, math.log(sd), scale, s0, s1)
        noise[k] *= math.exp(2.0 * t)
        sd *= math.exp(t)
        linear, bend = 0.0, 0.0
        for p in range(h):  # as wide as the law lets each weight be
            direction[p], s0, s1 = streams.normal(s0, s1)
            if p > 0:
                direction[p] /= math.sqrt(precision[k, p])
            linear -= precision[k, p] * (weights[k, p] - centre[k, p]) * direction[p]
            bend += precision[k, p] * direction[p] * direction[p]
        for i in range(n):
            base[i] += sd * e[i]
            e[i] = 0.0
            for p in range(h):
                e[i] += direction[p] * factors[i, p]
        t, s0, s1 = _slice_direction(counts, totals, rest, base, e, k, linear, bend, s0, s1)
        for p in range(h):
            weights[k, p] += t * direction[p]
        for i in range(n):
            psi[i, k] = base[i] + t * e[i]
