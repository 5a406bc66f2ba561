"""Environments that show the coming step, each in its way, and honest ones: `heron check` must tell which is which."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from broken_envs import Level, Setpoint, Unit, Zone

from heron_env import (
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    SystemAgent,
    Vector,
    World,
    from_config,
    quantity,
    register_engine,
    rule,
)
from heron_env.declared.engine import Engine, Scene

BINS = 4
TAGS = ("owner", "upper_level")


class Demand(FeatureProvider):
    """What the unit will be asked for in the coming step: a mean for each quarter of it. Nobody sees it."""

    bins: np.ndarray = quantity(default=0.0, low=0.0, high=9.0, shape=(BINS,), observed=False)
    whole: float = quantity(default=0.0, low=0.0, high=9.0, observed=False)


@cache
def gauge(foreknown: bool = False, low: float = -9.0) -> type[FeatureProvider]:
    """What is shown of it: a number."""
    shown = quantity(default=0.0, low=low, high=9.0, foreknown=foreknown)
    names = {"__module__": __name__, "feature_name": "Gauge", "visibility": TAGS}
    return type("Gauge", (FeatureProvider,), {**names, "value": shown, "__annotations__": {"value": float}})


class Metered(Unit):
    """A unit whose physics reads what it will be asked for, bin by bin and as a whole."""

    features = (Level, Setpoint, Demand, gauge())

    @staticmethod
    @rule(writes=Level.value)
    def advance(level: Level, setpoint: Setpoint, demand: Demand, time: float, dt: float) -> float:
        now = demand.bins[int(time * 4.0) % 4]
        return level.value + (setpoint.power - 0.1 * now - 0.1 * demand.whole - 0.1 * level.value) * dt

    @staticmethod
    @rule
    def compute_local_reward(level: Level) -> float:
        return -abs(level.value)


class Shown(HeronEnv):
    """Draws the demand of the coming step; `show` says what becomes of the gauge at that moment."""

    dt = 1.0
    physics_substeps = 4
    unit: type[FieldAgent] = Metered
    last = False
    """Is it `show`n what the demand was before?"""

    def __init__(self, n: int = 2, foreknown: bool = False, **options: Any) -> None:
        marked = tuple(gauge(foreknown) if f.feature_name == "Gauge" else f for f in self.unit.features)
        kind = type(self.unit.__name__, (self.unit,), {"features": marked, "__module__": __name__})
        units = [kind(f"unit_{i + 1}") for i in range(n)]
        self.kind = kind
        super().__init__(SystemAgent("system_agent", Zone("zone_1", *units)), **options)

    def begin(self, world: World) -> None:
        self.draw(world)

    def finish(self, world: World) -> None:
        columns = world[self.kind]
        before = columns.Demand.bins.copy(), columns.Demand.whole.copy()
        self.draw(world)
        columns.Gauge.value[...] = self.show(columns, *before)

    def draw(self, world: World) -> None:
        demand = world[self.kind].Demand
        demand.bins[...] = 4.0 * world.draw("bins", demand.bins.shape)
        demand.whole[...] = 4.0 * world.draw("whole", demand.whole.shape)

    def show(self, columns: Any, bins: Any, whole: Any) -> Any:
        return 0.0


def showing(name: str, show: Callable[..., Any]) -> type[Shown]:
    """A `Shown` of that name with this `show`."""
    return type(name, (Shown,), {"__module__": __name__, "show": staticmethod(show)})


CopiesTheHidden = showing("CopiesTheHidden", lambda columns, bins, whole: columns.Demand.whole)
"""Shows what physics will read."""
ShowsTheMean = showing("ShowsTheMean", lambda columns, bins, whole: columns.Demand.bins.mean(axis=1))
"""Shows the mean of the coming step."""
ShowsThePast = showing("ShowsThePast", lambda columns, bins, whole: whole)
"""Shows what was asked for in the step that has ended."""
ShowsThePastMean = showing("ShowsThePastMean", lambda columns, bins, whole: bins.mean(axis=1))
"""Shows the mean of the step that has ended."""
ShowsTheSumToCome = showing("ShowsTheSumToCome", lambda columns, bins, whole: 0.5 * columns.Demand.bins.sum(axis=1))
"""Shows twice the mean of the coming step: what the check can't find."""


class ShowsTheLastBin(Shown):
    """Shows the last quarter of the step that has ended; the demand goes on from there in half of the steps."""

    def draw(self, world: World) -> None:
        demand = world[self.kind].Demand
        jumps = np.sort(np.floor(6.0 * world.draw("jump", (len(demand.whole), 1))), axis=1)
        held, new = demand.bins[:, -1:].copy(), 4.0 * world.draw("new", (len(demand.whole), 1))
        demand.bins[...] = np.where(np.arange(BINS) < jumps, held, new)

    def show(self, columns: Any, bins: Any, whole: Any) -> Any:
        return bins[:, -1]


class Coin(Shown):
    """The demand is 0 or 1, and so is the gauge, which has nothing to do with it."""

    def draw(self, world: World) -> None:
        demand = world[self.kind].Demand
        demand.whole[...] = np.floor(2.0 * world.draw("whole", demand.whole.shape))
        world[self.kind].Gauge.value[...] = np.floor(2.0 * world.draw("gauge", demand.whole.shape))

    def show(self, columns: Any, bins: Any, whole: Any) -> Any:
        return columns.Gauge.value.copy()


class Idle(Shown):
    """The demand falls to nothing once an episode, and the gauge stands at nothing all the time."""

    def draw(self, world: World) -> None:
        world[self.kind].Demand.whole[...] = 3.0 if world.step < 6 else 0.0


class Meter(FeatureProvider):
    """The load of the coming step."""

    visibility = TAGS
    load: float = quantity(default=0.0, low=0.0, high=9.0)


