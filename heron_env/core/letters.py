"""Letters: sealed when they are written, so that nobody changes or shares what is in them on their way."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from heron_env.errors import ConfigError, path_text

MOST_BYTES = 16_000
"""Of a letter's body as JSON in UTF-8: keys sorted, no spaces."""
MOST_DEPTH = 32
"""Of lists and objects within each other."""
LONGEST_KIND = 100
TOO_LONG = f"its body is longer than {MOST_BYTES:,} bytes as JSON; shorten it"

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Letter:
    """Letter from one agent to another; it travels on the sender's own link, like its reports.

    Attributes:
        body: JSON (objects with text keys, lists, text, numbers, booleans, None) of at most 16 kB.
    """

    sender: str
    receiver: str
    kind: str
    body: Any


@dataclass(frozen=True, slots=True)
class Sealed:
    """A letter as it travels; `text` is its body as JSON, keys sorted."""

    sender: str
    receiver: str
    kind: str
    text: str

    def opened(self) -> Letter:
        """The letter, with a body that nobody else holds."""
        return Letter(self.sender, self.receiver, self.kind, json.loads(self.text))

    def to_dict(self) -> dict[str, Any]:
        """`{"_owner_id", "_receiver_id", "kind", "body"}`."""
        body = json.loads(self.text)
        return {"_owner_id": self.sender, "_receiver_id": self.receiver, "kind": self.kind, "body": body}


Written = tuple[int, Sealed]
"""(rank of the receiver, the letter)."""


@dataclass(frozen=True, slots=True)
class LetterCounts:
    """What became of the letters: sent == read + unread + lost + in_flight, always.

    `unread`: they came and nobody read them, or not yet: their receivers had ended, ask no question any more, or have
    policies that don't read. A letter of which a second copy travels is one letter, lost if both are.
    """

    sent: int = 0
    read: int = 0
    unread: int = 0
    lost: int = 0
    in_flight: int = 0

    def balanced(self) -> bool:
        """Is every letter accounted for?"""
        return self.sent == self.read + self.unread + self.lost + self.in_flight


def sealed(letter: Letter, where: str) -> Sealed:
    """The letter as it is now, whatever its writer does with it later.

    Raises ConfigError saying `where`, for a kind that is no short text and for a body that is no JSON of at most
    MOST_BYTES and MOST_DEPTH, with the path to the culprit.
    """
    kind = letter.kind
    if not isinstance(kind, str) or not 0 < len(kind) <= LONGEST_KIND:
        raise ConfigError(f"{where}: kind={kind!r:.120}: must be a text of 1 to {LONGEST_KIND} characters, as 'offer'")
    _require_json(letter.body, where, ("body",), [MOST_BYTES])
    try:
        kind.encode()
        text = json.dumps(letter.body, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)
        fits = len(text.encode()) <= MOST_BYTES
    except ValueError as error:  # half a surrogate pair; an integer of more digits than Python writes
        raise ConfigError(f"{where}: can't be written as JSON in UTF-8: {error}") from error
    if not fits:
        raise ConfigError(f"{where}: {TOO_LONG}")
    return Sealed(letter.sender, letter.receiver, str(kind), text)


def _require_json(value: object, where: str, path: Path, left: list[int]) -> None:
    """Raise ConfigError for what is no JSON, too deep, or longer than `left` characters; that is used up."""
    left[0] -= len(value) + 2 if isinstance(value, str) else 1
    if left[0] < 0:
        raise ConfigError(f"{where}: {TOO_LONG}")
    if len(path) > MOST_DEPTH and isinstance(value, list | tuple | dict):
        raise ConfigError(f"{where}: its body is deeper than {MOST_DEPTH} levels, or contains itself; make it flatter")
    match value:
        case None | bool() | int() | str():
            return
        case float():
            fault = "" if math.isfinite(value) else f"is {value!r}; write None, or leave it out"
        case list() | tuple():
            fault = ""
            for place, item in enumerate(value):
                _require_json(item, where, (*path, place), left)
        case dict():
            fault = ""
            for key, item in value.items():
                if not isinstance(key, str):
                    fault = f"has the key {key!r:.60}; keys are texts"
                    break
                left[0] -= len(key) + 3
                _require_json(item, where, (*path, key), left)
        case _:
            fault = (
                f"is a {type(value).__name__}, {value!r:.60}; write lists, objects with text keys, text, numbers, "
                "booleans or None"
            )
    if fault:
        raise ConfigError(f"{where}: {path_text(path)} {fault}")
