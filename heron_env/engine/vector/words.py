"""What converted text calls (branches.py): masks, selects, arithmetic and arrays, of numbers and of vectors of them.

Every word takes numbers too, and does then what numba does with them. Each element of a vector goes through the same
operations as a number would, so that it has the same bits. What raises in the text for one lane (a division by zero,
an element that is not there) sets the processor's flag of a division by zero here; who runs the text looks at it.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload_attribute, overload_method

from heron_env.engine.arrays import LANES
from heron_env.engine.vector.types import (
    ALL,
    BITS,
    EVERYWHERE,
    NOVALUE,
    NOWHERE,
    NUMBERS,
    UNSET,
    Drawn,
    Vector,
    VectorArray,
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
_intrinsic: Any = intrinsic
MASK = Vector(types.boolean)
DIVIDED_BY_ZERO, INVALID = 4, 1
"""Bits of MXCSR, which stay until they are cleared."""
_I64, _I32, _BYTES = _ir.IntType(64), _ir.IntType(32), _ir.IntType(8).as_pointer()


def _is_vector(*kinds: Any) -> bool:
    return any(isinstance(kind, Vector) for kind in kinds)


def refuse(what: str, *kinds: Any) -> TypingError:
    return TypingError(f"vectors know no {what} of {', '.join(map(str, kinds))}")


# Flags


def _control(builder: Any, name: str, slot: Any) -> None:
    kind = _ir.FunctionType(_ir.VoidType(), [_BYTES])
    builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}"), [slot])


def _read_flags(builder: Any) -> tuple[Any, Any]:
    slot = cgutils.alloca_once(builder, _I32)
    place = builder.bitcast(slot, _BYTES)
    _control(builder, "stmxcsr", place)
    return slot, builder.load(slot)


def raise_flag(builder: Any, bad: Any) -> None:
    """Set the flag if this bit is set."""
    with builder.if_then(bad, likely=False):
        slot, flags = _read_flags(builder)
        builder.store(builder.or_(flags, _I32(DIVIDED_BY_ZERO)), slot)
        _control(builder, "ldmxcsr", builder.bitcast(slot, _BYTES))


@_intrinsic  # type: ignore[untyped-decorator]
def take_flags(context: Any) -> Any:
    """Was anything divided by zero, or invalid, since this was asked last?"""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        slot, flags = _read_flags(builder)
        asked = _I32(DIVIDED_BY_ZERO | INVALID)
        builder.store(builder.and_(flags, builder.not_(asked)), slot)
        _control(builder, "ldmxcsr", builder.bitcast(slot, _BYTES))
        return builder.icmp_unsigned("!=", builder.and_(flags, asked), _I32(0))

    return types.boolean(), build


# Masks


def any_set(builder: Any, bits: Any) -> Any:
    """Is any of LLVM's bits set?"""
    return _any(builder, as_mask(builder, bits))


def _any(builder: Any, mask: Any) -> Any:
    """Does a mask hold anywhere?"""
    kind = _ir.FunctionType(_I64, [BITS])
    reduce = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.or.v{LANES}i64")
    return builder.icmp_signed("!=", builder.call(reduce, [mask]), _I64(0))


@_intrinsic  # type: ignore[untyped-decorator]
def any_of(context: Any, mask: Any) -> Any:
    """Does it hold anywhere?"""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        if kind in (EVERYWHERE, NOWHERE):
            return _ir.IntType(1)(kind is EVERYWHERE)
        return _any(builder, args[0]) if isinstance(kind, Vector) else args[0]

    return types.boolean(mask), build


@_intrinsic  # type: ignore[untyped-decorator]
def truth_of(context: Any, value: Any) -> Any:
    """A value as a mask."""
    if value in (EVERYWHERE, NOWHERE):
        made = value
    elif isinstance(value, Vector):
        made = MASK
    else:
        made = types.boolean

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        if isinstance(kind, Vector):
            return convert(context, builder, args[0], kind, types.boolean)
        return args[0] if isinstance(kind, type(EVERYWHERE)) else context.is_true(builder, kind, args[0])

    return made(value), build


