"""Two agents at identical points: what was asked in a fixture is asked again, of another endpoint.

The recorded requests are sent as they are, in their order, those of one moment together; nothing is played on. So the
answers to one question differ by the agents alone, and nothing is learned of where the second agent would have led.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from pydantic import ValidationError

from heron_env.core.policy import Origin
from heron_env.declared.configuration import Tier
from heron_env.errors import ConfigError, FixtureError
from heron_env.files.reading import first_fault
from heron_env.given import is_finite
from heron_env.injection.answers import Consulted, action_in, response_in
from heron_env.injection.contract import Request, Wire, current
from heron_env.injection.endpoint import Connection, Endpoint
from heron_env.injection.questions import Questions
from heron_env.injection.recording import Fixture
from heron_env.injection.tally import CLIPPED, AnswerTally, ExternalAgentMetrics
from heron_env.net.outcome import CallOutcome, Code, Failure

if TYPE_CHECKING:
    from heron_env.net.client import Question


@dataclass(frozen=True)
class Point:
    """One decision with both answers: actions, or texts of a conversation.

    Attributes:
        baseline: the recorded answer; None: a fallback answered.
        answer: the endpoint's answer; None: it does not count, for the reason in `code`.
        distance: between two actions, 0 to 1: the mean over their numbers of the difference as a share of its range,
            a choice being 0 or 1; None where one is missing, and of texts.
        agrees: are they equal, every number within the share of its range that was asked for? None where one is
            missing.
        latency_ms: wall time, waits and retries included.
    """

    seed: int
    episode: int
    agent: str
    number: int
    baseline: Any
    answer: Any
    code: str
    distance: float | None
    agrees: bool | None
    latency_ms: float


@dataclass(frozen=True)
class Agreement:
    """Agreement of two agents over some decisions.

    Attributes:
        decisions: how many points there are.
        compared: points at which both agents answered.
        agreement: share of the compared points at which they agree; None without any.
        distance, most: mean and greatest distance between their actions.
        not_recorded: points at which a fallback answered for the recorded agent.
        answers: figures of the endpoint.
    """

    decisions: int
    compared: int
    agreement: float | None
    distance: float | None
    most: float | None
    not_recorded: int
    answers: ExternalAgentMetrics


@dataclass(frozen=True)
class Comparison:
    """All compared decisions, in the order of the fixture, and their agreement.

    Attributes:
        baseline: host and model of the recorded agent.
        rival: host and model of the endpoint that was asked.
        privacy_tier: privacy tier of both.
        whole: False: the recording was cut off.
        total, agents: agreement over all, and by agent.
    """

    baseline: Mapping[str, str]
    rival: Mapping[str, str]
    privacy_tier: Tier
    whole: bool
    points: tuple[Point, ...]
    total: Agreement
    agents: Mapping[str, Agreement]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class _Question:
    """A recorded decision that is asked again. Raises FixtureError where that can't be."""

    def __init__(self, record: Consulted, path: Path, within: float) -> None:
        self.record, self._path, self._within = record, path, within
        try:
            self.request = Request.model_validate(current(record.request))
            decision = self.request.decision
            self._wire = None if decision is None else Wire.of_description(decision.action_space)
            self._mask = None if self._wire is None or decision is None else self._wire.flags(decision.action_mask)
            own = record.source == "external" and record.code in ("", CLIPPED)
            self.baseline = self._recorded() if own else None
        except ValidationError as error:
            self._refuse(f"its request is none that agents get ({first_fault(error)})", error)
        except (KeyError, TypeError, ValueError) as error:
            self._refuse(f"its action or its space is none ({error})", error)

    def _refuse(self, why: str, cause: Exception) -> NoReturn:
        record = self.record
        raise FixtureError(
            f"{self._path}: {record.agent!r}, decision {record.number} of episode {record.episode}: {why}; "
            "compare a recording of external agents"
        ) from cause

    @property
    def moment(self) -> tuple[Any, ...]:
        """What is asked at one moment is asked together; letters come one after another."""
        record, decision = self.record, self.request.decision
        return record.seed, record.episode, (record.number, record.agent) if decision is None else decision.time_s

    def _recorded(self) -> Any:
        if self.record.plan is not None:
            raise ValueError("it is a plan, and single actions are compared")
        if self._wire is not None:
            self._wire.flat(self.record.action)
            return self.record.action
        return (self.record.response or {})["response_text"]

    def question(self) -> Question:
        from heron_env.net.client import Question

        return Question(lambda _, left: Questions.body(self.record.request, left), self._check)

    def _check(self, value: dict[str, Any]) -> tuple[Any, str]:
        response, _ = response_in(value, self.request.request_id)
        if self._wire is not None:
            return action_in(response.action, self.record.agent, self._wire, self._mask)
        if response.response_text is None:
            raise Failure(Code.INVALID_RESPONSE, "it has no response_text")
        return response.response_text, ""

    def point(self, outcome: CallOutcome) -> Point:
        """Both answers."""
        record = self.record
        answer, code = (None, str(outcome.code)) if outcome.value is None else outcome.value
        distance = agrees = None
        if self.baseline is not None and answer is not None:
            each = None if self._wire is None else apart(self._wire, self.baseline, answer)
            agrees = self.baseline == answer if each is None else bool((each <= self._within).all())
            distance = None if each is None else float(each.mean())
        where = (record.seed, record.episode, record.agent, record.number)
        return Point(*where, self.baseline, answer, code, distance, agrees, outcome.seconds * 1000.0)


