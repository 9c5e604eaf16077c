"""Particles in a linear-Gaussian chain behind binary splits: a filter that looks before it draws.

The states are whitened, so that the noise of each step is standard:

    w_1 = start + spread u,    w_t = dynamics w_{t-1} + bias_t + e_t,    u, e_t ~ N(0, I),
    log p(x_t | w_t) = sum over active sticks of successes psi - trials log(1 + exp(psi)),
    psi = emission [w_t; known_t] + offset.

Particles come from the expansion of the likelihood where a step tells much (`stick_proposal`) and from
the chain where it tells little or nothing; which, the past and the step decide together, so that sums
of values are logarithms of unbiased estimates. The first step is like any other in u, whose mean is 0,
with the rows turned. Particles are resampled systematically where they are worth less than half their
number.

What is shown of a step has a stream of its own, so that to show more or less changes nothing else. A filter
goes on from what was kept of it, with the same bits as in one run.

rows   : (n,) uint64 ids of the sequences, which key their streams
starts : (n + 1,) int64; the steps of sequence i are starts[i] .. starts[i + 1]
"""

import math
from typing import NamedTuple

import numpy as np

from polystick.kernels import kernel, linalg
from polystick.kernels.particle_gibbs import exp_below
from polystick.kernels.stick_proposal import find_proposal, guide, weigh_in_place
from polystick.kernels.streams import next_bits, normal, open_stream, uniform

# The chain proposes where log|J| plus the squared distance of the mode, times the number of sticks, is
# below it: to guide gains with the first two and costs little where many sticks are to be weighed.
GUIDED_FROM = 1.0


class Law(NamedTuple):
    """The chain of w."""

    dynamics: np.ndarray  # (D, D)
    bias: np.ndarray  # (S, D); that of a first step is not read
    start: np.ndarray  # (D,)
    spread: np.ndarray  # (D, D)


class Splits(NamedTuple):
    """The active sticks of each step."""

    starts: np.ndarray  # (S + 1,)
    nodes: np.ndarray
    successes: np.ndarray  # float64
    trials: np.ndarray  # float64
    offsets: np.ndarray  # what is known of psi from elsewhere


class Found(NamedTuple):
    """What is written; all of w."""

    values: (
        np.ndarray
    )  # (S,) log p(x_t | before), estimated, without coefficients; 0 if nothing is seen
    means: np.ndarray  # (S, D) of each state given all up to its step
    covs: np.ndarray  # (S, D, D)
    after: (
        np.ndarray
    )  # (n, D, M) equally weighted particles of each sequence's last state given all; of
    # the law of the first state where a sequence has no steps
    predicted: (
        np.ndarray
    )  # (S, D, M), or (0, D, M) if not wanted: equally weighted particles given the past
    current: np.ndarray  # (S, D, M), or (0, D, M) if not wanted: the same, given the step too


class Kept(NamedTuple):
    """Where the filter of each sequence stands, read and written; of no sequence (n is 0) if not wanted."""

    numbers: np.ndarray  # (n,) int64 steps so far: the others are read only where it is above 0
    streams: np.ndarray  # (n, 2) uint64
    particles: np.ndarray  # (n, D, N) of w
    weights: np.ndarray  # (n, 2, N) and their logarithms
    means: np.ndarray  # (n, D) of the last w
    worths: np.ndarray  # (n,) how many particles they are worth


# ---- a step's sticks


@kernel(inline="always")
def _gather_sticks(t, splits, emission, known, sticks):
    """Write the active sticks of step t; return their number, or 0 if none has trials."""
    starts, nodes, successes, trials = (
        splits.starts, splits.nodes, splits.successes, splits.trials
    )  # fmt: skip
    known_offsets = splits.offsets
    rows, offsets, hits, tries = sticks
    d, first, seen = rows.shape[1], starts[t], False
    for at in range(first, starts[t + 1]):
        j, k, offset = at - first, nodes[at], known_offsets[at]
        for p in range(d):
            rows[j, p] = emission[k, p]
        for p in range(d, emission.shape[1]):
            offset += emission[k, p] * known[t, p - d]
        offsets[j], hits[j], tries[j] = offset, successes[at], trials[at]
        seen = seen or trials[at] > 0
    return starts[t + 1] - first if seen else 0


