"""A sweep: policies x held-out cases x conditions, run by several processes, in a folder where it can be resumed."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heron_env import registry
from heron_env._version import __version__
from heron_env.envs.decisions import resolve_policies
from heron_env.errors import ConfigError, HeronWarning
from heron_env.given import all_of, is_one_of, mapping, several
from heron_env.injection.endpoint import Endpoint
from heron_env.lab import benchmark
from heron_env.lab.benchmark import NOTHING, Case
from heron_env.lab.episodes import TEAM
from heron_env.lab.gap.conditions import SYNC, Condition, unique
from heron_env.lab.gap.journal import SweepJournal
from heron_env.lab.gap.records import SCHEMA, Item, Key, Record, injected, metrics, run_item
from heron_env.lab.gap.running import Bundle, bundles, finished, run_bundle
from heron_env.lab.policies import About, Baseline, External, Lines, PolicySpec, TrainedRun, policy_spec
from heron_env.lab.progress import Progress, sweep_bar
from heron_env.trust import Trust, listed, named, trusting

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.lab.gap.results import SweepResult

Given = PolicySpec | str | Endpoint | Sequence[PolicySpec | str | Endpoint]
"""A policy as `Sweep.of` takes it: a spec, a name, or several of them that are pooled."""
Pools = Mapping[str, tuple[str, ...]]
"""Names of the members by name of the pool."""
RECIPE: Final = (
    "env_id", "env_options", "training_options", "trainer", "training_delays", "schedule", "base", "hyperparameters",
    "critic",
)  # fmt: skip
"""What trainings of one recipe have in common."""


def expanded(policies: Mapping[str, Given]) -> tuple[dict[str, PolicySpec], dict[str, tuple[str, ...]]]:
    """Every policy that runs by name, and the pools; members are called `NAME, run 1` and so on.

    Raises ConfigError for fewer than two members, for run folders of different recipes, and for equal seeds or names.
    """
    specs: dict[str, PolicySpec] = {}
    pools: dict[str, tuple[str, ...]] = {}
    for name, given in policies.items():
        several = isinstance(given, Sequence) and not isinstance(given, str)
        members = _specs(given)
        names = [f"{name}, run {number}" for number in range(1, len(members) + 1)] if several else [name]
        if several:
            _require_one_recipe(name, members)
            pools[name] = tuple(names)
        if taken := [each for each in names if each in specs or (several and each in policies)]:
            raise ConfigError(f"two policies would be called {taken[0]!r}; give one of them another name")
        specs |= zip(names, members, strict=True)
    return specs, pools


def shown(policies: Sequence[str], pools: Pools) -> list[str]:
    """Names as tables show them: a pool stands where its first member does."""
    pool_of = {member: name for name, members in pools.items() for member in members}
    return list(dict.fromkeys(pool_of.get(name, name) for name in policies))


def _specs(given: Given) -> list[PolicySpec]:
    if isinstance(given, str | Endpoint):
        return [policy_spec(given)]
    return [spec for each in given for spec in _specs(each)] if isinstance(given, Sequence) else [given]


def _require_one_recipe(name: str, members: Sequence[PolicySpec]) -> None:
    if len(members) < 2:
        raise ConfigError(f"policy {name!r}: a pool of {len(members)}; give two or more training seeds, or one alone")
    folders = [member.folder for member in members if isinstance(member, TrainedRun)]
    if not folders:
        return
    from heron_env.lab.runs import RunFolder

    first, *others = [RunFolder.open(folder) for folder in folders]
    for other in others:
        for setting in RECIPE:
            ours, theirs = getattr(first.config, setting), getattr(other.config, setting)
            if ours != theirs:
                raise ConfigError(
                    f"policy {name!r}: {first.path} has {setting}={ours!r}, {other.path} has {theirs!r}: only training "
                    "seeds of one recipe are pooled"
                )
    seeds = [run.config.seed for run in (first, *others)]
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"policy {name!r}: the run folders {folders} have seeds {seeds}: pool each seed once")


@dataclass(frozen=True)
class Sweep:
    """What is compared with what. `Sweep.of(...)` checks and completes; `run` runs it.

    Every policy runs on the synchronous clock first: the gap is measured against it. "do nothing" runs there alone,
    where it is not asked for, so that the gap can be told as a share of what the policy gains.
    """

    env: registry.EnvironmentSpec
    options: Mapping[str, Any]
    policies: Mapping[str, PolicySpec]
    identities: Mapping[str, str]
    """What distinguishes each policy from others: a run folder's path and digest, the name of a baseline, a repr."""
    conditions: tuple[Condition, ...]
    """The first one is `SYNC`."""
    cases: tuple[Case, ...]
    unit: str
    dt: float
    """Control step, s."""
    preset: str | None = None
    sync_only: tuple[str, ...] = ()
    pools: Pools = field(default_factory=dict)
    """Policies that are pooled, all of them among `policies`."""
    trust: tuple[str, ...] = ()
    """What the run folders may name, besides what is registered."""
    injected: bool = False
    """Does the environment itself let endpoints play some of its agents, whatever the policies are?"""
    return_of: str = TEAM
    """The root of the hierarchy: its return is what policies are compared by."""

    @classmethod
    def of(
        cls,
        env_id: str,
        policies: Mapping[str, Given],
        conditions: Sequence[Condition],
        *,
        cases: Sequence[Case] | int = 5,
        sync_only: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        preset: str | None = None,
        trust: Trust = (),
    ) -> Sweep:
        """The sweep of an environment.

        Args:
            env_id: a registered environment, or "module:function" of one's own.
            policies: by name: a run folder, the name of a baseline, an Endpoint or its address, an `agents.yaml`, a
                fixture, or any picklable PolicySpec with a telling repr; or several of them, such as the run folders of
                five training seeds, which are pooled as one policy.
            conditions: in the order of the table; `SYNC` comes first, asked for or not.
            cases: held-out cases, or how many of the environment's own test cases to take.
            sync_only: names of policies that only the synchronous clock is wanted for.
            options: of the environment.
            trust: other environments that the run folders name, "module:function", where they are not registered.

        Raises ConfigError, ScheduleError, RunFolderError for what can't be run, before anything runs.
        """
        spec, given = registry.spec(env_id), mapping({} if options is None else options, "Sweep.of(options)")
        believed = (*named(env_id), *listed(trust))
        policies = mapping(policies, "Sweep.of(policies)")
        conditions = all_of(conditions, "Sweep.of(conditions)", Condition)
        sync_only = several(sync_only, "Sweep.of(sync_only)")
        env = spec.make(**given)
        if not policies:
            raise ConfigError("Sweep.of(policies={}): give one policy at least, as {'random': 'random'}")
        chosen = benchmark.cases(env, cases) if isinstance(cases, int) else list(all_of(cases, "Sweep.of(cases)", Case))
        if not chosen:
            raise ConfigError(f"Sweep.of(cases={cases!r:.200}): give one Case at least, or how many")
        specs, pools = expanded(policies)
        if not all(is_one_of(name, policies) for name in sync_only) or not set(sync_only) < set(policies):
            raise ConfigError(
                f"sync_only={list(sync_only)}: must be some of the policies {list(policies)}, and leave one at least"
            )
        beside = [member for name in sync_only for member in pools.get(name, (name,))]
        alone = dict.fromkeys(beside if NOTHING in specs else (*beside, NOTHING))
        specs.setdefault(NOTHING, Baseline(NOTHING))
        cases = tuple(benchmark.with_optima(env, chosen, given))
        with trusting(*believed), Lines() as lines:
            for name, policy in specs.items():
                if isinstance(policy, External):
                    _require_answers(policy, (env, spec.id, given), cases, lines)
                else:
                    _require_fit(env, name, policy)
        for condition in conditions:
            env.timings_of(condition.schedule(env))
            condition.happenings(env, 0)
        ordered = tuple(unique([SYNC, *conditions]))
        names = {name: _identity(policy) for name, policy in specs.items()}
        unit = env.benchmark().unit
        return cls(
            spec, given, specs, names, ordered, cases, unit, env.dt, preset, tuple(alone), pools, believed,
            bool(injected(env)), env.hierarchy.ids[0],
        )  # fmt: skip

    @property
    def shown(self) -> list[str]:
        """Names of the policies as tables have them: a pool in the place of its members."""
        return shown(list(self.policies), self.pools)

    def members(self, name: str) -> tuple[str, ...]:
        """The policies behind a shown name: those of a pool, or itself."""
        return self.pools.get(name, (name,))

    def items(self) -> list[Item]:
        """All episodes, so ordered that the first ones say something about everything: case by case."""
        return [
            Item(
                self.env, self.options, name, policy, number, case, condition,
                self.injected or bool(getattr(policy, "live", False)),
            )
            for number, case in enumerate(self.cases)
            for condition in self.conditions
            for name, policy in self.policies.items()
            if condition == SYNC or name not in self.sync_only
        ]  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """All that decides the results, as sweep.json keeps it."""
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

    def run(
        self,
        out: str | Path | None = None,
        *,
        processes: int = 2,
        ray: str | None = None,
        progress: bool | Callable[[Progress], None] = True,
    ) -> SweepResult:
        """Run what is missing, and say what was found. The result depends neither on processes nor on interruptions.

        Args:
            out: folder of the journal, and of the tables that are written at the end; None: in memory alone.
            processes: worker processes; 1 stays in this one. Episodes that ask endpoints always do, so that caps, pace
                and breaker of an endpoint hold over the whole sweep.
            ray: address of a running Ray cluster, "HOST:PORT" or "auto", whose CPUs take the place of the processes
                (extra `ray`). This process keeps the journal, and a lost node loses nothing. Run folders must be on
                every machine, where they are here.
            progress: a bar, where a terminal or a notebook shows it; or what is called with how far it is.

        A HeronWarning names an endpoint that gave not one answer in its first episode.

        Raises ConfigError where `out` holds another sweep, or no cluster answers; RunFolderError where its lines can't
        be read. What an episode raises is raised here, with the episode as a note; the others' results are kept.
        """
        from heron_env.lab.gap.results import SweepResult

        items = self.items()
        hands = _hands(processes, ray)
        with nullcontext(progress) if callable(progress) else sweep_bar(progress) as tell, trusting(*self.trust):
            if out is None:
                return SweepResult(self, _in_memory(items, hands, tell))
            with SweepJournal(Path(out), self.settings(), [item.key for item in items]) as journal:
                _complete(items, journal.done, journal.add, hands, tell)
        result = SweepResult(self, journal.done)
        result.write(Path(out))
        return result


