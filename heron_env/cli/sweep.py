"""`heron sweep` and `heron report`: how much of a return survives the network, and what eats the rest."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heron_env.cli.application import ENVIRONMENT, Allowed, EnvOptions, Json, Trusted, built, on_behalf, parsed_options
from heron_env.errors import ConfigError, HeronWarning, WorkerLost
from heron_env.files.reading import is_file, is_folder
from heron_env.lab.output import left, watched
from heron_env.registry import names_environment

if TYPE_CHECKING:
    from heron_env.lab.output import Progress
    from heron_env.lab.runs import RunFolder
    from heron_env.lab.sweep.conditions import Condition
    from heron_env.lab.sweep.presets import Preset
    from heron_env.lab.sweep.sweep import Sweep, SweepResult


def finished(sweep: Sweep, folder: Path | None, processes: int, ray: str | None = None) -> SweepResult:
    """Run it. What the user, a disk or a lost worker ends tells what is kept."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", HeronWarning)
            warnings.showwarning = lambda message, *_: typer.echo(f"warning: {message}", err=True)
            if ray is not None and folder is not None:  # Ray may end this process without an error
                typer.echo(f"episodes are stored in {folder} as they end; the same command resumes there", err=True)
            return sweep.run(folder, processes=processes, ray=ray, progress=True if watched() else _Lines())
    except (KeyboardInterrupt, OSError, WorkerLost) as error:
        for note in _kept(folder):
            error.add_note(note)
        raise


def _kept(folder: Path | None) -> list[str]:
    """What to say of a sweep that did not come to its end."""
    from heron_env.lab.sweep.records import RESULTS

    if folder is None or not is_file(folder / RESULTS):
        return []
    return [f"finished episodes are stored in {folder}: run the same command again to resume"]


class _Lines:
    """A line on stderr for every tenth of the episodes."""

    def __init__(self) -> None:
        self.tenth = -1

    def __call__(self, progress: Progress) -> None:
        tenth = 10 * progress.done // max(progress.total, 1)
        if tenth > self.tenth:
            self.tenth = tenth
            typer.echo(f"{progress.done} of {progress.total} episodes{left(progress, ', ')}", err=True)


QUICK = "quick"
TRAINED = "trained"
Pool = Annotated[
    bool,
    typer.Option("--pool", help="Pool the run folders, training seeds of one recipe, as one policy named 'trained'."),
]
Processes = Annotated[int, typer.Option(min=1, help="Worker processes; the numbers do not depend on it.")]


WhatArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ENV or POLICY]...",
        help=f"{ENVIRONMENT}; run folders, NAME=RUN,RUN,... (training seeds of one algorithm), names of baselines, of "
        "Python (module:policy, path.py:policy; after the environment), [NAME=]http(s)://HOST:PORT/... (an endpoint), "
        "an agents.yaml, fixtures (.jsonl, .json), models (.zip of Stable-Baselines3, .onnx). Default: the preset's "
        "environment, and its strongest baseline.",
    ),
]
PresetOption = Annotated[
    str | None,
    typer.Option(
        help="quick (default), delays, reference, scada, decomposition, bursts or faults; may be joined by axes."
    ),
]
AxisOption = Annotated[
    list[str] | None,
    typer.Option(
        "--axis",
        metavar="CAUSE=A,B,...",
        help="Amounts of one cause: obs_delay, msg_delay, act_delay (s), jitter, loss, tick_ratio, noise; "
        "as act_delay=0,30,60, or by level as msg_delay=0,field:0.05/system:0.2; or disturbances=NAME,..., sets of "
        "the environment. May be repeated.",
    ),
]
ProductOption = Annotated[bool, typer.Option("--product", help="All combinations of the axes, not one after another.")]
SweepCasesOption = Annotated[int | None, typer.Option(min=1, help="Held-out cases; default: the preset's, else 5.")]
CasesOption = Annotated[int, typer.Option(min=1, help="Held-out cases (days).")]
RepeatsOption = Annotated[int, typer.Option(min=1, help="Seeds for each case.")]
SplitOption = Annotated[str, typer.Option(help="test or validation; tune on validation only.")]
SeedOption = Annotated[
    int, typer.Option(min=0, help="Added to the cases' seeds: other draws of the same days, without known optima.")
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        help="Folder of results and tables; a sweep begun there is resumed. Default: runs/sweep-PRESET-NAMES."
    ),
]
RayOption = Annotated[
    str | None,
    typer.Option(
        metavar="auto|HOST:PORT",
        help="A running Ray cluster (extra `ray`): its CPUs take the place of the processes; auto: this machine's.",
    ),
]


