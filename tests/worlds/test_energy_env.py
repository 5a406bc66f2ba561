"""EnergyManagement as an environment: physics and money against an independent loop, days, control, refusals."""

from functools import partial

import numpy as np
import pytest
from refusing import unsaid

from heron_env import ScheduleConfig
from heron_env.errors import ConfigError, FeatureError, HeronError, ResetNeeded
from heron_env.worlds.energy_management import Battery, TransformerZone, energy_management
from heron_env.worlds.energy_management.baselines import baselines
from heron_env.worlds.energy_management.calendar import TimeOfUse

pytestmark = pytest.mark.e2e


def independent_day(env, actions, substeps):
    """The specification's formulas in plain numbers: team's EUR, stored energy, slow means and meters after each step.

    Reads only the day's series and the start; knows nothing of features, rules or hooks.
    """
    series, zone_of, before = env.series, [0, 0, 0, 1, 1, 1], env.site.before(env.day)
    charge, bins = env.world[Battery].Charge, len(env.series.load) // len(env.series.clock)
    capacity, energy = charge.capacity.tolist(), (charge.soc * charge.capacity).tolist()
    net = before.load - before.pv
    mean = [net[:3].sum() + before.background[0], net[3:].sum() + before.background[1]]
    net = series.load - series.pv
    seconds = env.dt / substeps
    hours, course = seconds / 3600.0, []
    for k, row in enumerate(actions):
        team, price = 0.0, series.tariff[k, 0]
        for n in range(substeps):
            b = k * bins + n // (substeps // bins)
            power = [series.background[b, 0], series.background[b, 1]]
            for i in range(6):
                p = min(max(row[i], -5.0), 5.0)
                p = min(p, (capacity[i] - energy[i]) / (0.95 * hours)) if p > 0 else max(p, -0.95 * energy[i] / hours)
                change = 0.95 * p * hours if p > 0 else p * hours / 0.95
                energy[i] += change
                grid = net[b, i] + p
                money = price * grid if grid > 0 else 0.0786 * grid
                team += -money * hours - 0.01 * abs(p) * hours + 0.20 * change
                power[zone_of[i]] += grid
            for z in range(2):
                fine = (np.arange(2000) + 0.5) * (seconds / 2000.0)
                distance = np.abs(power[z] - mean[z]) * np.exp(-fine / 900.0)
                team -= 1.00 * max(abs(power[z]) - 10.8, 0.0) * hours + 0.10 * distance.mean() * seconds / 3600.0
                mean[z] += (1.0 - np.exp(-seconds / 900.0)) * (power[z] - mean[z])
        course.append((team, list(energy), list(mean), series.load[b], series.pv[b]))
    return course


@pytest.mark.parametrize(("dt", "substeps", "day"), [(60.0, 30, 172), (60.0, 6, 172), (900.0, 1, 17), (900.0, 6, 250)])
def test_physics_and_money_agree_with_an_independent_loop(dt, substeps, day):
    env = energy_management(dt=dt, physics_substeps=substeps)
    env.reset(seed=day, options={"day": day})
    actions = np.random.default_rng(day).uniform(-5.0, 5.0, (60, 6))
    expected = independent_day(env, actions, substeps)
    for row, (team, energy, mean, load, pv) in zip(actions, expected, strict=True):
        env.step(dict(zip(env.agents, row, strict=True)))
        charge, meter = env.world[Battery].Charge, env.world[Battery].Meter
        assert np.allclose(charge.soc * charge.capacity, energy, atol=1e-9)
        assert np.allclose(env.world[TransformerZone].Zone.mean_power, mean, atol=1e-9)
        assert env.simulation.last_rewards[0] == pytest.approx(team, abs=1e-6)
        assert np.allclose(meter.load, load, atol=1e-12) and np.allclose(meter.pv, pv, atol=1e-12)


def test_substeps_are_exact_while_no_battery_runs_full_or_empty():
    courses = []
    for substeps in (6, 12, 30):  # bins of 10 s
        env = energy_management(dt=60.0, physics_substeps=substeps)
        env.reset(seed=3, options={"day": 200})
        env.world[Battery].Charge.soc[...] = 0.5
        rng, course = np.random.default_rng(0), []
        for _ in range(24):
            env.step({agent: rng.uniform(-0.4, 0.4) for agent in env.agents})
            zone, home = env.world[TransformerZone].Zone, env.world[Battery]
            meters = [*home.Charge.soc, *home.Meter.load, *home.Meter.pv]
            course.append([*env.simulation.last_rewards, *meters, *zone.power, *zone.mean_power])
        courses.append(course)
    assert np.allclose(courses[0], courses[1], atol=1e-9, rtol=0)
    assert np.allclose(courses[0], courses[2], atol=1e-9, rtol=0)