def apart(wire: Wire, one: Any, other: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How far two actions on the wire are apart, `[c + d]`: numbers as shares of their ranges, choices 0 or 1.

    Numbers are compared as environments take them, as float32.
    """
    a, b, c = wire.flat(one), wire.flat(other), len(wire.low)
    numbers = np.abs(a[:c].astype(np.float32).astype(np.float64) - b[:c].astype(np.float32))
    span = wire.high.astype(np.float64) - wire.low
    shares = np.divide(numbers, span, out=np.zeros(c), where=span > 0)
    return np.concatenate([shares, (a[c:] != b[c:]).astype(np.float64)])


def compare(
    fixture: str | Path, endpoint: Endpoint | str, *, within: float = 0.0, line: Connection | None = None
) -> Comparison:
    """Send an endpoint the requests of a fixture, and compare its answers with the recorded ones.

    Requests, privacy tier and the time for an answer are those of the recording. Letters are neither sent on nor
    compared.

    Args:
        fixture: of a `Recording`; one that was cut off is compared as far as it goes.
        endpoint: or its address; its `timeout` and `privacy_tier` are not used.
        within: numbers agree where they differ by no more than this share of their range, 0 to 1.
        line: the way to the endpoint, where others share it.

    Raises FixtureError: it can't be read, holds no requests that agents get, or no answer of the recorded agent's own;
    ConfigError: the address is refused.
    """
    if isinstance(within, bool) or not is_finite(within) or not 0 <= within <= 1:
        raise ConfigError(f"compare(within={within!r:.60}): must be a share of a number's range, from 0 to 1")
    recorded = Fixture(fixture)
    questions = [_Question(record, recorded.path, within) for record in recorded.decisions.values()]
    if all(each.baseline is None for each in questions):
        raise FixtureError(
            f"{recorded.path}: of {len(questions)} decisions the recorded agent answered none, so there is nothing to "
            "compare with; record it again"
        )
    endpoint = Endpoint(endpoint) if isinstance(endpoint, str) else endpoint
    telling = recorded.header.telling
    line = line or Connection(replace(endpoint, timeout=telling.timeout_ms / 1000.0))
    try:
        answered = [(each.point(outcome), outcome) for each, outcome in _answered(questions, line)]
    finally:
        line.close()
    points = tuple(point for point, _ in answered)
    agents = {name: _agreement(answered, name) for name in dict.fromkeys(point.agent for point in points)}
    rival = {"host": endpoint.host, "model": endpoint.model}
    total = _agreement(answered)
    return Comparison(recorded.header.baseline_agent, rival, telling.tier, recorded.whole, points, total, agents)


def _answered(questions: list[_Question], line: Connection) -> Iterator[tuple[_Question, CallOutcome]]:
    for _, group in groupby(questions, key=lambda each: each.moment):
        together = list(group)
        yield from zip(together, line.client.call_all([each.question() for each in together]), strict=True)


def _agreement(answered: list[tuple[Point, CallOutcome]], agent: str | None = None) -> Agreement:
    """Over all points, or one agent's."""
    tally, points = AnswerTally.empty(), []
    for point, outcome in answered:
        if agent in (None, point.agent):
            points.append(point)
            source: Literal["fallback", "external"] = "fallback" if point.answer is None else "external"
            tally.add(Origin(source, point.code, outcome.attempts, outcome.circuit), point.latency_ms)
    agreed = [point.agrees for point in points if point.agrees is not None]
    apart = [point.distance for point in points if point.distance is not None]
    return Agreement(
        decisions=len(points),
        compared=len(agreed),
        agreement=sum(agreed) / len(agreed) if agreed else None,
        distance=sum(apart) / len(apart) if apart else None,
        most=max(apart, default=None),
        not_recorded=sum(point.baseline is None for point in points),
        answers=tally.metrics(),
    )
