"""What an environment is built and reset with, and what is refused: root, switches, observability, how a step is
divided, when an episode ends (T1, T5, T18), seeds and options.
"""

from __future__ import annotations

import numbers
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, Union

import numpy as np

from heron_env.agents.agent import SystemAgent
from heron_env.engine.model import ENDLESS
from heron_env.errors import (
    ConfigError,
    DeclarationError,
    HierarchyError,
    ScheduleError,
    checked_keywords,
    did_you_mean,
)
from heron_env.given import is_finite, is_one_of, require_switch
from heron_env.scheduling.drawn import AnySchedule, Drawn, entries_of
from heron_env.scheduling.timing import CLOCK, END_OF_TIME, SECOND, Timing, to_ns, to_seconds

if TYPE_CHECKING:
    from heron_env.engine.model import Model
    from heron_env.observability.config import ObservabilityConfig
    from heron_env.observability.plan import ObservationPlan

Observability = Union["ObservabilityConfig", Mapping[str, Any], str, "PathLike[str]", None]


def require_root(system: object, where: str) -> None:
    """Raise HierarchyError for what is no root, or serves another environment, whose states it would take away."""
    if not isinstance(system, SystemAgent):
        raise HierarchyError(
            f"{where}({system!r}): the root of the hierarchy is a SystemAgent; "
            "write SystemAgent('system_agent', *agents)"
        )
    state = getattr(system, "state", None)
    if state is not None and state._view is not None:
        raise HierarchyError(f"{system!r} belongs to another environment already; build its agents anew for each")


def require_settings(
    *,
    max_steps: int | None,
    termination: TerminationConfig | None,
    observe_age: bool,
    observe_visible: bool,
    pad: bool,
    render_mode: str | None,
    render_modes: Sequence[str],
    compile: bool | None,
) -> None:
    """Raise ConfigError for an option that is none, or contradicts another."""
    if not (render_mode is None or is_one_of(render_mode, render_modes)):
        near = did_you_mean(render_mode, render_modes)
        raise ConfigError(f"render_mode={render_mode!r}: must be one of {render_modes} or None.{near}")
    if max_steps is not None and termination is not None:
        raise ConfigError(f"max_steps={max_steps!r} and termination={termination!r}: give one of the two")
    if not isinstance(termination, TerminationConfig | None):
        raise ConfigError(f"termination={termination!r}: must be a TerminationConfig; write TerminationConfig(...)")
    require_switch(f"observe_age={observe_age!r:.60}", observe_age)
    require_switch(f"observe_visible={observe_visible!r:.60}", observe_visible)
    require_switch(f"pad={pad!r:.60}", pad)
    if not isinstance(compile, bool | None):
        raise ConfigError(f"compile={compile!r}: must be True, False, or None for the default")


MODES = ("all", "any")


