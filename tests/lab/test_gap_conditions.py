"""Conditions: what they say, what they refuse, and that two of them share every draw that both make."""

import math
from dataclasses import replace

import numpy as np
import pytest

from heron_env import Medium, ObservabilityConfig, ScheduleConfig, make
from heron_env.errors import ConfigError, ScheduleError
from heron_env.lab import IDEAL, SYNC, Condition, along, one_at_a_time
from heron_env.lab.episodes import course
from heron_env.lab.sweep.conditions import CAUSES, coalitions, grid, parsed_axis

GRID = "heron/BatteryGrid-v0"
ALL = Condition(
    obs_delay=0.1, msg_delay=0.2, act_delay=0.5, thinking=0.7, jitter=0.2, loss=0.1, tick_ratio=2, noise=0.3, rate=200
)  # fmt: skip


def grid_env(**options):
    return make(GRID, **{"num_batteries": 4, "zone_size": 2, "max_steps": 12, **options})


def answer(vector):
    """Depends on all that is seen, without memory."""
    return np.array([np.sin(100.0 * vector.sum())])


def run(condition: Condition, **options):
    env = grid_env(**options)
    if condition.noise:
        env = grid_env(**{**options, "observability": condition.observability(env.observability)})
    if condition.synchronous:
        return env.run_synchronous({"*": answer}, seed=5)
    return env.run_event_driven({"*": answer}, seed=5, schedule=condition.schedule(env))


def test_a_condition_names_all_that_is_wrong_and_nothing_else():
    assert SYNC.name == "sync" and IDEAL.name == "ideal"
    assert Condition(act_delay=30, jitter=0.1).name == "act_delay=30 jitter=0.1"
    assert Condition(act_delay=30.0) == Condition(act_delay=30) and Condition(tick_ratio=1) == IDEAL
    assert Condition(msg_delay={"field": 0.05, "system": 2}).name == "msg_delay=field:0.05/system:2"
    assert Condition(msg_delay={"field": 0.0}) == IDEAL
    assert list(ALL.causes) == list(CAUSES)
    assert Condition(act_delay=30, loss=0.5).words == "action delay 30 s, loss 0.5"
    assert ALL.only("loss", "noise") == Condition(loss=0.1, noise=0.3)
    assert ALL.only() == IDEAL
    assert Condition(rate=500, loss=0.5).words == "loss 0.5, rate 500 bytes/s"
    assert Condition(rate=math.inf) == IDEAL and Condition(rate=1e300).name == "rate=1e+300"
    assert Condition.from_dict({"name": "rate=500", **Condition(rate=500).to_dict()}) == Condition(rate=500)
    assert Condition(loss=0.5).but(act_delay=1) == Condition(act_delay=1, loss=0.5)
    assert SYNC.to_dict() == {"synchronous": True}
    assert Condition(msg_delay={"field": 1}).to_dict() == {"msg_delay": {"field": 1.0}}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Condition(act_delay=-1.0), r"act_delay=-1.0\): must be 0 or more"),
        (lambda: Condition(loss=1.5), r"loss=1.5\): must be between 0 and 1"),
        (lambda: Condition(tick_ratio=0), "tick_ratio=0: must be above 0"),
        (lambda: Condition(tick_ratio=math.nan), "tick_ratio=nan: must be above 0"),
        (lambda: Condition(jitter=float("nan")), "jitter_ratio=nan"),
        (lambda: Condition(rate=0), r"rate=0\): must be bytes a second, above 0"),
        (lambda: Condition(rate=math.nan), r"rate=nan\): must be bytes"),
        (lambda: Condition(rate={"field": 500.0}), "rate is one number for all agents"),
        (lambda: Condition(noise=-0.1), "noise=-0.1: must be a factor >= 0"),
        (lambda: Condition(noise=True), "noise=True: must be a factor"),
        (lambda: Condition(noise={"field": 0.1}), "noise is one number for all agents"),
        (lambda: Condition(synchronous=True, loss=0.1), "the synchronous clock has no network"),
        (lambda: Condition(act_delay=(0, 30)), r"act_delay=\(0, 30\): must be one number, or a mapping"),
        (lambda: Condition(act_delay={1: 0.5}), "must be one number, or a mapping of agents"),
        (lambda: IDEAL.but(act_dely=1.0), "'act_dely' is no cause.*Did you mean 'act_delay'"),
        (lambda: parsed_axis("act_delay"), "must read cause=amount,amount"),
        (lambda: parsed_axis("los=0,1"), "Did you mean 'loss'"),
        (lambda: parsed_axis("loss=0,x"), "must be numbers separated by commas"),
        (lambda: parsed_axis("loss=0,field:1/2"), "each for all or as field:1/system:2"),
        (lambda: along(loss=()), "give a sequence of amounts"),
        (lambda: along(loss="0.1"), "give a sequence of amounts"),
        (
            lambda: Condition(loss={"feild": 0.1}).schedule(grid_env()),
            "loss of 'feild': no such agent, group or level.*'field'",
        ),
    ],
)
def test_what_is_impossible_is_refused_where_it_is_said(wrong, message: str):
    with pytest.raises((ConfigError, ScheduleError), match=message):
        wrong()


