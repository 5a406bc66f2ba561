"""Bins of EnergyManagement: what a meter shows has ended, however finely a step is split and wherever it is cut."""

import copy
import pickle

import numpy as np
import pytest

from heron_env import Disturbance
from heron_env.worlds.energy_management import MPC, STRONGEST, Battery, TransformerZone, energy_management
from heron_env.worlds.energy_management.agents import bin_at, bins_of, home_series

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    ("dt", "substeps", "bins"),
    [
        (60.0, 30, 6), (60.0, 6, 6), (60.0, 12, 6), (60.0, 7, 1), (60.0, 4, 4), (60.0, 1, 1), (900.0, 1, 1),
        (900.0, 30, 30), (900.0, 90, 90), (10.0, 5, 1), (5.0, 1, 1), (48.0, 30, 3), (300.0, 30, 30),
    ],
)  # fmt: skip
def test_a_bin_is_the_shortest_run_of_substeps_that_divides_the_step_and_lasts_ten_seconds(dt, substeps, bins):
    lengths = [n * dt / substeps for n in range(1, substeps + 1) if substeps % n == 0]
    assert dt / bins == pytest.approx(min((length for length in lengths if length >= 10.0 - 1e-9), default=dt))
    assert bins_of(dt, substeps) == bins
    env = energy_management(dt=dt, physics_substeps=substeps)
    assert (env.bins, env.bin_length, env.report_interval) == (bins, dt / bins, dt / bins)


@pytest.mark.parametrize("length", [10.0, 48.0 / 3, 900.0, 86_400.0 / 7])
def test_an_edge_belongs_to_the_bin_that_begins_there_however_it_was_reached(length):
    for number in range(0, 8640, 7):
        edge = number * length
        for time in (edge, np.nextafter(edge, 0.0), sum([length / 5.0] * 5 * min(number, 40), 0.0)):
            assert bin_at(time, length) == (number if time >= edge * (1 - 1e-15) else min(number, 40))


def seen(env, agent):
    """What the agent would see now."""
    simulation = env.simulation
    return simulation.model.plan.vector(env.hierarchy.index[agent], simulation.truth, simulation.moment, None)


def measured(env, steps):
    """Meters `[steps + 1, 2, batteries]` at each boundary, from reset on."""
    found = []
    for step in range(steps + 1):
        if step:
            env.step(dict.fromkeys(env.agents, 1.0))
        found.append([env.world[Battery].Meter.load.copy(), env.world[Battery].Meter.pv.copy()])
    return np.array(found)


