"""Exact draws of psi of one split given its Gaussian law: a density with a concave logarithm

    g(x) = y x - n log(1 + e^x) - precision (x - mean)^2 / 2,

by rejection (Devroye 1986) from three tangents of g: one near the mode and one on each side of it. However
lopsided the split is, a draw does not depend on where the chain was. Which tangents are taken does, but
whatever they are the draw has the right law.

Of many splits the first try is made side by side, by `try_in_place`. There a split is turned so that x <= 0
near its mode; then, with p = e^x / (1 + e^x),

    log(1 + e^(x + d)) - log(1 + e^x) = log(1 + p (e^d - 1))

loses nothing, however many trials there are.
"""

import math

import numpy as np

from polystick.kernels import elementary, kernel, streams

MOST_STEPS = 60  # of a climb, and of a search for tangents
MOST_TRIES = 1000  # of a rejection: each succeeds with a probability above a half
CLOSE = 0.1  # to the mode, in standard deviations
ASIDE = 1.2  # from it, in standard deviations
WIDEST = 8.0  # steps aside of splits that are tried side by side, whose exponentials can't overflow
TOGETHER = 64  # rows whose splits are tried side by side
CLIMBS, TRIES = 2, 2  # of those: steps towards the mode, and proposals
WORK = 11  # numbers that are held of each
LANES = 8  # splits that a vector may hold: their number is filled up to a multiple


@kernel(forceinline=True)
def _slope(y, n, mean, precision, x):
    """Return g'(x) and -g''(x)."""
    e = math.exp(-abs(x))
    one = 1.0 / (1.0 + e)
    p = one if x > 0.0 else e * one
    return y - n * p - precision * (x - mean), n * e * one * one + precision


@kernel(forceinline=True)
def _height(y, n, mean, precision, x):
    """Return g(x) and g'(x)."""
    e, gap = math.exp(-abs(x)), x - mean
    p = (1.0 if x > 0.0 else e) / (1.0 + e)
    bend = max(x, 0.0) + math.log1p(e)
    return y * x - n * bend - 0.5 * precision * gap * gap, y - n * p - precision * gap


@kernel
def draw(y, n, mean, precision, x, s0, s1):
    """Return a draw and the new state; x, from where to climb, if no tangents are found."""
    slope, bend = _slope(y, n, mean, precision, x)
    for _ in range(MOST_STEPS):
        step = slope / bend
        if abs(step) * math.sqrt(bend) < CLOSE:
            break
        longest = 3.0 + 0.5 * abs(x)
        x += min(max(step, -longest), longest)
        slope, bend = _slope(y, n, mean, precision, x)
    aside = ASIDE / math.sqrt(bend)
    left, right = x - aside, x + aside
    top, slope = _height(y, n, mean, precision, x)
    a, rise = _height(y, n, mean, precision, left)
    b, fall = _height(y, n, mean, precision, right)
    if not (rise > max(slope, 0.0) and fall < min(slope, 0.0)):
        return x, s0, s1
    # heights of the outer tangents at x, relative to g(x), and where they meet the middle one
    a += rise * aside - top
    b -= fall * aside + top
    from_left, from_right = -a / (rise - slope), b / (slope - fall)
    low, high = slope * from_left, slope * from_right
    most = max(low, high)  # the middle tangent is nearly flat: a box will do
    left_area, right_area = math.exp(low) / rise, -math.exp(high) / fall
    area = left_area + math.exp(most) * (from_right - from_left) + right_area
    for _ in range(MOST_TRIES):
        u, s0, s1 = streams.uniform(s0, s1)
        v, s0, s1 = streams.uniform(s0, s1)
        e, s0, s1 = streams.exponential(s0, s1)
        u *= area
        if u < left_area:
            gap = from_left + math.log1p(-v) / rise
            hat = a + rise * gap
        elif u < left_area + right_area:
            gap = from_right + math.log1p(-v) / fall
            hat = b + fall * gap
        else:
            gap = from_left + v * (from_right - from_left)
            hat = most
        found, _ = _height(y, n, mean, precision, x + gap)
        if found - top >= hat - e:
            return x + gap, s0, s1
    return x, s0, s1


