"""The layout: where each agent's features lie in the one float64 array, and what every column means.

Agents of one class and the same features (a cohort) are contiguous, so a column of a cohort is a strided view; the
environment's global features come last, as the row "global".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.feature import FeatureProvider, labelled
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.quantity import Quantity, clip, element_names
from heron_env.core.sight import SightColumns
from heron_env.seeding import h

GLOBAL = "global"
"""Owner of the environment's own features, the last row; no agent may be called so."""

RAISED = 0.5
"""From here on a flag counts as raised."""


@dataclass(frozen=True, eq=False)
class Row:
    """The slice `[offset, offset + width)` of one owner: an agent, or "global"; `sight`: columns of who sees it."""

    owner_id: str
    level: int
    state_type: str
    offset: int
    features: tuple[type[FeatureProvider], ...]
    sight: range = range(0)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """First column of each feature, and one past the last."""
        return tuple(np.cumsum([self.offset, *(feature.width for feature in self.features)]).tolist())

    @property
    def width(self) -> int:
        return self.offsets[-1] - self.offset

    @property
    def slice(self) -> slice:
        return slice(self.offset, self.offset + self.width)

    def window(self, array: NDArray[np.float64], feature: type[FeatureProvider]) -> FeatureProvider:
        """A feature object that is a window on this row of `array`."""
        position = self.find(feature)
        assert position is not None, f"{self.owner_id} has no {feature.__name__}"
        start, kind = self.offsets[position], self.features[position]
        window = kind.__new__(kind)
        window._bind(array[start : start + kind.width])
        return window

    def find(self, feature: type[FeatureProvider] | None) -> int | None:
        """Position of the feature of this class, or of a subclass that stands in for it; None if there is none."""
        return next(
            (i for i, kind in enumerate(self.features) if feature is not None and issubclass(kind, feature)), None
        )

    def columns(self) -> Iterable[tuple[int, type[FeatureProvider], Quantity]]:
        """First column, feature and quantity of everything in the row, in order of declaration."""
        for start, feature in zip(self.offsets, self.features, strict=False):
            for declared in feature.quantities.values():
                yield start + declared.index, feature, declared

    @cached_property
    def reported(self) -> Reported:
        """The part that state reports carry."""
        return Reported(self)

    def describe(self, values: NDArray[np.float64]) -> dict[str, Any]:
        """Return a state as a dictionary: owner, level, type, features."""
        features = {}
        for start, feature in zip(self.offsets, self.features, strict=False):
            window = feature.__new__(feature)
            window._bind(values[start - self.offset :][: feature.width])
            features[feature.feature_name] = window.to_dict()
        return self.labelled(features)

    def labelled(self, features: dict[str, Any]) -> dict[str, Any]:
        """`features` by name, with whose they are."""
        return labelled(self.owner_id, self.level, self.state_type, features)


def span_of(places: NDArray[np.int64]) -> slice | NDArray[np.int64]:
    """Places one after another as a slice, through which an array is a view; others as they are."""
    if len(places) and np.array_equal(places, np.arange(places[0], places[0] + len(places))):
        return slice(int(places[0]), int(places[0]) + len(places))
    return places


def spans_of(sizes: Iterable[int]) -> list[slice]:
    """Parts of these sizes, one after another."""
    return [slice(a, b) for a, b in pairwise(np.cumsum([0, *sizes]).tolist())]


