"""Random walks of sticks, one at a time given the others, each with what ties it to them.

A walk of all sticks has increments N(0, Q), Q ~ InverseWishart(Psi, nu). Given the other sticks, whose law
does not depend on b and s, stick j is a scalar walk that is regressed on their increments d_t:

    x_t = x_{t-1} + b' d_t + N(0, s^2),    s^2 ~ InverseGamma(nu / 2, (Psi_jj - Psi_j. b0) / 2),
    b | s^2 ~ N(b0, s^2 Psi_..^-1),        b0 = Psi_..^-1 Psi_.j,

where . are the others. Under potentials exp(kappa x - omega x^2 / 2) all of (b, x) is one Gaussian: a filter
that carries the derivatives of its means by b integrates x out, in sums of squares and without a division
by omega or by a variance. Where counts tell little of a stick its path and Q go together so, while Q given
the path, and the path given Q, move slowly.

starts    : (n + 1,) int64: sequence i is the steps starts[i] .. starts[i + 1]; all share b and s
moves     : (S, q) d_t, q = k - 1; 0 at the first step of a sequence
filtered  : (S, q + 2) of each step given those before it and itself: the mean for b = 0, the variance,
            and the derivatives of the mean by b
"""

import math
from typing import NamedTuple

import numpy as np

from polystick.kernels import ellipse, kernel, linalg, streams

WIDTH = 1.0  # of a slice of log s
MOST_STEPS = 60  # of a slice that shrinks


class Cells(NamedTuple):
    """Counts and potentials of all sticks (k, S), or of one (S,)."""

    hits: np.ndarray  # float64
    tries: np.ndarray  # float64
    kappa: np.ndarray
    omega: np.ndarray
    fixed: np.ndarray  # bool: whether kappa and omega are a fixed site


class LawOfCov(NamedTuple):
    """The inverse Wishart of Q."""

    scale: np.ndarray  # (k, k) Psi
    degrees: float  # nu


class LawOfFirst(NamedTuple):
    """The normal law of first states, or, of one sequence, that of which mean and cov are integrated out."""

    mean: np.ndarray  # (k,), or m
    precision: np.ndarray  # (k, k), or Psi0^-1
    wide: float  # 0, or 1 + 1 / r of NormalInverseWishart(m, r, Psi0, nu0)


class Noise(NamedTuple):
    """What a sweep draws with."""

    ties: np.ndarray  # (k, q) normals
    walks: np.ndarray  # (k, S) normals
    variances: np.ndarray  # (k,) gammas of shape (nu + q + steps after first ones) / 2
    firsts: np.ndarray  # (k,) gammas of shape (nu0 + 1) / 2


class Walk(NamedTuple):
    """The law of one stick given the others and b."""

    starts: np.ndarray
    moves: np.ndarray
    variance: float  # s^2


@kernel
def draw_sticks(key, starts, cells, prior, first, noise, states, precision):
    """Draw (b, x), s given x, and the scale of x with s, of each stick; return how many found no angle.

    key       : uint64
    cells, prior, first, noise : Cells, LawOfCov, LawOfFirst, Noise
    states    : (S, k) in place
    precision : (k, k) in place: Q^-1
    """
    (n_steps, k), n_stuck = states.shape, 0
    moves, filtered = np.empty((n_steps, k - 1)), np.empty((n_steps, k + 1))
    place, tie, path = np.empty(starts.shape[0] - 1), np.empty(k - 1), np.empty(n_steps)
    rest, linear = np.empty((k - 1, k - 1)), np.empty(k - 1)
    for j in range(k):
        take_moves(starts, states, j, moves)
        variance = _take_tie(precision, j, tie, rest)
        spread = place_first(starts, states, j, first, noise.firsts[j], place)
        for t in range(n_steps):
            path[t] = states[t, j]
        gram = np.empty((k - 1, k - 1))
        _lay_prior(prior.scale, j, variance, gram, linear)
        walk = Walk(starts, moves, variance)
        mine = Cells(
            cells.hits[j], cells.tries[j], cells.kappa[j], cells.omega[j], cells.fixed[j]
        )  # fmt: skip
        filter_walk(walk, mine.kappa, mine.omega, place, spread, filtered, gram, linear)
        about = gram, linear
        if _turn_in_place(key, j, mine, walk, filtered, about, noise, tie, path) == 0.0:
            n_stuck += 1
        variance = _draw_variance(walk, prior.scale, j, noise.variances[j], tie, path)
        walk = Walk(starts, moves, variance)
        excess = _tie_excess(prior.scale, j, tie), prior.degrees
        variance *= _scale_in_place(key, j, mine, walk, excess, place, spread, tie, path)
        for t in range(n_steps):
            states[t, j] = path[t]
        _put_tie_in_place(precision, j, variance, tie, rest)
    return n_stuck


