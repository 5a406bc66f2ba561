"""How the agents of other programs answered in an episode: counts by origin and code, and how long it took."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from heron_env.injection.metrics import ExternalAgentMetrics
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
        told = sorted((t, agent, origin) for agent, of in result.origins.items() for t, origin in of)
        if not told:
            return None
        asked = {id(policy): policy for policy in policies.values() if isinstance(policy, ExternalPolicy | Recording)}
        latencies = Counter(f"{ms:.3g}" for policy in asked.values() for ms in policy.latencies_ms())
        return cls(
            counts=dict(sorted(Counter(origin_words(o.source, o.code) for _, _, o in told).items())),
            requests=sum(o.attempts for _, _, o in told if o.source != "replay"),
            latencies_ms=dict(sorted(latencies.items(), key=lambda pair: float(pair[0]))),
            circuit=told[-1][2].circuit,
            deterministic=result.deterministic,
            reasoning_dropped=sum(policy.metrics().reasoning_dropped for policy in asked.values()),
        )


def metrics(answers: Sequence[Answers]) -> ExternalAgentMetrics | None:
    """Of several episodes together; None where nobody answered. Judgements of quality, which nobody made, are None."""
    counts = sum((Counter(each.counts) for each in answers), Counter[str]())
    total = counts.total()
    if not total:
        return None
    latencies = sum((Counter(each.latencies_ms) for each in answers), Counter[str]())
    codes = Counter[str]()
    for told, count in counts.items():
        codes[told.partition(" ")[2]] += count
    return ExternalAgentMetrics(
        latency_p50_ms=_percentile(latencies, 0.50),
        latency_p99_ms=_percentile(latencies, 0.99),
        error_rate=sum(count for code, count in codes.items() if code not in ("", "CLIPPED")) / total,
        timeout_rate=codes["TIMEOUT"] / total,
        fallback_rate=sum(count for told, count in counts.items() if stood_in(told)) / total,
        circuit_state=answers[-1].circuit,
        decisions=total,
        requests=sum(each.requests for each in answers),
        counts=dict(sorted(counts.items())),
        reasoning_dropped=sum(each.reasoning_dropped for each in answers),
    )


def origin_words(source: str, code: str) -> str:
    """`fallback TIMEOUT`."""
    return f"{source} {code}".strip()


def stood_in(told: str) -> bool:
    """Was it not the agent's own answer? `told` as in `Answers.counts`; a recording keeps the code of what stood in."""
    source, _, code = told.partition(" ")
    return source == "fallback" or (source == "replay" and code not in ("", "CLIPPED"))


def _percentile(counts: Mapping[str, int], share: float) -> float | None:
    """The smallest value that is not exceeded by that share of them (nearest rank)."""
    left = math.ceil(share * sum(counts.values()))
    for value in sorted(counts, key=float):
        left -= counts[value]
        if left <= 0:
            return float(value)
    return None
