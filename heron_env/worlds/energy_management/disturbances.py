"""What may happen to the neighbourhood from outside, beside crashed agents and failed sensors, which every env knows.

The sets are designs, not statistics of any network: each is a Poisson process over the day, keyed by its seed, whose
rates and ranges stand in `SETS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from heron_env.core.world import World
from heron_env.errors import ConfigError, UnknownAgent, did_you_mean
from heron_env.scheduling.disturbances import (
    BUILT_IN,
    CRASH,
    SENSOR,
    Disturbance,
    DisturbanceType,
    Draw,
    poisson_disturbances,
)
from heron_env.worlds.energy_management.agents import Battery, TransformerZone
from heron_env.worlds.energy_management.site import DAY

if TYPE_CHECKING:
    from heron_env.worlds.energy_management.env import EnergyManagementEnv

DERATING, CLOUDS, SPIKE = "transformer_derating", "cloud_front", "load_spike"
EVERYWHERE: Final = {"zone": "*"}
TYPES: Final[Mapping[str, DisturbanceType]] = {
    DERATING: DisturbanceType(
        "A transformer may carry only part of its limit.",
        {"factor": "share of the limit that is left, 0 to 1", "zone": "id of the zone, or '*' for all"},
        EVERYWHERE,
    ),
    CLOUDS: DisturbanceType(
        "Clouds leave part of the roofs' generation; no forecast knows of them.",
        {"factor": "share of the generation that is left, 0 to 1", "zone": "id of the zone, or '*' for all"},
        EVERYWHERE,
    ),
    SPIKE: DisturbanceType(
        "Somebody draws more than the day's series say.",
        {"power": "kW more, 0 to 100", "agent": "id of a battery (its home), or of a zone (its other consumers)"},
    ),
}
MOST: Final = {"factor": 1.0, "power": 100.0}


class Habit(NamedTuple):
    """How often something happens a day, for how long (min), between which hours, and with what numbers."""

    type: str
    a_day: float
    minutes: tuple[float, float]
    hours: tuple[float, float] = (0.0, 24.0)
    range: tuple[float, float] = (0.0, 0.0)


SETS: Final[Mapping[str, tuple[Habit, ...]]] = {
    "derating": (Habit(DERATING, 3.0, (60.0, 180.0), range=(0.3, 0.7)),),
    "clouds": (Habit(CLOUDS, 6.0, (10.0, 40.0), hours=(8.0, 18.0), range=(0.1, 0.4)),),
    "spikes": (Habit(SPIKE, 12.0, (5.0, 30.0), range=(3.0, 9.0)),),
    "sensors": (Habit(SENSOR, 6.0, (30.0, 120.0)),),
    "crashes": (Habit(CRASH, 6.0, (30.0, 120.0)),),
}
"""By name; "all" are all of them together."""


def sets_of(env: EnergyManagementEnv) -> dict[str, Callable[[int], list[Disturbance]]]:
    """Builders of the sets for one environment's agents: seed -> disturbances, in the order of their times."""
    every = tuple(habit for habits in SETS.values() for habit in habits)
    return {name: partial(_build, env, habits) for name, habits in {**SETS, "all": every}.items()}


def _build(env: EnergyManagementEnv, habits: Sequence[Habit], seed: int) -> list[Disturbance]:
    found: list[Disturbance] = []
    for habit in habits:
        start, end = (hour * 3600.0 for hour in habit.hours)
        rate = habit.a_day / (end - start)
        found += poisson_disturbances(rate, end, partial(_make, env, habit), seed=seed, name=habit.type, t_start=start)
    return sorted(found, key=lambda disturbance: disturbance.t)


def _make(env: EnergyManagementEnv, habit: Habit, t: float, draw: Draw) -> Disturbance:
    ids = env.hierarchy.ids
    batteries, zones = ([ids[rank] for rank in _ranks(env, kind)] for kind in (Battery, TransformerZone))
    low, high = habit.range
    number, chance = low + (high - low) * draw("number"), draw("who")

    def one_of(names: Sequence[str]) -> str:
        return names[int(chance * len(names))]

    payloads: dict[str, dict[str, Any]] = {
        DERATING: {"factor": number, "zone": one_of(zones)},
        CLOUDS: {"factor": number},
        SPIKE: {"power": number, "agent": one_of(batteries)},
        SENSOR: {"agent": one_of([*zones, *batteries]), "mode": "vanish" if draw("mode") < 0.5 else "freeze"},
        CRASH: {"agent": one_of(env.possible_agents), "meanwhile": "hold"},
    }
    shortest, longest = habit.minutes
    duration = 60.0 * (shortest + (longest - shortest) * draw("minutes"))
    return Disturbance(t, habit.type, payloads[habit.type], habit.type in TYPES, duration=min(duration, DAY))


def require(env: EnergyManagementEnv, disturbance: Disturbance) -> None:
    """Raise ConfigError, UnknownAgent for a value out of its range, or a place that is not there."""
    if disturbance.type in BUILT_IN:
        return
    where, payload = f"disturbance {disturbance.type!r}", TYPES[disturbance.type].filled(disturbance)
    for name, most in MOST.items():
        value = payload.get(name, 0.0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= most:
            raise ConfigError(f"{where}: {name}={value!r} must be a number from 0 to {most:g}")
    ids = env.hierarchy.ids
    zones, batteries = ([ids[rank] for rank in _ranks(env, kind)] for kind in (TransformerZone, Battery))
    for name, allowed in (("zone", ["*", *zones]), ("agent", [*zones, *batteries])):
        if name in payload and payload[name] not in allowed:
            near = did_you_mean(payload[name], allowed)
            raise UnknownAgent(f"{where}: {name}={payload[name]!r} must be one of {allowed[:12]}.{near}")


def uphold(env: EnergyManagementEnv, world: World, disturbances: Sequence[Disturbance]) -> None:
    """Write what those in force make of limits, generation and load: factors and additions of their own.

    The day's series stay as they are, and rules read both: what begins or ends within a bin counts from there on.
    """
    homes, zones = world[Battery].Disturbed, world[TransformerZone]
    homes.pv_factor[...], homes.load[...] = 1.0, 0.0
    zones.Zone.limit[...], zones.Background.extra[...] = env.limits, 0.0
    ids, parent = env.hierarchy.ids, env.hierarchy.parent
    batteries, transformers = _ranks(env, Battery), _ranks(env, TransformerZone)
    for disturbance in disturbances:
        payload = TYPES[disturbance.type].filled(disturbance)
        if disturbance.type == SPIKE:
            rank = env.hierarchy.index[payload["agent"]]
            if rank in batteries:
                homes.load[batteries.index(rank)] += payload["power"]
            else:
                zones.Background.extra[transformers.index(rank)] += payload["power"]
            continue
        for place, rank in enumerate(transformers):
            if payload["zone"] not in ("*", ids[rank]):
                continue
            if disturbance.type == DERATING:
                zones.Zone.limit[place] *= payload["factor"]
            else:
                for home, battery in enumerate(batteries):
                    homes.pv_factor[home] *= payload["factor"] if parent[battery] == rank else 1.0


def _ranks(env: EnergyManagementEnv, kind: type) -> list[int]:
    """The agents of a class, in the order of their columns."""
    return [rank for rank, agent in enumerate(env.hierarchy.agents) if isinstance(agent, kind)]
