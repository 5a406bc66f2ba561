"""Keyed randomness: every draw is a pure function of a seed and stable names, never of a running count.

The mixer is splitmix64's finaliser (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014);
names enter through blake2b, so nothing depends on PYTHONHASHSEED, process or order.
"""

import hashlib
import math
import operator
from functools import lru_cache
from statistics import NormalDist
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError

MASK = 0xFFFF_FFFF_FFFF_FFFF
GOLDEN = 0x9E37_79B9_7F4A_7C15
FACTOR_A, FACTOR_B = 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB
"""splitmix64: the step of its state, and the factors of its finaliser."""
_STEP = np.array([GOLDEN], dtype=np.uint64)  # an array: its sums wrap around without a warning
_normal = NormalDist()


@lru_cache(maxsize=65536)
def h(text: str) -> int:
    """64-bit hash of a name: blake2b with 8 bytes, big-endian."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def mix(x: int) -> int:
    """splitmix64's finaliser, modulo 2**64."""
    x = (x ^ (x >> 30)) * FACTOR_A & MASK
    x = (x ^ (x >> 27)) * FACTOR_B & MASK
    return x ^ (x >> 31)


def mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`mix` of every element of a uint64 array."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FACTOR_A)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(FACTOR_B)
    return z ^ (z >> np.uint64(31))


def key(*parts: str | int) -> int:
    """One 64-bit key out of stable parts (names and integers), in their order."""
    x = GOLDEN
    for part in parts:
        x = mix((x ^ (h(part) if isinstance(part, str) else operator.index(part) & MASK)) + GOLDEN & MASK)
    return x


def keys(*parts: str | int | NDArray[np.uint64], after: NDArray[np.uint64] | None = None) -> NDArray[np.uint64]:
    """`key` of many at once, `[n]`: parts that differ are arrays `[n]`; `after`: keys of the parts before them."""
    x: NDArray[np.uint64] = np.array(GOLDEN, dtype=np.uint64) if after is None else after
    for part in parts:
        number = h(part) if isinstance(part, str) else part & MASK if isinstance(part, int) else part
        x = mixed((x ^ np.asarray(number, dtype=np.uint64)) + _STEP)
    return x


@overload
def uniform(x: int) -> float: ...


@overload
def uniform(x: NDArray[np.uint64]) -> NDArray[np.float64]: ...


def uniform(x: Any) -> Any:
    """A float64 in [0, 1) from a key, or from each of an array of keys: its upper 53 bits."""
    return (x >> 11) * 2.0**-53


def element(x: int, number: int) -> float:
    """Element `number` of `uniforms(x, ...)`."""
    return uniform(mix(x + (number + 1) * GOLDEN & MASK))


def uniforms(x: int, shape: int | tuple[int, ...]) -> NDArray[np.float64]:
    """float64 `[*shape]` in [0, 1): element i depends on the key and i only."""
    rows: NDArray[np.float64] = uniform_rows(np.array([x], dtype=np.uint64), shape)[0]
    return rows


def uniform_rows(x: NDArray[np.uint64], shape: int | tuple[int, ...], first: int = 0) -> NDArray[np.float64]:
    """`uniforms` of many keys `[n]` at once from their element `first` on, `[n, *shape]`."""
    dims = shape if isinstance(shape, tuple | list) else (shape,)
    counter = np.arange(first + 1, first + math.prod(dims) + 1, dtype=np.uint64) * _STEP
    return uniform(mixed(counter + x[:, None])).reshape(len(x), *dims)


def fresh_seed() -> int:
    """A seed from the system's entropy, for what nobody gave one; 32 bits, which every `reset(seed=...)` takes."""
    return int(np.random.SeedSequence().generate_state(1)[0])


def standard_normal(u: float) -> float:
    """The normal quantile of a uniform in [0, 1); 0 itself is taken as 2**-54."""
    return _normal.inv_cdf(u if u > 0.0 else 2.0**-54)


def stream(seed: int, *parts: str | int) -> np.random.Generator:
    """Return a numpy generator for (seed, parts); each has its own stream.

    Returns:
        A `numpy.random.Generator`.

    Raises ConfigError for a seed that is no whole number, and for a part that is neither that nor a name.

    >>> stream(7, "weather").random() == stream(7, "weather").random()
    True
    """
    try:
        return np.random.Generator(np.random.PCG64(key(seed, *parts)))
    except (TypeError, UnicodeEncodeError) as error:
        raise ConfigError(
            f"stream{(seed, *parts)!r:.200}: the seed must be a whole number, each part after it that or a name"
        ) from error
