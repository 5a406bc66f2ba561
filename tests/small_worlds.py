"""A small pool of agent classes and one environment from which the laws' random worlds are built.

Bookkeeping in `Tally` counts what happened to each agent, so that a lost or doubled update shows in the truth itself.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from heron_env import (
    Action,
    Children,
    Continuous,
    CoordinatorAgent,
    Disturbance,
    DisturbanceType,
    FeatureProvider,
    FieldAgent,
    FieldAgentState,
    HeronEnv,
    Inbox,
    Mixed,
    MultiDiscrete,
    Parent,
    SystemAgent,
    Vector,
    VectorDecomposition,
    World,
    quantity,
    rule,
)

NEVER, LATEST = 1e4, 1e10  # s: LATEST is beyond the end of time


class Level(FeatureProvider):
    """What physics moves."""

    visibility = ("public",)
    value: float = quantity(default=0.0, low=-20.0, high=20.0, relative=True)
    slope: float = quantity(default=0.0, low=-50.0, high=50.0, visibility=("owner", "upper_level"))


class Setpoint(FeatureProvider):
    """What actions write; in which mode, an agent's siblings see, and itself not."""

    visibility = ("owner", "upper_level")
    power: float = quantity(default=0.0, low=-5.0, high=5.0)
    mode: int = quantity(default=0, low=0, high=3, visibility=("siblings",))


class Tally(FeatureProvider):
    """Bookkeeping that nobody sees: effects and substeps so far, time advanced, cost of the current step."""

    effects: float = quantity(default=0.0, observed=False)
    substeps: float = quantity(default=0.0, observed=False)
    elapsed: float = quantity(default=0.0, observed=False)
    cost: float = quantity(default=0.0, per_step=True, observed=False)


class End(FeatureProvider):
    """When this agent ends: terminated at a time or above a level, truncated at another time."""

    at: float = quantity(default=NEVER, low=0.0, high=LATEST)
    cut: float = quantity(default=NEVER, low=0.0, high=LATEST)
    above: float = quantity(default=NEVER, low=-NEVER, high=NEVER)


class Order(FeatureProvider):
    """What a coordinator tells its subordinates, and what it learns from them; of itself only the system agent sees it.

    `target` alone says `owner`, and `secret` is nobody's.
    """

    visibility = ("subordinates",)
    target: float = quantity(default=0.0, low=-9.0, high=9.0, visibility=("owner", "subordinates"))
    total: float = quantity(default=0.0, low=-99.0, high=99.0, visibility=("system",))
    secret: float = quantity(default=0.0, low=-99.0, high=99.0, visibility=())


class Panel(FeatureProvider):
    """What nothing ever changes, of every kind: numbers that noise falls on, and three that it leaves alone."""

    visibility = ("siblings", "upper_level")
    cells: np.ndarray = quantity(default=(2.0, -3.0), low=-10.0, high=10.0, shape=(2,))
    count: int = quantity(default=7, low=0, high=20)
    lit: bool = quantity(default=True, to_owner=False)
    colour: int = quantity(default=1, categories=("red", "green", "blue"))
    serial: float = quantity(default=5.0, low=0.0, high=9.0, noisy=False)


class Price(FeatureProvider):
    """A global feature that all see."""

    visibility = ("public",)
    value: float = quantity(default=0.3, low=0.0, high=2.0)


class Cloud(FeatureProvider):
    """A global feature for the system level."""

    visibility = ("system",)
    cover: float = quantity(default=0.5, low=0.0, high=1.0)


class Hidden(FeatureProvider):
    """A global feature that nobody sees."""

    visibility = ()
    luck: float = quantity(default=0.0, low=-9.0, high=9.0)


class Info(NamedTuple):
    """Own numbers in infos."""

    level: float


