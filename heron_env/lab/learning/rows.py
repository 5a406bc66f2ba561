"""Decisions as rows with their own times, on either clock: who is asked, what the decision before brought, in one unit.

StepRows asks in rows on the synchronous clock, as a batch on the event clock does. A Role is the agents that share one
policy; it finds them among rows and gives them to a learner in fixed units, measured once before anything is learned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import AnyPolicy
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.env import BatchEnv
from heron_env.envs.batch.lane_groups import Arrays, Infos
from heron_env.envs.batch.rows import Bools, Ended, Floats, Ints, Rows, Vectors
from heron_env.envs.hooks import has_training_rewards
from heron_env.errors import ConfigError, ScheduleError
from heron_env.lab.run_files import GroupConfig
from heron_env.lab.trained import Correction, Scaling, on_vectors
from heron_env.scheduling.drawn import AnySchedule
from heron_env.scheduling.timing import SECOND
from heron_env.seeding import stream

SILENT = 1000
"""Episodes in a row, in a lane, without a single decision, after which nothing will come any more."""
EPISODES, MAX_STEPS = 2, 2000
"""Of each lane in the warm-up, and the most calls in it in which somebody decides."""
LEAST_SPREAD = 1e-6
"""A column that varies less than this, times its size, is taken as constant."""
FARTHEST = 10.0
"""Scaled states are cut off here: a tally that never moved in the warm-up has no known spread and may grow large."""


def rows_of(
    env: HeronEnv | str | Callable[..., HeronEnv], num_envs: int, *, seed: int, schedule: AnySchedule, gamma: float,
    with_state: bool,
) -> Any:  # fmt: skip
    """A batch that asks in rows: on the event clock under the schedule, on the synchronous one where there is none."""
    if schedule is None:
        return StepRows(env, num_envs, seed=seed, gamma=gamma, with_state=with_state)
    options: dict[str, Any] = {"gamma": gamma, "with_state": with_state}
    return BatchEnv(env, num_envs, seed=seed, clock="event", schedule=schedule, **options)


class StepRows:
    """`num_envs` lanes on the synchronous clock that ask in rows: in each control step everyone whose turn it is.

        rows = batch.reset()
        while more:
            rows = batch.answer(policy(rows))

    Lane i is the HeronEnv with seed + i. An agent that does not tick in a step stands in no row of it; what it earns is
    added up until it does; where nobody at all ticks there are no rows. At zero delay each lane of a
    batch on the event clock gives the same rows, bit for bit, without the empty ones. Arrays are the caller's to keep.

    Args: env, num_envs, seed, options: as of BatchEnv; gamma: rewards of several control steps are summed with it
        (Rows.reward); with_state: give the truth with each row, for a central critic, and what a trainer should use as
        rewards.

    Attributes: batch: the BatchEnv that steps; `env`, `num_envs` and `groups` are its own.
    """

    def __init__(
        self, env: HeronEnv | str | Callable[..., HeronEnv], num_envs: int, *, seed: int = 0, gamma: float = 1.0,
        with_state: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        self.batch = BatchEnv(env, num_envs, seed=seed, final_observations=True, **options)
        self.env, self.num_envs, self.groups = self.batch.env, num_envs, self.batch.groups
        self._gamma, self._with_state = gamma, with_state
        groups = [self.batch._groups[name] for name in self.groups]
        self._bounds = np.cumsum([0, *(num_envs * len(group.agents) for group in groups)])
        # All arrays of agents are flat, by group, lane and rank: in the order of rows.
        self._lane = np.concatenate([np.repeat(np.arange(num_envs), len(group.ranks)) for group in groups])
        self._rank = np.concatenate([np.tile(np.array(group.ranks, dtype=np.int64), num_envs) for group in groups])
        self._width = max(group.width for group in groups)
        self._choices = max(int(group.spec.ncats.sum()) for group in groups) if self.env.simulation.masks.ranks else 0
        self.action_size = max(group.spec.size for group in groups)
        agents = len(self._lane)
        self._actions, self._actions_of = np.zeros((agents, self.action_size)), dict[str, Floats]()
        for name, group, part in zip(self.groups, groups, self._parts(np.arange(agents)).values(), strict=True):
            shape = num_envs, len(group.agents), self.action_size
            self._actions_of[name] = self._actions[part].reshape(shape)[..., : group.spec.size]
            self._actions_of[name][...] = group.spec.noop
        self._waiting, self._number = np.zeros(agents, dtype=bool), np.zeros(agents, dtype=np.int64)
        self._earned, self._power, self._since = np.zeros(agents), np.ones(agents), np.zeros(agents, dtype=np.int64)
        self._trained = np.zeros(agents) if with_state and has_training_rewards(self.env) else None
        self._signal = np.zeros(0)
        self._last_state = np.zeros((num_envs, len(self.env.state_names)), dtype=np.float32)
        self._silent, self._deciding = np.zeros(num_envs, dtype=np.int64), np.zeros(0, dtype=np.int64)
        if with_state:
            self.batch.at_close.append(self._look)

    def reset(self, seed: int | Sequence[int] | None = None) -> Rows:
        """Begin an episode in every lane, of seeds as BatchEnv.reset takes them: who ticks in its first step.

        Raises ConfigError.
        """
        observations, infos = self.batch.reset(seed)
        self._waiting[:] = False
        self._number[:] = self._silent[:] = 0
        nobody = self._ended(np.zeros(0, dtype=np.int64), observations, infos, self._waiting, self._waiting)
        return self._rows(observations, infos, nobody)

    def answer(self, actions: Floats) -> Rows:
        """Take actions `[n, k]` for the rows handed out last, in their order, and step.

        Elements behind an agent's own are ignored. Raises InvalidAction naming lane and agent: nothing has changed
        then.
        """
        at = self._deciding
        self._actions[at] = actions
        stepped = self.batch.step(self._actions_of)
        self._waiting[at] = True
        self._number[at] += 1
        self._earned[at], self._power[at], self._since[at] = 0.0, 1.0, 0
        if self._trained is not None:
            self._trained[at] = 0.0
        return self._rows(stepped[0], stepped[-1], self._take(*stepped))

    def _look(self) -> None:
        """Before lanes begin anew: the trainer's rewards, and the states in which episodes ended."""
        if self._trained is not None:
            self._signal = self._flat({name: self.batch.training_rewards(name) for name in self.groups})
        if self.batch.over.any():
            self._last_state = self.batch.state()

    def _take(
        self, observations: Arrays, rewards: Arrays, terminated: Arrays, truncated: Arrays, infos: Mapping[str, Infos]
    ) -> Ended:
        """Add up what a step brought; those who ended in it."""
        by_rule, by_limit, over = self._flat(terminated), self._flat(truncated), self.batch.over
        self._earned += self._power * self._flat(rewards)
        if self._trained is not None:
            self._trained += self._power * self._signal
        self._power *= self._gamma
        self._since += 1
        at = np.flatnonzero((by_rule | by_limit) & self._waiting)
        ended = self._ended(at, observations, infos, by_rule, by_limit)
        self._waiting[at] = False
        if over.any():
            decided = np.bincount(self._lane, self._number, self.num_envs) > 0
            self._silent[over] = np.where(decided[over], 0, self._silent[over] + 1)
            self._number[over[self._lane]] = 0
            if self._silent.max() >= SILENT:
                raise ScheduleError(
                    f"{SILENT} episodes of environment {int(self._silent.argmax())} ended without a single tick: "
                    "no agent decides; lower phases, or let episodes last longer"
                )
        return ended

    def _ended(
        self, at: Ints, observations: Arrays, infos: Mapping[str, Infos], by_rule: Bools, by_limit: Bools
    ) -> Ended:
        lane, over, parts = self._lane[at], self.batch.over, self._parts(at)
        obs = self._observed(at, parts, observations)
        state = (self.batch.state() if len(at) else self._last_state)[lane] if self._with_state else None
        if len(at) and over.any():
            again = over[lane, None]
            last = self._observed(at, parts, {name: infos[name]["final_obs"] for name in self.groups})
            obs = np.where(again, last, obs)
            state = None if state is None else np.where(again, self._last_state[lane], state)
        return Ended(
            lane=lane, rank=self._rank[at], parts=parts, obs=obs, reward=self._earned[at], steps=self._since[at],
            took=np.ones(len(at), dtype=bool), terminated=by_rule[at], truncated=by_limit[at],
            training_reward=None if self._trained is None else self._trained[at], state=state,
        )  # fmt: skip

    def _rows(self, observations: Arrays, infos: Mapping[str, Infos], ended: Ended) -> Rows:
        self._deciding = at = np.flatnonzero(self._flat({name: infos[name]["is_active"] for name in self.groups}))
        lane, first, parts, mask = self._lane[at], ~self._waiting[at], self._parts(at), None
        if self._choices:  # a group in which nothing is ever forbidden has no masks
            masks = {name: infos[name]["action_mask"] for name in self.groups if "action_mask" in infos[name]}
            mask = self._gathered(at, parts, masks, np.ones((len(at), self._choices), dtype=bool))
        return Rows(
            lane=lane, rank=self._rank[at], parts=parts, obs=self._observed(at, parts, observations), mask=mask,
            number=self._number[at], time=self.batch.steps[lane] * self.env.dt_ns / SECOND, first=first,
            reward=np.where(first, 0.0, self._earned[at]), steps=np.where(first, 0, self._since[at]), took=~first,
            ended=ended, training_reward=None if self._trained is None else np.where(first, 0.0, self._trained[at]),
            state=self.batch.state()[lane] if self._with_state else None,
        )  # fmt: skip

    def _flat(self, tables: Mapping[str, Any]) -> NDArray[Any]:
        """Arrays `[B, agents]` by group as one, in the order of rows."""
        return np.concatenate([tables[name].reshape(-1) for name in self.groups])

    def _parts(self, at: Ints) -> dict[str, slice]:
        stops = np.searchsorted(at, self._bounds).tolist()
        return dict(zip(self.groups, map(slice, stops, stops[1:]), strict=False))

    def _observed(self, at: Ints, parts: Mapping[str, slice], observations: Arrays) -> Vectors:
        """What they see, float32 `[n, d]` of d of the widest group."""
        return self._gathered(at, parts, observations, np.zeros((len(at), self._width), dtype=np.float32))

    def _gathered(
        self, at: Ints, parts: Mapping[str, slice], tables: Mapping[str, Any], result: NDArray[Any]
    ) -> NDArray[Any]:
        """`result` `[n, d]`, in which agents have their rows of their group's table `[B, agents, width]`."""
        for (name, part), start in zip(parts.items(), self._bounds, strict=False):
            if name in tables and part.stop > part.start:
                width = tables[name].shape[-1]
                result[part, :width] = tables[name].reshape(-1, width)[at[part] - start]
        return result


