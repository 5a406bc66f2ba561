"""The groups of a batch: where they lie in its arrays, how actions are read, and who decides for those left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import ActionSpec, unmasked
from heron_env.core.layout import span_of
from heron_env.core.policy import AnsweringPolicy, AnyPolicy, Keys, Policies, draw_of, draws_of, forward_rows
from heron_env.core.quantity import clip
from heron_env.engine.arrays import Published
from heron_env.envs.answering import Asking
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.rows import Rows
from heron_env.envs.decisions import Source, decides, require_policy
from heron_env.errors import ConfigError, InvalidAction, ResetNeeded, UnknownAgent, did_you_mean
from heron_env.scheduling.timing import Timing

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]
"""`[lanes, agents, ...]` by group."""


@dataclass(frozen=True, eq=False)
class Group:
    """Agents of one kind: equal observation and action spaces.

    Attributes:
        ranks: of its agents.
        shape: of its actions, `(lanes, agents, elements)`.
        width: floats of one agent's observation.
        members: its place among the observers; empty for agents that only take commands.
        floats: its place in the lanes' observations.
    """

    name: str
    agents: tuple[str, ...]
    ranks: tuple[int, ...]
    spec: ActionSpec
    shape: tuple[int, int, int]
    width: int
    members: slice
    floats: slice

    def values(self, actions: Any) -> NDArray[Any]:
        """Actions as `[lanes, agents, elements]`, without a copy where they have that form.

        Takes arrays, torch tensors of the CPU, `[lanes, agents]` for one element, {"c", "d"} for mixed ones.
        Raises InvalidAction.
        """
        array, shape = actions if type(actions) is np.ndarray else self._array(actions), self.shape
        if array.shape != shape:
            if array.shape != shape[:2] or shape[2] != 1:
                raise InvalidAction(
                    f"step(): the actions of group {self.name!r} have shape {array.shape}, expected {shape}: "
                    f"(lanes, agents, elements), each {self.spec.describe()}"
                )
            array = array[:, :, None]
        if array.dtype.kind not in "fiub":
            raise InvalidAction(f"step(): the actions of group {self.name!r} are {array.dtype}; give numbers")
        return array

    def _array(self, actions: Any) -> NDArray[Any]:
        """What is no plain array as one. Raises InvalidAction."""
        actions = unmasked(actions, f"step(): the array of actions of group {self.name!r}")
        try:
            if not isinstance(actions, Mapping):
                return np.asarray(actions)
            parts = {part: np.asarray(actions[part]) for part in actions}
        except (TypeError, ValueError, RuntimeError) as error:
            remedy = "give an array, or a torch tensor of the CPU without a gradient (values.detach().cpu().float())"
            raise InvalidAction(
                f"step(): the actions of group {self.name!r} are no array: {error}; {remedy}"
            ) from error
        rows = self.shape[:2]
        if wrong := self.spec.wrong_parts(parts, rows[0] * rows[1]):
            raise InvalidAction(f"step(): the action of group {self.name!r}{wrong}")
        return np.concatenate([parts[part].reshape(*rows, -1) for part in ("c", "d") if part in parts], axis=2)


def groups_of(env: HeronEnv, lanes: int = 1) -> dict[str, Group]:
    """All groups with actions; those of possible agents come first, in the order of `env.group_map`."""
    simulation, index = env.simulation, env.hierarchy.index
    result: dict[str, Group] = {}
    observer = column = 0
    names = [*env.group_map, *(name for name in env.groups if name not in env.group_map)]
    for name in names:
        possible = name in env.group_map
        agents = env.group_map[name] if possible else env.groups[name]
        ranks = tuple(index[agent] for agent in agents)
        spec, width = simulation.model.specs[ranks[0]], simulation.model.plan.size(ranks[0])
        if not spec.size:
            continue
        last, end = (observer + len(ranks), column + len(ranks) * width) if possible else (observer, column)
        shape, members = (lanes, len(ranks), spec.size), slice(observer, last)
        result[name] = Group(name, tuple(agents), ranks, spec, shape, width, members, slice(column, end))
        observer, column = last, end
    return result


def group_named(groups: Mapping[str, Group], name: str, call: str) -> Group:
    """The group of that name; `call`: what got it, for the error. Raises UnknownAgent."""
    group = groups.get(name) if isinstance(name, str) else None
    if group is None:
        raise UnknownAgent(f"{call} the group {name!r:.60}; this batch has {list(groups)}.{did_you_mean(name, groups)}")
    return group


def shown(published: Published, groups: Mapping[str, Group]) -> tuple[Arrays, Arrays, Arrays, Arrays]:
    """Views by group: observations `[lanes, agents, d]`, rewards, terminated, truncated `[lanes, agents]`."""
    seeing = {name: group for name, group in groups.items() if group.members.stop > group.members.start}
    lanes = len(published.observations)

    def members(part: NDArray[Any]) -> Arrays:
        return {name: part[:, group.members] for name, group in seeing.items()}

    observations: Arrays = {
        name: published.observations[:, group.floats].reshape(lanes, len(group.agents), group.width)
        for name, group in seeing.items()
    }
    return observations, members(published.rewards), members(published.terminated), members(published.truncated)


Lanes = NDArray[np.bool_]
"""Which lanes are meant, `[B]`."""
GroupActions = Sequence[tuple[Group, NDArray[Any]]]
"""Actions `[B, agents, elements]` of the groups that the caller decides for."""
Makers = Mapping[str, Callable[[], NDArray[Any]]]


class TurnCounter:
    """Counts what a batch does, so that infos know when they are old."""

    def __init__(self) -> None:
        self.number = 0


class Infos(Mapping[str, NDArray[Any]]):
    """A group's infos, each array made when it is first asked for; until the next step only.

    BatchEnv.infos sets the attributes.
    """

    __slots__ = ("made", "makers", "number", "turn")

    made: dict[str, NDArray[Any]] | None
    makers: Makers
    number: int
    turn: TurnCounter

    def __getitem__(self, name: str) -> NDArray[Any]:
        """`[B, agents, ...]`. Raises ResetNeeded if the batch has gone on since."""
        if self.made is None:
            self.made = {}
        if name not in self.made:
            make = self.makers[name]
            if self.number != self.turn.number:
                raise ResetNeeded(f"infos[...][{name!r}]: the batch has gone on; read infos before the next step")
            self.made[name] = make()
        return self.made[name]

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self.makers)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.makers)

    def __repr__(self) -> str:
        """`Infos(is_active, decision)`."""
        return f"Infos({', '.join(self.makers)})"


@dataclass(frozen=True, eq=False)
class Decider:
    """One policy and the agents of one group that it decides for, in all lanes.

    Attributes:
        places: of the agents in their group.
        source: EXPLICIT for a policy given to the batch, POLICY for an agent's own.
    """

    group: Group
    places: tuple[int, ...]
    policy: AnyPolicy
    source: Source
    env: HeronEnv

    def decide(
        self, observations: NDArray[np.float32], steps: NDArray[np.int64], active: NDArray[np.bool_],
        seeds: Keys, episodes: Keys, masks: Callable[[], NDArray[np.int8]] | None = None,
    ) -> Floats:  # fmt: skip
        """Actions `[lanes, places, elements]`; no-ops where nobody is asked.

        Args:
            observations: their observations `[lanes, places, d]`.
            steps: the control step that each of them sees, `[lanes, places]`.
            active: `[lanes, places]`.
            seeds, episodes: those of the lanes.
            masks: makes those of the group, flat, `[lanes, agents, choices]`; None where nothing is ever forbidden.

        Raises InvalidAction naming lane and agent.
        """
        draws = partial(self._draws, steps, seeds, episodes)
        values = np.empty((*active.shape, self.group.spec.size))
        values[:] = self.group.spec.noop
        together = getattr(self.policy, "forward_batch", None)
        if together is None:
            self._one_by_one(values, observations, steps, active, draws)
        elif len(rows := np.flatnonzero(active)):
            answers = forward_rows(
                together,
                _flat(observations)[rows],
                lambda: None if masks is None else _flat(masks()[:, self.columns])[rows],
                lambda: draws().ravel()[rows],
            )
            _flat(values)[rows] = self._answers(answers, len(rows))
            self._require_legal(values)
        return values

    def _one_by_one(
        self,
        values: Floats,
        observations: NDArray[np.float32],
        steps: NDArray[np.int64],
        active: Bools,
        draws: Callable[[], Keys],
    ) -> None:
        """Ask for each agent in each lane, into `values`."""
        several, spec, keys = len(active) > 1, self.group.spec, cache(draws)

        def draw(*place: int) -> int:
            return int(keys()[place])

        for column, place in enumerate(self.places):
            agent = self.group.agents[place]
            decide = decides(self.env, self.group.ranks[place], self.policy)
            assert not isinstance(decide, Asking)  # deciders_of refuses them
            lanes = np.flatnonzero(active[:, column])
            each = zip(lanes.tolist(), observations[lanes, column], steps[lanes, column].tolist(), strict=True)
            for lane, vector, step in each:
                action = decide(vector, step, partial(draw, lane, column))
                values[lane, column] = spec.parse(action, agent, lane if several else None)

    def _draws(self, steps: NDArray[np.int64], seeds: Keys, episodes: Keys) -> Keys:
        """The keys of what each agent draws, `[lanes, places]`."""
        dt, timings = self.env.dt_ns, self._timings
        numbers = np.stack([timing.number(steps[:, i] * dt) for i, timing in enumerate(timings)], axis=1)
        return draws_of(seeds[:, None], episodes[:, None], self.env.hierarchy.hashes[self.ranks], numbers)

    @cached_property
    def ranks(self) -> list[int]:
        """Of its agents."""
        return [self.group.ranks[place] for place in self.places]

    @cached_property
    def columns(self) -> slice | NDArray[np.int64]:
        """Their places in the group, a slice if they are neighbours."""
        return span_of(np.array(self.places))

    @cached_property
    def _timings(self) -> list[Timing]:
        """Those that number its agents' decisions."""
        return [self.env.timings[self.env.simulation.model.clocks[rank]] for rank in self.ranks]

    def _answers(self, result: Any, rows: int) -> Floats:
        """What forward_batch gave, `[rows, elements]` (`[rows]` for one element). Raises InvalidAction."""
        expected, size = (rows, self.group.spec.size), self.group.spec.size
        source = f"forward_batch() of {type(self.policy).__name__} for the group {self.group.name!r}"
        try:
            answers = np.asarray(result, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidAction(
                f"{source} returned no numbers ({error}); return an array of shape {expected}"
            ) from error
        if answers.shape != expected and not (size == 1 and answers.shape == (rows,)):
            raise InvalidAction(f"{source} returned shape {answers.shape} for {rows} observations, expected {expected}")
        return answers.reshape(expected)

    def _require_legal(self, values: Floats) -> None:
        """Clip actions `[lanes, places, elements]`. Raises InvalidAction for the first outside its space."""
        spec, legal = self.group.spec, self.group.spec.legal(values)
        if not legal.all():
            lane, place = divmod(int(np.argmin(legal)), len(self.places))
            agent = self.group.agents[self.places[place]]
            spec.parse(values[lane, place], agent, lane if len(values) > 1 else None)
        if spec.dim_c:
            clip(values[..., : spec.dim_c], spec.low, spec.high, out=values[..., : spec.dim_c])

    def answer(self, rows: Rows, engine: Any) -> tuple[NDArray[np.int64], Floats]:
        """Which of the rows are its agents', and its actions `[n, elements]`; `engine`: of seeds and episodes.

        Raises InvalidAction naming lane and agent.
        """
        part, spec = rows.parts[self.group.name], self.group.spec
        places = part.start + np.flatnonzero(np.isin(rows.rank[part], self.ranks))
        if any(callable(getattr(self.policy, name, None)) for name in ("forward_batch", "forward_rows")):
            if not len(places):
                return places, np.zeros((0, spec.size))
            answers = decide_rows(self.env, engine, rows, self.policy, places)
            values = self._answers(answers, len(places)).copy()
            self._require_legal(values[:, None])
            return places, values
        values, ids = np.zeros((len(places), spec.size)), self.env.hierarchy.ids
        for n, place in enumerate(places.tolist()):
            rank, lane, number = int(rows.rank[place]), int(rows.lane[place]), int(rows.number[place])
            decide = decides(self.env, rank, self.policy)
            assert not isinstance(decide, Asking)  # deciders_of refuses them
            moment = int(engine.seeds[lane]), int(engine.episodes[lane])
            action = decide(rows.obs[place, : self.group.width], 0, partial(draw_of, *moment, ids[rank], number))
            values[n] = spec.parse(action, ids[rank], lane if len(engine.seeds) > 1 else None)
        return places, values


def decide_rows(env: HeronEnv, engine: Any, rows: Rows, policy: Any, places: Any) -> Floats:
    """Actions `[n, k]` of one policy for its rows at `places`, of agents of one group."""
    lanes, ranks, more = rows.lane[places], rows.rank[places], dict[str, Any]()
    rank = int(ranks[0])
    choices = int(env.simulation.model.specs[rank].ncats.sum())
    if remembers := callable(getattr(policy, "forward_rows", None)):
        more = {"who": lanes * len(env.hierarchy) + ranks, "first": rows.first[places]}
    actions: Floats = forward_rows(
        policy.forward_rows if remembers else policy.forward_batch,
        rows.obs[places, : env.simulation.model.plan.size(rank)],
        lambda: None if rows.mask is None else rows.mask[places, :choices].astype(np.int8),
        partial(
            draws_of, engine.seeds[lanes], engine.episodes[lanes], env.hierarchy.hashes[ranks], rows.number[places]
        ),
        **more,
    )
    return actions


def _flat(table: NDArray[Any]) -> NDArray[Any]:
    """`[lanes, places, n]` as `[lanes * places, n]`."""
    return table.reshape(table.shape[0] * table.shape[1], table.shape[2])


def deciders_of(
    env: HeronEnv, groups: Mapping[str, Group], others: Policies, *, on_rows: bool = False
) -> tuple[Decider, ...]:
    """The policies of the observed groups' agents: `others` by agent, group or "*", else the agents' own.

    `on_rows`: they are asked about rows, as the event clock has them. Raises UnknownAgent for a key of `others` that
    names nobody who decides, ConfigError for a policy that can't be asked so.
    """
    chosen = _chosen(env, others)
    deciders: list[Decider] = []
    for group in (groups[name] for name in env.group_map):
        by_policy: dict[tuple[int, Source], tuple[AnyPolicy, list[int]]] = {}
        for place, (rank, agent) in enumerate(zip(group.ranks, group.agents, strict=True)):
            own = env.hierarchy.agents[rank].policy
            candidate, source = chosen.get(agent), Source.EXPLICIT
            if candidate is None and own is not None:
                candidate, source = own, Source.POLICY
            if candidate is not None:
                require_batchable(candidate, f"others: the policy of {agent!r}", on_rows=on_rows)
                by_policy.setdefault((id(candidate), source), (candidate, []))[1].append(place)
        for (_, source), (policy, places) in by_policy.items():
            deciders.append(Decider(group, tuple(places), policy, source, env))
    return tuple(deciders)


def require_batchable(policy: AnyPolicy, where: str, *, on_rows: bool = False) -> None:
    """Raise ConfigError for a policy that batches can't ask, or whose episodes they can't tell it of."""
    if on_rows and getattr(policy, "on_rows", False):
        return
    if on_rows and not callable(policy) and not hasattr(policy, "forward"):
        raise ConfigError(
            f"{where}, {type(policy).__name__}, has decide_action(state), and rows have observations alone; give it "
            "forward(observation) instead"
        )
    if isinstance(policy, AnsweringPolicy):
        raise ConfigError(
            f"{where}, {type(policy).__name__}, knows who asks (answer()), and a batch asks by observations alone; "
            "give it forward(observation) instead, or run single environments: run_synchronous(), run_event_driven()"
        )
    if callable(getattr(policy, "begin", None)) and not callable(getattr(policy, "begin_lanes", None)):
        raise ConfigError(
            f"{where}, {type(policy).__name__}, has begin(seed, episode), but a batch begins many episodes side by "
            "side; give it begin_lanes(lanes, seeds, episodes), or run single environments"
        )


def begin_lanes(deciders: Sequence[Decider], lanes: NDArray[np.int64], seeds: Keys, episodes: Keys) -> None:
    """Tell each policy object that offers it, once, in which lanes `[n]` episodes begin; keys are those of all lanes.

    Seeds and episodes are handed on as those of `lanes`, uint64 `[n]`.
    """
    for policy in {id(decider.policy): decider.policy for decider in deciders}.values():
        begin = getattr(policy, "begin_lanes", None)
        if callable(begin) and len(lanes):
            begin(lanes, seeds[lanes], episodes[lanes])


def _chosen(env: HeronEnv, others: Policies) -> dict[str, AnyPolicy]:
    """The given policy of each agent that has one; the more special key wins."""
    if not isinstance(others, Mapping):
        raise ConfigError(f"others={others!r}: must be a mapping; write {{'*': policy}} for one that all share")
    named = {"*": env.possible_agents, **env.group_map, **{agent: [agent] for agent in env.possible_agents}}
    for key in others:
        if key not in named:
            keys = [name for name in named if name != "*"]
            raise UnknownAgent(f"others: {key!r} decides nothing here; there are {keys[:12]}.{did_you_mean(key, keys)}")
        require_policy(others[key], f"others[{key!r}]")
    pairs: Iterator[tuple[str, AnyPolicy]] = (
        (agent, others[key]) for key in named if key in others for agent in named[key]
    )
    return dict(pairs)
