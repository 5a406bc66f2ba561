"""What the compiled event clock must know of a hierarchy and its schedules, as arrays (forms.FORMS)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import Layout
from heron_env.engine.blueprint import Blueprint
from heron_env.engine.event import forms as f
from heron_env.engine.lanes import Lanes
from heron_env.engine.observation_tables import ADDITIVE, WHOLE
from heron_env.observability.noise import ColumnNoise
from heron_env.scheduling.sources import Empirical, GilbertElliott, Markov, Recorded, Source, mean_s
from heron_env.scheduling.timing import JITTERS, ScheduleConfig, Timing
from heron_env.seeding import h

Table = dict[str, NDArray[Any]]
"""Arrays by their names in forms.FORMS."""


class Cause(Protocol):
    """Names what is told (Route)."""

    @property
    def cause(self) -> str: ...


class Told(Protocol):
    """What one agent tells another (Edge): columns of the sender, of the receiver's inbox, and the cause of draws."""

    @property
    def sender(self) -> int: ...
    @property
    def source(self) -> slice: ...
    @property
    def target(self) -> slice: ...
    @property
    def route(self) -> Cause: ...


def schedule_tables(schedules: Sequence[Sequence[Timing]]) -> Table:
    """`timing`, `odds` and what comes from data, of the schedules, each by rank, one after another."""
    timing, odds, data = [], [], _Data()
    for one in (timing for schedule in schedules for timing in schedule):
        c = one.config
        flags = c.reorder * f.REORDER + (c.on_missing == "noop") * f.FAILSAFE + one.local * f.LOCAL
        kind = JITTERS.index(c.jitter_type)
        timing.append((one.tick, one.phase, one.obs, one.act, one.msg, one.min_delay, kind, flags))
        late, ticks = c.jitter_ratio, c.tick_jitter_ratio
        odds.append((late, ticks, mean_s(c.loss), c.duplicate, _spread(late), _spread(ticks)))
        data.note(c)
    return {"timing": np.array(timing, dtype=np.int64), "odds": np.array(odds, dtype=np.float64), **data.tables()}


class _Data:
    """Sources by number, each kept once."""

    def __init__(self) -> None:
        self._numbers: dict[Source, int] = {}
        self._of: list[list[int]] = []
        self._rows: list[tuple[int, ...]] = []
        self._lists: list[Sequence[int]] = []
        self._departures: list[int] = []
        self._levels: list[float] = []

    def note(self, config: ScheduleConfig) -> None:
        """What one agent's link has from data."""
        given = (config.msg_delay, config.obs_delay, config.act_delay, config.loss)
        self._of.append([self._number(value) if isinstance(value, Source) else -1 for value in given])

    def _number(self, source: Source) -> int:
        if source not in self._numbers:
            self._numbers[source] = len(self._rows)
            values, levels, period, states = len(self._lists), len(self._levels), 1, 1
            lists: Sequence[Sequence[int]] = ()
            match source:
                case Empirical():
                    kind, lists = f.EMPIRICAL, (source.ns,)
                case Recorded():
                    kind, lists, period = f.RECORDED, (source.ns,), source.period_ns
                case Markov():
                    kind, lists = f.MARKOV, source.values
                case GilbertElliott():
                    kind = f.LOSSY
            if isinstance(source, Markov | GilbertElliott):
                chain = source.chain
                period, states = chain.period_ns, len(chain.moves)
                self._levels += [*chain.start, *(level for row in chain.moves for level in row)]
            if isinstance(source, GilbertElliott):
                self._levels += source.losses
            self._rows.append((kind, period, states, values, levels))
            self._lists += lists
            for one in lists:
                self._departures += source.departures if isinstance(source, Recorded) else [0] * len(one)
        return self._numbers[source]

    def tables(self) -> Table:
        listed = _listed("delay", self._lists)
        return {
            "source_of": np.array(self._of, dtype=np.int64).reshape(-1, f.SOURCED_FIELDS),
            "sources": np.array(self._rows, dtype=np.int64).reshape(-1, f.SOURCE_NUMBERS),
            "first_delay": listed["first_delay"], "delays": listed["delay"],
            "departures": np.array(self._departures, dtype=np.int64), "thresholds": np.array(self._levels),
        }  # fmt: skip


def _spread(ratio: float) -> float:
    """The s of a lognormal whose std is `ratio` of its mean."""
    return math.sqrt(math.log1p(ratio * ratio))


