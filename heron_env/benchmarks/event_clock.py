"""The event clock on BatteryGrid: events and agent-ticks a second, beside a bare heap's events of the same run.

Times are the process's CPU seconds, the best of `repeats`: on a shared machine they drift less than the wall's.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from heron_env.registry import make
from heron_env.scheduling.timing import ScheduleConfig

SIZES = (10, 100, 1000)
SCOPES = ("parent", "public")
DELAYS: dict[str, Any] = {"msg_delay": 0.05, "obs_delay": 0.02, "act_delay": 0.15}
JITTER: dict[str, Any] = {**DELAYS, "jitter_type": "uniform", "jitter_ratio": 0.3}
SCHEDULES: dict[str, ScheduleConfig] = {
    "in phase": ScheduleConfig(),
    "delays": ScheduleConfig(**DELAYS),
    "jitter": ScheduleConfig(**JITTER),
    "jitter and loss": ScheduleConfig(**JITTER, loss=0.05),
}
"""Delays of a twentieth to a seventh of the control step, 1 s; loss of one message in twenty."""


class Echo:
    """Answers with the first number that it sees: a policy that costs next to nothing, alone or for many."""

    def forward(self, vector: Any) -> Any:
        """The first number, `[1]`."""
        return vector[:1]

    def forward_batch(self, vectors: Any) -> Any:
        """The first numbers, `[n, 1]`."""
        return vectors[:, :1]


@dataclass(frozen=True, slots=True)
class EventRate:
    """One measurement; `heap` is what a bare heap of as many entries does in the same run."""

    batteries: int
    scope: str
    schedule: str
    trace: bool
    events_per_second: float
    agent_ticks_per_second: float
    heap_per_second: float

    @property
    def of_heap(self) -> float:
        """Share of the bare heap's rate: above 1 where groups save heap operations."""
        return self.events_per_second / self.heap_per_second


def measure(
    batteries: int, scope: str, schedule: str, *, trace: bool = False, repeats: int = 3, decisions: int = 3000
) -> EventRate:
    """The rate of runs of about so many decisions each, the first of which only warms up.

    Events are those taken off the heap, dropped second copies included; a group of k agents' events counts k.
    """
    steps = max(4, decisions // batteries)
    env = make("heron/BatteryGrid-v0", num_batteries=batteries, scope=scope, max_steps=steps)
    best, events = float("inf"), 0
    for attempt in range(repeats + 1):
        run = env.start_event_driven({"*": Echo()}, seed=0, schedule=SCHEDULES[schedule], trace=trace)
        seconds = _cpu_seconds(lambda run=run: run.until(None))  # type: ignore[misc]
        if attempt:
            best = min(best, seconds)
        events = run.context.scheduler.taken
    return EventRate(
        batteries, scope, schedule, trace, events / best, steps * batteries / best, heap_rate(5 * batteries)
    )


def heap_rate(waiting: int, events: int = 50_000) -> float:
    """Events a second of a bare heap with so many tuples on it: each is popped and pushed again, later."""
    heap = [(n, 0, n, n, None) for n in range(waiting)]

    def turn() -> None:
        for n in range(events):
            ns, phase, rank, _, event = heappop(heap)
            heappush(heap, (ns + waiting, phase, rank, waiting + n, event))

    return events / min(_cpu_seconds(turn) for _ in range(3))


def sweep(
    sizes: tuple[int, ...] = SIZES,
    scopes: tuple[str, ...] = SCOPES,
    schedules: tuple[str, ...] = tuple(SCHEDULES),
    traces: tuple[bool, ...] = (False, True),
    **options: Any,
) -> Iterator[EventRate]:
    """Every combination, one after another."""
    for schedule in schedules:
        for batteries in sizes:
            for scope in scopes:
                for trace in traces:
                    yield measure(batteries, scope, schedule, trace=trace, **options)


def table(rates: Iterator[EventRate] | list[EventRate]) -> Iterator[str]:
    """A line each, thousands a second."""
    yield f"{'schedule':16} {'N':>5} scope   trace {'k events/s':>10} {'k agent-ticks/s':>15} of a bare heap"
    for r in rates:
        yield (
            f"{r.schedule:16} {r.batteries:5} {r.scope:7} {'on' if r.trace else 'off':5} "
            f"{r.events_per_second / 1e3:10.1f} {r.agent_ticks_per_second / 1e3:15.1f} {r.of_heap:14.0%}"
        )


def _cpu_seconds(work: Callable[[], Any]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    for line in table(sweep()):
        print(line, flush=True)
