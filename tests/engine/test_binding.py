"""Rules as they run: what they read is the truth, what they write is clipped, and what is wrong is named."""

import math
from typing import Any, ClassVar

import numpy as np
import pytest
from refusing import refuses

from heron_env import (
    Children,
    Continuous,
    CoordinatorAgent,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Parent,
    SystemAgent,
    Vector,
    quantity,
    rule,
)
from heron_env.errors import RuleError


class Flow(FeatureProvider):
    power: float = quantity(default=1.0, low=-10.0, high=10.0, unit="kW")
    steps: int = quantity(low=0, high=100)
    trail: np.ndarray = quantity(shape=(2,), low=0.0, high=5.0)


class Total(FeatureProvider):
    power: float = 0.0
    seen: float = 0.0
    reward: float = 0.0


class Weather(FeatureProvider):
    visibility = ("public",)
    sun: float = quantity(default=2.0)


class Meter(FeatureProvider):
    power: float = quantity(default=3.0)


class Pump(FieldAgent):
    features = (Flow,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Flow.power)
    def apply_action(flow: Flow, action: Vector) -> float:
        return flow.power + action[0]

    @staticmethod
    @rule(writes=(Flow.steps, Flow.trail))
    def advance(flow: Flow, weather: Weather, total: Parent[Total], dt: float, time: float) -> tuple[float, Any]:
        return flow.steps + 1.4, (weather.sun + total.seen, time + dt)

    @staticmethod
    @rule
    def compute_local_reward(flow: Flow) -> float:
        return flow.power


class Reader(FieldAgent):
    """Has no Flow."""

    features = (Meter,)


class Idle(FieldAgent):
    """Acts, so that there is somebody to act, and does nothing."""

    action = Continuous(-1.0, 1.0)


class Station(CoordinatorAgent):
    features = (Total,)

    @staticmethod
    @rule(writes=(Total.power, Total.seen))
    def advance(flows: Children[Meter]) -> tuple[float, float]:
        return flows.power.sum(), len(flows.power)

    @staticmethod
    @rule
    def compute_local_reward(child_rewards: np.ndarray) -> float:
        return float(10 * child_rewards[0] + child_rewards[-1])


class PumpEnv(HeronEnv):
    dt = 4.0
    physics_substeps = 2
    global_features = (Weather,)


def env_of(*agents: Any) -> HeronEnv:
    return PumpEnv(SystemAgent("system_agent", *agents), max_steps=5)


def test_a_rule_reads_every_role_and_writes_its_own_agent_only():
    env = env_of(Station("station", Pump("pump_1"), Pump("pump_2", Flow(power=9.5)), Reader("reader")))
    env.reset(seed=0)
    _, rewards, *_ = env.step({"pump_1": 0.5, "pump_2": 1.0})
    first, second = (env.proxy.state_cache["agents"][a].features[Flow] for a in ("pump_1", "pump_2"))
    assert (first.power, second.power) == (1.5, 10.0), "clipped to 10 kW"
    assert first.steps == 2, "1.4, rounded to a whole number after each of two substeps"
    assert first.trail.tolist() == [3.0, 4.0], (
        "sun 2 + 1 meter seen by the parent in the substep before; time 2 s + dt 2 s"
    )
    assert rewards == {"pump_1": 1.5, "pump_2": 10.0}
    _, all_rewards, *_ = env.proxy.get_step_results()
    assert all_rewards["station"] == 10 * 1.5 + 0.0, "the reader has no reward rule and counts 0"
    assert all_rewards["system_agent"] == all_rewards["station"], "the sum of its children's"


def test_agents_advance_children_first_and_time_is_the_start_of_the_substep():
    env = env_of(Station("station", Pump("pump_1"), Reader("reader")))
    env.reset(seed=0)
    env.step({})
    trail = env.proxy.state_cache["agents"]["pump_1"].features[Flow].trail
    env.step({})
    assert trail.tolist() == [3.0, 5.0], "time 6 s + dt 2 s = 8 s, clipped to 5"
    assert env.world.time == 8.0


