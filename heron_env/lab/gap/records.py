"""One episode of a sweep: what is to be run, and what is kept of it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from heron_env import registry
from heron_env.core.policy import Policies
from heron_env.errors import ConfigError
from heron_env.files.reading import first_fault
from heron_env.injection.endpoint import Line
from heron_env.injection.recording import Recording
from heron_env.lab.benchmark import Case
from heron_env.lab.episodes import Outcome, outcome
from heron_env.lab.external import About, External, Lines
from heron_env.lab.gap.answers import Answers
from heron_env.lab.gap.conditions import Condition
from heron_env.lab.gap.settings import Number
from heron_env.lab.policies import PolicySpec

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.results import EpisodeResult


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
    answers: Answers | None = None

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
    answers: Answers | None = None


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
        return Record(item.key, found, round(time.perf_counter() - begun, 3), Answers.of(result, asked))
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
        lines=lines or Line,
    )  # fmt: skip
    return item.policy.asked(env, item.case.seed, about)


def _played(item: Item, env: HeronEnv, policies: Policies, record: Sequence[str] = RECORD) -> EpisodeResult:
    condition, seed = item.condition, item.case.seed
    happenings = condition.happenings(env, seed)
    if condition.synchronous:
        return env.run_synchronous(policies, seed=seed, disturbances=happenings, record=record)
    schedule = condition.schedule(env)
    return env.run_event_driven(policies, seed=seed, schedule=schedule, disturbances=happenings, record=record)
