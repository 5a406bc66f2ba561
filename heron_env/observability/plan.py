"""The observation plan: for each observer the columns it sees and the noise on them, worked out once.

Rules V1 to V5 of docs/laws.md: of everybody, also of oneself, one sees what the tags say, or, where an observability
matrix is in force, what the matrix says, and then all of oneself. Bookkeeping quantities nobody sees; what one sees of
oneself is exact; what is relative (V9) is seen as a difference, which is taken last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout, span_of
from heron_env.core.state import FeatureVector, Observation
from heron_env.errors import ConfigError
from heron_env.observability.noise import ColumnNoise, Moment, VisibleColumns
from heron_env.observability.tags import Columns, columns_by_tags

if TYPE_CHECKING:
    from heron_env.observability.by_matrix import ObservabilityMatrix
    from heron_env.observability.config import ObservabilityConfig

UNBOUNDED = 1e6
"""Stands for an infinite bound in spaces, which must be finite."""
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Bounds = tuple[Floats32, Floats32]
"""Least and greatest value of each element."""


class ObserverView:
    """What one observer sees, as columns of the truth or the cache: own, then others by rank, then global.

    Of others what is relative comes first.

    Attributes:
        order: places of the vector's numbers in an Observation, which has them by owner; None: the same.
        columns: int64 `[n]`.
        visible: the columns with the noise that was declared for them.
        relative: places in the vector from which what lies at other places is subtracted: both int64, `[2, k]`.
        carried: as what its values travel before anything is subtracted: float64 if it is, else float32.
        asked: of whom the hook `sees` is asked (V11), as (rank, column of the answer), in the order of the sources.
        hides: places in the vector that it may hide, and the columns that say so: both int64, `[2, k]`.
        instead: what those places show then, float64 `[k]`. Until all is subtracted what is hidden is nan.
    """

    def __init__(self, layout: Layout, rank: int, visible: VisibleColumns, asks: bool = False) -> None:
        """`asks`: is the hook `sees` asked, where there is one?"""
        self.layout, self.rank = layout, rank
        self.visible, self.relative, self.order = _relative(layout, rank, visible)
        self.columns, self._by_owner = self.visible.columns, visible.columns
        self.carried = np.float64 if self.relative.size else np.float32
        visible.require_ranges(layout)
        self._find_hidden(asks)

    def _find_hidden(self, asks: bool) -> None:
        sight, owners = self.layout.sight, self.layout.owner_of[self.columns]
        targets = list[int]()
        if asks and sight is not None and self.rank in sight.places[0]:
            targets = [t for t in self.sources.tolist() if t != self.rank and t in sight.places[1]]
        self.asked = [] if sight is None else [(target, sight.column(self.rank, target)) for target in targets]
        column = dict(self.asked)
        places = np.flatnonzero(np.isin(owners, targets))
        self.hides = np.array([places, [column[owner] for owner in owners[places].tolist()]], dtype=np.int64)
        self.instead = np.where(np.isin(places, self.relative[0]), 0.0, self.layout.default[self.columns[places]])
        self._first = np.array([places[owners[places] == target][0] for target in targets], dtype=np.int64)

    @cached_property
    def noise(self) -> ColumnNoise | None:
        """What falls on some of the columns; None if all is exact."""
        return ColumnNoise.of(self.layout, np.full(len(self.columns), self.rank), self.visible)

    @cached_property
    def segments(self) -> list[tuple[int, str, slice, tuple[str, ...]]]:
        """Runs of one owner and feature: (rank, feature, place among the numbers by owner, field names)."""
        return self.layout.segments(self._by_owner)

    def _of_owners(self, values: Floats) -> Floats:
        """A vector's numbers by owner."""
        return values if self.order is None else values[np.argsort(self.order)]

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
    def received_names(self) -> list[str]:
        """`Charge.soc` of its own, `battery_2.Charge.soc` of others, `global.Price.value`."""
        layout = self.layout
        own = layout.owner_of[self.columns] == self.rank
        return [(layout.names if mine else layout.full_names)[i] for i, mine in zip(self.columns, own, strict=True)]

    @property
    def names(self) -> list[str]:
        """The same as it is seen: `a.Place.x - Place.x`."""
        names = self.received_names
        for place, less in self.relative.T.tolist():
            names[place] += f" - {names[less]}"
        return names

    @property
    def factors(self) -> Floats:
        """Noise factor of each column, float64 `[n]`; 0: exact."""
        return np.where(self.layout.noisy[self.columns], self.visible.factors, 0.0)

    @property
    def additive(self) -> NDArray[np.bool_]:
        """Where there is noise relative to the range, bool `[n]`."""
        return self.visible.additive & (self.factors > 0.0)

    def read(self, array: Floats, moment: Moment) -> Floats:
        """What it sees now, float64 `[n]`, with the noise of the moment."""
        return self.as_differences(self.receive(array, moment))

    def receive(self, array: Floats, moment: Moment) -> Floats:
        """The same before anything is subtracted: what travels; nan where `array` says that it does not see it."""
        values: Floats = array[self.columns]
        if self.noise is not None:
            self.noise.add_noise(values, moment)
        if self.asked:
            values[self.hides[0, array[self.hides[1]] == 0.0]] = np.nan
        return values

    def as_differences(self, values: NDArray[Any]) -> NDArray[Any]:
        """What it received, `[n]`, with what is relative and what is hidden as it is seen, fresh if there is any."""
        if not self.relative.size and not self.asked:
            return values
        (places, less), result = self.relative, values.copy()
        result[places] -= values[less]
        if self.asked:
            hidden = np.isnan(result[self.hides[0]])
            result[self.hides[0, hidden]] = self.instead[hidden]
        return result

    def sees(self, received: NDArray[Any]) -> NDArray[np.bool_]:
        """By `asked`, whether what it received, `[>= n]`, is of somebody whom it saw."""
        return np.asarray(received[self._first] == received[self._first])

    def unseen(self, received: NDArray[Any]) -> set[int]:
        """Ranks of those whom it did not see when it received this."""
        return {
            target for (target, _), visible in zip(self.asked, self.sees(received).tolist(), strict=True) if not visible
        }

    def received(self, observation: NDArray[Any]) -> NDArray[Any]:
        """What it must have received to see this, `[>= n]`, but for the last bits."""
        (places, less), values = self.relative, observation.copy()
        values[places] += observation[less]
        return values

    def local(self, values: Floats) -> dict[str, FeatureVector]:
        """Its own part of a vector: {feature: vector}; copies, through whose `base` nothing else can be read."""
        values = self._of_owners(values)
        return {f: FeatureVector(values[s].copy(), names) for rank, f, s, names in self.segments if rank == self.rank}

    def others(self, values: Floats, unseen: Collection[int] = ()) -> dict[str, dict[str, FeatureVector]]:
        """The others' part: {agent id or "global": {feature: vector}}, without those of the ranks `unseen`."""
        tree: dict[str, dict[str, FeatureVector]] = {}
        values = self._of_owners(values)
        for rank, feature, where, names in self.segments:
            if rank != self.rank and rank not in unseen:
                tree.setdefault(self.layout.rows[rank].owner_id, {})[feature] = FeatureVector(values[where], names)
        return tree

    def describe(self, vector: NDArray[Any], timestamp: float) -> dict[str, Any]:
        """The dictionary of what it received, as messages and traces carry it."""
        values = np.asarray(vector[: len(self.columns)], dtype=np.float64)
        return Observation(self.local(values), self.others(values, self.unseen(values)), timestamp).to_dict()


