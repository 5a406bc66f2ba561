"""Run folders: all that a training run leaves behind, in one folder that can be copied to another machine.

    config.json     what was trained on what, with which versions, seeds and scales (`RunConfig`); written last
    <group>.zip     the model of each group: weights, as Stable-Baselines3 packs them
    progress.csv    the learning curve

config.json names the others: where a new run takes the place of an old one they are called `<group>-2.zip` and so on,
so that the folder holds one whole run or the other at any time. A folder of another schema version is refused: nothing
is guessed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env.core.policy import Decide, Policies, Policy
from heron_env.errors import RunFolderError, ScheduleError
from heron_env.files.reading import is_file, read
from heron_env.files.writing import write
from heron_env.lab import benchmark
from heron_env.lab.remembering import RememberingPolicy
from heron_env.lab.run_config import NAME, SCHEMA, RunConfig, files_of_run, read_config, unused, versions
from heron_env.lab.run_curve import read_curve
from heron_env.lab.run_groups import GroupConfig, misfit
from heron_env.lab.run_weights import actor_in, weights_in
from heron_env.lab.trained import NetworkPolicy, Scaling, act_of, on_vectors
from heron_env.registry import EnvironmentSpec, is_here, spec
from heron_env.scheduling.drawn import AnySchedule, drawn_or_fixed
from heron_env.trust import Trust, listed, trusting

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv


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
        config = read_config(path)
        for group, kept in config.groups.items():
            if not is_file(path / kept.model):
                raise RunFolderError(
                    f"{path / kept.model} does not exist, the model of group {group!r}; "
                    "copy it from where the run was made, or train again"
                )
        return cls(path, config)

    def write(self) -> None:
        """Write `config.json`: from now on the folder is finished."""
        write(self.path / NAME, self.config.model_dump_json(indent=2) + "\n")

    def digest(self) -> str:
        """128 bits, in hexadecimal, of all that decides: the configuration and the models. Raises RunFolderError."""
        found = hashlib.blake2b(digest_size=16)
        for name in (NAME, *(group.model for group in self.config.groups.values())):
            try:
                found.update(hashlib.blake2b(read(self.path / name)).digest())
            except (OSError, ValueError) as error:
                raise RunFolderError(
                    f"{self.path / name}: can't be read ({error}); restore it, or train again"
                ) from error
        return found.hexdigest()

    def make(self, **options: Any) -> HeronEnv:
        """The environment of the run with its own options; `options` win. Raises UnknownEnvironment, Untrusted."""
        return self.spec.make(**{**self.config.env_options, **options})

    @property
    def spec(self) -> EnvironmentSpec:
        """What its environment is, as the folder says. Raises UnknownEnvironment."""
        return spec(self.config.env_id, str(self.path / NAME))

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
            raise RunFolderError(f"{self.path / NAME}: {error}; restore the file, or train again") from error

    def curve(self) -> list[dict[str, str]]:
        """Rows of the learning curve, by column name. Raises RunFolderError."""
        return read_curve(self.path / self.config.curve, list(self.config.groups))

    def policies(
        self, deterministic: bool = True, seed: int = 0, env: HeronEnv | None = None
    ) -> dict[str, NetworkPolicy | RememberingPolicy]:
        """See `load_policy`."""
        if env is None and is_here(self.config.env_id):
            env = self.make()
        loaded: dict[str, NetworkPolicy | RememberingPolicy] = {}
        for group, kept in self.config.groups.items():
            if env is not None:
                _compare(self.path / NAME, env, group, kept)
            actor = actor_in(self.path / kept.model, kept)
            scaling = Scaling(np.array(kept.center), np.array(kept.scale))
            remembers = kept.frames > 1 or actor.recurrent is not None
            for key, rule in self._rules(env, group, kept, by_agent=remembers).items():
                act = act_of(np.array(kept.action_low), np.array(kept.action_high), tuple(kept.ncats), rule)
                decides = NetworkPolicy(
                    actor.network, scaling, act, log_std=actor.log_std, deterministic=deterministic, seed=seed
                )
                loaded[key] = decides
                if remembers:
                    loaded[key] = RememberingPolicy(decides, frames=kept.frames, recurrent=actor.recurrent)
        return loaded

    def model(self, group: str, **options: Any) -> Any:
        """The Stable-Baselines3 PPO of a group, to train on. This unpickles: it runs code from the folder.

        Raises RunFolderError where another trainer has left nothing but weights.
        """
        if self.config.trainer != "sb3":
            raise RunFolderError(
                f"{self.path / NAME}: trainer {self.config.trainer!r} leaves no Stable-Baselines3 model; take "
                "weights(group), or train with trainer='sb3'"
            )
        from stable_baselines3 import PPO

        return PPO.load(self.path / self.config.groups[group].model, **options)

    def weights(self, group: str) -> Mapping[str, Any]:
        """Actor and critic of a group as a state dict of torch, read without unpickling. Raises RunFolderError."""
        return weights_in(self.path / self.config.groups[group].model)

    def misfit(self, env: HeronEnv) -> str:
        """In words: what `env` has otherwise than what the run was trained on; empty where all is the same."""
        kept, there = self.config.groups, list(env.group_map)
        if set(kept) != set(there):
            return f"the environment has groups {there}, the run has {list(kept)}"
        return next(filter(None, (misfit(env, group, kept[group]) for group in there)), "")

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
                f"{self.path / 'config.json'}: the policy corrects the baseline {base!r} of {self.config.env_id!r}, "
                "which is not registered here; import the module that registers it, then load again"
            )
        found = benchmark.baseline(env, base)
        if found is None:
            raise RunFolderError(
                f"{self.path / 'config.json'}: {self.config.env_id!r} has no baseline {base!r}, only "
                f"{list(benchmark.baselines(env))}; install the heron_env that wrote the folder, or train again"
            )
        rules = {agent: on_vectors(rule) for agent, rule in benchmark.rules_of(found, group, kept.agents).items()}
        first = next(iter(rules.values()))
        shared = not by_agent and all(rule is first for rule in rules.values())
        return {group: first} if shared else dict(rules)


def load_policy(
    run_dir: str | Path,
    deterministic: bool = True,
    seed: int = 0,
    *,
    env: HeronEnv | None = None,
    trust: Trust = (),
) -> Policies:
    """The trained policies of a run folder by group, as `run_synchronous` and `run_event_driven` take them.

    The environment that the folder names is built, with the folder's options, to see that the policies still fit, and
    for the rule that they correct; so it must be registered here, or trusted. The weights are read without unpickling;
    only `RunFolder.model()`, for training on, unpickles a file of Stable-Baselines3 and so runs code from the folder.
    What remembers is there by agent, each with a memory of its own; batches refuse it.

    Args:
        run_dir: what `heron_env.lab.learning.train` wrote.
        deterministic: the likeliest actions; False: drawn from the policy, keyed by `seed` and by the decision.
        seed: of these draws.
        env: an environment of this kind; then none is built.
        trust: the environment that the folder names, "module:function", where it is not registered.

    Raises:
        RunFolderError: a file is missing, of another schema version, or does not fit the environment.
        Untrusted: the environment is neither registered nor trusted, and no other is given.
    """
    with trusting(*listed(trust)):
        return dict(RunFolder.open(run_dir).policies(deterministic, seed, env))


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


__all__ = ["SCHEMA", "RunConfig", "RunFolder", "files_of_run", "load_policy", "unused", "versions"]