def _joined(context: Any, one: Any, other: Any, neutral: Any, whole: Any, join: Any) -> Any:
    """`both` and `either`: one of two leaves the other as it is, `neutral`, or decides alone, `whole`."""
    made: Any
    if one is whole or other is whole:
        made = whole
    elif one is neutral or other is neutral:
        made = other if one is neutral else one
    else:
        made = MASK if _is_vector(one, other) else types.boolean

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one, other = signature.args
        if isinstance(made, type(EVERYWHERE)):
            return context.get_dummy_value()
        if one is neutral or other is neutral:
            return args[one is neutral]
        if made == MASK:
            args = [
                convert(context, builder, value, kind, types.boolean)
                for value, kind in zip(args, signature.args, strict=True)
            ]
        return getattr(builder, join)(*args)

    return made(one, other), build


@_intrinsic  # type: ignore[untyped-decorator]
def both(context: Any, one: Any, other: Any) -> Any:
    """Where both masks hold."""
    return _joined(context, one, other, EVERYWHERE, NOWHERE, "and_")


@_intrinsic  # type: ignore[untyped-decorator]
def either(context: Any, one: Any, other: Any) -> Any:
    """Where one of them does."""
    return _joined(context, one, other, NOWHERE, EVERYWHERE, "or_")


@_intrinsic  # type: ignore[untyped-decorator]
def negated(context: Any, mask: Any) -> Any:
    """Where it does not."""
    made = {EVERYWHERE: NOWHERE, NOWHERE: EVERYWHERE}.get(mask, mask)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.get_dummy_value() if made != signature.args[0] else builder.not_(args[0])

    return made(mask), build


def _selected(context: Any, mask: Any, value: Any, other: Any) -> Any:
    """The type of `where`."""
    if mask is EVERYWHERE or other is NOVALUE or value is NOVALUE:
        return other if value is NOVALUE and mask is not EVERYWHERE else value
    if mask is NOWHERE:
        return other
    if isinstance(value, types.BaseTuple) and isinstance(other, types.BaseTuple) and len(value) == len(other):
        parts = [_selected(context, mask, mine, theirs) for mine, theirs in zip(value, other, strict=True)]
        return types.BaseTuple.from_types(parts, getattr(value, "instance_class", None))
    kinds = (value, other)
    if all(isinstance(kind, (Vector, *NUMBERS)) for kind in kinds):
        dtypes = [kind.dtype if isinstance(kind, Vector) else types.unliteral(kind) for kind in kinds]
        found = context.unify_pairs(*dtypes)
        if found is not None:
            return Vector(found) if _is_vector(mask, *kinds) else found
    if value == other and not _is_vector(mask):
        return value
    raise refuse("choice", *kinds)


def _select(context: Any, builder: Any, made: Any, kinds: Sequence[Any], args: Sequence[Any]) -> Any:
    mask, value, other = kinds
    if mask is EVERYWHERE or other is NOVALUE or value is NOVALUE:
        return args[2] if value is NOVALUE and mask is not EVERYWHERE else args[1]
    if mask is NOWHERE:
        return args[2]
    if isinstance(made, types.BaseTuple):
        parts = [
            _select(context, builder, part, (mask, mine, theirs),
                    (args[0], builder.extract_value(args[1], k), builder.extract_value(args[2], k)))
            for k, (part, mine, theirs) in enumerate(zip(made, value, other, strict=True))
        ]  # fmt: skip
        return context.make_tuple(builder, made, parts)
    if isinstance(made, Vector):
        vectors = [
            convert(context, builder, arg, kind, made.dtype) for arg, kind in zip(args[1:], kinds[1:], strict=True)
        ]
        return builder.select(as_bits(builder, args[0]) if isinstance(mask, Vector) else args[0], *vectors)
    return builder.select(
        args[0], *(context.cast(builder, a, k, made) for a, k in zip(args[1:], kinds[1:], strict=True))
    )


@_intrinsic  # type: ignore[untyped-decorator]
def where(context: Any, mask: Any, value: Any, other: Any) -> Any:
    """`value` where the mask holds, else `other`; of tuples each part."""
    made = _selected(context, mask, value, other)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _select(context, builder, signature.return_type, signature.args, args)

    return made(mask, value, other), build


# Arithmetic and functions