# What a learner gets


class PolicyInputs(NamedTuple):
    """What a policy is asked about, n rows, as the network takes it; slot: the number of lane and agent.

    obs: float32 `[n, d]`. state: float32 `[n, s]`, s = 0 for a local critic. mask: bool `[n, choices]` or None. first:
    bool `[n]`.
    """

    slot: Ints
    obs: Vectors
    state: Vectors
    mask: Bools | None
    first: Bools


class DecisionRewards(NamedTuple):
    """What the decisions before have brought, n of them, as `Rows` and `Ended` have it; rewards in learner's units."""

    reward: Floats
    steps: Ints
    took: Bools


@dataclass(frozen=True)
class StateScaling(Scaling):
    """The scale of a central critic's state, cut off at +-10."""

    def __call__(self, vectors: Vectors) -> Vectors:
        """`[..., s]` -> float32 `[..., s]`."""
        return np.clip(super().__call__(vectors), -FARTHEST, FARTHEST)


@dataclass(frozen=True)
class Scales:
    """Of what agents see, of rewards (a factor), and of the state, which is None for a local critic."""

    obs: Scaling
    reward: float
    state: StateScaling | None = None

    @classmethod
    def of(cls, group: GroupConfig) -> Scales:
        """Those that a run measured: its weights mean nothing in others."""
        state = StateScaling(np.array(group.state_center), np.array(group.state_scale)) if group.state_center else None
        return cls(Scaling(np.array(group.center), np.array(group.scale)), group.reward_scale, state)


