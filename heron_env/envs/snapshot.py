"""Snapshots of an environment in mid-episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from heron_env.envs.decisions import Source
from heron_env.errors import ConfigError

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv


def take(env: HeronEnv) -> dict[str, Any]:
    """Everything that the running episode has beyond the declaration: plain arrays, lists and numbers."""
    return {
        "seed": env._seed,
        "episode": env._episode,
        "agents": list(env.agents),
        "decided": [int(code) for code in env.decided],
        "event_driven": env._event_driven,
        **env.simulation.state(),
    }


def restore(env: HeronEnv, state: Mapping[str, Any]) -> None:
    """Go on from `take`. Raises ConfigError if the environment is built differently."""
    simulation = env.simulation
    if len(state["truth"]) != simulation.layout.size:
        raise ConfigError(
            f"set_state(): {len(state['truth'])} columns, but this environment has {simulation.layout.size}; build it alike"
        )
    env._seed, env._episode = state["seed"], state["episode"]
    if env._episode >= 0:
        simulation.begin(env._seed, env._episode)
    simulation.restore(state)
    env.agents = list(state["agents"])
    env.decided = [Source(code) for code in state["decided"]]
    env._event_driven = state["event_driven"]
    env.proxy.time = simulation.time