def sweep(
    what: WhatArgument = None,
    preset: PresetOption = None,
    axis: AxisOption = None,
    product: ProductOption = False,
    cases: SweepCasesOption = None,
    seeds: Annotated[int | None, typer.Option(min=1, hidden=True, help="The name of --cases in 0.2.0.")] = None,
    repeats: RepeatsOption = 1,
    split: SplitOption = "test",
    seed: SeedOption = 0,
    out: OutOption = None,
    pool: Pool = False,
    processes: Processes = 2,
    ray: RayOption = None,
    option: EnvOptions = None,
    allow: Allowed = None,
    trust: Trusted = None,
    as_json: Json = False,
) -> None:
    """Run policies under networks with delay, loss, jitter and noise; report what each costs.

    If interrupted, run the same command again: it resumes. Naming an address allows its host and port, no others.
    Only registered environments, and those that you name here or with --trust, are run.
    """
    from heron_env.lab.policies import display_names
    from heron_env.lab.sweep.presets import preset as named

    chosen = named(preset or QUICK) if preset or not axis else None
    options = parsed_options(option)
    asked = AskedSweep(
        what or [], chosen, options, cases=cases or seeds, repeats=repeats, split=split, shift=seed, axes=axis or [],
        product=product, pool=pool,
    )  # fmt: skip
    names = [re.sub(r"\W+", "-", Path(name).name).strip("-") for name in display_names(what or [])]
    folder = out or Path("runs") / "-".join(["sweep", chosen.name if chosen else "axes", *names])
    show(finished(asked.sweep(), folder, processes, ray), [folder / "table.md", folder / "table.json"], as_json)


@dataclass(frozen=True)
class AskedSweep:
    """What the words of `heron sweep` ask for.

    Attributes:
        names: environment, run folders and other policies.
        cases: how many; None: the preset's.
        repeats, split: of the cases, as `benchmark.cases` draws them.
        shift: is added to their seeds.
        axes: amounts of causes, as `parsed_axis` reads them.
        product: are the axes a product?
        pool: are run folders pooled as one policy?
    """

    names: Sequence[str]
    preset: Preset | None
    options: dict[str, Any]
    cases: int | None
    repeats: int
    split: str
    shift: int
    axes: list[str]
    product: bool
    pool: bool

    def sweep(self) -> Sweep:
        """The sweep itself. Raises ConfigError."""
        from heron_env.lab import benchmark
        from heron_env.lab.sweep.sweep import Sweep

        of_axes, runs, envs, chosen = self._of_axes(), run_folders(self.names), self._environments(), self.preset
        policies = [name for name in self.names if name not in envs]
        env_id = self._env_id(envs, runs, policies)
        of_preset = chosen.options if chosen and chosen.env_id == env_id else {}
        if runs:
            on_behalf(runs[0])
            of_preset = {**runs[0].config.env_options, **of_preset}
        options = {**of_preset, **self.options}
        env = built(env_id, options)
        if not policies:
            policies = [env.benchmark().strongest or "random"]
        conditions = [*(chosen.conditions_in(env) if chosen else []), *of_axes]
        count = self.cases or (chosen.cases if chosen else 5)
        drawn = benchmark.cases(env, count, split=self.split, repeats=self.repeats)
        return Sweep.of(
            env_id, named_policies(policies, self.pool), conditions, options=options,
            cases=[replace(case, seed=case.seed + self.shift) for case in drawn],
            preset=chosen.name if chosen else None,
        )  # fmt: skip

    def _of_axes(self) -> list[Condition]:
        from heron_env.lab.sweep.conditions import along, grid, parsed_axis

        parsed = [parsed_axis(text) for text in self.axes]
        amounts: dict[str, Any] = dict(parsed)
        if len(amounts) < len(parsed):
            raise ConfigError(f"--axis {self.axes}: name each cause once, with all its amounts")
        return (grid if self.product else along)(**amounts) if amounts else []

    def _environments(self) -> list[str]:
        from heron_env.lab.policies import names_python

        found = [name for name in self.names if _is_environment(name)]
        return [name for number, name in enumerate(found) if not (number and names_python(name))]

    def _env_id(self, envs: list[str], runs: list[RunFolder], policies: list[str]) -> str:
        """The environment that is named, that of the runs, or of the preset. Raises ConfigError."""
        from heron_env.lab.policies import names_external

        if len(envs) > 1:
            raise ConfigError(f"{envs}: one environment at a time")
        of_runs = runs[0].env_id if runs and not envs else None
        env_id = next(iter(envs), of_runs or (self.preset.env_id if self.preset else None))
        if self.product and not self.axes:
            raise ConfigError("--product: of what? Give each --axis")
        if env_id is None:
            unknown = [name for name in policies if not names_external(name)]
            missing = f"{unknown}: no such run folder; " if unknown else ""
            raise ConfigError(f"{missing}name an environment (`heron envs` lists them), a run folder, or a --preset")
        return env_id


