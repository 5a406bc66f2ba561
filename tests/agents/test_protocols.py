"""Vertical protocols: one joint action becomes the subordinates' actions."""

from typing import Any

import numpy as np
import pytest
from refusing import refuses

from heron_env import (
    Broadcast,
    Continuous,
    CoordinatorAgent,
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Mixed,
    MultiDiscrete,
    Protocol,
    SetpointSplit,
    SystemAgent,
    Vector,
    VectorDecomposition,
    quantity,
    rule,
)
from heron_env.core.action import ActionSpec
from heron_env.errors import ConfigError


class Setpoint(FeatureProvider):
    power: float = quantity(default=0.0, low=-50.0, high=50.0, unit="kW")


class Switch(FeatureProvider):
    mode: int = quantity(low=0, high=9)
    other: int = quantity(low=0, high=9)


class Battery(FieldAgent):
    features = (Setpoint,)
    action = Continuous(-5.0, 5.0, unit="kW")

    @staticmethod
    @rule(writes=Setpoint.power)
    def apply_action(action: Vector) -> float:
        return action[0]


class Heater(FieldAgent):
    features = (Switch,)
    action = MultiDiscrete([3, 2])

    @staticmethod
    @rule(writes=(Switch.mode, Switch.other))
    def apply_action(action: Vector) -> tuple[float, float]:
        return action[0], action[1]


class Sensor(FieldAgent):
    """Takes no action."""


class Hybrid(FieldAgent):
    """Takes both kinds."""

    features = (Setpoint, Switch)
    action = Mixed(Continuous(-1.0, 1.0, unit="kW"), Discrete(4))

    @staticmethod
    @rule(writes=(Setpoint.power, Switch.mode))
    def apply_action(action: Vector) -> tuple[float, float]:
        return action[0], action[1]


def env_of(*agents: Any) -> HeronEnv:
    env = HeronEnv(SystemAgent("system_agent", *agents), max_steps=9)
    env.reset(seed=0)
    return env


def values(env: HeronEnv, agent: str) -> list[float]:
    return env.proxy.state_cache["agents"][agent].vector().tolist()


def test_a_vector_is_cut_into_continuous_parts_then_discrete_ones():
    zone = CoordinatorAgent(
        "zone", Battery("b_1"), Hybrid("h_1"), Sensor("x"), Heater("t_1"), protocol=VectorDecomposition()
    )
    env = env_of(zone)
    assert env.possible_agents == ["zone"]
    spec = env.simulation.model.specs[1]
    assert spec.describe() == "[[-5.0, -1.0], [5.0, 1.0]] kW x 2 and MultiDiscrete([4, 3, 2])"
    env.step({"zone": {"c": [2.5, -0.5], "d": [3, 2, 1]}})
    assert (values(env, "b_1"), values(env, "h_1"), values(env, "t_1")) == ([2.5], [-0.5, 3.0, 0.0], [2.0, 1.0])
    env.step({"zone": [1.0, 0.5, 1, 0, 0]})
    assert (values(env, "b_1"), values(env, "h_1"), values(env, "t_1")) == ([1.0], [0.5, 1.0, 0.0], [0.0, 0.0])


def test_discrete_children_alone_make_a_multidiscrete_space():
    env = env_of(CoordinatorAgent("zone", Heater("t_1"), Heater("t_2"), protocol=VectorDecomposition()))
    assert env.action_space("zone").nvec.tolist() == [3, 2, 3, 2]
    env.step({"zone": [0, 1, 2, 0]})
    assert (values(env, "t_1"), values(env, "t_2")) == ([0.0, 1.0], [2.0, 0.0])


def test_broadcast_gives_everyone_the_same():
    env = env_of(CoordinatorAgent("zone", Battery("b_1"), Battery("b_2"), protocol=Broadcast()))
    assert env.action_space("zone").shape == (1,)
    env.step({"zone": -3.0})
    assert (values(env, "b_1"), values(env, "b_2")) == ([-3.0], [-3.0])


def test_a_total_is_split_by_weights_and_clipped_to_each_share():
    for weights, total, shares in [
        (None, 6.0, [2.0, 2.0, 2.0]),
        ([1.0, 2.0, 3.0], 6.0, [1.0, 2.0, 3.0]),
        ([1.0, 1.0, 8.0], 10.0, [1.0, 1.0, 5.0]),
        ([2, 1, 1], -15.0, [-5.0, -3.75, -3.75]),
    ]:
        batteries = [Battery(f"b_{i}") for i in range(3)]
        env = env_of(CoordinatorAgent("zone", *batteries, protocol=SetpointSplit(weights)))
        space = env.action_space("zone")
        assert (space.low.tolist(), space.high.tolist()) == ([-15.0], [15.0])
        env.step({"zone": total})
        assert [values(env, f"b_{i}")[0] for i in range(3)] == pytest.approx(shares, abs=1e-12)


def test_a_split_needs_positive_weights():
    for weights in ([1.0, 0.0], [1.0, -1.0], [[1.0]], [np.nan]):
        with refuses(
            ConfigError,
            f"SetpointSplit(weights={weights!r}): must be a list of positive numbers, one for each subordinate",
        ):
            SetpointSplit(weights)


def test_nested_coordinators_split_what_they_are_given():
    inner = CoordinatorAgent("inner", Battery("b_1"), Battery("b_2"), protocol=SetpointSplit([3.0, 1.0]))
    outer = CoordinatorAgent("outer", inner, Battery("b_3"), Heater("t_1"), protocol=VectorDecomposition())
    env = env_of(outer)
    assert env.possible_agents == ["outer"]
    assert env.simulation.model.specs[1].describe() == "[[-10.0, -5.0], [10.0, 5.0]] kW x 2 and MultiDiscrete([3, 2])"
    env.step({"outer": [4.0, -2.0, 1, 1]})
    assert [values(env, a) for a in ("b_1", "b_2", "b_3", "t_1")] == [[3.0], [1.0], [-2.0], [1.0, 1.0]]


def test_an_explicit_action_of_an_inner_coordinator_is_split_in_its_place():
    inner = CoordinatorAgent("inner", Battery("b_1"), Battery("b_2"), protocol=VectorDecomposition())
    env = env_of(CoordinatorAgent("outer", inner, Battery("b_3"), protocol=VectorDecomposition()))
    env.step({"outer": [1.0, 2.0, 3.0], "inner": [-1.0, -2.0], "b_2": 0.5})
    assert [values(env, a) for a in ("b_1", "b_2", "b_3")] == [[-1.0], [0.5], [3.0]]


def test_without_a_protocol_a_zone_only_watches():
    env = env_of(CoordinatorAgent("zone", Battery("b_1"), Battery("b_2")))
    assert env.possible_agents == ["b_1", "b_2"]


def test_a_protocol_of_ones_own_defines_both_methods():
    class Lazy(Protocol):
        """Defines nothing."""

    with refuses(TypeError, "Lazy must define joint_spec()"):
        Lazy().joint_spec([])
    with refuses(TypeError, "Lazy must define split()"):
        Lazy().split(np.zeros(0), [])

    class Mirror(Protocol):
        def joint_spec(self, children: Any) -> ActionSpec:
            return children[0]

        def split(self, action: Any, children: Any) -> list[Any]:
            return [action, -action]

    env = env_of(CoordinatorAgent("zone", Battery("b_1"), Battery("b_2"), protocol=Mirror()))
    env.step({"zone": 2.0})
    assert (values(env, "b_1"), values(env, "b_2")) == ([2.0], [-2.0])
