"""MPC, each battery for itself: its plan is the optimum of the day that it expects, its columns are found by name."""

import functools

import numpy as np
import pytest

from heron_env.worlds.energy_management import MPC, STRONGEST, Foresight, energy_management
from heron_env.worlds.energy_management.agents import Constants
from heron_env.worlds.energy_management.baselines import (
    CLOCK,
    SEEN,
    ModelPredictive,
    ObservationColumns,
    _instant,
    baselines,
    kernel,
)
from heron_env.worlds.energy_management.calendar import TimeOfUse, evaluation_cases, summer_time

pytestmark = pytest.mark.e2e

NAMES = [*SEEN, *CLOCK]
CONSTANTS = Constants()


def worth(net, prices, hours, capacity, content):
    """Least cost (EUR) of a day that begins with `content` kWh, by linear programming."""
    from scipy.optimize import linprog

    n, c = len(net), CONSTANTS
    charge = c.wear_price + c.feed_in_price - c.stored_value * c.efficiency
    discharge = c.wear_price - c.feed_in_price + c.stored_value / c.efficiency
    cost = np.concatenate([charge * hours, discharge * hours, (prices - c.feed_in_price) * hours])
    until = np.tril(np.ones((n, n))) * hours
    stored = np.hstack([c.efficiency * until, -until / c.efficiency, np.zeros((n, n))])
    imported = np.hstack([np.eye(n), -np.eye(n), -np.eye(n)])
    right = np.concatenate([-net, np.full(n, capacity - content), np.full(n, content)])
    bounds = [(0, 5)] * (2 * n) + [(0, None)] * n
    found = linprog(cost, np.vstack([imported, stored, -stored]), right, bounds=bounds)
    assert found.status == 0
    return found.fun - c.stored_value * content


@functools.cache
def planner():
    """The kernel's loop over stages, alone."""
    import numba

    choices, back = kernel()._choices, kernel()._back

    @numba.njit
    def run(net, excess, prices, hours, capacity, law, slope, length):
        kept_slope, kept_length, stage, pieces = np.empty(640), np.empty(640), np.empty((2, 4)), 1
        for k in range(len(net) - 1, -1, -1):
            room = choices(law, net[k], excess[k], prices[k], hours[k], stage)
            pieces = back(slope, length, pieces, stage, capacity, room, kept_slope, kept_length)
        return pieces

    return run


def merged(net, excess, prices, hours, capacity, contents):
    """The same from each of `contents` on, by the kernel's merging of pieces, up to a constant."""
    law = ModelPredictive(NAMES, TimeOfUse(), CONSTANTS, 3).law
    slope, length = np.empty(640), np.empty(640)
    slope[0], length[0] = -CONSTANTS.stored_value, capacity
    pieces = planner()(net, excess, prices, hours, capacity, law, slope, length)
    assert np.all(np.diff(slope[:pieces]) > 0.0)
    assert length[:pieces].sum() == pytest.approx(capacity)
    value = np.concatenate([[0.0], np.cumsum(slope[:pieces] * length[:pieces])])
    return np.interp(contents, np.concatenate([[0.0], np.cumsum(length[:pieces])]), value)


def test_the_plan_is_the_optimum_of_the_day_it_expects():
    pytest.importorskip("scipy")
    generator = np.random.default_rng(1)
    for _ in range(6):
        stages, capacity = int(generator.integers(1, 12)), float(generator.uniform(1.0, 8.0))
        net, prices = generator.uniform(-4.0, 3.0, stages), generator.choice([0.256, 0.338, 0.43], stages)
        hours, contents = generator.choice([0.25, 0.5], stages), np.linspace(0.0, capacity, 7)
        exact = np.array([worth(net, prices, hours, capacity, content) for content in contents])
        ours = merged(net, np.zeros(stages), prices, hours, capacity, contents)
        assert ours - ours[0] == pytest.approx(exact - exact[0], abs=1e-6)


