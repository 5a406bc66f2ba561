"""The exchange: what the agents of one environment have told each other, by horizontal protocols, and where it goes.

A slot of an inbox holds the mean of what its edges brought last: an edge of a StateShare has a slot of its own, those
of a StateAverage that meet in a receiver have one together. `bincount` adds in the order of the edges, one by one, so
that both clocks find the same bits, whatever arrives first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout
from heron_env.envs.edges import Edge, compile_edges
from heron_env.errors import ConfigError

Floats = NDArray[np.float64]
UNHEARD = -1


@dataclass(frozen=True, slots=True, eq=False)
class _Slot:
    """Columns of one inbox that the values of some edges meet in: `part[i]` says where the i-th of them belongs."""

    edges: slice
    values: slice
    part: NDArray[np.int64]
    columns: slice
    bounds: tuple[Floats, Floats, NDArray[np.bool_]]


class Exchange:
    """Delivers in the synchronous clock (`deliver`); takes what has arrived in the event-driven one (`receive`).

    Attributes:
        edges: those of one slot side by side, in the order in which they count; empty without protocols.
        outgoing: by rank of the sender, its edges.
    """

    def __init__(self, edges: Sequence[Edge], layout: Layout, agents: int) -> None:
        self.edges = tuple(edges)
        outgoing: list[list[Edge]] = [[] for _ in range(agents)]
        for edge in self.edges:
            outgoing[edge.sender].append(edge)
        self.outgoing = tuple(map(tuple, outgoing))
        sizes = [edge.source.stop - edge.source.start for edge in self.edges]
        stops = np.cumsum([0, *sizes]).tolist()
        self._kept = [slice(a, a + size) for a, size in zip(stops, sizes, strict=False)]
        self._slot_of: list[_Slot] = []
        for _, meeting in groupby(self.edges, lambda edge: (edge.target.start, edge.target.stop)):
            together = list(meeting)
            self._slot_of += [self._slot(together, layout)] * len(together)
        self._senders = np.asarray([edge.sender for edge in self.edges], dtype=np.int64)
        self._edge_of = np.repeat(np.arange(len(self.edges)), sizes)
        self._sources = _columns(edge.source for edge in self.edges)
        self._targets, self._cell = np.unique(_columns(edge.target for edge in self.edges), return_inverse=True)
        self._bounds = layout.low[self._targets], layout.high[self._targets], layout.whole[self._targets]
        self._heard = np.zeros(len(self._sources))
        self._newest = np.full(len(self.edges), UNHEARD, dtype=np.int64)

    def _slot(self, edges: Sequence[Edge], layout: Layout) -> _Slot:
        first, last, columns = edges[0].index, edges[-1].index, edges[0].target
        return _Slot(
            slice(first, last + 1),
            slice(self._kept[first].start, self._kept[last].stop),
            np.tile(np.arange(columns.stop - columns.start), len(edges)),
            columns,
            (layout.low[columns], layout.high[columns], layout.whole[columns]),
        )

    @classmethod
    def of(cls, hierarchy: Hierarchy, layout: Layout) -> Exchange:
        """The exchange of an environment; raises what `compile_edges` does."""
        return cls(compile_edges(hierarchy, layout), layout, len(hierarchy))

    def reset(self) -> None:
        """Nobody has been heard."""
        self._heard[:] = 0.0
        self._newest[:] = UNHEARD

    def deliver(self, step: int, sending: Sequence[bool], truth: Floats) -> None:
        """Write what everyone (`sending`, by rank) tells at the end of `step`; all is read before any is written."""
        tells = np.asarray(sending)[self._senders]
        np.copyto(self._heard, truth[self._sources], where=tells[self._edge_of])
        self._newest[tells] = step
        counts = np.bincount(self._cell, weights=self._newest[self._edge_of] > UNHEARD)
        means = np.bincount(self._cell, weights=self._heard) / np.maximum(counts, 1.0)
        known = counts > 0
        truth[self._targets[known]] = _bounded(means, *self._bounds)[known]

    def receive(self, index: int, step: int, values: Floats, *arrays: Floats) -> None:
        """Take what edge `index` told at the end of `step`, unless something newer came over it before."""
        if step <= self._newest[index]:
            return
        self._newest[index] = step
        self._heard[self._kept[index]] = values
        slot = self._slot_of[index]
        count = np.count_nonzero(self._newest[slot.edges] > UNHEARD)
        means = _bounded(np.bincount(slot.part, weights=self._heard[slot.values]) / count, *slot.bounds)
        for array in arrays:
            array[slot.columns] = means

    def state(self) -> dict[str, Any]:
        """What each edge brought last, and when: plain lists."""
        return {"heard": self._heard.tolist(), "newest": self._newest.tolist()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state()`. Raises ConfigError if it is of another exchange."""
        if (len(state["heard"]), len(state["newest"])) != (len(self._heard), len(self._newest)):
            raise ConfigError(
                f"set_state(): the state has {len(state['newest'])} edges between neighbours with "
                f"{len(state['heard'])} values, this environment {len(self._newest)} with {len(self._heard)}; "
                "build them alike"
            )
        self._heard[:] = state["heard"]
        self._newest[:] = state["newest"]


def _bounded(values: Floats, low: Floats, high: Floats, whole: NDArray[np.bool_]) -> Floats:
    """`values`, in place, within the bounds and whole where they must be."""
    np.minimum(np.maximum(values, low, out=values), high, out=values)
    return np.rint(values, out=values, where=whole)


def _columns(slices: Iterable[slice]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *(np.arange(part.start, part.stop) for part in slices)])
