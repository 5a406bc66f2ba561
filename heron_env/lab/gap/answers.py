"""How the agents of other programs answered in an episode: counts by origin and code, and how long it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from heron_env.injection.metrics import ExternalAgentMetrics, Tally
from heron_env.injection.policy import ExternalPolicy
from heron_env.injection.recording import Recording

if TYPE_CHECKING:
    from heron_env.core.policy import Policies
    from heron_env.envs.results import EpisodeResult

Count = Annotated[int, Field(ge=0)]


class Answers(BaseModel):
    """Of one episode, as a line of results.jsonl holds it.

    Attributes:
        counts: answers by origin and code, `fallback TIMEOUT`.
        requests: that were sent, retries included.
        latencies_ms: calls by what they took, to three digits, ms; of recorded answers there are none.
        circuit: the breaker's state at the last answer.
        deterministic: would another run be answered the same?
        reasoning_dropped: fields with private reasoning that were dropped.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    counts: dict[str, Count]
    requests: Count
    latencies_ms: dict[str, Count]
    circuit: str
    deterministic: bool
    reasoning_dropped: Count = 0

    @classmethod
    def of(cls, result: EpisodeResult, policies: Policies) -> Answers | None:
        """Of an episode that these policies have just played; None where no agent of another program answered."""
        told = sorted(((t, o) for of in result.origins.values() for t, o in of), key=lambda each: each[0])
        if not told:
            return None
        asked = {id(policy): policy for policy in policies.values() if isinstance(policy, ExternalPolicy | Recording)}
        latencies = Counter(f"{ms:.3g}" for policy in asked.values() for ms in policy.latencies_ms())
        return cls(
            counts=dict(sorted(Counter(origin_words(o.source, o.code) for _, o in told).items())),
            requests=sum(o.attempts for _, o in told if o.source != "replay"),
            latencies_ms=dict(sorted(latencies.items(), key=lambda pair: float(pair[0]))),
            circuit=told[-1][1].circuit,
            deterministic=result.deterministic,
            reasoning_dropped=sum(policy.metrics().reasoning_dropped for policy in asked.values()),
        )


def metrics(answers: Sequence[Answers]) -> ExternalAgentMetrics | None:
    """Of several episodes together; None where nobody answered. Judgements of quality, which nobody made, are None."""
    tally = Tally()
    for each in answers:
        rest = ExternalAgentMetrics(
            requests=each.requests, circuit_state=each.circuit, reasoning_dropped=each.reasoning_dropped
        )
        tally.take(each.counts, each.latencies_ms, rest)
    return tally.figures() if answers else None


def origin_words(source: str, code: str) -> str:
    """`fallback TIMEOUT`."""
    return f"{source} {code}".strip()
