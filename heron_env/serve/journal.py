"""What was done to a simulation, an operation a line, so that a restart does it again.

A line is written when its operation is done and before the client is told. Killed at any point, a journal has whole
lines and perhaps half a last one, whose operation nobody was told of: it is dropped. Nothing else is: what does not
begin like one of our lines, or has its end but not its newline, is damage, and stays as it is.
"""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from heron_env.errors import RunFolderError
from heron_env.files.reading import first_fault, parsed, read
from heron_env.serve.forms import Form, Injection, Removal, Reset, Steps

Verb = Literal["step", "reset", "inject", "remove"]
FORMS: Final[dict[Verb, type[Form]]] = {"step": Steps, "reset": Reset, "inject": Injection, "remove": Removal}
"""What each is asked for with."""
BEGINNINGS: Final = (b'{"number":', b'{"verb":')
"""Of a line; the second of version 0.1.0, which did not count its lines."""


class Operation(BaseModel):
    """One that was done.

    Attributes:
        number: which one it is, from 1, so that a line that is missing is found out; None: not counted, in 0.1.0.
        given: the client's form.
        digest: of the state afterwards, so that a restart that comes out elsewhere is found out.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    number: int | None = None
    verb: Verb
    given: dict[str, Any]
    digest: str

    @classmethod
    def of(cls, number: int, form: Form, digest: str) -> Operation:
        """That a form asked for."""
        verb = next(verb for verb, kind in FORMS.items() if isinstance(form, kind))
        return cls(number=number, verb=verb, given=form.model_dump(), digest=digest)

    @property
    def form(self) -> Form:
        """Raises ValidationError."""
        return FORMS[self.verb].model_validate(self.given)


class Journal:
    """A file of operations that grows. Attributes: `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def operations(self) -> list[Operation]:
        """All of them; half a last line is cut off. Raises RunFolderError naming a damaged line, OSError."""
        whole, newline, rest = self._read().rpartition(b"\n")
        lines = whole.split(b"\n") if newline else []
        if half := _is_half(rest):
            os.truncate(self.path, len(whole) + len(newline))
        elif rest:
            lines.append(rest)
        done = [self._operation(number, line) for number, line in enumerate(lines, start=1)]
        for number, (one, following) in enumerate(pairwise(done), start=2):
            if one.number is not None and following.number is None:
                raise self._damaged(number, "it has no number, and the line before has one")
        if rest and not half:
            self._append(b"\n")
        return done

    def _read(self) -> bytes:
        try:
            if self.path.is_symlink():
                raise ValueError("it is a link; put the file itself there")
            return read(self.path)
        except FileNotFoundError:
            return b""
        except (OSError, ValueError) as error:
            raise RunFolderError(f"{self.path}: can't be read ({error}); restore it, or remove its folder") from error

    def _operation(self, number: int, line: bytes) -> Operation:
        try:
            found = Operation.model_validate(parsed(line))
            _ = found.form
        except ValueError as error:
            fault = first_fault(error) if isinstance(error, ValidationError) else str(error)
            raise self._damaged(number, fault) from error
        if found.number not in (None, number):
            raise self._damaged(number, f"it says that it is number {found.number}, so lines are missing, or too many")
        return found

    def _damaged(self, number: int, why: str) -> RunFolderError:
        return RunFolderError(f"{self.path}:{number}: damaged, {why}; restore the file, or remove its folder")

    def add(self, done: Operation) -> None:
        """Append it; on disk when this returns. Raises OSError; then the file is what it was."""
        self._append(f"{json.dumps(done.model_dump(), separators=(',', ':'), allow_nan=False)}\n".encode())

    def _append(self, data: bytes) -> None:
        with self.path.open("ab", buffering=0) as file:
            whole, left = file.tell(), memoryview(data)
            try:
                while left:
                    left = left[file.write(left) :]
                os.fsync(file.fileno())
            except OSError:
                file.truncate(whole)
                raise


def _is_half(rest: bytes) -> bool:
    """Was it cut off while it was written? Then it begins as a line does, and is no whole object yet."""
    if not rest or not any(rest.startswith(line) or line.startswith(rest) for line in BEGINNINGS):
        return False
    try:
        json.JSONDecoder().raw_decode(rest.decode("latin-1"))
    except (ValueError, RecursionError):
        return True
    return False
