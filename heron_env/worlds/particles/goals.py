"""`heron/Adversary-v0` and `heron/Push-v0`: MPE's simple_adversary and simple_push, where one side knows the goal."""

import math
from collections.abc import Mapping
from typing import Any

from heron_env.core.rule import rule
from heron_env.core.world import World
from heron_env.given import require_count, require_switch
from heron_env.worlds.particles.bodies import Stakes, apart, move, obey, place, see_colours, see_own, see_ways, written
from heron_env.worlds.particles.env import Particle, ParticlesEnv, Plane, in_both_forms
from heron_env.worlds.particles.policies import Array, pairs, with_company

BRIGHT, DARK = 0.1 + 0.8, 0.1
"""Of the colours of landmarks in Push: the one of the landmark itself, and the others."""


@in_both_forms()
class Intruder(Particle):
    """Wants to be at the goal, and doesn't know which landmark it is."""

    size = 0.15

    @staticmethod
    @rule
    def compute_local_reward(stakes: Stakes) -> float:
        """Minus its distance."""
        return -stakes.own


@in_both_forms()
class Guard(Particle):
    """Wants that one of the guards is at the goal, and the intruder far from it."""

    size = 0.15

    @staticmethod
    @rule
    def compute_local_reward(stakes: Stakes) -> float:
        """The intruder's distance minus that of the nearest guard."""
        return -stakes.own + stakes.others


@in_both_forms()
class Shover(Particle):
    """Wants to be at the goal, which it doesn't know, in place of the runner."""

    collides = True

    @staticmethod
    @rule
    def compute_local_reward(stakes: Stakes) -> float:
        """The runner's distance minus its own."""
        return stakes.others - stakes.own


@in_both_forms()
class Runner(Particle):
    """Wants to be at the goal."""

    collides = True

    @staticmethod
    @rule
    def compute_local_reward(stakes: Stakes) -> float:
        """Minus its distance."""
        return -stakes.own


def head_for_company(seen: Mapping[str, Array]) -> tuple[Array, None]:
    """To the landmark that is nearest to one of the others: they know the goal."""
    return with_company(pairs(seen["landmarks"]), pairs(seen["others"])), None


def head_for_goal(seen: Mapping[str, Array]) -> tuple[Array, None]:
    """To the goal."""
    return seen["goal"], None


class AdversaryEnv(ParticlesEnv):
    """MPE's simple_adversary."""

    metadata = {**ParticlesEnv.metadata, "name": "heron/Adversary-v0"}
    rules = {"adversary": head_for_company, "agent": head_for_goal}

    @staticmethod
    @rule
    def begin(world: World) -> None:
        """Everybody lies somewhere, and looks around."""
        place(world, world[Plane].Bodies, 1 + len(world[Guard].Stakes.own), 1.0)
        watch(world)

    @staticmethod
    @rule(writes=written("goal", "landmarks", "others"))
    def advance(world: World, dt: float) -> None:
        """One substep, then look around."""
        bodies = world[Plane].Bodies
        obey(world[Intruder].Order.action, bodies, 0, 0)
        obey(world[Guard].Order.action, bodies, 1, 0)
        move(bodies, dt)
        watch(world)


def watch(world: Any) -> None:
    """What everybody sees in Adversary; how far intruder and guards are from the goal."""
    bodies, intruder, guards = world[Plane].Bodies, world[Intruder], world[Guard]
    agents = 1 + len(guards.Stakes.own)
    goal, nearest = agents + int(bodies.goals[0, 0]), math.inf
    see_ways(intruder.Sight.landmarks, bodies, 0, agents, bodies.x.shape[1])
    see_ways(intruder.Sight.others, bodies, 0, 0, agents)
    see_ways(guards.Sight.goal, bodies, 1, goal, goal + 1)
    see_ways(guards.Sight.landmarks, bodies, 1, agents, bodies.x.shape[1])
    see_ways(guards.Sight.others, bodies, 1, 0, agents)
    intruder.Stakes.own[0] = apart(bodies, 0, goal)
    for i in range(1, agents):
        nearest = min(nearest, apart(bodies, i, goal))
    for i in range(agents - 1):
        guards.Stakes.own[i], guards.Stakes.others[i] = nearest, intruder.Stakes.own[0]


