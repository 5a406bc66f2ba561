"""Training with Stable-Baselines3: its own PPO on a HeronVecEnv, a group at a time, on the synchronous clock."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from heron_env.envs.base import HeronEnv
from heron_env.lab.learning.events import Monitor, PolicyUpdated, RolloutEnded
from heron_env.lab.learning.group import FIRST_SEED, SEEDS, Scales, Training, policies_of
from heron_env.lab.learning.plan import Plan, load_weights
from heron_env.lab.learning.step_rows import Role
from heron_env.lab.learning.validation import Validation
from heron_env.lab.remembering import RememberingPolicy
from heron_env.lab.run_groups import group_config
from heron_env.lab.trained import NetworkPolicy

if TYPE_CHECKING:
    from heron_env.adapters.sb3 import MappedVecEnv


class SlotTraining(Training):
    """PPO for the agents of one role.

    Args:
        plan: what was asked for.
        env: any environment of the kind.
        role: the agents of one group.
        scales: between them and the network.
        others: policies of the agents that act beside.
        validation: episodes to measure on.

    Attributes:
        model: Stable-Baselines3's PPO.
        config: what config.json keeps of the group.
    """

    def __init__(
        self, plan: Plan, env: HeronEnv, role: Role, scales: Scales, others: Mapping[str, Any], validation: Validation
    ) -> None:
        super().__init__(plan, validation, others)
        from stable_baselines3 import PPO
        from torch.nn import ReLU, Tanh

        from heron_env.adapters.ctde import CentralCriticPolicy

        settings, first_seed = plan.hyperparameters, FIRST_SEED + SEEDS * plan.seed
        self.role, self.scales, self._update_seconds = role, scales, 0.0
        self.config = group_config(
            env, role.groups[0], scales.seen, scales.reward, state=scales.state, activation=settings.activation
        )
        self.venv = self._environments(first_seed)
        self.model = PPO(
            "MlpPolicy" if plan.critic == "local" else CentralCriticPolicy,
            self.venv,
            learning_rate=self.annealing,
            n_steps=settings.n_steps,
            batch_size=_divisor(settings.n_steps * self.venv.num_envs, settings.batch_size),
            n_epochs=settings.n_epochs,
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
            policy_kwargs={
                "net_arch": list(settings.hidden),
                "log_std_init": settings.first_log_std(role.corrects),
                "activation_fn": ReLU if settings.activation == "relu" else Tanh,
            },
            seed=plan.seed,
            device=plan.device,
        )
        self.venv.seed(first_seed)  # PPO seeded the environments with its own seed
        if plan.start is not None:
            load_weights(self.model.policy, plan.start, role.groups[0])

    def _environments(self, seed: int) -> MappedVecEnv:
        """In the network's units; where there are numbers to choose, they are in [-1, 1] around what a rule does."""
        from heron_env.adapters.sb3 import HeronVecEnv, MappedVecEnv

        plan, role, scales, numbers = self.plan, self.role, self.scales, self.role.spec.dim_c
        venv = HeronVecEnv(
            plan.make, plan.hyperparameters.num_envs, group=role.groups[0], seed=seed, others=self.others,
            critic=plan.critic,
        )  # fmt: skip
        places = np.arange(venv.num_envs) % len(role.agents)

        def act(seen: NDArray[np.float32], outputs: NDArray[Any]) -> NDArray[Any]:
            return outputs if role.spec.dim_d else role.corrected(seen, places, outputs)

        return MappedVecEnv(
            venv, observe=scales.seen, state=scales.state, act=act, reward_scale=scales.reward,
            action_space=None if role.spec.dim_d else spaces.Box(-1.0, 1.0, shape=(numbers,), dtype=np.float32),
        )  # fmt: skip

    @property
    def transitions(self) -> Mapping[str, int]:
        """Steps of all slots."""
        return {self.role.groups[0]: int(self.model.num_timesteps)}

    def prepare(self) -> None:
        """Nothing: PPO begins the episodes itself."""

    def rollout(self, monitor: Monitor) -> None:
        """As PPO does it, which goes on to the end of an update."""
        venv, group, stepped, goes_on = self.venv, self.role.groups[0], monitor.seconds, True

        def after_step(*_: object) -> bool:
            nonlocal stepped, goes_on
            stepped = monitor.seconds
            goes_on = not monitor.due(self.until - self._update_seconds)
            return goes_on

        steps = venv.num_envs * self.plan.hyperparameters.n_steps
        self.model.learn(steps, after_step, reset_num_timesteps=False, log_interval=1)
        if not goes_on:  # it has learned nothing from what it collected
            return
        self._update_seconds = monitor.seconds - stepped
        signal = venv.reward_sum / venv.transitions if venv.transitions else float("nan")
        venv.reward_sum, venv.transitions = 0.0, 0
        losses = {
            k.removeprefix("train/"): float(v) for k, v in self.model.logger.name_to_value.items() if "train/" in k
        }
        monitor.tell(RolloutEnded, signals={group: signal})
        monitor.tell(PolicyUpdated, losses={group: losses})

    def policies(self) -> dict[str, NetworkPolicy | RememberingPolicy]:
        """The deterministic policies as they are now, by agent."""
        return policies_of(self.role, self.model.policy.state_dict(), self.scales, self.plan.hyperparameters)

    def saved(self) -> bytes:
        """The file of the model, which Stable-Baselines3 loads."""
        packed = io.BytesIO()
        self.model.save(packed)
        return packed.getvalue()


def _divisor(total: int, most: int) -> int:
    """The greatest divisor of `total` that is not above `most`: minibatches of one size."""
    return next(size for size in range(min(total, most), 0, -1) if total % size == 0)
