"""What converted rules are made of where JAX traces them: masks, selects, and arrays of one environment as cells.

A `CellView` is an array of one environment whose elements are numbers or traced scalars, in a list of Python; several
views share a list, as numpy's views share memory. Whatever is known while tracing is computed then.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from heron_env.core.world import World
from heron_env.errors import RuleError

Traced = jax.core.Tracer | jax.Array


class Unset:
    """A variable that nothing has been assigned to."""


UNSET = Unset()


def known(value: Any) -> bool:
    """Is this a number, not a traced one?"""
    return not isinstance(value, Traced | CellView)


def joined(cells: Sequence[Any]) -> Any:
    """Cells as a vector."""
    numbers = all(map(known, cells))
    return jnp.asarray(cells) if numbers else jnp.stack([jnp.asarray(cell) for cell in cells])


class CellView:
    """Elements `places` of a list of cells, indexed as numpy does it."""

    __slots__ = ("cells", "places")

    def __init__(self, cells: list[Any], places: Any) -> None:
        self.cells, self.places = cells, places

    @classmethod
    def of(cls, values: Any) -> CellView:
        """Of an array's elements."""
        cells = [values[k] for k in np.ndindex(np.shape(values))]
        return cls(cells, np.arange(len(cells)).reshape(np.shape(values)))

    @property
    def array(self) -> Any:
        """As an array of JAX."""
        if not self.places.size:
            return jnp.zeros(self.shape)
        return joined([self.cells[place] for place in self.places.flat]).reshape(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""
        return self.places.shape  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, key: Any) -> Any:
        if not _static(key):
            return self.array[key]
        found: Any = self.places[key]
        return CellView(self.cells, found) if np.ndim(found) else self.cells[int(found)]

    def put(self, key: Any, value: Any, mask: Any) -> CellView:
        """Elements become `value` where the mask holds."""
        if not _static(key):
            value, key = self.array.at[key].set(where(mask, value, self.array[key])), ...
            mask = True
        places: Any = np.asarray(self.places[key])
        values = value.array if isinstance(value, CellView) else value
        shaped = np.ndim(values) > 0
        values = jnp.broadcast_to(values, places.shape) if shaped else values
        for at in np.ndindex(places.shape):
            place = places[at]
            self.cells[place] = where(mask, values[at] if shaped else values, self.cells[place])
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array, name)

    def __jax_array__(self) -> Any:
        return self.array


def _forward(name: str) -> None:
    def made(self: CellView, *others: Any) -> Any:
        return getattr(self.array, name)(*(other.array if isinstance(other, CellView) else other for other in others))

    setattr(CellView, name, made)


for _operator in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
    _forward(f"__{_operator}__")
    _forward(f"__r{_operator}__")
