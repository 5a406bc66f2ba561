"""Pacing: how many requests may be under way at one endpoint, and how many in any one second."""

from __future__ import annotations

import asyncio
from collections import deque

from heron_env.net.clock import Clock

WINDOW = 1.0  # s


class Pacing:
    """At most `in_flight` requests at once, and `per_second` in any window of one second; first come, first served.

    A request counts until a second after its end, so that the endpoint sees no more either, whatever time they travel.
    Belongs to the loop that it is used on.
    """

    def __init__(self, clock: Clock, *, in_flight: int = 10, per_second: int = 100) -> None:
        self._clock, self._in_flight, self._per_second = clock, in_flight, per_second
        self._flying = 0
        self._ended: deque[float] = deque()
        self._queue: deque[asyncio.Future[None]] = deque()
        self._waking: asyncio.Task[None] | None = None

    async def enter(self, until: float) -> bool:
        """Wait for a place, which must be left again; False: there was none before the time `until`."""
        place = asyncio.get_running_loop().create_future()
        self._queue.append(place)
        self._admit()
        if place.done():
            return True
        late = asyncio.ensure_future(self._clock.sleep(until - self._clock.monotonic()))
        try:
            await asyncio.wait({place, late}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._give_up(place)
            raise
        finally:
            late.cancel()
        if not place.done():
            self._give_up(place)
            return False
        return True

    def leave(self) -> None:
        """The request has ended."""
        self._flying -= 1
        self._ended.append(self._clock.monotonic())
        self._admit()

    def _give_up(self, place: asyncio.Future[None]) -> None:
        """A place that nobody waits for any more."""
        if place.done():
            self.leave()
        else:
            self._queue.remove(place)

    def _admit(self) -> None:
        """Let in who may, in their order."""
        now = self._clock.monotonic()
        while self._ended and now >= self._ended[0] + WINDOW:
            self._ended.popleft()
        while self._queue and self._flying < self._in_flight and self._flying + len(self._ended) < self._per_second:
            self._flying += 1
            self._queue.popleft().set_result(None)
        if self._queue and self._ended and self._flying < self._in_flight and self._waking is None:
            self._waking = asyncio.ensure_future(self._wake(self._ended[0] + WINDOW - now))

    async def _wake(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._waking = None
        self._admit()
