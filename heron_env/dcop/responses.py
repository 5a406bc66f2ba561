"""A cluster's best responses: to what it was told, and to every colouring of foreign nodes, in one pass."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env.dcop.elimination import Elimination, eliminate
from heron_env.dcop.problem import Assignment, Part
from heron_env.given import all_of, mapping, require_one_of, require_type, several

Floats = NDArray[np.float64]
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
    """The least cost of the part's nodes (penalty times visible conflicts minus preferences), and who attains it.

    All assignments that do, in product order, where there are at most 3 ** 9 to go through; one of them otherwise.

    Raises:
        ConfigError: the part is too large and too dense for elimination; what is no node or no colour.
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
    """The first of `best_responses`."""
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
    """What my best response would cost me for every colouring of foreign nodes.

    Attributes:
        part: mine.
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
        """My best response if the kept nodes had these colours."""
        codes = tuple(self.part.domain.index(configuration[node]) for node in self.kept)
        return _named(self.part, self.responses[:, np.ravel_multi_index(codes, self.net.shape) if codes else 0])


def counterfactuals(
    part: Part,
    kept: Sequence[str],
    told: Assignment,
    forced: Assignment | None = None,
    bans: Bans | None = None,
) -> Counterfactuals:
    """The table for all colourings of the foreign nodes `kept`; the others are as they were told.

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
