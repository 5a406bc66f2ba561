"""Events and messages of a user's own, as data; what they do is said by the environment's hook `happen`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from heron_env.errors import ConfigError
from heron_env.scheduling.scheduler import Phase
from heron_env.scheduling.timing import to_ns


@dataclass(frozen=True, slots=True)
class CustomEvent:
    """Happens at `t` s, in `phase` of that instant (T2: any int; disturbances have 3, ticks 4), for `agent` or nobody.

    Raises ConfigError, ScheduleError naming the field.
    """

    t: float
    type: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    agent: str | None = None
    phase: int = int(Phase.ENV_UPDATE)

    def __post_init__(self) -> None:
        """Refuse what can't happen."""
        to_ns(self.t, "CustomEvent(t)")
        _require(self, self.type, self.payload)
        if isinstance(self.phase, bool) or not isinstance(self.phase, int):
            raise ConfigError(f"CustomEvent(phase={self.phase!r}): must be an int; 3 lies before the agents' ticks")


@dataclass(frozen=True, slots=True)
class CustomMessage:
    """Travels over the link of `agent`, as its schedule says (delay, jitter, loss, duplicates); then `happen` gets it.

    Raises ConfigError naming the field.
    """

    type: str
    agent: str
    payload: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what can't travel."""
        _require(self, self.type, self.payload)


@dataclass(frozen=True, slots=True)
class Push:
    """Wakes `agent` with an observation, one leg, as a ConditionMonitor does; `about`: rows that are fresh in it."""

    agent: str
    about: tuple[str, ...] = ()
    preempt: bool = False


Happening = CustomEvent | CustomMessage
Following = CustomEvent | CustomMessage | Push
"""What `happen` may return."""


def _require(what: Happening, kind: object, payload: object) -> None:
    if not isinstance(kind, str) or not kind:
        raise ConfigError(f"{type(what).__name__}(type={kind!r}): must be a name")
    if not isinstance(payload, Mapping) or not all(isinstance(name, str) for name in payload):
        raise ConfigError(f"{type(what).__name__}(payload={payload!r}): must map names to values")
