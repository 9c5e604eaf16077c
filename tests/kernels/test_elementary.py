"""Exponential and logarithm in loops, against NumPy's."""

import numba
import numpy as np
import pytest

from polystick.kernels import elementary

SIZE = 2000 if not numba.config.DISABLE_JIT else 200


@numba.njit
def tabulate(x, positive, small, out):
    for i in range(x.shape[0]):
        out[0, i] = elementary.exp(x[i])
        out[1, i] = elementary.log(positive[i])
        out[2, i] = elementary.log_1p(small[i])


@pytest.mark.parametrize("reach", [1e-12, 1.0, 690.0])
def test_they_are_right_to_the_last_digits(reach):
    x = reach * np.random.default_rng(1).uniform(-1, 1, SIZE)
    out = np.empty((3, SIZE))
    positive, small = np.exp(x), 0.5 * np.tanh(x)
    tabulate(x, positive, small, out)
    np.testing.assert_allclose(out[0], np.exp(x), rtol=1e-15)
    np.testing.assert_allclose(out[1], np.log(positive), rtol=1e-15)
    np.testing.assert_allclose(out[2], np.log1p(small), rtol=1e-15)


def test_the_exponential_neither_overflows_nor_vanishes():
    out = np.empty((3, 2))
    ends = np.array([-700.0, 700.0])
    tabulate(ends, np.ones(2), np.zeros(2), out)
    assert elementary.exp(np.float64(-1e9)) == out[0, 0] > 0.0
    assert elementary.exp(np.float64(1e9)) == out[0, 1] < np.inf
