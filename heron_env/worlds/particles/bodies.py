"""Bodies of the particle worlds (MPE's): what is known of each, how actions move them, and what agents see.

Units are MPE's own: all masses are 1. `Bodies`, a feature of the system agent, holds the whole world: the agents in
their order, then the landmarks. Agents have three features of their own: `ActionInForce`; `ParticleView`, what mpe2
lets them observe, in mpe2's order; `Stakes`, what their reward is made of. Physics writes the last two. Where agents
share where they are, `Velocity` and `SharedPosition` take the place of parts of the view; physics writes them, too.
Where words are messages, speakers have a `Speech`, and who listens has a `Heard` in place of a part of the view.

A step of dt, with the sums in mpe2's order, so that results agree to the last bit: the force on a body is its own
push, plus 100 softplus((r - d) / 0.001) 0.001 away from each body that it collides with, at distance d, r the sum of
their radii. A body moves on with the velocity it has; then this is damped to 0.75^(dt / 0.1), the force is added, and
its top speed is kept. What is said is heard after the step.

A scenario has a class of agents for each role (`in_both_forms` in env.py), a function that calls `obey` for each class,
one that fills ParticleView, by `see_...`, and Stakes, and an environment that makes its rules of both by `steps`.
"""

import math
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from heron_env.agents.horizontal import Inbox
from heron_env.core.feature import FeatureProvider, of_any_size, quantity
from heron_env.core.quantity import Quantity
from heron_env.core.world import World
from heron_env.worlds.spread.discs import (
    DIRECTIONS,
    FAR,
    HARD,
    KEPT,
    MARGIN,
    STEP,
    STIFFNESS,
    Position,
    Velocity,
)

NOTHING: Final = -1.0
"""In place of an action: there was none yet."""
MOVES: Final = len(DIRECTIONS)


class ActionInForce(FeatureProvider):
    """The action in force, as the agent gave it: `action_in_force(size)` has the vector `action` `[size]`."""

    if TYPE_CHECKING:
        action: Any = None


class ParticleView(FeatureProvider):
    """What an agent sees, from where it is: `particle_view(velocity=2, goal=2)` has vectors of these names and sizes.

    It is the agent's own, thus exact under every observability matrix. A vector of size 0 is never observed.
    """

    if TYPE_CHECKING:
        position: Any = None


class SharedVelocity(Velocity):
    """With mates="message": the velocity of one agent, which the others receive."""

    feature_name = "Velocity"
    visibility = ("public",)


class Speech(FeatureProvider):
    """What an agent says now: `speech(words)` has the vector `words` `[words]`, which its listeners receive (V8, V10).

    says: 1 from an action until its words have left. cost: of a message. silence: 1: to say nothing sends nothing; 0:
    nothing is said in words that are all 0, as in MPE.
    """

    says: float = quantity(default=0.0, low=0.0, high=1.0, observed=False)
    cost: float = quantity(default=0.0, low=0.0, high=1e6, observed=False)
    silence: float = quantity(default=0.0, low=0.0, high=1.0, observed=False)


class HeardWords(Inbox):
    """What arrived last: `heard(words)` has the vector `words` `[words]`."""

    feature_name = "Heard"


class Stakes(FeatureProvider):
    """What an agent is rewarded for; nobody sees it.

    contacts, food: how much of both counts for it. own: its distance from what it wants. others: that of others.
    local_ratio: weight of its own reward where the team's is mixed in.
    """

    contacts: float = quantity(default=0.0, low=0.0, high=1e6, observed=False)
    own: float = quantity(default=0.0, low=0.0, high=1e9, observed=False)
    others: float = quantity(default=0.0, low=0.0, high=1e9, observed=False)
    food: float = quantity(default=0.0, low=0.0, high=1e6, observed=False)
    local_ratio: float = quantity(default=0.5, low=0.0, high=1.0, observed=False)


class Eyes(FeatureProvider):
    """How far hunters see their prey, `radius` `[1]`; nobody observes it."""

    visibility = ()


