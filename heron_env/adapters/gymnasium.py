"""The joint view for Gymnasium: a single controller sees and decides for all agents, of one environment or of many."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from heron_env.adapters.later import Later
from heron_env.core.masking import everything, flat, noop_alone
from heron_env.core.rule import one_by_one
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.building import as_array, as_seed
from heron_env.envs.batch.env import BatchEnv
from heron_env.errors import ConfigError, InvalidAction, ResetNeeded
from heron_env.registry import make

Vector = NDArray[np.float32]
Rows = NDArray[np.float32]
Bools = NDArray[np.bool_]
Infos = dict[str, Any]


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
        self._observation_spans = _spans([box.shape[0] for box in boxes])
        joint = spaces.Box(
            np.concatenate([b.low for b in boxes]), np.concatenate([b.high for b in boxes]), dtype=np.float32
        )
        low, high = np.minimum(joint.low, 0.0), np.maximum(joint.high, 0.0)  # an ended agent shows zeros
        self.observation_space = spaces.Box(low, high, dtype=np.float32) if len(self.agents) > 1 else joint
        self.action_space, self._action_spans = _join_actions(heron, self.agents)
        self._info: dict[str, Any] = {}
        index = heron.hierarchy.index
        self._specs = {agent: heron.simulation.model.specs[index[agent]] for agent in self.agents}
        self._masks: dict[str, NDArray[np.bool_]] = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Vector, dict[str, Any]]:
        """As HeronEnv.reset: episode 0 of `seed`, or the next episode of the seed in use."""
        observations, infos = self.heron.reset(seed=None if seed is None else as_seed(seed), options=options)
        if seed is not None or self._np_random_seed is None:
            super().reset(seed=self.heron.np_random_seed)
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
        parts = {agent: values[span] for agent, span in zip(self.agents, self._action_spans, strict=True)}
        observations, rewards, terminated, truncated, infos = self.heron.step({a: parts[a] for a in self.heron.agents})
        over = not self.heron.agents
        by_rule = any(terminated.values()) and all(terminated[a] for a, limit in truncated.items() if limit)
        named = self._named(infos)
        info = {**{name: zero.copy() for name, zero in self._info.items()}, **named}
        return self._join(observations), one_by_one(rewards.values()), over and by_rule, over and not by_rule, info

    @property
    def np_random_seed(self) -> int:
        """As HeronEnv.np_random_seed: the seed in use, given or drawn."""
        return self.heron.np_random_seed

    def action_masks(self) -> NDArray[np.bool_]:
        """What may be chosen now, bool, one element of the joint action after another: for MaskablePPO."""
        return np.concatenate(list(self._masks.values()))

    def _named(self, infos: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Infos of the agents as one's; masks are flat. An agent that has ended is left its no-op."""
        self._masks = {agent: noop_alone(spec).astype(np.bool_) for agent, spec in self._specs.items()}
        named = {f"{agent}.{name}": value for agent, info in infos.items() for name, value in info.items()}
        for agent, info in infos.items():
            if "action_mask" in info:
                named[f"{agent}.action_mask"] = flat(info["action_mask"])
            mask = named.get(f"{agent}.action_mask", everything(self._specs[agent]))
            self._masks[agent] = mask.astype(np.bool_)
        return named

    def render(self) -> Any:
        """As HeronEnv.render."""
        return self.heron.render()

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
        self.heron.close()

    def _join(self, observations: dict[str, Vector]) -> Vector:
        joint = np.zeros(self._observation_spans[-1].stop, dtype=np.float32)
        for agent, span in zip(self.agents, self._observation_spans, strict=True):
            if agent in observations:
                joint[span] = observations[agent]
        return joint


def _spans(lengths: list[int]) -> list[slice]:
    stops = np.cumsum(lengths).tolist()
    return [slice(a, b) for a, b in zip([0, *stops], stops, strict=False)]


def _join_actions(heron: HeronEnv, agents: tuple[str, ...]) -> tuple[spaces.Space[Any], list[slice]]:
    """The space of all actions, and each agent's place in it."""
    specs = [heron.simulation.model.specs[heron.hierarchy.index[agent]] for agent in agents]
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