class PushEnv(ParticlesEnv):
    """MPE's simple_push."""

    metadata = {**ParticlesEnv.metadata, "name": "heron/Push-v0"}
    rules = {"adversary": head_for_company, "agent": head_for_goal}

    @staticmethod
    @rule
    def begin(world: World) -> None:
        """Both lie somewhere, and look around."""
        place(world, world[Plane].Bodies, 2, 1.0)
        watch_both(world)

    @staticmethod
    @rule(writes=written("velocity", "goal", "colour", "landmarks", "colours", "others"))
    def advance(world: World, dt: float) -> None:
        """One substep, then look around."""
        bodies = world[Plane].Bodies
        obey(world[Shover].Order.action, bodies, 0, 0)
        obey(world[Runner].Order.action, bodies, 1, 0)
        move(bodies, dt)
        watch_both(world)


def watch_both(world: Any) -> None:
    """What both see in Push, and how far they are from the goal."""
    bodies, shover, runner = world[Plane].Bodies, world[Shover], world[Runner]
    goal = 2 + int(bodies.goals[0, 0])
    see_own(shover.Sight.velocity, bodies.vx[0], bodies.vy[0], 0)
    see_ways(shover.Sight.landmarks, bodies, 0, 2, 4)
    see_ways(shover.Sight.others, bodies, 0, 0, 2)
    see_own(runner.Sight.velocity, bodies.vx[0], bodies.vy[0], 1)
    see_ways(runner.Sight.goal, bodies, 1, goal, goal + 1)
    see_colours(runner.Sight.colour, goal - 1, 1, 0.75, 0.25)
    see_ways(runner.Sight.landmarks, bodies, 1, 2, 4)
    see_colours(runner.Sight.colours, 1, 2, BRIGHT, DARK)
    see_ways(runner.Sight.others, bodies, 1, 0, 2)
    shover.Stakes.own[0], runner.Stakes.own[0] = apart(bodies, 0, goal), apart(bodies, 1, goal)
    shover.Stakes.others[0] = runner.Stakes.own[0]


def adversary(N: int = 2, continuous: bool = True, max_steps: int | None = 25, **options: Any) -> AdversaryEnv:
    """MPE's simple_adversary: guards know which landmark is the goal, and lead an intruder astray.

    Args:
        N: guards, agent_0 ... agent_{N-1}, and landmarks; the intruder is adversary_0.
        continuous: five pushes in [0, 1] (stay, left, right, down, up); False: one of five directions.
        max_steps: steps an episode.
        options: of HeronEnv.

    Raises ConfigError naming the argument and its value.
    """
    require_count(f"adversary(N={N!r:.60})", N)
    require_switch(f"adversary(continuous={continuous!r:.60})", continuous)
    around = {"landmarks": 2 * N, "others": 2 * N}
    guards = [(Guard, f"agent_{i}", {"goal": 2, **around}) for i in range(N)]
    members = [(Intruder, "adversary_0", around), *guards]
    return AdversaryEnv(members, [(0.08, False)] * N, continuous=continuous, max_steps=max_steps, **options)


def push(continuous: bool = True, max_steps: int | None = 25, **options: Any) -> PushEnv:
    """MPE's simple_push: adversary_0 pushes agent_0 away from the goal, which agent_0 alone knows.

    Args:
        continuous: five pushes in [0, 1] (stay, left, right, down, up); False: one of five directions.
        max_steps: steps an episode.
        options: of HeronEnv.

    Raises ConfigError naming the argument and its value.
    """
    require_switch(f"push(continuous={continuous!r:.60})", continuous)
    around = {"landmarks": 4, "others": 2}
    runner = {"velocity": 2, "goal": 2, "colour": 3, "landmarks": 4, "colours": 6, "others": 2}
    members = [(Shover, "adversary_0", {"velocity": 2, **around}), (Runner, "agent_0", runner)]
    return PushEnv(members, [(0.05, False)] * 2, continuous=continuous, max_steps=max_steps, **options)
