"""Gammas and what is made of them: unnormalised topics, Dirichlet rows.

`gamma` is exact: Marsaglia and Tsang (2000) from shape 1 on, boosted by a power of a uniform below.

Most entries of the topics have no token and so the law Gamma(a) with a small a. For a from 1e-3 to
1/2 they are drawn by inversion, in float32 and without branches. With C = Gamma(a + 1),

    F(x) = x^a (1 + a R(x)) / C,    R(x) = sum over k >= 1 of (-x)^k / (k! (a + k)),

so that F(x) = u is x (1 + a R(x))^(1/a) = y with y = (u C)^(1/a). Its solution is x = y p(y) with p
smooth, p(0) = 1 and the nearest singularity at u = 1. Up to x = 1 a polynomial of degree 10 at
Chebyshev's points puts F(x) within 2e-7 of u; the 24 bits of u and float32 add about as much. The
rare draw beyond 1 is made anew, by exact rejection. Over the grid of u the law is off by at most
2.5e-7 in F (measured for seven a), for which a Kolmogorov-Smirnov test needs about 1e12 draws. Draws
do repeat: u takes 2^24 values.
"""

import math

import numpy as np

from polystick.kernels import kernel
from polystick.kernels.streams import exponential, next_bits, normal, open_stream, uniform

SMALLEST = float(np.finfo(np.float64).tiny)
SMALLEST_SHORT = np.float32(np.finfo(np.float32).tiny)
LEAST_INVERTED, MOST_INVERTED = 1e-3, 0.5  # concentrations that are drawn by inversion
N_NODES = 11
UNIT = np.float32(2.0**-24)
HALF = np.float32(0.5)
ZERO, ONE = np.float32(0.0), np.float32(1.0)
FLAT = np.float32(
    2.0**-40
)  # p is constant below it; smaller arguments make subnormals, which are slow
LOW_BITS = np.uint64(0xFFFFFF)
LOWEST = np.float32(-126.0)


def _interpolate(function, degree, low, high):
    """Return the coefficients of a polynomial, the highest first, as float32."""
    fit = np.polynomial.Chebyshev.interpolate(function, degree, [low, high])
    return fit.convert(kind=np.polynomial.Polynomial).coef[::-1].astype(np.float32)


# log2(1 + m) / m for 1 + m from sqrt(1/2) to sqrt(2), and 2^f for f from -1 to 0
LOG2 = _interpolate(lambda m: np.log2(1.0 + m) / m, 9, math.sqrt(0.5) - 1.0, math.sqrt(2.0) - 1.0)
EXP2 = _interpolate(np.exp2, 6, -1.0, 0.0)
ROOT_HALF_BITS = np.int32(0x3F3504F3)
MANTISSA = np.int32(23)
BIAS = np.int32(127)


@kernel(forceinline=True)
def _gamma_from(d, c, s0, s1):
    """Draw Gamma(d + 1/3) with c = 1 / sqrt(9 d), d >= 2/3."""
    while True:
        x, s0, s1 = normal(s0, s1)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u, s0, s1 = uniform(s0, s1)
        x2 = x * x
        if u > 0.0331 * x2 * x2:
            return d * v, s0, s1
        if math.log(1.0 - u) < 0.5 * x2 + d * (1.0 - v + math.log(v)):
            return d * v, s0, s1


@kernel(inline="always")
def gamma(shape, s0, s1):
    """Draw Gamma(shape) for any shape > 0; a draw that underflows is the smallest normal number."""
    if shape >= 1.0:
        d = shape - 1.0 / 3.0
        return _gamma_from(d, 1.0 / math.sqrt(9.0 * d), s0, s1)
    x, s0, s1 = log_gamma(shape, s0, s1)
    return max(math.exp(x), SMALLEST), s0, s1


