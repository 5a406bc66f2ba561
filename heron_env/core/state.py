"""A state: the ordered features of one agent, the vectors that others may see of it, and an observation made of these.

Arrays of observations are made by the plan; here they are objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from heron_env.core.feature import FeatureProvider, find_feature, labelled, plain, tags_match, visibility_of
from heron_env.errors import FeatureError, UnknownFeature, UnknownField, did_you_mean
from heron_env.given import mapping, several


class FeatureVector(np.ndarray[Any, np.dtype[np.float64]]):
    """What is visible of one feature, float64 `[k]`: answers `[0]`, `["soc"]` and `.soc`."""

    names: tuple[str, ...]

    def __new__(cls, values: NDArray[np.float64], names: Iterable[str]) -> FeatureVector:
        """View `values` under these column names."""
        vector = np.asarray(values, dtype=np.float64).view(cls)
        vector.names = tuple(names)
        return vector

    def __array_finalize__(self, source: Any) -> None:
        """Slices and results of arithmetic carry no names."""
        self.names = ()

    def __getitem__(self, item: Any) -> Any:
        if not isinstance(item, str):
            return super().__getitem__(item)
        if item not in self.names:
            raise UnknownFeature(
                f"no visible field {item!r}; visible are {list(self.names)}.{did_you_mean(item, self.names)}"
            )
        return super().__getitem__(self.names.index(item))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self.names:
            raise UnknownField(
                f"no visible field {name!r}; visible are {list(self.names)}.{did_you_mean(name, self.names)}"
            )
        return self[name]


class Features:
    """A sequence of features that also takes names and classes: `[0]`, `["Charge"]`, `[Charge]`, `.append`."""

    def __init__(self, features: Iterable[FeatureProvider] = ()) -> None:
        self._features: list[FeatureProvider] = []
        for feature in several(features, "features"):
            self.append(feature)

    def append(self, feature: FeatureProvider) -> None:
        """Add a feature; two of one class are refused (FeatureError)."""
        if not isinstance(feature, FeatureProvider):
            raise FeatureError(f"features.append({feature!r}): expected a FeatureProvider instance")
        if feature.feature_name in self:
            raise FeatureError(f"features.append({feature!r}): this state has a {feature.feature_name} already")
        self._features.append(feature)

    def __getitem__(self, which: int | str | type[FeatureProvider]) -> Any:
        """By position, name or class. Raises UnknownFeature or IndexError."""
        if isinstance(which, int):
            return self._features[which]
        name = which if isinstance(which, str) else getattr(which, "feature_name", repr(which))
        for feature in self._features:
            if feature.feature_name == name:
                return feature
        names = [feature.feature_name for feature in self._features]
        raise UnknownFeature(f"no feature {name!r} in this state, which has {names}.{did_you_mean(name, names)}")

    def __contains__(self, which: object) -> bool:
        """Is there a feature of this name or class (or this very object)?"""
        name = getattr(which, "feature_name", which)
        return any(feature.feature_name == name for feature in self._features)

    def __iter__(self) -> Iterator[FeatureProvider]:
        return iter(self._features)

    def __len__(self) -> int:
        return len(self._features)

    def __repr__(self) -> str:
        return repr(self._features)


class State:
    """All features of one agent. In an environment they are views of its arrays."""

    registry: ClassVar[dict[str, type[State]]] = {}
    usual_level: ClassVar[int] = 1

    def __init__(self, owner_id: str, owner_level: int | None = None, features: Iterable[FeatureProvider] = ()) -> None:
        self.owner_id = owner_id
        self.owner_level = self.usual_level if owner_level is None else owner_level
        self._features = Features(features)
        self._view: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Enter the registry that from_dict() uses."""
        super().__init_subclass__(**kwargs)
        State.registry[cls.__name__] = cls

    @property
    def features(self) -> Features:
        """The features, by position, name or class."""
        return self._features

    @features.setter
    def features(self, features: Iterable[FeatureProvider]) -> None:
        self._features = Features(features)

    def vector(self) -> NDArray[np.float64]:
        """Return all features one after another, float64 `[width]`."""
        return np.concatenate([np.zeros(0), *(feature.vector() for feature in self.features)])

    def update(self, values: Mapping[str, Mapping[str, Any]]) -> None:
        """Set fields: `{"Charge": {"soc": 0.8}}`; clipped into bounds. Raises UnknownFeature."""
        for name, fields in mapping(values, f"state of {self.owner_id!r}").items():
            self.features[name].set_values(**mapping(fields, f"state of {self.owner_id!r}: {name}"))

    def update_feature(self, name: str, **fields: Any) -> None:
        """Set fields of one feature. Raises UnknownFeature."""
        self.features[name].set_values(**fields)

    def to_dict(self, include_metadata: bool = False) -> dict[str, Any]:
        """`{"Charge": {"soc": 0.5, ...}}`; with metadata also owner, level and type, features under "features"."""
        features = {feature.feature_name: feature.to_dict() for feature in self.features}
        if not include_metadata:
            return features
        return labelled(self.owner_id, self.owner_level, type(self).__name__, features)

    @classmethod
    def from_dict(
        cls,
        values: Mapping[str, Any],
        *,
        owner_id: str = "",
        owner_level: int = 1,
        near: Iterable[type[FeatureProvider]] = (),
    ) -> State:
        """Rebuild from `to_dict()`, with or without metadata; feature classes in `near` are tried first."""
        if "_state_type" in values:
            kind = State.registry.get(values["_state_type"])
            if kind is None:
                raise UnknownFeature(
                    f"no state class is called {values['_state_type']!r}; known are {list(State.registry)}"
                )
            owner_id, owner_level, values = values["_owner_id"], values["_owner_level"], values["features"]
        else:
            kind = cls
        return kind(owner_id, owner_level, [find_feature(name, near).from_dict(v) for name, v in values.items()])

    def observed_by(self, requestor_id: str, requestor_level: int) -> dict[str, FeatureVector]:
        """Return what `requestor` may see: `{"Charge": vector}`, visible features and fields only.

        A state of an environment answers from the environment's plan; a free one from the tags and levels.
        """
        if self._view is not None:
            vectors: dict[str, FeatureVector] = self._view(self.owner_id, requestor_id)
            return vectors
        asking = requestor_id, requestor_level, self.owner_id, self.owner_level
        visible = ((feature.feature_name, _visible_part(feature, asking)) for feature in self.features)
        return {name: vector for name, vector in visible if vector.size}

    def __repr__(self) -> str:
        """`FieldAgentState('battery_1', [Charge(...)])`."""
        return f"{type(self).__name__}({self.owner_id!r}, {self.features!r})"


