"""Rules: the decorator says what is written, the parameters what is read."""

import re
from typing import NamedTuple

import pytest

from heron_env import Children, FeatureProvider, Parent, Vector, rule
from heron_env.core.rule import Parameter, parameters, rule_spec
from heron_env.errors import RuleError


class Tank(FeatureProvider):
    level: float = 0.0
    inflow: float = 0.0


class BigTank(Tank):
    """Stands in for a Tank."""


class Weather(FeatureProvider):
    visibility = ("public",)
    rain: float = 0.0


Alias = Tank
"""A name that means a feature of another name; elsewhere there is a feature that is really called so."""


def test_the_decorator_keeps_the_function_and_notes_what_it_writes():
    @rule(writes=Tank.level)
    def one(tank: Tank) -> float:
        return tank.level

    @rule(writes=(Tank.level, Tank.inflow))
    def two(tank: Tank) -> tuple[float, float]:
        return tank.level, 0.0

    @rule
    def none(tank: Tank) -> float:
        return tank.level

    assert one(Tank(level=0.5)) == 0.5
    assert (rule_spec(one).writes, rule_spec(one).single) == ((Tank.level,), True)
    assert (rule_spec(two).writes, rule_spec(two).single) == ((Tank.level, Tank.inflow), False)
    assert rule_spec(none).writes == ()
    assert rule_spec(test_the_decorator_keeps_the_function_and_notes_what_it_writes) is None


def test_only_quantities_can_be_written():
    message = "rule(writes='Tank.level'): 'Tank.level' is no quantity; write Feature.field"
    with pytest.raises(RuleError, match=f"^{re.escape(message)}$"):
        rule(writes="Tank.level")
    message = f"rule(writes={(Tank.level, Tank)!r}): {Tank!r} is no quantity; write Feature.field"
    with pytest.raises(RuleError, match=f"^{re.escape(message)}$"):
        rule(writes=(Tank.level, Tank))


def test_every_role_of_a_parameter_is_recognised():
    def reads(
        tank: Tank,
        parent: Parent[Weather],
        children: Children[Tank],
        weather: Weather,
        action: Vector,
        dt: float,
        time: float,
        child_rewards,
    ) -> float: ...

    assert list(parameters(reads, (BigTank,), (Weather,), "Pump.advance")) == [
        Parameter("tank", "own", Tank),
        Parameter("parent", "parent", Weather),
        Parameter("children", "children", Tank),
        Parameter("weather", "global", Weather),
        Parameter("action", "action"),
        Parameter("dt", "dt"),
        Parameter("time", "time"),
        Parameter("child_rewards", "child_rewards"),
    ]


def test_annotations_may_be_strings_also_in_classes_inside_functions():
    class Hidden(FeatureProvider):
        x: float = 0.0

    def reads(hidden: "Hidden", tank: "Tank", action: "Vector") -> float: ...

    roles = [(p.role, p.feature) for p in parameters(reads, (Hidden, Tank), (), "Pump.advance")]
    assert roles == [("own", Hidden), ("own", Tank), ("action", None)]


def test_the_module_decides_what_a_name_means_before_the_registry_does():
    type("Alias", (FeatureProvider,), {"__module__": "elsewhere"})

    def reads(tank: "Alias") -> float: ...

    assert parameters(reads, (Tank,), (), "Pump.advance") == (Parameter("tank", "own", Tank),)


class Pair(NamedTuple):
    a: float


def test_a_parameter_that_means_nothing_is_refused_by_name():
    for annotation, shown in [(float, "float"), (Weather, "Weather"), (Pair, "Pair"), (None, "None")]:

        def reads(wind) -> float: ...

        if annotation is not None:
            reads.__annotations__["wind"] = annotation
        message = (
            f"Pump.advance: parameter 'wind' ({shown}) is neither an own feature ['Tank'], Parent[...], Children[...], "
            "a global feature [], nor action, dt, time or child_rewards; annotate or rename it."
        )
        with pytest.raises(RuleError, match=f"^{re.escape(message)}$"):
            parameters(reads, (Tank,), (), "Pump.advance")


def test_an_annotation_that_names_nothing_is_refused():
    def reads(tank: "Takn") -> float: ...  # noqa: F821

    message = "Pump.advance: can't resolve an annotation: name 'Takn' is not defined. Did you mean 'Tank'?"
    with pytest.raises(RuleError, match=f"^{re.escape(message)}$"):
        parameters(reads, (Tank,), (), "Pump.advance")


def test_columns_of_children_answer_by_field_and_name_the_fields():
    columns = Children({"level": [1.0, 2.0]})
    assert columns.level == [1.0, 2.0]
    with pytest.raises(AttributeError, match=re.escape("no field 'levle'; fields are ['level']")):
        _ = columns.levle
