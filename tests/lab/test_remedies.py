import numpy as np
import pytest

from heron_env import HeronEnv, ScheduleConfig, make
from heron_env.errors import ConfigError
from heron_env.lab import Baseline, Condition, LocalFallback, Smoothing, Sweep
from heron_env.lab.remedies import Fallback, Smoothed, forgetful
from heron_env.lab.remembering import Remembering
from heron_env.worlds.energy_management import MPC, STRONGEST, Foresight, TunedRule, Tuning
from heron_env.worlds.energy_management.baselines import baselines

RULE, PLAIN = Baseline(STRONGEST), Baseline("grid-friendly")


def day(control: str = "field", **options) -> HeronEnv:
    return make("heron/EnergyManagement-v1", control=control, day=172, dt=900.0, physics_substeps=1, **options)


def one(vector: np.ndarray) -> np.ndarray:
    return np.array([8.0])


def other(vector: np.ndarray) -> np.ndarray:
    return np.array([-1.0])


def test_smoothing_goes_a_share_of_the_way():
    smoothed = Smoothed(one, [1, 2], 0.25)
    seen = np.array([[9.0, 3.0, 1.0], [9.0, 0.0, 0.0]], dtype=np.float32)
    assert smoothed.forward_batch(seen).tolist() == [[4.0 + 0.25 * 4.0], [0.25 * 8.0]]
    assert smoothed.forward(seen[0]).tolist() == [5.0]


def test_fallback_decides_row_by_row_and_counts_the_oldest_age():
    guarded = Fallback(one, other, [1, 2], 60.0)
    seen = np.array([[0.0, 60.0, 0.0], [0.0, 0.0, 60.5], [99.0, 0.0, 0.0]], dtype=np.float32)
    assert guarded.forward_batch(seen).tolist() == [[8.0], [-1.0], [8.0]]


@pytest.mark.parametrize("control", ["field", "zone"])
def test_smoothing_by_a_whole_share_changes_nothing_and_by_less_follows_the_set_point(control: str):
    env = day(control)
    plain = env.run_synchronous(RULE.build(env, 0), seed=3)
    assert plain.same_course(env.run_synchronous(Smoothing(RULE, "Setpoint.power", 1.0).build(env, 0), seed=3))
    slow = env.run_synchronous(Smoothing(RULE, "Setpoint.power", 0.5).build(env, 0), seed=3)
    agent = env.possible_agents[0]

    def travel(result) -> float:
        actions = np.array([float(action[0]) for _, action in result.actions[agent]])
        return float(np.abs(np.diff(actions)).sum())

    assert travel(slow) < 0.8 * travel(plain)


@pytest.mark.parametrize("control", ["field", "zone"])
def test_fallback_is_the_policy_while_all_is_fresh_and_the_local_rule_while_nothing_is(control: str):
    env = day(control, observe_age=True)
    guarded = LocalFallback(RULE, PLAIN, 900.0).build(env, 0)
    assert env.run_synchronous(guarded, seed=3).same_course(env.run_synchronous(RULE.build(env, 0), seed=3))
    deaf = {"*": ScheduleConfig(), "coordinator": ScheduleConfig(msg_delay=4000.0)}
    deaf |= {"field": ScheduleConfig(msg_delay=4000.0)} if control == "zone" else {}
    always = LocalFallback(RULE, PLAIN, 0.0).build(env, 0)
    late, local = (env.run_event_driven(p, seed=3, schedule=deaf) for p in (always, PLAIN.build(env, 0)))
    agent = env.possible_agents[-1]
    assert [(t, a.tolist()) for t, a in late.actions[agent]][8:] == [(t, a.tolist()) for t, a in local.actions[agent]][
        8:
    ]
    assert not local.same_course(env.run_event_driven(RULE.build(env, 0), seed=3, schedule=deaf))


def test_rules_of_zones_of_different_size_keep_their_own():
    env = day(num_batteries=5)
    wrapped = Smoothing(RULE, "Setpoint.power", 1.0).build(env, 0)
    assert wrapped["battery_1"].policy.zone_size == 3 and wrapped["battery_5"].policy.zone_size == 2
    assert env.run_synchronous(wrapped, seed=1).same_course(env.run_synchronous(RULE.build(env, 0), seed=1))


