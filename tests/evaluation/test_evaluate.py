"""The table: honest identity flags, paired differences, scores, independence of the number of processes, errors."""

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from evaluation.pushing import Push

from heron_env.errors import ConfigError, ScheduleError, UnknownEnvironment
from heron_env.evaluation import benchmark
from heron_env.evaluation.benchmark import Case
from heron_env.evaluation.clocks import SYNC, Clock, clock, delayed, usual_delays
from heron_env.evaluation.episodes import team_return
from heron_env.evaluation.evaluate import evaluate
from heron_env.evaluation.finding import beats, finding
from heron_env.registry import make
from heron_env.scheduling.timing import ScheduleConfig

GRID = "heron/BatteryGrid-v0"
OPTIONS = {"max_steps": 20}


@dataclass(frozen=True)
class Alternating:
    """Counts its calls across episodes, so that no two runs are alike: what a policy must not do."""

    def build(self, env, seed):
        calls = iter(range(10**9))
        return {"*": lambda vector: np.array([next(calls) % 7 / 7.0])}


@dataclass(frozen=True)
class Broken:
    """Fails in its first decision."""

    def build(self, env, seed):
        def decide(vector):
            raise ZeroDivisionError("no idea")

        return {"*": decide}


def table_of(policies, clocks=("sync", 0.0, 2.0), cases=3, **more):
    return evaluate(GRID, policies, clocks=clocks, cases=cases, options=OPTIONS, **{"processes": 1, **more})


def test_a_run_without_delay_is_identical_to_the_synchronous_one():
    table = table_of({"random": "random"})
    assert [row.identical for row in table.rows] == [None, True, None]
    assert table.row("random").returns == table.row("random", clock(0.0)).returns


def test_the_identity_flag_is_computed_not_promised():
    table = table_of({"alternating": Alternating()}, clocks=("sync", 0.0))
    assert table.row("alternating", clock(0.0)).identical is False
    assert "parity is broken" in finding(table, "alternating")


def test_differences_are_paired_by_case_and_delay_costs_what_it_costs():
    table = table_of({"push": Push(1.0)})
    late = table.row("push", clock(2.0))
    sync = table.row("push")
    assert late.differences == [a - b for a, b in zip(late.returns, sync.returns, strict=True)]
    assert late.to_sync.mean == pytest.approx(np.mean(late.differences))
    assert late.to_sync.mean == pytest.approx(
        -2 * 0.01 * (1 + 2 * 19)
    )  # two batteries, one and then two effects behind
    assert sync.to_sync is None


@pytest.mark.parametrize("size", [0.5, -0.5])
def test_the_team_return_counts_each_amount_once(size: float):
    env = make(GRID, **OPTIONS)
    result = env.run_synchronous(Push(size).build(env, 0), seed=0)
    assert team_return(env, result) == pytest.approx(sum(result.returns[a] for a in env.possible_agents))


def test_where_the_system_agent_is_paid_nothing_the_deciding_agents_count():
    env = make(GRID, **OPTIONS)
    result = env.run_synchronous(Push(0.5).build(env, 0), seed=0)
    total = team_return(env, result)
    result.rewards["system_agent"] = [(t, 0.0) for t, _ in result.rewards["system_agent"]]
    assert team_return(env, result) == pytest.approx(total)


def test_the_number_of_processes_changes_no_number():
    policies = {"push": Push(0.7), "random": "random"}
    assert table_of(policies, processes=2).to_json() == table_of(policies, processes=1).to_json()


def test_sync_only_policies_have_one_row():
    table = table_of({"push": Push(1.0), "random": "random"}, sync_only=["random"])
    assert [str(row.clock) for row in table.of("random")] == ["sync"]
    assert [str(row.clock) for row in table.of("push")] == ["sync", "event, 0 s", "event, 2 s"]


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_comes_back_with_its_case(processes: int):
    with pytest.raises(ZeroDivisionError, match="no idea") as caught:
        table_of({"broken": Broken()}, processes=processes)
    assert any("policy 'broken' in heron/BatteryGrid-v0, seed 100000" in note for note in caught.value.__notes__)


def test_wrong_names_are_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"policy 'randon': neither a run folder nor a baseline.*'random'"):
        table_of({"randon": "randon"})
    with pytest.raises(UnknownEnvironment, match="Did you mean 'heron/BatteryGrid-v0'"):
        evaluate("heron/BatteryGrit-v0", {"random": "random"})
    with pytest.raises(ConfigError, match="sync_only=\\['nobody'\\]"):
        table_of({"random": "random"}, sync_only=["nobody"])
    with pytest.raises(ConfigError, match="one of each at least"):
        table_of({})


def test_the_json_form_is_strict_and_complete():
    data = json.loads(table_of({"push": Push(1.0), "do nothing": "do nothing"}, cases=1).to_json())
    assert data["schema"] == 1
    assert data["env"] == GRID
    assert data["cases"] == [{"seed": 1_000_000, "options": {}, "optimum": None}]
    row = data["rows"][1]
    assert set(row) == {
        "policy", "clock", "delay", "n", "return", "returns", "score", "difference_to_sync", "share_of_gain_lost",
        "identical", "kpis", "staleness_p95", "latency_p95", "notes",
    }  # fmt: skip
    assert (row["clock"], row["delay"], row["identical"]) == ("event", 0.0, True)
    assert row["return"]["low"] is None  # one case has no interval
    assert row["score"] is None  # nobody knows the optimum


