"""The arrays of the compiled event clock (forms.FORMS): what they hold of hierarchy and schedules, how they grow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import Edge
from heron_env.engine.arrays import addresses, zeros
from heron_env.engine.event import forms as f
from heron_env.engine.lanes import Lanes
from heron_env.engine.model import Model
from heron_env.engine.tables import noise_tables
from heron_env.observability.plan import ObservationPlan, ObserverView
from heron_env.scheduling.media import Medium
from heron_env.scheduling.sharing import departs_at_once, ways_of
from heron_env.scheduling.sources import Empirical, GilbertElliott, Markov, Recorded, Source, mean_s
from heron_env.scheduling.timing import JITTERS, SECOND, ScheduleConfig, Timing
from heron_env.seeding import h

Table = dict[str, NDArray[Any]]
"""Arrays by their names in forms.FORMS."""
SPARE = 24
"""Events, reports and observations for which there is room at first, beyond what one event may need."""
PLACE = {name: place for place, name in enumerate(f.FORMS)}
HANDED_OUT = [PLACE[name] for name in ("row", "row_earned", "row_obs", "row_mask", "row_state", "answer")]
"""What `hand_out` makes, in its order."""
GROWING = {
    f.HEAP_SHORT: (f.HEAP_SIZE, ("heap",)),
    f.REPORTS_SHORT: (f.REPORT_SLOTS, ("report_slot", "report")),
    f.PARCELS_SHORT: (f.PARCEL_SLOTS, ("parcel", "parcel_size")),
    f.VIEWS_SHORT: (
        f.VIEW_SLOTS,
        ("view_slot", "view", "view_as_of", "decision", "view_mask", "view_state", "view_absolute"),
    ),
}
"""By what is short: the place of its size in `sizes`, and the arrays that hold as many rows for each lane."""


class EventMemory:
    """Holds the arrays by their names (forms.FORMS); `at` is the address of their table, new whenever some have grown.

    Args:
        lanes: how many.
        fixed: tables of the hierarchy and the schedules.
        sizes: and what else is one number, int64 `[SIZE_NUMBERS]`; those that `_size` finds are still 0.
        reals: likewise, float64.
        columns: of the truth; states: of what a critic is shown, or 0. shared: may messages wait?
    """

    def __init__(
        self, lanes: int, fixed: Mapping[str, NDArray[Any]], sizes: NDArray[np.int64], reals: NDArray[np.float64],
        *, columns: int, states: int, shared: bool = False,
    ) -> None:  # fmt: skip
        self.lanes, self.sizes = lanes, sizes
        _size(sizes, fixed, shared=shared)
        masks = len(fixed["masks"]) // max(int(sizes[f.DECIDERS]), 1)
        state = states if sizes[f.WITH_STATE] else 0
        self.arrays: dict[str, NDArray[Any]] = {"sizes": sizes, "reals": reals, **fixed}
        for name, shape in _shapes(lanes, sizes, fixed, columns, masks, state).items():
            self.arrays[name] = zeros(shape, getattr(np, f.FORMS[name][0]), f"num_envs={lanes}")
        self.widths = {
            "obs": int(sizes[f.OBS_WIDTH]),
            "mask": masks,
            "state": state,
            "action": int(sizes[f.ACTION_WIDTH]),
        }
        self.bind()
        self.hand_out(0)
        self.arrays["lane"][:, f.STATUS] = f.RESTING

    def bind(self) -> None:
        """Note where the arrays are now."""
        self._table = addresses(f.FORMS, self.arrays)
        self.at = int(self._table.ctypes.data)

    def hand_out(self, rows: int) -> None:
        """Fresh arrays for so many rows and ends together, which their receiver keeps."""
        w = self.widths
        made: dict[str, NDArray[Any]] = {
            "row": np.zeros((rows, f.ROW_NUMBERS), dtype=np.int64), "row_earned": np.zeros((rows, 3)),
            "row_obs": np.empty((rows, w["obs"]), dtype=np.float32), "row_mask": np.empty((rows, w["mask"]), np.uint8),
            "row_state": np.empty((rows, w["state"]), dtype=np.float32), "answer": np.zeros((rows, w["action"])),
        }  # fmt: skip
        self.arrays |= made
        self._table[HANDED_OUT] = [(a.ctypes.data, len(a), a.shape[-1]) for a in made.values()]

    def grow(self, short: int, steps: NDArray[np.int64]) -> None:
        """Twice the room of what is `short` (bits), in every lane; what is there stays where it is.

        `steps`: so many were in each lane's episode, int64 `[lanes]`.
        """
        if short & f.RING_SHORT:
            self._widen_ring(steps)
        for bit, (size, names) in GROWING.items():
            if short & bit:
                before = int(self.sizes[size])
                self.sizes[size] = 2 * before
                for name in names:
                    old = self.arrays[name]
                    new = zeros((self.lanes, 2 * before, old.shape[1]), old.dtype, f"num_envs={self.lanes}")
                    new[:, :before] = old.reshape(self.lanes, before, -1)
                    self.arrays[name] = new.reshape(2 * before * self.lanes, -1)
                self._free(bit, before)
        self.bind()

    def _widen_ring(self, steps: NDArray[np.int64]) -> None:
        """The truth at a boundary, whose news is under way, lies where its number modulo the size says."""
        before, columns = int(self.sizes[f.RING]), self.arrays["ring"].shape[1]
        old, versions = self.arrays["ring"].reshape(self.lanes, before, columns), self.arrays["ring_version"]
        purpose = f"num_envs={self.lanes}"
        new = zeros((self.lanes, 2 * before, columns), np.float64, purpose)
        new_versions = zeros((self.lanes, 2 * before), np.int64, purpose)
        for back in range(1, before + 1):
            lanes = np.flatnonzero(steps >= back)
            number = steps[lanes] - back
            new[lanes, number % (2 * before)] = old[lanes, number % before]
            new_versions[lanes, number % (2 * before)] = versions[lanes, number % before]
        self.sizes[f.RING] = 2 * before
        self.arrays["ring"], self.arrays["ring_version"] = new.reshape(-1, columns), new_versions

    def _free(self, bit: int, before: int) -> None:
        """Slots from `before` on come before the others that are free."""
        free = {
            f.REPORTS_SHORT: ("report_slot", f.FREE_REPORT), f.VIEWS_SHORT: ("view_slot", f.FREE_VIEW),
            f.PARCELS_SHORT: ("parcel", f.FREE_PARCEL),
        }  # fmt: skip
        if bit in free:
            name, first = free[bit]
            slots, lane = self.arrays[name].reshape(self.lanes, 2 * before, -1), self.arrays["lane"]
            slots[:, before:, f.CHAIN] = np.arange(before + 1, 2 * before + 1)
            slots[:, -1, f.CHAIN] = lane[:, first]
            lane[:, first] = before
            lane[:, first + 1] += before


def _size(sizes: NDArray[np.int64], fixed: Mapping[str, NDArray[Any]], *, shared: bool) -> None:
    """What one event may need, and how much there is at first, into `sizes`; `shared`: may messages wait?"""
    ranks, edges, rows = int(sizes[f.RANKS]), len(fixed["edge"]), int((np.diff(fixed["first_reported"]) > 0).sum())
    sizes[f.NEED_HEAP] = rows + edges + 3 * ranks + 4
    sizes[f.NEED_REPORTS] = rows + edges + 1
    sizes[f.NEED_VIEWS] = 2
    sizes[f.HEAP_SIZE], sizes[f.REPORT_SLOTS] = sizes[f.NEED_HEAP] + SPARE, sizes[f.NEED_REPORTS] + SPARE
    sizes[f.PARCEL_SLOTS] = (sizes[f.NEED_HEAP] + SPARE) * shared
    sizes[f.VIEW_SLOTS] = 2 * int(sizes[f.DECIDERS]) + SPARE
    records = (ranks + 3, int(sizes[f.ACTION_WIDTH]) + 5, _widest(fixed, "source") + 3, int(sizes[f.OBS_WIDTH]) + 4)
    sizes[f.NEED_LOG] = 2 * max(records) if sizes[f.KEEPS] & ~f.KEEP_MESSAGES else 0
    sizes[f.LOG_SIZE] = 32 * sizes[f.NEED_LOG]


def _widest(fixed: Mapping[str, NDArray[Any]], name: str) -> int:
    """The length of the longest of some lists, at least 1."""
    return int(np.diff(fixed[f"first_{name}"]).max(initial=1))


def _shapes(
    lanes: int, sizes: NDArray[np.int64], fixed: Mapping[str, NDArray[Any]], columns: int, masks: int, state: int
) -> dict[str, tuple[int, ...]]:
    """Of all arrays that belong to lanes; arguments as of EventMemory."""
    ranks, deciders, width = int(sizes[f.RANKS]), int(sizes[f.DECIDERS]), int(sizes[f.OBS_WIDTH])
    relative_width = int(np.diff(fixed["first_relative"]).max(initial=0))
    edges, received, sources = len(fixed["edge"]), int(fixed["edge"][:, f.EDGE_SIZE].sum()), _widest(fixed, "source")
    chains = f.SOURCED_FIELDS * ranks if len(fixed["sources"]) else 0
    reports, views = lanes * int(sizes[f.REPORT_SLOTS]), lanes * int(sizes[f.VIEW_SLOTS])
    parcels, servers = lanes * int(sizes[f.PARCEL_SLOTS]), lanes * int(sizes[f.SERVERS])
    widest = max(_widest(fixed, "reported"), *fixed["edge"][:, f.EDGE_SIZE].tolist(), 1)
    return {
        "lane": (lanes, f.LANE_NUMBERS), "key": (lanes, ranks), "cache": (lanes, columns),
        "version": (lanes, ranks + 1), "as_of": (lanes, ranks + 1), "ended_sums": (lanes, len(fixed["sums"])),
        "decided": (lanes, ranks), "last_effect": (lanes, ranks), "acted": (lanes, ranks),
        "queue": (lanes, f.QUEUES * ranks), "member": (lanes, ranks), "lived": (lanes, ranks),
        "how": (lanes, ranks), "masked": (lanes, ranks), "ring": (lanes * int(sizes[f.RING]), columns),
        "ring_version": (lanes, int(sizes[f.RING])), "scratch": (lanes, width), "noise_cache": (lanes, 0),
        "end_absolute": (2 * lanes * deciders, relative_width), "view_absolute": (views, relative_width),
        "chain_last": (lanes, chains), "chain_state": (lanes, chains),
        "received": (lanes, received), "newest": (lanes, edges),
        "since": (lanes, sources),
        "decider": (lanes * deciders, f.DECIDER_NUMBERS), "earned": (lanes * deciders, f.DECIDER_FLOATS),
        "end_obs": (2 * lanes * deciders, width), "end_state": (2 * lanes * deciders, state),
        "heap": (lanes * int(sizes[f.HEAP_SIZE]), 3), "log": (lanes, int(sizes[f.LOG_SIZE])),
        "parcel": (parcels, f.PARCEL_NUMBERS), "parcel_size": (parcels, 1),
        "server": (servers, f.SERVER_NUMBERS), "server_bytes": (servers, f.SERVER_BYTES),
        "line": (lanes, 2 * f.QUEUES * ranks * (parcels > 0)),
        "report_slot": (reports, f.REPORT_NUMBERS), "report": (reports, widest),
        "view_slot": (views, f.VIEW_NUMBERS), "view": (views, width), "view_as_of": (views, sources),
        "decision": (views, int(sizes[f.ACTION_WIDTH]) + 2), "view_mask": (views, masks), "view_state": (views, state),
        "counts": (lanes, 2 * int(fixed["group"].max(initial=0) + 1)),
    }  # fmt: skip


def schedule_tables(schedules: Sequence[Sequence[Timing]], servers: int = 0, *, ruled: bool = False) -> Table:
    """`timing`, `odds`, media and what comes from data, of the schedules, each by rank, one after another.

    `servers`: rows of `medium` for each schedule, at least. `ruled`: has the rule `link` a say in all links?
    """
    timing, odds, media, data = [], [], list[NDArray[np.float64]](), _Data()
    for schedule in schedules:
        configs = [one.config for one in schedule]
        ways, ends = ways_of(configs)
        at_once = {medium for medium, _ in ways if departs_at_once(medium, configs) and not ruled}
        media.append(_media([medium for medium, _ in ways], at_once, configs))
        for rank, one in enumerate(schedule):
            c, transport = one.config, one.config.transport
            flags = c.reorder * f.REORDER + (c.on_missing == "noop") * f.FAILSAFE + one.local * f.LOCAL
            flags += one.shared * f.SHARED + (transport is not None and transport.gaps) * f.GAPS
            flags += (transport is None and c.medium in at_once) * f.AT_ONCE_LINK + ruled * f.RULED
            kind, (up, down) = JITTERS.index(c.jitter_type), ends.get(rank, (-1, -1))
            lifespan = -1 if one.lifespan is None else one.lifespan
            rto, tries = (-1, 0) if transport is None else (round(transport.rto * SECOND), transport.tries or 0)
            timing.append(
                (one.tick, one.phase, one.obs, one.act, one.msg, one.min_delay, kind, flags, up, down, c.priority,
                 c.keep or 0, lifespan, rto, tries, one.offset)
            )  # fmt: skip
            delays, ticks, backoff = c.jitter_ratio, c.tick_jitter_ratio, transport.backoff if transport else 1.0
            odds.append((delays, ticks, mean_s(c.loss), _spread(delays), _spread(ticks), backoff, c.clock_drift))
            data.note(c)
    rows = max(servers, *map(len, media))
    padded = [np.concatenate([one, np.zeros((rows - len(one), f.MEDIUM_NUMBERS))]) for one in media]
    return {
        "timing": np.array(timing, dtype=np.int64), "odds": np.array(odds, dtype=np.float64),
        "medium": np.concatenate(padded), **data.tables(),
    }  # fmt: skip


def _media(ways: Sequence[Medium], at_once: set[Medium], configs: Sequence[ScheduleConfig]) -> NDArray[np.float64]:
    """A row for each way over a medium."""
    rows, mortal = np.zeros((len(ways), f.MEDIUM_NUMBERS)), {c.medium for c in configs if c.lifespan is not None}
    for row, medium in zip(rows, ways, strict=True):
        row[f.NS_A_BYTE], row[f.OVERHEAD] = SECOND / medium.rate, medium.overhead
        row[f.LIMIT] = -1.0 if medium.limit is None else medium.limit
        row[f.AT_ONCE], row[f.BY_PRIORITY] = medium in at_once, medium.order == "priority"
        row[f.LIFESPANS], sizes = medium in mortal, dict(medium.sizes)
        row[f.SIZE_OF :] = [sizes.get(kind, -1.0) for kind in ("request", "reply", "command", "report", "share")]
    return rows


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
        fields = (config.obs_delay, config.act_delay, config.msg_delay, config.loss)
        self._of.append([self._number(value) if isinstance(value, Source) else -1 for value in fields])

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


def hierarchy_tables(model: Model, lanes: Lanes, edges: Sequence[Edge], reports: Sequence[bool]) -> Table:
    """All that is the same for every lane and schedule; `reports`: whose effects are reported, by rank."""
    hierarchy, layout, specs = model.hierarchy, model.layout, model.specs
    ranks, deciders = range(len(hierarchy)), model.observers
    decides = np.zeros(len(hierarchy), dtype=np.int64)
    decides[list(deciders)] = np.arange(len(deciders)) + 1
    commanding = [agent.protocol is not None for agent in hierarchy.agents]
    children = [[c for c in hierarchy.children[r] if specs[c].size] if commanding[r] else [] for r in ranks]
    reported = [row.reported.columns.tolist() for row in layout.rows]
    sums = {column: place for place, column in enumerate(layout.per_step.tolist())}
    choices = [lanes.choices_of(rank) for rank in ranks]
    return {
        "place": np.array(lanes.position, dtype=np.int64), "clock": np.array(model.clocks, dtype=np.int64),
        "parent": np.array(hierarchy.parent, dtype=np.int64), "decides": decides,
        "deciders": np.array(deciders, dtype=np.int64), "reports": np.array(reports, dtype=np.uint8),
        "sized": np.array([spec.size > 0 for spec in specs], dtype=np.uint8),
        "hashes": hierarchy.hashes,
        "elements": np.cumsum([0, *(spec.size for spec in specs)], dtype=np.int64),
        "choices": np.array([(span.start, span.stop) for span in choices], dtype=np.int64).reshape(-1, 2),
        "sums": layout.per_step.astype(np.int64),
        **_listed("child", children), **_listed("reported", reported),
        "payload": np.array([row.reported.size for row in layout.rows], dtype=np.int64),
        **_listed("follower", [[r for r in ranks if model.clocks[r] == c != r] for c in ranks]),
        "reported_sum": np.array([sums.get(c, -1) for row in reported for c in row], dtype=np.int64),
        **_observed(model, sums), **_edges(edges, len(hierarchy)),
    }  # fmt: skip


def _listed(name: str, lists: Sequence[Sequence[int]]) -> Table:
    """Lists one after another, and where each begins."""
    return {
        f"first_{name}": np.cumsum([0, *map(len, lists)], dtype=np.int64),
        name: np.array([one for each in lists for one in each], dtype=np.int64),
    }


def _observed(model: Model, sums: dict[int, int]) -> Table:
    """What each rank's observation holds; of those that do not decide nothing."""
    plan = model.plan
    views = [plan.views[r] if r in model.observers else None for r in range(len(model.hierarchy))]
    columns = [[] if view is None else view.columns.tolist() for view in views]
    tails = [plan.padding.tails[r] if view is not None else np.zeros(0, np.float32) for r, view in enumerate(views)]
    own = [0 if view is None else view.own for view in views]
    tables: Table = {
        **_listed("observed", columns),
        **_listed("source", [[] if view is None else view.sources.tolist() for view in views]),
        "own": np.array(own, dtype=np.int64),
        "own_sum": np.array([sums.get(c, -1) for each in columns for c in each], dtype=np.int64),
        "first_tail": np.cumsum([0, *map(len, tails)], dtype=np.int64), "tail": np.concatenate(tails),
        "ages": np.array([plan.observe_age + plan.by_wrong_clocks], dtype=np.uint8),
        **_relative([None if view is None else view.relative for view in views]), **_hiding(plan, views),
    }  # fmt: skip
    noises = [None if view is None else view.noise for view in views]
    noisy = [(noise, view.columns) for noise, view in zip(noises, views, strict=True) if noise and view]
    return tables | {
        "first_noise": np.cumsum([0, *(len(noise.at) if noise else 0 for noise in noises)], dtype=np.int64),
        **noise_tables([noise for noise, _ in noisy], [noise.at for noise, _ in noisy],
                       [columns[noise.at] for noise, columns in noisy]),
    }  # fmt: skip


