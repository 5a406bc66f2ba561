"""MPC, central: it uses what nobody could gather in time, knows nothing ahead but forecasts, and runs in one clock."""

import numpy as np
import pytest

from heron_env.errors import ConfigError
from heron_env.lab import SYNC, Sweep
from heron_env.lab.sweep.tables import to_markdown
from heron_env.worlds.energy_management import Central, energy_management
from heron_env.worlds.energy_management.agents import Constants
from heron_env.worlds.energy_management.baselines import NOTHING, baselines
from heron_env.worlds.energy_management.calendar import evaluation_seed
from heron_env.worlds.energy_management.central import STAGES, CentralProgram, Outlook, Planner

pytestmark = pytest.mark.e2e

pytest.importorskip("highspy")


def outlook(**changed):
    """Two homes that draw 1 kW each behind a transformer with nothing else, long before midnight."""
    stages = len(STAGES)
    values = {
        "net": np.ones((stages, 2)),
        "background": np.zeros(stages),
        "price": np.full(stages, 0.338),
        "part": np.ones(stages),
        "brighter": np.zeros(stages),
        "limit": 10.0,
        "mean": 2.0,
        "energy": np.full(2, 30.0),
    }
    return Outlook(**values | changed)


def test_its_plan_covers_demand_shares_an_overload_and_is_the_same_warm_and_cold():
    program = CentralProgram(np.full(2, 40.0), Constants(), 60.0)
    calm = program.powers(outlook(mean=0.0))
    assert calm == pytest.approx([-1.0, -1.0])
    background = np.zeros(len(STAGES))
    background[0] = 14.0
    over = program.powers(outlook(background=background, mean=14.0))
    assert over.sum() == pytest.approx(-6.0)  # 16 kW with a limit of 10
    assert program.powers(outlook(mean=0.0)) == pytest.approx(calm)


def test_an_empty_battery_gives_nothing_and_after_midnight_nothing_counts():
    program = CentralProgram(np.full(2, 40.0), Constants(), 60.0)
    part = np.zeros(len(STAGES))
    part[0] = 1.0
    assert program.powers(outlook(energy=np.zeros(2), part=part)) == pytest.approx([0.0, 0.0])


def test_what_it_expects_is_the_forecast_that_homes_observe():
    env = energy_management(day=200)
    env.reset(seed=4)
    planner = Planner(env, Central())
    planner._expect(200)
    names, vector = env.observation_names("battery_2"), env.seen_by(env.hierarchy.index["battery_2"])
    assert planner.energy[1, 48] == pytest.approx(vector[names.index("Forecast.net_12h")], rel=1e-5)
    price = np.diff(planner.prices)
    assert price[0] == pytest.approx(vector[[name.endswith("Tariff.price") for name in names]][0])
    assert sorted(set(price.round(9))) == [0.256, 0.338, 0.43]


def test_it_gains_and_exceeds_no_bound():
    env = energy_management(day=250, dt=900.0, physics_substeps=1)
    seed = evaluation_seed(250, 0)
    central, nothing = (
        env.run_synchronous(policies, seed=seed).returns["system_agent"]
        for policies in (Central().build(env, 0), baselines(env)[NOTHING])
    )
    assert nothing < central <= env.optimum(250, seed).bound


def test_it_is_refused_where_it_makes_no_sense():
    env = energy_management(day=9, max_steps=5)
    policies = Central().build(env, 0)
    with pytest.raises(ConfigError, match="a reference of the synchronous clock"):
        env.run_event_driven(policies, t_end=60.0, seed=1)
    with pytest.raises(ConfigError, match='needs control="field"'):
        Central().build(energy_management(control="zone"), 0)
    with pytest.raises(ConfigError, match="without a network"):
        Central().build(energy_management(network="radial"), 0)


def test_a_sweep_takes_it_as_a_row_of_the_synchronous_clock():
    sweep = Sweep.of(
        "heron/EnergyManagement-v1",
        {"MPC": "MPC", "MPC, central": Central()},
        [SYNC],
        cases=1,
        sync_only=["MPC, central"],
        options={"max_steps": 3},
    )
    table = to_markdown(sweep.run(processes=1))
    assert "MPC, central" in table
