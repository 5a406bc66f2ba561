"""The observation plan: for each observer the columns it sees and the noise on them, worked out once.

Rules V1 to V5 of the design notes: one sees one's own features exactly (but for bookkeeping quantities, which nobody
sees); of others what their tags say, or, where an observability matrix is in force, what the matrix says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout, span_of
from heron_env.core.observation import Observation
from heron_env.core.state import FeatureVector
from heron_env.observability.noise import ColumnNoise, Moment, Seen
from heron_env.observability.tags import Columns, columns_by_tags

if TYPE_CHECKING:
    from heron_env.observability.config import ObservabilityConfig
    from heron_env.observability.matrix import ObservabilityMatrix

UNBOUNDED = 1e6
"""Stands for an infinite bound in spaces, which must be finite."""
Floats = NDArray[np.float64]
Vectors = Callable[[Floats, Moment], list[NDArray[np.float32]]]
"""The vectors of several observers, from the truth or the cache, at a moment."""


class ObserverView:
    """What one observer sees, as columns of the truth or the cache: own, then others by rank, then global.

    Attributes:
        columns: int64 `[n]`.
        seen: the columns with the noise that was declared for them.
    """

    def __init__(self, layout: Layout, rank: int, seen: Seen) -> None:
        self.layout, self.rank = layout, rank
        self.seen, self.columns = seen, seen.columns
        seen.require_ranges(layout)

    @cached_property
    def noise(self) -> ColumnNoise | None:
        """What falls on some of the columns; None if all is exact."""
        return ColumnNoise.of(self.layout, np.full(len(self.columns), self.rank), self.seen)

    @cached_property
    def segments(self) -> list[tuple[int, str, slice, tuple[str, ...]]]:
        """Runs of one owner and feature: (rank, feature, place in the vector, field names)."""
        return self.layout.segments(self.columns)

    @cached_property
    def sources(self) -> Columns:
        """Ranks of the rows it sees, in order; the last rank of the layout stands for "global"."""
        return np.asarray(list(dict.fromkeys(self.layout.owner_of[self.columns].tolist())), dtype=np.int64)

    @cached_property
    def span(self) -> slice | Columns:
        """The columns, as a slice if they are neighbours."""
        return span_of(self.columns)

    @cached_property
    def sources_span(self) -> slice | Columns:
        """The sources, likewise."""
        return span_of(self.sources)

    @cached_property
    def own(self) -> int:
        """How many of the columns are its own: they come first, and itself among the sources."""
        return int(np.count_nonzero(self.layout.owner_of[self.columns] == self.rank))

    @property
    def names(self) -> list[str]:
        """`Charge.soc` of its own, `battery_2.Charge.soc` of others, `global.Price.value`."""
        layout = self.layout
        own = layout.owner_of[self.columns] == self.rank
        return [(layout.names if mine else layout.full_names)[i] for i, mine in zip(self.columns, own, strict=True)]

    @property
    def factors(self) -> Floats:
        """Noise factor of each column, float64 `[n]`; 0: exact."""
        return np.where(self.layout.noisy[self.columns], self.seen.factors, 0.0)

    def read(self, array: Floats, moment: Moment) -> Floats:
        """What it sees now, float64 `[n]`, with the noise of the moment."""
        values: Floats = array[self.columns]
        if self.noise is not None:
            self.noise.disturb(values, moment)
        return values

    def local(self, values: Floats) -> dict[str, FeatureVector]:
        """Its own part of a vector: {feature: vector}; copies, through whose `base` nothing else can be read."""
        return {f: FeatureVector(values[s].copy(), names) for rank, f, s, names in self.segments if rank == self.rank}

    def others(self, values: Floats) -> dict[str, dict[str, FeatureVector]]:
        """The others' part: {agent id or "global": {feature: vector}}."""
        tree: dict[str, dict[str, FeatureVector]] = {}
        for rank, feature, where, names in self.segments:
            if rank != self.rank:
                tree.setdefault(self.layout.rows[rank].owner_id, {})[feature] = FeatureVector(values[where], names)
        return tree

    def describe(self, vector: NDArray[Any], timestamp: float) -> dict[str, Any]:
        """The dictionary of a vector, as messages and traces carry it."""
        values = np.asarray(vector[: len(self.columns)], dtype=np.float64)
        return Observation(self.local(values), self.others(values), timestamp).to_dict()


