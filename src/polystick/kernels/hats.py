"""Exact draws of many splits side by side, as `log_concave` draws one.

A split is turned so that x <= 0 near its mode; then, with p = e^x / (1 + e^x),

    log(1 + e^(x + d)) - log(1 + e^x) = log(1 + p (e^d - 1))

loses nothing, however many trials there are. Proposals that fail are made again together; what has no
tangents, or fails too often, is left to `log_concave.draw`.

Loops are short, each with one exponential or logarithm at most, so that a processor overlaps their rounds:
in one long loop it would wait for each.

size       : of the arrays, a multiple of LANES; of all splits together, which share a precision
y, n, mean : (size,) of the densities
hats       : (N_HATS, size) what is known of each: rows by the names below
"""

import math

import numpy as np

from polystick.kernels import elementary, kernel, log_concave, streams

ASIDE = 1.4  # of the outer tangents from the mode, in standard deviations
WIDEST = 8.0  # of these steps aside, whose exponentials can't overflow
TOGETHER = 512  # splits at once: short loops do not pay for a few
TRIES = 4  # proposals
LANES = 8  # splits that a vector may hold: their number is filled up to a multiple
TURN, P, LINEAR, RISE, FALL, MOST, LEFT, RIGHT = range(8)
N_HATS = 8
FIRST = 3 + N_HATS
WORK = FIRST + N_HATS + 4  # numbers that are held of each


