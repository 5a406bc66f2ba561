"""How an endpoint did, over all that it was asked."""

from __future__ import annotations

import math
import threading
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from heron_env.net.outcome import Code, Outcome


@dataclass(frozen=True, slots=True)
class EndpointStats:
    """Attributes:
    calls: questions that were sent at least once; the rates are of these.
    requests: with those sent again.
    counts: questions by code (`OK` where nothing went wrong), also those never sent.
    latency_p50, latency_p99: over all calls, failed or not, s; None where there was none.
    circuit: the breaker's state.
    """

    calls: int
    requests: int
    counts: Mapping[str, int]
    latency_p50: float | None
    latency_p99: float | None
    error_rate: float | None
    timeout_rate: float | None
    circuit: str


class Tally:
    """Counts outcomes; threads may share it. Eight bytes a call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._seconds = array("d")
        self._requests = self._failed = self._late = 0

    def add(self, outcome: Outcome) -> None:
        """One more question."""
        with self._lock:
            self._counts[outcome.code.name] += 1
            self._requests += outcome.attempts
            if outcome.attempts:
                self._seconds.append(outcome.seconds)
                self._failed += outcome.code is not Code.OK
                self._late += outcome.code is Code.TIMEOUT

    def stats(self, circuit: str) -> EndpointStats:
        """Until now."""
        with self._lock:
            calls, ordered = len(self._seconds), sorted(self._seconds)
            return EndpointStats(
                calls,
                self._requests,
                dict(sorted(self._counts.items())),
                percentile(ordered, 0.50),
                percentile(ordered, 0.99),
                self._failed / calls if calls else None,
                self._late / calls if calls else None,
                circuit,
            )


def percentile(ordered: list[float], share: float) -> float | None:
    """The smallest of the sorted values that is not exceeded by that share of them (nearest rank)."""
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else None