@kernel(inline="always")
def _turn_in_place(n_sticks, sticks, start, spread):
    """Turn sticks of w = start + spread u into sticks of u."""
    rows, offsets = sticks[0], sticks[1]
    d = start.shape[0]
    row = np.empty(d)
    for j in range(n_sticks):
        for p in range(d):
            row[p] = rows[j, p]
            offsets[j] += row[p] * start[p]
            rows[j, p] = 0.0
        for p in range(d):
            linalg.add_multiple_in_place(rows[j], row[p], spread[p])


# ---- moves


@kernel
def _predict(dynamics, bias, particles, means):
    """Write dynamics times each particle plus the bias into means (D, N)."""
    d, n = particles.shape
    whole = d - d % 4
    for p in range(d):
        row = means[p]
        for i in range(n):
            row[i] = bias[p]
        for q in range(0, whole, 4):
            c0, c1 = dynamics[p, q], dynamics[p, q + 1]
            c2, c3 = dynamics[p, q + 2], dynamics[p, q + 3]
            for i in range(n):
                first = c0 * particles[q, i] + c1 * particles[q + 1, i]
                row[i] += first + (c2 * particles[q + 2, i] + c3 * particles[q + 3, i])
        for q in range(whole, d):
            c0 = dynamics[p, q]
            for i in range(n):
                row[i] += c0 * particles[q, i]


@kernel
def _scatter(means, particles, s0, s1):
    """Draw each particle from N(its mean, I)."""
    for p in range(means.shape[0]):
        for i in range(means.shape[1]):
            e, s0, s1 = normal(s0, s1)
            particles[p, i] = means[p, i] + e
    return s0, s1


@kernel
def _leave_start_in_place(start, spread, particles):
    """Turn u into w = start + spread u."""
    u, w = particles.copy(), particles
    _predict(spread, start, u, w)


# ---- weights


@kernel(inline="always")
def _normalise_in_place(log_weights, weights):
    """Write the weights, of sum 1, and their logarithms; return log of the sum and their worth."""
    top, total, squares = -math.inf, 0.0, 0.0
    for i in range(weights.shape[0]):
        top = max(top, log_weights[i])
    for i in range(weights.shape[0]):
        weights[i] = exp_below(log_weights[i] - top)
    for i in range(weights.shape[0]):
        total += weights[i]
        squares += weights[i] * weights[i]
    log_sum, scale = top + math.log(total), 1.0 / total
    for i in range(weights.shape[0]):
        weights[i] *= scale
        log_weights[i] -= log_sum
    return log_sum, total * total / squares


@kernel
def _level(weights, log_weights):
    """Give all particles the same weight."""
    share, log_share = 1.0 / weights.shape[0], -math.log(weights.shape[0])
    for i in range(weights.shape[0]):
        weights[i], log_weights[i] = share, log_share


@kernel
def _choose(weights, u, ancestors):
    """Write systematic draws by weight into ancestors, in increasing order, given one uniform u."""
    n, last = ancestors.shape[0], weights.shape[0] - 1
    j, reach = 0, weights[0]
    for i in range(n):
        while j < last and reach * n <= i + u:
            j += 1
            reach += weights[j]
        ancestors[i] = j


@kernel
def _take(particles, ancestors, out):
    for p in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[p, i] = particles[p, ancestors[i]]