def test_each_amount_is_in_the_team_return_once():
    env = energy_management(dt=900.0)
    result = env.run_synchronous({"*": lambda vector: 1.0}, seed=11)
    batteries = sum(result.returns[f"battery_{i}"] for i in range(1, 7))
    ledgers = result.returns["zone_1"] + result.returns["zone_2"] - batteries
    assert result.returns["system_agent"] == pytest.approx(batteries + ledgers)
    assert ledgers < 0.0
    members = sum(result.returns[f"battery_{i}"] for i in (1, 2, 3))
    assert result.returns["zone_1"] < members


@pytest.mark.parametrize(("control", "substeps"), [("field", 1), ("field", 18), ("zone", 18)])
def test_the_training_signal_subtracts_what_no_action_can_change(control, substeps):
    differences = []
    for scale in (0.0, 1.0):
        env = energy_management(dt=900.0, physics_substeps=substeps, control=control)
        env.reset(seed=8, options={"day": 120})
        rng, course = np.random.default_rng(1), []
        while env.agents:
            env.step({agent: scale * rng.uniform(-5.0, 5.0) for agent in env.agents})
            rewards = dict(zip(env.hierarchy.ids, env.simulation.last_rewards, strict=True))
            own = {f"zone_{z}": rewards[f"zone_{z}"] for z in (1, 2)}
            for i in range(1, 7):
                zone, members = ("zone_1", (1, 2, 3)) if i <= 3 else ("zone_2", (4, 5, 6))
                own[f"battery_{i}"] = (
                    rewards[f"battery_{i}"] + rewards[zone] - sum(rewards[f"battery_{m}"] for m in members)
                )
            signal = env.training_signal()
            assert list(signal) == env.possible_agents
            course.append([own[agent] - value for agent, value in signal.items()])
            if scale == 0.0:
                assert np.allclose(list(signal.values()), 0.0, atol=1e-12), "doing nothing gains nothing"
        differences.append(course)
    assert np.allclose(*differences, atol=1e-12)


def test_the_day_ends_by_rule_and_is_terminated_not_truncated():
    env = energy_management(dt=3600.0)
    result = env.run_synchronous({"*": lambda vector: 0.0}, seed=0)
    assert result.end_time == 86_400.0
    assert all(result.terminated.values())
    assert not any(result.truncated.values())
    env = energy_management(dt=3600.0, max_steps=5)
    result = env.run_synchronous({"*": lambda vector: 0.0}, seed=0)
    assert all(result.truncated.values())
    assert not any(result.terminated.values())


def test_coarse_and_fine_environments_have_the_same_observations():
    coarse, fine = energy_management(dt=900.0), energy_management(dt=60.0)
    for agent in fine.possible_agents:
        assert coarse.observation_names(agent) == fine.observation_names(agent)
        assert coarse.observation_space(agent) == fine.observation_space(agent)
        assert coarse.action_space(agent) == fine.action_space(agent)
    one, other = (env.reset(seed=9)[0]["battery_2"] for env in (coarse, fine))
    same = [
        i for i, name in enumerate(fine.observation_names("battery_2")) if "Meter" not in name and "power" not in name
    ]
    assert coarse.day == fine.day
    assert np.array_equal(one[same], other[same])


def test_a_battery_sees_itself_its_zone_and_the_public_and_nobody_sees_the_books():
    env = energy_management()
    assert env.observation_names("battery_4") == [
        "Charge.soc", "Charge.capacity", "Meter.load", "Meter.pv", "Setpoint.power",
        "Forecast.surplus_rest", "Forecast.deficit_12h",
        "Forecast.net_1h", "Forecast.net_3h", "Forecast.net_6h", "Forecast.net_12h",
        "zone_2.Zone.power", "zone_2.Zone.mean_power", "zone_2.Zone.limit", "zone_2.Zone.excess_rest",
        "global.Tariff.price", "global.Tariff.next_price", "global.Tariff.hours_to_change",
        "global.Clock.hour_sin", "global.Clock.hour_cos", "global.Clock.season_sin", "global.Clock.season_cos",
    ]  # fmt: skip
    zone = energy_management(control="zone").observation_names("zone_1")
    assert [name for name in zone if name.startswith("battery_1.")] == [
        "battery_1.Charge.soc", "battery_1.Charge.capacity", "battery_1.Meter.load", "battery_1.Meter.pv",
        "battery_1.Setpoint.power",
    ]  # fmt: skip
    assert not [name for name in zone if "Forecast" in name or "battery_4" in name or "Background" in name]


