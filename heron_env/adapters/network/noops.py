"""The actions of a black box: copies, records, masks, and no-ops where nothing is in force (W4, W5, W8)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from heron_env.core.masking import flat
from heron_env.core.quantity import clip
from heron_env.errors import ConfigError
from heron_env.seeding import key


def copied(value: Any) -> Any:
    """A copy that shares nothing with an observation or action, which may be of any form."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, int | float | np.generic):
        return value
    return {name: copied(part) for name, part in value.items()} if type(value) is dict else copy.deepcopy(value)


def vector_of(space: spaces.Space[Any], action: Any) -> NDArray[np.float64]:
    """An action as records have it, float64 `[n]`: choices as their numbers."""
    composite = isinstance(space, spaces.Dict | spaces.Tuple)
    return np.array(spaces.flatten(space, action) if composite else action, dtype=np.float64).reshape(-1)


def forbids(mask: Any, space: spaces.Space[Any], action: Any) -> bool:
    """Does a mask, in the form that `space.sample(mask)` takes, forbid a choice?"""
    if isinstance(space, spaces.Discrete):
        return not mask[int(action) - int(space.start)]
    if isinstance(space, spaces.MultiDiscrete):
        starts = np.cumsum(space.nvec) - space.nvec.reshape(-1) - space.start.reshape(-1)
        return not flat(mask)[starts + np.asarray(action).reshape(-1)].all()
    return False


class Noops:
    """The no-op of each agent.

    Args:
        noop: an action, {agent: action}, a function (agent, space) -> action, "random", or None: 0 clipped into a Box.
        agents, action_spaces: names and spaces, by rank.

    Raises ConfigError for an action outside its space.
    """

    def __init__(self, noop: Any, agents: Sequence[str], action_spaces: Sequence[spaces.Space[Any]]) -> None:
        self._agents = agents
        self._random = copy.deepcopy(list(action_spaces)) if isinstance(noop, str) and noop == "random" else None
        each = [] if self._random is not None else zip(agents, action_spaces, strict=True)
        self._fixed = [_fixed(noop, agents, agent, space) for agent, space in each]

    def require(self, rank: int, why: str) -> None:
        """Raise ConfigError unless the agent has one; `why` it needs it."""
        if self._random is None and self._fixed[rank] is None:
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


def _fixed(noop: Any, agents: Sequence[str], agent: str, space: spaces.Space[Any]) -> Any:
    action = noop(agent, space) if callable(noop) else noop
    if isinstance(action, Mapping) and action.keys() <= set(agents):
        action = action.get(agent)
    if isinstance(space, spaces.Box):
        zero = clip(np.zeros(space.shape), space.low, space.high)
        action = np.asarray(zero if action is None else action, space.dtype)
    if action is not None and not space.contains(action):
        raise ConfigError(f"under_network(noop=...): {action!r:.100} of {agent!r} lies outside {space}")
    return action