for _operator in ("neg", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne"):
    _forward(f"__{_operator}__")


def _static(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return all(
        known(end) for part in parts for end in ((part.start, part.stop) if isinstance(part, slice) else (part,))
    )


# Masks


def where(mask: Any, value: Any, other: Any) -> Any:
    """`value` where the mask holds, else `other`; of tuples each part."""
    if isinstance(other, Unset):
        return value
    if isinstance(value, Unset):
        return other
    if known(mask):
        return value if mask else other
    if value is other or value is None:
        return other
    if isinstance(value, tuple):
        parts = [where(mask, mine, theirs) for mine, theirs in zip(value, other, strict=True)]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if known(value) and known(other) and np.ndim(value) == np.ndim(other) == 0 and value == other:
        return other
    value, other = jnp.asarray(_bare(value)), jnp.asarray(_bare(other))
    if value.dtype == other.dtype and value.shape == other.shape == mask.shape:
        return jax.lax.select(mask, value, other)
    return jnp.where(mask, value, other)


def item(array: Any, key: Any) -> Any:
    """`array[key]`."""
    if isinstance(array, CellView) or _static(key):
        return array[key]
    return jnp.asarray(array)[key]


def store(array: Any, key: Any, value: Any, mask: Any) -> Any:
    """The array after `array[key] = value` where the mask holds."""
    if isinstance(array, CellView):
        return array.put(key, value, mask)
    if isinstance(array, list):
        array[key] = where(mask, value, array[key])
        return array
    return jnp.asarray(array).at[key].set(where(mask, value, array[key]))


def both(one: Any, other: Any) -> Any:
    """Where both masks hold."""
    if known(one):
        return other if one else False
    if known(other):
        return one if other else False
    return one & other


def either(one: Any, other: Any) -> Any:
    """Where one of them does."""
    if known(one):
        return True if one else other
    if known(other):
        return True if other else one
    return one | other


def negated(mask: Any) -> Any:
    """Where it does not."""
    return not mask if known(mask) else ~mask


def truth_of(value: Any) -> Any:
    """A value as a mask."""
    if known(value):
        return bool(value)
    return value if value.dtype == jnp.bool_ else value != 0


def any_of(mask: Any) -> bool:
    """May it hold?"""
    return bool(mask) if known(mask) else True


def loop(holds: Callable[..., Any], turn: Callable[..., Any], values: tuple[Any, ...], mask: Any) -> tuple[Any, ...]:
    """Turns as long as the condition holds; in Python where that is known while tracing."""
    while known(now := both(mask, truth_of(holds(*values)))):
        if not now:
            return values
        values = turn(*values, mask)
    if any(isinstance(value, CellView) for value in values):
        raise RuleError("elements of an array are assigned in a `while` whose end depends on the state; use a `for`")
    slots = [k for k, value in enumerate(values) if not isinstance(value, Unset)]
    first = tuple(jnp.asarray(values[k]) for k in slots)

    def whole(carried: Any) -> list[Any]:
        given: list[Any] = [UNSET] * len(values)
        for k, value in zip(slots, carried, strict=True):
            given[k] = value
        return given

    def go_on(carried: Any) -> Any:
        return both(mask, truth_of(holds(*whole(carried))))

    def one(carried: Any) -> Any:
        after = turn(*whole(carried), go_on(carried))
        return tuple(jnp.asarray(after[k], first[n].dtype) for n, k in enumerate(slots))

    return tuple(whole(jax.lax.while_loop(go_on, one, first)))


# Functions that rules call by the names of Python, math and numpy


def _bare(value: Any) -> Any:
    return value.array if isinstance(value, CellView) else value


def within(value: Any, low: Any, high: Any, mask_: Any = True) -> Any:
    """`quantity.within`, without asking for bounds that there are not."""
    number = value * 1.0
    above = number if known(high) and high == math.inf else where(truth_of(number > high), high, number)
    return above if known(low) and low == -math.inf else where(truth_of(number < low), low, above)


def _smaller(*values: Any) -> Any:
    return _extreme(lambda a, b: b < a, builtins.min, values)


def _larger(*values: Any) -> Any:
    return _extreme(lambda a, b: b > a, builtins.max, values)


def _extreme(wins: Callable[[Any, Any], Any], usual: Any, values: Sequence[Any]) -> Any:
    if len(values) == 1:
        values = [values[0][k] for k in range(len(values[0]))]
    if all(map(known, values)):
        return usual(values)
    best = values[0]
    for value in values[1:]:
        best = where(truth_of(wins(best, value)), value, best)
    return best


def _traced_or(usual: Any, traced: Callable[..., Any]) -> Callable[..., Any]:
    def made(*values: Any, **options: Any) -> Any:
        if all(map(known, values)):
            return usual(*values, **options)
        return traced(*map(_bare, values), **options)

    return made


def _to_int(value: Any) -> Any:
    return jnp.trunc(value).astype(jnp.int64)


def _rounded(value: Any, digits: int | None = None) -> Any:
    return jnp.rint(value).astype(jnp.int64) if digits is None else jnp.round(value, digits)


class _Functions:
    """A module whose functions take traced values too, by what JAX has under the same name."""

    def __init__(self, module: Any, more: dict[str, Any]) -> None:
        self._module, self._more = module, more

    def __getattr__(self, name: str) -> Any:
        if name in self._more:
            return self._more[name]
        usual = getattr(self._module, name)
        if not callable(usual):
            return usual
        return _traced_or(usual, getattr(jnp, name, None) or _missing(f"{self._module.__name__}.{name}"))


def _missing(name: str) -> Callable[..., Any]:
    def made(*values: Any, **options: Any) -> Any:
        raise RuleError(f"{name} has no counterpart in JAX; write the rule without it")

    return made


def _cells(shape: Any, value: float) -> CellView:
    places = np.arange(int(np.prod(shape))).reshape(shape)
    return CellView([value] * places.size, places)


def _as(kind: Any) -> Callable[..., Any]:
    usual: Any = getattr(np, kind)
    return _traced_or(usual, lambda value: value.astype(getattr(jnp, kind)))


def rounded(value: Any) -> Any:
    """To what float32 can hold; the type stays, for it would decide how numbers are compared."""
    if known(value):
        return float(np.float32(value))
    return jax.lax.reduce_precision(value * 1.0, exponent_bits=8, mantissa_bits=23)


def _whole(value: Any) -> Any:
    return int(value) if known(value) else value.astype(jnp.int64)


MATH = _Functions(math, {
    "fabs": _traced_or(math.fabs, jnp.abs), "atan2": _traced_or(math.atan2, jnp.arctan2),
    "asin": _traced_or(math.asin, jnp.arcsin), "acos": _traced_or(math.acos, jnp.arccos),
    "atan": _traced_or(math.atan, jnp.arctan), "erf": _traced_or(math.erf, jax.scipy.special.erf),
})  # fmt: skip
NUMPY = _Functions(np, {
    "float64": _as("float64"), "float32": rounded, "uint64": _as("uint64"), "int64": _whole, "uintp": _whole,
    "uint8": _as("uint8"), "empty": lambda shape, dtype=None: _cells(shape, 0.0),
    "zeros": lambda shape, dtype=None: _cells(shape, 0.0), "ones": lambda shape, dtype=None: _cells(shape, 1.0),
})  # fmt: skip
VALUES: list[tuple[Any, Any]] = [
    (math, MATH), (np, NUMPY),
    (min, _smaller), (max, _larger), (abs, _traced_or(abs, jnp.abs)), (round, _traced_or(round, _rounded)),
    (int, _traced_or(int, _to_int)), (float, _traced_or(float, lambda value: value * 1.0)),
    (bool, truth_of), (range, lambda *ends: range(*map(int, ends))),
    (math.sqrt, MATH.sqrt), (math.exp, MATH.exp), (math.log, MATH.log), (math.sin, MATH.sin), (math.cos, MATH.cos),
    (World, World),
]  # fmt: skip
"""What stands in the place of what rules call."""
WORDS = SimpleNamespace(
    where=where, item=item, store=store, both=both, either=either, negated=negated, truth_of=truth_of, any_of=any_of,
    loop=loop, UNSET=UNSET, ALL=True,
)  # fmt: skip
