"""What a cluster agent weighs in a step, and what the step was: costs, greedy and exact answers, and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from heron_env.core.rule import one_by_one
from heron_env.dcop.problem import Assignment, Edge, Part, Problem
from heron_env.dcop.responses import best_responses
from heron_env.dcop.solving import solve
from heron_env.errors import ConfigError

Reason = Literal["fixed", "forced", "greedy", "snap", "kept", "best"]


@dataclass(frozen=True)
class Choice:
    """Why a node has its colour: what decided, and what each colour would have cost it there and then."""

    colour: str
    reason: Reason
    penalties: Mapping[str, float]


@dataclass(frozen=True)
class StepReport:
    """One step of a cluster agent."""

    agent: str
    step: int
    before: Mapping[str, str]
    assignments: Mapping[str, str]
    changed: bool
    forced_used: Mapping[str, str]
    snapped: bool
    snap_reason: str
    satisfied: bool
    penalty: float
    """Penalty times visible conflicts; preferences do not enter."""
    conflicts: tuple[tuple[str, str], ...]
    """(own node, own or believed node) of the same colour."""
    net: float
    """The penalty minus preferences: what the agent makes small."""
    unknown_boundary: int
    """Foreign nodes at the boundary whose colour nobody told."""
    nodes: Mapping[str, Choice]
    greedy: Mapping[str, str]
    """What greedy search wanted, beside what was done."""
    told: Mapping[str, str]
    """The beliefs that it acted on."""


@dataclass(frozen=True)
class Option:
    """A counterfactual: what if the recipient's nodes at the boundary had these colours?"""

    configuration: Mapping[str, str]
    penalty: float
    """Of the sender's best response; of its actual colours for the current configuration."""
    agent_score: float
    recipient_score: float
    combined: float
    current: bool


class Past(NamedTuple):
    """What is kept of a step: enough to see whether the agent settles."""

    step: int
    satisfied: bool
    assignments: Mapping[str, str]
    flickers: bool
    """Satisfied as before the last step, and not as after it."""
    returns: bool
    """Coloured as before the last step, and not as after it."""


def remembered(past: Sequence[Past], report: StepReport) -> Past:
    """A step after those before it."""
    now = report.satisfied, report.assignments
    earlier, last = [(one.satisfied, one.assignments) for one in past[-2:]] if len(past) > 1 else (now, now)
    flickers, returns = (then == this != between for then, between, this in zip(earlier, last, now, strict=True))
    return Past(report.step, *now, flickers, returns)


@dataclass(frozen=True)
class View:
    """A part of the problem as it looks now.

    Attributes:
        part: the cluster's, its fixed nodes left out.
        told: believed colours of foreign nodes; an unknown one costs nothing.
        forced: own nodes that have no choice, by order.
        fixed: own nodes that never have one.
        banned: own node to colours that it does not take, unless bound or nothing else is left.
    """

    part: Part
    told: Assignment
    forced: Assignment
    fixed: Assignment
    banned: Mapping[str, frozenset[str]]

    @cached_property
    def bound(self) -> dict[str, str]:
        """Own nodes that have no choice."""
        return {**self.forced, **self.fixed}

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
        return self.part.preferences.get(node, {}).get(colour, 0.0)  # a preference that nobody stated is none

    def allowed(self, node: str) -> list[str]:
        """Colours that the node may take."""
        if node in self.bound:
            return [self.bound[node]]
        free = [colour for colour in self.part.domain if colour not in self.banned.get(node, ())]
        return free or [*self.part.domain]

    def obeys(self, colours: Assignment) -> bool:
        """Has every node a colour that it may take?"""
        return all(colours[node] in self.allowed(node) for node in {*self.bound, *self.banned})

    @cached_property
    def greedy(self) -> tuple[dict[str, str], dict[str, dict[str, float]]]:
        """Node after node the first of the cheapest colours beside those coloured before; and what each would cost."""
        colours: dict[str, str] = {}
        tables: dict[str, dict[str, float]] = {}
        for node in self.part.nodes:
            tables[node] = self.penalties(node, colours)
            colours[node] = min(self.allowed(node), key=tables[node].__getitem__)
        return colours, tables

    @cached_property
    def best(self) -> list[dict[str, str]]:
        """The best responses, as `best_responses`; in a part too large for that, the best that a search found."""
        try:
            return best_responses(self.part, self.told, self.bound, self.banned)[1]
        except ConfigError:
            return [self._searched()]

    def _searched(self) -> dict[str, str]:
        """DSATUR's colours or those of local search, whichever cost less; foreign nodes stand beside, fixed as told."""
        part, told, cost = self.part, self.told, self.part.conflict_penalty
        edges = (*part.inner, *(edge for edge in part.outer if edge[1] in told))
        gains = {node: dict(part.preferences.get(node, {})) for node in {**part.preferences, **self.banned}}
        much = cost * len(edges) + 2.0 * max((abs(gain) for of in gains.values() for gain in of.values()), default=0.0)
        for node in self.banned:
            gains[node] |= dict.fromkeys(set(part.domain).difference(self.allowed(node)), -much)
        held, nodes = {**self.bound, **told}, (*part.nodes, *told)
        beside = Problem(nodes, edges, part.domain, conflict_penalty=cost, preferences=gains, fixed=held)
        found = min((solve(beside, algo) for algo in ("greedy", "dsa", "mgm")), key=lambda solution: solution.cost)
        return {node: found.assignment[node] for node in part.nodes}

    def others(self, had: Assignment, draws: np.random.Generator) -> list[dict[str, str]]:
        """Best responses but `had`, where they cost no more; if none is known, the one that other ties lead to."""
        domain = self.part.domain
        shuffled = tuple(domain[code] for code in draws.permutation(len(domain)))
        known = [response for response in self.best if response != had]
        found = known or replace(self, part=replace(self.part, domain=shuffled)).best[:1]
        return found if found != [had] and self.net(found[0]) <= self.net(had) else []
