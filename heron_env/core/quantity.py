"""A quantity: one number (or vector) of a feature, declared once with default, bounds, unit and kind."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import FeatureError, checked_keywords, did_you_mean

if TYPE_CHECKING:
    from heron_env.core.feature import FeatureProvider

TAGS = ("public", "owner", "upper_level", "system", "siblings", "subordinates")
Floats = NDArray[np.float64]
MEANT = {
    "noisy": "False for what observation noise must not fall on",
    "per_step": "True for a flow that starts each step at 0",
    "observed": "False for bookkeeping that nobody observes",
    "foreknown": "True for what is really known ahead",
    "relative": "True for what others see from where they are themselves",
    "to_owner": "False for what an agent says and does not hear",
}
"""What the flags of a quantity are for."""
KINDS = {float: "float", int: "int", bool: "bool"}


def within(value: Any, low: Any, high: Any) -> Any:
    """A number, as a float, within its bounds, in plain and in compiled code; nan stays nan."""
    number = value * 1.0  # compiled, `float` takes no bool
    return low if number < low else high if number > high else number


def clip(
    values: Floats, low: Any, high: Any, *, integer: NDArray[np.bool_] | None = None, out: Floats | None = None
) -> Floats:
    """The same of numbers `[..., n]` and bounds `[n]`, rounded where `integer` `[n]` says so; into `out`, or fresh."""
    clipped: Floats = values.clip(low, high, out=out)
    return clipped if integer is None else np.rint(clipped, out=clipped, where=integer)


class Quantity:
    """The declaration of one quantity, and the descriptor that reads and writes its place in the array."""

    __slots__ = (
        "categories", "default", "foreknown", "high", "index", "kind", "low", "name", "noisy", "observed", "owner",
        "per_step", "relative", "shape", "size", "to_owner", "unit", "visibility",
    )  # fmt: skip

    def __init__(
        self, default: Any, low: float | None, high: float | None, unit: str, categories: Sequence[str],
        shape: tuple[int, ...], noisy: bool, per_step: bool, observed: bool, visibility: Iterable[str] | None,
        foreknown: bool, relative: bool, to_owner: bool,
    ) -> None:  # fmt: skip
        """Arguments as of `quantity`."""
        _require_form(low=low, high=high, unit=unit, categories=categories, shape=shape)
        _require_flags(noisy=noisy, per_step=per_step, observed=observed, foreknown=foreknown)
        _require_flags(relative=relative, to_owner=to_owner)
        self.default, self.unit, self.shape, self.noisy = default, unit, shape, noisy
        self.per_step, self.observed, self.categories = per_step, observed, tuple(categories)
        self.foreknown, self.relative, self.to_owner = foreknown, relative, to_owner
        self.low = -math.inf if low is None else float(low)
        self.high = math.inf if high is None else float(high)
        self.kind = "category" if categories else None
        if categories:
            self.low, self.high = 0.0, float(len(categories) - 1)
        self.visibility = None if visibility is None else checked_tags(visibility, "quantity(visibility=...)")
        self.size = math.prod(shape)
        self.index = 0
        self.name = ""
        self.owner: type[FeatureProvider] | None = None

    def bind(self, owner: type[FeatureProvider], name: str, annotation: Any, index: int) -> None:
        """Complete the declaration with what the class body says, and check it."""
        self.owner, self.name, self.index = owner, name, index
        where = f"{owner.__name__}.{name}"
        if self.kind is None:
            if annotation not in KINDS and not (self.shape and annotation is np.ndarray):
                shown = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", annotation)
                raise FeatureError(
                    f"{where}: a quantity is a number, not {shown}; annotate it float, int or bool "
                    "(ids and texts belong to the agent, not to its state)"
                )
            self.kind = KINDS.get(annotation, "float")
        if self.kind == "bool":
            self.low, self.high = 0.0, 1.0
        if self.relative and self.kind in ("bool", "category"):
            raise FeatureError(
                f"{where}: a difference of two of kind {self.kind} says nothing; leave relative=True out, or annotate "
                "float or int"
            )
        if not self.low <= self.high:
            raise FeatureError(f"{where}: low={self.low} must not exceed high={self.high}; exchange or correct them")
        self.check(self.default)

    def check(self, value: Any) -> None:
        """Raise FeatureError unless `value` is a number (or array) of this shape within the bounds."""
        where = f"{self.owner.__name__ if self.owner else '?'}.{self.name}"
        try:
            if np.asarray(value).dtype.kind not in "buif":
                raise TypeError(f"{value!r} is no number")
            array = np.broadcast_to(np.asarray(value, dtype=np.float64), self.shape)
        except (TypeError, ValueError, OverflowError) as error:
            needed = f"numbers of shape {self.shape}" if self.shape else "a number"
            if value in self.categories:
                needed += f", {self.categories.index(value)} for the category {value!r}"
            raise FeatureError(f"{where}={value!r}: expected {needed}") from error
        if not np.all((array >= self.low) & (array <= self.high)):
            bounds = f"[{self.low}, {self.high}]{unit_text(self.unit)}"
            raise FeatureError(
                f"{where}={value!r} lies outside {bounds}; choose a value within, or declare other bounds"
            )
        if self.kind != "float" and not np.array_equal(array, np.round(array)):
            raise FeatureError(
                f"{where}={value!r}: this quantity is {self.kind}; give a whole number, or annotate float"
            )

    def write(self, target: Floats, values: Floats) -> None:
        """Write the `[size]` elements of a vector quantity; whole for int, bool and category."""
        clip(values if self.kind == "float" else np.round(values), self.low, self.high, out=target)

    def __get__(self, feature: FeatureProvider | None, owner: type[FeatureProvider]) -> Any:
        """The value; on the class the declaration itself (as in `rule(writes=Charge.soc)`)."""
        if feature is None:
            return self
        if self.shape:
            return feature._array[self.index : self.index + self.size].reshape(self.shape)
        value = feature._cells[self.index]
        return value if self.kind == "float" else int(value)

    def __set__(self, feature: FeatureProvider, value: Any) -> None:
        """Store, clipped into the bounds; NaN is refused."""
        try:
            if self.shape:
                array = np.broadcast_to(np.asarray(value, dtype=np.float64), self.shape)
                if np.isnan(array).any():
                    raise ValueError("nan")
                self.write(feature._array[self.index : self.index + self.size], array.reshape(self.size))
            else:
                value = float(value)
                if value != value:
                    raise ValueError("nan")
                number = value if self.kind == "float" else float(round(value))
                feature._cells[self.index] = within(number, self.low, self.high)
        except (TypeError, ValueError, OverflowError) as error:
            needed = f"numbers of shape {self.shape}" if self.shape else "a number"
            raise FeatureError(
                f"{type(feature).__name__}.{self.name}={value!r}: a quantity must be {needed}; check what computes it"
            ) from error

    def __repr__(self) -> str:
        """`Charge.soc`, as it is written in rules."""
        return f"{self.owner.__name__ if self.owner else '?'}.{self.name}"


@checked_keywords
def quantity(
    *,
    default: Any = 0.0,
    low: float | None = None,
    high: float | None = None,
    unit: str = "1",
    categories: Sequence[str] = (),
    shape: tuple[int, ...] = (),
    noisy: bool = True,
    per_step: bool = False,
    observed: bool = True,
    visibility: Iterable[str] | None = None,
    foreknown: bool = False,
    relative: bool = False,
    to_owner: bool = True,
) -> Any:
    """Declare a quantity of a feature. Spaces, clipping, documentation and checks follow from it.

    Args:
        default: value at reset, unless the agent is built with another one.
        low, high: bounds, both included; every write is clipped to them. None: unbounded (spaces then use +-1e6).
        unit: physical unit, "1" for none.
        categories: names of a categorical quantity. Its value is the index, from 0, also in rules and actions.
        shape: () for one number, (k,) for a vector.
        noisy: whether observation noise may be added.
        per_step: set to 0 before the first substep of each control step (for a flow that `advance` integrates).
        observed: False: in no observation; rules may read it.
        visibility: tags of this field, instead of the feature's. Without "owner" or "public" its owner does not see it.
        foreknown: it may depend on the future because that is really known ahead: a tariff, a calendar, a forecast, a
            plan. Any other quantity describes the past, and `heron check` warns if it does not.
        relative: other agents observe the difference to their own value of the same quantity (V9).
        to_owner: False: its owner does not observe it, whatever tags or a matrix say; others do as these say.

    Returns:
        The declaration, for the class of the feature.

    >>> class Charge(FeatureProvider):  # doctest: +SKIP
    ...     soc: float = quantity(default=0.5, low=0.0, high=1.0)
    >>> Charge(soc=0.7).soc  # doctest: +SKIP
    0.7
    """
    observability = observed, visibility, foreknown, relative, to_owner
    return Quantity(default, low, high, unit, categories, shape, noisy, per_step, *observability)


def checked_tags(tags: Iterable[str], where: str) -> tuple[str, ...]:
    """The visibility tags as a tuple. Raises FeatureError naming the first unknown one."""
    if isinstance(tags, str):
        raise FeatureError(f"{where}: {tags!r} is a string; write a tuple, ({tags!r},)")
    if not isinstance(tags, Iterable):
        raise FeatureError(f"{where}: {tags!r} is no tuple of tags; write ('public',), or () for nobody")
    for tag in tags:
        if tag not in TAGS:
            raise FeatureError(
                f"{where}: unknown visibility tag {tag!r}; tags are {', '.join(TAGS)}.{did_you_mean(tag, TAGS)}"
            )
    return tuple(tags)


def _is_bound(value: Any) -> bool:
    try:
        return not (isinstance(value, str) or np.ndim(value) or math.isnan(value))
    except (TypeError, ValueError, OverflowError):
        return False


def _require_form(*, low: Any, high: Any, unit: Any, categories: Any, shape: Any) -> None:
    """Raise FeatureError for an argument of quantity() of another type than declared."""
    for name, bound in (("low", low), ("high", high)):
        if bound is not None and not _is_bound(bound):
            raise FeatureError(f"quantity({name}={bound!r}): is no bound; give a number, or leave it out for none")
    if not isinstance(unit, str):
        raise FeatureError(f"quantity(unit={unit!r}): must be text; write '1' for none")
    several = isinstance(categories, Iterable) and not isinstance(categories, str)
    if not several or not all(isinstance(name, str) for name in categories):
        raise FeatureError(f"quantity(categories={categories!r}): must be a tuple of names; write ('off', 'on')")
    if not isinstance(shape, tuple) or not all(isinstance(n, int) and n > 0 for n in shape):
        raise FeatureError(
            f"quantity(shape={shape!r}): must be a tuple of whole numbers > 0; write (3,) for a vector of 3"
        )


def _require_flags(**flags: Any) -> None:
    """Raise FeatureError for a flag of quantity() that is no bool: "no" would count as yes."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise FeatureError(f"quantity({name}={value!r}): must be True or False; write {MEANT[name]}")


def unit_text(unit: str, after: str = " ") -> str:
    """The unit as it follows a number, or, `after` a comma, a name: nothing for "1"."""
    return "" if unit == "1" else f"{after}{unit}"


def element_names(declared: Quantity) -> list[str]:
    """Column names of one quantity."""
    return [declared.name] if not declared.shape else [f"{declared.name}[{i}]" for i in range(declared.size)]
