"""Arithmetic and functions of vectors: each element goes through what numba does with a number, to the same bits."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from heron_env.engine.arrays import LANES
from heron_env.engine.linking import intrinsic
from heron_env.engine.vector.masks import any_set, fail_if, is_vector, refuse
from heron_env.engine.vector.types import (
    EVERYWHERE,
    VectorType,
    as_element,
    as_mask,
    as_number,
    bits_of,
    compared,
    constant,
    convert,
    is_float,
    lane_by_lane,
    llvm_of,
    number_of,
    stored_as,
)


def typed_call(context: Any, function: Any, *kinds: Any) -> Any:
    """An intrinsic that does what numba does for this function and these types."""
    typed = _typed(context, function, kinds)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = [context.cast(builder, a, k, w) for a, k, w in zip(args, signature.args, typed[1].args, strict=True)]
        return context.get_function(*typed)(builder, made)

    return typed[1].return_type(*kinds), build


def _typed(context: Any, function: Any, kinds: Sequence[Any]) -> Any:
    """numba's signature of the function of numbers."""
    kind = context.resolve_value_type(function)
    numbers = tuple(kind.dtype if isinstance(kind, VectorType) else kind for kind in kinds)
    signature = context.resolve_function_type(kind, numbers, {})
    if signature is None:
        raise refuse(getattr(function, "__name__", str(function)), *kinds)
    return kind, signature


DIRECT = {
    operator.add: ("fadd", "add"), operator.sub: ("fsub", "sub"), operator.mul: ("fmul", "mul"),
    operator.and_: (None, "and_"), operator.or_: (None, "or_"), operator.xor: (None, "xor"),
    operator.truediv: ("fdiv", None), operator.neg: ("fneg", "neg"), operator.lshift: (None, "shl"),
}  # fmt: skip
"""What LLVM does with vectors at once: of floats, and of whole numbers."""
COMPARES = {
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}
AT_ONCE = {
    math.sqrt: "sqrt", math.fabs: "fabs", np.sqrt: "sqrt", np.rint: "rint", np.floor: "floor", np.ceil: "ceil",
    np.fabs: "fabs", np.abs: "fabs", builtins.abs: "fabs", np.trunc: "trunc",
}  # fmt: skip
"""LLVM's intrinsics with the bits of these functions of float64."""


def _applied(
    context: Any, builder: Any, function: Any, typed: Any, made: Any, kinds: Sequence[Any], args: Sequence[Any],
    bits: Any = None,
) -> Any:  # fmt: skip
    """A function of numbers on vectors, as numba's signature `typed` says it; where `bits` are not set it may be 0."""
    kind, signature = typed
    argument_types = [types.unliteral(part) for part in signature.args]
    vectors = [
        convert(context, builder, a, k, stored_as(w)) for a, k, w in zip(args, kinds, argument_types, strict=True)
    ]
    if len({*argument_types}) == 1 and argument_types[0] == stored_as(argument_types[0]):
        result = _at_once(builder, function, made.dtype, argument_types[0], vectors)
        if result is not None:
            return result
    run = context.get_function(kind, signature)

    def one(*parts: Any) -> Any:
        numbers = [
            context.cast(builder, as_number(builder, stored_as(w), part), stored_as(w), w)
            for part, w in zip(parts, argument_types, strict=True)
        ]
        result = context.cast(builder, run(builder, numbers), signature.return_type, made.dtype)
        return as_element(builder, made.dtype, result)

    return lane_by_lane(builder, llvm_of(made.dtype), one, vectors, bits)


def _at_once(builder: Any, function: Any, made: Any, dtype: Any, vectors: Sequence[Any]) -> Any:
    """What LLVM makes of whole vectors of elements `dtype`; None where it knows no such function."""
    if function in COMPARES:
        return as_mask(builder, compared(builder, COMPARES[function], dtype, *vectors))
    if function in DIRECT and made == dtype and (name := DIRECT[function][not is_float(dtype)]):
        return getattr(builder, name)(*vectors)
    if function is operator.rshift and dtype in (types.int64, types.uint64):
        return (builder.ashr if dtype == types.int64 else builder.lshr)(*vectors)
    if function in AT_ONCE and dtype == types.float64 == made:
        kind = ir.FunctionType(llvm_of(dtype), [llvm_of(dtype)])
        name = f"llvm.{AT_ONCE[function]}.v{LANES}f64"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), vectors)
    return None