@kernel
def _dot(x, y):
    """Return x' y, in eight sums that a machine forms at once."""
    n = x.shape[0]
    whole = n - n % 8
    t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = 0.0
    for i in range(0, whole, 8):
        t0 += x[i] * y[i]
        t1 += x[i + 1] * y[i + 1]
        t2 += x[i + 2] * y[i + 2]
        t3 += x[i + 3] * y[i + 3]
        t4 += x[i + 4] * y[i + 4]
        t5 += x[i + 5] * y[i + 5]
        t6 += x[i + 6] * y[i + 6]
        t7 += x[i + 7] * y[i + 7]
    for i in range(whole, n):
        t0 += x[i] * y[i]
    return ((t0 + t4) + (t2 + t6)) + ((t1 + t5) + (t3 + t7))


@kernel(inline="always")
def _moments(particles, weights, mean, cov, scratch):
    """Write the mean and the covariance of weighted particles; scratch is (2, D, N)."""
    centred, weighted = scratch[0], scratch[1]
    d, n = particles.shape
    for p in range(d):
        mean[p] = _dot(particles[p], weights)
        for i in range(n):
            centred[p, i] = particles[p, i] - mean[p]
        for i in range(n):
            weighted[p, i] = weights[i] * centred[p, i]
        for q in range(p + 1):
            cov[p, q] = cov[q, p] = _dot(weighted[p], centred[q])


# ---- the filter


@kernel(inline="always")
def _move(n_sticks, sticks, centre, means, particles, log_weights, scratch, s0, s1):
    """Draw the particles of a step and weigh them; return the stream."""
    pair, (linear, factor, omega, psi, product) = scratch
    if n_sticks == 0:
        return _scatter(means, particles, s0, s1)
    log_det, distance = find_proposal(n_sticks, sticks, centre, linear, factor, omega)
    if (log_det + distance) * n_sticks > GUIDED_FROM:
        s0, s1 = guide(means, linear, factor, log_det, particles, log_weights, pair, s0, s1)
    else:
        s0, s1 = _scatter(means, particles, s0, s1)
    weigh_in_place(n_sticks, sticks, particles, log_weights, psi, product)
    return s0, s1


@kernel(inline="always")
def _show_predicted(bits, number, means, weights, ancestors, out):
    """Draw out (D, M) of a step before it is seen; number is that of the step."""
    r0, r1 = open_stream(bits, np.uint64(2 * number))
    u, r0, r1 = uniform(r0, r1)
    _choose(weights, u, ancestors)
    _take(means, ancestors, out)
    _scatter(out, out, r0, r1)


@kernel
def _show_current(bits, number, particles, weights, ancestors, out):
    """Draw out (D, M) of a step given all up to it."""
    r0, r1 = open_stream(bits, np.uint64(2 * number + 1))
    u, r0, r1 = uniform(r0, r1)
    _choose(weights, u, ancestors)
    _take(particles, ancestors, out)


@kernel(inline="always")
def _recall(i, kept, particles, weights, log_weights, centre):
    """Take up where the filter of sequence i was left; return the worth and the stream."""
    for j in range(weights.shape[0]):
        weights[j], log_weights[j] = kept.weights[i, 0, j], kept.weights[i, 1, j]
    for p in range(centre.shape[0]):
        centre[p] = kept.means[i, p]
        for j in range(weights.shape[0]):
            particles[p, j] = kept.particles[i, p, j]
    return kept.worths[i], kept.streams[i, 0], kept.streams[i, 1]


@kernel(inline="always")
def _keep(i, kept, particles, weights, log_weights, last):
    """Keep where the filter of sequence i is left; last is the mean of w."""
    for j in range(weights.shape[0]):
        kept.weights[i, 0, j], kept.weights[i, 1, j] = weights[j], log_weights[j]
    for p in range(last.shape[0]):
        kept.means[i, p] = last[p]
        for j in range(weights.shape[0]):
            kept.particles[i, p, j] = particles[p, j]


