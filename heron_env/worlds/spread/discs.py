"""Discs that push themselves, slow down and bounce: what is known of each, its actions, and MPE's dynamics.

Units are MPE's own: masses are 1, agents are discs of radius 0.15.

A step of dt: the force on an agent is its own push plus, from each other agent at distance d, a repulsion of
100 softplus((0.3 - d) / 0.001) 0.001, soft only within a thousandth around contact. The agent first moves on with the
velocity it has, p + v dt; then its velocity becomes 0.75^(dt / 0.1) v + F dt. Landmarks neither move nor collide.

Agents' columns are float64 `[n]`, the landmarks' x and y `[1, n]`; the functions of the dynamics write into them.
"""

import math
from functools import cache, partial
from typing import Any, Final

import numpy as np

from heron_env.agents.agent import FieldAgent
from heron_env.core.action import Continuous, Discrete, Vector
from heron_env.core.feature import FeatureProvider, of_any_size, quantity
from heron_env.core.rule import rule

FULL_FORCE = 5.0
"""Force of a full push along one axis."""
FAR = 1e3
"""Bound of positions and speeds: a full push for 500 s; MPE knows none."""
MATES = ("exact", "message")
"""How an agent sees the others: as its own measurement, or by their messages."""


class Velocity(FeatureProvider):
    """Speed of one agent."""

    x: float = quantity(low=-FAR, high=FAR)
    y: float = quantity(low=-FAR, high=FAR)


class Position(FeatureProvider):
    """Where the agent is; episodes start within [-1, 1]."""

    x: float = quantity(low=-FAR, high=FAR)
    y: float = quantity(low=-FAR, high=FAR)


class SharedPosition(Position):
    """With mates="message": where the agent is, which the others receive, and see from where they are."""

    feature_name = "Position"
    visibility = ("public",)
    x: float = quantity(low=-FAR, high=FAR, relative=True)
    y: float = quantity(low=-FAR, high=FAR, relative=True)


class Told(SharedPosition):
    """The same with what the agent says.

    words: always 0, for in simple_spread nobody speaks; nobody hears itself.
    """

    feature_name = "Position"
    words: np.ndarray = quantity(shape=(2,), low=0.0, high=1.0, to_owner=False)


class Surroundings(FeatureProvider):
    """What an agent sees around itself, seen from itself; physics writes it. `surroundings(n)` has the quantities.

    landmarks `[2n]` and others `[2(n - 1)]`: x and y of each, relative to the agent; messages `[2(n - 1)]`: always 0,
    for in simple_spread nobody speaks. A single agent sees no others; the place for them stays, and is never observed.
    It is the agent's own, thus exact under every observability matrix.
    """


class Landscape(Surroundings):
    """The same with other mates than "exact": what an agent sees of them is what they tell, thus not observed here."""

    feature_name = "Surroundings"


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


def surroundings(n: int, base: Any = Surroundings) -> type[Surroundings]:
    """The surroundings, or the landscape, of one of `n` agents."""
    around, others, seen = (-2.0 * FAR, 2.0 * FAR), 2 * max(n - 1, 1), n > 1 and base is Surroundings
    vectors = [("landmarks", 2 * n, *around, True), ("others", others, *around, seen)]
    vectors += [("messages", others, 0.0, 1.0, True)] if seen else []
    made: type[Surroundings] = _sized(base, n, tuple(vectors))
    return made


def landmarks(n: int) -> type[Landmarks]:
    """The positions of `n` landmarks."""
    made: type[Landmarks] = _sized(Landmarks, n, (("x", n, -FAR, FAR, True), ("y", n, -FAR, FAR, True)))
    return made


@cache
def _sized(base: Any, n: int, vectors: tuple[tuple[str, int, float, float, bool], ...]) -> Any:
    """The subclass for `n` agents, with vectors of a name, size and bounds, observed or not; one class for each n."""
    body = {name: quantity(shape=(size,), low=low, high=high, observed=seen) for name, size, low, high, seen in vectors}
    names = {"__module__": __name__, "__doc__": base.__doc__, "feature_name": base.feature_name}
    return type(f"{base.__name__}{n}", (base,), {**names, **body, "__annotations__": dict.fromkeys(body, np.ndarray)})


def __getattr__(name: str) -> Any:
    """`Surroundings3`, `Landmarks3`: by these names copies and pickles of environments find their features."""
    landscape = partial(surroundings, base=Landscape)
    for base, make in ((Surroundings, surroundings), (Landscape, landscape), (Landmarks, landmarks)):
        number = name.removeprefix(base.__name__)
        if number != name and number.isdigit():
            return make(int(number))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


STEP = 0.1
"""MPE's time step, s, to which the damping refers."""
KEPT = 0.75
"""Share of its velocity that an agent keeps over STEP."""
TOUCH = 0.3
"""Two agents closer than this touch."""
REACH = 0.35
"""Farther apart they repel each other with less than 1e-22, which no velocity notices."""
STIFFNESS = 100.0
"""Repulsion per unit of overlap."""
MARGIN = 1e-3
"""How soft the contact is."""
HARD = 40.0
"""From this overlap on, in margins, softplus is the overlap itself, in every bit."""
COVERED = 0.1
"""A landmark with an agent nearer than this is covered."""


