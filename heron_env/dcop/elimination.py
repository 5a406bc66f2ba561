"""Bucket elimination (Dechter, Artificial Intelligence 113, 1999): exact, by minimising out one node after another.

Nodes that are kept are never minimised out: what is left is a table of the least cost for each of their colourings,
all of them in one pass. The order is min-fill. Costs are float64; equal ones go to the first colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError

Floats = NDArray[np.float64]
Scope = tuple[int, ...]
MOST_ENTRIES: Final = 2**25
"""Of one table: 256 MiB."""


@dataclass(frozen=True)
class Bucket:
    """A node that was minimised out: its best colour for each colouring of the nodes that its costs depend on."""

    node: int
    scope: Scope
    best: NDArray[np.int8]


@dataclass(frozen=True)
class Elimination:
    """The least cost for each colouring of the kept nodes, `[colours] * kept`, and how to find who attains it."""

    kept: Scope
    least: Floats
    buckets: tuple[Bucket, ...]
    nodes: int

    def assignments(self) -> NDArray[np.int8]:
        """Best colours of all nodes for each colouring of the kept ones, in product order: `[nodes, least.size]`."""
        found = np.zeros((self.nodes, self.least.size), dtype=np.int8)
        if self.kept:
            found[list(self.kept)] = np.indices(self.least.shape, dtype=np.int8).reshape(len(self.kept), -1)
        for bucket in reversed(self.buckets):
            found[bucket.node] = bucket.best[tuple(found[node] for node in bucket.scope)]
        return found


def eliminate(unary: Floats, ends: NDArray[Any], penalty: float, kept: Sequence[int] = ()) -> Elimination:
    """Minimise the sum of `unary[node, colour]` and `penalty` for each edge of `ends` `[2, edges]` with equal ends.

    Raises:
        ConfigError: a table would have more than MOST_ENTRIES entries.
    """
    nodes, colours = unary.shape
    order = _min_fill(nodes, ends, kept, colours)
    equal = penalty * np.eye(colours)
    tables: dict[int, tuple[Scope, Floats]] = {node: ((node,), unary[node]) for node in range(nodes)}
    pairs = (tuple(sorted(pair)) for pair in ends.T.tolist())
    tables |= {nodes + number: (pair, equal) for number, pair in enumerate(pairs)}
    touching: list[set[int]] = [{node} for node in range(nodes)]
    for name, (scope, _) in tables.items():
        for node in scope:
            touching[node].add(name)
    buckets = []
    for name, node in enumerate(order, start=len(tables)):
        scope, joined = _joined(tables[old] for old in sorted(touching[node]))
        for old in touching[node]:
            for other in tables.pop(old)[0]:
                if other != node:
                    touching[other].discard(old)
        axis = scope.index(node)
        rest = scope[:axis] + scope[axis + 1 :]
        buckets.append(Bucket(node, rest, joined.argmin(axis=axis).astype(np.int8)))
        tables[name] = rest, joined.min(axis=axis)
        for other in rest:
            touching[other].add(name)
    scope, least = _joined(tables.values())
    by_kept = least.transpose([scope.index(node) for node in kept])  # every kept node is in: it has a unary table
    return Elimination(tuple(kept), by_kept, tuple(buckets), nodes)


def _joined(tables: Iterable[tuple[Scope, Floats]]) -> tuple[Scope, Floats]:
    """The sum of tables over all the nodes that any of them is over, in their order."""
    given = list(tables)
    scope = tuple(sorted({node for nodes, _ in given for node in nodes}))
    shaped = (
        np.expand_dims(table, tuple(axis for axis, node in enumerate(scope) if node not in nodes))
        for nodes, table in given  # scopes are ascending: no axis changes its place
    )
    return scope, np.asarray(reduce(np.add, shaped, np.zeros((1,) * len(scope))))


def _min_fill(nodes: int, ends: NDArray[Any], kept: Sequence[int], colours: int) -> list[int]:
    """All nodes but the kept ones; next is the one that joins the fewest of its neighbours anew, first of equals."""
    near: list[set[int]] = [set() for _ in range(nodes)]
    for u, v in ends.T.tolist():
        near[u].add(v)
        near[v].add(u)

    def fill(node: int) -> int:
        around = near[node]
        return len(around) * (len(around) - 1) - sum(len(around & near[other]) for other in around)

    left = {node: fill(node) for node in range(nodes) if node not in set(kept)}
    order = []
    while left:
        node = min(left, key=lambda one: (left[one], one))
        around = near[node]
        if colours ** (len(around) + 1) > MOST_ENTRIES:
            raise ConfigError(
                f"elimination: a table over {len(around) + 1} nodes of {colours} colours has more than "
                f"{MOST_ENTRIES:,} entries; take algo='cpsat' for the optimum, or 'dsa'"
            )
        del left[node]
        order.append(node)
        stale = set(around)
        for other in around:
            near[other] |= around
            near[other] -= {other, node}
            stale |= near[other]
        for other in stale & left.keys():
            left[other] = fill(other)
    return order