def test_it_keeps_room_for_what_the_zone_expects_above_its_limit():
    capacity, contents = 6.0, np.linspace(0.0, 6.0, 7)
    prices, hours = np.full(4, 0.338), np.full(4, 0.5)
    net, none = np.array([-2.0, -2.0, -2.0, 1.0]), np.zeros(4)
    excess = np.array([1.5, 0.0, 0.0, 0.0])
    without, expecting = (np.diff(merged(net, e, prices, hours, capacity, contents)) for e in (none, excess))
    assert expecting[-1] > 0.0 > without[-1]  # nearly full: another kWh is in the way
    assert expecting[0] < 0.0


def observation(**changed):
    """A battery at noon in a summer's forecast, nothing happening at the transformer."""
    angle, season = 2.0 * np.pi * 13.0 / 24.0, 2.0 * np.pi * 180.5 / 365.0
    values = dict.fromkeys(NAMES, 0.0) | {
        "Charge.soc": 0.9, "Charge.capacity": 10.0, "Meter.load": 1.0, "Zone.limit": 10.8,
        "Forecast.net_1h": 0.5, "Forecast.net_3h": 1.5, "Forecast.net_6h": 3.0, "Forecast.net_12h": 6.0,
        "Forecast.deficit_12h": 6.0, "Clock.hour_sin": np.sin(angle), "Clock.hour_cos": np.cos(angle),
        "Clock.season_sin": np.sin(season), "Clock.season_cos": np.cos(season),
    }  # fmt: skip
    return np.array([(values | changed)[name] for name in NAMES], dtype=np.float32)


def test_time_day_and_summer_time_are_read_off_the_clock():
    env = energy_management()
    names = env.observation_names("battery_1")
    columns = ModelPredictive(names, TimeOfUse(), CONSTANTS, 3).column
    for day in (0, 44, 87, 200, 299, 364):
        vector = env.reset(seed=1, options={"day": day})[0]["battery_1"]
        for step in range(3):
            time, number, ahead = _instant(ObservationColumns(columns, vector[None]))
            assert (number[0], ahead[0]) == (day, summer_time()[24 * day])
            assert time[0] == pytest.approx(60.0 * step, abs=3.0)
            vector = env.step({agent: [0.0] for agent in env.agents})[0]["battery_1"]


def test_it_covers_the_demand_and_relieves_the_transformer():
    policy = ModelPredictive(
        [f"zone_1.{name}" if name.startswith("Zone") else name for name in NAMES], TimeOfUse(), CONSTANTS, 3
    )
    over = observation(**{"Zone.power": 16.8, "Zone.mean_power": 16.8})
    assert policy.forward(observation())[0] == pytest.approx(-1.0)
    assert policy.forward(over)[0] == pytest.approx(-2.0, abs=1e-5)  # a third of 6 kW above the limit


def test_it_follows_the_slow_mean_less_the_older_the_news():
    names = [f"zone_1.{name}" if name.startswith("Zone") else name for name in NAMES]
    eager = Foresight(follow=4.0, fading=60.0)
    policy = ModelPredictive([*names, "age.battery_1", "age.zone_1"], TimeOfUse(), CONSTANTS, 3, eager)
    low = observation(**{"Zone.power": 0.0, "Zone.mean_power": 6.0})
    powers = [policy.forward(np.append(low, [0.0, age]).astype(np.float32))[0] for age in (0.0, 60.0, 600.0)]
    assert powers == pytest.approx([2.0, 0.0, -1.0], abs=1e-5)  # charges, saves the battery, covers the demand


def test_it_is_offered_where_batteries_decide_and_see_what_it_needs():
    assert MPC in baselines(energy_management(num_batteries=5))
    assert MPC not in baselines(energy_management(control="zone"))
    assert not ModelPredictive.fits([name for name in NAMES if name != "Forecast.net_3h"])


def test_it_does_better_than_the_strongest_rule_at_one_glance():
    gain = []
    for options, seed in evaluation_cases("validation", 1):
        env = energy_management(**options, compile=True)
        offered = baselines(env)
        mpc, rule = (env.run_synchronous(offered[name], seed=seed).returns["system_agent"] for name in (MPC, STRONGEST))
        gain.append(mpc - rule)
    assert np.mean(gain) > 2.0
