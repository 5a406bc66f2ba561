"""Runs: all that a training leaves behind, in one folder that can be copied to another machine, or in one file.

    config.json            what was trained on what, with which versions, seeds and scales (`RunConfig`); written last
    <group>.safetensors    the weights of each group
    progress.csv           the learning curve

config.json names the others: where a new run takes the place of an old one they are called `<group>-2.safetensors` and
so on, so that the folder holds one whole run or the other at any time. One file has what acts, and the configuration.
"""

from __future__ import annotations

import functools
import hashlib
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, count
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from heron_env._version import __version__
from heron_env.core.policy import Decide, Policies, Policy
from heron_env.errors import ConfigError, RunFolderError, ScheduleError, did_you_mean
from heron_env.files.reading import is_file, read
from heron_env.files.writing import write
from heron_env.given import path_of
from heron_env.lab import benchmark
from heron_env.lab.policies import ENDING, ENDINGS, SHIPPED
from heron_env.lab.remembering import OwnDecisions, RememberingPolicy
from heron_env.lab.run_files import MEND, NAME, SCHEMA, GroupConfig, RunConfig, config_in, misfit, read_curve
from heron_env.lab.trained import NetworkPolicy, act_of, on_vectors
from heron_env.lab.weights import ACTS, Actor, Arrays, actor_of, no_model, packed_weights, weights_in
from heron_env.registry import EnvironmentSpec, is_here, spec
from heron_env.scheduling.drawn import AnySchedule, drawn_or_fixed
from heron_env.trust import Trust, listed, trusting

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

PACKAGES: Final = ("numpy", "gymnasium", "pettingzoo", "stable-baselines3", "torch")
MOST: Final = 300_000
"""Bytes of a run in one file."""
ZOO: Final = Path(__file__).resolve().parents[1] / "zoo"
"""What is shipped: the board's table, and for each of its worlds the policies of the first training seed."""
CHECKPOINTS: Final = "heron_board_checkpoints.tar"
"""Those of all seeds, an asset of each release."""
LoadedPolicy = NetworkPolicy | RememberingPolicy


