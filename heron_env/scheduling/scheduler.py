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


class EventGroup:
    """Events of one kind that fall at one (ns, phase), one an agent, so that they can be handled as arrays.

    Only for events whose order among different agents nobody can tell.
    """

    __slots__ = ()
    ranks: tuple[int, ...]

    def each(self) -> Iterator[Any]:
        """The events one by one, in the order of ranks."""
        raise NotImplementedError

    def one(self, place: int) -> Any:
        """One of them."""
        raise NotImplementedError


class EventScheduler:
    """Events ordered by (ns, phase, rank, order of scheduling); a custom event may take any int as its phase.

    Attributes:
        now: time of the last event popped, ns.
        heap: the entries, for a loop that takes them off itself; it then sets `now`.
        causes: if a list (a trace needs one), it gets for each event scheduled the `here` of that moment.
        here: what is being handled; -1 before anything is. Of a group it is the first, and `width` their number.

    Instances pickle if their events do.
    """

    __slots__ = ("_sequence", "causes", "heap", "here", "now", "width")

    def __init__(self) -> None:
        self.now = 0
        self.heap: list[Entry] = []
        self._sequence = 0
        self.causes: list[int] | None = None
        self.here, self.width = -1, 1

    def schedule(self, ns: int, phase: int, rank: int, event: Any) -> None:
        """Add an event at `ns`; raises ScheduleError if that is before `now`."""
        if ns < self.now:
            what = type(event).__name__
            raise ScheduleError(f"can't schedule {what} at {ns} ns: the clock is at {self.now} ns already")
        self._sequence = sequence = self._sequence + 1
        if self.causes is not None:
            self.causes.append(self.here)
        heappush(self.heap, (ns, phase, rank, sequence, event))

    def schedule_group(self, ns: int, phase: int, group: EventGroup) -> None:
        """Add the events of a group (ranks ascending) as one entry: they count, and are numbered, as if one by one.

        While a group as large is handled, each is caused by one of that. Raises ScheduleError if `ns` is before `now`.
        """
        sequence, size = self._sequence + 1, len(group.ranks)
        self.schedule(ns, phase, group.ranks[0], group)
        self._sequence = sequence + size - 1
        if self.causes is not None:
            caused = self.width == size
            self.causes += range(self.here + 1, self.here + size) if caused else [self.here] * (size - 1)

    def undo(self, entry: Entry) -> bool:
        """Put a group just popped back one by one if another event falls among its own; says whether it did."""
        heap, (ns, phase, _, sequence, group) = self.heap, entry
        if not heap or heap[0][:2] != (ns, phase) or heap[0][2] > group.ranks[-1]:
            return False
        for place, (rank, event) in enumerate(zip(group.ranks, group.each(), strict=True)):
            heappush(heap, (ns, phase, rank, sequence + place, event))
        return True

    @property
    def taken(self) -> int:
        """How many events have been popped so far; a group of k agents' events counts k."""
        return self._sequence - len(self)

    def pop(self) -> tuple[int, int, int, Any]:
        """Remove the next event, (ns, phase, rank, event), and advance `now`; IndexError when there is none."""
        ns, phase, rank, _, event = heappop(self.heap)
        self.now = ns
        return ns, phase, rank, event

    def peek(self) -> int | None:
        """Time of the next event, ns, or None."""
        return self.heap[0][0] if self.heap else None

    def peek_phase(self) -> int:
        """Phase of the next event; IndexError when there is none."""
        return self.heap[0][1]

    def __len__(self) -> int:
        """Number of events to come, those of groups one by one."""
        return len(self.heap) + sum(len(e[4].ranks) - 1 for e in self.heap if isinstance(e[4], EventGroup))

    def __iter__(self) -> Iterator[Any]:
        """The events to come, in their order and those of groups one by one, without removing them."""
        singles: list[Entry] = []
        for entry in self.heap:
            ns, phase, _, sequence, event = entry
            if isinstance(event, EventGroup):
                each = zip(event.ranks, event.each(), strict=True)
                singles += [(ns, phase, rank, sequence + i, one) for i, (rank, one) in enumerate(each)]
            else:
                singles.append(entry)
        return (entry[4] for entry in sorted(singles))

    def reset(self) -> None:
        """Forget all events and go back to time 0."""
        self.now = 0
        self.heap.clear()
        self._sequence = 0
        self.here, self.width = -1, 1
        if self.causes is not None:
            self.causes.clear()
