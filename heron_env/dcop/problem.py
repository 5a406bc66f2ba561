"""The problem: nodes to be coloured, edges whose ends should differ, and who owns which nodes.

A distributed constraint optimisation problem (DCOP) with one kind of constraint: an edge costs `conflict_penalty` if
its ends are equal. Preferences are what a node gains by a colour. Assignments are mappings from node to colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env import errors
from heron_env.errors import ConfigError, DeclarationError, did_you_mean
from heron_env.given import is_finite, is_one_of, mapping, several

Assignment = Mapping[str, str]
Edge = tuple[str, str]
Codes = NDArray[np.int8]
COLOURS = ("red", "green", "blue")
MOST_COLOURS = 26
OBJECTIVES = {"min": 1.0, "max": -1.0}
"""What a problem's own numbers are multiplied with to be costs."""
KEEPING_OPTIMUM = {"name", "conflict_penalty", "scores", "clusters", "optimum", "objective"}


@dataclass(frozen=True)
class Optimum:
    """Best known assignment: its conflicts, and whether they are proven least."""

    conflicts: int
    proven: bool = True
    witness: Assignment | None = None


@dataclass(frozen=True)
class Part:
    """One cluster's part of a problem: its nodes, and the edges with at least one end in it."""

    cluster: str
    nodes: tuple[str, ...]
    inner: tuple[Edge, ...]
    """Both ends its own, in the problem's order."""
    outer: tuple[Edge, ...]
    """(own node, foreign node), in the problem's order."""
    owners: Mapping[str, str]
    """Of the foreign nodes at the boundary, in the problem's order."""
    domain: tuple[str, ...]
    conflict_penalty: float
    preferences: Mapping[str, Mapping[str, float]]
    fixed: Assignment
    scores: Mapping[str, float]

    def colour(self, written: str) -> str | None:
        """Return the colour in the domain's spelling, in any case; None: unknown."""
        return spelled(self.domain, written)

    @cached_property
    def neighbours(self) -> dict[str, tuple[str, ...]]:
        """Nodes next to each own node, own ones first."""
        found: dict[str, list[str]] = {node: [] for node in self.nodes}
        for u, v in self.inner:
            found[u].append(v)
            found[v].append(u)
        for own, foreign in self.outer:
            found[own].append(foreign)
        return {node: tuple(near) for node, near in found.items()}

    def foreign_boundary(self, other: str) -> tuple[str, ...]:
        """Return the nodes of another cluster with an edge to this part."""
        return (
            () if not isinstance(other, str) else tuple(node for node, owner in self.owners.items() if owner == other)
        )


