"""What an environment is built with, and what is refused: the root, the limits, the switches."""

from __future__ import annotations

from collections.abc import Sequence

from heron_env.agents.agent import SystemAgent
from heron_env.envs.termination import TerminationConfig
from heron_env.errors import ConfigError, HierarchyError, did_you_mean
from heron_env.given import is_one_of, require_switch


def require_root(system: object, where: str) -> None:
    """Raise HierarchyError for what is no root, or serves another environment, whose states it would take away."""
    if not isinstance(system, SystemAgent):
        raise HierarchyError(
            f"{where}({system!r}): the root of the hierarchy is a SystemAgent; "
            "write SystemAgent('system_agent', *agents)"
        )
    state = getattr(system, "state", None)
    if state is not None and state._view is not None:
        raise HierarchyError(f"{system!r} belongs to another environment already; build its agents anew for each")


def require_settings(
    *,
    max_steps: int | None,
    termination: TerminationConfig | None,
    observe_age: bool,
    pad: bool,
    render_mode: str | None,
    render_modes: Sequence[str],
    compile: bool | None,
) -> None:
    """Raise ConfigError for an option that is none, or contradicts another."""
    if not (render_mode is None or is_one_of(render_mode, render_modes)):
        near = did_you_mean(render_mode, render_modes)
        raise ConfigError(f"render_mode={render_mode!r}: must be one of {render_modes} or None.{near}")
    if max_steps is not None and termination is not None:
        raise ConfigError(f"max_steps={max_steps!r} and termination={termination!r}: give one of the two")
    if not isinstance(termination, TerminationConfig | None):
        raise ConfigError(f"termination={termination!r}: must be a TerminationConfig; write TerminationConfig(...)")
    require_switch(f"observe_age={observe_age!r:.60}", observe_age)
    require_switch(f"pad={pad!r:.60}", pad)
    if not isinstance(compile, bool | None):
        raise ConfigError(f"compile={compile!r}: must be True, False, or None for the default")
