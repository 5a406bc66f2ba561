"""Who decides, in both clocks (T10, T11): the caller, else a coordinator's command, else the agent's own policy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import (
    AnsweringPolicy,
    AnyPolicy,
    DecideAt,
    Origin,
    Policies,
    Policy,
    StatePolicy,
    decide_with,
    wants_running,
)
from heron_env.engine import tables
from heron_env.envs.answering import Asking, InWords, not_running, put_in_step
from heron_env.envs.ownership import DECISION, NOTHING
from heron_env.envs.simulation import Simulation
from heron_env.errors import ConfigError, InvalidAction, UnknownAgent, did_you_mean

if TYPE_CHECKING:
    from heron_env.envs.synchronous import SynchronousEnv

Vectors = dict[int, NDArray[np.float64]]
"""Action vectors (float64 `[size]`) by rank."""


class Source(IntEnum):
    """Source of an agent's decision: the code in `infos[agent]["decision"]`."""

    NONE = 0
    EXPLICIT = tables.EXPLICIT
    POLICY = tables.POLICY
    COMMAND = tables.COMMAND
    NOOP = tables.NOOP
    HELD = tables.HELD
    EXTERNAL = 6
    FALLBACK = 7
    REPLAY = 8
    PLAN = tables.PLAN


ANSWERED = {"external": Source.EXTERNAL, "fallback": Source.FALLBACK, "replay": Source.REPLAY}
"""Codes of decisions whose policies say where their answers came from (Origin.source)."""
WORDS = {
    Source.NONE: "nothing decided yet",
    Source.EXPLICIT: "the caller's action",
    Source.POLICY: "the agent's own policy",
    Source.COMMAND: "its coordinator's command",
    Source.NOOP: "no action and no policy, or it has crashed: the no-op",
    Source.HELD: "not its turn, or it has crashed: the last set-point holds",
    Source.EXTERNAL: "the answer of an endpoint",
    Source.FALLBACK: "what stands in for an endpoint that failed",
    Source.REPLAY: "a recorded answer",
    Source.PLAN: "the plan in force",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """The last decision of an agent: its source, and the same in words.

    masked: did it hold a choice that was forbidden when it fell, so that the no-op fell?
    origin: of an answer, where its policy told.
    """

    source: Source
    masked: bool = False
    origin: Origin | None = None

    @property
    def reason(self) -> str:
        """Why, in words."""
        return WORDS[self.source] + ("; a choice was forbidden when it fell, the no-op fell" if self.masked else "")


def last_decisions(simulation: Simulation, origins: Mapping[int, Origin]) -> dict[str, Decision]:
    """Where each acting agent's last decision came from, with the reason in words; `origins` by rank."""
    lane, codes = simulation.lane, set(ANSWERED.values())
    each = zip(simulation.model.hierarchy.ids, map(Source, lane.sources), lane.masked, strict=True)
    return {
        agent: Decision(source, masked, origins.get(rank) if source in codes else None)
        for rank, (agent, source, masked) in enumerate(each)
        if simulation.model.specs[rank].size
    }


Deciders = dict[int, DecideAt | Asking]
"""How each deciding agent comes to its action, by rank: a function, or a policy that knows who asks."""


def resolve_policies(policies: Policies, env: SynchronousEnv) -> dict[int, AnyPolicy]:
    """The policy of each deciding agent, by rank.

    `"*"` means the possible agents without an entry of their own, never commanded or injected ones. A possible agent's
    own policy stands in where nothing is given. Raises UnknownAgent for a wrong key, ConfigError where one has nothing.
    """
    hierarchy, specs = env.hierarchy, env.simulation.model.specs
    chosen = policies_by_agent(
        policies, hierarchy.ids, env.groups,
        {hierarchy.ids[rank]: hierarchy.agents[rank].policy for rank in env.simulation.model.possible},
        injected={agent.agent_id for agent in hierarchy.agents if agent.injected},
        passive={hierarchy.ids[rank] for rank, spec in enumerate(specs) if not spec.size},
    )  # fmt: skip
    return {hierarchy.index[agent_id]: policy for agent_id, policy in chosen.items()}


def policies_by_agent(
    policies: Policies, ids: Sequence[str], groups: Mapping[str, Sequence[str]], possible: Mapping[str, Any], *,
    injected: Collection[str] = (), passive: Collection[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """The policy of each agent. `possible`: those that need one, and their own policies or None.

    `injected` ones are not meant by "*"; `passive` ones have no action. Raises UnknownAgent, ConfigError.
    """
    if not isinstance(policies, Mapping):
        raise ConfigError(f"policies={policies!r}: must be a mapping; write {{'*': policy}} for one that all share")
    named, chosen = list(dict.fromkeys((*groups, *ids))), dict(possible)
    accepted = {"*", *named}
    for key in policies:
        if key not in accepted:
            near = did_you_mean(key, named)
            raise UnknownAgent(f"policies: {key!r:.60} is neither an agent nor a group; there are {named[:12]}.{near}")
    if "*" in policies:
        require_policy(policies["*"], "policies['*']")
        chosen |= {agent_id: policies["*"] for agent_id in possible if agent_id not in injected}
    for key in sorted((key for key in policies if key != "*"), key=lambda key: key not in groups):
        require_policy(policies[key], f"policies[{key!r}]")
        for agent_id in groups.get(key, (key,)):
            if agent_id in passive:
                raise ConfigError(f"policies[{key!r}]: {agent_id!r} has no action to decide; remove it")
            chosen[agent_id] = policies[key]
    if missing := [agent_id for agent_id, policy in chosen.items() if policy is None]:
        raise ConfigError(f"no policy for {missing}: give one by id, by group {list(groups)} or for '*'")
    return chosen


def decides(env: SynchronousEnv, rank: int, policy: AnyPolicy) -> DecideAt | Asking:
    """How a policy decides for an agent: a function of what it sees and of the turn, or a policy that is asked."""
    if not hasattr(policy, "answer"):  # all that makes an AnsweringPolicy
        if not wants_running(policy):
            return decide_with(policy, lambda: env.shown_to(rank), env.simulation.masks.offer(rank))
        policy = InWords(env, rank, policy)
    asking = env._asking.get(rank)
    if asking is None or asking.policy is not policy:
        env._asking[rank] = asking = Asking(env, rank, env.simulation.model.clocks[rank], cast(AnsweringPolicy, policy))
    asking.running = not_running  # that of another run
    return asking


def require_policy(policy: object, where: str) -> None:
    """Raise ConfigError for what can't decide."""
    if not callable(policy) and not isinstance(policy, Policy | StatePolicy | AnsweringPolicy):
        raise ConfigError(
            f"{where}={policy!r}: a policy has forward(observation), decide_action(state) or answer(asked), "
            "or is a function of the vector"
        )


def own_policies(env: SynchronousEnv) -> list[AnyPolicy]:
    """Those that possible agents bring themselves."""
    agents = (env.hierarchy.agents[rank] for rank in env.simulation.model.possible)
    return [agent.policy for agent in agents if agent.policy is not None]


def deciding(env: SynchronousEnv, named: Mapping[int, Any]) -> list[int]:
    """Ranks among `named` whose turn it is in the coming synchronous step: by their own ticks, or their commander's."""
    simulation = env.simulation
    clocks, down = simulation.model.clocks, simulation.down
    awake = (rank for rank in sorted(named) if simulation.alive[rank] and rank not in down)
    return [rank for rank in awake if env.is_active(clocks[rank])]


def take(env: SynchronousEnv, actions: Mapping[str, Any], sources: Mapping[int, int]) -> None:
    """Bring the caller's actions and what agents decide by their own policies into the lane.

    `sources`: codes of those of the caller's, by rank, that are not EXPLICIT.
    Raises InvalidAction, UnknownAgent; then nothing has changed, and no letter is written or read.
    """
    post = env.simulation.post
    if post.receivers:
        post.unless_it_fails(_take, env, actions, sources)
    else:
        _take(env, actions, sources)


def _take(env: SynchronousEnv, actions: Mapping[str, Any], sources: Mapping[int, int]) -> None:
    parsed = _parsed(env, actions)
    own = _own(env, parsed)
    answered = {rank: int(ANSWERED[origin.source]) for rank, origin in env._origins.items()}
    env.simulation.lane.take(parsed, own, answered | dict(sources))


def _parsed(env: SynchronousEnv, actions: Mapping[str, Any]) -> Vectors:
    """The caller's actions, checked."""
    try:
        named = actions.items()
    except AttributeError:
        example = f"{{{env.agents[0]!r}: action}}"
        raise InvalidAction(f"step({actions!r}): must map agents to actions; write {example}") from None
    parsed: Vectors = {}
    for agent_id, value in named:
        rank = env.hierarchy.rank(agent_id, "step() got an action for")
        parsed[rank] = env.simulation.model.specs[rank].parse(value, agent_id)
    return parsed


def _own(env: SynchronousEnv, parsed: Vectors) -> Vectors:
    """What agents that were given nothing decide by their own policies."""
    simulation, owned = env.simulation, env._ownership
    mark, owned.lent = owned.mark, DECISION
    own: Vectors = {}
    for rank in simulation.model.possible:
        agent = env.hierarchy.agents[rank]
        if agent.policy is not None and rank not in own and _own_turn(env, rank, parsed):
            decide = decides(env, rank, agent.policy)
            if isinstance(decide, Asking):
                taken = put_in_step(env, _who_asks_with(env, decide, parsed))
                own |= {r: simulation.model.specs[r].parse(t.action, env.hierarchy.ids[r]) for r, t in taken.items()}
                continue
            action = decide(env.seen_by(rank), simulation.step_index, partial(env.draw_in_step, rank))
            owned.require(mark, agent.agent_id, simulation.time)
            own[rank] = simulation.model.specs[rank].parse(action, agent.agent_id)
    owned.lent = NOTHING
    return own


def _own_turn(env: SynchronousEnv, rank: int, parsed: Vectors) -> bool:
    """Does the agent's own policy decide in this step?"""
    return rank not in parsed and env.is_active(rank) and rank not in env.simulation.down


def _who_asks_with(env: SynchronousEnv, first: Asking, parsed: Vectors) -> list[Asking]:
    """Whose own policy is asked together with the `first` agent's in this step, itself among them, by rank."""
    if first.together is None:
        return [first]
    agents = env.hierarchy.agents
    mates = [rank for rank in env.simulation.model.possible if agents[rank].policy is first.policy]
    deciders = (decides(env, rank, first.policy) for rank in mates if _own_turn(env, rank, parsed))
    return [one for one in deciders if isinstance(one, Asking)]
