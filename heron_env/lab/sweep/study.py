"""What is played: policies, pooled or alone, over held-out cases under conditions; every run is opened once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from heron_env import registry
from heron_env._version import __version__
from heron_env.core.policy import Policies
from heron_env.envs.base import HeronEnv
from heron_env.envs.decisions import resolve_policies
from heron_env.errors import ConfigError
from heron_env.lab.benchmark import Case
from heron_env.lab.episodes import TEAM
from heron_env.lab.output import Progress
from heron_env.lab.policies import (
    About,
    External,
    PolicySpec,
    TrainedRun,
    opened,
    policy_spec,
)
from heron_env.lab.sweep.conditions import SYNC, AnyCondition, Condition
from heron_env.lab.sweep.play import Bundle, Played, Worlds, bundles, play_bundle, played
from heron_env.lab.sweep.records import RECORD, SCHEMA, Key, Record, SweepJournal
from heron_env.trust import trusting

Pools = Mapping[str, tuple[str, ...]]
"""Names of the members by name of the pool."""
RECIPE: Final = (
    "env_id", "env_options", "training_options", "algorithm", "trainer", "training_delays", "schedule", "base",
    "hyperparameters", "critic",
)  # fmt: skip
"""What trainings of one recipe have in common."""


@dataclass(frozen=True)
class Item:
    """One episode to play; it travels to another process."""

    env: registry.EnvironmentSpec
    options: Mapping[str, Any]
    name: str
    policy: PolicySpec
    number: int
    """Of the case."""
    case: Case
    condition: AnyCondition
    live: bool = False
    """Is an endpoint asked? Then it runs in the study's own process."""
    record: tuple[str, ...] = RECORD
    """What it keeps; (): returns alone."""

    def policies(self, env: HeronEnv) -> Policies:
        """For `env`."""
        return self.policy.build(env, self.case.seed)

    @property
    def key(self) -> Key:
        """Which one it is."""
        return Key(self.name, self.number, self.condition.name)

    def __str__(self) -> str:
        """For the note on an error."""
        return (
            f"policy {self.name!r} in {self.env.id}, case {self.number} ({self.case}), condition {self.condition.name}"
        )


class Executor(Protocol):
    """Who plays bundles: this process, several, or the machines of a cluster."""

    @property
    def count(self) -> int:
        """How many at once."""
        ...

    def run(self, bundles: Sequence[Bundle], worlds: Worlds) -> Played:
        """Each bundle with its records, as soon as they are there; `worlds` are this process's."""
        ...


class Here:
    """This process, one bundle after another."""

    count = 1

    def run(self, bundles: Sequence[Bundle], worlds: Worlds) -> Played:
        """In their order."""
        for bundle in bundles:
            yield bundle, play_bundle(bundle, worlds)


