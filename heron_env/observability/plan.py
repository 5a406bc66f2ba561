"""The observation plan: for each observer the columns it sees, worked out once from the visibility tags.

The rules are numbered V1 to V5 in the design notes: one sees one's own features (but for bookkeeping quantities,
seen by nobody), and of others what their tags say. The work is proportional to agents + columns seen; pairs are never
tested.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.feature import SYSTEM_LEVEL, FeatureProvider
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import GLOBAL, Layout
from heron_env.core.observation import Observation
from heron_env.core.state import FeatureVector
from heron_env.errors import FeatureError

UNBOUNDED = 1e6
"""Stands for an infinite bound in spaces, which must be finite."""
Columns = NDArray[np.int64]
Floats = NDArray[np.float64]


class ObserverView:
    """What one observer sees, as columns of the truth or the cache: own, then others by rank, then global."""

    def __init__(self, layout: Layout, rank: int, columns: Columns) -> None:
        self.layout, self.rank, self.columns = layout, rank, columns

    @cached_property
    def segments(self) -> list[tuple[int, str, slice, tuple[str, ...]]]:
        """Runs of one owner and feature: (rank, feature, place in the vector, field names)."""
        return self.layout.segments(self.columns)

    @cached_property
    def sources(self) -> Columns:
        """Ranks of the rows it sees, in order; the last rank of the layout stands for "global"."""
        return np.asarray(list(dict.fromkeys(self.layout.owner_of[self.columns].tolist())), dtype=np.int64)

    @property
    def names(self) -> list[str]:
        """`Charge.soc` of its own, `battery_2.Charge.soc` of others, `global.Price.value`."""
        own, rows, owners = self.rank, self.layout.rows, self.layout.owner_of
        return [
            self.layout.names[i] if owners[i] == own else f"{rows[owners[i]].owner_id}.{self.layout.names[i]}"
            for i in self.columns
        ]

    def local(self, values: Floats) -> dict[str, FeatureVector]:
        """Its own part of a gathered vector: {feature: vector}."""
        return {f: FeatureVector(values[s], names) for rank, f, s, names in self.segments if rank == self.rank}

    def others(self, values: Floats) -> dict[str, dict[str, FeatureVector]]:
        """The others' part: {agent id or "global": {feature: vector}}."""
        tree: dict[str, dict[str, FeatureVector]] = {}
        for rank, feature, where, names in self.segments:
            if rank != self.rank:
                tree.setdefault(self.layout.rows[rank].owner_id, {})[feature] = FeatureVector(values[where], names)
        return tree

    def observation(self, array: Floats, timestamp: float) -> Observation:
        """The object form, from the truth or the cache."""
        values = array[self.columns]
        return Observation(self.local(values), self.others(values), timestamp)

    def describe(self, vector: NDArray[Any], timestamp: float) -> dict[str, Any]:
        """The dictionary of a gathered vector, as messages and traces carry it."""
        values = np.asarray(vector[: len(self.columns)], dtype=np.float64)
        return Observation(self.local(values), self.others(values), timestamp).to_dict()


