"""`heron/Tag-v0`: MPE's simple_tag. Slow hunters are rewarded for touching a fast prey, which stays in the middle."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from heron_env.core.rule import rule
from heron_env.core.world import World
from heron_env.given import require_count, require_switch
from heron_env.worlds.particles.bodies import (
    Sight,
    Stakes,
    move,
    obey,
    place,
    see_own,
    see_velocities,
    see_ways,
    touches,
    written,
)
from heron_env.worlds.particles.env import Particle, ParticlesEnv, Plane, in_both_forms
from heron_env.worlds.particles.policies import Array, nearest, pairs

EDGE = 0.9
"""Landmarks lie, and the prey may go, no farther out."""


@in_both_forms()
class Hunter(Particle):
    """Earns 10 for each touch of a hunter and a prey, whoever they are."""

    size, accel, top, collides = 0.075, 3.0, 1.0, True

    @staticmethod
    @rule
    def compute_local_reward(stakes: Stakes) -> float:
        """All contacts count for each hunter."""
        return 10.0 * stakes.contacts


@in_both_forms()
class Prey(Particle):
    """Loses 10 for each hunter that touches it, and something for leaving the square."""

    size, accel, top, collides = 0.05, 4.0, 1.3, True

    @staticmethod
    @rule
    def compute_local_reward(stakes: Stakes, sight: Sight) -> float:
        """Its own contacts count."""
        return -10.0 * stakes.contacts - outside(sight.position[0]) - outside(sight.position[1])


def outside(coordinate: float) -> float:
    """What it costs to be that far from the middle, along one axis."""
    far = abs(coordinate)
    if far < EDGE:
        return 0.0
    return (far - EDGE) * 10.0 if far < 1.0 else min(math.exp(2.0 * far - 2.0), 10.0)


def chase(seen: Mapping[str, Array]) -> tuple[Array, None]:
    """To the nearest prey."""
    prey = seen["velocities"].shape[1]
    return nearest(pairs(seen["others"])[:, -prey // 2 :]), None


def flee(seen: Mapping[str, Array]) -> tuple[Array, None]:
    """Away from the nearest hunter, and towards the middle where that is far."""
    many = len(seen["others"][0]) // 2 - len(seen["velocities"][0]) // 2
    way = nearest(pairs(seen["others"])[:, :many])
    return -way / np.hypot(*way.T)[:, None] - seen["position"] * np.abs(seen["position"]) ** 3, None


class TagEnv(ParticlesEnv):
    """MPE's simple_tag."""

    metadata = {**ParticlesEnv.metadata, "name": "heron/Tag-v0"}
    rules = {"adversary": chase, "agent": flee}

    @staticmethod
    @rule
    def begin(world: World) -> None:
        """Everybody lies somewhere, and looks around."""
        place(world, world[Plane].Bodies, len(world[Hunter].Stakes.own) + len(world[Prey].Stakes.own), EDGE)
        look(world)

    @staticmethod
    @rule(writes=written("velocity", "position", "landmarks", "others", "velocities"))
    def advance(world: World, dt: float) -> None:
        """One substep, then look around."""
        bodies, hunters, prey = world[Plane].Bodies, world[Hunter].Order.action, world[Prey].Order.action
        obey(hunters, bodies, 0, 0)
        obey(prey, bodies, len(hunters), 0)
        move(bodies, dt)
        look(world)


def look(world: Any) -> None:
    """What everybody sees; who touches whom."""
    bodies, hunters, prey = world[Plane].Bodies, world[Hunter], world[Prey]
    many, agents = len(hunters.Stakes.own), len(hunters.Stakes.own) + len(prey.Stakes.own)
    watch(hunters.Sight, bodies, 0, many, agents)
    watch(prey.Sight, bodies, many, many, agents)
    total = count_contacts(bodies, prey.Stakes.contacts, many)
    for i in range(many):
        hunters.Stakes.contacts[i] = total


def watch(sight: Any, bodies: Any, first: int, hunters: int, agents: int) -> None:
    """What agents see from `first` on; the prey comes after the hunters."""
    see_own(sight.velocity, bodies.vx[0], bodies.vy[0], first)
    see_own(sight.position, bodies.x[0], bodies.y[0], first)
    see_ways(sight.landmarks, bodies, first, agents, bodies.x.shape[1])
    see_ways(sight.others, bodies, first, 0, agents)
    see_velocities(sight.velocities, bodies, first, hunters, agents)


def count_contacts(bodies: Any, contacts: Any, hunters: int) -> float:
    """Contacts of each prey with hunters, `[n]`, and their sum; the prey comes after the hunters."""
    total = 0.0
    for k in range(len(contacts)):
        contacts[k] = 0.0
        for i in range(hunters):
            contacts[k] += 1.0 if touches(bodies, hunters + k, i) else 0.0
        total += contacts[k]
    return total


def tag(
    num_good: int = 1,
    num_adversaries: int = 3,
    num_obstacles: int = 2,
    continuous: bool = True,
    max_steps: int | None = 25,
    **options: Any,
) -> TagEnv:
    """MPE's simple_tag: hunters, slower than their prey, try to touch it between obstacles.

    Args:
        num_good: prey, agent_0 ... agent_{n-1}.
        num_adversaries: hunters, adversary_0 ... adversary_{n-1}.
        num_obstacles: landmarks that agents bounce off.
        continuous: five pushes in [0, 1] (stay, left, right, down, up); False: one of five directions.
        max_steps: steps an episode.
        options: of HeronEnv.

    Raises ConfigError naming the argument and its value.
    """
    require_count(f"tag(num_good={num_good!r:.60})", num_good)
    require_count(f"tag(num_adversaries={num_adversaries!r:.60})", num_adversaries)
    require_count(f"tag(num_obstacles={num_obstacles!r:.60})", num_obstacles, 0)
    require_switch(f"tag(continuous={continuous!r:.60})", continuous)
    agents = num_good + num_adversaries
    parts = {"velocity": 2, "position": 2, "landmarks": 2 * num_obstacles, "others": 2 * (agents - 1)}
    hunters = [(Hunter, f"adversary_{i}", {**parts, "velocities": 2 * num_good}) for i in range(num_adversaries)]
    prey = [(Prey, f"agent_{i}", {**parts, "velocities": 2 * (num_good - 1)}) for i in range(num_good)]
    landmarks = [(0.2, True)] * num_obstacles
    return TagEnv([*hunters, *prey], landmarks, continuous=continuous, max_steps=max_steps, **options)
