"""Which columns phases read before they write them, and which they write: found by running their text once.

The text of one lane is converted (branches.py) and run with numbers that are not known: both arms of each condition,
loops over what the tables say. What depends on the lane counts as read, and as written only where it may be. So tiles
move what they must and nothing else.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.engine import kernels, loop_kernels, world_kernel
from heron_env.engine.branches import Converter

Bools = NDArray[np.bool_]
LIKE_NUMBA = (np.float64, np.int64, np.bool_)
"""Numbers with which numpy reckons as numba does."""
SMALL = 2**31
"""Ints below this don't overflow where rules index with them."""
MOST_TURNS = 100_000
"""Of all loops together that are gone through here."""


class Unknown:
    """A number, or truth, that differs from lane to lane. Whatever is made of it is unknown, too."""

    __array_ufunc__ = None  # numpy's numbers leave operators to this one
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("a number of a lane decides here")


UNKNOWN, UNSET = Unknown(), object()
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    setattr(Unknown, f"__{_name}__", lambda *values: UNKNOWN)
    setattr(Unknown, f"__r{_name}__", lambda *values: UNKNOWN)
for _name in ("neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Unknown, f"__{_name}__", lambda *values: UNKNOWN)


class LaneColumns:
    """An array with a row for each environment, or a view of it; indexed as numpy does it.

    places: numbers of its elements. read, written, set: bool by place: was it read before it was set, may it have been
    written, and was it certainly?
    """

    def __init__(self, places: NDArray[np.int64], read: Bools, written: Bools, is_set: Bools) -> None:
        self.places, self.read, self.written, self.set = places, read, written, is_set

    @classmethod
    def of(cls, columns: int, axes: int) -> LaneColumns:
        """Of one lane."""
        places = np.arange(columns).reshape((1, columns)[:axes])
        return cls(places, *(np.zeros(columns, dtype=bool) for _ in range(3)))

    def view(self, places: NDArray[np.int64]) -> LaneColumns:
        """Some of its elements."""
        return LaneColumns(places, self.read, self.written, self.set)

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""
        return self.places.shape

    def __len__(self) -> int:
        return len(self.places)

    def take(self, places: Any) -> Unknown:
        """Read these."""
        self.read[places] |= ~self.set[places]
        return UNKNOWN

    def sum(self) -> Unknown:
        """Of all elements."""
        return self.take(self.places)

    mean = sum

    def __getitem__(self, key: Any) -> Any:
        if not _known(key):
            return self.take(self.places)
        try:
            chosen = self.places[key]
        except IndexError:  # a lane that asks for it fails, and is run again by itself
            return UNKNOWN
        return self.view(chosen) if np.ndim(chosen) else self.take(chosen)

    def put(self, key: Any, value: Any, mask: Any) -> LaneColumns:
        """Elements become `value` where the mask holds."""
        assert isinstance(value, Unknown | int | float | np.generic), value
        if mask is False:
            return self
        certain = mask is True and _known(key)
        places = self.places[key] if _known(key) else self.places
        if not certain:
            self.take(places)
        self.written[places] = True
        self.set[places] |= certain
        return self


def _known(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_known, value))
    if isinstance(value, slice):
        return _known((value.start, value.stop, value.step))
    return not isinstance(value, Unknown | LaneColumns)


# What converted text calls


def where(mask: Any, value: Any, other: Any) -> Any:
    """`value` where the mask holds, else `other`; of tuples each part."""
    if value is other or other is UNSET or value is UNSET:
        return other if value is UNSET else value
    if _known(mask):
        return value if mask else other
    if isinstance(value, tuple):
        parts = [where(mask, mine, theirs) for mine, theirs in zip(value, other, strict=True)]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    assert not isinstance(value, LaneColumns) and not isinstance(other, LaneColumns)
    return UNKNOWN


def item(array: Any, key: Any) -> Any:
    """`array[key]`."""
    if isinstance(array, Unknown) or (isinstance(array, np.ndarray) and not _known(key)):
        return UNKNOWN
    if _known(key) or isinstance(array, LaneColumns):
        return array[key]
    assert not any(isinstance(part, LaneColumns) for part in array)
    return UNKNOWN


def store(array: Any, key: Any, value: Any, mask: Any) -> Any:
    """The array after `array[key] = value` where the mask holds."""
    assert isinstance(array, LaneColumns), array
    return array.put(key, value, mask)


def truth_of(value: Any) -> Any:
    """A value as a mask."""
    return bool(value) if _known(value) else UNKNOWN


def both(one: Any, other: Any) -> Any:
    """Where both masks hold."""
    one, other = truth_of(one), truth_of(other)
    if one is False or other is False:
        return False
    return other if one is True else one


def either(one: Any, other: Any) -> Any:
    """Where one of them does."""
    return negated(both(negated(one), negated(other)))


def negated(mask: Any) -> Any:
    """Where it does not."""
    return not mask if _known(mask) else UNKNOWN


def any_of(mask: Any) -> bool:
    """May it hold?"""
    return mask is not False


