"""The schedule that is trained under: a fixed one, or one whose values are drawn for each lane and episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError
from heron_env.scheduling.timing import LEVELS, Schedule, ScheduleConfig

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


def told(schedule: AnySchedule) -> dict[str, dict[str, Any]] | None:
    """The schedule for config.json: fields by agent, group, level or "*"; what is drawn as it may be written."""
    if schedule is None:
        return None
    to_dict = getattr(schedule, "to_dict", None)
    if callable(to_dict):
        found: dict[str, dict[str, Any]] = to_dict()
        return found
    table = schedule if isinstance(schedule, Mapping) else {"*": schedule}
    names: dict[Any, str] = dict(LEVELS)
    return {names.get(key, str(key)): asdict(config) for key, config in table.items()}
