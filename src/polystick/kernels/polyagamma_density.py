"""The density and the distribution function of PG(b, z), for real b >= 1.

The Laplace transform of PG(b, z) is cosh^b(z/2) / cosh^b(v) with 4 v^2 = w = z^2 + 2 s. Its
singularities lie at w = -pi^2, -9 pi^2, ..., so with w = 4 q^2 - pi^2 the inversion integral may
run along the vertical line Re q = q0, where the integrand falls like a Gaussian. A line through the
saddle point and the midpoint rule give 13 digits or more with 20 to 50 nodes, for every x > 0 and
z, in both tails, and lose one for each tenfold b beyond 100. (Weideman and Trefethen 2007 explain
why such parabolas in s are good contours.)

For small x the alternating series of Polson, Scott and Windle (2013) is faster; see `log_density`.
"""

import cmath
import math

from polystick.kernels import kernel

LOG_2 = math.log(2.0)
LOG_ROOT_8PI = 0.5 * math.log(8.0 * math.pi)
PI_SQUARED = math.pi**2
NEGLIGIBLE = -38.0  # log of a node's size, relative to the largest, at which a sum stops
MAX_TERMS = 1000
CERTAIN_RATIO = 1e-30  # a PG(b, z) with a mean below this fraction of b is constant up to rounding


@kernel
def cumulants(w):
    """Return mean and variance of PG(1, sqrt(w)), continued analytically to w > -pi^2.

    Good to about eight digits, which is enough to place a contour.
    """
    if abs(w) < 1e-3:
        return 0.25 - w / 48.0, 1.0 / 24.0 - w / 120.0
    root = math.sqrt(abs(w))
    if w > 0.0:
        t = math.tanh(0.5 * root)
        return 0.5 * t / root, (0.5 * t / root - 0.25 * (1.0 - t * t)) / w
    t = math.tan(0.5 * root)
    return 0.5 * t / root, (0.5 * t / root - 0.25 * (1.0 + t * t)) / w


@kernel
def find_saddle(y):
    """Return q0 with PG(1, sqrt(4 q0^2 - pi^2)) having mean close to y, and the variance there.

    Newton's method in log-log scale, where the mean is nearly a straight line. The contour may
    cross the axis near the saddle instead of on it, so a fixed number of steps will do.
    """
    p = 2.0 / y + 0.25 / (y * y)
    for _ in range(4):
        mean, variance = cumulants(p - PI_SQUARED)
        p *= math.exp(2.0 * mean / (variance * p) * math.log(mean / y))
    mean, variance = cumulants(p - PI_SQUARED)
    return 0.5 * math.sqrt(p), variance


@kernel(inline="always")
def choose_step(b, q0, variance):
    """Return a step that keeps the error of the midpoint rule near rounding.

    In standard deviations of the integrand 0.6 is short enough for a Gaussian. For small b the pole
    at q = 0 comes close and asks for less.
    """
    return min(0.34 + 0.02 * b, 0.6) / (4.0 * q0 * math.sqrt(b * variance))


@kernel(forceinline=True)
def root_and_log(q):
    """Return v, with 4 v^2 = 4 q^2 - pi^2 and Re v >= 0, and log(2 cosh v) - v."""
    v = cmath.sqrt(q * q - 0.25 * PI_SQUARED)
    return v, cmath.log(1.0 + cmath.exp(-2.0 * v))


@kernel
def log_tilt(x, b, z, q0):
    """Return log(cosh^b(z/2) / cosh^b(v) exp(s x)) on the real axis, at q0."""
    w = 4.0 * q0 * q0 - PI_SQUARED
    half = 0.5 * z
    if w > 0.0:  # the difference of two large numbers, without forming them
        v = 0.5 * math.sqrt(w)
        tail = math.log1p(math.exp(-z)) - math.log1p(math.exp(-2.0 * v))
        return (half - v) * (b - 2.0 * x * (half + v)) + b * tail
    log_cos = math.log(math.cos(0.5 * math.sqrt(-w)))
    return b * (half + math.log1p(math.exp(-z)) - LOG_2 - log_cos) - 0.5 * (z * z - w) * x


