"""`heron envs`, `heron describe` and `heron check`: what environments are there, what is in them, are they right?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heron_env import registry
from heron_env.cli.application import ENVIRONMENT, EnvArgument, EnvOptions, Json, built, known_ids, parsed_options
from heron_env.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from heron_env.lab.show.description import AgentDescription, Description, GroupDescription
    from heron_env.testing import CheckReport, Remark, Subject


MOST_SEEN = 40
"""Lines of a table; the rest is counted."""
FOREKNOWN = (
    "foreknown: may depend on the future, because it is known ahead (a tariff, a calendar, a forecast); "
    "all else describes the past."
)


def envs(as_json: Json = False) -> None:
    """List the registered environments, and those of installed packages, without importing these."""
    from heron_env.lab.output import dumps
    from heron_env.lab.show.description import summary

    declared, faults = registry.installed()
    for fault in faults.values():
        typer.echo(f"warning: {fault}", err=True)
    summaries = {name: summary(name) for name in registry.registered() if name not in declared}
    summaries |= {name: f"of the package {declaration.package}" for name, declaration in declared.items()}
    listed = [{"id": name, "summary": text} for name, text in summaries.items()]
    if as_json:
        typer.echo(dumps(listed))
        return
    width = max(len(entry["id"]) for entry in listed)
    for entry in listed:
        typer.echo(f"{entry['id']:<{width}}  {entry['summary']}")


def describe(
    env: EnvArgument,
    option: EnvOptions = None,
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Write tree and visibility as SVG.")] = None,
    png: Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Write the same picture as PNG.")] = None,
    generated: Annotated[
        bool, typer.Option("--generated", help="Print only the source that its rules are compiled from.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show an environment: its tree, its clock, who decides, and who sees what."""
    from dataclasses import asdict

    from heron_env.lab.output import dumps, terminal
    from heron_env.lab.show.description import describe_environment, generated_source

    if generated:
        typer.echo(generated_source(env, parsed_options(option)))
        return
    pictures = _checked({".svg": svg, ".png": png})
    description, matrix = describe_environment(env, parsed_options(option))
    if pictures:
        from heron_env.lab.show.tree import description_figure, save

        figure = description_figure(description, matrix)
        for path in pictures:
            save(figure, path)
    if as_json:
        typer.echo(dumps(asdict(description)))
    else:
        _print(terminal(soft_wrap=True), description)
    for path in pictures:
        typer.echo(f"picture: {path}", err=True)


def _checked(files: Mapping[str, Path | None]) -> list[Path]:
    """The files that were asked for. Raises ConfigError for a wrong ending."""
    for ending, path in files.items():
        if path is not None and path.suffix.lower() != ending:
            raise ConfigError(f"--{ending[1:]} {str(path)!r}: the name must end with {ending}")
    return [path for path in files.values() if path is not None]


def _print(console: Console, d: Description) -> None:
    from heron_env.lab.output import styled
    from heron_env.lab.show.description import clock_words, protocols, sender_words, tree_lines

    console.print(styled((d.id, "bold"), f"  {d.summary}"))
    console.print(clock_words(d))
    console.print("\nAgents", style="bold")
    for line in tree_lines(d.agents):
        shown = f"  {'  ' * line.depth}{line.name:<{24 - 2 * line.depth}}"
        if line.agent is None:
            console.print(shown.rstrip())
            continue
        more = [text for text in (protocols(line.agent), sender_words(line.agent, d.exchange)) if text]
        console.print("; ".join([f"{shown} {_agent_text(line.agent)}", *more]))
    _print_visibility(console, d)
    for name, group in d.groups.items():
        _print_group(console, name, group)
    if any(column.foreknown for group in d.groups.values() for column in group.observation):
        console.print(FOREKNOWN, style="dim")


def _agent_text(agent: AgentDescription) -> str:
    from heron_env.lab.show.description import delays, ticks

    parts = [agent.role, ticks(agent), delays(agent)] if agent.role != "watches" else [agent.role]
    return f"level {agent.level}  {', '.join(part for part in parts if part)}"


def _print_visibility(console: Console, d: Description) -> None:
    from heron_env.lab.output import styled
    from heron_env.lab.show.description import BY, HEADING, as_text, sight_lines

    console.print(styled(("\nWho sees what", "bold"), f", by {BY[d.seen.by]}\n"))
    lines = list(sight_lines(d))
    heading, *rows = as_text([HEADING, *lines[:MOST_SEEN]], console.width)
    console.print(heading, style="dim")
    for row in rows:
        console.print(row)
    if len(lines) > MOST_SEEN:
        console.print(f"  and {len(lines) - MOST_SEEN} more lines; --json has them all")


