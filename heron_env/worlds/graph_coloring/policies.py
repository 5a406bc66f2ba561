"""Policies of clusters: cluster agents of both processes, local search, and the colours of a central solver.

Each decodes its cluster's observation into colours and beliefs, and knows nothing else but its own part of the problem
(the central solver's excepted). One object plays one cluster, and begins each episode anew.
"""

from __future__ import annotations

import importlib.util
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import AnyPolicy
from heron_env.dcop.cluster.agent import ClusterAgent
from heron_env.dcop.cluster.view import StepReport
from heron_env.dcop.problem import Assignment, Part, Problem
from heron_env.dcop.solving import solve
from heron_env.seeding import key, stream


@dataclass(frozen=True)
class ClusterSight:
    """A cluster's observation in words: colours by node, its own and those that it was told, and when, s."""

    time: float
    own: dict[str, str]
    told: dict[str, str]
    told_at: dict[str, float]


@dataclass(frozen=True)
class Shape:
    """The sizes of a problem: nodes of the largest cluster, foreign nodes of the largest boundary, and so on."""

    nodes: int
    slots: int
    colours: int
    all_nodes: int
    edges: int

    @classmethod
    def of(cls, problem: Problem) -> Shape:
        """Of a problem whose clusters own all its nodes."""
        parts = [problem.part(name) for name in problem.clusters]
        slots = max((len(part.owners) for part in parts), default=0)
        nodes = max((len(part.nodes) for part in parts), default=0)
        return cls(nodes, max(slots, 1), len(problem.domain), len(problem.nodes), len(problem.edges))

    @property
    def sizes(self) -> tuple[int, ...]:
        """In their order."""
        return astuple(self)

    def codes(self, domain: Sequence[str], colours: Sequence[str]) -> NDArray[np.float64]:
        """Numbers of the colours of own nodes, padded."""
        return self.padded([domain.index(colour) for colour in colours], self.nodes, self.colours)

    @staticmethod
    def padded(values: Sequence[float], size: int, filler: float) -> NDArray[np.float64]:
        """The values, then fillers."""
        return np.array([*values, *[filler] * (size - len(values))], dtype=np.float64)

    def known(self, part: Part) -> dict[str, Any]:
        """What a cluster may know of the problem, as the quantities of Own and Map: fixed, inner, outer, gains."""
        row = {node: i for i, node in enumerate(part.nodes)}
        slot = {node: j for j, node in enumerate(part.owners)}
        inner, outer = np.zeros((self.nodes, self.nodes)), np.zeros((self.nodes, self.slots))
        for u, v in part.inner:
            inner[row[u], row[v]] = inner[row[v], row[u]] = 1.0
        for own, foreign in part.outer:
            outer[row[own], slot[foreign]] = 1.0
        gains = np.zeros((self.nodes, self.colours))
        for node, told in part.preferences.items():
            for colour, gain in told.items():
                gains[row[node], part.domain.index(colour)] = gain
        fixed = self.padded([float(node in part.fixed) for node in part.nodes], self.nodes, 1.0)
        return {"fixed": fixed, "inner": inner.ravel(), "outer": outer.ravel(), "gains": gains.ravel()}

    def read(self, part: Part, vector: NDArray[np.float32]) -> ClusterSight:
        """What the cluster of this part sees; `vector` is its observation, of which the beginning is needed."""
        n, k = self.nodes, self.slots
        colours = [round(code) for code in vector[:n].tolist()]
        told = vector[2 * n + 1 : 2 * n + 1 + 2 * k].reshape(k, 2)
        pairs = {node: (round(code), at) for node, (code, at) in zip(part.owners, told.tolist(), strict=False)}
        heard = {node: pair for node, pair in pairs.items() if pair[0] < self.colours}
        return ClusterSight(
            time=float(vector[2 * n]),
            own={node: part.domain[code] for node, code in zip(part.nodes, colours, strict=False)},
            told={node: part.domain[code] for node, (code, _) in heard.items()},
            told_at={node: at for node, (_, at) in heard.items()},
        )

    def action(self, part: Part, assignment: Assignment, satisfied: bool) -> NDArray[np.float64]:
        """The action that gives these colours to the nodes that have a choice; one left out keeps its own."""
        keep = self.colours
        free = [node for node in part.nodes if node not in part.fixed]
        codes = [part.domain.index(assignment[node]) if node in assignment else keep for node in free]
        return np.array([*codes, satisfied], dtype=np.float64)


