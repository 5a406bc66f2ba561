"""What is kept of an episode: the return of the root, and beside it what each group earned."""

import pytest
from lab.dropping import drones
from lab.pushing import Push

from heron_env import make, team_return
from heron_env.lab.episodes import Earned, groups_apart, outcome

GRID = "heron/BatteryGrid-v0"
OPTIONS = {"max_steps": 20}


@pytest.mark.parametrize("size", [0.5, -0.5])
def test_the_team_return_counts_each_amount_once(size: float):
    env = make(GRID, **OPTIONS)
    result = env.run_synchronous(Push(size).build(env, 0), seed=0)
    assert team_return(env, result) == pytest.approx(sum(result.returns[a] for a in env.possible_agents))


@pytest.mark.parametrize("fee", [0.0, -1.0])
def test_the_team_return_is_the_roots_in_every_episode_whatever_it_comes_to(fee: float):
    """Also where it is 0: a sweep would else compare the root in one case with its children in another."""
    env = drones(fee=fee)
    result = env.run_synchronous(Push(1.0).build(env, 0), seed=0)
    assert team_return(env, result) == result.returns["tower"] == 3 * fee
    assert result.returns["drone_1"] == 30.0


def test_the_return_of_each_group_is_kept_beside_it_summed_over_its_agents():
    env = drones(fee=-1.0)
    kept = outcome(env, env.run_synchronous(Push(1.0).build(env, 0), seed=0))
    assert (kept.value, kept.by_group) == (-3.0, {"wing": 0.0, "drone": 60.0, "mast": 6.0})


def test_all_groups_are_shown_where_one_ever_earns_something_else_than_the_root_by_more_than_rounding():
    same, other = Earned(0.3, {"zone": 0.1 + 0.2, "drone": 0.3}), Earned(2.0, {"zone": 2.0, "drone": 3.0})
    assert groups_apart([same, other]) == ["zone", "drone"]
    assert groups_apart([same]) == []
