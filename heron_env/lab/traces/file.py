"""Episodes on disk: the record as one JSON document, and time series, the whole truth at each control boundary.

A record has a line for each message and event, and is packed where its name ends in .gz. A time series, CSV or parquet,
has a row for each boundary and a column for each quantity, `AGENT.Feature.field` or `global.Feature.field`. What holds
from then on (a price, a set-point) is what the coming step begins with; flows are of the substep that has just ended;
`AGENT.reward` is of the step that has, so the first row has none.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env._version import __version__
from heron_env.errors import ConfigError, HeronError, TraceError
from heron_env.files import reading
from heron_env.files.reading import MOST, is_file, is_folder
from heron_env.files.writing import compact, write_all
from heron_env.lab.traces.episode import (
    ANSWERS,
    DISTURBED,
    OBSERVATIONS,
    PHYSICS,
    PROXY,
    SCHEMA,
    Episode,
    Event,
    SentMessage,
    happenings_of,
    plain,
    schedule_of,
)
from heron_env.scheduling.arrivals import SCHEMA as ARRIVALS

if TYPE_CHECKING:
    from heron_env.envs.event.clock import EventRun

FARTHEST: Final = 2**62
"""ns; no clock goes farther, and no count."""


def _faults(episode: Episode) -> Iterator[str]:
    """What does not fit."""
    world, outcome = episode.world, episode.outcome
    if not world.agents or len(set(world.agents)) < len(world.agents):
        yield "world.agents: must name each agent once"
    if not set(world.parents) == set(world.agents) >= set(world.decides) == set(world.columns) == set(world.sources):
        yield "world: parents, decides, columns and sources must be of its agents"
    if not (0 < world.dt_ns < FARTHEST and 0 < world.substeps < FARTHEST):
        yield "world.dt_ns, world.substeps: must be above 0"
    if not set(outcome.rewards) == set(world.agents) >= set(outcome.actions):
        yield "outcome: rewards and actions must be of the world's agents"
    if not set(outcome.terminated) == set(outcome.truncated) == set(world.agents) >= set(outcome.masked):
        yield "outcome: terminated, truncated and masked must be of the world's agents"
    if not 0.0 <= outcome.end_time * 1e9 < FARTHEST:
        yield "outcome.end_time: must be a time"
    yield from _of_setting(episode)
    names = {*world.agents, PROXY, PHYSICS}
    for number, message in enumerate(episode.messages):
        yield from (f"messages[{number}]: {fault}" for fault in _of_message(message, names, episode))
    for number, event in enumerate(episode.events):
        yield from (f"events[{number}]: {fault}" for fault in _of_event(event, names))


def _of_setting(episode: Episode) -> Iterator[str]:
    setting = episode.setting
    if not (setting.seed >= 0 and _counts(setting.seed)):
        yield "setting.seed: must be a whole number >= 0"
    for what, time in (("t_end", setting.t_end), ("wait", setting.wait)):
        if time is not None and not 0.0 <= time * 1e9 < FARTHEST:
            yield f"setting.{what}: must be a time"
    if setting.arrivals is not None and setting.arrivals.schema != ARRIVALS:
        yield f"setting.arrivals: has schema version {setting.arrivals.schema}, this version reads {ARRIVALS}"
    try:
        schedule_of(setting.schedule)
        happenings_of(setting)
    except (HeronError, TypeError, ValueError, KeyError, AttributeError) as error:
        yield f"setting: what happened and when can't be understood ({error})"


def _of_message(m: SentMessage, names: set[str], episode: Episode) -> Iterator[str]:
    if not {m.agent, m.sender, m.receiver} <= names:
        yield "is of nobody"
    if not all(map(_counts, (m.id, m.number, m.sent, m.cause, m.arrives or 0, m.place or 0))):
        yield "has a number that is none"
    never, came = m.fate in ("lost", "discarded"), m.fate in ("delivered", "second copy")
    if (never and m.arrives is not None) or (came and m.arrives is None) or (m.fate == "delivered" and m.place is None):
        yield f"has a fate, {m.fate}, that does not fit when it arrived"
    yield from _of_vectors(m.content)
    if m.kind in OBSERVATIONS:
        as_of = m.content.get("as_of")
        if not isinstance(as_of, list) or not all(map(_counts, as_of)):
            yield "has no as-of times"
        elif m.agent in episode.world.sources and len(as_of) != len(episode.world.sources[m.agent]):
            yield "has not an as-of time for each source"
        if m.kind == "ObservationReply" and not _counts(m.content.get("gathered")):
            yield "was gathered at no time"


def _of_event(event: Event, names: set[str]) -> Iterator[str]:
    if event.agent not in names:
        yield "is of nobody"
    if not all(map(_counts, (event.place, event.t, event.number, event.cause))):
        yield "has a number that is none"
    yield from _of_vectors(event.content)
    if event.kind in ANSWERS and not _counts(event.content.get("asked")):
        yield "has an answer without a request"
    if event.kind == DISTURBED:
        about = event.content.get("disturbance")
        if not isinstance(event.content.get("ends"), bool) or not isinstance(about, dict):
            yield "is a disturbance without a beginning or end"
        elif not isinstance(about.get("type"), str) or not isinstance(about.get("payload"), dict):
            yield "is a disturbance of no type"
        elif "duration" not in about or not _lasts(about["duration"]):
            yield "is a disturbance without a duration"


def _of_vectors(content: dict[str, Any]) -> Iterator[str]:
    for name in ("vector", "values"):
        if name in content and not isinstance(content[name], list):
            yield f"has no numbers in its {name}"


def _counts(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < FARTHEST


def _lasts(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (number and 0.0 < float(str(value)) * 1e9 < FARTHEST)


NAME: Final = "trace.json"
BIG: Final = 8_000_000
"""From so many characters on, a file of JSON is packed."""
LISTS: Final = ("messages", "events")


def as_text(episode: Episode) -> str:
    """The document: equal for equal episodes, so without a date."""
    lines = [f'"schema": {SCHEMA}', f'"heron_env": {compact(__version__)}']
    for part in fields(episode):
        value = getattr(episode, part.name)
        if part.name in LISTS:
            lines.append(f'"{part.name}": [\n{_lines(value)}\n]')
        else:
            written = plain(value, part.name)
            if part.name == "setting" and written["arrivals"] is None:
                del written["arrivals"]  # as it was before there were any
            for later in ("media", "plans") if part.name == "outcome" else ():
                if not written[later]:
                    del written[later]
            lines.append(f'"{part.name}": {compact(written)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _lines(rows: Iterable[Any]) -> str:
    return ",\n".join(compact({field.name: getattr(row, field.name) for field in fields(row)}) for row in rows)


def write(episode: Episode, folder: str | Path) -> Path:
    """Write `trace.json` into `folder`, or `trace.json.gz` if it is big; the path. Folders are made."""
    return write_texts({Path(folder) / NAME: as_text(episode)})[0]


def write_texts(texts: Mapping[Path, str]) -> list[Path]:
    """Write each `path`, or `path`.gz if it is big JSON (the same bytes for the same text), all of them or none.

    The other form, packed or not, is removed. What a browser opens is never packed: from the disk it would not unpack
    it. Raises OSError naming the file; TraceError for more than is read back.
    """
    contents: dict[Path, str | bytes] = {}
    others: list[Path] = []
    for path, text in texts.items():
        packed = path.with_name(f"{path.name}.gz")
        if len(text) > BIG and path.suffix == ".json":
            contents[packed] = _packed(path, text)
            others.append(path)
        else:
            contents[path] = text
            others.append(packed)
    write_all(contents)
    for other in others:
        other.unlink(missing_ok=True)
    return list(contents)


def _packed(path: Path, text: str) -> bytes:
    data = text.encode()
    if len(data) > MOST:
        raise TraceError(
            f"{path}: {len(data):,} bytes, more than the {MOST:,} that are read back; end it sooner: --until"
        )
    return gzip.compress(data, mtime=0)


def read(path: str | Path) -> Episode:
    """The episode in a file, or in `trace.json` or `trace.json.gz` of a folder.

    Raises TraceError for a file that is missing, damaged, or of another schema version.
    """
    from pydantic import TypeAdapter, ValidationError

    file = _find(Path(path))
    data = _parsed(file)
    if data.get("schema") != SCHEMA:
        raise TraceError(
            f"{file} has schema version {data.get('schema')!r:.60}, heron_env {__version__} reads version {SCHEMA}: "
            f"install heron_env {data.get('heron_env', 'of that time')!s:.60}, which wrote it, or record the episode "
            "again"
        )
    try:
        episode = TypeAdapter(Episode).validate_python({field.name: data.get(field.name) for field in fields(Episode)})
        fault = next(_faults(episode), "")
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise TraceError(f"{file}: {where}: {first['msg']}; restore the file, or record the episode again") from error
    except (ValueError, OverflowError) as error:
        raise TraceError(f"{file}: {error}; restore the file, or record the episode again") from error
    if fault:
        raise TraceError(f"{file}: {fault}; restore the file, or record the episode again")
    return episode


def _places(path: Path) -> list[Path]:
    return [path / NAME, path / f"{NAME}.gz"] if is_folder(path) else [path]


def is_trace(path: str | Path) -> bool:
    """Is there a file, or a folder with a record?"""
    return any(is_file(file) for file in _places(Path(path)))


def _find(path: Path) -> Path:
    for file in _places(path):
        if is_file(file):
            return file
    raise TraceError(
        f"{_places(path)[0]} does not exist; record an episode with `heron trace ENV --out DIR`, or correct the path"
    )


def _parsed(file: Path) -> dict[str, Any]:
    try:
        raw = reading.read(file)
        data = reading.parsed(reading.unpacked(raw) if file.suffix == ".gz" else raw)
    except (ValueError, OSError) as error:
        raise TraceError(f"{file} is no recorded episode ({error}); restore it, or record the episode again") from error
    if not isinstance(data, dict):
        raise TraceError(f"{file} is no recorded episode but a {type(data).__name__}; name the trace.json of one")
    return data


TIME, CLOCK, REWARD = "time_s", "local_time", "reward"
ENDINGS: Final = (".csv", ".parquet")
DIGITS: Final = 9
"""Of a time in s: whole ns."""


class TimeSeries:
    """Time series of the truth, recorded while an episode runs.

    Attributes:
        names: of the truth's columns.
        times: s.
        rows: of the truth, one for each time.
        clock: date and time of day; "" where the environment has none.
        rewards: by agent, of the step that ended then.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.times: list[float] = []
        self.rows: list[NDArray[np.float64]] = []
        self.clock: list[str] = []
        self.rewards: dict[str, dict[float, float]] = {}

    def watch(self, run: EventRun) -> None:
        """Run to the end and record at each control boundary; recording changes nothing."""
        env, step = run.env, 0
        self.names = list(env.simulation.model.layout.full_names)
        while not run.closed and run.context.scheduler.heap:
            time = step * env.dt_ns / 1e9
            run.until(time)
            end = time if run.t_end is None else min(time, run.t_end / 1e9)
            self.times.append(end)
            self.rows.append(env.simulation.truth.copy())
            self.clock.append(env.local_time(end))
            step += 1
        run.until(None)
        for agent, earned in run.result().rewards.items():
            self.rewards[agent] = {round(float(time), DIGITS): float(value) for time, value in earned}

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns by name, in their order; None where there is no value."""
        table = np.array(self.rows)
        result: dict[str, list[Any]] = {TIME: self.times}
        if any(self.clock):
            result[CLOCK] = self.clock
        result.update({name: table[:, place].tolist() for place, name in enumerate(self.names)})
        for agent, earned in self.rewards.items():
            result[f"{agent}.{REWARD}"] = [earned.get(round(time, DIGITS)) for time in self.times]
        return result

    def write(self, path: str | Path) -> Path:
        """Write a file whose name ends with .csv or .parquet; numbers are exact. Raises ConfigError, OSError."""
        path = require_ending(path)
        columns = self.columns()
        if path.suffix.lower() == ".csv":
            text = io.StringIO()
            rows = csv.writer(text, lineterminator="\n")
            rows.writerow(columns)
            rows.writerows(zip(*columns.values(), strict=True))
            write_all({path: text.getvalue()})
            return path
        pyarrow, parquet = _arrow(path)
        packed = io.BytesIO()
        parquet.write_table(pyarrow.table(columns), packed)
        write_all({path: packed.getvalue()})
        return path


def require_ending(path: str | Path) -> Path:
    """The path. Raises ConfigError for another ending than .csv and .parquet, or where nothing writes parquet."""
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(f"{str(path)!r}: the name of a file of time series must end with .csv or .parquet")
    if path.suffix.lower() == ".parquet":
        _arrow(path)
    return path


def _arrow(path: Path) -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ConfigError(f"{path.name}: writing parquet needs pyarrow: pip install pyarrow, or name a .csv") from error
    return pyarrow, parquet
