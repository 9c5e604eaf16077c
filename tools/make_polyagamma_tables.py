"""Make the tables of `kernels/streams.py` and `kernels/polyagamma.py`; one minute on two cores.

    python tools/make_polyagamma_tables.py

Each part is a function, so that a test can make a piece anew and compare it with what is shipped.
The densities come from `kernels/polyagamma_density.py`, which needs no table.

ziggurat      layers of the normal (Marsaglia and Tsang 2000)
strips        for PG(1, z) with z = 0, 1/8, ...: a step function of 127 strips and an exponential
              tail, all of the same area, that lies above the density
polynomials   T(n) close to the map from a normal to PG(b, z): for each b < 32 and each cell of z
              the coefficients of T are low-degree polynomials in the place t of z in its cell
expansions    the same for every b >= 32: coefficients are series in r = b^(-1/2)
ratios        bounds of f / g over |n| <= 4 on a grid of z, with a margin
"""

import math
import os
from functools import partial
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from numpy.polynomial import polynomial
from scipy.optimize import brentq, minimize_scalar
from scipy.special import erfc, ndtri

from polystick.kernels import polyagamma_density as density

KERNELS = Path(density.__file__).parent
TABLES = KERNELS / "polyagamma_tables.npz"

CELL = 1 / 8
N_CELLS, N_EXPANSION_CELLS = 64, 192
N_STRIPS = 128
FIRST_EXPANSION = 32
EDGE = 4.0
MARGIN, ROUNDING = 1.5, 2e-6  # of the bounds: 1.5 times the distance to 1, and a little more

# Columns of `polynomials`: (power of n, power of t).
POLYNOMIAL_TERMS = [
    *[(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)],
    *[(2, 0), (2, 1), (3, 0), (3, 1), (4, 0), (5, 0)],
]
# Columns of `expansions`, in units of b: the mean (t^0 ... t^5), the standard deviation
# (t^0 ... t^3), then (power of n, power of r, power of t).
EXPANSION_TERMS = [
    *[(0, 2, 0), (0, 2, 1), (1, 3, 0), (1, 3, 1), (2, 2, 0), (2, 2, 1), (2, 2, 2), (2, 4, 0)],
    *[(3, 3, 0), (3, 3, 1), (3, 5, 0), (4, 4, 0), (4, 4, 1), (5, 5, 0)],
]
FITTED_B = [32, 40, 52, 72, 110, 200, 500, 3000]
CHECKED_B = [32, 33, 34, 36, 39, 43, 48, 55, 65, 80, 100, 150, 250, 500, 1500, 1e4, 1e6, 1e9]


def log_pdf(x, b, z):
    x = np.ascontiguousarray(x, float)
    out = np.empty_like(x)
    density.fill_log_density(x, np.full_like(x, b), np.full_like(x, z), out)
    return out


def cdf(x, b, z):
    x = np.ascontiguousarray(x, float)
    out = np.empty_like(x)
    density.fill_probability(x, np.full_like(x, b), np.full_like(x, z), out)
    return out


def moments(z):
    """Return mean and variance of PG(1, z), to rounding."""
    mean = np.tanh(z / 2) / (2 * z) if z > 0 else 0.25
    if z < 2:
        excess = sum(z ** (2 * k) / math.factorial(2 * k + 3) for k in range(12))
    else:
        excess = (np.sinh(z) - z) / z**3
    return mean, excess / (4 * np.cosh(z / 2) ** 2)


def chebyshev(n):
    """Return the Chebyshev nodes of (-1, 1)."""
    return np.cos(np.pi * (np.arange(n) + 0.5) / n)


# ---------------------------------------------------------------------------------------- ziggurat


def stack(start, n_layers):
    """Return the widths of layers whose tail begins at start, and how far they pass the peak."""
    area = start * np.exp(-0.5 * start**2) + np.sqrt(np.pi / 2) * erfc(start / np.sqrt(2))
    widths, top = [area * np.exp(0.5 * start**2), start], np.exp(-0.5 * start**2)
    for _ in range(n_layers - 2):
        top += area / widths[-1]
        if top >= 1:
            return None, 1.0
        widths.append(np.sqrt(-2 * np.log(top)))
    return np.array([*widths, 0.0]), top + area / widths[-1] - 1


