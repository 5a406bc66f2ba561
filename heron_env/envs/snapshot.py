"""Snapshots: what the running episode has beyond the declaration, and going on from there."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any

from heron_env._version import __version__
from heron_env.envs.disturbing import Course
from heron_env.envs.seeing import show_truth
from heron_env.errors import ConfigError

if TYPE_CHECKING:
    from heron_env.agents.proxy import ProxyAgent
    from heron_env.envs.simulation import Simulation

KEPT = frozenset({
    "mark", "seed", "episode", "agents", "decided", "origins", "masked", "event_driven", "course", "step", "truth",
    "actions", "alive", "over", "last_rewards", "exchange", "letters",
})  # fmt: skip
"""What get_state() gives: `save`, and what the environment itself knows."""


def save(simulation: Simulation) -> dict[str, Any]:
    """Where the simulation stands: plain arrays, lists and numbers."""
    return {
        "decided": [int(code) for code in simulation.lane.sources],
        "masked": list(simulation.lane.masked),
        "course": None if simulation.course is None else simulation.course.state(),
        **simulation.state(),
    }


def require_state(state: object, names: Set[str]) -> None:
    """Raise ConfigError unless it is a mapping that has these."""
    if not isinstance(state, Mapping) or (missing := names - state.keys()):
        lacks = f"lacks {sorted(missing)}" if isinstance(state, Mapping) else f"is {state!r:.200}"
        raise ConfigError(f"set_state(): the state {lacks}; give what get_state() of an equal environment returned")


def require_alike(state: Mapping[str, Any], simulation: Simulation) -> None:
    """Raise ConfigError for what is no state of an environment built like this one."""
    require_state(state, KEPT)
    if len(state["truth"]) != (size := simulation.model.layout.size):
        raise ConfigError(
            f"set_state(): the state has {len(state['truth'])} columns, this environment {size}; build them alike"
        )
    if state.get("late") is not None:  # states of 0.2.0 say None where there were no training delays
        raise ConfigError(
            "set_state(): the state is of an environment with training_delays, which are gone since 0.3; go on from it "
            "with heron_env 0.2"
        )


def restore(state: Mapping[str, Any], simulation: Simulation, proxy: ProxyAgent) -> None:
    """Go on from what `require_alike` accepts."""
    if state["episode"] >= 0:
        proxy.open(state["seed"], state["episode"])
        simulation.begin(state["seed"], state["episode"])
    simulation.restore(state)
    simulation.lane.sources, simulation.lane.masked = list(state["decided"]), state["masked"]
    if not state["event_driven"]:
        show_truth(proxy, simulation.facts, simulation.model.hierarchy)
    simulation.course, simulation.down = None, {}
    if (course := state["course"]) is not None:
        Course(simulation, proxy, course["disturbances"]).restore(course)
    simulation.look()
    proxy.time = simulation.time


def require_version(state: Mapping[str, Any]) -> None:
    """Raise ConfigError for what another version of heron_env pickled."""
    made_by = state.get("heron_env", "0.1.0")  # which did not write it down
    if made_by != __version__:
        raise ConfigError(
            f"this environment was pickled by heron_env {made_by}, this is {__version__}: a pickle is for the "
            "version that made it; make the environment anew, and for another version keep get_state()"
        )


def pickled(declared: Mapping[str, Any], episode: Mapping[str, Any]) -> dict[str, Any]:
    """The version, the declaration and the episode."""
    return {"heron_env": __version__, "declared": dict(declared), "episode": episode}
