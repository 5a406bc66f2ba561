"""A recorded episode on disk: one JSON document, a line for each message and event; gzip where the name ends in .gz."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from heron_env._version import __version__
from heron_env.errors import TraceError
from heron_env.files import reading
from heron_env.files.reading import MOST, is_file, is_folder
from heron_env.files.writing import write_all
from heron_env.lab.traces.checking import require_whole
from heron_env.lab.traces.contents import plain
from heron_env.lab.traces.episode import SCHEMA, Episode

NAME: Final = "trace.json"
BIG: Final = 8_000_000
"""From so many characters on, a file of JSON is packed."""
LISTS: Final = ("messages", "events")


def as_text(episode: Episode) -> str:
    """The document: equal for equal episodes, so without a date."""
    lines = [f'"schema": {SCHEMA}', f'"heron_env": {_json(__version__)}']
    for part in fields(episode):
        value = getattr(episode, part.name)
        if part.name in LISTS:
            lines.append(f'"{part.name}": [\n{_lines(value)}\n]')
        else:
            lines.append(f'"{part.name}": {_json(plain(value, part.name))}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _lines(rows: Iterable[Any]) -> str:
    return ",\n".join(_json({field.name: getattr(row, field.name) for field in fields(row)}) for row in rows)


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


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
        require_whole(episode)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise TraceError(f"{file}: {where}: {first['msg']}; restore the file, or record the episode again") from error
    except (ValueError, OverflowError) as error:
        raise TraceError(f"{file}: {error}; restore the file, or record the episode again") from error
    return episode


def _find(path: Path) -> Path:
    files = [path / NAME, path / f"{NAME}.gz"] if is_folder(path) else [path]
    for file in files:
        if is_file(file):
            return file
    raise TraceError(
        f"{files[0]} does not exist; record an episode with `heron trace ENV --out DIR`, or correct the path"
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
