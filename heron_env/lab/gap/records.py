"""What a sweep runs and keeps: sweep.json, its episodes, what is kept of one, and how other programs answered in it."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from heron_env import registry
from heron_env.core.policy import Policies
from heron_env.errors import ConfigError, RunFolderError
from heron_env.files.reading import first_fault, parsed, read
from heron_env.injection.answers import DecisionTally, ExternalAgentMetrics
from heron_env.injection.endpoint import Connection
from heron_env.injection.policy import ExternalPolicy
from heron_env.injection.recording import Recording
from heron_env.lab.benchmark import Case
from heron_env.lab.episodes import TEAM, Outcome, outcome
from heron_env.lab.gap.conditions import Condition
from heron_env.lab.policies import About, External, Lines, PolicySpec

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.episodes import EpisodeResult

SETTINGS: Final = "sweep.json"
SCHEMA: Final = 1
"""Version of sweep.json and of the lines of results.jsonl."""
Number = Annotated[float, Field(allow_inf_nan=False)]
FromData = dict[Literal["empirical", "recorded", "markov", "gilbert_elliott"], Any]
"""As `Source.to_dict` tells it."""
Amounts = Number | FromData | dict[str, Number | FromData]
"""Of a cause: for all, or by agent, group or level."""


class CaseSettings(BaseModel):
    """A held-out case; `optimum`: the best possible return, where it is known."""

    model_config = ConfigDict(extra="forbid", strict=True)
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)]
    options: dict[str, Any]
    optimum: Number | None


class ConditionSettings(BaseModel):
    """A condition and its name; what is not named is ideal."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    obs_delay: Amounts = 0.0
    msg_delay: Amounts = 0.0
    act_delay: Amounts = 0.0
    jitter: Amounts = 0.0
    loss: Amounts = 0.0
    tick_ratio: Amounts = 1.0
    noise: Number = 0.0
    disturbances: list[str] = []
    synchronous: bool = False

    def amounts(self) -> dict[str, Any]:
        """What `Condition` takes."""
        return self.model_dump(exclude={"name"}, exclude_unset=True)


class SweepSettings(BaseModel):
    """The whole file; `heron_env` is the version that wrote it, `policies` says who each one is, by name."""

    model_config = ConfigDict(extra="forbid", strict=True)
    schema_: Annotated[int, Field(alias="schema")]
    heron_env: str
    env: str
    preset: str | None
    dt: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
    unit: str
    return_of: str = TEAM
    options: dict[str, Any]
    policies: dict[str, str] = Field(min_length=1)
    sync_only: list[str]
    cases: list[CaseSettings] = Field(min_length=1)
    conditions: list[ConditionSettings] = Field(min_length=1)
    pools: dict[str, list[str]] = {}


def read_settings(path: Path) -> SweepSettings:
    """Raises RunFolderError where it is none, damaged, or of another schema version."""
    try:
        values = parsed(read(path))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise RunFolderError(f"{path}: no folder of a sweep ({why}); make one with `heron sweep`") from error
    if not isinstance(values, dict) or "schema" not in values:
        raise RunFolderError(f"{path}: no folder of a sweep (it has no 'schema'); make one with `heron sweep`")
    found = values["schema"]
    if found != SCHEMA or isinstance(found, bool):
        raise RunFolderError(f"{path} has schema {found!r:.60}, this heron_env reads {SCHEMA}: run the sweep again")
    try:
        return SweepSettings.model_validate(values)
    except ValidationError as error:
        raise RunFolderError(
            f"{path} is damaged: {first_fault(error)}; run the sweep again in another folder"
        ) from error


Count = Annotated[int, Field(ge=0)]


class AnswerCounts(BaseModel):
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
    def of(cls, result: EpisodeResult, policies: Policies) -> AnswerCounts | None:
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


def metrics(answers: Sequence[AnswerCounts]) -> ExternalAgentMetrics | None:
    """Of several episodes together; None where nobody answered. Judgements of quality, which nobody made, are None."""
    tally = DecisionTally()
    for each in answers:
        rest = ExternalAgentMetrics(
            requests=each.requests, circuit_state=each.circuit, reasoning_dropped=each.reasoning_dropped
        )
        tally.take(each.counts, each.latencies_ms, rest)
    return tally.figures() if answers else None


def origin_words(source: str, code: str) -> str:
    """`fallback TIMEOUT`."""
    return f"{source} {code}".strip()


RECORD = ("rewards", "actions")


class Key(NamedTuple):
    """Which episode of a sweep: name of the policy, number of the case, name of the condition."""

    policy: str
    case: int
    condition: str


@dataclass(frozen=True)
class Item:
    """One episode to run; it travels to another process."""

    env: registry.EnvironmentSpec
    options: Mapping[str, Any]
    name: str
    policy: PolicySpec
    number: int
    """Of the case."""
    case: Case
    condition: Condition
    live: bool = False
    """Is an endpoint asked? Then it runs in the sweep's own process."""

    @property
    def key(self) -> Key:
        """Which one it is."""
        return Key(self.name, self.number, self.condition.name)

    def __str__(self) -> str:
        """For the note on an error."""
        return f"policy {self.name!r} in {self.env.id}, case {self.number} ({self.case}), condition {self.condition}"


