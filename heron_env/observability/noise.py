"""Observation noise: a pure function of who looks at what, and when (rules N1 to N5 of docs/laws.md).

`value * clip(1 + noise * u, 0.01, 100)`, or `value + noise * (high - low) * u` by the additive law, then the declared
bounds. The uniform u in [-1, 1) is keyed by observer, target, "Feature.field", element, seed, episode and turn, and by
nothing else: not by order, thread, batch lane or the number of agents. Test vectors: tests/golden/noise_vectors.json.

>>> noise_uniform(NoiseKey("A", "B", "Charge.soc", seed=7, turn=3))
0.7713654041290283
>>> apply_noise(0.5, 0.2, NoiseKey("A", "B", "Charge.soc", seed=7, turn=3), low=0.0, high=1.0)
0.5771365404129029
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import Layout
from heron_env.core.quantity import clip, within
from heron_env.errors import ConfigError, did_you_mean
from heron_env.given import is_finite, is_one_of
from heron_env.seeding import GOLDEN, MASK, h, mix, mixed

LEAST, MOST = 0.01, 100.0
"""What multiplicative noise can make of a value at the utmost: so many times as much."""
BLOCK = 1 << 14
"""Elements that noise is added to at a time: what fits a processor's cache."""
MULTIPLICATIVE, ADDITIVE = LAWS = "multiplicative", "additive"
NUMBERS = (int, float, complex, Decimal, Fraction, np.number)
Floats = NDArray[np.float64]
Columns = NDArray[np.int64]


class Moment(NamedTuple):
    """When somebody looks: `turn` is the control step of the nominal tick that asks (T9)."""

    seed: int
    episode: int
    turn: int


class NoiseKey(NamedTuple):
    """Key of the noise on one number (N2): observer, target, name and time."""

    observer: str
    target: str
    name: str
    """"Feature.field"."""
    element: int = 0
    """Place in a vector quantity; 0 for a single number."""
    seed: int = 0
    episode: int = 0
    turn: int = 0


def noise_uniform(key: NoiseKey) -> float:
    """The uniform u in [-1, 1) of this key, a multiple of 2**-23."""
    column = mix(mix(mix(h(key.observer)) ^ h(key.target)) ^ h(key.name)) + key.element * GOLDEN & MASK
    x = mix(mix(mix(column ^ key.seed & MASK) ^ key.episode & MASK) ^ key.turn & MASK)
    return (x >> 40) * 2.0**-23 - 1.0


def apply_noise(
    value: Any,
    noise_factor: float,
    seed_components: NoiseKey,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    law: str = MULTIPLICATIVE,
) -> Any:
    """Add observation noise to a value (N1). Ints stay ints (rounded half to even); other types are exact (N4).

    Integers beyond 2**53, which float64 cannot represent, use exact arithmetic.

    Args:
        value: int, float, complex, Decimal or Fraction (as floats). Anything else is returned unchanged, also bools and
            the members of an Enum, which are categories.
        noise_factor: >= 0; 0 returns the value itself.
        seed_components: the key of the random draw.
        low, high: declared bounds, both included.
        law: "multiplicative", or "additive": relative to the declared range, which must be finite.

    Returns:
        The value with noise, within the bounds, and of the same kind.

    Raises ConfigError for another law, factor or key.

    >>> apply_noise(10.0, 0.1, NoiseKey(observer="a", target="b", name="Charge.soc"))
    10.611892461776733
    >>> apply_noise("red", 0.1, NoiseKey(observer="a", target="b", name="Charge.colour"))
    'red'
    """
    if not is_one_of(law, LAWS) or not _is_factor(noise_factor) or not isinstance(seed_components, NoiseKey):
        raise _misused(noise_factor, seed_components, law)
    if noise_factor == 0.0 or isinstance(value, bool | np.bool_ | Enum) or not isinstance(value, NUMBERS):
        return value
    if isinstance(value, complex | np.complexfloating):
        parts = (value.real, value.imag)
        key = seed_components
        return complex(*(apply_noise(float(p), noise_factor, key, low=low, high=high, law=law) for p in parts))
    if isinstance(value, Decimal | Fraction):
        return type(value)(apply_noise(float(value), noise_factor, seed_components, low=low, high=high, law=law))
    for name, bound in (("low", low), ("high", high)):
        if not isinstance(bound, int | float | np.integer | np.floating) or bound != bound:
            raise ConfigError(f"apply_noise({name}={bound!r}): must be a number")
    return _noisy_number(value, noise_factor, seed_components, low, high, law)


