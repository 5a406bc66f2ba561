"""What one observer sees of states of one shape: values gathered into one list, given noise, and dealt out again."""

import copy
import dataclasses
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from heron_env.core.layout import GLOBAL
from heron_env.errors import ConfigError
from heron_env.observability.noise import (
    ADDITIVE,
    MULTIPLICATIVE,
    NUMBERS,
    ColumnNoise,
    Moment,
    NoiseKey,
    apply_noise,
    endless,
    finite_range,
)
from heron_env.observability.state_models import (
    AGENT_FEATURE,
    GLOBAL_FEATURE,
    SimulationState,
    bounds_of,
    builder,
    fields_of,
)

Bounds = tuple[float, float]
UNBOUNDED: Bounds = (-math.inf, math.inf)
EXACT_FLOAT = 2**53
"""Whole numbers below it are exact in float64."""
DEEP, ATOM, FLOAT, INT = range(4)
"""Kinds of values: to be copied leaf by leaf; unchangeable and no number, so shared; numbers."""


class _Codes(dict[type, int]):
    def __missing__(self, kind: type) -> int:
        return DEEP


CODES = _Codes({float: FLOAT, int: INT, **dict.fromkeys((bool, str, bytes, type(None)), ATOM)})


def variables_of(target: str, state: Any) -> Mapping[str, Any]:
    """The variables of one state, by name. Raises ConfigError for what is neither a model nor a mapping."""
    if isinstance(state, BaseModel):
        return fields_of(state)
    if isinstance(state, Mapping):
        return state
    if state is None and target == GLOBAL:
        return {}
    raise ConfigError(f"the state of {target!r} is {type(state).__name__}: give a pydantic model or a mapping")


def qualified(target: str, name: str) -> str:
    """The variable's name in configurations and in the keys of the noise: `Variables.reserves`, `Globals.rate`."""
    return f"{GLOBAL_FEATURE if target == GLOBAL else AGENT_FEATURE}.{name}"


class Portion:
    """Variables of one target that one observer sees, and how they are read and put together.

    Args:
        every: all names that the state has; a state with others has another shape.
        names: those that are seen.
    """

    __slots__ = ("build", "every", "id", "kind", "names", "plain_model", "read")

    def __init__(self, target: str, kind: type, every: tuple[str, ...], names: tuple[str, ...]) -> None:
        self.id, self.kind, self.every, self.names = target, kind, every, names
        self.plain_model = issubclass(kind, BaseModel) and kind.model_config.get("extra") != "allow"
        self.read: Callable[[Mapping[str, Any]], tuple[Any, ...]] = (
            itemgetter(*names) if len(names) > 1 else lambda values: tuple(values[name] for name in names)
        )
        self.build: Callable[[dict[str, Any]], Any] = lambda values: values
        if issubclass(kind, BaseModel):
            self.build = builder(kind, names)
        elif kind is type(None):
            self.build = lambda values: None

    def values(self, state: Any) -> tuple[Any, ...] | None:
        """What is seen of a state; None if it has another shape."""
        if type(state) is not self.kind:
            return None
        fields = state.__dict__ if self.plain_model else variables_of(self.id, state)
        return self.read(fields) if tuple(fields) == self.every else None


