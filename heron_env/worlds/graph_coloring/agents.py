"""Nodes that take the colour they are given, each cluster's voice, clusters, their judge, and what is known of them.

Features with vectors come in sizes, as `sized(Own, nodes=5, slots=3, ...)` makes them: nodes of the largest cluster,
slots (foreign nodes at a boundary) of the largest boundary, colours, all nodes and edges of the problem. What a
smaller cluster does not have is padded with the number of colours, `UNKNOWN`, in colours, and with -1 or 0 elsewhere.
"""

from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import CoordinatorAgent, FieldAgent, SystemAgent
from heron_env.agents.horizontal import Inbox
from heron_env.agents.vertical import VectorDecomposition
from heron_env.core.action import Discrete, Vector
from heron_env.core.feature import FeatureProvider, of_any_size, quantity
from heron_env.core.rule import Parent, rule
from heron_env.dcop.problem import MOST_COLOURS

MOST: Final = 1e9
"""Bound of times, s, and of counts."""
PRICE: Final = 1e6
"""Bound of what one thing costs or gains."""
NEVER: Final = -1.0
"""The time of what has not happened."""


class Colour(FeatureProvider):
    """Of one node. `told` is what its neighbours are told at each boundary: the colour, and the time of that, s."""

    value: int = quantity(low=0, high=MOST_COLOURS)
    told: np.ndarray = quantity(default=(0.0, 0.0), shape=(2,), low=0.0, high=MOST, noisy=False)


class Place(FeatureProvider):
    """Where a node stands in the problem: its number, and how many colours there are; nobody sees it."""

    visibility = ()
    number: int = quantity(low=0, high=MOST, observed=False)
    colours: int = quantity(default=2, low=2, high=MOST_COLOURS, observed=False)


class Said(FeatureProvider):
    """Whether a cluster says that it is satisfied."""

    satisfied: int = quantity(low=0, high=1)


class Own(FeatureProvider):
    """What a cluster sees of its own nodes: colours `[nodes]`, and which of them have no choice; the time, s."""


class Heard(Inbox):
    """What a cluster was told of each foreign node at its boundary, `[slots, 2]`: its colour, and the time of that."""


class Map(FeatureProvider):
    """What a cluster may know of the problem, which stays: the edges between its own nodes `[nodes * nodes]` and to
    foreign ones `[nodes * slots]`, and what each colour gains each `[nodes * colours]`.
    """


class Tally(FeatureProvider):
    """A cluster's books: what it earned in the step, letters written and paid, what its nodes had before their last
    change, and which nodes of the problem are its own and those in its slots, -1 where there is none.
    """

    visibility = ()
    if TYPE_CHECKING:
        earned: float


class Graph(FeatureProvider):
    """The problem and its state: ends of the edges, owners, colours, and when each node last changed, s."""

    visibility = ()


class Board(FeatureProvider):
    """What the episode is judged by; nobody sees it. Sums run over its boundaries; prices are those of the rewards."""

    visibility = ()
    penalty: float = quantity(default=10.0, low=0.0, high=PRICE, observed=False)
    recolour_cost: float = quantity(low=0.0, high=PRICE, observed=False)
    letter_cost: float = quantity(low=0.0, high=PRICE, observed=False)
    dt: float = quantity(default=1.0, low=0.0, high=MOST, unit="s", observed=False)
    rounds: int = quantity(default=1, low=1, high=MOST, observed=False)
    random: bool = quantity(default=False, observed=False)
    earned: float = quantity(low=-MOST * PRICE, high=MOST * PRICE, observed=False)
    conflicts: int = quantity(low=0, high=MOST, observed=False)
    preference: float = quantity(low=-MOST * PRICE, high=MOST * PRICE, observed=False)
    satisfied: int = quantity(low=0, high=MOST, observed=False)
    agreed: int = quantity(low=0, high=MOST, observed=False)
    false_consensus: int = quantity(low=0, high=MOST, observed=False)
    first_valid: float = quantity(default=NEVER, low=NEVER, high=MOST, unit="s", observed=False)
    consensus: float = quantity(default=NEVER, low=NEVER, high=MOST, unit="s", observed=False)
    recolourings: int = quantity(low=0, high=MOST, observed=False)
    oscillations: int = quantity(low=0, high=MOST, observed=False)
    belief_error: float = quantity(low=0.0, high=MOST, observed=False)


SIZED: Final[dict[str, Any]] = {base.__name__: base for base in (Own, Heard, Map, Tally, Graph)}
SIZES: Final = ("nodes", "slots", "colours", "all_nodes", "edges")


@cache
def sized(base: Any, nodes: int, slots: int, colours: int, all_nodes: int, edges: int) -> Any:
    """The subclass of Own, Heard, Map, Tally or Graph for a problem of that size; one class for each."""
    unknown = float(colours)
    code = partial(quantity, low=0.0, high=unknown)
    flag = partial(quantity, low=0.0, high=1.0, noisy=False)
    number = partial(quantity, low=NEVER, high=MOST, observed=False)
    body: dict[str, Any] = {
        Own: {
            "colours": code(default=unknown, shape=(nodes,)),
            "fixed": flag(default=1.0, shape=(nodes,)),
            "time": quantity(low=0.0, high=MOST, unit="s", noisy=False),
        },
        Heard: {"told": quantity(default=((unknown, NEVER),) * slots, low=NEVER, high=MOST, shape=(slots, 2))},
        Map: {
            "inner": flag(shape=(nodes * nodes,)),
            "outer": flag(shape=(nodes * slots,)),
            "gains": quantity(low=-PRICE, high=PRICE, shape=(nodes * colours,), noisy=False),
        },
        Tally: {
            "nodes": number(default=NEVER, shape=(nodes,)),
            "slots": number(default=NEVER, shape=(slots,)),
            "before": code(default=unknown, shape=(nodes,), observed=False),
            "earned": quantity(low=-MOST * PRICE, high=MOST * PRICE, observed=False),
            **{name: number() for name in ("conflicts", "letters", "paid")},
        },
        Graph: {
            **{name: number(shape=(max(edges, 1),)) for name in ("first", "second")},
            "owner": number(shape=(all_nodes,)),
            "colours": code(shape=(all_nodes,), observed=False),
            "since": number(shape=(all_nodes,)),
        },
    }[base]
    name = "_".join(map(str, (base.__name__, nodes, slots, colours, all_nodes, edges)))
    kinds = {field: np.ndarray if q.shape else float for field, q in body.items()}
    about = {"__module__": __name__, "__doc__": base.__doc__, "feature_name": base.__name__}
    return type(name, (base,), {**about, **body, "__annotations__": kinds})


WRITTEN: Final = (
    *of_any_size(Own, "colours", "time"),
    *of_any_size(Tally, "before", "earned", "conflicts", "paid"),
    *of_any_size(Graph, "colours", "since"),
    Board.earned, Board.conflicts, Board.preference, Board.satisfied, Board.agreed, Board.false_consensus,
    Board.first_valid, Board.consensus, Board.recolourings, Board.oscillations, Board.belief_error,
)  # fmt: skip
"""What changes at a boundary beside what agents do."""


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
    """`Own_5_4_3_15_23`, `Node3`: by these names copies and pickles of environments find features and nodes."""
    base, *numbers = name.split("_")
    if base in SIZED and len(numbers) == len(SIZES) and all(map(str.isdigit, numbers)):
        return sized(SIZED[base], *map(int, numbers))
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
