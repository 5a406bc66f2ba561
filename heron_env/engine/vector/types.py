"""Vectors of LANES numbers as types of numba: one number of each of as many environments.

`VectorType(float64)` is `<8 x double>` for LLVM. A mask is `VectorType(boolean)`, kept as 64-bit integers of all bits
or none, which is what processors blend by. `VectorArray` is an array of vectors at an address, `[columns]` or
`[agents, size]`. Three types have one value each, known while compiling: a mask that holds everywhere, one that holds
nowhere, and a variable without a value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, typeconv
from numba.core.errors import TypingError
from numba.core.imputils import lower_constant
from numba.extending import lower_cast, models, register_model, typeof_impl

from heron_env.engine.arrays import LANES

_safe = typeconv.Conversion.safe
BITS: Any = ir.VectorType(ir.IntType(64), LANES)
"""Of a mask in LLVM."""
_ELEMENTS: dict[Any, Any] = {
    types.float64: ir.DoubleType(), types.float32: ir.FloatType(),
    types.int64: ir.IntType(64), types.uint64: ir.IntType(64), types.boolean: ir.IntType(64),
}  # fmt: skip
NUMBERS: Any = (types.Number, types.Boolean)


class VectorType(types.Type):
    """LANES numbers of one type."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = stored_as(dtype)
        super().__init__(f"vector({self.dtype})")

    def can_convert_from(self, context: Any, other: Any) -> Any:
        """From numbers and from what is only known while compiling."""
        if isinstance(other, NUMBERS) and context.can_convert(other, self.dtype) is not None:
            return _safe
        if other in (EVERYWHERE, NOWHERE) and self.dtype == types.boolean:
            return _safe
        return None

    def unify(self, context: Any, other: Any) -> Any:
        """A vector with what numbers of both types become."""
        dtype = number_of(other)
        unified = context.unify_pairs(self.dtype, dtype) if isinstance(dtype, NUMBERS) else None
        return None if unified is None else VectorType(unified)


class Singleton(types.Type):
    """A type with one value, which converts to whatever stands for it."""

    def can_convert_to(self, context: Any, other: Any) -> Any:
        """`NOVALUE` to anything, the masks to bool."""
        return _safe if self is NOVALUE or isinstance(other, types.Boolean) else None

    def unify(self, context: Any, other: Any) -> Any:
        """Two masks may become a bool."""
        both = {self, other} == {EVERYWHERE, NOWHERE}
        return types.boolean if both else None


class Constant:
    """A value of a Singleton in Python."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind


EVERYWHERE, NOWHERE, NOVALUE = Singleton("everywhere"), Singleton("nowhere"), Singleton("novalue")
ALL, UNSET = Constant(EVERYWHERE), Constant(NOVALUE)


@typeof_impl.register(Constant)
def _typeof_constant(value: Any, context: Any) -> Any:
    return value.kind


@lower_constant(Singleton)
def _lowered_constant(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return context.get_dummy_value()


class VectorArray(types.Type):
    """Vectors at an address. `lanes`: it has an axis of environments in front, by which it is indexed for nothing."""

    def __init__(self, dtype: Any, ndim: int, lanes: bool = False) -> None:
        self.dtype, self.ndim, self.lanes = dtype, ndim, lanes
        super().__init__(f"vectors({dtype}, {ndim}, {lanes})")

    @property
    def small(self) -> bool:
        """Are its numbers bytes?"""
        return self.dtype in (types.uint8, types.bool_)

    @property
    def element(self) -> Any:
        """Type of an element."""
        return VectorType(types.int64 if self.small else self.dtype)


class Drawn(types.Type):
    """Keyed draws of an array that is not there: element k is drawn when it is asked for. `ndim` axes."""

    def __init__(self, ndim: int) -> None:
        self.ndim = ndim
        super().__init__(f"drawn({ndim})")


class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, llvm_of(kind.dtype))


class _ArrayModel(models.StructModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        axes = types.UniTuple(types.int64, kind.ndim)
        super().__init__(manager, kind, [("data", types.CPointer(types.int8)), ("shape", axes), ("steps", axes)])


class _DrawnModel(models.StructModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        shape = types.UniTuple(types.int64, kind.ndim)
        super().__init__(manager, kind, [("key", VectorType(types.uint64)), ("shape", shape)])


register_model(VectorType)(_VectorModel)
register_model(VectorArray)(_ArrayModel)
register_model(Drawn)(_DrawnModel)
register_model(Singleton)(models.OpaqueModel)


def number_of(kind: Any) -> Any:
    """The type of a vector's numbers, or of a number itself."""
    return kind.dtype if isinstance(kind, VectorType) else types.unliteral(kind)


def stored_as(dtype: Any) -> Any:
    """The type that elements of a vector have: 64 bits but for float32."""
    dtype = types.unliteral(dtype)
    if dtype in _ELEMENTS:
        return dtype
    if isinstance(dtype, types.Integer):
        return types.int64 if dtype.signed or dtype.bitwidth < 64 else types.uint64
    raise TypingError(f"no vectors of {dtype}")


def llvm_of(dtype: Any) -> Any:
    """LLVM's type of a vector of these elements."""
    return ir.VectorType(_ELEMENTS[dtype], LANES)