def ziggurat(n_layers=256):
    """Return widths and heights of the layers: all have the same area, the lowest with the tail."""
    start = brentq(lambda start: stack(start, n_layers)[1], 3.6, 3.7, xtol=1e-15)
    while (found := stack(start, n_layers)[0]) is None:
        start = np.nextafter(start, 4)
    return found, np.exp(-0.5 * found**2)


# ------------------------------------------------------------------------------------------ strips


def log_pdf_one(x, z):
    """Return log f(x | 1, z) up to the factor cosh(z/2)."""
    return log_pdf(np.atleast_1d(x), 1.0, 0.0)[0] - 0.5 * z * z * x


def slope_one(x, z, h=1e-5):
    return (log_pdf_one(x * (1 + h), z) - log_pdf_one(x * (1 - h), z)) / (2 * h * x)


def cover(pdf, mode, tail_start, area):
    """Return edges and heights of strips of one area that cover (0, tail_start), left to right."""
    edges, heights = [tail_start], []
    while pdf(mode) * (edges[-1] - mode) >= area:
        right = edges[-1]
        edges.append(brentq(lambda x, right=right: pdf(x) * (right - x) - area, mode, right))
        heights.append(pdf(edges[-1]))
    heights.append(pdf(mode))
    edges.append(edges[-1] - area / heights[-1])
    while edges[-1] > 0 and len(heights) < 4 * N_STRIPS:
        right = edges[-1]
        heights.append(max(pdf(right), area / right))
        edges.append(right - area / heights[-1] if heights[-1] > area / right else 0.0)
    return np.array(edges[::-1]), np.array(heights[::-1])


def strips(z):
    """Return the strips of PG(1, z): (N_STRIPS, [left, width, squeeze, log hat]), the tail last."""
    best = minimize_scalar(
        lambda log_x: -log_pdf_one(np.exp(log_x), z),
        bounds=(np.log(1e-3), np.log(0.5)),
        method="bounded",
        options={"xatol": 1e-12},
    )
    mode, peak = np.exp(best.x), -best.fun
    farthest = mode + 120 / (np.pi**2 + z * z)

    def pdf(x):
        return np.exp(log_pdf_one(x, z) - peak) if x > 0 else 0.0

    def excess_of_tail(x, area):
        return log_pdf_one(x, z) - peak - np.log(-slope_one(x, z)) - np.log(area)

    def cover_with(area):
        start = brentq(excess_of_tail, 1.05 * mode, farthest, args=(area,))
        return start, *cover(pdf, mode, start, area)

    small, large = 1e-4 * mode, mode
    for _ in range(60):
        area = np.sqrt(small * large)
        too_many = len(cover_with(area)[2]) + 1 > N_STRIPS
        small, large = (area, large) if too_many else (small, area)
    start, edges, heights = cover_with(large * (1 + 1e-10))
    ends = np.array([pdf(x) for x in edges])
    table = np.zeros((N_STRIPS, 4))
    table[:-1, 0], table[:-1, 1] = edges[:-1], np.diff(edges)
    table[:-1, 2] = np.minimum(ends[:-1], ends[1:]) / heights * (1 - 1e-10)
    table[:-1, 3] = np.log(heights) + peak + 1e-11
    table[-1] = start, -1 / slope_one(start, z), 0.0, log_pdf_one(start, z) + 1e-11
    return table


# ------------------------------------------------------------------------------- maps from a normal


def normal_pdf(n):
    return np.exp(-0.5 * n * n) / np.sqrt(2 * np.pi)


