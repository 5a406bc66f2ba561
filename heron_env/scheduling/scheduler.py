"""The heap of future events: it knows times and ranks, but no agent and no message."""

from __future__ import annotations

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

    Attributes:
        now: time of the last event popped, ns.
        heap: the entries, for a loop that takes them off itself; it then sets `now`.
        causes: if a list (a trace needs one), it gets for each event scheduled the `here` of that moment.
        here: what is being handled; -1 before anything is.

    Instances pickle if their events do.
    """

    __slots__ = ("_sequence", "causes", "heap", "here", "now")

    def __init__(self) -> None:
        self.now = 0
        self.heap: list[Entry] = []
        self._sequence = 0
        self.causes: list[int] | None = None
        self.here = -1

    def schedule(self, ns: int, phase: int, rank: int, event: Any) -> None:
        """Add an event at `ns`; raises ScheduleError if that is before `now`."""
        if ns < self.now:
            what = type(event).__name__
            raise ScheduleError(f"can't schedule {what} at {ns} ns: the clock is at {self.now} ns already")
        self._sequence = sequence = self._sequence + 1
        if self.causes is not None:
            self.causes.append(self.here)
        heappush(self.heap, (ns, phase, rank, sequence, event))

    @property
    def taken(self) -> int:
        """Number of events popped so far."""
        return self._sequence - len(self.heap)

    def pop(self) -> tuple[int, int, int, Any]:
        """Remove the next event, (ns, phase, rank, event), and advance `now`; IndexError when there is none."""
        ns, phase, rank, _, event = heappop(self.heap)
        self.now = ns
        return ns, phase, rank, event

    def peek(self) -> int | None:
        """Time of the next event, ns, or None."""
        return self.heap[0][0] if self.heap else None

    def __len__(self) -> int:
        return len(self.heap)

    def __iter__(self) -> Iterator[Any]:
        """The events to come, in their order, without removing them."""
        return (entry[4] for entry in sorted(self.heap))

    def standing(self) -> tuple[int, int, list[Entry]]:
        """Return a snapshot for `go_back`; only of a scheduler without `causes`."""
        return self.now, self._sequence, self.heap.copy()

    def go_back(self, standing: tuple[int, int, list[Entry]]) -> None:
        """Restore what `standing` returned."""
        self.now, self._sequence, self.heap[:] = standing

    def reset(self) -> None:
        """Forget all events and go back to time 0."""
        self.now = 0
        self.heap.clear()
        self._sequence = 0
        self.here = -1
        if self.causes is not None:
            self.causes.clear()
