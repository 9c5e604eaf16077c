import itertools
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from numpy.polynomial import polynomial
from scipy import stats
from scipy.interpolate import CubicHermiteSpline

from naive_polyagamma import draw_devroye, draw_gamma_series
from polystick import augmentation, polyagamma
from polystick.decomposition import Splits
from polystick.kernels import kernel
from polystick.kernels import polyagamma as kernels
from polystick.kernels import polyagamma_density as density
from polystick.kernels.streams import open_stream
from statistics_tools import MAX_Z, MIN_P, ks_pvalue, z_scores

JIT = not numba.config.DISABLE_JIT
N_DRAWS = 200_000 if JIT else 1000
KEY = np.uint64(2015)

SIZES = [1, 2, 3, 4, 5, 16, 31, 32, 51, 200, 100_000]
TILTS = [0.0, 1e-8, 0.37, -1.5, 2.0, -7.99, 8.01, 40.0, -200.0]
PAIRS = [(b, z) for b in SIZES for z in TILTS]
PAIRS += [(7, 4.9), (20, 0.1), (21, -6.0), (32, 23.99), (60, 24.01), (100_000, -16.1)]
PAIRS += [(10**9, 0.0), (10**9, 0.7), (10**9, -16.5), (10**9, 23.9), (10**9, 25.0)]


def draw_many(b, z, n=N_DRAWS, key=KEY, width=500):
    """Draw n times from one law, from rows of a fixed width."""
    starts = np.append(np.arange(0, n, width), n)
    rows = np.arange(len(starts) - 1, dtype=np.uint64)
    return polyagamma.draw_ragged(key, rows, starts, np.full(n, b), np.full(n, float(z)))


def exact_cdf(b, z):
    """Return F as a function: exact values and slopes on a grid, a cubic between."""
    mean, deviation = polyagamma.mean(b, z), math.sqrt(polyagamma.var(b, z))
    low, high = max(mean - 9 * deviation, 1e-3 * mean), mean + 14 * deviation
    x = np.linspace(low, high, 600 if JIT else 150)
    spline = CubicHermiteSpline(x, polyagamma.cdf(x, b, z), np.exp(polyagamma.logpdf(x, b, z)))
    return lambda values: spline(np.clip(values, low, high))


def log_laplace(s, b, z):
    """Return log E exp(-s omega)."""

    def log_cosh(v):
        return v + math.log1p(math.exp(-2 * v)) - math.log(2)

    return b * (log_cosh(abs(z) / 2) - log_cosh(math.sqrt(z * z / 4 + s / 2)))


def score_moments(draws, b, z):
    """Return the scores of mean, variance and Laplace transform, in standard errors."""
    mean, deviation = polyagamma.mean(b, z), math.sqrt(polyagamma.var(b, z))
    away = (draws - mean) / deviation
    s = 1 / deviation  # E exp(-s (omega - mean)) is of order 1 for every b
    expected = math.exp(log_laplace(s, b, z) + s * mean)
    return z_scores(np.stack([away, away**2, np.exp(-away)], 1), [0.0, 1.0, expected])


def find_faults(draws, b, z):
    """Return what is wrong with draws that should follow PG(b, z); nothing, if all is well."""
    scores = np.abs(score_moments(draws, b, z))
    names = ("mean", "variance", "Laplace transform")
    faults = [name for name, score in zip(names, scores) if not score < MAX_Z]
    return faults + ["K-S"] * (not ks_pvalue(draws, exact_cdf(b, z)) > MIN_P)


@pytest.mark.parametrize("pair", range(len(PAIRS)), ids=lambda pair: f"b, z = {PAIRS[pair]}")
def test_draws_follow_the_law(pair):
    b, z = PAIRS[pair]
    assert find_faults(draw_many(b, z, key=np.uint64(pair)), b, z) == []