def _is_environment(name: str) -> bool:
    from heron_env.lab.policies import names_external, names_run

    named_otherwise = "=" in name or ".py:" in name or names_external(name) or names_run(name)
    return names_environment(name) and not named_otherwise


def members(name: str) -> list[str]:
    """Of `NAME=RUN,RUN*,...` the run folders, one or more; of a folder itself; of anything else nothing.

    Raises ConfigError where a part names no folder.
    """
    from heron_env.lab.policies import NAME, names_endpoint, names_run

    given, equals, parts = name.partition("=")
    if not (equals and NAME.fullmatch(given)) or names_endpoint(name) or names_run(name):
        return [name] if names_run(name) else []
    found = {part: [part] if names_run(part) else sorted(filter(is_folder, glob(part))) for part in parts.split(",")}
    for part, folders in found.items():
        if not folders:
            raise ConfigError(
                f"{given}={parts}: {part!r} is no run folder; write NAME=RUN,RUN,... or NAME=runs/x-seed*"
            )
    return [folder for folders in found.values() for folder in folders]


def run_folders(names: Sequence[str]) -> list[RunFolder]:
    """Those of the names that are folders. Raises RunFolderError for a folder of something else."""
    from heron_env.lab.runs import open_run

    return [open_run(folder) for name in names for folder in members(name)]


def named_policies(names: Sequence[str], pool: bool) -> dict[str, str | list[str]]:
    """Each under its own name, an endpoint under its host; the run folders as one policy where they are pooled.

    Raises ConfigError.
    """
    from heron_env.lab.policies import display_names, names_run

    folders = [name for name in names if names_run(name)]
    runs = {name: members(name) for name in names if name not in folders}
    groups = [(name.partition("=")[0], of if len(of) > 1 else of[0]) for name, of in runs.items() if of]
    others = display_names(name for name in names if not runs.get(name) and not (pool and name in folders))
    named = dict(groups)
    if len(named) < len(groups) or named.keys() & others.keys():
        raise ConfigError(f"{[name for name, _ in groups]} beside {list(others)}: give each policy a name of its own")
    if not pool:
        return {**named, **others}
    if len(folders) < 2:
        raise ConfigError(f"--pool: two run folders at least, of one recipe and several seeds; given are {folders}")
    return {TRAINED: folders, **named, **others}


def show(result: SweepResult, files: Sequence[Path], as_json: bool) -> None:
    """The table as JSON, or for people with what was found and the files that tell more."""
    from heron_env.lab.output import terminal
    from heron_env.lab.sweep.tables import to_json, to_rich
    from heron_env.lab.sweep.words import finding

    if as_json:
        typer.echo(to_json(result), nl=False)
        return
    console = terminal()
    console.print(to_rich(result))
    for sentence in finding(result):
        console.print(sentence)
    if files:
        typer.echo(", ".join(map(str, files)))


def report(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Folders of `heron sweep`, `heron margin`, `heron train` and `heron trace`, of one environment, in "
            "any order.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for report.html and its figures.")] = Path("runs/report"),
    trust: Trusted = None,
    as_json: Json = False,
) -> None:
    """Write report.html, which needs nothing else, and each figure as SVG and PNG beside it.

    What isn't registered is neither built nor run, unless it is trusted: the page lists what is missing.
    """
    from heron_env.lab.output import dumps
    from heron_env.lab.show.document import PAGE, write_report
    from heron_env.lab.show.report import NOT_DRAWN, read_sources, report_of

    made = report_of(read_sources(runs))
    files = write_report(out, made)
    if as_json:
        typer.echo(dumps({"files": {name: str(path) for name, path in files.items()}, "finding": list(made.finding)}))
        return
    for sentence in made.finding:
        typer.echo(sentence)
    for title, block in ((section.title, block) for section in made.parts for block in section.blocks):
        if isinstance(block, str) and block.startswith(NOT_DRAWN):
            typer.echo(f"{title}: {block}", err=True)
    typer.echo(f"wrote {files[PAGE]} and {len(files) - 1} files of figures beside it")
