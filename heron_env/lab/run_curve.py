"""progress.csv of a run folder, read back: what the policies earned on the way."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection
from math import nan
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from heron_env.errors import RunFolderError
from heron_env.files.reading import first_fault, is_file, read

MEND = "copy it from where the run was made, or train again"


class CurvePoint(BaseModel):
    """A measurement: mean training signal per transition since the last one (nan before the first), and mean
    return of the root under the deterministic policy on the validation episodes, on the synchronous clock and, where
    it is trained under one, under the schedule; what the agents of the group earned in sum on the synchronous clock
    (nan where version 0.1.0 wrote the row); `seconds` since the start of the training.
    """

    model_config = ConfigDict(extra="forbid")
    group: str
    transitions: Annotated[int, Field(ge=0, lt=2**63)]
    seconds: Annotated[float, Field(allow_inf_nan=False)]
    training_signal: float
    validation_return: float
    group_return: float = nan
    return_under_schedule: float = nan


def read_curve(file: Path, groups: Collection[str]) -> list[dict[str, str]]:
    """The rows by column name, each of which is a `CurvePoint` of one of these groups.

    Raises RunFolderError naming the row.
    """
    if not is_file(file):
        raise RunFolderError(f"{file} does not exist; {MEND}")
    try:
        rows: list[dict[str, str]] = list(csv.DictReader(io.StringIO(read(file).decode(), newline="")))
    except (OSError, ValueError, csv.Error) as error:
        raise RunFolderError(f"{file}: is no learning curve ({error}); {MEND}") from error
    for number, row in enumerate(rows, start=2):
        try:
            point = CurvePoint.model_validate({str(name): text for name, text in row.items()})
        except ValidationError as error:
            raise RunFolderError(f"{file}:{number}: {first_fault(error)}; {MEND}") from error
        if point.group not in groups:
            raise RunFolderError(f"{file}:{number}: the run has no group {point.group!r:.60}; {MEND}")
    return rows
