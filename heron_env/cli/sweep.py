"""`heron sweep` and `heron report`: how much of a return survives the network, and what eats the rest."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heron_env.cli.application import ENVIRONMENT, POLICY, Allowed, EnvOptions, Json, Trusted, built, parsed_options
from heron_env.errors import ConfigError, HeronWarning, WorkerLost
from heron_env.files.reading import is_file
from heron_env.lab.output import left, watched

if TYPE_CHECKING:
    from heron_env.lab.output import Progress
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
        for note in _resume_notes(folder):
            error.add_note(note)
        raise


def _resume_notes(folder: Path | None) -> list[str]:
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
Pool = Annotated[
    bool,
    typer.Option("--pool", help="Pool the run folders, training seeds of one recipe, as one policy named 'trained'."),
]
Processes = Annotated[int, typer.Option(min=1, help="Worker processes; results do not depend on it.")]


WhatArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ENV or POLICY]...",
        help=f"{ENVIRONMENT}; {POLICY}; NAME=RUN,RUN,... (training seeds of one algorithm). Names of Python come after "
        "the environment. Default: the preset's environment, and its strongest baseline.",
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
        help="Amounts of one cause: obs_delay, msg_delay, act_delay, thinking (s), jitter, loss, tick_ratio, noise, "
        "rate (bytes/s that all links share); as act_delay=0,30,60, or by level as msg_delay=0,field:0.05/system:0.2; "
        "or disturbances=NAME,..., sets of the environment. May be repeated.",
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
PlanOption = Annotated[
    int | None,
    typer.Option(
        min=2,
        metavar="K",
        help="Functions (policy.py:act) answer several actions, [k, size]: send the first K; a sweep also runs "
        "'act one action', the first alone.",
    ),
]
MergeOption = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,...",
        help="With --plan, what becomes of a plan when the next arrives: drop (default), restart, append, blend, "
        "ensemble; or freeze: none comes before it has ended. Each is a policy of its own, 'act drop'.",
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
    plan: PlanOption = None,
    merge: MergeOption = None,
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
    chosen = None
    if preset or not axis:
        from heron_env.lab.sweep.presets import preset as named

        chosen = named(preset or QUICK)
    of_axes = axes_of(axis or [], product)
    study, shown = resolve(
        what or [], chosen, of_axes, parsed_options(option), cases or seeds, repeats, split, seed, pool, plan, merge
    )
    names = [re.sub(r"\W+", "-", Path(name).name).strip("-") for name in shown]
    folder = out or Path("runs") / "-".join(["sweep", chosen.name if chosen else "axes", *names])
    show(finished(study, folder, processes, ray), [folder / "table.md", folder / "table.json"], as_json)


def axes_of(texts: list[str], product: bool) -> list[Condition]:
    """The conditions of `--axis`, one axis after another or as a product. Raises ConfigError."""
    from heron_env.lab.sweep.conditions import along, grid, parsed_axis

    parsed = [parsed_axis(text) for text in texts]
    amounts: dict[str, Any] = dict(parsed)
    if len(amounts) < len(parsed):
        raise ConfigError(f"--axis {texts}: name each cause once, with all its amounts")
    if product and not texts:
        raise ConfigError("--product: of what? Give each --axis")
    return (grid if product else along)(**amounts) if amounts else []


def resolve(
    what: Sequence[str],
    preset: Preset | None,
    of_axes: list[Condition],
    options: dict[str, Any],
    cases: int | None,
    repeats: int,
    split: str,
    shift: int,
    pool: bool,
    plan: int | None = None,
    merge: str | None = None,
) -> tuple[Sweep, list[str]]:
    """What the words ask for, each run opened and the environment built once; and the names of what they name.

    Args:
        what: environment, run folders and other policies.
        cases: how many; None: the preset's.
        repeats, split: of the cases, as `benchmark.cases` draws them.
        shift: is added to their seeds.
        pool: are run folders pooled as one policy?
        plan, merge: as of `planned`.

    Raises ConfigError, RunFolderError.
    """
    from heron_env.lab import benchmark
    from heron_env.lab.planning import planned
    from heron_env.lab.policies import Words
    from heron_env.lab.sweep.sweep import Sweep

    words = Words.of(what, pool=pool)
    policies = planned(words.policies, plan, merge)
    env_id, run_options = words.environment_or(preset.env_id if preset else None)
    of_preset = preset.options if preset and preset.env_id == env_id else {}
    options = {**run_options, **of_preset, **options}
    env = built(env_id, options)
    selected = benchmark.cases(env, cases or (preset.cases if preset else 5), split=split, repeats=repeats)
    strongest = env.benchmark().strongest or benchmark.RANDOM
    sweep = Sweep.of(
        env_id, policies or {strongest: strongest}, [*(preset.conditions_in(env) if preset else []), *of_axes],
        options=options,
        cases=[replace(case, seed=case.seed + shift) for case in selected], preset=preset.name if preset else None,
        env=env,
    )  # fmt: skip
    return sweep, [*words.environments, *words.names]


def show(result: SweepResult, files: Sequence[Path], as_json: bool) -> None:
    """The table as JSON, or for people with what was found and the files that tell more."""
    from heron_env.lab.output import terminal
    from heron_env.lab.sweep.sentences import finding
    from heron_env.lab.sweep.tables import to_json, to_rich

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
    """Write report.html, one file that loads nothing, and each figure as SVG and PNG.

    Environments that are neither registered nor trusted are not run: the page lists what is missing.
    """
    from heron_env.lab.output import dumps
    from heron_env.lab.show.document import NOT_DRAWN, PAGE, write_report
    from heron_env.lab.show.report import read_sources, report_of

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
    typer.echo(f"wrote {files[PAGE]} and {len(files) - 1} files of figures")
