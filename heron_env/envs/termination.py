"""When an episode ends (T5)."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Literal, TypeGuard

from heron_env.errors import ConfigError, checked_keywords, did_you_mean
from heron_env.given import is_finite, is_one_of
from heron_env.scheduling.timing import END_OF_TIME, SECOND, to_seconds

MODES = ("all", "any")


@checked_keywords
@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationConfig:
    """Limits of an episode, and whether it is over when all possible agents have ended or already when any has.

    Args:
        max_steps: truncated after this many control steps.
        max_sim_time: truncated at the first step boundary at or after this time, s.
        mode: "all" or "any"; with "any" the others are terminated in the same step.
    """

    max_steps: int | None = None
    max_sim_time: float | None = None
    mode: Literal["all", "any"] = "all"

    def __post_init__(self) -> None:
        """Refuse what can't be."""
        if self.max_steps is not None and not is_count(self.max_steps):
            raise ConfigError(f"TerminationConfig(max_steps={self.max_steps!r}): must be a whole number >= 1, or None")
        if self.max_sim_time is not None and not (_is_number(self.max_sim_time) and self.max_sim_time > 0):
            raise ConfigError(f"TerminationConfig(max_sim_time={self.max_sim_time!r}): must be > 0 s, or None")
        limit = self.max_sim_time
        if limit is not None and not (is_finite(limit) and float(limit) * SECOND < END_OF_TIME):
            raise ConfigError(
                f"TerminationConfig(max_sim_time={self.max_sim_time!r}): must be below 9.2e9 s, 292 years (time is "
                "kept in int64 ns), or None"
            )
        if not is_one_of(self.mode, MODES):
            near = did_you_mean(self.mode, MODES)
            raise ConfigError(f"TerminationConfig(mode={self.mode!r}): must be 'all' or 'any'.{near}")

    def require_time(self, dt_ns: int) -> None:
        """Raise ConfigError if the episode's last boundary would lie beyond the time that there is."""
        limits = []
        if self.max_steps is not None:
            limits.append((int(self.max_steps), f"max_steps={self.max_steps!r}"))
        if self.max_sim_time is not None:
            steps = -(-round(float(self.max_sim_time) * SECOND) // dt_ns)
            limits.append((steps, f"max_sim_time={self.max_sim_time!r} s"))
        steps, shown = min(limits, default=(0, ""))
        if steps * dt_ns >= END_OF_TIME:
            most = (END_OF_TIME - 1) // dt_ns
            raise ConfigError(
                f"{shown} with dt={to_seconds(dt_ns)!r} s: that is beyond 9.2e9 s, 292 years, where time ends (it is "
                f"kept in int64 ns); there is room for {most} steps"
            )

    def reached(self, steps: int, time: float) -> bool:
        """Is a limit reached after `steps` control steps, at `time` s?"""
        return (self.max_steps is not None and steps >= self.max_steps) or (
            self.max_sim_time is not None and time >= self.max_sim_time
        )


def is_count(value: object) -> bool:
    """A whole number >= 1, and no bool."""
    return _is_number(value) and value >= 1 and (isinstance(value, numbers.Integral) or float(value).is_integer())


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
