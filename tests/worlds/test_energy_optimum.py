"""The optimum and the baselines: the program pays what the environment pays, and no rule does better."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from heron_env.errors import NoOptimum
from heron_env.lab import benchmark
from heron_env.worlds.energy_management import STRONGEST, energy_management
from heron_env.worlds.energy_management.agents import Constants
from heron_env.worlds.energy_management.baselines import NOTHING, DoNothing, baselines
from heron_env.worlds.energy_management.calendar import OPTIMA, evaluation_cases, evaluation_seed, split_days
from heron_env.worlds.energy_management.optimum import ZoneDay, ZoneProgram, _solve_zone, solve
from tools.compute_optima import closer, fingerprint, order, replayed, save

pytestmark = pytest.mark.e2e

pytest.importorskip("scipy")


@pytest.mark.parametrize("day", [4, 149, 299])
def test_the_optimum_is_what_the_environment_returns_for_it_and_no_baseline_exceeds_it(day):
    env = energy_management(dt=900.0, physics_substeps=1, day=day)
    best = solve(env.problem(day, evaluation_seed(day, 0)), gap=0.5)
    assert replayed(env, day, evaluation_seed(day, 0), best.set_points) == pytest.approx(best.value, abs=1e-6)
    assert best.value <= best.bound + 1e-6
    assert best.gap < 0.5
    values = {}
    for name, policies in benchmark.baselines(env).items():
        values[name] = env.run_synchronous(policies, seed=evaluation_seed(day, 0)).returns["system_agent"]
    assert max(values.values()) < best.value
    assert values["random"] < values[NOTHING] < values["self-consumption"]


def test_an_impossible_day_is_no_optimum():
    problem = energy_management(dt=3600.0, physics_substeps=1).problem(10, 10)
    with pytest.raises(NoOptimum, match="HiGHS found no optimum of the day"):
        solve(replace(problem, capacity=0.0 * problem.capacity, energy=problem.energy + 100.0))


def overflowing(generator, bins, steps=4):
    """A zone with two batteries behind a transformer that is too small for its roofs: burning energy would pay."""
    net = -generator.uniform(1.0, 3.0, (steps, 1, 2)) - (generator.random((steps, bins, 2)) < 0.3)
    return ZoneDay(
        net=net.reshape(-1, 2),
        background=-generator.uniform(3.0, 6.0, steps).repeat(bins),
        price=generator.choice([0.256, 0.43], steps),
        limit=4.0,
        start=-5.0,
        capacity=np.array([2.0, 3.0]),
        energy=np.array([1.8, 2.5]),
        constants=Constants(),
        dt=1800.0,
    )


@pytest.mark.parametrize("bins", [1, 3])
def test_where_burning_pays_the_mixed_program_is_the_best_of_all_directions(bins):
    day = overflowing(np.random.default_rng(bins), bins)
    program = ZoneProgram(day)
    relaxed = program.relaxed()
    both = np.minimum(relaxed.charge, relaxed.discharge) > 1e-4
    assert both.any()
    by_hand = max(
        program.relaxed(charging=np.array(directions).reshape(4, 2)).value
        for directions in itertools.product([False, True], repeat=8)
    )
    best, bound = _solve_zone(day, gap=1e-4, seconds=60.0)
    by_sign = program.relaxed(charging=relaxed.charge >= relaxed.discharge)
    assert day.returned(best) == pytest.approx(by_hand, abs=2e-4)
    assert by_sign.value <= day.returned(best) + 1e-6 <= bound + 2e-6
    assert bound < relaxed.bound - 1e-3


@pytest.mark.parametrize("seed", range(5))
def test_nothing_exceeds_the_bound_and_a_program_promises_what_is_returned(seed):
    generator = np.random.default_rng(seed)
    day = overflowing(generator, bins=6, steps=8)
    program = ZoneProgram(day)
    bound = program.relaxed().bound
    for _ in range(20):
        wanted = generator.uniform(-5.0, 5.0, (8, 2)) * generator.random()
        assert day.returned(wanted) <= bound + 1e-6
        fixed = program.relaxed(charging=wanted > 0.0)
        assert day.returned(fixed.charge - fixed.discharge) == pytest.approx(fixed.value, abs=1e-6)


def test_what_a_zone_is_said_to_return_is_what_the_environment_pays():
    env = energy_management(dt=60.0, day=149, max_steps=1440, compile=True)
    problem = env.problem(149, 7)
    set_points = np.random.default_rng(0).uniform(-0.5, 0.5, (1440, 6))  # none runs full or empty
    said = sum(day.returned(set_points[:, batteries]) for batteries, day in problem.zones())
    assert replayed(env, 149, 7, set_points) == pytest.approx(said, abs=1e-6)


def test_the_optimum_of_an_uneven_neighbourhood_dominates_too():
    env = energy_management(
        num_batteries=4,
        zone_size=3,
        passive_per_zone=2,
        dt=3600.0,
        physics_substeps=1,
        stored_value=0.1,
        wear_price=0.03,
    )
    best = env.optimum(60, 5)
    assert replayed(env, 60, 5, best.set_points) == pytest.approx(best.value, abs=1e-6)


@pytest.mark.parametrize("control", ["field", "zone"])
def test_baselines_decide_in_batches_as_they_do_alone(control):
    env = energy_management(dt=900.0, control=control, num_batteries=5)
    observations, _ = env.reset(seed=3, options={"day": 100})
    for policies in baselines(env).values():
        for agent, vector in observations.items():
            group = next(name for name, members in env.group_map.items() if agent in members)
            policy = policies.get(agent) or policies[group]
            alone = policy.forward(vector)
            assert alone.shape == (1,)
            assert env.action_space(agent).contains(alone.astype(np.float32))
            assert np.array_equal(policy.forward_batch(np.stack([vector, vector]))[1], alone)


def test_do_nothing_stands_still():
    env = energy_management(dt=900.0)
    observations, _ = env.reset(seed=3)
    assert DoNothing(env.observation_names("battery_1")).forward(observations["battery_1"]).tolist() == [0.0]


def test_zone_feedback_takes_load_off_an_overloaded_transformer():
    env = energy_management(dt=900.0)
    observations, _ = env.reset(seed=3)
    rules = baselines(env)
    vector, names = observations["battery_1"].copy(), env.observation_names("battery_1")
    vector[names.index("zone_1.Zone.power")] = vector[names.index("zone_1.Zone.mean_power")] = 20.0
    plain, feedback = (float(rules[name]["battery"].forward(vector)[0]) for name in ("grid-friendly", STRONGEST))
    tuning = rules[STRONGEST]["battery"].tuning
    assert feedback == pytest.approx(max(plain - tuning.guard * (20.0 - tuning.margin * 10.8) / 3, -5.0), rel=1e-5)


def test_the_shipped_optima_were_computed_from_the_shipped_series():
    table = json.loads(OPTIMA.read_text(encoding="utf-8"))["days"]
    env = energy_management()
    for day in sorted(table, key=int)[::10]:
        problem = env.problem(int(day), evaluation_seed(int(day), 0))
        assert fingerprint(problem) == pytest.approx(table[day]["fingerprint"], abs=1e-6)
        assert table[day]["value"] <= table[day]["bound"] + 1e-6
        assert table[day]["gap"] == pytest.approx(table[day]["bound"] - table[day]["value"], abs=2e-6)


def test_days_of_evaluations_are_computed_first_and_every_held_out_day_once():
    days = order()
    assert days[:20] == [options["day"] for options, _ in evaluation_cases("test", 20)]
    assert sorted(days) == sorted([*split_days("test"), *split_days("validation")])


def test_the_table_of_optima_is_written_whole(tmp_path):
    path = tmp_path / "optima.json"
    save(path, {"7": {"value": 1.0}, "12": {"value": 2.0}})
    assert json.loads(path.read_text())["days"] == {"7": {"value": 1.0}, "12": {"value": 2.0}}
    assert [entry.name for entry in tmp_path.iterdir()] == ["optima.json"]


def test_a_second_try_keeps_the_better_value_and_bound():
    one = {"value": 1.0, "bound": 3.0, "gap": 2.0, "fingerprint": 5.0}
    other = {"value": 0.5, "bound": 2.0, "gap": 1.5, "fingerprint": 5.0}
    assert closer(one, other) == {"value": 1.0, "bound": 2.0, "gap": 1.0, "fingerprint": 5.0}
    with pytest.raises(ValueError, match="--again"):
        closer(one, other | {"fingerprint": 6.0})