def scene_of(part: Part, shape: Shape) -> dict[str, Any]:
    """Nodes, edges, colours. `seen` and `told_at` are places in the vector, `acts` and `voice` places in the action.

    The colour of a node is `vector[seen]`, the time of what was told of a foreign one `vector[told_at]`, now is
    `vector[time]`; `unknown` is the colour of those that nobody told. A node without a choice has no `acts`; `keep`
    leaves the others as they are.
    """
    free = [node for node in part.nodes if node not in part.fixed]
    nodes = [
        {"name": node, "owner": part.cluster, "seen": place, "acts": free.index(node) if node in free else None}
        for place, node in enumerate(part.nodes)
    ]
    told = 2 * shape.nodes + 1
    nodes += [
        {"name": node, "owner": owner, "seen": told + 2 * slot, "told_at": told + 2 * slot + 1, "acts": None}
        for slot, (node, owner) in enumerate(part.owners.items())
    ]
    return {
        "kind": "graph", "title": part.cluster, "colours": list(part.domain), "unknown": shape.colours,
        "keep": shape.colours, "time": 2 * shape.nodes, "nodes": nodes, "edges": [*part.inner, *part.outer],
        "voice": len(free),
    }  # fmt: skip


STABLE: Final[dict[str, Any]] = {"process": "stable", "p": 0.5, "sideways": True}
"""Settings of the stable process here: neighbours must not move together for certain."""
HASTE = 0.7
"""Probability with which a node of the local search moves (DSA-B, as in `heron_env.dcop`)."""


class ClusterPolicy(ABC):
    """Plays one cluster.

    Args:
        part: what the cluster may know of the problem.
        shape: sizes of the problem, by which its observation is read.
        seed: of its draws, beside the episode's.
    """

    def __init__(self, part: Part, shape: Shape, seed: int = 0) -> None:
        self.part, self.shape, self.seed = part, shape, seed
        self.begin(0, 0)

    def begin(self, seed: int, episode: int) -> None:
        """An episode begins: nothing of the last one survives."""
        self.key = key("graph colouring", self.seed, seed, episode, self.part.cluster) >> 1
        self.turn = 0

    def forward(self, observation: NDArray[np.float32]) -> NDArray[np.float64]:
        """The colours of the free nodes, then whether the cluster is satisfied."""
        action = self.shape.action(self.part, *self.decide(self.shape.read(self.part, observation)))
        self.turn += 1
        return action

    @abstractmethod
    def decide(self, sight: ClusterSight) -> tuple[dict[str, str], bool]:
        """Colours of own nodes, and whether all is well."""


class Process(ClusterPolicy):
    """Plays a cluster agent.

    Args:
        part, shape, seed: as for ClusterPolicy.
        settings: of the ClusterAgent, such as process="seed".

    Attributes:
        agent: of the running episode; None before its first question.
        report: of its last step.
    """

    def __init__(self, part: Part, shape: Shape, seed: int = 0, **settings: Any) -> None:
        self.settings = settings
        super().__init__(part, shape, seed)

    def begin(self, seed: int, episode: int) -> None:
        """The agent is made at the first question, which shows how its nodes start."""
        super().begin(seed, episode)
        self.agent: ClusterAgent | None = None
        self.report: StepReport | None = None

    def decide(self, sight: ClusterSight) -> tuple[dict[str, str], bool]:
        """One step of the agent, which believes what it was told."""
        if self.agent is None:
            self.agent = ClusterAgent(self.part, start=sight.own, seed=self.key, **self.settings)
        self.agent.beliefs.update(sight.told)
        self.prepare(self.agent, sight)
        self.report = self.agent.step()
        return dict(self.report.assignments), self.report.satisfied

    def prepare(self, agent: ClusterAgent, sight: ClusterSight) -> None:
        """Before the agent's step: nothing."""


