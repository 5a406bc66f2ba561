"""StepRows: the rows of a batch on the synchronous clock, so that what reads rows runs on both clocks.

A role is the agents that share one policy in a training on rows, and how they find themselves among rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import AnyPolicy
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.building import as_array
from heron_env.envs.batch.env import BatchEnv
from heron_env.envs.batch.lane_groups import Arrays, Infos
from heron_env.envs.batch.rows import Bools, Ended, Floats, Ints, Rows, Vectors
from heron_env.envs.hooks import has_training_rewards
from heron_env.errors import ConfigError, InvalidAction, ResetNeeded, ScheduleError
from heron_env.lab.trained import Correction, on_vectors
from heron_env.scheduling.timing import SECOND

SILENT = 1000
"""Episodes in a row, in a lane, without a single decision, after which nothing will come any more."""
INSTEAD = {
    "others": "every agent that decides has rows; answer for these yourself",
    "autoreset": "the next episode of an environment begins at once; use BatchEnv for another way",
    "final_observations": "what an agent last saw is in rows.ended.obs",
}
"""What to do about arguments of BatchEnv that rows have no use for."""
ENDED_ARRAYS = (
    "lane", "rank", "obs", "reward", "steps", "took", "terminated", "truncated", "training_reward", "state",
)  # fmt: skip
"""The arrays of Ended."""


class Places(NamedTuple):
    """Some agents of all lanes, n of them, by group, lane and rank: `at[i]` = lane * agents + the agent's column."""

    at: Ints
    parts: Mapping[str, slice]


