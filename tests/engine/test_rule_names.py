"""What a parameter of a rule means: by its name or its annotation, right in both executions, or refused."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_type_hints
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

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
    rule,
)
from heron_env.core.rule import NAMED, parameters
from heron_env.engine import binding, source
from heron_env.errors import RuleError
from heron_env.testing import Status, check_env


class Own(FeatureProvider):
    x: float = 3.0


class Above(FeatureProvider):
    x: float = 5.0


class Below(FeatureProvider):
    x: float = 2.0


class Sky(FeatureProvider):
    visibility = ("public",)
    x: float = 7.0


class Drone(FieldAgent):
    features = (Below,)

    @staticmethod
    @rule
    def compute_local_reward() -> float:
        return 10.0


UNSAID = object()
ARRAYS = (UNSAID, Any, Vector, NDArray[np.float64], np.ndarray)
NUMBERS = (UNSAID, Any, float)
FEATURES = {Own: 3.0, Parent[Above]: 5.0, Children[Below]: 2.0 + 2.0, Sky: 7.0}
OTHERS = (int, list[float], type(None), Below, Children[Own])
ANNOTATIONS = [*dict.fromkeys([*ARRAYS, *NUMBERS]), *FEATURES, *OTHERS]
RIGHT = {"action": (ARRAYS, 0.5), "child_rewards": (ARRAYS, 10.0), "dt": (NUMBERS, 4.0), "time": (NUMBERS, 4.0)}
"""What the name alone decides: with which annotations, and the first number read at the end of the first step."""
NAMES = [*RIGHT, "child_reward", "actions", "own", "x", "r"]
CASES = [(name, annotation) for name in NAMES for annotation in ANNOTATIONS]


def truth(name: str, annotation: Any) -> float | None:
    """What a rule reads there; None where it is to be refused."""
    if name in RIGHT:
        accepted, value = RIGHT[name]
        return value if annotation in accepted else None
    return FEATURES.get(annotation) if annotation not in OTHERS else None


def reading(name: str, annotation: Any) -> Callable[..., Any]:
    """A rule that returns the first number it reads."""
    read = {"action": "[0]", "child_rewards": "[0]", "dt": "", "time": ""}.get(name, ".x")
    total = ".sum()" if name not in RIGHT and annotation == Children[Below] else ""
    namespace: dict[str, Any] = {}
    exec(f"def compute_local_reward({name}):\n    return {name}{read}{total}", namespace)
    function: Callable[..., Any] = namespace["compute_local_reward"]
    function.__annotations__ = {} if annotation is UNSAID else {name: annotation}
    return function


class Street(HeronEnv):
    dt = 4.0
    global_features = (Sky,)


def street(cases: list[tuple[str, Any]], compile: bool) -> HeronEnv:
    """A coordinator for each case, under one that has Above, over two drones that earn 10."""
    hubs = []
    for i, case in enumerate(cases):
        body = {
            "features": (Own,),
            "action": Continuous(-1.0, 1.0),
            "compute_local_reward": staticmethod(rule(reading(*case))),
        }
        hubs.append(type(f"Hub{i}", (CoordinatorAgent,), body)(f"hub_{i}", Drone(f"a_{i}"), Drone(f"b_{i}")))
    zone = type("Zone", (CoordinatorAgent,), {"features": (Above,)})
    return Street(SystemAgent("system_agent", zone("zone_1", *hubs)), max_steps=1, compile=compile)


def check_names_decide(cases: list[tuple[str, Any]], compile: bool) -> None:
    """Each coordinator earns what its rule is to read."""
    env = street(cases, compile)
    env.reset(seed=0)
    _, rewards, *_ = env.step({agent: [0.5] for agent in env.agents})
    assert env.compiled is compile
    assert list(rewards.values()) == [truth(*case) for case in cases]


UNDERSTOOD = [case for case in CASES if truth(*case) is not None]


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.e2e)])
def test_a_parameter_that_is_understood_is_right(compile: bool):
    check_names_decide(UNDERSTOOD, compile)


@pytest.mark.parametrize("name", NAMES)
def test_every_other_is_refused(name: str):
    for case in CASES:
        if case[0] == name and case not in UNDERSTOOD:
            with pytest.raises(RuleError, match=rf"^Hub0\.compute_local_reward(: parameter '{name}'| reads Children)"):
                street([case], compile=False)


def annotation_first(function: Any, *rest: Any) -> Any:
    """The fault: an annotation that beats the name makes a coordinator's action of its children's rewards."""
    hints = get_type_hints(function, include_extras=True)
    found = parameters(function, *rest)
    return [replace(p, role="action") if hints.get(p.name) is Vector else p for p in found]


FAULTY = ("child_rewards", Vector)


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.e2e)])
def test_an_annotation_that_beats_the_name_is_found(compile: bool):
    with (
        patch.object(binding, "parameters", annotation_first),
        patch.object(source, "parameters", annotation_first),
        pytest.raises(AssertionError, match=r"\[0\.5\] == \[10\.0\]"),
    ):
        check_names_decide([FAULTY], compile)
    check_names_decide([FAULTY], compile)  # what was compiled with the fault is not used


@pytest.mark.e2e
def test_the_check_finds_a_rule_that_means_something_else_compiled():
    with patch.object(source, "parameters", annotation_first):
        (finding,) = check_env(lambda: street([FAULTY], compile=True), only=["compiled"], steps=2).findings
    assert finding.status is Status.FAILED
    assert re.fullmatch(r"the reward of \w+ at 4 s is \S+ compiled, 10.0 in plain Python", finding.what)
    report = check_env(lambda: street(UNDERSTOOD, compile=True), only=["compiled", "rules"], steps=2)
    assert [f.status for f in report.findings if f.check == "compiled"] == [Status.PASSED]


@pytest.mark.parametrize(
    ("name", "annotation", "words"),
    [
        ("child_rewards", Own, "is what the children earned, and is annotated as Own; write child_rewards: NDArray["),
        ("action", Own, "is the action in force, and is annotated as Own; write action: Vector, or rename it"),
        ("dt", int, "is a length of time in s, and is annotated as int; write dt: float"),
        ("child_reward", Vector, "name it action or child_rewards. Did you mean 'child_rewards'?"),
        ("a", Vector, "name it action or child_rewards."),
    ],
)
def test_the_error_says_what_to_write(name: str, annotation: Any, words: str):
    with pytest.raises(RuleError) as caught:
        street([(name, annotation)], compile=False)
    assert words in str(caught.value)


@pytest.mark.parametrize("written", ["*action", "**dt", "*, dt"])
def test_a_parameter_that_cannot_be_given_by_position_is_refused(written: str):
    namespace: dict[str, Any] = {}
    exec(f"def advance({written}): ...", namespace)
    with pytest.raises(RuleError, match=r"Hub\.advance: parameter '\w+' is .*; rules are called by position, remove"):
        parameters(namespace["advance"], (), (), "Hub.advance")


def test_every_name_of_the_table_is_tried():
    assert set(NAMED) == set(RIGHT)