def test_a_schedule_keeps_the_environments_own_ticks_and_replaces_its_network():
    kept = {"phase": 1.0, "on_missing": "noop", "own_rows": "local"}
    own = {"battery": ScheduleConfig(tick_interval=3.0, act_delay=9.0, loss=0.9, **kept)}
    found = Condition(tick_ratio=4, msg_delay={"zone": 1.0, "battery_2": 2.0, "*": 3.0}).schedule(
        grid_env(schedule=own)
    )
    assert found["battery_1"] == ScheduleConfig(tick_interval=12.0, msg_delay=3.0, **kept)
    assert found["battery_2"].msg_delay == 2.0
    assert found["zone_1"].own_rows is None
    shaken = Condition(jitter={"field": 0.2}, loss=0.1, obs_delay=0.3).schedule(grid_env())
    assert shaken["battery_1"] == ScheduleConfig(
        tick_interval=1.0, jitter_type="gaussian", jitter_ratio=0.2, loss=0.1, obs_delay=0.3
    )
    assert shaken["zone_1"] == ScheduleConfig(tick_interval=1.0, loss=0.1, obs_delay=0.3)
    assert (found["zone_1"].tick_interval, found["zone_1"].msg_delay) == (4.0, 1.0)
    wavering = ScheduleConfig(jitter_type="uniform", tick_jitter_ratio=0.1)
    kept = Condition(jitter={"zone_1": 0.3}).schedule(grid_env(schedule=wavering))
    assert kept["battery_1"] == ScheduleConfig(tick_interval=1.0, jitter_type="uniform", tick_jitter_ratio=0.1)
    assert kept["zone_1"].jitter_type == "uniform", "one law serves delays and ticks"
    assert found["system_agent"].msg_delay == 3.0


def test_a_rate_is_that_of_the_media_that_there_are_or_of_one_that_all_links_share():
    env = grid_env()
    (shared,) = {config.medium for config in Condition(rate=500).schedule(env).values()}
    assert shared == Medium(rate=500.0, overhead=20.0)
    assert {config.medium for config in IDEAL.schedule(env).values()} == {None}
    radio, cable = Medium("radio", rate=50.0, order="priority"), Medium("cable", rate=7.0, duplex=True)
    own = {
        "*": ScheduleConfig(),
        "field": ScheduleConfig(medium=radio, priority=1),
        "system": ScheduleConfig(medium=cable),
    }
    env = grid_env(schedule=own)
    for rate in (500.0, math.inf):
        found = {config.medium for config in Condition(rate=rate).schedule(env).values()}
        assert found == {None, replace(radio, rate=rate), replace(cable, rate=rate)}
    assert course(run(IDEAL, schedule=own)) == course(run(SYNC))


