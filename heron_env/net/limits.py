"""What spares one endpoint: a circuit breaker that leaves it alone for a while, and a pace that holds requests back."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class TimeSource(Protocol):
    """Time as calls see it; tests pass one that moves by itself."""

    def monotonic(self) -> float:
        """Never goes back, s."""
        ...

    def wall(self) -> float:
        """Seconds since 1970, for dates in headers."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass: nothing else is awaited."""
        ...

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Cancels what is awaited inside after that long and raises TimeoutError."""
        ...


class SystemClock:
    """The computer's."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(seconds)


class Circuit(StrEnum):
    """Its states: all are let in, none is, one at a time is."""

    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """Leave to send a request; to be booked or given back, once. A result from an older generation doesn't count."""

    generation: int
    circuit: Circuit


class Breaker:
    """`failures` in a row open it; after `probe_after` s one probe at a time; `successes` close it, one failure opens
    it again for the whole time. `now` is a monotonic clock, s. Threads may share it.
    """

    def __init__(
        self, now: Callable[[], float], *, failures: int = 5, probe_after: float = 30.0, successes: int = 2
    ) -> None:
        self._now, self._most, self._probe_after, self._enough = now, failures, probe_after, successes
        self._lock = threading.Lock()
        self._generation = 0
        self._opened: float | None = None  # when; None: closed
        self._count = 0  # failures in a row when closed, good probes when not
        self._probe: Ticket | None = None

    @property
    def circuit(self) -> Circuit:
        """Return the present state of the circuit."""
        if self._opened is None:
            return Circuit.CLOSED
        return Circuit.OPEN if self._now() < self._opened + self._probe_after else Circuit.HALF_OPEN

    def admit(self) -> Ticket | None:
        """Leave to send a request, or None."""
        with self._lock:
            circuit = self.circuit
            if circuit is Circuit.OPEN or self._probe is not None:
                return None
            ticket = Ticket(self._generation, circuit)
            if circuit is Circuit.HALF_OPEN:
                self._probe = ticket
            return ticket

    def book(self, ticket: Ticket, *, succeeded: bool) -> None:
        """How it went."""
        with self._lock:
            if ticket.generation != self._generation:
                return
            self._probe = None
            if succeeded != (self._opened is None):  # it counts: a failure when closed, a good probe when not
                self._count += 1
            else:
                self._count = 0
            if succeeded and self._count >= self._enough:
                self._turn(None)
            elif not succeeded and (self._opened is not None or self._count >= self._most):
                self._turn(self._now())

    def give_back(self, ticket: Ticket) -> None:
        """Nothing was learned: the request was never sent, or nobody waited for it."""
        with self._lock:
            if ticket is self._probe:
                self._probe = None

    def _turn(self, opened: float | None) -> None:
        self._generation += 1
        self._opened, self._count, self._probe = opened, 0, None


WINDOW = 1.0  # s


class Pacing:
    """At most `in_flight` requests at once, and `per_second` in any window of one second; first come, first served.

    A request counts until a second after its end, so that the endpoint sees no more either, whatever time they travel.
    Belongs to the loop that it is used on.
    """

    def __init__(self, clock: TimeSource, *, in_flight: int = 10, per_second: int = 100) -> None:
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
