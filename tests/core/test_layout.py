"""The layout: cohorts contiguous, one entry per column, and the world's columns as views on the truth."""

import numpy as np
from refusing import refuses

from heron_env import FeatureProvider, World, quantity
from heron_env.core.layout import Layout
from heron_env.errors import UnknownFeature
from heron_env.seeding import key, uniforms


class Charge(FeatureProvider):
    soc: float = quantity(default=0.5, low=0.0, high=1.0)
    cycles: int = quantity(low=0, high=9)


class Ledger(FeatureProvider):
    cost: float = quantity(per_step=True, observed=False)


class Shape(FeatureProvider):
    load: np.ndarray = quantity(shape=(2,), low=0.0)


class Price(FeatureProvider):
    visibility = ("public",)
    value: float = quantity(default=0.3, foreknown=True)


class Battery: ...


class Home: ...


class Watcher: ...


OWNERS = [
    ("s", 3, "SystemAgentState", Watcher, ()),
    ("b_1", 1, "FieldAgentState", Battery, (Charge, Ledger)),
    ("h_1", 1, "FieldAgentState", Home, (Shape,)),
    ("b_2", 1, "FieldAgentState", Battery, (Charge, Ledger)),
    ("b_3", 1, "FieldAgentState", Battery, (Charge,)),
    ("global", 0, "State", type(None), (Price,)),
]


def layout() -> Layout:
    return Layout(OWNERS)


def test_every_column_knows_its_owner_name_and_bounds():
    plan = layout()
    assert plan.names == [
        *["Charge.soc", "Charge.cycles", "Ledger.cost"] * 2,
        *["Shape.load[0]", "Shape.load[1]", "Charge.soc", "Charge.cycles", "Price.value"],
    ]
    assert [plan.rows[rank].owner_id for rank in plan.owner_of] == [
        *["b_1"] * 3, *["b_2"] * 3, "h_1", "h_1", "b_3", "b_3", "global",
    ]  # fmt: skip
    assert plan.low[:3].tolist() == [0.0, 0.0, -np.inf]
    assert plan.high[:3].tolist() == [1.0, 9.0, np.inf]
    assert np.flatnonzero(plan.integer).tolist() == [1, 4, 9]
    assert plan.per_step.tolist() == [2, 5]
    assert np.flatnonzero(~plan.observed).tolist() == [2, 5]
    assert np.flatnonzero(plan.foreknown).tolist() == [10], "known ahead is what is marked so"


def test_clipping_brings_every_column_into_bounds_and_whole_ones_to_whole_numbers():
    array = np.full(11, -3.4)
    layout().clip_columns(array)
    assert array.tolist() == [0.0, 0.0, -3.4, 0.0, 0.0, -3.4, 0.0, 0.0, 0.0, 0.0, -3.4]
    array[:] = 4.6
    layout().clip_columns(array)
    assert array.tolist() == [1.0, 5.0, 4.6, 1.0, 5.0, 4.6, 4.6, 4.6, 1.0, 5.0, 4.6]


def test_columns_of_the_world_are_views_on_the_truth():
    truth = np.zeros(11)
    world = World(Layout([*OWNERS[:4], OWNERS[5]]), truth)
    soc = world[Battery].Charge.soc
    assert soc.shape == (2,)
    assert soc.strides == (3 * 8,)
    assert np.shares_memory(soc, truth)
    soc[:] = [0.1, 0.2]
    world[Battery].Ledger.cost = [5.0, 6.0]
    world[Home].Shape.load[:, 1] = 4.0
    world.Price.value[...] = 0.9
    assert truth[:9].tolist() == [0.1, 0.0, 5.0, 0.2, 0.0, 6.0, 0.0, 4.0, 0.9]
    assert world[Home].Shape.load.shape == (1, 2)
    assert world.Price.value.shape == (1,)


def test_the_world_names_what_it_has():
    world = World(layout(), np.zeros(11))
    with refuses(
        UnknownFeature, "world[Battery]: agents of that class carry different features; give each set its own class"
    ):
        _ = world[Battery]
    with refuses(UnknownFeature, "Shape has no field 'lod'; fields are ['load']. Did you mean 'load'?"):
        world[Home].Shape.lod = 3.0


def test_draws_are_keyed_by_seed_episode_step_and_name_alone():
    world = World(layout(), np.zeros(11))
    world.seed, world.episode, world.step = 4, 1, 7
    first = world.draw("clouds", (2, 3))
    world.draw("other", 50)
    assert np.array_equal(world.draw("clouds", (2, 3)), first)
    assert np.array_equal(first, uniforms(key("world", 4, 1, 7, "clouds"), (2, 3)))
    assert np.array_equal(world.draw("clouds", 6), first.reshape(6))
    draws = {float(first[0, 0]), float(world.draw("rain")[0])}
    for attribute in ("seed", "episode", "step"):
        setattr(world, attribute, 99)
        draws.add(float(world.draw("clouds")[0]))
    assert len(draws) == 5