class Role:
    """The agents of some groups, which see and do the same, and share one policy.

    Args: env: any environment of the kind; groups: of `env.group_map`, neighbours in it; rules: the baseline that is
        corrected, by agent; empty: none.

    Attributes: agents, ranks: in order; an agent's place is its number among them; spec, width: of their actions and
        observations; corrects: is there a rule to correct? Where there are choices there is not.

    Raises ConfigError for groups that differ.
    """

    def __init__(self, env: HeronEnv, groups: Sequence[str], rules: Mapping[str, AnyPolicy]) -> None:
        self.groups = tuple(groups)
        self.agents = [agent for group in groups for agent in env.group_map[group]]
        self.ranks = np.array([env.hierarchy.index[agent] for agent in self.agents])
        first = int(self.ranks[0])
        self.spec, self.width = env.simulation.model.specs[first], env.simulation.model.plan.size(first)
        self.choices = int(self.spec.ncats.sum()) if env.simulation.masks.ranks else 0
        for group in groups[1:]:
            rank = env.hierarchy.index[env.group_map[group][0]]
            other, width = env.simulation.model.specs[rank], env.simulation.model.plan.size(rank)
            if width != self.width or other.describe() != self.spec.describe():
                raise ConfigError(
                    f"shared=True: group {group!r} sees {width} numbers and does {other.describe()}, {groups[0]!r} "
                    f"{self.width} and {self.spec.describe()}; they can't share one policy: leave it out, or "
                    "build the environment with pad=True"
                )
        self._place = np.full(len(env.hierarchy), -1)
        self._place[self.ranks] = np.arange(len(self.ranks))
        self.corrects = bool(rules) and not self.spec.dim_d
        self.rules = {agent: on_vectors(rules[agent]) for agent in self.agents} if self.corrects else {}
        distinct: list[Any] = list({id(rule): rule for rule in self.rules.values()}.values()) or [None]
        self._moves = [Correction(self.spec.low, self.spec.high, rule) for rule in distinct]
        self._which = np.array([[r is self.rules.get(agent) for r in distinct].index(True) for agent in self.agents])

    @property
    def identity(self) -> int:
        """Columns behind the state that say which agent is meant; none where there is one."""
        return len(self.agents) if len(self.agents) > 1 else 0

    def part(self, rows: Rows | Ended) -> slice:
        """Which of the rows are its own."""
        return slice(rows.parts[self.groups[0]].start, rows.parts[self.groups[-1]].stop)

    def places(self, rows: Rows | Ended) -> Ints:
        """Whose each of its own rows is, `[n]`."""
        return np.asarray(self._place[rows.rank[self.part(rows)]])

    def slots(self, rows: Rows | Ended) -> Ints:
        """lane * agents + place of each of its own rows, `[n]`."""
        return rows.lane[self.part(rows)] * len(self.agents) + self.places(rows)

    def observed(self, rows: Rows | Ended) -> Vectors:
        """What its own see, `[n, d]`."""
        return rows.obs[self.part(rows), : self.width]

    def earned(self, rows: Rows | Ended) -> Floats:
        """What a trainer is to use as rewards, `[n]`."""
        return (rows.reward if rows.training_reward is None else rows.training_reward)[self.part(rows)]

    def scaled(self, rows: Rows | Ended, scales: Scales) -> tuple[PolicyInputs, DecisionRewards]:
        """Its own rows as a learner takes them."""
        mine, slots = self.part(rows), self.slots(rows)
        first, mask = np.zeros(len(slots), dtype=bool), None
        if isinstance(rows, Rows):
            first = rows.first[mine]
            mask = rows.mask[mine, : self.choices] if rows.mask is not None and self.choices else None
        state = np.zeros((len(slots), 0), dtype=np.float32)
        if scales.state is not None and rows.state is not None:
            which = np.eye(len(self.agents), dtype=np.float32)[self.places(rows), : self.identity]
            state = scales.state(np.concatenate([rows.state[mine], which], axis=1))
        brought = DecisionRewards(self.earned(rows) * scales.reward, rows.steps[mine], rows.took[mine])
        return PolicyInputs(slots, scales.obs(self.observed(rows)), state, mask, first), brought

    def act(self, rows: Rows, outputs: NDArray[np.float32]) -> Floats:
        """Actions of its own rows, from the network's numbers in units of half their range, and its choices."""
        observed, which, numbers = self.observed(rows), self._which[self.places(rows)], self.spec.dim_c
        actions = outputs.astype(np.float64)
        for number, move in enumerate(self._moves if numbers else ()):
            mine = which == number
            if mine.any():
                actions[mine, :numbers] = move(observed[mine], outputs[mine, :numbers])
        return actions