def _untold(progress: Progress) -> None:
    """Nobody looks."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """Policies over cases under conditions, in one environment.

    Attributes: env, options: of the environment; policies: by name; sync_only: names of policies that only the
        synchronous clock is wanted for; trust: what files may name, besides what is registered; injected: does the
        environment itself let endpoints play some of its agents, whatever the policies are?; record: what an episode
        keeps; (): returns alone; worlds: environments of this process, built once and used again.
    """

    env: registry.EnvironmentSpec
    options: Mapping[str, Any] = field(default_factory=dict)
    policies: Mapping[str, PolicySpec]
    conditions: Sequence[AnyCondition]
    cases: Sequence[Case]
    sync_only: tuple[str, ...] = ()
    trust: tuple[str, ...] = ()
    injected: bool = False
    record: tuple[str, ...] = RECORD
    worlds: Worlds = field(default_factory=Worlds, repr=False, compare=False)

    def items(self) -> list[Item]:
        """Return all episodes, case by case."""
        return [
            Item(
                self.env, self.options, name, policy, number, case, condition,
                self.injected or bool(getattr(policy, "live", False)), self.record,
            )
            for number, case in enumerate(self.cases)
            for condition in self.conditions
            for name, policy in self.policies.items()
            if condition == SYNC or name not in self.sync_only
        ]  # fmt: skip

    def play(
        self,
        executor: Executor | None = None,
        journal: SweepJournal | None = None,
        *,
        items: Sequence[Item] | None = None,
        progress: Callable[[Progress], None] = _untold,
    ) -> dict[Key, Record]:
        """Play missing episodes; return the records by key. They do not depend on executor or interruptions.

        Args: executor: who plays; default: this process. Episodes that ask endpoints always run here, so that caps,
            pace and breaker of an endpoint hold over the whole study; journal: keeps each record before the next one is
            counted, and has those of earlier times; items: of its episodes; default: all; progress: is called with how
            far it is; what it raises ends the study.

        Raises what an episode raises, with the episode as a note; the others' records are in the journal.
        """
        executor, items = executor or Here(), self.items() if items is None else items
        done: dict[Key, Record] = {} if journal is None else journal.done
        missing = [item for item in items if item.key not in done]
        before, begun, workers = len(done), 0.0, executor.count
        with trusting(*self.trust):
            progress(Progress(before, len(items), None if missing else 0.0))
            live, rest = [item for item in missing if item.live], [item for item in missing if not item.live]
            others = executor.run(bundles(rest, executor.count, self.worlds), self.worlds)
            for count, record in enumerate(played(live, others, self.worlds), start=1):
                if journal is None:
                    done[record.key] = record
                else:
                    journal.add(record)
                if count == min(workers, len(missing)):  # they have started and compiled
                    begun = time.monotonic()
                each = (time.monotonic() - begun) / (count - workers) if count > workers else math.nan
                left = each * (len(missing) - count) if count < len(missing) else 0.0
                progress(Progress(before + count, len(items), None if math.isnan(left) else left))
        return done


@dataclass(frozen=True, kw_only=True)
class SweepPlan(Study):
    """A study whose policies are compared, as sweep.json keeps it.

    Attributes: identities: what distinguishes each policy from others: a run folder's path and digest, the name of a
        baseline, a repr; unit: of returns; dt: control step, s; pools: policies that are pooled, all of them among
        `policies`; return_of: the root of the hierarchy: its return is what policies are compared by.
    """

    conditions: tuple[Condition, ...]
    cases: tuple[Case, ...]
    identities: Mapping[str, str]
    unit: str
    dt: float
    preset: str | None = None
    pools: Pools = field(default_factory=dict)
    return_of: str = TEAM

    @property
    def shown(self) -> list[str]:
        """Names of the policies in tables: a pool takes the place of its first member."""
        pool_of = {member: name for name, members in self.pools.items() for member in members}
        return list(dict.fromkeys(pool_of.get(name, name) for name in self.policies))

    def members(self, name: str) -> tuple[str, ...]:
        """Return the policies of a pool, or the policy itself."""
        return self.pools.get(name, (name,))

    def settings(self) -> dict[str, Any]:
        """Return the settings that determine the results, as in sweep.json."""
        return {
            "schema": SCHEMA,
            "heron_env": __version__,
            "env": self.env.id,
            "preset": self.preset,
            "dt": self.dt,
            "unit": self.unit,
            **({} if self.return_of == TEAM else {"return_of": self.return_of}),
            "options": _plain(self.options),
            "policies": dict(self.identities),
            "sync_only": list(self.sync_only),
            "cases": [{"seed": c.seed, "options": _plain(c.options), "optimum": c.optimum} for c in self.cases],
            "conditions": [{"name": c.name, **c.to_dict()} for c in self.conditions],
            **({"pools": {name: list(members) for name, members in self.pools.items()}} if self.pools else {}),
        }


def _plain(value: object) -> object:
    """An option as JSON can hold it; what JSON does not know by its repr."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def expanded(policies: Mapping[str, Any]) -> tuple[dict[str, PolicySpec], dict[str, tuple[str, ...]]]:
    """Every policy that runs by name, its runs opened, and the pools; members are called `NAME, run 1` and so on.

    Raises ConfigError for fewer than two members, for run folders of different recipes, and for equal seeds or names.
    """
    specs: dict[str, PolicySpec] = {}
    pools: dict[str, tuple[str, ...]] = {}
    for name, entry in policies.items():
        pooled = isinstance(entry, Sequence) and not isinstance(entry, str)
        members = _specs(entry)
        names = [f"{name}, run {number}" for number in range(1, len(members) + 1)] if pooled else [name]
        if pooled:
            _require_one_recipe(name, members)
            pools[name] = tuple(names)
        if taken := [each for each in names if each in specs or (pooled and each in policies)]:
            raise ConfigError(f"two policies would be called {taken[0]!r}; give one of them another name")
        specs |= zip(names, members, strict=True)
    return specs, pools


