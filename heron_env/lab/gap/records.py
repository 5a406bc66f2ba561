"""One episode of a sweep: what is to be run, and what is kept of it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from heron_env import registry
from heron_env.errors import ConfigError
from heron_env.files.reading import first_fault
from heron_env.lab.benchmark import Case
from heron_env.lab.episodes import Outcome, outcome
from heron_env.lab.gap.conditions import Condition
from heron_env.lab.gap.settings import Number
from heron_env.lab.policies import PolicySpec

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.results import EpisodeResult


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

    @property
    def key(self) -> Key:
        """Which one it is."""
        return Key(self.name, self.number, self.condition.name)

    def __str__(self) -> str:
        """For the note on an error."""
        return f"policy {self.name!r} in {self.env.id}, case {self.number} ({self.case}), condition {self.condition}"


@dataclass(frozen=True)
class Record:
    """One finished episode; `seconds` is the time it took, which is not part of the result."""

    key: Key
    outcome: Outcome
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**self.key._asdict(), **asdict(self.outcome), "seconds": self.seconds}

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
        kept["kpis"] = {name: _known(x) for name, x in line.kpis.items()}
        return cls(Key(line.policy, line.case, line.condition), Outcome(**kept), line.seconds)


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
    seconds: Number


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def run_item(item: Item) -> Record:
    """Run one episode and keep what a sweep needs of it. What it raises bears the item as a note."""
    try:
        begun = time.perf_counter()
        found = outcome(*run_episode(item))
        if not math.isfinite(found.value):
            raise ConfigError(f"the team's return is {found.value}: no statistics can be made of it; mend the rewards")
        return Record(item.key, found, round(time.perf_counter() - begun, 3))
    except Exception as error:
        error.add_note(f"while running {item}")
        raise


def run_episode(item: Item, record: Sequence[str] = ("rewards", "actions")) -> tuple[HeronEnv, EpisodeResult]:
    """Run one episode, in an environment built for it alone; `record` as for `run_event_driven`."""
    condition, seed = item.condition, item.case.seed
    options = {**item.options, **item.case.options}
    env = item.env.make(**options)
    if condition.noise:
        env = item.env.make(**{**options, "observability": condition.observability(env.observability)})
    policies, happenings = item.policy.build(env, seed), condition.happenings(env, seed)
    if condition.synchronous:
        return env, env.run_synchronous(policies, seed=seed, disturbances=happenings, record=record)
    schedule = condition.schedule(env)
    return env, env.run_event_driven(policies, seed=seed, schedule=schedule, disturbances=happenings, record=record)
