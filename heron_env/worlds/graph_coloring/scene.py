"""What the page of a person's seat draws of a cluster: its part of the graph, and where the vector has the colours."""

from __future__ import annotations

from typing import Any

from heron_env.dcop.problem import Part
from heron_env.worlds.graph_coloring.sight import Shape


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
