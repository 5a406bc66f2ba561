"""The journal of a sweep: one line of JSON for each finished episode, on the disk before the next one is counted.

Killed at any point, it holds every episode that was reported as done, and perhaps half a last line, which is cut off.
A folder is looked at before anything in it is touched: what no sweep wrote there stays as it is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from heron_env._version import __version__
from heron_env.errors import ConfigError, RunFolderError, path_text
from heron_env.files.journal import Journal, full_lines, lock_folder
from heron_env.files.reading import parsed, read
from heron_env.files.writing import write
from heron_env.lab.gap.records import SETTINGS, Key, Record, read_settings
from heron_env.lab.output import dumps

RESULTS = "results.jsonl"
TABLES = ("table.json", "table.csv", "table.md")


class SweepJournal:
    """The folder of one sweep, open for writing: `with Journal(folder, settings, keys) as journal`.

    Args:
        folder: made where it does not exist.
        settings: all that decides the results; kept in sweep.json.
        keys: of the episodes that belong to the sweep.

    Raises:
        ConfigError: the folder holds results of a sweep with other settings, files of the same names that no sweep
            wrote, or another process is writing into it.
        RunFolderError: a line that can't be read, or is none of this sweep's.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], keys: Collection[Key]) -> None:
        self.folder = folder
        text = dumps(settings) + "\n"
        _look(folder, text, set(keys))  # before as much as a lock is laid there
        folder.mkdir(parents=True, exist_ok=True)
        lock = lock_folder(folder)
        if lock is None:
            raise ConfigError(f"{folder}: another sweep is writing here; wait for it, or choose another folder")
        self._lock = lock
        try:
            self.done, whole = _look(folder, text, set(keys))
            if not self.done:
                write(folder / SETTINGS, text)
            self._file = Journal(folder / RESULTS)
            self._file.truncate(whole)  # nothing may be appended to half a line
        except BaseException:
            self._lock.release()
            raise

    def add(self, record: Record) -> None:
        """Append one line, and wait until it is on the disk; what is kept is what would be read back.

        Raises OSError naming the file, as for a full disk: all lines before count.
        """
        line = json.dumps(json.loads(dumps(record.to_dict())))
        self._file.append(f"{line}\n".encode("ascii"))
        self.done[record.key] = Record.from_dict(parsed(line))

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close."""
        self._file.close()
        self._lock.release()


def _look(folder: Path, text: str, keys: set[Key]) -> tuple[dict[Key, Record], int]:
    """What is done of the sweep with these settings, and the length of its full lines; nothing is touched.

    Raises ConfigError, RunFolderError for a folder that is not for it.
    """
    path, results = folder / SETTINGS, folder / RESULTS
    if not os.path.lexists(path):
        for name in (RESULTS, *TABLES):
            if os.path.lexists(folder / name):
                raise ConfigError(
                    f"{folder / name} is there, but no {SETTINGS} says of which sweep: it is left as it is; choose "
                    "another folder, or move it away"
                )
        return {}, 0
    begun = full_lines(_bytes(results)) > 0
    try:
        before = _bytes(path).decode(errors="replace")
        made_by = __version__ if before == text else read_settings(path).heron_env
    except RunFolderError as error:
        raise ConfigError(
            f"{path} is left as it is, since no sweep wrote it: {error}; choose another folder"
        ) from error
    if made_by != __version__ and begun:
        raise ConfigError(
            f"{path} holds a sweep of heron_env {made_by}, this is {__version__}, and episodes of two versions are "
            "not mixed: install that version to go on with it, or choose another folder for this one"
        )
    if before != text and begun:
        raise ConfigError(
            f"{path} holds a sweep with other settings ({_first_difference(before, text)}); "
            "choose another folder for this one, or remove that"
        )
    return (read_records(results, keys), full_lines(_bytes(results))) if begun else ({}, 0)


def _first_difference(before: str, now: str) -> str:
    return _difference(parsed(before), parsed(now), ()) or "written in another form"


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
        return f"{path_text(path)}: {len(old)} there, {len(new)} asked for"
    return f"{path_text(path)}: {json.dumps(old)} there, {json.dumps(new)} asked for"


def read_records(path: Path, keys: Collection[Key]) -> dict[Key, Record]:
    """The finished episodes among `keys`; half a last line does not count. Raises RunFolderError."""
    data = _bytes(path)
    done: dict[Key, Record] = {}
    for number, line in enumerate(data[: full_lines(data)].split(b"\n")[:-1], start=1):
        try:
            record = Record.from_dict(parsed(line))
        except ValueError as error:
            raise RunFolderError(
                f"{path}:{number}: no line of a sweep ({error}); remove the line to run it again"
            ) from error
        if record.key not in keys or record.key in done:
            what = "is there twice" if record.key in done else "is not part of this sweep"
            raise RunFolderError(f"{path}:{number}: the episode of {_told(record.key)} {what}; remove the line")
        done[record.key] = record
    figures: dict[str, set[str]] = {}
    for key, record in done.items():
        if figures.setdefault(key.condition, set(record.outcome.kpis)) != set(record.outcome.kpis):
            raise RunFolderError(
                f"{path}: the episode of {_told(key)} has other figures than the other episodes; remove its line"
            )
    return done


def _told(key: Key) -> str:
    return f"policy {key.policy!r:.60}, case {key.case}, condition {key.condition!r:.60}"


def _bytes(path: Path) -> bytes:
    """Of a file; nothing where there is none. Raises RunFolderError for what is no file."""
    try:
        return read(path)
    except FileNotFoundError:
        return b""
    except (OSError, ValueError) as error:
        raise RunFolderError(
            f"{path}: can't be read ({error}); restore it, or run the sweep in another folder"
        ) from error
