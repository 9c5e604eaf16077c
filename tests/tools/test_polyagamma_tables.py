"""The shipped tables are those of the program that makes them, and the bounds they rest on hold."""

import importlib.util
from pathlib import Path

import numba
import numpy as np
import pytest
from numpy.polynomial import polynomial

from polystick.kernels import polyagamma as kernels
from polystick.kernels import streams

JIT = not numba.config.DISABLE_JIT
SOURCE = Path(__file__).parents[2] / "tools" / "make_polyagamma_tables.py"


def load_program():
    spec = importlib.util.spec_from_file_location(SOURCE.stem, SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


program = load_program()
TABLES = {"polynomials": kernels.POLYNOMIALS, "expansions": kernels.EXPANSIONS}
NORMALS = np.linspace(-program.EDGE, program.EDGE, 33)


def test_ziggurat():
    widths, heights = program.ziggurat()
    np.testing.assert_allclose(streams.LAYER_WIDTH, widths, rtol=1e-11)
    np.testing.assert_allclose(streams.LAYER_HEIGHT, heights, rtol=1e-11)
    areas = widths[1:-1] * np.diff(heights[1:])
    np.testing.assert_allclose(areas, areas[0], rtol=1e-11)


@pytest.mark.parametrize("cell", [0, 13, 63] if JIT else [])
def test_strips(cell):
    made = program.strips(cell * program.CELL)
    np.testing.assert_allclose(kernels.STRIPS[cell], made, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("cell", [0, 1, 30, 63])
def test_strips_lie_above_the_density(cell):
    z = cell * program.CELL
    left, width, squeeze, log_hat = kernels.STRIPS[cell].T
    x = left[:-1] + width[:-1] * np.linspace(1e-6, 1, 9 if JIT else 3)[:, None]
    ratio = np.exp(
        program.log_pdf(x.ravel(), 1.0, 0.0).reshape(x.shape) - z * z * x / 2 - log_hat[:-1]
    )
    assert ratio.max() <= 1
    assert (ratio >= squeeze[:-1]).all()
    e = np.linspace(0, 40, 50)
    tail = left[-1] + e * width[-1]
    assert (program.log_pdf(tail, 1.0, 0.0) - z * z * tail / 2 <= log_hat[-1] - e + 1e-9).all()
    np.testing.assert_allclose(left[1:], (left + width)[:-1], rtol=1e-12)
    np.testing.assert_allclose(np.exp(log_hat) * width, np.exp(log_hat[-1]) * width[-1], rtol=1e-5)


@pytest.mark.parametrize(("b", "cell"), [(2, 0), (2, 40), (17, 5), (31, 63)])
def test_polynomials(b, cell):
    made = {"polynomials": np.zeros_like(kernels.POLYNOMIALS)}
    made["polynomials"][b, cell] = program.fit_polynomials(b, cell)
    for t in (0.0, 0.6):
        maps = [program.coefficients(each, b, (cell + t) / 8) for each in (made, TABLES)]
        new, shipped = (polynomial.polyval(NORMALS, c) for c in maps)
        np.testing.assert_allclose(shipped, new, rtol=1e-9)


@pytest.mark.parametrize("cell", [0, 77, 191] if JIT else [77])
def test_expansions(cell):
    made = {"expansions": np.zeros_like(kernels.EXPANSIONS)}
    made["expansions"][cell] = program.fit_expansion(cell)
    for b in (32, 1000, 1e8):
        maps = [program.coefficients(each, b, (cell + 0.3) / 8) for each in (made, TABLES)]
        new, shipped = (polynomial.polyval(NORMALS, c) for c in maps)
        np.testing.assert_allclose(shipped, new, rtol=1e-9)


@pytest.mark.parametrize(("b", "z"), [(2, 0.0), (9, 3.33), (31, 7.999), (32, 0.01), (1e6, 23.99)])
def test_kernels_read_the_tables_alike(b, z):
    c = kernels.look_up(int(b), z) if b < 32 else kernels.expand(float(b), z)
    np.testing.assert_allclose(c, program.coefficients(TABLES, b, z), rtol=1e-11)


def assert_bounds_hold(b, z):
    entry = int(b) if b < program.FIRST_EXPANSION else 0
    found = program.check(TABLES, b, z)
    assert kernels.LOW_RATIO[entry] <= found["lowest"], (b, z)
    assert kernels.HIGH_RATIO[entry] >= found["highest"], (b, z)
    assert found["increasing"], (b, z)
    assert found["tail_slope"] >= kernels.TAIL_SLOPE, (b, z)
    assert found["tail_height"] <= kernels.TAIL_HEIGHT, (b, z)


def test_bounds_hold_at_random_places():
    rng = np.random.default_rng(0)
    for b in [*range(2, 32)] * (6 if JIT else 1):
        assert_bounds_hold(b, 8 * rng.random())
    for b in np.exp(rng.uniform(np.log(32), np.log(1e9), 180 if JIT else 10)):
        assert_bounds_hold(float(int(b)), 24 * rng.random())


def test_bounds_hold_at_the_ends_of_cells():
    for b in (2, 3, 31, 32, 33, 1e9):
        last = 8.0 if b < 32 else 24.0
        for z in (0.0, 0.125, np.nextafter(0.125, 0), 4.0, np.nextafter(last, 0)):
            assert_bounds_hold(b, z)


def test_wrong_coefficients_are_noticed():
    spoilt = {"polynomials": kernels.POLYNOMIALS * np.where(np.arange(12) == 8, 1.05, 1.0)}
    found = program.check(spoilt, 5, 1.0)
    assert found["highest"] > kernels.HIGH_RATIO[5] or found["lowest"] < kernels.LOW_RATIO[5]


@pytest.mark.slow
@pytest.mark.parametrize("b", range(2, 32))
def test_bounds_hold_densely_for_small_b(b):
    rng = np.random.default_rng(b)
    for z in (np.arange(64 * 16) + rng.random(64 * 16)) / 128:
        assert_bounds_hold(b, z)


@pytest.mark.slow
@pytest.mark.parametrize("b", [*range(32, 64), *np.geomspace(64, 1e9, 40).round()])
def test_bounds_hold_densely_for_large_b(b):
    rng = np.random.default_rng(int(b))
    for z in (np.arange(192 * 4) + rng.random(192 * 4)) / 32:
        assert_bounds_hold(b, z)
