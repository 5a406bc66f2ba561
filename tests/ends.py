"""Small environments whose agents end at chosen steps, or choose among categories; kinds of environments to train."""

from typing import Any

import numpy as np

from heron_env import (
    Continuous,
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ScheduleConfig,
    SystemAgent,
    Vector,
    quantity,
    rule,
)

COARSE = {"dt": 3600.0, "physics_substeps": 1}
NOISY = {"default": {"level": "external", "noise": 0.2}}
KINDS: list[tuple[str, dict[str, Any], str]] = [
    ("heron/BatteryGrid-v0", {"num_batteries": 3, "zone_size": 2, "max_steps": 7}, "battery"),
    ("heron/BatteryGrid-v0", {"num_batteries": 4, "zone_size": 2, "max_steps": 7, "control": "zone"}, "zone"),
    ("heron/BatteryGrid-v0", {"max_steps": 7, "observe_age": True}, "battery"),
    ("heron/BatteryGrid-v0", {"max_steps": 7, "schedule": ScheduleConfig(tick_interval=2.0)}, "battery"),
    ("heron/BatteryGrid-v0", {"max_steps": 7, "observability": NOISY}, "battery"),
    ("heron/EnergyManagement-v1", COARSE, "battery"),
    ("heron/EnergyManagement-v1", {**COARSE, "control": "zone"}, "zone"),
]


def draw(venv: Any, rng: np.random.Generator) -> np.ndarray:
    """Random actions for all slots of a HeronVecEnv."""
    low, high = venv.action_space.low, venv.action_space.high
    return (low + rng.random((venv.num_envs, len(low))) * (high - low)).astype(np.float32)


class Life(FeatureProvider):
    """Steps lived, and the step in which the agent ends."""

    age: float = quantity(default=1.0, low=0.0, high=1e3)
    end: float = quantity(default=5.0, low=0.0, high=1e3, observed=False)


class Mortal(FieldAgent):
    """Earns 1 a step until it ends by its own rule."""

    features = (Life,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Life.age)
    def advance(life: Life, dt: float) -> float:
        return life.age + dt

    @staticmethod
    @rule
    def compute_local_reward(life: Life) -> float:
        return 1.0

    @staticmethod
    @rule
    def is_terminated(life: Life) -> bool:
        return life.age > life.end


def endings(ends: tuple[float, ...], max_steps: int | None = None, **options: Any) -> HeronEnv:
    """mortal_1, mortal_2, ... end by rule after `ends[i]` steps; `options` of HeronEnv."""
    agents = [Mortal(f"mortal_{i + 1}", Life(end=float(end))) for i, end in enumerate(ends)]
    return HeronEnv(SystemAgent("system_agent", *agents), max_steps=max_steps, **options)


class Choice(FeatureProvider):
    """What was chosen last."""

    value: float = quantity(default=0.0, low=0.0, high=2.0)


class Chooser(FieldAgent):
    """Its reward is the number of its choice."""

    features = (Choice,)
    action = Discrete(3)

    @staticmethod
    @rule(writes=Choice.value)
    def apply_action(choice: Choice, action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule
    def compute_local_reward(choice: Choice) -> float:
        return choice.value


class Place(FeatureProvider):
    """Where a mover stands."""

    value: float = quantity(default=0.0, low=-1.0, high=1.0)


class Mover(FieldAgent):
    """Stands where its action says; its reward is the place."""

    features = (Place,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Place.value)
    def apply_action(place: Place, action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule
    def compute_local_reward(place: Place) -> float:
        return place.value


class Mixed:
    """Agents of two kinds."""

    @staticmethod
    def choosers(n: int) -> list[FieldAgent]:
        return [Chooser(f"chooser_{i + 1}") for i in range(n)]

    @staticmethod
    def pair() -> list[FieldAgent]:
        return [Mover("mover_1"), Chooser("chooser_1")]