@kernel
def log_gamma(shape, s0, s1):
    """Draw the logarithm of Gamma(shape) for any shape > 0."""
    boosted = shape if shape >= 1.0 else shape + 1.0
    d = boosted - 1.0 / 3.0
    x, s0, s1 = _gamma_from(d, 1.0 / math.sqrt(9.0 * d), s0, s1)
    if shape >= 1.0:
        return math.log(x), s0, s1
    e, s0, s1 = exponential(s0, s1)
    return math.log(x) - min(e / shape, 1e300), s0, s1


@kernel(inline="always")
def _log2(x):
    """Return log2 of a normal float32 in (0, 1], to about 1e-7."""
    bits = np.float32(x).view(np.int32)
    exponent = np.int32(np.int32(bits - ROOT_HALF_BITS) >> MANTISSA)
    m = np.int32(bits - np.int32(exponent << MANTISSA)).view(np.float32) - ONE
    p = LOG2[0]
    for k in range(1, LOG2.shape[0]):
        p = p * m + LOG2[k]
    return np.float32(exponent) + p * m


@kernel(inline="always")
def _exp2(x):
    """Return 2^x of a float32 in [-126, 0], to about 1e-7 of it."""
    whole = np.int32(x)
    f = x - np.float32(whole)
    p = EXP2[0]
    for k in range(1, EXP2.shape[0]):
        p = p * f + EXP2[k]
    return p * np.float32(np.int32(np.int32(whole + BIAS) << MANTISSA).view(np.float32))


@kernel
def _series(a, x):
    """Return R of F(x) = x^a (1 + a R) / Gamma(a + 1), the law Gamma(a), for x <= 1."""
    total, power = 0.0, 1.0
    for k in range(1, 20):
        power *= -x / k
        total += power / (a + k)
    return total


@kernel(inline="always")
def _solve(a, y):
    """Return x <= 1 of x (1 + a R(x))^(1/a) = y, by Newton's method on logarithms."""
    x = y
    for _ in range(20):
        r = _series(a, x)
        step = (math.log(x / y) + math.log1p(a * r) / a) * math.exp(x) * (1.0 + a * r)
        x *= math.exp(-step)
        if abs(step) < 1e-14:
            break
    return x


@kernel(inline="always")
def fit_inverse(a, coefficients):
    """Write the coefficients, the highest first, of p with x = y p(y) for x <= 1 under Gamma(a).

    coefficients : (degree + 1,) float32 out
    """
    n = coefficients.shape[0]
    end = math.exp(math.log1p(a * _series(a, 1.0)) / a)
    nodes, values = np.empty(n), np.empty(n)
    for j in range(n):
        nodes[j] = 0.5 * end * (1.0 - math.cos(math.pi * (j + 0.5) / n))
        values[j] = _solve(a, nodes[j]) / nodes[j]
    for order in range(1, n):
        for j in range(n - 1, order - 1, -1):
            values[j] = (values[j] - values[j - 1]) / (nodes[j] - nodes[j - order])
    for last in range(n - 2, -1, -1):  # from Newton's form to powers of y
        for j in range(last, n - 1):
            values[j] -= nodes[last] * values[j + 1]
    for j in range(n):
        coefficients[j] = values[n - 1 - j]


@kernel(inline="always")
def _gamma_beyond_one(a, s0, s1):
    """Draw Gamma(a), a <= 1, given that it is above 1: x^(a - 1) exp(-x) is below exp(-x)."""
    while True:
        e, s0, s1 = exponential(s0, s1)
        u, s0, s1 = uniform(s0, s1)
        x = 1.0 + e
        if u * x < math.pow(x, a):
            return x, s0, s1


@kernel(inline="always")
def _fill_uniforms(out, s0, s1):
    """Write float32 uniforms on (0, 1], two from each 64 bits; the size is even."""
    for t in range(0, out.shape[0], 2):
        bits, s0, s1 = next_bits(s0, s1)
        out[t] = (np.float32(np.int32(bits >> np.uint64(40))) + HALF) * UNIT
        out[t + 1] = (np.float32(np.int32((bits >> np.uint64(8)) & LOW_BITS)) + HALF) * UNIT
    return s0, s1