class StepRows:
    """`num_envs` lanes on the synchronous clock that ask in rows: in each control step everyone whose turn it is.

        rows = batch.begin()
        while wanted:
            rows = batch.answer(policy(rows))

    Lane i is the HeronEnv with seed + i. An agent that does not tick in a step stands in no row of it; what it earns is
    added up until it does. Steps in which nobody at all ticks are gone through at once. At zero delay each lane of a
    batch on the event clock gives the same rows, bit for bit. Arrays are the caller's to keep.

    Args:
        env, num_envs, seed, threads, options: as of BatchEnv.
        gamma: rewards of several control steps are summed with it (Rows.reward).
        with_state: give the truth with each row, for a central critic, and what a trainer should use as rewards.

    Attributes:
        batch: the BatchEnv that steps; `env`, `num_envs` and `groups` are its own.

    Raises ConfigError, and what BatchEnv raises.
    """

    def __init__(
        self, env: HeronEnv | str | Callable[..., HeronEnv], num_envs: int, *, seed: int = 0,
        threads: int | None = None, gamma: float = 1.0, with_state: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        for name in INSTEAD.keys() & options.keys():
            raise ConfigError(f"StepRows({name}=...): {INSTEAD[name]}")
        if isinstance(gamma, bool) or not isinstance(gamma, int | float) or not 0.0 <= gamma <= 1.0:
            raise ConfigError(f"StepRows(gamma={gamma!r}): must be a number between 0 and 1")
        self.batch = BatchEnv(env, num_envs, seed=seed, threads=threads, final_observations=True, **options)
        self.env, self.num_envs, self.groups = self.batch.env, num_envs, self.batch.groups
        self._names = list(self.groups)
        groups = [self.batch._groups[name] for name in self._names]
        self._sizes, self._widths = [len(group.agents) for group in groups], [group.width for group in groups]
        self._starts = np.cumsum([0, *self._sizes]).tolist()
        self._ranks = np.array([rank for group in groups for rank in group.ranks], dtype=np.int64)
        self._specs, self._gamma, self._with_state = [group.spec for group in groups], float(gamma), with_state
        self.action_size = max(spec.size for spec in self._specs)
        self._choices = max(int(spec.ncats.sum()) for spec in self._specs) if self.env.simulation.masks.ranks else 0
        shape = num_envs, len(self._ranks)
        self._given = {
            name: np.tile(spec.noop, (num_envs, size, 1))
            for name, spec, size in zip(self._names, self._specs, self._sizes, strict=True)
        }
        self._waiting, self._number = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=np.int64)
        self._earned, self._power = np.zeros(shape), np.ones(shape)
        self._since, self._silent = np.zeros(shape, dtype=np.int64), np.zeros(num_envs, dtype=np.int64)
        self._trained = np.zeros(shape) if with_state and has_training_rewards(self.env) else None
        self._signal, self._last_state = np.zeros(0), np.zeros(0, dtype=np.float32)
        if with_state:
            self.batch.at_close.append(self._look)
        every = np.arange(num_envs)[:, None] * shape[1] + np.arange(shape[1])
        self._everyone = Places(
            np.concatenate([every[:, a:b].reshape(-1) for a, b in zip(self._starts, self._starts[1:], strict=False)]),
            self._parts([num_envs * size for size in self._sizes]),
        )
        self._asked: Places | None = None

    def begin(self) -> Rows:
        """Begin an episode in every lane: the observations of those who tick in its first step."""
        return self.reset()

    def reset(self, seed: int | Sequence[int] | None = None) -> Rows:
        """Begin an episode in every lane, of these seeds as BatchEnv.reset takes them. Raises ConfigError."""
        observations, infos = self.batch.reset(seed)
        self._waiting[:] = False
        self._number[:] = self._silent[:] = 0
        nobody = np.zeros_like(self._waiting)
        nothing = self._ended(self._places(nobody), observations, infos, nobody, nobody)
        return self._until_asked(observations, infos, nothing)

    def answer(self, actions: Any) -> Rows:
        """Tell the rows handed out last their actions, `[n, k]` (`[n]` where k is 1), in their order, and step.

        Elements behind an agent's own are ignored. Raises InvalidAction naming lane and agent: nothing has changed
        then; ResetNeeded.
        """
        if self._asked is None:
            raise ResetNeeded("answer(): no episode is running; call begin()")
        (at, parts), agents = self._asked, len(self._ranks)
        values = as_array(actions, InvalidAction, "answer()")
        values = values[:, None] if values.shape == (len(at),) and self.action_size == 1 else values
        if values.shape != (len(at), self.action_size) or values.dtype.kind not in "fiub":
            raise InvalidAction(
                f"answer(): actions have shape {values.shape} and type {values.dtype}, expected numbers "
                f"{(len(at), self.action_size)}: (rows, elements of the widest action)"
            )
        for name, start, spec in zip(self._names, self._starts, self._specs, strict=False):
            lanes, columns = np.divmod(at[parts[name]], agents)
            self._given[name][lanes, columns - start] = values[parts[name], : spec.size]
        stepped = self.batch.step(self._given)
        self._waiting.reshape(-1)[at] = True
        self._number.reshape(-1)[at] += 1
        for part, fresh in ((self._earned, 0.0), (self._power, 1.0), (self._since, 0), (self._trained, 0.0)):
            if part is not None:
                part.reshape(-1)[at] = fresh
        return self._until_asked(stepped[0], stepped[-1], self._take(*stepped))

    def close(self) -> None:
        """Close the environment."""
        self.batch.close()

    def _until_asked(self, observations: Arrays, infos: Mapping[str, Infos], ended: Ended) -> Rows:
        """The rows of now, or of the next step in which there are any."""
        ends = [ended]
        while not (active := np.concatenate([infos[name]["is_active"] for name in self._names], axis=1)).any():
            stepped = self.batch.step(self._given)
            observations, infos = stepped[0], stepped[-1]
            ends.append(self._take(*stepped))
            if self._silent.max() >= SILENT:
                raise ScheduleError(
                    f"{SILENT} episodes of environment {int(self._silent.argmax())} ended without a single tick: "
                    "no agent decides; lower phases, or let episodes last longer"
                )
        self._asked = places = self._places(active != 0)
        return self._rows(places, observations, infos, _joined(ends, list(self._names)))

    def _look(self) -> None:
        """Before lanes begin anew: the trainer's rewards, and the states in which episodes ended."""
        if self._trained is not None:
            each = [self.batch.training_rewards(name) for name in self._names]
            rewards = [part for part in each if part is not None]
            assert len(rewards) == len(each)  # its class has them
            self._signal = np.concatenate(rewards, axis=1)
        if self.batch.over.any():
            self._last_state = self.batch.state()

    def _take(
        self, observations: Arrays, rewards: Arrays, terminated: Arrays, truncated: Arrays, infos: Mapping[str, Infos]
    ) -> Ended:
        """Add up what a step brought, and tell of those who ended in it."""
        gained, by_rule, by_limit = (
            np.concatenate([part[name] for name in self._names], axis=1) for part in (rewards, terminated, truncated)
        )
        self._earned += self._power * gained
        if self._trained is not None:
            self._trained += self._power * self._signal
        self._power *= self._gamma
        self._since += 1
        places, over = self._places((by_rule | by_limit) & self._waiting), self.batch.over
        ended = self._ended(places, observations, infos, by_rule, by_limit)
        self._waiting.reshape(-1)[places.at] = False
        if over.any():
            self._silent[over] = np.where(self._number[over].any(axis=1), 0, self._silent[over] + 1)
            self._number[over] = 0
        return ended

    def _ended(
        self, places: Places, observations: Arrays, infos: Mapping[str, Infos], by_rule: Bools, by_limit: Bools
    ) -> Ended:
        at, over = places.at, self.batch.over
        lane = at // len(self._ranks)
        obs = self._seen(places, observations)
        state = np.zeros((0, len(self.env.state_names)), dtype=np.float32) if self._with_state else None
        if state is not None and len(at):
            state = self.batch.state()[lane]
        if len(at) and over.any():
            last = self._seen(places, {name: infos[name]["final_obs"] for name in self._names})
            obs = np.where(over[lane, None], last, obs)
            state = None if state is None else np.where(over[lane, None], self._last_state[lane], state)
        return Ended(
            lane=lane, rank=self._ranks[at % len(self._ranks)], parts=places.parts, obs=obs,
            reward=self._earned.reshape(-1)[at], steps=self._since.reshape(-1)[at], took=np.ones(len(at), dtype=bool),
            terminated=by_rule.reshape(-1)[at], truncated=by_limit.reshape(-1)[at],
            training_reward=None if self._trained is None else self._trained.reshape(-1)[at], state=state,
        )  # fmt: skip

    def _rows(self, places: Places, observations: Arrays, infos: Mapping[str, Infos], ended: Ended) -> Rows:
        at = places.at
        lane, first = at // len(self._ranks), ~self._waiting.reshape(-1)[at]
        earned = (None if part is None else part.reshape(-1)[at] for part in (self._earned, self._trained))
        reward, trained = (None if part is None else np.where(first, 0.0, part) for part in earned)
        assert reward is not None
        return Rows(
            lane=lane, rank=self._ranks[at % len(self._ranks)], parts=places.parts,
            obs=self._seen(places, observations), mask=self._masks(places, infos), number=self._number.reshape(-1)[at],
            time=self.batch.steps[lane] * self.env.dt_ns / SECOND, first=first, reward=reward,
            steps=np.where(first, 0, self._since.reshape(-1)[at]), took=~first, ended=ended, training_reward=trained,
            state=self.batch.state()[lane] if self._with_state else None,
        )  # fmt: skip

    def _places(self, flags: Bools) -> Places:
        """Where flags `[B, agents]` are set."""
        if flags.all():
            return self._everyone
        result, agents = [], flags.shape[1]
        for start, stop in zip(self._starts, self._starts[1:], strict=False):
            lanes, columns = np.nonzero(flags[:, start:stop])
            result.append(lanes * agents + start + columns)
        return Places(np.concatenate(result), self._parts([len(part) for part in result]))

    def _parts(self, counts: Sequence[int]) -> dict[str, slice]:
        ends = np.cumsum([0, *counts]).tolist()
        return dict(zip(self._names, map(slice, ends, ends[1:]), strict=False))

    def _seen(self, places: Places, observations: Arrays) -> Vectors:
        """What they see, float32 `[n, d]` of d of the widest group."""
        if len(self._names) == 1 and places is self._everyone:
            return observations[self._names[0]].reshape(-1, self._widths[0]).astype(np.float32)
        result = np.zeros((len(places.at), max(self._widths)), dtype=np.float32)
        for name, start, width in zip(self._names, self._starts, self._widths, strict=False):
            part = places.parts[name]
            lanes, columns = np.divmod(places.at[part], len(self._ranks))
            result[part, :width] = observations[name][lanes, columns - start]
        return result

    def _masks(self, places: Places, infos: Mapping[str, Infos]) -> Bools | None:
        """What they may choose, bool `[n, m]`; None where nothing is ever forbidden."""
        if not self._choices:
            return None
        result = np.ones((len(places.at), self._choices), dtype=bool)
        for name, start, spec in zip(self._names, self._starts, self._specs, strict=False):
            if "action_mask" in infos[name]:
                part = places.parts[name]
                lanes, columns = np.divmod(places.at[part], len(self._ranks))
                result[part, : int(spec.ncats.sum())] = infos[name]["action_mask"][lanes, columns - start]
        return result


