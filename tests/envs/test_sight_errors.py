"""What is wrong with a hook `sees` (V11) is said where it is found, and what to write instead."""

from typing import Any

import numpy as np
import pytest

from heron_env import (
    BatchEnv,
    Continuous,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ObservabilityConfig,
    SystemAgent,
    World,
    quantity,
    rule,
)
from heron_env.errors import ConfigError, HeronError, RuleError


class Place(FeatureProvider):
    visibility = ("public",)
    x: float = quantity(default=0.0, low=-9.0, high=9.0)


class Walker(FieldAgent):
    features = (Place,)
    action = Continuous(-1.0, 1.0)


class Runner(Walker):
    pass


class Base(HeronEnv):
    """Two walkers."""

    kinds: tuple[type, ...] = (Walker, Walker)

    def __init__(self, **options: Any) -> None:
        agents = [kind(f"{kind.__name__.lower()}_{i}", Place(x=float(i))) for i, kind in enumerate(self.kinds, start=1)]
        super().__init__(SystemAgent("system_agent", *agents), max_steps=3, **options)


def run(cls: type, **options: Any) -> None:
    env = cls(**options)
    env.reset(seed=0)
    env.step({agent: np.zeros(1) for agent in env.agents})


ANSWERS = [1, 1.0, None, "yes", np.array([True]), np.float64(0.0)]


@pytest.mark.parametrize("answer", ANSWERS, ids=repr)
def test_a_method_that_returns_no_bool_is_told_of_the_pair(answer: Any) -> None:
    class Odd(Base):
        def sees(self, world: World, observer: int, target: int) -> Any:
            return answer if (observer, target) == (1, 0) else True

    for start in (Odd, lambda: BatchEnv(Odd, 2)):
        with pytest.raises(RuleError, match=r"sees\(world, 1, 0\) \('walker_2', 'walker_1'\) returned .*True or False"):
            start().reset(seed=0)
    with pytest.raises(RuleError, match="'walker_2', 'walker_1'"):
        Odd().run_event_driven({"*": lambda vector: [0.0]}, seed=0)


def test_so_is_a_rule_in_plain_python() -> None:
    class Odd(Base):
        @staticmethod
        @rule(of=Walker)
        def sees(world: World, observer: int, target: int) -> Any:
            return 2

    with pytest.raises(RuleError, match=r"'walker_2', 'walker_1'.* returned 2; return True"):
        run(Odd)


def test_numpys_bools_are_bools() -> None:
    class Fine(Base):
        def sees(self, world: World, observer: int, target: int) -> Any:
            return np.bool_(observer > target)

    run(Fine)


@pytest.mark.e2e
def test_a_compiled_rule_returns_a_bool_on_every_path() -> None:
    class Number(Base):
        @staticmethod
        @rule(of=Walker)
        def sees(world: World, observer: int, target: int) -> Any:
            return world[Walker].Place.x[target]

    with pytest.raises(RuleError, match=r"Number.sees.* returns float64; return a bool on every path"):
        run(Number, compile=True)

    class Sometimes(Base):
        @staticmethod
        @rule(of=Walker)
        def sees(world: World, observer: int, target: int) -> Any:
            if world[Walker].Place.x[target] > 0.0:
                return True

    with pytest.raises(RuleError, match=r"Sometimes.sees.*; return a bool on every path"):
        run(Sometimes, compile=True)


class Writer(Base):
    @staticmethod
    @rule(of=Walker)
    def sees(world: World, observer: int, target: int) -> bool:
        world[Walker].Place.x[target] = 1.0
        return True


class Drawer(Base):
    @staticmethod
    @rule(of=Walker)
    def sees(world: World, observer: int, target: int) -> bool:
        return bool(world.draw("sight")[0] < 0.5)


class WritingMethod(Base):
    def sees(self, world: World, observer: int, target: int) -> bool:
        world[Walker].Place.x[target] = 1.0
        return True