@pytest.mark.parametrize(
    ("dt", "substeps"), [(60.0, 30), (60.0, 6), (60.0, 12), (60.0, 1), (900.0, 1), (900.0, 30), (48.0, 30)]
)
def test_a_meter_shows_the_mean_of_the_bin_that_has_ended_whatever_the_number_of_substeps(dt, substeps):
    env = energy_management(dt=dt, physics_substeps=substeps)
    env.reset(seed=3, options={"day": 172})
    seen, series = measured(env, 12), env.series
    last = np.arange(1, 13) * env.bins - 1
    assert np.allclose(seen[1:, 0], series.load[last], rtol=1e-12, atol=0.0)
    assert np.allclose(seen[1:, 1], series.pv[last], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("compile", [True, False])
def test_at_midnight_everything_measured_is_of_the_quarter_hour_before(compile):
    env = energy_management(dt=900.0, physics_substeps=1, compile=compile)
    env.reset(seed=3, options={"day": 172})
    load, pv, business = (quarters[:, -1] for quarters in env.site.base(171))
    meter, zone = env.world[Battery].Meter, env.world[TransformerZone].Zone
    assert np.array_equal(meter.load, load[:6]) and np.array_equal(meter.pv, pv[:6])
    members = env.site.neighbourhood.membership
    assert np.allclose(zone.power, members @ (load - pv) + business) and np.array_equal(zone.power, zone.mean_power)
    env.reset(seed=4, options={"day": 172})
    assert np.array_equal(meter.load, load[:6]), "the day's draws are still to come"


@pytest.mark.parametrize("options", [{}, {"dt": 900.0, "physics_substeps": 1}, {"control": "zone"}])
def test_no_observation_depends_on_what_is_to_come(options):
    """Another future, written where `finish` writes it: everything seen stays; the step that runs on it differs."""
    env, other = energy_management(**options), energy_management(**options)
    for step in range(4):
        for one in (env, other):
            if step == 0:
                one.reset(seed=5, options={"day": 172})
            else:
                one.step(dict.fromkeys(one.agents, 0.5))
        other.set_state(env.get_state())
        homes, zones = other.world[Battery].HomeSeries, other.world[TransformerZone].ZoneSeries
        homes.load[...] += 2.0
        homes.pv[...] += 1.0
        zones.power[...] -= 3.0
        for agent in env.possible_agents:
            assert np.array_equal(seen(other, agent), seen(env, agent))
        here, there = (one.step(dict.fromkeys(one.agents, 0.5))[0] for one in (env, other))
        for agent in env.possible_agents:
            assert not np.array_equal(here[agent], there[agent])


@pytest.mark.parametrize("control", ["field", "zone"])
def test_coarse_meters_may_show_the_coming_step_for_training_alone(control):
    options = {"dt": 900.0, "physics_substeps": 1, "control": control}
    past, coming = energy_management(**options), energy_management(**options, metering="coming")
    for env in (past, coming):
        env.reset(seed=3, options={"day": 172})
    earlier, later = measured(past, 90), measured(coming, 90)
    series = coming.series
    assert np.array_equal(later[:90, 0], series.load[:90]) and np.array_equal(later[:90, 1], series.pv[:90])
    assert np.allclose(earlier[1:], later[:-1], rtol=1e-12)
    assert past.simulation.last_rewards == coming.simulation.last_rewards


def test_training_sees_the_coming_step_and_corrects_the_strongest_there_is():
    defaults = energy_management().training_defaults()
    assert defaults.options == {"dt": 300.0, "physics_substeps": 1, "metering": "coming", "split": "train"}
    assert defaults.base == MPC
    assert energy_management(control="zone").training_defaults().base == STRONGEST


@pytest.mark.parametrize("compile", [True, False])
@pytest.mark.parametrize(("begins", "ends", "parts"), [(13.7, 23.5, {1: 0.8, 2: 0.2}), (53.7, 56.7, {5: 0.4})])
def test_what_cuts_a_substep_is_metered_and_paid_in_the_bins_in_which_it_flowed(compile, begins, ends, parts):
    """Begin and end count from the start of their substep (T1); the begin cuts it in two, 1.7 s and 0.3 s."""
    env = energy_management(max_steps=1, day=172, compile=compile)
    idle = {"*": lambda vector: np.zeros(1)}
    calm = env.run_event_driven(idle, seed=3).kpis
    load, pv, price = env.series.load, env.series.pv, env.series.tariff[0, 0]
    assert not pv[:6].any(), "night"
    spike = Disturbance(begins, "load_spike", {"agent": "battery_2", "power": 6.0}, True, duration=ends - begins)
    shaken = env.run_event_driven(idle, seed=3, disturbances=[spike]).kpis
    assert shaken["cost"] - calm["cost"] == pytest.approx(price * 6.0 * sum(parts.values()) / 360.0, rel=1e-9)
    expected = load[5] + 6.0 * parts.get(5, 0.0) * np.eye(6)[1]
    assert np.allclose(env.world[Battery].Meter.load, expected, rtol=1e-12)


def test_disturbances_leave_the_tables_columns_alone():
    events = [
        Disturbance(900.0, "cloud_front", {"factor": 0.3}, duration=3600.0),
        Disturbance(900.0, "load_spike", {"agent": "zone_1", "power": 5.0}, duration=3600.0),
        Disturbance(900.0, "transformer_derating", {"factor": 0.5}, duration=3600.0),
    ]
    calm, shaken = energy_management(dt=900.0, physics_substeps=1), energy_management(dt=900.0, physics_substeps=1)
    calm.reset(seed=3, options={"day": 172})
    shaken.reset(seed=3, options={"day": 172, "disturbances": events})
    written = calm.tables.columns(calm.hierarchy, calm.simulation.model.layout)
    for _ in range(8):
        for env in (calm, shaken):
            env.step(dict.fromkeys(env.agents, 0.0))
        assert np.array_equal(shaken.simulation.truth[written], calm.simulation.truth[written])


def test_a_feature_of_so_many_bins_is_one_class_that_copies_and_pickles_find():
    assert home_series(6) is home_series(6) is not home_series(1)
    feature = home_series(6)(load=np.arange(6.0))
    for again in (pickle.loads(pickle.dumps(feature)), copy.deepcopy(feature)):
        assert type(again) is home_series(6) and again == feature
    assert home_series(6).feature_name == "HomeSeries"