# ---- b and s in the precision of all sticks


@kernel(inline="always")
def take_moves(starts, states, j, moves):
    """Write the increments of the sticks but j."""
    for i in range(starts.shape[0] - 1):
        for t in range(starts[i], starts[i + 1]):
            for c in range(moves.shape[1]):
                at = c + (c >= j)
                moves[t, c] = states[t, at] - states[t - 1, at] if t > starts[i] else 0.0


@kernel(inline="always")
def _take_tie(precision, j, tie, rest):
    """Write b, and the precision of the other sticks alone; return s^2."""
    variance = 1.0 / precision[j, j]
    for a in range(tie.shape[0]):
        tie[a] = -variance * precision[a + (a >= j), j]
    for a in range(tie.shape[0]):
        for c in range(tie.shape[0]):
            both = tie[a] * tie[c] / variance
            rest[a, c] = precision[a + (a >= j), c + (c >= j)] - both
    return variance


@kernel(inline="always")
def _put_tie_in_place(precision, j, variance, tie, rest):
    """Undo `_take_tie`."""
    precision[j, j] = 1.0 / variance
    for a in range(tie.shape[0]):
        i = a + (a >= j)
        precision[i, j] = precision[j, i] = -tie[a] / variance
        for c in range(tie.shape[0]):
            precision[i, c + (c >= j)] = rest[a, c] + tie[a] * tie[c] / variance


@kernel(inline="always")
def place_first(starts, states, j, first, gamma, place):
    """Write the mean of each sequence's first x given the other sticks; return its variance.

    With the NormalInverseWishart integrated out, that is a draw of the variance given x.
    """
    mean, precision, wide = first.mean, first.precision, first.wide
    variance = 1.0 / precision[j, j]
    for i in range(place.shape[0]):
        pull, t = 0.0, starts[i]
        for c in range(mean.shape[0]):
            if c != j and t < starts[i + 1]:
                pull += precision[j, c] * (states[t, c] - mean[c])
        place[i] = mean[j] - variance * pull
        if wide > 0.0:
            for a in range(mean.shape[0]):
                for c in range(mean.shape[0]):
                    if a != j and c != j:
                        gaps = (states[t, a] - mean[a]) * (states[t, c] - mean[c])
                        wide += precision[a, c] * gaps
            wide -= variance * pull * pull
            gap = states[t, j] - place[i]
            variance = 0.5 * wide * (variance + gap * gap / wide) / gamma
    return variance


@kernel(inline="always")
def _lay_prior(scale, j, variance, gram, linear):
    """Write the precision of b a priori and its product with b0."""
    for a in range(linear.shape[0]):
        i = a + (a >= j)
        linear[a] = scale[i, j] / variance
        for c in range(linear.shape[0]):
            gram[a, c] = scale[i, c + (c >= j)] / variance


# ---- the path, and b with it


