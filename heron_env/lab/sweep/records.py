"""What is kept of a sweep: its settings, a record of each episode, and their journal.

The journal is one line of JSON for each finished episode, on the disk before the next one is counted. Killed at any
point, it holds every episode that was reported as done, and perhaps half a last line, which is cut off. A folder is
looked at before anything in it is touched: what no sweep wrote there stays as it is.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Final, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from heron_env._version import __version__
from heron_env.errors import ConfigError, RunFolderError
from heron_env.files.reading import first_fault, parsed, read
from heron_env.files.writing import Journal, full_lines, lock_folder, write
from heron_env.injection.tally import AnswerTally
from heron_env.lab.benchmark import Case
from heron_env.lab.episodes import TEAM, Outcome
from heron_env.lab.output import dumps, finite
from heron_env.lab.sweep.conditions import Condition

SETTINGS: Final = "sweep.json"
SCHEMA: Final = 1
"""Version of sweep.json and of the lines of results.jsonl."""
Number = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]


class Key(NamedTuple):
    """Which episode of a sweep: name of the policy, number of the case, name of the condition."""

    policy: str
    case: int
    condition: str


class SweepSettings(BaseModel):
    """The whole of sweep.json; `heron_env` is the version that wrote it, `policies` says who each one is, by name."""

    model_config = ConfigDict(extra="forbid", strict=True)
    schema_: Annotated[int, Field(alias="schema")]
    heron_env: str
    env: str
    preset: str | None
    dt: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
    unit: str
    return_of: str = TEAM
    options: dict[str, Any]
    policies: dict[str, str] = Field(min_length=1)
    sync_only: list[str]
    cases: list[Case] = Field(min_length=1)
    conditions: list[Annotated[Condition, PlainValidator(Condition.from_dict)]] = Field(min_length=1)
    pools: dict[str, list[str]] = {}


def read_settings(path: Path) -> SweepSettings:
    """Raises RunFolderError where it is none, damaged, or of another schema version."""
    try:
        values = parsed(read(path))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise RunFolderError(f"{path}: no folder of a sweep ({why}); make one with `heron sweep`") from error
    if not isinstance(values, dict) or "schema" not in values:
        raise RunFolderError(f"{path}: no folder of a sweep (it has no 'schema'); make one with `heron sweep`")
    schema = values["schema"]
    if schema != SCHEMA or isinstance(schema, bool):
        raise RunFolderError(f"{path} has schema {schema!r:.60}, this heron_env reads {SCHEMA}: run the sweep again")
    try:
        return SweepSettings.model_validate(values)
    except ValidationError as error:
        raise RunFolderError(
            f"{path} is damaged: {first_fault(error)}; run the sweep again in another folder"
        ) from error


RECORD: Final = ("rewards", "actions")
"""What an episode keeps for its record."""


@dataclass(frozen=True)
class Record:
    """One finished episode; `seconds` is the time it took, which is not part of the result.

    `answers`: of agents that other programs play, if there are any.
    """

    key: Key
    outcome: Outcome
    seconds: float
    answers: AnswerTally | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        values = {**self.key._asdict(), **vars(self.outcome), "seconds": self.seconds}
        for name in ("by_group", "tokens"):
            if not values[name]:
                del values[name]
        return values if self.answers is None else {**values, "answers": self.answers.model_dump()}

    @classmethod
    def from_dict(cls, values: object) -> Record:
        """Read back; null is nan. Raises ValueError where something is missing, or is no such value."""
        try:
            line = _Line.model_validate(values)
        except ValidationError as error:
            raise ValueError(first_fault(error)) from error
        figures = {field.name: getattr(line, field.name) for field in fields(Outcome)}
        for name in ("staleness_p95", "latency_p95"):
            figures[name] = _nan_for_none(figures[name])
        for name in ("kpis", "by_group"):
            figures[name] = {key: _nan_for_none(x) for key, x in figures[name].items()}
        return cls(Key(line.policy, line.case, line.condition), Outcome(**figures), line.seconds, line.answers)


class _Line(BaseModel):
    """A line of results.jsonl; null is nan."""

    model_config = ConfigDict(extra="forbid", strict=True)
    policy: str
    case: int
    condition: str
    value: Number
    course: str
    kpis: dict[str, Number | None]
    staleness_p95: Number | None
    latency_p95: Number | None
    notes: list[str]
    by_group: dict[str, Number | None] = {}
    tokens: Count = 0
    seconds: Number
    answers: AnswerTally | None = None


def _nan_for_none(value: float | None) -> float:
    return math.nan if value is None else value


RESULTS = "results.jsonl"
TABLES = ("table.json", "table.csv", "table.md")


class SweepJournal:
    """The folder of one sweep, open for writing: `with SweepJournal(folder, settings, keys) as journal`.

    Args: folder: made where it does not exist; settings: all that decides the results; kept in sweep.json; keys: of the
        episodes that belong to the sweep.

    Raises: ConfigError: the folder holds results of a sweep with other settings, files of the same names that no sweep
        wrote, or another process is writing into it; RunFolderError: a line that can't be read, or is none of this
        sweep's.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], keys: Collection[Key]) -> None:
        self.folder = folder
        text = dumps(settings) + "\n"
        _read_folder(folder, text, set(keys))  # before as much as a lock is laid there
        folder.mkdir(parents=True, exist_ok=True)
        lock = lock_folder(folder)
        if lock is None:
            raise ConfigError(f"{folder}: another sweep is writing here; wait for it, or choose another folder")
        self._lock = lock
        try:
            self.done, whole = _read_folder(folder, text, set(keys))
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
        line = json.dumps(finite(record.to_dict()), allow_nan=False)
        self._file.append(f"{line}\n".encode("ascii"))
        self.done[record.key] = Record.from_dict(parsed(line))

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close."""
        try:
            self._file.close()
        finally:
            self._lock.release()


def _read_folder(folder: Path, text: str, keys: set[Key]) -> tuple[dict[Key, Record], int]:
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
            "not mixed: install that version to resume it, or choose another folder for this one"
        )
    if before != text and begun:
        from heron_env.injection.contract import difference

        where = difference(parsed(before), parsed(text)) or "written in another form"
        raise ConfigError(
            f"{path} holds a sweep with other settings ({where}); choose another folder for this one, or remove that"
        )
    return (read_records(results, keys), full_lines(_bytes(results))) if begun else ({}, 0)


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
            raise RunFolderError(f"{path}:{number}: the episode of {_key_words(record.key)} {what}; remove the line")
        done[record.key] = record
    figures: dict[str, set[str]] = {}
    for key, record in done.items():
        if figures.setdefault(key.condition, set(record.outcome.kpis)) != set(record.outcome.kpis):
            raise RunFolderError(
                f"{path}: the episode of {_key_words(key)} has other figures than the other episodes; remove its line"
            )
    return done


def _key_words(key: Key) -> str:
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
