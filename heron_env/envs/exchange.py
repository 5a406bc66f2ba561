"""The exchange: who tells whom what by horizontal protocols, as ranks and columns, and where it goes.

A slot of an inbox holds the mean of what its edges brought last: an edge of a StateShare has a slot of its own, those
of a StateAverage that meet in a receiver have one together. `bincount` adds in the order of the edges, one by one, so
that both clocks find the same bits, whatever arrives first.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import CoordinatorAgent
from heron_env.agents.horizontal import HorizontalProtocol, Inbox, Topology, as_protocols
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import RAISED, Edge, Layout, Route, Row, spans_of
from heron_env.core.quantity import Quantity, clip
from heron_env.core.rule import RULE_NAMES, rule_spec
from heron_env.engine.arrays import addresses
from heron_env.engine.cache import cached_file
from heron_env.engine.model import Native
from heron_env.engine.tables import breadth_first
from heron_env.errors import ConfigError, FeatureError, HierarchyError, RuleError, did_you_mean

Floats = NDArray[np.float64]
UNHEARD = -1
KERNEL = Path(__file__).with_name("exchange_kernel.py")
FORMS: dict[str, tuple[str, int]] = {
    "places": ("int64", 1), "flags": ("int64", 1),  # of the edges: sender's position in the engine, column or -1
    "edge_of": ("int64", 1), "sources": ("int64", 1),  # of the values that are told: edge, column of the truth
    "targets": ("int64", 1), "low": ("float64", 1), "high": ("float64", 1), "integer": ("bool_", 1),  # of inboxes
    "first": ("int64", 1), "meeting": ("int64", 1),  # those that meet in target c: meeting[first[c] : first[c + 1]]
    "heard": ("float64", 2), "newest": ("int64", 2),  # of each lane: values, and the step that an edge brought last
}  # fmt: skip
"""Element type and number of axes of the arrays that the kernel reads."""


@dataclass(frozen=True, slots=True, eq=False)
class _Slot:
    """Columns of one inbox that the values of some edges meet in: `part[i]` says where the i-th of them belongs."""

    edges: slice
    values: slice
    part: NDArray[np.int64]
    columns: slice
    bounds: tuple[Floats, Floats, NDArray[np.bool_]]


class Exchange:
    """What each edge brought last in B environments: of one, or of the lanes of a batch.

    Delivers in the synchronous clock (`deliver`); takes what has arrived in the event-driven one (`receive`).

    Attributes:
        edges: those of one slot side by side, in the order in which they count; empty without protocols.
        outgoing: by rank of the sender, its edges.
    """

    def __init__(self, edges: Sequence[Edge], layout: Layout, hierarchy: Hierarchy, lanes: int = 1) -> None:
        self.edges = tuple(edges)
        outgoing: list[list[Edge]] = [[] for _ in range(len(hierarchy))]
        for edge in self.edges:
            outgoing[edge.sender].append(edge)
        self.outgoing = tuple(map(tuple, outgoing))
        sizes = [edge.source.stop - edge.source.start for edge in self.edges]
        self._spans = spans_of(sizes)
        self._slot_of: list[_Slot] = []
        for _, meeting in groupby(self.edges, lambda edge: (edge.target.start, edge.target.stop)):
            together = list(meeting)
            self._slot_of += [self._slot(together, layout)] * len(together)
        sources, targets = (_columns(getattr(edge, name) for edge in self.edges) for name in ("source", "target"))
        columns, cell, counts = np.unique(targets, return_inverse=True, return_counts=True)
        self._heard = np.zeros((lanes, len(sources)))
        self._newest = np.full((lanes, len(self.edges)), UNHEARD, dtype=np.int64)
        senders = np.array([edge.sender for edge in self.edges], dtype=np.int64)
        self._arrays = {
            "places": np.argsort(breadth_first(hierarchy))[senders],
            "flags": np.array([edge.flag for edge in self.edges], dtype=np.int64),
            "edge_of": np.repeat(np.arange(len(self.edges)), sizes), "sources": sources, "targets": columns,
            "meeting": np.argsort(cell, kind="stable"), "first": np.cumsum([0, *counts]),
            "low": layout.low[columns], "high": layout.high[columns], "integer": layout.integer[columns],
            "heard": self._heard, "newest": self._newest,
        }  # fmt: skip
        self._table = addresses(FORMS, self._arrays)  # compiled code knows addresses only
        self._at = int(self._table.ctypes.data)

    def _slot(self, edges: Sequence[Edge], layout: Layout) -> _Slot:
        first, last, columns = edges[0].index, edges[-1].index, edges[0].target
        return _Slot(
            slice(first, last + 1),
            slice(self._spans[first].start, self._spans[last].stop),
            np.tile(np.arange(columns.stop - columns.start), len(edges)),
            columns,
            (layout.low[columns], layout.high[columns], layout.integer[columns]),
        )

    @classmethod
    def of(cls, hierarchy: Hierarchy, layout: Layout) -> Exchange:
        """The exchange of an environment; raises what `compile_edges` does."""
        return cls(compile_edges(hierarchy, layout), layout, hierarchy)

    def natives(self) -> tuple[Native, ...]:
        """A step ends: all who were in it tell their neighbours, all is read first. A new episode forgets."""
        if not self.edges:
            return ()
        return Native("deliver", kernel().deliver, self._at), Native("begin", kernel().forget, self._at)

    def leaving(self, sender: int, truth: Floats) -> Iterator[Edge]:
        """Over which edges an agent tells something now; when all have left, what it raised is lowered (V10)."""
        edges = self.outgoing[sender]
        for edge in edges:
            if edge.flag < 0 or truth[edge.flag] >= RAISED:
                yield edge
        for edge in edges:
            if edge.flag >= 0:
                truth[edge.flag] = 0.0

    def receive(self, index: int, step: int, values: Floats, *arrays: Floats) -> None:
        """Take what edge `index` told at the end of `step`, unless something newer came over it before."""
        heard, newest, slot = self._heard[0], self._newest[0], self._slot_of[index]
        if step <= newest[index]:
            return
        newest[index] = step
        heard[self._spans[index]] = values
        count = np.count_nonzero(newest[slot.edges] > UNHEARD)
        low, high, integer = slot.bounds
        means = clip(np.bincount(slot.part, weights=heard[slot.values]) / count, low, high, integer=integer)
        for array in arrays:
            array[slot.columns] = means

    def state(self) -> dict[str, Any]:
        """What each edge brought last, and when: plain lists, of a single environment."""
        return {"heard": self._heard[0].tolist(), "newest": self._newest[0].tolist()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state()`. Raises ConfigError if it is of another exchange."""
        heard, newest = self._heard[0], self._newest[0]
        if (len(state["heard"]), len(state["newest"])) != (len(heard), len(newest)):
            raise ConfigError(
                f"set_state(): the state has {len(state['newest'])} edges between neighbours with "
                f"{len(state['heard'])} values, this environment {len(newest)} with {len(heard)}; build them alike"
            )
        heard[:], newest[:] = state["heard"], state["newest"]


