"""Vectors of doubles for kernels.

Without the just-in-time compiler, or with `POLYSTICK_SIMD=0`, `ENABLED` is false and a vector is one number:
each operation has a twin below, and `lanes` and the kernels on it are the same programs, up to rounding.
Kernels that count on WIDTH numbers in a vector ask for `ENABLED`.
"""

import math

from numba import types

from polystick.kernels import SIMD as ENABLED
from polystick.kernels import kernel
from polystick.kernels.vectors import Vector, operations

__all__ = [
    "ENABLED",
    "LANES",
    "WIDTH",
    "div",
    "fma",
    "fnma",
    "load",
    "mul",
    "splat",
    "sqrt",
    "store",
]

WIDTH = 4  # 8 gave the same bits and took a fifth longer on AVX2 at k = 49
LANES = WIDTH if ENABLED else 1  # numbers in what `load` gives


@kernel(forceinline=True)
def _load(a, p):
    return float(a[p])  # in plain Python its rules are those of IEEE, without warnings


@kernel(forceinline=True)
def _store(a, p, x):
    a[p] = x


@kernel(forceinline=True)
def _splat(x):
    return x


@kernel(forceinline=True)
def _mul(x, y):
    return x * y


@kernel(forceinline=True)
def _div(x, y):
    return x / y if y != 0.0 else x * math.inf


@kernel(forceinline=True)
def _sqrt(x):
    return math.sqrt(x) if x >= 0.0 else math.nan


@kernel(forceinline=True)
def _fma(x, y, z):
    return z + x * y


@kernel(forceinline=True)
def _fnma(x, y, z):
    return z - x * y


_of = operations(Vector(types.float64, WIDTH))
load = _of.load if ENABLED else _load
store = _of.store if ENABLED else _store
splat = _of.splat if ENABLED else _splat
mul = _of.mul if ENABLED else _mul
div = _of.div if ENABLED else _div
sqrt = _of.sqrt if ENABLED else _sqrt
fma = _of.fma if ENABLED else _fma
fnma = _of.fnma if ENABLED else _fnma
