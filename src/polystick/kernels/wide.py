"""Vectors of eight doubles for kernels, where a loop does much with each: a processor with registers of 64
bytes takes them at once, others in halves. Where `simd.ENABLED` is false, kernels use their scalar twins.
"""

from numba import types

from polystick.kernels import kernel
from polystick.kernels.elementary import (
    C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, LN2_HIGH, LN2_LOW, LOG2_E, SHIFTER,
)  # fmt: skip
from polystick.kernels.vectors import Vector, operations

__all__ = ["WIDTH", "add", "div", "exp", "fma", "load", "mul", "splat", "store", "total"]

WIDTH = 8

_of = operations(Vector(types.float64, WIDTH))
load, store, splat = _of.load, _of.store, _of.splat
add, mul, div, fma, fnma = _of.add, _of.mul, _of.div, _of.fma, _of.fnma
least, most, raised = _of.least, _of.most, _of.raised


@kernel(forceinline=True)
def _line(r, first, second):
    return fma(r, splat(second), splat(first))


@kernel(inline="always")
def exp(x):
    """Return e^x as `elementary.exp` does, with fewer roundings."""
    x = least(most(x, splat(-700.0)), splat(700.0))
    shifted = fma(x, splat(LOG2_E), splat(SHIFTER))
    k = add(shifted, splat(-SHIFTER))
    r = fnma(k, splat(LN2_LOW), fnma(k, splat(LN2_HIGH), x))
    r2 = mul(r, r)
    r4 = mul(r2, r2)
    low = fma(r2, _line(r, C2, C3), add(splat(1.0), r))
    middle = fma(r2, _line(r, C6, C7), _line(r, C4, C5))
    high = fma(r4, splat(C12), fma(r2, _line(r, C10, C11), _line(r, C8, C9)))
    return raised(fma(r4, fma(r4, high, middle), low), shifted)


@kernel(forceinline=True)
def total(x, room):
    """Return the sum of the lanes; room (WIDTH,) is for them."""
    store(room, 0, x)
    even = (room[0] + room[4]) + (room[2] + room[6])
    return even + ((room[1] + room[5]) + (room[3] + room[7]))