def _columns(slices: Iterable[slice]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *(np.arange(part.start, part.stop) for part in slices)])


@functools.cache
def kernel() -> Any:
    """exchange_kernel.py, compiled once for an installation."""
    return cached_file(KERNEL)


Writers = dict[tuple[int, int], str]
"""(rank of the receiver, first column of an inbox's quantity) -> the protocol that writes it."""


def compile_edges(hierarchy: Hierarchy, layout: Layout) -> list[Edge]:
    """The edges of all protocols that coordinators declare, those of one slot side by side; O(agents + edges).

    Raises HierarchyError for agents that can't talk, FeatureError for quantities they lack or that are too small,
    RuleError for rules that write into an inbox.
    """
    edges: list[Edge] = []
    writers: Writers = {}
    for rank, agent in enumerate(hierarchy.agents):
        _require_untouched(agent, layout.rows[rank])
        if isinstance(agent, CoordinatorAgent):
            for protocol in as_protocols(agent.exchange, repr(agent)):
                if isinstance(protocol, HorizontalProtocol):
                    edges += _Compilation(hierarchy, layout, rank, protocol, len(edges)).edges(writers)
    return edges


def ranks_of(hierarchy: Hierarchy, declarer: int, protocol: Topology) -> list[tuple[int, int]]:
    """(sender, receiver) of each edge of a protocol that the agent of rank `declarer` has, by rank.

    Raises HierarchyError for a hub or an agent that is none of those below it.
    """
    ids, where = hierarchy.ids, f"{hierarchy.agents[declarer]!r}: {protocol!r}"
    direct = [ids[rank] for rank in hierarchy.children[declarer]]
    if protocol.hub is not None and protocol.hub not in direct:
        raise HierarchyError(
            f"{where}: the hub {protocol.hub!r} is none of its subordinates {direct[:12]}."
            f"{did_you_mean(protocol.hub, direct)}"
        )
    last = declarer
    while hierarchy.children[last]:
        last = hierarchy.children[last][-1]
    within = range(declarer + (not protocol.itself), last + 1)
    return [
        (_rank(sender, within, hierarchy, where), _rank(receiver, within, hierarchy, where))
        for sender, receiver in protocol.pairs(direct)
    ]


