"""Rules that users write without thinking of a compiler: they work as in plain Python, or say what is wrong."""

import random  # noqa: TID251
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from heron_env import (
    BatchEnv,
    Continuous,
    CoordinatorAgent,
    Discrete,
    Disturbance,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    SystemAgent,
    Vector,
    World,
    quantity,
    rule,
)
from heron_env.errors import RuleError
from heron_env.testing import inspect

pytestmark = pytest.mark.e2e

GAINS = [0.25, 0.125]


class Kinds(FeatureProvider):
    level: float = quantity(default=0.5, low=0.0, high=1.0)
    count: int = quantity(default=3, low=0, high=9)
    open: bool = quantity(default=False)


class Toggle(FieldAgent):
    features = (Kinds,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=(Kinds.level, Kinds.count, Kinds.open))
    def apply_action(kinds: Kinds, action: Vector) -> tuple[float, int, bool]:
        return kinds.level * GAINS[kinds.count % 2], kinds.count + 1, not kinds.open

    @staticmethod
    @rule
    def compute_local_reward(kinds: Kinds) -> bool:
        return kinds.level > 0.1


class Complex(Toggle):
    @staticmethod
    @rule
    def compute_local_reward(kinds: Kinds) -> Any:
        return kinds.level * 1j


class Asserting(Toggle):
    @staticmethod
    @rule
    def compute_local_reward(kinds: Kinds) -> float:
        if kinds.level < 0.5:
            raise AssertionError("empty")  # pytest rewrites `assert`
        return kinds.level


class OutOfRange(HeronEnv):
    @staticmethod
    @rule
    def finish(world: World) -> None:
        world[Toggle].Kinds.level[world.step + 2] = 0.1


def batch(agent: type[FieldAgent], compile: bool, env: type[HeronEnv] = HeronEnv) -> BatchEnv:
    made = BatchEnv(env(SystemAgent("system_agent", agent("toggle")), max_steps=9, compile=compile), 2)
    made.reset(seed=0)
    return made


def course(compile: bool) -> list[Any]:
    env = batch(Toggle, compile)
    steps = [env.step({"toggle": np.zeros((2, 1, 1))}) for _ in range(3)]
    return [steps[-1][1]["toggle"].tolist(), env.state().tolist()]


def test_bools_and_lists_from_outside_as_in_plain_python() -> None:
    assert course(True) == course(False)


def test_a_complex_reward() -> None:
    with pytest.raises(RuleError, match=r"Complex.compute_local_reward returns complex128: a number is needed"):
        batch(Complex, True)


@pytest.mark.parametrize("compile", [False, True])
def test_an_assertion_names_the_agent(compile: bool) -> None:
    with pytest.raises(RuleError, match=r"Asserting.*toggle.*empty"):
        batch(Asserting, compile).step({"toggle": np.zeros((2, 1, 1))})


def test_a_world_rule_that_fails_is_named() -> None:
    with pytest.raises(RuleError, match=r"OutOfRange.finish ended in IndexError"):
        batch(Toggle, True, OutOfRange).step({"toggle": np.zeros((2, 1, 1))})


def draws() -> float:
    return np.random.rand()  # noqa: NPY002


def normal() -> Any:
    return np.random.normal(0.0, 1.0)  # noqa: NPY002


def key_with(advance: Callable[[], Any]) -> str:
    """The key of the compiled code of an agent with this rule."""
    kind = type("Unit", (FieldAgent,), {"features": (Kinds,), "action": Continuous(-1.0, 1.0)})
    kind.advance = staticmethod(rule(writes=Kinds.level)(advance))
    return inspect(HeronEnv(SystemAgent("system_agent", kind("unit")), max_steps=1)).program.key()


@pytest.mark.parametrize("function", [draws, normal])
def test_rules_do_not_draw_at_random(function: Callable[[], Any]) -> None:
    with pytest.raises(RuleError, match=r"reads np\.random\.\w+, which draws at random"):
        key_with(function)


def test_nor_with_pythons_generator() -> None:
    def pick() -> float:
        return random.random()

    with pytest.raises(RuleError, match=r"reads random\.random, which is a builtin_function_or_method"):
        key_with(pick)


class Rows(FeatureProvider):
    a: np.ndarray = quantity(default=(1.0, 2.0, 3.0), shape=(3,))
    b: np.ndarray = quantity(default=(4.0, 5.0, 6.0), shape=(3,))


