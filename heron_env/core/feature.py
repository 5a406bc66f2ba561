"""A feature: named quantities of one agent (or of the world), held as a window on a slice of one float64 array."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, dataclass_transform, get_type_hints

import numpy as np
from numpy.typing import NDArray

from heron_env.core.quantity import Quantity, checked_tags, element_names
from heron_env.core.quantity import quantity as quantity
from heron_env.errors import FeatureError, UnknownFeature, UnknownField, did_you_mean

SYSTEM_LEVEL = 3

_registry: dict[str, list[type[FeatureProvider]]] = {}


def _annotations(cls: type) -> dict[str, Any]:
    """The class's own annotations, resolved where they can be."""
    own = inspect.get_annotations(cls)
    scope = {**getattr(sys.modules.get(cls.__module__), "__dict__", {}), "ClassVar": ClassVar}
    try:
        hints = get_type_hints(cls, globalns=scope)
    except NameError:
        hints = {name: {"float": float, "int": int, "bool": bool}.get(str(hint), hint) for name, hint in own.items()}
    return {name: hints[name] for name in own if "ClassVar" not in str(own[name]) and not name.startswith("_")}


@dataclass_transform(kw_only_default=True, field_specifiers=(quantity,))
class FeatureProvider:
    """Base of all features: annotate numbers in the class body, with or without `quantity(...)`.

    `visibility` lists who sees it: public, owner, upper_level, system, siblings, subordinates; one match is enough. The
    default is owner. Without `owner` or `public` its owner does not see it. `reported`: do state reports carry it?
    False for an `Inbox` alone. In an environment a feature is a view of the environment's arrays.
    """

    visibility: ClassVar[Sequence[str]] = ("owner",)
    reported: ClassVar[bool] = True
    feature_name: ClassVar[str] = "FeatureProvider"
    quantities: ClassVar[dict[str, Quantity]] = {}
    width: ClassVar[int] = 0
    _array: NDArray[np.float64]
    _cells: memoryview[float]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.feature_name = cls.__dict__.get("feature_name", cls.__name__)
        parents = [base for base in cls.__bases__ if issubclass(base, FeatureProvider) and base.quantities]
        if len(parents) > 1:
            names = " and ".join(base.__name__ for base in parents)
            raise FeatureError(
                f"{cls.__name__} inherits from {names}: a feature extends one other; declare two features"
            )
        cls.quantities = dict(cls.quantities)
        annotations = _annotations(cls)
        for name in cls.quantities.keys() & cls.__dict__.keys() - annotations.keys():
            raise FeatureError(f"{cls.__name__}.{name} replaces a quantity: annotate it too, {name}: float = ...")
        for name, declared in cls.__dict__.items():
            if isinstance(declared, Quantity) and name not in annotations:
                raise FeatureError(f"{cls.__name__}.{name}: annotate the quantity, {name}: float = quantity(...)")
        for name, annotation in annotations.items():
            cls._declare(name, annotation)
        cls.visibility = checked_tags(cls.visibility, f"{cls.__name__}.visibility")
        same = _registry.setdefault(cls.__name__, [])
        same[:] = [
            other for other in same if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__)
        ]
        same.append(cls)

    @classmethod
    def _declare(cls, name: str, annotation: Any) -> None:
        """Make a quantity of an annotated name; one that replaces an inherited quantity takes its place."""
        if hasattr(FeatureProvider, name):
            raise FeatureError(f"{cls.__name__}.{name}: features have a {name!r} of their own; choose another name")
        declared = cls.__dict__.get(name, 0.0)
        if not isinstance(declared, Quantity):
            declared = quantity(default=declared)
        replaced = cls.quantities.get(name)
        declared.bind(cls, name, annotation, cls.width if replaced is None else replaced.index)
        if replaced is None:
            cls.width += declared.size
        elif replaced.shape != declared.shape:
            raise FeatureError(f"{cls.__name__}.{name}: replaces a quantity of shape {replaced.shape}; keep that shape")
        cls.quantities[name] = declared
        setattr(cls, name, declared)

    def __init__(self, *nameless: Any, **values: Any) -> None:
        if nameless:
            example = next(iter(self.quantities), "field")
            raise FeatureError(
                f"{type(self).__name__}({nameless[0]!r}): values go by name; write {example}={nameless[0]!r}"
            )
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

    if not TYPE_CHECKING:  # a type checker knows the fields

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            fields = list(self.quantities)
            raise UnknownField(
                f"{type(self).__name__} has no field {name!r}; fields are {fields}.{did_you_mean(name, fields)}"
            )

    def _bind(self, array: NDArray[np.float64]) -> None:
        """Become the window on `array` (float64 `[width]`), whose values stay as they are."""
        self._array = array
        self._cells = cast("memoryview[float]", array.data)

    def __getstate__(self) -> NDArray[np.float64]:
        """A pickled or copied feature stands alone, with its values; its environment binds it again."""
        return self._array.copy()

    def __setstate__(self, array: NDArray[np.float64]) -> None:
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
        return {name: plain(getattr(self, name)) for name in self.quantities}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict()`; unknown fields raise UnknownFeature, bad values FeatureError."""
        if not isinstance(values, Mapping):
            raise FeatureError(
                f"{cls.__name__}.from_dict({values!r}): give a mapping of the fields {[*cls.quantities]}"
            )
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
        """Do the tags let this requestor see it? Without a hierarchy, upper_level means one level above.

        A State that belongs to an environment answers by its own hierarchy instead: there upper_level is the parent.
        """
        return tags_match(self.visibility, requestor_id, requestor_level, owner_id, owner_level)

    def __repr__(self) -> str:
        """`Charge(soc=0.5, capacity=100.0)`."""
        values = ", ".join(f"{name}={value}" for name, value in self.to_dict().items())
        return f"{type(self).__name__}({values})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and bool(np.array_equal(self._array, other._array))

    __hash__ = None  # type: ignore[assignment]


def visibility_of(feature: type[FeatureProvider], q: Quantity) -> tuple[str, ...]:
    """The tags of a field: its own, or its feature's."""
    return tuple(feature.visibility if q.visibility is None else q.visibility)


def tags_match(tags: Sequence[str], requestor_id: str, requestor_level: int, owner_id: str, owner_level: int) -> bool:
    """Without a hierarchy: does one of the tags let this requestor, who may be the owner, see what carries them?"""
    return (
        "public" in tags
        or ("owner" in tags and requestor_id == owner_id)
        or ("upper_level" in tags and requestor_level == owner_level + 1)
        or ("system" in tags and requestor_level >= SYSTEM_LEVEL)
    )


def of_any_size(base: type[FeatureProvider], *names: str) -> tuple[Quantity, ...]:
    """The quantities of these names in the subclasses of every size: for a rule that says what it writes."""
    quantities = [cast(Quantity, quantity()) for _ in names]
    for name, one in zip(names, quantities, strict=True):
        one.bind(base, name, float, 0)
    return tuple(quantities)


def find_feature(name: str, near: Iterable[type[FeatureProvider]] = ()) -> type[FeatureProvider]:
    """The feature class called `name`: among `near` (an environment's), else among all subclasses.

    Raises UnknownFeature if there is none, and FeatureError naming both if there are two.
    """
    matches = [cls for cls in near if name in (cls.feature_name, cls.__name__)] or _registry.get(name, [])
    if not matches:
        raise UnknownFeature(f"no feature class is called {name!r}.{did_you_mean(name, _registry)}")
    if len(matches) > 1:
        places = " and ".join(f"{cls.__module__}.{cls.__qualname__}" for cls in matches)
        raise FeatureError(f"feature {name!r} is ambiguous: {places}; give one of them another name")
    return matches[0]


def require_features(features: Any, where: str) -> None:
    """Raise FeatureError unless `features` is a tuple or list of different feature classes."""
    if not isinstance(features, tuple | list):
        example = getattr(features, "__name__", "Price")
        raise FeatureError(f"{where}={features!r}: must be a tuple of feature classes; write ({example},)")
    for i, feature in enumerate(features):
        if not (isinstance(feature, type) and issubclass(feature, FeatureProvider)):
            raise FeatureError(
                f"{where}[{i}]={feature!r}: must be a feature class; write Price, not Price() or 'Price'"
            )
        if feature.feature_name in [other.feature_name for other in features[:i]]:
            raise FeatureError(f"{where}[{i}]={feature!r}: there is a {feature.feature_name} already; name it once")


def labelled(owner_id: str, level: int, kind: str, features: dict[str, Any]) -> dict[str, Any]:
    """Return `features` by name as a dictionary, with their owner and the kind of state."""
    return {"_owner_id": owner_id, "_owner_level": level, "_state_type": kind, "features": features}


def plain(tree: Any) -> Any:
    """Arrays as lists, in mappings too."""
    if isinstance(tree, Mapping):
        return {name: plain(branch) for name, branch in tree.items()}
    return tree.tolist() if isinstance(tree, np.ndarray) else tree