def _specs(entry: Any) -> list[PolicySpec]:
    if isinstance(entry, Sequence) and not isinstance(entry, str):
        return [spec for each in entry for spec in _specs(each)]
    return [opened(policy_spec(entry) if isinstance(entry, str) or hasattr(entry, "url") else entry)]


def _require_one_recipe(name: str, members: Sequence[PolicySpec]) -> None:
    if len(members) < 2:
        raise ConfigError(f"policy {name!r}: a pool of {len(members)}; give two or more training seeds, or one alone")
    runs = [member.run for member in members if isinstance(member, TrainedRun)]
    for other in runs[1:]:
        for setting in RECIPE:
            ours, theirs = getattr(runs[0].config, setting), getattr(other.config, setting)
            if ours != theirs:
                raise ConfigError(
                    f"policy {name!r}: {runs[0].path} has {setting}={ours!r}, {other.path} has {theirs!r}: only "
                    "training seeds of one recipe are pooled"
                )
    seeds = [run.config.seed for run in runs]
    if len(set(seeds)) < len(seeds):
        folders = [member.folder for member in members if isinstance(member, TrainedRun)]
        raise ConfigError(f"policy {name!r}: the run folders {folders} have seeds {seeds}: pool each seed once")


def require_all_fit(
    env: HeronEnv, made: tuple[str, Mapping[str, Any]], specs: Mapping[str, PolicySpec], cases: Sequence[Case]
) -> None:
    """What can't decide in `env` or answer in these cases fails here; no endpoint is asked.

    Raises ConfigError, FixtureError.
    """
    outside = {name: policy for name, policy in specs.items() if isinstance(policy, External)}
    for name, policy in specs.items():
        if name not in outside:
            require_fit(env, name, policy)
    if outside:
        from heron_env.lab.external import EndpointConnections

        with EndpointConnections() as lines:
            for policy in outside.values():
                for number, case in enumerate(cases[:1] if policy.live else cases):
                    options = {**made[1], **case.options}
                    about = About(made[0], options, episode=f"case-{number}-{SYNC.name}", lines=lines)
                    _resolve(policy.asked(env, case.seed, about), env)


def require_fit(env: HeronEnv, name: str, policy: PolicySpec) -> None:
    """What can't decide in `env` fails here, before any process starts. Raises ConfigError, UnknownAgent."""
    if not callable(getattr(policy, "build", None)):
        raise ConfigError(
            f"policy {name!r}: {policy!r:.200} is no policy; give a run folder, a baseline or a PolicySpec"
        )
    if isinstance(policy, TrainedRun) and (fault := policy.run.misfit(env)):
        raise ConfigError(f"policy {name!r}: {fault}; give the environment the options that it was trained with")
    _resolve(policy.build(env, 0), env)


def _resolve(policies: Policies, env: HeronEnv) -> None:
    """Raise ConfigError, UnknownAgent where an agent has no policy, or a policy no agent."""
    if isinstance(env, HeronEnv):
        resolve_policies(policies, env)
    else:
        env.resolved(policies)
