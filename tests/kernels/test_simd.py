import math
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from polystick.kernels import kernel, simd

needs_compiler = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="vectors are LLVM's")


@kernel
def _apply_all(x, y, z, out):
    for p in range(x.size // simd.WIDTH):
        u, v, w = simd.load(x, p), simd.load(y, p), simd.load(z, p)
        simd.store(out[0], p, simd.mul(u, v))
        simd.store(out[1], p, simd.div(u, v))
        simd.store(out[2], p, simd.sqrt(u))
        simd.store(out[3], p, simd.fma(u, v, w))
        simd.store(out[4], p, simd.fnma(u, v, w))
        simd.store(out[5], p, simd.splat(x[p]))


@needs_compiler
def test_operations_are_ieee_in_every_lane():
    rng = np.random.default_rng(0)
    x, y, z = rng.normal(size=(3, 6 * simd.WIDTH))
    out = np.empty((6, x.size))
    _apply_all(x, y, z, out)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(out[:3], [x * y, x / y, np.sqrt(x)])
    np.testing.assert_array_equal(out[5], np.repeat(x[:6], simd.WIDTH))


@needs_compiler
def test_multiply_add_rounds_once():
    # (1 + e)(1 - e) = 1 - e^2 is lost by two roundings.
    e = 2.0**-30
    x, y, z = np.full((3, simd.WIDTH), [[1 + e], [1 - e], [-1.0]])
    out = np.empty((6, simd.WIDTH))
    _apply_all(x, y, z, out)
    assert (out[3] == -(e**2)).all()
    _apply_all(x, y, -z, out)
    assert (out[4] == e**2).all()
    assert (1 + e) * (1 - e) - 1.0 == 0.0  # what two roundings give


@needs_compiler
def test_other_lanes_survive_a_nan():
    x = np.arange(1.0, simd.WIDTH + 1)
    x[1] = -1.0
    out = np.empty((6, simd.WIDTH))
    _apply_all(x, x, x, out)
    assert math.isnan(out[2, 1])
    assert np.isfinite(np.delete(out[2], 1)).all()


@pytest.mark.parametrize("setting", [{"POLYSTICK_SIMD": "0"}, {"NUMBA_DISABLE_JIT": "1"}])
def test_the_scalar_twins_are_selected(setting):
    program = (
        "from polystick.kernels import gaussian as g, simd\n"
        "assert not simd.ENABLED\n"
        "assert g.draw_rows is g.draw_rows_scalar\n"
        "assert g.moment_rows is g.moment_rows_scalar\n"
        "assert g.condition_rows is g.condition_rows_scalar\n"
    )
    subprocess.run([sys.executable, "-c", program], env=os.environ | setting, check=True)
