"""What is known of a colouring: the nodes' colours, what each cluster may know, and the books that nobody sees.

Classes with vectors come in sizes, as `sized(Own, nodes=5, slots=3, ...)` makes them: nodes of the largest cluster,
slots (foreign nodes at a boundary) of the largest boundary, colours, all nodes and edges of the problem. What a
smaller cluster does not have is padded with the number of colours, `UNKNOWN`, in colours, and with -1 or 0 elsewhere.
"""

from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from heron_env.agents.horizontal import Inbox
from heron_env.core.feature import FeatureProvider, quantity
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


def __getattr__(name: str) -> Any:
    """`Own_5_4_3_15_23`: by these names copies and pickles of environments find their features."""
    base, *numbers = name.split("_")
    if base in SIZED and len(numbers) == len(SIZES) and all(map(str.isdigit, numbers)):
        return sized(SIZED[base], *map(int, numbers))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
