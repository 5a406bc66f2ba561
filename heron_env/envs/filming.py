"""An episode is filmed while it runs, in either clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env.pictures.footage import Footage, ObservationTaken

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heron_env.envs.synchronous import SynchronousEnv


def footage_of(env: Any, deciding: Iterable[int]) -> Footage:
    """Nothing filmed yet, of agents that decide, by rank."""
    views = env.simulation.plan.views
    return Footage(env, {env.hierarchy.ids[rank]: views[rank].columns for rank in sorted(deciding)})


def film_observation(footage: Footage, env: SynchronousEnv, rank: int, vector: Any) -> None:
    """Keep what an agent sees in the coming synchronous step."""
    simulation, agent = env.simulation, env.hierarchy.ids[rank]
    known = env._late or simulation.course
    ages = np.zeros(len(simulation.plan.views[rank].sources)) if known is None else known.ages(rank)
    taken = ObservationTaken(simulation.time, vector, simulation.time - ages)
    footage.observations.setdefault(agent, []).append(taken)
