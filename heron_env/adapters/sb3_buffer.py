"""Rollout buffers of Stable-Baselines3 for slots that idle: decisions, each with the next one of its slot."""

from collections.abc import Callable, Generator
from copy import copy
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer

from heron_env.adapters.slots import WaitingSlots
from heron_env.errors import ConfigError

OF_DECISION = ("observations", "actions", "values", "log_probs", "action_masks")
"""Arrays that hold what was decided."""


class DecisionBuffer(RolloutBuffer):
    """Rollout buffer of decisions: steps in which a slot idles are dropped.

    A decision's reward and end are those that came until its slot decided again; it is bootstrapped with the value of
    that next observation. One whose reward has not come when the rollout ends belongs to the next rollout.
    Minibatches and `explained_variance` are of decisions alone. `class Masked(DecisionBuffer, MaskableRolloutBuffer)`
    serves MaskablePPO.

    Args:
        buffer_size: steps of a rollout; the others are as of RolloutBuffer.
        waiting: `HeronVecEnv.waiting`, of the environment that is stepped: `PPO("MlpPolicy", lanes,
            rollout_buffer_class=DecisionBuffer, rollout_buffer_kwargs={"waiting": lanes.waiting})`.

    Raises ConfigError at the first step without it, and where not one decision was completed.
    """

    def __init__(self, buffer_size: int, *args: Any, waiting: WaitingSlots, **more: Any) -> None:
        self.waiting, self._now, self._carried = waiting, cast(Any, None), dict[str, Any]()
        super().__init__(buffer_size + 1, *args, **more)

    def reset(self) -> None:
        """Empty the buffer, but for unfinished decisions: they become row 0."""
        super().reset()
        self.decided = np.zeros((self.buffer_size, self.n_envs), dtype=np.bool_)
        for name, row in self._carried.items():
            self._each(lambda array, first: array.__setitem__(0, first), getattr(self, name), row)
        self._now, self.pos = copy(self.waiting.slots), 1

    def add(self, obs: Any, action: Any, reward: Any, episode_start: Any, *args: Any, **more: Any) -> None:
        """As in RolloutBuffer."""
        if self._now is None or len(self._now) != self.n_envs:
            raise ConfigError(
                f"DecisionBuffer(waiting={self.waiting!r:.60}): is not that of the {self.n_envs} slots that are "
                "stepped; give HeronVecEnv.waiting. To train on with a saved model, PPO.load(file, env=lanes, "
                "custom_objects={'rollout_buffer_kwargs': {'waiting': lanes.waiting}})"
            )
        if self.pos == 1:  # all were reset: nothing will come of what is carried over
            self.decided[0] &= ~np.asarray(episode_start, dtype=np.bool_)
        self.decided[self.pos] = self._now
        super().add(obs, action, reward, episode_start, *args, **more)
        self._now = copy(self.waiting.slots)

    def compute_returns_and_advantage(self, last_values: Any, dones: NDArray[np.bool_]) -> None:
        """As in RolloutBuffer, from decision to decision of each slot."""
        value, over = last_values.clone().cpu().numpy().flatten(), np.asarray(dones, dtype=np.bool_)
        gae, reward = np.zeros_like(value), np.zeros_like(value)
        follows, ended, complete = self._now, np.zeros_like(over), np.zeros_like(self.decided)
        for step in reversed(range(self.buffer_size)):
            reward += self.rewards[step]
            ended |= over
            now, goes_on = self.decided[step], (~ended).astype(np.float32)
            complete[step] = now & (follows | ended)
            delta = reward + self.gamma * value * goes_on - self.values[step]
            advantage = delta + self.gamma * self.gae_lambda * goes_on * gae
            self.advantages[step] = np.where(complete[step], advantage, 0.0)
            gae, value = np.where(now, self.advantages[step], gae), np.where(now, self.values[step], value)
            reward, ended, follows = np.where(now, 0.0, reward), ended & ~now, follows | now
            over = self.episode_starts[step].astype(np.bool_)
        self.returns = self.advantages + self.values
        if not complete.any():
            raise ConfigError(
                f"DecisionBuffer: no decision was completed in {self.buffer_size - 1} steps; raise n_steps"
            )
        self._keep(complete)

    def _keep(self, complete: NDArray[np.bool_]) -> None:
        """Carry over what is open, at most one a slot; leave the complete ones, `[n, ...]`."""
        begun = self.decided & ~complete
        places = begun.argmax(axis=0), np.arange(self.n_envs)
        names = [name for name in OF_DECISION if hasattr(self, name)]
        self._carried = {name: self._each(lambda array: array[places], getattr(self, name)) for name in names}
        self._carried["decided"] = begun.any(axis=0)
        for name in (*names, "advantages", "returns"):
            setattr(self, name, self._each(lambda array: array.swapaxes(0, 1)[complete.T], getattr(self, name)))
        self.generator_ready = True

    def get(self, batch_size: int | None = None) -> Generator[Any, None, None]:
        """Yield minibatches of about this size, all equally large."""
        number = len(self.values)
        parts = max(1, round(number / (batch_size or number)))
        order = np.random.permutation(number)  # noqa: NPY002 the generator that SB3's seed is for
        yield from map(self._get_samples, np.array_split(order, parts))

    @staticmethod
    def _each(do: Callable[..., Any], *arrays: Any) -> Any:
        """`do` of arrays, or of those under each key of dicts."""
        if isinstance(arrays[0], dict):
            return {key: do(*(array[key] for array in arrays)) for key in arrays[0]}
        return do(*arrays)


class DictDecisionBuffer(DecisionBuffer, DictRolloutBuffer):
    """DecisionBuffer for a HeronVecEnv with `critic="central"`."""
