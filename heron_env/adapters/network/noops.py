"""The actions of a black box: copies, records, and no-ops where no command is in force (W4, W5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from heron_env.adapters.network.masks import UNREADABLE, choice_of
from heron_env.core.action import WITH_GRADIENTS, has_gradients
from heron_env.core.quantity import clip
from heron_env.errors import ConfigError, InvalidAction
from heron_env.given import accepts
from heron_env.seeding import key


def copied(value: Any) -> Any:
    """A deep copy; of numbers and arrays of numbers at a tenth of deepcopy's cost."""
    if isinstance(value, int | float | np.generic) and not isinstance(value, np.void):  # that is a view of a row
        return value
    return value.copy() if type(value) is np.ndarray and not value.dtype.hasobject else deepcopy(value)


def sendable(agent: str, action: Any) -> Any:
    """A copy of an action. Raises InvalidAction for what can't be copied, and for tensors with gradients."""
    if has_gradients(action):
        raise InvalidAction(f"step(): the action of {agent!r} {WITH_GRADIENTS}")
    try:
        return copied(action)
    except Exception as error:  # whatever an object's own __deepcopy__ raises
        raise InvalidAction(
            f"step(): the action of {agent!r} can't be copied: {type(error).__name__}: {error}"
        ) from error


def vector_of(space: spaces.Space[Any], action: Any) -> NDArray[np.float64]:
    """An action as records have it, float64 `[n]`: choices as their numbers. Raises ConfigError."""
    composite = isinstance(space, spaces.Dict | spaces.Tuple)
    try:
        return np.array(spaces.flatten(space, action) if composite else action, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise ConfigError(f"record: {action!r:.100} of {space} is no vector; leave 'actions' out") from None


class Noops:
    """The no-op of each agent.

    Args:
        noop: an action, {agent: action}, a function (agent, space) -> action, or of three parameters, which gets the
            observation, too; "random", or None: 0 clipped into a Box.
        agents, action_spaces: names and spaces, by rank.

    Raises ConfigError for an action outside its space.
    """

    def __init__(self, noop: Any, agents: Sequence[str], action_spaces: Sequence[spaces.Space[Any]]) -> None:
        self._agents, self._random = agents, isinstance(noop, str) and noop == "random"
        self._observing = noop if callable(noop) and accepts(noop, 3) and not accepts(noop, 2) else None
        by_agent = isinstance(noop, Mapping) and noop.keys() <= set(agents)
        self._spaces, self._fixed = deepcopy(list(action_spaces)), list[Any]()
        for agent, space in () if self._random or self._observing else zip(agents, action_spaces, strict=True):
            action = noop(agent, space) if callable(noop) else noop.get(agent) if by_agent else noop
            self._fixed.append(_checked(action, agent, space))

    def plain(self) -> Any:
        """The same as JSON has it, for `noop=`; a function of observations as it is."""
        if self._observing:
            return self._observing
        return "random" if self._random else dict(zip(self._agents, map(_as_json, self._fixed), strict=True))

    def require(self, rank: int, why: str) -> None:
        """Raise ConfigError unless the agent has one; `why` it needs it."""
        if self._fixed and self._fixed[rank] is None:
            raise ConfigError(
                f"under_network(noop=None): {self._agents[rank]!r} {why}, and 0 is a no-op of a Box alone; give "
                "noop=action, {agent: action}, a function (agent, space) -> action, or 'random'"
            )

    def draw(self, rank: int, mask: Any, observation: Any, *moment: int) -> Any:
        """The no-op of one agent, its own copy; a random one depends on the `moment` (seed, episode, step).

        Raises ConfigError where a function of the `observation` says what lies outside the space.
        """
        if self._observing:
            agent, space = self._agents[rank], self._spaces[rank]
            return deepcopy(_checked(self._observing(agent, space, copied(observation)), agent, space))
        if not self._random:
            self.require(rank, "has nothing in force, or chose what its mask forbids")
            return deepcopy(self._fixed[rank])
        space = self._spaces[rank]
        space.seed(key(*moment, self._agents[rank], "noop") >> 33)
        return space.sample() if mask is None else space.sample(mask)


def _as_json(action: Any) -> Any:
    """An action in lists and numbers."""
    if isinstance(action, Mapping):
        return {name: _as_json(part) for name, part in action.items()}
    if isinstance(action, tuple | list):
        return [_as_json(part) for part in action]
    return action.tolist() if isinstance(action, np.ndarray | np.generic) else action


def fits(action: Any, space: spaces.Space[Any]) -> bool:
    """Does an action lie in its space, in whatever form?"""
    try:
        _fitted(action, space)
    except UNREADABLE:
        return False
    return action is not None


def _checked(action: Any, agent: str, space: spaces.Space[Any]) -> Any:
    """The no-op in the form of its space, None for 0 where that is no Box. Raises ConfigError where it lies outside."""
    if action is None and not isinstance(space, spaces.Box):
        return None
    try:
        return _fitted(action, space)
    except UNREADABLE:
        raise ConfigError(f"under_network(noop=...): {action!r:.100} of {agent!r} lies outside {space}") from None


def _fitted(action: Any, space: spaces.Space[Any]) -> Any:
    """An action in the form of its space: one number stands for an array of one; None for 0 clipped into a Box.

    Raises one of UNREADABLE where it lies outside.
    """
    match space:
        case spaces.Box():
            numbers = np.zeros(space.shape) if action is None else np.asarray(action, np.float64)
            numbers = numbers.reshape(space.shape) if numbers.size == 1 else numbers
            with np.errstate(invalid="ignore"):  # nan in whole numbers
                clipped = clip(numbers, space.low, space.high).astype(space.dtype)
            if action is None or (numbers.shape == space.shape and np.allclose(clipped, numbers)):
                return clipped
        case spaces.Dict() if isinstance(action, Mapping) and action.keys() == space.keys():
            return {name: _fitted(action[name], each) for name, each in space.items()}
        case spaces.Tuple():
            return tuple(_fitted(part, each) for part, each in zip(action, space.spaces, strict=True))
        case spaces.Discrete() if not space.contains(action):
            return int(choice_of(space, action))
        case spaces.OneOf() if not space.contains(action):
            which, part = choice_of(space, action)
            return which, _fitted(part, space.spaces[which])
        case spaces.MultiDiscrete() | spaces.MultiBinary():
            return choice_of(space, action).astype(space.dtype)
        case _ if space.contains(action):
            return action
    raise ValueError
