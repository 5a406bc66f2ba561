"""The tables: what the loops must know of a hierarchy, as arrays that never change.

AgentTables: where each agent's columns, action, children and references lie. DecisionTables: whose ticks count, who
commands whom and how, what actions are legal. ObservationTables: which columns the observers see, with which noise.
Positions are breadth first, so children are neighbours and their rewards a slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.vertical import SetpointSplit
from heron_env.core.action import ActionSpec
from heron_env.core.feature import FeatureProvider
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout
from heron_env.engine.arrays import Floats, Ints, zeros
from heron_env.engine.binding import row_of_parent, starts_of_children
from heron_env.engine.model import Model, splits_in_python
from heron_env.engine.source import (
    ACTION,
    ACTION_END,
    CHILD,
    CHILDREN,
    INFO,
    KIND,
    MASK,
    MASK_END,
    OFFSET,
    REFERENCES,
    Kind,
    Source,
)
from heron_env.observability.noise import ColumnNoise, VisibleColumns
from heron_env.observability.plan import ObservationPlan

Places = NDArray[np.uint32]
EXPLICIT, POLICY, COMMAND, NOOP, HELD = range(1, 6)
PLAN = 9
"""Codes of decisions.Source. An action of a plan falls due whether or not its agent ticks."""
CLOCK, COMMANDER, TICK, PHASE, FIRST, END = range(6)
"""Columns of `who`: positions (-1: none), ns, ns, action elements."""
LOW, HIGH, NOOP_VALUE, WEIGHT, TOTAL, LEAST, MOST, GRAIN = range(8)
"""Rows of `limits`; a commanded element is `command * weight / total`, within [least, most].

