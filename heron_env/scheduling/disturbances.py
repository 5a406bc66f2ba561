"""Disturbances as data: what happens to the world from outside, and when.

A disturbance says what and when; what it means is said by the environment (`envs/hooks.py`), but for two types that
every environment knows because they concern agents and their reports, not the world:

    agent_crash     {"agent": id, group or "*", "meanwhile": "hold" | "noop"}: it decides nothing for `duration` s. Its
                    last set-point holds, or each decision that it would have made is its no-op. Its meter goes on.
    sensor_failure  {"agent": id, group or "*", "mode": "vanish" | "freeze"}: for `duration` s the reports of its state
                    do not leave, or they go on saying what was true when it began. Then it reports at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from heron_env.errors import ConfigError, did_you_mean
from heron_env.given import accepts, is_finite, whole
from heron_env.scheduling.timing import to_ns
from heron_env.seeding import key, uniform

CRASH: Final = "agent_crash"
SENSOR: Final = "sensor_failure"
Payload = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Event from outside at time `t`; frozen and picklable.

    Attributes:
        t: when it begins, s of virtual time.
        type: one of the environment's `disturbance_types`.
        payload: plain numbers and words that say how much and to whom; numpy scalars and arrays will do.
        requires_physics: run the part of the physics substep that has begun, so that consequences show at once; for
            environments whose `advance` uses its `dt`. As any effect, it counts from the start of its substep.
        duration: how long it lasts, s; None: a single event, of a type declared with `lasts=False`.

    Raises ConfigError, ScheduleError naming the field.
    """

    t: float
    type: str
    payload: Payload = field(default_factory=dict)
    requires_physics: bool = False
    duration: float | None = None

    def __post_init__(self) -> None:
        to_ns(self.t, "Disturbance(t)")
        if not isinstance(self.type, str) or not self.type:
            raise ConfigError(f"Disturbance(type={self.type!r}): must be the name of a type, as 'agent_crash'")
        if not isinstance(self.payload, Mapping) or not all(isinstance(name, str) for name in self.payload):
            raise ConfigError(f"Disturbance(payload={self.payload!r}): must map names to values")
        if not isinstance(self.requires_physics, bool):
            raise ConfigError(f"Disturbance(requires_physics={self.requires_physics!r}): must be True or False")
        if self.duration is not None and not to_ns(self.duration, "Disturbance(duration)"):
            raise ConfigError(f"Disturbance(duration={self.duration!r}): must be above 0 s, or None for a single event")

    @property
    def ns(self) -> int:
        """When it begins, ns."""
        return to_ns(self.t, "t")

    @property
    def end_ns(self) -> int | None:
        """When it ends, ns."""
        return None if self.duration is None else self.ns + to_ns(self.duration, "duration")


@dataclass(frozen=True, slots=True)
class DisturbanceType:
    """Declaration of one type of disturbances, checked before a run begins.

    Attributes:
        doc: one sentence.
        payload: meaning and unit of each entry.
        defaults: of the entries that may be left out.
        lasts: True, the default: each one needs a `duration`. False: single events, none may have one.

    Raises ConfigError.
    """

    doc: str
    payload: Mapping[str, str] = field(default_factory=dict)
    defaults: Payload = field(default_factory=dict)
    lasts: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.lasts, bool):
            raise ConfigError(f"DisturbanceType(lasts={self.lasts!r}): must be True, or False for single events")

    def require(self, disturbance: Disturbance) -> None:
        """Raise ConfigError unless the payload has the entries of this type, and a duration if it lasts."""
        where = f"{disturbance.type!r} at t={disturbance.t!r} s"
        for name in disturbance.payload:
            if name not in self.payload:
                entries, near = list(self.payload), did_you_mean(name, self.payload)
                raise ConfigError(
                    f"disturbance {where}: its payload has no entry {name!r}; entries are {entries}.{near}"
                )
        for name, meaning in self.payload.items():
            if name not in disturbance.payload and name not in self.defaults:
                raise ConfigError(f"disturbance {where}: its payload needs {name!r} ({meaning})")
        if self.lasts != (disturbance.duration is not None):
            what = (
                "lasts: give it a duration=... in s, or declare the type of single events: DisturbanceType(lasts=False)"
                if self.lasts
                else "is a single event: leave duration out, or declare the type with DisturbanceType(lasts=True)"
            )
            raise ConfigError(f"disturbance {where} with duration={disturbance.duration!r}: this type {what}")

    def filled(self, disturbance: Disturbance) -> dict[str, Any]:
        """Return the payload with its defaults."""
        return {**self.defaults, **disturbance.payload}


BUILT_IN: Final[Mapping[str, DisturbanceType]] = {
    CRASH: DisturbanceType(
        "An agent decides nothing for a while.",
        {"agent": "id, group or '*'", "meanwhile": "'hold' its set-point, or 'noop'"},
        {"meanwhile": "hold"},
    ),
    SENSOR: DisturbanceType(
        "What an agent's state is reported to be vanishes or freezes.",
        {"agent": "id, group or '*'", "mode": "'vanish' or 'freeze'"},
        {"mode": "vanish"},
    ),
}
"""The types that every environment knows."""


Draw = Callable[[str], float]
"""A uniform in [0, 1) for a name: `draw("factor")`."""


def poisson_disturbances(
    rate: float, t_end: float, make: Callable[[float, Draw], Disturbance], *, seed: int, name: str, t_start: float = 0.0
) -> list[Disturbance]:
    """Draw disturbances of a Poisson process: gaps are exponential with mean 1 / rate seconds.

    Args:
        rate: mean number per second.
        t_end, t_start: disturbances begin before t_end and not before t_start, s.
        make: `make(t, draw)` builds the disturbance at `t`; `draw(name)` is its own random number in [0, 1).
        seed: the key of every draw, with `name` and the number of the disturbance. A larger `t_end` only adds
            disturbances.
        name: of the process. Processes with different names are independent.

    Returns:
        The disturbances, in order of time.

    Raises ConfigError if the rate is not a finite number >= 0.

    >>> def crash(t, draw):
    ...     return Disturbance(t, "agent_crash", {"agent": "battery_1"}, duration=60.0)
    >>> [round(one.t) for one in poisson_disturbances(0.01, 500.0, crash, seed=0, name="crashes")]
    [359]
    """
    fine = isinstance(rate, int | float) and not isinstance(rate, bool) and is_finite(rate) and rate >= 0
    if not fine:
        raise ConfigError(f"poisson_disturbances(rate={rate!r}): must be a number >= 0, per second")
    if not (callable(make) and accepts(make, 2)) or not isinstance(name, str):
        raise ConfigError(
            f"poisson_disturbances(make={make!r:.200}, name={name!r:.200}): must be a function (t, draw) and a name"
        )
    whole(seed, "poisson_disturbances(seed)", -(2**63), 2**64)
    disturbances: list[Disturbance] = []
    to_ns(t_start, "t_start"), to_ns(t_end, "t_end")
    t, number = t_start, 0
    while rate:
        own = key(seed, "disturbance", name, number)
        t -= math.log1p(-uniform(key(own, "gap"))) / rate
        if t >= t_end:
            break
        disturbances.append(make(t, lambda what, own=own: uniform(key(own, "draw", what))))  # type: ignore[misc]
        number += 1
    return disturbances