def quantiles(b, z, n):
    """Return x with F(x | b, z) = Phi(n), by Newton's method on the normal scale."""
    mean, variance = (b * m for m in moments(z))
    spread = np.log1p(variance / mean**2)
    x = mean * np.exp(np.sqrt(spread) * n - 0.5 * spread)
    for _ in range(7):
        now = ndtri(cdf(x, b, z))
        step = (now - n) * normal_pdf(now) / np.exp(log_pdf(x, b, z))
        x = np.clip(x - step, 0.5 * x, 2 * x)
    return x


def equations(b, z, n):
    """Return (A, r): the coefficients c of T, in units of b, should satisfy A c = r at each n.

    log(f / g) at T(n) = x(n) + d(n) is, to first order, d f'(x) / f(x) + d' / x', with x(n) the
    exact map.
    """
    x = quantiles(b, z, n)
    log_f = log_pdf(x, b, z)
    slope = normal_pdf(n) / np.exp(log_f)
    score = (log_pdf(x * (1 + 1e-5), b, z) - log_pdf(x * (1 - 1e-5), b, z)) / (2e-5 * x)
    powers = np.arange(6)
    T = n[:, None] ** powers
    T_slope = powers * n[:, None] ** np.maximum(powers - 1, 0)
    return b * (T_slope / slope[:, None] + score[:, None] * T), 1 + score * x


def least_squares(blocks):
    A = np.concatenate([block for block, _ in blocks])
    r = np.concatenate([right for _, right in blocks])
    scale = np.abs(A).max(0)
    return np.linalg.lstsq(A / scale, r, rcond=None)[0] / scale


def fit_polynomials(b, cell):
    """Return the 12 numbers of T for one b and one cell of z."""
    blocks = []
    for t in 0.5 + 0.5 * chebyshev(4):
        A, r = equations(b, (cell + t) * CELL, EDGE * chebyshev(40))
        blocks.append((np.stack([A[:, k] * t**j / b for k, j in POLYNOMIAL_TERMS], 1), r))
    return least_squares(blocks)


def interpolate(values, degree):
    """Return the coefficients of the polynomial that meets values(t) at the Chebyshev nodes."""
    t = 0.5 + 0.5 * chebyshev(degree + 1)
    return polynomial.polyfit(t, [values(u) for u in t], degree)


def fit_expansion(cell):
    """Return the 24 numbers of T for every b >= 32 and one cell of z."""
    mean = interpolate(lambda t: moments((cell + t) * CELL)[0], 5)
    deviation = interpolate(lambda t: np.sqrt(moments((cell + t) * CELL)[1]), 3)
    blocks = []
    for t in 0.5 + 0.5 * chebyshev(4):
        for b in FITTED_B:
            A, r = equations(b, (cell + t) * CELL, EDGE * chebyshev(32))
            r = r - A[:, 0] * polynomial.polyval(t, mean)
            r = r - A[:, 1] * polynomial.polyval(t, deviation) * b**-0.5
            columns = [A[:, k] * b ** (-0.5 * p) * t**j for k, p, j in EXPANSION_TERMS]
            blocks.append((np.stack(columns, 1), r))
    return np.concatenate([mean, deviation, least_squares(blocks)])


def coefficients(tables, b, z):
    """Return the six coefficients of T, as the kernels compute them."""
    cell = int(z / CELL)
    t = z / CELL - cell
    c = np.zeros(6)
    if b < FIRST_EXPANSION:
        for (k, j), value in zip(POLYNOMIAL_TERMS, tables["polynomials"][int(b), cell]):
            c[k] += value * t**j
        return c
    row = tables["expansions"][cell]
    c[0] = b * polynomial.polyval(t, row[:6])
    c[1] = b**0.5 * polynomial.polyval(t, row[6:10])
    for (k, p, j), value in zip(EXPANSION_TERMS, row[10:]):
        c[k] += value * b ** (1 - 0.5 * p) * t**j
    return c


# ------------------------------------------------------------------------------------------ ratios


