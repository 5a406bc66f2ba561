"""MPE's worlds in which many slow agents hunt a few fast ones: Tag and WorldComm."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from heron_env.core.feature import FeatureProvider
from heron_env.core.rule import rule
from heron_env.core.world import World
from heron_env.errors import ConfigError
from heron_env.given import is_number, require_count, require_one_of
from heron_env.worlds.particles import bodies as of
from heron_env.worlds.particles.env import Particle, ParticlesEnv, Plane, in_both_forms, steps
from heron_env.worlds.particles.policies import HASTE, Array, chase, flee, graze, lead
from heron_env.worlds.spread.discs import MATES, STEP, Position, SharedPosition, Velocity

EDGE = 0.9
"""Landmarks lie, and the prey may go, no farther out."""
WORDS, MOST_FORESTS = 4, 50
"""Of the leader; a bit of a float64 for each forest."""


# Tag


@in_both_forms()
class Hunter(Particle):
    """Earns 10 for each touch of a hunter and a prey, whoever they are."""

    size, accel, top, collides = 0.075, 3.0, 1.0, True

    @staticmethod
    @rule
    def compute_local_reward(stakes: of.Stakes) -> float:
        """All contacts count for each hunter."""
        return 10.0 * stakes.contacts


@in_both_forms()
class Prey(Particle):
    """Loses 10 for each hunter that touches it, and something for leaving the square."""

    size, accel, top, collides = 0.05, 4.0, 1.3, True

    @staticmethod
    @rule
    def compute_local_reward(stakes: of.Stakes, view: of.ParticleView) -> float:  # type: ignore[override]
        """Its own contacts count."""
        return -10.0 * stakes.contacts - outside(view.position[0]) - outside(view.position[1])


class Quarry(Prey):
    """Prey that decides nothing: it plays by rule, in the world itself, as late as nobody's network makes it."""


PARTS = ("velocity", "position", "landmarks", "others", "velocities")
SHARED_PARTS = ("velocity", "position", "others", "velocities")
"""All parts of an observation, and those that come from shared features with mates="message"."""


@in_both_forms()
class SharingHunter(Hunter):
    """With mates="message": the others receive its position; as in MPE, they do not know its velocity."""

    features, shared = (Velocity, SharedPosition, *Hunter.features), SHARED_PARTS


@in_both_forms()
class SharingPrey(Prey):
    """With mates="message": the others receive its position and its velocity."""

    features, shared = (of.SharedVelocity, SharedPosition, *Prey.features), SHARED_PARTS

    @staticmethod
    @rule
    def compute_local_reward(stakes: of.Stakes, place: Position) -> float:  # type: ignore[override]
        """As for Prey."""
        return -10.0 * stakes.contacts - outside(place.x) - outside(place.y)


class SharingQuarry(SharingPrey):
    """Prey that plays by rule in the world itself, and whose messages are as late as its own link."""


def outside(coordinate: float) -> float:
    """What it costs to be that far from the middle, along one axis."""
    far = abs(coordinate)
    if far < EDGE:
        return 0.0
    return (far - EDGE) * 10.0 if far < 1.0 else min(math.exp(2.0 * far - 2.0), 10.0)


def count_contacts(bodies: Any, contacts: Any, hunters: int) -> float:
    """Contacts of each prey with hunters, `[n]`, and their sum; the prey comes after the hunters."""
    total = 0.0
    for k in range(len(contacts)):
        contacts[k] = 0.0
        for i in range(hunters):
            contacts[k] += 1.0 if of.touches(bodies, hunters + k, i) else 0.0
        total += contacts[k]
    return total


def heed_in_tag(world: Any) -> None:
    """All push."""
    hunters = world[Hunter].ActionInForce.action
    of.obey(hunters, world[Plane].Bodies, 0, 0)
    of.obey(world[Prey].ActionInForce.action, world[Plane].Bodies, len(hunters), 0)


