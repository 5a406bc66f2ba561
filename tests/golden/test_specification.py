"""The printed examples of the specification, in its imperative style, literally where the design keeps them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from heron_env import (
    Action,
    Continuous,
    CoordinatorAgent,
    FeatureProvider,
    FieldAgent,
    FieldAgentState,
    HeronEnv,
    Observation,
    ProxyAgent,
    State,
    SystemAgent,
    Vector,
    rule,
)


class BatteryChargeFeature(FeatureProvider):
    visibility = ["public"]

    soc: float = 0.5
    capacity: float = 100.0

    def set_values(self, **values: Any) -> None:
        if "soc" in values:
            values["soc"] = np.clip(values["soc"], 0.0, 1.0)
        super().set_values(**values)


class Battery(FieldAgent):
    """As the specification writes it."""

    @property
    def soc(self) -> float:
        return self.state.features[0].soc

    def init_state(self) -> None:
        self.state = FieldAgentState(owner_id=self.agent_id, owner_level=1)
        self.state.features.append(BatteryChargeFeature(soc=0.5, capacity=100.0))

    def init_action(self) -> None:
        self.action = Action()
        self.action.set_specs(dim_c=1, range=([-1.0], [1.0]))
        self.action.set_values(np.array([0.0]))

    def set_action(self, action: Any) -> None:
        self.action.set_values(action)

    def set_state(self) -> None:
        new_soc = self.soc + self.action.c[0] * 0.01
        self.state.features[0].set_values(soc=new_soc)

    def apply_action(self) -> None:
        self.set_state()

    def compute_local_reward(self, local_state: Any) -> float:
        return local_state["BatteryChargeFeature"][0]


class RuledBattery(FieldAgent):
    """The same as rules."""

    features = (BatteryChargeFeature,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=BatteryChargeFeature.soc)
    def apply_action(charge: BatteryChargeFeature, action: Vector) -> float:
        return min(max(charge.soc + action[0] * 0.01, 0.0), 1.0)

    @staticmethod
    @rule
    def compute_local_reward(charge: BatteryChargeFeature) -> float:
        return charge.soc


def grid(
    first: type[FieldAgent] = Battery, second: type[FieldAgent] = Battery, env: type[HeronEnv] = HeronEnv
) -> HeronEnv:
    zone = CoordinatorAgent("zone_1", first("battery_1"), second("battery_2"))
    return env(SystemAgent("system_agent", zone), max_steps=100)


def action_of(value: float) -> Action:
    action = Action()
    action.set_specs(dim_c=1, range=(np.array([-1.0]), np.array([1.0])))
    action.set_values(np.array([value]))
    return action


@pytest.mark.parametrize("second", [Battery, RuledBattery])
@pytest.mark.parametrize("first", [Battery, RuledBattery])
def test_single_step_of_the_complete_example_trace(first: type[FieldAgent], second: type[FieldAgent]):
    env = grid(first, second)
    env.reset(seed=42)
    obs, rewards, terminated, truncated, _ = env.step({"battery_1": action_of(0.3), "battery_2": action_of(-0.2)})
    assert rewards["battery_1"] == pytest.approx(0.503, abs=1e-12)
    assert rewards["battery_2"] == pytest.approx(0.498, abs=1e-12)
    assert obs["battery_1"].tolist() == np.array([0.503, 100.0, 0.498, 100.0], np.float32).tolist()
    assert obs["battery_2"].tolist() == np.array([0.498, 100.0, 0.503, 100.0], np.float32).tolist()
    assert not any((*terminated.values(), *truncated.values()))
    local = env.proxy.get_local_state("battery_1")
    assert list(local) == ["BatteryChargeFeature"]
    assert local["BatteryChargeFeature"].tolist() == pytest.approx([0.503, 100.0], abs=1e-12)
    o = env.proxy.get_observation("battery_1")
    assert o.timestamp == 1.0
    assert list(o.global_info) == ["battery_2"], "the coordinator has nothing to show"
    assert o.global_info["battery_2"]["BatteryChargeFeature"].tolist() == pytest.approx([0.498, 100.0], abs=1e-12)


def test_both_styles_give_the_same_numbers_bit_for_bit():
    runs = []
    for first, second in (
        (Battery, Battery),
        (RuledBattery, RuledBattery),
        (Battery, RuledBattery),
        (RuledBattery, Battery),
    ):
        env = grid(first, second)
        env.reset(seed=0)
        rng, course = np.random.default_rng(0), []
        for _ in range(50):
            obs, rewards, *_ = env.step({agent: rng.uniform(-1, 1, 1) for agent in env.agents})
            course.append((rewards, {a: v.tolist() for a, v in obs.items()}))
        sync = env.run_synchronous({"*": lambda v: np.sin(50 * v[:1])}, seed=0)
        assert env.run_event_driven({"*": lambda v: np.sin(50 * v[:1])}, seed=0).same_course(sync)
        runs.append((course, sync.rewards))
    assert runs[0] == runs[1] == runs[2] == runs[3]


def test_state_object_structure_and_operations():
    state = FieldAgentState(owner_id="battery_1", owner_level=1)
    state.features = [BatteryChargeFeature(soc=0.5, capacity=100.0)]
    assert (state.owner_id, state.owner_level, len(state.features)) == ("battery_1", 1, 1)
    state.features[0].soc = 0.53
    assert state.to_dict() == {"BatteryChargeFeature": {"soc": 0.53, "capacity": 100.0}}
    serialized = state.to_dict(include_metadata=True)
    assert serialized == {
        "_owner_id": "battery_1",
        "_owner_level": 1,
        "_state_type": "FieldAgentState",
        "features": {"BatteryChargeFeature": {"soc": 0.53, "capacity": 100.0}},
    }
    rebuilt = State.from_dict(serialized, near=[BatteryChargeFeature])
    assert isinstance(rebuilt, FieldAgentState)
    assert rebuilt.to_dict() == state.to_dict()
    state.update_feature("BatteryChargeFeature", soc=0.8)
    assert state.features[0].soc == 0.8
    state.update({"BatteryChargeFeature": {"soc": 1.8}})
    assert state.features[0].soc == 1.0, "np.clip(…, 0, 1) of the example's set_values"
    assert state.vector().tolist() == [1.0, 100.0]


def test_feature_object_attributes():
    feature = BatteryChargeFeature(soc=0.5, capacity=100.0)
    assert feature.feature_name == "BatteryChargeFeature"
    assert list(feature.visibility) == ["public"]
    assert feature.vector().tolist() == [0.5, 100.0]
    assert feature.to_dict() == {"soc": 0.5, "capacity": 100.0}


@pytest.mark.parametrize(
    ("visibility", "asker", "level", "seen"),
    [
        ("public", "battery_2", 1, True),
        ("owner", "battery_1", 1, True),
        ("owner", "battery_2", 1, False),
        ("upper_level", "zone_1", 2, True),
        ("upper_level", "system_agent", 3, False),
        ("system", "system_agent", 3, True),
        ("system", "zone_1", 2, False),
    ],
)
def test_feature_visibility_of_a_free_state(visibility: str, asker: str, level: int, seen: bool):
    kind = type("Shown", (FeatureProvider,), {"visibility": [visibility], "__annotations__": {"soc": float}})
    state = FieldAgentState("battery_1", 1, [kind()])
    assert ("Shown" in state.observed_by(asker, level)) is seen


def test_the_observation_object():
    obs = Observation(
        local={"BatteryChargeFeature": {"soc": 0.53, "capacity": 100.0}},
        global_info={"agent_states": {"battery_2": {"BatteryChargeFeature": {"soc": 0.4, "capacity": 90.0}}}},
        timestamp=0.0,
    )
    expected = np.array([0.53, 100.0, 0.4, 90.0], dtype=np.float32)
    assert np.array_equal(obs.vector(), expected)
    assert np.array_equal(np.array(obs), expected)
    assert np.asarray(obs).dtype == np.float32
    message = {"get_obs_response": {"body": obs.to_dict()}}
    assert message["get_obs_response"]["body"]["timestamp"] == 0.0
    again = Observation.from_dict(message["get_obs_response"]["body"])
    assert (again.local, again.global_info, again.timestamp) == (obs.local, obs.global_info, obs.timestamp)


def test_the_proxy_stores_state_objects_and_returns_filtered_vectors():
    proxy = ProxyAgent()
    for agent_id, soc in (("battery_1", 0.503), ("battery_2", 0.498)):
        state = FieldAgentState(owner_id=agent_id, owner_level=1, features=[BatteryChargeFeature(soc=soc)])
        proxy.register_agent(agent_id, agent_state=state)
        proxy.set_local_state(agent_id, state)
        assert proxy.state_cache["agents"][agent_id] is state
    local_state = proxy.get_local_state("battery_1")
    feature_vec = local_state["BatteryChargeFeature"]
    assert feature_vec.tolist() == [0.503, 100.0]
    assert feature_vec[0] == 0.503
    obs = proxy.get_observation("battery_1")
    assert obs.global_info["battery_2"]["BatteryChargeFeature"].tolist() == [0.498, 100.0]


class SimulatedEnv(HeronEnv):
    """Physics through the specification's hooks."""

    seen: dict[str, Any]

    def global_state_to_env_state(self, global_state: dict[str, Any]) -> Any:
        self.seen = global_state
        agent_states = global_state["agent_states"]
        state_dict = agent_states["battery_1"]
        return SimpleNamespace(battery_soc=state_dict["BatteryChargeFeature"]["soc"])

    def run_simulation(self, env_state: Any) -> Any:
        env_state.battery_soc = float(np.clip(env_state.battery_soc + 0.1, 0.0, 1.0))
        return env_state

    def env_state_to_global_state(self, env_state: Any) -> dict[str, Any]:
        return {"agent_states": {"battery_1": {"BatteryChargeFeature": {"soc": env_state.battery_soc}}}}