def move(discs: Any, dt: float) -> None:
    """Positions and velocities after `dt` seconds, under the agents' pushes and the repulsion of their contacts."""
    position, velocity, force, contact = discs.Position, discs.Velocity, discs.Force, discs.Contact
    kept = KEPT if dt == STEP else KEPT ** (dt / STEP)
    for i in range(len(position.x)):
        position.x[i] += velocity.x[i] * dt
        position.y[i] += velocity.y[i] * dt
        velocity.x[i] = velocity.x[i] * kept + (force.x[i] + contact.x[i]) * dt
        velocity.y[i] = velocity.y[i] * kept + (force.y[i] + contact.y[i]) * dt


def repulsion(distance: float) -> float:
    """Force between two agents, per metre of the way between them; 0 where they are at the very same place."""
    if distance == 0.0:
        return 0.0
    overlap = (TOUCH - distance) / MARGIN
    if overlap > HARD:
        return STIFFNESS * overlap * MARGIN / distance
    soft = max(overlap, 0.0) + math.log1p(math.exp(-abs(overlap)))
    return STIFFNESS * soft * MARGIN / distance


def look(discs: Any, landmarks: Any, team: Any) -> None:
    """What each agent sees around itself, whom it touches, and how near landmarks the team is."""
    look_at_others(discs.Position, discs.Surroundings, discs.Contact)
    x, y, seen = discs.Position.x, discs.Position.y, discs.Surroundings.landmarks
    distance, covered = 0.0, 0.0
    for k in range(len(x)):
        there_x, there_y = landmarks.x[0, k], landmarks.y[0, k]
        nearest = math.inf
        for i in range(len(x)):
            way_x, way_y = there_x - x[i], there_y - y[i]
            seen[i, 2 * k], seen[i, 2 * k + 1] = way_x, way_y
            nearest = min(nearest, way_x * way_x + way_y * way_y)
        nearest = math.sqrt(nearest)
        distance += nearest
        covered += 1.0 if nearest < COVERED else 0.0
    team.distance[0], team.covered[0] = distance, covered


def look_at_others(position: Any, surroundings: Any, contact: Any) -> None:
    """The ways from each agent to the others; where they are close, contacts and repulsion."""
    x, y, seen = position.x, position.y, surroundings.others
    for i in range(len(x)):
        contact.others[i] = contact.x[i] = contact.y[i] = 0.0
    for i in range(len(x)):
        x_i, y_i = x[i], y[i]
        for j in range(i + 1, len(x)):
            x_j, y_j = x[j], y[j]
            way_x, way_y = x_j - x_i, y_j - y_i
            seen[i, 2 * j - 2], seen[i, 2 * j - 1] = way_x, way_y
            seen[j, 2 * i], seen[j, 2 * i + 1] = x_i - x_j, y_i - y_j
            square = way_x * way_x + way_y * way_y
            if square < REACH * REACH:
                distance = math.sqrt(square)
                share = repulsion(distance)
                contact.x[i] -= share * way_x
                contact.y[i] -= share * way_y
                contact.x[j] += share * way_x
                contact.y[j] += share * way_y
                if distance < TOUCH:
                    contact.others[i] += 1.0
                    contact.others[j] += 1.0


WRITTEN: Final = (
    Position.x, Position.y, Velocity.x, Velocity.y, *of_any_size(Surroundings, "landmarks", "others"),
    Contact.others, Contact.x, Contact.y, Team.distance, Team.covered,
)  # fmt: skip
"""What `move` and `look` write."""
DIRECTIONS = ("stay", "left", "right", "down", "up")
"""What the elements of a continuous action mean, and the choices of a discrete one."""


class Disc(FieldAgent):
    """A body without a drive. Its reward mixes the team's success with its own collisions."""

    features = (Velocity, Position, Surroundings, Force, Contact)

    @staticmethod
    @rule
    def compute_local_reward(contact: Contact, team: Team) -> float:
        """-(1 - local_ratio) distance - local_ratio contacts."""
        return -team.distance * (1.0 - contact.local_ratio) - contact.others * contact.local_ratio


class Pusher(Disc):
    """Five numbers in [0, 1] (MPE's continuous actions): how hard to push in each direction; the first does nothing."""

    action = Continuous(0.0, 1.0, size=len(DIRECTIONS))

    @staticmethod
    @rule(writes=(Force.x, Force.y))
    def apply_action(action: Vector) -> tuple[float, float]:
        """Set the force; opposite pushes cancel."""
        return FULL_FORCE * (action[2] - action[1]), FULL_FORCE * (action[4] - action[3])


class Chooser(Disc):
    """One of five directions (MPE's discrete actions), pushed with full force; the first does nothing."""

    action = Discrete(len(DIRECTIONS))

    @staticmethod
    @rule(writes=(Force.x, Force.y))
    def apply_action(action: Vector) -> tuple[float, float]:
        """Put all the force in one direction. Products avoid unpredictable branches."""
        choice = action[0]
        right = FULL_FORCE * (choice == 2.0) - FULL_FORCE * (choice == 1.0)
        up = FULL_FORCE * (choice == 4.0) - FULL_FORCE * (choice == 3.0)
        return right, up