def test_a_tuned_rule_is_the_baseline_with_other_constants():
    env, tuning = day(), Tuning(follow=0.0, guard=0.0, spare=0.0)
    tuned = env.run_synchronous(TunedRule(STRONGEST, tuning).build(env, 0), seed=2)
    assert tuned.same_course(env.run_synchronous(baselines(env, tuning=tuning)[STRONGEST], seed=2))
    assert not tuned.same_course(env.run_synchronous(RULE.build(env, 0), seed=2))


@pytest.mark.parametrize(
    ("name", "tuning"),
    [
        ("MPC(follow=0.15, window=6)", TunedRule(MPC, Foresight(follow=0.15, window=6.0))),
        (f"{STRONGEST}(follow=0,guard=0.3)", TunedRule(STRONGEST, Tuning(follow=0.0, guard=0.3))),
        ("grid-friendly(share=1.1)", TunedRule("grid-friendly", Tuning(share=1.1))),
    ],
)
def test_a_name_with_constants_is_the_tuned_baseline(name: str, tuning: TunedRule):
    env = day()
    named = env.run_synchronous(Baseline(name).build(env, 0), seed=2)
    assert named.same_course(env.run_synchronous(tuning.build(env, 0), seed=2))
    assert not named.same_course(env.run_synchronous(Baseline(tuning.name).build(env, 0), seed=2))


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda: Smoothing(RULE, "Setpoint.power", 0.0), "above 0"),
        (lambda: Smoothing(RULE, "Setpoint.power", 1.5), "at most 1"),
        (lambda: LocalFallback(RULE, PLAIN, -1.0), "0 s or more"),
        (lambda: LocalFallback(RULE, PLAIN, float("nan")), "0 s or more"),
        (lambda: Smoothing(RULE, "Setpoint.powr", 0.5).build(day(), 0), "must choose one number and see it"),
        (lambda: LocalFallback(RULE, PLAIN, 60.0).build(day(), 0), "observe_age=True"),
        (lambda: TunedRule("grid-frendly", Tuning()).build(day(), 0), "grid-friendly"),
        (lambda: TunedRule("tariff", Tuning()).build(day(), 0), "'tariff' has no constants"),
        (lambda: TunedRule(MPC, Tuning()).build(day(), 0), "its constants are a Foresight"),
        (lambda: TunedRule(MPC, Foresight()).build(day("zone"), 0), "not among the baselines here"),
        (lambda: Foresight(window=0.0), r"window=0\.0\): must be above 0"),
        (lambda: Foresight(fading=float("nan")), "fading=nan"),
        (lambda: Baseline("MPC(folow=0.1)").build(day(), 0), "no constant 'folow'.*Did you mean 'follow'"),
        (lambda: Baseline("MPC(follow=inf)").build(day(), 0), "must be a finite number"),
        (lambda: Baseline("MPC(follow)").build(day(), 0), "'follow' is no constant with its value"),
        (lambda: Baseline("MPC(follow=1, follow=2)").build(day(), 0), "'follow' is there twice"),
        (lambda: Baseline("random(p=1)").build(day(), 0), "'random' has no constants"),
        (lambda: Baseline("MPZ(follow=1)").build(day(), 0), "neither a run folder nor a baseline"),
    ],
)
def test_what_cannot_be_built_is_told(build, told: str):
    with pytest.raises(ConfigError, match=told):
        build()


def test_to_hold_is_what_every_policy_does():
    held = Sweep.of("heron/BatteryGrid-v0", {"a": "random", "b": "random+hold"}, [Condition(act_delay=2.0)], cases=2)
    same = held.run(processes=1, progress=False)
    assert [same.table("a", late).tolist() for late in held.conditions] == [
        same.table("b", late).tolist() for late in held.conditions
    ]


def test_a_remedy_is_not_put_around_what_remembers():
    class Counts(Remembering):
        def forward_rows(self, vectors, who, first, masks=None, draws=None):
            return vectors

    with pytest.raises(ConfigError, match=r"a remedy: Counts remembers .* decides on one observation$"):
        forgetful(Counts())