GRAIN: the part behind the point that is allowed: none for a choice, any (1 is never reached) for a number.
"""
LONG_RUN = 6
"""Columns in a row, on average, from which copying runs beats looking up each column."""
ADDITIVE, INTEGER = 1, 2
"""Flags in `noise_law`."""
CACHE_BYTES = 1 << 28
"""Memory for keys of the noise that are kept from step to step, 8 bytes for each noisy element and lane."""


def breadth_first(hierarchy: Hierarchy) -> list[int]:
    """The rank at each position."""
    order = [0]
    for rank in order:
        order.extend(hierarchy.children[rank])
    return order


class AgentTables:
    """One row per agent, by position.

    position: of each rank; rank_of: of each position. tab: uint32 `[n, columns]`. seg: uint32 `[segments, 3]`, kind,
    first and one past the last position of neighbours in one depth, of one kind. gather: uint32, of scattered children.
    global_offset: first column of the global features. scratch: columns that the truth needs behind `layout.width`.
    infos: numbers in all infos (`number_infos`). elements: numbers in all actions; `slices`: the agents' by rank.
    choices: numbers in all masks, likewise.
    """

    def __init__(
        self, source: Source | None, hierarchy: Hierarchy, layout: Layout, specs: Sequence[ActionSpec]
    ) -> None:
        """`source`: None where nothing is generated; `specs`: each rank's action."""
        self._hierarchy, self._layout = hierarchy, layout
        order, depth = breadth_first(hierarchy), {0: 0}
        for rank in order:
            depth.update((child, depth[rank] + 1) for child in hierarchy.children[rank])
        self.rank_of = tuple(order)
        self.position = np.argsort(order)
        kinds, kind_of = ([], [0] * len(order)) if source is None else (source.kinds, source.kind_of)
        self._kinds, self._kind_of = kinds, kind_of
        self.seg = _segments([kind_of[rank] for rank in order], [depth[rank] for rank in order])
        columns = max((kind.columns for kind in kinds), default=REFERENCES)
        self.tab = np.zeros((len(order), columns), dtype=np.uint32)
        ends = np.cumsum([0, *(spec.size for spec in specs)]).tolist()
        self.slices = tuple(slice(a, b) for a, b in pairwise(ends))
        self.elements, self.infos, self.choices, self.scratch = ends[-1], 0, 0, 0
        self.global_offset = layout.rows[-1].offset
        self._gather: list[int] = []
        for rank, kind_number in enumerate(kind_of):
            row, children = self.tab[self.position[rank]], hierarchy.children[rank]
            row[[OFFSET, ACTION, ACTION_END, KIND]] = layout.rows[rank].offset, *ends[rank : rank + 2], kind_number
            row[[CHILD, CHILDREN]] = self.position[children[0]] if children else 0, len(children)
            row[MASK] = self.choices
            masked = hasattr(type(hierarchy.agents[rank]), "action_mask")
            self.choices += int(specs[rank].ncats.sum()) if masked else 0
            row[MASK_END] = self.choices
            if kinds:
                self._refer(row, rank, kinds[kind_number])
        self.gather: Places = np.asarray(self._gather or [0], dtype=np.uint32)

    def number_infos(self, infos: Mapping[str, tuple[str, ...]]) -> None:
        """Say where each agent's info numbers begin; `infos`: their names by kind."""
        self.infos = 0
        for rank, kind in enumerate(self._kind_of):
            self.tab[self.position[rank], INFO] = self.infos
            self.infos += len(infos.get(self._kinds[kind].name, ())) if self._kinds else 0

    def first_info(self, rank: int) -> int:
        """Where the agent's numbers begin among all infos."""
        return int(self.tab[self.position[rank], INFO])

    def choices_of(self, rank: int) -> slice:
        """The agent's part of all masks."""
        first, end = self.tab[self.position[rank], [MASK, MASK_END]].tolist()
        return slice(first, end)

    def _refer(self, row: Places, rank: int, kind: Kind) -> None:
        at = REFERENCES
        for role, feature in kind.references:
            where = self._reader(kind, role, feature)
            if role == "parent":
                row[at] = self._of_parent(rank, feature, where)
                at += 1
            else:
                row[at : at + 3] = self._of_children(rank, feature, where)
                at += 3

    def _reader(self, kind: Kind, role: str, feature: type[FeatureProvider]) -> str:
        """The first rule that reads it, for messages."""
        return next(
            f"{kind.cls.__name__}.{name}"
            for name, parameters in kind.rules.items()
            if any((parameter.role, parameter.feature) == (role, feature) for parameter in parameters)
        )

    def _of_parent(self, rank: int, feature: type[FeatureProvider], where: str) -> int:
        row = row_of_parent(self._hierarchy, self._layout, rank, feature, where)
        position = row.find(feature)
        assert position is not None
        return row.offsets[position]

    def _of_children(self, rank: int, feature: type[FeatureProvider], where: str) -> tuple[int, int, int]:
        starts, step = starts_of_children(self._hierarchy, self._layout, rank, feature, where)
        if step:
            return starts[0], step, len(starts)
        first = len(self._gather)
        self._gather += [self._layout.width + self.scratch, *starts]
        self.scratch += len(starts) * feature.width
        return first, 0, len(starts)


def _segments(kinds: Sequence[int], depths: Sequence[int]) -> Places:
    """Runs of neighbours in one depth and of one kind: kind, first position, one past the last."""
    runs: list[list[int]] = []
    for i, place in enumerate(zip(kinds, depths, strict=True)):
        if i and place == (kinds[i - 1], depths[i - 1]):
            runs[-1][2] = i + 1
        else:
            runs.append([place[0], i, i + 1])
    return np.asarray(runs, dtype=np.uint32)