@dataclass(frozen=True)
class Hands:
    """Who runs bundles: how many at once, and the function that yields each with its records."""

    count: int
    run: Callable[[Sequence[Bundle]], Generator[tuple[Bundle, list[Record]], None, None]]


def _hands(processes: int, ray: str | None) -> Hands:
    if ray is None:
        return Hands(processes, lambda some: finished(run_bundle, some, processes))
    from heron_env.lab.gap.running import RayCluster

    cluster = RayCluster(ray)
    return Hands(cluster.cpus, cluster.run)


def _in_memory(items: list[Item], hands: Hands, tell: Callable[[Progress], None]) -> dict[Key, Record]:
    done: dict[Key, Record] = {}
    _complete(items, done, lambda record: done.update({record.key: record}), hands, tell)
    return done


def _complete(
    items: list[Item],
    done: Mapping[Key, Record],
    add: Callable[[Record], None],
    hands: Hands,
    tell: Callable[[Progress], None],
) -> None:
    """Run the items that are not done."""
    missing = [item for item in items if item.key not in done]
    before, begun, processes = len(done), 0.0, hands.count
    tell(Progress(before, len(items), None if missing else 0.0))
    for count, record in enumerate(_records(missing, hands), start=1):
        add(record)
        begun = time.monotonic() if count == min(processes, len(missing)) else begun  # they have started and compiled
        each = (time.monotonic() - begun) / (count - processes) if count > processes else math.nan
        left = each * (len(missing) - count) if count < len(missing) else 0.0
        tell(Progress(before + count, len(items), None if math.isnan(left) else left))


