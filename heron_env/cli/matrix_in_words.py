"""A declared matrix in words: what each observer sees, a line each, and what in it has no effect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heron_env.core.layout import GLOBAL
from heron_env.observability.config import (
    DefaultObservability,
    ObservabilityConfig,
    ObservabilityEntry,
    RowOrDefault,
)
from heron_env.observability.config import ObservabilityLevel as Level

if TYPE_CHECKING:
    from heron_env.declared.simulation_config import SimulationConfig


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

    def shown(self, target: str, level: Level) -> str:
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
                f" ({visible.shown(row.target, row.level)})" if visible and row.level is not Level.UNAWARE else ""
            )
            rows[row.observer].append(f"{row.target} {_clarity(row)}{variables}")
    others = [f"others {_clarity(config.default)}", *on_top]
    return {observer: "; ".join([*told, *others]) for observer, told in rows.items()}


def _clarity(source: RowOrDefault) -> str:
    if source.level is Level.UNAWARE or not source.factor:
        return source.level.value
    of_what = " of the range" if source.law == "additive" else ""
    return f"{source.level.value}, noise {source.factor:g}{of_what}"


def warnings_of(config: ObservabilityConfig | None, visible: Visible | None = None) -> list[str]:
    """What is legal and surely not meant."""
    if config is None:
        return []
    found = [] if config.enabled else [IDLE]
    for index, row in enumerate(config.matrix):
        found += _of_row(index, row, config.default)
    if config.default.level is Level.UNAWARE and config.default.noise:
        found.append(f"default.noise {config.default.noise:g} has no effect: the default is unaware")
    listed = config.variable_visibility
    if "external" in listed.model_fields_set and not listed.external:
        found.append("variable_visibility.external is empty: what is not listed as internal stays as it was declared")
    return found + (_seen_by_nobody(config, visible) if visible is not None and config.enabled else [])


def _of_row(index: int, row: ObservabilityEntry, default: DefaultObservability) -> list[str]:
    place = f"matrix[{index}] ({row.observer}, {row.target})"
    if row.observer == row.target:
        return [f"{place} has no effect: an agent always sees all of itself"]
    if row.level is Level.UNAWARE and row.factor:
        return [f"{place}: noise {row.factor:g} has no effect: {row.observer} is unaware of {row.target}"]
    return [f"{place} says what the default says"] if _clarity(row) == _clarity(default) else []


def _seen_by_nobody(config: ObservabilityConfig, visible: Visible) -> list[str]:
    """Internal variables that no insider is declared for."""
    if config.default.level is Level.INSIDER:
        return []
    insiders = [row for row in config.matrix if row.level is Level.INSIDER and row.observer != row.target]
    found = []
    if all(row.target == GLOBAL for row in insiders):
        hidden = [name for name, external in visible.of_agents.items() if not external]
        found += [f"nobody but its owner sees {name}: it is internal, and no agent is an insider" for name in hidden]
    if all(row.target != GLOBAL for row in insiders):
        hidden = [name for name, external in visible.of_world.items() if not external]
        found += [f"nobody sees {name}: it is internal, and nobody is an insider of global" for name in hidden]
    return found
