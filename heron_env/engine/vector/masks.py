"""Masks of vectors, choices by them, and the count of what raises in the text for one lane.

A division by zero, an element that is not there, a false `assert` and what is not finite are counted in place of
raising; who runs the text compares the counts before and after (tiles.py). Threads share it: when one fails, another
may be run again for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError

from heron_env.engine.arrays import LANES
from heron_env.engine.linking import intrinsic
from heron_env.engine.vector.types import (
    BITS,
    EVERYWHERE,
    NOVALUE,
    NOWHERE,
    NUMBERS,
    VectorType,
    as_bits,
    as_mask,
    convert,
    number_of,
)

MASK = VectorType(types.boolean)
_I64 = ir.IntType(64)


def is_vector(*kinds: Any) -> bool:
    """Is one of these types a vector?"""
    return any(isinstance(kind, VectorType) for kind in kinds)


def refuse(what: str, *kinds: Any) -> TypingError:
    """The error for what vectors can't do."""
    return TypingError(f"vectors know no {what} of {', '.join(map(str, kinds))}")


FAILED = np.zeros(1, dtype=np.int64)
"""How often anything has failed in a vector, in this process."""
_FAILED = "heron_env_failed_vectors"
binding.add_symbol(_FAILED, FAILED.ctypes.data)


def _count(builder: Any) -> Any:
    counter = builder.module.globals.get(_FAILED)
    return ir.GlobalVariable(builder.module, _I64, _FAILED) if counter is None else counter


def fail_if(builder: Any, bad: Any) -> None:
    """Count a failure if this bit is set."""
    with builder.if_then(bad, likely=False):
        builder.atomic_rmw("add", _count(builder), _I64(1), "monotonic")


@intrinsic
def failed_so_far(context: Any) -> Any:
    """The count."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_count(builder), "monotonic", 8)

    return types.int64(), build


@intrinsic
def fail_where(context: Any, mask: Any) -> Any:
    """Count a failure if the mask holds anywhere."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        fail_if(builder, any_bits(builder, convert(context, builder, args[0], mask, types.boolean)))
        return context.get_dummy_value()

    return types.void(mask), build


def any_set(builder: Any, bits: Any) -> Any:
    """Is any of LLVM's bits set?"""
    return any_bits(builder, as_mask(builder, bits))


def any_bits(builder: Any, mask: Any) -> Any:
    """Does a mask hold anywhere?"""
    kind = ir.FunctionType(_I64, [BITS])
    reduce = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.or.v{LANES}i64")
    return builder.icmp_signed("!=", builder.call(reduce, [mask]), _I64(0))


@intrinsic
def any_of(context: Any, mask: Any) -> Any:
    """Does it hold anywhere?"""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        if kind in (EVERYWHERE, NOWHERE):
            return ir.IntType(1)(kind is EVERYWHERE)
        return any_bits(builder, args[0]) if isinstance(kind, VectorType) else args[0]

    return types.boolean(mask), build


@intrinsic
def truth_of(context: Any, value: Any) -> Any:
    """A value as a mask."""
    if value in (EVERYWHERE, NOWHERE):
        made = value
    elif isinstance(value, VectorType):
        made = MASK
    else:
        made = types.boolean

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        if isinstance(kind, VectorType):
            return convert(context, builder, args[0], kind, types.boolean)
        return args[0] if isinstance(kind, type(EVERYWHERE)) else context.is_true(builder, kind, args[0])

    return made(value), build


def _joined(context: Any, one: Any, other: Any, neutral: Any, absorbing: Any, join: Any) -> Any:
    """`both` and `either`: one of two leaves the other as it is, `neutral`, or decides alone, `absorbing`."""
    made: Any
    if one is absorbing or other is absorbing:
        made = absorbing
    elif one is neutral or other is neutral:
        made = other if one is neutral else one
    else:
        made = MASK if is_vector(one, other) else types.boolean

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


@intrinsic
def both(context: Any, one: Any, other: Any) -> Any:
    """Where both masks hold."""
    return _joined(context, one, other, EVERYWHERE, NOWHERE, "and_")


@intrinsic
def either(context: Any, one: Any, other: Any) -> Any:
    """Where one of them does."""
    return _joined(context, one, other, NOWHERE, EVERYWHERE, "or_")


@intrinsic
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
    if all(isinstance(kind, (VectorType, *NUMBERS)) for kind in kinds):
        dtype = context.unify_pairs(*map(number_of, kinds))
        if dtype is not None:
            return VectorType(dtype) if is_vector(mask, *kinds) else dtype
    if value == other and not is_vector(mask):
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
    if isinstance(made, VectorType):
        vectors = [
            convert(context, builder, arg, kind, made.dtype) for arg, kind in zip(args[1:], kinds[1:], strict=True)
        ]
        return builder.select(as_bits(builder, args[0]) if isinstance(mask, VectorType) else args[0], *vectors)
    return builder.select(
        args[0], *(context.cast(builder, a, k, made) for a, k in zip(args[1:], kinds[1:], strict=True))
    )


@intrinsic
def where(context: Any, mask: Any, value: Any, other: Any) -> Any:
    """`value` where the mask holds, else `other`; of tuples each part."""
    made = _selected(context, mask, value, other)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _select(context, builder, signature.return_type, signature.args, args)

    return made(mask, value, other), build
