"""The exchange between agents of one environment, in all lanes at once: see Exchange for what it means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import Layout
from heron_env.envs.exchange import UNHEARD, Edge

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class BatchExchange:
    """What each edge brought last, in each lane; `bincount` adds in the order of the edges, lane by lane."""

    def __init__(self, edges: Sequence[Edge], layout: Layout, lanes: int) -> None:
        self._senders = np.asarray([edge.sender for edge in edges], dtype=np.int64)
        sizes = [edge.source.stop - edge.source.start for edge in edges]
        self._edge_of = np.repeat(np.arange(len(edges)), sizes)
        self._sources = _columns(edge.source for edge in edges)
        self._targets, cell = np.unique(_columns(edge.target for edge in edges), return_inverse=True)
        self._cells = (np.arange(lanes)[:, None] * len(self._targets) + cell).reshape(-1)
        self._low, self._high = layout.low[self._targets], layout.high[self._targets]
        self._whole = layout.whole[self._targets]
        self._heard = np.zeros((lanes, len(self._sources)))
        self._newest = np.full((lanes, len(edges)), UNHEARD, dtype=np.int64)

    def reset(self, lanes: Bools) -> None:
        """Nobody has been heard in `lanes` `[B]`."""
        self._heard[lanes] = 0.0
        self._newest[lanes] = UNHEARD

    def deliver(self, steps: Ints, sending: Bools, truth: Floats) -> None:
        """Write what everyone tells at the end of `steps` `[B]` into `truth` `[B, columns]`; all is read first.

        `sending` `[B, agents]`, by rank: who was in the step; in a lane that stands still, nobody.
        """
        tells = sending[:, self._senders]
        np.copyto(self._heard, truth[:, self._sources], where=tells[:, self._edge_of])
        np.copyto(self._newest, steps[:, None], where=tells)
        shape = len(truth), len(self._targets)
        known = self._newest[:, self._edge_of] > UNHEARD
        counts = np.bincount(self._cells, weights=known.reshape(-1), minlength=shape[0] * shape[1]).reshape(shape)
        sums = np.bincount(self._cells, weights=self._heard.reshape(-1), minlength=shape[0] * shape[1]).reshape(shape)
        means = np.minimum(np.maximum(sums / np.maximum(counts, 1.0), self._low), self._high)
        np.rint(means, out=means, where=self._whole)
        truth[:, self._targets] = np.where(counts > 0, means, truth[:, self._targets])


def _columns(slices: Iterable[slice]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *(np.arange(part.start, part.stop) for part in slices)])