@kernel(inline="always")
def filter_walk(walk, kappa, omega, place, spread, filtered, gram, linear):
    """Write what is known of each step from those up to it; add what all tell of b.

    kappa, omega  : (S,)
    place, spread : (n,), the mean and the variance of first steps
    gram, linear  : (q, q), (q,) in place: the precision of b, upper triangle, and its linear term
    """
    starts, moves, variance = walk.starts, walk.moves, walk.variance
    q = linear.shape[0]
    slope = np.empty(q)
    for i in range(starts.shape[0] - 1):
        mean, spread_now = place[i], spread
        slope[:] = 0.0
        for t in range(starts[i], starts[i + 1]):
            for a in range(q):
                slope[a] += moves[t, a]
            shrink = 1.0 / (1.0 + omega[t] * spread_now)
            weight, pull = omega[t] * shrink, (kappa[t] - omega[t] * mean) * shrink
            if weight > 0.0:
                for a in range(q):
                    linear[a] += pull * slope[a]
                    linalg.add_multiple_in_place(gram[a, a:q], weight * slope[a], slope[a:q])
                for a in range(q):
                    slope[a] *= shrink
            mean += spread_now * pull
            filtered[t, 0], filtered[t, 1] = mean, spread_now * shrink
            for a in range(q):
                filtered[t, 2 + a] = slope[a]
            spread_now = spread_now * shrink + variance


@kernel
def draw_back(walk, filtered, share, tie, noise, path):
    """Write x given b and noise: the mean of it for share 1 and no noise, a deviation for share 0."""
    starts, moves, variance = walk.starts, walk.moves, walk.variance
    for i in range(starts.shape[0] - 1):
        for t in range(starts[i + 1] - 1, starts[i] - 1, -1):
            mean, spread = share * filtered[t, 0], filtered[t, 1]
            for a in range(tie.shape[0]):
                mean += filtered[t, 2 + a] * tie[a]
            if t < starts[i + 1] - 1:
                ahead = path[t + 1]
                for a in range(tie.shape[0]):
                    ahead -= moves[t + 1, a] * tie[a]
                gain = spread / (spread + variance)
                mean += gain * (ahead - mean)
                spread = gain * variance
            path[t] = mean + math.sqrt(spread) * noise[t]


@kernel(inline="always")
def _turn_in_place(key, j, cells, walk, filtered, information, noise, tie, path):
    """Turn (b, x) on an ellipse about their Gaussian: afresh without fixed sites. Return the angle."""
    (gram, linear), omega, fixed = information, cells.omega, cells.fixed
    hits, tries, kappa = cells.hits, cells.tries, cells.kappa
    n_steps, q = path.shape[0], tie.shape[0]
    linalg.cholesky_in_place(gram)
    mean_tie, far_tie = linear, np.empty(q)
    linalg.solve_lower_in_place(gram, mean_tie)
    linalg.solve_upper_in_place(gram, mean_tie)
    for a in range(q):
        far_tie[a] = noise.ties[j, a]
    linalg.solve_upper_in_place(gram, far_tie)
    mean, far = np.empty(n_steps), np.empty(n_steps)
    draw_back(walk, filtered, 1.0, mean_tie, np.zeros(n_steps), mean)
    draw_back(walk, filtered, 0.0, far_tie, noise.walks[j], far)
    found, m = np.empty((6, n_steps)), 0
    for t in range(n_steps):
        if fixed[t]:
            found[0, m], found[1, m], found[2, m] = hits[t] - kappa[t], tries[t], omega[t]
            found[3, m], found[4, m], found[5, m] = path[t], mean[t], far[t]
            m += 1
    rows, ends, angle = np.empty(1, np.uint64), np.zeros(2, np.int64), np.empty(1)
    rows[0], ends[1] = j, m
    ellipse.draw_angles(
        key, rows, ends, found[0, :m], found[1, :m], found[2, :m], found[3, :m], found[4, :m],
        found[5, :m], angle,
    )  # fmt: skip
    c, s = math.cos(angle[0]), math.sin(angle[0])
    for a in range(q):
        tie[a] = mean_tie[a] + (tie[a] - mean_tie[a]) * c + far_tie[a] * s
    for t in range(n_steps):
        path[t] = mean[t] + (path[t] - mean[t]) * c + far[t] * s
    return angle[0]


