"""Cells that counts leave to the law, drawn with the mean and covariance of all rows integrated out.

With (mean, cov) ~ NIW(m, r, Psi, nu), row i given the others has a Student law,

    p(psi_i | the others)  in proportion to  (1 + c d' S^-1 d)^(-(nu + n) / 2),     d = psi_i - m',

where m', r', S are the posterior's mean, strength and scale without row i and c = r' / (r' + 1). A row far
from the others and the variance that it alone asks for would follow each other slowly; here the row moves
as if the variance came along. Cells of a row go one after another, by slices with steps out (Neal 2003).

psi                       : (n, k)
successes, trials, chosen : (n, k) counts, and which cells are drawn
"""

import math

import numpy as np

from polystick.kernels import kernel, linalg, streams

MOST_OUT = 8  # steps of a slice
MOST_STEPS = 60
WIDTH = 3.0  # of a step, in standard deviations
STEP = np.uint64(0x9E3779B97F4A7C15)  # between the keys of passes
LEAST = (
    1e-6  # of what is left when a row is taken out: below, its place in S is not known well enough
)


@kernel(forceinline=True)
def _height(gap, x, y, t, shape, form):
    """Return the log density of a cell at x + gap, where the form is q + (2 slope + bend gap) gap."""
    q, slope, bend = form
    x += gap
    bound = t * (max(x, 0.0) + math.log(1.0 + math.exp(-abs(x))))
    return y * x - bound - shape * math.log(1.0 + q + (2.0 * slope + bend * gap) * gap)


@kernel(inline="always")
def draw(x, y, t, shape, form, s0, s1):
    """Return a step from x by a slice, and the new state of the stream.

    y, t : of t trials y are successes
    form : q, half the slope and the bend at x of the quadratic form, which the power -shape of 1 + form has
    """
    q, slope, bend = form
    whole = 1.0 + max(q - slope * slope / bend, 0.0)
    # the width must not depend on x, or slices that end before the density does lean to the steep side
    told = (y + 0.5) * (t - y + 0.5) / (t + 1.0) if t > 0.0 else 0.0
    width = WIDTH / math.sqrt(2.0 * shape * bend / whole + told)
    fall, s0, s1 = streams.exponential(s0, s1)
    floor = _height(0.0, x, y, t, shape, form) - fall
    u, s0, s1 = streams.uniform(s0, s1)
    low, high = -u * width, (1.0 - u) * width
    u, s0, s1 = streams.uniform(s0, s1)
    out = int(MOST_OUT * u)
    for _ in range(out):
        if not _height(low, x, y, t, shape, form) > floor:
            break
        low -= width
    for _ in range(MOST_OUT - 1 - out):
        if not _height(high, x, y, t, shape, form) > floor:
            break
        high += width
    for _ in range(MOST_STEPS):
        u, s0, s1 = streams.uniform(s0, s1)
        gap = low + u * (high - low)
        if _height(gap, x, y, t, shape, form) > floor:
            return gap, s0, s1
        if gap < 0.0:
            low = gap
        else:
            high = gap
    return 0.0, s0, s1


@kernel(forceinline=True)
def _add_square_in_place(matrix, x, factor):
    """Add factor x x'."""
    for p in range(x.shape[0]):
        linalg.add_multiple_in_place(matrix[p], factor * x[p], x)


@kernel(inline="always")
def _multiply(matrix, x, product):
    """Write matrix x, the matrix symmetric; return x' matrix x."""
    product[:] = 0.0
    for p in range(x.shape[0]):
        linalg.add_multiple_in_place(product, x[p], matrix[p])
    square = 0.0
    for p in range(x.shape[0]):
        square += x[p] * product[p]
    return square


@kernel
def redraw_in_place(key, rows, counts, n_passes, law, inverse, psi):
    """Redraw the chosen cells of each row in turn, some times.

    key : uint64
    rows : (n,) uint64 ids
    counts : successes, trials and chosen
    law : mean (k,), strength and degrees of the posterior given all rows; the mean in and out
    inverse : (k, k) of its scale; in and out
    psi : in and out
    """
    n, k = psi.shape
    gap, weight, has_some = np.empty(k), np.empty(k), np.zeros(n, np.bool_)
    for i in range(n):
        for j in range(k):
            has_some[i] |= counts[2][i, j]
    for number in range(n_passes):
        own = key ^ (np.uint64(number) * STEP)
        for i in range(n):
            if has_some[i]:
                _redraw_row_in_place(own, rows[i], i, counts, law, inverse, psi, gap, weight)


@kernel(inline="always")
def _redraw_row_in_place(key, row, i, counts, law, inverse, psi, gap, weight):
    """Take row i out of the law, redraw its chosen cells, and put it back.

    gap, weight : (k,) to work in
    """
    (successes, trials, chosen), (mean, strength, degrees) = counts, law
    k, others = psi.shape[1], strength - 1.0
    share, shape = others / strength, 0.5 * degrees
    for j in range(k):
        gap[j] = (psi[i, j] - mean[j]) / share  # from the mean of the others
    square = _multiply(inverse, gap, weight)
    left = 1.0 - share * square
    if left > LEAST:
        _add_square_in_place(inverse, weight, share / left)
        square /= left
        for j in range(k):
            weight[j] /= left
        s0, s1 = streams.open_stream(key, row)
        for j in range(k):
            if chosen[i, j]:
                y, t, bend = float(successes[i, j]), float(trials[i, j]), inverse[j, j]
                form = share * square, share * weight[j], share * bend
                step, s0, s1 = draw(psi[i, j], y, t, shape, form, s0, s1)
                square += (2.0 * weight[j] + bend * step) * step
                psi[i, j] += step
                mean[j] += step / strength
                linalg.add_multiple_in_place(weight, step, inverse[j])
        _add_square_in_place(inverse, weight, -share / (1.0 + share * square))
