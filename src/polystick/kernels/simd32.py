"""Vectors of floats for kernels: LLVM's <WIDTH x float>, the narrow sister of `simd`.

A flat float32 array is read as a sequence of vectors: number p is its entries from p * WIDTH on.
Each operation is IEEE's in every lane and rounds once. There is no fused multiply-add: plain Python
has none for float32, and the scalar twins of kernels must give the same bits. Indices are not
checked. `ENABLED` is that of `simd`; `prefetch` may be called wherever kernels run.
"""

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

from polystick.kernels.simd import ENABLED, intrinsic

__all__ = ["ENABLED", "WIDTH", "add", "load", "mul", "prefetch", "splat", "store"]

WIDTH = 8
LINE = 64  # bytes in a line of the cache
COMPILED = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]

_LLVM = ir.VectorType(ir.FloatType(), WIDTH)


class Vector32(types.Type):
    def __init__(self):
        super().__init__(name=f"Vector32x{WIDTH}")


@register_model(Vector32)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, numba_type):
        super().__init__(manager, numba_type, _LLVM)


vector = Vector32()


def _entry(context, builder, array_type, array, index):
    data = cgutils.create_struct_proxy(array_type)(context, builder, value=array).data
    return builder.gep(data, [index])


def _pointer(context, builder, array_type, array, index):
    first = builder.mul(index, ir.Constant(index.type, WIDTH))
    entry = _entry(context, builder, array_type, array, first)
    return builder.bitcast(entry, _LLVM.as_pointer())


@intrinsic
def load(typing, array, index):
    """Return vector number `index` of a flat array."""

    def generate(context, builder, signature, arguments):
        value = builder.load(_pointer(context, builder, signature.args[0], *arguments))
        value.align = 4
        return value

    return vector(array, types.intp), generate


@intrinsic
def store(typing, array, index, value):
    """Write vector number `index` of a flat array."""

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], pointer).align = 4
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@intrinsic
def splat(typing, x):
    """Return the vector with x in every lane."""

    def generate(context, builder, signature, arguments):
        undefined = ir.Constant(_LLVM, ir.Undefined)
        one = builder.insert_element(undefined, arguments[0], ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), None)
        return builder.shuffle_vector(one, undefined, zeros)

    return vector(types.float32), generate


@intrinsic
def add(typing, x, y):
    """Return x + y."""
    return vector(vector, vector), lambda context, builder, signature, xy: builder.fadd(*xy)


@intrinsic
def mul(typing, x, y):
    """Return x * y."""
    return vector(vector, vector), lambda context, builder, signature, xy: builder.fmul(*xy)


@intrinsic
def _prefetch(typing, array, index):

    def generate(context, builder, signature, arguments):
        byte, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(_entry(context, builder, signature.args[0], *arguments), byte)
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