def test_pvalues_are_uniform():
    """Each pair has its own key: with one key for all they would share their normals."""
    pvalues = []
    for i, (b, z) in enumerate(PAIRS[::3]):
        draws = draw_many(b, z, N_DRAWS // 2, key=np.uint64(10_000 + i))
        pvalues.append(ks_pvalue(draws, exact_cdf(b, z)))
    assert stats.kstest(pvalues, "uniform").pvalue > 1e-4


def plain_normal(b, z, rng):
    return rng.normal(polyagamma.mean(b, z), math.sqrt(polyagamma.var(b, z)), 200_000)


def inflated(b, z, rng, factor):
    draws = draw_gamma_series(b, z, 200_000, rng, n_terms=30)
    return polyagamma.mean(b, z) + math.sqrt(factor) * (draws - polyagamma.mean(b, z))


@pytest.mark.parametrize(
    ("draw", "b", "z", "expected"),
    [
        (plain_normal, 51, 1.0, "K-S"),
        (lambda b, z, rng: inflated(b, z, rng, 1.02), 51, 1.0, "variance"),
        (lambda b, z, rng: inflated(b, z, rng, 1.029), 4, 2.0, "variance"),  # polyagamma 2.0.2
        (lambda b, z, rng: 2.75 * inflated(b, z, rng, 1.0), 20, 40.0, "mean"),  # the same
        (lambda b, z, rng: inflated(b, z, rng, 1.0) * 1.005, 3, 0.5, "mean"),
        (lambda b, z, rng: np.maximum(inflated(b, z, rng, 1.0), 0.15), 2, 0.0, "Laplace transform"),
    ],
)
def test_biased_samplers_are_rejected(draw, b, z, expected):
    assert expected in find_faults(draw(b, z, np.random.default_rng(1)), b, z)


def test_the_harness_accepts_the_definition():
    draws = draw_gamma_series(16, 1.5, 200_000, np.random.default_rng(2), n_terms=40)
    assert find_faults(draws, 16, 1.5) == []


@pytest.mark.parametrize(("b", "z"), [(1, 0.0), (1, 5.0), (3, 1.2), (2, -9.0)])
def test_kernel_agrees_with_devroye(b, z):
    naive = draw_devroye(b, z, 4000, np.random.default_rng(3))
    assert find_faults(naive, b, z) == []
    assert stats.ks_2samp(naive, draw_many(b, z), method="asymp").pvalue > MIN_P


@kernel
def fill_residuals(b, z, c, low, high, out):
    s0, s1 = open_stream(np.uint64(5), np.uint64(8))
    for i in range(out.shape[0]):
        out[i], s0, s1 = kernels.draw_residual(b, z, c, low, high, s0, s1)


def residual_cdf(b, z, c, low):
    """Return x and the integral of f - low g up to x, by the trapezoidal rule."""
    grid = np.linspace(-kernels.EDGE, kernels.EDGE, 20_001)
    mean, deviation = polyagamma.mean(b, z), math.sqrt(polyagamma.var(b, z))
    x = np.linspace(1e-3 * mean, mean + 15 * deviation, 20_001 if JIT else 2001)
    n = np.interp(x, polynomial.polyval(grid, c), grid, left=np.nan, right=np.nan)
    g = stats.norm.pdf(n) / polynomial.polyval(n, polynomial.polyder(c))
    residual = np.exp(polyagamma.logpdf(x, b, z)) - low * np.nan_to_num(g)
    return x, np.append(0.0, np.cumsum(0.5 * (residual[1:] + residual[:-1]) * np.diff(x)))


@pytest.mark.parametrize(("b", "z"), [(2, 0.1), (3, 2.0), (25, 1.3), (40, 0.8)])
def test_residual_follows_its_law(b, z):
    """Nearly all draws are taken outright, so look at the rejection sampler alone."""
    entry = b if b < kernels.FIRST_EXPANSION else 0
    c = kernels.look_up(b, z) if entry else kernels.expand(float(b), z)
    low, high = kernels.LOW_RATIO[entry], kernels.HIGH_RATIO[entry]
    draws = np.empty(N_DRAWS // 20)
    fill_residuals(float(b), z, c, low, high, draws)
    x, total = residual_cdf(b, z, c, low)
    assert total[-1] == pytest.approx(1 - low * kernels.INSIDE, rel=2e-2)
    assert ks_pvalue(draws, lambda v: np.interp(v, x, total / total[-1])) > MIN_P


@pytest.mark.parametrize("b", [2.0, 5.5, 12.0, 20.0])
def test_series_and_contour_agree(b):
    for x in np.linspace(0.02, 0.4 * b + 3 / b, 30):
        series = density.log_density_series(x, b, 1.3)
        assert series == pytest.approx(density.log_density_contour(x, b, 1.3), abs=1e-8)


def test_density_of_one_is_the_general_density():
    for x in (0.01, 0.1, 0.159, 0.161, 0.5, 2.0):
        general = density.log_density_contour(x, 1.0, 0.0)
        assert kernels.log_density_one(x) == pytest.approx(general, abs=1e-11)


@pytest.mark.parametrize("b", [1.0, 4.0, 31.0])
def test_series_is_decided_rightly(b):
    for x in b * np.array([0.02, 0.05, 0.1, 0.2]):
        first = math.log(b) - density.LOG_ROOT_8PI - 1.5 * math.log(x) - b * b / (8 * x)
        ratio = math.exp(density.log_density_contour(x, b, 0.0) - first - b * math.log(2.0))
        assert kernels.accept_series(x, b, ratio - 1e-9)
        assert not kernels.accept_series(x, b, ratio + 1e-9)


def mixed_problem(n_rows=60, seed=4):
    """Return ragged rows that visit every method; some rows are empty."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 30, n_rows)
    starts = np.append(0, np.cumsum(lengths))
    b = rng.choice([0, 1, 2, 3, 9, 20, 31, 32, 80, 10**6], starts[-1])
    z = rng.normal(0, 6, starts[-1])
    return np.arange(n_rows, dtype=np.uint64), starts, b, z


def draw_block(rows, starts, b, z, first, last):
    entries = slice(starts[first], starts[last])
    shifted = starts[first : last + 1] - starts[first]
    return polyagamma.draw_ragged(KEY, rows[first:last], shifted, b[entries], z[entries])


@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_bits_do_not_depend_on_blocks_or_threads(n_workers):
    problem = mixed_problem()
    whole = polyagamma.draw_ragged(KEY, *problem)
    cuts = [0, 1, 7, 20, 21, 40, 60]
    with ThreadPoolExecutor(n_workers) as pool:
        blocks = pool.map(lambda cut: draw_block(*problem, *cut), itertools.pairwise(cuts))
        np.testing.assert_array_equal(np.concatenate(list(blocks)), whole)


def draw_rows(key, rows, b, z):
    """Draw as the waist does."""
    return augmentation.draw_potential(Splits(b, b), z, key, rows).omega


def test_rows_are_ragged_rows():
    rng = np.random.default_rng(0)
    b, z = rng.integers(0, 60, (20, 7)), rng.normal(0, 3, (20, 7))
    rows = rng.permutation(20).astype(np.uint64)
    flat = polyagamma.draw_ragged(KEY, rows, np.arange(21) * 7, b.ravel(), z.ravel())
    np.testing.assert_array_equal(draw_rows(KEY, rows, b, z).ravel(), flat)
    reordered = np.argsort(rows)
    again = draw_rows(KEY, rows[reordered], b[reordered], z[reordered])
    np.testing.assert_array_equal(again, flat.reshape(20, 7)[reordered])


def test_keys_and_rows_give_different_draws():
    b, z = np.full((2, 50), 3), np.zeros((2, 50))
    rows = np.arange(2, dtype=np.uint64)
    first = draw_rows(KEY, rows, b, z)
    second = draw_rows(KEY + np.uint64(1), rows, b, z)
    assert len(np.unique([first, second])) == 200


def test_draws_are_symmetric_in_z():
    rows, starts, b, z = mixed_problem()
    np.testing.assert_array_equal(
        polyagamma.draw_ragged(KEY, rows, starts, b, z),
        polyagamma.draw_ragged(KEY, rows, starts, b, -z),
    )


def test_nothing_is_drawn_for_no_trials():
    b, z = np.array([0, 5, -3, 5]), np.ones(4)
    row = np.zeros(1, np.uint64)
    draws = polyagamma.draw_ragged(KEY, row, np.array([0, 4]), b, z)
    assert draws[0] == draws[2] == 0.0
    alone = polyagamma.draw_ragged(KEY, row, np.array([0, 2]), b[1::2], z[1::2])
    np.testing.assert_array_equal(draws[1::2], alone)


@pytest.mark.parametrize("b", [1, 2, 31, 32, 10**9])
def test_extreme_tilts(b):
    z = np.array([np.inf, -np.inf, np.nan, 1e3, -1e20, 1e45, 1e308, 1e-300, 5e-324])
    draws = draw_rows(KEY, np.zeros(1, np.uint64), np.full((1, 9), b), z[None])[0]
    np.testing.assert_array_equal(draws[:2], 0.0)
    assert np.isnan(draws[2])
    np.testing.assert_allclose(draws[4:7], 0.5 * b / np.abs(z[4:7]), rtol=1e-8)
    limits = polyagamma.mean(b, z[[3, 7, 8]]) + 12 * np.sqrt(polyagamma.var(b, z[[3, 7, 8]]))
    assert (draws[[3, 7, 8]] > 0).all()
    assert (draws[[3, 7, 8]] < limits).all()


def test_draws_are_pinned():
    b = np.array([[1, 1, 2, 5, 20, 31, 32, 50, 1000, 10**9, 3, 40]])
    z = np.array([[0.0, 3.3, -0.4, 7.0, 1.0, 2.5, 0.1, 20.0, 1.5, 0.3, 12.0, 30.0]])
    draws = draw_rows(KEY, np.array([11], np.uint64), b, z)[0]
    assert [x.hex() for x in draws] == [
        "0x1.d63f64b8925e5p-4",
        "0x1.5e308e3039c5fp-4",
        "0x1.d0215cf6db064p-1",
        "0x1.cce084423a24ap-3",
        "0x1.1ab7b00c4a613p+2",
        "0x1.73e2f191197ebp+2",
        "0x1.b7d2b443ebbe6p+2",
        "0x1.2c4cff093bf7bp+0",
        "0x1.b6440dca4e40ap+7",
        "0x1.d94dbd77637b8p+27",
        "0x1.bc0f87d209d13p-4",
        "0x1.5b3e1b608f68fp-1",
    ]


FINGERPRINT = """
import hashlib
from test_polyagamma_kernel import KEY, mixed_problem, polyagamma
draws = polyagamma.draw_ragged(KEY, *mixed_problem(200, seed=9))
print(hashlib.sha256(draws.tobytes()).hexdigest())
"""


def test_bits_do_not_depend_on_the_compiler():
    """Draw with and without the JIT, in other processes."""
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    prints = [
        subprocess.run(
            [sys.executable, "-c", FINGERPRINT],
            env={**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": switch},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for switch in "01"
    ]
    assert prints[0] == prints[1] != ""


@pytest.mark.skipif(not JIT, reason="counts compiled signatures")
def test_one_signature():
    rows, starts, b, z = mixed_problem()
    polyagamma.draw_ragged(KEY, rows, starts, b, z)
    polyagamma.draw_ragged(7, rows.astype(int), starts.astype(np.int32), b.astype(np.int16), z)
    polyagamma.draw_ragged(KEY, rows[::-1], starts, b[::-1], np.broadcast_to(0.5, z.shape))
    polyagamma.draw(3, [1.0, 2.0], seed=0)
    assert len(kernels.draw_ragged.signatures) == 1