def _joined(ends: Sequence[Ended], groups: Sequence[str]) -> Ended:
    """Ends of several steps as those of one, by group, lane and rank."""
    if len(ends) == 1:
        return ends[0]
    group = np.concatenate([np.repeat(np.arange(len(groups)), [_length(one.parts[g]) for g in groups]) for one in ends])
    rank, lane = (np.concatenate([getattr(one, name) for one in ends]) for name in ("rank", "lane"))
    order = np.lexsort((rank, lane, group))
    stops = np.searchsorted(group[order], np.arange(len(groups) + 1)).tolist()
    fields: dict[str, NDArray[Any] | None] = {}
    for name in ENDED_ARRAYS:
        each = [getattr(one, name) for one in ends]
        fields[name] = None if each[0] is None else np.concatenate(each)[order]
    return Ended(parts=dict(zip(groups, map(slice, stops, stops[1:]), strict=False)), **fields)  # type: ignore[arg-type]


def _length(part: slice) -> int:
    return int(part.stop - part.start)


class RowSource(Protocol):
    """What asks in rows and is answered."""

    env: HeronEnv
    num_envs: int

    def begin(self) -> Rows:
        """Begin an episode in every lane."""
        ...

    def reset(self, seed: Sequence[int] | None = None) -> Rows:
        """The same, of lanes of these seeds."""
        ...

    def answer(self, actions: Any) -> Rows:
        """Tell actions `[n, k]` of the rows handed out last."""
        ...


