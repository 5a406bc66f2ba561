"""The result of a sweep: its figures, how they are drawn and written, and how they are read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from heron_env import registry
from heron_env.errors import ConfigError, RunFolderError, UnknownEnvironment, did_you_mean
from heron_env.given import is_one_of, path_of, require_one_of, several
from heron_env.lab.benchmark import NOTHING
from heron_env.lab.policies import policy_of
from heron_env.lab.sweep.conditions import CAUSES, SYNC
from heron_env.lab.sweep.records import RESULTS, SETTINGS, Key, Record, SweepSettings, read_records, read_settings
from heron_env.lab.sweep.results import Measurements
from heron_env.lab.sweep.study import Sweep
from heron_env.lab.sweep.tables import headings, legend, lines, write_tables
from heron_env.pictures.notebook import counted, html_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    conditions, policies, pools = (
        tuple(settings.conditions),
        settings.policies,
        {name: tuple(members) for name, members in settings.pools.items()},
    )
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
        policies={name: policy_of(text, named_by) for name, text in policies.items()},
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
