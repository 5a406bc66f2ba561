"""Max-Sum (here: min-sum) on the graph's edges, all messages of a cycle in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from heron_env.dcop.costs import Costs
from heron_env.dcop.problem import Codes

DAMPING: Final = 0.7
"""Share of the old message that a new one keeps."""
TIE: Final = 1e-3
"""Largest random cost of a colour, in conflict penalties: without them all colours of a node look alike for ever."""


def max_sum(costs: Costs, draws: np.random.Generator) -> Iterator[Codes]:
    """Colours `[nodes]` after each cycle, the start first: each node takes the best sum of what its edges told it.

    An edge tells its end what each colour costs there if the other end does its best. Messages are kept for each edge
    and direction, `[2 * edges, colours]`, relative to their least entry.
    """
    own = costs.unary + TIE * costs.penalty * draws.random(costs.unary.shape)
    back = np.roll(np.arange(len(costs.tail)), len(costs.tail) // 2)  # the same edge seen from its other end
    told = np.zeros((len(costs.tail), costs.colours))  # along each tail to head: to the head
    slots = (costs.head * costs.colours)[:, None] + np.arange(costs.colours)
    while True:
        sums = own + np.bincount(slots.ravel(), told.ravel(), minlength=own.size).reshape(own.shape)
        yield sums.argmin(axis=1).astype(np.int8)
        asked = sums[costs.tail] - told[back]
        least = asked.min(axis=1, keepdims=True)
        fresh = _least_elsewhere(asked, costs.penalty)
        told = DAMPING * told + (1.0 - DAMPING) * (fresh - least)


def _least_elsewhere(asked: np.ndarray, penalty: float) -> np.ndarray:
    """For each colour of the head: the tail's least cost, with the penalty if it takes the same colour."""
    two = np.partition(asked, 1, axis=1)[:, :2]
    others = np.where(asked == two[:, :1], two[:, 1:], two[:, :1])
    return np.minimum(asked + penalty, others)