def hierarchy_tables(blueprint: Blueprint, lanes: Lanes, edges: Sequence[Told], says: Sequence[bool]) -> Table:
    """All that is the same for every lane and schedule; `says`: whose effects are reported, by rank."""
    hierarchy, layout, specs = blueprint.hierarchy, blueprint.layout, blueprint.specs
    ranks, deciders = range(len(hierarchy)), blueprint.observers
    decides = np.zeros(len(hierarchy), dtype=np.int64)
    decides[list(deciders)] = np.arange(len(deciders)) + 1
    commanding = [agent.protocol is not None for agent in hierarchy.agents]
    children = [[c for c in hierarchy.children[r] if specs[c].size] if commanding[r] else [] for r in ranks]
    told = [row.reported.columns.tolist() for row in layout.rows]
    sums = {column: place for place, column in enumerate(layout.per_step.tolist())}
    choices = [lanes.choices_of(rank) for rank in ranks]
    return {
        "place": np.array(lanes.position, dtype=np.int64), "clock": np.array(blueprint.clocks, dtype=np.int64),
        "parent": np.array(hierarchy.parent, dtype=np.int64), "decides": decides,
        "deciders": np.array(deciders, dtype=np.int64), "says": np.array(says, dtype=np.uint8),
        "sized": np.array([spec.size > 0 for spec in specs], dtype=np.uint8),
        "hashes": hierarchy.hashes,
        "elements": np.cumsum([0, *(spec.size for spec in specs)], dtype=np.int64),
        "choices": np.array([(span.start, span.stop) for span in choices], dtype=np.int64).reshape(-1, 2),
        "sums": layout.per_step.astype(np.int64),
        **_listed("child", children), **_listed("told", told),
        **_listed("follower", [[r for r in ranks if blueprint.clocks[r] == c != r] for c in ranks]),
        "told_sum": np.array([sums.get(c, -1) for row in told for c in row], dtype=np.int64),
        **_seen(blueprint, sums), **_edges(edges, len(hierarchy)),
    }  # fmt: skip


def _listed(name: str, lists: Sequence[Sequence[int]]) -> Table:
    """Lists one after another, and where each begins."""
    return {
        f"first_{name}": np.cumsum([0, *map(len, lists)], dtype=np.int64),
        name: np.array([one for each in lists for one in each], dtype=np.int64),
    }


def _seen(blueprint: Blueprint, sums: dict[int, int]) -> Table:
    """What each rank's observation holds; of those that do not decide nothing."""
    plan, layout = blueprint.plan, blueprint.layout
    views = [plan.views[r] if r in blueprint.observers else None for r in range(len(blueprint.hierarchy))]
    columns = [[] if view is None else view.columns.tolist() for view in views]
    tails = [plan.padding.tails[r] if view is not None else np.zeros(0, np.float32) for r, view in enumerate(views)]
    own = [0 if view is None else view.own for view in views]
    found: Table = {
        **_listed("seen", columns),
        **_listed("source", [[] if view is None else view.sources.tolist() for view in views]),
        "own": np.array(own, dtype=np.int64),
        "own_sum": np.array([sums.get(c, -1) for each in columns for c in each], dtype=np.int64),
        "first_tail": np.cumsum([0, *map(len, tails)], dtype=np.int64), "tail": np.concatenate(tails),
        "ages": np.array([plan.observe_age], dtype=np.uint8),
    }  # fmt: skip
    return found | _noise([None if view is None else (view.noise, columns[r]) for r, view in enumerate(views)], layout)


def _noise(views: Sequence[tuple[ColumnNoise | None, list[int]] | None], layout: Layout) -> Table:
    noises = [(found[0], np.array(found[1], dtype=np.int64)) if found is not None else (None, None) for found in views]
    some = [(noise, columns) for noise, columns in noises if noise is not None and columns is not None]

    def joined(parts: list[NDArray[Any]], kind: Any) -> NDArray[Any]:
        return (
            np.concatenate([np.zeros(0), *parts]).astype(kind)
            if kind is not np.uint64
            else np.concatenate([np.zeros(0, np.uint64), *parts])
        )

    sizes = [0 if noise is None else len(noise.at) for noise, _ in noises]
    return {
        "first_noise": np.cumsum([0, *sizes], dtype=np.int64),
        "noise_at": joined([noise.at for noise, _ in some], np.uint32),
        "noise_columns": joined([columns[noise.at] for noise, columns in some], np.uint32),
        "noise_keys": joined([noise.keys for noise, _ in some], np.uint64),
        "noise_reach": joined([np.asarray(noise.reach) for noise, _ in some], np.float64),
        "noise_low": joined([np.asarray(noise.low) for noise, _ in some], np.float64),
        "noise_high": joined([np.asarray(noise.high) for noise, _ in some], np.float64),
        "noise_law": joined([noise.additive * ADDITIVE + noise.whole * WHOLE for noise, _ in some], np.uint8),
    }  # fmt: skip


def _edges(edges: Sequence[Told], agents: int) -> Table:
    """Who tells whom what; the edges of one slot of an inbox lie side by side."""
    outgoing: list[list[int]] = [[] for _ in range(agents)]
    table = np.zeros((len(edges), f.EDGE_NUMBERS), dtype=np.int64)
    kept = 0
    for e, edge in enumerate(edges):
        outgoing[edge.sender].append(e)
        size, target = edge.source.stop - edge.source.start, edge.target
        meeting = [k for k, other in enumerate(edges) if other.target == target]
        table[e] = edge.source.start, size, target.start, target.stop - target.start, kept, meeting[0], meeting[-1] + 1
        kept += size
    causes = np.array([h(edge.route.cause) for edge in edges], dtype=np.uint64)
    found = _listed("edge", outgoing)
    return {"first_edge": found["first_edge"], "outgoing": found["edge"], "edge": table, "edge_cause": causes}