class PublishedMeter(Meter):
    """The load of the coming step, which is agreed upon ahead."""

    feature_name = "Meter"
    load: float = quantity(default=0.0, low=0.0, high=9.0, foreknown=True)


class HiddenMeter(Meter):
    """The load of the coming step, hidden."""

    feature_name = "Meter"
    load: float = quantity(default=0.0, low=0.0, high=9.0, observed=False)


class MeterUnit(Unit):
    """Physics reads the meter."""

    features = (Level, Setpoint, Meter)

    @staticmethod
    @rule(writes=Level.value)
    def advance(level: Level, setpoint: Setpoint, meter: Meter, dt: float) -> float:
        return level.value + (setpoint.power - 0.1 * meter.load - 0.1 * level.value) * dt

    @staticmethod
    @rule
    def compute_local_reward(level: Level) -> float:
        return -abs(level.value)


class Thermostat(MeterUnit):
    """The meter counts in the reward alone, and only when it is high."""

    @staticmethod
    @rule(writes=Level.value)
    def advance(level: Level, setpoint: Setpoint, dt: float) -> float:
        return level.value + setpoint.power * dt

    @staticmethod
    @rule
    def compute_local_reward(level: Level, meter: Meter) -> float:
        return -abs(level.value) - (1.0 if meter.load > 2.0 else 0.0)


class Unread(MeterUnit):
    """Nothing in the world reads the meter."""

    @staticmethod
    @rule(writes=Level.value)
    def advance(level: Level, setpoint: Setpoint, dt: float) -> float:
        return level.value + setpoint.power * dt


class Planted(HeronEnv):
    """The number that the next step will be computed with stands in a meter that all see."""

    dt = 1.0
    physics_substeps = 2
    unit: type[FieldAgent] = MeterUnit

    def __init__(self, meter: type[Meter] = Meter, n: int = 2, **options: Any) -> None:
        units = [self.unit(f"unit_{i + 1}", meter()) for i in range(n)]
        super().__init__(SystemAgent("system_agent", Zone("zone_1", *units)), **options)

    def loads(self, world: World) -> Any:
        return world[self.unit].Meter.load

    def begin(self, world: World) -> None:
        loads = self.loads(world)
        loads[...] = 4.0 * world.draw("load", len(loads))

    def finish(self, world: World) -> None:
        self.begin(world)


class PlantedReward(Planted):
    """The same, and only the reward reads it."""

    unit = Thermostat


class PlantedUnread(Planted):
    """A number for its own sake."""

    unit = Unread


class PlantedOnce(Planted):
    """Only `begin` writes: constants of the episode, like places of landmarks."""

    def finish(self, world: World) -> None:
        pass


class PlantedRarely(Planted):
    """`finish` writes it every step, but another value only twice in all: a constant that was corrected."""

    def begin(self, world: World) -> None:
        self.loads(world)[...] = 1.0

    def finish(self, world: World) -> None:
        self.loads(world)[...] = 2.0 if world.step >= 5 and world.seed < 2 else 1.0


class Walks(Planted):
    """The meter integrates: physics moves it, `finish` adds noise."""

    def advance(self, world: World, dt: float) -> None:
        self.loads(world)[...] += 0.1 * dt


class PlantedByRule(Planted):
    """The same with world rules, which run compiled."""

    @staticmethod
    @rule
    def begin(world: World) -> None:
        loads = world[MeterUnit].Meter.load
        for i in range(len(loads)):
            loads[i] = 4.0 * world.draw("load", len(loads))[i]

    @staticmethod
    @rule
    def finish(world: World) -> None:
        loads = world[MeterUnit].Meter.load
        drawn = world.draw("load", len(loads))
        for i in range(len(loads)):
            loads[i] = 4.0 * drawn[i]


class PlantedPhysics(PlantedUnread):
    """The same in the specification's imperative style: `run_simulation` reads the meter."""

    def run_simulation(self, env_state: Any) -> Any:
        for state in env_state["agent_states"].values():
            if "Meter" in state:
                state["Level"]["value"] = 0.9 * state["Level"]["value"] - 0.1 * state["Meter"]["load"]
        return env_state


class Obeys(Unread):
    """Its meter is a limit: apply_action reads it, and nothing else."""

    @staticmethod
    @rule(writes=Setpoint.power)
    def apply_action(meter: Meter, action: Vector) -> float:
        return min(action[0], 0.2 * meter.load)


class PlantedLimit(Planted):
    """The meter is a limit that `apply_action` holds to."""

    unit = Obeys


class Drawn(Engine):
    """Test engine: a weather that is drawn each turn moves every level."""

    agent_variables = ("level",)
    global_variables = ("weather",)

    def advance(self, scene: Scene, dt: float) -> None:
        scene.agents.level += (scene.actions - scene.world.weather) * dt
        scene.income[...] -= np.abs(scene.agents.level) * dt

    def finish(self, scene: Scene) -> None:
        scene.world.weather[...] = scene.draw("weather", 1)


register_engine("drawn", "foretelling_envs:Drawn")  # whatever name the doctest collection imports this module by


def declared(**mark: Any) -> HeronEnv:
    """A world from YAML whose weather is that of the coming turn."""
    weather = {"type": "float", "min": 0.0, "max": 1.0, "default": 0.5, **mark}
    return from_config(
        {
            "simulation": {"name": "weather", "max_turns": 6},
            "engine": {"type": "drawn"},
            "agents": [{"name": "A"}, {"name": "B"}],
            "state_variables": {
                "agent_vars": {"level": {"type": "float", "min": -99.0, "max": 99.0, "default": 0.0}},
                "global_vars": {"weather": weather},
            },
        }
    )
