"""sweep.json: all that decides the results of a sweep, as it is read back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from heron_env.errors import RunFolderError
from heron_env.files.reading import first_fault, parsed, read
from heron_env.lab.episodes import TEAM

SETTINGS: Final = "sweep.json"
SCHEMA: Final = 1
"""Version of sweep.json and of the lines of results.jsonl."""
Number = Annotated[float, Field(allow_inf_nan=False)]
FromData = dict[Literal["empirical", "recorded", "markov", "gilbert_elliott"], Any]
"""As `Source.to_dict` tells it."""
Amounts = Number | FromData | dict[str, Number | FromData]
"""Of a cause: for all, or by agent, group or level."""


class CaseSettings(BaseModel):
    """A held-out case; `optimum`: the best possible return, where it is known."""

    model_config = ConfigDict(extra="forbid", strict=True)
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)]
    options: dict[str, Any]
    optimum: Number | None


class ConditionSettings(BaseModel):
    """A condition and its name; what is not named is ideal."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    obs_delay: Amounts = 0.0
    msg_delay: Amounts = 0.0
    act_delay: Amounts = 0.0
    jitter: Amounts = 0.0
    loss: Amounts = 0.0
    tick_ratio: Amounts = 1.0
    noise: Number = 0.0
    disturbances: list[str] = []
    synchronous: bool = False

    def amounts(self) -> dict[str, Any]:
        """What `Condition` takes."""
        return self.model_dump(exclude={"name"}, exclude_unset=True)


class SweepSettings(BaseModel):
    """The whole file; `heron_env` is the version that wrote it, `policies` says who each one is, by name."""

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
    cases: list[CaseSettings] = Field(min_length=1)
    conditions: list[ConditionSettings] = Field(min_length=1)
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
    found = values["schema"]
    if found != SCHEMA or isinstance(found, bool):
        raise RunFolderError(f"{path} has schema {found!r:.60}, this heron_env reads {SCHEMA}: run the sweep again")
    try:
        return SweepSettings.model_validate(values)
    except ValidationError as error:
        raise RunFolderError(
            f"{path} is damaged: {first_fault(error)}; run the sweep again in another folder"
        ) from error