def test_a_zone_splits_its_set_point_by_capacity():
    env = energy_management(control="zone", dt=900.0)
    env.reset(seed=0)
    assert env.possible_agents == ["zone_1", "zone_2"]
    assert env.action_space("zone_1").high == [15.0]
    env.step({"zone_1": 3.0, "zone_2": -6.0})
    batteries = env.world[Battery]
    capacity = batteries.Charge.capacity
    assert np.allclose(batteries.Setpoint.power[:3], 3.0 * capacity[:3] / capacity[:3].sum())
    assert np.allclose(batteries.Setpoint.power[3:], -6.0 * capacity[3:] / capacity[3:].sum())


def test_any_number_of_batteries_is_allowed():
    env = energy_management(num_batteries=7, zone_size=3, passive_per_zone=1, dt=900.0)
    result = env.run_synchronous({"*": lambda vector: np.clip(vector[3] - vector[2], -5, 5)}, seed=4)
    assert len(env.possible_agents) == 7
    assert np.allclose(env.world[TransformerZone].Zone.limit, [7.2, 7.2, 3.6])
    assert np.isfinite(result.returns["system_agent"])


def test_days_come_from_the_split_by_seed_and_can_be_chosen():
    for split, rest in (("test", {2}), ("validation", {4}), ("train", {0, 1, 3})):
        env = energy_management(dt=21_600.0, split=split)
        days = []
        for seed in range(12):
            env.reset(seed=seed)
            days.append(env.day)
        assert {day % 5 for day in days} <= rest
        assert len(set(days)) > 6
    env.reset(seed=1)
    first = env.day
    env.reset(seed=1, options={"day": 200})
    assert env.day == 200
    env.reset(seed=1)
    assert env.day == first, "a chosen day holds for one episode"
    env.reset()
    assert env.day != first, "the next episode of a seed is another day"
    fixed = energy_management(dt=21_600.0, day=17)
    fixed.reset(seed=3)
    assert fixed.day == 17


def test_the_start_is_drawn_by_seed_within_its_bounds():
    env = energy_management(dt=21_600.0)
    socs = []
    for seed in range(40):
        env.reset(seed=seed)
        socs.append(env.world[Battery].Charge.soc.copy())
    assert 0.1 <= np.min(socs) < 0.2
    assert 0.8 < np.max(socs) <= 0.9
    env.reset(seed=0)
    assert np.array_equal(env.world[Battery].Charge.soc, socs[0])
    capacities = energy_management(neighbourhood=1).hierarchy.agents
    assert [a.initial[0] for a in capacities if isinstance(a, Battery)] != [
        a.initial[0] for a in env.hierarchy.agents if isinstance(a, Battery)
    ]


def test_a_delay_costs_once_it_reaches_a_substep():
    env = energy_management(day=172, dt=600.0, physics_substeps=120, max_steps=54)
    policies = baselines(env)["self-consumption"]

    def gain(delay):
        schedule = ScheduleConfig(tick_interval=600.0, act_delay=delay)
        return env.run_event_driven(policies, seed=172, schedule=schedule, record=()).returns["system_agent"]

    prompt, late, later = gain(0.0), gain(150.0), gain(600.0)
    assert gain(4.9) == prompt
    assert prompt > gain(5.0) > late > later


def test_kpis_say_what_happened():
    env = energy_management(dt=900.0, physics_substeps=1, day=195)
    idle = env.run_synchronous({"*": lambda vector: 0.0}, seed=195).kpis
    own = env.run_synchronous({"*": lambda vector: np.clip(vector[3] - vector[2], -5, 5)}, seed=195).kpis
    series = env.series
    power = np.abs((series.load - series.pv) @ env.membership.T + series.background)
    net = series.load - series.pv
    assert idle["full_cycles"] == 0.0
    assert idle["peak"] == pytest.approx(power.max())
    assert idle["overload_minutes"] == pytest.approx((power > 10.8).sum() * 15.0)
    bill = (series.tariff[:, :1] * np.maximum(net, 0.0) - 0.0786 * np.maximum(-net, 0.0)).sum() * 0.25
    assert idle["cost"] == pytest.approx(bill)
    assert idle["self_consumption"] == pytest.approx(np.minimum(series.load, series.pv).sum() / series.pv.sum())
    assert own["self_consumption"] > idle["self_consumption"]
    assert own["cost"] < idle["cost"]
    assert 0.2 < own["full_cycles"] < 2.0


