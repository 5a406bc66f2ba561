"""`heron check`: what we ask of our own environments, asked of any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from heron_env.cli.application import EnvOptions, Json, built, parsed_options

if TYPE_CHECKING:
    from rich.console import Console

    from heron_env.testing import CheckReport, Remark, Subject

COLOURS = {"passed": "green", "warning": "yellow", "skipped": "bright_black", "failed": "bold red"}


def check(
    env: Annotated[str, typer.Argument(help="An id, or module:Class or module:function of your own.")],
    only: Annotated[list[str] | None, typer.Option("--only", help="Name of a check; may be repeated.")] = None,
    steps: Annotated[int, typer.Option(min=2, help="Length of the rollouts, control steps.")] = 24,
    seed: Annotated[int, typer.Option(min=0, help="Of all episodes.")] = 0,
    timeout: Annotated[float, typer.Option(min=1.0, help="For rollouts in other processes, s.")] = 60.0,
    strict: Annotated[bool, typer.Option("--strict", help="Let warnings be failures.")] = False,
    option: EnvOptions = None,
    as_json: Json = False,
) -> None:
    """Check that an environment keeps every law; each failure says how to mend it.

    Exit code 1 if anything failed; warnings count with --strict.
    """
    from heron_env.lab.output import dumps, terminal
    from heron_env.testing import Check, check_env

    errors = terminal(stderr=True)
    options = parsed_options(option)
    if ":" not in env:
        built(env, options)  # an unknown option is the caller's mistake, not the environment's
    with errors.status("") as status:
        report = check_env(
            env, seed=seed, steps=steps, only=only, options=options, timeout=timeout, strict=strict,
            extra=(Check("gymnasium", joint_view, ("same-seed",)),),
            progress=lambda name: status.update(f"{name} ..."),
        )  # fmt: skip
    if as_json:
        typer.echo(dumps(report.to_dict()))
    else:
        _print(terminal(), report)
    raise typer.Exit(0 if report.ok else 1)


def joint_view(subject: Subject) -> Iterator[Remark]:
    """The joint view passes Gymnasium's own check."""
    from gymnasium.utils.env_checker import check_env

    from heron_env.adapters.gymnasium import JointEnv
    from heron_env.errors import ConfigError
    from heron_env.testing import Remark, Status
    from heron_env.testing.interface import quietly

    try:
        joint = JointEnv(subject.build())
    except ConfigError as error:
        yield Remark(Status.SKIPPED, str(error))
        return
    problem, said = quietly(lambda: check_env(joint, skip_render_check=True), "gymnasium")
    if problem is not None:
        yield Remark(
            Status.FAILED,
            f"{type(problem).__name__}: {problem}",
            "Gymnasium's word; reset() and step() as HeronEnv has them pass it, so look at what overrides them",
        )
    elif said:
        yield Remark(Status.WARNING, said[0], "Gymnasium's advice; harmless where you mean it so")


def _print(console: Console, report: CheckReport) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console.print(report.target, style="bold")
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for found in report.findings:
        colour = COLOURS[found.status.value]
        told = Text(found.what)
        if found.mend:
            told.append("\nmend: ", "italic").append(found.mend)
        elif found.status.value == "passed":
            told.no_wrap, told.overflow = True, "ellipsis"
        table.add_row(Text(found.status.value, colour), found.check, told)
    console.print(Padding(table, (0, 0, 0, 2)))
    console.print(report.summary, style="green" if report.ok else "bold red")
