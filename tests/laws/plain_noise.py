"""The law of noise (N1, N2, N4) once more, in hashlib and whole numbers of Python, one number at a time."""

import hashlib
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

GOLDEN = 0x9E3779B97F4A7C15
WORD = 2**64
FRACTION_BITS = 23


class Look(NamedTuple):
    """Who looks at what, and when."""

    observer: str
    target: str
    name: str
    element: int = 0
    seed: int = 0
    episode: int = 0
    turn: int = 0


@cache
def hashed(text: str) -> int:
    """blake2b of 8 bytes, read from the left."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "big")


@cache
def finalised(z: int) -> int:
    """splitmix64's last three lines."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % WORD
    return z ^ (z >> 31)


def plain_uniform(look: Look) -> float:
    """u in [-1, 1), a multiple of 2**-23."""
    z = finalised(hashed(look.observer))
    z = finalised(z ^ hashed(look.target))
    z = finalised(z ^ hashed(look.name))
    z = (z + look.element * GOLDEN) % WORD
    for part in (look.seed, look.episode, look.turn):
        z = finalised(z ^ (part % WORD))
    return (z // 2**40 - 2**FRACTION_BITS) / 2**FRACTION_BITS


def plain_noisy(value: Any, u: float, factor: float, law: str, low: float, high: float) -> Any:
    """What is seen of a float or an int that noise falls on; an int stays one."""
    if factor == 0:
        return value
    if law == "additive":
        seen: Any = value + factor * (high - low) * u
    else:
        times = sorted((0.01, 1.0 + factor * u, 100.0))[1]
        exact = isinstance(value, int) and abs(value) >= 2**53
        seen = Fraction(value) * Fraction(times) if exact else value * times
    if isinstance(value, int):
        seen = round(seen)
    return type(value)(sorted((low, seen, high))[1])
