import math
import os
import subprocess
import sys

import numpy as np
import pytest

from polystick.kernels import kernel, simd

needs_vectors = pytest.mark.skipif(not simd.ENABLED, reason="there are none without the compiler")

PROGRAM = """
import numpy as np
from polystick.kernels import gaussian, simd
rng = np.random.default_rng(0)
n, s, k = 3, 3, 23
root = rng.normal(size=(k, k + 3))
kappa, omega = rng.normal(size=(n, k)), rng.gamma(1.0, size=(n, k))
psi, log_det = np.empty((n, s, k)), np.empty(n)
given = root @ root.T, rng.normal(size=k), kappa, omega, rng.normal(size=(n, s, k))
gaussian.draw_rows(*given, psi, log_det)
print(simd.LANES, *psi.ravel().tolist())
"""


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


@needs_vectors
def test_operations_are_ieee_in_every_lane():
    rng = np.random.default_rng(0)
    x, y, z = rng.normal(size=(3, 6 * simd.WIDTH))
    out = np.empty((6, x.size))
    _apply_all(x, y, z, out)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(out[:3], [x * y, x / y, np.sqrt(x)])
    np.testing.assert_array_equal(out[5], np.repeat(x[:6], simd.WIDTH))


@needs_vectors
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


@needs_vectors
def test_other_lanes_survive_a_nan():
    x = np.arange(1.0, simd.WIDTH + 1)
    x[1] = -1.0
    out = np.empty((6, simd.WIDTH))
    _apply_all(x, x, x, out)
    assert math.isnan(out[2, 1])
    assert np.isfinite(np.delete(out[2], 1)).all()


@pytest.mark.parametrize("setting", [{"POLYSTICK_SIMD": "0"}, {"NUMBA_DISABLE_JIT": "1"}])
def test_twins_do_the_same_to_rounding(setting):
    """Kernels on vectors are one program; without vectors each is a number."""
    here = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    there = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | setting, capture_output=True, check=True
    )
    (width, *ours), (one, *theirs) = (
        [float(line) for line in run.stdout.split()] for run in (here, there)
    )
    assert (width, one) == (4 if simd.ENABLED else 1, 1)
    assert len(ours) == 3 * 23 * 3
    np.testing.assert_allclose(ours, theirs, rtol=1e-11)
    assert not simd.ENABLED or ours != theirs  # products are rounded before they are added
