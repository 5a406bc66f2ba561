"""HeronTask: an environment as a task of BenchMARL, on HeronTorchEnv."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarl.environments.common import TaskClass
from gymnasium import spaces
from torchrl.data import Composite
from torchrl.envs import ActionMask, EnvBase, Transform

from heron_env.adapters.torchrl import HeronTorchEnv
from heron_env.errors import ConfigError


class HeronTask(TaskClass):
    """`Experiment(task=HeronTask("heron/TrafficCorridor-v0", {"groups": ["intersection"]}), ...)`.

    All environments of a worker are the lanes of one batch. Masks reach the algorithms that know them, and with
    `{"with_state": True}` the state reaches critics and mixers, and nobody else.

    Args:
        env_id: a registered environment; "/" is "_" in `name`, of which BenchMARL makes the name of a folder.
        config: what HeronTorchEnv takes, but for lanes, seed and device: `groups`, `others`, `with_state`, ..., and the
            environment's own.

        transforms: TorchRL's, such as ObservationNorm, after which agents see; masks need none.

    Raises ConfigError where no limit of steps is known, or some groups of those that act have masks and others have
    none: BenchMARL wants the one and cannot have the other. And what building the environment raises.
    """

    def __init__(self, env_id: str, config: dict[str, Any] | None = None, transforms: Sequence[Transform] = ()) -> None:
        super().__init__(env_id.replace("/", "_"), config)
        self.env_id, self.transforms = env_id, tuple(transforms)
        env = HeronTorchEnv(env_id, 1, **self.config)
        self._kinds = {type(env.heron_batch.action_spaces[group]) for group in env.group_map}
        if (steps := env.heron_batch.env.termination.max_steps) is None:
            raise ConfigError(
                f"HeronTask({env_id!r}): has no max_steps, and BenchMARL must know how long its evaluations last; "
                "give {'max_steps': ...}, as many steps as an episode can have"
            )
        if env.masked and (others := [group for group in env.group_map if group not in env.masked]):
            raise ConfigError(
                f"HeronTask({env_id!r}): groups {env.masked} have masks and {others} have none, which BenchMARL can't "
                f"train together; give groups={env.masked} or groups={others}"
            )
        self._steps = int(steps)
        env.close()

    def get_env_fun(
        self, num_envs: int, continuous_actions: bool, seed: int | None, device: Any
    ) -> Callable[[], EnvBase]:
        """A function that builds the batch."""
        return lambda: HeronTorchEnv(self.env_id, num_envs, seed=seed or 0, device=device, **self.config)

    def supports_continuous_actions(self) -> bool:
        """Are all actions numbers?"""
        return self._kinds == {spaces.Box}

    def supports_discrete_actions(self) -> bool:
        """Is every action one category?"""
        return self._kinds == {spaces.Discrete}

    def get_env_transforms(self, env: HeronTorchEnv) -> list[Transform]:
        """Those given, and one by which random actions keep to the masks, which copies of specs do not follow."""
        masks = [ActionMask(action_key=(group, "action"), mask_key=(group, "action_mask")) for group in env.masked]
        return [*masks, *(transform.clone() for transform in self.transforms)]

    def max_steps(self, env: EnvBase) -> int:
        """Of an episode."""
        return self._steps

    def has_render(self, env: EnvBase) -> bool:
        """No pictures."""
        return False

    def group_map(self, env: HeronTorchEnv) -> dict[str, list[str]]:
        """Agents by group."""
        return env.group_map

    def observation_spec(self, env: HeronTorchEnv) -> Composite:
        """Of what agents see, without lanes as all of these."""
        return _part(env, "observation")

    def info_spec(self, env: EnvBase) -> Composite | None:
        """None."""
        return None

    def state_spec(self, env: HeronTorchEnv) -> Composite | None:
        """The truth, with `with_state`."""
        state = env.full_observation_spec_unbatched.get("state", None)
        return None if state is None else Composite({"state": state.clone()})

    def action_spec(self, env: EnvBase) -> Composite:
        """Of the groups' actions."""
        return env.full_action_spec_unbatched

    def action_mask_spec(self, env: HeronTorchEnv) -> Composite | None:
        """Where choices may be forbidden."""
        return _part(env, "action_mask") if env.masked else None

    @staticmethod
    def env_name() -> str:
        """The name that BenchMARL writes into its logs."""
        return "heron_env"


def _part(env: HeronTorchEnv, name: str) -> Composite:
    """What is called so in the groups' specs."""
    specs = {group: env.full_observation_spec_unbatched[group] for group in env.group_map}
    return Composite({group: Composite({name: spec[name].clone()}, shape=spec.shape) for group, spec in specs.items()})
