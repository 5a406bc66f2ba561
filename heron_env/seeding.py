"""Keyed randomness: every draw is a pure function of a seed and stable names, never of a running count.

The mixer is splitmix64's finaliser (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014);
names enter through blake2b, so nothing depends on PYTHONHASHSEED, process or order.
"""

import hashlib
import operator
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError

MASK = 0xFFFF_FFFF_FFFF_FFFF
GOLDEN = 0x9E37_79B9_7F4A_7C15
_normal = NormalDist()


@lru_cache(maxsize=65536)
def h(text: str) -> int:
    """64-bit hash of a name: blake2b with 8 bytes, big-endian."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def mix(x: int) -> int:
    """splitmix64's finaliser, modulo 2**64."""
    x = (x ^ (x >> 30)) * 0xBF58_476D_1CE4_E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D0_49BB_1331_11EB & MASK
    return x ^ (x >> 31)


def key(*parts: str | int) -> int:
    """One 64-bit key out of stable parts (names and integers), in their order."""
    x = GOLDEN
    for part in parts:
        x = mix((x ^ (h(part) if isinstance(part, str) else operator.index(part) & MASK)) + GOLDEN & MASK)
    return x


def uniform(x: int) -> float:
    """A float64 in [0, 1) from a key: its upper 53 bits."""
    return (x >> 11) * 2.0**-53


def mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`mix` of every element of a uint64 array."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return z ^ (z >> np.uint64(31))


def uniforms(x: int, shape: int | tuple[int, ...]) -> NDArray[np.float64]:
    """float64 `[*shape]` in [0, 1): element i depends on the key and i only."""
    counter = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64)
    z = mixed(counter * np.uint64(GOLDEN) + np.uint64(x))
    return ((z >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape)


def keys(*parts: str | int | NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`key` of many at once, `[n]`: parts that differ are arrays `[n]`."""
    x: NDArray[np.uint64] = np.array(GOLDEN, dtype=np.uint64)
    for part in parts:
        number = h(part) if isinstance(part, str) else part & MASK if isinstance(part, int) else part
        x = mixed((x ^ np.asarray(number, dtype=np.uint64)) + np.array([GOLDEN], dtype=np.uint64))
    return x


def uniform_rows(x: NDArray[np.uint64], shape: int | tuple[int, ...]) -> NDArray[np.float64]:
    """`uniforms` of many keys `[n]` at once, `[n, *shape]`."""
    counter = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    z = mixed(counter + x[:, None])
    dims = (shape,) if isinstance(shape, int) else shape
    return ((z >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(len(x), *dims)


def standard_normal(u: float) -> float:
    """The normal quantile of a uniform in [0, 1); 0 itself is taken as 2**-54."""
    return _normal.inv_cdf(u if u > 0.0 else 2.0**-54)


def stream(seed: int, *parts: str | int) -> np.random.Generator:
    """A numpy generator of its own for (seed, parts): switching one stream on shifts no other.

    Raises ConfigError for a seed that is no whole number, and for a part that is neither that nor a name.
    """
    try:
        return np.random.Generator(np.random.PCG64(key(seed, *parts)))
    except (TypeError, UnicodeEncodeError) as error:
        raise ConfigError(
            f"stream{(seed, *parts)!r:.200}: the seed must be a whole number, each part after it that or a name"
        ) from error