class Patient(Process):
    """The stable process with a remedy for messages slower than a turn: clusters wait for each other's answers.

    Of two clusters the one whose name comes first waits: it moves for a conflict with the other only when that has
    had the time for an answer to its own last move, and then with the agent's `p`; the other moves at once. Nobody
    moves sideways before the answers to its last move. An answer takes what my command took to have its effect (seen),
    what my neighbours' colours took to be told me (their age), and another command.
    """

    def begin(self, seed: int, episode: int) -> None:
        """Nothing has moved."""
        super().begin(seed, episode)
        self.moved, self.asked_at, self.lag, self.under_way = -math.inf, 0.0, 0.0, False

    def prepare(self, agent: ClusterAgent, sight: ClusterSight) -> None:
        """Set the probability with which the agent moves, and whether it may sideways."""
        part, mine, age = (
            self.part,
            agent.assignments,
            max((sight.time - at for at in sight.told_at.values()), default=0.0),
        )
        if self.report is not None and self.report.changed:
            self.moved, self.under_way = self.asked_at, True
        if self.under_way and sight.own == dict(mine):
            self.under_way, self.lag = False, sight.time - self.moved
        answered = self.moved + 2.0 * self.lag + age
        agent.sideways = not self.under_way and all(at >= answered for at in sight.told_at.values())
        within = any(mine[u] == mine[v] for u, v in part.inner)
        mine_to_yield = any(part.owners[v] < part.cluster and sight.told.get(v) == mine[u] for u, v in part.outer)
        agent.p = 1.0 if within or mine_to_yield else STABLE["p"] if agent.sideways else 0.0
        self.asked_at = sight.time


class LocalSearch(ClusterPolicy):
    """DSA-B by node: one that conflicts, or could gain, takes its best other colour with probability 0.7."""

    def decide(self, sight: ClusterSight) -> tuple[dict[str, str], bool]:
        """As the solver's, but against beliefs."""
        part, known = self.part, {**sight.told, **sight.own}
        drawn = stream(self.key, self.turn).random((len(part.nodes), 2))
        taken = dict(sight.own)
        for node, (chance, which) in zip(part.nodes, drawn.tolist(), strict=True):
            cost = {colour: self._cost(node, colour, known) for colour in part.domain}
            least, now = min(cost.values()), sight.own[node]
            others = [colour for colour in part.domain if cost[colour] == least and colour != now]
            gains = least < cost[now] or self._conflicts(node, now, known)
            if node not in part.fixed and others and gains and chance < HASTE:
                taken[node] = others[int(which * len(others))]
        return taken, not any(self._conflicts(node, taken[node], {**known, **taken}) for node in part.nodes)

    def _conflicts(self, node: str, colour: str, known: dict[str, str]) -> int:
        return sum(known.get(near) == colour for near in self.part.neighbours[node])

    def _cost(self, node: str, colour: str, known: dict[str, str]) -> float:
        gain = self.part.preferences.get(node, {}).get(colour, 0.0)
        return self.part.conflict_penalty * self._conflicts(node, colour, known) - gain


class FixedColours(ClusterPolicy):
    """Takes the colours that it was given before the episode, and is satisfied with them."""

    def __init__(self, part: Part, shape: Shape, solution: Callable[[], dict[str, str]]) -> None:
        self.solution = solution
        super().__init__(part, shape)

    def decide(self, sight: ClusterSight) -> tuple[dict[str, str], bool]:
        """Whatever it sees."""
        colours = self.solution()
        return {node: colours[node] for node in self.part.nodes}, True


def baselines(problem: Problem, shape: Shape, seed: int) -> dict[str, dict[str, AnyPolicy]]:
    """Policies by name and cluster; "exact" only where its solver is installed."""
    parts = [problem.part(name) for name in problem.clusters]
    kinds: dict[str, Callable[[Part], AnyPolicy]] = {
        "seed process": lambda part: Process(part, shape, seed, process="seed"),
        "stable process": lambda part: Process(part, shape, seed, **STABLE),
        "patient process": lambda part: Patient(part, shape, seed, **STABLE),
        "dsa": lambda part: LocalSearch(part, shape, seed),
    }
    found = {name: {part.cluster: kind(part) for part in parts} for name, kind in kinds.items()}
    if importlib.util.find_spec("ortools") is not None:
        solved: list[dict[str, str]] = []

        def solution() -> dict[str, str]:
            if not solved:
                solved.append(dict(solve(problem, "cpsat").assignment))
            return solved[0]

        found["exact"] = {part.cluster: FixedColours(part, shape, solution) for part in parts}
    return found