def check(tables, b, z, n_points=161):
    """Return what exactness at (b, z) rests on.

    lowest, highest : f / g over |n| <= EDGE
    increasing      : T has a positive value and slope throughout
    tail_slope      : the smaller of the two slopes of log f at T(+-EDGE), in units of that of log g
    tail_height     : the larger f / g at the two ends
    """
    n = np.linspace(-EDGE, EDGE, n_points)
    c = coefficients(tables, b, z)
    x, slope = polynomial.polyval(n, c), polynomial.polyval(n, polynomial.polyder(c))
    ratio = np.exp(log_pdf(x, b, z)) * slope / normal_pdf(n)
    ends, h = x[[0, -1]], 1e-5 * slope[[0, -1]]
    fall = (log_pdf(ends - h, b, z) - log_pdf(ends + h, b, z)) / (2 * h) * np.array([-1, 1])
    return {
        "lowest": ratio.min(),
        "highest": ratio.max(),
        "increasing": bool(x[0] > 0 and slope.min() > 0),
        "tail_slope": float((fall * slope[[0, -1]] / EDGE).min()),
        "tail_height": float(ratio[[0, -1]].max()),
    }


def check_row(tables, b, places):
    """Check one b at the given places of every cell; return the worst of each."""
    n_cells = N_CELLS if b < FIRST_EXPANSION else N_EXPANSION_CELLS
    found = [check(tables, b, (cell + t) * CELL) for cell in range(n_cells) for t in places]
    worst = {"highest": max, "tail_height": max}
    return {key: worst.get(key, min)(row[key] for row in found) for key in found[0]}


def widen(lowest, highest):
    """Return bounds with the margin."""
    return (
        1 - (MARGIN * (1 - lowest) + ROUNDING),
        1 + (MARGIN * (highest - 1) + ROUNDING),
    )


def ratio_bounds(tables, pool, places=(0.0, 0.15, 0.5, 0.85, 0.9999)):
    """Return low_ratio, high_ratio (32,): entry b for 2 <= b < 32 and entry 0 for all larger b."""
    every_b = [*range(2, FIRST_EXPANSION), *CHECKED_B]
    rows = pool.map(partial(check_row, tables, places=places), every_b, chunksize=1)
    for b, row in zip(every_b, rows):
        print(b, {key: float(f"{value:.6g}") for key, value in row.items()}, flush=True)
    low, high = np.ones(FIRST_EXPANSION), np.ones(FIRST_EXPANSION)
    for b, row in zip(every_b, rows):
        entry = int(b) if b < FIRST_EXPANSION else 0
        low[entry] = min(low[entry], row["lowest"])
        high[entry] = max(high[entry], row["highest"])
    assert all(row["increasing"] for row in rows)
    assert min(row["tail_slope"] for row in rows) > 0.78
    assert max(row["tail_height"] for row in rows) < 1.04
    return widen(low, high)


def fit_row(b):
    return [fit_polynomials(b, cell) for cell in range(N_CELLS)]


def make(pool):
    """Return all tables."""
    tables = dict(zip(("ziggurat_width", "ziggurat_height"), ziggurat()))
    tables["strips"] = np.array(pool.map(strips, np.arange(N_CELLS) * CELL))
    tables["polynomials"] = np.zeros((FIRST_EXPANSION, N_CELLS, len(POLYNOMIAL_TERMS)))
    tables["polynomials"][2:] = pool.map(fit_row, range(2, FIRST_EXPANSION), chunksize=1)
    tables["expansions"] = np.array(pool.map(fit_expansion, range(N_EXPANSION_CELLS), chunksize=8))
    tables["low_ratio"], tables["high_ratio"] = ratio_bounds(tables, pool)
    return tables


if __name__ == "__main__":
    with Pool(len(os.sched_getaffinity(0))) as workers:
        made = make(workers)
    np.savez(TABLES, **made)
    for source in ("streams.py", "polyagamma.py"):  # Numba's cache looks at sources, not at tables
        (KERNELS / source).touch()
    print(f"wrote {TABLES} ({TABLES.stat().st_size / 1e6:.2f} MB)")
