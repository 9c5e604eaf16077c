"""Digamma and log-gamma of whole tables, several times faster than element by element in SciPy."""

import math

from polystick.kernels import kernel

LARGE = 8.0  # from here on the asymptotic series have full precision
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@kernel(inline="always")
def _raise(x):
    """Return x moved up to LARGE, the product of the factors passed, and the sum of their reciprocals."""
    product, slope = 1.0, 0.0
    while x < LARGE:
        slope = slope * x + product
        product *= x
        x += 1.0
    return x, product, slope / product


@kernel(inline="always")
def _digamma_large(x):
    r = 1.0 / x
    s = r * r
    series = 1.0 / 240.0 - s * (1.0 / 132.0 - s * (691.0 / 32760.0 - s / 12.0))
    series = 1.0 / 12.0 - s * (1.0 / 120.0 - s * (1.0 / 252.0 - s * series))
    return math.log(x) - 0.5 * r - s * series


@kernel(inline="always")
def _log_gamma_large(x):
    r = 1.0 / x
    s = r * r
    series = 1.0 / 1188.0 - s * (691.0 / 360360.0 - s / 156.0)
    series = 1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0 - s * series)))
    return (x - 0.5) * math.log(x) - x + HALF_LOG_2PI + r * series


@kernel
def exp_digamma_rows(table, rows, shift, out):
    """Write exp(digamma(table[rows[i], j]) - shift[j]) into out[i, j].

    table : (V, T) float64, positive
    rows  : (u,) int32
    shift : (T,)
    out   : (u, T)
    """
    for i in range(rows.shape[0]):
        for j in range(shift.shape[0]):
            x, _, slope = _raise(table[rows[i], j])
            out[i, j] = math.exp(_digamma_large(x) - slope - shift[j])


@kernel
def dirichlet_sum(table, concentration, shift):
    """Return the sum of (a - concentration) (digamma(a) - shift[j]) - log gamma(a) over the entries a.

    table : (V, T) float64, positive
    shift : (T,)
    """
    total = 0.0
    for i in range(table.shape[0]):
        row = 0.0
        for j in range(table.shape[1]):
            a = table[i, j]
            x, product, slope = _raise(a)
            row += (a - concentration) * (_digamma_large(x) - slope - shift[j])
            row -= _log_gamma_large(x) - math.log(product)
        total += row
    return total
