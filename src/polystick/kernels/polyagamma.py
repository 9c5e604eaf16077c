"""Exact draws of PG(b, z) for whole b: the hot path of every Gibbs sweep.

=================  ==========  ===============================================================
b                  abs z       method
=================  ==========  ===============================================================
b <= 0             any         0
b = 1              below 8     128 strips of equal area over PG(1, z'), z' = z rounded down to 1/8;
                               the tilt from z' to z is part of the acceptance test
2 ... 31           below 8     a polynomial in a normal, corrected; coefficients by (b, z)
32 and more        below 24    the same, coefficients from an expansion in powers of b^(-1/2)
1 and more         the rest    inverse-Gaussian proposals, accepted by an alternating series
=================  ==========  ===============================================================

The polynomial T is close to the map that takes a normal n, |n| <= 4, to a PG draw. With g the
density of T(n) on the scale of the untruncated normal, the ratio f / g lies between `low` and
`high`, both close to 1, for each z. So the law is a mixture: with probability low P(|n| <= 4) the
draw T(n) is taken outright, otherwise the residual f - low g is drawn by rejection
(`draw_residual`). Exactness rests on those bounds and on bounds of the tails. They are checked
numerically on a fine grid and shipped with a margin of 1.5 times the distance to 1; they are not
proved. The hats of the strips and of the inverse Gaussian are proved.

Tables are frozen globals, which Numba reads as fast as raw pointers, and are made by
`tools/make_polyagamma_tables.py`.
"""

import math
from pathlib import Path

import numpy as np

from polystick.kernels import kernel
from polystick.kernels.polyagamma_density import log_density
from polystick.kernels.streams import (
    exponential,
    next_bits,
    normal,
    open_stream,
    to_unit,
    uniform,
)

with np.load(Path(__file__).with_name("polyagamma_tables.npz"), allow_pickle=False) as _tables:
    STRIPS = _tables["strips"]  # (64 z, 128 strips, [left, width, squeeze, log hat])
    POLYNOMIALS = _tables["polynomials"]  # (32 b, 64 z, 12)
    EXPANSIONS = _tables["expansions"]  # (192 z, 24)
    LOW_RATIO = _tables["low_ratio"]  # (32 b); entry 0 is for every b >= 32
    HIGH_RATIO = _tables["high_ratio"]

CELLS = 8.0  # per unit of z
FIRST_EXPANSION = 32
MAX_Z = len(POLYNOMIALS[0]) / CELLS
MAX_Z_EXPANSION = len(EXPANSIONS) / CELLS
CERTAIN_Z = (
    1e40  # from here on PG(b, z) has a standard deviation below the rounding error of its mean
)
EDGE = 4.0
INSIDE = math.erf(EDGE / math.sqrt(2.0))
EDGE_DENSITY = math.exp(-0.5 * EDGE * EDGE) / math.sqrt(2.0 * math.pi)
LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
TAIL_SLOPE = 0.75  # log f falls beyond T(+-EDGE) at least this fraction as fast as log g
TAIL_HEIGHT = 1.05  # f <= TAIL_HEIGHT * g at T(+-EDGE)
TAIL_MASS = TAIL_HEIGHT * EDGE_DENSITY / (TAIL_SLOPE * EDGE)
OUTRIGHT = np.array([int(INSIDE * low * 2.0**64) for low in LOW_RATIO], dtype=np.uint64)
TAIL_STRIP = np.uint64(STRIPS.shape[1] - 1)


@kernel(forceinline=True)
def log_density_one(x):
    """Return log f(x | 1, 0) from Jacobi's two theta series, each where it converges at once."""
    y = 4.0 * x
    if y > 0.64:
        q = math.exp(-math.pi * math.pi * y)
        series = 1.0 - 3.0 * q + 5.0 * q * q * q
        return math.log(2.0 * math.pi * series) - math.pi * math.pi * y * 0.125
    q = math.exp(-4.0 / y)
    q3 = q * q * q
    series = 1.0 - 3.0 * q + 5.0 * q3 - 7.0 * q3 * q3
    return math.log(2.0 * math.pi * series) - 0.5 / y + 1.5 * math.log(2.0 / (math.pi * y))