@dataclass(frozen=True)
class Record:
    """One finished episode; `seconds` is the time it took, which is not part of the result.

    `answers`: of agents that other programs play, if there are any.
    """

    key: Key
    outcome: Outcome
    seconds: float
    answers: AnswerCounts | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        told = {**self.key._asdict(), **asdict(self.outcome), "seconds": self.seconds}
        if not self.outcome.by_group:
            del told["by_group"]
        return told if self.answers is None else {**told, "answers": self.answers.model_dump()}

    @classmethod
    def from_dict(cls, values: object) -> Record:
        """Read back; null is nan. Raises ValueError where something is missing, or is no such value."""
        try:
            line = _Line.model_validate(values)
        except ValidationError as error:
            raise ValueError(first_fault(error)) from error
        kept = {field.name: getattr(line, field.name) for field in fields(Outcome)}
        for name in ("staleness_p95", "latency_p95"):
            kept[name] = _known(kept[name])
        for name in ("kpis", "by_group"):
            kept[name] = {key: _known(x) for key, x in kept[name].items()}
        return cls(Key(line.policy, line.case, line.condition), Outcome(**kept), line.seconds, line.answers)


class _Line(BaseModel):
    """A line of results.jsonl; null is nan."""

    model_config = ConfigDict(extra="forbid", strict=True)
    policy: str
    case: int
    condition: str
    value: Number
    course: str
    kpis: dict[str, Number | None]
    staleness_p95: Number | None
    latency_p95: Number | None
    notes: list[str]
    by_group: dict[str, Number | None] = {}
    seconds: Number
    answers: AnswerCounts | None = None


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def run_item(item: Item, lines: Lines | None = None) -> Record:
    """Run one episode and keep what a sweep needs of it. What it raises bears the item as a note.

    `lines`: the ways to endpoints that all items of a sweep share.
    """
    try:
        begun = time.perf_counter()
        env = made(item)
        policies = _policies(item, env, lines)
        asked = {**policies, **injected(env)}
        done = False
        try:
            result = _played(item, env, policies)
            done = True
        finally:
            for policy in asked.values():
                if isinstance(policy, Recording):
                    policy.close(finished=done)  # without a footer it can be continued
        found = outcome(env, result)
        require_finite(found)
        return Record(item.key, found, round(time.perf_counter() - begun, 3), AnswerCounts.of(result, asked))
    except Exception as error:
        error.add_note(f"while running {item}")
        raise


def require_finite(found: Outcome) -> None:
    """Raise ConfigError where the return is no number to reckon with."""
    if not math.isfinite(found.value):
        raise ConfigError(f"the team's return is {found.value}: no statistics can be made of it; mend the rewards")


def run_episode(item: Item, record: Sequence[str] = RECORD) -> tuple[HeronEnv, EpisodeResult]:
    """Run one episode, in an environment built for it alone; `record` as for `run_event_driven`."""
    env = made(item)
    return env, _played(item, env, _policies(item, env), record)


def injected(env: HeronEnv) -> dict[str, Any]:
    """Policies of the agents that the environment itself lets endpoints play."""
    return {agent.agent_id: agent.policy for agent in env.hierarchy.agents if agent.injected}


def made(item: Item) -> HeronEnv:
    """The environment of an item, fresh."""
    condition, options = item.condition, {**item.options, **item.case.options}
    env = item.env.make(**options)
    if condition.noise:
        env = item.env.make(**{**options, "observability": condition.observability(env.observability)})
    return env


def _policies(item: Item, env: HeronEnv, lines: Lines | None = None) -> Policies:
    """The policies of the item; those that ask endpoints have their ways from `lines`."""
    if lines is not None:
        for own in injected(env).values():
            asking = getattr(own, "policy", own)  # a recording has one within
            asking.line = lines(asking.endpoint)
    if not isinstance(item.policy, External):
        return item.policy.build(env, item.case.seed)
    episode = f"case-{item.number}-{item.condition.name}"
    about = About(
        item.env.id, {**item.options, **item.case.options}, label=f"{item.name}, {episode}", episode=episode,
        lines=lines or Connection,
    )  # fmt: skip
    return item.policy.asked(env, item.case.seed, about)


def _played(item: Item, env: HeronEnv, policies: Policies, record: Sequence[str] = RECORD) -> EpisodeResult:
    condition, seed = item.condition, item.case.seed
    happenings = condition.happenings(env, seed)
    if condition.synchronous:
        return env.run_synchronous(policies, seed=seed, disturbances=happenings, record=record)
    schedule = condition.schedule(env)
    return env.run_event_driven(policies, seed=seed, schedule=schedule, disturbances=happenings, record=record)