@dataclass(frozen=True)
class RunFolder:
    """Finished training run; it pickles with its weights.

    Attributes:
        path: the folder, or the one file.
        contents: the files by name: the configuration, then the weights.
    """

    path: Path
    config: RunConfig
    contents: Mapping[str, bytes] = field(repr=False, compare=False)

    @staticmethod
    def open(path: str | Path) -> RunFolder:
        """The run in a folder or a file, or a shipped one by its name. Raises RunFolderError, ConfigError."""
        return open_run(path)

    @property
    def in_one_file(self) -> bool:
        """Is it one file? Then it has no learning curve and no weights of the critic."""
        return NAME not in self.contents

    @property
    def file(self) -> Path:
        """File with the configuration: config.json, or the run's one file."""
        return self.path if self.in_one_file else self.path / NAME

    def digest(self) -> str:
        """Digest of configuration and weights: 128 bits, in hexadecimal."""
        data = [*self.contents.values()]
        if len(data) > 1:
            data = [hashlib.blake2b(each).digest() for each in data]
        return hashlib.blake2b(b"".join(data), digest_size=16).hexdigest()

    def has_digest(self, digest: str) -> bool:
        """Does the run have this digest? `formerly`: digest of a shipped run in the format before 0.3."""
        formerly = weights_in(self.contents[self.path.name], self.path)[1].get("formerly") if self.in_one_file else None
        return digest in (self.digest(), formerly)

    def weights(self, group: str) -> Arrays:
        """Return arrays by the names of torch's state dict; one file has the actors' alone. Raises RunFolderError."""
        file = self._file_of(group)
        arrays = weights_in(self.contents[file.name], file)[0]
        if not self.in_one_file:
            return arrays
        begin = f"{[*self.config.groups].index(group)}."
        return {name.removeprefix(begin): arrays[name] for name in arrays if name.startswith(begin)}

    def _file_of(self, group: str) -> Path:
        return self.path if self.in_one_file else self.path / self.config.groups[group].model

    @functools.cached_property
    def actors(self) -> Mapping[str, Actor]:
        """What acts in each group. Raises RunFolderError unless it fits the configuration."""
        groups = self.config.groups.items()
        return {name: actor_of(self.weights(name), group, self._file_of(name)) for name, group in groups}

    def __getstate__(self) -> dict[str, Any]:
        """What was read, without what follows from it."""
        return {name: value for name, value in self.__dict__.items() if name != "actors"}

    def make(self, **options: Any) -> HeronEnv:
        """The environment of the run with its own options; `options` win. Raises UnknownEnvironment, Untrusted."""
        return self.spec.make(**{**self.config.env_options, **options})

    @property
    def spec(self) -> EnvironmentSpec:
        """Specification of its environment. Raises UnknownEnvironment."""
        return spec(self.config.env_id, str(self.file))

    @property
    def env_id(self) -> str:
        """Id of its environment. Raises UnknownEnvironment, Untrusted."""
        if ":" in self.config.env_id:
            self.spec.require_trust()
        return self.config.env_id

    @property
    def schedule(self) -> AnySchedule:
        """Schedule of training; None: the synchronous clock. Raises RunFolderError."""
        if self.config.schedule is None:
            return None
        entries: Mapping[Any, Mapping[str, Any]] = self.config.schedule
        try:
            return drawn_or_fixed(entries)
        except ScheduleError as error:
            raise RunFolderError(f"{self.file}: {error}; restore the file, or train again") from error

    def curve(self) -> list[dict[str, str]]:
        """Rows of the learning curve, by column name. Raises RunFolderError."""
        return read_curve(self.path / self.config.curve, list(self.config.groups))

    def policies(
        self, deterministic: bool = True, seed: int = 0, env: HeronEnv | None = None
    ) -> dict[str, LoadedPolicy]:
        """See `load_policy`."""
        if env is None and is_here(self.config.env_id):
            env = self.make()
        loaded: dict[str, LoadedPolicy] = {}
        for name, group in self.config.groups.items():
            if env is not None and (fault := misfit(env, name, group)):
                raise RunFolderError(f"{self.file}: {fault}; correct env_options, or train again")
            actor = self.actors[name]
            remembers = actor.recurrent is not None or group.frames > 1 or group.augment > 0
            for key, rule in self.rules(env, name, by_agent=remembers).items():
                loaded[key] = policy_of(group, actor, rule, deterministic, seed)
        return loaded

    def misfit(self, env: HeronEnv) -> str:
        """Return the differences of `env` to the environment of training, in words; "": none."""
        ours, theirs = self.config.groups, env.group_map
        others = [agent for group, agents in theirs.items() if group not in ours for agent in agents]
        alone = all(env.hierarchy.agents[env.hierarchy.index[agent]].policy is not None for agent in others)
        if not alone or not set(ours) <= set(theirs):  # whoever has a policy of its own needs none
            return f"the environment has groups {list(theirs)}, the run has {list(ours)}"
        return next(filter(None, (misfit(env, group, ours[group]) for group in ours)), "")

    def rules(self, env: HeronEnv | None, group: str, *, by_agent: bool = False) -> dict[str, Policy | Decide | None]:
        """Return the rules that a policy corrects: one for the group, or one per agent where they differ."""
        base, config = self.config.base, self.config.groups[group]
        if base is None or config.ncats:
            return dict.fromkeys(config.agents if by_agent else [group])
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
        rules = {agent: on_vectors(rule) for agent, rule in benchmark.rules_of(result, group, config.agents).items()}
        first = next(iter(rules.values()))
        shared = not by_agent and all(rule is first for rule in rules.values())
        return {group: first} if shared else dict(rules)

    def save(self, file: str | Path) -> Path:
        """Write the policies as one .safetensors of at most 300,000 bytes, for `load_policy` and every command.

        The same run gives the same bytes. Raises ConfigError for another ending, RunFolderError for a larger policy.
        """
        path = path_of(file, "save(file)")
        if path.suffix != ENDING:
            name = f"{path.stem or 'policy'}{ENDING}"
            raise ConfigError(f"{path}: give the file an ending that says what it is, say {name}")
        arrays = dict[str, Any]()
        for number, group in enumerate(self.actors):  # of which each was looked at
            weights = self.weights(group)
            arrays |= {f"{number}.{name}": weights[name] for name in weights if name.startswith(ACTS)}
        data = packed_weights(arrays, config=self.config.model_dump_json())
        if len(data) > MOST:
            raise RunFolderError(
                f"{self.path}: its policy takes {len(data):,} bytes, {MOST:,} at the most; train a smaller one"
            )
        return write(path, data)


def policy_of(
    group: GroupConfig, actor: Actor, rule: Policy | Decide | None, deterministic: bool = True, seed: int = 0
) -> LoadedPolicy:
    """The policy of a group, or of one agent, that corrects this rule."""
    low, high = np.array(group.action_low, np.float64), np.array(group.action_high, np.float64)
    decides = NetworkPolicy(
        actor.network, group.scaling, act_of(low, high, tuple(group.ncats), rule), log_std=actor.log_std,
        deterministic=deterministic, seed=seed, columns=group.observation_names,
    )  # fmt: skip
    own = OwnDecisions.of(group.augment, low, high, group.ncats) if group.augment else None
    if actor.recurrent is None and own is None and group.frames == 1:
        return decides
    return RememberingPolicy(decides, frames=group.frames, recurrent=actor.recurrent, own=own)


def shipped() -> dict[str, Path]:
    """The files of the shipped policies by name, `shipped:heron/Spread-v0/ppo`."""
    return {
        f"{SHIPPED}{path.relative_to(ZOO).with_suffix('').as_posix()}": path for path in sorted(ZOO.rglob(f"*{ENDING}"))
    }


