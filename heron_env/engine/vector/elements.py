"""Elements of arrays of vectors, of arrays that all lanes share, and of keyed draws."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.cpython import slicing
from numba.extending import overload_attribute, overload_method

from heron_env.engine.arrays import LANES
from heron_env.engine.linking import intrinsic
from heron_env.engine.vector.masks import fail_if, refuse
from heron_env.engine.vector.numbers import of_numbers, typed_call
from heron_env.engine.vector.types import (
    EVERYWHERE,
    NUMBERS,
    Drawn,
    VectorArray,
    VectorType,
    as_element,
    bits_of,
    constant,
    convert,
    is_float,
    lane_by_lane,
    llvm_of,
)

draw_element: Any = None
"""An element of Drawn; compiling.py says how it is made."""
_I64, _I32, _BYTES = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()


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
    made = ir.VectorType(ir.IntType(8), LANES) if kind.small else llvm_of(kind.element.dtype)
    loaded = builder.load(builder.bitcast(place, made.as_pointer()), align=8)
    return builder.zext(loaded, llvm_of(types.int64)) if kind.small else loaded


def _keep(context: Any, builder: Any, kind: Any, place: Any, value: Any, mask: Any) -> None:
    """Store an element; `mask`: LLVM's bits, or None for all."""
    if mask is not None:
        value = builder.select(mask, value, _load(context, builder, kind, place))
    if kind.small:
        value = builder.trunc(value, ir.VectorType(ir.IntType(8), LANES))
    builder.store(value, builder.bitcast(place, value.type.as_pointer()), align=8)


def _size(kind: Any) -> int:
    """Bytes of an element."""
    return LANES * (1 if kind.small else 8)


def _within(context: Any, builder: Any, kind: Any, number: Any, length: Any) -> Any:
    """An index from the end counted from the start; one that is not there counts as a failure and becomes 0."""
    at = context.cast(builder, number, kind, types.int64)
    at = builder.select(builder.icmp_signed("<", at, _I64(0)), builder.add(at, length), at)
    bad = builder.icmp_unsigned(">=", at, length)
    fail_if(builder, bad)
    return builder.select(bad, _I64(0), at)


def _keys(array: Any, key: Any) -> list[Any]:
    """Types of the indices, behind that of the lane where the array has one."""
    keys = list(key) if isinstance(key, types.BaseTuple) else [key]
    return keys[1:] if getattr(array, "lanes", False) else keys


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
    for axis, (length, step) in enumerate(zip(shape, steps, strict=True)):
        if axis >= len(keys):
            left.append(length)
            strides.append(step)
            continue
        if isinstance(keys[axis], types.SliceType):
            part = context.make_helper(builder, keys[axis], at[axis])
            if not array.lanes:
                slicing.guard_invalid_slice(context, builder, keys[axis], part)
            slicing.fix_slice(builder, part, length)
            left.append(slicing.get_slice_length(builder, part))
            strides.append(builder.mul(step, part.step))
            offset = builder.add(offset, builder.mul(part.start, step))
        else:
            if array.lanes:  # the engine's own text asks for what is there
                number = context.cast(builder, at[axis], keys[axis], types.int64)
            else:
                number = _within(context, builder, keys[axis], at[axis], length)
            offset = builder.add(offset, builder.mul(number, step))
    return builder.gep(data, [builder.mul(offset, _I64(_size(array)))]), left, strides


def _gathers(keys: Sequence[Any]) -> bool:
    return any(isinstance(key, VectorType) for key in keys)


def _places(context: Any, builder: Any, array: Any, value: Any, keys: Sequence[Any], at: Sequence[Any]) -> list[Any]:
    """The address of each lane's own element."""
    data, shape, steps = _parts(context, builder, array, value)
    size = _size(array) // LANES
    addresses = []
    for lane in range(LANES):
        offset = _I64(0)
        for kind, number, length, step in zip(keys, at, shape, steps, strict=True):
            own = builder.extract_element(number, _I32(lane)) if isinstance(kind, VectorType) else number
            at_axis = _within(context, builder, getattr(kind, "dtype", kind), own, length)
            offset = builder.add(offset, builder.mul(at_axis, step))
        offset = builder.add(builder.mul(offset, _I64(_size(array))), _I64(lane * size))
        addresses.append(builder.gep(data, [offset]))
    return addresses