def is_float(dtype: Any) -> bool:
    """Is this a type of floats?"""
    return isinstance(dtype, types.Float)


def splat(builder: Any, value: Any) -> Any:
    """A vector whose elements are all this value."""
    kind = ir.VectorType(value.type, LANES)
    one = builder.insert_element(kind(ir.Undefined), value, ir.IntType(32)(0))
    return builder.shuffle_vector(one, kind(ir.Undefined), ir.VectorType(ir.IntType(32), LANES)([0] * LANES))


def constant(dtype: Any, number: Any) -> Any:
    """A vector of this number."""
    return llvm_of(dtype)([number] * LANES)


def as_mask(builder: Any, bits: Any) -> Any:
    """Of LLVM's comparisons."""
    return builder.sext(bits, BITS)


def as_bits(builder: Any, mask: Any) -> Any:
    """What LLVM selects by."""
    return builder.icmp_signed("<", mask, constant(types.int64, 0))


def bits_of(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """What LLVM selects by, of any value."""
    return as_bits(builder, convert(context, builder, value, kind, types.boolean))


def compared(builder: Any, sign: str, dtype: Any, one: Any, other: Any) -> Any:
    """LLVM's bits of a comparison of numbers, or of vectors of them, of this type."""
    if is_float(dtype):
        return (builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered)(sign, one, other)
    return (builder.icmp_signed if dtype == types.int64 else builder.icmp_unsigned)(sign, one, other)


def elements(builder: Any, value: Any) -> list[Any]:
    """The numbers of a vector."""
    return [builder.extract_element(value, ir.IntType(32)(k)) for k in range(LANES)]


def lane_by_lane(
    builder: Any, made: Any, run: Callable[..., Any], vectors: Sequence[Any], bits: Any = None
) -> Any:  # fmt: skip
    """`run` with the elements of each lane, one after another; `made`: LLVM's type of the vector of results.

    `bits`: only where they are set; elsewhere the result is 0.
    """
    lanes = enumerate(zip(*(elements(builder, vector) for vector in vectors), strict=True))
    result = made(ir.Undefined)
    if bits is None:
        for k, parts in lanes:
            result = builder.insert_element(result, run(*parts), ir.IntType(32)(k))
        return result
    slot = cgutils.alloca_once(builder, made.element, size=ir.IntType(32)(LANES))
    for k, parts in lanes:
        place = builder.gep(slot, [ir.IntType(32)(k)])
        builder.store(cgutils.get_null_value(made.element), place)
        with builder.if_then(builder.extract_element(bits, ir.IntType(32)(k))):
            builder.store(run(*parts), place)
        result = builder.insert_element(result, builder.load(place), ir.IntType(32)(k))
    return result


def as_number(builder: Any, dtype: Any, element: Any) -> Any:
    """An element of a vector as numba has a number of its type."""
    return builder.trunc(element, ir.IntType(1)) if dtype == types.boolean else element


def as_element(builder: Any, dtype: Any, number: Any) -> Any:
    """The other way round."""
    return builder.sext(number, ir.IntType(64)) if dtype == types.boolean else number


def convert(context: Any, builder: Any, value: Any, kind: Any, dtype: Any) -> Any:
    """A value of type `kind`, a number or a VectorType, as a vector of elements `dtype`."""
    if kind is EVERYWHERE or kind is NOWHERE:
        return constant(dtype, -(kind is EVERYWHERE))
    if kind is NOVALUE:
        return constant(dtype, 0)
    if not isinstance(kind, VectorType):
        number = context.cast(builder, value, kind, dtype)
        return splat(builder, as_element(builder, dtype, number))
    source, made = kind.dtype, llvm_of(dtype)
    if source == dtype or (not is_float(source) and not is_float(dtype) and types.boolean not in (source, dtype)):
        return value
    if source == types.boolean:
        one = constant(dtype, 1)
        return builder.select(as_bits(builder, value), one, constant(dtype, 0))
    if dtype == types.boolean:
        return as_mask(builder, compared(builder, "!=", source, value, constant(source, 0)))
    if is_float(source) and is_float(dtype):
        return builder.fpext(value, made) if source == types.float32 else builder.fptrunc(value, made)
    if is_float(dtype):
        return builder.sitofp(value, made) if source == types.int64 else builder.uitofp(value, made)
    if dtype == types.int64:
        return builder.fptosi(value, made)
    return lane_by_lane(builder, made, lambda part: context.cast(builder, part, source, dtype), [value])


@lower_cast(types.Number, VectorType)
@lower_cast(types.Boolean, VectorType)
@lower_cast(VectorType, VectorType)
@lower_cast(Singleton, VectorType)
def _cast(context: Any, builder: Any, kind: Any, target: Any, value: Any) -> Any:
    return convert(context, builder, value, kind, target.dtype)


@lower_cast(Singleton, types.Boolean)
def _cast_mask(context: Any, builder: Any, kind: Any, target: Any, value: Any) -> Any:
    return ir.IntType(1)(kind is EVERYWHERE)


@lower_cast(Singleton, types.Any)
def _cast_nothing(context: Any, builder: Any, kind: Any, target: Any, value: Any) -> Any:
    return cgutils.get_null_value(context.get_value_type(target))