@kernel(inline="always")
def _invert_row(u, log2_c, slope, polynomial, topics, i):
    """Write x of F(x) = u[t] where x <= 1, and anything finite elsewhere; slope is 1 / a."""
    for t in range(u.shape[0]):
        y = _exp2(max((_log2(u[t]) + log2_c) * slope, LOWEST))
        z = max(y, FLAT)
        p = polynomial[0]
        for k in range(1, N_NODES):
            p = p * z + polynomial[k]
        topics[i, t] = p * y


@kernel(inline="always")
def _draw_entry(count, concentration, inverted, s0, s1):
    """Draw Gamma(count + concentration), given that it is above 1 if an inverted entry has no count."""
    shape = count + concentration
    if count > 0:
        d = shape - 1.0 / 3.0
        return _gamma_from(d, 1.0 / math.sqrt(9.0 * d), s0, s1)
    if inverted:
        return _gamma_beyond_one(shape, s0, s1)
    return gamma(shape, s0, s1)


@kernel
def draw_topics(key, first, counts, concentration, topics, sums):
    """Write Gamma(counts + concentration) for a block of words, from the stream of first + i.

    A draw below the smallest normal float32 is raised to it (to 1e-5), so that no entry is 0.

    key           : uint64
    first         : int64, the id of the first word
    counts        : (m, Tp) int32, Tp even
    concentration : float64, any positive number
    topics        : (m, Tp) float32 out; 0 in the padding
    sums          : (T,) float64 out: the sums over the block
    """
    size, n_topics = counts.shape[1], sums.shape[0]
    inverted = concentration >= LEAST_INVERTED and concentration <= MOST_INVERTED
    a = concentration if inverted else MOST_INVERTED
    log_c = math.lgamma(a + 1.0)
    log2_c, slope = np.float32(log_c / math.log(2.0)), np.float32(1.0 / a)
    below_one = (1.0 + a * _series(a, 1.0)) * math.exp(-log_c)
    edge = np.float32(below_one if inverted else 0.0)
    polynomial = np.empty(N_NODES, np.float32)
    fit_inverse(a, polynomial)
    u, left = np.ones(size, np.float32), np.empty(size, np.int64)
    for t in range(n_topics):
        sums[t] = 0.0
    for i in range(counts.shape[0]):
        s0, s1 = open_stream(key, np.uint64(first + i))
        if inverted:
            s0, s1 = _fill_uniforms(u, s0, s1)
            _invert_row(u, log2_c, slope, polynomial, topics, i)
        n_left = 0
        for t in range(n_topics):  # no branch: the processor would guess it wrong too often
            left[n_left] = t
            n_left += counts[i, t] > 0 or u[t] > edge
        for j in range(n_left):
            t = left[j]
            x, s0, s1 = _draw_entry(counts[i, t], concentration, inverted, s0, s1)
            topics[i, t] = x
        for t in range(n_topics):
            topics[i, t] = max(topics[i, t], SMALLEST_SHORT)
            sums[t] += topics[i, t]
        for t in range(n_topics, size):
            topics[i, t] = ZERO


@kernel
def draw_dirichlet_rows(key, rows, concentration, out):
    """Write a Dirichlet draw for each row, from the stream of rows[i]; safe for tiny shapes.

    key           : uint64
    rows          : (n,) uint64 ids
    concentration : (n, T) float64
    out           : (n, T) float64 out
    """
    n, size = concentration.shape
    for i in range(n):
        s0, s1 = open_stream(key, rows[i])
        top = -math.inf
        for t in range(size):
            out[i, t], s0, s1 = log_gamma(concentration[i, t], s0, s1)
            top = max(top, out[i, t])
        total = 0.0
        for t in range(size):
            out[i, t] = math.exp(out[i, t] - top)
            total += out[i, t]
        for t in range(size):
            out[i, t] /= total
