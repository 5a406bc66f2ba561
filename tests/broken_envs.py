"""Environments that each break one law, and a sound one beside them: the conformance kit must tell which and why."""

import copy
import math
import random  # noqa: TID251  one of the sins
import sys
import time
import warnings
from typing import Any

import numpy as np

from heron_env import (
    Continuous,
    CoordinatorAgent,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    SystemAgent,
    Vector,
    World,
    quantity,
    rule,
)


class Level(FeatureProvider):
    """What physics moves."""

    visibility = ("owner", "upper_level")
    value: float = quantity(default=0.0, low=-100.0, high=100.0)


class Setpoint(FeatureProvider):
    """What actions write."""

    visibility = ("owner", "upper_level")
    power: float = quantity(default=0.0, low=-1.0, high=1.0)


class Price(FeatureProvider):
    """A global feature that all see, published when it takes effect."""

    visibility = ("public",)
    value: float = quantity(default=0.3, low=0.0, high=2.0, foreknown=True)


class Reserve(FeatureProvider):
    """A global feature that nobody sees."""

    visibility = ()
    amount: float = quantity(default=5.0, low=0.0, high=9.0)


class Unit(FieldAgent):
    """An agent as it should be."""

    features = (Level, Setpoint)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Setpoint.power)
    def apply_action(action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=Level.value)
    def advance(level: Level, setpoint: Setpoint, price: Price, dt: float) -> float:
        return level.value + (setpoint.power - 0.1 * level.value) * price.value * dt

    @staticmethod
    @rule
    def compute_local_reward(level: Level, price: Price) -> float:
        return -abs(level.value) * price.value


class Zone(CoordinatorAgent):
    """Watches."""


class Sound(HeronEnv):
    """An environment as it should be."""

    dt = 1.0
    physics_substeps = 4
    global_features = (Price, Reserve)
    unit: type[FieldAgent] = Unit

    def __init__(self, n: int = 3, **options: Any) -> None:
        units = [self.unit(f"unit_{i + 1}") for i in range(n)]
        super().__init__(SystemAgent("system_agent", Zone("zone_1", *units)), **options)

    def begin(self, world: World) -> None:
        world.Price.value[...] = 0.2 + world.draw("price")

    def finish(self, world: World) -> None:
        world.Price.value[...] = 0.2 + world.draw("price")


class GlobalDice(Sound):
    """Draws from numpy's global generator."""

    def begin(self, world: World) -> None:
        world.Price.value[...] = np.random.rand()  # noqa: NPY002


class PocketDice(Sound):
    """Draws from Python's global generator, and does not even use what comes."""

    def finish(self, world: World) -> None:
        random.random()


class WallClock(Sound):
    """Asks what time it is outside."""

    def finish(self, world: World) -> None:
        world.Price.value[...] = 0.2 + time.time() % 1.0


class Remembers(Sound):
    """Counts its episodes, and lets that decide."""

    episodes = 0

    def begin(self, world: World) -> None:
        self.episodes += 1
        world.Price.value[...] = 0.2 + 0.01 * self.episodes


class ClassMemory(Sound):
    """Counts the episodes of all environments of its class."""

    episodes = 0

    def begin(self, world: World) -> None:
        ClassMemory.episodes += 1
        world.Price.value[...] = 0.2 + 1e-4 * ClassMemory.episodes


class SetOrder(Sound):
    """Lets the order of a set decide."""

    def begin(self, world: World) -> None:
        order = list({f"{kind}_{i}" for kind in ("unit", "zone") for i in range(8)})
        world.Price.value[...] = 0.1 * (1 + order.index("unit_1"))


class TellTaleStep(Sound):
    """Puts a hidden number into the infos of its steps."""

    def step(self, actions: Any) -> Any:
        observations, rewards, terminated, truncated, infos = super().step(actions)
        for info in infos.values():
            info["hint"] = self.world.Reserve.amount[0] / 2.0
        return observations, rewards, terminated, truncated, infos

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        observations, infos = super().reset(seed, options)
        for info in infos.values():
            info["hint"] = 0.0
        return observations, infos


class Spy(Unit):
    """Carries what it is told by hand, outside of its features."""

    source: Any = None

    def get_local_info(self, local_state: Any) -> dict[str, float]:
        return {"told": float(Spy.source.world.Reserve.amount[0])}


class Spies(Sound):
    """Its agents reach for the environment."""

    unit = Spy

    def begin(self, world: World) -> None:
        Spy.source = self