def _records(items: list[Item], hands: Hands) -> Iterator[Record]:
    """What came of each item: of those that ask endpoints here, one after another, while workers run the others."""
    live, rest = [item for item in items if item.live], [item for item in items if not item.live]
    unheard = {item.name for item in live}
    with Lines() as lines, closing(hands.run(bundles(rest, hands.count))) as others:
        for item in live:
            record = run_item(item, lines)
            if item.name in unheard:
                unheard.remove(item.name)
                _tell_silence(record)
            yield record
            yield from (record for _, records in islice(others, 1) for record in records)
        yield from (record for _, records in others for record in records)


def _tell_silence(record: Record) -> None:
    """Warn where no answer of an episode was the endpoint's own."""
    found = metrics([] if record.answers is None else [record.answers])
    if found is not None and found.fallback_rate == 1.0:
        codes = ", ".join(f"{told} {count}" for told, count in found.counts.items())
        warnings.warn(
            f"policy {record.key.policy!r}: not one of {found.decisions} answers of its first episode is the "
            f"endpoint's ({codes}); the figures are those of what stands in. Is it running, and is it asked the right "
            "thing? The sweep goes on",
            HeronWarning, stacklevel=2,
        )  # fmt: skip


def _require_answers(
    policy: External, made: tuple[HeronEnv, str, Mapping[str, Any]], cases: Sequence[Case], lines: Lines
) -> None:
    """What can't answer in these cases fails here; no endpoint is asked. Raises ConfigError, FixtureError."""
    env, env_id, options = made
    for number, case in enumerate(cases[:1] if policy.live else cases):
        about = About(env_id, {**options, **case.options}, episode=f"case-{number}-{SYNC.name}", lines=lines)
        resolve_policies(policy.asked(env, case.seed, about), env)