@checked_keywords
@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationConfig:
    """Limits of an episode, and whether it ends with the first or the last of its agents.

    Args:
        max_steps: truncated after this many control steps.
        max_sim_time: truncated at the first step boundary at or after this time, s.
        mode: "all" or "any"; with "any" the others end in the same step: terminated if any was, else truncated.
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
        """Raise ConfigError if the episode would end beyond the largest time."""
        steps, shown = min(self._limits(dt_ns), default=(0, ""))
        if steps * dt_ns >= END_OF_TIME:
            most = (END_OF_TIME - 1) // dt_ns
            raise ConfigError(
                f"{shown} with dt={to_seconds(dt_ns)!r} s: that is beyond 9.2e9 s, 292 years, where time ends (it is "
                f"kept in int64 ns); there is room for {most} steps"
            )

    def last_step(self, dt_ns: int) -> int:
        """Return the control step after which all remaining agents are truncated; ENDLESS without a limit."""
        return min(self._limits(dt_ns), default=(ENDLESS, ""))[0]

    def _limits(self, dt_ns: int) -> Iterator[tuple[int, str]]:
        """Each limit in control steps, and in words."""
        if self.max_steps is not None:
            yield int(self.max_steps), f"max_steps={self.max_steps!r}"
        if self.max_sim_time is not None:
            room, limit = min((END_OF_TIME - 1) // dt_ns + 1, ENDLESS), self.max_sim_time
            first = bisect_left(range(END_OF_TIME), True, 1, room, key=lambda step: to_seconds(step * dt_ns) >= limit)
            yield first, f"max_sim_time={limit!r} s"


def is_count(value: object) -> bool:
    """A whole number >= 1, and no bool."""
    return _is_number(value) and value >= 1 and (isinstance(value, numbers.Integral) or float(value).is_integer())


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def divided_step(dt: float, substeps: int, report_interval: float | None) -> tuple[int, int]:
    """The control step in ns, and how often rows report in it; `report_interval` None: once.

    Raises ConfigError for what is no count, or no division, and ScheduleError for what is no time.
    """
    if not is_count(substeps):
        raise ConfigError(f"physics_substeps={substeps!r}: must be a whole number >= 1")
    dt_ns = to_ns(dt, "dt")
    if dt_ns < substeps:
        raise ConfigError(f"dt={dt!r} s: must be > 0 and at least one ns per substep")
    if report_interval is None:
        return dt_ns, 1
    interval = to_ns(report_interval, "report_interval")
    reports = round(dt_ns / interval) if interval else 0
    if reports < 1 or substeps % reports or abs(reports * interval - dt_ns) >= reports:
        raise ConfigError(
            f"report_interval={report_interval!r} s: must be a multiple of dt / physics_substeps = "
            f"{dt / substeps!r} s that divides dt = {to_seconds(dt_ns)!r} s; None means dt"
        )
    return dt_ns, reports


def read_observability(value: Observability) -> ObservabilityConfig | None:
    """The configuration itself, from its fields, or from a YAML file. Raises ConfigError."""
    if value is None:
        return None
    from heron_env.observability.config import ObservabilityConfig, load_observability

    if isinstance(value, ObservabilityConfig):
        return value
    if isinstance(value, Mapping):
        return ObservabilityConfig.model_validate(value)
    if isinstance(value, str | PathLike):
        return load_observability(Path(value))
    raise ConfigError(
        f"observability={value!r}: give an ObservabilityConfig, a mapping of its fields, or the path of a YAML file"
    )


def with_lines(error: DeclarationError, source: Observability) -> DeclarationError:
    """The same error, with file and line of each problem where the configuration came from a file."""
    if not isinstance(source, str | PathLike):
        return error
    from heron_env.files.yaml_file import YamlFile
    from heron_env.observability.config import section_of

    file = YamlFile.read(Path(source))
    return file.located(error, section_of(file))


def require_synchronous(model: Model, timings: Sequence[Timing]) -> None:
    """Raise ScheduleError where the synchronous clock can't follow the environment's own schedule (T10, T28)."""
    for rank in model.possible:
        timings[rank].require_multiples_of(model.dt_ns)
    if model.plan.by_wrong_clocks:
        raise ScheduleError(
            "the environment's schedule sets clock_offset or clock_drift, and the synchronous clock shows true ages; "
            "use run_event_driven() or BatchEnv(clock='event'), or build it with observe_age=False"
        )


def sets_clock(schedule: AnySchedule) -> bool:
    """May anybody's clock be wrong, in any episode (T28)?"""
    values = [entry.get(name, 0.0) for entry in entries_of(schedule).values() for name in CLOCK]
    return any(any(value.extremes) if isinstance(value, Drawn) else value for value in values)


def require_clocks(plan: ObservationPlan, schedule: AnySchedule) -> None:
    """Raise ScheduleError where ages would be observed by wrong clocks (T28) that the constructor was not given."""
    if plan.observe_age and not plan.by_wrong_clocks and sets_clock(schedule):
        raise ScheduleError(
            "schedule: clock_offset or clock_drift is set, so that observed ages (observe_age=True) may be below 0, "
            "where the observation spaces of this environment end; build it with a schedule that sets a clock, "
            "schedule=..., or with observe_age=False"
        )


def read_seed(seed: object) -> int:
    """The seed of reset(). Raises ConfigError."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ConfigError(f"reset(seed={seed!r}): a seed is a whole number >= 0")
    return int(seed)