def heed_hunters(world: Any) -> None:
    """Hunters push; the prey flees."""
    hunters = world[Hunter].ActionInForce.action
    of.obey(hunters, world[Plane].Bodies, 0, 0)
    run_away(world[Plane].Bodies, len(hunters))


def run_away(bodies: Any, hunters: int) -> None:
    """Pushes of the prey, which comes after the hunters: the rule `flee` with numbers."""
    for k in range(hunters, int(bodies.agents[0, 0])):
        x, y = bodies.x[0, k], bodies.y[0, k]
        right, up = -2.0 * x * abs(x) ** 3, -2.0 * y * abs(y) ** 3
        for i in range(hunters):
            distance = of.apart(bodies, i, k)
            if 0.0 < distance < 1.0:
                right += 0.1 * (x - bodies.x[0, i]) / distance**3
                up += 0.1 * (y - bodies.y[0, i]) / distance**3
        right, up = HASTE * (right - STEP * bodies.vx[0, k]), HASTE * (up - STEP * bodies.vy[0, k])
        bodies.fx[0, k] = bodies.accel[0, k] * min(max(right, -1.0), 1.0)
        bodies.fy[0, k] = bodies.accel[0, k] * min(max(up, -1.0), 1.0)


def look_in_tag(world: Any) -> None:
    """What everybody sees; who touches whom."""
    bodies, hunters, prey = world[Plane].Bodies, world[Hunter], world[Prey]
    watch(hunters.ParticleView, bodies, 0, len(hunters.Stakes.own), bodies.x.shape[1])
    watch(prey.ParticleView, bodies, len(hunters.Stakes.own), len(hunters.Stakes.own), bodies.x.shape[1])
    judge(bodies, hunters, prey)


def look_and_share(world: Any) -> None:
    """What everybody sees of itself and of landmarks, and what it sends to the others; who touches whom."""
    bodies, hunters, prey = world[Plane].Bodies, world[Hunter], world[Prey]
    many, agents, stop = len(hunters.Stakes.own), int(bodies.agents[0, 0]), bodies.x.shape[1]
    of.share(hunters, bodies, 0)
    of.share(prey, bodies, many)
    of.see_ways(hunters.ParticleView.landmarks, bodies, 0, agents, stop)
    of.see_ways(prey.ParticleView.landmarks, bodies, many, agents, stop)
    judge(bodies, hunters, prey)


def judge(bodies: Any, hunters: Any, prey: Any) -> None:
    """Who touches whom."""
    total = count_contacts(bodies, prey.Stakes.contacts, len(hunters.Stakes.own))
    for i in range(len(hunters.Stakes.own)):
        hunters.Stakes.contacts[i] = total


def watch(view: Any, bodies: Any, first: int, hunters: int, stop: int) -> None:
    """What agents see from `first` on; the prey comes after the hunters, then landmarks, obstacles to before `stop`."""
    agents = int(bodies.agents[0, 0])
    of.see_own(view.velocity, bodies.vx, bodies.vy, first)
    of.see_own(view.position, bodies.x, bodies.y, first)
    of.see_ways(view.landmarks, bodies, first, agents, stop)
    of.see_ways(view.others, bodies, first, 0, agents)
    of.see_velocities(view.velocities, bodies, first, hunters, agents)


PREY = ("policy", "rule")


class TagEnv(ParticlesEnv):
    """MPE's simple_tag."""

    metadata = {**ParticlesEnv.metadata, "name": "heron/Tag-v0"}
    rules = {"adversary": chase, "agent": flee}
    begin, advance = steps(heed_in_tag, look_in_tag, *PARTS)


class HuntEnv(TagEnv):
    """The same with prey that plays by rule."""

    rules = {"adversary": chase}
    begin, advance = steps(heed_hunters, look_in_tag, *PARTS)

    @staticmethod
    @rule
    def training_rewards(world: World) -> Array:
        """The rewards, less each hunter's distance from the nearest prey: touches alone are too rare to learn from."""
        bodies, contacts = world[Plane].Bodies, world[Hunter].Stakes.contacts
        many, earned = len(contacts), np.empty(len(contacts))
        for i in range(many):
            nearest = np.inf
            for k in range(many, many + len(world[Prey].Stakes.own)):
                nearest = min(nearest, np.hypot(bodies.x[0, k] - bodies.x[0, i], bodies.y[0, k] - bodies.y[0, i]))
            earned[i] = 10.0 * contacts[i] - nearest
        return earned


