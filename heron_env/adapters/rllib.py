"""HeronMultiAgentEnv: an environment as RLlib's new API stack plays it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from heron_env.core.masking import everything
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.building import as_seed
from heron_env.errors import ConfigError, ResetNeeded
from heron_env.given import mapping, require_switch
from heron_env.registry import make
from heron_env.seeding import key

ALL = "__all__"
Five = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]


class HeronMultiAgentEnv(MultiAgentEnv):  # type: ignore[misc]
    """A HeronEnv in which an agent is asked when it is its turn, and only then.

    Observations hold the agents whose action counts in the coming step, and those that have just ended; at the
    episode's end all that were left, those that a limit cut off too, as RLlib needs their last values. An agent whose
    ticks are rarer is absent in between: RLlib adds up what it earns until it is asked again. Rewards are of all that
    live. Agents are in the order of `possible_agents`, in every dictionary and process.

    `terminateds["__all__"]` is True where rules ended the last agents, `truncateds["__all__"]` where a limit did: then
    it alone says so, for RLlib takes an episode whose agents are each flagged as truncated for a terminated one.

    A seed begins episode 0 of it, as in `HeronEnv.reset`; on RLlib's remote workers it is combined with the number of
    the worker, since RLlib gives neighbours overlapping seeds. Without a seed the next episode begins, of the seed with
    which RLlib tries every environment out; give `AlgorithmConfig.debugging(seed=...)` one.

    Args:
        config: {"env": a registered id, "module:function" or a function that builds one}, and its options; with
            "masks": True observations are {"observations", "action_mask"}, for RLlib's ActionMaskingTorchRLModule.

    Raises ConfigError for what builds no environment, and for masks where an agent's action is not one choice.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.heron, self._masks = _built(config)
        self._worker = getattr(config, "worker_index", 0) or 0
        self.metadata = dict(self.heron.metadata)  # RLlib writes into it
        self.render_mode = self.heron.render_mode
        self.possible_agents = list(self.heron.possible_agents)
        self.agents = list(self.possible_agents)
        self.action_spaces = dict(self.heron.action_spaces)
        self.observation_spaces = dict(self.heron.observation_spaces)
        if self._masks:
            self.observation_spaces = {a: _with_mask(self.heron, a) for a in self.possible_agents}
        super().__init__()

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the agents see whose turn it is, and their infos; as HeronEnv.reset."""
        if seed is not None:
            seed = as_seed(seed)
            seed = key("rllib", self._worker, seed) if self._worker else seed
        observations, infos = self.heron.reset(seed=seed, options=options)
        self.agents = list(self.heron.agents)
        return self._of_turns(observations, infos)

    def step(self, action_dict: Mapping[str, Any]) -> Five:
        """One control step. Raises InvalidAction, UnknownAgent, and ResetNeeded where no episode runs."""
        if not self.heron.agents:
            raise ResetNeeded("step(): no episode is running; call reset() first")
        observations, rewards, terminated, truncated, infos = self.heron.step(action_dict)
        self.agents = list(observations)  # who lived in this step: RLlib looks here for those who have ended in it
        ended = {agent for agent in self.agents if terminated[agent] or truncated[agent]}
        over = not self.heron.agents
        turns, turn_infos = self._of_turns(observations, infos, ended)
        by_rule = over and all(terminated[agent] for agent in self.agents)
        terminateds = {agent: bool(terminated[agent]) for agent in turns} | {ALL: by_rule}
        # At the end by ALL alone: RLlib takes an episode whose agents are all flagged one by one for a terminated one.
        truncateds = {agent: bool(truncated[agent]) and not over for agent in turns} | {ALL: over and not by_rule}
        return turns, {agent: float(rewards[agent]) for agent in self.agents}, terminateds, truncateds, turn_infos

    def render(self) -> Any:
        """As HeronEnv.render."""
        return self.heron.render()

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
        self.heron.close()

    def _of_turns(
        self, observations: dict[str, Any], infos: dict[str, Any], ended: Collection[str] = ()
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Observations and infos of those whose turn it is, or who have ended; RLlib wants to know of nobody else."""
        turns = [agent for agent in observations if agent in ended or infos[agent]["is_active"]]
        views = {agent: observations[agent] for agent in turns}
        if self._masks:
            views = {agent: {"observations": views[agent], "action_mask": self._mask(agent, infos)} for agent in turns}
        return views, {agent: infos[agent] for agent in turns}

    def _mask(self, agent: str, infos: dict[str, Any]) -> NDArray[np.float32]:
        """What it may choose, `[choices]`."""
        spec = self.heron.simulation.model.specs[self.heron.hierarchy.index[agent]]
        return np.asarray(infos[agent].get("action_mask", everything(spec)), dtype=np.float32)


@dataclass(frozen=True)
class GroupOf:
    """The group of an agent, as RLlib asks for it."""

    groups: Mapping[str, str]

    def __call__(self, agent: str, *args: Any, **kwargs: Any) -> str:
        """Its name."""
        return self.groups[agent]


def policy_per_group(config: Mapping[str, Any]) -> dict[str, Any]:
    """One policy for each group of the environment of `config`: `AlgorithmConfig.multi_agent(**policy_per_group(...))`.

    Raises ConfigError as HeronMultiAgentEnv.
    """
    groups = _built(config)[0].group_map
    named = {agent: group for group, members in groups.items() for agent in members}
    return {"policies": set(groups), "policy_mapping_fn": GroupOf(named)}


def _built(config: Mapping[str, Any]) -> tuple[HeronEnv, bool]:
    """The environment, and are masks part of its observations?"""
    options = mapping(config, "HeronMultiAgentEnv(config)")
    env, masks = options.pop("env", None), options.pop("masks", False)
    require_switch(f"HeronMultiAgentEnv(config['masks']={masks!r:.60})", masks)
    if not isinstance(env, str) and not callable(env):
        raise ConfigError(
            f"HeronMultiAgentEnv(config['env']={env!r:.200}): give a registered id, 'module:function', or a function "
            "that builds an environment, as in env_config={'env': 'heron/BatteryGrid-v0'}"
        )
    made = make(env, **options) if isinstance(env, str) else env(**options)
    if not isinstance(made, HeronEnv):
        raise ConfigError(f"HeronMultiAgentEnv(config['env']={env!r:.200}): returned {made!r:.60}, no HeronEnv")
    return made, masks


def _with_mask(env: HeronEnv, agent: str) -> spaces.Dict:
    """The space of what an agent sees and may choose."""
    choices = env.action_spaces[agent]
    if not isinstance(choices, spaces.Discrete):
        raise ConfigError(
            f"HeronMultiAgentEnv(config['masks']=True): {agent!r} acts in {choices}, and RLlib's masks are for one "
            "choice (Discrete); leave masks out, a forbidden choice is then the no-op"
        )
    mask = spaces.Box(0.0, 1.0, (int(choices.n),), dtype=np.float32)
    return spaces.Dict({"observations": env.observation_spaces[agent], "action_mask": mask})


__all__ = ["HeronMultiAgentEnv", "policy_per_group"]