class ObservationPlan:
    """All observers' views of one hierarchy and layout.

    Args:
        observe_age: add one column per source agent, the age of its information in seconds.
        observe_visible: add one per agent that the hook `sees` is asked about, 1 where it was visible.
        observability: an observability matrix, or one that is not enabled: everything that is observed; None: the tags.
        padded: kinds of the observers, by rank: those of one kind whose own features are equal get vectors of one
            width; None: every vector is as wide as what is seen.

    Attributes:
        adds: does anything come after what is seen, ages, who is visible, or what pads, in anybody's vector?
        by_wrong_clocks: may ages be those of clocks that are wrong (T28), so that some are below 0?
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        layout: Layout,
        observe_age: bool = False,
        observability: ObservabilityConfig | None = None,
        padded: Sequence[Hashable] | None = None,
        observe_visible: bool = False,
    ) -> None:
        self.hierarchy, self.layout, self.observe_age = hierarchy, layout, observe_age
        self.observability, self.observe_visible = observability, observe_visible
        asks = self.rule != "everything"
        self.views = tuple(ObserverView(layout, rank, visible, asks) for rank, visible in enumerate(self._compile()))
        if observe_visible and layout.sight is None:
            raise ConfigError("observe_visible=True: no hook says who sees whom; write sees(world, observer, target)")
        kinds = None if padded is None else [(kind, *self._self(rank)) for rank, kind in enumerate(padded)]
        self.padding = Padding(kinds, [self._width(rank) for rank in range(len(self.views))])
        self.adds = observe_age or observe_visible or self.padding.any
        self.by_wrong_clocks = False

    def _self(self, rank: int) -> tuple[Hashable, ...]:
        """Equal for observers that see the same of themselves."""
        own = self.views[rank].columns[: self.views[rank].own]
        layout = self.layout
        return (*(layout.names[i] for i in own), layout.low[own].tobytes(), layout.high[own].tobytes())

    def _compile(self) -> list[VisibleColumns]:
        if self.observability is not None and self.ruling is not None:
            visible = self._by_matrix(self.observability)
            if self.ruling is self.observability:
                return visible
            for view in visible:  # names and ranges are checked, enabled or not
                view.require_ranges(self.layout)
            return self._by_matrix(self.ruling)
        shown = [VisibleColumns.exactly(columns) for columns in columns_by_tags(self.hierarchy, self.layout)]
        return shown if not self.common_noise else [self._noisy(rank, visible) for rank, visible in enumerate(shown)]

    def _by_matrix(self, config: ObservabilityConfig) -> list[VisibleColumns]:
        from heron_env.observability.by_matrix import columns_by_matrix, external_names

        return columns_by_matrix(self.hierarchy, self.layout, config, external_names(self.layout, config))

    def _noisy(self, rank: int, visible: VisibleColumns) -> VisibleColumns:
        """What tags show, with the common noise on all that is not its own."""
        factors = np.where(self.layout.owner_of[visible.columns] == rank, 0.0, self.common_noise)
        return VisibleColumns(visible.columns, factors, visible.additive)

    @property
    def common_noise(self) -> float:
        """On all that anyone sees of others, on top of what the matrix says."""
        return 0.0 if self.observability is None else self.observability.common_noise

    @cached_property
    def ruling(self) -> ObservabilityConfig | None:
        """The observability matrix in force, as given or that of full observability; None where the tags decide."""
        config = self.observability
        return None if config is None or config.by_tags else config.in_force()

    @property
    def rule(self) -> str:
        """What decides who sees what: "tags", "matrix", or "everything" where a matrix is not enabled."""
        if self.ruling is None:
            return "tags"
        return "matrix" if self.ruling is self.observability else "everything"

    @cached_property
    def matrix(self) -> ObservabilityMatrix | None:
        """The same, ready to be asked for pairs."""
        if self.ruling is None:
            return None
        from heron_env.observability.by_matrix import ObservabilityMatrix

        return ObservabilityMatrix.of(self.ruling)

    def _width(self, rank: int) -> int:
        view = self.views[rank]
        return len(view.columns) + (len(view.sources) if self.observe_age else 0) + len(self.flags(rank))

    def flags(self, rank: int) -> list[int]:
        """Columns that say whom an observer sees, where its vector has them, after the ages."""
        return [column for _, column in self.views[rank].asked] if self.observe_visible else []

    @cached_property
    def asked(self) -> list[tuple[int, int]]:
        """Pairs of ranks, (observer, target), that the hook `sees` is asked about, by target."""
        pairs = [(rank, target) for rank, view in enumerate(self.views) for target, _ in view.asked]
        return sorted(pairs, key=lambda pair: pair[1])

    def size(self, rank: int) -> int:
        """Length of the observer's vector."""
        return self._width(rank) + len(self.padding.tails[rank])

    @cached_property
    def age_counts(self) -> list[int]:
        """Of how many sources each observer is told the age, by rank: as many as any whose vector is padded with it."""
        return self.padding.most([len(view.sources) for view in self.views])

    def names(self, rank: int) -> list[str]:
        """Names of the elements; after what is seen `age.battery_2`, `visible.battery_2`, `pad[7]` and `mask[0]`."""
        view, rows = self.views[rank], self.layout.rows
        ages = [f"age.{rows[i].owner_id}" for i in view.sources] if self.observe_age else []
        visible = [f"visible.{rows[target].owner_id}" for target, _ in view.asked] if self.observe_visible else []
        return view.names + ages + visible + self.padding.names(rank)

    def units(self, rank: int) -> list[str]:
        """Units of the vector's elements; ages are in s, who is visible and what pads has none."""
        view, others = self.views[rank], len(self.flags(rank)) + len(self.padding.tails[rank])
        units = [self.layout.units[i] for i in view.columns]
        return units + ["s"] * (self.size(rank) - len(view.columns) - others) + ["1"] * others

    def foreknown(self, rank: int) -> list[bool]:
        """Which of the vector's elements may tell of what is still to come; ages and what pads never do."""
        view = self.views[rank]
        return [*self.layout.foreknown[view.columns].tolist(), *[False] * (self.size(rank) - len(view.columns))]

    def bounds(self, rank: int) -> Bounds:
        """Finite float32 bounds of the vector."""
        return self.padding.bounds(rank, self._bounds)

    def _bounds(self, rank: int) -> Bounds:
        view = self.views[rank]
        ages, flags = len(view.sources) if self.observe_age else 0, len(self.flags(rank))
        low, high = self.layout.low[view.columns], self.layout.high[view.columns]
        places, less = view.relative
        low[places], high[places] = low[places] - high[less], high[places] - low[less]
        hidden = view.hides[0]
        low[hidden], high[hidden] = np.minimum(low[hidden], view.instead), np.maximum(high[hidden], view.instead)
        oldest = -UNBOUNDED if self.by_wrong_clocks else 0.0
        low = np.concatenate([np.maximum(low, -UNBOUNDED), np.full(ages, oldest), np.zeros(flags)])
        high = np.concatenate([np.minimum(high, UNBOUNDED), np.full(ages, UNBOUNDED), np.ones(flags)])
        return low.astype(np.float32), high.astype(np.float32)

    def vector(self, rank: int, array: Floats, moment: Moment, ages: Floats | None = None) -> Floats32:
        """One observer's vector, float32 `[n]`, from the truth or the cache; `ages` in s, one per source."""
        return self.complete(rank, self.views[rank].receive(array, moment), ages)

    def complete(self, rank: int, received: NDArray[Any], ages: Floats | None = None) -> Floats32:
        """One observer's vector from what it received, `[columns]`; `ages` in s, one per source, None: all 0."""
        view = self.views[rank]
        values = view.as_differences(received).astype(np.float32, copy=False)
        if not self.adds:
            return values
        parts = [values]
        if self.observe_age:
            parts.append((np.zeros(len(view.sources)) if ages is None else ages).astype(np.float32))
        if self.observe_visible:
            parts.append(view.sees(received).astype(np.float32))
        return np.concatenate([*parts, self.padding.tails[rank]])

    def relative(self, ranks: Sequence[int], starts: Sequence[int]) -> NDArray[np.int64]:
        """`ObserverView.relative` of several observers whose vectors begin at `starts`: `[2, k]`."""
        pairs = [self.views[rank].relative + start for rank, start in zip(ranks, starts, strict=False)]
        return np.concatenate([np.zeros((2, 0), np.int64), *pairs], axis=1)