class Unit(FieldAgent):
    """A field agent in rules, with one continuous action: a set-point."""

    features = (Level, Setpoint, Tally, End)
    action = Continuous(-2.0, 2.0)

    @staticmethod
    @rule(writes=(Setpoint.power, Tally.effects))
    def apply_action(tally: Tally, action: Vector) -> tuple[float, float]:
        return 2.0 * action[0], tally.effects + 1.0

    @staticmethod
    @rule(writes=(Level.value, Level.slope, Tally.substeps, Tally.elapsed, Tally.cost))
    def advance(
        level: Level, setpoint: Setpoint, tally: Tally, order: Parent[Order], price: Price, dt: float
    ) -> tuple[float, float, float, float, float]:
        slope = setpoint.power - 0.3 * level.value + 0.1 * order.target
        cost = tally.cost + abs(setpoint.power) * price.value * dt
        return level.value + slope * dt, slope, tally.substeps + 1.0, tally.elapsed + dt, cost

    @staticmethod
    @rule
    def compute_local_reward(level: Level, tally: Tally) -> float:
        return -tally.cost - level.value**2

    @staticmethod
    @rule
    def is_terminated(level: Level, end: End, time: float) -> bool:
        return time >= end.at or level.value > end.above

    @staticmethod
    @rule
    def is_truncated(end: End, time: float) -> bool:
        return time >= end.cut

    @staticmethod
    @rule
    def get_local_info(level: Level) -> Info:
        return Info(level.value)


class Chooser(Unit):
    """The same with choices instead of a number."""

    action = MultiDiscrete([3, 2], noop=[1, 0])

    @staticmethod
    @rule(writes=(Setpoint.power, Setpoint.mode, Tally.effects))
    def apply_action(tally: Tally, action: Vector) -> tuple[float, float, float]:
        return 3.0 * (action[0] - 1.0), action[1], tally.effects + 1.0


class Told(Inbox):
    """What neighbours told: the values of two, the mean of all."""

    near: np.ndarray = quantity(default=(0.5, -0.5), low=-3.0, high=3.0, shape=(2,))
    mean: float = quantity(default=0.0, low=-3.0, high=3.0)


class Talker(Chooser):
    """One with a number and choices that hears of others, and heeds it; what it may choose depends on its level."""

    features = (*Chooser.features, Told)
    action = Mixed(Continuous(-1.0, 0.5, noop=0.25), Chooser.action)

    @staticmethod
    @rule(writes=(Setpoint.power, Setpoint.mode, Tally.effects))
    def apply_action(tally: Tally, action: Vector) -> tuple[float, float, float]:
        return 3.0 * (action[1] - 1.0) + 2.0 * action[0], action[2], tally.effects + 1.0

    @staticmethod
    @rule
    def action_mask(level: Level) -> tuple[bool, ...]:
        x = level.value
        return x > -0.5, abs(x) < 3.0, x < 0.5, True, level.slope <= 0.0

    @staticmethod
    @rule
    def compute_local_reward(level: Level, tally: Tally, told: Told) -> float:
        return -tally.cost - level.value**2 + told.near[0] * told.mean


class Hand(FieldAgent):
    """The same in the imperative style, with a number and a choice, which depends on its level."""

    features = (End, Level, Tally, Setpoint)

    def init_action(self) -> None:
        self.action = Action()
        self.action.set_specs(dim_c=1, dim_d=1, ncats=[3], range=([-1.0], [1.0]))

    def init_state(self) -> None:
        self.state = FieldAgentState(owner_id=self.agent_id, owner_level=1)
        for feature in self.initial:
            self.state.features.append(type(feature).from_dict(feature.to_dict()))

    def apply_action(self) -> None:
        setpoint, tally = self.state.features[Setpoint], self.state.features[Tally]
        setpoint.power, setpoint.mode = 4.0 * float(self.action.c[0]), int(self.action.d[0])
        tally.effects += 1.0

    def action_mask(self, local_state: Any) -> tuple[bool, ...]:
        return True, local_state["Level"].value < 0.5, local_state["Level"].value > -0.5

    def advance(self, dt: float) -> None:
        level, setpoint, tally = (self.state.features[kind] for kind in (Level, Setpoint, Tally))
        level.slope = setpoint.power * (1.0 + 0.5 * setpoint.mode) - 0.2 * level.value
        level.value += level.slope * dt
        tally.substeps += 1.0
        tally.elapsed += dt
        tally.cost += abs(setpoint.power) * dt

    def compute_local_reward(self, local_state: Any) -> float:
        return -abs(local_state["Level"].value) - self.state.features["Tally"].cost

    def is_terminated(self, local_state: Any) -> bool:
        own = self.state.features[Tally].elapsed
        return bool(own >= local_state["End"].at - 1e-9 or local_state["Level"].value > local_state["End"].above)


class Meter(FeatureProvider):
    """A flow that others may see: what was used in a step."""

    visibility = ("public",)
    used: float = quantity(default=0.0, low=0.0, high=99.0, per_step=True)


