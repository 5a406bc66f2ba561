"""HeronTask: an environment as a task of BenchMARL, on HeronTorchEnv."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarl.environments.common import TaskClass
from gymnasium import spaces
from torchrl.data import Composite
from torchrl.envs import EnvBase

from heron_env.adapters.torchrl import HeronTorchEnv
from heron_env.registry import make


class HeronTask(TaskClass):
    """`Experiment(task=HeronTask("heron/TrafficCorridor-v0", {"groups": ["intersection"]}), ...)`.

    All environments of a worker are the lanes of one batch. Masks reach the algorithms that know them.

    Args:
        env_id: a registered environment.
        config: what HeronTorchEnv takes, but for lanes, seed and device: `groups`, `others`, and the environment's own.
    """

    def __init__(self, env_id: str, config: dict[str, Any] | None = None) -> None:
        super().__init__(env_id, config)
        given = {name: value for name, value in self.config.items() if name not in ("groups", "others", "threads")}
        self._env = make(env_id, **given)
        groups = self.config.get("groups") or list(self._env.group_map)
        self._spaces = [self._env.action_space(self._env.group_map[group][0]) for group in groups]

    def get_env_fun(
        self, num_envs: int, continuous_actions: bool, seed: int | None, device: Any
    ) -> Callable[[], EnvBase]:
        """A function that builds the batch."""
        return lambda: HeronTorchEnv(self.name, num_envs, seed=seed or 0, device=device, **self.config)

    def supports_continuous_actions(self) -> bool:
        """Are all actions numbers?"""
        return all(isinstance(space, spaces.Box) for space in self._spaces)

    def supports_discrete_actions(self) -> bool:
        """Is every action one category?"""
        return all(isinstance(space, spaces.Discrete) for space in self._spaces)

    def max_steps(self, env: EnvBase) -> int:
        """Of an episode."""
        return int(self._env.termination.max_steps or 1_000)

    def has_render(self, env: EnvBase) -> bool:
        """No pictures."""
        return False

    def group_map(self, env: HeronTorchEnv) -> dict[str, list[str]]:
        """Agents by group."""
        return env.group_map

    def observation_spec(self, env: HeronTorchEnv) -> Composite:
        """Of what agents see."""
        return _part(env, "observation")

    def info_spec(self, env: EnvBase) -> Composite | None:
        """None."""
        return None

    def state_spec(self, env: HeronTorchEnv) -> Composite | None:
        """The truth, with `with_state`."""
        state = env.observation_spec.get("state", None)
        return None if state is None else Composite({"state": state.clone()}, shape=env.batch_size)

    def action_spec(self, env: EnvBase) -> Composite:
        """Of the groups' actions."""
        return env.full_action_spec

    def action_mask_spec(self, env: HeronTorchEnv) -> Composite | None:
        """Where choices may be forbidden."""
        return _part(env, "action_mask") if env.masked else None

    @staticmethod
    def env_name() -> str:
        """The name that BenchMARL writes into its logs."""
        return "heron_env"


def _part(env: HeronTorchEnv, name: str) -> Composite:
    """What is called so in the groups' specs."""
    specs = {group: spec for group, spec in env.observation_spec.items() if group in env.group_map}
    having = {group: spec for group, spec in specs.items() if name in list(spec.keys())}
    return Composite(
        {group: Composite({name: spec[name].clone()}, shape=spec.shape) for group, spec in having.items()},
        shape=env.batch_size,
    )
