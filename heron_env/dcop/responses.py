"""A cluster's best responses: to what it was told, and to every colouring of foreign nodes, in one pass.

Bucket elimination (Dechter, Artificial Intelligence 113, 1999): exact, by minimising out one node after another.
Nodes that are kept are never minimised out: what is left is a table of the least cost for each of their colourings,
all of them in one pass. The order is min-fill. Costs are float64; equal ones go to the first colour.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.dcop.problem import Assignment, Part
from heron_env.errors import ConfigError
from heron_env.given import all_of, mapping, require_one_of, require_type, several

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


Codes = NDArray[np.int8]
FEW: Final = 3**9
"""Assignments of a part that are gone through one by one; those of larger parts are found by elimination."""


Bans = Mapping[str, Collection[str]]


def own_costs(part: Part, told: Assignment, bound: Assignment, bans: Bans) -> Floats:
    """What each colour costs each own node apart from inner edges, `[nodes, colours]`; inf: it must not be taken.

    Args:
        part: the cluster's.
        told: believed colours of foreign nodes; unknown ones cost nothing.
        bound: own nodes that have no choice; a fixed node keeps its fixed colour.
        bans: own node to colours that it must not take, unless it is bound, or nothing else is left to it.
    """
    number = {colour: code for code, colour in enumerate(part.domain)}
    row = {node: code for code, node in enumerate(part.nodes)}
    costs = np.zeros((len(row), len(number)))
    for node, gains in part.preferences.items():
        for colour, gain in gains.items():
            costs[row[node], number[colour]] -= gain
    for own, foreign in part.outer:
        if foreign in told:
            costs[row[own], number[told[foreign]]] += part.conflict_penalty
    chosen = {**bound, **part.fixed}
    for node, banned in bans.items():
        if node not in chosen and not set(part.domain).issubset(banned):
            costs[row[node], [number[colour] for colour in banned]] = np.inf
    for node, colour in chosen.items():
        costs[row[node], np.arange(len(number)) != number[colour]] = np.inf
    return costs


@lru_cache(maxsize=64)
def _listed(nodes: int, colours: int, inner: tuple[tuple[int, int], ...]) -> tuple[Codes, Floats]:
    """All assignments in product order `[assignments, nodes]`, and the inner conflicts of each."""
    rows = np.indices((colours,) * nodes, dtype=np.int8).reshape(nodes, -1).T.copy()
    conflicts = np.zeros(len(rows))
    for u, v in inner:
        conflicts += rows[:, u] == rows[:, v]
    return rows, conflicts


def _numbered(part: Part) -> tuple[tuple[int, int], ...]:
    row = {node: code for code, node in enumerate(part.nodes)}
    return tuple((row[u], row[v]) for u, v in part.inner)


def best_responses(
    part: Part, told: Assignment, forced: Assignment | None = None, bans: Bans | None = None
) -> tuple[float, list[dict[str, str]]]:
    """Return the least cost of the part's nodes, and the assignments with it.

    Cost: penalty times visible conflicts minus preferences. All assignments if at most 3 ** 9 are to try, else one.

    Raises:
        ConfigError: the part is too large and dense for elimination; an unknown node or colour.
    """
    costs = own_costs(*_checked(part, told, forced, bans))
    nodes, colours = costs.shape
    if colours**nodes <= FEW:
        rows, conflicts = _listed(nodes, colours, _numbered(part))
        total = part.conflict_penalty * conflicts
        for node in range(nodes):
            total += costs[node, rows[:, node]]
        least = float(total.min())
        best = rows[total == least]
    else:
        ends = np.array(_numbered(part), dtype=np.int32).reshape(-1, 2).T
        found = eliminate(costs, ends, part.conflict_penalty)
        least, best = float(found.least), found.assignments().T
    return least, [_named(part, row) for row in best]


def best_response(
    part: Part, told: Assignment, forced: Assignment | None = None, bans: Bans | None = None
) -> tuple[float, dict[str, str]]:
    """Return the first of `best_responses`."""
    least, found = best_responses(part, told, forced, bans)
    return least, found[0]


def _checked(
    part: Part, told: Assignment, forced: Assignment | None, bans: Bans | None
) -> tuple[Part, Assignment, Assignment, Bans]:
    """All of them, with known colours of known nodes. Raises ConfigError."""
    require_type(f"{part!r:.60}", part, Part, "a Part, as problem.part(cluster) gives it")
    told, forced = mapping(told, "told"), mapping({} if forced is None else forced, "forced")
    bans = mapping({} if bans is None else bans, "bans")
    colours = [("told", node, colour) for node, colour in told.items() if node in part.owners]
    colours += [("forced", node, colour) for node, colour in forced.items()]
    colours += [("bans", node, colour) for node, own in bans.items() for colour in several(own, f"bans[{node!r:.60}]")]
    for what, node, colour in colours:
        if what != "told":
            require_one_of(f"{what}: {node!r:.60}", node, part.nodes)
        require_one_of(f"{what}[{node!r:.60}]={colour!r:.60}", colour, part.domain)
    return part, told, forced, bans


def _named(part: Part, codes: Codes) -> dict[str, str]:
    return {node: part.domain[code] for node, code in zip(part.nodes, codes.tolist(), strict=True)}


@dataclass(frozen=True)
class Counterfactuals:
    """Costs of a part's best responses for every colouring of foreign nodes.

    Attributes:
        part: the part.
        kept: the foreign nodes.
        net: penalty times visible conflicts minus preferences, `[colours] * kept`.
    """

    part: Part
    kept: tuple[str, ...]
    net: Floats
    _elimination: Elimination

    @cached_property
    def responses(self) -> Codes:
        """Of own nodes to every colouring, in product order: numbers of colours `[nodes, colours ** kept]`."""
        return self._elimination.assignments()[: len(self.part.nodes)]

    @cached_property
    def penalty(self) -> Floats:
        """Penalty times visible conflicts of the best responses, `[colours] * kept`."""
        if not self.part.preferences:
            return self.net
        gains = np.zeros(self.net.size)
        for node, codes in zip(self.part.nodes, self.responses, strict=True):
            told = self.part.preferences.get(node, {})
            gains += np.array([told.get(colour, 0.0) for colour in self.part.domain])[codes]
        return self.net + gains.reshape(self.net.shape)

    def response(self, configuration: Assignment) -> dict[str, str]:
        """Return the best response if the foreign nodes had these colours."""
        codes = tuple(self.part.domain.index(configuration[node]) for node in self.kept)
        return _named(self.part, self.responses[:, np.ravel_multi_index(codes, self.net.shape) if codes else 0])


def counterfactuals(
    part: Part,
    kept: Sequence[str],
    told: Assignment,
    forced: Assignment | None = None,
    bans: Bans | None = None,
) -> Counterfactuals:
    """Make the table for all colourings of the foreign nodes `kept`; other nodes keep their reported colours.

    Raises:
        ConfigError: the table would be too large.
    """
    part, told, forced, bans = _checked(part, told, forced, bans)
    kept = all_of(kept, "kept", str)
    for node in kept:
        require_one_of(f"kept: {node!r:.60}", node, tuple(part.owners))
    others = {node: colour for node, colour in told.items() if node not in set(kept)}
    own = own_costs(part, others, forced, bans)
    row = {node: code for code, node in enumerate((*part.nodes, *kept))}
    unary = np.concatenate([own, np.zeros((len(kept), own.shape[1]))])
    pairs = [(row[u], row[v]) for u, v in (*part.inner, *part.outer) if v in row]
    ends = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    found = eliminate(unary, ends, part.conflict_penalty, kept=range(len(part.nodes), len(row)))
    return Counterfactuals(part, tuple(kept), found.least, found)