class Metered(Unit):
    """A unit with a meter of its own, which it reads by wire."""

    features = (*Unit.features, Meter)
    own_rows = "local"

    @staticmethod
    @rule(writes=(Level.value, Level.slope, Tally.substeps, Tally.elapsed, Tally.cost, Meter.used))
    def advance(
        level: Level, setpoint: Setpoint, tally: Tally, meter: Meter, price: Price, dt: float
    ) -> tuple[float, float, float, float, float, float]:
        slope = setpoint.power - 0.3 * level.value
        used = abs(setpoint.power) * dt
        cost = tally.cost + used * price.value
        return level.value + slope * dt, slope, tally.substeps + 1.0, tally.elapsed + dt, cost, meter.used + used


class Zone(CoordinatorAgent):
    """A coordinator with rules of its own; it commands if built with a protocol."""

    features = (Level, Order, Tally, End)

    @staticmethod
    @rule(writes=(Order.target, Tally.effects))
    def apply_action(tally: Tally, action: Vector) -> tuple[float, float]:
        return action[0], tally.effects + 1.0

    @staticmethod
    @rule(writes=(Level.value, Order.total, Tally.substeps, Tally.elapsed))
    def advance(levels: Children[Level], tally: Tally, dt: float) -> tuple[float, float, float, float]:
        total = float(levels.value.sum())
        return float(levels.value.mean()), total, tally.substeps + 1.0, tally.elapsed + dt

    @staticmethod
    @rule
    def compute_local_reward(order: Order, child_rewards: Any) -> float:
        return float(child_rewards.sum()) - 0.01 * abs(order.total)

    @staticmethod
    @rule
    def is_terminated(end: End, time: float) -> bool:
        return time >= end.at


class Reversed(VectorDecomposition):
    """A protocol of the user's own."""

    def split(self, action: Any, children: Any) -> Any:
        return super().split(action, children)[::-1]


class Team(CoordinatorAgent):
    """A coordinator without rules: its reward is the sum of its children's."""

    features = (Order, Level, Panel)


class Top(SystemAgent):
    """The root; it may command as well."""

    features = (Order, Level, Tally, Panel)

    apply_action = Zone.apply_action

    @staticmethod
    @rule(writes=(Order.total, Tally.substeps, Tally.elapsed))
    def advance(levels: Children[Level], cloud: Cloud, tally: Tally, dt: float) -> tuple[float, float, float]:
        return float(levels.value.sum()) * (1.0 - cloud.cover), tally.substeps + 1.0, tally.elapsed + dt


class LawEnv(HeronEnv):
    """Draws in every hook; with `watch` it keeps copies of the truth at substeps and boundaries.

    `shift` moves columns of the truth at the start: {column: by how much}.
    """

    global_features = (Price, Cloud, Hidden)
    watch = False
    shift: Mapping[int, float] = {}

    def begin(self, world: World) -> None:
        self.substep_truths: list[Any] = []
        self.boundaries: list[tuple[float, list[Any], Any]] = []
        world.Price.value[...] = 0.2 + world.draw("price")
        world.Hidden.luck[...] = world.draw("luck")
        if self._has(Unit):
            levels = world[Unit].Level.value
            levels += world.draw("levels", len(levels)) - 0.5
        for column, by in self.shift.items():
            self.simulation.truth[column] += by

    def advance(self, world: World, dt: float) -> None:
        cover = world.Cloud.cover
        cover += dt * (world.draw("wind") - 0.5)
        if self._has(Unit):
            world[Unit].Level.value[...] += 0.1 * dt * (cover - 0.5)
        if self.watch:
            self.substep_truths.append(self.simulation.truth.copy())

    def finish(self, world: World) -> None:
        if self.watch:
            self.boundaries.append((world.time, self.substep_truths, self.simulation.truth.copy()))
            self.substep_truths = []
        world.Price.value[...] = 0.5 + 0.4 * np.sin(world.time) + 0.1 * world.draw("price")
        world.Hidden.luck[...] += world.draw("luck") - 0.5

    def _has(self, kind: type) -> bool:
        return any(type(agent) is kind for agent in self.simulation.model.hierarchy.agents)


class GustyEnv(LawEnv):
    """The same with gusts, which move what physics moves, or the price."""

    disturbance_types = {"gust": DisturbanceType("Moves a number.", {"what": "its name", "by": "by"}, lasts=False)}

    def disturb(self, world: World, disturbance: Disturbance) -> None:
        column = np.array([self.simulation.model.layout.full_names.index(disturbance.payload["what"])])
        world.put(column, self.simulation.truth[column] + disturbance.payload["by"])