class ObservationPlan:
    """All observers' views of one hierarchy and layout.

    Args:
        observe_age: add one column per source agent, the age of its information in seconds.
    """

    def __init__(self, hierarchy: Hierarchy, layout: Layout, observe_age: bool = False) -> None:
        self.layout, self.observe_age = layout, observe_age
        self.views = tuple(
            ObserverView(layout, rank, columns) for rank, columns in enumerate(_compile(hierarchy, layout))
        )

    def size(self, rank: int) -> int:
        """Length of the observer's vector."""
        view = self.views[rank]
        return len(view.columns) + (len(view.sources) if self.observe_age else 0)

    def names(self, rank: int) -> list[str]:
        """Names of the vector's elements; ages last, as `age.battery_2`."""
        view = self.views[rank]
        ages = [f"age.{self.layout.rows[i].owner_id}" for i in view.sources] if self.observe_age else []
        return view.names + ages

    def bounds(self, rank: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Finite float32 bounds of the vector."""
        view = self.views[rank]
        ages = len(view.sources) if self.observe_age else 0
        low = np.concatenate([np.maximum(self.layout.low[view.columns], -UNBOUNDED), np.zeros(ages)])
        high = np.concatenate([np.minimum(self.layout.high[view.columns], UNBOUNDED), np.full(ages, UNBOUNDED)])
        return low.astype(np.float32), high.astype(np.float32)

    def vector(self, rank: int, array: Floats, ages: Floats | None = None) -> NDArray[np.float32]:
        """One observer's vector, float32 `[n]`, from the truth or the cache; `ages` in s, one per source."""
        view = self.views[rank]
        values = array[view.columns].astype(np.float32)
        if not self.observe_age:
            return values
        return np.concatenate([values, (np.zeros(len(view.sources)) if ages is None else ages).astype(np.float32)])

    def gather(self, ranks: tuple[int, ...]) -> Callable[[Floats], list[NDArray[np.float32]]]:
        """A function that makes the vectors of several observers in one go, each a view of one fresh float32 array."""
        if self.observe_age:
            return lambda array: [self.vector(rank, array) for rank in ranks]
        columns = np.concatenate([np.zeros(0, np.int64), *(self.views[rank].columns for rank in ranks)])
        stops = np.cumsum([len(self.views[rank].columns) for rank in ranks]).tolist()
        spans = [slice(a, b) for a, b in zip([0, *stops], stops, strict=False)]

        def vectors(array: Floats) -> list[NDArray[np.float32]]:
            values = array.take(columns).astype(np.float32)
            return [values[span] for span in spans]

        return vectors


def _compile(hierarchy: Hierarchy, layout: Layout) -> list[Columns]:
    """The columns of each observer, by rank."""
    by_tag = _columns_by_tag(layout, len(hierarchy))
    wide = {
        False: _Spliced(layout, [tags["public"] for tags in by_tag]),
        True: _Spliced(layout, [_union(tags, "public", "system") for tags in by_tag]),
    }
    shown = [[c for c in children if len(by_tag[c]["siblings"])] for children in hierarchy.children]
    compiled = []
    for rank in range(len(hierarchy)):
        is_system = hierarchy.level[rank] >= SYSTEM_LEVEL
        parent, base = hierarchy.parent[rank], ("public", "system") if is_system else ("public",)
        special = {rank: np.zeros(0, np.int64)}
        if any(len(by_tag[child]["upper_level"]) for child in hierarchy.children[rank]):
            special |= {child: _union(by_tag[child], *base, "upper_level") for child in hierarchy.children[rank]}
        if parent >= 0:
            if len(by_tag[parent]["subordinates"]):
                special[parent] = _union(by_tag[parent], *base, "subordinates")
            special |= {s: _union(by_tag[s], *base, "siblings") for s in shown[parent] if s != rank}
        own = by_tag[rank]["owner"]
        compiled.append(np.concatenate([own, wide[is_system].without(special), _union(by_tag[-1], *base)]))
    return compiled


def _columns_by_tag(layout: Layout, agents: int) -> list[dict[str, Columns]]:
    """For each row and tag the observable columns that carry it; "owner" means all of them."""
    tags = ("public", "owner", "upper_level", "system", "siblings", "subordinates")
    found: list[dict[str, Columns]] = []
    for rank, row in enumerate(layout.rows):
        columns: dict[str, list[int]] = {tag: [] for tag in tags}
        for start, feature, q in row.columns():
            visibility = tuple(feature.visibility if q.visibility is None else q.visibility)
            if rank >= agents:
                _check_global(feature, visibility)
            if q.observed:
                for tag in {*visibility, "owner"}:
                    columns[tag].extend(range(start, start + q.size))
        found.append({tag: np.asarray(sorted(columns[tag]), dtype=np.int64) for tag in tags})
    return found


def _check_global(feature: type[FeatureProvider], visibility: tuple[str, ...]) -> None:
    wrong = sorted({*visibility} - {"public", "system"})
    if wrong:
        raise FeatureError(
            f"global feature {feature.__name__}: tag {wrong[0]!r} has no meaning for the row {GLOBAL!r}, "
            "which nobody owns; use ('public',), ('system',) or () for insiders only"
        )


def _union(tags: dict[str, Columns], *names: str) -> Columns:
    return np.unique(np.concatenate([tags[name] for name in names]))


class _Spliced:
    """The columns everyone of a kind sees, by rank, from which single ranks can be replaced cheaply."""

    def __init__(self, layout: Layout, per_rank: list[Columns]) -> None:
        agents = per_rank[:-1]
        self.columns = np.concatenate([np.zeros(0, np.int64), *agents])
        self.starts = np.concatenate([[0], np.cumsum([len(columns) for columns in agents])]).astype(int).tolist()

    def without(self, special: dict[int, Columns]) -> Columns:
        """All columns, those of the ranks in `special` replaced by what stands there."""
        parts, position = [], 0
        for rank in sorted(special):
            parts += [self.columns[position : self.starts[rank]], special[rank]]
            position = self.starts[rank + 1]
        return np.concatenate([*parts, self.columns[position:]])