class Watched(Station):
    """Keeps what its rule is given."""

    came: ClassVar[list[Any]] = []

    @staticmethod
    @rule(writes=(Total.power, Total.seen))
    def advance(flows: Children[Meter]) -> tuple[float, float]:
        Watched.came.append(flows)
        return 0.0, 0.0


def test_a_column_over_children_is_a_view_where_they_are_evenly_spaced():
    env = env_of(Watched("station", *(Reader(f"reader_{i}", Meter(power=float(i))) for i in range(3))), Idle("idle"))
    columns = _children_of(env, "station")
    assert columns.power.tolist() == [0.0, 1.0, 2.0]
    assert np.shares_memory(columns.power, env.simulation.truth)


class Dial(FieldAgent):
    features = (Weather, Meter)


def test_a_column_over_mixed_children_is_gathered_in_registration_order_and_current():
    agents = [Dial("dial_1", Meter(power=1.0)), Reader("reader_2", Meter(power=2.0)), Dial("dial_3", Meter(power=3.0))]
    env = env_of(Watched("station", *agents, Reader("reader_4", Meter(power=4.0))), Idle("idle"))
    columns = _children_of(env, "station")
    assert columns.power.tolist() == [1.0, 2.0, 3.0, 4.0]
    env.world[Dial].Meter.power = [10.0, 30.0]
    assert columns.power.tolist() == [10.0, 2.0, 30.0, 4.0]
    with refuses(AttributeError, "Children: no field 'pover'; fields are ['power']. Did you mean 'power'?"):
        _ = columns.pover


def _children_of(env: HeronEnv, agent: str) -> Any:
    """The argument that the agent's `advance` gets for its Children[Meter] parameter."""
    env.reset(seed=0)
    env.step({})
    return env.hierarchy.agents[env.hierarchy.index[agent]].came[-1]


def agent_class(name: str, function: Any, **attributes: Any) -> type[FieldAgent]:
    return type("Odd", (FieldAgent,), {"features": (Flow,), name: staticmethod(function), **attributes})


def stepped(cls: type[FieldAgent]) -> None:
    env = env_of(cls("odd"), Idle("idle"))
    env.reset(seed=0)
    env.step({})


NAN = math.nan
NEEDED = "a number is needed; check divisions, roots and returns"
RETURNED = "Odd.advance of 'odd' returned {!r} for Flow."
BOTH = (Flow.power, Flow.steps)


@pytest.mark.parametrize(
    ("writes", "value", "words"),
    [
        *[(Flow.power, value, f"{RETURNED}power: {NEEDED}") for value in (NAN, None, "x", np.array([1.0, 2.0]))],
        (Flow.steps, NAN, f"{RETURNED}steps: {NEEDED}"),
        *[
            (Flow.trail, value, f"{RETURNED}trail: 2 numbers are needed; check divisions, roots and returns")
            for value in ((1.0, NAN), 1.0, (1.0, 2.0, 3.0))
        ],
        *[
            (BOTH, value, "Odd.advance of 'odd' writes [Flow.power, Flow.steps] and must return a tuple of 2, got {!r}")
            for value in (1.0, (1.0, 2.0, 3.0), [1.0, 2.0])
        ],
        (None, NAN, "Odd('odd').compute_local_reward returned {!r} at t=4.0 s; a number is needed"),
    ],
)
def test_what_a_rule_returns_is_a_number_for_each_that_it_writes(writes: Any, value: Any, words: str):
    function = rule(lambda flow: value) if writes is None else rule(writes=writes)(lambda flow: value)
    function.__annotations__ = {"flow": Flow}
    with refuses(RuleError, words.format(value)):
        stepped(agent_class("compute_local_reward" if writes is None else "advance", function))


def test_a_rule_reads_scalars_of_children():
    class Adder(CoordinatorAgent):
        @staticmethod
        @rule
        def compute_local_reward(flows: Children[Flow]) -> float:
            return 0.0

    message = "Adder.compute_local_reward reads Children[Flow], which has vector quantities; use scalar ones"
    with refuses(RuleError, message):
        env_of(Station("station", Reader("reader"), Adder("adder", Pump("pump"))))