def _noisy_number(value: Any, noise_factor: float, key: NoiseKey, low: float, high: float, law: str) -> Any:
    """An int or a float with its noise, within the bounds."""
    u = noise_uniform(key)
    is_integer = isinstance(value, int | np.integer)
    if law == ADDITIVE:
        noisy = value + noise_factor * finite_range(low, high, key.name) * u
    elif is_integer and abs(int(value)) >= 2**53:
        return _within(_times(int(value), factor_of(noise_factor * u)), low, high)
    else:
        noisy = float(value) * factor_of(noise_factor * u)
    if is_integer:
        noisy = round(noisy) if math.isfinite(noisy) else noisy
    return _within(noisy, low, high)


def _misused(noise_factor: float, key: object, law: str) -> ConfigError:
    if not is_one_of(law, LAWS):
        return ConfigError(f"apply_noise(law={law!r}): must be one of {LAWS}.{did_you_mean(law, LAWS)}")
    if not _is_factor(noise_factor):
        return ConfigError(f"apply_noise(noise_factor={noise_factor!r:.60}): must be a number >= 0")
    return ConfigError(
        f"apply_noise(seed_components={key!r}): must be a NoiseKey; write NoiseKey(observer, target, 'Feature.field', "
        "seed=0, episode=0, turn=0)"
    )


def fits(value: Any) -> bool:
    """Can it be held as a float? Infinity can."""
    return is_finite(value) or isinstance(value, float | np.floating)


def _is_factor(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and bool(0.0 <= value <= math.inf) and fits(value)


def factor_of(relative: float) -> float:
    """What the value is multiplied by, for a relative error."""
    factor: float = within(1.0 + relative, LEAST, MOST)
    return factor


def _times(value: int, factor: float) -> int:
    """A big int times a float, exactly, rounded half to even."""
    top, bottom = factor.as_integer_ratio()
    quotient, rest = divmod(value * top, bottom)
    return quotient + (2 * rest > bottom or (2 * rest == bottom and quotient % 2 == 1))


def _within(value: Any, low: float, high: float) -> Any:
    try:
        return type(value)(low) if value < low else type(value)(high) if value > high else value
    except OverflowError as error:
        kind = type(value).__name__
        raise ConfigError(f"apply_noise(low={low!r:.60}, high={high!r:.60}): must be bounds that fit {kind}") from error


def finite_range(low: float, high: float, name: str) -> float:
    """`high - low`. Raises ConfigError where one of them is missing."""
    if not math.isfinite(high - low):
        raise ConfigError(
            f"{name} has the bounds [{low}, {high}]: additive noise is relative to a finite range; "
            "declare both bounds, or use the multiplicative law"
        )
    return high - low


def endless(low: Floats, high: Floats) -> NDArray[np.bool_]:
    """Where there is no finite range for noise to be relative to."""
    with np.errstate(over="ignore"):
        return ~np.isfinite(high - low)


@dataclass(frozen=True, eq=False)
class VisibleColumns:
    """What one observer sees: columns int64 `[n]`, their noise factors float64 `[n]`, and where noise is additive."""

    columns: Columns
    factors: Floats
    additive: NDArray[np.bool_]

    @classmethod
    def exactly(cls, columns: Columns) -> VisibleColumns:
        """These columns without noise."""
        return cls(columns, np.broadcast_to(0.0, len(columns)), np.broadcast_to(False, len(columns)))

    @classmethod
    def joined(cls, parts: Sequence[VisibleColumns]) -> VisibleColumns:
        """What several observers see, one after another."""
        if not parts:
            return cls.exactly(np.zeros(0, np.int64))
        factors, additive = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("factors", "additive")
        )
        return cls(np.concatenate([part.columns for part in parts]), factors, additive)

    def require_ranges(self, layout: Layout) -> None:
        """Raise ConfigError where noise is additive to a column without a finite range."""
        columns = self.columns[self.additive & (self.factors > 0.0) & layout.noisy[self.columns]]
        for column in columns[endless(layout.low[columns], layout.high[columns])][:1]:
            finite_range(float(layout.low[column]), float(layout.high[column]), layout.names[column])


