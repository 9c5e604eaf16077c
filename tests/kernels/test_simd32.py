import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from polystick.kernels import kernel, simd, simd32

needs_compiler = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="vectors are LLVM's")


@kernel
def _apply_all(x, y, out):
    for p in range(x.size // simd32.WIDTH):
        u, v = simd32.load(x, p), simd32.load(y, p)
        simd32.store(out[0], p, simd32.add(u, v))
        simd32.store(out[1], p, simd32.mul(u, v))
        simd32.store(out[2], p, simd32.splat(x[p]))
        simd32.store(out[3], p, simd32.add(u, simd32.mul(u, v)))


@kernel
def _prefetch_all(x):
    for i in range(x.size):
        simd32.prefetch(x, i)


def pair(n_vectors=6):
    return np.random.default_rng(0).normal(size=(2, n_vectors * simd32.WIDTH)).astype(np.float32)


@needs_compiler
def test_operations_are_ieee_in_every_lane():
    x, y = pair()
    out = np.empty((4, x.size), np.float32)
    _apply_all(x, y, out)
    np.testing.assert_array_equal(out[:2], [x + y, x * y])
    np.testing.assert_array_equal(out[2], np.repeat(x[:6], simd32.WIDTH))


@needs_compiler
def test_products_are_rounded_before_they_are_added():
    # A fused (1 + e) + (1 + e) y with y = -(1 - e) would be e + e^2.
    e = np.float32(2.0**-13)
    x, y = np.full((2, simd32.WIDTH), [[1 + e], [-(1 - e)]], np.float32)
    out = np.empty((4, simd32.WIDTH), np.float32)
    _apply_all(x, y, out)
    assert (out[3] == e).all()
    assert np.float32(np.float64(x[0]) + np.float64(x[0]) * np.float64(y[0])) != e


def test_prefetch_changes_nothing():
    x, _ = pair()
    before = x.copy()
    _prefetch_all(x)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("setting", [{"POLYSTICK_SIMD": "0"}, {"NUMBA_DISABLE_JIT": "1"}])
def test_it_is_enabled_with_its_sister(setting):
    assert simd32.ENABLED == simd.ENABLED
    program = "from polystick.kernels import simd32\nassert not simd32.ENABLED\n"
    subprocess.run([sys.executable, "-c", program], env=os.environ | setting, check=True)