def _visible_part(feature: FeatureProvider, asking: tuple[str, int, str, int]) -> FeatureVector:
    """The fields whose tags match; `asking`: who asks and whose it is, ids and levels as `tags_match` takes them."""
    own, names = asking[0] == asking[2], feature.names()
    columns = [
        column
        for q in feature.quantities.values()
        if q.observed and (q.to_owner or not own) and tags_match(visibility_of(type(feature), q), *asking)
        for column in range(q.index, q.index + q.size)
    ]
    return FeatureVector(feature.vector()[columns], [names[column] for column in columns])


class FieldAgentState(State):
    """State of a field agent (level 1)."""


class CoordinatorAgentState(State):
    """State of a coordinator (level 2, nested ones too)."""

    usual_level = 2


class SystemAgentState(State):
    """State of the system agent (level 3)."""

    usual_level = 3


Tree = Mapping[str, Any]


class Observation:
    """`local` {Feature: vector}, `global_info` {agent: {Feature: vector}, "global": {...}}, the asking tick's time.

    `order`: places of a vector's numbers in all of it, int64 `[n]`, which `to_dict` does not have; None: as they are.
    """

    def __init__(
        self,
        local: Tree | None = None,
        global_info: Tree | None = None,
        timestamp: float = 0.0,
        order: NDArray[np.int64] | None = None,
    ) -> None:
        self.local = {} if local is None else mapping(local, "Observation(local)")
        self.global_info = {} if global_info is None else mapping(global_info, "Observation(global_info)")
        self.timestamp, self._order = timestamp, order

    def vector(self) -> NDArray[np.float32]:
        """Return all values, float32 `[n]`, in `order` or insertion order: own values, then the others'."""
        values = np.concatenate([self.local_vector(), self.global_vector()])
        return values if self._order is None else values[self._order]

    def local_vector(self) -> NDArray[np.float32]:
        """Return own values, float32."""
        return _flatten(self.local)

    def global_vector(self) -> NDArray[np.float32]:
        """Return the others' values, float32."""
        return _flatten(self.global_info)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists, as messages carry them."""
        return {"timestamp": self.timestamp, "local": plain(self.local), "global_info": plain(self.global_info)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Observation:
        """Rebuild from `to_dict()`."""
        return cls(values["local"], values["global_info"], values["timestamp"])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The vector, so that `policy(observation)` may be any function of arrays."""
        return self.vector().astype(dtype or np.float32)

    def __len__(self) -> int:
        return self.vector().size

    def __repr__(self) -> str:
        return f"Observation(local={self.local}, global_info={self.global_info}, timestamp={self.timestamp})"


def _leaves(tree: Any) -> list[NDArray[np.float32]]:
    if isinstance(tree, Mapping):
        return [leaf for branch in tree.values() for leaf in _leaves(branch)]
    return [np.ravel(np.asarray(tree, dtype=np.float32))]


def _flatten(tree: Tree) -> NDArray[np.float32]:
    return np.concatenate([np.zeros(0, np.float32), *_leaves(tree)])
