"""Does a cluster agent settle while nobody else moves? 240 cases of the study graph, each with beliefs that stay.

Agent1 is told each of 9 colourings of h1 and h4, Agent2 each of the 6 of h2 and h5 that differ; each with no node of
its own fixed, or one of five to one of three colours.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from heron_env.dcop import g15
from heron_env.dcop.cluster import ClusterAgent

G15 = g15()
Case = tuple[str, Mapping[str, str], Mapping[str, str]]


def cases() -> Iterator[Case]:
    """(cluster, beliefs, fixed own nodes), 240 of them."""
    problem = G15
    for cluster in ("Agent1", "Agent2"):
        own, foreign = problem.clusters[cluster], problem.foreign_boundary(cluster)
        for told in product(problem.domain, repeat=2):
            if cluster == "Agent1" or told[0] != told[1]:
                beliefs = dict(zip(foreign, told, strict=True))
                yield cluster, beliefs, {}
                yield from ((cluster, beliefs, {node: colour}) for node, colour in product(own, problem.domain))


def settles(case: Case, **process: Any) -> bool:
    """Does the agent of a case come to rest? Its colours decide what it does next, so a colouring seen before tells."""
    cluster, beliefs, fixed = case
    agent = ClusterAgent(G15.having(fixed=fixed), cluster, **process)
    agent.beliefs.update(beliefs)
    seen: list[Mapping[str, str]] = []
    while (now := agent.step().assignments) not in seen:
        seen.append(now)
    return now == seen[-1]


def oscillating(**process: Any) -> int:
    """How many of the 240 cases never come to rest, of agents with these arguments."""
    return sum(not settles(case, **process) for case in cases())
