"""A sweep: policies x held-out cases x conditions, run by several processes, in a folder where it can be resumed."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heron_env import registry
from heron_env.errors import ConfigError, HeronWarning, RunFolderError, UnknownEnvironment, did_you_mean
from heron_env.given import all_of, is_one_of, mapping, path_of, require_one_of, several
from heron_env.injection.answers import metrics
from heron_env.lab import benchmark
from heron_env.lab.benchmark import NOTHING, Case
from heron_env.lab.output import Progress, sweep_bar
from heron_env.lab.policies import Baseline, EndpointConnections, External, PythonPolicy
from heron_env.lab.show.figures import sweep_figure
from heron_env.lab.sweep.conditions import CAUSES, SYNC, Condition, unique
from heron_env.lab.sweep.plan import (
    SETTINGS,
    Given,
    Item,
    Key,
    SweepPlan,
    SweepSettings,
    expanded,
    identity,
    policy_of,
    read_settings,
    require_answers,
    require_fit,
)
from heron_env.lab.sweep.records import RESULTS, Record, SweepJournal, injected, read_records, run_item
from heron_env.lab.sweep.results import Measurements
from heron_env.lab.sweep.running import Bundle, RayCluster, bundles, finished, run_bundle
from heron_env.lab.sweep.tables import headings, legend, lines, write_tables
from heron_env.pictures.notebook import counted, html_table
from heron_env.trust import Trust, listed, named, trusting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from heron_env.envs.base import HeronEnv


class Sweep(SweepPlan):
    """What is compared with what. `Sweep.of(...)` checks and completes; `run` runs it.

    Every policy runs on the synchronous clock first: the gap is measured against it. "do nothing" runs there alone,
    where it is not asked for, so that the gap can be given as a share of what the policy gains.

    >>> from heron_env import Condition
    >>> late = Condition(act_delay=1.0)
    >>> sweep = Sweep.of("heron/BatteryGrid-v0", {"random": "random"}, [late], cases=2, options={"max_steps": 5})
    >>> [len(result.values) for result in [sweep.run(processes=1).point("random", late)]]
    [2]
    """

    @classmethod
    def of(
        cls,
        env_id: str | Callable[..., HeronEnv],
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
            env_id: a registered environment, or "module:function" of one's own, or that function.
            policies: by name: a run folder, the name of a baseline, an Endpoint or its address, an `agents.yaml`, a
                fixture, or any picklable PolicySpec with a clear repr; or several of them, such as the run folders of
                five training seeds, which are pooled as one policy.
            conditions: in the order of the table; `SYNC` comes first, asked for or not.
            cases: held-out cases, or how many of the environment's own test cases to take.
            sync_only: names of policies that only the synchronous clock is wanted for.
            options: of the environment.
            trust: other environments that the run folders name, "module:function", where they are not registered.

        Raises ConfigError, ScheduleError, RunFolderError for what can't be run, before anything runs.
        """
        env_id = registry.id_of(env_id, "Sweep.of(env_id)")
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
        believed = (*believed, *(policy.name for policy in specs.values() if isinstance(policy, PythonPolicy)))
        if not all(is_one_of(name, policies) for name in sync_only) or not set(sync_only) < set(policies):
            raise ConfigError(
                f"sync_only={list(sync_only)}: must be some of the policies {list(policies)}, and leave one at least"
            )
        beside = [member for name in sync_only for member in pools.get(name, (name,))]
        alone = dict.fromkeys(beside if NOTHING in specs else (*beside, NOTHING))
        specs.setdefault(NOTHING, Baseline(NOTHING))
        cases = tuple(benchmark.with_optima(env, chosen, given))
        with trusting(*believed), EndpointConnections() as lines:
            for name, policy in specs.items():
                if isinstance(policy, External):
                    require_answers(policy, (env, spec.id, given), cases, lines)
                else:
                    require_fit(env, name, policy)
            names = {name: identity(policy) for name, policy in specs.items()}
        for condition in conditions:
            env.timings_of(condition.schedule(env))
            condition.happenings(env, 0)
        ordered = tuple(unique([SYNC, *conditions]))
        unit = env.benchmark().unit
        return cls(
            spec, given, specs, names, ordered, cases, unit, env.dt, preset, tuple(alone), pools, believed,
            bool(injected(env)), env.hierarchy.ids[0],
        )  # fmt: skip

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
        items = self.items()
        hands = workers_of(processes, ray)
        with nullcontext(progress) if callable(progress) else sweep_bar(progress) as tell, trusting(*self.trust):
            if out is None:
                return SweepResult(self, in_memory(items, hands, tell))
            with SweepJournal(Path(out), self.settings(), [item.key for item in items]) as journal:
                _complete(items, journal.done, journal.add, hands, tell)
        result = SweepResult(self, journal.done)
        result.write(Path(out))
        return result


