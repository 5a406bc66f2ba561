"""How external agents fare: their answers counted as they come, and the figures of all of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from heron_env.core.policy import Origin, Policies
from heron_env.net.outcome import Code

if TYPE_CHECKING:
    from heron_env.envs.episodes import EpisodeResult

CLIPPED: Final = "CLIPPED"
"""The code of an answer whose numbers were brought into their bounds."""


@dataclass(frozen=True)
class ExternalAgentMetrics:
    """Figures of one external agent, or of several together.

    Attributes:
        persona_consistency, conversation_coherence, instruction_following, preference_score, elo_rating: None; nothing
            here judges quality, and comparisons fill in the last two.
        latency_p50_ms, latency_p99_ms: over all decisions for which a request was sent, failed ones included; to three
            digits.
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
    return source == "fallback" or (source == "replay" and code not in ("", CLIPPED))


Count = Annotated[int, Field(ge=0)]
Counts = Annotated[dict[str, Count], AfterValidator(Counter)]


class AnswerTally(BaseModel):
    """Counts answers as they come, of one agent, endpoint or episode; as a line of results.jsonl holds it.

    Attributes:
        counts: answers by origin and code, `fallback TIMEOUT`.
        requests: that were sent, retries included.
        latencies_ms: calls by what they took, to three digits, ms; of recorded answers there are none.
        circuit: the breaker's state at the last answer.
        deterministic: would another run be answered the same?
        reasoning_dropped: fields with private reasoning that were dropped.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    counts: Counts
    requests: Count
    latencies_ms: Counts
    circuit: str
    deterministic: bool
    reasoning_dropped: Count = 0

    @classmethod
    def empty(cls, deterministic: bool = False) -> AnswerTally:
        """Of no answer."""
        return cls(counts={}, requests=0, latencies_ms={}, circuit="", deterministic=deterministic)

    @classmethod
    def of(cls, result: EpisodeResult, policies: Policies) -> AnswerTally | None:
        """Of an episode that these policies have just played; None where no agent of another program answered."""
        origins = sorted(((t, o) for of in result.origins.values() for t, o in of), key=lambda each: each[0])
        if not origins:
            return None
        tally = cls.empty(result.deterministic)
        for _, origin in origins:
            tally.add(origin)
        for own in {id(own): own for each in policies.values() if (own := getattr(each, "tally", None))}.values():
            tally.latencies_ms.update(own.latencies_ms)
            tally.reasoning_dropped += own.reasoning_dropped
        return tally.model_copy(update=tally._in_order())

    def add(self, origin: Origin, latency_ms: float | None = None, dropped: int = 0) -> None:
        """One answer."""
        self.counts[origin.words] += 1
        self.circuit = origin.circuit or self.circuit
        self.reasoning_dropped += dropped
        if origin.source != "replay":
            self.requests += origin.attempts
        if latency_ms is not None and origin.attempts:
            self.latencies_ms[f"{latency_ms:.3g}"] += 1

    def _in_order(self) -> dict[str, Counter[str]]:
        """Copies, since another thread may add meanwhile: by words, and by what calls took."""
        latencies = sorted(dict(self.latencies_ms).items(), key=lambda pair: float(pair[0]))
        return {"counts": Counter(dict(sorted(dict(self.counts).items()))), "latencies_ms": Counter(dict(latencies))}

    def metrics(self) -> ExternalAgentMetrics:
        """The figures so far; rates are None before the first decision, latencies before the first request."""
        counts, latencies = self._in_order().values()
        if not (n := counts.total()):
            return ExternalAgentMetrics()
        origins = [(*words.partition(" ")[::2], count) for words, count in counts.items()]
        ordered = [float(ms) for ms in latencies.elements()]
        return ExternalAgentMetrics(
            latency_p50_ms=percentile(ordered, 0.50),
            latency_p99_ms=percentile(ordered, 0.99),
            error_rate=sum(count for _, code, count in origins if code not in ("", CLIPPED)) / n,
            timeout_rate=sum(count for _, code, count in origins if code == Code.TIMEOUT) / n,
            fallback_rate=sum(count for source, code, count in origins if stood_in(source, code)) / n,
            circuit_state=self.circuit,
            decisions=n,
            requests=self.requests,
            counts=dict(counts),
            reasoning_dropped=self.reasoning_dropped,
        )


def metrics(tallies: Sequence[AnswerTally]) -> ExternalAgentMetrics | None:
    """Of several episodes together; None where nobody answered. Judgements of quality, which nobody made, are None."""
    whole = AnswerTally.empty()
    for tally in tallies:
        whole.counts.update(tally.counts)
        whole.latencies_ms.update(tally.latencies_ms)
        whole.requests += tally.requests
        whole.reasoning_dropped += tally.reasoning_dropped
        whole.circuit = tally.circuit or whole.circuit
    return whole.metrics() if tallies else None


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The smallest of the sorted values that is not exceeded by that share of them (nearest rank)."""
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else None
