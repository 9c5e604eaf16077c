"""Vectors for kernels: LLVM's <width x double> or <width x float>, by Numba's extension interface.

A flat array is read as a sequence of vectors: number p is its entries from p * width on. Each operation is
IEEE's in every lane, so a lane's bits depend neither on the lane nor on the width nor on the machine.
Indices are not checked. `simd` and `simd32` are the two kinds that kernels use.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numba.extending
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

MANTISSA = {4: 23, 8: 52}  # bits, of numbers of so many bytes
intrinsic: Any = numba.extending.intrinsic  # called without the typing context, which mypy misses


class Vector(types.Type):
    """The type of `width` numbers."""

    def __init__(self, number, width):
        super().__init__(name=f"Vector{width}x{number}")
        self.number, self.width, self.n_bytes = number, width, number.bitwidth // 8
        of_llvm = ir.DoubleType() if number == types.float64 else ir.FloatType()
        self.llvm = ir.VectorType(of_llvm, width)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, vector):
        super().__init__(manager, vector, vector.llvm)


class Operations(NamedTuple):
    """What can be done with vectors of a kind; each is one or two instructions."""

    load: Callable[..., Any]  # (array, index): vector number `index` of a flat array
    store: Callable[..., Any]  # (array, index, x): write it
    splat: Callable[..., Any]  # (number): the vector with it in every lane
    add: Callable[..., Any]  # (x, y): x + y
    mul: Callable[..., Any]  # (x, y): x * y
    div: Callable[..., Any]  # (x, y): x / y
    sqrt: Callable[..., Any]  # (x): NaN where x < 0
    fma: Callable[..., Any]  # (x, y, z): z + x * y, rounded once
    fnma: Callable[..., Any]  # (x, y, z): z - x * y, rounded once
    where_zero: Callable[..., Any]  # (x, y, z): y in the lanes where x is 0, else z
    least: Callable[..., Any]  # (x, y): x where x < y, else y
    most: Callable[..., Any]  # (x, y): x where x > y, else y
    raised: Callable[..., Any]  # (x, y): x times 2 to the power in the lowest bits of y


def operations(vector):
    """Return the operations on vectors of a type."""

    def add(builder, x, y):
        return builder.fadd(x, y)

    def mul(builder, x, y):
        return builder.fmul(x, y)

    def div(builder, x, y):
        return builder.fdiv(x, y)

    def sqrt(builder, x):
        return _call(vector, builder, "sqrt", x)

    def fma(builder, x, y, z):
        return _call(vector, builder, "fma", x, y, z)

    def fnma(builder, x, y, z):
        return fma(builder, builder.fneg(x), y, z)

    def where_zero(builder, x, y, z):
        return builder.select(builder.fcmp_ordered("==", x, ir.Constant(x.type, None)), y, z)

    def least(builder, x, y):
        return builder.select(builder.fcmp_ordered("<", x, y), x, y)

    def most(builder, x, y):
        return builder.select(builder.fcmp_ordered(">", x, y), x, y)

    def raised(builder, x, y):
        bits = ir.VectorType(ir.IntType(8 * vector.n_bytes), vector.width)
        mantissa = ir.Constant(bits, [MANTISSA[vector.n_bytes]] * vector.width)
        power = builder.shl(builder.bitcast(y, bits), mantissa)
        return builder.bitcast(builder.add(builder.bitcast(x, bits), power), vector.llvm)

    built = (add, mul, div, sqrt, fma, fnma, where_zero, least, most, raised)
    return Operations(*_memory(vector), *(_elementwise(vector, build) for build in built))


def entry(context, builder, array_type, array, index):
    """Return the address of a number of a flat array."""
    data = cgutils.create_struct_proxy(array_type)(context, builder, value=array).data
    return builder.gep(data, [index])


def _memory(vector):
    """Return load, store and splat."""

    def address(context, builder, array_type, array, index):
        first = builder.mul(index, ir.Constant(index.type, vector.width))
        number = entry(context, builder, array_type, array, first)
        return builder.bitcast(number, vector.llvm.as_pointer())

    @intrinsic
    def load(typing, array, index):
        def generate(context, builder, signature, arguments):
            value = builder.load(address(context, builder, signature.args[0], *arguments))
            value.align = vector.n_bytes
            return value

        return vector(array, types.intp), generate

    @intrinsic
    def store(typing, array, index, x):
        def generate(context, builder, signature, arguments):
            array, index, x = arguments
            at = address(context, builder, signature.args[0], array, index)
            builder.store(x, at).align = vector.n_bytes
            return context.get_dummy_value()

        return types.void(array, types.intp, vector), generate

    @intrinsic
    def splat(typing, number):
        def generate(context, builder, signature, arguments):
            undefined = ir.Constant(vector.llvm, ir.Undefined)
            one = builder.insert_element(undefined, arguments[0], ir.Constant(ir.IntType(32), 0))
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector.width), None)
            return builder.shuffle_vector(one, undefined, zeros)

        return vector(vector.number), generate

    return load, store, splat


def _elementwise(vector, build):
    """Return an operation from vectors to a vector; build takes one, two or three of them."""

    def generate(context, builder, signature, arguments):
        return build(builder, *arguments)

    def one(typing, x):
        return vector(vector), generate

    def two(typing, x, y):
        return vector(vector, vector), generate

    def three(typing, x, y, z):
        return vector(vector, vector, vector), generate

    n_vectors = build.__code__.co_argcount - 1  # Numba takes no starred arguments
    return intrinsic((one, two, three)[n_vectors - 1])


def _call(vector, builder, name, *arguments):
    """Call one of LLVM's own functions."""
    signature = ir.FunctionType(vector.llvm, [vector.llvm] * len(arguments))
    full = f"llvm.{name}.v{vector.width}f{8 * vector.n_bytes}"
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, full), arguments)
