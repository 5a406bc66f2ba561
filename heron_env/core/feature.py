"""A feature: named quantities of one agent (or of the world), held as a window on a slice of one float64 array."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self, dataclass_transform, get_type_hints

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import FeatureError, UnknownFeature, did_you_mean

TAGS = ("public", "owner", "upper_level", "system", "siblings", "subordinates")
KINDS = {float: "float", int: "int", bool: "bool"}
SYSTEM_LEVEL = 3

_registry: dict[str, list[type[FeatureProvider]]] = {}


class Quantity:
    """The declaration of one quantity, and the descriptor that reads and writes its place in the array."""

    __slots__ = (
        "default", "high", "index", "kind", "low", "name", "noisy", "observed", "owner", "per_step", "shape", "size",
        "unit", "visibility",
    )  # fmt: skip

    def __init__(
        self,
        default: Any = 0.0,
        low: float | None = None,
        high: float | None = None,
        unit: str = "1",
        kind: str | None = None,
        categories: Sequence[str] = (),
        shape: tuple[int, ...] = (),
        noisy: bool = True,
        per_step: bool = False,
        observed: bool = True,
        visibility: Iterable[str] | None = None,
    ) -> None:
        self.default, self.unit, self.shape, self.noisy = default, unit, shape, noisy
        self.per_step, self.observed = per_step, observed
        self.low = -math.inf if low is None else float(low)
        self.high = math.inf if high is None else float(high)
        self.kind = "category" if categories else kind
        if categories:
            self.low, self.high = 0.0, float(len(categories) - 1)
        self.visibility = None if visibility is None else tuple(visibility)
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
        if not self.low <= self.high:
            raise FeatureError(f"{where}: low={self.low} must not exceed high={self.high}")
        if self.visibility is not None:
            check_tags(self.visibility, where)
        self.check(self.default)

    def check(self, value: Any) -> None:
        """Raise FeatureError unless `value` is a number (or array) of this shape within the bounds."""
        where = f"{self.owner.__name__ if self.owner else '?'}.{self.name}"
        try:
            array = np.broadcast_to(np.asarray(value, dtype=np.float64), self.shape)
        except (TypeError, ValueError) as error:
            raise FeatureError(f"{where}={value!r}: expected numbers of shape {self.shape}") from error
        if not np.all((array >= self.low) & (array <= self.high)):
            raise FeatureError(f"{where}={value!r} lies outside [{self.low}, {self.high}] {self.unit}")

    def clip(self, value: float) -> float:
        """`value` within the declared bounds; whole for int, bool and category."""
        if self.kind != "float":
            value = float(round(value))
        return self.low if value < self.low else self.high if value > self.high else value

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
        if self.shape:
            view = feature._array[self.index : self.index + self.size].reshape(self.shape)
            view[...] = np.clip(value, self.low, self.high)
        else:
            value = float(value)
            if value != value:
                raise FeatureError(f"{type(feature).__name__}.{self.name}=nan: a quantity must be a number")
            feature._cells[self.index] = self.clip(value)

    def __repr__(self) -> str:
        """`Charge.soc`, as it is written in rules."""
        return f"{self.owner.__name__ if self.owner else '?'}.{self.name}"


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
) -> Any:
    """Declare a quantity of a feature once; spaces, clipping, documentation and checks derive from it.

    Args:
        default: value at reset, unless the agent is built with another.
        low, high: bounds, both included; every write is clipped to them. None: unbounded (spaces then use +-1e6).
        unit: physical unit, "1" for none.
        categories: names of a categorical quantity; its value is the index.
        shape: () for one number, (k,) for a vector.
        noisy: may observation noise fall on it?
        per_step: set to 0 before each control step's first substep (a flow that `advance` integrates).
        observed: False for bookkeeping: in nobody's observation, yet rules may read it.
        visibility: tags of this field alone, instead of the feature's.
    """
    return Quantity(default, low, high, unit, None, categories, shape, noisy, per_step, observed, visibility)


def check_tags(tags: Iterable[str], where: str) -> None:
    """Raise FeatureError naming the first unknown visibility tag."""
    for tag in tags:
        if tag not in TAGS:
            raise FeatureError(
                f"{where}: unknown visibility tag {tag!r}; tags are {', '.join(TAGS)}.{did_you_mean(tag, TAGS)}"
            )


def _annotations(cls: type) -> dict[str, Any]:
    """The class's own annotations, resolved where they can be."""
    own = cls.__dict__.get("__annotations__", {})
    scope = {**vars(sys.modules[cls.__module__]), "ClassVar": ClassVar}
    try:
        hints = get_type_hints(cls, globalns=scope)
    except NameError:
        hints = {name: {"float": float, "int": int, "bool": bool}.get(str(hint), hint) for name, hint in own.items()}
    return {name: hints[name] for name in own if "ClassVar" not in str(own[name]) and not name.startswith("_")}


