"""What a cluster agent weighs in a step: its nodes, what it was told and ordered; costs, greedy and exact answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from heron_env.core.adding import one_by_one
from heron_env.dcop.problem import Assignment, Edge, Part, Problem
from heron_env.dcop.responses import best_responses, own_costs
from heron_env.dcop.solving import solve
from heron_env.errors import ConfigError

Penalties = Mapping[str, float]


@dataclass(frozen=True)
class View:
    """A part of the problem as it looks now.

    Attributes:
        part: the cluster's, its fixed nodes left out.
        told: believed colours of foreign nodes; an unknown one costs nothing.
        bound: own nodes that have no choice.
        banned: own node to colours that it does not take, unless it is bound or nothing else is left.
    """

    part: Part
    told: Assignment
    bound: Assignment
    banned: Mapping[str, frozenset[str]]

    def conflicts(self, colours: Assignment) -> tuple[Edge, ...]:
        """(own node, own or believed node) of the same colour; foreign edges are none of mine."""
        inner = (edge for edge in self.part.inner if colours[edge[0]] == colours[edge[1]])
        return (*inner, *(edge for edge in self.part.outer if colours[edge[0]] == self.told.get(edge[1])))

    def net(self, colours: Assignment) -> float:
        """Penalty times visible conflicts minus preferences of the own nodes."""
        gains = (self._gain(node, colours[node]) for node in self.part.preferences)
        return self.part.conflict_penalty * len(self.conflicts(colours)) - one_by_one(gains)

    def penalties(self, node: str, around: Assignment) -> dict[str, float]:
        """What each colour costs a node beside the neighbours that have one: own in `around`, foreign as told."""
        near = [around.get(other, self.told.get(other)) for other in self.part.neighbours[node]]
        cost = self.part.conflict_penalty
        return {colour: cost * near.count(colour) - self._gain(node, colour) for colour in self.part.domain}

    def _gain(self, node: str, colour: str) -> float:
        gains = self.part.preferences.get(node)
        return gains.get(colour, 0.0) if gains else 0.0  # a preference that nobody stated is none

    def allowed(self, node: str) -> list[str]:
        """Colours that the node may take."""
        if node in self.bound:
            return [self.bound[node]]
        free = [colour for colour in self.part.domain if colour not in self.banned.get(node, ())]
        return free or [*self.part.domain]

    def obeys(self, colours: Assignment) -> bool:
        """Has every node a colour that it may take?"""
        return all(colours[node] in self.allowed(node) for node in {*self.bound, *self.banned})

    def greedy(self) -> tuple[dict[str, str], dict[str, Penalties]]:
        """Node after node the first of the cheapest colours beside those coloured before; and what each would cost."""
        colours: dict[str, str] = {}
        tables: dict[str, Penalties] = {}
        for node in self.part.nodes:
            tables[node] = table = self.penalties(node, colours)
            colours[node] = min(self.allowed(node), key=table.__getitem__)
        return colours, tables

    @cached_property
    def best(self) -> list[dict[str, str]]:
        """The best responses, as `best_responses`; in a part too large for that, the best that a search found."""
        try:
            return best_responses(self.part, self.told, self.bound, self.banned)[1]
        except ConfigError:
            return [self._searched()]

    def _searched(self) -> dict[str, str]:
        """DSATUR's colours or those of local search, whichever cost less."""
        costs = own_costs(self.part, self.told, self.bound, self.banned)
        names, domain = self.part.nodes, self.part.domain
        only = np.isfinite(costs).sum(axis=1) == 1
        fixed = {names[row]: domain[costs[row].argmin()] for row in np.flatnonzero(only)}
        finite = costs[np.isfinite(costs)]
        ban = 2.0 * (np.abs(finite).max() + self.part.conflict_penalty * len(names))  # more than any colour could gain
        gains = {
            names[row]: dict(zip(domain, (-np.minimum(costs[row], ban)).tolist(), strict=True))
            for row in np.flatnonzero(~only & (costs != 0.0).any(axis=1))
        }
        penalty = self.part.conflict_penalty
        alone = Problem(names, self.part.inner, domain, conflict_penalty=penalty, preferences=gains, fixed=fixed)
        found = (solve(alone, algo) for algo in ("greedy", "dsa"))
        return dict(min(found, key=lambda solution: solution.cost).assignment)

    def others(self, had: Assignment, draws: np.random.Generator) -> list[dict[str, str]]:
        """Best responses but `had`; where only one is known, the one of equal cost that other ties lead to."""
        found = [response for response in self.best if response != had]
        if not found:
            domain = tuple(self.part.domain[code] for code in draws.permutation(len(self.part.domain)))
            other = replace(self, part=replace(self.part, domain=domain)).best[0]
            found = [other] if other != had and self.net(other) <= self.net(had) else []
        return found