def _rank(agent: str, within: range, hierarchy: Hierarchy, where: str) -> int:
    index, ids = hierarchy.index, hierarchy.ids
    if agent in index and index[agent] in within:
        return index[agent]
    names = [ids[rank] for rank in within]
    fault = "is not below it; let an agent above both declare this" if agent in index else "does not exist"
    raise HierarchyError(
        f"{where}: the edges name {agent!r}, which {fault}; below it are {names[:12]}.{did_you_mean(agent, names)}"
    )


@dataclass(frozen=True, eq=False)
class _Compilation:
    """One protocol, declared by the agent of rank `declarer`, on its way to edges numbered from `first` on."""

    hierarchy: Hierarchy
    layout: Layout
    declarer: int
    protocol: HorizontalProtocol
    first: int

    @property
    def where(self) -> str:
        return f"{self.hierarchy.agents[self.declarer]!r}: {self.protocol!r}"

    def edges(self, writers: Writers) -> list[Edge]:
        """Its edges, grouped by receiver; `writers` says which quantities other protocols write, and is added to."""
        pairs = ranks_of(self.hierarchy, self.declarer, self.protocol)
        degrees = Counter(receiver for _, receiver in pairs)
        if degrees:
            self._require_slots(*degrees.most_common(1)[0])
        for receiver in degrees:
            start, into = self._find(receiver, self.protocol.into, "receives")
            self._claim(receiver, start, into, writers)
        position: Counter[int] = Counter()
        meetings = []
        for sender, receiver in pairs:
            meetings.append((receiver, self.protocol.slot(position[receiver]), sender))
            position[receiver] += 1
        meetings.sort(key=lambda meeting: meeting[:2])
        return [
            self._edge(self.first + i, sender, receiver, slot) for i, (receiver, slot, sender) in enumerate(meetings)
        ]

    def _require_slots(self, receiver: int, needed: int) -> None:
        protocol = self.protocol
        if protocol.slot(needed - 1) >= protocol.slots:
            has = "1 slot" if protocol.slots == 1 else f"{protocol.slots} slots"
            shape = (needed, *protocol.source.shape)
            raise FeatureError(
                f"{self.where}: {self.hierarchy.ids[receiver]!r} hears {needed} senders, but {protocol.into!r} has "
                f"{has}; declare it with shape={shape}"
            )

    def _find(self, rank: int, quantity: Quantity, does: str) -> tuple[int, Quantity]:
        """First column of a quantity in an agent's row, and the quantity as the agent has it."""
        row, kind = self.layout.rows[rank], self.protocol.owner_of(quantity)
        position = row.find(kind)
        if position is None:
            own = [feature.__name__ for feature in row.features]
            raise FeatureError(
                f"{self.where}: {row.owner_id!r} {does} {quantity!r}, but its features are {own}; add {kind.__name__} "
                "to its `features`, or give edges that leave it out"
            )
        declared = row.features[position].quantities[quantity.name]
        return row.offsets[position] + declared.index, declared

    def _claim(self, receiver: int, start: int, into: Quantity, writers: Writers) -> None:
        if (receiver, start) in writers:
            raise HierarchyError(
                f"{self.where}: {into!r} of {self.hierarchy.ids[receiver]!r} is written by {writers[receiver, start]} "
                "already; give each protocol a quantity of its own"
            )
        writers[receiver, start] = self.where

    def _edge(self, index: int, sender: int, receiver: int, slot: int) -> Edge:
        column, source = self._find(sender, self.protocol.source, "shares")
        start, into = self._find(receiver, self.protocol.into, "receives")
        if not source.observed:
            raise FeatureError(
                f"{self.where}: {source!r} of {self.hierarchy.ids[sender]!r} is bookkeeping (observed=False), which "
                "never travels; share an observed quantity"
            )
        start += slot * source.size
        feature = self.protocol.owner_of(source).feature_name
        ids = self.hierarchy.ids
        route = Route(
            ids[sender], ids[receiver], feature, source.name, source.shape, source.kind != "float", repr(into)
        )
        target = slice(start, start + source.size)
        flag = -1 if self.protocol.when is None else self._find(sender, self.protocol.when, "raises")[0]
        return Edge(index, sender, receiver, slice(column, column + source.size), target, route, flag)


def _require_untouched(agent: Any, row: Row) -> None:
    """Raise RuleError if a rule of the agent writes into an inbox: the cache would not learn of it."""
    if not any(issubclass(feature, Inbox) for feature in row.features):
        return
    for name in RULE_NAMES:
        spec = rule_spec(getattr(type(agent), name, None))
        for q in () if spec is None else spec.writes:
            if q.owner is not None and issubclass(q.owner, Inbox):
                raise RuleError(
                    f"{type(agent).__name__}.{name} writes {q!r}, which is an inbox: only its protocol writes it; "
                    "keep what the agent makes of it in a feature"
                )
