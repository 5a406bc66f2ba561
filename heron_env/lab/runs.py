"""Run folders: all that a training run leaves behind, in one folder that can be copied to another machine.

    config.json     what was trained on what, with which versions, seeds and scales (`RunConfig`); written last
    <group>.zip     the model of each group: weights, as Stable-Baselines3 packs them
    progress.csv    the learning curve

config.json names the others: where a new run takes the place of an old one they are called `<group>-2.zip` and so on,
so that the folder holds one whole run or the other at any time. A folder of another schema version is refused: nothing
is guessed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import platform
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from math import nan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from heron_env._version import __version__
from heron_env.core.policy import Decide, Policy
from heron_env.envs.training_delays import TrainingDelays
from heron_env.errors import RunFolderError, ScheduleError
from heron_env.files.reading import decimal, first_fault, is_file, read
from heron_env.files.writing import write
from heron_env.lab import benchmark
from heron_env.lab.episodes import TEAM
from heron_env.lab.remembering import RememberingPolicy
from heron_env.lab.run_groups import Actor, FileName, GroupConfig, actor_of, misfit, own_decisions, weights_in
from heron_env.lab.trained import NetworkPolicy, act_of, on_vectors
from heron_env.registry import EnvironmentSpec, is_here, spec
from heron_env.scheduling.drawn import AnySchedule, drawn_or_fixed

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

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
        algorithm: that it learned by; earlier versions trained by VDN and QMIX, too.
        trainer: what trained: "sb3", Stable-Baselines3, or "lean", this library's own PPO.
        device: of torch, on which weights were improved; to load them none is needed.
        training_delays: how late agents saw and acted while training; evaluation has delays of its own.
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
    training_delays: TrainingDelays | None = None
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
        return config_in(read(file), file)
    except RunFolderError:
        raise
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{file}: can't be read ({error}); restore the file, or train again") from error


def config_in(text: bytes, file: Path) -> RunConfig:
    """The configuration in the text of a file. Raises RunFolderError."""
    try:
        result = _Versioned.model_validate_json(text).schema_version
        if result != SCHEMA:
            raise RunFolderError(
                f"{file} has schema version {result}, heron_env {__version__} reads version {SCHEMA}: "
                "install the heron_env that wrote it, or train again"
            )
        return RunConfig.model_validate_json(text)
    except ValidationError as error:
        raise RunFolderError(f"{file}: {first_fault(error)}; restore the file, or train again") from error


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
    """What a run depends on, as run folders and traces keep it.

    Returns:
        Versions by name: heron_env, Python, and those packages that are installed.

    >>> sorted(versions())[:2]
    ['gymnasium', 'heron_env']
    """
    result = {"heron_env": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            continue
    return result


MEND = "copy it from where the run was made, or train again"


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
    transitions: Annotated[int, Field(ge=0, lt=2**63)]
    seconds: Annotated[float, Field(allow_inf_nan=False)]
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


@dataclass(frozen=True)
class Run(ABC):
    """What a training has left: its configuration, and the weights of what acts.

    Attributes:
        path: the folder, or the one file.
    """

    path: Path
    config: RunConfig

    @property
    def file(self) -> Path:
        """The one that holds the configuration."""
        return self.path

    @abstractmethod
    def digest(self) -> str:
        """128 bits, in hexadecimal, of all that decides: the configuration and the models. Raises RunFolderError."""

    @abstractmethod
    def weights(self, group: str) -> Mapping[str, Any]:
        """What acts in a group as a state dict of torch, read without unpickling. Raises RunFolderError."""

    def actor(self, group: str) -> Actor:
        """What acts in a group. Raises RunFolderError unless it fits the configuration."""
        return actor_of(self.weights(group), self.config.groups[group], self.file)

    @cached_property
    def actors(self) -> dict[str, Actor]:
        """What acts in each group, read once. Raises RunFolderError."""
        return {group: self.actor(group) for group in self.config.groups}

    def make(self, **options: Any) -> HeronEnv:
        """The environment of the run with its own options; `options` win. Raises UnknownEnvironment, Untrusted."""
        return self.spec.make(**{**self.config.env_options, **options})

    @property
    def spec(self) -> EnvironmentSpec:
        """What its environment is, as the folder says. Raises UnknownEnvironment."""
        return spec(self.config.env_id, str(self.file))

    @property
    def env_id(self) -> str:
        """The id of its environment, if it may be built here. Raises UnknownEnvironment, Untrusted."""
        if ":" in self.config.env_id:
            self.spec.require_trust()
        return self.config.env_id

    @property
    def schedule(self) -> AnySchedule:
        """Under which it was trained; None: on the synchronous clock. Raises RunFolderError."""
        if self.config.schedule is None:
            return None
        entries: Mapping[Any, Mapping[str, Any]] = self.config.schedule
        try:
            return drawn_or_fixed(entries)
        except ScheduleError as error:
            raise RunFolderError(f"{self.file}: {error}; restore the file, or train again") from error

    def policies(
        self, deterministic: bool = True, seed: int = 0, env: HeronEnv | None = None
    ) -> dict[str, NetworkPolicy | RememberingPolicy]:
        """See `load_policy`."""
        if env is None and is_here(self.config.env_id):
            env = self.make()
        loaded: dict[str, NetworkPolicy | RememberingPolicy] = {}
        for group, kept in self.config.groups.items():
            if env is not None:
                _compare(self.file, env, group, kept)
            actor = self.actors[group]
            remembers = kept.frames > 1 or actor.recurrent is not None or kept.augment > 0
            for key, rule in self._rules(env, group, kept, by_agent=remembers).items():
                act = act_of(np.array(kept.action_low), np.array(kept.action_high), tuple(kept.ncats), rule)
                decides = NetworkPolicy(
                    actor.network, kept.scaling, act, log_std=actor.log_std, deterministic=deterministic, seed=seed,
                    columns=kept.observation_names,
                )  # fmt: skip
                loaded[key] = decides
                if remembers:
                    loaded[key] = RememberingPolicy(
                        decides, frames=kept.frames, recurrent=actor.recurrent, own=own_decisions(kept)
                    )
        return loaded

    def misfit(self, env: HeronEnv) -> str:
        """In words: what `env` has otherwise than what the run was trained on; empty where all is the same."""
        kept, there = self.config.groups, env.group_map
        others = [agent for group, agents in there.items() if group not in kept for agent in agents]
        alone = all(env.hierarchy.agents[env.hierarchy.index[agent]].policy is not None for agent in others)
        if not alone or not set(kept) <= set(there):  # whoever has a policy of its own needs none
            return f"the environment has groups {list(there)}, the run has {list(kept)}"
        return next(filter(None, (misfit(env, group, kept[group]) for group in kept)), "")

    def rules(self, env: HeronEnv) -> dict[tuple[str, str], Policy | Decide | None]:
        """The rules that the policies correct, by (group, key); the key is the group, or an agent where they differ."""
        return {
            (group, key): rule
            for group, kept in self.config.groups.items()
            for key, rule in self._rules(env, group, kept, by_agent=False).items()
        }

    def _rules(
        self, env: HeronEnv | None, group: str, kept: GroupConfig, *, by_agent: bool
    ) -> dict[str, Policy | Decide | None]:
        """The rules that the policy corrects: one for the group, or one per agent where they differ, or if asked."""
        base = self.config.base
        if base is None or kept.ncats:
            return dict.fromkeys(kept.agents if by_agent else [group])
        if env is None:
            raise RunFolderError(
                f"{self.file}: the policy corrects the baseline {base!r} of {self.config.env_id!r}, "
                "which is not registered here; import the module that registers it, then load again"
            )
        result = benchmark.baseline(env, base)
        if result is None:
            raise RunFolderError(
                f"{self.file}: {self.config.env_id!r} has no baseline {base!r}, only "
                f"{list(benchmark.baselines(env))}; install the heron_env that wrote the folder, or train again"
            )
        rules = {agent: on_vectors(rule) for agent, rule in benchmark.rules_of(result, group, kept.agents).items()}
        first = next(iter(rules.values()))
        shared = not by_agent and all(rule is first for rule in rules.values())
        return {group: first} if shared else dict(rules)


@dataclass(frozen=True)
class RunFolder(Run):
    """A finished run. `RunFolder.open(path)` reads and checks it."""

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Read `config.json` and see that every model file is there. Raises RunFolderError."""
        if not isinstance(path, str | PathLike) or not str(path):
            raise RunFolderError(f"{path!r} is no path of a run folder; write 'runs/my-run' or a Path")
        path = Path(path)
        config = read_config(path)
        for group, kept in config.groups.items():
            if not is_file(path / kept.model):
                raise RunFolderError(
                    f"{path / kept.model} does not exist, the model of group {group!r}; "
                    "copy it from where the run was made, or train again"
                )
        return cls(path, config)

    @property
    def file(self) -> Path:
        """config.json."""
        return self.path / NAME

    def write(self) -> None:
        """Write `config.json`: from now on the folder is finished."""
        write(self.path / NAME, self.config.model_dump_json(indent=2) + "\n")

    def save(self, file: str | Path) -> Path:
        """Write what acts as one .npz of at most 300,000 bytes, which `load_policy` and every command read.

        The same run gives the same bytes. Raises ConfigError for another ending, RunFolderError for a larger policy.
        """
        from heron_env.lab.checkpoints import export_checkpoint

        return export_checkpoint(self.path, file).path

    def digest(self) -> str:
        """128 bits, in hexadecimal, of all that decides: the configuration and the models. Raises RunFolderError."""
        result = hashlib.blake2b(digest_size=16)
        for name in (NAME, *(group.model for group in self.config.groups.values())):
            try:
                result.update(hashlib.blake2b(read(self.path / name)).digest())
            except (OSError, ValueError) as error:
                raise RunFolderError(
                    f"{self.path / name}: can't be read ({error}); restore it, or train again"
                ) from error
        return result.hexdigest()

    def curve(self) -> list[dict[str, str]]:
        """Rows of the learning curve, by column name. Raises RunFolderError."""
        return read_curve(self.path / self.config.curve, list(self.config.groups))

    def actor(self, group: str) -> Actor:
        """As of every run; the file of its model is named where it is at fault."""
        return actor_of(self.weights(group), self.config.groups[group], self.path / self.config.groups[group].model)

    def weights(self, group: str) -> Mapping[str, Any]:
        """Actor and critic of a group as a state dict of torch, read without unpickling. Raises RunFolderError."""
        return weights_in(self.path / self.config.groups[group].model)


def replace_run(path: Path, config: RunConfig, models: Mapping[str, bytes], former: Iterable[str]) -> RunFolder:
    """Write models and what names them, and only then remove the files of the `former` run, which was whole so far."""
    for group, kept in config.groups.items():
        write(path / kept.model, models[group])
    run = RunFolder(path, config)
    run.write()
    for name in former:
        (path / name).unlink(missing_ok=True)
    return run


def _compare(file: Path, env: HeronEnv, group: str, kept: GroupConfig) -> None:
    """Raise RunFolderError unless the environment still has the spaces that the policy was trained on."""
    if group not in env.group_map:
        raise RunFolderError(
            f"{file}: the environment has groups {list(env.group_map)}, the run has {group!r}; "
            "correct env_options, or train again"
        )
    fault = misfit(env, group, kept)
    if fault:
        raise RunFolderError(f"{file}: {fault}; correct env_options, or train again")


__all__ = ["SCHEMA", "Run", "RunConfig", "RunFolder", "files_of_run", "unused", "versions"]
