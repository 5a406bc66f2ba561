"""One episode of a sweep: what is to be run, and what is kept of it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from heron_env import registry
from heron_env.errors import ConfigError
from heron_env.evaluation.benchmark import Case
from heron_env.evaluation.episodes import Outcome, outcome
from heron_env.evaluation.gap.conditions import Condition
from heron_env.evaluation.policies import PolicySpec

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
    def from_dict(cls, values: Mapping[str, Any]) -> Record:
        """Read back; null is nan. Raises KeyError where something is missing."""
        kept = {field.name: values[field.name] for field in fields(Outcome)}
        for name in ("staleness_p95", "latency_p95"):
            kept[name] = math.nan if kept[name] is None else kept[name]
        kept["kpis"] = {name: math.nan if x is None else x for name, x in kept["kpis"].items()}
        key = Key(values["policy"], values["case"], values["condition"])
        return cls(key, Outcome(**kept), values["seconds"])


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