@kernel(inline="always")
def _scratch(starts, d, n):
    """Return room for particles, for weights, for the expansion and for the sticks of a step."""
    widest = 0
    for t in range(starts.shape[0] - 1):
        widest = max(widest, starts[t + 1] - starts[t])
    sticks = np.empty((widest, d)), np.empty(widest), np.empty(widest), np.empty(widest)
    expansion = np.empty(d), np.empty((d, d)), np.empty(widest), np.empty(n), np.empty(n)
    pair = np.empty((2, d, n))
    cloud = np.empty((d, n)), np.empty((d, n)), np.empty(n), np.empty(n), np.empty(d)
    return cloud, (pair, expansion), sticks


@kernel
def _filter_sequence(key, row, place, law, splits, emission, known, found, room, kept):
    """Filter the steps place[1] .. place[2] of sequence place[0]."""
    dynamics, bias, start, spread = law.dynamics, law.bias, law.start, law.spread
    values, mean, cov = found.values, found.means, found.covs
    after, predicted, current = found.after, found.predicted, found.current
    (particles, means, log_weights, weights, last), scratch, sticks = room
    i, first, end = place
    n, centre = weights.shape[0], np.zeros(last.shape[0])
    chosen, shown, worth = np.empty(n, np.int64), np.empty(after.shape[2], np.int64), float(n)
    s0, s1 = open_stream(key, row)
    bits, s0, s1 = next_bits(s0, s1)
    number, keeps = 0, kept.numbers.shape[0] > 0
    if keeps:
        number = kept.numbers[i]
    _level(weights, log_weights)
    means[:] = 0.0
    if number > 0:
        worth, s0, s1 = _recall(i, kept, particles, weights, log_weights, last)
    for t in range(first, end):
        n_sticks = _gather_sticks(t, splits, emission, known, sticks)
        if number == 0:
            _turn_in_place(n_sticks, sticks, start, spread)
        else:
            _predict(dynamics, bias[t], particles, means)
            for p in range(centre.shape[0]):
                centre[p] = bias[t, p] + _dot(dynamics[p], last)
        if predicted.shape[0] > 0:
            _show_predicted(bits, number, means, weights, shown, predicted[t])
            if number == 0:
                _leave_start_in_place(start, spread, predicted[t])
        s0, s1 = _move(n_sticks, sticks, centre, means, particles, log_weights, scratch, s0, s1)
        if number == 0:
            _leave_start_in_place(start, spread, particles)
        values[t] = 0.0
        if n_sticks > 0:
            values[t], worth = _normalise_in_place(log_weights, weights)
        _moments(particles, weights, mean[t], cov[t], scratch[0])
        for p in range(last.shape[0]):
            last[p] = mean[t, p]
        if current.shape[0] > 0:
            _show_current(bits, number, particles, weights, shown, current[t])
        if worth < 0.5 * n:
            u, s0, s1 = uniform(s0, s1)
            _choose(weights, u, chosen)
            _take(particles, chosen, means)
            for p in range(last.shape[0]):
                for j in range(n):
                    particles[p, j] = means[p, j]
            _level(weights, log_weights)
            worth = float(n)
        number += 1
    if keeps:
        _keep(i, kept, particles, weights, log_weights, last)
        kept.numbers[i], kept.worths[i] = number, worth
        kept.streams[i, 0], kept.streams[i, 1] = s0, s1
    if number == 0:
        s0, s1 = _scatter(means, particles, s0, s1)
        _leave_start_in_place(start, spread, particles)
    _show_current(bits, number, particles, weights, shown, after[i])


@kernel
def filter_sequences(key, rows, starts, law, splits, emission, known, n_particles, found, kept):
    """Filter each sequence.

    key      : uint64
    emission : (n_sticks, E) rows, the first D columns of w and the others of what is known
    known    : (S, E - D)
    law, splits, found, kept : Law, Splits, Found, Kept
    """
    room = _scratch(splits.starts, law.start.shape[0], n_particles)
    for i in range(rows.shape[0]):
        place = i, starts[i], starts[i + 1]
        _filter_sequence(key, rows[i], place, law, splits, emission, known, found, room, kept)
