"""Who decides in a batch for agents that step() says nothing of: policies given to the batch, or the agents' own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import AnsweringPolicy, AnyPolicy, Keys, Policies, draws_of, forward_rows
from heron_env.envs.answering import Asking
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.lane_groups import Group, require_action
from heron_env.envs.decisions import Source, decides, require_policy
from heron_env.errors import ConfigError, InvalidAction, UnknownAgent, did_you_mean
from heron_env.scheduling.timing import Timing

Floats = NDArray[np.float64]
Batched = Callable[[NDArray[np.float32]], Any]


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
        self, seen: NDArray[np.float32], steps: NDArray[np.int64], asked: NDArray[np.bool_],
        seeds: Keys, episodes: Keys, masks: Callable[[], NDArray[np.int8]] | None = None,
    ) -> Floats:  # fmt: skip
        """Actions `[lanes, places, elements]`; no-ops where nobody is asked.

        Args:
            seen: the group's observations `[lanes, agents, d]`.
            steps: the control step that each of them sees, `[lanes, places]`.
            asked: `[lanes, places]`.
            seeds, episodes: those of the lanes.
            masks: makes those of the group, flat, `[lanes, agents, choices]`; None where nothing is ever forbidden.

        Raises InvalidAction naming lane and agent.
        """
        spec, mine, places = self.group.spec, seen[:, list(self.places)], list(self.places)
        draws = cache(partial(self._draws, steps, seeds, episodes))
        values = np.empty((*asked.shape, spec.size))
        values[:] = spec.noop
        together = getattr(self.policy, "forward_batch", None)
        if together is not None:
            if asked.any():
                answers = forward_rows(
                    together,
                    mine[asked],
                    lambda: None if masks is None else masks()[:, places][asked],
                    lambda: draws()[asked],
                )
                values[asked] = self._answers(answers, int(asked.sum()))
                lanes = np.ones_like(asked)
                self._members().require_legal(values, lanes)
                np.clip(values[..., : spec.dim_c], spec.low, spec.high, out=values[..., : spec.dim_c])
            return values
        several = len(asked) > 1
        for column, place in enumerate(self.places):
            decide = decides(self.env, self.group.ranks[place], self.policy)
            assert not isinstance(decide, Asking)  # deciders_of refuses them
            for lane in np.flatnonzero(asked[:, column]).tolist():
                draw = partial(lambda *place: int(draws()[place]), lane, column)
                action = decide(mine[lane, column].copy(), int(steps[lane, column]), draw)
                values[lane, column] = require_action(spec, action, self.group.agents[place], lane if several else None)
        return values

    def _draws(self, steps: NDArray[np.int64], seeds: Keys, episodes: Keys) -> Keys:
        """The keys of what each agent draws, `[lanes, places]`."""
        dt, timings = self.env.dt_ns, self._timings
        numbers = np.stack([timing.number(steps[:, i] * dt) for i, timing in enumerate(timings)], axis=1)
        return draws_of(seeds[:, None], episodes[:, None], self.env.hierarchy.hashes[self._ranks], numbers)

    @cached_property
    def _ranks(self) -> list[int]:
        """Of its agents."""
        return [self.group.ranks[place] for place in self.places]

    @cached_property
    def _timings(self) -> list[Timing]:
        """Those that number its agents' decisions."""
        return [self.env.timings[self.env.simulation.clocks[rank]] for rank in self._ranks]

    def _answers(self, given: Any, rows: int) -> Floats:
        """What forward_batch gave, `[rows, elements]` (`[rows]` for one element). Raises InvalidAction."""
        expected, size = (rows, self.group.spec.size), self.group.spec.size
        whose = f"forward_batch() of {type(self.policy).__name__} for the group {self.group.name!r}"
        try:
            answers = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidAction(
                f"{whose} returned no numbers ({error}); return an array of shape {expected}"
            ) from error
        if answers.shape != expected and not (size == 1 and answers.shape == (rows,)):
            raise InvalidAction(f"{whose} returned shape {answers.shape} for {rows} observations, expected {expected}")
        return answers.reshape(expected)

    def _members(self) -> Group:
        """The group, reduced to the agents in question."""
        group, agents = self.group, tuple(self.group.agents[place] for place in self.places)
        return Group(group.name, agents, (), group.spec, group.width, group.members, group.floats)


def deciders_of(env: HeronEnv, groups: Mapping[str, Group], others: Policies) -> tuple[Decider, ...]:
    """The policies of the observed groups' agents: `others` by agent, group or "*", else the agents' own.

    Raises UnknownAgent for a key of `others` that names nobody who decides.
    """
    chosen = _chosen(env, others)
    found: list[Decider] = []
    for group in (groups[name] for name in env.group_map):
        by_policy: dict[tuple[int, Source], tuple[AnyPolicy, list[int]]] = {}
        for place, (rank, agent) in enumerate(zip(group.ranks, group.agents, strict=True)):
            own = env.hierarchy.agents[rank].policy
            given, source = chosen.get(agent), Source.EXPLICIT
            if given is None and own is not None:
                given, source = own, Source.POLICY
            if given is not None:
                require_batchable(given, f"others: the policy of {agent!r}")
                by_policy.setdefault((id(given), source), (given, []))[1].append(place)
        for (_, source), (policy, places) in by_policy.items():
            found.append(Decider(group, tuple(places), policy, source, env))
    return tuple(found)


def require_batchable(policy: AnyPolicy, where: str) -> None:
    """Raise ConfigError for a policy that batches can't ask, or whose episodes they can't tell it of."""
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
            known = [name for name in named if name != "*"]
            raise UnknownAgent(
                f"others: {key!r} decides nothing here; there are {known[:12]}.{did_you_mean(key, known)}"
            )
        require_policy(others[key], f"others[{key!r}]")
    pairs: Iterator[tuple[str, AnyPolicy]] = (
        (agent, others[key]) for key in named if key in others for agent in named[key]
    )
    return dict(pairs)