def _vector_item(context: Any, array: Any, key: Any) -> Any:
    keys = _keys(array, key)
    sliced = sum(isinstance(kind, types.SliceType) for kind in keys)
    axes = array.ndim - len(keys) + sliced
    gathers = _gathers(keys)
    if len(keys) > array.ndim or (gathers and axes):
        raise refuse("element", array, key)
    made = VectorArray(array.dtype, axes) if axes else array.element

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = _unpacked(builder, array, key, args[1])
        if gathers:
            stored = ir.IntType(8) if array.small else _I64
            result = ir.VectorType(stored, LANES)(ir.Undefined)
            for lane, place in enumerate(_places(context, builder, array, args[0], keys, at)):
                part = builder.load(builder.bitcast(place, stored.as_pointer()))
                result = builder.insert_element(result, part, _I32(lane))
            if array.small:
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
    made = VectorType(dtype)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if isinstance(array, types.UniTuple):
            length = _I64(len(array))
            slot = cgutils.alloca_once_value(builder, args[0])
            data = builder.bitcast(slot, context.get_value_type(dtype).as_pointer())
        else:
            struct = context.make_array(array)(context, builder, value=args[0])
            data, (length,) = struct.data, cgutils.unpack_tuple(builder, struct.shape, 1)

        def one(at: Any) -> Any:
            place = builder.gep(data, [_within(context, builder, key.dtype, at, length)])
            number = context.cast(builder, context.unpack_value(builder, dtype, place), dtype, made.dtype)
            return as_element(builder, made.dtype, number)

        return lane_by_lane(builder, llvm_of(made.dtype), one, [args[1]])

    return made(array, key), build


def _checked(context: Any, array: Any, key: Any, keys: Sequence[Any]) -> Any:
    """An element of an array or tuple that all lanes share; one that is not there counts as a failure."""
    exact = types.UniTuple(types.intp, len(keys)) if isinstance(key, types.BaseTuple) else types.intp
    signature, get = typed_call(context, operator.getitem, array, exact)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        numbers = [builder.extract_value(args[1], k) for k in range(len(keys))] if exact != types.intp else [args[1]]
        if isinstance(array, types.UniTuple):
            lengths = [_I64(len(array))]
        else:
            struct = context.make_array(array)(context, builder, value=args[0])
            lengths = cgutils.unpack_tuple(builder, struct.shape, array.ndim)
        at = [
            _within(context, builder, kind, number, length)
            for number, kind, length in zip(numbers, keys, lengths, strict=False)
        ]
        made = at[0] if exact == types.intp else context.make_tuple(builder, exact, at)
        return get(context, builder, signature, [args[0], made])

    return signature.return_type(array, key), build


