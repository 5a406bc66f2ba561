"""The schedule that is trained under: a fixed one, or one whose values are drawn for each lane and episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError
from heron_env.scheduling.timing import Schedule, ScheduleConfig

AnySchedule = Any
"""A Schedule or a DrawnSchedule; None: the synchronous clock."""


def concrete(schedule: AnySchedule, seed: int, episode: int = 0) -> Schedule:
    """The schedule of one episode."""
    at = getattr(schedule, "at", None)
    found: Schedule = at(seed, episode) if callable(at) else schedule
    return found


def require_schedule(schedule: AnySchedule, env: HeronEnv) -> None:
    """Raise ConfigError unless it is a schedule, ScheduleError unless it is one of this environment's agents."""
    if not isinstance(schedule, ScheduleConfig | Mapping) and not callable(getattr(schedule, "at", None)):
        raise ConfigError(
            f"train(schedule={schedule!r}): must be a ScheduleConfig, a mapping of them, or a DrawnSchedule; "
            "write ScheduleConfig(msg_delay=3.0)"
        )
    env.timings_of(concrete(schedule, 0))
