"""What generated code calls: how its functions are compiled and kept on disk, arrays by name, clipping, storing.

A rule that divides by zero, or asks for an element that is not there, raises as it does in plain Python, and both end
in the same kind of RuleError; a result that is not finite is refused when it is stored, with the agent, the rule and
the quantity. Without fastmath, so that every loop gives the same bits.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types
from numba.core import caching, cgutils
from numba.extending import overload
from numba.np import arrayobj

from heron_env.core import quantity
from heron_env.engine.arrays import FORMS, NUMBERS, PLACE
from heron_env.engine.linking import LinkedCompiler, intrinsic
from heron_env.files.reading import read
from heron_env.files.writing import CLOSED, write

F = TypeVar("F", bound=Callable[..., Any])
Jit = Callable[[F], F]
njit: Any = partial(numba.njit, pipeline_class=LinkedCompiler)
"""What compiles functions of ours."""
SEAL = hashlib.sha256().digest_size
"""Bytes in front of a file: the hash of its name, numba's version and the rest."""


class SealedFiles(caching.IndexDataCacheFile):
    """numba's files, which tell when they are no longer what we wrote: wrong machine code would just run."""

    def _read(self, path: str) -> Any:
        content = read(path, ours=True)
        if self._seal(path, content[SEAL:]) != content[:SEAL]:
            raise ValueError(f"{path} is not what was written")
        return pickle.loads(content[SEAL:])

    def _write(self, path: str, data: Any) -> None:
        code = self._dump(data)
        write(path, self._seal(path, code) + code, mode=CLOSED)

    def _seal(self, path: str, code: bytes) -> bytes:
        return hashlib.sha256(f"{Path(path).name} {self._version} ".encode() + code).digest()

    def _load_index(self) -> Any:
        try:
            stamp, overloads = self._read(self._index_path)
        except FileNotFoundError:
            return {}
        return overloads if stamp == self._source_stamp else {}

    def _save_index(self, overloads: Any) -> None:
        self._write(self._index_path, (self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)


class MachineCode(caching.FunctionCache):
    """What can't be loaded is compiled and written anew; what can't be written is compiled in every process."""

    _cache_file: Any

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = SealedFiles(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for these types, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # noqa: BLE001  (a file that was cut short ends in whatever pickle stumbles over)
            try:
                self.flush()
            except OSError:
                self.disable()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep it, if there is room."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


def keeping(jit: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`jit` whose results are kept on disk."""

    def compiled(function: Any) -> Any:
        made = jit(function)
        with contextlib.suppress(RuntimeError, OSError):  # no folder that numba may write to, or no file of its text
            made._cache = MachineCode(function)
        return made

    return compiled


_WITHIN: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
leaf: Jit[Any] = njit(_nrt=False, **_WITHIN)
"""Called from compiled code only, and never allocates: nothing to count references of."""
inlined: Jit[Any] = njit(_nrt=False, forceinline=True, **_WITHIN)
"""A leaf that becomes part of its caller after it is compiled: what is constant there is constant in it."""
stored: Jit[Any] = keeping(njit(_nrt=False, forceinline=True, **_WITHIN))
"""A leaf that is stored on disk: linked, not compiled, for each set of classes, and becomes part of its caller."""
allocating: Jit[Any] = njit(_nrt=True, **_WITHIN)
"""Called from compiled code only, for a rule that makes arrays or lists."""
_OF_USERS: dict[str, Any] = {**_WITHIN, "boundscheck": True, "error_model": "python"}
rule_leaf: Jit[Any] = njit(_nrt=False, **_OF_USERS)
"""A leaf of the user's: x / 0 and an index too large raise, as they do in Python."""
rule_allocating: Jit[Any] = njit(_nrt=True, **_OF_USERS)
"""The same for a rule that allocates."""
phase: Jit[Any] = keeping(njit(_nrt=False, nogil=True, no_cfunc_wrapper=True, error_model="numpy"))
"""Called from Python with numbers only; kept on disk with all that it calls."""
on_arrays: Jit[Any] = keeping(njit(nogil=True, no_cfunc_wrapper=True, error_model="numpy"))
"""The same for a function of arrays."""


def general(function: Any) -> Any:
    """A leaf that is compiled once for all constants that it is called with: numba compiles it for each of them."""
    made = leaf(function)
    template = made.get_call_template
    made.get_call_template = lambda args, kws: template(tuple(map(types.unliteral, args)), kws)
    return made


def table_of(forms: Mapping[str, tuple[str, int]], *, sized: bool = True) -> Any:
    """`table(address, name)` for compiled code: the array of this name in the table at this address, uncounted.

    `forms`: element type and number of axes of the arrays in such a table (arrays.py), in their order. `sized`: give
    the number of rows; without it no row's index is looked at whether it is negative.
    """
    places = {name: place for place, name in enumerate(forms)}

    @intrinsic(prefer_literal=True)
    def table(context: Any, address: Any, name: Any) -> Any:
        kind, axes = forms[name.literal_value]
        made = types.Array(getattr(types, kind), axes, "C")

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            at = places[name.literal_value]
            address, rows, columns = (cell(context, builder, args[0], at, k) for k in range(3))
            rows = rows if sized else rows.type(0)
            array = context.make_array(made)(context, builder)
            bits = context.get_abi_sizeof(context.get_data_type(made.dtype))
            size = context.get_constant(types.intp, bits)
            shape, strides = ([rows, columns], [builder.mul(columns, size), size]) if axes == 2 else ([rows], [size])
            data = builder.inttoptr(address, array.data.type)
            arrayobj.populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
            return array._getvalue()

        return made(address, name), build

    return table


table = table_of(FORMS)
"""Of the engine's own table."""


@intrinsic(prefer_literal=True)
def number(context: Any, address: Any, name: Any) -> Any:
    """The single number of this name (arrays.py)."""
    kind = getattr(types, NUMBERS[name.literal_value])

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = cell(context, builder, args[0], PLACE[name.literal_value], 0)
        return builder.bitcast(bits, context.get_value_type(kind))

    return kind(address, name), build


def cell(context: Any, builder: Any, address: Any, row: int, column: int) -> Any:
    """A cell of the table. No loop writes there, which LLVM is told, so that it is read once and not once a lane."""
    start = builder.inttoptr(address, address.type.as_pointer())
    at = context.get_constant(types.intp, 3 * row + column)
    cell = builder.load(builder.gep(start, [at]))
    cell.set_metadata("invariant.load", builder.module.add_metadata([]))
    return cell


@intrinsic
def shown(context: Any, array: Any) -> Any:
    """The same array, to be read only: rules return what they write."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0]

    return array.copy(readonly=True)(array), build


@intrinsic
def flat_of(context: Any, array: Any) -> Any:
    """A contiguous array as `[size]`; reshape does the same, and takes a second to compile."""
    made = types.Array(array.dtype, 1, "C")

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        struct = context.make_array(array)(context, builder, value=args[0])
        flat = context.make_array(made)(context, builder)
        context.populate_array(
            flat,
            data=struct.data,
            shape=cgutils.pack_array(builder, [struct.nitems]),
            strides=cgutils.pack_array(builder, [struct.itemsize]),
            itemsize=struct.itemsize,
            meminfo=None,
        )
        return flat._getvalue()

    return made(array), build


@intrinsic
def fetch(context: Any, array: Any, b: Any, c: Any) -> Any:
    """Ask for the cache line of element `[b, c]`, which is written soon."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        struct = context.make_array(array)(context, builder, value=args[0])
        width = cgutils.unpack_tuple(builder, struct.shape, 2)[1]
        place = builder.gep(struct.data, [builder.add(builder.mul(args[1], width), args[2])])
        bits, nothing = cgutils.int32_t, cgutils.ir.VoidType()
        kind = cgutils.ir.FunctionType(nothing, [cgutils.voidptr_t, bits, bits, bits])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        to_write, near, data = bits(1), bits(2), bits(1)
        builder.call(ask, [builder.bitcast(place, cgutils.voidptr_t), to_write, near, data])
        return context.get_dummy_value()

    return types.void(array, types.uintp, types.uintp), build


def address_of(loop: Any, numbers: int = 3) -> int:
    """Where the machine code of a phase begins that takes so many numbers; compiles it if that is yet to be done."""
    kinds = (types.int64,) * numbers
    loop.compile(kinds)
    made = loop.overloads[kinds]
    return int(made.library.get_pointer_to_function(made.fndesc.mangled_name))


@intrinsic
def call(context: Any, address: Any, numbers: Any) -> Any:
    """Call the phase at this address (`address_of`); what it raises, this raises."""
    result, kinds = types.int64, (types.int64,) * len(numbers)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        law = context.call_conv
        phase = builder.inttoptr(args[0], law.get_function_type(result, kinds).as_pointer())
        parts = [builder.extract_value(args[1], k) for k in range(len(kinds))]
        status, returned = law.call_function(builder, phase, result, kinds, parts)
        with builder.if_then(status.is_error, likely=False):
            law.return_status_propagate(builder, status)
        return returned

    return result(types.int64, types.UniTuple(result, len(kinds))), build


@general
def natively(D: Any, place: Any, first: Any, last: Any) -> Any:
    """Run what follows the phase of this place and is no rule (model.Native): how many lanes failed."""
    natives, failures = table(D, "natives"), 0
    for k in range(len(natives)):
        if natives[k, 0] == place:
            failures += call(natives[k, 1], (D, natives[k, 2], np.int64(first), np.int64(last)))
    return failures


@leaf
def failure(position: Any, rule: Any, number: Any) -> Any:
    """The code of what was refused (lane_errors.py): whose, in which rule, 1 + number of the write."""
    return (np.int64(position) * 16 + rule) * 256 + number


@leaf
def sum_of_children(b: Any, i: Any, rewards: Any, tab: Any) -> Any:
    """The reward of a coordinator without a rule of its own."""
    total = 0.0
    for child in range(tab[i, 3], tab[i, 3] + tab[i, 4]):
        total += rewards[b, child]
    return total


@leaf
def refused(value: Any) -> Any:
    """Is this no finite number?"""
    number = value * 1.0  # `float` of compiled code takes no bool
    return number - number != 0.0


within: Any = inlined(quantity.within)
"""The text that Python runs, compiled."""


@leaf
def whole(value: Any) -> Any:
    """The nearest whole number, the even one of two; never -0.0."""
    return np.rint(value * 1.0) + 0.0


def floats(values: Any) -> Any:
    """The elements of a returned vector: a copy of an array, which may be a view of what is about to be written."""
    return values


@overload(floats)
def _floats(values):  # type: ignore[no-untyped-def]
    if isinstance(values, types.BaseTuple):
        parts = "".join(f"values[{j}] * 1.0, " for j in range(len(values)))
        scope: dict[str, Any] = {"__name__": __name__}
        exec(f"def made(values):\n    return ({parts})", scope)
        return scope["made"]
    return lambda values: values.copy()


@leaf
def refused_vector(values: Any, size: Any) -> Any:
    """Are these not `size` finite numbers?"""
    bad = len(values) != size
    for j in range(len(values)):
        bad |= refused(values[j])
    return bad


@leaf
def store(t: Any, b: Any, at: Any, size: Any, values: Any, low: Any, high: Any, rounded: Any) -> None:
    """Write a vector into lane `b`, clipped element by element, rounded first where it is of whole numbers."""
    for j in range(size):
        value = values[j] * 1.0
        t[b, at + j] = within(np.rint(value) if rounded else value, low, high)


@leaf
def column(t: Any, b: Any, gather: Any, first: Any, index: Any, step: Any, n: Any) -> Any:
    """Where a field over the n children lies: first column, one past the last, step.

    Evenly spaced children (step > 0): in place. Else `gather[first]` is a place behind the state that serves as
    scratch, and the next n entries are the children's columns; nothing is allocated.
    """
    if step > 0:
        return first + index, first + index + (n - 1) * step + 1, step
    at = gather[first] + index * n
    for j in range(n):
        t[b, at + j] = t[b, gather[first + 1 + j] + index]
    return at, at + n, 1