def of_numbers(function: Any) -> Any:
    """A word of one, two or three numbers or vectors for a function of numbers."""

    def typing(context: Any, *kinds: Any) -> Any:
        if not is_vector(*kinds):
            return typed_call(context, function, *kinds)
        typed = _typed(context, function, kinds)
        made = VectorType(typed[1].return_type)

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _applied(context, builder, function, typed, made, kinds, args)

        return made(*kinds), build

    return typing


def under_mask(function: Any) -> Any:
    """The same with a mask as the last argument: where it does not hold, nothing is worked out."""
    plain = of_numbers(function)

    def typing(context: Any, *arguments: Any) -> Any:
        kinds, mask = arguments[:-1], arguments[-1]
        signature, build = plain(context, *kinds)
        typed = _typed(context, function, kinds)

        def masked(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            if mask is EVERYWHERE or not isinstance(sig.return_type, VectorType):
                return build(context, builder, signature, args[:-1])
            bits = bits_of(context, builder, mask, args[-1])
            return _applied(context, builder, function, typed, sig.return_type, kinds, args[:-1], bits)

        return signature.return_type(*arguments), masked

    return typing


def word(typing: Any, count: int, name: str, *, literal: bool = False, masked: bool = False) -> Any:
    """An intrinsic of so many arguments, and `mask_`."""
    arguments = ", ".join([*(f"a{k}" for k in range(count)), *["mask_"] * masked])
    space: dict[str, Any] = {"typing": typing}
    exec(f"def {name}(context, {arguments}):\n    return typing(context, {arguments})", space)
    return intrinsic(prefer_literal=literal)(space[name])


def dividing(function: Any) -> Any:
    """A word `(a, b, mask)`: where the mask does not hold nothing is divided; a `b` of 0 counts as a failure."""

    def typing(context: Any, a: Any, b: Any, mask: Any) -> Any:
        kind, resolved = typed = _typed(context, function, (a, b))
        vectors = is_vector(a, b)
        made = VectorType(resolved.return_type) if vectors else resolved.return_type

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            divisor = stored_as(resolved.args[1])
            if vectors:
                safe = _divisor(context, builder, divisor, (b, args[1]), (mask, args[2]))
                kinds = (a, VectorType(divisor))
                return _applied(context, builder, function, typed, made, kinds, [args[0], safe])
            numbers = [context.cast(builder, v, k, w) for v, k, w in zip(args, (a, b), resolved.args, strict=False)]
            zero = compared(builder, "==", divisor, numbers[1], numbers[1].type(0))
            fail_if(builder, zero)
            numbers[1] = builder.select(zero, numbers[1].type(1), numbers[1])
            return context.get_function(kind, resolved)(builder, numbers)

        return made(a, b, mask), build

    return typing


def _divisor(context: Any, builder: Any, dtype: Any, denominator: Any, mask: Any) -> Any:
    """The divisor as a vector, 1 where the mask does not hold; `denominator` and `mask`: types and values."""
    vector = convert(context, builder, denominator[1], denominator[0], dtype)
    if mask[0] is not EVERYWHERE:
        vector = builder.select(bits_of(context, builder, *mask), vector, constant(dtype, 1))
    zero = compared(builder, "==", dtype, vector, constant(dtype, 0))
    fail_if(builder, any_set(builder, zero))
    return builder.select(zero, constant(dtype, 1), vector)


def extreme(compare: Any) -> Any:
    """`min` or `max` of two, as numba has it: the second where it compares."""

    def typing(context: Any, a: Any, b: Any) -> Any:
        function = builtins.min if compare is operator.lt else builtins.max
        if not is_vector(a, b):
            return of_numbers(function)(context, a, b)
        made = VectorType(context.unify_pairs(number_of(a), number_of(b)))

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            one, other = (convert(context, builder, v, k, made.dtype) for v, k in zip(args, (a, b), strict=True))
            return builder.select(compared(builder, COMPARES[compare], made.dtype, other, one), other, one)

        return made(a, b), build

    return typing


def cast_to(dtype: Any, function: Any) -> Any:
    """`int`, `float`, `np.float32`, ... of one number or vector."""

    def typing(context: Any, a: Any) -> Any:
        if not isinstance(a, VectorType):
            return of_numbers(function)(context, a)

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return convert(context, builder, args[0], a, dtype)

        return VectorType(dtype)(a), build

    return typing