# The warm-up


def measure_rows(source: Any, roles: Sequence[Role], *, seed: int, discount: float, central: bool) -> list[Scales]:
    """The scales of each role, over two episodes of each lane.

    Of every observation column mean and spread, of discounted returns 1 / spread. Rules act where they are corrected;
    who corrects none holds one random action through an episode, which leads farther from the start than fresh draws
    would. With `central` the state is measured too, once per lane and step; the columns that say which agent is meant
    stay 0 and 1.
    """
    random, rows = stream(seed, "warm-up"), source.reset()
    warm_ups = [_WarmUp(role, source.num_envs, random, discount) for role in roles]
    states, calls = list[Vectors](), 0
    while calls < MAX_STEPS and min(int(warm_up.ended.max(axis=1).min()) for warm_up in warm_ups) < EPISODES:
        calls += len(rows) > 0
        if central:
            states.append(rows.state[np.unique(rows.lane, return_index=True)[1]])
        actions = np.zeros((len(rows), max(role.spec.size for role in roles)))
        for warm_up in warm_ups:
            actions[warm_up.role.part(rows), : warm_up.role.spec.size] = warm_up.answer(rows)
        rows = source.answer(actions)
        for warm_up in warm_ups:
            warm_up.end(rows.ended)
    state = np.concatenate(states).astype(np.float64) if central else None
    return [warm_up.scales(state) for warm_up in warm_ups]