def _require_fit(env: HeronEnv, name: str, policy: PolicySpec) -> None:
    """What can't decide in `env` fails here, before any process starts. Raises ConfigError, UnknownAgent."""
    if not callable(getattr(policy, "build", None)):
        raise ConfigError(
            f"policy {name!r}: {policy!r:.200} is no policy; give a run folder, a baseline or a PolicySpec"
        )
    resolve_policies(policy.build(env, 0), env)
    if isinstance(policy, TrainedRun):
        from heron_env.lab.runs import RunFolder

        fault = RunFolder.open(policy.folder).misfit(env)
        if fault:
            raise ConfigError(f"policy {name!r}: {fault}; give the environment the options that it was trained with")


def _identity(policy: PolicySpec) -> str:
    """Of a policy, as `Sweep.identities` has it."""
    if isinstance(policy, TrainedRun):
        from heron_env.lab.runs import RunFolder

        return f"run {policy.folder} {RunFolder.open(policy.folder).digest()}"
    if isinstance(policy, Baseline):
        return f"baseline {policy.name}"
    if isinstance(policy, External):
        return policy.identity()
    return " ".join([repr(policy), *(_identity(run) for run in _runs_within(policy))])


def _runs_within(policy: object) -> Iterator[TrainedRun]:
    """The run folders of policies around policies, such as a Smoothing: trained anew they are other policies."""
    if isinstance(policy, TrainedRun):
        yield policy
    elif is_dataclass(policy) and not isinstance(policy, type):
        for part in fields(policy):
            yield from _runs_within(getattr(policy, part.name))


def _plain(value: object) -> object:
    """An option as JSON can hold it; what JSON does not know by its repr."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
