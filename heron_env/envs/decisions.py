"""Who decides, in both clocks (T10, T11): policies by agent, group or "*", and commands handed down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import AnyPolicy, DecideAt, Policies, Policy, StatePolicy, decide_with
from heron_env.envs.simulation import Simulation
from heron_env.errors import ConfigError, InvalidAction, UnknownAgent, did_you_mean

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

Vectors = dict[int, NDArray[np.float64]]
"""Action vectors (float64 `[size]`) by rank."""


class Source(IntEnum):
    """Where an agent's decision came from; the code in `infos[agent]["decision"]`."""

    NONE = 0
    EXPLICIT = 1
    POLICY = 2
    COMMAND = 3
    NOOP = 4
    HELD = 5


WORDS = {
    Source.NONE: "nothing decided yet",
    Source.EXPLICIT: "the caller's action",
    Source.POLICY: "the agent's own policy",
    Source.COMMAND: "its coordinator's command",
    Source.NOOP: "no action and no policy: the no-op",
    Source.HELD: "not its turn: the last set-point holds",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """The last decision of an agent: its source, and the same in words."""

    source: Source

    @property
    def reason(self) -> str:
        """Why, in words."""
        return WORDS[self.source]


def resolve_policies(policies: Policies, env: HeronEnv) -> dict[int, DecideAt]:
    """The deciding function of each deciding agent, by rank.

    `"*"` means the possible agents without an entry of their own, never commanded ones. A possible agent's own
    policy stands in where nothing is given. Raises UnknownAgent for a wrong key, ConfigError where one has nothing.
    """
    if not isinstance(policies, Mapping):
        raise ConfigError(f"policies={policies!r}: must be a mapping; write {{'*': policy}} for one that all share")
    hierarchy, groups, possible, specs = env.hierarchy, env.groups, env.simulation.possible, env.simulation.specs
    chosen: dict[int, DecideAt] = {}
    named = [*groups, *hierarchy.ids]
    for key in policies:
        if key != "*" and key not in groups and key not in hierarchy.index:
            raise UnknownAgent(
                f"policies: {key!r} is neither an agent nor a group; there are {named[:12]}.{did_you_mean(key, named)}"
            )
    if "*" in policies:
        chosen.update((rank, _decide(env, rank, policies["*"], "*")) for rank in possible)
    for key in [k for k in policies if k in groups] + [k for k in policies if k in hierarchy.index]:
        for agent_id in groups.get(key, (key,)):
            rank = hierarchy.index[agent_id]
            if not specs[rank].size:
                raise ConfigError(f"policies[{key!r}]: {agent_id!r} has no action to decide; remove it")
            chosen[rank] = _decide(env, rank, policies[key], key)
    for rank, agent in enumerate(hierarchy.agents):
        if rank not in chosen and rank in possible and agent.policy is not None:
            chosen[rank] = decides(env, rank, agent.policy)
    missing = [hierarchy.ids[rank] for rank in possible if rank not in chosen]
    if missing:
        raise ConfigError(f"no policy for {missing}: give one by id, by group {list(groups)} or for '*'")
    return chosen


def decides(env: HeronEnv, rank: int, policy: AnyPolicy) -> DecideAt:
    """How a policy decides for an agent: a function of what it sees and of the turn."""
    return decide_with(policy, lambda: env.shown_to(rank))


def _decide(env: HeronEnv, rank: int, policy: AnyPolicy, key: str) -> DecideAt:
    if not callable(policy) and not isinstance(policy, Policy | StatePolicy):
        raise ConfigError(
            f"policies[{key!r}]={policy!r}: a policy has forward(observation) or decide_action(state), "
            "or is a function of the vector"
        )
    return decides(env, rank, policy)


def shares(simulation: Simulation, rank: int, values: NDArray[np.float64]) -> Vectors:
    """What a coordinator's joint action means for each commanded child, by rank."""
    protocol, children = simulation.hierarchy.agents[rank].protocol, simulation.hierarchy.children[rank]
    if protocol is None:
        return {}
    specs = [simulation.specs[child] for child in children]
    parts = protocol.split(values, specs)
    return {child: part for child, part, spec in zip(children, parts, specs, strict=True) if spec.size}


def deciding(env: HeronEnv, named: Mapping[int, Any]) -> list[int]:
    """Ranks among `named` whose turn it is in the coming synchronous step: by their own ticks, or their commander's."""
    return [
        rank for rank in sorted(named) if env.simulation.alive[rank] and env.is_active(clock_of(env.simulation, rank))
    ]


def clock_of(simulation: Simulation, rank: int) -> int:
    """The agent whose ticks count for this one: the topmost of the chain of commanders above it, or itself (T10)."""
    while simulation.commanded[rank]:
        rank = simulation.hierarchy.parent[rank]
    return rank


def decide(env: HeronEnv, actions: Mapping[str, Any]) -> Vectors:
    """Every agent's action in a synchronous step, by rank, top-down; those that hold are absent."""
    simulation = env.simulation
    given: Vectors = {}
    try:
        named = actions.items()
    except AttributeError:
        example = f"{{{env.agents[0]!r}: action}}"
        raise InvalidAction(f"step({actions!r}): must map agents to actions; write {example}") from None
    for agent_id, value in named:
        rank = env.hierarchy.rank(agent_id, "step() got an action for")
        given[rank] = simulation.specs[rank].parse(value, agent_id)
    decided: Vectors = {}
    commands: Vectors = {}
    sources = list(env.decided)
    for rank, spec in enumerate(simulation.specs):
        if spec.size and simulation.alive[rank]:
            sources[rank], values = _decide_one(env, rank, given, commands)
            if values is not None:
                decided[rank] = values
                commands.update(shares(simulation, rank, values))
    env.decided = sources
    return decided


def _decide_one(
    env: HeronEnv, rank: int, given: Vectors, commands: Vectors
) -> tuple[Source, NDArray[np.float64] | None]:
    simulation = env.simulation
    if not env.is_active(clock_of(simulation, rank)):
        return Source.HELD, None
    if rank in given:
        return Source.EXPLICIT, given[rank]
    if rank in commands:
        return Source.COMMAND, commands[rank]
    agent, spec = env.hierarchy.agents[rank], simulation.specs[rank]
    if simulation.commanded[rank]:
        return Source.HELD, None
    if agent.policy is None:
        return Source.NOOP, spec.noop.copy()
    vector = simulation.plan.vector(rank, simulation.truth, simulation.moment)
    action = decides(env, rank, agent.policy)(vector, simulation.step_index)
    return Source.POLICY, spec.parse(action, agent.agent_id)