@kernel(inline="always")
def _newton(y, n, mean, precision, x):
    """Return where a step from x towards the mode leads."""
    e = elementary.exp(-abs(x))
    whole, longest = 1.0 + e, 3.0 + 0.5 * abs(x)
    slope = (y - precision * (x - mean)) * whole - (n if x > 0.0 else n * e)
    step = slope * whole / (n * e + precision * whole * whole)
    return x + min(max(step, -longest), longest)


@kernel
def _climb_in_place(size, y, n, mean, precision, x):
    """Let each x make a step towards its mode."""
    for i in range(size):
        x[i] = _newton(y[i], n[i], mean[i], precision, x[i])


@kernel(inline="always")
def _find_hat(y, n, mean, precision, x):
    """Return x turned to where it is at most 0, p and slopes there, and what lies under the tangents."""
    turn = 1.0 if x <= 0.0 else -1.0
    y = y if x <= 0.0 else n - y
    x, mean = turn * x, turn * mean
    e = elementary.exp(x)
    one = 1.0 / (1.0 + e)
    p = e * one
    linear = y - precision * (x - mean)
    slope = linear - n * p
    # heights are relative to that of x
    aside = ASIDE / math.sqrt(n * p * one + precision)
    growth = elementary.exp(aside)
    shrinkage = 1.0 / growth
    more, less = p * (growth - 1.0), p * (shrinkage - 1.0)
    rise = linear - n * p * shrinkage / (1.0 + less) + precision * aside
    fall = linear - n * p * growth / (1.0 + more) - precision * aside
    square = 0.5 * precision * aside * aside
    a = (rise - linear) * aside - n * elementary.log_1p(less) - square  # of the outer tangents at x
    b = (linear - fall) * aside - n * elementary.log_1p(more) - square
    usable = (rise > max(slope, 0.0)) & (fall < min(slope, 0.0)) & (aside < WIDEST)
    # the middle tangent is nearly flat: a box up to where it is highest will do
    most = slope * (b if slope > 0.0 else a) / (slope - (fall if slope > 0.0 else rise))
    left, right = (most - a) / rise, (most - b) / fall
    return turn, p, linear, rise, fall, most if usable else math.inf, left, right


@kernel
def _find_hats(size, y, n, mean, precision, x, hats):
    """Write the hat of each split into hats (8, size)."""
    turn, p, linear, rise = hats[0], hats[1], hats[2], hats[3]
    fall, most, left, right = hats[4], hats[5], hats[6], hats[7]
    for i in range(size):
        turn[i], p[i], linear[i], rise[i], fall[i], most[i], left[i], right[i] = _find_hat(
            y[i], n[i], mean[i], precision, x[i]
        )


@kernel(inline="always")
def _propose(n, precision, hat, u, v):
    """Return a step that two uniforms make under the hat, and whether it is one under the density."""
    p, linear, rise, fall, most, left, right = hat
    to_left, to_right = 1.0 / rise, -1.0 / fall
    u *= to_left + to_right + (right - left)
    in_left, in_tails = u < to_left, u < to_left + to_right
    share = u * rise if in_left else (to_left - u) * fall
    depth = elementary.log(1.0 - share) if in_tails else 0.0  # of the hat, below the box
    gap = left + (u - to_left - to_right)
    gap = right - depth * to_right if in_tails else gap
    gap = left + depth * to_left if in_left else gap
    bent = n * elementary.log_1p(p * (elementary.exp(gap) - 1.0))
    height = linear * gap - bent - 0.5 * precision * gap * gap
    return gap, v < elementary.exp(height - most - depth)


