"""What is kept of an episode: the return of the team."""

import pytest
from lab.pushing import Push

from heron_env.lab.episodes import team_return
from heron_env.registry import make

GRID = "heron/BatteryGrid-v0"
OPTIONS = {"max_steps": 20}


@pytest.mark.parametrize("size", [0.5, -0.5])
def test_the_team_return_counts_each_amount_once(size: float):
    env = make(GRID, **OPTIONS)
    result = env.run_synchronous(Push(size).build(env, 0), seed=0)
    assert team_return(env, result) == pytest.approx(sum(result.returns[a] for a in env.possible_agents))


def test_where_the_system_agent_is_paid_nothing_the_deciding_agents_count():
    env = make(GRID, **OPTIONS)
    result = env.run_synchronous(Push(0.5).build(env, 0), seed=0)
    total = team_return(env, result)
    result.rewards["system_agent"] = [(t, 0.0) for t, _ in result.rewards["system_agent"]]
    assert team_return(env, result) == pytest.approx(total)
