"""A circuit breaker: an endpoint that fails again and again is left alone for a while, then probed one by one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


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
        """The state now."""
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
