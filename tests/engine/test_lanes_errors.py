"""What lanes refuse: named by lane, agent, rule and quantity, cleared afterwards; illegal actions change nothing."""

import re
from typing import Any

import numpy as np
import pytest
from lanes_kit import Batch
from refusing import refuses
from small_worlds import Reversed

from heron_env import (
    Action,
    Continuous,
    CoordinatorAgent,
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    SystemAgent,
    Vector,
    World,
    quantity,
    rule,
)
from heron_env.errors import InvalidAction, RuleError
from heron_env.testing import inspect


class Gauge(FeatureProvider):
    over: float = quantity(default=0.0, low=-1.0, high=1.0)
    free: float = 0.0
    steps: int = quantity(low=0, high=9)
    pair: np.ndarray = quantity(default=(0.0, 0.0), shape=(2,), low=-1.0, high=1.0)
    number: int = quantity(default=9, low=0, high=9)
    bad: float = 0.0


class Faulty(FieldAgent):
    """`number` says which write, or what else, becomes `bad`."""

    features = (Gauge,)
    action = Continuous(-1.0, 0.3, size=2)

    @staticmethod
    @rule(writes=(Gauge.over, Gauge.free, Gauge.steps, Gauge.pair))
    def advance(gauge: Gauge) -> tuple[float, float, float, tuple[float, float]]:
        k, bad = gauge.number, gauge.bad
        return (bad if k == 0 else 0.5, bad if k == 1 else 0.5, bad if k == 2 else 1.0, (0.1, bad if k == 3 else 0.2))

    @staticmethod
    @rule(writes=Gauge.free)
    def apply_action(gauge: Gauge, action: Vector) -> float:
        return 1.0 / gauge.bad if gauge.number == 4 else action[0]

    @staticmethod
    @rule
    def compute_local_reward(gauge: Gauge, action: Vector) -> float:
        return gauge.bad if gauge.number == 5 else action[7] if gauge.number == 6 else 1.0


class Picker(FieldAgent):
    features = (Gauge,)
    action = Discrete(3)


class WorldEnv(HeronEnv):
    """Its world rule spoils what is asked for."""

    @staticmethod
    @rule
    def advance(world: World, dt: float) -> None:
        gauge = world[Faulty].Gauge
        for i in range(len(gauge.free)):
            gauge.over[i] = 3.0
            gauge.steps[i] = 2.5
            if gauge.number[i] == 7.0:
                gauge.free[i] = gauge.bad[i]


def batch(lanes: int = 3, kind: type[HeronEnv] = HeronEnv) -> Batch:
    return Batch(
        kind(SystemAgent("top", Faulty("one"), Faulty("two"), Picker("three")), max_steps=3, compile=False), lanes
    )


def spoil(b: Batch, lane: int, agent: str, number: int, bad: float) -> None:
    first = b.simulation.model.layout.rows[b.simulation.model.hierarchy.index[agent]].offset
    b.arrays.truth[lane, first + 5 : first + 7] = number, bad


QUANTITIES = ("Gauge.over", "Gauge.free", "Gauge.steps", "Gauge.pair")


@pytest.mark.parametrize(("number", "value"), [(0, np.nan), (1, np.inf), (2, -np.inf), (3, np.nan)])
def test_a_result_that_is_not_finite_is_refused(number: int, value: float):
    b = batch()
    spoil(b, 1, "two", number, value)
    needed, what = ("2 numbers are", "other than 2 finite numbers") if number == 3 else ("a number is", "nan or inf")
    expected = (
        f"lane 1: Faulty.advance of 'two' returned {what} for {QUANTITIES[number]}: {needed} needed; "
        "check divisions, roots and returns"
    )
    with pytest.raises(RuleError, match=f"^{re.escape(expected)}$"):
        b.lanes.substep(0)
    row = b.simulation.model.layout.rows[b.simulation.model.hierarchy.index["two"]]
    assert not b.arrays.truth[1, row.offset : row.offset + 5].any()  # nothing was written
    spoil(b, 1, "two", 9, 0.0)
    b.lanes.substep(0)  # and the error is gone


def test_a_world_rule_is_clipped_rounded_and_checked():
    b = batch(2, WorldEnv)
    b.lanes.substep(0)
    world = b.worlds[1]
    assert world[Faulty].Gauge.over.tolist() == [1.0, 1.0]
    assert world[Faulty].Gauge.steps.tolist() == [2.0, 2.0]
    spoil(b, 1, "two", 7, np.nan)
    with pytest.raises(RuleError) as caught:
        b.lanes.substep(0)
    assert str(caught.value) == (
        "lane 1: after advance() at t=0.0 s these quantities are nan: two.Gauge.free, two.Gauge.bad; check the physics"
    )


RANGE = "lies outside [-1.0, 0.3] x 2"
ILLEGAL: list[tuple[str, Any, str]] = [
    ("one", [0.5, 0.0], f"action of 'one': [0.5, 0.0] {RANGE}; clip it, or rescale your policy"),
    ("two", [0.0, np.nan], f"action of 'two': [0.0, nan] {RANGE}; give numbers (None counts as nan)"),
    ("three", [1.5], "action of 'three': [1.5] is no choice in Discrete(3); count from 0"),
    ("three", [3.0], "action of 'three': [3.0] is no choice in Discrete(3); count from 0"),
    ("three", [-1.0], "action of 'three': [-1.0] is no choice in Discrete(3); count from 0"),
    ("three", [np.inf], "action of 'three': [inf] is no choice in Discrete(3); count from 0"),
]  # fmt: skip


@pytest.mark.parametrize(("agent", "value", "message"), ILLEGAL)
def test_an_illegal_action_is_named_and_nothing_has_changed(agent: str, value: Any, message: str):
    b = batch(3)
    b.arrays.source_in[:] = 1
    b.arrays.actions[:, b.lanes.action_slice(b.simulation.model.hierarchy.index[agent])][2] = value
    before = [array.copy() for array in b.arrays]
    with refuses(InvalidAction, f"lane 2: {message}"):
        b.lanes.step()
    for name, old, new in zip(b.arrays._fields, before, b.arrays, strict=True):
        assert np.array_equal(old, new, equal_nan=old.dtype.kind == "f"), name


class ByHand(FieldAgent):
    def init_action(self) -> None:
        self.action = Action()


class Pair(CoordinatorAgent):
    protocol = Reversed()


@pytest.mark.parametrize(
    ("agents", "reason"),
    [
        ((Faulty("one"), ByHand("hand")), "ByHand('hand') is written with methods on `self` instead of rules"),
        (
            (Pair("pair", Faulty("one"), Faulty("two")),),
            "the protocol of Pair('pair'), Reversed, splits commands in Python",
        ),
    ],
)
def test_what_can_only_run_in_plain_python_is_refused(agents: Any, reason: str):
    env = HeronEnv(SystemAgent("top", *agents), max_steps=3, compile=False)
    with refuses(RuleError, f"this can't be compiled: {reason}; build the environment with compile=False"):
        inspect(env).lanes(1)
