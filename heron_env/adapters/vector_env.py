"""HeronVectorEnv: the joint view of many environments at once, a Gymnasium VectorEnv on a BatchEnv."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from heron_env.adapters.gymnasium import JointEnv
from heron_env.adapters.later_infos import LaterInfos
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.building import as_array
from heron_env.envs.batch.env import BatchEnv
from heron_env.errors import ConfigError, InvalidAction

Rows = NDArray[np.float32]
Bools = NDArray[np.bool_]
Infos = dict[str, Any]


class HeronVectorEnv(VectorEnv[Rows, NDArray[Any], NDArray[Any]]):
    """`num_envs` environments, each as one controller sees it: JointEnv says what observations, actions and ends are.

    Observations float32 `[num_envs, floats]`, actions `[num_envs, elements]`, rewards and ends `[num_envs]`; infos by
    group and name, `[num_envs, agents, ...]`, with Gymnasium's masks `_name`, made when first looked at, which must be
    before the next step. What a step hands out is the caller's.

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
        try:
            mode = AutoresetMode(autoreset_mode)
        except ValueError as error:
            modes = [mode.value for mode in AutoresetMode]
            raise ConfigError(
                f"HeronVectorEnv(autoreset_mode={autoreset_mode!r:.200}): must be one of {modes}"
            ) from error
        self._same_step, autoreset = mode is AutoresetMode.SAME_STEP, cast(Any, mode.name.lower())
        batch = BatchEnv(env, num_envs, autoreset=autoreset, final_observations=self._same_step, **options)
        self.autoreset_mode = mode
        joint, self.num_envs, self.batch = JointEnv(batch.env), batch.num_envs, batch
        self.single_observation_space, self.single_action_space = joint.observation_space, joint.action_space
        self.observation_space = batch_space(joint.observation_space, batch.num_envs)
        self.action_space = batch_space(joint.action_space, batch.num_envs)
        self._seen, self._acted = (batch.num_envs, joint._seen[-1].stop), self.action_space.shape
        self.metadata, self.render_mode = {**batch.env.metadata, "autoreset_mode": mode}, batch.env.render_mode
        seen, acted = (dict(zip(joint.agents, spans, strict=True)) for spans in (joint._seen, joint._acted))
        self._places = {g: (_Place(seen, agents), _Place(acted, agents)) for g, agents in batch.groups.items()}
        self._gone: dict[str, Bools] | None = None  # who ended in an earlier step, `[B, agents]`; None: nobody
        self._final_info: Infos = {}
        if self._same_step:
            batch.at_close.append(self._look)

    def _look(self) -> None:
        over, self._final_info = self.batch.over, {}
        if over.any():
            self._final_info = self._infos(self.batch.infos(), over)
            for group in self._places:
                self._final_info[group].made()

    def reset(self, *, seed: int | list[int | None] | None = None, options: Infos | None = None) -> tuple[Rows, Infos]:
        """Begin an episode everywhere, or where `options["reset_mask"]` says; env i: seed + i, or seed[i] of a list."""
        rest = dict(options) if isinstance(options, dict) else options
        mask = rest.pop("reset_mask", None) if isinstance(rest, dict) else None
        observations, told = self.batch.reset(seed, mask, rest)
        self._gone = self._who_ended()
        return self._join(observations, self._gone), self._infos(told, mask)

    def step(self, actions: NDArray[Any]) -> tuple[Rows, NDArray[np.float64], NDArray[Any], NDArray[Any], Infos]:
        """One control step of all environments. Raises InvalidAction, ResetNeeded."""
        values = as_array(actions)
        if values.shape != self._acted:
            raise InvalidAction(f"joint actions have shape {values.shape}, expected {self._acted}")
        given = {group: acted.of(values) for group, (_, acted) in self._places.items()}
        observations, rewards, terminated, truncated, told = self.batch.step(given)
        over, gone, quiet, infos = self.batch.over, self._gone, self.batch.quiet, self._infos(told)
        anybody_over = not quiet and bool(over.any())
        if self._same_step and anybody_over:
            rows, last = self._join({g: told[g]["final_obs"] for g in told}, gone), np.full(len(over), None, object)
            for number in np.flatnonzero(over):
                last[number] = rows[number]
            infos |= {"final_obs": last, "final_info": self._final_info}
            infos |= {"_final_obs": over.copy(), "_final_info": over.copy()}
        if gone is not None:
            fresh = (over if self._same_step else self.batch.steps == 0)[:, None]
            gone = {group: ended & ~fresh for group, ended in gone.items()}
        ended = anybody_over or (not quiet and any(terminated[g].any() or truncated[g].any() for g in terminated))
        if ended or gone is not None:
            self._gone = self._who_ended()
        by_rule = by_rule_alone(over, terminated, truncated) if anybody_over else np.zeros_like(over)
        first, *others = (part.sum(axis=1) for part in rewards.values())
        return self._join(observations, gone), sum(others, first), by_rule, over ^ by_rule, infos

    def render(self) -> tuple[Any, ...] | None:
        """A picture or text of each environment."""
        return tuple(self.batch.lane(number).render() for number in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Close the environment."""
        self.batch.close()

    def _who_ended(self) -> dict[str, Bools] | None:
        """Agents that have ended, by group; None where there are none."""
        gone = {group: ~self.batch.alive(group) for group in self._places}
        return gone if any(ended.any() for ended in gone.values()) else None

    def _join(self, observations: dict[str, Any], gone: dict[str, Bools] | None) -> Rows:
        """The agents' vectors side by side, in memory of their own; zeros for those that are `gone`."""
        rows = np.empty(self._seen, dtype=np.float32)
        for group, (seen, _) in self._places.items():
            part = observations[group]
            seen.put(rows, part if gone is None else np.where(gone[group][:, :, None], np.float32(0.0), part))
        return rows

    def _infos(self, told: Mapping[str, Any], having: Bools | None = None) -> Infos:
        """By group and name, with masks of the environments that have them; None: all."""
        found = Infos()
        for group, infos in told.items():
            mask = np.ones(self.num_envs, dtype=bool) if having is None else having.copy()
            found[group], found[f"_{group}"] = (
                LaterInfos(infos, self.num_envs, None if having is None else mask.copy()),
                mask,
            )
        return found


class _Place:
    """Where the numbers of a group's agents lie in joint rows."""

    def __init__(self, spans: dict[str, slice], agents: list[str]) -> None:
        columns = np.array([range(spans[agent].start, spans[agent].stop) for agent in agents])
        first, stop = int(columns.min(initial=0)), int(columns.max(initial=-1)) + 1
        neighbours = np.array_equal(columns.reshape(-1), np.arange(first, stop))
        self._agents, self._columns = len(agents), slice(first, stop) if neighbours else columns.reshape(-1)

    def of(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Their part of the rows, `[B, agents, numbers]`."""
        return rows[:, self._columns].reshape(len(rows), self._agents, -1)

    def put(self, rows: NDArray[Any], part: NDArray[Any]) -> None:
        """Write their part `[B, agents, numbers]` into the rows."""
        rows[:, self._columns] = part.reshape(len(rows), -1)


def by_rule_alone(over: Bools, terminated: dict[str, Any], truncated: dict[str, Any]) -> Bools:
    """Episodes that a rule ended, not a limit, `[B]`."""
    limit = sum((truncated[g] & ~terminated[g]).any(axis=1) for g in truncated) > 0
    return np.asarray(over & ~limit & (sum(ends.any(axis=1) for ends in terminated.values()) > 0))


def joint_vector(env_id: str, num_envs: int = 1, **options: Any) -> HeronVectorEnv:
    """What `gymnasium.make_vec("heron_env:" + env_id, num_envs, **options)` builds."""
    return HeronVectorEnv(env_id, num_envs, **options)