@kernel
def make_room(size):
    """Return room for up to this many splits: y, n, mean and x; s0 and s1; their rows; room to work in."""
    whole = -(-size // LANES) * LANES
    numbers = np.ones(whole), np.ones(whole), np.zeros(whole), np.zeros(whole)
    streams_of = np.zeros(whole, np.uint64), np.zeros(whole, np.uint64)
    work = np.ones((WORK, whole)), np.zeros(whole, np.bool_), np.zeros(whole, np.intp)
    return numbers, streams_of, np.zeros(whole, np.intp), work


@kernel
def climb_in_place(size, y, n, mean, precision, x):
    """Let each x make a step towards its mode."""
    for i in range(size):
        e = elementary.exp(-abs(x[i]))
        whole, longest = 1.0 + e, 3.0 + 0.5 * abs(x[i])
        slope = (y[i] - precision * (x[i] - mean[i])) * whole
        slope -= n[i] if x[i] > 0.0 else n[i] * e
        step = slope * whole / (n[i] * e + precision * whole * whole)
        x[i] += min(max(step, -longest), longest)


@kernel
def find_hats(size, y, n, mean, precision, x, hats, work):
    """Write three tangents of each density, heights relative to that of x.

    turn, p     : 1 or -1 that turns x to where it is at most 0, and p there
    linear      : the slope but for that of n log(1 + e^x)
    rise, fall  : slopes of the outer tangents
    most        : height of the box between them; inf if there are no tangents
    left, right : where the box ends and they begin
    """
    turn, p, linear, rise = hats[TURN], hats[P], hats[LINEAR], hats[RISE]
    fall, most, left, right = hats[FALL], hats[MOST], hats[LEFT], hats[RIGHT]
    aside, growth, less, more = work[0], work[1], work[2], work[3]
    for i in range(size):
        turn[i] = 1.0 if x[i] <= 0.0 else -1.0
        near = turn[i] * x[i]
        e = elementary.exp(near)
        one = 1.0 / (1.0 + e)
        p[i] = e * one
        yes = y[i] if x[i] <= 0.0 else n[i] - y[i]
        linear[i] = yes - precision * (near - turn[i] * mean[i])
        aside[i] = n[i] * p[i] * one + precision
    for i in range(size):
        aside[i] = ASIDE / math.sqrt(aside[i])
        growth[i] = elementary.exp(aside[i])
    for i in range(size):
        less[i], more[i] = p[i] * (1.0 / growth[i] - 1.0), p[i] * (growth[i] - 1.0)
    for i in range(size):
        far = precision * aside[i]
        rise[i] = linear[i] - n[i] * p[i] / ((1.0 + less[i]) * growth[i]) + far
        left[i] = (rise[i] - linear[i] - 0.5 * far) * aside[i] - n[i] * elementary.log_1p(less[i])
    for i in range(size):
        far = precision * aside[i]
        fall[i] = linear[i] - n[i] * p[i] * growth[i] / (1.0 + more[i]) - far
        right[i] = (linear[i] - fall[i] - 0.5 * far) * aside[i] - n[i] * elementary.log_1p(more[i])
    for i in range(size):
        slope, a, b = linear[i] - n[i] * p[i], left[i], right[i]  # heights of tangents at x
        usable = (rise[i] > max(slope, 0.0)) & (fall[i] < min(slope, 0.0)) & (aside[i] < WIDEST)
        # the middle tangent is nearly flat: a box up to where it is highest will do
        top = slope * (b if slope > 0.0 else a) / (slope - (fall[i] if slope > 0.0 else rise[i]))
        left[i], right[i] = (top - a) / rise[i], (top - b) / fall[i]
        most[i] = top if usable else math.inf


@kernel
def propose(size, n, precision, hats, u, v, step, found, work):
    """Write the step that two uniforms make under each hat, and whether it is one under the density."""
    p, linear, rise = hats[P], hats[LINEAR], hats[RISE]
    fall, most, left, right = hats[FALL], hats[MOST], hats[LEFT], hats[RIGHT]
    depth, width, height = work[0], work[1], work[2]
    for i in range(size):
        to_left, to_right = 1.0 / rise[i], -1.0 / fall[i]
        place = u[i] * (to_left + to_right + (right[i] - left[i]))
        in_left, in_tails = place < to_left, place < to_left + to_right
        share = place * rise[i] if in_left else (to_left - place) * fall[i]
        depth[i] = 1.0 - share if in_tails else 1.0
        near, far = left[i], right[i]
        box = near + (place - to_left - to_right)
        step[i] = near if in_left else far if in_tails else box
        width[i] = to_left if in_left else -to_right if in_tails else 0.0
    for i in range(size):  # of the hat, below the box
        depth[i] = elementary.log(depth[i])
    for i in range(size):
        step[i] += depth[i] * width[i]
        u[i] = p[i] * (elementary.exp(step[i]) - 1.0)
    for i in range(size):
        bent = n[i] * elementary.log_1p(u[i]) + 0.5 * precision * step[i] * step[i]
        height[i] = linear[i] * step[i] - bent - most[i] - depth[i]
    for i in range(size):
        found[i] = v[i] < elementary.exp(height[i])


@kernel
def draw_in_place(count, y, n, mean, precision, x, s0, s1, work):
    """Replace each of the first x by a draw, each from a stream of its own.

    y, n, mean, x : (size,) what is beyond `count` must be numbers
    s0, s1 : (size,) states of the streams
    work : the last part of `make_room`
    """
    numbers, found, at = work
    u, v, step = numbers[0], numbers[1], numbers[2]
    hats, some, other = numbers[3:FIRST], numbers[FIRST : FIRST + N_HATS], numbers[-4:]
    size = -(-count // LANES) * LANES
    climb_in_place(size, y, n, mean, precision, x)
    find_hats(size, y, n, mean, precision, x, hats, other)
    for i in range(count):
        u[i], s0[i], s1[i] = streams.uniform(s0[i], s1[i])
        v[i], s0[i], s1[i] = streams.uniform(s0[i], s1[i])
    propose(size, n, precision, hats, u, v, step, found, other)
    left = 0
    for i in range(count):
        at[left] = i
        left += not found[i]
        x[i] += hats[TURN, i] * step[i] if found[i] else 0.0
    for _ in range(TRIES - 1):
        if left == 0:
            return
        for i in range(left):
            r = at[i]
            u[i], s0[r], s1[r] = streams.uniform(s0[r], s1[r])
            v[i], s0[r], s1[r] = streams.uniform(s0[r], s1[r])
            some[TURN, i] = n[r]
        for p in range(P, N_HATS):
            for i in range(left):
                some[p, i] = hats[p, at[i]]
        again = -(-left // LANES) * LANES
        propose(again, some[TURN], precision, some, u, v, step, found, other)
        tried, left = left, 0
        for i in range(tried):
            r = at[i]
            at[left] = r
            left += not found[i]
            x[r] += hats[TURN, r] * step[i] if found[i] else 0.0
    for i in range(left):
        r = at[i]
        x[r], s0[r], s1[r] = log_concave.draw(y[r], n[r], mean[r], precision, x[r], s0[r], s1[r])
