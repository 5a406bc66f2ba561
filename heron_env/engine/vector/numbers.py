"""Arithmetic and functions of vectors: each element goes through what numba does with a number, to the same bits."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from heron_env.engine.arrays import LANES
from heron_env.engine.vector.masks import any_bits, is_vector, raise_flag, refuse
from heron_env.engine.vector.types import (
    EVERYWHERE,
    Vector,
    as_bits,
    as_mask,
    constant,
    convert,
    element,
    is_float,
    kept_as,
    lane_by_lane,
    llvm_of,
    scalar,
    types,
)

_ir: Any = ir
_cg: Any = cgutils
_intrinsic: Any = intrinsic
_I32 = _ir.IntType(32)


def typed_call(context: Any, function: Any, *kinds: Any) -> Any:
    """An intrinsic that does what numba does for this function and these types."""
    found = _typed(context, function, kinds)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = [context.cast(builder, a, k, w) for a, k, w in zip(args, signature.args, found[1].args, strict=True)]
        return context.get_function(*found)(builder, made)

    return found[1].return_type(*kinds), build


def _typed(context: Any, function: Any, kinds: Sequence[Any]) -> Any:
    """numba's signature of the function of numbers."""
    numbers = [kind.dtype if isinstance(kind, Vector) else kind for kind in kinds]
    kind = context.resolve_value_type(function)
    found = context.resolve_function_type(kind, tuple(numbers), {})
    if found is None:
        raise refuse(getattr(function, "__name__", str(function)), *kinds)
    return kind, found


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
DIVIDES = (operator.truediv, operator.floordiv, operator.mod)


def _applied(
    context: Any, builder: Any, function: Any, typed: Any, made: Any, kinds: Sequence[Any], args: Sequence[Any]
) -> Any:
    """A function of numbers on vectors, as numba's signature `typed` says it."""
    kind, found = typed
    wanted = [types.unliteral(part) for part in found.args]
    at_once = {*wanted} <= {types.float64, types.int64, types.uint64, types.boolean, types.float32}
    if at_once:
        vectors = [convert(context, builder, a, k, kept_as(w)) for a, k, w in zip(args, kinds, wanted, strict=True)]
        first = wanted[0]
        same = len({*wanted}) == 1
        if function in COMPARES and same:
            compare = builder.icmp_signed if first != types.uint64 else builder.icmp_unsigned
            if is_float(first):
                compare = builder.fcmp_unordered if function is operator.ne else builder.fcmp_ordered
            return as_mask(builder, compare(COMPARES[function], *vectors))
        if function in DIRECT and same and (name := DIRECT[function][not is_float(first)]) and made.dtype == first:
            return getattr(builder, name)(*vectors)
        if function is operator.rshift and same and first in (types.int64, types.uint64):
            return (builder.ashr if first == types.int64 else builder.lshr)(*vectors)
        if AT_ONCE.get(function) and first == types.float64 == made.dtype:
            vector = llvm_of(first)
            law = _cg.get_or_insert_function(
                builder.module, _ir.FunctionType(vector, [vector]), f"llvm.{AT_ONCE[function]}.v{LANES}f64"
            )
            return builder.call(law, vectors)
    else:
        vectors = [
            convert(context, builder, a, k, kept_as(types.unliteral(w)))
            for a, k, w in zip(args, kinds, wanted, strict=True)
        ]
    run = context.get_function(kind, found)

    def one(*parts: Any) -> Any:
        numbers = [
            context.cast(builder, scalar(context, builder, kept_as(w), part), kept_as(w), w)
            for part, w in zip(parts, wanted, strict=True)
        ]
        result = context.cast(builder, run(builder, numbers), found.return_type, made.dtype)
        return element(context, builder, made.dtype, result)

    return lane_by_lane(builder, llvm_of(made.dtype), one, vectors)