@kernel
def _propose_all(size, n, precision, hats, u, v, gap, found):
    """Write the step of each split for which none was found, and whether it is a draw."""
    p, linear, rise = hats[1], hats[2], hats[3]
    fall, most, left, right = hats[4], hats[5], hats[6], hats[7]
    for i in range(size):
        hat = p[i], linear[i], rise[i], fall[i], most[i], left[i], right[i]
        step, is_draw = _propose(n[i], precision, hat, u[i], v[i])
        gap[i], found[i] = gap[i] if found[i] else step, found[i] | is_draw


@kernel
def draw_in_place(count, y, n, mean, precision, x, s0, s1, work, found):
    """Replace each of the first x by a draw, each from a stream of its own.

    The loops are short and many so that a processor may overlap their rounds.

    y, n, mean, x, s0, s1 : (size,) of splits that share a precision, size a multiple of LANES; what is
        beyond `count` must be numbers
    work, found : (WORK, size), (size,) to work in
    """
    size = -(-count // LANES) * LANES
    u, v, gap, hats = work[0], work[1], work[2], work[3:]
    for _ in range(CLIMBS):
        _climb_in_place(size, y, n, mean, precision, x)
    _find_hats(size, y, n, mean, precision, x, hats)
    found[:] = False
    for _ in range(TRIES):
        for i in range(count):
            u[i], s0[i], s1[i] = streams.uniform(s0[i], s1[i])
            v[i], s0[i], s1[i] = streams.uniform(s0[i], s1[i])
        _propose_all(size, n, precision, hats, u, v, gap, found)
    for i in range(count):
        if found[i]:
            x[i] += hats[0, i] * gap[i]
        else:
            x[i], s0[i], s1[i] = draw(y[i], n[i], mean[i], precision, x[i], s0[i], s1[i])


@kernel
def redraw_rows_in_place(key, rows, successes, trials, chosen, mean, precision, psi):
    """Draw each chosen split given the others of its row, psi_i ~ N(mean_i, precision^-1), one after another.

    key : uint64
    rows : (n,) uint64 ids
    successes, trials, chosen : (n, k) counts, and for which splits
    mean, precision : (1, k) of all rows or (n, k) of each, (k, k)
    psi : (n, k) in and out
    """
    n_rows, k = psi.shape
    stride = 1 if mean.shape[0] > 1 else 0
    gap, pull = np.zeros((k, TOGETHER)), np.empty(TOGETHER)
    state = np.empty((2, TOGETHER), np.uint64)
    y, n, given, x = np.ones(TOGETHER), np.ones(TOGETHER), np.zeros(TOGETHER), np.zeros(TOGETHER)
    work, found = np.zeros((WORK, TOGETHER)), np.empty(TOGETHER, np.bool_)
    s0, s1, at = (
        np.empty(TOGETHER, np.uint64),
        np.empty(TOGETHER, np.uint64),
        np.empty(TOGETHER, np.intp),
    )
    for start in range(0, n_rows, TOGETHER):
        size = min(TOGETHER, n_rows - start)
        for r in range(size):
            state[0, r], state[1, r] = streams.open_stream(key, rows[start + r])
            for j in range(k):
                gap[j, r] = psi[start + r, j] - mean[stride * (start + r), j]
        for j in range(k):
            count = 0
            for r in range(size):
                at[count] = r
                count += chosen[start + r, j]
            if count == 0:
                continue
            own = precision[j, j]
            pull[:] = 0.0
            for p in range(k):
                weight, of_p = precision[j, p] / own, gap[p]
                for r in range(TOGETHER):
                    pull[r] += weight * of_p[r]
            for i in range(count):
                r = at[i]
                y[i], n[i] = float(successes[start + r, j]), float(trials[start + r, j])
                x[i], s0[i], s1[i] = psi[start + r, j], state[0, r], state[1, r]
                given[i] = x[i] - pull[r]
            draw_in_place(count, y, n, given, own, x, s0, s1, work, found)
            for i in range(count):
                r = at[i]
                psi[start + r, j], state[0, r], state[1, r] = x[i], s0[i], s1[i]
                gap[j, r] = x[i] - mean[stride * (start + r), j]