class ObservationPlan:
    """All observers' views of one hierarchy and layout.

    Args:
        observe_age: add one column per source agent, the age of its information in seconds.
        observability: an observability matrix; None, or one that is not enabled: the tags decide.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        layout: Layout,
        observe_age: bool = False,
        observability: ObservabilityConfig | None = None,
    ) -> None:
        self.hierarchy, self.layout, self.observe_age = hierarchy, layout, observe_age
        self.observability = observability
        self.views = tuple(ObserverView(layout, rank, seen) for rank, seen in enumerate(self._compile()))

    def _compile(self) -> list[Seen]:
        if self.observability is not None:
            from heron_env.observability.levels import columns_by_matrix, external_names

            external = external_names(self.layout, self.observability)
            seen = columns_by_matrix(self.hierarchy, self.layout, self.observability, external)
            if self.observability.enabled:
                return seen
            for view in seen:  # names and ranges are checked, enabled or not
                view.require_ranges(self.layout)
        shown = [Seen.exactly(columns) for columns in columns_by_tags(self.hierarchy, self.layout)]
        return shown if not self.common_noise else [self._noisy(rank, seen) for rank, seen in enumerate(shown)]

    def _noisy(self, rank: int, seen: Seen) -> Seen:
        """What tags show, with the common noise on all that is not its own."""
        factors = np.where(self.layout.owner_of[seen.columns] == rank, 0.0, self.common_noise)
        return Seen(seen.columns, factors, seen.additive)

    @property
    def common_noise(self) -> float:
        """On all that anyone sees of others, on top of what the matrix says."""
        return 0.0 if self.observability is None else self.observability.common_noise

    @property
    def has_matrix(self) -> bool:
        """Is an observability matrix in force?"""
        return self.observability is not None and self.observability.enabled

    @cached_property
    def matrix(self) -> ObservabilityMatrix | None:
        """The observability matrix in force; None where the tags decide."""
        if self.observability is None or not self.observability.enabled:
            return None
        from heron_env.observability.matrix import ObservabilityMatrix

        return ObservabilityMatrix.of(self.observability)

    def size(self, rank: int) -> int:
        """Length of the observer's vector."""
        view = self.views[rank]
        return len(view.columns) + (len(view.sources) if self.observe_age else 0)

    def names(self, rank: int) -> list[str]:
        """Names of the vector's elements; ages last, as `age.battery_2`."""
        view = self.views[rank]
        ages = [f"age.{self.layout.rows[i].owner_id}" for i in view.sources] if self.observe_age else []
        return view.names + ages

    def units(self, rank: int) -> list[str]:
        """Units of the vector's elements; ages are in s."""
        view = self.views[rank]
        return [self.layout.units[i] for i in view.columns] + ["s"] * (self.size(rank) - len(view.columns))

    def foreknown(self, rank: int) -> list[bool]:
        """Which of the vector's elements may tell of what is still to come; ages never do."""
        view = self.views[rank]
        return [*self.layout.foreknown[view.columns].tolist(), *[False] * (self.size(rank) - len(view.columns))]

    def bounds(self, rank: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Finite float32 bounds of the vector."""
        view = self.views[rank]
        ages = len(view.sources) if self.observe_age else 0
        low = np.concatenate([np.maximum(self.layout.low[view.columns], -UNBOUNDED), np.zeros(ages)])
        high = np.concatenate([np.minimum(self.layout.high[view.columns], UNBOUNDED), np.full(ages, UNBOUNDED)])
        return low.astype(np.float32), high.astype(np.float32)

    def vector(self, rank: int, array: Floats, moment: Moment, ages: Floats | None = None) -> NDArray[np.float32]:
        """One observer's vector, float32 `[n]`, from the truth or the cache; `ages` in s, one per source."""
        view = self.views[rank]
        values = view.read(array, moment).astype(np.float32)
        if not self.observe_age:
            return values
        return np.concatenate([values, (np.zeros(len(view.sources)) if ages is None else ages).astype(np.float32)])

    def gather(self, ranks: Sequence[int]) -> Vectors:
        """A function that makes the vectors of several observers in one go, each a view of one fresh float32 array."""
        if self.observe_age:
            return lambda array, moment: [self.vector(rank, array, moment) for rank in ranks]
        read = self.reader(ranks)
        stops = np.cumsum([len(self.views[rank].columns) for rank in ranks]).tolist()
        spans = [slice(a, b) for a, b in zip([0, *stops], stops, strict=False)]

        def vectors(array: Floats, moment: Moment) -> list[NDArray[np.float32]]:
            values = read(array, moment).astype(np.float32)
            return [values[span] for span in spans]

        return vectors

    def reader(self, ranks: Sequence[int]) -> Callable[[Floats, Moment], Floats]:
        """A function that reads the columns of several observers one after another, float64 (ages left out)."""
        seen = Seen.joined([self.views[rank].seen for rank in ranks])
        columns, lengths = seen.columns, [len(self.views[rank].columns) for rank in ranks]
        noise = ColumnNoise.of(self.layout, np.repeat(np.asarray(ranks, dtype=np.int64), lengths), seen)
        if noise is None:
            return lambda array, moment: array.take(columns)

        def read(array: Floats, moment: Moment) -> Floats:
            values: Floats = array.take(columns)
            noise.disturb(values, moment)
            return values

        return read
