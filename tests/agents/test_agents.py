"""Agents as they are declared: parts, initial values, actions, and both styles."""

from typing import Any

import numpy as np
from refusing import refuses

from heron_env import (
    Action,
    Broadcast,
    Continuous,
    CoordinatorAgent,
    Discrete,
    FeatureProvider,
    FieldAgent,
    FieldAgentState,
    HeronEnv,
    SystemAgent,
    VectorDecomposition,
    quantity,
    rule,
)
from heron_env.agents.agent import imperative
from heron_env.errors import ConfigError, FeatureError, HierarchyError


class Charge(FeatureProvider):
    soc: float = quantity(default=0.5, low=0.0, high=1.0)


class Leaky(Charge):
    """Stands in for a Charge."""

    loss: float = 0.01


class Other(FeatureProvider):
    x: float = 0.0


class Battery(FieldAgent):
    features = (Charge,)
    action = Continuous(-1.0, 1.0)


def test_features_given_to_an_agent_are_its_values_at_every_reset():
    battery = Battery("battery_1", Charge(soc=0.9))
    env = HeronEnv(SystemAgent("s", battery, Battery("battery_2")), max_steps=2)
    for _ in range(2):
        env.reset(seed=0)
        assert [float(v) for v in env.world[Battery].Charge.soc] == [0.9, 0.5]
        battery.state.features[0].soc = 0.1
    assert battery.initial[0].soc == 0.9


def test_a_subclass_may_stand_in_for_a_declared_feature():
    battery = Battery("battery_1", Leaky(soc=0.2))
    assert [type(f) for f in battery.initial] == [Leaky]
    battery.reset()
    assert battery.state.to_dict() == {"Leaky": {"soc": 0.2, "loss": 0.01}}


def test_an_id_is_a_text():
    for name in ["", None]:
        with refuses(HierarchyError, f"Battery({name!r}): the id is a non-empty string; write Battery('battery_1')"):
            Battery(name)


def test_an_action_is_a_spec_on_the_class_and_an_action_on_the_instance():
    one, two = Battery("a"), Battery("b")
    assert Battery.action.describe() == "[-1.0, 1.0]"
    one.set_action(0.5)
    assert isinstance(one.action, Action)
    assert one.action.c.tolist() == [0.5]
    assert two.action.c.tolist() == [0.0]
    one.action = Action(Battery.action)
    assert one.action.c.tolist() == [0.0]


def test_a_coordinator_has_a_protocol_or_an_action_of_its_own_not_both():
    class Zone(CoordinatorAgent):
        action = Discrete(2)

    assert Zone("z", Battery("b")).own_action_spec().describe() == "Discrete(2)"
    message = "Zone('z'): with a protocol its action is its subordinates'; remove `action` or `protocol`"
    with refuses(ConfigError, message):
        Zone("z", Battery("b"), protocol=VectorDecomposition())


def test_a_protocol_may_stand_on_the_class_or_be_given():
    class Zone(CoordinatorAgent):
        protocol = VectorDecomposition()

    batteries = Battery("a"), Battery("b")
    assert Zone("z", *batteries).own_action_spec().size == 2
    assert Zone("z", *batteries, protocol=Broadcast()).own_action_spec().size == 1
    assert CoordinatorAgent("z", *batteries).own_action_spec().size == 0


class ByHand(FieldAgent):
    def init_state(self) -> None:
        self.state = FieldAgentState(owner_id=self.agent_id, owner_level=self.level)
        self.state.features.append(Charge(soc=0.25))

    def init_action(self) -> None:
        self.action = Action()
        self.action.set_specs(dim_c=1, range=([-1.0], [1.0]))

    def apply_action(self) -> None:
        self.state.features[Charge].soc += self.action.c[0] / 10


def test_the_style_is_known():
    assert not Battery("a").is_imperative
    assert ByHand("a").is_imperative
    assert imperative(ByHand("a"), "apply_action").__name__ == "apply_action"
    assert imperative(Battery("a"), "apply_action") is None


def test_an_agent_built_by_hand_is_reset_and_bound_like_any_other():
    agent = ByHand("a")
    env = HeronEnv(SystemAgent("s", agent), max_steps=3)
    for _ in range(2):
        env.reset(seed=0)
        obs, *_ = env.step({"a": 1.0})
        assert obs["a"].tolist() == [np.float32(0.35)]
        assert np.shares_memory(agent.state.features[0]._array, env.simulation.truth)


def test_init_state_must_build_the_same_features_each_time():
    class Fickle(ByHand):
        builds = 0

        def init_state(self) -> None:
            super().init_state()
            self.builds += 1
            if self.builds > 1:
                self.state.features.append(Other())

    env = HeronEnv(SystemAgent("s", Fickle("a")), max_steps=3)
    message = "Fickle('a').init_state() built ['Charge', 'Other'], first it was ['Charge']; build equal states"
    with refuses(FeatureError, message):
        env.reset(seed=0)


def test_set_action_may_be_overridden_to_change_what_is_taken():
    class Careful(ByHand):
        def set_action(self, action: Any) -> None:
            self.action.set_values(action)
            self.action.c *= 0.5

    env = HeronEnv(SystemAgent("s", Careful("a")), max_steps=3)
    env.reset(seed=0)
    obs, *_ = env.step({"a": 1.0})
    assert obs["a"].tolist() == [np.float32(0.3)]


def test_a_method_is_given_child_rewards_by_name():
    class Watch(CoordinatorAgent):
        def compute_local_reward(self, local_state: Any, *, child_rewards: Any) -> float:
            return 2 * child_rewards.sum()

    class Paid(ByHand):
        def compute_local_reward(self, local_state: Any) -> float:
            return 1.5

    env = HeronEnv(SystemAgent("s", Watch("z", Paid("a"), Paid("b"))), max_steps=9)
    env.reset(seed=0)
    env.step({})
    assert env.proxy.get_step_results()[1]["s"] == 6.0


def test_a_rule_of_a_subclass_replaces_a_method_and_the_other_way_round():
    class Ruled(ByHand):
        @staticmethod
        @rule(writes=Charge.soc)
        def apply_action(charge: Charge) -> float:
            return 0.75

    env = HeronEnv(SystemAgent("s", Ruled("a")), max_steps=3)
    env.reset(seed=0)
    assert env.step({"a": 1.0})[0]["a"].tolist() == [0.75]