class SharingTagEnv(TagEnv):
    """Tag where the others are seen by their messages."""

    begin, advance = steps(heed_in_tag, look_and_share, "landmarks", shared=of.SHARED)


class SharingHuntEnv(HuntEnv):
    """The same with prey that plays by rule."""

    begin, advance = steps(heed_hunters, look_and_share, "landmarks", shared=of.SHARED)


class Sighted:
    """Hunters see the prey that is near (V11)."""

    global_features: tuple[type[FeatureProvider], ...] = ()

    def __init__(self, *arguments: Any, sight: float, **options: Any) -> None:
        self.global_features = (of.eyes(float(sight)),)
        super().__init__(*arguments, **options)

    @staticmethod
    @rule(of=(Hunter, Prey))
    def sees(world: World, observer: int, target: int) -> bool:
        """Is the prey within the radius?"""
        prey = len(world[Hunter].Stakes.own) + target
        return bool(of.apart(world[Plane].Bodies, observer, prey) <= world.Eyes.radius[0, 0])


class SightedTagEnv(Sighted, SharingTagEnv):
    """Tag where the others are seen by their messages, and prey only while it is near."""


class SightedHuntEnv(Sighted, SharingHuntEnv):
    """The same with prey that plays by rule."""


FORMS: Mapping[tuple[str, str], tuple[type[Hunter], type[Prey], type[TagEnv]]] = {
    ("exact", "policy"): (Hunter, Prey, TagEnv),
    ("exact", "rule"): (Hunter, Quarry, HuntEnv),
    ("message", "policy"): (SharingHunter, SharingPrey, SharingTagEnv),
    ("message", "rule"): (SharingHunter, SharingQuarry, SharingHuntEnv),
    ("sight", "policy"): (SharingHunter, SharingPrey, SightedTagEnv),
    ("sight", "rule"): (SharingHunter, SharingQuarry, SightedHuntEnv),
}
"""Roles and environment by `mates`, or "sight", and `prey`."""


def tag(
    num_good: int = 1, num_adversaries: int = 3, num_obstacles: int = 2, continuous: bool = True,
    max_steps: int | None = 25, prey: str = "policy", mates: str = "exact",
    sight: float | None = None, **options: Any,
) -> TagEnv:  # fmt: skip
    """MPE's simple_tag: hunters, adversary_0 ..., slower than their prey, agent_0 ..., try to touch it.

    num_good: prey. num_adversaries: hunters. num_obstacles: landmarks that agents bounce off. prey: "policy": agents
    decide; "rule": they flee by the baseline's rule, at once under every network, and hunters alone decide and are
    trained. mates: "exact": what an agent sees of the others is its own measurement, as old as all that it sees.
    "message": it is what they send, over their own links and with an age each; without delay the observations are the
    same, bit for bit. sight: with mates="message", how near prey must be for a hunter to see it, from middle to middle;
    observe_visible=True shows whether it does. None: anywhere. Raises ConfigError; others as of ParticlesEnv.
    """
    require_count(f"tag(num_good={num_good!r:.60})", num_good)
    require_count(f"tag(num_adversaries={num_adversaries!r:.60})", num_adversaries)
    require_count(f"tag(num_obstacles={num_obstacles!r:.60})", num_obstacles, 0)
    require_one_of(f"tag(prey={prey!r:.60})", prey, PREY)
    require_one_of(f"tag(mates={mates!r:.60})", mates, MATES)
    if sight is not None:
        if not is_number(sight) or sight < 0.0:
            raise ConfigError(f"tag(sight={sight!r:.60}): must be a number >= 0, or None")
        if mates != "message":
            raise ConfigError(
                f"tag(sight={sight!r}, mates={mates!r}): only with mates='message' are others out of sight"
            )
        options["sight"] = sight
    hunter, role, kind = FORMS[mates if sight is None else "sight", prey]
    parts = {"velocity": 2, "position": 2, "landmarks": 2 * num_obstacles}
    parts["others"] = 2 * (num_good + num_adversaries - 1)
    hunters = [(hunter, f"adversary_{i}", {**parts, "velocities": 2 * num_good}) for i in range(num_adversaries)]
    fleeing = [(role, f"agent_{i}", {**parts, "velocities": 2 * (num_good - 1)}) for i in range(num_good)]
    landmarks = [(0.2, True, EDGE)] * num_obstacles
    return kind([*hunters, *fleeing], landmarks, continuous=continuous, max_steps=max_steps, **options)


