"""`heron/WorldComm-v0`: MPE's simple_world_comm. Tag with food, forests that hide, and a leader who sees and speaks."""

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
    apart,
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
from heron_env.worlds.particles.tag import EDGE, chase, count_contacts, outside
from heron_env.worlds.particles.words import hear

WORDS = 4
MOST_FORESTS = 50
"""A bit of a float64 each."""


class Pursuer(Particle):
    """Earns 5 for each touch of a pursuer and a forager, whoever they are; its way to the nearest forager costs."""

    size, accel, top, collides = 0.075, 3.0, 1.0, True

    @staticmethod
    @rule
    def compute_local_reward(stakes: Stakes) -> float:
        """All contacts count for each pursuer."""
        return -0.1 * stakes.own + 5.0 * stakes.contacts


@in_both_forms(WORDS)
class Leader(Pursuer):
    """Sees into the forests, and tells the pack something."""


@in_both_forms()
class Pack(Pursuer):
    """Hears the leader."""


@in_both_forms()
class Forager(Particle):
    """Wants to touch food, and no pursuer; leaving the square costs something."""

    size, accel, top, collides = 0.045, 4.0, 1.3, True

    @staticmethod
    @rule
    def compute_local_reward(stakes: Stakes, sight: Sight) -> float:
        """2 for each food, minus 5 for each pursuer, and less the farther the next food is."""
        left = -5.0 * stakes.contacts - 2.0 * outside(sight.position[0]) - 2.0 * outside(sight.position[1])
        return left + 2.0 * stakes.food - 0.05 * stakes.own


def lead(seen: Mapping[str, Array]) -> tuple[Array, Any]:
    """Chase; the word is always the first."""
    return chase(seen)[0], np.zeros(len(seen["position"]), dtype=np.int64)


def graze(seen: Mapping[str, Array]) -> tuple[Array, None]:
    """To the nearest food."""
    return nearest(pairs(seen["food"])), None


class WorldCommEnv(ParticlesEnv):
    """MPE's simple_world_comm. Landmarks are obstacles, food and forests, in this order."""

    metadata = {**ParticlesEnv.metadata, "name": "heron/WorldComm-v0"}
    rules = {"leadadversary": lead, "adversary": chase, "agent": graze}

    @staticmethod
    @rule
    def begin(world: World) -> None:
        """Everybody lies somewhere, and looks around."""
        bodies = world[Plane].Bodies
        place(world, bodies, 1 + len(world[Pack].Stakes.own) + len(world[Forager].Stakes.own), EDGE)
        survey(world)

    @staticmethod
    @rule(
        writes=written(
            "velocity", "position", "landmarks", "food", "forests", "others", "velocities", "inside", "heard"
        )
    )
    def advance(world: World, dt: float) -> None:
        """One substep, then look around."""
        bodies, pack, foragers = world[Plane].Bodies, world[Pack].Order.action, world[Forager].Order.action
        obey(world[Leader].Order.action, bodies, 0, WORDS)
        obey(pack, bodies, 1, 0)
        obey(foragers, bodies, 1 + len(pack), 0)
        move(bodies, dt)
        survey(world)


def survey(world: Any) -> None:
    """What everybody sees and hears; who touches whom, and how far away is what each one wants."""
    bodies, leader, pack, foragers = world[Plane].Bodies, world[Leader], world[Pack], world[Forager]
    prey = 1 + len(pack.Stakes.own)
    food = landmarks = prey + len(foragers.Stakes.own)
    while food < bodies.x.shape[1] and bodies.collides[0, food] > 0.0:
        food += 1
    spans = prey, landmarks, food, food + foragers.Sight.food.shape[1] // 2
    enter(bodies, landmarks, spans[3])
    look_round(leader.Sight, bodies, 0, spans)
    look_round(pack.Sight, bodies, 1, spans)
    look_round(foragers.Sight, bodies, prey, spans)
    hear(leader.Sight.heard, bodies, 0)
    hear(pack.Sight.heard, bodies, 0)
    total = count_contacts(bodies, foragers.Stakes.contacts, prey)
    pursue(leader.Stakes, bodies, 0, spans, total)
    pursue(pack.Stakes, bodies, 1, spans, total)
    for i in range(len(foragers.Stakes.own)):
        foragers.Stakes.own[i], foragers.Stakes.food[i] = math.inf, 0.0
        for j in range(food, spans[3]):
            foragers.Stakes.own[i] = min(foragers.Stakes.own[i], apart(bodies, prey + i, j))
            foragers.Stakes.food[i] += 1.0 if touches(bodies, prey + i, j) else 0.0


