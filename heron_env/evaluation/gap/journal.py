"""The journal of a sweep: one line of JSON for each finished episode, on the disk before the next one is counted.

Killed at any point, it holds every episode that was reported as done, and perhaps half a last line, which is cut off.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from heron_env.errors import ConfigError, RunFolderError, shown_path
from heron_env.evaluation.gap.records import Key, Record
from heron_env.evaluation.strict_json import dumps

SETTINGS, RESULTS = "sweep.json", "results.jsonl"


class Journal:
    """The folder of one sweep, open for writing: `with Journal(folder, settings, keys) as journal`.

    Args:
        folder: made where it does not exist.
        settings: all that decides the results; kept in sweep.json.
        keys: of the episodes that belong to the sweep.

    Raises:
        ConfigError: the folder holds results of a sweep with other settings, or another process is writing into it.
        RunFolderError: a line that can't be read, or is none of this sweep's.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], keys: Collection[Key]) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(folder)
        try:
            begun = _cut(folder / RESULTS)
            _keep_settings(folder / SETTINGS, settings, begun)
            self.done = read_records(folder / RESULTS, set(keys))
            self._file = os.open(folder / RESULTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except BaseException:
            os.close(self._lock)
            raise

    def add(self, record: Record) -> None:
        """Append one line, and wait until it is on the disk; what is kept is what would be read back.

        Raises OSError naming the file, as for a full disk: all lines before count.
        """
        line = json.dumps(json.loads(dumps(record.to_dict())))
        data = f"{line}\n".encode("ascii")
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.folder / RESULTS)) from error
        self.done[record.key] = Record.from_dict(json.loads(line))

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close."""
        os.close(self._file)
        os.close(self._lock)


def _locked(folder: Path) -> int:
    """A file descriptor that only one process can have; it is free again when that process ends, however it does."""
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        import fcntl
    except ImportError:  # Windows has none: there, two sweeps in one folder are the user's care
        return descriptor
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise ConfigError(f"{folder}: another sweep is writing here; wait for it, or choose another folder") from error
    return descriptor


def _keep_settings(path: Path, settings: dict[str, Any], begun: bool) -> None:
    """Write the settings; once there are results, they must be the same."""
    text = dumps(settings) + "\n"
    if path.is_file() and begun:
        before = path.read_text(encoding="utf-8")
        if before != text:
            raise ConfigError(
                f"{path} holds a sweep with other settings ({_first_difference(before, text)}); "
                "choose another folder for this one, or remove that"
            )
        return
    scratch = path.with_suffix(".new")
    with scratch.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    scratch.replace(path)


def _first_difference(before: str, now: str) -> str:
    try:
        old = json.loads(before)
    except json.JSONDecodeError:
        return "it can't be read"
    return _difference(old, json.loads(now), ()) or "written in another form"


def _difference(old: Any, new: Any, path: tuple[str | int, ...]) -> str:
    """`cases[2].seed: 4 there, 5 asked for`; "" where nothing differs."""
    if old == new:
        return ""
    if isinstance(old, dict) and isinstance(new, dict):
        pairs = [(name, old.get(name), new.get(name)) for name in dict.fromkeys([*old, *new])]
        return next(filter(None, (_difference(a, b, (*path, name)) for name, a, b in pairs)), "")
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(number, a, b) for number, (a, b) in enumerate(zip(old, new, strict=True))]
        return next(filter(None, (_difference(a, b, (*path, number)) for number, a, b in pairs)), "")
    if isinstance(old, list) and isinstance(new, list):
        return f"{shown_path(path)}: {len(old)} there, {len(new)} asked for"
    return f"{shown_path(path)}: {json.dumps(old)} there, {json.dumps(new)} asked for"


def read_records(path: Path, keys: Collection[Key]) -> dict[Key, Record]:
    """The finished episodes among `keys`; half a last line does not count. Raises RunFolderError."""
    data = path.read_bytes() if path.is_file() else b""
    done: dict[Key, Record] = {}
    for number, line in enumerate(data[: _whole(data)].splitlines(), start=1):
        try:
            record = Record.from_dict(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunFolderError(
                f"{path}:{number}: no line of a sweep ({error!r}); remove the line to run it again"
            ) from error
        if record.key not in keys or record.key in done:
            what = "is there twice" if record.key in done else "is not part of this sweep"
            raise RunFolderError(f"{path}:{number}: {record.key} {what}; remove the line")
        done[record.key] = record
    return done


def _whole(data: bytes) -> int:
    """Length of the full lines."""
    return data.rfind(b"\n") + 1


def _cut(path: Path) -> bool:
    """Take what follows the last full line off the file: nothing may be appended to half a line. Is anything left?"""
    whole = _whole(path.read_bytes()) if path.is_file() else 0
    if path.is_file():
        os.truncate(path, whole)
    return whole > 0
