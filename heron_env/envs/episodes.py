"""A whole episode in the synchronous clock, with the same policies and the same result as in the event-driven one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env.core.policy import Policies
from heron_env.envs.answering import Taken, begin_policies, mates_of, put_in_step
from heron_env.envs.decisions import decides, deciding, own_policies, resolve_policies
from heron_env.envs.ownership import DECISION, EVERYTHING, NOTHING
from heron_env.envs.results import EpisodeResult
from heron_env.scheduling.disturbances import Disturbance
from heron_env.scheduling.timing import to_seconds

if TYPE_CHECKING:
    from heron_env.envs.synchronous import SynchronousEnv


def run_episode(
    env: SynchronousEnv,
    policies: Policies,
    *,
    seed: int | None,
    record: frozenset[str],
    disturbances: Sequence[Disturbance] = (),
) -> EpisodeResult:
    """Run `env` to the end of its episode, as its owner (T21). Raises ConfigError if nothing ever ends it."""
    simulation, ids, owned = env.simulation, env.hierarchy.ids, env._ownership
    chosen = resolve_policies(policies, env)
    deciders: dict[int, Any] = {rank: decides(env, rank, policy) for rank, policy in chosen.items()}
    mates = mates_of(deciders)
    simulation.require_end("run_synchronous()")
    owned.lent = EVERYTHING
    env.reset(seed=seed, options={"disturbances": disturbances} if disturbances else None)
    simulation.post.readers = frozenset(mates)
    begun = {id(policy) for policy in own_policies(env)}
    begin_policies((policy for policy in chosen.values() if id(policy) not in begun), env._seed, env._episode)
    acting = [ids[rank] for rank, spec in enumerate(simulation.specs) if spec.size]
    observing = [ids[rank] for rank in sorted(deciders)] if "observations" in record else []
    masks = sorted(simulation.masks.ranks)
    result = EpisodeResult.blank(ids, acting, observing, [ids[rank] for rank in masks])
    result.await_answers(ids[rank] for rank in mates)
    while not simulation.over:
        time, actions = simulation.time, {}
        mark, owned.lent = owned.mark, DECISION
        active = deciding(env, deciders)
        taken: dict[int, Taken] = {}
        if mates:
            awake, env._origins = set(active), {}
        for rank in active:
            vector, turn = env.seen_by(rank)
            if rank in mates:
                if rank not in taken:
                    taken |= put_in_step(env, [mate for mate in mates[rank] if mate.rank in awake])
                actions[ids[rank]] = taken[rank].action
                result.note_origin(ids[rank], time, taken[rank].origin)
            else:
                actions[ids[rank]] = deciders[rank](vector.copy(), turn, partial(env.draw_in_step, rank, turn))
            owned.require(mark, ids[rank], time)
            if "observations" in record:
                result.observations[ids[rank]].append((to_seconds(turn * env.dt_ns), vector))
        owned.lent, alive = NOTHING, list(simulation.alive)
        outcome = env.advance_step(actions)
        if not simulation.everyone:
            env.agents = [agent for agent in env.agents if simulation.alive[env.hierarchy.index[agent]]]
        masked = simulation.mechanics.masked if masks else ()
        for rank in masks:
            result.masked[ids[rank]] += masked[rank]
        if "actions" in record:
            for rank, values in simulation.mechanics.decided.items():
                result.actions[ids[rank]].append((time, np.array(values)))
        for rank, agent in enumerate(ids):
            if alive[rank]:
                result.rewards[agent].append((outcome.time, outcome.rewards[rank]))
                result.terminated[agent] |= outcome.terminated[rank]
                result.truncated[agent] |= outcome.truncated[rank]
    env.agents = []
    result.end_time = simulation.time
    result.letters, result.kpis = simulation.post.counts(), env.kpis()
    if "rewards" not in record:
        result.rewards = {a: [(result.end_time, total)] for a, total in result.returns.items()}
    return result