def enter(bodies: Any, agents: int, forests: int) -> None:
    """In which forests each agent is: bit 0 of `inside` for the first."""
    for i in range(agents):
        bodies.inside[0, i] = 0.0
        for f in range(forests, bodies.x.shape[1]):
            if touches(bodies, i, f):
                bodies.inside[0, i] += 2.0 ** (f - forests)


def look_round(sight: Any, bodies: Any, first: int, spans: tuple[int, int, int, int]) -> None:
    """What agents see from `first` on; `spans`: the first forager, obstacle, food and forest."""
    prey, landmarks, food, forests = spans
    see_own(sight.velocity, bodies.vx[0], bodies.vy[0], first)
    see_own(sight.position, bodies.x[0], bodies.y[0], first)
    see_ways(sight.landmarks, bodies, first, landmarks, food)
    see_ways(sight.food, bodies, first, food, forests)
    see_ways(sight.forests, bodies, first, forests, bodies.x.shape[1])
    see_ways(sight.others, bodies, first, 0, landmarks)
    see_velocities(sight.velocities, bodies, first, prey, landmarks)
    for i in range(len(sight.position)):
        here = int(bodies.inside[0, first + i])
        for f in range(bodies.x.shape[1] - forests):
            sight.inside[i, f] = 1.0 if here >> f & 1 else -1.0
        at, moving = 0, 0
        for j in range(landmarks):
            there = int(bodies.inside[0, j])
            hidden = here | there > 0 and here & there == 0 and first > 0
            if j != first + i:
                if hidden:
                    sight.others[i, at] = sight.others[i, at + 1] = 0.0
                at += 2
            if j >= prey and j != first + i:
                if hidden:
                    sight.velocities[i, moving] = sight.velocities[i, moving + 1] = 0.0
                moving += 2


def pursue(stakes: Any, bodies: Any, first: int, spans: tuple[int, int, int, int], total: float) -> None:
    """All contacts, and the distance from the nearest forager, of pursuers from `first` on."""
    for i in range(len(stakes.own)):
        stakes.contacts[i], stakes.own[i] = total, math.inf
        for j in range(spans[0], spans[1]):
            stakes.own[i] = min(stakes.own[i], apart(bodies, first + i, j))


def world_comm(
    num_good: int = 2, num_adversaries: int = 4, num_obstacles: int = 1, num_food: int = 2, num_forests: int = 2, *,
    continuous: bool = True, max_steps: int | None = 25, **options: Any,
) -> WorldCommEnv:  # fmt: skip
    """MPE's simple_world_comm: foragers look for food, pursuers with a leader for them; forests hide who is inside.

    Args:
        num_good: foragers, agent_0 ... agent_{n-1}.
        num_adversaries: pursuers, at least 2: leadadversary_0, adversary_0 ... adversary_{n-2}.
        num_obstacles: landmarks that agents bounce off.
        num_food: what foragers touch.
        num_forests: who is in one sees, and is seen by, those in it alone, and the leader.
        continuous: numbers in [0, 1], five pushes (stay, left, right, down, up) and the leader's four words; False: one
            direction, the leader's choice direction + 5 word.
        max_steps: steps an episode.
        options: of HeronEnv.

    Raises ConfigError naming the argument and its value.
    """
    require_count(f"world_comm(num_good={num_good!r:.60})", num_good)
    require_count(f"world_comm(num_adversaries={num_adversaries!r:.60})", num_adversaries, 2)
    require_count(f"world_comm(num_obstacles={num_obstacles!r:.60})", num_obstacles, 0)
    require_count(f"world_comm(num_food={num_food!r:.60})", num_food)
    require_count(f"world_comm(num_forests={num_forests!r:.60})", num_forests, 0, MOST_FORESTS)
    require_switch(f"world_comm(continuous={continuous!r:.60})", continuous)
    around = {"velocity": 2, "position": 2, "landmarks": 2 * num_obstacles, "food": 2 * num_food}
    around |= {"forests": 2 * num_forests, "others": 2 * (num_good + num_adversaries - 1)}
    pursuer = {**around, "velocities": 2 * num_good, "inside": num_forests, "heard": WORDS}
    forager = {**around, "inside": num_forests, "velocities": 2 * (num_good - 1)}
    members = [
        (Leader, "leadadversary_0", pursuer),
        *((Pack, f"adversary_{i}", pursuer) for i in range(num_adversaries - 1)),
        *((Forager, f"agent_{i}", forager) for i in range(num_good)),
    ]
    landmarks = [(0.2, True)] * num_obstacles + [(0.03, False)] * num_food + [(0.3, False)] * num_forests
    return WorldCommEnv(members, landmarks, continuous=continuous, words=WORDS, max_steps=max_steps, **options)
