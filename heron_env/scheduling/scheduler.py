"""The heap of future events: it knows times and ranks, but no agent and no message."""

from collections.abc import Iterator
from enum import IntEnum
from heapq import heappop, heappush
from typing import Any

from heron_env.errors import ScheduleError

Entry = tuple[int, int, int, int, Any]
"""(ns, phase, rank, sequence, event): sequence is unique, so events are never compared."""


class Phase(IntEnum):
    """Order within one instant: a message's phase belongs to its purpose, not to its class."""

    PHYSICS = 0
    """The simulation and the legs 1 to 4 of its cycle."""
    REWARD = 1
    """Legs 5 and 6, and the tick result."""
    CLOSE = 2
    """Has the episode ended?"""
    ENV_UPDATE = 3
    """Disturbances and conditions."""
    AGENT_TICK = 4
    REQUEST = 5
    """Observation requests at the proxy."""
    REPLY = 6
    """Observations at the agent."""
    COMMAND = 7
    """A parent's action at its child."""
    ACTION_EFFECT = 8
    REPORT = 9
    """State reports at the proxy, and their acknowledgements."""


class EventScheduler:
    """Events ordered by (ns, phase, rank, order of scheduling); a custom event may take any int as its phase.

    `now` is the time of the last event popped, ns. Instances pickle if their events do.
    """

    __slots__ = ("_heap", "_sequence", "now")

    def __init__(self) -> None:
        self.now = 0
        self._heap: list[Entry] = []
        self._sequence = 0

    def schedule(self, ns: int, phase: int, rank: int, event: Any) -> None:
        """Add an event at `ns`; raises ScheduleError if that is before `now`."""
        if ns < self.now:
            what = type(event).__name__
            raise ScheduleError(f"can't schedule {what} at {ns} ns: the clock is at {self.now} ns already")
        self._sequence = sequence = self._sequence + 1
        heappush(self._heap, (ns, phase, rank, sequence, event))

    def pop(self) -> tuple[int, int, int, Any]:
        """Remove the next event, (ns, phase, rank, event), and advance `now`; IndexError when there is none."""
        ns, phase, rank, _, event = heappop(self._heap)
        self.now = ns
        return ns, phase, rank, event

    def peek(self) -> int | None:
        """Time of the next event, ns, or None."""
        return self._heap[0][0] if self._heap else None

    def peek_phase(self) -> int:
        """Phase of the next event; IndexError when there is none."""
        return self._heap[0][1]

    def __len__(self) -> int:
        """Number of events to come."""
        return len(self._heap)

    def __iter__(self) -> Iterator[Any]:
        """The events to come, in their order, without removing them."""
        return (entry[4] for entry in sorted(self._heap))

    def reset(self) -> None:
        """Forget all events and go back to time 0."""
        self.now = 0
        self._heap.clear()
        self._sequence = 0
