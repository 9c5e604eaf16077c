"""Vectors of doubles for kernels.

Without the just-in-time compiler, or with `POLYSTICK_SIMD=0`, `ENABLED` is false and kernels use their
scalar twins.
"""

from numba import types

from polystick.kernels import SIMD as ENABLED
from polystick.kernels.vectors import Vector, operations

__all__ = ["ENABLED", "WIDTH", "div", "fma", "fnma", "load", "mul", "splat", "sqrt", "store"]

WIDTH = 4  # 8 gave the same bits and took a fifth longer on AVX2 at k = 49

_of = operations(Vector(types.float64, WIDTH))
load, store, splat = _of.load, _of.store, _of.splat
mul, div, sqrt, fma, fnma = _of.mul, _of.div, _of.sqrt, _of.fma, _of.fnma
