"""The joint view: one Gymnasium environment in which a single controller sees and decides for all deciding agents."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from heron_env.core.masking import everything, flat, noop_alone
from heron_env.core.rule import one_by_one
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.building import as_array, as_seed
from heron_env.errors import ConfigError, InvalidAction, ResetNeeded
from heron_env.registry import make

Vector = NDArray[np.float32]


class JointEnv(gymnasium.Env[Vector, NDArray[Any]]):
    """All deciding agents of `heron` as one.

    Observation: their vectors one after another, float32; what only the trainer may see (`state()`) is no part of it.
    An agent that ended before the others leaves zeros in its place. Action: their actions one after another, a Box
    where all are continuous, a MultiDiscrete where all are choices. Reward: the sum of theirs. Infos: numbers named
    `agent.name`, always the same ones (masks flat, one element after another). The episode is terminated if a rule
    ended its last agents, truncated if a limit did.

    Raises ConfigError where continuous and discrete actions are mixed.
    """

    def __init__(self, heron: HeronEnv) -> None:
        if not isinstance(heron, HeronEnv):
            raise ConfigError(
                f"JointEnv({heron!r:.200}): must be a HeronEnv; make one with make('heron/BatteryGrid-v0')"
            )
        self.heron = heron
        self.metadata = heron.metadata
        self.render_mode = heron.render_mode
        self.agents = tuple(heron.possible_agents)
        boxes = [heron.observation_space(agent) for agent in self.agents]
        self._seen = _spans([box.shape[0] for box in boxes])
        joint = spaces.Box(
            np.concatenate([b.low for b in boxes]), np.concatenate([b.high for b in boxes]), dtype=np.float32
        )
        low, high = np.minimum(joint.low, 0.0), np.maximum(joint.high, 0.0)  # an ended agent shows zeros
        self.observation_space = spaces.Box(low, high, dtype=np.float32) if len(self.agents) > 1 else joint
        self.action_space, self._acted = _join_actions(heron, self.agents)
        self._info: dict[str, Any] = {}
        index = heron.hierarchy.index
        self._specs = {agent: heron.simulation.specs[index[agent]] for agent in self.agents}
        self._masks: dict[str, NDArray[np.bool_]] = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Vector, dict[str, Any]]:
        """As HeronEnv.reset: episode 0 of `seed`, or the next episode of the seed in use."""
        super().reset(seed=None if seed is None else as_seed(seed))
        observations, infos = self.heron.reset(seed=seed, options=options)
        named = self._named(infos)
        self._info = {name: np.zeros_like(value) for name, value in named.items()}
        return self._join(observations), named

    def step(self, action: NDArray[Any]) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        """One control step. Raises InvalidAction for an action outside the space, ResetNeeded where no episode runs."""
        if not self.heron.agents:
            raise ResetNeeded("step(): no episode is running; call reset() first")
        values = as_array(action)
        if values.shape != self.action_space.shape:
            raise InvalidAction(
                f"the joint action has shape {values.shape}, expected {self.action_space.shape}: {self.action_space}"
            )
        parts = {agent: values[span] for agent, span in zip(self.agents, self._acted, strict=True)}
        observations, rewards, terminated, truncated, infos = self.heron.step({a: parts[a] for a in self.heron.agents})
        over = not self.heron.agents
        by_rule = any(terminated.values()) and all(terminated[a] for a, limit in truncated.items() if limit)
        named = self._named(infos)
        info = {**{name: zero.copy() for name, zero in self._info.items()}, **named}
        return self._join(observations), one_by_one(rewards.values()), over and by_rule, over and not by_rule, info

    def action_masks(self) -> NDArray[np.bool_]:
        """What may be chosen now, bool, one element of the joint action after another: for MaskablePPO."""
        return np.concatenate(list(self._masks.values()))

    def _named(self, infos: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Infos of the agents as one's; masks are flat. An agent that has ended is left its no-op."""
        self._masks = {agent: noop_alone(spec).astype(np.bool_) for agent, spec in self._specs.items()}
        found = {f"{agent}.{name}": value for agent, info in infos.items() for name, value in info.items()}
        for agent, info in infos.items():
            if "action_mask" in info:
                found[f"{agent}.action_mask"] = flat(info["action_mask"])
            given = found.get(f"{agent}.action_mask", everything(self._specs[agent]))
            self._masks[agent] = given.astype(np.bool_)
        return found

    def render(self) -> Any:
        """As HeronEnv.render."""
        return self.heron.render()

    def close(self) -> None:
        """Nothing to release."""
        self.heron.close()

    def _join(self, observations: dict[str, Vector]) -> Vector:
        joint = np.zeros(self._seen[-1].stop, dtype=np.float32)
        for agent, span in zip(self.agents, self._seen, strict=True):
            if agent in observations:
                joint[span] = observations[agent]
        return joint


def joint_view(env_id: str, **options: Any) -> JointEnv:
    """The joint view of a registered environment: what `gymnasium.make("heron_env:" + env_id, **options)` builds."""
    return JointEnv(make(env_id, **options))


def _spans(lengths: list[int]) -> list[slice]:
    stops = np.cumsum(lengths).tolist()
    return [slice(a, b) for a, b in zip([0, *stops], stops, strict=False)]


def _join_actions(heron: HeronEnv, agents: tuple[str, ...]) -> tuple[spaces.Space[Any], list[slice]]:
    """The space of all actions, and each agent's place in it."""
    specs = [heron.simulation.specs[heron.hierarchy.index[agent]] for agent in agents]
    continuous, discrete = any(s.dim_c for s in specs), any(s.dim_d for s in specs)
    if continuous and discrete:
        kinds = ", ".join(f"{agent}: {spec.describe()}" for agent, spec in zip(agents, specs, strict=True))
        raise ConfigError(
            f"joint view of {heron.metadata['name']}: one vector can't hold continuous and discrete actions together "
            f"({kinds}); use the environment itself, a PettingZoo ParallelEnv, or a control with actions of one kind"
        )
    spans = _spans([spec.size for spec in specs])
    if discrete:
        return spaces.MultiDiscrete(np.concatenate([s.ncats for s in specs])), spans
    low, high = (np.concatenate([getattr(s, part) for s in specs]).astype(np.float32) for part in ("low", "high"))
    return spaces.Box(low, high, dtype=np.float32), spans
