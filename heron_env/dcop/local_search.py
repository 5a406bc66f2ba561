"""Local search: nodes look at their neighbours' colours and improve their own. A cycle is one pass over all nodes."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final

import numpy as np

from heron_env.dcop.costs import Costs, one_of
from heron_env.dcop.problem import Codes, Problem

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
