"""Algorithms over all nodes at once: a problem as arrays, local search, Max-Sum. A cycle is one pass over the nodes."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.dcop.problem import Codes, Problem

Floats = NDArray[np.float64]


class Costs:
    """Costs of a problem for algorithms that go over all nodes at once."""

    def __init__(self, problem: Problem) -> None:
        self.nodes, self.colours = problem.unary.shape
        self.penalty, self.unary = problem.conflict_penalty, problem.unary
        self.tail = np.concatenate(problem.ends).astype(np.int64)
        """Each edge twice, once from each end: where it starts, `[2 * edges]`."""
        self.head = np.concatenate(problem.ends[::-1]).astype(np.int64)
        self.bound = float(self.unary.min(axis=1).sum())
        """No assignment costs less: no conflicts, and every node as it likes best."""

    @cached_property
    def slots(self) -> NDArray[np.int64]:
        """`tail` as the first of its node's entries in a table `[nodes, colours]`."""
        return np.asarray(self.tail * self.colours)

    def of_colours(self, codes: NDArray[Any]) -> Floats:
        """What each colour costs each node while its neighbours keep theirs, `[nodes, colours]`."""
        equal = np.bincount(self.slots + codes[self.head], minlength=self.unary.size)
        return self.penalty * equal.reshape(self.unary.shape) + self.unary

    def total(self, codes: NDArray[Any]) -> float:
        """Of an assignment `[nodes]`: penalty times conflicts minus preferences."""
        own = float(self.unary[np.arange(self.nodes), codes].sum())
        return self.penalty * int((codes[self.tail] == codes[self.head]).sum() // 2) + own

    def any_start(self, draws: np.random.Generator) -> Codes:
        """Each node one of the colours that it may take, `[nodes]`."""
        return one_of(np.isfinite(self.unary), draws)


def one_of(allowed: NDArray[np.bool_], draws: np.random.Generator) -> Codes:
    """In each row one of the columns that are allowed, all alike likely, `[rows]`."""
    return np.asarray(np.where(allowed, draws.random(allowed.shape), -1.0).argmax(axis=1), dtype=np.int8)


MOVES: Final = 0.7
"""Probability with which a node of dsa moves that could improve, or is in conflict and could change without loss."""
DRIFTS: Final = 0.2
"""The same of a node without a conflict that could change without loss."""


def greedy(problem: Problem) -> Codes:
    """Colours `[nodes]`: next is the node that sees the most colours, then the one with most neighbours (DSATUR)."""
    costs, near = problem.unary.copy(), _neighbours(problem)
    codes = np.full(len(near), -1, dtype=np.int8)
    seen: list[set[int]] = [set() for _ in near]
    queue = [(-len(problem.domain) * (node in problem.fixed), -len(near[i]), i) for i, node in enumerate(problem.nodes)]
    heapq.heapify(queue)
    while queue:
        *_, node = heapq.heappop(queue)
        if codes[node] >= 0:
            continue  # an older entry of a node that has seen more since
        code = int(costs[node].argmin())
        codes[node] = code
        for other in near[node]:
            costs[other, code] += problem.conflict_penalty
            if codes[other] < 0 and code not in seen[other]:
                seen[other].add(code)
                heapq.heappush(queue, (-len(seen[other]), -len(near[other]), other))
    return codes


def dsa(costs: Costs, draws: np.random.Generator) -> Iterator[Codes]:
    """Colours `[nodes]` after each cycle, the start first.

    Nodes move to one of the best other colours, with probability MOVES or DRIFTS. Between variant B, whose nodes
    without a conflict stay, and C, where they move like the others: either leaves more conflicts.
    """
    codes, everyone = costs.any_start(draws), np.arange(costs.nodes)
    while True:
        yield codes
        table = costs.of_colours(codes)
        now, least = table[everyone, codes], table.min(axis=1)
        best = table == least[:, None]
        best[everyone, codes] &= best.sum(axis=1) == 1  # another one, if there is another one
        torn = now > costs.unary[everyone, codes]
        moving = draws.random(costs.nodes) < np.where(torn | (now > least), MOVES, DRIFTS)
        codes = np.where(moving, one_of(best, draws), codes)


def mgm(costs: Costs, draws: np.random.Generator) -> Iterator[Codes]:
    """Colours `[nodes]` after each cycle, the start first, until nobody can gain.

    Of neighbours that could gain only the one that would gain most moves, of equals the first.
    """
    codes, everyone = costs.any_start(draws), np.arange(costs.nodes)
    by_tail = np.argsort(costs.tail, kind="stable")
    heads, tails = costs.head[by_tail], costs.tail[by_tail]
    firsts = np.flatnonzero(np.diff(tails, prepend=-1))
    while True:
        yield codes
        table = costs.of_colours(codes)
        gain = table[everyone, codes] - table.min(axis=1)
        if not (gain > 0).any():
            return
        rank = np.empty(costs.nodes, dtype=np.int64)
        rank[np.lexsort((-everyone, gain))] = everyone
        rival = np.full(costs.nodes, -1)
        rival[tails[firsts]] = np.maximum.reduceat(rank[heads], firsts) if len(firsts) else -1
        moving = (gain > 0) & (rank > rival)
        codes = np.where(moving, table.argmin(axis=1), codes).astype(np.int8)


def _neighbours(problem: Problem) -> list[list[int]]:
    near: list[list[int]] = [[] for _ in problem.nodes]
    for u, v in problem.ends.T.tolist():
        near[u].append(v)
        near[v].append(u)
    return near


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
