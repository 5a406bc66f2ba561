"""config.json of a run folder: what was trained on what, with which versions, seeds and scales; written last."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from heron_env._version import __version__
from heron_env.envs.training_delays import TrainingDelays
from heron_env.errors import RunFolderError
from heron_env.files.reading import first_fault, is_file, read
from heron_env.lab.episodes import TEAM
from heron_env.lab.run_groups import FileName, GroupConfig

SCHEMA: Final = 1
NAME: Final = "config.json"
PACKAGES = ("numpy", "gymnasium", "pettingzoo", "stable-baselines3", "torch")
Count = Annotated[int, Field(ge=0, lt=2**63)]
Number = Annotated[float, Field(allow_inf_nan=False)]


class RunConfig(BaseModel):
    """config.json.

    Attributes:
        env_options: of `make()`, those of the user: evaluation builds the environment with them.
        training_options: what came on top while training, say a coarser step.
        trainer: what trained: "sb3", Stable-Baselines3's PPO, or "lean", this library's own.
        training_delays: how late agents saw and acted while training; evaluation has delays of its own.
        schedule: under which it was trained on the event clock: fields by agent, group, level or "*"; what was drawn as
            it may be written. None: it was trained on the synchronous clock.
        base: name of the baseline that the policies correct; None: they decide alone.
        start_from: the run folder whose weights and scales it began with; None: from nothing.
        deterministic: could the training be repeated bit for bit? Not if a time limit ended it.
        critic: what estimated values while training: "local" saw what the agent sees, "central" the state too.
        curve: the file of the learning curve.
        kept_at: transitions after which the weights were those that were kept; None: all of them.
        return_of: the root of the hierarchy, whose return the validations have.
        validation: mean return of the root by policy, on the validation episodes.
        validation_by_group: by policy, what the agents of each group earned there in sum; empty where version 0.1.0
            wrote it.
        validation_under_schedule: the same on the event clock, under the schedule.
    """

    model_config = ConfigDict(extra="forbid")
    schema_version: int = SCHEMA
    env_id: str
    env_options: dict[str, Any]
    training_options: dict[str, Any]
    trainer: Literal["sb3", "lean"] = "sb3"
    training_delays: TrainingDelays | None = None
    schedule: dict[str, dict[str, Any]] | None = None
    base: str | None
    start_from: str | None = None
    seed: Count
    transitions: Count
    kept_at: Count | None = None
    seconds: Number
    deterministic: bool
    hyperparameters: dict[str, Any]
    critic: Literal["local", "central"] = "local"
    groups: dict[str, GroupConfig] = Field(min_length=1)
    curve: FileName = "progress.csv"
    return_of: str = TEAM
    validation: dict[str, Number]
    validation_under_schedule: dict[str, Number] = {}
    validation_by_group: dict[str, dict[str, Number]] = {}
    versions: dict[str, str]


class _Versioned(BaseModel):
    """The one field that every schema has."""

    schema_version: int


def read_config(folder: Path) -> RunConfig:
    """The configuration of a finished run. Raises RunFolderError."""
    file = folder / NAME
    if not is_file(file):
        raise RunFolderError(
            f"{file} does not exist: {folder} is no finished run folder; train one, or correct the path"
        )
    try:
        found = _Versioned.model_validate_json(text := read(file)).schema_version
        if found != SCHEMA:
            raise RunFolderError(
                f"{file} has schema version {found}, heron_env {__version__} reads version {SCHEMA}: "
                "install the heron_env that wrote it, or train again"
            )
        return RunConfig.model_validate_json(text)
    except ValidationError as error:
        raise RunFolderError(f"{file}: {first_fault(error)}; restore the file, or train again") from error
    except RunFolderError:
        raise
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{file}: can't be read ({error}); restore the file, or train again") from error


def files_of_run(folder: Path) -> list[str]:
    """What the finished run in a folder needs besides config.json; nothing where there is none."""
    try:
        config = read_config(folder)
    except RunFolderError:
        return []
    return [*(group.model for group in config.groups.values()), config.curve]


def unused(stem: str, ending: str, taken: set[str]) -> str:
    """A name for a file beside those `taken`, which it joins: `battery.zip`, else `battery-2.zip` and so on."""
    plain = "".join(letter if letter.isalnum() or letter in "-_.()" else "_" for letter in stem).lstrip(".") or "group"
    names: Iterable[str] = (
        f"{plain}{f'-{number}' if number > 1 else ''}{ending}" for number in range(1, len(taken) + 2)
    )
    chosen = next(name for name in names if name not in taken)
    taken.add(chosen)
    return chosen


def versions() -> dict[str, str]:
    """heron_env, Python, and the packages a run depends on."""
    found = {"heron_env": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