@kernel(inline="always")
def draw_one(z, s0, s1):
    """Draw PG(1, z) for 0 <= z < 8: pick a strip, pick x in it, accept with f / hat."""
    cell = np.int64(z * CELLS)
    start = np.float64(cell) / CELLS
    tilt = 0.5 * (z * z - start * start)
    row = np.uint64(cell)
    while True:
        bits, s0, s1 = next_bits(s0, s1)
        v, s0, s1 = uniform(s0, s1)
        strip = bits & TAIL_STRIP
        u, v = to_unit(bits), 1.0 - v
        left, width = STRIPS[row, strip, 0], STRIPS[row, strip, 1]
        if strip != TAIL_STRIP:
            x = left + u * width
            y = tilt * x
            if v < STRIPS[row, strip, 2] * (1.0 - y):  # 1 - y <= exp(-y)
                return x, s0, s1
            if v > 1.0 - y + 0.5 * y * y:  # >= exp(-y)
                continue
            if math.log(v) + STRIPS[row, strip, 3] <= log_density_one(x) - 0.5 * z * z * x:
                return x, s0, s1
        else:
            e = -math.log(1.0 - u)
            x = left + e * width
            if math.log(v) + STRIPS[row, strip, 3] - e <= log_density_one(x) - 0.5 * z * z * x:
                return x, s0, s1


@kernel(inline="always")
def look_up(b, z):
    """Return the six coefficients of T for 2 <= b < 32 and 0 <= z < 8."""
    scaled = z * CELLS
    cell = np.int64(scaled)
    t = scaled - np.float64(cell)
    i, j = np.uint64(b), np.uint64(cell)
    c0 = POLYNOMIALS[i, j, 0] + t * (POLYNOMIALS[i, j, 1] + t * POLYNOMIALS[i, j, 2])
    c1 = POLYNOMIALS[i, j, 3] + t * (POLYNOMIALS[i, j, 4] + t * POLYNOMIALS[i, j, 5])
    c2 = POLYNOMIALS[i, j, 6] + t * POLYNOMIALS[i, j, 7]
    c3 = POLYNOMIALS[i, j, 8] + t * POLYNOMIALS[i, j, 9]
    return c0, c1, c2, c3, POLYNOMIALS[i, j, 10], POLYNOMIALS[i, j, 11]


@kernel(inline="always")
def expand(b, z):
    """Return the six coefficients of T for a float b >= 32 and 0 <= z < 24.

    c_k is a polynomial in r = b^(-1/2) whose coefficients are polynomials in z within a cell.
    """
    r = 1.0 / math.sqrt(b)
    r2 = r * r
    scaled = z * CELLS
    cell = np.int64(scaled)
    t = scaled - np.float64(cell)
    t2 = t * t
    j = np.uint64(cell)
    mean = (EXPANSIONS[j, 0] + t * EXPANSIONS[j, 1]) + t2 * (
        (EXPANSIONS[j, 2] + t * EXPANSIONS[j, 3]) + t2 * (EXPANSIONS[j, 4] + t * EXPANSIONS[j, 5])
    )
    deviation = (EXPANSIONS[j, 6] + t * EXPANSIONS[j, 7]) + t2 * (
        EXPANSIONS[j, 8] + t * EXPANSIONS[j, 9]
    )
    c0 = b * mean + (EXPANSIONS[j, 10] + t * EXPANSIONS[j, 11])
    c1 = r * (b * deviation + (EXPANSIONS[j, 12] + t * EXPANSIONS[j, 13]))
    c2 = EXPANSIONS[j, 14] + t * (EXPANSIONS[j, 15] + t * EXPANSIONS[j, 16])
    c2 += r2 * EXPANSIONS[j, 17]
    c3 = r * (EXPANSIONS[j, 18] + t * EXPANSIONS[j, 19] + r2 * EXPANSIONS[j, 20])
    c4 = r2 * (EXPANSIONS[j, 21] + t * EXPANSIONS[j, 22])
    return c0, c1, c2, c3, c4, r * r2 * EXPANSIONS[j, 23]


@kernel(inline="always")
def evaluate(n, c):
    """Return T(n)."""
    n2 = n * n
    return (c[0] + n * c[1]) + n2 * ((c[2] + n * c[3]) + n2 * (c[4] + n * c[5]))


@kernel(inline="always")
def differentiate(n, c):
    """Return T'(n)."""
    return c[1] + n * (2.0 * c[2] + n * (3.0 * c[3] + n * (4.0 * c[4] + n * 5.0 * c[5])))


@kernel(inline="always")
def normal_inside(s0, s1):
    """Draw a standard normal truncated to [-EDGE, EDGE]."""
    while True:
        n, s0, s1 = normal(s0, s1)
        if abs(n) <= EDGE:
            return n, s0, s1


@kernel(inline="always")
def try_inside(b, z, c, low, high, s0, s1):
    """Propose T(n) and accept with (f / g - low) / (high - low)."""
    n, s0, s1 = normal_inside(s0, s1)
    u, s0, s1 = uniform(s0, s1)
    x = evaluate(n, c)
    ratio = math.exp(log_density(x, b, z) + 0.5 * n * n + LOG_ROOT_2PI) * differentiate(n, c)
    return x, u * (high - low) < ratio - low, s0, s1


