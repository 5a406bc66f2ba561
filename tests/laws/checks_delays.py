"""The law of whole steps: an event-driven run that is late by them is the synchronous one that acts on what was.

An agent that sees `o` steps late and whose decisions take effect `a` steps late acts in step s by what it decided in
step s - a, on what there was to see in step s - a - o. Its own columns, and what others are relative to, are of the
decision if it reads itself (T19). Before that it does nothing.
"""

from typing import Any

import numpy as np
from small_worlds import LawEnv
from strategies import Recipe

from heron_env import ScheduleConfig


def check_whole_steps(recipe: Recipe, seeing: int, acting: int, own_rows: str = "proxy", seed: int = 0) -> None:
    """The truth at every boundary, rewards and ends are equal, bit for bit."""
    late, silent = recipe.build(watch=True), (seeing + acting) * recipe.dt
    schedule = ScheduleConfig(obs_delay=seeing * late.dt, act_delay=acting * late.dt, own_rows=own_rows)
    event = late.run_event_driven(recipe.policies(late), seed=seed, schedule=schedule)
    prompt = recipe.build(ScheduleConfig(phase=silent), watch=True)
    simulation, policies, index = prompt.simulation, recipe.policies(prompt), prompt.hierarchy.index
    views, received = simulation.model.plan.views, list[list[Any]]()
    rewards: dict[str, Any] = {agent: [] for agent in prompt.possible_agents}

    def action(agent: str) -> Any:
        view = views[index[agent]]
        vector = received[-1 - acting - seeing][index[agent]].copy()
        if own_rows == "local":
            vector[: view.own] = received[-1 - acting][index[agent]][: view.own]
        return policies[agent](view.as_differences(vector.astype(view.carried)).astype(np.float32))

    prompt.reset(seed=seed)
    while prompt.agents:
        received.append([view.receive(simulation.truth, simulation.moment) for view in views])
        acts = prompt.agents if simulation.time >= silent else []
        for agent, reward in prompt.step({agent: action(agent) for agent in acts})[1].items():
            rewards[agent].append((simulation.time, reward))
    assert {agent: event.rewards[agent] for agent in rewards} == rewards
    assert_same_boundaries(late, prompt)


def assert_same_boundaries(a: LawEnv, b: LawEnv) -> None:
    """The truth at every boundary, and who is alive at the end, are the same."""
    assert len(a.boundaries) == len(b.boundaries)
    for (time, _, mine), (_, _, theirs) in zip(a.boundaries, b.boundaries, strict=True):
        differ = np.flatnonzero(mine.view(np.int64) != theirs.view(np.int64))
        assert not len(differ), f"at {time} s these differ: {[a.state_names[column] for column in differ]}"
    assert a.simulation.alive == b.simulation.alive
