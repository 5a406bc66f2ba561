"""Sequences for a recurrent network: what one agent decided in a row within an episode, cut into windows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WARM_UP, LENGTH = 8, 16
"""Decisions on which a memory warms up before a window, and the most that are learned from in one."""
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def windows(slot: Ints, first: Bools, known: Bools, wanted: Bools) -> tuple[Ints, Bools]:
    """Numbers of decisions `[t, n]`, a window in each column, and which of them are learned from.

    Decisions `[m]` stand in the order in which they fell. Each wanted one is in one window as such; before it stand up
    to WARM_UP others of its agent and episode. Short windows are filled up with their last decision.

    Args:
        slot: whose each decision is.
        first: does an episode begin with it?
        known: others are left out.
        wanted: those to learn from; in each run behind all that are not.
    """
    order = np.flatnonzero(known)
    order = order[np.argsort(slot[order], kind="stable")]
    if not len(order):
        return np.zeros((1, 0), dtype=np.int64), np.zeros((1, 0), dtype=bool)
    begins = first[order] | np.append(True, np.diff(slot[order]) != 0)
    start = np.flatnonzero(begins)
    length = np.diff(np.append(start, len(order)))
    own = np.add.reduceat(wanted[order].astype(np.int64), start)
    pieces = -(-own // LENGTH)
    run = np.repeat(np.arange(len(start)), pieces)
    number = np.arange(len(run)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    low = length[run] - own[run] + number * LENGTH  # places in the run: the first that is learned from, and behind it
    high = np.minimum(low + LENGTH, length[run])
    warm = np.maximum(low - WARM_UP, 0)
    place = warm + np.arange(int((high - warm).max(initial=1)))[:, None]
    mine = (place >= low) & (place < high)
    return order[start[run] + np.minimum(place, high - 1)], mine


def last_of_each(slot: Ints) -> Ints:
    """Numbers of the last WARM_UP decisions of each agent, in the order in which they fell."""
    order = np.argsort(slot, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(slot[order])), len(order) - 1) + 1
    behind = np.repeat(ends, np.diff(np.append(0, ends))) - np.arange(len(order))
    return np.sort(order[behind <= WARM_UP])
