"""PPO of Stable-Baselines3 for many slots: timeouts of a step are valued in one call of the network."""

from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper


class ManySlotsPPO(PPO):
    """PPO as it is, faster where many slots end at once.

    Where only a limit ends an episode PPO adds the discounted value of the last observation to the last reward, with a
    call of the network for each slot; here it is one call for all. Callbacks see rewards with that value, and infos
    without `TimeLimit.truncated`. What it saves is a PPO.
    """

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        """As PPO's."""
        return super().collect_rollouts(_Timeouts(env, self), callback, rollout_buffer, n_rollout_steps)


class _Timeouts(VecEnvWrapper):
    """Adds the value of what a limit cut off to the rewards, so that PPO finds nothing left to do."""

    def __init__(self, venv: VecEnv, model: PPO) -> None:
        super().__init__(venv)
        self._model = model

    def reset(self) -> Any:
        """As the environments'."""
        return self.venv.reset()

    def step_wait(self) -> Any:
        """As the environments', with rewards completed."""
        seen, rewards, dones, infos = self.venv.step_wait()
        cut = [slot for slot in np.flatnonzero(dones) if infos[slot].pop("TimeLimit.truncated", False)]
        if cut:
            policy = self._model.policy
            last, _ = policy.obs_to_tensor(_stacked([infos[slot]["terminal_observation"] for slot in cut]))
            with torch.no_grad():
                rewards[cut] += self._model.gamma * policy.predict_values(last)[:, 0].cpu().numpy()
        return seen, rewards, dones, infos


def _stacked(observations: list[Any]) -> Any:
    first = observations[0]
    if not isinstance(first, dict):
        return np.stack(observations)
    return {part: np.stack([seen[part] for seen in observations]) for part in first}
