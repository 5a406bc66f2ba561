"""A sweep: policies compared over cases and conditions, in a folder where it can be resumed; and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heron_env import registry
from heron_env.core.policy import Policies
from heron_env.errors import ConfigError, RunFolderError, UnknownEnvironment, did_you_mean
from heron_env.given import all_of, is_one_of, mapping, path_of, require_one_of, several, whole
from heron_env.lab import benchmark
from heron_env.lab.benchmark import NOTHING, Case
from heron_env.lab.output import Progress, sweep_bar
from heron_env.lab.policies import KINDS, Baseline, PolicySpec, PythonPolicy, identity
from heron_env.lab.sweep.conditions import CAUSES, SYNC, Condition, unique
from heron_env.lab.sweep.play import injected
from heron_env.lab.sweep.records import (
    RESULTS,
    SETTINGS,
    Key,
    Record,
    SweepJournal,
    SweepSettings,
    read_records,
    read_settings,
)
from heron_env.lab.sweep.results import Measurements
from heron_env.lab.sweep.study import Executor, Here, SweepPlan, expanded, require_all_fit
from heron_env.lab.sweep.tables import headings, legend, lines, write_tables
from heron_env.pictures.notebook import counted, html_table
from heron_env.trust import Trust, listed, named, on_behalf_of, trusting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from heron_env.envs.base import HeronEnv


@dataclass(frozen=True, kw_only=True)
class Sweep(SweepPlan):
    """Policies under conditions, to be compared. `Sweep.of(...)` checks and completes; `run` runs it.

    Every policy runs on the synchronous clock first: the gap is measured against it. "do nothing" runs there too, so
    that a gap can be given as a share of the policy's gain.

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
        policies: Mapping[str, Any],
        conditions: Sequence[Condition],
        *,
        cases: Sequence[Case] | int = 5,
        sync_only: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        preset: str | None = None,
        trust: Trust = (),
        env: HeronEnv | None = None,
    ) -> Sweep:
        """Make the sweep of an environment.

        Args:
            env_id: a registered environment, or "module:function" of one's own, or that function.
            policies: by name: words as on the command line (`run:DIR`, `rule:NAME`, `http:URL`, ..., or their short
                forms), an Endpoint, or any picklable PolicySpec with a clear repr; or several of them, such as the run
                folders of five training seeds, which are pooled as one policy.
            conditions: in the order of the table; `SYNC` comes first, asked for or not.
            cases: held-out cases, or how many of the environment's own test cases to take.
            sync_only: names of policies that run on the synchronous clock only.
            options: of the environment.
            trust: other environments that the run folders name, "module:function", where they are not registered.
            env: the environment, where it is built already with these options.

        Raises ConfigError, ScheduleError, RunFolderError for what can't be run, before anything runs.
        """
        env_id = registry.id_of(env_id, "Sweep.of(env_id)")
        spec, options = registry.spec(env_id), mapping({} if options is None else options, "Sweep.of(options)")
        policies = mapping(policies, "Sweep.of(policies)")
        conditions = all_of(conditions, "Sweep.of(conditions)", Condition)
        sync_only = several(sync_only, "Sweep.of(sync_only)")
        env = spec.make(**options) if env is None else env
        if not policies:
            raise ConfigError("Sweep.of(policies={}): give one policy at least, as {'random': 'random'}")
        chosen = benchmark.cases(env, cases) if isinstance(cases, int) else list(all_of(cases, "Sweep.of(cases)", Case))
        if not chosen:
            raise ConfigError(f"Sweep.of(cases={cases!r:.200}): give one Case at least, or how many")
        with trusting(*named(env_id), *listed(trust)):
            specs, pools = expanded(policies)
        believed = (*named(env_id), *listed(trust), *(p.name for p in specs.values() if isinstance(p, PythonPolicy)))
        if not all(is_one_of(name, policies) for name in sync_only) or not set(sync_only) < set(policies):
            raise ConfigError(
                f"sync_only={list(sync_only)}: must be some of the policies {list(policies)}, and leave one at least"
            )
        alone = [member for name in sync_only for member in pools.get(name, (name,))]
        if NOTHING not in specs:
            specs[NOTHING] = Baseline(NOTHING)
            alone.append(NOTHING)
        cases = tuple(benchmark.with_optima(env, chosen, options))
        with trusting(*believed):
            require_all_fit(env, (spec.id, options), specs, cases)
            identities = {name: identity(policy) for name, policy in specs.items()}
        for condition in conditions:
            env.timings_of(condition.schedule(env))
            condition.happenings(env, 0)
        sweep = cls(
            env=spec, options=options, policies=specs, identities=identities,
            conditions=tuple(unique([SYNC, *conditions])), cases=cases, unit=env.benchmark().unit, dt=env.dt,
            preset=preset, sync_only=tuple(dict.fromkeys(alone)), pools=pools, trust=believed,
            injected=bool(injected(env)), return_of=env.hierarchy.ids[0],
        )  # fmt: skip
        if not cases[0].options:
            sweep.worlds.keep(sweep.items()[0], env)
        return sweep

    def run(
        self,
        out: str | Path | None = None,
        *,
        processes: int = 2,
        ray: str | None = None,
        progress: bool | Callable[[Progress], None] = True,
    ) -> SweepResult:
        """Run missing episodes and return the result. It does not depend on processes or interruptions.

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
        executor = executor_of(processes, ray)
        with nullcontext(progress) if callable(progress) else sweep_bar(progress) as tell:
            if out is None:
                return SweepResult(self, self.play(executor, progress=tell))
            items = self.items()
            with SweepJournal(Path(out), self.settings(), [item.key for item in items]) as journal:
                result = SweepResult(self, self.play(executor, journal, items=items, progress=tell))
        result.write(Path(out))
        return result


def executor_of(processes: int, ray: str | None = None) -> Executor:
    """This process, several, or the CPUs of a Ray cluster. Raises ConfigError where no cluster answers."""
    if ray is None and whole(processes, "processes", 1) == 1:
        return Here()
    from heron_env.lab.sweep.executors import Processes, RayCluster

    return Processes(processes) if ray is None else RayCluster(ray)


class SweepResult(Measurements):
    """Result of a finished sweep: figures, tables, plots, files.

    Attributes:
        sweep: its settings.
        points: one for each policy and condition, in the order of the sweep.
        made_by: the version of heron_env that ran it.
        intervals: statistics over these cases.
    """

    sweep: Sweep

    def plot(self, cause: str | None = None, policies: Sequence[str] | None = None) -> Figure:
        """Plot returns against one cause alone, and the gap below (synchronous minus this): a matplotlib Figure.

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
        from heron_env.lab.show.figures import sweep_figure

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
    """Read the result of a finished sweep. Options that JSON does not know come back as text.

    Its environment is not built; to run it further it must be registered or trusted (`heron_env.trust`). Sweeps of
    other versions of heron_env are read, and not continued.

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
    conditions, policies = tuple(settings.conditions), settings.policies
    pools = {name: tuple(members) for name, members in settings.pools.items()}
    members = [member for name in pools for member in pools[name]]
    for fault, wrong in {
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
        policies={name: spec_of_identity(text, named_by) for name, text in policies.items()},
        identities=policies,
        conditions=conditions,
        cases=tuple(settings.cases),
        unit=settings.unit,
        dt=settings.dt,
        preset=settings.preset,
        sync_only=tuple(settings.sync_only),
        pools=pools,
        return_of=settings.return_of,
    )


@dataclass(frozen=True)
class NamedPolicy:
    """A policy in Python, a model, or an object of the program that ran the sweep, of which a file has the identity."""

    text: str
    file: str

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Raises Untrusted where nobody vouches for it; ConfigError where it is not what the sweep ran."""
        kind, _, rest = self.text.partition(" ")
        if kind != "python":
            raise ConfigError(f"the policy {self.text} lives in the program that made the sweep; build it there")
        policy = PythonPolicy(rest.rpartition(" ")[0])
        with on_behalf_of(self.file):
            if policy.identity() != self.text:
                raise ConfigError(f"the file of {policy.name!r} has changed since the sweep; run the sweep again")
            return policy.build(env, seed)


def spec_of_identity(text: str, file: str) -> PolicySpec:
    """From its `identity` in a file."""
    kind, _, rest = text.partition(" ")
    kinds = {"run": "run", "agents": "agents", "fixture": "recorded"}
    if kind == "baseline":
        return Baseline(rest)
    return KINDS[kinds[kind]].spec(rest.rpartition(" ")[0]) if kind in kinds else NamedPolicy(text, file)