def _relative(each: Sequence[NDArray[np.int64] | None]) -> Table:
    """Places in the observation, and those of what is subtracted there, by rank."""
    pairs = [np.zeros((0, 2), np.int64) if relative is None else relative.T for relative in each]
    return {
        "first_relative": np.cumsum([0, *map(len, pairs)], dtype=np.int64),
        "relative": np.ascontiguousarray(np.concatenate(pairs)),
    }


def _hiding(plan: ObservationPlan, views: Sequence[ObserverView | None]) -> Table:
    """Places in the observation that may be hidden, with the columns that say so, and what stands there then (V11).

    `absolute_sight`: likewise, of each that is relative; -1: nothing hides it. `flag`: the columns that are shown.
    """
    hidden = [[] if view is None else view.hides.T.tolist() for view in views]
    columns = [dict(each) for each in hidden]
    relative = [[] if view is None else view.relative[0].tolist() for view in views]
    hides = _listed("hidden", hidden)
    return {
        "first_hidden": hides["first_hidden"], "hidden": hides["hidden"].reshape(-1, 2),
        "instead": np.concatenate([np.zeros(0), *(view.instead for view in views if view)]).astype(np.float32),
        "absolute_sight": np.array(
            [of.get(place, -1) for of, places in zip(columns, relative, strict=True) for place in places], np.int64
        ),
        **_listed("flag", [[] if view is None else plan.flags(view.rank) for view in views]),
    }  # fmt: skip


def _edges(edges: Sequence[Edge], agents: int) -> Table:
    """Who tells whom what; the edges of one slot of an inbox lie side by side."""
    outgoing: list[list[int]] = [[] for _ in range(agents)]
    table = np.zeros((len(edges), f.EDGE_NUMBERS), dtype=np.int64)
    received = 0
    for e, edge in enumerate(edges):
        outgoing[edge.sender].append(e)
        size, target = edge.source.stop - edge.source.start, edge.target
        meeting = [k for k, other in enumerate(edges) if other.target == target]
        table[e] = (
            edge.source.start,
            size,
            target.start,
            target.stop - target.start,
            received,
            meeting[0],
            meeting[-1] + 1,
            edge.flag,
            edge.receiver,
        )
        received += size
    causes = np.array([h(edge.route.cause) for edge in edges], dtype=np.uint64)
    listed = _listed("edge", outgoing)
    return {"first_edge": listed["first_edge"], "outgoing": listed["edge"], "edge": table, "edge_cause": causes}
