"""Whole episodes of an environment, in either clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from heron_env.core.policy import Policies
from heron_env.envs.disturbing import Course, checked_disturbances
from heron_env.envs.ownership import RUN
from heron_env.envs.results import EpisodeResult
from heron_env.errors import ConfigError, checked_keywords, did_you_mean
from heron_env.given import is_one_of, require_switch, several
from heron_env.scheduling.disturbances import Disturbance
from heron_env.scheduling.drawn import AnySchedule, DrawnSchedule
from heron_env.scheduling.events import ConditionMonitor, CustomEvent

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.event.clock import EventRun

Record = Iterable[str]
RECORDED = ("rewards", "actions", "observations")


class Episodes:
    """The part of HeronEnv that runs policies through whole episodes."""

    @checked_keywords
    def run_synchronous(
        self,
        policies: Policies,
        *,
        seed: int | None = None,
        record: Record = ("rewards", "actions"),
        disturbances: Iterable[Disturbance] = (),
    ) -> EpisodeResult:
        """One whole episode in the synchronous clock; see `run_event_driven` for the arguments.

        Disturbances act at the first step boundary that is not before their time.
        """
        from heron_env.envs.sync_clock import run_synchronous

        env, kept = cast("HeronEnv", self), recorded(record)
        expected = checked_disturbances(env, disturbances)
        return env._ownership.drive(
            "run_synchronous()", run_synchronous, env, policies, seed=seed, record=kept, disturbances=expected
        )

    def _expect(self, disturbances: Iterable[Disturbance]) -> None:
        """Let these happen in the synchronous episode that begins. Raises ConfigError, UnknownAgent."""
        env = cast("HeronEnv", self)
        if found := checked_disturbances(env, disturbances):
            Course(env, found).begin()

    @checked_keywords
    def run_event_driven(
        self,
        policies: Policies,
        *,
        t_end: float | None = None,
        seed: int | None = None,
        schedule: AnySchedule = None,
        wait: float | None = None,
        trace: bool = False,
        record: Record = ("rewards", "actions"),
        disturbances: Iterable[Disturbance] = (),
        monitors: Iterable[ConditionMonitor] = (),
        events: Iterable[CustomEvent] = (),
    ) -> EpisodeResult:
        """One whole episode in the event-driven clock (T6); resets first.

        Args:
            policies: by agent id, group, or "*" for all possible agents; a Policy, a function vector -> action,
                or an AnsweringPolicy, which is told who asks and when.
            t_end: stop here at the latest, s; None: at the episode's own end, which must then exist.
            seed: as in reset().
            schedule: ticks, delays, jitter, loss; of a DrawnSchedule what it draws for this seed and episode. None: the
                environment's own.
            wait: from k*dt to the moment step k's physics is complete, s, in (0, dt]; None: dt.
            trace: keep a record of every event in `result.trace`.
            record: any of "rewards", "actions", "observations".
            disturbances: what happens from outside, each at its own time (T14).
            monitors: conditions on the truth that wake agents (T14).
            events: events of your own, for the hook `happen`.
        """
        owned = cast("HeronEnv", self)._ownership

        def whole() -> EpisodeResult:
            owned.lent = RUN
            run = self.start_event_driven(
                policies,
                t_end=t_end,
                seed=seed,
                schedule=schedule,
                wait=wait,
                trace=trace,
                record=record,
                disturbances=disturbances,
                monitors=monitors,
                events=events,
            )
            run.until(None)
            return run.result()

        return owned.drive("run_event_driven()", whole)

    @checked_keywords
    def start_event_driven(
        self,
        policies: Policies,
        *,
        t_end: float | None = None,
        seed: int | None = None,
        schedule: AnySchedule = None,
        wait: float | None = None,
        trace: bool = False,
        record: Record = ("rewards", "actions"),
        disturbances: Iterable[Disturbance] = (),
        monitors: Iterable[ConditionMonitor] = (),
        events: Iterable[CustomEvent] = (),
    ) -> EventRun:
        """The same run, to be carried on step by step: `run.until(t)`, `run.state()`, `run.result()`; it pickles."""
        from heron_env.envs.event.clock import EventRun
        from heron_env.envs.event.disturbing import Happenings

        env = cast("HeronEnv", self)
        require_switch(f"trace={trace!r:.60}", trace)
        wanted = env.schedule if schedule is None else schedule
        if isinstance(wanted, DrawnSchedule):
            schedule = wanted.at(*env._next_episode(seed))
        timings = env.timings if schedule is None else env.timings_of(schedule)
        return env._ownership.drive(
            "start_event_driven()",
            EventRun,
            env,
            policies,
            timings=timings,
            t_end=t_end,
            seed=seed,
            wait=wait,
            trace=trace,
            record=recorded(record),
            happenings=Happenings.of(env, disturbances, monitors, events),
        )


def require_options(options: object) -> None:
    """Raise ConfigError unless these are options of reset(): a mapping, or None."""
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError(f"reset(options={options!r}): must be a mapping {{name: value}}, or None")


def recorded(record: Record) -> frozenset[str]:
    """What to record. Raises ConfigError for anything but RECORDED."""
    if isinstance(record, str) or not isinstance(record, Iterable):
        raise ConfigError(
            f"record={record!r:.200}: give a tuple of {', '.join(map(repr, RECORDED))}, or () for nothing"
        )
    for what in (wanted := several(record, "record")):
        if not is_one_of(what, RECORDED):
            near = did_you_mean(what, RECORDED)
            raise ConfigError(f"record={wanted!r:.200}: {what!r:.60} can't be recorded; choose among {RECORDED}.{near}")
    return frozenset(wanted)