# ---- s


@kernel
def _tie_excess(scale, j, tie):
    """Return Psi_jj - Psi_j. b0 + (b - b0)' Psi_.. (b - b0), which is [b; -1]' Psi [b; -1]."""
    total = scale[j, j]
    for a in range(tie.shape[0]):
        i = a + (a >= j)
        total -= 2.0 * tie[a] * scale[i, j]
        for c in range(tie.shape[0]):
            total += tie[a] * tie[c] * scale[i, c + (c >= j)]
    return total


@kernel(inline="always")
def _draw_variance(walk, scale, j, gamma, tie, path):
    """Draw s^2 given b and x."""
    starts, moves, total = walk.starts, walk.moves, _tie_excess(scale, j, tie)
    for i in range(starts.shape[0] - 1):
        for t in range(starts[i] + 1, starts[i + 1]):
            gap = path[t] - path[t - 1]
            for a in range(tie.shape[0]):
                gap -= moves[t, a] * tie[a]
            total += gap * gap
    return 0.5 * total / gamma


@kernel(inline="always")
def _scale_in_place(key, j, cells, walk, prior, place, spread, tie, path):
    """Scale x less b' d about the step of each sequence that is known best; return the factor of s^2.

    In log s a slice on the likelihood, with omega integrated out; increments per s stay.
    """
    (excess, degrees), variance = prior, walk.variance
    starts, moves, hits, tries = walk.starts, walk.moves, cells.hits, cells.tries
    n_steps, q = path.shape[0], tie.shape[0]
    move = np.empty(n_steps)
    for i in range(starts.shape[0] - 1):
        _lay_move(starts[i], starts[i + 1], hits, tries, moves, tie, path, move)
    s0, s1 = streams.open_stream(~key, np.uint64(j))
    e, s0, s1 = streams.exponential(s0, s1)
    u, s0, s1 = streams.uniform(s0, s1)
    low, high = -WIDTH * u, WIDTH - WIDTH * u
    shape, rate = degrees + q, 0.5 * excess / variance
    fall, at, x = 0.0, 0.0, 0.0
    for step in range(MOST_STEPS):
        factor = math.exp(x)
        value = -shape * x - rate / (factor * factor)
        for i in range(starts.shape[0] - 1):
            if starts[i] < starts[i + 1]:
                t = starts[i]
                gap = path[t] + (factor - 1.0) * move[t] - place[i]
                value -= 0.5 * gap * gap / spread
        for t in range(n_steps):
            if tries[t] > 0.0:
                psi = path[t] + (factor - 1.0) * move[t]
                log_one_plus = max(psi, 0.0) + math.log1p(math.exp(-abs(psi)))
                value += hits[t] * psi - tries[t] * log_one_plus
        if step == 0:
            fall = value - e
        elif value > fall:
            at = x
            break
        elif x < 0.0:
            low = x
        else:
            high = x
        u, s0, s1 = streams.uniform(s0, s1)
        x = low + (high - low) * u
    factor = math.exp(at)
    for t in range(n_steps):
        path[t] += (factor - 1.0) * move[t]
    return factor * factor


@kernel(inline="always")
def _lay_move(start, stop, hits, tries, moves, tie, path, move):
    """Write the walk of what others do not explain, from the step where counts tell most of x."""
    best, known = start, -1.0
    for t in range(start, stop):
        value = path[t]
        drift = 0.0
        for a in range(tie.shape[0]):
            drift += moves[t, a] * tie[a]
        if t == start:
            total = 0.0
        total += drift
        move[t] = value - total
        few = min(hits[t], tries[t] - hits[t])
        if few > known:
            best, known = t, few
    pivot = move[best] if best < stop else 0.0
    for t in range(start, stop):
        move[t] -= pivot