class Bodies(FeatureProvider):
    """All bodies, agents first: `bodies(entities, agents, words)`; nobody sees it.

    Vectors `[entities]`: x, y, vx, vy, fx, fy: position, velocity, force. size: radius. accel: force of a full push, 0
    for what stays where it is. top: highest speed. collides: does it bounce off others that do? reach: episodes
    start within [-reach, reach]. inside: where that counts, the forests that it is in, a bit each. Besides said
    `[agents * words]`: what each agent says; goals `[2]`: landmarks drawn anew in each episode, what they mean, the
    scenario says; agents `[1]`: how many there are.
    """

    visibility = ()


BOUNDS: Final[Mapping[str, tuple[float, float]]] = {
    "velocity": (-FAR, FAR), "position": (-FAR, FAR), "velocities": (-FAR, FAR), "inside": (-1.0, 1.0),
    "heard": (0.0, 1.0), "colour": (0.0, 1.0), "colours": (0.0, 1.0), "key": (0.0, 1.0),
}  # fmt: skip
"""Of the parts of a view; all others are ways from one place to another."""


@cache
def action_in_force(size: int) -> Any:
    """The feature for an action of so many numbers."""
    action = quantity(default=(NOTHING,) * size, low=NOTHING, high=1e3, shape=(size,), observed=False)
    return _made(ActionInForce, f"ActionInForce_{size}", action=action)


@cache
def particle_view(**sizes: int) -> Any:
    """The view with these parts, in this order."""
    parts = {}
    for name, size in sizes.items():
        low, high = BOUNDS.get(name, (-2.0 * FAR, 2.0 * FAR))
        parts[name] = quantity(low=low, high=high, shape=(max(size, 1),), observed=size > 0)
    return _made(ParticleView, "_".join(["ParticleView", *(f"{name}{size}" for name, size in sizes.items())]), **parts)


@cache
def speech(words: int) -> Any:
    """The speech of an agent with so many words."""
    said = quantity(low=0.0, high=1.0, shape=(words,), to_owner=False)
    return _made(Speech, f"Speech_{words}", words=said)


@cache
def heard(words: int) -> Any:
    """The inbox for so many words."""
    return _made(HeardWords, f"Heard_{words}", words=quantity(low=0.0, high=1.0, shape=(words,)))


@cache
def eyes(radius: float) -> Any:
    """How far hunters see their prey."""
    name = f"Eyes_{radius!r}".replace(".", "_")
    return _made(Eyes, name, radius=quantity(default=(radius,), low=0.0, shape=(1,), observed=False))


@cache
def bodies(entities: int, agents: int, words: int) -> Any:
    """The world of so many bodies, of which so many are agents, who have so many words."""
    names = ("x", "y", "vx", "vy", "fx", "fy", "size", "accel", "top", "collides", "inside", "reach")
    sizes = {**dict.fromkeys(names, entities), "said": max(agents * words, 1), "goals": 2, "agents": 1}
    made = {name: quantity(low=-1e9, high=1e9, shape=(size,), observed=False) for name, size in sizes.items()}
    return _made(Bodies, f"Bodies_{entities}_{agents}_{words}", **made)


def _made(base: Any, name: str, **fields: Any) -> Any:
    """The subclass of this name with these vectors."""
    about = {"__module__": __name__, "__doc__": base.__doc__, "feature_name": base.feature_name}
    return type(name, (base,), {**about, **fields, "__annotations__": dict.fromkeys(fields, np.ndarray)})


def __getattr__(name: str) -> Any:
    """`ActionInForce_5`, `ParticleView_goal2`, `Bodies_6_4_2`: so copies and pickles find their features."""
    if re.fullmatch(r"ParticleView(_[a-z]+\d+)+", name):
        return particle_view(**{part: int(size) for part, size in re.findall(r"_([a-z]+)(\d+)", name)})
    if re.fullmatch(r"(ActionInForce|Speech|Heard)_\d+|Bodies_\d+_\d+_\d+", name):
        base, *sizes = name.split("_")
        made = {"ActionInForce": action_in_force, "Speech": speech, "Heard": heard, "Bodies": bodies}
        return made[base](*map(int, sizes))
    if re.fullmatch(r"Eyes_[\d_e+-]+", name):
        return eyes(float(name.removeprefix("Eyes_").replace("_", ".")))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def written(*parts: str) -> tuple[Quantity, ...]:
    """What a step writes where views have these parts."""
    state = of_any_size(Bodies, "x", "y", "vx", "vy", "fx", "fy", "said", "inside")
    return *state, *of_any_size(ParticleView, *parts), *of_any_size(Stakes, "contacts", "food", "own", "others")


