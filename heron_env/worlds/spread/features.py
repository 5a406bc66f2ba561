"""What is known of an agent: its motion, what it sees around itself, its set-point; and the landmarks of all."""

from functools import cache
from typing import Any

import numpy as np

from heron_env.core.feature import FeatureProvider, quantity

FULL_FORCE = 5.0
"""Force of a full push along one axis."""
FAR = 1e3
"""Bound of positions and speeds: a full push for 500 s; MPE knows none."""


class Velocity(FeatureProvider):
    """Speed of one agent."""

    x: float = quantity(low=-FAR, high=FAR)
    y: float = quantity(low=-FAR, high=FAR)


class Position(FeatureProvider):
    """Where the agent is; episodes start within [-1, 1]."""

    x: float = quantity(low=-FAR, high=FAR)
    y: float = quantity(low=-FAR, high=FAR)


class Surroundings(FeatureProvider):
    """What an agent sees around itself, seen from itself; physics writes it. `surroundings(n)` has the quantities.

    landmarks `[2n]` and others `[2(n - 1)]`: x and y of each, relative to the agent; messages `[2(n - 1)]`: always 0,
    for in simple_spread nobody speaks. A single agent sees no others; the place for them stays, and is never observed.
    It is the agent's own, thus exact under every observability matrix.
    """


class Force(FeatureProvider):
    """Force the agent is asked to push with: its set-point."""

    x: float = quantity(low=-FULL_FORCE, high=FULL_FORCE, observed=False)
    y: float = quantity(low=-FULL_FORCE, high=FULL_FORCE, observed=False)


class Contact(FeatureProvider):
    """Whom the agent touches now, and how much that counts in its reward.

    others: how many it touches. x, y: force of all others on it. local_ratio: weight of its contacts; the rest is the
    team's distance.
    """

    others: float = quantity(default=0.0, low=0.0, high=1e6, observed=False)
    x: float = quantity(default=0.0, observed=False)
    y: float = quantity(default=0.0, observed=False)
    local_ratio: float = quantity(default=0.5, low=0.0, high=1.0, observed=False)


class Landmarks(FeatureProvider):
    """Where the landmarks are; `landmarks(n)` has the quantities x and y `[n]`. Agents see them from themselves."""

    visibility = ()


class Team(FeatureProvider):
    """What the agents are judged by together; nobody sees it.

    distance: sum over the landmarks of the distance to the nearest agent. covered: landmarks with an agent within
    0.1. The sums run over the steps of the episode.
    """

    visibility = ()
    distance: float = quantity(low=0.0, high=1e9, observed=False)
    covered: float = quantity(low=0.0, high=1e6, observed=False)
    distance_sum: float = quantity(low=0.0, high=1e15, observed=False)
    contact_sum: float = quantity(low=0.0, high=1e15, observed=False)


def surroundings(n: int) -> type[Surroundings]:
    """The surroundings of one of `n` agents."""
    around, others = (-2.0 * FAR, 2.0 * FAR), 2 * max(n - 1, 1)
    vectors = [("landmarks", 2 * n, *around, True), ("others", others, *around, n > 1)]
    vectors += [("messages", others, 0.0, 1.0, True)] if n > 1 else []
    made: type[Surroundings] = _sized(Surroundings, n, tuple(vectors))
    return made


def landmarks(n: int) -> type[Landmarks]:
    """The positions of `n` landmarks."""
    made: type[Landmarks] = _sized(Landmarks, n, (("x", n, -FAR, FAR, True), ("y", n, -FAR, FAR, True)))
    return made


@cache
def _sized(base: Any, n: int, vectors: tuple[tuple[str, int, float, float, bool], ...]) -> Any:
    """The subclass for `n` agents, with vectors of a name, size and bounds, observed or not; one class for each n."""
    body = {name: quantity(shape=(size,), low=low, high=high, observed=seen) for name, size, low, high, seen in vectors}
    names = {"__module__": __name__, "__doc__": base.__doc__, "feature_name": base.__name__}
    return type(f"{base.__name__}{n}", (base,), {**names, **body, "__annotations__": dict.fromkeys(body, np.ndarray)})


def __getattr__(name: str) -> Any:
    """`Surroundings3`, `Landmarks3`: by these names copies and pickles of environments find their features."""
    for base, make in ((Surroundings, surroundings), (Landmarks, landmarks)):
        number = name.removeprefix(base.__name__)
        if number != name and number.isdigit():
            return make(int(number))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