# WorldComm: landmarks are obstacles, food and forests, in this order


class Pursuer(Particle):
    """Earns 5 for each touch of a pursuer and a forager, whoever they are; its way to the nearest forager costs."""

    size, accel, top, collides = 0.075, 3.0, 1.0, True

    @staticmethod
    @rule
    def compute_local_reward(stakes: of.Stakes) -> float:
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
    def compute_local_reward(stakes: of.Stakes, view: of.ParticleView) -> float:  # type: ignore[override]
        """2 for each food, minus 5 for each pursuer, and less the farther the next food is."""
        left = -5.0 * stakes.contacts - 2.0 * outside(view.position[0]) - 2.0 * outside(view.position[1])
        return left + 2.0 * stakes.food - 0.05 * stakes.own


def heed_in_world_comm(world: Any) -> None:
    """All push, and the leader speaks."""
    bodies, pack = world[Plane].Bodies, world[Pack].ActionInForce.action
    of.obey(world[Leader].ActionInForce.action, bodies, 0, WORDS)
    of.obey(pack, bodies, 1, 0)
    of.obey(world[Forager].ActionInForce.action, bodies, 1 + len(pack), 0)


def look_in_world_comm(world: Any) -> None:
    """What everybody sees and hears; who touches whom, and how far away is what each one wants."""
    bodies, leader, pack, foragers = world[Plane].Bodies, world[Leader], world[Pack], world[Forager]
    prey = 1 + len(pack.Stakes.own)
    food = landmarks = prey + len(foragers.Stakes.own)
    while food < bodies.x.shape[1] and bodies.collides[0, food] > 0.0:
        food += 1
    spans = prey, landmarks, food, food + foragers.ParticleView.food.shape[1] // 2
    enter(bodies, landmarks, spans[3])
    look_round(leader.ParticleView, bodies, 0, spans)
    look_round(pack.ParticleView, bodies, 1, spans)
    look_round(foragers.ParticleView, bodies, prey, spans)
    of.hear(leader.ParticleView.heard, bodies, 0)
    of.hear(pack.ParticleView.heard, bodies, 0)
    total = count_contacts(bodies, foragers.Stakes.contacts, prey)
    pursue(leader.Stakes, bodies, 0, spans, total)
    pursue(pack.Stakes, bodies, 1, spans, total)
    for i in range(len(foragers.Stakes.own)):
        foragers.Stakes.own[i], foragers.Stakes.food[i] = math.inf, 0.0
        for j in range(food, spans[3]):
            foragers.Stakes.own[i] = min(foragers.Stakes.own[i], of.apart(bodies, prey + i, j))
            foragers.Stakes.food[i] += 1.0 if of.touches(bodies, prey + i, j) else 0.0


def enter(bodies: Any, agents: int, forests: int) -> None:
    """In which forests each agent is: bit 0 of `inside` for the first."""
    for i in range(agents):
        bodies.inside[0, i] = 0.0
        for f in range(forests, bodies.x.shape[1]):
            if of.touches(bodies, i, f):
                bodies.inside[0, i] += 2.0 ** (f - forests)


