"""Reading files that anybody may have damaged: what is no file, too big or no JSON is a ValueError with a few words.

Readers say in their own error whose file it is and how to mend it.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from pydantic import ValidationError

SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""What stands for half a character or more."""
HALF: Final = re.compile("[\\ud800-\\udfff]")
HALF_CHARACTER: Final = "half a surrogate pair, which no UTF-8 text can hold"
MOST: Final = 512 * 2**20
"""Bytes of a file, packed or not, that are read at most: its values take many times that."""
VALUE: Final = 60
"""Letters of a value that a fault tells."""
MOST_DIGITS: Final = 300
"""Of a whole number, where a file may want to deceive."""
OPEN: Final = "others may write to it"


def why_not_ours(status: os.stat_result) -> str:
    """Who else may have written a file or folder: empty where nobody can have but this user and root, or on Windows."""
    if not hasattr(os, "geteuid"):
        return ""
    if status.st_uid not in (0, os.geteuid()):
        return "it belongs to another user"
    return OPEN if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


def read(path: str | Path, most: int = MOST, *, ours: bool = False) -> bytes:
    """All of a regular file. Raises OSError; ValueError for a pipe or device, and for more than `most` bytes.

    `ours`: another user's, and one that others may write to, is a PermissionError.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(descriptor)
        mode = status.st_mode
        if ours and (why := why_not_ours(status)):
            raise PermissionError(errno.EPERM, why, str(path))
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise ValueError("it is a pipe or a device, no regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            return _capped(stream.read(most + 1), most)
    finally:
        os.close(descriptor)


def is_file(path: str | Path) -> bool:
    """Is a regular file there? A name that no file can have is none; Path.is_file raises for a long one."""
    return os.path.isfile(path)


def is_folder(path: str | Path) -> bool:
    """Is a folder there? As `is_file`."""
    return os.path.isdir(path)


def unpacked(data: bytes, most: int = MOST) -> bytes:
    """What gzip packed. Raises ValueError for damage, and for more than `most` bytes."""
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        whole = unpacking.decompress(data, most + 1)
    except zlib.error as error:
        raise ValueError(f"it is no whole gzip file: {error}") from error
    _capped(whole, most)
    if not unpacking.eof or unpacking.unused_data:
        raise ValueError("it is no whole gzip file: it ends too early or too late")
    return whole


def decimal(text: str) -> float:
    """The number that a cell or an option writes. Raises ValueError, also for `1_0`, which Python reads as 10."""
    return float(_plain(text))


def whole_decimal(text: str) -> int:
    """The same of a whole number."""
    return int(_plain(text))


def _plain(text: str) -> str:
    if "_" in text or not text.isascii():
        raise ValueError(f"{text!r:.{VALUE}} is no number as files write it: digits 0-9, and no '_' between them")
    return text


class NotFinite(ValueError):
    """A number that is NaN, infinite, or beyond float64."""


class RepeatedKey(ValueError):
    """A key that stands twice in one object."""


class HalfCharacter(ValueError):
    """A text with half a surrogate pair, which nobody can print or write again."""


def parsed(data: bytes | str, *, hostile: bool = False) -> Any:
    """The values of strict JSON.

    Raises ValueError, also for what is nested too deeply; NotFinite for such a number, HalfCharacter for such a text.

    `hostile`: written by who may want to deceive. Then a key twice in one object is a RepeatedKey, and a whole number
    that no float64 comes near to is NotFinite, too.
    """
    hooks: dict[str, Any] = {"object_pairs_hook": _unique, "parse_int": _whole} if hostile else {}
    text = data if isinstance(data, str) else data.decode(json.detect_encoding(data))  # json itself lets halves pass
    try:
        value = json.loads(text, parse_constant=_not_finite, parse_float=_finite, **hooks)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if SURROGATE.search(text) and any(map(HALF.search, _texts(value))):
        raise HalfCharacter(HALF_CHARACTER)
    return value


def _texts(value: Any) -> Iterator[str]:
    """All in it, keys among them."""
    left = [value]
    while left:
        match left.pop():
            case dict() as entries:
                left += [*entries, *entries.values()]
            case list() as items:
                left += items
            case str() as text:
                yield text


def read_json(path: str | Path, most: int = MOST) -> Any:
    """The values in a file of strict JSON. Raises OSError and ValueError, as `read` and `parsed` do."""
    return parsed(read(path, most))


def first_fault(error: ValidationError) -> str:
    """The first fault that a model found: `groups.battery.scale: Input should be ...`."""
    first = error.errors(include_url=False)[0]
    given = first["input"]
    shown = f"={given!r:.{VALUE}}" if isinstance(given, str | float | bool) or given is None else ""
    where = ".".join(str(part)[:VALUE] for part in first["loc"]) + shown if first["loc"] else "the file"
    return f"{where}: {first['msg']}"


def _capped(data: bytes, most: int) -> bytes:
    if len(data) > most:
        raise ValueError(f"it has more than {most:,} bytes, which is more than is read")
    return data


def _not_finite(word: str) -> NoReturn:
    raise NotFinite(f"{word} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise NotFinite(f"{text[:VALUE]} is no number that can be held")
    return value


def _whole(digits: str) -> int:
    return int(digits) if len(digits) <= MOST_DIGITS else _not_finite(digits[:VALUE])


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise RepeatedKey("a key twice in one object")
    return value