def _print_group(console: Console, name: str, group: GroupDescription) -> None:
    from rich import box
    from rich.table import Table

    from heron_env.lab.output import styled

    shown = ", ".join(group.agents[:6]) + (f" and {len(group.agents) - 6} more" if len(group.agents) > 6 else "")
    console.print(styled((f"\n{name}", "bold"), f": {shown}"))
    console.print(f"  does: {group.action}")
    if not group.observation:
        console.print("  sees: nothing")
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
    for heading in (f"{group.agents[0]} sees", "unit", "low", "high", ""):
        table.add_column(heading, justify="right" if heading in ("low", "high") else "left")
    for column in group.observation[:MOST_SEEN]:
        marks = ", ".join(word for word in ("foreknown" * column.foreknown, column.told) if word)
        table.add_row(column.name, column.unit, f"{column.low:g}", f"{column.high:g}", marks)
    console.print(table)
    if len(group.observation) > MOST_SEEN:
        console.print(f"  and {len(group.observation) - MOST_SEEN} more; --json has them all")


COLOURS = {"passed": "green", "warning": "yellow", "skipped": "bright_black", "failed": "bold red"}


def check(
    what: Annotated[
        str,
        typer.Argument(
            metavar="ENV or FILE.yaml",
            help=f"{ENVIRONMENT}; or a YAML file: a world, or only its `observability:` or `agent_injection:`.",
            autocompletion=known_ids,
        ),
    ],
    env: Annotated[str | None, typer.Option(help="For a file: check its names against this environment.")] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Name of a check; may be repeated.")] = None,
    steps: Annotated[int, typer.Option(min=2, help="Control steps of each rollout.")] = 24,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of all episodes.")] = 0,
    timeout: Annotated[float, typer.Option(min=1.0, help="Seconds for rollouts in other processes.")] = 60.0,
    strict: Annotated[bool, typer.Option("--strict", help="Treat warnings as failures.")] = False,
    option: EnvOptions = None,
    as_json: Json = False,
) -> None:
    """Run the conformance tests on an environment; each failure says how to fix it. Or check a YAML file.

    Exit code 1 if anything failed; warnings count with --strict. For a file it prints its contents and who sees what.
    """
    from heron_env.cli.configuration import check_configuration, is_configuration

    if is_configuration(what):
        return check_configuration(what, env, option, as_json)
    if env is not None:
        raise ConfigError(f"--env is for a YAML file; {what!r:.60} is checked as it is")
    from heron_env.lab.output import dumps, terminal
    from heron_env.testing import Check, check_env

    options = parsed_options(option)
    if ":" not in what:
        built(what, options)  # an unknown option is the caller's mistake, not the environment's
    with terminal(stderr=True).status("") as status:
        report = check_env(
            what, seed=seed, steps=steps, only=only, options=options, timeout=timeout, strict=strict,
            extra=(Check("gymnasium", joint_view, ("same-seed",)),),
            progress=lambda name: status.update(f"{name} ..."),
        )  # fmt: skip
    typer.echo(dumps(report.to_dict())) if as_json else _print_findings(terminal(), report)
    raise typer.Exit(0 if report.ok else 1)


def joint_view(subject: Subject) -> Iterator[Remark]:
    """The joint view passes Gymnasium's own check."""
    from gymnasium.utils.env_checker import check_env

    from heron_env.adapters.gymnasium import JointEnv
    from heron_env.errors import ConfigError
    from heron_env.testing import Remark, Status
    from heron_env.testing.interface import begun, quietly

    try:
        joint = JointEnv(begun(subject))
    except ConfigError as error:
        yield Remark(Status.SKIPPED, str(error))
        return
    problem, advice = quietly(lambda: check_env(joint, skip_render_check=True), "gymnasium")
    if problem is not None:
        yield Remark(
            Status.FAILED,
            f"{type(problem).__name__}: {problem}",
            "Gymnasium's word; reset() and step() as HeronEnv has them pass it, so look at what overrides them",
        )
    elif advice:
        yield Remark(Status.WARNING, advice[0], "Gymnasium's advice; harmless where you mean it so")


def _print_findings(console: Console, report: CheckReport) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console.print(report.target, style="bold")
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for finding in report.findings:
        colour = COLOURS[finding.status.value]
        words = Text(finding.what)
        if finding.mend:
            words.append("\nmend: ", "italic").append(finding.mend)
        elif finding.status.value == "passed":
            words.no_wrap, words.overflow = True, "ellipsis"
        table.add_row(Text(finding.status.value, colour), finding.check, words)
    console.print(Padding(table, (0, 0, 0, 2)))
    console.print(report.summary, style="green" if report.ok else "bold red")
