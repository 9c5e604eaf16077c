"""Vectors of doubles for kernels: LLVM's <WIDTH x double>, by Numba's extension interface.

A flat float64 array is read as a sequence of vectors: number p is its entries from p * WIDTH on.
Each operation is IEEE's in every lane, so a lane's bits depend neither on the lane nor on WIDTH nor
on the machine. Indices are not checked. Without the just-in-time compiler, or with
`POLYSTICK_SIMD=0`, `ENABLED` is false and kernels use their scalar twins.
"""

import os
from typing import Any

import numba
import numba.extending
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

__all__ = ["ENABLED", "WIDTH", "div", "fma", "fnma", "load", "mul", "splat", "sqrt", "store"]

WIDTH = 4  # 8 gave the same bits and took a fifth longer on AVX2 at k = 49
_COMPILED = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
ENABLED = _COMPILED and os.environ.get("POLYSTICK_SIMD", "1") != "0"

intrinsic: Any = numba.extending.intrinsic  # called without the typing context, which mypy misses
_LLVM = ir.VectorType(ir.DoubleType(), WIDTH)


class Vector(types.Type):
    def __init__(self):
        super().__init__(name=f"Vector{WIDTH}")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, numba_type):
        super().__init__(manager, numba_type, _LLVM)


vector = Vector()


def _pointer(context, builder, array_type, array, index):
    data = cgutils.create_struct_proxy(array_type)(context, builder, value=array).data
    first = builder.mul(index, ir.Constant(index.type, WIDTH))
    return builder.bitcast(builder.gep(data, [first]), _LLVM.as_pointer())


def _call(builder, name, arguments):
    signature = ir.FunctionType(_LLVM, [_LLVM] * len(arguments))
    function = cgutils.get_or_insert_function(builder.module, signature, f"llvm.{name}.v{WIDTH}f64")
    return builder.call(function, arguments)


@intrinsic
def load(typing, array, index):
    """Return vector number `index` of a flat array."""

    def generate(context, builder, signature, arguments):
        value = builder.load(_pointer(context, builder, signature.args[0], *arguments))
        value.align = 8
        return value

    return vector(array, types.intp), generate


@intrinsic
def store(typing, array, index, value):
    """Write vector number `index` of a flat array."""

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], pointer).align = 8
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

    return vector(types.float64), generate


@intrinsic
def mul(typing, x, y):
    """Return x * y."""
    return vector(vector, vector), lambda context, builder, signature, xy: builder.fmul(*xy)


@intrinsic
def div(typing, x, y):
    """Return x / y."""
    return vector(vector, vector), lambda context, builder, signature, xy: builder.fdiv(*xy)


@intrinsic
def sqrt(typing, x):
    """Return the square roots; NaN where x < 0."""
    return vector(vector), lambda context, builder, signature, x: _call(builder, "sqrt", x)


@intrinsic
def fma(typing, x, y, z):
    """Return z + x * y, rounded once."""
    return vector(vector, vector, vector), lambda context, builder, signature, xyz: _call(
        builder, "fma", xyz
    )


@intrinsic
def fnma(typing, x, y, z):
    """Return z - x * y, rounded once."""

    def generate(context, builder, signature, arguments):
        x, y, z = arguments
        return _call(builder, "fma", [builder.fneg(x), y, z])

    return vector(vector, vector, vector), generate
