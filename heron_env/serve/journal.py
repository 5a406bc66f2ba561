"""What the service is sent, and the journal of what was done to a simulation, so that a restart does it again.

Forms refuse what they do not know, and never repeat what may be a secret.

A line is written when its operation is done and before the client is told. Killed at any point, a journal has whole
lines and perhaps half a last one, whose operation nobody was told of: it is dropped. Nothing else is: what does not
begin like one of our lines, or has its end but not its newline, is damage, and stays as it is.
"""

from __future__ import annotations

import json
import math
import os
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from heron_env.declared.configuration import Strategy
from heron_env.errors import RunFolderError
from heron_env.files.reading import HALF, HALF_CHARACTER, first_fault, parsed, read
from heron_env.files.writing import Journal, compact

MOST_STEPS: Final = 10_000
MOST_SEED: Final = 2**53 - 1
"""Whole numbers up to here are the same in every JSON reader."""
MOST_DEPTH: Final = 32
SIMULATED: Final = "simulated_agent"
Seed = Annotated[int, Field(ge=0, le=MOST_SEED)]
Text = Annotated[str, Field(min_length=1, max_length=500)]


class Form(BaseModel):
    """Nothing unknown, nothing converted, and nothing that can't be written down as JSON in UTF-8; null is absent."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _written(cls, given: Any) -> Any:
        _require_written(given)
        return cls._without_nulls(given)

    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        """Without what a client left unset, which many libraries write as null."""
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if value is not None or name not in cls.model_fields}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(handler(core))
        for name, told in schema["properties"].items():
            if name not in schema.get("required", ()) and {"type": "null"} not in told.get("anyOf", ()):
                outer = {key: told.pop(key) for key in ("title", "default") if key in told}
                schema["properties"][name] = {"anyOf": [told, {"type": "null"}], **outer}
        return schema


class NewSimulation(Form):
    """An environment by its registered id, with options; it is reset with the seed at once."""

    env: Text
    options: dict[str, Any] = {}
    seed: Seed = 0


class Steps(Form):
    """So many steps with these actions; agents without one follow their own policy, else do nothing."""

    steps: Annotated[int, Field(ge=1, le=MOST_STEPS)] = 1
    actions: dict[str, Any] = {}


class Reset(Form):
    """A new episode; without a seed the next one of the same."""

    seed: Seed | None = None


class Removal(Form):
    """Whose endpoint plays no longer."""

    agent_id: Text


class Injection(Form):
    """Who is played by which endpoint. The key is named, never sent: `api_key_env`.

    What stands in where no answer counts is `fallback`. `fallback_to_simulated` is short for "simulated_agent" (true)
    or "skip" (false); `fallback` alone suffices, and the two may not contradict each other.
    """

    agent_id: Text
    endpoint_url: Annotated[str, Field(min_length=1, max_length=2000)]
    api_key_env: Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$", max_length=200)] | None = None
    timeout_seconds: Annotated[float, Field(gt=0.0, le=3600.0, strict=False)] = 30.0
    privacy_tier: Literal["minimal", "basic", "full"] = "basic"
    fallback: Strategy = SIMULATED
    fallback_to_simulated: bool = True

    @model_validator(mode="before")
    @classmethod
    def _one_fallback(cls, given: Any) -> Any:
        given = cls._without_nulls(given)
        if not isinstance(given, dict):
            return given
        short = given.get("fallback_to_simulated", given.get("fallback", SIMULATED) == SIMULATED)
        fallback = given.get("fallback", SIMULATED if short else "skip")
        if isinstance(short, bool) and short != (fallback == SIMULATED):
            raise ValueError("fallback and fallback_to_simulated contradict each other; send one of them")
        return {**given, "fallback": fallback, "fallback_to_simulated": short}

    @model_validator(mode="before")
    @classmethod
    def _no_key(cls, given: Any) -> Any:
        if isinstance(given, dict) and "api_key" in given:
            raise ValueError(
                "a key is never sent: put it into an environment variable of the server, its name in api_key_env"
            )
        return given

    @field_validator("timeout_seconds", mode="before")
    @classmethod
    def _a_number(cls, given: Any) -> Any:
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise ValueError("must be a number of seconds")
        return given


def _require_written(value: Any, depth: int = 0) -> None:
    """Raise ValueError for what JSON in UTF-8 can't hold: half a surrogate pair, a number that is not finite."""
    match value:
        case str() if HALF.search(value):
            raise ValueError(f"{HALF_CHARACTER}; send whole characters")
        case float() if not math.isfinite(value):
            raise ValueError("a number that is not finite, which JSON has none of; send a finite one")
        case dict() | list() if depth == MOST_DEPTH:
            raise ValueError(f"nested deeper than {MOST_DEPTH}; send something flatter")
        case dict():
            for name, item in value.items():
                _require_written(name)
                _require_written(item, depth + 1)
        case list():
            for item in value:
                _require_written(item, depth + 1)


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


class OperationJournal:
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
            self._append("")
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
        self._append(compact(done.model_dump()))

    def _append(self, text: str) -> None:
        with Journal(self.path) as file:
            file.append(f"{text}\n".encode())


def _is_half(rest: bytes) -> bool:
    """Was it cut off while it was written? Then it begins as a line does, and is no whole object yet."""
    if not rest or not any(rest.startswith(line) or line.startswith(rest) for line in BEGINNINGS):
        return False
    try:
        json.JSONDecoder().raw_decode(rest.decode("latin-1"))
    except (ValueError, RecursionError):
        return True
    return False
