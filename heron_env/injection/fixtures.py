"""Fixtures: all questions to external agents with their answers, a file of JSON lines.

A header, a line for each decision, a footer with their count and sha256. Killed at any point, a recording leaves whole
lines and perhaps half a last one; without a footer it is one that was cut off, and can be continued.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final, Literal, NoReturn

from pydantic import ValidationError

from heron_env._version import __version__
from heron_env.errors import FixtureError, shown_path
from heron_env.files.journal import Journal, full_lines, lock
from heron_env.files.reading import first_fault, parsed, read
from heron_env.files.writing import compact
from heron_env.given import path_of
from heron_env.injection.answers import Consulted
from heron_env.injection.contract import SCHEMA_VERSION, Part, Sha256
from heron_env.injection.questions import Questions, Telling
from heron_env.injection.setting import Setting, sha256

FIXTURE_VERSION: Final = "1.0"
BEGINNING: Final = b'{"fixture_version":'
Now = Callable[[], datetime]


class Header(Part):
    """The first line: of which agent, environment and seed, and all that requests are made from besides questions."""

    fixture_version: Literal["1.0"]
    created_at: str
    baseline_agent: dict[str, str]
    env_id: str
    options: dict[str, Any]
    seed: int
    hashes: dict[str, Sha256]
    versions: dict[str, str]
    setting: Setting
    telling: Telling

    @classmethod
    def of(cls, questions: Questions, baseline: dict[str, str], seed: int, now: Now) -> Header:
        """Of a recording that begins."""
        setting = questions.setting
        return cls(
            fixture_version=FIXTURE_VERSION,
            created_at=now().astimezone(timezone.utc).isoformat(timespec="seconds"),  # noqa: UP017
            baseline_agent=baseline,
            env_id=setting.env_id,
            options=setting.options,
            seed=seed,
            hashes=_hashes(questions),
            versions={"heron_env": __version__, "schema": SCHEMA_VERSION},
            setting=setting,
            telling=questions.telling,
        )

    def resumed(self, before: Header) -> Header:
        """The same with the time, the versions and the key of a recording that was cut off."""
        telling = self.telling.model_copy(update={"key": before.telling.key})
        hashes = _hashes(Questions(self.setting, telling))
        kept = {"created_at": before.created_at, "versions": before.versions}
        return self.model_copy(update={**kept, "telling": telling, "hashes": hashes})


def _hashes(questions: Questions) -> dict[str, str]:
    personas = {name: questions.persona_hash(name) for name in questions.setting.agents}
    return {"simulation_config": questions.config_hash, **personas}


class Fixture:
    """What a file holds. Raises FixtureError: damaged, changed, or another version; with line and remedy.

    Attributes:
        decisions: by `Consulted.key`, in their order.
        whole: has it a footer, so that nothing is missing?
        ends: where its header and each decision end, bytes.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path_of(path, "fixture")
        try:
            data = read(self.path)
        except (OSError, ValueError) as error:
            raise FixtureError(f"{self.path}: can't be read ({error}); name the file of a recording") from error
        lines = data[: full_lines(data)].splitlines(keepends=True)
        if not data.startswith(BEGINNING[: len(data)]) or (lines and b'"payloads":' in lines[0]):
            adr = ", but the specification's form of one, which isn't replayed" if b'"payloads":' in data else ""
            raise FixtureError(f"{self.path}: is no recording{adr}; record it again, or name the file of a recording")
        if not lines:
            raise FixtureError(f"{self.path}: holds no whole line, so nothing was recorded; remove it")
        self.header = self._built(Header, lines[0], 1)
        self.decisions: dict[tuple[int, str], Consulted] = {}
        self.whole, self._digest, self.ends = False, hashlib.sha256(lines[0]), [len(lines[0])]
        for number, line in enumerate(lines[1:], start=2):
            if self.whole:
                self._damaged(number, "something follows the footer")
            if line.startswith(b'{"count":'):
                self._check_footer(number, line)
            else:
                self._add(number, line)
                self.ends.append(self.ends[-1] + len(line))

    def _add(self, number: int, line: bytes) -> None:
        given = self._parsed(line, number)
        digest = given.pop("sha256", None) if isinstance(given, dict) else None
        found = self._built(Consulted, given, number)
        if "turn_id" not in found.request or sha256(found.request) != digest:
            self._damaged(number, "its request is not what its sha256 says")
        if found.key in self.decisions:
            self._damaged(number, "this decision is there twice")
        self.decisions[found.key] = found
        self._digest.update(line)

    def _check_footer(self, number: int, line: bytes) -> None:
        if self._parsed(line, number) != {"count": len(self.decisions), "sha256": self._digest.hexdigest()}:
            self._damaged(number, "count or sha256 of the lines before is another")
        self.whole = True

    def _parsed(self, line: bytes, number: int) -> Any:
        try:
            return parsed(line)
        except ValueError as error:
            self._damaged(number, str(error), error)

    def _built(self, model: type[Part], given: Any, number: int) -> Any:
        try:
            return model.model_validate(self._parsed(given, number) if isinstance(given, bytes) else given)
        except ValidationError as error:
            self._damaged(number, first_fault(error), error)
        except ValueError as error:  # of a persona, which says so itself
            self._damaged(number, str(error), error)

    def _damaged(self, number: int, why: str, cause: Exception | None = None) -> NoReturn:
        raise FixtureError(f"{self.path}:{number}: {why}; record it again, or restore the file") from cause

    def to_adr(self) -> dict[str, Any]:
        """All of it in the specification's form, one JSON object."""
        header = self.header
        return {
            "fixture_version": header.fixture_version,
            "created_at": header.created_at,
            "baseline_agent": {"endpoint": header.baseline_agent["host"], "model": header.baseline_agent["model"]},
            "payloads": [
                {
                    "turn_id": found.request["turn_id"],
                    "agent_id": found.agent,
                    "request": found.request,
                    "baseline_response": found.response,
                }
                for found in self.decisions.values()
            ],
        }