def test_constants_are_arguments():
    free = energy_management(dt=900.0, day=262, overload_price=0.0, fluctuation_price=0.0)
    result = free.run_synchronous({"*": lambda vector: 0.0}, seed=1)
    batteries = sum(result.returns[f"battery_{i}"] for i in range(1, 7))
    assert result.returns["system_agent"] == pytest.approx(batteries)
    flat = energy_management(dt=900.0, tariff=TimeOfUse(low=0.3, standard=0.3, high=0.3), day=10)
    flat.reset(seed=0)
    assert set(flat.series.tariff[:, 0]) == {0.3}
    assert flat.series.tariff[0, 1] == 0.3


WRONG = [
    ({"dt": 0}, "dt=0 must be a number > 0 and <= 86400"),
    ({"split": "trian"}, "Did you mean 'train'?"),
    ({"num_batteries": 0}, "num_batteries=0: must be a whole number >= 1"),
    ({"zone_size": 1.5}, "zone_size=1.5: must be a whole number >= 1"),
    ({"neighbourhood": -1}, "neighbourhood=-1: must be a whole number >= 0"),
    ({"limit_per_home": -1}, "limit_per_home=-1 must be a number > 0 and <= 100"),
    ({"feed_in_price": 0.3}, "feed_in_price=0.3 EUR/kWh exceeds the lowest price 0.256"),
    ({"physics_substeps": 0}, "physics_substeps=0"),
    ({"metering": "comming"}, "Did you mean 'coming'?"),
    ({"physics_substeps": 10**18}, "dt=60.0 s: must be > 0 and at least one ns per substep"),
    ({"dt": 5e-324}, "dt=5e-324 s must divide the day's 86,400 s"),
    ({"control": np.zeros(2)}, "control=array([0., 0.]): must be one of"),
    ({"network": np.zeros(2)}, "network=array([0., 0.]) must be None, 'radial'"),
    ({"profiles": "x" * 300}, "no such file"),
    ({"metering": "coming"}, "metering='coming': a step of 60 s and 30 substeps has 6 bins; it is for coarse"),
]


def test_a_wrong_argument_is_refused():
    assert unsaid(HeronError, [(partial(energy_management, **wrong), words) for wrong, words in WRONG]) == []


@pytest.mark.parametrize("seed", [2**64 + 7, 10**30])
def test_a_seed_beyond_64_bits_begins_what_its_last_64_bits_begin(seed):
    first, second = (energy_management(dt=21_600.0).reset(seed=s)[0] for s in (seed, seed % 2**64))
    assert all(np.array_equal(first[agent], second[agent]) for agent in first)


def test_substeps_may_be_told_as_a_float_that_is_whole():
    assert (
        energy_management(dt=900.0, physics_substeps=90.0).bins == energy_management(physics_substeps=90, dt=900).bins
    )


@pytest.mark.parametrize(("state", "words"), [({}, "lacks .*'day'"), (3, "is 3; give")])
def test_a_state_without_a_day_is_none(state, words):
    with pytest.raises(ConfigError, match=rf"set_state\(\): the state {words}"):
        energy_management(dt=21_600.0).set_state(state)


@pytest.mark.parametrize("day", ["1", 365, None])
def test_a_state_of_no_day_is_refused(day):
    env = energy_management(dt=21_600.0)
    env.reset(seed=0)
    with pytest.raises(ConfigError, match=f"day={day!r} must be a whole number"):
        env.set_state({**env.get_state(), "day": day})


def test_a_wrong_constant_and_a_wrong_day_are_refused():
    with pytest.raises(FeatureError, match=r"Constants.efficiency=1.2 lies outside \[0.5, 1.0\]"):
        energy_management(efficiency=1.2)
    env = energy_management(dt=21_600.0)
    with pytest.raises(ResetNeeded, match="no day is running"):
        _ = env.series
    with pytest.raises(ConfigError, match="day=-3 must be a whole number"):
        env.reset(seed=0, options={"day": -3})
