"""The actions of a black box: copies, records, masks, and no-ops where no command is in force (W4, W5, W8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from heron_env.core.quantity import clip
from heron_env.errors import ConfigError
from heron_env.seeding import key


def copied(value: Any) -> Any:
    """A deep copy; of numbers and arrays at a tenth of deepcopy's cost."""
    if isinstance(value, int | float | np.generic):
        return value
    return value.copy() if type(value) is np.ndarray else deepcopy(value)


def vector_of(space: spaces.Space[Any], action: Any) -> NDArray[np.float64]:
    """An action as records have it, float64 `[n]`: choices as their numbers. Raises ConfigError."""
    composite = isinstance(space, spaces.Dict | spaces.Tuple)
    try:
        return np.array(spaces.flatten(space, action) if composite else action, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise ConfigError(f"record: {action!r:.100} of {space} is no vector; leave 'actions' out") from None


def checked_mask(mask: Any, space: spaces.Space[Any]) -> Any:
    """A mask in the form that `space.sample(mask)` takes, a copy; None for a Box.

    Raises TypeError, ValueError or KeyError where it does not fit.
    """
    match space:
        case spaces.Box():
            return None
        case spaces.Tuple():
            return tuple(checked_mask(part, each) for part, each in zip(mask, space.spaces, strict=True))
        case spaces.Dict():
            return {name: checked_mask(mask[name], each) for name, each in space.items()}
        case spaces.MultiBinary():  # 2: either; sb3-contrib writes two flags for each
            numbers = np.array(mask, np.int8)
            if numbers.size == 2 * np.prod(space.shape):
                zero, one = (numbers != 0).reshape(-1, 2).T
                numbers = np.where(zero & one, 2, one).astype(np.int8)
            return numbers.reshape(space.shape)
        case spaces.Discrete():
            return (np.asarray(mask) != 0).astype(np.int8).reshape(space.n)
        case spaces.MultiDiscrete():
            flags = (np.concatenate([np.ravel(part) for part in mask]) != 0).astype(np.int8).reshape(space.nvec.sum())
            return tuple(np.split(flags, np.cumsum(space.nvec)[:-1]))
    return deepcopy(mask)


def flags_of(mask: Any, space: spaces.Space[Any]) -> NDArray[np.bool_]:
    """A `checked_mask` as sb3-contrib takes it: a flag for each choice, one element after another."""
    if isinstance(space, spaces.MultiBinary):
        return np.stack([mask != 1, mask != 0], axis=-1).ravel()
    flags: NDArray[np.bool_] = (np.concatenate(mask) if isinstance(mask, tuple) else np.asarray(mask)) != 0
    return flags


def forbids(mask: Any, space: spaces.Space[Any], action: Any) -> bool:
    """Does a `checked_mask` forbid an action? What lies outside the space is for the environment to refuse."""
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
            return bool((spaces.flatten(space, action) > np.concatenate(mask)).any())
    return False


class Noops:
    """The no-op of each agent.

    Args:
        noop: an action, {agent: action}, a function (agent, space) -> action, "random", or None: 0 clipped into a Box.
        agents, action_spaces: names and spaces, by rank.

    Raises ConfigError for an action outside its space.
    """

    def __init__(self, noop: Any, agents: Sequence[str], action_spaces: Sequence[spaces.Space[Any]]) -> None:
        self._agents, self._random = agents, isinstance(noop, str) and noop == "random"
        by_agent = isinstance(noop, Mapping) and noop.keys() <= set(agents)
        self._spaces, self._fixed = deepcopy(list(action_spaces)), list[Any]()
        for agent, space in () if self._random else zip(agents, action_spaces, strict=True):
            action = noop(agent, space) if callable(noop) else noop.get(agent) if by_agent else noop
            self._fixed.append(_checked(action, agent, space))

    def require(self, rank: int, why: str) -> None:
        """Raise ConfigError unless the agent has one; `why` it needs it."""
        if not self._random and self._fixed[rank] is None:
            raise ConfigError(
                f"under_network(noop=None): {self._agents[rank]!r} {why}, and 0 is a no-op of a Box alone; give "
                "noop=action, {agent: action}, a function (agent, space) -> action, or 'random'"
            )

    def draw(self, rank: int, mask: Any, *moment: int) -> Any:
        """The no-op of one agent, its own copy; a random one depends on the `moment` (seed, episode, step)."""
        if not self._random:
            self.require(rank, "has nothing in force, or chose what its mask forbids")
            return deepcopy(self._fixed[rank])
        space = self._spaces[rank]
        space.seed(key(*moment, self._agents[rank], "noop") >> 33)
        return space.sample() if mask is None else space.sample(mask)


def _checked(action: Any, agent: str, space: spaces.Space[Any]) -> Any:
    """The no-op in the form of its space, None for 0 where that is no Box. Raises ConfigError where it lies outside."""
    with suppress(TypeError, ValueError, OverflowError):
        if isinstance(space, spaces.Box):
            numbers = np.zeros(space.shape) if action is None else np.asarray(action, np.float64)
            clipped = clip(numbers, space.low, space.high).astype(space.dtype)
            if action is None or (numbers.shape == space.shape and np.allclose(clipped, numbers)):
                return clipped
        elif action is None or space.contains(action):
            return action
    raise ConfigError(f"under_network(noop=...): {action!r:.100} of {agent!r} lies outside {space}")