class ColumnNoise:
    """The noise on some elements of a gathered vector: the same law as `apply_noise`, for all of them at once.

    Args:
        at: places in the vector, int64 `[k]`.
        keys: N2's keys of observer, target, field and element, uint64 `[k]`.
        factors: float64 `[k]`, > 0.
        additive: bool `[k]`; where True, noise is relative to the declared range.
        low, high: declared bounds, float64 `[k]`.
        whole: bool `[k]`; where True, values are rounded.
    """

    def __init__(
        self,
        at: Columns,
        keys: NDArray[np.uint64],
        factors: Floats,
        additive: NDArray[np.bool_],
        low: Floats,
        high: Floats,
        integer: NDArray[np.bool_],
    ) -> None:
        self.at, self.keys, self.factors, self.additive = at, keys, factors, additive
        self.low, self.high, self.integer = low, high, integer
        self._any_additive, self._any_integer = bool(additive.any()), bool(integer.any())
        self.reach = factors
        if self._any_additive:
            with np.errstate(over="ignore"):
                reach = factors * np.where(additive, high - low, 1.0)
            self.reach = np.minimum(reach, np.finfo(np.float64).max)  # infinite it would give nan where u is 0
        self._episode: tuple[int, int] | None = None
        self._episode_keys = keys

    @classmethod
    def of(cls, layout: Layout, observers: Columns, read: VisibleColumns) -> ColumnNoise | None:
        """The noise of what is read; `observers`: the rank of who reads each column. None if all is exact."""
        at = np.flatnonzero((read.factors > 0.0) & layout.noisy[read.columns])
        if not len(at):
            return None
        columns = read.columns[at]
        keys = column_keys(layout, observers[at], columns)
        bounds = layout.low[columns], layout.high[columns], layout.integer[columns]
        return cls(at, keys, read.factors[at], read.additive[at], *bounds)

    def uniforms(self, moment: Moment, span: slice = slice(None)) -> Floats:
        """u of every element of a span of the elements, float64 in [-1, 1)."""
        if self._episode != moment[:2]:
            seed, episode = (np.uint64(int(part) & MASK) for part in moment[:2])
            self._episode, self._episode_keys = moment[:2], mixed(mixed(self.keys ^ seed) ^ episode)
        x = mixed(self._episode_keys[span] ^ np.uint64(int(moment.turn) & MASK))
        return (x >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1.0

    def add_noise(self, values: Floats, moment: Moment) -> None:
        """Change the vector in place."""
        with np.errstate(over="ignore", invalid="ignore"):  # beyond float64: infinite, then clipped to the bounds
            for start in range(0, len(self.at), BLOCK):
                self._add_noise(values, moment, slice(start, start + BLOCK))

    def _add_noise(self, values: Floats, moment: Moment, span: slice) -> None:
        at = self.at[span]
        exact, error = values[at], self.reach[span] * self.uniforms(moment, span)
        noisy = exact * clip(1.0 + error, LEAST, MOST)
        if self._any_additive:
            noisy = np.where(self.additive[span], exact + error, noisy)
        if self._any_integer:
            noisy = np.where(self.integer[span], np.rint(noisy) + 0.0, noisy)  # + 0.0: no int is -0.0
        values[at] = clip(noisy, self.low[span], self.high[span])


def column_keys(layout: Layout, observers: Columns, columns: Columns) -> NDArray[np.uint64]:
    """N2's key of each column `[k]` for who reads it (ranks `[k]`), before seed, episode and turn."""
    owners = layout.owner_hash
    keys = keys_of_hashes(owners[observers], owners[layout.owner_of[columns]], layout.field_hash[columns])
    return keys + layout.element[columns] * np.uint64(GOLDEN)


def keys_of_hashes(
    observers: NDArray[np.uint64], targets: NDArray[np.uint64], fields: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """N2's keys of element 0, uint64 `[k]`, from the hashes of who looks, at whom, and of "Feature.field"."""
    return mixed(mixed(mixed(observers) ^ targets) ^ fields)
