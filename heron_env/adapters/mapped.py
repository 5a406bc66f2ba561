"""MappedVecEnv: a VecEnv in the learner's own units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from heron_env.adapters.slots import Info, Observations, Vectors

Map = Callable[[Vectors], Vectors]


class MappedVecEnv(VecEnvWrapper):
    """A VecEnv whose learner sees mapped observations and rewards, and whose actions are mapped before they act.

    Args:
        venv: the environments.
        observe: what an agent sees `[..., d]` -> what the learner sees, float32.
        act: (raw observations `[slots, d]`, the learner's actions) -> actions.
        reward_scale: factor on rewards.
        action_space: of the learner; None: unchanged.
        state: like `observe`, for the state `[..., s]` of observations {"obs", "state"}.
    """

    def __init__(
        self,
        venv: VecEnv,
        *,
        observe: Map,
        act: Callable[[Vectors, NDArray[Any]], NDArray[Any]],
        reward_scale: float,
        action_space: spaces.Space[Any] | None,
        state: Map | None = None,
    ) -> None:
        super().__init__(venv, observation_space=_unbounded(venv.observation_space), action_space=action_space)
        self._maps = {"obs": observe} if state is None else {"obs": observe, "state": state}
        self._act, self._reward_scale = act, reward_scale
        self._raw: Vectors = np.zeros(0, dtype=np.float32)
        self.reward_sum, self.transitions = 0.0, 0

    def reset(self) -> Observations:
        """As the environments', mapped."""
        return self._observe(cast(Observations, self.venv.reset()))

    def step_async(self, actions: NDArray[Any]) -> None:
        """Map the actions, given what the agents saw when they were chosen."""
        self.venv.step_async(self._act(self._raw, actions))

    def step_wait(self) -> tuple[Observations, NDArray[np.float32], NDArray[np.bool_], list[Info]]:
        """As the environments', mapped; terminal observations too."""
        observations, rewards, dones, infos = self.venv.step_wait()
        self.reward_sum += float(rewards.sum())
        self.transitions += len(rewards)
        if dones.any():
            for slot in np.flatnonzero(dones):
                infos[slot]["terminal_observation"] = self._mapped(infos[slot]["terminal_observation"])
        return self._observe(cast(Observations, observations)), rewards * np.float32(self._reward_scale), dones, infos

    def _observe(self, seen: Observations) -> Observations:
        """Keep what the agents see: actions are chosen on it."""
        self._raw = seen["obs"] if isinstance(seen, dict) else seen
        return self._mapped(seen)

    def _mapped(self, seen: Observations) -> Observations:
        if isinstance(seen, dict):
            return {part: self._maps[part](values) for part, values in seen.items()}
        return self._maps["obs"](seen)


def _unbounded(space: spaces.Space[Any]) -> spaces.Space[Any]:
    if isinstance(space, spaces.Dict):
        return spaces.Dict({part: _unbounded(inner) for part, inner in space.items()})
    return spaces.Box(-np.inf, np.inf, shape=space.shape, dtype=np.float32)