class Views(FieldAgent):
    """Returns views of the very numbers that it writes."""

    features = (Rows,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Rows.a)
    def apply_action(rows: Rows) -> Any:
        return rows.a[::-1]

    @staticmethod
    @rule(writes=(Rows.a, Rows.b))
    def advance(rows: Rows, dt: float) -> Any:
        return rows.b, rows.a


@pytest.mark.parametrize("compile", [False, True])
def test_results_that_are_views_are_stored_as_they_were_returned(compile: bool) -> None:
    env = batch(Views, compile)
    env.step({"toggle": np.zeros((2, 1, 1))})
    assert env.state()[1].tolist() == [4.0, 5.0, 6.0, 3.0, 2.0, 1.0]


class Dividing(Toggle):
    @staticmethod
    @rule
    def compute_local_reward(kinds: Kinds) -> float:
        return 1.0 // (kinds.count - 4)


class Remaining(Toggle):
    @staticmethod
    @rule
    def compute_local_reward(kinds: Kinds) -> float:
        return 7 % (kinds.count - 4)


class Hiding(Toggle):
    @staticmethod
    @rule
    def compute_local_reward(kinds: Kinds) -> float:
        return min(1.0, 1.0 / (kinds.count - 4))


class WorldDividing(HeronEnv):
    @staticmethod
    @rule
    def finish(world: World) -> None:
        world[Toggle].Kinds.level[0] = 1.0 / (world.step - 1)


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("agent", [Dividing, Remaining, Hiding])
def test_nothing_is_divided_by_zero(agent: type[FieldAgent], compile: bool) -> None:
    env = batch(agent, compile)
    with pytest.raises(RuleError, match=rf"{agent.__name__}.compute_local_reward.*toggle.*(zero|modulo)"):
        env.step({"toggle": np.zeros((2, 1, 1))})


def test_nor_in_a_world_rule() -> None:
    with pytest.raises(RuleError, match=r"WorldDividing.finish ended in ZeroDivisionError"):
        batch(Toggle, True, WorldDividing).step({"toggle": np.zeros((2, 1, 1))})


class Scribbling(Views):
    @staticmethod
    @rule
    def compute_local_reward(rows: Rows) -> float:
        rows.a[0] += 1.0
        return rows.a[0]


@pytest.mark.parametrize("compile", [False, True])
def test_a_rule_does_not_write_into_what_it_reads(compile: bool) -> None:
    with pytest.raises(
        RuleError, match=r"Scribbling.compute_local_reward.*writes into what it reads.*rule\(writes=..."
    ):
        batch(Scribbling, compile).step({"toggle": np.zeros((2, 1, 1))})


class Counting(Toggle):
    @staticmethod
    @rule
    def compute_local_reward(kinds: Kinds) -> float:
        return 1.0 * kinds.count


class Summing(CoordinatorAgent):
    @staticmethod
    @rule
    def compute_local_reward(child_rewards: np.ndarray) -> float:
        return child_rewards.sum() + np.max(child_rewards) + sum(child_rewards)


class Misnamed(Toggle):
    @staticmethod
    @rule
    def compute_local_reward(kinds: Kinds) -> float:
        return kinds.level + levle  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize("compile", [False, True])
def test_rewards_of_children_are_an_array_like_any(compile: bool) -> None:
    env = HeronEnv(SystemAgent("top", Summing("all", Counting("a"), Counting("b"))), max_steps=2, compile=compile)
    env.reset(seed=0)
    env.step({})
    assert env.simulation.last_rewards[1] == 8.0 + 4.0 + 8.0


def test_a_name_that_there_is_not_in_plain_python() -> None:
    with pytest.raises(RuleError) as caught:
        batch(Misnamed, False).step({"toggle": np.zeros((2, 1, 1))})
    assert str(caught.value) == (
        "Misnamed.compute_local_reward of 'toggle' returned nothing: name 'levle' is not defined; "
        "import it, or correct the name"
    )


# Whose error it was that compiled code does not place


class Gauge(FeatureProvider):
    level: float = quantity(default=1.0, low=0.0, high=9.0)


class Halving(FieldAgent):
    """Fails with the length of a substep, not with that of a step; and at one time."""

    features, action = (Gauge,), Discrete(2)

    @staticmethod
    @rule(writes=Gauge.level)
    def advance(gauge: Gauge, dt: float) -> float:
        return gauge.level / (dt - 0.5)