draw_element: Any = None
"""An element of Drawn; compiling.py says how it is made."""


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
            law = cgutils.get_or_insert_function(
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


def _of_numbers(function: Any) -> Any:
    """A word of one, two or three numbers or vectors for a function of numbers."""

    def typing(context: Any, *kinds: Any) -> Any:
        typed = _typed(context, function, kinds)
        made = Vector(typed[1].return_type) if _is_vector(*kinds) else typed[1].return_type

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if not isinstance(signature.return_type, Vector):
                return context.get_function(*typed)(
                    builder,
                    [context.cast(builder, a, k, w) for a, k, w in zip(args, kinds, typed[1].args, strict=True)],
                )
            return _applied(context, builder, function, typed, signature.return_type, kinds, args)

        return made(*kinds), build

    return typing


def _word(typing: Any, count: int, name: str, *, literal: bool = False) -> Any:
    """An intrinsic of so many arguments."""
    arguments = ", ".join(f"a{k}" for k in range(count))
    space: dict[str, Any] = {"typing": typing}
    exec(f"def {name}(context, {arguments}):\n    return typing(context, {arguments})", space)
    return _intrinsic(prefer_literal=literal)(space[name])


def _dividing(function: Any) -> Any:
    """A word `(a, b, mask)`: where the mask does not hold nothing is divided; where b is 0 there the flag is set."""
    plain = _of_numbers(function)

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
                raise_flag(builder, _any(builder, as_mask(builder, zero)))
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


def _extreme(compare: Any) -> Any:
    """`min` or `max` of two, as numba has it: the second where it compares."""

    def typing(context: Any, a: Any, b: Any) -> Any:
        function = builtins.min if compare is operator.lt else builtins.max
        if not _is_vector(a, b):
            return _of_numbers(function)(context, a, b)
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


def _cast_to(dtype: Any, function: Any) -> Any:
    """`int`, `float`, `np.float32`, ... of one number or vector."""

    def typing(context: Any, a: Any) -> Any:
        if not isinstance(a, Vector):
            return _of_numbers(function)(context, a)

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return convert(context, builder, args[0], a, dtype)

        return Vector(dtype)(a), build

    return typing


# Arrays


def _parts(context: Any, builder: Any, kind: Any, value: Any) -> tuple[Any, list[Any], list[Any]]:
    """Data, shape and steps of an array of vectors."""
    made = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    return (
        made.data,
        cgutils.unpack_tuple(builder, made.shape, kind.ndim),
        cgutils.unpack_tuple(builder, made.steps, kind.ndim),
    )


def vector_array(context: Any, builder: Any, kind: Any, data: Any, shape: Sequence[Any], steps: Sequence[Any]) -> Any:
    """A VectorArray of this type."""
    made = cgutils.create_struct_proxy(kind)(context, builder)
    made.data = builder.bitcast(data, _BYTES)
    made.shape, made.steps = cgutils.pack_array(builder, shape, _I64), cgutils.pack_array(builder, steps, _I64)
    return made._getvalue()


def shifted(
    context: Any, builder: Any, kind: Any, made: Any, value: Any, first: Any, shape: Sequence[Any], steps: Sequence[Any]
) -> Any:
    """A view `made` of an array of one axis from element `first` on."""
    data, _, _ = _parts(context, builder, kind, value)
    place = builder.gep(data, [builder.mul(first, _I64(_size(kind)))])
    return vector_array(context, builder, made, place, shape, steps)


def _load(context: Any, builder: Any, kind: Any, place: Any) -> Any:
    """The vector at a place (of bytes)."""
    small = kind.dtype in (types.uint8, types.bool_)
    made = _ir.VectorType(_ir.IntType(8), LANES) if small else llvm_of(kind.element.dtype)
    loaded = builder.load(builder.bitcast(place, made.as_pointer()), align=8)
    return builder.zext(loaded, llvm_of(types.int64)) if small else loaded


def _keep(context: Any, builder: Any, kind: Any, place: Any, value: Any, mask: Any) -> None:
    """Store an element; `mask`: LLVM's bits, or None for all."""
    if mask is not None:
        value = builder.select(mask, value, _load(context, builder, kind, place))
    if kind.dtype in (types.uint8, types.bool_):
        value = builder.trunc(value, _ir.VectorType(_ir.IntType(8), LANES))
    builder.store(value, builder.bitcast(place, value.type.as_pointer()), align=8)


def _size(kind: Any) -> int:
    """Bytes of an element."""
    return LANES * (1 if kind.dtype in (types.uint8, types.bool_) else 8)


def _within(builder: Any, at: Any, length: Any, kind: Any) -> Any:
    """An index from the end counted from the start; one that is not there sets the flag and becomes 0."""
    at = (
        builder.zext(at, _I64)
        if at.type.width < 64 and not getattr(kind, "signed", True)
        else (builder.sext(at, _I64) if at.type.width < 64 else at)
    )
    at = builder.select(builder.icmp_signed("<", at, _I64(0)), builder.add(at, length), at)
    bad = builder.icmp_unsigned(">=", at, length)
    raise_flag(builder, bad)
    return builder.select(bad, _I64(0), at)


def _keys(kind: Any, key: Any, array: Any) -> list[Any]:
    """Types of the indices behind that of the lane, by position in the key."""
    keys = list(key) if isinstance(key, types.BaseTuple) else [key]
    return keys[1:] if array.lanes else keys


def _unpacked(builder: Any, array: Any, key: Any, value: Any) -> list[Any]:
    if isinstance(key, types.BaseTuple):
        values = [builder.extract_value(value, k) for k in range(len(key))]
    else:
        values = [value]
    return values[1:] if getattr(array, "lanes", False) else values


def _place(
    context: Any, builder: Any, array: Any, value: Any, keys: Sequence[Any], at: Sequence[Any]
) -> tuple[Any, Any, Any]:
    """Address, shape and steps of what these indices leave."""
    data, shape, steps = _parts(context, builder, array, value)
    offset, left, strides = _I64(0), [], []
    checked = not array.lanes  # the engine's own text asks for what is there
    for axis, (length, step) in enumerate(zip(shape, steps, strict=True)):
        if axis >= len(keys):
            left.append(length)
            strides.append(step)
            continue
        if isinstance(keys[axis], types.SliceType):
            part = context.make_helper(builder, keys[axis], at[axis])
            stop = builder.select(builder.icmp_signed("<", part.stop, length), part.stop, length)
            by = part.step if keys[axis].has_step else _I64(1)
            span = builder.sub(builder.add(stop, builder.sub(by, _I64(1))), part.start)
            left.append(builder.sdiv(span, by))
            strides.append(builder.mul(step, by))
            offset = builder.add(offset, builder.mul(part.start, step))
        else:
            number = context.cast(builder, at[axis], keys[axis], types.int64)
            number = _within(builder, number, length, keys[axis]) if checked else number
            offset = builder.add(offset, builder.mul(number, step))
    return builder.gep(data, [builder.mul(offset, _I64(_size(array)))]), left, strides


def _gathers(keys: Sequence[Any]) -> bool:
    return any(isinstance(key, Vector) for key in keys)


def _places(context: Any, builder: Any, array: Any, value: Any, keys: Sequence[Any], at: Sequence[Any]) -> list[Any]:
    """The address of each lane's own element."""
    data, shape, steps = _parts(context, builder, array, value)
    size = _size(array) // LANES
    found = []
    for lane in range(LANES):
        offset = _I64(0)
        for kind, number, length, step in zip(keys, at, shape, steps, strict=True):
            if isinstance(kind, Vector):
                own = builder.extract_element(number, _I32(lane))
            else:
                own = context.cast(builder, number, kind, types.int64)
            offset = builder.add(offset, builder.mul(_within(builder, own, length, types.int64), step))
        offset = builder.add(builder.mul(offset, _I64(_size(array))), _I64(lane * size))
        found.append(builder.gep(data, [offset]))
    return found


def _vector_item(context: Any, array: Any, key: Any) -> Any:
    keys = _keys(array, key, array)
    sliced = sum(isinstance(kind, types.SliceType) for kind in keys)
    axes = array.ndim - len(keys) + sliced
    gathers = _gathers(keys)
    if len(keys) > array.ndim or (gathers and axes):
        raise refuse("element", array, key)
    made = VectorArray(array.dtype, axes) if axes else array.element

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = _unpacked(builder, array, key, args[1])
        if gathers:
            stored = _I64 if _size(array) == 8 * LANES else _ir.IntType(8)
            result = _ir.VectorType(stored, LANES)(_ir.Undefined)
            for lane, place in enumerate(_places(context, builder, array, args[0], keys, at)):
                part = builder.load(builder.bitcast(place, stored.as_pointer()))
                result = builder.insert_element(result, part, _I32(lane))
            if stored.width == 8:
                return builder.zext(result, llvm_of(types.int64))
            return builder.bitcast(result, llvm_of(array.element.dtype))
        place, shape, steps = _place(context, builder, array, args[0], keys, at)
        if axes:
            return vector_array(context, builder, made, place, shape, steps)
        return _load(context, builder, array, place)

    return made(array, key), build


def _gathered(context: Any, array: Any, key: Any) -> Any:
    """Each lane's own element of an array or a tuple that all lanes share."""
    dtype = array.dtype
    made = Vector(dtype)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if isinstance(array, types.UniTuple):
            length = _I64(len(array))
            slot = cgutils.alloca_once_value(builder, args[0])
            data = builder.bitcast(slot, context.get_value_type(dtype).as_pointer())
        else:
            given = context.make_array(array)(context, builder, value=args[0])
            data, (length,) = given.data, cgutils.unpack_tuple(builder, given.shape, 1)

        def one(at: Any) -> Any:
            place = builder.gep(data, [_within(builder, at, length, types.int64)])
            number = context.cast(builder, context.unpack_value(builder, dtype, place), dtype, made.dtype)
            return element(context, builder, made.dtype, number)

        return lane_by_lane(builder, llvm_of(made.dtype), one, [args[1]])

    return made(array, key), build


@_intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def item(context: Any, array: Any, key: Any) -> Any:
    """`array[key]`."""
    if isinstance(array, VectorArray):
        return _vector_item(context, array, key)
    if isinstance(array, Drawn):

        def drawn(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return context.compile_internal(builder, draw_element, signature, args)

        return Vector(types.float64)(array, key), drawn
    if isinstance(key, Vector):
        if isinstance(array, types.UniTuple) or (
            isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C"
        ):
            return _gathered(context, array, key)
        raise refuse("element", array, key)
    if isinstance(array, types.BaseTuple) and isinstance(key, types.IntegerLiteral):
        number = key.literal_value

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.extract_value(args[0], number % len(array))

        return array[number](array, key), build
    return typed_call(context, operator.getitem, array, key)


@_intrinsic  # type: ignore[untyped-decorator]
def store(context: Any, array: Any, key: Any, value: Any, mask: Any) -> Any:
    """The array after `array[key] = value` where the mask holds."""
    if not isinstance(array, VectorArray) or not isinstance(value, (Vector, *NUMBERS)):
        raise refuse("assignment", array, value)
    keys = _keys(array, key, array)
    if len(keys) != array.ndim or any(isinstance(kind, types.SliceType) for kind in keys):
        raise refuse("assignment", array, key)
    if _gathers(keys):  # lane by lane this is faster
        raise TypingError("it writes to places that differ from lane to lane")

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = convert(context, builder, args[2], value, array.element.dtype)
        bits = None if mask is EVERYWHERE else as_bits(builder, convert(context, builder, args[3], mask, types.boolean))
        at = _unpacked(builder, array, key, args[1])
        _keep(context, builder, array, _place(context, builder, array, args[0], keys, at)[0], vector, bits)
        return args[0]

    return array(array, key, value, mask), build


@_intrinsic  # type: ignore[untyped-decorator]
def length(context: Any, array: Any) -> Any:
    """`len`."""
    if isinstance(array, VectorArray | Drawn):

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            made = cgutils.create_struct_proxy(array)(context, builder, value=args[0])
            return builder.extract_value(made.shape, 0)

        return types.int64(array), build
    return _of_numbers(builtins.len)(context, array)


@_intrinsic  # type: ignore[untyped-decorator]
def _shape(context: Any, array: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, shape, _ = _parts(context, builder, array, args[0])
        return cgutils.pack_array(builder, [*[_I64(LANES)] * array.lanes, *shape], _I64)

    return types.UniTuple(types.int64, array.ndim + array.lanes)(array), build


@overload_attribute(VectorArray, "shape")
def _shape_of(array):  # type: ignore[no-untyped-def]
    return lambda array: _shape(array)


@_intrinsic  # type: ignore[untyped-decorator]
def _total(context: Any, array: Any) -> Any:
    """The sum of `[n]`, one after another, as numba sums."""
    if array.ndim != 1 or not is_float(array.dtype):
        raise refuse("sum", array)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, (count,), (step,) = _parts(context, builder, array, args[0])
        total = cgutils.alloca_once_value(builder, constant(array.dtype, 0))
        with cgutils.for_range(builder, count) as loop:
            offset = builder.mul(builder.mul(loop.index, step), _I64(_size(array)))
            part = _load(context, builder, array, builder.gep(data, [offset]))
            builder.store(builder.fadd(builder.load(total), part), total)
        return builder.load(total)

    return array.element(array), build


@overload_method(VectorArray, "sum")
def _sum(array):  # type: ignore[no-untyped-def]
    return lambda array: _total(array)


# Draws


@_intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def draws(context: Any, key: Any, shape: Any) -> Any:
    """The draws of a key, a vector; none is made until it is asked for."""
    whole = types.UniTuple(types.int64, len(shape) if isinstance(shape, types.BaseTuple) else 1)
    made = Drawn(whole.count)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[1]
        axes = (
            context.cast(builder, args[1], kind, whole)
            if isinstance(kind, types.BaseTuple)
            else cgutils.pack_array(builder, [context.cast(builder, args[1], kind, types.int64)])
        )
        proxy = cgutils.create_struct_proxy(made)(context, builder)
        proxy.key, proxy.shape = args[0], axes
        return proxy._getvalue()

    return made(key, shape), build


@_intrinsic  # type: ignore[untyped-decorator]
def key_of(context: Any, array: Any) -> Any:
    """The key of draws."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return cgutils.create_struct_proxy(array)(context, builder, value=args[0]).key

    return Vector(types.uint64)(array), build


@_intrinsic  # type: ignore[untyped-decorator]
def number_of(context: Any, array: Any, key: Any) -> Any:
    """Which of the draws is at these indices."""
    keys = list(key) if isinstance(key, types.BaseTuple) else [key]
    if len(keys) != array.ndim or not all(isinstance(kind, types.Integer) for kind in keys):
        raise refuse("draw", array, key)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        shape = cgutils.unpack_tuple(
            builder, cgutils.create_struct_proxy(array)(context, builder, value=args[0]).shape, array.ndim
        )
        at = _unpacked(builder, array, key, args[1])
        number = _I64(0)
        for kind, part, length in zip(keys, at, shape, strict=True):
            own = _within(builder, context.cast(builder, part, kind, types.int64), length, types.int64)
            number = builder.add(builder.mul(number, length), own)
        return number

    return types.uint64(array, key), build


# By what name


def _functions(module: ModuleType, more: dict[str, Any]) -> ModuleType:
    """The module with these functions in the place of its own."""
    twin = ModuleType(module.__name__)
    vars(twin).update(vars(module))
    vars(twin).update(more)
    return twin


def _of(module: ModuleType, names: str, count: int) -> dict[str, Any]:
    return {name: _word(_of_numbers(getattr(module, name)), count, name) for name in names.split()}


_BINARY: dict[str, Any] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "lshift": operator.lshift, "rshift": operator.rshift, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
WORDS: dict[str, Any] = {
    "ALL": ALL, "UNSET": UNSET, "where": where, "item": item, "store": store, "both": both, "either": either,
    "negated": negated, "truth_of": truth_of, "any_of": any_of,
    **{name: _word(_of_numbers(function), 2, f"{name}_") for name, function in _BINARY.items()},
    "pow": _word(_of_numbers(operator.pow), 2, "pow_", literal=True),
    "div": _word(_dividing(operator.truediv), 3, "div_"), "mod": _word(_dividing(operator.mod), 3, "mod_"),
    "floordiv": _word(_dividing(operator.floordiv), 3, "floordiv_"),
    "neg": _word(_of_numbers(operator.neg), 1, "neg_"), "invert": _word(_of_numbers(operator.invert), 1, "invert_"),
}  # fmt: skip
"""What branches.py calls."""
_ONE = "exp expm1 log log1p log2 log10 sqrt sin cos tan sinh cosh tanh fabs floor ceil trunc isnan isinf isfinite"
_MATH = {
    **_of(math, f"{_ONE} asin acos atan erf erfc gamma lgamma", 1),
    **_of(math, "hypot atan2 pow fmod copysign", 2),
}
_NUMPY = {
    **_of(np, f"{_ONE} arcsin arccos arctan exp2 rint abs sign", 1),
    **_of(np, "hypot arctan2 power maximum minimum fmod copysign", 2),
    **{name: _word(_cast_to(getattr(types, name), getattr(np, name)), 1, name) for name in ("float64", "float32", "int64", "uint64")},
    "uintp": _word(_cast_to(types.uint64, np.uintp), 1, "uintp"),
}  # fmt: skip
_MIN, _MAX = (_word(_extreme(compare), 2, name) for compare, name in ((operator.lt, "min_"), (operator.gt, "max_")))


VALUES: list[tuple[Any, Any]] = [
    (math, _functions(math, _MATH)), (np, _functions(np, _NUMPY)), (len, length), (min, _MIN), (max, _MAX),
    (abs, _word(_of_numbers(abs), 1, "abs_")), (round, _word(_of_numbers(round), 1, "round_")),
    (int, _word(_cast_to(types.int64, int), 1, "int_")), (float, _word(_cast_to(types.float64, float), 1, "float_")),
    (bool, truth_of),
    *((getattr(math, name), word) for name, word in _MATH.items()),
]  # fmt: skip
"""What stands in the place of what rules call."""
