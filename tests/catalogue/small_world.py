"""The world that the catalogue's users get wrong: batteries in a zone."""

from pathlib import Path
from typing import Any

from heron_env import Continuous, CoordinatorAgent, FeatureProvider, FieldAgent, HeronEnv, SystemAgent, quantity

GRID = "heron/BatteryGrid-v0"
ENERGY = "heron/EnergyManagement-v1"


class Charge(FeatureProvider):
    """Energy and power of one battery."""

    visibility = ("public",)
    soc: float = quantity(default=0.5, low=0.0, high=1.0)
    power: float = quantity(default=0.0, low=-5.0, high=5.0, unit="kW")


class Battery(FieldAgent):
    """One number between -1 and 1."""

    features = (Charge,)
    action = Continuous(-1.0, 1.0, unit="kW")

    def __repr__(self) -> str:
        return f"Battery({self.agent_id!r})"


class Zone(CoordinatorAgent):
    """Watches."""


def tree(*agents: Any) -> SystemAgent:
    """Two batteries in a zone, or the given agents in it."""
    return SystemAgent("system_agent", Zone("zone_1", *(agents or (Battery("battery_1"), Battery("battery_2")))))


def env(*agents: Any, **options: Any) -> HeronEnv:
    """An environment of five steps."""
    return HeronEnv(tree(*agents), **{"max_steps": 5, **options})


def agent(base: type = FieldAgent, **attributes: Any) -> Any:
    """A class `Mine` with these attributes."""
    return type("Mine", (base,), {"features": (Charge,), "action": Continuous(-1.0, 1.0), **attributes})


def feature(annotation: Any = float, **attributes: Any) -> Any:
    """A feature class `Mine` with a field `x`."""
    annotations = {} if annotation is None else {"x": annotation}
    return type("Mine", (FeatureProvider,), {"__annotations__": annotations, "__module__": __name__, **attributes})


def step(actions: Any, kind: Any = Battery) -> None:
    """Reset, and one step."""
    world = env(kind("battery_1"), kind("battery_2"))
    world.reset(seed=0)
    world.step(actions)


def written(folder: Path, name: str, text: str) -> Path:
    """A file in the folder."""
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file
