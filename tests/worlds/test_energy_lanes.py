"""The hooks of EnergyManagement for many lanes at once: each lane is, bit for bit, the environment with its seed."""

import pickle

import numpy as np
import pytest

from heron_env import Disturbance
from heron_env.envs.lane_hooks import BatchWorld
from heron_env.worlds.energy_management import Battery, TransformerZone, energy_management

pytestmark = pytest.mark.e2e

SEEDS = (3, 4, 11, 12, 40)
OPTIONS = {"dt": 3600.0, "physics_substeps": 1}


def lanes_world(layout, truth, lanes, seeds, episodes, steps):
    """The world of these lanes."""
    keys = (np.array(given, dtype=np.uint64) for given in (seeds, episodes))
    world = BatchWorld(layout, truth, np.array(lanes), *keys)
    world.step = np.array(steps)
    return world


def lanes_against_single(**options):
    """Begin, steps of different numbers, a part of the lanes anew; every lane against an environment of its own."""
    env, singles = energy_management(**OPTIONS, **options), [energy_management(**OPTIONS, **options) for _ in SEEDS]
    layout, initial = env.simulation.layout, env.simulation.truth.copy()
    truth, episodes, rng = np.tile(initial, (len(SEEDS), 1)), np.zeros(5, dtype=int), np.random.default_rng(0)

    def compare():
        for lane, single in enumerate(singles):
            assert np.array_equal(truth[lane], single.simulation.truth)

    def begin(lanes):
        started = np.tile(initial, (len(lanes), 1))
        seeds = [SEEDS[lane] for lane in lanes]
        env.begin(lanes_world(layout, started, lanes, seeds, episodes[lanes], np.zeros(len(lanes), dtype=int)))
        truth[lanes] = started
        for lane in lanes:
            single = singles[lane]
            single.simulation.truth[:] = initial
            single.simulation.begin(SEEDS[lane], int(episodes[lane]))
        compare()

    def finish(steps):
        amounts = rng.normal(size=(len(SEEDS), layout.size))
        world = lanes_world(layout, truth, range(len(SEEDS)), SEEDS, episodes, steps)
        for kind in (Battery, TransformerZone):
            ledger = world[kind].Ledger.amount
            ledger[...] = amounts[:, : ledger.shape[1]]
        env.finish(world)
        rewards = env.training_rewards(world)
        for lane, single in enumerate(singles):
            single.world.step = int(steps[lane])
            for kind in (Battery, TransformerZone):
                ledger = single.world[kind].Ledger.amount
                ledger[...] = amounts[lane, : len(ledger)]
            single.finish(single.world)
            assert rewards[lane].tolist() == list(single.training_signal().values())
        compare()

    begin([0, 1, 2, 3, 4])
    assert len(set(env.tables.days.tolist())) > 3
    assert env.tables.days.tolist() == [single.day for single in singles]
    finish([1, 1, 1, 1, 1])
    finish([2, 24, 7, 19, 23])
    episodes[[1, 3]] += 1
    begin([1, 3])
    finish([3, 1, 8, 1, 24])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"metering": "coming"},
        {"control": "zone"},
        {"num_batteries": 7, "passive_per_zone": 0},
        {"zone_size": 6, "control": "zone"},
    ],
)
def test_each_lane_is_the_environment_with_its_seed(options):
    lanes_against_single(**options)


def test_what_lies_outside_its_bounds_is_brought_within_them():
    env = energy_management(**OPTIONS)
    env.reset(seed=3)
    layout, truth = env.simulation.layout, np.tile(env.simulation.truth, (2, 1))
    world = lanes_world(layout, truth, [0, 1], [3, 4], [0, 0], [1, 1])
    columns = env.tables.columns(env.hierarchy, layout)
    low, high = layout.low[columns], layout.high[columns]
    world.put(columns, np.stack([low - 1.0, high + 1.0]))
    assert not world.touched, "nothing is left to be done"
    assert np.array_equal(truth[:, columns], [low, high])
    assert np.array_equal(world.get(columns[3:5]), truth[:, columns[3:5]])
    assert not world.touched, "nor by reading"
    world.put(columns, np.stack([low, np.full(len(low), np.nan)]))
    assert world.touched, "the batch looks for nan then, and names it"


def test_tables_grow_with_the_lanes_and_keep_what_they_have():
    env = energy_management(**OPTIONS)
    env.reset(seed=5)
    days, before, day = env.tables, env.tables.at(0, 7).copy(), env.day
    days.begin(np.array([3]), np.array([8]), np.array([0]), np.array([40]))
    assert np.array_equal(days.at(0, 7), before)
    assert days.days.tolist() == [day, -1, -1, 40]
    days.begin(np.array([1]), np.array([8]), np.array([0]), np.array([40]))
    assert np.array_equal(days.at(1, 7), days.at(3, 7)) and not np.array_equal(days.at(1, 7), before)


def test_a_pickled_environment_carries_no_tables():
    env = energy_management(dt=60.0)
    fresh = len(pickle.dumps(env))
    env.reset(seed=5)
    assert len(pickle.dumps(env)) - fresh < 30_000
    again = pickle.loads(pickle.dumps(env))
    assert all(np.array_equal(again.tables.at(0, step), env.tables.at(0, step)) for step in (0, 700, 1440))


def test_the_series_are_a_copy_that_the_next_day_leaves_alone():
    env = energy_management(dt=3600.0)
    env.reset(seed=5, options={"day": 100})
    series = env.series
    load = series.load.copy()
    env.reset(seed=6, options={"day": 200})
    assert np.array_equal(series.load, load)
    assert not np.array_equal(env.series.load, load)


def test_meters_of_the_coming_step_show_its_load_and_sun_with_what_disturbs_them():
    env = energy_management(dt=900.0, physics_substeps=1, metering="coming", day=172)
    spike = Disturbance(39_600.0, "load_spike", {"power": 4.0, "agent": "battery_2"}, True, duration=1800.0)
    clouds = Disturbance(41_400.0, "cloud_front", {"factor": 0.25}, True, duration=1800.0)
    env.reset(seed=3, options={"disturbances": [spike, clouds]})
    more, factor = np.zeros((97, 6)), np.ones((97, 1))
    more[44:46, 1], factor[46:48] = 4.0, 0.25
    for step in range(96):
        homes, coming = env.world[Battery], env.tables.at(0, step)
        load, pv = (coming[env.tables.parts[name]] for name in ("load", "pv"))
        assert np.array_equal(homes.Meter.load, load + more[step])
        assert np.array_equal(homes.Meter.pv, pv * factor[step])
        env.step({})