@pytest.mark.parametrize("battery", [Battery, RuledBattery])
def test_the_simulation_hooks_read_and_write_dictionaries(battery: type[FieldAgent]):
    env = grid(battery, battery, SimulatedEnv)
    env.reset(seed=0)
    _, rewards, *_ = env.step({"battery_1": action_of(0.3), "battery_2": action_of(-0.2)})
    assert rewards["battery_1"] == pytest.approx(0.603, abs=1e-12)
    assert rewards["battery_2"] == pytest.approx(0.498, abs=1e-12)
    assert env.seen["agent_states"]["battery_2"] == {"BatteryChargeFeature": {"soc": 0.498, "capacity": 100.0}}
    assert env.seen["agent_states"]["zone_1"] == {}
    assert env.seen["global"] == {}


def test_simulate_may_be_overridden_as_a_whole():
    class Whole(HeronEnv):
        def simulate(self, global_state: dict[str, Any]) -> dict[str, Any]:
            soc = global_state["agent_states"]["battery_1"]["BatteryChargeFeature"]["soc"]
            return {"agent_states": {"battery_2": {"BatteryChargeFeature": {"soc": soc}}}}

    env = grid(env=Whole)
    env.reset(seed=0)
    _, rewards, *_ = env.step({"battery_1": 0.3})
    assert rewards["battery_1"] == rewards["battery_2"] == pytest.approx(0.503, abs=1e-12)
