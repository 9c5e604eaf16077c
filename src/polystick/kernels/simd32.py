"""Vectors of floats for kernels, the narrow sister of `simd`.

There is no fused multiply-add: plain Python has none for float32, and the scalar twins of kernels must give
the same bits. `prefetch` may be called wherever kernels run.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils

from polystick.kernels import COMPILED
from polystick.kernels import SIMD as ENABLED
from polystick.kernels.vectors import Vector, entry, intrinsic, operations

__all__ = ["ENABLED", "WIDTH", "add", "load", "mul", "prefetch", "splat", "store", "where_zero"]

WIDTH = 8
LINE = 64  # bytes in a line of the cache

_of = operations(Vector(types.float32, WIDTH))
load, store, splat = _of.load, _of.store, _of.splat
add, mul, where_zero = _of.add, _of.mul, _of.where_zero


@intrinsic
def _prefetch(typing, array, index):

    def generate(context, builder, signature, arguments):
        byte, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(entry(context, builder, signature.args[0], *arguments), byte)
        signature = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
        function = cgutils.get_or_insert_function(builder.module, signature, "llvm.prefetch.p0")
        read, keep, data = (ir.Constant(i32, n) for n in (0, 3, 1))
        builder.call(function, [address, read, keep, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _ignore(array, index):
    """Do nothing, where there is no compiler."""


# asks for the line of the cache that holds entry (not vector) number `index` of a flat array
prefetch = _prefetch if COMPILED else _ignore