class Reported:
    """The columns of a row that may travel: bookkeeping (`observed=False`) and features not `reported` stay behind.

    `counts`: is there anything to see in the row, so that its age of information counts, and an empty report too?
    `size`: how many columns it has. Behind them travels who sees the row: a measurement, and no payload.
    `where`: the columns as a slice if they are neighbours.
    """

    def __init__(self, row: Row) -> None:
        self.row = row
        fields = [(column, feature, q) for column, feature, q in row.columns() if q.observed and feature.reported]
        self._observed = [(feature, q) for _, feature, q in fields]
        self.counts = any(q.observed for _, _, q in row.columns())
        spans = [range(column, column + q.size) for column, _, q in fields]
        self.columns = np.asarray([column for span in (*spans, row.sight) for column in span], dtype=np.int64)
        self.size = len(self.columns) - len(row.sight)
        self.where = span_of(self.columns)

    def describe(self, values: NDArray[np.float64]) -> dict[str, Any]:
        """Return a report's values, float64 `[len(columns)]`, as a dictionary, without who sees them."""
        features: dict[str, dict[str, Any]] = {}
        position = 0
        for feature, q in self._observed:
            part = values[position : position + q.size].tolist()
            elements = part if q.kind == "float" else [int(value) for value in part]
            features.setdefault(feature.feature_name, {})[q.name] = elements if q.shape else elements[0]
            position += q.size
        return self.row.labelled(features)


@dataclass(frozen=True, eq=False)
class Cohort:
    """Agents of one class with the same features: `count` rows of `width` columns from `offset` on."""

    cls: type
    features: tuple[type[FeatureProvider], ...]
    offset: int
    width: int
    count: int