class FixtureWriter:
    """A file that a recording grows in: a new one, or one that was cut off, from where it was.

    Attributes:
        header: its first line.
        done: decisions that it holds already.

    Raises FixtureError: it is finished, of something else, or another process is writing; without `any_version`, or
    another version of heron_env began it.
    """

    def __init__(self, path: Path, header: Header, *, any_version: bool = False) -> None:
        self.path, self.header, self._any_version = path, header, any_version
        self.done: dict[tuple[int, str], Consulted] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = None
        try:
            self._file = Journal(path, sync=False)
        except OSError as error:
            raise FixtureError(f"{self.path}: can't be opened ({error.strerror}); choose another file") from error
        except ValueError as error:
            raise FixtureError(f"{self.path}: {error}; choose another file") from error
        try:
            self._lock = lock(path.with_name(f".{path.name}.lock"))
            if self._lock is None:
                raise FixtureError(f"{self.path}: another recording is writing here; choose another file")
            first = f"{header.model_dump_json()}\n".encode()
            length = self._continue(first)
            self._file.truncate(length)
            if not length:
                self._file.append(first)
        except BaseException:
            self._close()
            raise

    def _continue(self, first: bytes) -> int:
        """Take up what is there; the length of its whole lines."""
        self._digest, self._ends = hashlib.sha256(first), [len(first)]
        there = self._file.read(2**26)
        if not there.startswith(BEGINNING[: len(there)]):
            raise FixtureError(f"{self.path}: is no recording, and is left as it is; choose another file")
        if b"\n" not in there:  # not even the header is whole
            return 0
        before = Fixture(self.path)
        if before.whole:
            raise FixtureError(f"{self.path}: this recording is finished; choose another file, or remove it")
        then, now = before.header.versions, self.header.versions
        if then != now and not self._any_version:
            raise FixtureError(
                f"{self.path}: this recording was begun by heron_env {then.get('heron_env')}, this is "
                f"{now['heron_env']}: install that version, choose another file, or go on with "
                "Recording(..., any_version=True)"
            )
        self.header = self.header.resumed(before.header)
        where = difference(before.header.model_dump(mode="json"), self.header.model_dump(mode="json"))
        if where:
            raise FixtureError(f"{self.path}: is a recording of something else ({where}); choose another file")
        self.done, self._digest, self._ends = before.decisions, before._digest, before.ends
        return before.ends[-1]

    def add(self, decisions: Sequence[Consulted]) -> None:
        """Append a line each. Raises OSError naming the file."""
        for found in decisions:
            line = {**found.model_dump(mode="json"), "sha256": sha256(found.request)}
            data = f"{compact(line)}\n".encode()
            self._file.append(data)
            self._digest.update(data)
            self._ends.append(self._ends[-1] + len(data))
            self.done[found.key] = found

    def keep(self, many: int) -> None:
        """Drop all decisions but the first ones. Raises OSError."""
        del self._ends[many + 1 :]
        self.done = dict(list(self.done.items())[:many])
        self._file.truncate(self._ends[-1])
        self._digest = hashlib.sha256(self._file.read(self._ends[-1]))

    def close(self, finished: bool = True) -> None:
        """Add the footer if all is there, and close; twice is harmless."""
        if self._lock is None:
            return
        try:
            if finished:
                footer = {"count": len(self.done), "sha256": self._digest.hexdigest()}
                self._file.append(f"{json.dumps(footer)}\n".encode())
        finally:
            self._close()

    def _close(self) -> None:
        file_lock, self._lock = self._lock, None
        try:
            self._file.close()
        finally:
            if file_lock is not None:
                with suppress(OSError):
                    Path(file_lock.lock_file).unlink()  # while it is held: nobody else can have taken it
                file_lock.release()


def difference(old: Any, new: Any, path: tuple[str | int, ...] = ()) -> str:
    """The first place where two JSON values differ, `decision.time_s: 2.0 there, 3.0 asked`; "" if nowhere."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            if (name in old) != (name in new):
                return f"{shown_path((*path, name))}: {'there' if name in old else 'asked'} alone"
            if found := difference(old[name], new[name], (*path, name)):
                return found
        return ""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        each = (difference(a, b, (*path, place)) for place, (a, b) in enumerate(zip(old, new, strict=True)))
        return next(filter(None, each), "")
    first, second = json.dumps(old), json.dumps(new)
    return "" if first == second else f"{shown_path(path)}: {first:.60} there, {second:.60} asked"
