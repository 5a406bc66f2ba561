"""The event-driven clock: events a second with jitter and loss, in phase, and with the trace on; beside a bare heap."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from benchmarks.case import Case, Comparison, Role, Setting, timed
from heron_env import HeronEnv, ScheduleConfig, make

SIZES: Final = (10, 100, 1000)
SCOPES: Final = ("parent", "public")
KINDS: Final = {"jitter": "jitter and loss", "phase": "in phase"}
"""In the comparisons' names, and in SCHEDULES."""
SCHEDULES: Final = {
    "in phase": ScheduleConfig(),
    "jitter and loss": ScheduleConfig(
        msg_delay=0.05, obs_delay=0.02, act_delay=0.15, jitter_type="uniform", jitter_ratio=0.3, loss=0.05
    ),
}
"""Delays of a fiftieth to a seventh of the control step, 1 s; loss of one message in twenty."""
CLOCK, TRACED, HEAP = "event clock", "event clock, trace on", "bare heap"
TICKS: Final = "agent-ticks per event"
DECISIONS: Final = 5_000
"""Agents by control steps of an episode, about."""


def comparisons() -> list[Comparison]:
    """Sizes by scopes by schedules."""
    return [
        Comparison(
            f"events-{kind}-{n}-{scope}", f"Event clock, {n:,} agents, {scope}, {KINDS[kind]}", "events/s",
            _builder(n, scope, kind), quick=(kind, n, scope) == ("jitter", 100, "parent"),
        )
        for kind in KINDS for n in SIZES for scope in SCOPES
    ]  # fmt: skip


def _builder(n: int, scope: str, kind: str) -> Callable[[Setting], Sequence[Case]]:
    return lambda setting: event_cases(n, scope, SCHEDULES[KINDS[kind]])


def event_cases(n: int, scope: str, schedule: ScheduleConfig) -> list[Case]:
    """The clock without and with its trace, and a heap that does nothing else."""
    from benchmarks.floors import bare_heap

    steps = max(5, DECISIONS // n)
    env = make("heron/BatteryGrid-v0", num_batteries=n, scope=scope, max_steps=steps)
    runs = {
        name: ClockRate(env, schedule, n * steps, trace=traced) for name, traced in {CLOCK: False, TRACED: True}.items()
    }
    clocks = [Case(name, run, facts=run.facts) for name, run in runs.items()]
    return [*clocks, Case(HEAP, timed(bare_heap(5 * n), 1000), Role.FLOOR)]


class Echo:
    """Answers with the first number that it sees: a policy that costs next to nothing."""

    def forward(self, vector: Any) -> Any:
        """The first number, `[1]`."""
        return vector[:1]


class ClockRate:
    """Events a second over whole episodes; building them is not timed."""

    def __init__(self, env: HeronEnv, schedule: ScheduleConfig, ticks: int, *, trace: bool) -> None:
        self._env, self._schedule, self._trace = env, schedule, trace
        self._ticks, self._events = ticks, 1

    def __call__(self, seconds: float) -> float:
        """Episodes of about so many seconds."""
        spent, done = 0.0, 0
        while spent < seconds or not done:
            run = self._env.start_event_driven(
                {"*": Echo()}, seed=0, schedule=self._schedule, trace=self._trace, record=()
            )
            start = time.perf_counter()
            run.until(None)
            spent += time.perf_counter() - start
            self._events = run.context.scheduler.taken
            done += self._events
        return done / spent

    def facts(self) -> dict[str, float]:
        """How many of the events are ticks."""
        return {TICKS: self._ticks / self._events}
