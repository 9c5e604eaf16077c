"""Vectors of eight doubles for kernels, where a loop does much with each: a processor with registers of 64
bytes takes them at once, others in halves. Where `simd.ENABLED` is false, kernels use their scalar twins.
"""

from numba import types

from polystick.kernels import elementary, kernel
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
    shifted = fma(x, splat(elementary.LOG2_E), splat(elementary.SHIFTER))
    k = add(shifted, splat(-elementary.SHIFTER))
    r = fnma(k, splat(elementary.LN2_LOW), fnma(k, splat(elementary.LN2_HIGH), x))
    r2 = mul(r, r)
    r4 = mul(r2, r2)
    low = fma(r2, _line(r, elementary.C2, elementary.C3), add(splat(1.0), r))
    middle = fma(r2, _line(r, elementary.C6, elementary.C7), _line(r, elementary.C4, elementary.C5))
    high = fma(
        r4,
        splat(elementary.C12),
        fma(r2, _line(r, elementary.C10, elementary.C11), _line(r, elementary.C8, elementary.C9)),
    )
    return raised(fma(r4, fma(r4, high, middle), low), shifted)


@kernel(forceinline=True)
def total(x, room):
    """Return the sum of the lanes; room (WIDTH,) is for them."""
    store(room, 0, x)
    even = (room[0] + room[4]) + (room[2] + room[6])
    return even + ((room[1] + room[5]) + (room[3] + room[7]))