class TellTaleVector(Sound):
    """Overrides what agents see."""

    def _observe(self) -> Any:
        seen = super()._observe()
        seen["unit_2"][0] += np.float32(1e-3 * self.world.Reserve.amount[0])
        return seen


class Vague(FeatureProvider):
    """Without bounds."""

    visibility = ("public",)
    wealth: float = 0.5


class Loose(Sound):
    """Has a quantity without bounds."""

    global_features = (Price, Reserve, Vague)


class HastyUnit(Unit):
    """Integrates where it should only set."""

    @staticmethod
    @rule(writes=Level.value)
    def apply_action(level: Level, action: Vector) -> float:
        return level.value + 0.1 * action[0]


class Hasty(Sound):
    """Acts more if it decides more often."""

    unit = HastyUnit


class OnlyInStep(Sound):
    """Does physics in step(), where only one of the clocks passes."""

    def step(self, actions: Any) -> Any:
        results = super().step(actions)
        self.world[Unit].Level.value[...] += 0.5
        return results


class Bonus(Sound):
    """Changes rewards on their way out."""

    def step(self, actions: Any) -> Any:
        observations, rewards, *rest = super().step(actions)
        return observations, {agent: value + 1.0 for agent, value in rewards.items()}, *rest


class Believer(Sound):
    """Charges for what the control room believes instead of what is."""

    def finish(self, world: World) -> None:
        world.Price.value[...] = 0.2 + 0.01 * abs(self.proxy.cache[0])


class Lambda(Sound):
    """Keeps a lambda."""

    def __init__(self, **options: Any) -> None:
        self.tariff = lambda t: 0.3
        super().__init__(**options)


class Forgetful(Sound):
    """Lets a number walk on itself, of which get_state() knows nothing."""

    walk = 0.0

    def begin(self, world: World) -> None:
        self.walk = 0.0

    def finish(self, world: World) -> None:
        self.walk += world.draw("walk")[0]
        world.Price.value[...] = 0.2 + 0.01 * self.walk


class Wordy(Sound):
    """Puts a word into infos."""

    def step(self, actions: Any) -> Any:
        *results, infos = super().step(actions)
        infos["unit_1"]["mood"] = "good"
        return (*results, infos)


class MeddlingUnit(Unit):
    """Writes what it does not declare, behind the back of a window that is to be read only."""

    @staticmethod
    @rule(writes=Level.value)
    def advance(level: Level, setpoint: Setpoint, price: Price, dt: float) -> float:
        owner = price._array.base.reshape(-1)
        owner[np.flatnonzero(owner == price.value)[-1:]] *= 0.9
        return level.value + setpoint.power * dt


class Meddler(Sound):
    """Its agents move the price on the side."""

    unit = MeddlingUnit


class Restless(Sound):
    """Moves the world when asked for its figures."""

    def kpis(self) -> dict[str, float]:
        self.world.Reserve.amount[...] -= 0.1
        return {"reserve": float(self.world.Reserve.amount[0])}


class RootUnit(Unit):
    """Takes a root of what may be negative."""

    @staticmethod
    @rule(writes=Level.value)
    def advance(level: Level, setpoint: Setpoint, price: Price, dt: float) -> float:
        return level.value + (math.sqrt(setpoint.power + 0.5) if setpoint.power >= -0.5 else math.nan) * dt


class Root(Sound):
    """Gives nan at low actions."""

    unit = RootUnit


class Pairs(Sound):
    """Looks at all pairs of agents in each substep."""

    def advance(self, world: World, dt: float) -> None:
        levels = world[Unit].Level.value
        nearest = 0.0
        for a in levels:
            for b in levels:
                nearest = min(nearest, abs(a - b))


class MortalUnit(Unit):
    """Takes a time limit for an end."""

    @staticmethod
    @rule
    def is_terminated(time: float) -> bool:
        return time >= 6.0


class Mortal(Sound):
    """All end at six."""

    unit = MortalUnit


class Lenient(Sound):
    """Takes any action."""

    def step(self, actions: Any) -> Any:
        return super().step({a: np.clip(np.nan_to_num(v)[:1], -1.0, 1.0) for a, v in actions.items()})


class FreshSpaces(Sound):
    """Makes a space at each call."""

    def observation_space(self, agent: str) -> Any:
        return copy.deepcopy(super().observation_space(agent))


class Certain(Sound):
    """Draws as if an agent knew something from the start."""

    def draw_frame(self, axes, world, observed, artists=None):
        seen = world if observed is None else observed.world
        return axes.plot(range(int(seen.rows[0][0])))


