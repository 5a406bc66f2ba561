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


def scatter(world: Any) -> None:
    """Every free node takes a colour at random."""
    place, value = world[Node].Place, world[Node].Colour.value
    tally, own, graph = world[Cluster].Tally, world[Cluster].Own, world[Judge].Graph
    drawn = world.draw("start", len(value))
    for i in range(len(value)):
        value[i] = float(int(drawn[i] * place.colours[i]))
        graph.colours[0, int(place.number[i])] = value[i]
    for c in range(len(own.time)):
        for s in range(own.colours.shape[1]):
            if tally.nodes[c, s] >= 0.0:
                own.colours[c, s] = graph.colours[0, int(tally.nodes[c, s])]


def recount(world: Any, now: float) -> None:
    """What has changed in each cluster, what that costs, and whether it went back to what it had before."""
    place, value, graph = world[Node].Place, world[Node].Colour.value, world[Judge].Graph
    own, tally, board = world[Cluster].Own, world[Cluster].Tally, world[Judge].Board
    for i in range(len(value)):
        number = int(place.number[i])
        if graph.colours[0, number] != value[i]:
            graph.colours[0, number], graph.since[0, number] = value[i], now
    for c in range(len(own.time)):
        changed, back = 0, True
        for s in range(own.colours.shape[1]):
            number = int(tally.nodes[c, s])
            if number >= 0:
                changed += 1 if graph.colours[0, number] != own.colours[c, s] else 0
                back = back and graph.colours[0, number] == tally.before[c, s]
        own.time[c], tally.conflicts[c] = now, 0.0
        letters = tally.letters[c] - tally.paid[c]
        tally.earned[c] = -board.recolour_cost[0] * changed - board.letter_cost[0] * letters
        tally.paid[c] = tally.letters[c]
        if changed > 0:
            board.recolourings[0] += changed
            board.oscillations[0] += 1.0 if back else 0.0
            for s in range(own.colours.shape[1]):
                if tally.nodes[c, s] >= 0.0:
                    tally.before[c, s] = own.colours[c, s]
                    own.colours[c, s] = graph.colours[0, int(tally.nodes[c, s])]


def judge(world: Any) -> None:
    """Conflicts and rewards: a conflict costs each cluster that has an end of it, and the team once."""
    own, tally, gains = world[Cluster].Own, world[Cluster].Tally, world[Cluster].Map.gains
    board, graph = world[Judge].Board, world[Judge].Graph
    board.conflicts[0], board.preference[0], board.earned[0] = 0.0, 0.0, 0.0
    for e in range(graph.first.shape[1]):
        u, v = int(graph.first[0, e]), int(graph.second[0, e])
        if u >= 0 and graph.colours[0, u] == graph.colours[0, v]:
            board.conflicts[0] += 1.0
            tally.conflicts[int(graph.owner[0, u])] += 1.0
            if graph.owner[0, u] != graph.owner[0, v]:
                tally.conflicts[int(graph.owner[0, v])] += 1.0
    many = gains.shape[1] // own.colours.shape[1]
    for c in range(len(own.time)):
        gained = 0.0
        for s in range(own.colours.shape[1]):
            if tally.nodes[c, s] >= 0.0:
                gained += gains[c, s * many + int(own.colours[c, s])]
        board.preference[0] += gained
        board.earned[0] += tally.earned[c] + gained
        tally.earned[c] += gained - board.penalty[0] * tally.conflicts[c]
    board.earned[0] -= board.penalty[0] * board.conflicts[0]


def confer(world: Any, now: float) -> None:
    """Are all satisfied, rightly, and is every belief true for good?

    A belief is, if it was told at or after the last change of its node: whatever is under way says the same, or is
    older and will be left. Where all beliefs are true, a conflict is one that its clusters see: who says to be
    satisfied beside it said so before, and is about to take it back.
    """
    heard, tally, said = world[Cluster].Heard, world[Cluster].Tally, world[Voice].Said
    board, graph = world[Judge].Board, world[Judge].Graph
    wrong, slots, certain = 0, 0, True
    for c in range(len(tally.earned)):
        for j in range(tally.slots.shape[1]):
            number = int(tally.slots[c, j])
            if number >= 0:
                slots += 1
                wrong += 1 if heard.told[c, 2 * j] != graph.colours[0, number] else 0
                certain = certain and heard.told[c, 2 * j + 1] >= graph.since[0, number]
    satisfied = 0
    for c in range(len(said.satisfied)):
        satisfied += int(said.satisfied[c])
    agreed, conflicts = satisfied == len(said.satisfied), board.conflicts[0] > 0.0
    board.belief_error[0] += wrong / max(slots, 1)
    board.satisfied[0] = satisfied
    board.agreed[0] = board.agreed[0] + 1.0 if agreed and certain and not conflicts else 0.0
    if agreed and conflicts:
        board.false_consensus[0] += 1.0
    if not conflicts and board.first_valid[0] < 0.0:
        board.first_valid[0] = now
    if board.agreed[0] >= board.rounds[0] and board.consensus[0] < 0.0:
        board.consensus[0] = now
