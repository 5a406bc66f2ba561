"""Conditions on the truth that wake an agent, as data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

from heron_env.errors import ConfigError, checked_keywords
from heron_env.scheduling.timing import to_ns


@checked_keywords
@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionMonitor:
    """Watches the truth and pushes an observation to an agent when a condition comes true (T14, event clock only).

    It is asked after each physics substep, each disturbance and each custom event. It fires when the condition becomes
    true; while it stays true, again every `cooldown` s, if that is above 0; never twice within the cooldown.
    The push takes one leg of the agent's link; it shows what the agent sees of the rows `about` as they are at that
    moment, and of all others as the proxy knows them. The agent then decides; its ticks go on as if nothing had been.

    Attributes:
        agent: whom to wake; one that decides.
        watch: a number of the truth, as "zone_1.Zone.power" or "global.Price.value"; above, below: it fires outside.
        when: instead of `watch`, a function of the World (a lambda will do, but a run with one can't be pickled).
        about: ids of the owners ("global" for global features) whose rows the monitor itself measures; None: the
            watched one, or with `when` the agent's own.
        cooldown: s.
        one_shot: fire once an episode at most.
        preempt: the decision replaces those of the agent that are still under way; they are cancelled, and counted.
        name: of its random draws, and in traces; None: made of the agent and what is watched.

    Raises ConfigError, ScheduleError for what contradicts itself.
    """

    agent: str
    watch: str | None = None
    above: float | None = None
    below: float | None = None
    when: Callable[[Any], bool] | None = None
    about: tuple[str, ...] | None = None
    cooldown: float = 0.0
    one_shot: bool = False
    preempt: bool = False
    name: str | None = None

    def __post_init__(self) -> None:
        """Refuse what can't be watched."""
        to_ns(self.cooldown, "ConditionMonitor(cooldown)")
        bounds = self.above is not None or self.below is not None
        if (self.watch is None) == (self.when is None) or bounds != (self.watch is not None):
            raise ConfigError(
                f"ConditionMonitor(agent={self.agent!r}): give either watch='owner.Feature.field' with above or below, "
                "or when=a function of the World"
            )
        for name in ("above", "below"):
            bound = getattr(self, name)
            number = isinstance(bound, Real) and not isinstance(bound, bool)
            if bound is not None and (not number or math.isnan(bound)):
                raise ConfigError(
                    f"ConditionMonitor({name}={bound!r}): must be a number, in the unit of what is watched"
                )
        if self.about is not None and (isinstance(self.about, str) or not isinstance(self.about, tuple)):
            raise ConfigError(f"ConditionMonitor(about={self.about!r}): must be a tuple of ids, as ('zone_1',)")

    @property
    def label(self) -> str:
        """Its name, or one made up."""
        return self.name or f"{self.agent} on {self.watch or getattr(self.when, '__qualname__', 'when')}"
