"""The environments of small_worlds once more, with the hook `sees` (V11), which depends on the state in every way."""

from types import FunctionType
from typing import Any

import numpy as np
from small_worlds import (
    Chooser,
    GustyEnv,
    LawEnv,
    RuledEnv,
    SignallingEnv,
    StillEnv,
    StormyEnv,
    StormyTogetherEnv,
    TogetherEnv,
    Unit,
)

from heron_env import FieldAgent, World, rule


def in_sight(world: World, observer: int, target: int) -> bool:
    """Changes with both, with others, with effects, the price and time; a unit is the target."""
    units, choosers = world[Unit].Level.value, world[Chooser].Level.value
    phase = 3.0 * units[observer % len(units)] + 2.0 * choosers[observer % len(choosers)] + 5.0 * units[target]
    phase += 1.7 * world[Unit].Setpoint.power[target] + 4.0 * world.Price.value[0] + world.time + observer
    return bool(np.sin(phase) > -0.2)


def ruled(*classes: type) -> Any:
    """A world rule of these classes. All have one text, so that one is compiled."""
    return staticmethod(rule(of=classes)(FunctionType(in_sight.__code__, globals(), "sees")))


class UnitsSeeUnits:
    """A rule of one class."""

    sees = ruled(Unit)


class ChoosersSeeUnits:
    """A rule of two classes; talkers are choosers, too."""

    sees = ruled(Chooser, Unit)


class AllSeeAll:
    """A method, where all field agents are of one class."""

    def sees(self, world: World, observer: int, target: int) -> bool:
        levels, powers = world[FieldAgent].Level.value, world[FieldAgent].Setpoint.power
        phase = 3.0 * levels[observer] + 5.0 * levels[target] + 1.7 * powers[target]
        return bool(np.sin(phase + 4.0 * world.Price.value[0] + world.time) > -0.2)


class AsToggled:
    """A method that looks up in `shown`, bool `[observers, targets]`, whatever the state is; None: all see all."""

    shown: Any = None

    def sees(self, world: World, observer: int, target: int) -> bool:
        return True if self.shown is None else bool(self.shown[observer, target])


SIGHTS: dict[str, type] = {
    "rule": UnitsSeeUnits, "two": ChoosersSeeUnits, "method": AllSeeAll, "toggled": AsToggled,
}  # fmt: skip
PAIRS: dict[str, tuple[type, type]] = {
    "rule": (Unit, Unit), "two": (Chooser, Unit), "method": (FieldAgent, FieldAgent),
    "toggled": (FieldAgent, FieldAgent),
}  # fmt: skip
"""The classes of observers and targets."""
ENVIRONMENTS = (
    LawEnv, TogetherEnv, RuledEnv, StillEnv, GustyEnv, SignallingEnv, StormyEnv, StormyTogetherEnv,
)  # fmt: skip


def with_sight(env: Any, sight: str) -> Any:
    """The class that is `env` with that hook; "": itself."""
    return globals()[f"{SIGHTS[sight].__name__}In{env.__name__}"] if sight else env


for _sight in SIGHTS.values():
    for _env in ENVIRONMENTS:  # each by its name, so that environments can be stored
        _name = f"{_sight.__name__}In{_env.__name__}"
        globals()[_name] = type(_name, (_sight, _env), {"__module__": __name__})
