"""Observation tables: which columns the observers see, side by side, and the noise on them, as arrays for the loops."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.engine.blueprint import Blueprint
from heron_env.observability.noise import ColumnNoise, Seen

LONG_RUN = 6
"""Columns in a row, on average, from which copying runs beats looking up each column."""
ADDITIVE, WHOLE = 1, 2
"""Flags in `noise_law`."""
KEPT_BYTES = 1 << 28
"""Memory for keys of the noise that are kept from step to step, 8 bytes for each noisy element and lane."""


class ObservationTables:
    """Arrays for the loops, by their names there, and where each observer's vector lies.

    Ages of information (observe_age) are read from the column `zero`, which is always 0: in this clock all is fresh.
    What pads a vector is read from there and from the column after it.
    """

    def __init__(self, blueprint: Blueprint, zero: int) -> None:
        plan, layout, observers = blueprint.plan, blueprint.layout, blueprint.observers
        views = [plan.views[rank] for rank in observers]
        sizes, seen_sizes = [plan.size(rank) for rank in observers], [len(view.columns) for view in views]
        ends = np.cumsum([0, *sizes]).tolist()
        self.spans = tuple(slice(a, b) for a, b in pairwise(ends))
        columns = np.full(ends[-1], zero, dtype=np.int64)
        places = np.concatenate([np.zeros(0, np.int64), *map(np.arange, ends[:-1], np.add(ends[:-1], seen_sizes))])
        seen = Seen.joined([view.seen for view in views])
        columns[places] = seen.columns
        for rank, end in zip(observers, ends[1:], strict=True):
            tail = plan.padding.tails[rank]
            columns[end - len(tail) : end] += tail.astype(np.int64)
        self.arrays: dict[str, NDArray[Any]] = {"columns": columns.astype(np.uint32), "runs": _runs(columns)}
        noise = ColumnNoise.of(layout, np.repeat(np.asarray(observers, dtype=np.int64), seen_sizes), seen)
        at = np.zeros(0, np.int64) if noise is None else noise.at
        none = np.zeros(0)
        law = np.zeros(0) if noise is None else noise.additive * ADDITIVE + noise.whole * WHOLE
        self.arrays |= {
            "noise_at": places[at].astype(np.uint32),
            "noise_columns": seen.columns[at].astype(np.uint32),
            "noise_keys": (none if noise is None else noise.keys).astype(np.uint64),
            "noise_reach": none if noise is None else np.array(noise.reach),
            "noise_low": none if noise is None else np.array(noise.low),
            "noise_high": none if noise is None else np.array(noise.high),
            "noise_law": law.astype(np.uint8),
        }

    def kept_keys(self, lanes: int) -> dict[str, np.ndarray[tuple[int, int], np.dtype[np.uint64]]]:
        """Room for the keys of each lane's episode, where they fit, and for which episode they are; none at first."""
        n = len(self.arrays["noise_at"])
        kept = n if 8 * lanes * n <= KEPT_BYTES else 0
        moments = np.full((lanes, 2), np.iinfo(np.uint64).max, dtype=np.uint64)
        return {"noise_kept": np.zeros((lanes, kept), dtype=np.uint64), "noise_moments": moments}

    @property
    def noisy(self) -> bool:
        """Is there noise on any element?"""
        return len(self.arrays["noise_at"]) > 0

    @property
    def floats(self) -> int:
        """Length of all vectors together."""
        return self.spans[-1].stop if self.spans else 0


def _runs(columns: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
    """First column and length of each run of neighbours, uint32 `[runs, 2]`; none where runs are short."""
    cuts = np.flatnonzero(np.diff(columns) != 1) + 1
    starts = np.concatenate([[0], cuts]) if len(columns) else np.zeros(0, dtype=np.int64)
    if not len(starts) or len(columns) < LONG_RUN * len(starts):
        return np.zeros((0, 2), dtype=np.uint32)
    lengths = np.diff(np.append(starts, len(columns)))
    return np.stack([columns[starts], lengths], axis=1).astype(np.uint32)
