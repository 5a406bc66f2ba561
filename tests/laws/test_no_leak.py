"""No leak: what the tags or the matrix hide from an observer changes no byte that reaches it."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from laws.checks_leak import (
    check_a_glance_tells_nothing,
    check_a_run_tells_nothing,
    check_noise_hides_the_exact_value,
    check_the_plan_shows_what_is_declared,
    kept_from,
    noisy_floats,
)
from laws.examples import FIELD
from laws.visibility import hidden
from strategies import Node, Recipe, delays, recipes

from heron_env import make
from heron_env.adapters.gymnasium import JointEnv
from heron_env.testing.clock import StateReport


@given(recipes())
def test_the_plan_shows_what_is_declared(recipe: Recipe) -> None:
    check_the_plan_shows_what_is_declared(recipe)


@given(recipes(), st.integers(0, 99))
def test_a_hidden_value_never_reaches_the_observer(recipe: Recipe, seed: int) -> None:
    check_a_glance_tells_nothing(recipe, seed)


@given(st.data())
def test_a_hidden_value_never_shows_in_a_whole_run(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    observer = data.draw(st.integers(0, 9))
    assume(kept_from(recipe.build(), observer)[1])
    check_a_run_tells_nothing(recipe, data.draw(st.one_of(st.none(), delays(recipe.dt))), observer)


@given(st.data())
def test_what_is_seen_with_noise_is_never_told_exactly(data: st.DataObject) -> None:
    recipe = data.draw(recipes(noisy=True))
    assume(noisy_floats(recipe.build()))
    check_noise_hides_the_exact_value(recipe, data.draw(st.one_of(st.none(), delays(recipe.dt))))


def test_the_joint_view_shows_what_its_agents_see_and_no_more() -> None:
    recipe = Recipe(Node("system", children=(Node("zone", children=(Node("unit"), Node("unit"))), Node("unit"))))
    plain, other = recipe.build(), recipe.build()
    possible = plain.simulation.model.possible
    unseen = set.intersection(*(set(hidden(plain, rank).tolist()) for rank in possible))
    assert unseen
    other.shift = dict.fromkeys(unseen, 3.0)
    views = [JointEnv(env).reset(seed=0) for env in (plain, other)]
    assert plain.simulation.truth.tobytes() != other.simulation.truth.tobytes()
    assert views[0][0].tobytes() == views[1][0].tobytes()
    assert repr(views[0][1]) == repr(views[1][1])
    assert len(views[0][0]) == sum(plain.simulation.model.plan.size(rank) for rank in possible)


@pytest.mark.parametrize("observer", range(4))
def test_the_oracle_hides_something_from_everyone(observer: int) -> None:
    assert len(hidden(FIELD.build(), observer))


def test_bookkeeping_never_travels() -> None:
    env = make("heron/EnergyManagement-v1", day=100)
    run = env.run_event_driven({"*": lambda vector: [1.0]}, t_end=300.0, seed=0, trace=True)
    reports = [record.payload for record in run.trace or [] if isinstance(record.payload, StateReport)]
    told = {name for report in reports for name in report.to_dict()["body"]["features"]}
    assert told == {"Charge", "Meter", "Setpoint", "Forecast", "Zone", "Tariff", "Clock"}
