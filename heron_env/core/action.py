"""Actions: what an agent may do (the spec, on the class) and what it does now (the Action, on the instance)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heron_env.core.plans import Plan
from heron_env.core.quantity import clip, unit_text
from heron_env.errors import ConfigError, InvalidAction
from heron_env.given import several, whole

if TYPE_CHECKING:
    from gymnasium import spaces

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_ELEMENTS = 1_000_000
"""Of an action vector."""
MOST_CATEGORIES = 2**53
"""Whole numbers up to it are exact in an action vector, float64."""
MASKED = "is a masked array; fill it: values.filled(0.0)"
WITH_GRADIENTS = "is a tensor with gradients, which actions do not carry; give tensor.detach()"


@dataclass(frozen=True, eq=False)
class ActionSpec:
    """Continuous part `c` in [low, high] and discrete part `d` with `ncats` categories each; as a vector c, then d."""

    low: Floats = field(default_factory=lambda: np.zeros(0))
    high: Floats = field(default_factory=lambda: np.zeros(0))
    ncats: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    noop: Floats = field(default_factory=lambda: np.zeros(0))
    unit: str = "1"

    @cached_property
    def dim_c(self) -> int:
        """Length of the continuous part."""
        return len(self.low)

    @cached_property
    def dim_d(self) -> int:
        """Length of the discrete part."""
        return len(self.ncats)

    @cached_property
    def size(self) -> int:
        """Length of the action vector."""
        return self.dim_c + self.dim_d

    @cached_property
    def _single(self) -> tuple[float, float, bool] | None:
        """Bounds of an action's only element, and is it a choice? None if there are more or none."""
        if self.size != 1:
            return None
        low, high = (0, self.ncats[0] - 1) if self.dim_d else (self.low[0], self.high[0])
        return float(low), float(high), self.dim_d > 0

    def space(self, seed: int | None = None) -> spaces.Space[Any]:
        """The Gymnasium space: Box float32, Discrete, MultiDiscrete, or a Dict of c and d where both exist."""
        from gymnasium import spaces

        box = spaces.Box(self.low.astype(np.float32), self.high.astype(np.float32), dtype=np.float32, seed=seed)
        if not self.dim_d:
            return box
        many: spaces.Space[Any] = spaces.MultiDiscrete(self.ncats, seed=seed)
        if self.dim_d == 1:
            many = spaces.Discrete(int(self.ncats[0]), seed=seed)
        return spaces.Dict({"c": box, "d": many}, seed=seed) if self.dim_c else many

    def parse(self, value: Any, agent: str, lane: int | None = None) -> Floats:
        """The action vector, float64 `[size]`, of an array, number, Action or {"c", "d"}.

        Compared with the bounds in the space's float32, then clipped to the float64 bounds.
        Raises InvalidAction naming the agent (and its lane, of several), the value and the space.
        """
        if self._single is not None:  # a single number within its bounds is by far the usual action
            low, high, integer = self._single
            number = value.item() if type(value) is np.ndarray and value.size == 1 else value
            if isinstance(number, (int, float)) and low <= number <= high and (not integer or number == int(number)):
                return np.array([number], dtype=np.float64)
        unmasked(value, _action_of(agent, lane))
        try:
            vector = np.asarray(_joined(value), dtype=np.float64).flatten()  # a copy
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(value, Plan):
                words = "is a Plan, and a step takes one action; run_event_driven() and run_synchronous() play plans"
                raise InvalidAction(f"{_action_of(agent, lane)} {words}") from error
            raise InvalidAction(
                f"{_action_of(agent, lane)}: {value!r:.200} is not numeric; expected {self.describe()}"
            ) from error
        except RuntimeError as error:  # a tensor of torch that has a gradient
            raise InvalidAction(f"{_action_of(agent, lane)}: {value!r:.200} is no array of numbers: {error}") from error
        if wrong := self._wrong_size(value, vector.size):
            raise InvalidAction(f"{_action_of(agent, lane)}{wrong}")
        c, d = vector[: self.dim_c], vector[self.dim_c :]
        if not self.dim_d and ((c >= self.low) & (c <= self.high)).all():  # the usual case
            return vector
        if not self.legal(vector):
            raise InvalidAction(f"{_action_of(agent, lane)}: {self._illegal(c, d)}")
        return np.concatenate([clip(c, self.low, self.high), d])

    def legal(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which actions `[..., size]` lie in the space (compiled: decision_kernels.py): numbers within their bounds in
        float32, and whole choices.
        """
        c, d, legal = values[..., : self.dim_c], values[..., self.dim_c :], np.ones(values.shape[:-1], dtype=np.bool_)
        if self.dim_c and not ((c >= self.low) & (c <= self.high)).all():  # rounding keeps within bounds what is there
            with np.errstate(over="ignore"):  # inf lies outside as well
                single = c.astype(np.float32, copy=False)
            inside = (single >= self.low.astype(np.float32)) & (single <= self.high.astype(np.float32))
            legal &= inside.all(axis=-1)
        if self.dim_d:
            legal &= ((d == np.floor(d)) & (d >= 0) & (d < self.ncats)).all(axis=-1)
        return legal

    def bounded(self, vector: Floats) -> Floats:
        """An action `[size]` with every element in its range, a copy."""
        c, d = vector[: self.dim_c], np.round(vector[self.dim_c :])
        return np.concatenate([clip(c, self.low, self.high), clip(d, 0, self.ncats - 1)])

    def _illegal(self, c: Floats, d: Floats) -> str:
        """Why an action is not legal: of its choices first."""
        if not np.all((d == np.floor(d)) & (d >= 0) & (d < self.ncats)):
            return f"{d.tolist()} is no choice in {self.describe()}; count from 0"
        remedy = "give numbers (None counts as nan)" if np.isnan(c).any() else "clip it, or rescale your policy"
        return f"{c.tolist()} lies outside {self.describe()}; {remedy}"

    def _wrong_size(self, value: Any, size: int) -> str:
        """What is wrong with the form of an action of `size` elements, as a sentence about it; "" if nothing."""
        if not self.size:
            return ": it takes no action; leave it out" if size else ""
        if type(value) is not np.ndarray and isinstance(value, Mapping):
            return self.wrong_parts(value)
        wrong = size != self.size
        return f" has {size} elements, expected {self.size}: {self.describe()}; reshape it" if wrong else ""

    def wrong_parts(self, value: Mapping[str, Any], times: int = 1) -> str:
        """What is wrong with {"c", "d"} of so many actions, as a sentence about it; "" if nothing."""
        if value.keys() - {"c", "d"}:
            return f" has the keys {[*value]}; name its parts 'c' (numbers) and 'd' (choices)"
        for part, size in (("c", times * self.dim_c), ("d", times * self.dim_d)):
            if (length := np.asarray(value.get(part, ())).size) != size:
                remedy = "give {'c': numbers, 'd': choices}"
                return f" has {length} elements in {part!r}, expected {size}: {self.describe()}; {remedy}"
        return ""

    def describe(self) -> str:
        """`[-5.0, 5.0] kW` or `Discrete(3)`: for messages and tables."""
        parts = []
        if self.dim_c:
            same = np.all(self.low == self.low[0]) and np.all(self.high == self.high[0])
            bounds = f"[{self.low[0]}, {self.high[0]}]" if same else f"[{self.low.tolist()}, {self.high.tolist()}]"
            parts.append(f"{bounds}{unit_text(self.unit)}" + (f" x {self.dim_c}" if self.dim_c > 1 else ""))
        if self.dim_d:
            parts.append(f"Discrete({self.ncats[0]})" if self.dim_d == 1 else f"MultiDiscrete({self.ncats.tolist()})")
        return " and ".join(parts) or "no action"

    def __get__(self, agent: Any, owner: type | None = None) -> Any:
        """The spec on the class, the agent's own Action on an instance."""
        return self if agent is None else agent.current_action

    def __set__(self, agent: Any, action: Action) -> None:
        """`self.action = Action()` in the imperative style."""
        agent.current_action = action


def _action_of(agent: str, lane: int | None) -> str:
    """Whose action is meant."""
    return f"action of {agent!r}" if lane is None else f"lane {lane}: action of {agent!r}"


def unmasked(value: Any, what: str) -> Any:
    """An action as it is. Raises InvalidAction, beginning with `what`, if it or a part of it is a masked array: reading
    on would take what the mask hides. So for a tensor with gradients.
    """
    if _masked(value):
        raise InvalidAction(f"{what} {MASKED}")
    if has_gradients(value):
        raise InvalidAction(f"{what} {WITH_GRADIENTS}")
    return value


def has_gradients(value: Any) -> bool:
    """Is it a tensor that gradients are computed for, or is a part of it?"""
    if isinstance(value, np.ndarray):
        return False
    if isinstance(value, Mapping | list | tuple):
        return any(map(has_gradients, value.values() if isinstance(value, Mapping) else value))
    return getattr(value, "requires_grad", False) is True


def _masked(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray)
    if isinstance(value, Mapping):
        return any(map(_masked, value.values()))
    return isinstance(value, list | tuple) and any(isinstance(part, np.ma.MaskedArray) for part in value)


def _joined(value: Any) -> Any:
    """An Action or {"c", "d"} as one vector; anything else as it is."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Action):
        return value.vector()
    if isinstance(value, Mapping):
        return np.concatenate([np.ravel(value.get("c", ())), np.ravel(value.get("d", ()))])
    return value


def join_specs(specs: Sequence[ActionSpec]) -> ActionSpec:
    """The spec of a joint vector: all continuous parts in order, then all discrete parts."""
    units = {spec.unit for spec in specs if spec.dim_c}
    return ActionSpec(
        low=np.concatenate([np.zeros(0), *(s.low for s in specs)]),
        high=np.concatenate([np.zeros(0), *(s.high for s in specs)]),
        ncats=np.concatenate([np.zeros(0, np.int64), *(s.ncats for s in specs)]),
        noop=np.concatenate([np.zeros(0), *(s.noop[: s.dim_c] for s in specs), *(s.noop[s.dim_c :] for s in specs)]),
        unit=units.pop() if len(units) == 1 else "1",
    )


def Continuous(
    low: ArrayLike, high: ArrayLike, *, unit: str = "1", size: int | None = None, noop: ArrayLike | None = None
) -> Any:
    """A continuous action in [low, high]: numbers (for all `size` elements) or arrays. No-op: 0, clipped into it.

    Returns:
        An ActionSpec, for the attribute `action` of an agent class.

    >>> Continuous(-5.0, 5.0, unit="kW").size
    1
    """
    if size is not None:
        size = whole(size, "Continuous(): size", 1, MOST_ELEMENTS)
    try:
        shape = np.broadcast_shapes((1 if size is None else size,), np.shape(low), np.shape(high))
        lower, upper = (np.array(np.broadcast_to(np.asarray(b, dtype=np.float64), shape)) for b in (low, high))
        still = np.broadcast_to(np.asarray(0.0 if noop is None else noop, dtype=np.float64), shape)
        fits = len(shape) == 1 and shape[0] > 0 and np.all(np.isfinite(lower) & np.isfinite(upper) & (lower <= upper))
    except (TypeError, ValueError, OverflowError, RuntimeError):  # numpy's, of an array of too many dimensions
        fits = False
    if not fits or (noop is not None and not np.all((still >= lower) & (still <= upper))):
        shown = "".join(
            f", {name}={value!r:.60}" for name, value in (("size", size), ("noop", noop)) if value is not None
        )
        rule = "bounds must be finite vectors with low <= high" + (", the no-op within" if noop is not None else "")
        raise ConfigError(f"Continuous(low={low!r:.200}, high={high!r:.200}{shown}): {rule}")
    return ActionSpec(lower, upper, noop=clip(still, lower, upper), unit=unit)


def Discrete(n: int, *, noop: int = 0) -> Any:
    """One choice of `n`; `noop` is the choice that does nothing.

    Returns:
        An ActionSpec, for the attribute `action` of an agent class.

    >>> Discrete(3).ncats.tolist()
    [3]
    """
    return _choices(f"Discrete({n!r:.200}, noop={noop!r:.60})", [n], [noop])


def MultiDiscrete(ncats: Sequence[int], *, noop: Sequence[int] | None = None) -> Any:
    """Several choices; `ncats[i]` categories each.

    Returns:
        An ActionSpec, for the attribute `action` of an agent class.

    >>> MultiDiscrete([2, 3]).size
    2
    """
    return _choices(f"MultiDiscrete({ncats!r:.200}, noop={noop!r:.60})", ncats, noop)


def Mixed(*parts: Any) -> Any:
    """Numbers and choices in one action: `Continuous` parts, then `Discrete` or `MultiDiscrete` parts, any number each.

    A rule gets one `Vector` in this order. Policies return {"c": numbers, "d": choices}, or an array of both. Masks
    cover only the choices. If the numbers have different units, the action has none.

    Returns:
        The action space, for the class attribute `action`.

    Raises ConfigError for parts of other kinds or in another order.

    >>> Mixed(Continuous(0.0, 5.0, unit="kW"), Discrete(3)).describe()
    '[0.0, 5.0] kW and Discrete(3)'
    """
    kinds = [(part.dim_c > 0, part.dim_d > 0) if isinstance(part, ActionSpec) else () for part in parts]
    if set(kinds) != {(True, False), (False, True)} or kinds != sorted(kinds, reverse=True):
        declared = (part.describe() if isinstance(part, ActionSpec) else f"{part!r:.100}" for part in parts)
        raise ConfigError(
            f"Mixed({', '.join(declared)}): needs numbers (Continuous), then choices (Discrete, MultiDiscrete): write "
            "Mixed(Continuous(low, high), Discrete(n)); of one kind alone, Continuous([low, low], [high, high]) or "
            "MultiDiscrete([n, m])"
        )
    return join_specs(parts)


def _choices(call: str, ncats: Sequence[int], noop: Sequence[int] | None) -> ActionSpec:
    """The spec; `call`: how it was asked for, for errors."""
    try:
        cats = np.asarray(ncats, dtype=np.float64)
        still = np.zeros(cats.shape) if noop is None else np.asarray(noop, dtype=np.float64)
        fits = cats.ndim == 1 and len(cats) > 0 and still.shape == cats.shape
        fits = fits and all(cats >= 1) and all((still >= 0) & (still < cats)) and not any([*(cats % 1), *(still % 1)])
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise ConfigError(
            f"{call}: needs a whole number >= 1 of categories each, and a no-op among them; "
            "write Discrete(3), or MultiDiscrete([3, 2])"
        )
    if cats.max() > MOST_CATEGORIES:
        raise ConfigError(f"{call}: at most 2**53 categories each, more can't be told apart in float64")
    return ActionSpec(ncats=cats.astype(np.int64), noop=still)


class Action:
    """The current action of one agent: continuous part `c` (float64) and discrete part `d` (int64)."""

    def __init__(self, spec: ActionSpec | None = None) -> None:
        if not isinstance(spec, ActionSpec | None):
            raise ConfigError(f"Action({spec!r:.200}): must be Continuous(...), Discrete(...) or Mixed(...)")
        self.spec = spec or ActionSpec()
        self._vector = self.spec.noop.copy()

    def set_specs(
        self,
        dim_c: int = 0,
        dim_d: int = 0,
        ncats: Sequence[int] | int = (),
        range: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        """Declare the action: `dim_c` numbers within `range`, `dim_d` choices of `ncats` each. Raises ConfigError."""
        dim_c = whole(dim_c, "Action.set_specs(): dim_c", 0, MOST_ELEMENTS)
        dim_d = whole(dim_d, "Action.set_specs(): dim_d", 0, MOST_ELEMENTS)
        cats = [ncats] * dim_d if isinstance(ncats, int) else several(ncats, "Action.set_specs(): ncats")
        if len(cats) != dim_d:
            raise ConfigError(f"Action.set_specs(dim_d={dim_d}, ncats={ncats!r}): give {dim_d} numbers of categories")
        bounds = (-1.0, 1.0) if range is None else several(range, "Action.set_specs(): range")
        if len(bounds) != 2:
            raise ConfigError(f"Action.set_specs(range={range!r:.200}): must be a pair (low, high)")
        parts = [Continuous(*bounds, size=dim_c)] if dim_c else []
        self.spec = join_specs([*parts, *([MultiDiscrete(cats)] if dim_d else [])])
        if self.spec.dim_c != dim_c:
            raise ConfigError(
                f"Action.set_specs(dim_c={dim_c}, range={range!r}): the range has {self.spec.dim_c} elements"
            )
        self._vector = self.spec.noop.copy()

    def set_values(self, value: Any = None, *, c: Any = None, d: Any = None) -> None:
        """Set from an array, Action or {"c", "d"}, with clipping. Raises InvalidAction for another size or nan."""
        if value is None:
            value = {"c": self.c if c is None else c, "d": self.d if d is None else d}
        value = unmasked(value, "Action.set_values(): what was given")
        try:
            vector = np.asarray(_joined(value), dtype=np.float64).reshape(-1)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidAction(
                f"Action.set_values({value!r:.200}): expected numbers, {self.spec.describe()}"
            ) from error
        if wrong := self.spec._wrong_size(value, vector.size):
            raise InvalidAction(f"Action.set_values({value!r:.200}){wrong}")
        if np.isnan(vector).any():
            raise InvalidAction(f"Action.set_values({value!r:.200}): nan is no action; give numbers")
        self._vector = self.spec.bounded(vector)

    def clip(self) -> None:
        """Clip every element into its range."""
        self._vector[:] = self.spec.bounded(self._vector)

    def sample(self, rng: np.random.Generator) -> None:
        """Draw uniformly from the range and the categories."""
        self._vector = np.concatenate([rng.uniform(self.spec.low, self.spec.high), rng.integers(self.spec.ncats)])

    def vector(self) -> Floats:
        """A copy of c, then d, as float64 `[size]`."""
        return self._vector.copy()

    @property
    def c(self) -> Floats:
        """Continuous part, float64 `[dim_c]`: a view."""
        return self._vector[: self.dim_c]

    @c.setter
    def c(self, value: ArrayLike) -> None:
        self.set_values(c=value)

    @property
    def d(self) -> Ints:
        """Discrete part, int64 `[dim_d]`: a copy."""
        return self._vector[self.dim_c :].astype(np.int64)

    @d.setter
    def d(self, value: ArrayLike) -> None:
        self.set_values(d=value)

    @property
    def dim_c(self) -> int:
        return self.spec.dim_c

    @property
    def dim_d(self) -> int:
        return self.spec.dim_d

    @property
    def ncats(self) -> Ints:
        return self.spec.ncats

    @property
    def range(self) -> tuple[Floats, Floats]:
        """Lower and upper bounds of the continuous part."""
        return self.spec.low, self.spec.high

    def __repr__(self) -> str:
        """`Action(c=[0.3], d=[])`."""
        return f"Action(c={self.c.tolist()}, d={self.d.tolist()})"


class Vector:
    """Type of the action in rules: `action[0]` is a float. It has an index and a length, no more; the array
    `child_rewards` is a NDArray[np.float64].
    """

    __slots__ = ("_values",)

    def __init__(self, values: Sequence[float]) -> None:
        self._values = values

    def __getitem__(self, index: int) -> float:
        """Element `index` as a Python float."""
        return self._values[index]

    def __len__(self) -> int:
        return len(self._values)
