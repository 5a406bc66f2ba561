"""What a cluster sees, between names and numbers: the sizes of a problem, observations read, actions written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.dcop.problem import Assignment, Part, Problem


@dataclass(frozen=True)
class Sight:
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

    def read(self, part: Part, vector: NDArray[np.float32]) -> Sight:
        """What the cluster of this part sees; `vector` is its observation, of which the beginning is needed."""
        n, k = self.nodes, self.slots
        colours = [round(code) for code in vector[:n].tolist()]
        told = vector[2 * n + 1 : 2 * n + 1 + 2 * k].reshape(k, 2)
        pairs = {node: (round(code), at) for node, (code, at) in zip(part.owners, told.tolist(), strict=False)}
        heard = {node: pair for node, pair in pairs.items() if pair[0] < self.colours}
        return Sight(
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