@dataclass(frozen=True)
class Problem:
    """A graph to colour.

    Args:
        nodes: names, in the order in which agents go through them.
        edges: pairs of nodes, each at most once.
        domain: colours, distinct whatever their case.
        clusters: owner to its nodes; a node has one owner at most, and none may own any.
        conflict_penalty: cost of an edge whose ends are equal, > 0.
        preferences: node to colour to what it gains, any finite number.
        fixed: node to the colour that it keeps.
        scores: colour to its score in utility letters; missing ones are 0.
        name: for tables.
        optimum: if it is known.
        objective: "min"; "max" of a problem that was stated in gains: its utility is minus its cost.

    Raises:
        DeclarationError: with the path of every mistake.
    """

    nodes: tuple[str, ...]
    edges: tuple[Edge, ...]
    domain: tuple[str, ...] = COLOURS
    clusters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    conflict_penalty: float = 10.0
    preferences: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    fixed: Assignment = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    name: str = ""
    optimum: Optimum | None = None
    objective: str = "min"

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "nodes", several(self.nodes, "nodes"))
        put(self, "domain", several(self.domain, "domain"))
        put(self, "edges", tuple(several(edge, "edges: one of them") for edge in several(self.edges, "edges")))
        clusters = mapping(self.clusters, "clusters")
        put(self, "clusters", {owner: several(own, f"clusters[{owner!r}]") for owner, own in clusters.items()})
        problems = [*_flaws(self)]
        if problems:
            raise DeclarationError(problems)
        put(self, "conflict_penalty", float(self.conflict_penalty))
        put(self, "fixed", {node: self._spelled(colour) for node, colour in self.fixed.items()})
        put(self, "scores", {self._spelled(colour): float(score) for colour, score in self.scores.items()})
        preferences = {
            node: {self._spelled(colour): float(gain) for colour, gain in gains.items()}
            for node, gains in self.preferences.items()
        }
        put(self, "preferences", preferences)

    def _spelled(self, colour: str) -> str:
        return spelled(self.domain, colour) or colour

    def colour(self, written: str) -> str | None:
        """Return the colour in the domain's spelling, in any case; None: unknown."""
        return spelled(self.domain, written)

    # As arrays

    @cached_property
    def index(self) -> dict[str, int]:
        """Number of each node."""
        return {node: number for number, node in enumerate(self.nodes)}

    @cached_property
    def ends(self) -> NDArray[np.int32]:
        """Both ends of every edge as numbers of nodes, `[2, edges]`."""
        index = self.index
        pairs = [(index[u], index[v]) for u, v in self.edges]
        return np.array(pairs, dtype=np.int32).reshape(-1, 2).T.copy()

    @cached_property
    def unary(self) -> NDArray[np.float64]:
        """What a colour costs a node by itself, `[nodes, colours]`: minus its gain; inf where another is fixed."""
        costs = np.zeros((len(self.nodes), len(self.domain)))
        for node, gains in self.preferences.items():
            for colour, gain in gains.items():
                costs[self.index[node], self.domain.index(colour)] -= gain
        for node, colour in self.fixed.items():
            others = np.arange(len(self.domain)) != self.domain.index(colour)
            costs[self.index[node], others] = np.inf
        return costs

    def codes(self, assignment: Assignment) -> Codes:
        """Return the colours of all nodes as numbers, `[nodes]`. Raises ConfigError for a missing colour."""
        number, colours = {colour: code for code, colour in enumerate(self.domain)}, mapping(assignment, "assignment")
        try:
            return np.array([number[colours[node]] for node in self.nodes], dtype=np.int8)
        except (KeyError, TypeError):
            bad = next(node for node in self.nodes if not is_one_of(colours.get(node), self.domain))
            told = (
                f"{bad!r} has {colours[bad]!r:.60}, which is no colour" if bad in colours else f"{bad!r} has no colour"
            )
            raise ConfigError(
                f"assignment: {told}; give each of the {len(self.nodes)} nodes one of {', '.join(self.domain)}"
            ) from None

    def assignment(self, codes: NDArray[Any]) -> dict[str, str]:
        """Return colours by node, from numbers `[nodes]`."""
        return {node: self.domain[code] for node, code in zip(self.nodes, codes.tolist(), strict=True)}

    def conflicts_of(self, codes: NDArray[Any]) -> int:
        """Count edges with equal ends, for colours as numbers `[nodes]`."""
        u, v = self.ends
        return int((codes[u] == codes[v]).sum())

    def cost_of(self, codes: NDArray[Any]) -> float:
        """Penalty times conflicts minus preferences, of colours as numbers `[nodes]`."""
        own = self.unary[np.arange(len(self.nodes)), codes] if self.preferences or self.fixed else np.zeros(1)
        return self.conflict_penalty * self.conflicts_of(codes) + float(own.sum())

    def conflicts(self, assignment: Assignment) -> int:
        """Count edges with equal ends. Raises ConfigError for a node without a known colour."""
        return self.conflicts_of(self.codes(assignment))

    def cost(self, assignment: Assignment) -> float:
        """Penalty times conflicts minus preferences; inf if a fixed node has another colour. Raises as `conflicts`."""
        return self.cost_of(self.codes(assignment))

    def start(self) -> dict[str, str]:
        """Return the start: the first colour for all nodes but the fixed ones."""
        return {node: self.fixed.get(node, self.domain[0]) for node in self.nodes}

    # Who owns and borders what

    @cached_property
    def owners(self) -> dict[str, str]:
        """Owner of each node that has one."""
        return {node: owner for owner, own in self.clusters.items() for node in own}

    def owner(self, node: str) -> str | None:
        """Return the owner of a node; None: nobody."""
        return self.owners.get(node)

    @cached_property
    def _parts(self) -> dict[str, Part]:
        inner: dict[str, list[Edge]] = {owner: [] for owner in self.clusters}
        outer: dict[str, list[Edge]] = {owner: [] for owner in self.clusters}
        for u, v in self.edges:
            here, there = self.owners.get(u), self.owners.get(v)
            if here is not None and here == there:
                inner[here].append((u, v))
            elif here is not None and there is not None:
                outer[here].append((u, v))
                outer[there].append((v, u))
        return {owner: self._part(owner, inner[owner], outer[owner]) for owner in self.clusters}

    def _part(self, owner: str, inner: list[Edge], outer: list[Edge]) -> Part:
        own = set(self.clusters[owner])
        foreign = sorted({node for _, node in outer}, key=self.index.__getitem__)
        return Part(
            cluster=owner,
            nodes=self.clusters[owner],
            inner=tuple(inner),
            outer=tuple(outer),
            owners={node: self.owners[node] for node in foreign},
            domain=self.domain,
            conflict_penalty=self.conflict_penalty,
            preferences={node: gains for node, gains in self.preferences.items() if node in own},
            fixed={node: colour for node, colour in self.fixed.items() if node in own},
            scores=self.scores,
        )

    def part(self, cluster: str) -> Part:
        """Return a cluster's part of the problem. Raises ConfigError for an unknown name."""
        if not is_one_of(cluster, self.clusters):
            near = did_you_mean(cluster, self.clusters) or f" There are {', '.join(self.clusters) or 'none'}."
            raise ConfigError(f"{cluster!r:.80} is no cluster of the problem {self.name!r}.{near}")
        return self._parts[cluster]

    def neighbouring(self, cluster: str) -> tuple[str, ...]:
        """Return the clusters with an edge to a cluster, in the order of `clusters`."""
        near = set(self.part(cluster).owners.values())
        return tuple(owner for owner in self.clusters if owner in near)

    def boundary(self, cluster: str, other: str | None = None) -> tuple[str, ...]:
        """Return nodes of a cluster with an edge to any other cluster, or to one."""
        part = self.part(cluster)
        own = {node for node, foreign in part.outer if other in (None, part.owners[foreign])}
        return tuple(node for node in part.nodes if node in own)

    def foreign_boundary(self, cluster: str, other: str | None = None) -> tuple[str, ...]:
        """Return nodes of all other clusters, or of one, with an edge to a cluster."""
        part = self.part(cluster)
        return tuple(part.owners) if other is None else part.foreign_boundary(other)

    def having(self, **changes: Any) -> Problem:
        """Return a copy with other fields; it drops the known optimum if costs change. Raises as the class."""
        known = self.optimum if changes.keys() <= KEEPING_OPTIMUM else None
        return replace(self, **{"optimum": known, **changes})