def test_messages_wait_for_each_other_at_a_low_rate():
    few, many = (run(Condition(rate=rate)) for rate in (200.0, 1e6))
    assert few.media["medium"].load > 1.0 > many.media["medium"].load
    assert course(few) != course(many)


def test_nothing_wrong_is_the_synchronous_clock_bit_for_bit():
    assert course(run(IDEAL)) == course(run(SYNC))
    for cause in CAUSES:
        if cause not in ("loss", "jitter"):  # which need many steps, or ticks that matter, to show
            assert course(run(ALL.only(cause))) != course(run(SYNC)), cause
    assert course(run(Condition(loss=0.9))) != course(run(SYNC))


def test_runs_with_different_causes_share_all_other_draws():
    delayed = Condition(msg_delay=0.3, jitter=0.4)
    assert course(run(delayed)) == course(run(delayed.but(loss=1e-12)))  # draws are made and nothing is lost
    assert course(run(delayed)) != course(run(delayed.but(loss=0.3)))


def test_an_agent_holds_between_rarer_ticks():
    result = run(Condition(tick_ratio=4))
    assert [t for t, _ in result.actions["battery_1"]] == [0.0, 4.0, 8.0]


def test_noise_lies_on_what_others_show_and_never_on_ones_own():
    env = grid_env(observability=Condition(noise=0.3).observability(None))
    exact, _ = grid_env().reset(seed=3)
    seen, _ = env.reset(seed=3)
    own = [not name.startswith("battery") for name in env.observation_names("battery_1")]
    soc = [name.endswith("soc") for name in env.observation_names("battery_1")]
    differs = seen["battery_1"] != exact["battery_1"]
    assert differs.tolist() == [s and not o for s, o in zip(soc, own, strict=True)]
    assert env.visibility_matrix().level_of("battery_1", "battery_2", "soc") == 0.3


def test_noise_shows_nothing_that_tags_hide():
    plain = make("heron/BatteryGrid-v0", scope="owner")
    noisy = make("heron/BatteryGrid-v0", scope="owner", observability=Condition(noise=0.3).observability(None))
    assert noisy.observation_names("battery_1") == plain.observation_names("battery_1")
    assert noisy.visibility_matrix().level_of("battery_1", "battery_2", "soc") is None


def test_noise_comes_on_top_of_a_matrix():
    own = ObservabilityConfig(default={"level": "insider", "noise": 0.1}, matrix=[["zone_1", "zone_2", "unaware", 0.0]])
    found = Condition(noise=0.2).observability(own)
    assert found.common_noise == 0.2 and found.matrix == own.matrix
    sees = grid_env(observability=found).visibility_matrix().level_of
    assert sees("battery_1", "battery_2", "soc") == pytest.approx(0.3)
    assert sees("battery_1", "battery_1", "soc") == 0.0
    assert Condition(noise=0.2).observability(found).common_noise == 0.4


def test_noise_works_where_a_file_declares_the_world():
    env = make("heron/Economy-v0")
    noisy = make("heron/Economy-v0", observability=Condition(noise=0.2).observability(env.observability))
    assert noisy.observability.common_noise == 0.2


def test_axes_give_each_condition_once_in_order():
    assert [c.name for c in along(act_delay=(0, 5), loss=(0, 0.1))] == ["ideal", "act_delay=5", "loss=0.1"]
    assert [c.name for c in grid(act_delay=(0, 5), loss=(0, 0.1))] == [
        "ideal", "loss=0.1", "act_delay=5", "act_delay=5 loss=0.1",
    ]  # fmt: skip
    assert len(coalitions(ALL)) == 2**9 - 1  # jitter alone has no delay to scale
    assert [len(c.causes) for c in one_at_a_time(ALL)] == [0, *[1] * 8, 9]
    assert parsed_axis("act_delay=0,30,60") == ("act_delay", (0.0, 30.0, 60.0))
    cause, (nothing, by_level) = parsed_axis("msg_delay=0,field:0.05/system:2")
    assert (cause, nothing) == ("msg_delay", 0.0)
    assert Condition(msg_delay=by_level).name == "msg_delay=field:0.05/system:2"