def look_round(view: Any, bodies: Any, first: int, spans: tuple[int, int, int, int]) -> None:
    """What agents see from `first` on; `spans`: the first forager, obstacle, food and forest."""
    prey, landmarks, food, forests = spans
    watch(view, bodies, first, prey, food)
    of.see_ways(view.food, bodies, first, food, forests)
    of.see_ways(view.forests, bodies, first, forests, bodies.x.shape[1])
    for i in range(len(view.position)):
        here = int(bodies.inside[0, first + i])
        for f in range(bodies.x.shape[1] - forests):
            view.inside[i, f] = 1.0 if here >> f & 1 else -1.0
        at, moving = 0, 0
        for j in range(landmarks):
            there = int(bodies.inside[0, j])
            hidden = here | there > 0 and here & there == 0 and first > 0
            if j != first + i:
                if hidden:
                    view.others[i, at] = view.others[i, at + 1] = 0.0
                at += 2
            if j >= prey and j != first + i:
                if hidden:
                    view.velocities[i, moving] = view.velocities[i, moving + 1] = 0.0
                moving += 2


def pursue(stakes: Any, bodies: Any, first: int, spans: tuple[int, int, int, int], total: float) -> None:
    """All contacts, and the distance from the nearest forager, of pursuers from `first` on."""
    for i in range(len(stakes.own)):
        stakes.contacts[i], stakes.own[i] = total, math.inf
        for j in range(spans[0], spans[1]):
            stakes.own[i] = min(stakes.own[i], of.apart(bodies, first + i, j))


class WorldCommEnv(ParticlesEnv):
    """MPE's simple_world_comm."""

    metadata = {**ParticlesEnv.metadata, "name": "heron/WorldComm-v0"}
    rules = {"leadadversary": lead, "adversary": chase, "agent": graze}
    begin, advance = steps(
        heed_in_world_comm, look_in_world_comm,
        "velocity", "position", "landmarks", "food", "forests", "others", "velocities", "inside", "heard",
    )  # fmt: skip


def world_comm(
    num_good: int = 2, num_adversaries: int = 4, num_obstacles: int = 1, num_food: int = 2, num_forests: int = 2,
    continuous: bool = True, max_steps: int | None = 25, **options: Any,
) -> WorldCommEnv:  # fmt: skip
    """MPE's simple_world_comm: foragers look for food, and pursuers with a leader for them; forests hide who is inside.

    num_good: foragers, agent_0 ... num_adversaries: pursuers, at least 2: leadadversary_0, with four words, and
    adversary_0 ... num_obstacles: landmarks that agents bounce off. num_food: what foragers touch. num_forests: who is
    in one sees, and is seen by, those in it alone, and the leader. Raises ConfigError; others as of ParticlesEnv.
    """
    require_count(f"world_comm(num_good={num_good!r:.60})", num_good)
    require_count(f"world_comm(num_adversaries={num_adversaries!r:.60})", num_adversaries, 2)
    require_count(f"world_comm(num_obstacles={num_obstacles!r:.60})", num_obstacles, 0)
    require_count(f"world_comm(num_food={num_food!r:.60})", num_food)
    require_count(f"world_comm(num_forests={num_forests!r:.60})", num_forests, 0, MOST_FORESTS)
    around = {"velocity": 2, "position": 2, "landmarks": 2 * num_obstacles, "food": 2 * num_food}
    around |= {"forests": 2 * num_forests, "others": 2 * (num_good + num_adversaries - 1)}
    pursuer = {**around, "velocities": 2 * num_good, "inside": num_forests, "heard": WORDS}
    forager = {**around, "inside": num_forests, "velocities": 2 * (num_good - 1)}
    members = [
        (Leader, "leadadversary_0", pursuer),
        *((Pack, f"adversary_{i}", pursuer) for i in range(num_adversaries - 1)),
        *((Forager, f"agent_{i}", forager) for i in range(num_good)),
    ]
    sizes = [(0.2, True, EDGE)] * num_obstacles + [(0.03, False, EDGE)] * num_food + [(0.3, False, EDGE)] * num_forests
    return WorldCommEnv(members, sizes, continuous=continuous, words=WORDS, max_steps=max_steps, **options)
