"""`heron validate`: is a configuration file right, what does it declare, and what of it is surely not meant?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heron_env.cli.application import EnvOptions, Json, built, parsed_options
from heron_env.errors import ConfigError, DeclarationError

if TYPE_CHECKING:
    from heron_env.declared.injected import AgentInjectionConfig
    from heron_env.declared.simulation_config import SimulationConfig
    from heron_env.envs.base import HeronEnv
    from heron_env.files.yaml_file import YamlFile

MOST_LINES = 40
"""Lines of who sees what; the rest is counted."""


@dataclass(frozen=True)
class Validity:
    """What a valid file declares, in words."""

    file: str
    what: str
    agents: list[str] = field(default_factory=list)
    agent_variables: dict[str, str] = field(default_factory=dict)
    global_variables: dict[str, str] = field(default_factory=dict)
    sees: dict[str, str] = field(default_factory=dict)
    external: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def validate(
    config: Annotated[
        Path, typer.Argument(help="A YAML file: a world, or only its `observability:` or `agent_injection:`.")
    ],
    env: Annotated[str | None, typer.Option(help="Check the file's names against this environment instead.")] = None,
    option: EnvOptions = None,
    as_json: Json = False,
) -> None:
    """Check a configuration file, and tell what is in it and who sees what."""
    from heron_env.files.yaml_file import YamlFile

    if option and env is None:
        raise ConfigError("--option is for an environment: name it with --env")
    file = YamlFile.read(config)
    report = _of_environment(file, env, option) if env is not None else _of_file(file)
    if as_json:
        from heron_env.lab.output import dumps

        typer.echo(dumps({"valid": True, **asdict(report)}))
        return
    _print(report)


def _of_file(file: YamlFile) -> Validity:
    from heron_env.cli import matrix_in_words
    from heron_env.declared.injected import injection_of, is_alone
    from heron_env.declared.simulation_config import SimulationConfig
    from heron_env.observability.config import observability_of

    if is_alone(file):
        return Validity(file.name, "which agents are played by endpoints", external=_external(injection_of(file)))
    if any(key in file.data for key in SimulationConfig.model_fields if key != "observability"):
        return _of_world(file, file.build(SimulationConfig))
    config = observability_of(file)
    what = "who sees what in an environment; --env ID checks its names too"
    sees = matrix_in_words.by_observer(config, list(dict.fromkeys(row.observer for row in config.matrix)))
    return Validity(file.name, what, sees=sees, warnings=matrix_in_words.warnings_of(config))


def _of_world(file: YamlFile, world: SimulationConfig) -> Validity:
    from heron_env.cli import matrix_in_words

    visible = matrix_in_words.Visible.of(world)
    variables = world.state_variables
    return Validity(
        file.name,
        what=_in_words(world),
        agents=[f"{agent.name} ({agent.type})" for agent in world.agents],
        agent_variables={n: f"{v.type}, {visible.word(n, of_agents=True)}" for n, v in variables.agent_vars.items()},
        global_variables={n: f"{v.type}, {visible.word(n, of_agents=False)}" for n, v in variables.global_vars.items()},
        sees=matrix_in_words.by_observer(world.observability, [agent.name for agent in world.agents], visible),
        external={} if world.agent_injection is None else _external(world.agent_injection),
        warnings=_checked_by_engine(file, world) + matrix_in_words.warnings_of(world.observability, visible),
    )


def _external(block: AgentInjectionConfig) -> dict[str, str]:
    """By agent or group: where it is asked, and what it is told."""
    from heron_env.declared.injected import guard_of

    tier = {entry.agent_id: entry.privacy_tier or block.privacy_tier for entry in block.endpoints}
    place = {entry.agent_id: guard_of(entry.url).passed(entry.url).place for entry in block.endpoints}
    return {agent: f"{place[agent]}, tier {tier[agent]}" for agent in tier}


def _checked_by_engine(file: YamlFile, world: SimulationConfig) -> list[str]:
    """Raise what the engine finds wrong; a warning where there is none here to ask."""
    from heron_env.declared.engine import OF_ENGINES, built
    from heron_env.registry import engine

    try:
        engine(world.engine.type)
    except ConfigError as error:
        return [f"{error} What only an engine knows is not checked: its parameters, variables and policies"]
    with file.locating(*OF_ENGINES):
        built(world)
    return []


def _in_words(world: SimulationConfig) -> str:
    settings = world.simulation
    words = f"{settings.name}: at most {settings.max_turns} turns of {settings.dt:g} s, engine {world.engine.type}"
    rule = settings.termination
    if rule is None:
        return words
    bounds = [f"{word} {at:g}" for word, at in (("below", rule.low), ("above", rule.high)) if at is not None]
    return f"{words}; over when {rule.variable} is {' or '.join(bounds)}"


def _of_environment(file: YamlFile, env_id: str, option: list[str] | None) -> Validity:
    from heron_env.cli import matrix_in_words
    from heron_env.declared.injected import injection_of, is_alone, section_of
    from heron_env.injection.agents import playable
    from heron_env.observability.config import observability_of

    options = parsed_options(option)
    if is_alone(file):
        block, plain = injection_of(file), built(env_id, options)
        problems = [*block.unknown(playable(plain))]
        if problems:
            raise file.located(DeclarationError(problems), section_of(file))
        return Validity(file.name, f"which agents of {env_id} are played by endpoints", external=_external(block))
    config = observability_of(file)
    try:
        env = built(env_id, {**options, "observability": config})
    except DeclarationError as error:
        raise file.located(error, ("observability",) if "observability" in file.data else ()) from None
    warnings = matrix_in_words.warnings_of(config) + _hidden_children(built(env_id, options), env)
    sees = matrix_in_words.by_observer(config, list(env.hierarchy.ids))
    return Validity(file.name, f"who sees what in {env_id}", list(env.hierarchy.ids), sees=sees, warnings=warnings)


def _hidden_children(before: HeronEnv, after: HeronEnv) -> list[str]:
    """With a matrix in force a parent needs a row, or a default, for its children like anyone (V1)."""
    tree, warnings = after.hierarchy, []
    for agent in after.possible_agents:
        lost = set(before.observation_names(agent)) - set(after.observation_names(agent))
        children = [tree.ids[child] for child in tree.children[tree.index[agent]]]
        hidden = [child for child in children if any(name.startswith(f"{child}.") for name in lost)]
        if hidden:
            shown = ", ".join(hidden[:4]) + (f" and {len(hidden) - 4} more" if len(hidden) > 4 else "")
            warnings.append(f"the matrix hides from {agent} what it saw of its children {shown}; add rows or a default")
    return warnings


def _print(report: Validity) -> None:
    typer.echo(f"{report.file}: valid")
    typer.echo(report.what)
    if report.agents:
        typer.echo(f"\nagents: {', '.join(report.agents)}")
    for heading, variables in (("variables", report.agent_variables), ("global", report.global_variables)):
        if variables:
            typer.echo(f"{heading}: {'; '.join(f'{name} ({words})' for name, words in variables.items())}")
    if report.external:
        typer.echo("\nplayed by endpoints")
        for agent, words in report.external.items():
            typer.echo(f"  {agent}: {words}")
    if report.sees:
        typer.echo("\nwho sees what")
        width = max(map(len, report.sees))
        for observer, words in list(report.sees.items())[:MOST_LINES]:
            typer.echo(f"  {observer:<{width}}  {words}")
        if len(report.sees) > MOST_LINES:
            typer.echo(f"  and {len(report.sees) - MOST_LINES} more")
    for warning in report.warnings:
        typer.echo(f"warning: {warning}")
