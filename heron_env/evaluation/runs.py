"""Run folders: all that a training run leaves behind, in one folder that can be copied to another machine.

    config.json     what was trained on what, with which versions, seeds and scales (`RunConfig`); written last
    <group>.zip     the Stable-Baselines3 model of each group
    progress.csv    the learning curve

A folder of another schema version is refused: nothing is guessed.
"""

from __future__ import annotations

import csv
import hashlib
import platform
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from heron_env._version import __version__
from heron_env.core.policy import Decide, Policies, Policy
from heron_env.envs.training_delays import TrainingDelays
from heron_env.errors import RunFolderError
from heron_env.evaluation import benchmark
from heron_env.evaluation.run_groups import GroupConfig, misfit
from heron_env.evaluation.trained import (
    Choice,
    Correction,
    Network,
    NetworkPolicy,
    Scaling,
    network_of,
    on_vectors,
    read_weights,
)
from heron_env.registry import is_here, make

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

SCHEMA = 1
PACKAGES = ("numpy", "gymnasium", "pettingzoo", "stable-baselines3", "torch")


class RunConfig(BaseModel):
    """config.json.

    Attributes:
        env_options: of `make()`, those of the user: evaluation builds the environment with them.
        training_options: what came on top while training, say a coarser step.
        training_delays: how late agents saw and acted while training; evaluation has delays of its own.
        base: name of the baseline that the policies correct; None: they decide alone.
        start_from: the run folder whose weights and scales it began with; None: from nothing.
        deterministic: could the training be repeated bit for bit? Not if a time limit ended it.
        critic: what estimated values while training: "local" saw what the agent sees, "central" the state too.
        validation: mean return of the team by policy, on the validation episodes.
    """

    model_config = ConfigDict(extra="forbid")
    schema_version: int = SCHEMA
    env_id: str
    env_options: dict[str, Any]
    training_options: dict[str, Any]
    training_delays: TrainingDelays | None = None
    base: str | None
    start_from: str | None = None
    seed: int
    transitions: int
    seconds: float
    deterministic: bool
    hyperparameters: dict[str, Any]
    critic: Literal["local", "central"] = "local"
    groups: dict[str, GroupConfig]
    validation: dict[str, float]
    versions: dict[str, str]