@dataclass(frozen=True)
class Workers:
    """Who runs bundles: how many at once, and the function that yields each with its records."""

    count: int
    run: Callable[[Sequence[Bundle]], Generator[tuple[Bundle, list[Record]], None, None]]


def workers_of(processes: int, ray: str | None = None) -> Workers:
    """These processes, or the CPUs of a Ray cluster. Raises ConfigError where no cluster answers."""
    if ray is None:
        return Workers(processes, lambda some: finished(run_bundle, some, processes))
    cluster = RayCluster(ray)
    return Workers(cluster.cpus, cluster.run)


def in_memory(items: list[Item], hands: Workers, tell: Callable[[Progress], None]) -> dict[Key, Record]:
    """What came of the items, by their keys."""
    done: dict[Key, Record] = {}
    _complete(items, done, lambda record: done.update({record.key: record}), hands, tell)
    return done


def _complete(
    items: list[Item],
    done: Mapping[Key, Record],
    add: Callable[[Record], None],
    hands: Workers,
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


def _records(items: list[Item], hands: Workers) -> Iterator[Record]:
    """What came of each item: of those that ask endpoints here, one after another, while workers run the others."""
    live, rest = [item for item in items if item.live], [item for item in items if not item.live]
    unheard = {item.name for item in live}
    with EndpointConnections() as lines, closing(hands.run(bundles(rest, hands.count))) as others:
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
    answers = metrics([] if record.answers is None else [record.answers])
    if answers is not None and answers.fallback_rate == 1.0:
        codes = ", ".join(f"{origin} {count}" for origin, count in answers.counts.items())
        warnings.warn(
            f"policy {record.key.policy!r}: not one of {answers.decisions} answers of its first episode is the "
            f"endpoint's ({codes}); all figures are those of the fallback. Is it running, and is its address "
            "right? The sweep continues",
            HeronWarning, stacklevel=2,
        )  # fmt: skip


class SweepResult(Measurements):
    """A finished sweep: its figures, and how they are shown, drawn and written.

    Attributes:
        sweep: what was asked.
        points: one for each policy and condition, in the order of the sweep.
        made_by: the version of heron_env that ran it.
        intervals: of figures over these cases, by which all of them were made.
    """

    sweep: Sweep

    def plot(self, cause: str | None = None, policies: Sequence[str] | None = None) -> Figure:
        """Returns against one cause alone, above the gap (synchronous minus this): a matplotlib Figure.

        Args:
            cause: such as "msg_delay"; None: the one with the most conditions.
            policies: only these.

        Raises ConfigError where no condition has a cause alone, and where matplotlib is missing (extra `plots`).
        """
        names = self.policies if policies is None else several(policies, "plot(policies)")
        for name in names:
            if not is_one_of(name, self.policies):
                near = did_you_mean(name, self.policies)
                raise ConfigError(
                    f"plot(policies): {name!r:.60} is not in this sweep, which has {self.policies}.{near}"
                )
        if not names:
            raise ConfigError(f"plot(policies=[]): there is none to draw; name some of {self.policies}")
        if cause is not None:
            require_one_of(f"plot(cause={cause!r:.60})", cause, tuple(CAUSES))
        chosen = cause or max(CAUSES, key=lambda name: len(self.along(names[0], name)))
        return sweep_figure(self, chosen, names)

    def __repr__(self) -> str:
        """One line: `<SweepResult: heron/BatteryGrid-v0, 2 policies x 4 conditions x 3 cases>`."""
        sizes = (self.policies, "policy"), (self.sweep.conditions, "condition"), (self.sweep.cases, "case")
        text = " x ".join(counted(len(things), name) for things, name in sizes)
        return f"<SweepResult: {self.sweep.env.id}, {text}>"

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        return html_table(headings(self), lines(self), words=2, note=legend(self))

    def write(self, folder: str | Path) -> None:
        """Write table.json, table.csv and table.md into the folder."""
        write_tables(self, Path(folder))


def read_sweep(folder: str | Path, *later: str | Path) -> SweepResult:
    """The result of a sweep that is finished. Options that JSON does not know come back as text.

    Its environment is not built; to run it further it must be registered or trusted (`heron_env.trust`). What another
    version of heron_env ran is read, and not continued.

    Args:
        folder: of the sweep.
        later: folders of sweeps that measured some of its policies again, such as with a later version of heron_env:
            what they have takes the place of what was measured before.

    Returns:
        All figures as when it was run; `result.sweep` is what was asked.

    Raises:
        RunFolderError: there is none, it is not finished, its file is of another schema, or a later one is of other
            cases, conditions or policies.
        UnknownEnvironment: its environment is not known here.

    Example: `read_sweep("runs/sweep").point("random").mean`.
    """
    sweep, records, version = _read(path_of(folder, "read_sweep(folder)"))
    versions = [version]
    for path in (path_of(one, "read_sweep(later)") for one in later):
        again, new, version = _read(path)
        for what in ("env.id", "options", "cases", "conditions"):
            if attrgetter(what)(again) != attrgetter(what)(sweep):
                raise RunFolderError(f"{path} holds a sweep with other {what} than {folder}: they can't be read as one")
        if strange := again.policies.keys() - sweep.policies.keys():
            raise RunFolderError(f"{path} has the policies {sorted(strange)}, which {folder} has not: read it alone")
        sweep = replace(
            sweep,
            identities={**sweep.identities, **again.identities},
            policies={**sweep.policies, **again.policies},
        )
        records |= new
        versions.append(version)
    return SweepResult(sweep, records, ", ".join(dict.fromkeys(versions)))


def _read(folder: Path) -> tuple[Sweep, dict[Key, Record], str]:
    """One sweep, its episodes and the version of heron_env that ran it. Raises as `read_sweep` does."""
    path = folder / SETTINGS
    settings = read_settings(path)
    try:
        sweep = _sweep_of(settings, str(path))
    except UnknownEnvironment:
        raise
    except (ConfigError, ValueError) as error:
        raise RunFolderError(f"{path} is damaged ({error}); run the sweep again in another folder") from error
    keys = {item.key for item in sweep.items()}
    records = read_records(folder / RESULTS, keys)
    if len(records) < len(keys):
        raise RunFolderError(
            f"{folder}: {len(records)} of {len(keys)} episodes are done; finish it with the command that began it, and "
            f"heron_env {settings.heron_env}"
        )
    return sweep, records, settings.heron_env


def _sweep_of(settings: SweepSettings, named_by: str) -> Sweep:
    """Raises ConfigError, ValueError for what no sweep has."""
    conditions = tuple(Condition(**condition.amounts()) for condition in settings.conditions)
    policies, pools = settings.policies, {name: tuple(members) for name, members in settings.pools.items()}
    members = [member for name in pools for member in pools[name]]
    for fault, wrong in {
        "conditions that are not what they are called": [c.name for c in conditions]
        != [condition.name for condition in settings.conditions],
        "conditions that do not begin with the synchronous clock, or are there twice": conditions[0] != SYNC
        or len(set(conditions)) < len(conditions),
        f"no policy {NOTHING!r}": NOTHING not in policies,
        "sync_only without a policy, or without any other": not set(settings.sync_only) < set(policies),
        "pools of other policies": not set(members) <= set(policies)
        or len(set(members)) < len(members)
        or not all(pools.values())
        or bool(set(pools) & set(policies)),
    }.items():
        if wrong:
            raise ValueError(fault)
    return Sweep(
        env=registry.spec(settings.env, named_by),
        options=settings.options,
        policies={name: policy_of(text, named_by) for name, text in policies.items()},
        identities=policies,
        conditions=conditions,
        cases=tuple(Case(case.seed, case.options, case.optimum) for case in settings.cases),
        unit=settings.unit,
        dt=settings.dt,
        preset=settings.preset,
        sync_only=tuple(settings.sync_only),
        pools=pools,
        return_of=settings.return_of,
    )