@dataclass_transform(kw_only_default=True, field_specifiers=(quantity,))
class FeatureProvider:
    """Base of all features: annotate numbers in the class body, with or without `quantity(...)`.

    `visibility` lists who sees it: public, owner, upper_level, system, siblings, subordinates (OR; default owner).
    A feature that stands alone owns a small array; registered in an environment it is a window on the environment's.
    """

    visibility: ClassVar[Sequence[str]] = ("owner",)
    feature_name: ClassVar[str] = "FeatureProvider"
    quantities: ClassVar[dict[str, Quantity]] = {}
    width: ClassVar[int] = 0
    _array: NDArray[np.float64]
    _cells: memoryview

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Collect the quantities, check the tags, enter the registry."""
        super().__init_subclass__(**kwargs)
        cls.feature_name = cls.__dict__.get("feature_name", cls.__name__)
        cls.quantities = dict(cls.quantities)
        for name, annotation in _annotations(cls).items():
            declared = cls.__dict__.get(name, None)
            if not isinstance(declared, Quantity):
                declared = Quantity(0.0 if declared is None else declared)
            declared.bind(cls, name, annotation, cls.width)
            cls.width += declared.size
            cls.quantities[name] = declared
            setattr(cls, name, declared)
        if isinstance(cls.visibility, str):
            raise FeatureError(f"{cls.__name__}.visibility={cls.visibility!r}: write a tuple, ({cls.visibility!r},)")
        cls.visibility = tuple(cls.visibility)
        check_tags(cls.visibility, f"{cls.__name__}.visibility")
        same = _registry.setdefault(cls.__name__, [])
        same[:] = [known for known in same if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__)]
        same.append(cls)

    def __init__(self, **values: Any) -> None:
        self._bind(np.zeros(self.width))
        for name, declared in self.quantities.items():
            value = values.pop(name, declared.default)
            declared.check(value)
            setattr(self, name, value)
        if values:
            name = next(iter(values))
            raise UnknownFeature(
                f"{type(self).__name__}({name}=...): no such field; fields are {list(self.quantities)}."
                f"{did_you_mean(name, self.quantities)}"
            )

    def _bind(self, array: NDArray[np.float64]) -> None:
        """Become the window on `array` (float64 `[width]`), whose values stay as they are."""
        self._array = array
        self._cells = memoryview(array)

    def __getstate__(self) -> NDArray[np.float64]:
        """A pickled or copied feature stands alone, with its values; its environment binds it again."""
        return self._array.copy()

    def __setstate__(self, array: NDArray[np.float64]) -> None:
        """Restore a free feature."""
        self._bind(array)

    def vector(self) -> NDArray[np.float64]:
        """A copy of all quantities, float64 `[width]`, in order of declaration."""
        return self._array.copy()

    @classmethod
    def names(cls) -> list[str]:
        """Names of the vector's elements: `soc`, or `power[0]`, `power[1]` for a vector quantity."""
        return [name for q in cls.quantities.values() for name in element_names(q)]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers (lists for vectors) by field name."""
        return {name: _plain(getattr(self, name)) for name in self.quantities}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict()`; unknown fields raise UnknownFeature, bad values FeatureError."""
        return cls(**values)

    def set_values(self, **values: Any) -> None:
        """Set fields by name, clipped into their bounds. Raises UnknownFeature, and changes nothing then."""
        for name in values:
            if name not in self.quantities:
                raise UnknownFeature(
                    f"{type(self).__name__}.set_values({name}=...): no such field; fields are {list(self.quantities)}."
                    f"{did_you_mean(name, self.quantities)}"
                )
        for name, value in values.items():
            setattr(self, name, value)

    def is_observable_by(self, requestor_id: str, requestor_level: int, owner_id: str, owner_level: int) -> bool:
        """Without a hierarchy: do the tags let this requestor see it? (upper_level here means one level above.)

        A State that belongs to an environment answers by its own hierarchy instead: there upper_level is the parent.
        """
        tags = self.visibility
        return (
            "public" in tags
            or requestor_id == owner_id
            or ("upper_level" in tags and requestor_level == owner_level + 1)
            or ("system" in tags and requestor_level >= SYSTEM_LEVEL)
        )

    def __repr__(self) -> str:
        """`Charge(soc=0.5, capacity=100.0)`."""
        values = ", ".join(f"{name}={value}" for name, value in self.to_dict().items())
        return f"{type(self).__name__}({values})"

    def __eq__(self, other: object) -> bool:
        """Same class, same values."""
        return type(self) is type(other) and bool(np.array_equal(self._array, other._array))  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]


def element_names(declared: Quantity) -> list[str]:
    """Column names of one quantity."""
    return [declared.name] if not declared.shape else [f"{declared.name}[{i}]" for i in range(declared.size)]


def find_feature(name: str, near: Iterable[type[FeatureProvider]] = ()) -> type[FeatureProvider]:
    """The feature class called `name`: among `near` (an environment's), else among all subclasses.

    Raises UnknownFeature if there is none, and FeatureError naming both if there are two.
    """
    found = [cls for cls in near if cls.__name__ == name] or _registry.get(name, [])
    if not found:
        raise UnknownFeature(f"no feature class is called {name!r}.{did_you_mean(name, _registry)}")
    if len(found) > 1:
        places = " and ".join(f"{cls.__module__}.{cls.__qualname__}" for cls in found)
        raise FeatureError(f"feature {name!r} is ambiguous: {places}; give one of them another name")
    return found[0]


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value
