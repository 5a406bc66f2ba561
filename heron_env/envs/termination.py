"""When an episode ends (T5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heron_env.errors import ConfigError


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
        if self.max_steps is not None and (
            isinstance(self.max_steps, bool) or self.max_steps != int(self.max_steps) or self.max_steps < 1
        ):
            raise ConfigError(f"TerminationConfig(max_steps={self.max_steps!r}): must be a whole number >= 1, or None")
        if self.max_sim_time is not None and not self.max_sim_time > 0:
            raise ConfigError(f"TerminationConfig(max_sim_time={self.max_sim_time!r}): must be > 0 s, or None")
        if self.mode not in ("all", "any"):
            raise ConfigError(f"TerminationConfig(mode={self.mode!r}): must be 'all' or 'any'")

    def reached(self, steps: int, time: float) -> bool:
        """Is a limit reached after `steps` control steps, at `time` s?"""
        return (self.max_steps is not None and steps >= self.max_steps) or (
            self.max_sim_time is not None and time >= self.max_sim_time
        )