@intrinsic(prefer_literal=True)
def item(context: Any, array: Any, key: Any) -> Any:
    """`array[key]`."""
    if isinstance(array, VectorArray):
        return _vector_item(context, array, key)
    if isinstance(array, Drawn):

        def drawn(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return context.compile_internal(builder, draw_element, signature, args)

        return VectorType(types.float64)(array, key), drawn
    if isinstance(key, VectorType):
        if isinstance(array, types.UniTuple) or (
            isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C"
        ):
            return _gathered(context, array, key)
        raise refuse("element", array, key)
    if isinstance(array, types.BaseTuple) and isinstance(key, types.IntegerLiteral):
        number = key.literal_value
        if not -len(array) <= number < len(array):
            raise refuse("element", array, key)

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.extract_value(args[0], number % len(array))

        return array[number](array, key), build
    keys = _keys(array, key)
    if isinstance(array, types.Array | types.UniTuple) and all(isinstance(kind, types.Integer) for kind in keys):
        return _checked(context, array, key, keys)
    return typed_call(context, operator.getitem, array, key)


@intrinsic
def store(context: Any, array: Any, key: Any, value: Any, mask: Any) -> Any:
    """The array after `array[key] = value` where the mask holds."""
    if not isinstance(array, VectorArray) or not isinstance(value, (VectorType, *NUMBERS)):
        raise refuse("assignment", array, value)
    keys = _keys(array, key)
    if len(keys) != array.ndim or any(isinstance(kind, types.SliceType) for kind in keys):
        raise refuse("assignment", array, key)
    if _gathers(keys):
        raise TypingError("it writes to places that differ from lane to lane")

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = convert(context, builder, args[2], value, array.element.dtype)
        bits = None if mask is EVERYWHERE else bits_of(context, builder, mask, args[3])
        at = _unpacked(builder, array, key, args[1])
        _keep(context, builder, array, _place(context, builder, array, args[0], keys, at)[0], vector, bits)
        return args[0]

    return array(array, key, value, mask), build


@intrinsic
def length(context: Any, array: Any) -> Any:
    """`len`."""
    if isinstance(array, VectorArray | Drawn):

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            made = cgutils.create_struct_proxy(array)(context, builder, value=args[0])
            return builder.extract_value(made.shape, 0)

        return types.int64(array), build
    return of_numbers(builtins.len)(context, array)


@intrinsic
def _shape(context: Any, array: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, shape, _ = _parts(context, builder, array, args[0])
        return cgutils.pack_array(builder, [*[_I64(LANES)] * array.lanes, *shape], _I64)

    return types.UniTuple(types.int64, array.ndim + array.lanes)(array), build


@overload_attribute(VectorArray, "shape")
def _shape_of(array):  # type: ignore[no-untyped-def]
    return lambda array: _shape(array)


@intrinsic
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


@intrinsic
def _mean_of(context: Any, array: Any, total: Any) -> Any:
    """The sum by the number of elements."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, (count,), _ = _parts(context, builder, array, args[0])
        number = convert(context, builder, count, types.int64, total.dtype)
        return builder.fdiv(args[1], number)

    return total(array, total), build


@overload_method(VectorArray, "mean")
def _mean(array):  # type: ignore[no-untyped-def]
    return lambda array: _mean_of(array, _total(array))


@overload_method(VectorArray, "sum")
def _sum(array):  # type: ignore[no-untyped-def]
    return lambda array: _total(array)


# Draws


@intrinsic(prefer_literal=True)
def draws(context: Any, key: Any, shape: Any) -> Any:
    """The draws of a key, a vector; none is made until it is asked for."""
    shape_type = types.UniTuple(types.int64, len(shape) if isinstance(shape, types.BaseTuple) else 1)
    made = Drawn(shape_type.count)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[1]
        axes = (
            context.cast(builder, args[1], kind, shape_type)
            if isinstance(kind, types.BaseTuple)
            else cgutils.pack_array(builder, [context.cast(builder, args[1], kind, types.int64)])
        )
        proxy = cgutils.create_struct_proxy(made)(context, builder)
        proxy.key, proxy.shape = args[0], axes
        return proxy._getvalue()

    return made(key, shape), build


@intrinsic
def key_of(context: Any, array: Any) -> Any:
    """The key of draws."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return cgutils.create_struct_proxy(array)(context, builder, value=args[0]).key

    return VectorType(types.uint64)(array), build


@intrinsic
def number_of(context: Any, array: Any, key: Any) -> Any:
    """Which of the draws is at these indices."""
    keys = _keys(array, key)
    if len(keys) != array.ndim or not all(isinstance(kind, types.Integer) for kind in keys):
        raise refuse("draw", array, key)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        shape = cgutils.unpack_tuple(
            builder, cgutils.create_struct_proxy(array)(context, builder, value=args[0]).shape, array.ndim
        )
        at = _unpacked(builder, array, key, args[1])
        number = _I64(0)
        for kind, part, length in zip(keys, at, shape, strict=True):
            own = _within(context, builder, kind, part, length)
            number = builder.add(builder.mul(number, length), own)
        return number

    return types.uint64(array, key), build