def spelled(domain: Iterable[str], written: str) -> str | None:
    """The colour of the domain that was meant, whatever its case; None if there is no such one."""
    meant = written.casefold()
    return next((colour for colour in domain if colour.casefold() == meant), None)


def _flaws(problem: Problem) -> Iterator[errors.Problem]:
    """Every mistake: names first, since the rest is told by them."""
    flaw = errors.Problem
    yield from _flawed_names("nodes", problem.nodes)
    yield from _flawed_names("domain", problem.domain)
    if not 2 <= len(problem.domain) <= MOST_COLOURS:
        yield flaw(("domain",), f"has {len(problem.domain)} colours; give 2 to {MOST_COLOURS}")
    if len({str(colour).casefold() for colour in problem.domain}) < len(problem.domain):
        yield flaw(("domain",), "two colours differ in their case only; rename one")
    if not _is_number(problem.conflict_penalty) or problem.conflict_penalty <= 0:
        yield flaw(("conflict_penalty",), f"must be a number > 0, got {problem.conflict_penalty!r:.60}")
    if not is_one_of(problem.objective, OBJECTIVES):
        yield flaw(("objective",), f"must be one of {', '.join(OBJECTIVES)}, got {problem.objective!r:.60}")
    known = {node for node in problem.nodes if isinstance(node, str)}
    yield from _flawed_edges(problem, known)
    yield from _flawed_clusters(problem, known)
    yield from _flawed_values(problem, known)


