"""The actions of a black box: copies, records, masks, and no-ops where nothing is in force (W4, W5, W8)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

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
    """An action as records have it, float64 `[n]`: choices as their numbers. Raises ConfigError."""
    composite = isinstance(space, spaces.Dict | spaces.Tuple)
    try:
        return np.array(spaces.flatten(space, action) if composite else action, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise ConfigError(f"record: {action!r:.100} of {space} is no vector; leave 'actions' out") from None


def mask_of(given: Any, space: spaces.Space[Any], agent: str) -> Any:
    """A mask as `space.sample(mask)` takes it, a copy; None where it says nothing of choices. Raises ConfigError."""
    try:
        match space:
            case spaces.Box():
                return None
            case spaces.Tuple():
                return tuple(mask_of(mask, each, agent) for mask, each in zip(given, space.spaces, strict=True))
            case spaces.Dict():
                return {name: mask_of(given[name], each, agent) for name, each in space.items()}
            case spaces.MultiBinary():  # 2: either
                return np.array(given, np.int8).reshape(space.shape)
            case spaces.Discrete():
                return (np.asarray(given) != 0).astype(np.int8).reshape(space.n)
            case spaces.MultiDiscrete():
                flags = (np.concatenate([np.ravel(part) for part in given]) != 0).astype(np.int8)
                flags = flags.reshape(space.nvec.sum())
                return tuple(np.split(flags, np.cumsum(space.nvec)[:-1]))
    except (TypeError, ValueError, KeyError):
        raise ConfigError(f"the action_mask of {agent!r}, {given!r:.100}, does not fit {space}") from None
    return copied(given)


def forbids(mask: Any, space: spaces.Space[Any], action: Any) -> bool:
    """Does a mask of `mask_of` forbid a choice? What is no action is the environment's to refuse."""
    if mask is None or not space.contains(action):
        return False
    match space:
        case spaces.Tuple():
            return any(map(forbids, mask, space.spaces, action))
        case spaces.Dict():
            return any(forbids(mask[name], each, action[name]) for name, each in space.items())
        case spaces.MultiBinary():
            return bool(((mask != 2) & (mask != action)).any())
        case spaces.Discrete():
            return not mask[int(action) - int(space.start)]
        case spaces.MultiDiscrete():
            chosen = (np.asarray(action) - space.start).reshape(-1)
            return not all(part[choice] for part, choice in zip(mask, chosen, strict=True))
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
    given = action
    try:
        if isinstance(space, spaces.Box):
            numbers = np.zeros(space.shape) if action is None else np.asarray(action, np.float64)
            within = clip(numbers, space.low, space.high)
            action = within.astype(space.dtype)
            fits = given is None or (numbers.shape == space.shape and np.allclose(action, numbers))
        else:
            fits = action is None or space.contains(action)
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise ConfigError(f"under_network(noop=...): {given!r:.100} of {agent!r} lies outside {space}")
    return action
