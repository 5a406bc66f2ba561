"""The optimum and the baselines: the program pays what the environment pays, and no rule does better."""

import json
from dataclasses import replace

import numpy as np
import pytest

from heron_env.domains.energy_management.baselines import NOTHING, STRONGEST, baselines
from heron_env.domains.energy_management.compute_optima import fingerprint, save
from heron_env.domains.energy_management.evaluation import OPTIMA, evaluation_seed
from heron_env.domains.energy_management.factory import energy_management, optimum
from heron_env.domains.energy_management.optimum import NoOptimum, solve
from heron_env.domains.energy_management.rules import DoNothing, RandomPower

pytest.importorskip("scipy")


def replay(env, day, seed, set_points):
    """Team's return of set-points `[steps, batteries]` in the environment itself."""
    env.reset(seed=seed, options={"day": day})
    total = 0.0
    for row in set_points:
        env.step(dict(zip(env.agents, np.clip(row, -5.0, 5.0), strict=True)))
        total += env.simulation.last_rewards[0]
    return total


@pytest.mark.parametrize("day", [4, 149, 299])
def test_the_optimum_is_what_the_environment_returns_for_it_and_no_baseline_exceeds_it(day):
    env = energy_management(dt=900.0, physics_substeps=1, day=day)
    best = env.optimum(day, evaluation_seed(day, 0))
    assert replay(env, day, evaluation_seed(day, 0), best.set_points) == pytest.approx(best.value, abs=1e-6)
    assert best.value <= best.bound + 1e-9
    values = {}
    for name, policies in baselines(env).items():
        values[name] = env.run_synchronous(policies, seed=evaluation_seed(day, 0)).returns["system_agent"]
    assert max(values.values()) < best.value
    assert values["random"] < values[NOTHING] < values["self-consumption"]


def test_an_impossible_day_is_no_optimum():
    problem = energy_management(dt=3600.0, physics_substeps=1).problem(10, 10)
    with pytest.raises(NoOptimum, match="HiGHS found no optimum of the day"):
        solve(replace(problem, capacity=0.0 * problem.capacity, energy=problem.energy + 100.0))


def test_on_an_overflowing_day_the_relaxed_program_burns_energy_and_the_optimum_does_not():
    best = optimum(149, 149, 900.0, physics_substeps=1)
    assert best.value < best.bound
    assert best.bound - best.value < 0.1 * abs(best.bound - -58.0)


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
    assert replay(env, 60, 5, best.set_points) == pytest.approx(best.value, abs=1e-6)


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


def test_random_is_uniform_and_seeded_and_needs_no_memory():
    env = energy_management(dt=900.0)
    observations, _ = env.reset(seed=3)
    names, vectors = (
        env.observation_names("battery_1"),
        np.random.default_rng(0).normal(size=(2000, 22)).astype(np.float32),
    )
    one, same, other = RandomPower(names, 1), RandomPower(names, 1), RandomPower(names, 2)
    powers = one.forward_batch(vectors)[:, 0]
    assert np.array_equal(powers, same.forward_batch(vectors)[:, 0])
    assert not np.array_equal(powers, other.forward_batch(vectors)[:, 0])
    assert abs(powers.mean()) < 0.2
    assert powers.std() == pytest.approx(5.0 / np.sqrt(3.0), rel=0.03)
    assert DoNothing(names).forward(observations["battery_1"]).tolist() == [0.0]


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
        assert table[day]["value"] <= table[day]["bound"] + 1e-9


def test_the_table_of_optima_is_written_whole(tmp_path):
    path = tmp_path / "optima.json"
    save(path, {"7": {"value": 1.0}, "12": {"value": 2.0}})
    assert json.loads(path.read_text())["days"] == {"7": {"value": 1.0}, "12": {"value": 2.0}}
    assert [entry.name for entry in tmp_path.iterdir()] == ["optima.json"]
