"""Particles in a linear-Gaussian chain behind a softmax: particle Gibbs with ancestor sampling, a filter.

The states are whitened, so that the noise of each step is standard:

    w_1 = start + spread u,    w_t = dynamics w_{t-1} + e_t,    u, e_t ~ N(0, I),
    x_t ~ Multinomial(N_t, softmax(bias + emission w_t)).

`draw_paths` is the conditional SMC of Lindsten, Jordan and Schoen (2014). The path before is the last
particle, and stays; its ancestor is drawn by weight times transition density. The others are resampled
independently of each other (multinomially): for schemes that are not, the path before would need a law
of its own. Particles are the last axis, along which all loops run.

starts : (n + 1,) int64; the steps of sequence i are starts[i] .. starts[i + 1]
cells  : (offsets (steps + 1,) int64, categories int32, counts int64): what each step shows
law    : (dynamics (D, D), start (D,), spread (D, D))
"""

import math

import numpy as np

from polystick.kernels import kernel
from polystick.kernels.streams import exponential, normal, open_stream, uniform

BLOCK = 16  # categories at once
LOWEST = -700.0
LOG2_E = math.log2(math.e)
LN2_HIGH = float.fromhex("0x1.62e42fefap-1")  # few enough bits that a multiple is exact
LN2_LOW = float.fromhex("0x1.cf79abc9e3b3ap-40")
SHIFTER = 1.5 * 2.0**52  # adding it leaves a whole number in the lowest bits
EXPONENT = np.int64(52)
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12 = (1.0 / math.factorial(i) for i in range(2, 13))


@kernel(forceinline=True)
def exp_below(x):
    """Return exp(x) for x <= 0, to 1e-15, without branches; below LOWEST it is that of LOWEST.

    x = k log 2 + r; the lowest bits of k + SHIFTER are k, which is added to the exponent of exp(r).
    """
    x = max(x, LOWEST)
    shifted = np.float64(x * LOG2_E + SHIFTER)
    k = shifted - SHIFTER
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + r2 * (C2 + r * C3)
    middle = (C4 + r * C5) + r2 * (C6 + r * C7)
    high = (C8 + r * C9) + r2 * (C10 + r * C11) + r4 * C12
    p = np.float64(low + r4 * (middle + r4 * high))
    return np.int64(p.view(np.int64) + (shifted.view(np.int64) << EXPONENT)).view(np.float64)


@kernel
def _add_row_in_place(row, coefficients, x):
    """Add coefficients (D,) times x (D, N) to row (N,)."""
    d, n = x.shape
    whole = d - d % 4
    for p in range(0, whole, 4):
        c0, c1, c2, c3 = (
            coefficients[p],
            coefficients[p + 1],
            coefficients[p + 2],
            coefficients[p + 3],
        )
        for i in range(n):
            first = c0 * x[p, i] + c1 * x[p + 1, i]
            row[i] += first + (c2 * x[p + 2, i] + c3 * x[p + 3, i])
    for p in range(whole, d):
        c0 = coefficients[p]
        for i in range(n):
            row[i] += c0 * x[p, i]


@kernel(inline="always")
def _add_exponentials_in_place(psi, top, total):
    """Carry sums of exponentials, total relative to top (N,) each, on over the rows of psi."""
    n = top.shape[0]
    for i in range(n):
        highest = top[i]
        for k in range(psi.shape[0]):
            highest = max(highest, psi[k, i])
        total[i] *= math.exp(top[i] - highest)
        top[i] = highest
    for k in range(psi.shape[0]):
        for i in range(n):
            total[i] += exp_below(psi[k, i] - top[i])


@kernel
def _weigh(particles, cells, t, emission, bias, psi, top, total, log_weights):
    """Write log p(x_t | particle) without coefficients into log_weights; psi, top, total are scratch."""
    offsets, categories, counts = cells
    n, n_categories = log_weights.shape[0], bias.shape[0]
    log_weights[:] = 0.0
    n_counts = 0
    for c in range(offsets[t], offsets[t + 1]):
        k = categories[c]
        for i in range(n):
            psi[0, i] = bias[k]
        _add_row_in_place(psi[0], emission[k], particles)
        for i in range(n):
            log_weights[i] += counts[c] * psi[0, i]
        n_counts += counts[c]
    if n_counts == 0:
        return
    top[:] = -math.inf
    total[:] = 0.0
    for first in range(0, n_categories, BLOCK):
        size = min(BLOCK, n_categories - first)
        for k in range(size):
            for i in range(n):
                psi[k, i] = bias[first + k]
            _add_row_in_place(psi[k], emission[first + k], particles)
        _add_exponentials_in_place(psi[:size], top, total)
    for i in range(n):
        log_weights[i] -= n_counts * (top[i] + math.log(total[i]))


@kernel
def _sum_weights(log_weights, sums):
    """Write running sums of the weights relative to the largest, whose logarithm is returned."""
    top, total = -math.inf, 0.0
    for i in range(log_weights.shape[0]):
        top = max(top, log_weights[i])
    for i in range(log_weights.shape[0]):
        total += math.exp(log_weights[i] - top)
        sums[i] = total
    return top


@kernel
def _pick(u, sums):
    """Return the particle at the share u in [0, 1) of all weight."""
    last = sums.shape[0] - 1
    x = u * sums[last]
    for i in range(last):
        if x < sums[i]:
            return i
    return last