def open_run(run_dir: str | Path) -> RunFolder:
    """The run in a folder or a file, or a shipped one by its name. Raises RunFolderError, ConfigError."""
    if not isinstance(run_dir, str | PathLike) or not str(run_dir):
        raise RunFolderError(f"{run_dir!r} is no path of a run folder; write 'runs/my-run' or a Path")
    path = _shipped(run_dir) if str(run_dir).startswith(SHIPPED) else Path(run_dir)
    if path.suffix in ENDINGS:
        data = _read(path, "; correct the path, or save the run again", MOST)
        about = weights_in(data, path)[1]
        if "config" not in about:
            raise no_model(path, "it has no configuration")
        return RunFolder(path, config_in(about["config"], path), {path.name: data})
    file = path / NAME
    text = _read(file, f": {path} is no finished run folder; train one, or correct the path")
    config = config_in(text, file)
    models = {
        group.model: _read(path / group.model, f", the model of group {name!r}; {MEND}")
        for name, group in config.groups.items()
    }
    return RunFolder(path, config, {NAME: text, **models})


def _shipped(name: str | Path) -> Path:
    if (text := str(name)) in (offered := shipped()):
        return offered[text]
    if re.sub(r"-seed[1-9]\d*$", "", text) in offered:
        raise ConfigError(
            f"{text!r:.90}: one seed of each is shipped; unpack {CHECKPOINTS} of the release and give the file "
            f"{text.removeprefix(SHIPPED)}{ENDING}"
        )
    raise ConfigError(f"{text!r:.90}: not shipped; see `heron board list`.{did_you_mean(text, offered)}")


def _read(file: Path, mend: str, *most: int) -> bytes:
    if not is_file(file):
        raise RunFolderError(f"{file} does not exist{mend}")
    try:
        return read(file, *most)
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{file}: can't be read ({error}); restore the file, or train again") from error


def files_of_run(folder: Path) -> list[str]:
    """What the finished run in a folder needs besides config.json; nothing where there is none."""
    try:
        config = open_run(folder).config
    except RunFolderError:
        return []
    return [*(group.model for group in config.groups.values()), config.curve]


def unused(stem: str, ending: str, taken: set[str]) -> str:
    """A name for a file beside those `taken`, which it joins: `battery.csv`, else `battery-2.csv` and so on."""
    plain = "".join(letter if letter.isalnum() or letter in "-_.()" else "_" for letter in stem).lstrip(".") or "group"
    names = chain([f"{plain}{ending}"], (f"{plain}-{number}{ending}" for number in count(2)))
    chosen = next(name for name in names if name not in taken)
    taken.add(chosen)
    return chosen


def replace_run(path: Path, config: RunConfig, models: Mapping[str, bytes], former: Iterable[str]) -> RunFolder:
    """Write a run: its weights, then what names them, and only then remove the files of the `former` run there."""
    taken = {*former, config.curve}
    names = {group: unused(group, ENDING, taken) for group in config.groups}
    groups = {name: group.model_copy(update={"model": names[name]}) for name, group in config.groups.items()}
    config = config.model_copy(update={"groups": groups})
    text = f"{config.model_dump_json(indent=2)}\n".encode()
    contents = {NAME: text, **{name: models[group] for group, name in names.items()}}
    for name in (*names.values(), NAME):
        write(path / name, contents[name])
    for name in former:
        (path / name).unlink(missing_ok=True)
    return RunFolder(path, config, contents)


def versions() -> dict[str, str]:
    """Return the versions that run folders and traces record.

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


def load_policy(
    run_dir: str | Path,
    deterministic: bool = True,
    seed: int = 0,
    *,
    env: HeronEnv | None = None,
    trust: Trust = (),
) -> Policies:
    """Load the trained policies of a run, for `run_synchronous` and `run_event_driven`.

    The run's environment is built with the run's options, to check that the policies fit it and to get the rule that
    they correct. So it must be registered or trusted. The weights are read without unpickling. Policies with memory
    have an entry for each agent, each with its own memory; batches refuse them.

    Args:
        run_dir: a run folder that `train` wrote; a file that `RunFolder.save` wrote, `policy.safetensors`; or the name
            of a shipped policy, "shipped:heron/Spread-v0/ppo" (`heron board list` lists them).
        deterministic: True: the most likely actions; False: drawn from the policy, keyed by `seed` and the decision.
        seed: of these draws.
        env: an environment of this kind; then none is built.
        trust: the environment that the folder names, "module:function", if it is not registered.

    Returns:
        Policies by group, or by agent if they have memory or correct different rules.

    Raises:
        RunFolderError: a file is missing, of another schema version, or does not fit the environment.
        Untrusted: the environment is neither registered nor trusted, and no other is given.

    >>> policies = load_policy("shipped:heron/Spread-v0/ppo")
    >>> list(policies)
    ['agent']
    """
    with trusting(*listed(trust)):
        return dict(open_run(run_dir).policies(deterministic, seed, env))


__all__ = ["SCHEMA", "RunConfig", "RunFolder", "files_of_run", "load_policy", "open_run", "unused", "versions"]
