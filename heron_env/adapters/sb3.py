"""HeronVecEnv: n environments and all agents of one group as the slots of a Stable-Baselines3 VecEnv."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from heron_env.adapters.central_lane import CentralLane, require_critic
from heron_env.adapters.lane import Lane
from heron_env.core.policy import Policies
from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError, InvalidAction, did_you_mean
from heron_env.registry import make

Info = dict[str, Any]
Vectors = NDArray[np.float32]
Observations = Vectors | dict[str, Vectors]
"""`[slots, d]`; with a central critic {"obs", "state"} of them."""


class HeronVecEnv(VecEnv):
    """`num_envs` environments in a loop, one slot per agent of `group`, env-major: slot = env * agents + agent.

    Environment i starts with seed + i and goes on by `reset()`, so no episode repeats. When an episode is over its
    environment is reset at once: the slot's info then has `terminal_observation`, `TimeLimit.truncated` (truncated and
    not terminated) and `episode` {r, l, t}: the team's return (the root's rewards, not the training signal), its steps,
    and the seconds since this object was made. Other steps' infos are empty; `get_attr` reaches the environments.

    An agent that ends before the others has `done` once, with its `terminal_observation`. Ids do not revive, so its
    slot then idles until the episode is over: observation and reward 0, actions ignored, infos {"idle": True}; at the
    episode's end it has `done` again, which keeps the idle stretch apart from the next episode.

    With `critic="central"` observations, terminal ones too, are {"obs": what the agent sees, "state": `env.state()` and
    then, one-hot, which of the group's agents this slot is}, for `heron_env.adapters.ctde.CentralCriticPolicy`. An idle
    slot's state is 0 too. Every slot has a copy of its environment's state, so memory grows with agents x state.

    Args:
        make_env: builds one environment, or a registered id (with `options`).
        num_envs: number of environments; slots are `self.num_envs` = that times the group's size.
        group: one of `env.group_map`; None: the only one.
        seed: of environment 0 at the first reset, unless `seed()` says otherwise.
        others: policies of the agents of other groups, by id, group or "*"; who has none uses its own policy or no-op.
        use_training_signal: rewards from `env.training_signal()`, else the agents' own rewards.
        critic: "local": it sees what the agent sees; "central": the state too.

    Raises ConfigError for a group or a critic that does not exist or an action of mixed kinds.
    """

    def __init__(
        self,
        make_env: Callable[[], HeronEnv] | str,
        num_envs: int,
        *,
        group: str | None = None,
        seed: int = 0,
        others: Policies | None = None,
        use_training_signal: bool = True,
        critic: str = "local",
        **options: Any,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise ConfigError(f"HeronVecEnv(num_envs={num_envs!r}): must be a whole number >= 1")
        if options and not isinstance(make_env, str):
            raise ConfigError(f"HeronVecEnv: options {sorted(options)} go with an id; put them into make_env")
        self.envs = [make(make_env, **options) if isinstance(make_env, str) else make_env() for _ in range(num_envs)]
        self.group = only_group(self.envs[0], group)
        agents = self.envs[0].group_map[self.group]
        self.agents_per_env = len(agents)
        self.central = require_critic(critic, "HeronVecEnv")
        kind = CentralLane if self.central else Lane
        self.lanes = [kind(env, agents, others or {}, use_training_signal) for env in self.envs]
        observation_space, action_space = (
            self.envs[0].observation_space(agents[0]),
            self.envs[0].action_space(agents[0]),
        )
        if isinstance(action_space, spaces.Dict):
            raise ConfigError(
                f"HeronVecEnv: group {self.group!r} mixes continuous and discrete actions, which SB3 can't take"
            )
        slots, first = num_envs * self.agents_per_env, self.lanes[0]
        self._own_width = observation_space.shape[0]
        space: spaces.Space[Any] = observation_space
        if isinstance(first, CentralLane):
            space = spaces.Dict({"obs": observation_space, "state": first.state_space})
        super().__init__(slots, space, action_space)
        self._spec = first.spec
        self.bounds, self.whole = _bounds(action_space), not isinstance(action_space, spaces.Box)
        self._values = np.zeros((slots, len(self.bounds[0])))
        self._gathered = np.zeros((num_envs, self.agents_per_env, first.width))
        self._rewards = np.zeros((num_envs, self.agents_per_env))
        self._dones = np.zeros((num_envs, self.agents_per_env), dtype=bool)
        self.seed(seed)

    # SB3's interface

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seeds for the next `reset()`, one per slot: environment i gets seed + i. None: go on with the old."""
        first = [None if seed is None else seed + env for env in range(len(self.envs))]
        self._seeds = [number for number in first for _ in range(self.agents_per_env)]
        return self._seeds

    def reset(self) -> Observations:
        """Start an episode everywhere; uses and clears what `seed()` and `set_options()` stored. `[slots, obs]`."""
        for number, lane in enumerate(self.lanes):
            slot = number * self.agents_per_env
            infos = lane.reset(self._seeds[slot], self._options[slot] or None)
            self.reset_infos[slot : slot + self.agents_per_env] = infos
            lane.observe(self._gathered[number])
        self._reset_seeds()
        self._reset_options()
        return self._observations()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the actions `[slots, size]` (or `[slots]`). Raises InvalidAction naming slot and value."""
        values = np.asarray(actions).reshape(self.num_envs, -1)
        if values.shape != self._values.shape:
            raise InvalidAction(f"actions have shape {np.shape(actions)}, expected {self._values.shape}")
        low, high = self.bounds
        legal = (values >= low) & (values <= high)
        if self.whole:
            legal &= values == np.floor(values)
        if not legal.all():
            slot = int(np.argmin(legal.all(axis=1)))
            raise InvalidAction(
                f"action of slot {slot}: {values[slot].tolist()} lies outside {self.action_space}; clip it"
            )
        self._values[:] = values
        if not self.whole:  # a float32 bound may lie beyond the float64 one
            np.clip(self._values, self._spec.low, self._spec.high, out=self._values)

    def step_wait(self) -> tuple[Observations, NDArray[np.float32], NDArray[np.bool_], list[Info]]:
        """Step every environment: observations `[slots, obs]`, rewards, dones `[slots]`, infos."""
        infos: list[Info] = [{} for _ in range(self.num_envs)]
        self._dones[:] = False
        per_env = self._values.reshape(len(self.lanes), self.agents_per_env, -1)
        for number, lane in enumerate(self.lanes):
            seen = self._gathered[number]
            changed = lane.step(per_env[number], self._rewards[number])
            lane.observe(seen)
            if changed:
                slot = number * self.agents_per_env
                lane.close(seen, self._dones[number], infos[slot : slot + self.agents_per_env])
        if self.central and self._dones.any():
            for info in infos:
                if "terminal_observation" in info:
                    info["terminal_observation"] = self._parts(info["terminal_observation"])
        return self._observations(), self._rewards.reshape(-1).astype(np.float32), self._dones.reshape(-1).copy(), infos

    def close(self) -> None:
        """Close the environments."""
        for env in self.envs:
            env.close()

    def has_attr(self, attr_name: str) -> bool:
        """Is there such an attribute? `action_masks` exists for groups that choose among categories."""
        if attr_name == "action_masks":
            return self.whole
        return hasattr(self.envs[0], attr_name)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The attribute of each slot's environment."""
        return [getattr(self.envs[slot // self.agents_per_env], attr_name) for slot in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of the slots' environments."""
        for number in self._env_numbers(indices):
            setattr(self.envs[number], attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the slots' environments, once per environment; one result per slot.

        `action_masks` gives each slot's own mask, int8 `[sum(ncats)]`, as sb3-contrib's MaskablePPO wants it.
        """
        slots = list(self._get_indices(indices))
        if method_name == "action_masks":
            return [self.lanes[slot // self.agents_per_env].mask(slot % self.agents_per_env) for slot in slots]
        results = {
            number: getattr(self.envs[number], method_name)(*method_args, **method_kwargs)
            for number in self._env_numbers(indices)
        }
        return [results[slot // self.agents_per_env] for slot in slots]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        """Never wrapped by Gymnasium wrappers."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> list[NDArray[np.uint8] | None]:
        """One picture per environment."""
        return [env.render() for env in self.envs]

    def _env_numbers(self, indices: VecEnvIndices) -> list[int]:
        return list(dict.fromkeys(slot // self.agents_per_env for slot in self._get_indices(indices)))

    def _observations(self) -> Observations:
        """A copy, so that what was handed out never changes."""
        return self._parts(self._gathered.reshape(self.num_envs, -1).astype(np.float32))

    def _parts(self, rows: Vectors) -> Observations:
        """Rows of lanes `[..., width]` as the observation space has them."""
        if not self.central:
            return rows
        return {"obs": rows[..., : self._own_width], "state": rows[..., self._own_width :]}


def only_group(env: HeronEnv, group: str | None) -> str:
    """`group`, or the only one there is. Raises ConfigError."""
    groups = list(env.group_map)
    if group is None and len(groups) == 1:
        return groups[0]
    if group not in groups:
        raise ConfigError(f"group={group!r}: choose one of {groups}.{did_you_mean(group, groups)}")
    return group


def _bounds(space: spaces.Space[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Least and greatest value of each element of an action."""
    match space:
        case spaces.Box():
            return space.low.reshape(-1), space.high.reshape(-1)
        case spaces.Discrete():
            return np.zeros(1), np.array([space.n - 1])
        case spaces.MultiDiscrete():
            return np.zeros(len(space.nvec)), space.nvec - 1
        case _:
            raise ConfigError(f"HeronVecEnv: can't train on actions in {space}")