class _WarmUp:
    """What the warm-up episodes show of one role."""

    def __init__(self, role: Role, lanes: int, random: np.random.Generator, discount: float) -> None:
        self.role, self._random, self._discount = role, random, discount
        agents = len(role.agents)
        self._actions = np.zeros((lanes * agents, role.spec.size))
        self._returns, self._running = list[Floats](), np.zeros(lanes * agents)
        self._observed = [np.zeros((0, role.width))]
        self.ended = np.zeros((lanes, agents), dtype=np.int64)

    def answer(self, rows: Rows) -> Floats:
        """Note rows, and act: as the rule does, or as drawn when the episode began."""
        role, slots, mine, spec = self.role, self.role.slots(rows), self.role.part(rows), self.role.spec
        self._observed.append(role.observed(rows).astype(np.float64))
        later = ~rows.first[mine]
        self._add(slots[later], role.earned(rows)[later], rows.steps[mine][later])
        if role.corrects:
            return role.act(rows, np.zeros((len(slots), spec.size), dtype=np.float32))
        fresh = slots[rows.first[mine]]
        sample = self._random.uniform(size=(len(fresh), spec.size))
        numbers, choices = sample[:, : spec.dim_c], sample[:, spec.dim_c :]
        choices = np.minimum(np.floor(choices * spec.ncats), spec.ncats - 1)
        self._actions[fresh] = np.concatenate([spec.low + numbers * (spec.high - spec.low), choices], axis=1)
        return self._actions[slots]

    def end(self, ended: Ended) -> None:
        """Note ends."""
        slots = self.role.slots(ended)
        self._add(slots, self.role.earned(ended), ended.steps[self.role.part(ended)])
        self._running[slots] = 0.0
        np.add.at(self.ended.reshape(-1), slots, 1)

    def _add(self, slots: Ints, reward: Floats, steps: Ints) -> None:
        self._running[slots] = reward + self._discount**steps * self._running[slots]
        self._returns.append(self._running[slots])

    def scales(self, states: Floats | None) -> Scales:
        """Of what its agents saw (where nobody saw anything, as it is), of returns, of the states `[n, s]`."""
        observed, returns, width = np.concatenate(self._observed), np.concatenate(self._returns), self.role.width
        scaling = _columns(observed) if len(observed) else Scaling(np.zeros(width), np.ones(width))
        spread, state = float(np.std(returns)) if len(returns) else 0.0, None
        if states is not None:
            columns, identity = _columns(states), self.role.identity
            state = StateScaling(
                np.append(columns.center, np.zeros(identity)), np.append(columns.scale, np.ones(identity))
            )
        return Scales(scaling, 1.0 / spread if spread > LEAST_SPREAD else 1.0, state)


def _columns(table: Floats) -> Scaling:
    """Mean and spread of each column of `[n, d]`; a constant column keeps its unit."""
    center, scale = table.mean(axis=0), table.std(axis=0)
    constant = scale <= LEAST_SPREAD * np.maximum(np.abs(center), 1.0)
    return Scaling(center, np.where(constant, 1.0, scale))