class DecisionTables:
    """Per agent by position, per action element by rank.

    Every protocol of this library moves numbers: element e of a child is one element of its commander, weighted. What
    others do is not in the tables; who asks them writes the shares after the decisions.

    who: int64 `[n, 6]`. sized: uint8 `[n]`, has the agent an action? limits: float64 `[8, elements]`. command: uint32
    `[elements]`, the commander's element. owner: uint32 `[elements]`, whose it is. single: float32 `[2, elements]`,
    bounds in the space's precision. steady: does everyone decide in every step, for themselves?
    """

    def __init__(self, model: Model, position: Sequence[int], slices: Sequence[slice]) -> None:
        """`position`: of each rank; `slices`: of its elements."""
        specs, n, self._slices, elements = model.specs, len(model.specs), slices, slices[-1].stop
        self.who: Ints = np.zeros((n, 6), dtype=np.int64)
        self.sized = np.zeros(n, dtype=np.uint8)
        self.limits: Floats = np.zeros((8, elements))
        self.limits[[WEIGHT, TOTAL]] = 1.0
        self.limits[LEAST], self.limits[MOST] = -np.inf, np.inf
        self.command = np.zeros(elements, dtype=np.uint32)
        self.owner = np.zeros(elements, dtype=np.uint32)
        for rank, spec in enumerate(specs):
            i, span = position[rank], self._slices[rank]
            tick, phase = model.ticks[rank]
            commander = position[model.hierarchy.parent[rank]] if model.commanded[rank] else -1
            self.who[i] = position[model.clocks[rank]], commander, tick, phase, span.start, span.stop
            self.sized[i] = spec.size > 0
            self.owner[span] = i
            self.limits[LOW, span] = np.concatenate([spec.low, np.zeros(spec.dim_d)])
            self.limits[HIGH, span] = np.concatenate([spec.high, spec.ncats - 1.0])
            self.limits[NOOP_VALUE, span] = spec.noop
            self.limits[GRAIN, span] = np.arange(spec.size) < spec.dim_c
        self._command(model)
        self.single: NDArray[np.float32] = self.limits[:2].astype(np.float32)
        every_step = all(model.ticks[rank] == (model.dt_ns, 0) for rank in model.possible)
        self.steady = every_step and not any(model.commanded)

    def _command(self, model: Model) -> None:
        for rank, agent in enumerate(model.hierarchy.agents):
            protocol, children = agent.protocol, model.hierarchy.children[rank]
            if protocol is None or not children or splits_in_python(protocol):
                continue
            first, specs = self._slices[rank].start, [model.specs[child] for child in children]
            if isinstance(protocol, SetpointSplit):
                weights = np.ones(len(children)) if protocol.weights is None else protocol.weights
                for child, spec, weight in zip(children, specs, weights, strict=True):
                    span = self._slices[child]
                    self.command[span], self.limits[WEIGHT, span], self.limits[TOTAL, span] = (
                        first,
                        weight,
                        weights.sum(),
                    )
                    self.limits[LEAST, span], self.limits[MOST, span] = spec.low, spec.high
                continue
            parts = protocol.split(np.arange(model.specs[rank].size, dtype=np.float64), specs)
            for child, part in zip(children, parts, strict=True):  # each number says where it came from
                self.command[self._slices[child]] = first + part.astype(np.int64)


class ObservationTables:
    """Arrays by their names in the loops, and where each observer's vector lies.

    Ages of information (observe_age) are read from the column `zero`, which is always 0: in this clock all is fresh.
    What pads a vector is read from there and from the column after it.
    """

    def __init__(self, model: Model, zero: int) -> None:
        plan, layout, observers = model.plan, model.layout, model.observers
        views = [plan.views[rank] for rank in observers]
        sizes, view_sizes = [plan.size(rank) for rank in observers], [len(view.columns) for view in views]
        ends = np.cumsum([0, *sizes]).tolist()
        self.spans = tuple(slice(a, b) for a, b in pairwise(ends))
        columns = np.full(ends[-1], zero, dtype=np.int64)
        places = np.concatenate([np.zeros(0, np.int64), *map(np.arange, ends[:-1], np.add(ends[:-1], view_sizes))])
        joined = VisibleColumns.joined([view.visible for view in views])
        columns[places] = joined.columns
        for rank, end in zip(observers, ends[1:], strict=True):
            tail = plan.padding.tails[rank]
            columns[end - len(tail) : end] += tail.astype(np.int64)
        self.arrays: dict[str, NDArray[Any]] = {"columns": columns.astype(np.uint32), "runs": _runs(columns)}
        noise = ColumnNoise.of(layout, np.repeat(np.asarray(observers, dtype=np.int64), view_sizes), joined)
        noises = [] if noise is None else [noise]
        at = [one.at for one in noises]
        self.arrays |= noise_tables(noises, [places[k] for k in at], [joined.columns[k] for k in at])
        self.arrays["relative"] = np.ascontiguousarray(plan.relative(observers, ends).T, np.uint32)
        self.arrays |= _hiding(plan, observers, ends)

    def of_lanes(self, lanes: int, final: bool) -> dict[str, NDArray[Any]]:
        """Room for vectors before anything is subtracted, if it is, and for the keys of each lane's episode.

        Keys are kept where they fit, with the episodes that they are for; none at first. `final`: last vectors, too.
        """
        n = len(self.arrays["noise_at"])
        cached = n if 8 * lanes * n <= CACHE_BYTES else 0
        moments = np.full((lanes, 2), np.iinfo(np.uint64).max, dtype=np.uint64)
        width = self.floats if self.relative else 0
        received, last = (zeros((lanes, n), np.float64, f"num_envs={lanes}") for n in (width, width * final))
        return {
            "noise_cache": np.zeros((lanes, cached), dtype=np.uint64), "noise_moments": moments,
            "received": received, "received_final": last,
        }  # fmt: skip

    @property
    def relative(self) -> bool:
        """Is anything seen less what an observer has of itself?"""
        return len(self.arrays["relative"]) > 0

    @property
    def hides(self) -> bool:
        """May anything be hidden (V11)?"""
        return len(self.arrays["hidden"]) > 0

    @property
    def noisy(self) -> bool:
        """Is there noise on any element?"""
        return len(self.arrays["noise_at"]) > 0

    @property
    def floats(self) -> int:
        """Length of all vectors together."""
        return self.spans[-1].stop if self.spans else 0


