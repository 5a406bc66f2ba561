"""HeronVectorEnv: the joint view of many environments at once, a Gymnasium VectorEnv on a BatchEnv."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from heron_env.adapters.gymnasium import JointEnv
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.env import BatchEnv
from heron_env.errors import InvalidAction

Rows = NDArray[np.float32]
Bools = NDArray[np.bool_]
Infos = dict[str, Any]


class HeronVectorEnv(VectorEnv[Rows, NDArray[Any], NDArray[Any]]):
    """`num_envs` environments, each as one controller sees it: JointEnv says what observations, actions and ends are.

    Observations float32 `[num_envs, floats]`, actions `[num_envs, elements]`, rewards and ends `[num_envs]`; infos by
    group and name, `[num_envs, agents, ...]`, with Gymnasium's masks `_name`. What a step hands out is the caller's.

    Args:
        env: a HeronEnv, a registered id, or a function that builds one; `options` are its own and BatchEnv's.
        autoreset_mode: NEXT_STEP; SAME_STEP, with `final_obs` and `final_info` in the infos; or DISABLED, where
            `reset(options={"reset_mask": bool [num_envs]})` begins anew what has ended.

    Raises ConfigError where continuous and discrete actions are mixed.
    """

    def __init__(
        self, env: HeronEnv | str | Callable[..., HeronEnv], num_envs: int, *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP, **options: Any,
    ) -> None:  # fmt: skip
        mode = AutoresetMode(autoreset_mode)
        self._same_step, autoreset = mode is AutoresetMode.SAME_STEP, cast(Any, mode.name.lower())
        batch = BatchEnv(env, num_envs, autoreset=autoreset, final_observations=self._same_step, **options)
        joint, self.num_envs, self.batch = JointEnv(batch.env), num_envs, batch
        self.single_observation_space, self.single_action_space = joint.observation_space, joint.action_space
        self.observation_space = batch_space(joint.observation_space, num_envs)
        self.action_space = batch_space(joint.action_space, num_envs)
        self.metadata, self.render_mode = {**batch.env.metadata, "autoreset_mode": mode}, batch.env.render_mode
        seen, acted = (dict(zip(joint.agents, spans, strict=True)) for spans in (joint._seen, joint._acted))
        self._places = {g: (_columns(seen, agents), _columns(acted, agents)) for g, agents in batch.groups.items()}
        self._final_info: Infos = {}
        if self._same_step:
            batch.at_close.append(self._look)

    def _look(self) -> None:
        self._final_info = self._infos(self.batch.over) if self.batch.over.any() else {}

    def reset(self, *, seed: int | list[int | None] | None = None, options: Infos | None = None) -> tuple[Rows, Infos]:
        """Begin an episode everywhere, or where `options["reset_mask"]` says; env i: seed + i, or seed[i] of a list."""
        rest = dict(options) if isinstance(options, dict) else options
        mask = rest.pop("reset_mask", None) if isinstance(rest, dict) else None
        observations, _ = self.batch.reset(seed, mask, rest)
        return self._join(observations, self._alive()), self._infos(mask)

    def step(self, actions: NDArray[Any]) -> tuple[Rows, NDArray[np.float64], NDArray[Any], NDArray[Any], Infos]:
        """One control step of all environments. Raises InvalidAction, ResetNeeded."""
        values = np.asarray(actions)
        if values.shape != self.action_space.shape:
            raise InvalidAction(f"joint actions have shape {values.shape}, expected {self.action_space.shape}")
        before, given = self._alive(), {group: values[:, acted] for group, (_, acted) in self._places.items()}
        observations, rewards, terminated, truncated, told = self.batch.step(given)
        over, fresh = self.batch.over, self.batch.over if self._same_step else self.batch.steps == 0
        limit = sum((truncated[g] & ~terminated[g]).any(axis=1) for g in truncated) > 0
        by_rule = over & ~limit & (sum(ends.any(axis=1) for ends in terminated.values()) > 0)
        infos = self._infos()
        if self._same_step and over.any():
            rows, last = self._join({g: told[g]["final_obs"] for g in told}, before), np.full(len(over), None, object)
            for number in np.flatnonzero(over):
                last[number] = rows[number]
            infos |= {"final_obs": last, "final_info": self._final_info}
            infos |= {"_final_obs": over.copy(), "_final_info": over.copy()}
        seen = self._join(observations, {group: alive | fresh[:, None] for group, alive in before.items()})
        return seen, np.asarray(sum(part.sum(axis=1) for part in rewards.values())), by_rule, over & ~by_rule, infos

    def render(self) -> tuple[Any, ...] | None:
        """A picture or text of each environment."""
        return tuple(self.batch.lane(number).render() for number in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Close the environment."""
        self.batch.close()

    def _alive(self) -> dict[str, Bools]:
        return {group: self.batch.alive(group) for group in self._places}

    def _join(self, observations: dict[str, Any], shown: dict[str, Bools]) -> Rows:
        """The agents' vectors side by side; zeros for those that ended in an earlier step."""
        rows = np.zeros(self.observation_space.shape or (), dtype=np.float32)
        for group, (seen, _) in self._places.items():
            rows[:, seen] = np.where(shown[group][:, :, None], observations[group], np.float32(0.0))
        return rows

    def _infos(self, having: Bools | None = None) -> Infos:
        """By group and name, with masks of the environments that have them; None: all."""
        found, mask = Infos(), np.ones(self.num_envs, dtype=bool) if having is None else having
        for group, infos in self.batch.infos().items():
            names = [name for name in infos if name != "final_obs"]
            numbers = {name: infos[name] for name in names} | {f"_{name}": mask.copy() for name in names}
            found |= {group: numbers, f"_{group}": mask.copy()}
        return found


def _columns(spans: dict[str, slice], agents: list[str]) -> NDArray[np.int64]:
    """Where each agent's numbers lie, `[agents, numbers]`."""
    return np.array([range(spans[agent].start, spans[agent].stop) for agent in agents])


def joint_vector(env_id: str, num_envs: int = 1, **options: Any) -> HeronVectorEnv:
    """What `gymnasium.make_vec("heron_env:" + env_id, num_envs, **options)` builds."""
    return HeronVectorEnv(env_id, num_envs, **options)