@kernel(inline="always")
def log_integrand(height, q0, v0, log0, x, b):
    """Return q at this height of the line and the exponent there, relative to the exponent at q0.

    v - v0 is written as (q - q0) (q + q0) / (v + v0), so that b and z may be large.
    """
    q = complex(q0, height)
    v, log = root_and_log(q)
    along = complex(0.0, height) * (q + q0)
    return q, along * (2.0 * x - b / (v + v0)) - b * (log - log0)


@kernel(inline="always")
def log_density_contour(x, b, z):
    """Return log f(x | b, z) by numerical inversion; x > 0, b >= 1, z >= 0."""
    q0, variance = find_saddle(x / b)
    step = choose_step(b, q0, variance)
    v0, log0 = root_and_log(complex(q0, 0.0))
    total = 0.0
    for k in range(MAX_TERMS):
        q, e = log_integrand((k + 0.5) * step, q0, v0, log0, x, b)
        if e.real < NEGLIGIBLE:
            break
        total += (4.0 * q * cmath.exp(e)).real
    return log_tilt(x, b, z, q0) + math.log(total * step / math.pi)


@kernel(inline="always")
def log_density_series(x, b, z):
    """Return log f(x | b, z) by the alternating series, whose terms cancel when x is large."""
    ratio = math.exp(-1.0 / x)
    power = math.exp(-0.5 * (1.0 + b) / x)
    decay = power
    rising = 1.0
    total = 1.0
    sign = -1.0
    for n in range(1, MAX_TERMS):
        rising *= (n - 1.0 + b) / n
        term = rising * (2.0 * n + b) / b * decay
        total += sign * term
        if term < 1e-17:
            break
        sign = -sign
        power *= ratio
        decay *= power
    away = z * x - 0.5 * b
    head = b * math.log1p(math.exp(-z)) + math.log(b) - LOG_ROOT_8PI - 1.5 * math.log(x)
    return head - 0.5 * away * away / x + math.log(total)


@kernel
def log_density(x, b, z):
    """Return log f(x | b, z) for 0 < x < inf, b >= 1 and 0 <= z < inf.

    The series is used where it loses at most six of sixteen digits (b <= 20) or has a single term.
    """
    if (b <= 20.0 and x < 0.4 * b + 3.0 / b) or 0.5 * (1.0 + b) / x > 40.0 + math.log(2.0 + b):
        return log_density_series(x, b, z)
    return log_density_contour(x, b, z)


@kernel(inline="always")
def probability_below(x, b, z):
    """Return F(x | b, z) for 0 < x < inf, b >= 1 and 0 <= z < inf.

    The integrand has one more pole, at s = 0. The midpoint rule on a line at distance d to its
    right misses the part 1 / (1 + exp(2 pi d / step)) of its residue, so this is added.
    """
    if x < CERTAIN_RATIO * b:
        return 1.0 if 2.0 * x * z > b else 0.0
    q0, variance = find_saddle(x / b)
    tilt = log_tilt(x, b, z, q0)
    step = choose_step(b, q0, variance)
    pole = 0.5 * math.sqrt(z * z + PI_SQUARED)
    v0, log0 = root_and_log(complex(q0, 0.0))
    total = 0.0
    for k in range(MAX_TERMS):
        q, e = log_integrand((k + 0.5) * step, q0, v0, log0, x, b)
        if e.real < NEGLIGIBLE:
            break
        total += (2.0 * q / ((q - pole) * (q + pole)) * cmath.exp(e)).real
    missed = 0.5 * (1.0 - math.tanh(math.pi * (q0 - pole) / step))
    return min(max(math.exp(tilt) * total * step / math.pi + missed, 0.0), 1.0)


@kernel
def fill_log_density(x, b, z, out):
    """Write log f(x[i] | b[i], z[i]); (n,) float64 arrays in the domain of `log_density`."""
    for i in range(out.shape[0]):
        out[i] = log_density(x[i], b[i], z[i])


@kernel
def fill_probability(x, b, z, out):
    """Write F(x[i] | b[i], z[i]); (n,) float64 arrays in the domain of `probability_below`."""
    for i in range(out.shape[0]):
        out[i] = probability_below(x[i], b[i], z[i])