def _hiding(plan: ObservationPlan, observers: Sequence[int], starts: Sequence[int]) -> dict[str, NDArray[Any]]:
    """Places that may be hidden, with the columns that say so, what they show then, and where the columns are shown."""
    hidden, instead = [np.zeros((2, 0), np.int64)], list[Floats]()
    flags: list[tuple[int, int]] = []
    for rank, start in zip(observers, starts, strict=False):
        view, shown = plan.views[rank], plan.flags(rank)
        hidden.append(view.hides + np.array([[start], [0]]))
        instead.append(view.instead)
        first = start + len(view.columns) + plan.observe_age * len(view.sources)
        flags += [(first + k, column) for k, column in enumerate(shown)]
    return {
        "hidden": np.ascontiguousarray(np.concatenate(hidden, axis=1).T, np.uint32),
        "instead": np.concatenate([np.zeros(0), *instead]).astype(np.float32),
        "flags": np.asarray(flags, dtype=np.uint32).reshape(-1, 2),
    }


def noise_tables(
    noises: Sequence[ColumnNoise], at: Sequence[NDArray[np.int64]], columns: Sequence[NDArray[np.int64]]
) -> dict[str, NDArray[Any]]:
    """What `noise_row` needs of some noises, one after another; `at`: their places in a vector, with the columns."""

    def joined(parts: Iterable[Any], kind: Any) -> NDArray[Any]:
        return np.concatenate([np.zeros(0, kind), *map(np.asarray, parts)]).astype(kind)

    return {
        "noise_at": joined(at, np.uint32), "noise_columns": joined(columns, np.uint32),
        "noise_keys": joined((noise.keys for noise in noises), np.uint64),
        "noise_reach": joined((noise.reach for noise in noises), np.float64),
        "noise_low": joined((noise.low for noise in noises), np.float64),
        "noise_high": joined((noise.high for noise in noises), np.float64),
        "noise_law": joined((noise.additive * ADDITIVE + noise.integer * INTEGER for noise in noises), np.uint8),
    }  # fmt: skip


def _runs(columns: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
    """First column and length of each run of neighbours, uint32 `[runs, 2]`; none where runs are short."""
    runs = runs_of(columns, np.diff(columns) != 1)
    return (runs if len(columns) >= LONG_RUN * len(runs) else runs[:0]).astype(np.uint32)


def runs_of(columns: Ints, cuts: NDArray[np.bool_]) -> Ints:
    """First column and length of each run, `[runs, 2]`; `cuts`: between which neighbours one ends."""
    if not len(columns):
        return np.zeros((0, 2), dtype=np.int64)
    at = np.flatnonzero(cuts)
    first, last = columns[np.append(0, at + 1)], columns[np.append(at, len(columns) - 1)]
    return np.stack([first, last + 1 - first], axis=1)
