"""Names that are the same in every run: UUIDs and sha256 over canonical JSON (RFC 8785), never of a seed.

Whoever can guess what was hashed can undo a hash. With a `key`, a secret of the run, nobody can who lacks it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from os import PathLike
from typing import Any, Final

import numpy as np
from pydantic import BaseModel

from heron_env.errors import ConfigError

Where = tuple[str | int, ...]
"""(episode, agent, number) of a decision; one that is asked again under a number also has how often it was before."""
EXACT: Final = 2**53
"""Whole numbers beyond it are written as text: a reader of JSON may hold numbers as float64."""


def canonical(value: Any) -> bytes:
    """RFC 8785 JSON of what `plain` makes of a value. Raises ConfigError where the extra `inject` is missing."""
    try:
        import rfc8785
    except ImportError as error:
        raise ConfigError("external agents need rfc8785: pip install 'heron_env[inject]'") from error
    return rfc8785.dumps(plain(value))


def plain(value: Any) -> Any:
    """A value as JSON: models and dataclasses by their fields, arrays as lists, code by its name, sets sorted."""
    match value:
        case None | bool():
            return value
        case str():
            return value.encode("utf-8", "replace").decode()
        case int() | np.integer():
            return int(value) if abs(int(value)) < EXACT else str(int(value))
        case float() | np.floating():
            return float(value) if math.isfinite(value) else str(float(value))
        case BaseModel():
            return plain(value.model_dump())
        case Mapping():
            return {str(name): plain(item) for name, item in value.items()}
        case set() | frozenset():
            return sorted(map(str, value))
        case list() | tuple():
            return [plain(item) for item in value]
        case np.ndarray() | np.bool_():
            return plain(value.tolist())
        case PathLike():
            return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}:{named.__qualname__}"


def sha256(value: Any, key: str = "") -> str:
    """`sha256:` and 64 hexadecimal digits; with a key, of HMAC."""
    data = canonical(value)
    digest = hmac.new(key.encode(), data, hashlib.sha256) if key else hashlib.sha256(data)
    return f"sha256:{digest.hexdigest()}"


def uuid8(data: bytes, key: str = "") -> str:
    """A UUID of version 8 (RFC 9562): 122 bits of blake2b, keyed by a `key` of up to 64 letters."""
    number = int.from_bytes(hashlib.blake2b(data, digest_size=16, key=key.encode()).digest(), "big")
    number = number & ~(0xF << 76) | 8 << 76
    number = number & ~(0x3 << 62) | 2 << 62
    text = f"{number:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


class Ids:
    """The ids of one run: of (env id, options, label), then of episode, agent, number, and attempt.

    `label` is policy, case, condition; never a seed, since a hash of one can be guessed.
    """

    def __init__(self, env_id: str, options: Mapping[str, Any], label: str, key: str = "") -> None:
        self._prefix, self._key = canonical([env_id, options, label])[:-1], key
        self.run = uuid8(self._prefix + b"]", key)

    def _of(self, *parts: str | int) -> str:
        told = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))  # canonical for text and whole numbers
        return uuid8(self._prefix + b"," + told[1:].encode("utf-8", "replace"), self._key)

    def turn(self, where: Where) -> str:
        """Of one decision."""
        return self._of(*where)

    def message(self, where: Where) -> str:
        """Of what it was told."""
        return self._of(*where, "stimulus")

    def request(self, where: Where, attempt: int) -> str:
        """Of one request of it, attempts counted from 0."""
        return self._of(*where, attempt)
