"""An environment in mid-episode can be saved, copied and pickled, and goes on the same."""

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import heron_env
from heron_env import (
    Action,
    FeatureProvider,
    FieldAgent,
    FieldAgentState,
    HeronEnv,
    ScheduleConfig,
    SystemAgent,
    World,
    make,
)
from heron_env.errors import ConfigError, HierarchyError, ResetNeeded


class Drift(FeatureProvider):
    x: float = 0.0


class ByHand(FieldAgent):
    def init_state(self) -> None:
        self.state = FieldAgentState(self.agent_id, 1, [Drift()])

    def init_action(self) -> None:
        self.action = Action()
        self.action.set_specs(dim_c=1)

    def apply_action(self) -> None:
        self.state.features[0].x += self.action.c[0]

    def compute_local_reward(self, local_state: Any) -> float:
        return local_state["Drift"].x


class Drawn(HeronEnv):
    """Draws in every hook, and keeps a series that only `begin` makes."""

    def begin(self, world: World) -> None:
        self.series = world.draw("series", 50)
        world[ByHand].Drift.x = world.draw("start", 2)

    def finish(self, world: World) -> None:
        world[ByHand].Drift.x += self.series[world.step] + world.draw("step", 2)


def drawn() -> HeronEnv:
    schedule = {"b_2": ScheduleConfig(tick_interval=2.0)}
    return Drawn(SystemAgent("s", ByHand("b_1"), ByHand("b_2")), max_steps=20, schedule=schedule)


def grid() -> HeronEnv:
    return heron_env.make("heron/BatteryGrid-v0", num_batteries=3, zone_size=2, control="zone", max_steps=20)


def course(env: HeronEnv, steps: int) -> list[Any]:
    rows = []
    for k in range(steps):
        actions = {a: np.full(env.action_space(a).shape, np.sin(k + 1.0)) for a in env.agents}
        obs, rewards, *rest = env.step(actions)
        rows.append(({a: o.tolist() for a, o in obs.items()}, rewards, str(rest)))
    return rows


def through_state(env: HeronEnv) -> HeronEnv:
    other = drawn() if isinstance(env, Drawn) else grid()
    other.reset(seed=99)
    other.set_state(env.get_state())
    return other


def through_pickled_state(env: HeronEnv) -> HeronEnv:
    other = drawn() if isinstance(env, Drawn) else grid()
    other.set_state(pickle.loads(pickle.dumps(env.get_state())))
    return other


WAYS = [through_state, through_pickled_state, copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))]


@pytest.mark.parametrize("build", [drawn, grid])
@pytest.mark.parametrize("way", WAYS, ids=["state", "pickled state", "deepcopy", "pickle"])
def test_a_copy_goes_on_like_the_original(build: Callable[[], HeronEnv], way: Callable[[HeronEnv], HeronEnv]):
    env = build()
    env.reset(seed=3)
    course(env, 5)
    twin = way(env)
    assert twin.agents == env.agents
    assert np.array_equal(twin.state(), env.state())
    assert twin.last_decisions == env.last_decisions
    assert course(twin, 6) == course(env, 6)
    assert [o.tolist() for o in twin.reset()[0].values()] == [o.tolist() for o in env.reset()[0].values()], (
        "next episode"
    )


@pytest.mark.parametrize("way", WAYS[2:], ids=["deepcopy", "pickle"])
def test_a_copy_shares_nothing_with_the_original(way: Callable[[HeronEnv], HeronEnv]):
    env = grid()
    env.reset(seed=3)
    twin, before = way(env), env.state()
    course(twin, 3)
    assert np.array_equal(env.state(), before)
    assert not np.array_equal(twin.state(), before)


def test_a_snapshot_is_a_copy():
    env = grid()
    env.reset(seed=0)
    state, before = env.get_state(), env.state()
    course(env, 2)
    env.set_state(state)
    assert np.array_equal(env.state(), before)


def test_before_the_first_reset_a_copy_needs_one_too():
    twin = copy.deepcopy(grid())
    with pytest.raises(ResetNeeded, match=re.escape("step(): no episode is running; call reset() first")):
        twin.step({})


def test_a_state_of_another_environment_is_refused():
    env = grid()
    env.reset(seed=0)
    message = "set_state(): the state has 6 columns, this environment 4; build them alike"
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        heron_env.make("heron/BatteryGrid-v0").set_state(env.get_state())


def test_one_tree_of_agents_serves_one_environment():
    system = make("heron/BatteryGrid-v0").system
    with pytest.raises(HierarchyError) as error:
        HeronEnv(system)
    assert str(error.value) == (
        "SystemAgent('system_agent') belongs to another environment already; build its agents anew for each"
    )