class Layout:
    """Rows by rank (the last one is "global"), cohorts, and one entry per column for bounds and kinds."""

    def __init__(self, owners: Sequence[tuple[str, int, str, type, tuple[type[FeatureProvider], ...]]]) -> None:
        """Lay out `owners`: (id, level, name of the state class, agent class, features), "global" last."""
        members: dict[tuple[type, tuple[type[FeatureProvider], ...]], list[int]] = {}
        for rank, (_, _, _, cls, features) in enumerate(owners):
            members.setdefault((cls, features), []).append(rank)
        members[owners[-1][3], owners[-1][4]] = members.pop((owners[-1][3], owners[-1][4]))
        offsets = [0] * len(owners)
        self.cohorts: list[Cohort] = []
        position = 0
        for (cls, features), ranks in members.items():
            width = sum(feature.width for feature in features)
            self.cohorts.append(Cohort(cls, features, position, width, len(ranks)))
            for rank in ranks:
                offsets[rank] = position
                position += width
        self.size = position
        self.sight: SightColumns | None = None
        self.rows = tuple(
            Row(owner_id, level, kind, offset, features)
            for (owner_id, level, kind, _, features), offset in zip(owners, offsets, strict=True)
        )
        self._describe_columns()

    @classmethod
    def of(cls, hierarchy: Hierarchy, global_features: tuple[type[FeatureProvider], ...]) -> Layout:
        """The layout of a hierarchy whose agents have their states, and of the environment's global features."""
        owners = [
            (a.agent_id, a.level, type(a.state).__name__, type(a), tuple(type(f) for f in a.state.features))
            for a in hierarchy.agents
        ]
        return cls([*owners, (GLOBAL, 0, "State", type(None), tuple(global_features))])

    @property
    def width(self) -> int:
        """How many columns there are, those of the pairs that `see` among them."""
        return self.size + (0 if self.sight is None else self.sight.size)

    def see(self, observers: Sequence[int], targets: Sequence[int]) -> None:
        """From now on there is a column for each pair of these ranks: does the first see the second?"""
        self.sight = sight = SightColumns(tuple(observers), tuple(targets), self.size)
        self.rows = tuple(
            replace(row, sight=sight.of_target(rank)) if rank in sight.places[1] else row
            for rank, row in enumerate(self.rows)
        )

    def _describe_columns(self) -> None:
        self.low, self.high = np.full(self.size, -np.inf), np.full(self.size, np.inf)
        self.integer = np.zeros(self.size, dtype=bool)
        self.observed, self.foreknown = np.ones(self.size, dtype=bool), np.zeros(self.size, dtype=bool)
        self.noisy, self.relative = np.zeros(self.size, dtype=bool), np.zeros(self.size, dtype=bool)
        self.element = np.zeros(self.size, dtype=np.uint64)
        self.default = np.zeros(self.size)
        self.names: list[str] = [""] * self.size
        self.units: list[str] = [""] * self.size
        self.categories: list[tuple[str, ...]] = [()] * self.size
        self.owner_of = np.zeros(self.size, dtype=np.int64)
        per_step: list[int] = []
        for rank, row in enumerate(self.rows):
            self.owner_of[row.slice] = rank
            for column, feature, q in row.columns():
                span = slice(column, column + q.size)
                self.low[span], self.high[span] = q.low, q.high
                self.integer[span], self.observed[span] = q.kind != "float", q.observed
                self.foreknown[span], self.relative[span] = q.foreknown, q.relative and rank < len(self.rows) - 1
                self.noisy[span] = q.noisy and q.kind in ("float", "int")
                self.element[span] = np.arange(q.size)
                self.default[span] = np.asarray(q.default, dtype=np.float64).reshape(-1)
                self.units[span], self.categories[span] = [q.unit] * q.size, [q.categories] * q.size
                self.names[span] = [f"{feature.feature_name}.{name}" for name in element_names(q)]
                if q.per_step:
                    per_step.extend(range(column, column + q.size))
        self._any_integer = bool(self.integer.any())
        self.per_step = np.asarray(per_step, dtype=np.int64)

    @cached_property
    def owner_hash(self) -> NDArray[np.uint64]:
        """Hash of each row's owner, for the keys of the noise."""
        return np.array([h(row.owner_id) for row in self.rows], dtype=np.uint64)

    @cached_property
    def field_hash(self) -> NDArray[np.uint64]:
        """Hash of each column's "Feature.field", for the keys of the noise."""
        return np.array([h(name.partition("[")[0]) for name in self.names], dtype=np.uint64)

    def clip_columns(self, array: NDArray[np.float64]) -> None:
        """Bring every column of `array` `[..., columns]` within its declared bounds, in place."""
        clip(array, self.low, self.high, integer=self.integer if self._any_integer else None, out=array)

    def bad_columns(self, array: NDArray[np.float64]) -> list[str]:
        """Names of the columns that are NaN: `battery_1.Charge.soc`."""
        return [self.full_names[i] for i in np.flatnonzero(np.isnan(array))]

    @cached_property
    def full_names(self) -> list[str]:
        """Name of each column with its owner: `battery_1.Charge.soc`."""
        return [f"{self.rows[o].owner_id}.{name}" for o, name in zip(self.owner_of, self.names, strict=True)]

    def segments(self, columns: NDArray[np.int64]) -> list[tuple[int, str, slice, tuple[str, ...]]]:
        """Runs of one owner and one feature among `columns`: (rank, feature, where in the vector, field names)."""
        labels = [(int(self.owner_of[i]), *self.names[i].split(".", 1)) for i in columns]
        starts = [k for k in range(len(labels)) if k == 0 or labels[k][:2] != labels[k - 1][:2]]
        return [
            (int(labels[a][0]), str(labels[a][1]), slice(a, b), tuple(str(label[2]) for label in labels[a:b]))
            for a, b in pairwise([*starts, len(labels)])
        ]


@dataclass(frozen=True, slots=True)
class Route:
    """Who tells whom what, in words."""

    sender: str
    receiver: str
    feature: str
    field: str
    shape: tuple[int, ...]
    integer: bool
    into: str

    def describe(self, values: NDArray[np.float64]) -> dict[str, Any]:
        """`{"_owner_id", "_receiver_id", "features"}` of the shared values `[size]`."""
        part = [int(value) for value in values] if self.integer else values.tolist()
        shared = part if self.shape else part[0]
        features = {self.feature: {self.field: shared}}
        return {"_owner_id": self.sender, "_receiver_id": self.receiver, "features": features}

    @property
    def cause(self) -> str:
        """Keeps the random draws of one sender's messages apart, whatever other edges there are."""
        return f"share with {self.receiver} into {self.into}"


@dataclass(frozen=True, slots=True)
class Edge:
    """One sender and one receiver (ranks): `source` are the sender's columns, `target` those of the slot.

    `flag`: column of what the sender raises where it tells; -1: it always does.
    """

    index: int
    sender: int
    receiver: int
    source: slice
    target: slice
    route: Route
    flag: int