class StormyEnv(GustyEnv):
    """The same with a tariff that lasts; it counts how often that was upheld. At last talkers calm down."""

    disturbance_types = {**GustyEnv.disturbance_types, "tariff": DisturbanceType("All is dearer.", {"by": "price"})}
    upheld = 0

    def finish(self, world: World) -> None:
        super().finish(world)
        if self._has(Talker):
            world[Talker].Level.value[...] *= 0.99

    def disturb(self, world: World, disturbance: Disturbance) -> None:
        if disturbance.type == "gust":
            GustyEnv.disturb(self, world, disturbance)

    def uphold(self, world: World, disturbances: Any) -> None:
        self.upheld += 1
        price = 0.3 + 0.05 * world.step + 0.1 * world.draw("price")
        world.Price.value[...] = price + sum(one.payload["by"] for one in disturbances)


class StillEnv(HeronEnv):
    """The same world without hooks."""

    global_features = (Price, Cloud, Hidden)


class TogetherEnv(StillEnv):
    """The same world as LawEnv, with hooks that a batch calls once for all lanes."""

    batched = True

    def begin(self, world: World) -> None:
        world.Price.value[...] = 0.2 + world.draw("price")
        world.Hidden.luck[...] = world.draw("luck")
        levels = world[Unit].Level.value
        levels += world.draw("levels", levels.shape[-1]) - 0.5

    def advance(self, world: World, dt: float) -> None:
        cover = world.Cloud.cover
        cover += dt * (world.draw("wind") - 0.5)
        world[Unit].Level.value[...] += 0.1 * dt * (cover - 0.5)

    def finish(self, world: World) -> None:
        world.Price.value[...] = 0.5 + 0.4 * np.sin(world.time) + 0.1 * world.draw("price")
        world.Hidden.luck[...] += world.draw("luck") - 0.5


class StormyTogetherEnv(TogetherEnv):
    """The same with gusts and tariffs."""

    disturbance_types, upheld = StormyEnv.disturbance_types, 0
    disturb, uphold = StormyEnv.disturb, StormyEnv.uphold


class SignallingEnv(TogetherEnv):
    """The same; trainers are told the price, the more of it the later their agent comes."""

    def training_rewards(self, world: World) -> Any:
        return world.Price.value[..., :1] * np.arange(1.0, 1.0 + len(self.possible_agents))


class Linked:
    """How late and lossy messages are depends on how far apart two units are, the price, time, and who sends to whom.

    All of it is exact in any order of compiling: no sine.
    """

    @staticmethod
    @rule
    def link(world: World, sender: int, receiver: int) -> tuple[float, float]:
        units = world[Unit].Level.value
        far = abs(units[sender % len(units)] - units[receiver % len(units)]) + 0.25 * world.Price.value[0]
        far += 0.01 * (sender - 2 * receiver) + 0.1 * (world.step % 3)
        return 0.5 + far, 0.05 * far


class LinkedEnv(Linked, StillEnv):
    """The same world without other hooks."""


class LinkedLawEnv(Linked, LawEnv):
    """The same with hooks in Python."""


class RuledEnv(StillEnv):
    """The same with world rules, which are compiled with those of the agents."""

    @staticmethod
    @rule
    def begin(world: World) -> None:
        world.Price.value[0] = 0.2 + world.draw("price")[0]
        world.Hidden.luck[0] = world.draw("luck")[0]
        levels = world[Unit].Level.value
        drawn = world.draw("levels", len(levels))
        for i in range(len(levels)):
            levels[i] += drawn[i] - 0.5

    @staticmethod
    @rule
    def advance(world: World, dt: float) -> None:
        world.Cloud.cover[0] += dt * (world.draw("wind")[0] - 0.5)
        levels = world[Unit].Level.value
        for i in range(len(levels)):
            levels[i] += 0.1 * dt * (world.Cloud.cover[0] - 0.5)

    @staticmethod
    @rule(writes=(Price.value, Hidden.luck))
    def finish(world: World) -> None:
        world.Price.value[0] = 0.5 + 0.4 * np.sin(world.time) + 0.1 * world.draw("price")[0]
        world.Hidden.luck[0] += world.draw("luck")[0] - 0.5