class DrawingMethod(Base):
    def sees(self, world: World, observer: int, target: int) -> bool:
        return bool(world.draw("sight")[0] < 0.5)


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.e2e)], ids=["in Python", "compiled"])
@pytest.mark.parametrize("cls", [Writer, WritingMethod])
def test_one_that_writes_is_refused(cls: type, compile: bool) -> None:
    with pytest.raises((RuleError, ValueError), match="read") as caught:
        run(cls, compile=compile)
    assert isinstance(caught.value, HeronError)


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.e2e)], ids=["in Python", "compiled"])
@pytest.mark.parametrize("cls", [Drawer, DrawingMethod])
def test_one_that_draws_is_refused(cls: type, compile: bool) -> None:
    with pytest.raises(RuleError, match="draw"):
        run(cls, compile=compile)


def test_of_several_classes_it_is_told_which() -> None:
    class Both(Base):
        kinds = Walker, Runner

        def sees(self, world: World, observer: int, target: int) -> bool:
            return True

    with pytest.raises(ConfigError, match=r"Both.sees: which agents see each other\? .*'Walker', 'Runner'.*rule\(of="):
        Both()

    class Named(Both):
        @staticmethod
        @rule(of=(Runner, Walker))
        def sees(world: World, observer: int, target: int) -> bool:
            return world[Runner].Place.x[observer] < world[Walker].Place.x[target]

    run(Named)


def test_a_class_that_nobody_has_is_refused() -> None:
    class Nobody(Base):
        @staticmethod
        @rule(of=Runner)
        def sees(world: World, observer: int, target: int) -> bool:
            return True

    with pytest.raises(HeronError, match="no agent of that class"):
        Nobody()


def test_who_is_visible_needs_the_hook() -> None:
    with pytest.raises(ConfigError, match=r"observe_visible=True: .*write sees\(world, observer, target\)"):
        Base(observe_visible=True)
    with pytest.raises(ConfigError, match="observe_visible='yes'"):
        Base(observe_visible="yes")


@pytest.mark.parametrize("of", [Walker, (Walker, Runner)], ids=["one", "two"])
def test_classes_are_for_that_hook_alone(of: Any) -> None:
    with pytest.raises(RuleError, match=r"Other.finish: rule\(of=.*sees\(world, observer, target\) alone"):

        class Other(Base):
            @staticmethod
            @rule(of=of)
            def finish(world: World) -> None:
                pass


def test_an_agents_rule_has_no_classes_either() -> None:
    class Odd(Walker):
        @staticmethod
        @rule(of=Walker)
        def compute_local_reward(place: Place) -> float:
            return place.x

    class Env(Base):
        kinds = Odd, Odd

    with pytest.raises(RuleError, match=r"compute_local_reward.*of="):
        run(Env)


@pytest.mark.parametrize("of", ["Walker", 3, (Walker, "Runner"), (Walker, Walker, Walker), None], ids=repr)
def test_classes_are_one_or_two(of: Any) -> None:
    with pytest.raises(RuleError, match="write the class of agents that see each other"):
        rule(of=of)


def test_a_rule_has_its_three_parameters_and_is_static() -> None:
    with pytest.raises(RuleError, match=r"Short.sees .*other parameters; write def sees\(world, observer, target\)"):

        class Short(Base):
            @staticmethod
            @rule(of=Walker)
            def sees(world: World, observer: int) -> bool:
                return True

    with pytest.raises(RuleError, match=r"Bound.sees.*@staticmethod @rule def sees\(world, observer, target\)"):

        class Bound(Base):
            @rule(of=Walker)
            def sees(self, world: World, observer: int, target: int) -> bool:
                return True


def test_where_everything_is_shown_nobody_is_asked() -> None:
    class Never(Base):
        def sees(self, world: World, observer: int, target: int) -> bool:
            raise AssertionError("asked")

    run(Never, observability=ObservabilityConfig(enabled=False))
    with pytest.raises(AssertionError, match="asked"):
        run(Never)
