"""How an external agent fares: counts by origin and code, latencies over all calls, rates. What is unknown is None."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from heron_env.core.policy import Origin
from heron_env.net.outcome import percentile


@dataclass(frozen=True)
class ExternalAgentMetrics:
    """Figures of one external agent, or of several together.

    Attributes:
        persona_consistency, conversation_coherence, instruction_following, preference_score, elo_rating: None; nothing
            here judges quality, and comparisons fill in the last two.
        latency_p50_ms, latency_p99_ms: over all decisions for which a request was sent, failed ones included.
        error_rate, timeout_rate, fallback_rate: shares of all decisions.
        circuit_state: CLOSED, OPEN or HALF_OPEN; empty where no call was made.
        decisions: how many; `requests`: retries included.
        counts: decisions by origin and code, `fallback TIMEOUT`.
        reasoning_dropped: fields with private reasoning that were dropped.
    """

    persona_consistency: float | None = None
    conversation_coherence: float | None = None
    instruction_following: float | None = None
    latency_p50_ms: float | None = None
    latency_p99_ms: float | None = None
    error_rate: float | None = None
    timeout_rate: float | None = None
    fallback_rate: float | None = None
    circuit_state: str = ""
    preference_score: float | None = None
    elo_rating: float | None = None
    decisions: int = 0
    requests: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    reasoning_dropped: int = 0


def stood_in(source: str, code: str) -> bool:
    """Was it not the agent's own answer? A recording keeps the code of what stood in."""
    return source == "fallback" or (source == "replay" and code not in ("", "CLIPPED"))


class DecisionTally:
    """Counts as decisions fall."""

    def __init__(self) -> None:
        self._origins: Counter[tuple[str, str]] = Counter()
        self._latencies = array("d")
        self._requests = self._dropped = 0
        self._circuit = ""

    def add(self, origin: Origin, latency_ms: float, dropped: int = 0) -> None:
        """One decision."""
        self._origins[origin.source, origin.code] += 1
        self._requests += origin.attempts
        self._dropped += dropped
        self._circuit = origin.circuit or self._circuit
        if origin.attempts:
            self._latencies.append(latency_ms)

    def take(self, counts: Mapping[str, int], latencies_ms: Mapping[str, int], rest: ExternalAgentMetrics) -> None:
        """Decisions that were counted elsewhere, by origin and code and by latency; of `rest` what is no share."""
        for told, count in counts.items():
            source, _, code = told.partition(" ")
            self._origins[source, code] += count
        for ms, count in latencies_ms.items():
            self._latencies.extend([float(ms)] * count)
        self._requests += rest.requests
        self._dropped += rest.reasoning_dropped
        self._circuit = rest.circuit_state or self._circuit

    def latencies_ms(self) -> list[float]:
        """Of all decisions for which a request was sent, as they fell."""
        return list(self._latencies)

    def figures(self) -> ExternalAgentMetrics:
        """The figures so far; rates are None before the first decision, latencies before the first request."""
        origins = dict(self._origins)  # another thread may add to them meanwhile
        if not (n := sum(origins.values())):
            return ExternalAgentMetrics()
        fallbacks = sum(count for (source, code), count in origins.items() if stood_in(source, code))
        timeouts = sum(count for (_, code), count in origins.items() if code == "TIMEOUT")
        errors = sum(count for (_, code), count in origins.items() if code not in ("", "CLIPPED"))
        ordered = sorted(self._latencies)
        return ExternalAgentMetrics(
            latency_p50_ms=percentile(ordered, 0.50),
            latency_p99_ms=percentile(ordered, 0.99),
            error_rate=errors / n,
            timeout_rate=timeouts / n,
            fallback_rate=fallbacks / n,
            circuit_state=self._circuit,
            decisions=n,
            requests=self._requests,
            counts={f"{source} {code}".strip(): count for (source, code), count in sorted(origins.items())},
            reasoning_dropped=self._dropped,
        )