class Innocent(FieldAgent):
    """Fails with the length of a step, with which nothing calls it."""

    features, action = (Gauge,), Discrete(2)

    @staticmethod
    @rule(writes=Gauge.level)
    def advance(gauge: Gauge, dt: float) -> float:
        return gauge.level / (dt - 1.0)


class Later(Innocent):
    """Its reward would fail, too, if it came to that."""

    @staticmethod
    @rule
    def compute_local_reward(gauge: Gauge) -> float:
        return 1.0 / (gauge.level - 1.0)


class AtOneTime(FieldAgent):
    features, action = (Gauge,), Discrete(2)

    @staticmethod
    @rule(writes=Gauge.level)
    def advance(gauge: Gauge, time: float) -> float:
        return 1.0 / (time - 1.5)


class Finishing(HeronEnv):
    physics_substeps = 2

    @staticmethod
    @rule
    def finish(world: World) -> None:
        world[Innocent].Gauge.level[:] = 1.0


class Moving(HeronEnv):
    physics_substeps = 2

    @staticmethod
    @rule
    def advance(world: World, dt: float) -> None:
        world[Innocent].Gauge.level[:] = 1.0 / (world.time - 0.5)


def world_of(kind: type[HeronEnv], *agents: FieldAgent) -> HeronEnv:
    return kind(SystemAgent("system_agent", *agents), max_steps=9, physics_substeps=2, compile=True)


def every_driver(env: HeronEnv) -> list[str]:
    """What is said of the error: by the synchronous clock, the event clock and a batch."""
    texts = []
    for drive in (
        lambda: env.run_synchronous({"*": lambda vector: 0}, seed=0),
        lambda: env.run_event_driven({"*": lambda vector: 0}, seed=0),
        lambda: batch_steps(env),
    ):
        with pytest.raises(RuleError) as caught:
            drive()
        texts.append(str(caught.value))
    return texts


def batch_steps(env: HeronEnv) -> None:
    made = BatchEnv(env, 3)
    made.reset(seed=0)
    for _ in range(3):
        made.step({group: np.zeros((3, len(members), 1)) for group, members in env.group_map.items()})


def test_an_error_is_looked_for_with_the_length_of_a_substep() -> None:
    for text in every_driver(world_of(Finishing, Innocent("innocent_1"), Halving("halving_1"))):
        assert "Halving.advance of 'halving_1'" in text and "Innocent" not in text and "finish" not in text


class Piecewise(FieldAgent):
    """Fails with the length of a part of a substep."""

    features, action = (Gauge,), Discrete(2)

    @staticmethod
    @rule(writes=Gauge.level)
    def advance(gauge: Gauge, dt: float) -> float:
        return gauge.level / (dt - 0.125)


def test_an_error_is_looked_for_with_the_length_of_a_part_of_a_substep() -> None:
    env = world_of(HeronEnv, Halving("halving_1"), Piecewise("piecewise_1"))
    fault = Disturbance(0.125, "sensor_failure", {"agent": "*"}, requires_physics=True, duration=1.0)
    with pytest.raises(RuleError, match=r"Piecewise.advance of 'piecewise_1' .*zero") as caught:
        env.run_event_driven({"*": lambda vector: 0}, seed=0, disturbances=[fault])
    assert "Halving" not in str(caught.value)


def test_of_several_that_may_have_failed_all_are_named() -> None:
    with pytest.raises(RuleError, match=r"Halving.advance of .*; or Later.compute_local_reward of .*"):
        batch_steps(world_of(Finishing, Later("later_1"), Halving("halving_1")))
    with pytest.raises(RuleError, match=r"Halving.advance of .*zero") as caught:
        world_of(Finishing, Later("later_1"), Halving("halving_1")).run_event_driven({"*": lambda vector: 0}, seed=0)
    assert "Later" not in str(caught.value), "in the event clock it is known that rewards had not begun"


def test_an_error_is_looked_for_at_the_time_of_each_substep() -> None:
    for text in every_driver(world_of(Finishing, Innocent("innocent_1"), AtOneTime("late_1"))):
        assert "AtOneTime.advance of 'late_1'" in text and "Innocent" not in text and "finish" not in text


def test_an_error_that_is_not_found_again_is_said_to_be_so() -> None:
    for text in every_driver(world_of(Moving, Innocent("innocent_1"))):
        assert text.startswith("Moving.advance ended in ZeroDivisionError") and "compile=False" in text
        assert "no rule of an agent does when called again in plain Python" in text