class HeronVectorEnv(VectorEnv[Rows, NDArray[Any], NDArray[Any]]):
    """`num_envs` environments, each controlled as a whole; observations, actions and ends are those of JointEnv.

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
        self._shape = (batch.num_envs, joint._observation_spans[-1].stop)
        self.metadata, self.render_mode = {**batch.env.metadata, "autoreset_mode": mode}, batch.env.render_mode
        both = (joint._observation_spans, joint._action_spans)
        observed, acted = (dict(zip(joint.agents, spans, strict=True)) for spans in both)
        self._places = {g: (_Place(observed, agents), _Place(acted, agents)) for g, agents in batch.groups.items()}
        self._gone: dict[str, Bools] | None = None  # who ended in an earlier step, `[B, agents]`; None: nobody
        self._final_info: Infos = {}
        self._everywhere = np.ones(batch.num_envs, dtype=bool)
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
        observations, infos = self.batch.reset(seed, mask, rest)
        self._gone = self._who_ended()
        return self._join(observations, self._gone), self._infos(infos, mask)

    def step(self, actions: NDArray[Any]) -> tuple[Rows, NDArray[np.float64], NDArray[Any], NDArray[Any], Infos]:
        """One control step of all environments. Raises InvalidAction, ResetNeeded."""
        values = as_array(actions)
        if values.shape != self.action_space.shape:
            raise InvalidAction(f"joint actions have shape {values.shape}, expected {self.action_space.shape}")
        by_group = {group: acted.of(values) for group, (_, acted) in self._places.items()}
        observations, rewards, terminated, truncated, raw = self.batch.step(by_group)
        over, gone, infos = self.batch.over, self._gone, self._infos(raw)
        anybody_over = bool(over.any())
        if self._same_step and anybody_over:
            rows, last = self._join({g: raw[g]["final_obs"] for g in raw}, gone), np.full(len(over), None, object)
            for number in np.flatnonzero(over):
                last[number] = rows[number]
            infos |= {"final_obs": last, "final_info": self._final_info}
            infos |= {"_final_obs": over.copy(), "_final_info": over.copy()}
        if gone is not None:
            fresh = (over if self._same_step else self.batch.steps == 0)[:, None]
            gone = {group: ended & ~fresh for group, ended in gone.items()}
        ended = anybody_over or any(terminated[g].any() or truncated[g].any() for g in terminated)
        if ended or self._gone is not None:
            self._gone = self._who_ended()
        by_rule = by_rule_alone(over, terminated, truncated) if anybody_over else np.zeros(self.num_envs, bool)
        first, *others = map(_sum_of_agents, rewards.values())
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
        rows = np.empty(self._shape, dtype=np.float32)
        for group, (observed, _) in self._places.items():
            part = observations[group]
            if gone is not None and gone[group].any():
                part = np.where(gone[group][:, :, None], np.float32(0.0), part)
            observed.put(rows, part)
        return rows

    def _infos(self, infos: Mapping[str, Any], having: Bools | None = None) -> Infos:
        """By group and name, with masks of the environments that have them; None: all."""
        named: Infos = {}
        mask = self._everywhere if having is None else having.copy()
        for group, of_group in infos.items():
            named[group], named[f"_{group}"] = LaterInfos(partial(_with_masks, of_group, mask)), mask.copy()
        return named


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


def _sum_of_agents(rewards: NDArray[np.float64]) -> NDArray[np.float64]:
    """`[B]` of `[B, agents]`, added one agent after another; along rows that short numpy takes five times as long."""
    return np.asarray(np.add.reduce(np.ascontiguousarray(rewards.T)))


def by_rule_alone(over: Bools, terminated: dict[str, Any], truncated: dict[str, Any]) -> Bools:
    """Episodes that a rule ended, not a limit, `[B]`."""
    if not any(ends.any() for ends in terminated.values()):
        return np.zeros_like(over)
    limit = sum((truncated[g] & ~terminated[g]).any(axis=1) for g in truncated) > 0
    return np.asarray(over & ~limit & (sum(ends.any(axis=1) for ends in terminated.values()) > 0))


class LaterInfos(Later, dict[str, Any]):
    """Numbers by name, `[num_envs, agents, ...]`, with Gymnasium's masks `_name` `[num_envs]`: all made at once.

    Raises ResetNeeded for a first look after the next step.
    """


def _with_masks(infos: Mapping[str, NDArray[Any]], having: Bools) -> Infos:
    """Those of a group, and which environments have them."""
    named = {name: infos[name] for name in infos if name != "final_obs"}
    return named | {f"_{name}": having.copy() for name in named}


def joint_view(env_id: str, **options: Any) -> JointEnv:
    """The joint view of a registered environment: what `gymnasium.make("heron_env:" + env_id, **options)` builds."""
    return JointEnv(make(env_id, **options))


def joint_vector(env_id: str, num_envs: int = 1, **options: Any) -> HeronVectorEnv:
    """What `gymnasium.make_vec("heron_env:" + env_id, num_envs, **options)` builds."""
    return HeronVectorEnv(env_id, num_envs, **options)
