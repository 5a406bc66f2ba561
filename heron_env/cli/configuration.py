"""`heron check FILE.yaml`: is it right, what does it declare, and what of it is surely not meant?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heron_env.cli.application import built, parsed_options
from heron_env.core.layout import GLOBAL
from heron_env.errors import ConfigError, DeclarationError
from heron_env.observability.config import DefaultObservability, ObservabilityConfig, ObservabilityEntry, RowOrDefault
from heron_env.observability.config import ObservabilityLevel as Level

if TYPE_CHECKING:
    from heron_env.declared.configuration import AgentInjectionConfig, SimulationConfig
    from heron_env.envs.base import HeronEnv
    from heron_env.files.yaml_file import YamlFile


IDLE = (
    "observability is not enabled: everybody sees everything that is observed; rows and default are checked, but have "
    "no effect (leave `observability` out for the visibility of the features to decide)"
)


@dataclass(frozen=True)
class Visible:
    """The variables of a declared world by name: are they external?"""

    of_agents: dict[str, bool]
    of_world: dict[str, bool]

    @classmethod
    def of(cls, world: SimulationConfig) -> Visible:
        """Those of a world."""
        external = world.external_variables()
        agents, shared = world.state_variables.visibility_of_agents(), world.state_variables.visibility_of_globals()
        return cls(_by_field(agents, external), _by_field(shared, external))

    def word(self, name: str, *, of_agents: bool) -> str:
        """external or internal."""
        return "external" if (self.of_agents if of_agents else self.of_world)[name] else "internal"

    def names(self, target: str, level: Level) -> str:
        """Names of what the level shows of a target."""
        variables = self.of_world if target == GLOBAL else self.of_agents
        if level is Level.INSIDER or all(variables.values()):
            return "all"
        return ", ".join(name for name, external in variables.items() if external) or "nothing"


def _by_field(names: Iterable[str], external: set[str]) -> dict[str, bool]:
    return {name.partition(".")[2]: name in external for name in names}


def by_observer(
    config: ObservabilityConfig | None, observers: Sequence[str], visible: Visible | None = None
) -> dict[str, str]:
    """What each observer sees of others, a line each; the names of the variables where they are known."""
    common = config.common_noise if config is not None else 0.0
    clear = f"with noise {common:g} on all of others" if common else "exactly"
    if config is not None and not config.enabled:
        return {"everybody": f"everything that is observed, {clear}: observability is not enabled"}
    if config is None or config.by_tags:
        own = f"the visibility of the variables decides, {clear}: all that is not internal"
        return {"everybody": own if visible else f"the tags of the features decide, {clear}"}
    on_top = [f"noise {common:g} on top on all of others"] if common else []
    rows: dict[str, list[str]] = {observer: [] for observer in observers}
    for row in config.matrix:
        if row.observer != row.target:
            variables = (
                f" ({visible.names(row.target, row.level)})" if visible and row.level is not Level.UNAWARE else ""
            )
            rows[row.observer].append(f"{row.target} {_clarity(row)}{variables}")
    others = [f"others {_clarity(config.default)}", *on_top]
    return {observer: "; ".join([*parts, *others]) for observer, parts in rows.items()}


def _clarity(source: RowOrDefault) -> str:
    if source.level is Level.UNAWARE or not source.factor:
        return source.level.value
    of_what = " of the range" if source.law == "additive" else ""
    return f"{source.level.value}, noise {source.factor:g}{of_what}"


def warnings_of(config: ObservabilityConfig | None, visible: Visible | None = None) -> list[str]:
    """What is legal and surely not meant."""
    if config is None:
        return []
    notes = [] if config.enabled else [IDLE]
    for index, row in enumerate(config.matrix):
        notes += _of_row(index, row, config.default)
    if config.default.level is Level.UNAWARE and config.default.noise:
        notes.append(f"default.noise {config.default.noise:g} has no effect: the default is unaware")
    listed = config.variable_visibility
    if "external" in listed.model_fields_set and not listed.external:
        notes.append("variable_visibility.external is empty: what is not listed as internal stays as it was declared")
    return notes + (_without_observer(config, visible) if visible is not None and config.enabled else [])


def _of_row(index: int, row: ObservabilityEntry, default: DefaultObservability) -> list[str]:
    place = f"matrix[{index}] ({row.observer}, {row.target})"
    if row.observer == row.target:
        return [f"{place} has no effect: an agent always sees all of itself"]
    if row.level is Level.UNAWARE and row.factor:
        return [f"{place}: noise {row.factor:g} has no effect: {row.observer} is unaware of {row.target}"]
    return [f"{place} says what the default says"] if _clarity(row) == _clarity(default) else []


def _without_observer(config: ObservabilityConfig, visible: Visible) -> list[str]:
    """Internal variables that no insider is declared for."""
    if config.default.level is Level.INSIDER:
        return []
    insiders = [row for row in config.matrix if row.level is Level.INSIDER and row.observer != row.target]
    notes = []
    if all(row.target == GLOBAL for row in insiders):
        hidden = [name for name, external in visible.of_agents.items() if not external]
        notes += [f"nobody but its owner sees {name}: it is internal, and no agent is an insider" for name in hidden]
    if all(row.target != GLOBAL for row in insiders):
        hidden = [name for name, external in visible.of_world.items() if not external]
        notes += [f"nobody sees {name}: it is internal, and nobody is an insider of global" for name in hidden]
    return notes


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


def is_configuration(name: str) -> bool:
    """Is it the name of a YAML file?"""
    return Path(name).suffix in (".yaml", ".yml")


def check_configuration(config: str, env: str | None, option: list[str] | None, as_json: bool) -> None:
    """Print what is in the file and who sees what. Raises ConfigError and what else is wrong with it."""
    from heron_env.files.yaml_file import YamlFile

    if option and env is None:
        raise ConfigError("--option is for an environment: name it with --env")
    file = YamlFile.read(Path(config))
    report = _of_environment(file, env, option) if env is not None else _of_file(file)
    if as_json:
        from heron_env.lab.output import dumps

        typer.echo(dumps({"valid": True, **asdict(report)}))
        return
    _print(report)


def _of_file(file: YamlFile) -> Validity:
    from heron_env.declared.configuration import SimulationConfig, injection_of, is_alone
    from heron_env.observability.config import observability_of

    if is_alone(file):
        return Validity(file.name, "which agents are played by endpoints", external=_external(injection_of(file)))
    if any(key in file.data for key in SimulationConfig.model_fields if key != "observability"):
        return _of_world(file, file.build(SimulationConfig))
    config = observability_of(file)
    what = "who sees what in an environment; --env ID checks its names too"
    sees = by_observer(config, list(dict.fromkeys(row.observer for row in config.matrix)))
    return Validity(file.name, what, sees=sees, warnings=warnings_of(config))


def _of_world(file: YamlFile, world: SimulationConfig) -> Validity:
    visible = Visible.of(world)
    variables = world.state_variables
    return Validity(
        file.name,
        what=_in_words(world),
        agents=[f"{agent.name} ({agent.type})" for agent in world.agents],
        agent_variables={n: f"{v.type}, {visible.word(n, of_agents=True)}" for n, v in variables.agent_vars.items()},
        global_variables={n: f"{v.type}, {visible.word(n, of_agents=False)}" for n, v in variables.global_vars.items()},
        sees=by_observer(world.observability, [agent.name for agent in world.agents], visible),
        external={} if world.agent_injection is None else _external(world.agent_injection),
        warnings=_checked_by_engine(file, world) + warnings_of(world.observability, visible),
    )


def _external(block: AgentInjectionConfig) -> dict[str, str]:
    """By agent or group: where it is asked, and what it is told."""
    from heron_env.net.guard import guard_of

    tier = {entry.agent_id: entry.privacy_tier or block.privacy_tier for entry in block.endpoints}
    place = {entry.agent_id: guard_of(entry.url, entry.allow).passed(entry.url).place for entry in block.endpoints}
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
    from heron_env.declared.configuration import injection_of, is_alone, section_of
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
    warnings = warnings_of(config) + _hidden_children(built(env_id, options), env)
    sees = by_observer(config, list(env.hierarchy.ids))
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
