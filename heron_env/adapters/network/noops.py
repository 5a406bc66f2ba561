"""What is applied where an agent has nothing in force or chose what is forbidden; copies of what a black box uses."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from heron_env.core.masking import flat
from heron_env.errors import ConfigError
from heron_env.seeding import key

RANDOM = "random"


def copied(value: Any) -> Any:
    """A copy that shares nothing with an observation or an action, which may be of any form."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, int | float | str | np.generic | None):
        return value
    if type(value) is dict:
        return {name: copied(part) for name, part in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map(copied, value))
    return copy.deepcopy(value)


def vector_of(space: spaces.Space[Any], action: Any) -> NDArray[np.float64]:
    """An action as records have it, float64 `[n]`: choices as their numbers."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        action = spaces.flatten(space, action)
    return np.array(action, dtype=np.float64).reshape(-1)


class Noops:
    """The no-op of each agent.

    Args:
        given: an action, {agent: action}, a function (agent, space) -> action, "random", or None: 0 clipped into a Box.
        agents: their names, by rank.
        action_spaces: theirs.

    Raises ConfigError for an action that lies outside its space.
    """

    def __init__(self, given: Any, agents: Sequence[str], action_spaces: Sequence[spaces.Space[Any]]) -> None:
        self._agents = agents
        self._random = [copy.deepcopy(space) for space in action_spaces] if _is(given, RANDOM) else None
        self._fixed: dict[int, Any] = {}
        if self._random is not None:
            return
        for rank, (agent, space) in enumerate(zip(agents, action_spaces, strict=True)):
            action = _fixed(given, agents, agent, space)
            if action is not None:
                if not space.contains(action):
                    raise ConfigError(f"under_network(noop=...): {action!r:.100} of {agent!r} lies outside {space}")
                self._fixed[rank] = action

    def require(self, rank: int, why: str) -> None:
        """Raise ConfigError unless the agent has one; `why` it needs it."""
        if self._random is None and rank not in self._fixed:
            raise ConfigError(
                f"under_network(noop=None): {self._agents[rank]!r} {why}, and 0 is a no-op of a Box alone; give "
                "noop=action, {agent: action}, a function (agent, space) -> action, or 'random'"
            )

    def draw(self, rank: int, mask: Any, *moment: int) -> Any:
        """The no-op of one agent, its own copy; a random one depends on the `moment` (seed, episode, step)."""
        if self._random is None:
            self.require(rank, "has nothing in force, or chose what its mask forbids")
            return copied(self._fixed[rank])
        space = self._random[rank]
        space.seed(key(*moment, self._agents[rank], "noop") >> 33)
        return space.sample() if mask is None else space.sample(mask)


def _is(given: Any, word: str) -> bool:
    return isinstance(given, str) and given == word


def _fixed(given: Any, agents: Sequence[str], agent: str, space: spaces.Space[Any]) -> Any:
    if callable(given):
        return given(agent, space)
    if isinstance(given, Mapping) and given.keys() <= set(agents):
        given = given.get(agent)
    if given is None and isinstance(space, spaces.Box):
        return np.clip(np.zeros(space.shape, space.dtype), space.low, space.high).astype(space.dtype)
    return given


def forbids(mask: Any, space: spaces.Space[Any], action: Any) -> bool:
    """Does a mask, in the form that `space.sample(mask)` takes, forbid a choice?"""
    if isinstance(space, spaces.Discrete):
        return not mask[int(action) - int(space.start)]
    if isinstance(space, spaces.MultiDiscrete):
        flags, ncats = flat(mask), space.nvec.reshape(-1)
        starts = np.cumsum(ncats) - ncats - space.start.reshape(-1)
        return not flags[starts + np.asarray(action).reshape(-1)].all()
    return False
