"""HeronTorchEnv: a BatchEnv as a TorchRL environment, all lanes in one tensordict, agents by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from tensordict import TensorDict, TensorDictBase
from torchrl.data import Binary, Bounded, Categorical, Composite, MultiCategorical, Unbounded
from torchrl.envs import EnvBase

from heron_env.adapters.gymnasium import by_rule_alone
from heron_env.adapters.slots import trained_group
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.env import BatchEnv
from heron_env.envs.hooks import has_training_rewards


class HeronTorchEnv(EnvBase):
    """`num_envs` environments that step together; lane i is, bit for bit, the HeronEnv with seed + i.

    Batch size `[B]`, lanes. Of each group, with n agents: `(group, "observation")` float32 `[B, n, d]`, `(group,
    "action")` `[B, n, k]` (categories int64, `[B, n]` for one; of a mixed action `(group, "action", "c")` and `(group,
    "action", "d")`), `(group, "reward")` float32 `[B, n, 1]`; where choices may be forbidden `(group, "action_mask")`
    bool `[B, n, choices]`, which the action's spec follows; with `use_mask` `(group, "mask")` bool `[B, n]`: has the
    agent not ended? One that ended before its episode has reward 0. Of each lane: `done`, `terminated`, `truncated`
    bool `[B, 1]`; with `with_state` `state` float32 `[B, columns]`, the truth, for critics alone. What it gives out are
    copies.

    A lane that is done stays as it is until it is reset, as TorchRL's rollouts and collectors do (`_reset`). Random
    actions keep to the masks; where transforms are, only with TorchRL's ActionMask among them: they copy the spec.

    Args:
        env: a HeronEnv, a registered id, or a function that builds one.
        num_envs: of lanes, B.
        groups: those that act here; None: all. The others follow `others`, else their own policies, else do nothing.
        device: where tensors are given out; the environments themselves run on the CPU.
        use_mask, with_state: see above.
        use_training_signal: rewards from the environment's training signal, if it has one.
        options: `seed`, `others` and `threads` of BatchEnv, and env's own.

    Raises ConfigError for a group that there is not.
    """

    def __init__(
        self, env: HeronEnv | str | Callable[..., HeronEnv], num_envs: int, *, groups: Sequence[str] | None = None,
        device: Any = "cpu", use_mask: bool = False, with_state: bool = False, use_training_signal: bool = True,
        **options: Any,
    ) -> None:  # fmt: skip
        self.heron_batch = batch = BatchEnv(env, num_envs, autoreset="disabled", **options)
        super().__init__(device=device, batch_size=torch.Size([num_envs]))
        chosen = list(batch.groups) if groups is None else [trained_group(batch.env, each, {}) for each in groups]
        self.group_map = {group: list(batch.groups[group]) for group in chosen}
        self._use_mask, self._with_state = use_mask, with_state
        self._next_seed: int | None = options.get("seed", 0)
        self._signal: dict[str, NDArray[np.float64]] = {}
        looks = use_training_signal and has_training_rewards(batch.env)
        self._signal_stays = looks and batch.keeps_training_rewards
        if looks and not self._signal_stays:
            batch.at_close.append(self._look)
        _, infos = batch.reset()
        self.masked = [group for group in chosen if "action_mask" in infos[group]]
        lanes = torch.Size([num_envs])
        observed, acts, earned = (Composite(shape=lanes, device=device) for _ in range(3))
        for group, agents in self.group_map.items():
            shape = (num_envs, len(agents))
            observed[group] = self._observation_spec(group, shape)
            acted = action_spec(batch.action_spaces[group], shape, device)
            acts[group] = Composite({"action": acted}, shape=shape, device=device)
            earned[group] = Composite({"reward": Unbounded((*shape, 1), device=device)}, shape=shape, device=device)
        if with_state:
            observed["state"] = Unbounded((num_envs, *batch.env.state_space.shape), device=device)
        self.observation_spec, self.action_spec, self.reward_spec = observed, acts, earned
        ends = ("done", "terminated", "truncated")
        self.done_spec = Composite(
            {name: Categorical(2, shape=(num_envs, 1), dtype=torch.bool, device=device) for name in ends},
            shape=lanes, device=device,
        )  # fmt: skip

    def _observation_spec(self, group: str, shape: tuple[int, int]) -> Composite:
        batch, device = self.heron_batch, self.device
        width = batch.observation_spaces[group].shape[0]
        spec = {"observation": Unbounded((*shape, width), device=device)}
        if group in self.masked:
            choices = batch.infos()[group]["action_mask"].shape[2]
            spec["action_mask"] = Binary(choices, shape=(*shape, choices), dtype=torch.bool, device=device)
        if self._use_mask:
            spec["mask"] = Categorical(2, shape=shape, dtype=torch.bool, device=device)
        return Composite(spec, shape=shape, device=device)

    def _set_seed(self, seed: int | None) -> None:
        self._next_seed = seed

    def _reset(self, tensordict: TensorDictBase | None = None, **options: Any) -> TensorDictBase:
        which = None if tensordict is None else tensordict.get("_reset", None)
        mask = None if which is None else which.reshape(-1).cpu().numpy()
        seed, self._next_seed = self._next_seed, None
        observations, infos = self.heron_batch.reset(seed, mask, options or None)
        idle = torch.zeros((*self.batch_size, 1), dtype=torch.bool, device=self.device)
        tensors = self._observed_tensors(observations, infos)
        return tensors.update({name: idle.clone() for name in ("done", "terminated", "truncated")})

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        batch = self.heron_batch
        actions = {group: tensordict.get((group, "action")).detach().cpu().numpy() for group in self.group_map}
        observations, rewards, terminated, truncated, infos = batch.step(actions)
        if self._signal_stays:
            self._look()
        tensors = self._observed_tensors(observations, infos)
        for group in self.group_map:
            earned = self._signal.get(group, rewards[group])
            tensors[group, "reward"] = self._tensor(earned.astype(np.float32)[:, :, None])
        over = batch.over
        by_rule = by_rule_alone(over, terminated, truncated)
        ends = {"done": over, "terminated": by_rule, "truncated": over & ~by_rule}
        return tensors.update({name: self._tensor(values[:, None]) for name, values in ends.items()})

    def close(self, *, raise_if_closed: bool = False) -> None:
        """Close the environments."""
        self.heron_batch.close()
        self.is_closed = True

    def _look(self) -> None:
        rewards = {group: self.heron_batch.training_rewards(group) for group in self.group_map}
        self._signal = {group: values for group, values in rewards.items() if values is not None}

    def _observed_tensors(self, observations: Any, infos: Any) -> TensorDict:
        batch, tensors = self.heron_batch, TensorDict({}, batch_size=self.batch_size, device=self.device)
        for group in self.group_map:
            values = observations[group]
            tensors[group] = TensorDict({"observation": self._tensor(values)}, batch_size=values.shape[:2])
            if group in self.masked:
                tensors[group, "action_mask"] = self._tensor(infos[group]["action_mask"].astype(np.bool_))
            if self._use_mask:
                tensors[group, "mask"] = self._tensor(batch.alive(group))
        if self._with_state:
            tensors["state"] = self._tensor(batch.state())
        self._follow_masks(infos)
        return tensors

    def _follow_masks(self, infos: Any) -> None:
        """`rand_action` and specs keep to what may be chosen now.

        Not before the first reset: a copy of the spec, as a TransformedEnv's, would keep the masks of that moment.
        """
        for group in self.masked:
            spec = self.full_action_spec[group, "action"]
            choices = spec["d"] if isinstance(spec, Composite) else spec
            choices.update_mask(self._tensor(infos[group]["action_mask"].astype(np.bool_)))

    def _tensor(self, values: NDArray[Any]) -> torch.Tensor:
        """A copy: the batch writes over what it gave out."""
        return torch.tensor(values, device=self.device)


def action_spec(space: spaces.Space[Any], shape: tuple[int, int], device: Any) -> Any:
    """The spec of a group's actions, `[B, agents, elements]`, `[B, agents]` for one category, or a Composite of both.

    Args:
        space: of one agent.
        shape: `[B, agents]`.
    """
    match space:
        case spaces.Box():
            low, high = (torch.tensor(each, device=device).expand(*shape, -1) for each in (space.low, space.high))
            return Bounded(low, high, shape=(*shape, len(space.low)), dtype=torch.float32, device=device)
        case spaces.Discrete():
            return Categorical(int(space.n), shape=shape, device=device)
        case spaces.MultiDiscrete():
            return MultiCategorical(space.nvec.tolist(), shape=(*shape, len(space.nvec)), device=device)
        case _:
            parts = {part: action_spec(inner, shape, device) for part, inner in space.items()}  # type: ignore[attr-defined]
            return Composite(parts, shape=shape, device=device)