class Silent(Sound):
    """Draws nothing."""

    def render(self) -> Any:
        return None


class Undying(Sound):
    """Never lets anyone go."""

    def step(self, actions: Any) -> Any:
        results = super().step(actions)
        self.agents = list(self.possible_agents)
        return results


class Crashing(Sound):
    """Fails in its fifth step."""

    def finish(self, world: World) -> None:
        if world.step == 5:
            raise ZeroDivisionError("no rain today")


def needy(size: int, **options: Any) -> HeronEnv:
    """Can't be built without being told how large."""
    return Sound(size, **options)


_kept = Sound()


def shared() -> HeronEnv:
    """Always the same one."""
    return _kept


def no_env() -> Any:
    """Builds something else."""
    return {"agents": 3}


already_built = Sound()


class Outsider(Sound):
    """Writes the truth past every bound, after all has been clipped."""

    def step(self, actions: Any) -> Any:
        results = super().step(actions)
        self.simulation.truth[0] = 500.0
        return results


class Reused(Sound):
    """Writes into arrays that it has given away."""

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.given, infos = super().reset(seed, options)
        return self.given, infos

    def step(self, actions: Any) -> Any:
        self.given["unit_1"][0] = 0.123
        return super().step(actions)


class Stale(Sound):
    """Its observation leaves the space."""

    def step(self, actions: Any) -> Any:
        observations, *rest = super().step(actions)
        return {agent: vector + np.float32(1e6) for agent, vector in observations.items()}, *rest


class Hand(Unit):
    """Written in methods."""

    def compute_local_reward(self, local_state: Any) -> float:
        return -abs(float(local_state["Level"].value))


class Hands(Sound):
    """Written in methods."""

    unit = Hand


class WrappingUnit(Unit):
    """Counts beyond 64 bits."""

    @staticmethod
    @rule(writes=Level.value)
    def advance(level: Level, setpoint: Setpoint, price: Price, dt: float, time: float) -> float:
        many = (int(time) + 1) * 2**62 * 4
        moved = level.value + (setpoint.power - 0.1 * level.value) * price.value * dt
        return moved + 0.5 * dt if many > 0 else moved


class Wrapping(Sound):
    """Is another world compiled."""

    unit = WrappingUnit


class OpeningUnit(Unit):
    """Can't be compiled."""

    @staticmethod
    @rule(writes=Level.value)
    def advance(level: Level) -> float:
        with warnings.catch_warnings():
            return level.value


class Opening(Sound):
    """Runs in plain Python alone."""

    unit = OpeningUnit


class PublicLevel(Level):
    """Seen by everyone."""

    feature_name = "Level"
    visibility = ("public",)


class PublicUnit(Unit):
    """Shows itself to everyone."""

    features = (PublicLevel, Setpoint)


class Public(Sound):
    """All see all."""

    unit = PublicUnit


class Warner(Sound):
    """Warns."""

    def finish(self, world: World) -> None:
        super().finish(world)
        warnings.warn("low on paint", stacklevel=1)


def is_elsewhere() -> bool:
    """Is this one of the other processes of the kit?"""
    return any("leave_record" in word for word in sys.orig_argv)


def hanging_elsewhere() -> HeronEnv:
    """Does not come back in the other processes of the kit."""
    if is_elsewhere():
        time.sleep(60)
    return Sound()


def failing_elsewhere() -> HeronEnv:
    """Fails in the other processes of the kit."""
    if is_elsewhere():
        raise ValueError("not here")
    return Sound()


class Steps(FeatureProvider):
    """A counter that soon stands still at its bound."""

    count: int = quantity(default=0, low=0, high=3)


class StepperUnit(Unit):
    features = (*Unit.features, Steps)

    @staticmethod
    @rule(writes=Steps.count)
    def apply_action(steps: Steps, action: Vector) -> int:
        return steps.count + 1


class Saturating(Sound):
    """Acts more if it decides more often, and in the end that does not show."""

    unit = StepperUnit


class Memory(FeatureProvider):
    """The same, of the world; nobody sees it."""

    visibility = ("public",)
    count: int = quantity(default=0, low=0, high=3, observed=False)


class Remembering(Sound):
    """Counts faster while the control room has heard nothing, and in the end that does not show."""

    global_features = (*Sound.global_features, Memory)

    def finish(self, world: World) -> None:
        super().finish(world)
        world.Memory.count[...] += 1 + (self.proxy.version.max() == 0)
