"""BatteryGrid: batteries in zones, the minimal example. An action moves the charge at once.

`apply_action` integrates at once, so deciding more often acts more, and a delay below dt shows nothing. It is the
documented exception to the law that actions only write set-points; use EnergyManagement for studies of delay.

In PettingZoo's names: `parallel_env(**options)` is the environment, `env` and `raw_env` its agent-by-agent form; all
take the options of `battery_grid`, and `max_cycles` for max_steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from heron_env.agents.agent import CoordinatorAgent, FieldAgent, SystemAgent
from heron_env.agents.vertical import VectorDecomposition
from heron_env.core.action import Continuous, Vector
from heron_env.core.feature import FeatureProvider, quantity
from heron_env.core.rule import rule
from heron_env.core.world import World
from heron_env.envs.base import HeronEnv
from heron_env.given import ANY, require_count, require_one_of
from heron_env.pictures import shapes
from heron_env.pictures.course import PictureSeries
from heron_env.pictures.palette import GREY
from heron_env.registry import make, make_aec

GAIN = 0.01
"""State of charge per unit of action."""


class BatteryChargeFeature(FeatureProvider):
    """Energy held by one battery; everyone may see it."""

    visibility: ClassVar[Sequence[str]] = ("public",)
    soc: float = quantity(default=0.5, low=0.0, high=1.0)
    capacity: float = quantity(default=100.0, low=1.0, high=1e4, unit="kWh", noisy=False)


class OwnerCharge(BatteryChargeFeature):
    """The same, seen by the battery alone."""

    feature_name = "BatteryChargeFeature"
    visibility = ("owner",)


class ParentCharge(BatteryChargeFeature):
    """The same, seen by the battery and its zone."""

    feature_name = "BatteryChargeFeature"
    visibility = ("owner", "upper_level")


SCOPES: dict[str, type[BatteryChargeFeature]] = {
    "public": BatteryChargeFeature,
    "owner": OwnerCharge,
    "parent": ParentCharge,
}
CONTROLS = ("field", "zone")


class Battery(FieldAgent):
    """Its action in [-1, 1] moves the state of charge by a hundredth of it; its reward is the state of charge."""

    features = (BatteryChargeFeature,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=BatteryChargeFeature.soc)
    def apply_action(charge: BatteryChargeFeature, action: Vector) -> float:
        """Return soc + 0.01 a."""
        return charge.soc + action[0] * GAIN

    @staticmethod
    @rule
    def compute_local_reward(charge: BatteryChargeFeature) -> float:
        """The state of charge."""
        return charge.soc


class Zone(CoordinatorAgent):
    """Watches its batteries, or commands them if built with a protocol."""


class BatteryGridEnv(HeronEnv):
    """Zones of batteries below one system agent; observations by `scope`."""

    metadata: dict[str, Any] = {**HeronEnv.metadata, "name": "heron/BatteryGrid-v0"}

    def picture_series(self) -> Sequence[PictureSeries]:
        """Return one panel: the content of a zone's batteries."""
        zone = self.hierarchy.ids[max(self.hierarchy.parent[self.hierarchy.index[self.possible_agents[0]]], 0)]
        return (PictureSeries(f"Content of the batteries of {zone}, mean", "share", "soc", mean=True),)

    def draw_frame(self, axes: Any, world: World, observed: Any, artists: Any = None) -> Any:
        """Draw every battery as a cell that fills, by zone; dashed: the level that the observing agent knows."""
        children = self.hierarchy.children
        return (artists or GridDrawing(axes, [len(children[zone]) for zone in children[0]])).show(world, observed)


class GridDrawing:
    """The artists of zones with so many batteries each."""

    def __init__(self, axes: Any, sizes: Sequence[int]) -> None:
        height = 100.0 * shapes.shape_of(axes)
        self.title, self.foot = shapes.stage(axes, 100.0, height)
        self.time, self.soc = np.inf, np.zeros(0)
        zones, places, cell = shapes.nested(sizes, np.array([0.0, 3.5]), np.array([100.0, height - 4.0]), 0.7, 4.0)
        shapes.polygons(axes, zones, facecolor=shapes.PALE, edgecolor=GREY, zorder=1.0)
        self.cells = shapes.FillingCells(axes, places, 0.45 * cell, 0.75 * cell)
        self.means = shapes.Labels(axes, zones[:, 3] + (1.0, -2.3), points=8.5, bold=True, middle=False)
        self.zone = np.repeat(np.arange(len(sizes)), sizes)

    def show(self, world: World, observed: Any) -> GridDrawing:
        """Levels; who rises or sinks since the last frame."""
        charge = world[Battery].BatteryChargeFeature
        soc = charge.soc.copy()
        if world.time != self.time:
            self.before = self.soc if world.time > self.time else soc
        self.time, self.soc = world.time, soc
        known = None if observed is None else observed.world[Battery].BatteryChargeFeature.soc
        self.cells.show(soc, soc - self.before, known)
        means = np.bincount(self.zone, soc) / np.bincount(self.zone)
        self.means.show(f"zone_{zone + 1}: {mean:.0%}" for zone, mean in enumerate(means))
        self.title.set_text(f"{soc @ charge.capacity:,.0f} of {charge.capacity.sum():,.0f} kWh stored")
        self.foot.set_text(shapes.known_text(observed))
        return self


def battery_grid(
    num_batteries: int = 2,
    zone_size: int = 10,
    control: Literal["field", "zone"] = "field",
    scope: Literal["public", "owner", "parent"] = "public",
    dt: float = 1.0,
    max_steps: int | None = 100,
    **options: Any,
) -> HeronEnv:
    """Batteries in zones, the minimal example: reward = state of charge.

    Args:
        num_batteries: battery_1 ... battery_n.
        zone_size: batteries a zone; the last zone takes the rest.
        control: "field": batteries decide; "zone": their zones decide for them, element by element.
        scope: who sees a battery's charge: everyone, itself alone, or itself and its zone.
        dt: control step, s.
        max_steps: steps an episode.
        options: of HeronEnv.

    Raises ConfigError naming the argument and its value.
    """
    require_count(f"battery_grid(num_batteries={num_batteries!r:.60})", num_batteries)
    require_count(f"battery_grid(zone_size={zone_size!r:.60})", zone_size, most=ANY)
    for name, choice, choices in (("control", control, CONTROLS), ("scope", scope, tuple(SCOPES))):
        require_one_of(f"battery_grid({name}={choice!r:.60})", choice, choices)
    protocol = VectorDecomposition() if control == "zone" else None
    batteries = [Battery(f"battery_{i + 1}", SCOPES[scope]()) for i in range(num_batteries)]
    zones = [
        Zone(f"zone_{z + 1}", *batteries[start : start + zone_size], protocol=protocol)
        for z, start in enumerate(range(0, num_batteries, zone_size))
    ]
    return BatteryGridEnv(SystemAgent("system_agent", *zones), dt=dt, max_steps=max_steps, **options)


parallel_env = partial(make, "heron/BatteryGrid-v0")
env = raw_env = partial(make_aec, "heron/BatteryGrid-v0")

__all__ = [
    "Battery",
    "BatteryChargeFeature",
    "BatteryGridEnv",
    "Zone",
    "battery_grid",
    "env",
    "parallel_env",
    "raw_env",
]
