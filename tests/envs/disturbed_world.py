"""A small world with disturbances: heaters behind a fuse, in which every rule shows in a number or two."""

from collections.abc import Iterable, Sequence
from typing import Any

from heron_env import (
    Children,
    Continuous,
    CoordinatorAgent,
    CustomEvent,
    CustomMessage,
    Disturbance,
    DisturbanceType,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Push,
    SystemAgent,
    Vector,
    World,
    quantity,
    rule,
)


class Store(FeatureProvider):
    visibility = ("public",)
    energy: float = quantity(default=0.0, unit="J")
    power: float = quantity(default=0.0, unit="W")
    gained: float = quantity(default=0.0, unit="J", per_step=True, observed=False)
    stamp: float = quantity(default=0.0, unit="s", observed=False)


class Fuse(FeatureProvider):
    visibility = ("owner", "subordinates")
    limit: float = quantity(default=10.0, unit="W")
    load: float = quantity(default=0.0, unit="W")


class Weather(FeatureProvider):
    visibility = ("public",)
    cold: float = quantity(default=1.0)


class Heater(FieldAgent):
    features = (Store,)
    action = Continuous(-9.0, 9.0, noop=-1.0)

    @staticmethod
    @rule(writes=Store.power)
    def apply_action(action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=(Store.energy, Store.gained, Store.stamp))
    def advance(store: Store, weather: Weather, dt: float, time: float) -> tuple[float, float, float]:
        gain = store.power * weather.cold * dt
        return store.energy + gain, store.gained + gain, time

    @staticmethod
    @rule
    def compute_local_reward(store: Store) -> float:
        return store.gained


class Zone(CoordinatorAgent):
    features = (Fuse,)

    @staticmethod
    @rule(writes=Fuse.load)
    def advance(stores: Children[Store], weather: Weather) -> float:
        return float(stores.power.sum()) * weather.cold


class DisturbedEnv(HeronEnv):
    """Types: a `spark` adds energy, a lasting `cold_spell` makes the weather colder, a lasting `derating` the fuse."""

    dt, physics_substeps = 1.0, 10
    global_features = (Weather,)
    disturbance_types = {
        "spark": DisturbanceType("Energy out of nowhere.", {"heater": "place", "energy": "J"}, lasts=False),
        "cold_spell": DisturbanceType("All is colder.", {"cold": "factor"}),
        "derating": DisturbanceType("The fuse holds less.", {"limit": "W"}, {"limit": 2.0}),
    }

    def finish(self, world: World) -> None:
        world.Weather.cold[...] = 1.0 + 0.25 * (world.step % 3)

    def disturb(self, world: World, disturbance: Disturbance) -> None:
        if disturbance.type == "spark":
            world[Heater].Store.energy[disturbance.payload["heater"]] += disturbance.payload["energy"]

    def uphold(self, world: World, disturbances: Sequence[Disturbance]) -> None:
        cold, limit = 1.0 + 0.25 * (world.step % 3), 10.0
        for disturbance in disturbances:
            cold *= disturbance.payload.get("cold", 1.0)
            limit = min(limit, self.disturbance_types[disturbance.type].filled(disturbance).get("limit", limit))
        world.Weather.cold[...], world[Zone].Fuse.limit[...] = cold, limit

    def happen(self, world: World, event: Any) -> Iterable[Any] | None:
        if event.type == "call":
            return [CustomMessage("letter", event.payload["to"], {"energy": 5.0}), CustomEvent(event.t + 1.0, "again")]
        if event.type == "letter":
            world[Heater].Store.energy[0] += event.payload["energy"]
            return [Push("heater_1")]
        return None


def disturbed(n: int = 2, protocol: Any = None, **options: Any) -> HeronEnv:
    zone = Zone("zone", *(Heater(f"heater_{i + 1}") for i in range(n)), protocol=protocol)
    return DisturbedEnv(SystemAgent("s", zone), **{"max_steps": 20, **options})
