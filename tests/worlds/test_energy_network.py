"""EnergyManagement with network physics: who is connected where, what it costs, the same bits in every execution."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from heron_env import Disturbance
from heron_env.errors import ConfigError, RuleError
from heron_env.power_flow import Feeder, Fixed, Line, PowerFlow
from heron_env.worlds.energy_management import Battery, EnergyManagementEnv, energy_management
from heron_env.worlds.energy_management.factory import hierarchy
from heron_env.worlds.energy_management.network import (
    TRANSFORMERS,
    ConnectedBattery,
    Network,
    NetworkedEnergyManagementEnv,
    NetworkZone,
    transformer_for,
)
from worlds.batches import batch_is_its_lanes

pytestmark = pytest.mark.e2e

VILLAGE = Path(__file__).parents[1] / "power_flow" / "data" / "village.json"
COARSE = {"dt": 3600.0, "physics_substeps": 2}
WEAK = Network(voltage_band=(0.98, 1.02), distance=150.0)


def played(env, steps=24, seed=3, day=172):
    """Rewards `[steps, agents]` of an episode of drawn actions."""
    env.reset(seed=seed, options={"day": day})
    rng, rewards = np.random.default_rng(seed), []
    for _ in range(steps):
        _, earned, *_ = env.step({agent: rng.uniform(-5.0, 5.0) for agent in env.possible_agents})
        rewards.append([*env.simulation.last_rewards, *earned.values()])
    return np.array(rewards)


def test_without_the_option_nothing_is_added():
    env = energy_management(**COARSE)
    assert type(env) is EnergyManagementEnv
    assert not any("voltage" in name or "loading" in name for name in env.simulation.model.layout.full_names)
    assert "advance" not in type(env).python_hooks()


def test_a_network_changes_the_pay_of_zones_and_nothing_else():
    plain, wired = energy_management(**COARSE), energy_management(**COARSE, network=WEAK)
    without, with_network = played(plain), played(wired)
    index = wired.hierarchy.index
    batteries = [index[agent] for agent in wired.possible_agents]
    assert np.array_equal(with_network[:, batteries], without[:, batteries])
    zones = [index["zone_1"], index["zone_2"]]
    assert (with_network[:, zones] < without[:, zones]).any(), "the band is narrow and the cable long"
    assert (with_network[:, zones] <= without[:, zones] + 1e-12).all()
    free = Network(WEAK.voltage_band, voltage_price=0.0, loading_price=0.0, distance=WEAK.distance)
    assert np.array_equal(played(energy_management(**COARSE, network=free)), without)


def test_what_the_option_adds_is_seen_by_home_and_zone_only():
    env = energy_management(**COARSE, network="radial")
    names = env.observation_names("battery_1")
    assert [name for name in names if "voltage" in name and "Terminal" in name] == ["Terminal.voltage"]
    assert {"zone_1.Grid.transformer_loading", "zone_1.Grid.losses", "zone_1.Grid.lowest_voltage"} <= set(names)
    zone = energy_management(**COARSE, network="radial", control="zone").observation_names("zone_1")
    assert [name for name in zone if "Terminal" in name] == [f"battery_{k}.Terminal.voltage" for k in (1, 2, 3)]


# Zone of three batteries and three other homes: connection 1 is the business, then homes in turns.
BATTERY_BUS, OTHER_BUS = (2, 4, 6), (1, 3, 5, 7)


def test_voltages_money_and_accounts_agree_with_an_independent_loop():
    env = energy_management(**COARSE, network=WEAK, compile=False)
    unpaid = energy_management(**COARSE)
    expected = played(unpaid, steps=12)
    env.reset(seed=3, options={"day": 172})
    rng, solver, series = np.random.default_rng(3), PowerFlow(WEAK.feeder(7, 6)), env.series
    outside_minutes, lost, worst = np.zeros(2), np.zeros(2), 0.0
    zones = [env.hierarchy.index["zone_1"], env.hierarchy.index["zone_2"]]
    for step in range(12):
        actions = {agent: rng.uniform(-5.0, 5.0) for agent in env.possible_agents}
        grids = []

        def noting(world, dt, grids=grids):
            grids.append(world[Battery].Flow.grid.copy())
            type(env).advance(env, world, dt)

        env.advance = noting
        env.step(actions)
        del env.advance
        paid = np.zeros(2)
        for bin, grid in enumerate(grids, start=2 * step):  # one a substep
            for zone in range(2):
                p, q = np.zeros(8), np.zeros(8)
                for k, bus in enumerate(BATTERY_BUS):
                    p[bus] = grid[3 * zone + k]
                    q[bus] = series.load[bin, 3 * zone + k] * np.tan(np.arccos(0.95))
                for bus in OTHER_BUS:
                    p[bus] = series.background[bin, zone] / 4.0
                    q[bus] = max(p[bus], 0.0) * np.tan(np.arccos(0.95))
                flows = solver.solve([p], [q])
                volts = flows.voltage[0, 1:]
                beyond = np.maximum(volts - 1.02, 0.0).sum() + np.maximum(0.98 - volts, 0.0).sum()
                loading = max(flows.transformer[0], flows.loading[0].max())
                paid[zone] += 0.5 * (10.0 * beyond + 10.0 * max(loading - 1.0, 0.0))
                outside_minutes[zone] += 30.0 * (beyond > 0.0)
                lost[zone] += 0.5 * flows.losses[0]
                worst = max(worst, loading)
        rewards = np.array(env.simulation.last_rewards)[zones]
        assert np.allclose(rewards, expected[step, zones] - paid, rtol=1e-12, atol=1e-12)
        seen = env.world[NetworkZone].Grid
        assert seen.losses[1] == pytest.approx(flows.losses[0])
        assert (seen.lowest_voltage[1], seen.highest_voltage[1]) == pytest.approx(
            (flows.voltage.min(), flows.voltage.max())
        )
        assert env.world[ConnectedBattery].Terminal.voltage[3:].tolist() == pytest.approx(
            flows.voltage[0, list(BATTERY_BUS)].tolist()
        )
    kpis = env.kpis()
    assert outside_minutes.sum() > 0.0
    assert kpis["outside_minutes"] == pytest.approx(outside_minutes.sum())
    assert kpis["lost_energy"] == pytest.approx(lost.sum())
    assert kpis["max_loading"] == pytest.approx(worst)
    assert kpis["collapsed_minutes"] == 0.0


SHAPES = [{}, {"control": "zone"}, {"num_batteries": 7, "passive_per_zone": 0}]


@pytest.mark.parametrize("compile", [True, False], ids=["compiled", "plain"])
@pytest.mark.parametrize("options", SHAPES, ids=["field", "zone", "unequal zones"])
def test_a_batch_is_its_lanes_bit_for_bit(options, compile):
    batch_is_its_lanes("heron/EnergyManagement-v1", **COARSE, **options, network=WEAK, compile=compile)


def test_what_ends_each_substep_is_compiled_unless_a_subclass_has_its_own():
    calls = []

    class Own(NetworkedEnergyManagementEnv):
        def advance(self, world, dt):
            calls.append(dt)
            super().advance(world, dt)

    made = energy_management(**COARSE, network=WEAK, compile=True)
    assert "advance" not in type(made).python_hooks() and "advance" in Own.python_hooks()
    system = hierarchy(made.site, "field", made.bins, ConnectedBattery, NetworkZone)
    own = Own(system, made.site, made.constants, network=WEAK, days=made.days, **COARSE, compile=True)
    assert np.array_equal(played(own, 3), played(made, 3))
    assert calls == [1800.0] * 6


@pytest.mark.parametrize("compile", [True, False])
def test_a_load_that_is_nan_is_an_error_and_never_a_voltage(compile):
    env = energy_management(**COARSE, network=WEAK, compile=compile)
    env.reset(seed=3)
    background, grid = env.world[NetworkZone].Background.power, env.world[NetworkZone].Grid
    background[1] = np.nan
    grid.losses[...] = 7.0
    env.networks[0].substep(env.world.rows, 60.0)
    assert grid.losses[0] != 7.0 and grid.losses[1] == 7.0, "that zone stays as it is"
    env.world[NetworkZone].ZoneSeries.power[1] = np.nan
    with pytest.raises(RuleError, match="advance of 'zone_2' returned nan"):
        env.step(dict.fromkeys(env.possible_agents, 0.0))


def test_plain_python_agrees_with_compiled_code():
    compiled, plain = (energy_management(**COARSE, network=WEAK, compile=compile) for compile in (True, False))
    assert np.allclose(played(compiled, 6), played(plain, 6), atol=1e-9, rtol=0.0)


@pytest.mark.parametrize("control", ["field", "zone"])
def test_both_clocks_run_one_course_without_delay(control):
    env = energy_management(**COARSE, network=WEAK, control=control, max_steps=6, compile=True)
    policies = {"*": lambda vector: 5.0 * np.sin(vector[:1] * 9.0)}
    record = ("rewards", "actions", "observations")
    sync = env.run_synchronous(policies, seed=3, record=record)
    event = env.run_event_driven(policies, seed=3, record=record)
    assert sync.same_course(event)
    assert event.kpis == sync.kpis and sync.kpis["lost_energy"] > 0.0


def test_a_part_of_a_substep_is_paid_for_its_length():
    """A spike that requires physics cuts a substep in two; the plain environment is given each part by the clock."""
    spike = Disturbance(1000.0, "load_spike", {"agent": "zone_1", "power": 15.0}, True, duration=500.0)

    def run(*disturbances, **options):
        env = energy_management(**COARSE, network=WEAK, max_steps=2, **options)
        return env.run_event_driven({"*": lambda vector: vector[:1]}, seed=3, disturbances=disturbances).kpis

    compiled, plain, calm = run(spike, compile=True), run(spike, compile=False), run(compile=True)
    assert compiled == pytest.approx(plain, rel=1e-12)
    assert compiled["lost_energy"] != calm["lost_energy"]


@pytest.mark.parametrize("compile", [True, False])
def test_a_day_begins_with_the_batteries_at_rest_and_nothing_counted(compile):
    env = energy_management(**COARSE, network=WEAK, compile=compile)
    env.reset(seed=3, options={"day": 172})
    seen, tally = env.world[NetworkZone].Grid, env.world[NetworkZone].GridTally
    p, q = np.zeros(8), np.zeros(8)
    meter, background = env.world[Battery].Meter, env.world[NetworkZone].Background.power[0]
    p[list(BATTERY_BUS)], q[list(BATTERY_BUS)] = (meter.load - meter.pv)[:3], WEAK.reactive * meter.load[:3]
    p[list(OTHER_BUS)], q[list(OTHER_BUS)] = background / 4.0, WEAK.reactive * max(background / 4.0, 0.0)
    flows = PowerFlow(WEAK.feeder(7, 6)).solve([p], [q])
    assert seen.losses[0] == flows.losses[0] and seen.transformer_loading[0] == flows.transformer[0] > 0.0
    assert env.world[Battery].Flow.grid.tolist() == [0.0] * 6
    for column in (tally.outside_minutes, tally.collapsed_minutes, tally.max_loading, tally.lost):
        assert column.tolist() == [0.0, 0.0]


def test_a_grid_that_collapses_says_so_and_has_no_voltage():
    env = energy_management(**COARSE, network=Network(distance=5000.0), max_steps=24)
    played(env, 20, day=15)
    tally, zone = env.world[NetworkZone].GridTally, env.world[NetworkZone].Grid
    assert env.kpis()["collapsed_minutes"] > 0.0
    assert (tally.collapsed_minutes <= tally.outside_minutes).all()
    assert not np.isnan(env.simulation.truth).any()
    down = zone.highest_voltage == 0.0
    assert (zone.losses[down] == 0.0).all() and (zone.transformer_loading[down] == 0.0).all()


def test_a_grid_of_ones_own_takes_the_homes_in_turns():
    own = Feeder(("a", "station", "b"), (Line("station", "a", 0.1, 0.05), Line("b", "a", 0.2, 0.1)), 0.4, "station")
    env = energy_management(**COARSE, network=Network(grid=own))
    env.reset(seed=3)
    zones, *rest = env.networks
    at, solver = zones.connections, zones.flow
    assert not rest and solver.feeder is own
    assert at.zones.tolist() == [0, 1] and at.batteries.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert at.buses.tolist() == [2, 2, 2, 0, 0, 0, 0]
    seen, before = env.world[NetworkZone].Grid, env.site.before(env.day)
    p = [before.background[0], 0.0, (before.load - before.pv)[:3].sum()]
    q = np.tan(np.arccos(0.95)) * np.array([max(p[0], 0.0), 0.0, before.load[:3].sum()])
    assert seen.lowest_voltage[0] == pytest.approx(solver.solve([p], [q]).voltage.min())


def test_the_transformer_grows_with_the_zone():
    assert [transformer_for(homes).rating for homes in (1, 6, 7, 100, 157)] == [25.0, 25.0, 50.0, 400.0, 630.0]
    assert [rating for rating, *_ in TRANSFORMERS] == sorted(rating for rating, *_ in TRANSFORMERS)
    feeder = Network().feeder(25, 24)
    assert [line.start for line in feeder.lines].count("busbar") == 3, "ten connections at a cable"


@pytest.mark.parametrize(
    ("network", "words"),
    [
        ("meshed", "network='meshed' must be None, 'radial', a Network, or the path"),
        (True, "network=True must be None, 'radial'"),
        ({"distance": 3}, "must be None, 'radial', a Network"),
    ],
)
def test_odd_networks_are_refused(network, words):
    with pytest.raises(ConfigError, match=words):
        energy_management(network=network)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"voltage_band": (1.1, 0.9)}, r"voltage_band=\(1.1, 0.9\) must be two pu around 1"),
        ({"power_factor": 0.0}, "power_factor=0.0 must be a number from 0.1 to 1"),
        ({"voltage_price": -1.0}, "voltage_price=-1.0 must be a number from 0 to 1000 EUR/h"),
        ({"slack_voltage": float("nan")}, "slack_voltage=nan must be a number from 0.8 to 1.2 pu"),
        ({"grid": "net.json"}, "grid='net.json' must be a Feeder"),
        ({"volage_band": (0.9, 1.1)}, "volage_band"),
    ],
)
def test_odd_numbers_of_a_network_are_refused(options, words):
    with pytest.raises(ConfigError, match=words):
        Network(**options)


def test_the_grid_of_a_pandapower_file_is_every_zones():
    env = energy_management(**COARSE, network=str(VILLAGE))
    env.reset(seed=3)
    feeder = env.networks[0].flow.feeder
    assert feeder.source == "station" and len(feeder.buses) == 7


def line_of_homes(fixed=(), customers=()):
    """A busbar and four buses in a row."""
    names = ["busbar", *"abcd"]
    lines = tuple(Line(*pair, 0.04, 0.02) for pair in pairwise(names))
    return Feeder(tuple(names), lines, 0.4, fixed=fixed, customers=customers)


@pytest.mark.parametrize("kw", [0.0, 30.0, 100.0, -30.0])
def test_a_grids_own_loads_lie_on_it_beside_the_homes(kw: float):
    feeder = line_of_homes((Fixed("d", kw, 0.2 * kw),))
    env = energy_management(**COARSE, network=Network(grid=feeder))
    env.reset(seed=3, options={"day": 172})
    env.step(dict.fromkeys(env.possible_agents, 1.0))
    (networks,), flow, world = env.networks, env.world[Battery].Flow, env.world
    own = networks.connections.buses
    bare = PowerFlow(line_of_homes())
    for zone in range(2):
        p, q = np.zeros(5), np.zeros(5)
        p[4], q[4] = kw, 0.2 * kw
        mine = slice(3 * zone, 3 * zone + 3)
        np.add.at(p, own[:3], flow.grid[mine])
        np.add.at(q, own[:3], Network().reactive * flow.load[mine])
        share = world[NetworkZone].Background.power[zone] / (len(own) - 3)
        np.add.at(p, own[3:], share)
        np.add.at(q, own[3:], Network().reactive * max(share, 0.0))
        expected = bare.solve([p], [q])
        grid = world[NetworkZone].Grid
        assert grid.lowest_voltage[zone] == pytest.approx(expected.voltage.min(), abs=1e-12)
        assert grid.losses[zone] == pytest.approx(expected.losses[0], rel=1e-12)


def test_homes_are_connected_where_loads_are():
    fixed = (Fixed("b", 0.0), Fixed("d", 1.0), Fixed("c", -5.0))
    env = energy_management(**COARSE, network=Network(grid=line_of_homes(fixed, customers=("b", "d"))))
    assert set(env.networks[0].connections.buses.tolist()) == {2, 4}
    env = energy_management(**COARSE, network=Network(grid=line_of_homes(fixed)))
    assert set(env.networks[0].connections.buses.tolist()) == {1, 2, 3, 4}, "all but the source where nobody says"
    env = energy_management(**COARSE, network=str(VILLAGE))
    assert set(env.networks[0].connections.buses.tolist()) == {1, 2, 3, 4, 5, 6}


def test_too_many_homes_for_one_transformer_are_refused():
    with pytest.raises(ConfigError, match="158 homes behind one transformer need more than 630 kVA"):
        Network().feeder(159, 158)