@dataclass(frozen=True, eq=False)
class NoiseTable:
    """Of each value in the list: noise factor, law, key (N2, element 0) and declared bounds; arrays `[n]`."""

    factors: NDArray[np.float64]
    additive: NDArray[np.bool_]
    keys: NDArray[np.uint64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class ObjectView:
    """The view of `observer`: its portions of the targets, in their order, and the noise on their values."""

    def __init__(self, observer: str, portions: list[Portion], table: NoiseTable) -> None:
        self.observer, self.portions, self.table = observer, portions, table
        self._types: list[type] = []
        self._at: list[int] = []
        self._integers: list[int] = []
        self._deep: list[int] = []
        self._noise: ColumnNoise | None = None

    def gather(self, truth: SimulationState) -> list[Any] | None:
        """The true values of all it sees; None if a state that it sees has another shape."""
        values: list[Any] = []
        agents = truth.agents
        for portion in self.portions:
            part = portion.values(truth.global_state if portion.id == GLOBAL else agents[portion.id])
            if part is None:
                return None
            values += part
        return values

    def observe(self, values: list[Any], moment: Moment) -> SimulationState:
        """The observation made of what `gather` gave, which is used up."""
        types = list(map(type, values))
        if types != self._types:
            self._sort_out(types)
        deep = [(place, values[place]) for place in self._deep]
        if self._noise is not None:
            values = self._with_noise(self._noise, values, moment)
        for place, value in deep:
            values[place] = self._copied(place, value, moment)
        agents: dict[str, Any] = {}
        start = 0
        for portion in self.portions:
            stop = start + len(portion.names)
            agents[portion.id] = portion.build(dict(zip(portion.names, values[start:stop], strict=False)))
            start = stop
        return SimulationState.of(moment.turn, agents, agents.pop(GLOBAL))

    def _sort_out(self, types: list[type]) -> None:
        """Which values are numbers that get noise, and which have to be copied one by one."""
        table = self.table
        codes = np.fromiter(map(CODES.__getitem__, types), np.int8, len(types))
        noisy = (table.factors > 0.0) & (codes >= FLOAT)
        # Numbers without noise pass through the array as well where that spares picking out the others.
        at = np.arange(len(types)) if (codes >= FLOAT).all() else np.flatnonzero(noisy)
        relative = np.flatnonzero(noisy & table.additive)
        for place in relative[endless(table.low[relative], table.high[relative])][:1].tolist():
            target, name = self._owners[place]
            finite_range(float(table.low[place]), float(table.high[place]), f"{target}.{name}")
        within, where = np.flatnonzero(noisy[at]), np.flatnonzero(noisy)
        parts = (table.keys[where], table.factors[where], table.additive[where], table.low[where], table.high[where])
        self._noise = ColumnNoise(within, *parts, codes[where] == INT) if len(where) else None
        self._at, self._integers = at.tolist(), np.flatnonzero(codes[at] == INT).tolist()
        self._deep = np.flatnonzero(codes == DEEP).tolist()
        self._types = types

    def _with_noise(self, noise: ColumnNoise, values: list[Any], moment: Moment) -> list[Any]:
        """The values with noise on all plain numbers; whole numbers too big for float64 go one by one."""
        everything = len(self._at) == len(values)
        numbers = values if everything else [values[place] for place in self._at]
        big = [(k, numbers[k]) for k in self._integers if not -EXACT_FLOAT < numbers[k] < EXACT_FLOAT]
        for k, _ in big:
            numbers[k] = 0
        array = np.array(numbers, dtype=np.float64)
        noise.add_noise(array, moment)
        noisy: list[Any] = array.tolist()
        for k in self._integers:
            noisy[k] = int(noisy[k])
        for k, value in big:
            noisy[k] = self._copied(self._at[k], value, moment)
        if everything:
            return noisy
        for place, value in zip(self._at, noisy, strict=True):
            values[place] = value
        return values

    def _copied(self, place: int, value: Any, moment: Moment) -> Any:
        target, name = self._owners[place]
        table = self.table
        key = NoiseKey(self.observer, target, qualified(target, name), 0, *moment)
        law = ADDITIVE if table.additive[place] else MULTIPLICATIVE
        bounds = (float(table.low[place]), float(table.high[place]))
        try:
            return LeafNoise(float(table.factors[place]), law, key).copied(value, bounds)
        except RecursionError:
            words = f"{target}.{name} is nested too deeply, or contains itself; a state holds plain values"
            raise ConfigError(words) from None

    @cached_property
    def _owners(self) -> list[tuple[str, str]]:
        """Whose variable is at each place of the list, and its name."""
        return [(portion.id, name) for portion in self.portions for name in portion.names]


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
