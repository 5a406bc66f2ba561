"""Groups, pictures and percentiles."""

import math

import numpy as np
import pytest

from heron_env import (
    Continuous,
    CoordinatorAgent,
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    SystemAgent,
    quantity,
)
from heron_env.envs.results import Percentiles


class Charge(FeatureProvider):
    visibility = ("public",)
    soc: float = quantity(default=0.5, low=0.0, high=1.0)
    free: float = 12345.678
    hidden: float = quantity(low=0.0, high=1.0, observed=False)


class Price(FeatureProvider):
    visibility = ("public",)
    value: float = quantity(default=0.3, low=0.0, high=1.0)


class Battery(FieldAgent):
    features = (Charge,)
    action = Continuous(-1.0, 1.0)


class Wide(Battery):
    action = Continuous(-2.0, 2.0)


class Valve(FieldAgent):
    action = Discrete(2)


class PricedEnv(HeronEnv):
    global_features = (Price,)


def env(**options: object) -> HeronEnv:
    agents = (
        Battery("battery_1", Charge(soc=0.0)),
        Wide("battery_2", Charge(soc=1.0)),
        Battery("battery_3"),
        Valve("valve"),
    )
    built = PricedEnv(SystemAgent("system_agent", CoordinatorAgent("zone_1", *agents)), max_steps=3, **options)
    built.reset(seed=0)
    return built


def test_a_group_is_a_name_stem_with_equal_spaces_and_lists_who_decides():
    assert env().group_map == {"battery": ["battery_1", "battery_3"], "battery:1": ["battery_2"], "valve": ["valve"]}
    assert list(env().groups) == ["system_agent", "zone", "battery", "battery:1", "valve"]


def test_a_group_shares_a_policy():
    result = env().run_synchronous({"*": lambda v: 0, "battery:1": lambda v: 2.0, "battery": lambda v: 1.0})
    assert {a: float(rows[0][1][0]) for a, rows in result.actions.items()} == {
        "battery_1": 1.0, "battery_2": 2.0, "battery_3": 1.0, "valve": 0.0,
    }  # fmt: skip


def test_text_shows_the_tree_with_all_observed_values():
    assert env(render_mode="ansi").render() == "\n".join(
        [
            "t = 0 s",
            "system_agent",
            "  zone_1",
            "    battery_1  Charge.soc=0  Charge.free=1.235e+04",
            "    battery_2  Charge.soc=1  Charge.free=1.235e+04",
            "    battery_3  Charge.soc=0.5  Charge.free=1.235e+04",
            "    valve",
            "global  Price.value=0.3",
        ]
    )


def test_the_picture_has_a_row_for_each_owner_and_a_cell_for_each_bounded_quantity():
    picture = env(render_mode="rgb_array").render()
    assert picture.shape == (16 * 4, 16, 3)
    assert picture.dtype == np.uint8
    assert picture[8, 8].tolist() == [68, 1, 84], "low is dark"
    assert picture[24, 8].tolist() == [253, 231, 37], "high is bright"
    assert picture[0, 0].tolist() == [245, 245, 245], "the ground between the cells"


def test_nothing_to_show_is_still_a_picture():
    bare = HeronEnv(SystemAgent("s", Valve("valve")), render_mode="rgb_array")
    bare.reset(seed=0)
    assert bare.render().shape == (16, 16, 3)
    assert (bare.state().shape, bare.state_names) == ((0,), [])


def test_percentiles_say_how_many_and_nan_where_there_are_none():
    p = Percentiles.of([1.0, 2.0, 3.0, 10.0])
    assert (p.count, p.mean, p.p50, p.max) == (4, 4.0, 2.5, 10.0)
    assert p.p95 == pytest.approx(8.95)
    nothing = Percentiles.of([])
    assert nothing.count == 0
    assert all(math.isnan(v) for v in (nothing.mean, nothing.p50, nothing.p95, nothing.max))