def test_scores_and_losses_are_measured_against_doing_nothing():
    cases = [Case(0, optimum=30.0), Case(1, optimum=30.0), Case(2)]
    env = make(GRID, **OPTIONS)
    assert benchmark.with_optima(env, cases, OPTIONS) == cases
    table = evaluate(
        GRID,
        {"push": Push(1.0), "do nothing": "do nothing"},
        clocks=("sync", 2.0),
        cases=cases,
        options=OPTIONS,
        processes=1,
    )
    idle, sync, late = (table.row(*key) for key in (("do nothing",), ("push",), ("push", clock(2.0))))
    assert idle.score == 0.0
    assert sync.score == pytest.approx((sum(sync.returns[:2]) - 40.0) / 20.0)
    assert late.lost == pytest.approx((sum(sync.returns) - sum(late.returns)) / (sum(sync.returns) - 60.0))


def test_without_optima_there_is_no_score():
    assert math.isnan(table_of({"do nothing": "do nothing"}).row("do nothing").score)


def test_words_say_what_the_table_says():
    table = table_of(
        {"push": Push(1.0), "do nothing": "do nothing", "random": "random"}, sync_only=["random", "do nothing"]
    )
    words = finding(table, "push")
    gain = table.row("push").mean.mean - table.row("do nothing").mean.mean
    assert words.startswith("On 3 held-out cases the policy 'push' earns")
    assert f"{gain:.2f} more than 'do nothing'" in words
    assert "equals its synchronous twin bit for bit" in words
    assert "at 2 s" in words
    assert beats(table, "push")
    assert not beats(
        replace(table, rows=[*table.rows[1:], replace(table.rows[0], mean=table.row("do nothing").mean)]), "push"
    )
    with pytest.raises(ConfigError, match="no synchronous row for \\['nobody'\\]"):
        beats(table, "nobody")


def test_one_case_claims_nothing():
    words = finding(table_of({"push": Push(1.0), "do nothing": "do nothing"}, cases=1), "push")
    assert words.count("one case, no interval") == 2
    assert "no delay makes a difference" not in words


def test_an_order_that_delay_reverses_is_told():
    table = table_of({"quick": Push(1.0), "calm": Push(0.5)}, clocks=("sync", 2.0))
    assert "order is reversed" not in finding(table, "quick", "calm")
    fallen = [
        replace(r, returns=[v - 50.0 for v in r.returns]) if r.policy == "quick" and r.clock.delay else r
        for r in table.rows
    ]
    words = finding(replace(table, rows=fallen), "quick", "calm")
    assert "more than 'calm'" in words
    assert "At 2 s of delay the order is reversed: 'quick' earns" in words


def test_words_and_json_carry_the_unit():
    table = replace(table_of({"push": Push(1.0)}), unit="EUR a day")
    assert "EUR a day on the synchronous clock" in finding(table, "push")
    assert table.to_dict()["unit"] == "EUR a day"


def test_no_loss_is_said_to_be_none():
    words = finding(table_of({"still": Push(0.0)}), "still")
    assert "no delay makes a difference that these cases can tell from none" in words


def test_a_policy_is_not_compared_with_itself():
    words = finding(table_of({"random": "random", "do nothing": "do nothing"}), "random")
    assert "than 'do nothing'" in words
    assert "than 'random'" not in words


def test_usual_delays_are_fractions_of_the_control_step():
    assert usual_delays(60.0) == (0.0, 30.0, 60.0, 120.0)
    table = evaluate(GRID, {"random": "random"}, cases=1, options={"max_steps": 4}, processes=1)
    dt = make(GRID).dt
    assert [row.clock.delay for row in table.rows] == [None, 0.0, dt / 2, dt, 2 * dt]


def test_a_delay_in_seconds_is_the_latency_from_observation_to_effect():
    assert clock("sync") is SYNC
    assert clock(30) == Clock("event", 30.0)
    assert clock(30).applied_to(None) == ScheduleConfig(act_delay=30.0)
    own = {"field": ScheduleConfig(tick_interval=5.0, msg_delay=1.0)}
    assert delayed(own, 3.0) == {
        "*": ScheduleConfig(act_delay=3.0),
        "field": ScheduleConfig(tick_interval=5.0, msg_delay=1.0, act_delay=3.0),
    }
    mixed = ScheduleConfig(obs_delay=1.0, msg_delay=2.0, act_delay=4.0)
    assert clock(mixed) == Clock("event", 7.0, mixed)


@pytest.mark.parametrize(
    ("wrong", "error"), [("async", ConfigError), (True, ConfigError), (-1.0, ScheduleError), (math.nan, ScheduleError)]
)
def test_impossible_clocks_are_refused(wrong, error):
    with pytest.raises(error):
        clock(wrong)


def test_held_out_cases_do_not_overlap():
    env = make(GRID)
    test, validation = (benchmark.cases(env, 50, split=split) for split in ("test", "validation"))
    assert not {case.seed for case in test} & {case.seed for case in validation}
    assert [case.seed for case in benchmark.cases(env, 2, repeats=2)] == [1_000_000, 1_000_001, 1_000_002, 1_000_003]
    with pytest.raises(ConfigError, match="split='tests' must be one of"):
        benchmark.cases(env, 1, split="tests")
    with pytest.raises(ConfigError, match="must be >= 1"):
        benchmark.cases(env, 0)


def test_energy_days_bring_their_rules_their_seeds_and_their_optima():
    env = make("heron/EnergyManagement-v0")
    assert env.benchmark().strongest in benchmark.baselines(env)
    plain = benchmark.cases(env, 3, repeats=2)
    cases = benchmark.with_optima(env, plain, {})
    assert [case.optimum is not None for case in cases[:3]] == [True] * 3
    assert [case.optimum for case in cases[3:]] == [None] * 3  # another seed is another day
    assert all(case.optimum is None for case in benchmark.with_optima(env, plain, {"dt": 900.0}))
    assert all(case.options["day"] % 5 == 2 for case in cases)
