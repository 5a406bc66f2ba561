"""With which clock and which delay a policy is evaluated.

`delay` is the latency from observation to effect. A plain number of seconds is put into `act_delay` of every agent:
what it sees is fresh, what it does comes late. Reports and requests then travel at once, so that a number stays one
cause; a `ScheduleConfig` may combine anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from heron_env.errors import ConfigError
from heron_env.scheduling.timing import Schedule, ScheduleConfig


@dataclass(frozen=True)
class Clock:
    """One way to run an episode."""

    name: Literal["sync", "event"]
    delay: float | None = None
    """From observation to effect, s; None for the synchronous clock."""
    schedule: Schedule = None
    """None: the environment's own, with `delay` as every agent's act_delay."""

    def __str__(self) -> str:
        """`sync`, `event, 30 s`."""
        return self.name if self.delay is None else f"{self.name}, {self.delay:g} s"

    @property
    def is_free_of_delay(self) -> bool:
        """An event-driven run that must equal the synchronous one?"""
        return self.name == "event" and self.delay == 0.0 and self.schedule is None

    def applied_to(self, own: Schedule) -> Schedule:
        """The schedule for an environment whose own is `own`."""
        return self.schedule if self.schedule is not None else delayed(own, self.delay or 0.0)


SYNC: Final = Clock("sync")
ClockLike = Clock | ScheduleConfig | Literal["sync"] | float


def clock(given: ClockLike) -> Clock:
    """The clock that "sync", a delay in seconds or a ScheduleConfig stands for. Raises ConfigError, ScheduleError."""
    match given:
        case Clock():
            return given
        case "sync":
            return SYNC
        case ScheduleConfig():
            return Clock("event", given.obs_delay + given.msg_delay + given.act_delay, given)
        case int() | float() if not isinstance(given, bool):
            return Clock("event", ScheduleConfig(act_delay=float(given)).act_delay)
    raise ConfigError(f"clock {given!r}: must be 'sync', a delay in seconds or a ScheduleConfig")


def usual_delays(dt: float) -> tuple[float, ...]:
    """What is asked where nobody says: no delay, then half a control step of `dt` s, a whole one, and two."""
    return (0.0, dt / 2, dt, 2 * dt)


def delayed(own: Schedule, seconds: float) -> Schedule:
    """`own` with `seconds` as the act_delay of every entry: ticks, loss and jitter stay."""
    if own is None or isinstance(own, ScheduleConfig):
        return replace(own or ScheduleConfig(), act_delay=seconds)
    assert isinstance(own, Mapping)
    return {
        "*": ScheduleConfig(act_delay=seconds),
        **{k: replace(config, act_delay=seconds) for k, config in own.items()},
    }