def loop(holds: Callable[..., Any], turn: Callable[..., Any], values: tuple[Any, ...], mask: Any) -> tuple[Any, ...]:
    """One turn in which nothing is known stands for all."""
    after = tuple(value if isinstance(value, LaneColumns) else UNKNOWN for value in values)
    turn(*after, both(mask, truth_of(holds(*after))))
    holds(*after)
    return after


def _number(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numbers; of what is not known it knows nothing. Of arrays it reads all."""

    def made(*values: Any, mask_: Any = True, **options: Any) -> Any:
        for value in values:
            if isinstance(value, LaneColumns):
                value.take(value.places)
        result = function(*values, **options) if all(map(_known, values)) else UNKNOWN
        return UNKNOWN if isinstance(result, np.generic) and result.dtype.type not in LIKE_NUMBA else result

    return made


class _NumberFunctions:
    """A module whose functions take what is not known."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        usual = int if name == "uintp" else getattr(self._module, name)  # the engine's own text indexes with these
        return _number(usual) if callable(usual) else usual


class _World:
    """`world` of a world rule."""

    def __init__(self, fields: Any) -> None:
        self._fields = fields

    def __getitem__(self, number: int) -> Any:
        return self._fields[number]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fields, name)

    def draw(self, name: str, shape: Any = 1) -> Unknown:
        """Draws of one lane."""
        return UNKNOWN


def _column_of(truth: LaneColumns, lane: int, first: int, count: int, step: int) -> LaneColumns:
    return truth.view(int(first) + np.arange(int(count)) * int(step))


def _block_of(truth: LaneColumns, lane: int, first: int, count: int, step: int, size: int) -> LaneColumns:
    return truth.view(int(first) + np.arange(int(count))[:, None] * int(step) + np.arange(int(size)))


def _never(*values: Any, mask_: Any = True) -> bool:
    """Nothing is refused: a lane of which something is, is run again by itself."""
    return False


class _Reading(Converter):
    """Refuses known numbers that numba would reckon with in another way: those of few bits, and where ints overflow."""

    def value(self, value: Any) -> Any:
        """As a Converter."""
        if isinstance(value, np.ndarray | np.generic) and value.dtype.type not in LIKE_NUMBA:
            raise TypeError(f"numpy and numba have rules of their own for {value.dtype}")
        if isinstance(value, int) and not -SMALL < value < SMALL:
            raise TypeError(f"{value} may overflow")
        return super().value(value)

    def function(self, function: FunctionType) -> Callable[..., Any]:
        """As a Converter."""
        for constant in function.__code__.co_consts:
            self.value(constant)
        return super().function(function)


WORDS = {
    "ALL": True, "UNSET": UNSET, "where": where, "item": item, "store": store, "both": both, "either": either,
    "negated": negated, "truth_of": truth_of, "any_of": any_of, "loop": loop, "fail_where": _never,
}  # fmt: skip
_NUMBERS = [
    *(getattr(builtins, name) for name in ("min", "max", "abs", "int", "float", "round")),
    *(value for module in (math, np) for value in vars(module).values() if callable(value)),
]
VALUES = [
    (math, _NumberFunctions(math)), (np, _NumberFunctions(np)), (bool, truth_of),
    *((function, _number(function)) for function in _NUMBERS),
    (kernels.table, lambda lane, name: lane[name]), (kernels.number, lambda lane, name: lane[name]),
    (kernels.shown, lambda array: array), (kernels.floats, lambda values: values),
    (kernels.refused, _never), (kernels.refused_vector, _never), (loop_kernels.note, _never),
    (world_kernel.column_of, _column_of), (world_kernel.block_of, _block_of), (world_kernel.as_world, _World),
]  # fmt: skip


def _plain(table: Any) -> Any:
    """The engine's own tables, whose indices have few bits, as int64 and float64."""
    if not isinstance(table, np.ndarray) or table.dtype.type in LIKE_NUMBA:
        return table
    return table.astype(np.float64 if table.dtype.kind == "f" else np.int64)


def touched(
    functions: Iterable[tuple[Callable[..., Any], Sequence[Any]]], columns: Mapping[str, tuple[int, int]],
    tables: Mapping[str, Any],
) -> dict[str, LaneColumns]:  # fmt: skip
    """What the text of phases, each with its further arguments, does to the arrays with a row for each environment.

    columns: how many each has, and its axes; tables: the other arrays, and numbers, by name. Where the text can't be
    run, everything is read and written.
    """
    turns = 0

    def counted(*ends: int) -> range:
        nonlocal turns
        turns += len(made := range(*ends))
        if turns > MOST_TURNS:
            raise OverflowError("too many turns")
        return made

    converter = _Reading(WORDS, [*VALUES, (range, counted)])
    arrays = {name: LaneColumns.of(*sizes) for name, sizes in columns.items()}
    plain = {name: _plain(value) for name, value in tables.items()}
    try:
        for function, more in functions:
            converter.value(function)({**plain, **arrays}, 0, *more)
    except Exception:  # noqa: BLE001  (rules are any text; numba understands some that this does not)
        for array in arrays.values():
            array.read[:] = array.written[:] = True
    return arrays