def of_numbers(function: Any) -> Any:
    """A word of one, two or three numbers or vectors for a function of numbers."""

    def typing(context: Any, *kinds: Any) -> Any:
        typed = _typed(context, function, kinds)
        made = Vector(typed[1].return_type) if is_vector(*kinds) else typed[1].return_type

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if not isinstance(signature.return_type, Vector):
                return context.get_function(*typed)(
                    builder,
                    [context.cast(builder, a, k, w) for a, k, w in zip(args, kinds, typed[1].args, strict=True)],
                )
            return _applied(context, builder, function, typed, signature.return_type, kinds, args)

        return made(*kinds), build

    return typing


def word(typing: Any, count: int, name: str, *, literal: bool = False) -> Any:
    """An intrinsic of so many arguments."""
    arguments = ", ".join(f"a{k}" for k in range(count))
    space: dict[str, Any] = {"typing": typing}
    exec(f"def {name}(context, {arguments}):\n    return typing(context, {arguments})", space)
    return _intrinsic(prefer_literal=literal)(space[name])


def dividing(function: Any) -> Any:
    """A word `(a, b, mask)`: where the mask does not hold nothing is divided; where b is 0 there the flag is set."""
    plain = of_numbers(function)

    def typing(context: Any, a: Any, b: Any, mask: Any) -> Any:
        signature, build = plain(context, a, b)
        (found,) = _typed(context, function, (a, b))[1:]
        divisor = kept_as(found.args[1])

        def guarded(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            made, kind = args[1], sig.args[1]
            if not isinstance(kind, Vector):
                bad = builder.not_(
                    context.is_true(
                        builder, types.unliteral(kind), context.cast(builder, made, kind, types.unliteral(kind))
                    )
                )
                if isinstance(sig.return_type, Vector) or not is_float(divisor):
                    raise_flag(builder, bad)
                if not is_float(divisor):
                    one = context.get_constant(types.unliteral(kind), 1)
                    made = builder.select(bad, one, made)
                return build(context, builder, signature, [args[0], made])
            vector = convert(context, builder, made, kind, divisor)
            if sig.args[2] is not EVERYWHERE:
                given = convert(context, builder, args[2], sig.args[2], types.boolean)
                vector = builder.select(as_bits(builder, given), vector, constant(divisor, 1))
            if function is not operator.truediv:
                zero = (builder.fcmp_ordered if is_float(divisor) else builder.icmp_signed)(
                    "==", vector, constant(divisor, 0)
                )
                raise_flag(builder, any_bits(builder, as_mask(builder, zero)))
                vector = builder.select(zero, constant(divisor, 1), vector)
            return _applied(
                context,
                builder,
                function,
                _typed(context.typing_context, function, (a, Vector(divisor))),
                sig.return_type,
                (a, Vector(divisor)),
                [args[0], vector],
            )

        return signature.return_type(a, b, mask), guarded

    return typing


def extreme(compare: Any) -> Any:
    """`min` or `max` of two, as numba has it: the second where it compares."""

    def typing(context: Any, a: Any, b: Any) -> Any:
        function = builtins.min if compare is operator.lt else builtins.max
        if not is_vector(a, b):
            return of_numbers(function)(context, a, b)
        dtype = context.unify_pairs(
            *(kind.dtype if isinstance(kind, Vector) else types.unliteral(kind) for kind in (a, b))
        )
        made = Vector(dtype)

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            one, other = (convert(context, builder, v, k, made.dtype) for v, k in zip(args, (a, b), strict=True))
            if is_float(made.dtype):
                wins = builder.fcmp_ordered(COMPARES[compare], other, one)
            else:
                law = builder.icmp_unsigned if made.dtype == types.uint64 else builder.icmp_signed
                wins = law(COMPARES[compare], other, one)
            return builder.select(wins, other, one)

        return made(a, b), build

    return typing


def cast_to(dtype: Any, function: Any) -> Any:
    """`int`, `float`, `np.float32`, ... of one number or vector."""

    def typing(context: Any, a: Any) -> Any:
        if not isinstance(a, Vector):
            return of_numbers(function)(context, a)

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return convert(context, builder, args[0], a, dtype)

        return Vector(dtype)(a), build

    return typing
