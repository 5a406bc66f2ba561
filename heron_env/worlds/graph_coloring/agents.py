"""The agents: nodes that take the colour they are given, the voice of each cluster, clusters, and who judges them."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import CoordinatorAgent, FieldAgent, SystemAgent
from heron_env.agents.vertical import VectorDecomposition
from heron_env.core.action import Discrete, Vector
from heron_env.core.rule import Parent, rule
from heron_env.worlds.graph_coloring.features import Board, Colour, Graph, Heard, Map, Own, Place, Said, Tally


class Vertex(FieldAgent):
    """A node of the graph, whose colour its neighbours are told at each boundary."""

    features = (Colour, Place)

    @staticmethod
    @rule(writes=Colour.told)
    def advance(colour: Colour, time: float, dt: float) -> tuple[float, float]:
        """What it has now, and when that is."""
        return float(colour.value), time + dt


class Node(Vertex):
    """Takes a colour (0, 1, ...), or keeps its own: the last choice, which does nothing."""

    @staticmethod
    @rule(writes=Colour.value)
    def apply_action(colour: Colour, place: Place, action: Vector) -> int:
        """The colour chosen."""
        return int(action[0]) if action[0] < place.colours else colour.value


class FixedNode(Vertex):
    """Keeps its colour for good."""


class Voice(FieldAgent):
    """Says whether its cluster is satisfied (1) or not (0)."""

    features = (Said,)
    action = Discrete(2)

    @staticmethod
    @rule(writes=Said.satisfied)
    def apply_action(action: Vector) -> int:
        """What is said stands until something else is."""
        return int(action[0])


class Cluster(CoordinatorAgent):
    """Colours its nodes, and says whether it is satisfied. It knows its own nodes as they are."""

    features = (Own, Heard, Map, Tally)
    protocol = VectorDecomposition()
    own_rows = "local"

    @staticmethod
    @rule
    def compute_local_reward(tally: Tally) -> float:
        """Preferences minus the penalties of the true conflicts at its nodes and what changes and letters cost."""
        return tally.earned

    @staticmethod
    @rule
    def is_terminated(board: Parent[Board]) -> bool:
        """At consensus."""
        return board.consensus >= 0.0


class Judge(SystemAgent):
    """Sees the whole graph. Its reward is the team's, in which each conflict counts once; the clusters' own rewards
    count it twice, so none of `child_rewards` is added.
    """

    features = (Graph, Board)

    @staticmethod
    @rule
    def compute_local_reward(board: Board, child_rewards: NDArray[np.float64]) -> float:
        """Preferences minus penalties minus costs."""
        return board.earned


@cache
def node_of(colours: int) -> type[Node]:
    """The class of nodes with so many colours."""
    body = {"__module__": __name__, "__doc__": Node.__doc__, "action": Discrete(colours + 1, noop=colours)}
    return type(f"Node{colours}", (Node,), body)


def __getattr__(name: str) -> Any:
    """`Node3`: by this name copies and pickles of environments find their nodes."""
    if name.startswith("Node") and name[4:].isdigit():
        return node_of(int(name[4:]))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
