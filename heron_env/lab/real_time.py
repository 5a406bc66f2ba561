"""The event clock driven by the wall clock: each instant waits for its time, and what comes late is counted.

Policies that are functions of what they see are asked in the loop: the course is that of `run_event_driven`, bit for
bit, and the wall clock decides when things are computed, never what. Policies that know who asks (people, endpoints)
think in threads: the loop goes on, their answers count when they come, and observations that come meanwhile are skipped
and counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import TIMEOUT_MAX
from typing import Any

import numpy as np

from heron_env.core.policy import Policies
from heron_env.envs.base import HeronEnv
from heron_env.envs.episodes import EpisodeResult, checked_record
from heron_env.envs.event.clock import EventRun
from heron_env.envs.event.thinking import ThinkingThreads
from heron_env.errors import ConfigError
from heron_env.given import is_number, require_callable, require_switch
from heron_env.scheduling.arrivals import Arrivals
from heron_env.scheduling.timing import to_ns

TOLERANCE = 0.01
"""s of wall time that an action may be late."""


@dataclass(frozen=True)
class Punctuality:
    """Punctuality of a real-time run; times in s of wall time.

    Attributes:
        speed: simulated seconds per second of wall time.
        tolerance: how late an action may be.
        began: delay at the begin of each instant: the loop's jitter.
        done: delay at the end of each instant.
        actions: by agent, number of actions that took effect.
        missed: by agent, number of actions later than the tolerance.
        answers: by agent asked in a thread, duration of each answer.
        skipped: by agent asked in a thread, number of observations skipped while it was thinking.
        seconds: duration of the run.
        interrupted: did Ctrl-C end it?
        arrivals: when each answer of people and endpoints took effect, and what it was; with it
            `run_event_driven(policies, schedule=..., arrivals=...)` repeats the run bit for bit. None for a run that is
            not the first episode of its seed, or that was interrupted within an event.
    """

    speed: float
    tolerance: float
    began: list[float] = field(default_factory=list, repr=False)
    done: list[float] = field(default_factory=list, repr=False)
    actions: dict[str, int] = field(default_factory=dict)
    missed: dict[str, int] = field(default_factory=dict)
    answers: dict[str, list[float]] = field(default_factory=dict, repr=False)
    skipped: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    interrupted: bool = False
    arrivals: Arrivals | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain values: counts, and median, 99th percentile and maximum of what was late, s."""
        return {
            "speed": self.speed, "tolerance": self.tolerance, "seconds": round(self.seconds, 6),
            "instants": len(self.began), "began_late": _lateness(self.began), "done_late": _lateness(self.done),
            "actions": dict(self.actions), "missed": dict(self.missed), "skipped": dict(self.skipped),
            "answers": {agent: {"count": len(took), **_lateness(took)} for agent, took in self.answers.items()},
            "interrupted": self.interrupted,
        }  # fmt: skip

    def __str__(self) -> str:
        late, missed, skipped = self.to_dict()["done_late"], sum(self.missed.values()), sum(self.skipped.values())
        return (
            f"{len(self.began)} instants in {self.seconds:.1f} s of wall time at speed {self.speed:g}; computed late "
            f"by {late['median'] * 1e3:.2f} ms (median), {late['p99'] * 1e3:.2f} ms (99th percentile), "
            f"{late['max'] * 1e3:.2f} ms (most); {missed} of {sum(self.actions.values())} actions more than "
            f"{self.tolerance * 1e3:g} ms late"
            + (f"; {skipped} observations came while their agent was thinking" if skipped else "")
        )


