"""The proxy: standing alone with free States, or serving an environment."""

import re

import numpy as np
import pytest
from small_worlds import Price

import heron_env
from heron_env import (
    Continuous,
    CoordinatorAgentState,
    FeatureProvider,
    FieldAgent,
    FieldAgentState,
    HeronEnv,
    ProxyAgent,
    SystemAgent,
    SystemAgentState,
    quantity,
)
from heron_env.errors import UnknownAgent
from heron_env.worlds import battery_grid


class Charge(FeatureProvider):
    visibility = ("public",)
    soc: float = quantity(default=0.5, low=0.0, high=1.0)


class Plan(FeatureProvider):
    visibility = ("owner",)
    target: float = 0.8


def alone() -> ProxyAgent:
    proxy = ProxyAgent()
    proxy.register_agent("battery_1", agent_state=FieldAgentState("battery_1", 1, [Charge()]))
    proxy.register_agent("battery_2", agent_state=FieldAgentState("battery_2", 1, [Charge(soc=0.25)]))
    proxy.register_agent("zone_1", agent_state=CoordinatorAgentState("zone_1", features=[Plan()]))
    proxy.register_agent("system_agent", agent_state=SystemAgentState("system_agent"))
    return proxy


def test_a_free_proxy_answers_by_tags_and_levels():
    proxy = alone()
    assert proxy.get_local_state("battery_1")["Charge"].tolist() == [0.5]
    others = proxy.get_global_states("battery_1")
    assert {a: {f: v.tolist() for f, v in features.items()} for a, features in others.items()} == {
        "battery_2": {"Charge": [0.25]}
    }
    assert proxy.get_local_state("zone_1")["Plan"].target == 0.8
    assert proxy.agent_levels == {"battery_1": 1, "battery_2": 1, "zone_1": 2, "system_agent": 3}
    proxy.time = 4.0
    o = proxy.get_observation("battery_1")
    assert (o.timestamp, o.vector().tolist()) == (4.0, [0.5, 0.25])


def test_a_free_proxy_stores_state_objects_and_global_features():
    proxy = alone()
    state = FieldAgentState("battery_1", 1, [Charge(soc=0.9)])
    proxy.set_local_state("battery_1", state)
    assert proxy.state_cache["agents"]["battery_1"] is state
    proxy.state_cache["global"].features.append(Price())
    proxy.set_global_state({"Price": {"value": 0.4}})
    assert proxy.get_global_states("zone_1")["global"]["Price"].tolist() == [0.4]


def test_an_unknown_agent_is_named_wherever_it_is_asked_for():
    proxy = alone()
    known = list(proxy.state_cache["agents"])
    for ask in (proxy.get_local_state, proxy.get_global_states, proxy.get_observation):
        with pytest.raises(
            UnknownAgent, match=re.escape(f"got 'batery_1'; this proxy knows {known}. Did you mean 'battery_1'?")
        ):
            ask("batery_1")
    with pytest.raises(UnknownAgent, match=re.escape("set_local_state() got 'x'; this proxy knows")):
        proxy.set_local_state("x", FieldAgentState("x"))


def test_in_an_environment_the_cache_is_the_truth_and_states_are_windows_on_it():
    env = heron_env.make("heron/BatteryGrid-v0", num_batteries=2)
    env.reset(seed=0)
    proxy = env.proxy
    assert proxy.cache is env.simulation.truth
    env.world[battery_grid.Battery].BatteryChargeFeature.soc = [0.1, 0.2]
    assert proxy.state_cache["agents"]["battery_2"].features[0].soc == 0.2
    assert proxy.get_local_state("battery_1")["BatteryChargeFeature"][0] == 0.1
    proxy.set_local_state(
        "battery_1",
        FieldAgentState("battery_1", 1, [type(proxy.state_cache["agents"]["battery_1"].features[0])(soc=0.7)]),
    )
    assert env.world[battery_grid.Battery].BatteryChargeFeature.soc[0] == 0.7


def test_a_state_of_an_environment_answers_from_its_plan_not_from_levels():
    env = heron_env.make("heron/BatteryGrid-v0", num_batteries=2, zone_size=1, scope="parent")
    env.reset(seed=0)
    state = env.proxy.state_cache["agents"]["battery_1"]
    assert list(state.observed_by("battery_1", 1)) == ["BatteryChargeFeature"]
    assert list(state.observed_by("zone_1", 2)) == ["BatteryChargeFeature"]
    assert state.observed_by("zone_2", 2) == {}, "level 2, but not its parent"
    free = FieldAgentState("battery_1", 1, [state.features[0]])
    assert list(free.observed_by("zone_2", 2)) == ["BatteryChargeFeature"], "a free state knows no parent"


def test_a_newer_report_is_taken_an_older_or_equal_one_not():
    env = heron_env.make("heron/BatteryGrid-v0", num_batteries=1)
    env.reset(seed=0)
    env.proxy.keep(env.simulation.truth.copy())
    rank = env.hierarchy.index["battery_1"]
    assert env.proxy.receive(rank, 5, 100, np.array([0.6, 100.0]))
    assert not env.proxy.receive(rank, 5, 200, np.array([0.7, 100.0]))
    assert not env.proxy.receive(rank, 4, 300, np.array([0.8, 100.0]))
    assert env.proxy.get_local_state("battery_1")["BatteryChargeFeature"].soc == 0.6
    assert env.proxy.as_of[rank] == 100
    assert env.world[battery_grid.Battery].BatteryChargeFeature.soc[0] == 0.5, "no report ever writes the truth"


def test_step_results_cover_all_agents():
    env = heron_env.make("heron/BatteryGrid-v0", num_batteries=2)
    env.reset(seed=0)
    obs, *_ = env.step({})
    kept, rewards, terminated, truncated, infos = env.proxy.get_step_results()
    assert {a: v.tolist() for a, v in kept.items()} == {a: v.tolist() for a, v in obs.items()}
    for results in (rewards, terminated, truncated, infos):
        assert list(results) == list(env.hierarchy.ids)


def test_what_an_agent_gets_of_itself_has_nothing_of_others_behind_it():
    """Its own features are exact, and so was the array they were cut from: others' columns before any noise."""
    told = []

    class Teller(FieldAgent):
        features = (Charge,)
        action = Continuous(-1.0, 1.0)

        def compute_local_reward(self, local_state):
            told.append(local_state["Charge"])
            return 0.0

    noisy = {"default": {"level": "insider", "noise": 0.5}}
    env = HeronEnv(SystemAgent("s", Teller("a"), Teller("b", Charge(soc=0.8125))), observability=noisy)
    env.reset(seed=0)
    env.step({})
    told += [env.proxy.get_local_state("a")["Charge"], env.proxy.get_observation("a").local["Charge"]]
    told.append(env.proxy.state_cache["agents"]["a"].observed_by("a", 1)["Charge"])
    assert len(told) == 5
    for vector in told:
        while isinstance(vector.base, np.ndarray):
            vector = vector.base
        assert vector.size == 1
