"""A finished sweep, read back from its folder: for figures and reports, which run nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from heron_env import registry
from heron_env.core.policy import Policies
from heron_env.errors import ConfigError, RunFolderError, UnknownEnvironment
from heron_env.given import path_of
from heron_env.lab.benchmark import NOTHING, Case
from heron_env.lab.gap.conditions import SYNC, Condition
from heron_env.lab.gap.journal import RESULTS, read_records
from heron_env.lab.gap.records import SETTINGS, Key, Record, SweepSettings, read_settings
from heron_env.lab.gap.results import SweepResult
from heron_env.lab.gap.sweep import Sweep
from heron_env.lab.policies import AgentsFile, Baseline, FixturePolicy, PolicySpec, TrainedRun

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv


@dataclass(frozen=True)
class DescribedPolicy:
    """A policy that was an object of the program that ran the sweep; only its description is left."""

    text: str

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Raises ConfigError."""
        raise ConfigError(f"the policy {self.text} lives in the program that made the sweep; build it there")


def read_sweep(folder: str | Path, *later: str | Path) -> SweepResult:
    """The result of a sweep that is finished. Options that JSON does not know come back as text.

    Its environment is not built; to run it further it must be registered or trusted (`heron_env.trust`). What another
    version of heron_env ran is read, and not gone on with.

    Args:
        folder: of the sweep.
        later: folders of sweeps that measured some of its policies again, such as with a later version of heron_env:
            what they have takes the place of what was measured before.

    Raises RunFolderError where there is none, it is not finished, its file is of another schema, or a later one is of
    other cases, conditions or policies; UnknownEnvironment.
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
        sweep = _sweep(settings, str(path))
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


def _sweep(settings: SweepSettings, named_by: str) -> Sweep:
    """Raises ConfigError, ValueError for what no sweep has."""
    conditions = tuple(Condition(**told.amounts()) for told in settings.conditions)
    policies, pools = settings.policies, {name: tuple(members) for name, members in settings.pools.items()}
    members = [member for name in pools for member in pools[name]]
    for fault, wrong in {
        "conditions that are not what they are called": [c.name for c in conditions]
        != [told.name for told in settings.conditions],
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
        policies={name: _policy(text) for name, text in policies.items()},
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


def _policy(text: str) -> PolicySpec:
    """From what `Sweep.settings` says of it."""
    kind, _, rest = text.partition(" ")
    path = rest.rpartition(" ")[0]
    match kind:
        case "run":
            return TrainedRun(path)
        case "agents":
            return AgentsFile(path)
        case "fixture":
            return FixturePolicy(path)
    return Baseline(rest) if kind == "baseline" else DescribedPolicy(text)
