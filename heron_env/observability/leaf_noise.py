"""Nested values, copied leaf by leaf: each number in them gets noise of its own."""

import copy
import dataclasses
import math
from collections import deque
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np
from pydantic import BaseModel

from heron_env.observability.noise import NUMBERS, NoiseKey, apply_noise
from heron_env.observability.state_models import bounds_of, builder, fields_of

Bounds = tuple[float, float]
UNBOUNDED: Bounds = (-math.inf, math.inf)


class LeafNoise:
    """Copies one value of any depth; its n-th leaf, counted depth first from 0, has the noise of element n (N4).

    Args:
        factor, law: of the noise; with factor 0 the copy is exact.
        key: of the value as a whole; `element` is filled in.
    """

    def __init__(self, factor: float, law: str, key: NoiseKey) -> None:
        self.factor, self.law, self.key = factor, law, key
        self.element = 0

    def copied(self, value: Any, bounds: Bounds = UNBOUNDED) -> Any:
        """A copy that shares nothing mutable with `value`. Sets are walked in the order of their members' repr."""
        match value:
            case BaseModel():
                kind = type(value)
                fields = {n: self.copied(part, bounds_of(kind, n)) for n, part in fields_of(value).items()}
                return builder(kind, fields)(fields)
            case Mapping():
                return {name: self.copied(part) for name, part in value.items()}
            case list():
                return [self.copied(part) for part in value]
            case tuple():
                parts = [self.copied(part) for part in value]
                return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
            case deque():
                return deque((self.copied(part) for part in value), value.maxlen)
            case set() | frozenset():
                return type(value)(self.copied(part) for part in sorted(value, key=repr))
            case np.ndarray():
                return self._array(value, bounds)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            made = copy.deepcopy(value)
            for field in dataclasses.fields(value):
                object.__setattr__(made, field.name, self.copied(getattr(value, field.name)))
            return made
        if _has_parts(value):
            made = copy.copy(value)
            vars(made).update({name: self.copied(part) for name, part in vars(value).items()})
            return made
        return self._leaf(value, bounds)

    def _leaf(self, value: Any, bounds: Bounds) -> Any:
        key = self.key._replace(element=self.element)
        self.element += 1
        noisy = apply_noise(value, self.factor, key, low=bounds[0], high=bounds[1], law=self.law)
        return copy.deepcopy(value) if noisy is value else noisy

    def _array(self, array: Any, bounds: Bounds) -> Any:
        if self.factor and array.dtype.names:
            made = array.copy()
            for name in array.dtype.names:
                made[name] = self._array(array[name], UNBOUNDED)
            return made
        if not self.factor or array.dtype.kind not in "iufcO":
            self.element += array.size
            return copy.deepcopy(array)
        if array.dtype.kind == "O":
            made = np.empty(array.shape, dtype=object)
            for place, part in np.ndenumerate(array):
                made[place] = self.copied(part)
            return made
        if array.dtype.kind in "iu":
            limits = np.iinfo(array.dtype)
            bounds = (max(bounds[0], int(limits.min)), min(bounds[1], int(limits.max)))
        leaves = [self._leaf(part, bounds) for part in array.ravel().tolist()]
        return np.array(leaves, dtype=array.dtype).reshape(array.shape)


def _has_parts(value: Any) -> bool:
    """Is it an object whose attributes hold what it says: neither a number, a word, a member of an Enum nor code?"""
    atoms = (*NUMBERS, str, bytes, Enum)
    return bool(getattr(value, "__dict__", None)) and not callable(value) and not isinstance(value, atoms)
