"""What the files of a run folder hold: config.json, one part for each group's policy, and the learning curve.

A file of another schema version is refused: nothing is guessed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from heron_env._version import __version__
from heron_env.errors import RunFolderError
from heron_env.files.reading import decimal, first_fault, is_file, read
from heron_env.lab.columns import columns_misfit
from heron_env.lab.episodes import TEAM
from heron_env.lab.trained import Activation, Scaling

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

SCHEMA: Final = 1
NAME: Final = "config.json"
NAMED_LATER: Final = "weights"
"""Stands for the name of a file until the run is written."""
MEND: Final = "copy it from where the run was made, or train again"
SMALLEST, LARGEST = 1e-12, 1e15
"""Of a scale; what a float32 observation then becomes is still one. Training measures 1e-6 at least."""
MOST_CHOICES, MOST_FRAMES = 10**6, 10**4


def _plain(name: str) -> str:
    if name != Path(name).name or "\\" in name or "\0" in name:
        raise ValueError("must be the name of a file in this folder")
    return name


FileName = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_plain)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, lt=2**63)]
Steps = Annotated[int, Field(ge=0)]
Center = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Scale = Annotated[float, Field(ge=SMALLEST, le=LARGEST)]


class GroupConfig(BaseModel):
    """One group's policy: its model file, its spaces, and the fixed scales around the network.

    Attributes:
        clip: where scaled observations are cut off.
        activation: between the layers of its network.
        frames: how many of an agent's last observations the network sees together, in runs of versions before 0.3.
        augment: how many of its last decisions, behind them, likewise.
        state_center, state_scale: of a central critic's state (and which agent is meant); only training on needs them.
    """

    model_config = ConfigDict(extra="forbid")
    model: FileName
    agents: list[str] = Field(min_length=1)
    observation_names: list[str]
    action_low: list[Number] = []
    action_high: list[Number] = []
    ncats: list[Annotated[int, Field(ge=1, le=MOST_CHOICES)]] = []
    center: list[Center]
    scale: list[Scale]
    clip: Scale | None = None
    reward_scale: Scale
    activation: Activation = "tanh"
    frames: Annotated[int, Field(ge=1, le=MOST_FRAMES)] = 1
    augment: Annotated[int, Field(ge=0, le=MOST_FRAMES)] = 0
    state_center: list[Center] = []
    state_scale: list[Scale] = []

    @property
    def scaling(self) -> Scaling:
        """Of what its agents observe."""
        return Scaling(np.array(self.center), np.array(self.scale), self.clip)


class RunConfig(BaseModel):
    """config.json.

    Attributes:
        env_options: of `make()`, those of the user: evaluation builds the environment with them.
        training_options: what came on top while training, say a coarser step.
        algorithm: that it learned by; earlier versions trained by VDN and QMIX, too.
        trainer: what trained: "sb3", Stable-Baselines3, or "lean", this library's own PPO.
        device: of torch, on which weights were improved; to load them none is needed.
        training_delays: how late agents saw and acted while training, in steps, in runs of versions before 0.3.
        schedule: under which it was trained on the event clock: fields by agent, group, level or "*"; what was drawn as
            it may be written. None: it was trained on the synchronous clock.
        base: name of the baseline that the policies correct; None: they decide alone.
        start_from: the run folder whose weights and scales it began with; None: from nothing.
        seconds, compile_seconds: wall time without compiling, and that of compiling.
        deterministic: could the training be repeated bit for bit? Not if a time limit or a callback ended it.
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
    algorithm: Annotated[str, Field(max_length=60)] = "ppo"
    trainer: Literal["sb3", "lean"] = "sb3"
    device: str = "cpu"
    training_delays: dict[str, Steps | tuple[Steps, Steps]] | None = None
    schedule: dict[str, dict[str, Any]] | None = None
    base: str | None
    start_from: str | None = None
    seed: Count
    transitions: Count
    kept_at: Count | None = None
    seconds: Number
    compile_seconds: Number = 0.0
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


def group_config(
    env: HeronEnv,
    group: str,
    scaling: Scaling,
    reward_scale: float,
    *,
    state: Scaling | None = None,
    activation: Activation = "tanh",
) -> GroupConfig:
    """What config.json keeps of a group, but for the name of its file."""
    agents = env.group_map[group]
    spec = env.simulation.model.specs[env.hierarchy.index[agents[0]]]
    return GroupConfig(
        model=NAMED_LATER,
        agents=agents,
        observation_names=env.observation_names(agents[0]),
        action_low=spec.low.tolist(),
        action_high=spec.high.tolist(),
        ncats=spec.ncats.tolist(),
        center=scaling.center.tolist(),
        scale=scaling.scale.tolist(),
        clip=scaling.clip,
        reward_scale=reward_scale,
        activation=activation,
        state_center=[] if state is None else state.center.tolist(),
        state_scale=[] if state is None else state.scale.tolist(),
    )


def misfit(env: HeronEnv, group: str, config: GroupConfig) -> str:
    """What a group sees or does otherwise now, in words; empty where nothing is."""
    if group not in env.group_map:
        return f"the environment has groups {list(env.group_map)}, the run has {group!r}"
    now = group_config(env, group, Scaling(np.zeros(0), np.zeros(0)), 1.0)
    if differs := columns_misfit(config.observation_names, now.observation_names, env, now.agents[0]):
        return f"group {group!r} was trained on observations with other columns: {differs}"
    old, new = ((of.action_low, of.action_high, of.ncats) for of in (config, now))
    return "" if old == new else f"group {group!r} was trained on actions {old}, the environment now has {new}"


class _Versioned(BaseModel):
    """The one field that every schema has."""

    schema_version: int


def config_in(text: bytes | str, file: Path) -> RunConfig:
    """The configuration in the text of a file. Raises RunFolderError."""
    try:
        schema = _Versioned.model_validate_json(text).schema_version
        if schema != SCHEMA:
            raise RunFolderError(
                f"{file} has schema version {schema}, heron_env {__version__} reads version {SCHEMA}: "
                "install the heron_env that wrote it, or train again"
            )
        return RunConfig.model_validate_json(text)
    except ValidationError as error:
        raise RunFolderError(f"{file}: {first_fault(error)}; restore the file, or train again") from error


class CurvePoint(BaseModel):
    """A row of progress.csv: of one group, after a rollout or a validation; nan is what the other kind has.

    Attributes:
        transitions: of the group so far.
        seconds: wall time since `train()` was called, without compiling.
        training_signal: mean per transition in the rollout.
        validation_return: mean return of the root under the deterministic policy on the validation episodes, on the
            synchronous clock.
        group_return: what the agents of the group earned there in sum; nan where version 0.1.0 wrote the row.
        return_under_schedule: the root's under the schedule, where it is trained under one.
    """

    model_config = ConfigDict(extra="forbid")
    group: str
    transitions: Count
    seconds: Number
    training_signal: float
    validation_return: float
    group_return: float = nan
    return_under_schedule: float = nan

    @field_validator("*", mode="before")
    @classmethod
    def _in_digits(cls, value: object, info: ValidationInfo) -> object:
        """Pydantic, as Python, reads 1_0 as 10."""
        return decimal(value) if isinstance(value, str) and info.field_name != "group" and "_" in value else value


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
