"""`heron envs` and `heron describe`: which environments there are, and what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from heron_env import registry
from heron_env.cli.application import EnvOptions, Json, parsed_options

if TYPE_CHECKING:
    from rich.console import Console

    from heron_env.cli.description import Agent, Description, Group


def envs(as_json: Json = False) -> None:
    """List the registered environments."""
    from heron_env.cli.description import summary
    from heron_env.evaluation.table import dumps

    listed = [{"id": name, "summary": summary(name)} for name in registry.registered()]
    if as_json:
        typer.echo(dumps(listed))
        return
    width = max(len(entry["id"]) for entry in listed)
    for entry in listed:
        typer.echo(f"{entry['id']:<{width}}  {entry['summary']}")


def describe(
    env: Annotated[str, typer.Argument(help="An id as `heron envs` lists them.")],
    option: EnvOptions = None,
    as_json: Json = False,
) -> None:
    """Show an environment: its tree, its clock, who decides, and who sees what."""
    from dataclasses import asdict

    from rich.console import Console

    from heron_env.cli.description import describe_environment
    from heron_env.evaluation.table import dumps

    description = describe_environment(env, parsed_options(option))
    if as_json:
        typer.echo(dumps(asdict(description)))
        return
    _print(Console(highlight=False, soft_wrap=True), description)


MOST_AGENTS = 40
"""Lines of the tree; the rest is counted."""


def _print(console: Console, d: Description) -> None:
    console.print(f"[bold]{d.id}[/bold]  {d.summary}")
    substeps = f"{d.physics_substeps} physics substeps of {d.dt / d.physics_substeps:g} s"
    console.print(f"control step {d.dt:g} s, {substeps}; state: {d.state_size} numbers")
    console.print("\n[bold]Agents[/bold]")
    for agent in d.agents[:MOST_AGENTS]:
        console.print(_agent_line(agent))
    if len(d.agents) > MOST_AGENTS:
        console.print(f"  and {len(d.agents) - MOST_AGENTS} more")
    for name, group in d.groups.items():
        _print_group(console, name, group)


def _agent_line(agent: Agent) -> str:
    delays = [f"{name} {value:g} s" for name, value in agent.delays.items() if value]
    ticks = f"every {agent.tick_interval:g} s" + (f" from {agent.phase:g} s" if agent.phase else "")
    what = ", ".join([agent.role, ticks, *delays]) if agent.role != "watches" else agent.role
    return f"  {'  ' * agent.depth}{agent.id:<{24 - 2 * agent.depth}} level {agent.level}  {what}"


def _print_group(console: Console, name: str, group: Group) -> None:
    from rich import box
    from rich.table import Table

    shown = ", ".join(group.agents[:6]) + (f" and {len(group.agents) - 6} more" if len(group.agents) > 6 else "")
    console.print(f"\n[bold]{name}[/bold]: {shown}")
    console.print(f"  does: {group.action}")
    if not group.observation:
        console.print("  sees: nothing")
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
    for heading in (f"{group.agents[0]} sees", "unit", "low", "high"):
        table.add_column(heading, justify="right" if heading in ("low", "high") else "left")
    for column in group.observation:
        table.add_row(column.name, column.unit, f"{column.low:g}", f"{column.high:g}")
    console.print(table)