SHARED: Final[Any] = (Position.x, Position.y, Velocity.x, Velocity.y)
"""What a step writes besides where agents share where they are."""
UTTERED: Final[Any] = of_any_size(Speech, "words")
"""What a step writes besides where words are messages."""


# The dynamics, for compiled rules and plain ones


def place(world: World, bodies: Any) -> None:
    """Everything lies somewhere in its square; goals are drawn."""
    places, goals = world.draw("places", (2, bodies.x.shape[1])), world.draw("goals", 2)
    for i in range(bodies.x.shape[1]):
        reach = bodies.reach[0, i]
        bodies.x[0, i], bodies.y[0, i] = reach * (2.0 * places[0, i] - 1.0), reach * (2.0 * places[1, i] - 1.0)
    for k in range(2):
        bodies.goals[0, k] = math.floor(goals[k] * (bodies.x.shape[1] - bodies.agents[0, 0]))


def obey(orders: Any, bodies: Any, first: int, words: int) -> None:
    """Pushes of the agents `first`, `first` + 1, ... by their actions `[n, size]`, and which of so many words they say.

    An action is a choice, of a direction, a word, or both; or numbers, five of them pushes, the others words.
    """
    for i in range(len(orders)):
        k, action = first + i, orders[i]
        pushes = MOVES if bodies.accel[0, k] > 0.0 else 0
        move, word, right, up = 0, -1, 0.0, 0.0
        if len(action) == 1 and action[0] > NOTHING:
            move, word = (int(action[0]) % MOVES, int(action[0]) // MOVES) if pushes > 0 else (0, int(action[0]))
            right, up = 1.0 * (move == 2) - 1.0 * (move == 1), 1.0 * (move == 4) - 1.0 * (move == 3)
        elif pushes > 0 and len(action) > 1:
            right, up = action[2] - action[1], action[4] - action[3]
        bodies.fx[0, k], bodies.fy[0, k] = right * bodies.accel[0, k], up * bodies.accel[0, k]
        for w in range(words):
            number = 1.0 if w == word else 0.0
            bodies.said[0, k * words + w] = max(action[pushes + w], 0.0) if len(action) > 1 else number


def move(bodies: Any, dt: float) -> None:
    """Positions and velocities after `dt` seconds."""
    push_apart(bodies)
    x, y, vx, vy = bodies.x[0], bodies.y[0], bodies.vx[0], bodies.vy[0]
    kept = KEPT if dt == STEP else KEPT ** (dt / STEP)
    for i in range(len(x)):
        if bodies.accel[0, i] > 0.0:
            x[i] += vx[i] * dt
            y[i] += vy[i] * dt
            vx[i] = vx[i] * kept + bodies.fx[0, i] * dt
            vy[i] = vy[i] * kept + bodies.fy[0, i] * dt
            speed, top = math.sqrt(vx[i] * vx[i] + vy[i] * vy[i]), bodies.top[0, i]
            if speed > top:
                vx[i], vy[i] = vx[i] / speed * top, vy[i] / speed * top


def push_apart(bodies: Any) -> None:
    """Add the forces of contacts, in the order of the pairs; none between bodies at the very same place."""
    x, y, fx, fy = bodies.x[0], bodies.y[0], bodies.fx[0], bodies.fy[0]
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            if bodies.collides[0, i] * bodies.collides[0, j] * (bodies.accel[0, i] + bodies.accel[0, j]) > 0.0:
                way_x, way_y = x[i] - x[j], y[i] - y[j]
                distance = math.sqrt(way_x * way_x + way_y * way_y)
                depth = overlap(distance, bodies.size[0, i] + bodies.size[0, j])
                if depth > 0.0 and distance > 0.0:
                    push_x, push_y = STIFFNESS * way_x / distance * depth, STIFFNESS * way_y / distance * depth
                    fx[i] += push_x
                    fy[i] += push_y
                    fx[j] -= push_x
                    fy[j] -= push_y


def overlap(distance: float, touch: float) -> float:
    """How deep two bodies that touch at a distance of `touch` lie in each other, softened."""
    margins = (touch - distance) / MARGIN
    soft = math.exp(-abs(margins))  # beyond HARD, log1p is the number itself
    return (max(margins, 0.0) + (math.log1p(soft) if abs(margins) < HARD else soft)) * MARGIN


def square_apart(bodies: Any, i: int, j: int) -> float:
    """Squared distance between two bodies."""
    way_x, way_y = bodies.x[0, i] - bodies.x[0, j], bodies.y[0, i] - bodies.y[0, j]
    return way_x * way_x + way_y * way_y  # type: ignore[no-any-return]


def apart(bodies: Any, i: int, j: int) -> float:
    """Distance between two bodies."""
    return math.sqrt(square_apart(bodies, i, j))


def touches(bodies: Any, i: int, j: int) -> bool:
    """Does a body touch, or lie in, another one?"""
    return apart(bodies, i, j) < bodies.size[0, i] + bodies.size[0, j]  # type: ignore[no-any-return]


# What agents see: `rows` `[n, size]` is a part of the view of agents first, first + 1, ...


def see_own(rows: Any, x: Any, y: Any, first: int) -> None:
    """Own position, or own velocity: `x` and `y` `[1, entities]` are those of all bodies."""
    for i in range(len(rows)):
        rows[i, 0], rows[i, 1] = x[0, first + i], y[0, first + i]


def share(members: Any, bodies: Any, first: int) -> None:
    """Write position and velocity of agents first, first + 1, ... into the features of which messages are made."""
    position, velocity = members.Position, members.Velocity
    for i in range(len(position.x)):
        k = first + i
        position.x[i], position.y[i] = bodies.x[0, k], bodies.y[0, k]
        velocity.x[i], velocity.y[i] = bodies.vx[0, k], bodies.vy[0, k]


def see_ways(rows: Any, bodies: Any, first: int, start: int, stop: int) -> None:
    """The ways to the bodies from `start` to before `stop`, but oneself."""
    for i in range(len(rows)):
        k, at = first + i, 0
        for j in range(start, stop):
            if j != k:
                rows[i, at], rows[i, at + 1] = bodies.x[0, j] - bodies.x[0, k], bodies.y[0, j] - bodies.y[0, k]
                at += 2


def see_velocities(rows: Any, bodies: Any, first: int, start: int, stop: int) -> None:
    """The velocities of the same."""
    for i in range(len(rows)):
        at = 0
        for j in range(start, stop):
            if j != first + i:
                rows[i, at], rows[i, at + 1] = bodies.vx[0, j], bodies.vy[0, j]
                at += 2


def utter(rows: Any, bodies: Any, first: int) -> None:
    """Write what agents first, first + 1, ... say into the words `[n, words]` of which messages are made."""
    words = rows.shape[1]
    for i in range(len(rows)):
        for w in range(words):
            rows[i, w] = bodies.said[0, (first + i) * words + w]


def hear(rows: Any, bodies: Any, speaker: int) -> None:
    """The words of one speaker."""
    words = rows.shape[1]
    for i in range(len(rows)):
        for w in range(words):
            rows[i, w] = bodies.said[0, speaker * words + w]


def see_colours(rows: Any, first: int, count: int, bright: float, dark: float) -> None:
    """So many colours, one after another: of the number `first` the basic colour `first` is bright, and so on."""
    basic = rows.shape[1] // count
    for i in range(len(rows)):
        for k in range(count):
            for c in range(basic):
                rows[i, k * basic + c] = bright if c == first + k else dark
