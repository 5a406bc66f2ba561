"""Snapshots of an environment in mid-episode."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, cast

from heron_env._version import __version__
from heron_env.core.policy import Origin
from heron_env.envs.decisions import Source
from heron_env.envs.disturbing import Course
from heron_env.errors import ConfigError

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv


DERIVED = (
    "simulation", "hierarchy", "proxy", "observation_spaces", "action_spaces", "state_space", "groups", "group_map",
    "timings", "state_names", "_joint", "_publisher", "_late", "_watchers_spaces", "_done_by_others", "_forms",
    "agents", "possible_agents", "_ownership", "_asking", "_origins",
)  # fmt: skip
"""Attributes that `_build` makes anew."""


KEPT = frozenset({
    "mark", "seed", "episode", "agents", "decided", "origins", "masked", "event_driven", "late", "course", "step",
    "truth", "actions", "alive", "over", "last_rewards", "exchange", "letters",
})  # fmt: skip
"""What `take` gives."""


class Snapshots:
    """The part of HeronEnv that saves and restores, copies and pickles itself in mid-episode."""

    def get_state(self) -> dict[str, Any]:
        """Everything that the running episode has beyond the declaration: plain arrays, lists and numbers."""
        env = cast("HeronEnv", self)
        env._ownership.kept()
        return take(env)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from `get_state()` of an equal environment; `begin` runs again to rebuild exogenous series."""
        env = cast("HeronEnv", self)
        env._ownership.drive("set_state()", restore, env, state)

    def __getstate__(self) -> dict[str, Any]:
        """The version, the declaration and the episode; everything derived is rebuilt."""
        declared = {name: value for name, value in self.__dict__.items() if name not in DERIVED}
        return {"heron_env": __version__, "declared": declared, "episode": self.get_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Rebuild, then go on in mid-episode. Raises ConfigError for what another version of heron_env pickled."""
        made_by = state.get("heron_env", "0.1.0")  # which did not write it down
        if made_by != __version__:
            raise ConfigError(
                f"this environment was pickled by heron_env {made_by}, this is {__version__}: a pickle is for the "
                "version that made it; make the environment anew, and for another version keep get_state()"
            )
        self.__dict__.update(state["declared"])
        env = cast("HeronEnv", self)
        env._build()
        self.set_state(state["episode"])
        env._ownership.arrive(state["episode"]["mark"])


def take(env: HeronEnv) -> dict[str, Any]:
    """Everything that the running episode has beyond the declaration: plain arrays, lists and numbers."""
    return {
        "mark": env._ownership.mark,
        "seed": env._seed,
        "episode": env._episode,
        "agents": list(env.agents),
        "decided": [int(code) for code in env.decided],
        "origins": {rank: astuple(origin) for rank, origin in env._origins.items()},
        "masked": list(env.simulation.lane.masked),
        "event_driven": env._event_driven,
        "late": None if env._late is None else env._late.lines.state(),
        "course": None if env.simulation.course is None else env.simulation.course.state(),
        **env.simulation.state(),
    }


def require_state(state: object, kept: Set[str]) -> None:
    """Raise ConfigError unless it is a mapping that has these."""
    if not isinstance(state, Mapping) or (missing := kept - state.keys()):
        lacks = f"lacks {sorted(missing)}" if isinstance(state, Mapping) else f"is {state!r:.200}"
        raise ConfigError(f"set_state(): the state {lacks}; give what get_state() of an equal environment returned")


def restore(env: HeronEnv, state: Mapping[str, Any]) -> None:
    """Go on from `take`. Raises ConfigError if the environment is built differently."""
    simulation = env.simulation
    require_state(state, KEPT)
    if len(state["truth"]) != simulation.layout.size:
        raise ConfigError(
            f"set_state(): the state has {len(state['truth'])} columns, this environment {simulation.layout.size}; "
            "build them alike"
        )
    if (state["late"] is None) != (env._late is None):
        there, here = ("without" if late is None else "with" for late in (state["late"], env._late))
        raise ConfigError(
            f"set_state(): the state is of an environment {there} training_delays, this one is {here}; build them alike"
        )
    env._ownership.move()
    env._seed, env._episode = state["seed"], state["episode"]
    env.proxy.open(env._seed, env._episode)
    if env._episode >= 0:
        simulation.begin(env._seed, env._episode)
    simulation.restore(state)
    env.agents = list(state["agents"])
    env.decided = [Source(code) for code in state["decided"]]
    env._origins = {rank: Origin(*origin) for rank, origin in state["origins"].items()}
    simulation.lane.masked = state["masked"]
    env._event_driven = state["event_driven"]
    if env._late is not None:
        env._late.lines.restore(state["late"])
        env._late.look()
    if not env._event_driven:
        env._keep_truth()
    simulation.course, simulation.down = None, {}
    if (course := state["course"]) is not None:
        Course(env, course["disturbances"]).restore(course)
    env.proxy.time = simulation.time
    if env._event_driven:
        env._ownership.move()  # what is under way in such a run is the run's: nobody can bring it back
    else:
        env._ownership.arrive(state["mark"])