def _flawed_names(kind: str, names: tuple[Any, ...]) -> Iterator[errors.Problem]:
    seen: set[str] = set()
    for number, name in enumerate(names):
        if not isinstance(name, str) or not name.strip():
            yield errors.Problem((kind, number), f"must be a name, got {name!r:.60}; quote it")
        elif name in seen:
            yield errors.Problem((kind, number), f"{name!r} stands there twice; remove one")
        else:
            seen.add(name)


def _flawed_edges(problem: Problem, known: set[str]) -> Iterator[errors.Problem]:
    seen: dict[frozenset[str], int] = {}
    for number, edge in enumerate(problem.edges):
        where = ("edges", number)
        if len(edge) != 2 or not all(isinstance(end, str) for end in edge):
            yield errors.Problem(where, f"must be a pair of nodes, got {list(edge)!r:.80}")
        elif not known.issuperset(edge):
            yield from (_unknown(where, "node", end, known) for end in edge if end not in known)
        elif edge[0] == edge[1]:
            yield errors.Problem(where, f"leads from {edge[0]!r} to itself; remove it")
        elif (first := seen.setdefault(frozenset(edge), number)) != number:
            yield errors.Problem(where, f"{edge[0]}-{edge[1]} is edges[{first}] again; remove one")


def _flawed_clusters(problem: Problem, known: set[str]) -> Iterator[errors.Problem]:
    owner_of: dict[str, str] = {}
    for owner, nodes in problem.clusters.items():
        if not isinstance(owner, str) or not owner.strip():
            yield errors.Problem(("clusters", str(owner)), "the owner must be a name")
        for number, node in enumerate(nodes):
            where = ("clusters", str(owner), number)
            if not isinstance(node, str) or node not in known:
                yield _unknown(where, "node", node, known)
            elif node in owner_of:
                yield errors.Problem(where, f"{node!r} belongs to {owner_of[node]!r} already; a node has one owner")
            else:
                owner_of[node] = owner


def _flawed_values(problem: Problem, known: set[str]) -> Iterator[errors.Problem]:
    """Of fixed, scores and preferences."""
    for node, colour in mapping(problem.fixed, "fixed").items():
        if node not in known:
            yield _unknown(("fixed", str(node)), "node", node, known)
        yield from _flawed_colour(problem, ("fixed", str(node)), colour)
    tables = {(str(node),): gains for node, gains in mapping(problem.preferences, "preferences").items()}
    for (node,), gains in tables.items():
        if node not in known:
            yield _unknown(("preferences", node), "node", node, known)
        for colour, gain in mapping(gains, f"preferences[{node!r}]").items():
            yield from _flawed_gain(problem, ("preferences", node, str(colour)), colour, gain)
    for colour, score in mapping(problem.scores, "scores").items():
        yield from _flawed_gain(problem, ("scores", str(colour)), colour, score)


def _flawed_gain(problem: Problem, where: tuple[str, ...], colour: object, gain: object) -> Iterator[errors.Problem]:
    yield from _flawed_colour(problem, where, colour)
    if not _is_number(gain):
        yield errors.Problem(where, f"must be a finite number, got {gain!r:.60}")


def _flawed_colour(problem: Problem, where: tuple[str, ...], colour: object) -> Iterator[errors.Problem]:
    if not isinstance(colour, str) or spelled(map(str, problem.domain), colour) is None:
        yield _unknown(where, "colour", colour, map(str, problem.domain))


def _unknown(where: tuple[str | int, ...], kind: str, name: object, known: Iterable[str]) -> errors.Problem:
    return errors.Problem(where, f"{name!r:.60} is no {kind} of this problem.{did_you_mean(name, known)}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and is_finite(value)