class Role:
    """The agents of some groups, which see and do the same.

    Args:
        env: any environment of the kind.
        groups: of `env.group_map`, neighbours in it.
        rules: the baseline that is corrected, by agent; empty: none.

    Attributes:
        agents, ranks: in order; an agent's place is its number among them.
        spec, width: of their actions and observations.
        corrects: is there a rule to correct? Where there are choices there is not.

    Raises ConfigError for groups that differ.
    """

    def __init__(self, env: HeronEnv, groups: Sequence[str], rules: Mapping[str, AnyPolicy]) -> None:
        self.groups = tuple(groups)
        self.agents = [agent for group in groups for agent in env.group_map[group]]
        self.ranks = np.array([env.hierarchy.index[agent] for agent in self.agents])
        first = self.ranks[0]
        self.spec, self.width = env.simulation.specs[first], env.simulation.plan.size(int(first))
        for group in groups[1:]:
            rank = env.hierarchy.index[env.group_map[group][0]]
            other, width = env.simulation.specs[rank], env.simulation.plan.size(rank)
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
        distinct = {id(rule): rule for rule in self.rules.values()}
        most = max(len(distinct), 1)
        self._move = [Correction(self.spec.low, self.spec.high, rule) for rule in (*distinct.values(), None)[:most]]
        numbers = {rule: number for number, rule in enumerate(distinct)}
        self._which = np.array([numbers[id(self.rules[a])] if self.rules else 0 for a in self.agents])

    def part(self, rows: Rows | Ended) -> slice:
        """Which of the rows are its own."""
        return slice(rows.parts[self.groups[0]].start, rows.parts[self.groups[-1]].stop)

    def places(self, rows: Rows | Ended) -> Ints:
        """Whose each of its own rows is, `[n]`."""
        return np.asarray(self._place[rows.rank[self.part(rows)]])

    def slots(self, rows: Rows | Ended) -> Ints:
        """lane * agents + place of each of its own rows, `[n]`."""
        return rows.lane[self.part(rows)] * len(self.agents) + self.places(rows)

    def seen(self, rows: Rows | Ended) -> Vectors:
        """What its own see, `[n, d]`."""
        return rows.obs[self.part(rows), : self.width]

    def earned(self, rows: Rows | Ended) -> Floats:
        """What a trainer is to use as rewards, `[n]`."""
        return (rows.reward if rows.training_reward is None else rows.training_reward)[self.part(rows)]

    def act(self, rows: Rows, outputs: NDArray[np.float32]) -> Floats:
        """Actions of its own rows, from the network's numbers in units of half their range, and its choices."""
        seen, which, numbers = self.seen(rows), self._which[self.places(rows)], self.spec.dim_c
        actions = outputs.astype(np.float64)
        for number, move in enumerate(self._move if numbers else ()):
            mine = which == number
            if mine.any():
                actions[mine, :numbers] = move(seen[mine], outputs[mine, :numbers])
        return actions
