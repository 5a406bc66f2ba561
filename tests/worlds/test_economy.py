"""heron/Economy-v0: the shipped world, its equations, and what knowledge is worth in it."""

import numpy as np
import pytest

from heron_env import from_config, load_config, make
from heron_env.lab import benchmark
from heron_env.worlds.economy import VIEWS, WORLD, EconomyEngine, ReadsReserves, advantage, economy, observability
from heron_env.worlds.economy.engine import MOST_YIELD

QUIET = {"shock": 0.0, "spread_reserves": 0.0, "spread_bank": 0.0, "spread_rate": 0.0, "spread_inflation": 0.0}


def quiet(**params: float):
    from heron_env import load_config

    config = load_config(WORLD)
    return economy(config.model_copy(update={"engine": config.engine.model_copy(update={"params": QUIET | params})}))


def test_it_is_registered_and_shows_what_its_file_says():
    env = make("heron/Economy-v0")
    assert env.possible_agents == [f"country_{i}" for i in (1, 2, 3, 4)]
    assert list(env.group_map) == ["country"]
    names = env.observation_names("country_2")
    assert names[:3] == ["Variables.economic_strength", "Variables.position", "Variables.secret_reserves"]
    assert sum("secret_reserves" in name for name in names) == 1
    assert "global.Globals.central_bank_reserves" not in names
    assert env.action_space("country_1").shape == (1,)


def test_one_step_by_hand():
    """Without noise: everything usual but the bank's reserves, a step of the equations in the engine's docstring."""
    env = quiet()
    env.reset(seed=0)
    world = env.world
    world.Globals.central_bank_reserves[...] = 600.0
    world.Globals.interest_rate[...] = 0.05
    _, rewards, *_ = env.step({"country_1": [1.0], "country_2": [-0.5], "country_3": [0.0], "country_4": [0.0]})
    currency = (0.05 - 0.02) - (0.03 - 0.02) + 0.04 * (600.0 / 500.0 - 1.0)
    held = np.array([1.0, -0.5, 0.0, 0.0]) * (1.0 - np.exp(-1.0 / 0.25))
    growth = held * currency - 0.012 * held**2
    truth = env.simulation_state()
    assert list(rewards.values()) == pytest.approx((100.0 * growth).tolist(), rel=1e-12)
    strengths = [state.economic_strength for state in truth.agents.values()]
    assert strengths == pytest.approx((100.0 * np.exp(growth)).tolist(), rel=1e-12)
    assert [state.position for state in truth.agents.values()] == pytest.approx(held.tolist(), rel=1e-12)
    bank = 600.0 + 0.02 * 500.0 * held.mean()
    assert truth.global_state.central_bank_reserves == pytest.approx(500.0 + 0.8 * (bank - 500.0), rel=1e-12)
    assert truth.global_state.interest_rate == pytest.approx(0.03 + 0.8 * 0.02, rel=1e-12)


def test_the_yield_is_bounded_and_the_best_position_earns_most():
    engine = EconomyEngine()
    assert engine.expected(0.2, -0.05, 100.0, 1000.0) == MOST_YIELD
    assert engine.expected(0.0, 0.2, 0.0, 0.0) == -MOST_YIELD
    rule = ReadsReserves(engine)
    env = make("heron/Economy-v0", observability={"default": {"level": "insider"}})
    env.reset(seed=5)
    state = env.simulation_state()
    best = rule.decide_action(state)
    reserves = np.mean([agent.secret_reserves for agent in state.agents.values()])
    world = state.global_state
    currency = engine.expected(world.interest_rate, world.inflation, float(reserves), world.central_bank_reserves)
    grid = np.linspace(-1.0, 1.0, 2001)
    assert best == pytest.approx(grid[np.argmax(grid * currency - engine.holding_cost * grid**2)], abs=1e-3)


def test_the_spreads_are_what_things_do_in_the_long_run():
    env = make("heron/Economy-v0", max_steps=400)
    found = []
    for seed in range(8):
        env.reset(seed=seed)
        while env.agents:
            env.step({})
            state = env.simulation_state()
            found.append([state.agents["country_1"].secret_reserves, state.global_state.central_bank_reserves])
    assert np.mean(found, axis=0) == pytest.approx([50.0, 500.0], rel=0.05)
    assert np.std(found, axis=0) == pytest.approx([15.0, 100.0], rel=0.1)


@pytest.mark.draw
def test_an_insider_earns_more_than_an_outsider():
    """Paired over 12 seeds: the whole 95 % intervals lie apart, and less knowledge earns less at each level."""
    found = advantage(range(12), WORLD)
    means = [found[view][0].mean for view in VIEWS]
    assert means == sorted(means, reverse=True)
    assert found["insider"][1].low > 15.0
    assert found["insider, noise 0.2"][1].low > 10.0
    assert found["unaware"][1].high < 0.0
    assert found["insider"][0].mean > 2.0 * found["external"][0].mean


def test_the_leads_come_from_what_is_seen_and_nothing_else():
    """With nothing hidden that matters, all levels that show the public numbers earn the same."""
    config = {"reserves_sensitivity": 0.0, "bank_sensitivity": 0.0}
    returns = []
    for level in ("insider", "external"):
        env = quiet(**config, spread_rate=0.01)
        seeing = observability("country_1", env.possible_agents[1:], level, 0.0)
        env = economy(env.config, observability=seeing)
        rule = ReadsReserves(env.engine)
        returns.append(env.run_synchronous({"*": rule}, seed=3).returns)
    assert returns[0] == returns[1]
    assert returns[0]["country_1"] > 0.0


def test_the_benchmark_offers_its_rules_and_chance_does_worst():
    env = make("heron/Economy-v0")
    offered = benchmark.baselines(env)
    assert list(offered) == ["do nothing", "random", "carry", "reserves"]
    totals = {
        name: np.mean([env.run_synchronous(policies, seed=seed).returns["system_agent"] for seed in range(4)])
        for name, policies in offered.items()
    }
    assert totals["reserves"] == max(totals.values())
    assert totals["random"] == min(totals.values())
    assert totals["do nothing"] == 0.0


def test_an_agent_that_loses_nearly_everything_is_out():
    env = make("heron/Economy-v0")
    env.reset(seed=0)
    env.world[type(env.hierarchy.agents[1])].Variables.economic_strength[0] = 9.0
    _, _, terminated, _, _ = env.step({})
    assert terminated == {"country_1": True, "country_2": False, "country_3": False, "country_4": False}


def test_a_policy_named_in_the_file_knows_the_world_it_is_in():
    world = load_config(WORLD).model_dump()
    world["engine"]["params"] = {"holding_cost": 0.05}
    world["agents"] = [{**agent, "policy": "reserves"} for agent in world["agents"][:3]]
    world["observability"] = None
    env = from_config(world)
    policies = [agent.policy for agent in env.hierarchy.agents[1:]]
    assert [(policy.engine.holding_cost, policy.countries) for policy in policies] == [(0.05, 3)] * 3