@kernel
def _resample(sums, ancestors, places, s0, s1):
    """Write independent draws by weight into ancestors, in increasing order.

    Sorted uniforms are running sums of exponentials over the sum of one more of them.
    """
    n, last = ancestors.shape[0], sums.shape[0] - 1
    place = 0.0
    for i in range(n):
        e, s0, s1 = exponential(s0, s1)
        place += e
        places[i] = place
    e, s0, s1 = exponential(s0, s1)
    scale = sums[last] / (place + e)
    j = 0
    for i in range(n):
        while j < last and sums[j] <= places[i] * scale:
            j += 1
        ancestors[i] = j
    return s0, s1


@kernel
def _start(start, spread, n, particles, s0, s1):
    """Draw the first n particles of the first step."""
    d = start.shape[0]
    u = np.empty(d)
    for i in range(n):
        for p in range(d):
            u[p], s0, s1 = normal(s0, s1)
        for p in range(d):
            x = start[p]
            for q in range(d):
                x += spread[p, q] * u[q]
            particles[p, i] = x
    return s0, s1


@kernel
def _predict(dynamics, particles, means):
    """Write dynamics times each particle into means (D, N)."""
    means[:] = 0.0
    for p in range(dynamics.shape[0]):
        _add_row_in_place(means[p], dynamics[p], particles)


@kernel
def _scatter(means, ancestors, particles, s0, s1):
    """Draw a particle about the mean of each ancestor."""
    for p in range(means.shape[0]):
        for i in range(ancestors.shape[0]):
            e, s0, s1 = normal(s0, s1)
            particles[p, i] = means[p, ancestors[i]] + e
    return s0, s1


@kernel(inline="always")
def _weigh_ancestors(log_weights, means, state, out):
    """Write log weights of the particles as ancestors of a state (D,)."""
    for i in range(out.shape[0]):
        out[i] = log_weights[i]
    for p in range(state.shape[0]):
        for i in range(out.shape[0]):
            gap = state[p] - means[p, i]
            out[i] -= 0.5 * gap * gap


@kernel(inline="always")
def _trace_back(j, history, ancestors, log_weights, states):
    """Write the path that ends in particle j over the one before; return its log likelihood."""
    value = 0.0
    for t in range(states.shape[0] - 1, -1, -1):
        value += log_weights[t, j]
        for p in range(states.shape[1]):
            states[t, p] = history[t, p, j]
        j = ancestors[t, j]
    return value


@kernel
def draw_paths_in_place(key, rows, starts, cells, law, emission, bias, n_particles, states):
    """Draw a path of each sequence given the one before; return the log likelihood given the paths.

    key      : uint64
    rows     : (n,) uint64 ids of the sequences, which key their streams
    emission : (K, D)
    bias     : (K,)
    states   : (steps, D) in and out
    """
    dynamics, start, spread = law
    longest, d, n, kept = 0, start.shape[0], n_particles, n_particles - 1
    for i in range(rows.shape[0]):
        longest = max(longest, starts[i + 1] - starts[i])
    history, ancestors = np.empty((longest, d, n)), np.zeros((longest, n), np.int64)
    log_weights, means = np.empty((longest, n)), np.empty((d, n))
    psi, top, total, sums = np.empty((BLOCK, n)), np.empty(n), np.empty(n), np.empty(n)
    value = 0.0
    for i in range(rows.shape[0]):
        s0, s1 = open_stream(key, rows[i])
        path = states[starts[i] : starts[i + 1]]
        for t in range(path.shape[0]):
            if t == 0:
                s0, s1 = _start(start, spread, kept, history[0], s0, s1)
            else:
                _predict(dynamics, history[t - 1], means)
                _sum_weights(log_weights[t - 1], sums)
                s0, s1 = _resample(sums, ancestors[t, :kept], top, s0, s1)
                s0, s1 = _scatter(means, ancestors[t, :kept], history[t], s0, s1)
                _weigh_ancestors(log_weights[t - 1], means, path[t], total)
                _sum_weights(total, sums)
                u, s0, s1 = uniform(s0, s1)
                ancestors[t, kept] = _pick(u, sums)
            for p in range(d):
                history[t, p, kept] = path[t, p]
            _weigh(
                history[t], cells, starts[i] + t, emission, bias, psi, top, total, log_weights[t]
            )
        if path.shape[0] > 0:
            _sum_weights(log_weights[path.shape[0] - 1], sums)
            u, s0, s1 = uniform(s0, s1)
            value += _trace_back(_pick(u, sums), history, ancestors, log_weights, path)
    return value


@kernel
def filter_sequences(key, rows, starts, cells, law, emission, bias, predicted, values, after):
    """Write particles of each step given those before it, all of one weight (bootstrap filter).

    predicted : (steps, D, N) out
    values    : (steps,) out: log of the mean of p(x_t | particle) without coefficients; 0 if unseen
    after     : (n, D, N) out: particles of the step after the last
    """
    dynamics, start, spread = law
    d, n = predicted.shape[1:]
    psi, top, total, sums = np.empty((BLOCK, n)), np.empty(n), np.empty(n), np.empty(n)
    log_weights, means, ancestors = np.empty(n), np.empty((d, n)), np.empty(n, np.int64)
    for i in range(rows.shape[0]):
        s0, s1 = open_stream(key, rows[i])
        s0, s1 = _start(start, spread, n, after[i], s0, s1)
        for t in range(starts[i], starts[i + 1]):
            for p in range(d):
                for j in range(n):
                    predicted[t, p, j] = after[i, p, j]
            _weigh(predicted[t], cells, t, emission, bias, psi, top, total, log_weights)
            highest = _sum_weights(log_weights, sums)
            values[t] = highest + math.log(sums[n - 1] / n)
            _predict(dynamics, predicted[t], means)
            s0, s1 = _resample(sums, ancestors, top, s0, s1)
            s0, s1 = _scatter(means, ancestors, after[i], s0, s1)