@kernel
def try_tail(b, z, c, edge, s0, s1):
    """Propose an exponential step beyond T(edge) and accept with f / hat; log f is concave."""
    e, s0, s1 = exponential(s0, s1)
    u, s0, s1 = uniform(s0, s1)
    slope = differentiate(edge, c)
    x = evaluate(edge, c) + e * slope / (TAIL_SLOPE * edge)
    if x <= 0.0:
        return x, False, s0, s1
    hat = TAIL_HEIGHT * EDGE_DENSITY / slope * math.exp(-e)
    return x, u * hat < math.exp(log_density(x, b, z)), s0, s1


@kernel
def draw_residual(b, z, c, low, high, s0, s1):
    """Draw from the residual f - low g, with f itself outside [T(-EDGE), T(EDGE)]."""
    inside = (high - low) * INSIDE
    while True:
        u, s0, s1 = uniform(s0, s1)
        place = u * (inside + 2.0 * TAIL_MASS)
        if place < inside:
            x, accepted, s0, s1 = try_inside(b, z, c, low, high, s0, s1)
        elif place < inside + TAIL_MASS:
            x, accepted, s0, s1 = try_tail(b, z, c, EDGE, s0, s1)
        else:
            x, accepted, s0, s1 = try_tail(b, z, c, -EDGE, s0, s1)
        if accepted:
            return x, s0, s1


@kernel(inline="always")
def accept_series(x, b, u):
    """Tell whether u < sum of the alternating series of f / (first term of f).

    Once the terms decrease they go on doing so, and partial sums then bracket the limit.
    """
    ratio = math.exp(-1.0 / x)
    power = math.exp(-0.5 * (b + 1.0) / x)
    decay = power
    rising = previous = total = 1.0
    sign = -1.0
    k = 0.0
    while True:
        k += 1.0
        rising *= (k - 1.0 + b) / k
        term = rising * (2.0 * k + b) / b * decay
        total += sign * term
        if term <= previous and (u < total) == (sign < 0.0):
            return sign < 0.0
        if term < 1e-18:
            return u < total
        sign = -sign
        previous = term
        power *= ratio
        decay *= power


@kernel
def draw_large_z(b, z, s0, s1):
    """Draw PG(b, z) from inverse-Gaussian proposals, accepted with probability (1 + exp(-z))^-b."""
    mean = 0.5 * b / z
    if not z < CERTAIN_Z:
        return mean, s0, s1
    scale = 2.0 * mean / (b * b)  # mean / (2 shape)
    while True:
        n, s0, s1 = normal(s0, s1)
        u, s0, s1 = uniform(s0, s1)
        v, s0, s1 = uniform(s0, s1)
        w = scale * n * n
        t = 1.0 / (1.0 + w + math.sqrt(w * (2.0 + w)))
        x = mean * t if u * (1.0 + t) <= 1.0 else mean / t
        y = 0.5 * (b + 1.0) / x
        cubic = 1.0 / 6.0 + y * (1.0 / 24.0 + y * (1.0 / 120.0 + y / 720.0))
        # the second term of the series is (b + 2) exp(-y), and this Taylor sum is below exp(y)
        if (1.0 - v) * (1.0 + y * (1.0 + y * (0.5 + y * cubic))) > b + 2.0:
            return x, s0, s1
        if accept_series(x, b, v):
            return x, s0, s1


@kernel(inline="always")
def draw(b, z, s0, s1):
    """Draw PG(b, z) for a whole b and any real z, inf and NaN included."""
    z = abs(z)
    size = np.float64(b)
    if b < FIRST_EXPANSION:
        if b <= 0:
            return 0.0, s0, s1
        if not z < MAX_Z:
            return draw_large_z(size, z, s0, s1)
        if b == 1:
            return draw_one(z, s0, s1)
        c = look_up(b, z)
        entry = np.uint64(b)
    else:
        if not z < MAX_Z_EXPANSION:
            return draw_large_z(size, z, s0, s1)
        c = expand(size, z)
        entry = np.uint64(0)
    bits, s0, s1 = next_bits(s0, s1)
    if bits < OUTRIGHT[entry]:
        n, s0, s1 = normal_inside(s0, s1)
        return evaluate(n, c), s0, s1
    return draw_residual(size, z, c, LOW_RATIO[entry], HIGH_RATIO[entry], s0, s1)


@kernel
def draw_ragged(key, rows, starts, b, z, out):
    """Write into out[starts[i] : starts[i + 1]] draws from the stream of rows[i], left to right.

    key    : uint64
    rows   : (n,) uint64 ids
    starts : (n + 1,) int64
    b      : flat int64
    z      : flat float64
    out    : flat float64
    """
    for i in range(rows.shape[0]):
        s0, s1 = open_stream(key, rows[i])
        for j in range(starts[i], starts[i + 1]):
            out[j], s0, s1 = draw(b[j], z[j], s0, s1)
