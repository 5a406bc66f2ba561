"""What was done to a simulation, an operation a line, so that a restart does it again.

A line is written when its operation is done and before the client is told. Killed at any point, a journal has whole
lines and perhaps half a last one, whose operation nobody was told of: it is dropped.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from heron_env.errors import RunFolderError
from heron_env.files.reading import first_fault, parsed, read

Verb = Literal["step", "reset", "inject", "remove"]


class Operation(BaseModel):
    """One that was done.

    Attributes:
        given: the client's form.
        digest: of the state afterwards, so that a restart that comes out elsewhere is found out.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    verb: Verb
    given: dict[str, Any]
    digest: str


class Journal:
    """A file of operations that grows. Attributes: `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def operations(self) -> list[Operation]:
        """All of them; half a last line is cut off. Raises RunFolderError naming a damaged line."""
        if not self.path.exists():
            return []
        try:
            data = read(self.path)
        except (OSError, ValueError) as error:
            raise RunFolderError(f"{self.path}: can't be read ({error}); restore it, or remove its folder") from error
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            os.truncate(self.path, len(whole))
        return [self._operation(number, line) for number, line in enumerate(whole.splitlines(), start=1)]

    def _operation(self, number: int, line: bytes) -> Operation:
        try:
            return Operation.model_validate(parsed(line))
        except (ValidationError, ValueError) as error:
            fault = first_fault(error) if isinstance(error, ValidationError) else str(error)
            raise RunFolderError(
                f"{self.path}:{number}: damaged, {fault}; restore the file, or remove its folder"
            ) from error

    def add(self, done: Operation) -> None:
        """Append it; on disk when this returns. Raises OSError; then the file is what it was."""
        with self.path.open("ab", buffering=0) as file:
            whole = file.tell()
            try:
                line = memoryview(f"{json.dumps(done.model_dump(), separators=(',', ':'), allow_nan=False)}\n".encode())
                while line:
                    line = line[file.write(line) :]
                os.fsync(file.fileno())
            except OSError:
                file.truncate(whole)
                raise