@dataclass(frozen=True)
class RunFolder:
    """A finished run. `RunFolder.open(path)` reads and checks it."""

    path: Path
    config: RunConfig

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Read `config.json` and see that every model file is there. Raises RunFolderError."""
        if not isinstance(path, str | PathLike) or not str(path):
            raise RunFolderError(f"{path!r} is no path of a run folder; write 'runs/my-run' or a Path")
        path = Path(path)
        file = path / "config.json"
        if not file.is_file():
            raise RunFolderError(
                f"{file} does not exist: {path} is no finished run folder; train one, or correct the path"
            )
        try:
            found = _Versioned.model_validate_json(text := file.read_text("utf-8", errors="replace")).schema_version
            if found != SCHEMA:
                raise RunFolderError(
                    f"{file} has schema version {found}, heron_env {__version__} reads version {SCHEMA}: "
                    "install the heron_env that wrote it, or train again"
                )
            config = RunConfig.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) + f"={first['input']!r}" * isinstance(first["input"], str | float)
            told = f"{where if first['loc'] else 'the file'}: {first['msg']}"
            raise RunFolderError(f"{file}: {told}; restore the file, or train again") from error
        for group, kept in config.groups.items():
            if not (path / kept.model).is_file():
                raise RunFolderError(
                    f"{path / kept.model} does not exist, the model of group {group!r}; "
                    "copy it from where the run was made, or train again"
                )
        return cls(path, config)

    def write(self) -> None:
        """Write `config.json`: from now on the folder is finished."""
        (self.path / "config.json").write_text(self.config.model_dump_json(indent=2) + "\n", encoding="utf-8")

    def digest(self) -> str:
        """128 bits, in hexadecimal, of all that decides: the configuration and the models."""
        found = hashlib.blake2b(digest_size=16)
        for name in ("config.json", *(group.model for group in self.config.groups.values())):
            found.update(hashlib.blake2b((self.path / name).read_bytes()).digest())
        return found.hexdigest()

    def make(self, **options: Any) -> HeronEnv:
        """The environment of the run with its own options; `options` win. Raises UnknownEnvironment."""
        return make(self.config.env_id, **{**self.config.env_options, **options})

    def curve(self) -> list[dict[str, str]]:
        """Rows of the learning curve, by column name. Raises RunFolderError."""
        file = self.path / "progress.csv"
        if not file.is_file():
            raise RunFolderError(f"{file} does not exist; copy it from where the run was made, or train again")
        with file.open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))

    def policies(self, deterministic: bool = True, seed: int = 0) -> dict[str, NetworkPolicy]:
        """See `load_policy`."""
        env = self.make() if is_here(self.config.env_id) else None
        loaded: dict[str, NetworkPolicy] = {}
        for group, kept in self.config.groups.items():
            if env is not None:
                _compare(self.path / "config.json", env, group, kept)
            network, log_std = self._network(kept)
            rules = self._rules(env, group, kept)
            for key, rule in rules.items():
                act = (
                    Choice(tuple(kept.ncats))
                    if kept.ncats
                    else Correction(np.array(kept.action_low), np.array(kept.action_high), rule)
                )
                scaling = Scaling(np.array(kept.center), np.array(kept.scale))
                loaded[key] = NetworkPolicy(
                    network, scaling, act, log_std=log_std, deterministic=deterministic, seed=seed
                )
        return loaded

    def model(self, group: str, **options: Any) -> Any:
        """The Stable-Baselines3 PPO of a group, to train on. This unpickles: it runs code from the folder."""
        from stable_baselines3 import PPO

        return PPO.load(self.path / self.config.groups[group].model, **options)

    def weights(self, group: str) -> Mapping[str, Any]:
        """Actor and critic of a group as a state dict of torch, read without unpickling. Raises RunFolderError."""
        return _weights(self.path / self.config.groups[group].model)

    def misfit(self, env: HeronEnv) -> str:
        """In words: what `env` has otherwise than what the run was trained on; empty where all is the same."""
        kept, there = self.config.groups, list(env.group_map)
        if set(kept) != set(there):
            return f"the environment has groups {there}, the run has {list(kept)}"
        return next(filter(None, (misfit(env, group, kept[group]) for group in there)), "")

    def _network(self, kept: GroupConfig) -> tuple[Network, np.ndarray[Any, Any] | None]:
        file = self.path / kept.model
        try:
            network, log_std = network_of(_weights(file))
        except KeyError as error:
            raise _no_model(file, error) from error
        sizes = (len(network.layers[0][0]), len(network.layers[-1][1]))
        wanted = (len(kept.observation_names), sum(kept.ncats) or len(kept.action_low))
        if sizes != wanted or not len(kept.center) == len(kept.scale) == wanted[0]:
            raise RunFolderError(
                f"{file} maps {sizes[0]} observations to {sizes[1]} outputs, config.json says {wanted[0]} to "
                f"{wanted[1]}: the two are not of one run; restore the folder, or train again"
            )
        return network, None if kept.ncats else log_std

    def _rules(self, env: HeronEnv | None, group: str, kept: GroupConfig) -> dict[str, Policy | Decide | None]:
        """The rules that the policy corrects: one for the group, or one per agent where they differ."""
        base = self.config.base
        if base is None or kept.ncats:
            return {group: None}
        if env is None:
            raise RunFolderError(
                f"{self.path / 'config.json'}: the policy corrects the baseline {base!r} of {self.config.env_id!r}, "
                "which is not registered here; import the module that registers it, then load again"
            )
        baselines = benchmark.baselines(env)
        if base not in baselines:
            raise RunFolderError(
                f"{self.path / 'config.json'}: {self.config.env_id!r} has no baseline {base!r}, only "
                f"{list(baselines)}; install the heron_env that wrote the folder, or train again"
            )
        rules = {
            agent: on_vectors(rule) for agent, rule in benchmark.rules_of(baselines[base], group, kept.agents).items()
        }
        first = next(iter(rules.values()))
        return {group: first} if all(rule is first for rule in rules.values()) else dict(rules)


class _Versioned(BaseModel):
    """The one field that every schema has."""

    schema_version: int


def load_policy(run_dir: str | Path, deterministic: bool = True, seed: int = 0) -> Policies:
    """The trained policies of a run folder by group, as `run_synchronous` and `run_event_driven` take them.

    Loading runs code: that of the environment the folder names (if it is registered here, `make` is called with the
    folder's options) and of its baseline. The weights themselves are read without unpickling; only `RunFolder.model()`,
    for training on, unpickles the Stable-Baselines3 file and so runs code from the folder. Load what you trust.

    Args:
        run_dir: what `heron_env.learning.train` wrote.
        deterministic: the likeliest actions; False: drawn from the policy, keyed by `seed` and by what is seen.
        seed: of these draws.

    Raises:
        RunFolderError: a file is missing, of another schema version, or does not fit the environment.
    """
    return dict(RunFolder.open(run_dir).policies(deterministic, seed))


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


def _weights(file: Path) -> Mapping[str, Any]:
    try:
        with zipfile.ZipFile(file) as archive:
            return read_weights(archive.read("policy.pth"))
    except (zipfile.BadZipFile, KeyError) as error:
        raise _no_model(file, error) from error


def _no_model(file: Path, error: Exception) -> RunFolderError:
    return RunFolderError(f"{file} is no Stable-Baselines3 model ({error}); restore the file, or train again")


def versions() -> dict[str, str]:
    """heron_env, Python, and the packages a run depends on."""
    found = {"heron_env": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
