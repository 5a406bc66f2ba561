"""Episodes of a sweep: how one is run, what is kept of it, and their journal.

The journal is one line of JSON for each finished episode, on the disk before the next one is counted. Killed at any
point, it holds every episode that was reported as done, and perhaps half a last line, which is cut off. A folder is
looked at before anything in it is touched: what no sweep wrote there stays as it is.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from heron_env._version import __version__
from heron_env.core.policy import Policies
from heron_env.errors import ConfigError, RunFolderError, path_text
from heron_env.files.reading import first_fault, parsed, read
from heron_env.files.writing import Journal, full_lines, lock_folder, write
from heron_env.injection.answers import AnswerTally
from heron_env.injection.endpoint import Connection
from heron_env.injection.recording import Recording
from heron_env.lab.episodes import Outcome, outcome
from heron_env.lab.output import dumps
from heron_env.lab.policies import About, EndpointConnections, External
from heron_env.lab.robust_stats import LARGEST
from heron_env.lab.sweep.conditions import Condition
from heron_env.lab.sweep.plan import SETTINGS, Item, Key, Number, read_settings

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.episodes import EpisodeResult

Count = Annotated[int, Field(ge=0)]
RECORD = ("rewards", "actions")


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
        values = {**self.key._asdict(), **asdict(self.outcome), "seconds": self.seconds}
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
        kept = {field.name: getattr(line, field.name) for field in fields(Outcome)}
        for name in ("staleness_p95", "latency_p95"):
            kept[name] = _nan_for_none(kept[name])
        for name in ("kpis", "by_group"):
            kept[name] = {key: _nan_for_none(x) for key, x in kept[name].items()}
        return cls(Key(line.policy, line.case, line.condition), Outcome(**kept), line.seconds, line.answers)


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


def run_item(item: Item, lines: EndpointConnections | None = None) -> Record:
    """Run one episode and keep what a sweep needs of it. What it raises bears the item as a note.

    `lines`: the ways to endpoints that all items of a sweep share.
    """
    try:
        begun = time.perf_counter()
        env = made(item)
        policies = _policies(item, env, lines)
        asked = {**policies, **injected(env)}
        done = False
        try:
            result = run_under(item.condition, env, policies, item.case.seed, RECORD)
            done = True
        finally:
            for policy in asked.values():
                if isinstance(policy, Recording):
                    policy.close(finished=done)  # without a footer it can be continued
        figures = outcome(env, result)
        require_finite(figures)
        return Record(item.key, figures, round(time.perf_counter() - begun, 3), AnswerTally.of(result, asked))
    except Exception as error:
        error.add_note(f"while running {item}")
        raise


def require_finite(figures: Outcome) -> None:
    """Raise ConfigError where the return is no number to reckon with."""
    if not abs(figures.value) <= LARGEST:
        raise ConfigError(f"the team's return is {figures.value}: no statistics can be made of it; mend the rewards")


def run_episode(item: Item, record: Sequence[str] = RECORD) -> tuple[HeronEnv, EpisodeResult]:
    """Run one episode, in an environment built for it alone; `record` as for `run_event_driven`."""
    env = made(item)
    return env, run_under(item.condition, env, _policies(item, env), item.case.seed, record)


def injected(env: HeronEnv) -> dict[str, Any]:
    """Policies of the agents that the environment itself lets endpoints play."""
    return {agent.agent_id: agent.policy for agent in env.hierarchy.agents if agent.injected}


def made(item: Item) -> HeronEnv:
    """The environment of an item, fresh."""
    condition, options = item.condition, {**item.options, **item.case.options}
    env = item.env.make(**options)
    if condition.noise:
        env = item.env.make(**{**options, "observability": condition.observability(env.observability)})
    return env


def _policies(item: Item, env: HeronEnv, lines: EndpointConnections | None = None) -> Policies:
    """The policies of the item; those that ask endpoints have their ways from `lines`."""
    if lines is not None:
        for own in injected(env).values():
            asking = getattr(own, "policy", own)  # a recording has one within
            asking.line = lines(asking.endpoint)
    if not isinstance(item.policy, External):
        return item.policies(env)
    episode = f"case-{item.number}-{item.condition.name}"
    about = About(
        item.env.id, {**item.options, **item.case.options}, label=f"{item.name}, {episode}", episode=episode,
        lines=lines or Connection,
    )  # fmt: skip
    return item.policy.asked(env, item.case.seed, about)


def run_under(
    condition: Condition, env: HeronEnv, policies: Policies, seed: int, record: Sequence[str], **event_driven: Any
) -> EpisodeResult:
    """Run an episode in the clock of `condition`; `event_driven`: what only that clock takes, its schedule or t_end."""
    options: dict[str, Any] = {"seed": seed, "disturbances": condition.happenings(env, seed), "record": record}
    if condition.synchronous:
        return env.run_synchronous(policies, **options)
    return env.run_event_driven(policies, **{**options, "schedule": condition.schedule(env), **event_driven})


RESULTS = "results.jsonl"
TABLES = ("table.json", "table.csv", "table.md")


class SweepJournal:
    """The folder of one sweep, open for writing: `with SweepJournal(folder, settings, keys) as journal`.

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
        line = json.dumps(json.loads(dumps(record.to_dict())))
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
