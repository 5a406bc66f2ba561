"""A clock for `heron_env.net` that nobody has to wait for: it moves when nothing else can happen.

Network is real, time is not. Time moves on when all that is awaited within a deadline is paused by the fault server, or
nothing is: then to the next deadline, pause or end of a sleep. So a server that says nothing costs no time, and an
answer that is under way is never overtaken by a deadline.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

SETTLED = 25  # passes of the loop after which whoever was woken has come to its next await


@dataclass(eq=False)
class _Event:
    time: float
    fire: Callable[[], object]


class FakeClock:
    """Satisfies `heron_env.net.limits.Clock`; give the same one to `FaultServer`. One client loop at a time."""

    def __init__(self, now: float = 1000.0, wall: float = 1_800_000_000.0) -> None:
        self._now, self._offset = now, wall - now
        self._lock = threading.RLock()
        self._sleeps: list[_Event] = []
        self._deadlines: list[_Event] = []
        self._pauses: list[_Event] = []
        self._abandoned = 0  # pauses of exchanges that the client gave up, until the server sees it
        self._loop: asyncio.AbstractEventLoop | None = None
        self._settling = self._stirred = False

    def monotonic(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._now + self._offset

    def advance(self, seconds: float) -> None:
        """By hand, between calls."""
        with self._lock:
            self._now += seconds
            self._fire_due()

    async def sleep(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        event = _Event(self._now + max(0.0, seconds), lambda: loop.call_soon_threadsafe(_done, woken))
        self._add(self._sleeps, event, loop)
        try:
            await woken
        finally:
            self._drop(self._sleeps, event)

    @asynccontextmanager
    async def timeout(self, seconds: float) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(None) as limit:
            event = _Event(
                self._now + seconds, lambda: loop.call_soon_threadsafe(lambda: limit.reschedule(loop.time()))
            )
            self._add(self._deadlines, event, loop)
            try:
                yield
            finally:
                self._drop(self._deadlines, event)

    async def pause(self, seconds: float, hung_up: asyncio.Future[object]) -> bool:
        """On the server's loop: let time pass. False: the client hung up."""
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        event = _Event(self._now + seconds, lambda: loop.call_soon_threadsafe(_done, woken))
        self._add(self._pauses, event)
        await asyncio.wait({woken, hung_up}, return_when=asyncio.FIRST_COMPLETED)
        if hung_up.done():
            with self._lock:
                self._abandoned = max(0, self._abandoned - 1)
        self._drop(self._pauses, event)
        return not hung_up.done()

    def _add(self, events: list[_Event], event: _Event, loop: asyncio.AbstractEventLoop | None = None) -> None:
        with self._lock:
            self._loop = loop or self._loop
            events.append(event)
        self._stir()

    def _drop(self, events: list[_Event], event: _Event) -> None:
        with self._lock:
            if event in events:
                events.remove(event)
        self._stir()

    def _stir(self) -> None:
        """Something changed: look again when all has settled."""
        with self._lock:
            self._stirred = True
            if not self._settling and self._loop is not None and self._loop.is_running():
                self._settling = True
                self._loop.call_soon_threadsafe(self._settle, SETTLED)

    def _settle(self, passes: int) -> None:
        with self._lock:
            if self._stirred:
                self._stirred, passes = False, SETTLED
            if passes:
                assert self._loop is not None
                self._loop.call_soon(self._settle, passes - 1)
                return
            self._settling = False
            if len(self._pauses) - self._abandoned < len(self._deadlines):
                return
            events = self._sleeps + self._deadlines + self._pauses
            time = min((event.time for event in events), default=math.inf)
            if math.isfinite(time) and (self._sleeps or self._deadlines):
                self._now = max(self._now, time)
                self._fire_due()

    def _fire_due(self) -> None:
        for events in (self._sleeps, self._deadlines, self._pauses):
            for event in [each for each in events if each.time <= self._now]:
                events.remove(event)
                self._abandoned += events is self._deadlines
                event.fire()


def _done(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
