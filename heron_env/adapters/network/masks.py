"""Masks of black boxes: the forms that they come in, and which choices they forbid, in whatever form a choice comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

UNREADABLE = (TypeError, ValueError, LookupError, OverflowError, RuntimeError)
"""What reading something foreign as a choice may raise."""


def checked_mask(mask: Any, space: spaces.Space[Any]) -> Any:
    """A mask in the form that `space.sample(mask)` takes, a copy; None where it can't be asked about an action: of a
    Box, and of spaces that list no choices, as Sequence, Text and Graph.

    Raises TypeError, ValueError or KeyError where it does not fit.
    """
    match space:
        case spaces.Box():
            return None
        case spaces.Tuple() | spaces.OneOf():
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
    return None


def flags_of(mask: Any, space: spaces.Space[Any]) -> NDArray[np.bool_]:
    """A `checked_mask` as sb3-contrib takes it: a flag for each choice, one element after another."""
    if isinstance(space, spaces.MultiBinary):
        return np.stack([mask != 1, mask != 0], axis=-1).ravel()
    flags: NDArray[np.bool_] = (np.concatenate(mask) if isinstance(mask, tuple) else np.asarray(mask)) != 0
    return flags


def choice_of(space: spaces.Space[Any], action: Any) -> Any:
    """An action in the form of its space: `[1]`, `1.0` and `np.array(1)` are 1; numbers of a Box as they are.

    Raises one of UNREADABLE where it is none of the space's choices. Of spaces that list none it is as it is.
    """
    match space:
        case spaces.Discrete():
            return space.start + _below(space.n, _whole(action, ()) - space.start)
        case spaces.MultiDiscrete():
            return space.start + _below(space.nvec, _whole(action, space.shape) - space.start)
        case spaces.MultiBinary():
            return _below(2, _whole(action, space.shape))
        case spaces.Tuple():
            return tuple(choice_of(each, part) for each, part in zip(space.spaces, action, strict=True))
        case spaces.Dict():
            if not isinstance(action, Mapping) or action.keys() != space.keys():
                raise ValueError(f"{action!r:.100} is no choice of {space}")
            return {name: choice_of(each, action[name]) for name, each in space.items()}
        case spaces.OneOf():
            which, part = action
            which = int(_below(len(space.spaces), _whole(which, ())))
            return which, choice_of(space.spaces[which], part)
    return action


def is_choice(space: spaces.Space[Any], action: Any) -> bool:
    """Can it be read as one of the space's choices?"""
    try:
        choice_of(space, action)
    except UNREADABLE:
        return False
    return True


def forbids(mask: Any, space: spaces.Space[Any], action: Any) -> bool:
    """Does a `checked_mask` forbid an action? What can't be read as a choice is not allowed."""
    if mask is None:
        return False
    return not is_choice(space, action) or _forbids(mask, space, choice_of(space, action))


def _forbids(mask: Any, space: spaces.Space[Any], choice: Any) -> bool:
    match space:
        case spaces.Tuple():
            return any(map(_forbids, mask, space.spaces, choice))
        case spaces.Dict():
            return any(_forbids(mask[name], each, choice[name]) for name, each in space.items())
        case spaces.OneOf():
            return _forbids(mask[choice[0]], space.spaces[choice[0]], choice[1])
        case spaces.MultiBinary():
            return bool(((mask != 2) & (mask != choice)).any())
        case spaces.Discrete():
            return not mask[choice - space.start]
        case spaces.MultiDiscrete():
            picked = np.ravel(choice - space.start)
            return not all(flags[index] for flags, index in zip(mask, picked, strict=True))
    return False


def _whole(value: Any, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Whole numbers in that shape. Raises where there are more or fewer, or one is none."""
    if (array := np.asarray(value)).dtype.kind not in "biufO":
        raise TypeError(f"{value!r:.100}: numbers are needed")
    numbers = array.astype(np.float64).reshape(shape)
    if not (numbers == np.floor(numbers)).all():
        raise ValueError(f"{value!r:.100}: whole numbers are needed")
    return numbers.astype(np.int64)


def _below(sizes: Any, indices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices that there are. Raises IndexError."""
    if not ((indices >= 0) & (indices < sizes)).all():
        raise IndexError(f"{indices}: choices count to {sizes}")
    return indices