def run_real_time(
    env: HeronEnv,
    policies: Policies,
    *,
    speed: float = 1.0,
    tolerance: float = TOLERANCE,
    wait_for_answers: bool = False,
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
    **options: Any,
) -> tuple[EpisodeResult, Punctuality]:
    """Run one episode on the event-driven clock in real time: no event comes before its wall time.

    Args:
        env: the environment.
        policies: as of `run_event_driven`.
        speed: seconds of virtual time in one of wall time; 1: as fast as the world.
        tolerance: s of wall time; an action that takes effect later counts as missed for its agent.
        wait_for_answers: hold the loop up for people and endpoints, too. Their answers count as in `run_event_driven`,
            and events that were due meanwhile are late.
        clock, sleep: of the wall.
        options: as of `run_event_driven`: `seed`, `schedule`, `t_end`, `trace`, `record`, `disturbances`, ....

    Ctrl-C ends it, and what was recorded so far is returned. Rules are compiled before the clock starts.

    Returns:
        The result, and how the run kept to the wall clock.

    Raises:
        ConfigError: a speed or a tolerance that is none; and what `run_event_driven` raises.

    Example: `result, punctuality = run_real_time(env, policies, speed=10.0, t_end=60.0)`.
    """
    if not isinstance(env, HeronEnv):
        raise ConfigError(f"run_real_time({env!r:.60}): give an environment, as make('heron/BatteryGrid-v0')")
    require_pace("run_real_time", speed, tolerance)
    require_switch(f"run_real_time(wait_for_answers={wait_for_answers!r:.60})", wait_for_answers)
    require_callable(f"run_real_time(sleep={sleep!r:.60})", sleep)
    require_callable(f"run_real_time(clock={clock!r:.60})", clock)
    now = _checked(clock)
    record = checked_record(options.pop("record", ("rewards", "actions")))
    run = env.start_event_driven(policies, record=record | {"actions"}, **options)
    punctuality = Punctuality(float(speed), float(tolerance))
    threads = ThinkingThreads()
    if not wait_for_answers:
        run.think_in_threads(threads)
    begun = now()

    def take(early: float) -> bool:
        if threads.open:
            if (thought := threads.next(early)) is not None:
                run.come(thought, (now() - begun) * speed)
                for _, question in thought.questions:
                    punctuality.answers.setdefault(question.agent, []).append(thought.seconds)
            return thought is not None
        if early > 0.0:
            sleep(early)
        return False

    through = keep_time(run, punctuality, begun, now, take)
    arrivals = None if run.result().episode or run.torn else run.arrivals(until=through)
    skipped, interrupted = dict(run.result().busy), through is not None
    more: dict[str, Any] = {"skipped": skipped, "interrupted": interrupted, "arrivals": arrivals}
    return run.result(), replace(punctuality, seconds=now() - begun, **more)


def require_pace(call: str, speed: float, tolerance: float) -> None:
    """Raise ConfigError for a speed or a tolerance that is none."""
    if not (is_number(speed) and speed > 0.0):
        raise ConfigError(f"{call}(speed={speed!r:.60}): must be a number > 0; 1 is as fast as the world")
    if not (is_number(tolerance) and tolerance >= 0.0):
        raise ConfigError(f"{call}(tolerance={tolerance!r:.60}): must be seconds >= 0")


def keep_time(
    run: EventRun, punctuality: Punctuality, begun: float, now: Callable[[], float], take: Callable[[float], bool]
) -> int | None:
    """Carry a run on to its end, no event before its time of the wall clock, which showed `begun` at time 0.

    `take(seconds)` waits for so long, and no longer than until something comes from outside; did it?
    Returns None, or where Ctrl-C ended it the time up to which everything has happened, ns.
    """
    actions, speed, through = run.context.result.actions, punctuality.speed, 0.0
    try:
        while (due := run.due) is not None:
            at = begun + due / speed
            if take(min(at - now(), TIMEOUT_MAX)):
                continue
            punctuality.began.append(max(now() - at, 0.0))
            run.until(due if run.t_end is None or to_ns(due, "t") < run.t_end else None)
            through = due
            punctuality.done.append(max(now() - at, 0.0))
            for agent, applied in actions.items():
                fresh = len(applied) - punctuality.actions.get(agent, 0)
                punctuality.actions[agent] = len(applied)
                late = fresh * (punctuality.done[-1] > punctuality.tolerance)
                punctuality.missed[agent] = punctuality.missed.get(agent, 0) + late
    except KeyboardInterrupt:
        return to_ns(through, "t")
    return None


def _checked(clock: Callable[[], float]) -> Callable[[], float]:
    """The clock, whose every reading is a number. Raises ConfigError."""

    def now() -> float:
        if not is_number(read := clock()):
            raise ConfigError(f"run_real_time(clock=...): returned {read!r:.60}; it must return seconds")
        return read

    return now


def _lateness(late: list[float]) -> dict[str, float]:
    if not late:
        return {"median": 0.0, "p99": 0.0, "max": 0.0}
    quantiles = np.percentile(late, [50.0, 99.0, 100.0])
    return dict(zip(("median", "p99", "max"), np.round(quantiles, 6).tolist(), strict=True))