def _relative(layout: Layout, rank: int, visible: VisibleColumns) -> tuple[VisibleColumns, Columns, Columns | None]:
    """What an observer sees with what is relative right behind its own, and the view's `relative` and `order`."""
    columns, names = visible.columns, layout.names
    if not layout.relative[columns].any():
        return visible, np.zeros((2, 0), dtype=np.int64), None
    mine, less = layout.owner_of[columns] == rank, np.full(len(columns), -1)
    own = {names[column]: place for place, column in enumerate(columns[mine].tolist())}
    for place in np.flatnonzero(layout.relative[columns] & ~mine).tolist():
        less[place] = own.get(names[columns[place]], -1)
    order = np.argsort(np.select([mine, less >= 0], [0, 1], 2), kind="stable")
    less = less[order]
    ordered = VisibleColumns(columns[order], visible.factors[order], visible.additive[order])
    return ordered, np.stack([np.flatnonzero(less >= 0), less[less >= 0]]), order


class Padding:
    """What brings the vectors of like observers to one width; nothing for those of a kind that are all equally wide.

    A vector of d numbers, where the widest of its kind has D, becomes 2 D long: its own d numbers, D - d zeros, then D
    numbers that say with 1 which of the first D are its own.

    Args:
        kinds: of the observers, by rank; those of one kind get one width. None: nobody is padded.
        widths: how many numbers of its own each has.

    Attributes:
        tails: float32 `[zeros + mask]` of each observer, or `[0]`.
    """

    def __init__(self, kinds: Sequence[Hashable] | None, widths: Sequence[int]) -> None:
        alike: dict[Hashable, list[int]] = {}
        for rank, kind in enumerate(kinds or ()):
            alike.setdefault(kind, []).append(rank)
        self._widths = list(widths)
        together = [members for members in alike.values() if len({widths[rank] for rank in members}) > 1]
        self._mates = {rank: members for members in together for rank in members}
        self._together = together
        self.tails = tuple(
            _tail(width, room) if rank in self._mates else np.zeros(0, dtype=np.float32)
            for rank, (width, room) in enumerate(zip(widths, self.most(widths), strict=True))
        )
        self._bounds: dict[int, Bounds] = {}

    @property
    def any(self) -> bool:
        """Is anybody padded?"""
        return bool(self._together)

    def most(self, counts: Sequence[int]) -> list[int]:
        """Of each observer the largest count among those that are brought to its width."""
        result = list(counts)
        for members in self._together:
            largest = max(counts[rank] for rank in members)
            for rank in members:
                result[rank] = largest
        return result

    def names(self, rank: int) -> list[str]:
        """Of what comes after the observer's own numbers: `pad[7]`, then `mask[0]`."""
        room, width = len(self.tails[rank]) - self.zeros(rank), self._widths[rank]
        return [f"pad[{i}]" for i in range(width, width + self.zeros(rank))] + [f"mask[{i}]" for i in range(room)]

    def zeros(self, rank: int) -> int:
        """How many of an observer's numbers are missing beside the widest of its kind."""
        return (len(self.tails[rank]) - self._widths[rank]) // 2 if rank in self._mates else 0

    def bounds(self, rank: int, own: Callable[[int], Bounds]) -> Bounds:
        """Of the whole vector: at each place the widest of the kind's; `own` gives those of its own numbers."""
        if rank not in self._mates:
            return own(rank)
        members = self._mates[rank]
        if members[0] not in self._bounds:
            self._bounds[members[0]] = self._hull(members, own)
        low, high = self._bounds[members[0]]
        return low.copy(), high.copy()

    def _hull(self, members: Sequence[int], own: Callable[[int], Bounds]) -> Bounds:
        room = max(self._widths[rank] for rank in members)
        low, high = np.full(room, np.inf, dtype=np.float32), np.full(room, -np.inf, dtype=np.float32)
        for rank in members:
            mine = [np.append(bound, np.zeros(self.zeros(rank), dtype=np.float32)) for bound in own(rank)]
            low, high = np.minimum(low, mine[0]), np.maximum(high, mine[1])
        mask = np.ones(room, dtype=np.float32)
        return np.concatenate([low, 0 * mask]), np.concatenate([high, mask])


def _tail(width: int, room: int) -> Floats32:
    missing = room - width
    return np.repeat(np.array([0, 1, 0], dtype=np.float32), [missing, width, missing])
