"""T20: the hook `link` makes a message's way depend on the state at its departure."""

import math
import pickle
from typing import Any

import numpy as np
import pytest

from heron_env import BatchEnv, Empirical, ScheduleConfig, SystemAgent, World, rule
from heron_env.errors import ConfigError, RuleError
from heron_env.testing.clock import SECOND
from heron_env.worlds.battery_grid import Battery, BatteryChargeFeature, BatteryGridEnv, Zone, battery_grid

PROXY = -1
NETWORK = ScheduleConfig(
    tick_interval=0.5, msg_delay=0.05, act_delay=0.1, obs_delay=0.02, jitter_type="lognormal", jitter_ratio=0.3,
    loss=0.1,
)  # fmt: skip
SMALL: dict[str, Any] = {"num_batteries": 2, "max_steps": 5}


def grid(rule: Any = None, **options: Any) -> Any:
    """A BatteryGrid, with the rule as its hook."""
    env = battery_grid(**{**SMALL, **options})
    if rule is not None:
        type_of = type(env)
        env.__class__ = type(type_of.__name__, (type_of,), {"link": lambda self, world, s, r: rule(world, s, r)})
    return env


def run(env: Any, schedule: Any = NETWORK, **more: Any) -> Any:
    return env.run_event_driven({"*": lambda v: np.array([0.3])}, seed=3, schedule=schedule, trace=True, **more)


def latencies(result: Any, kind: str) -> list[float]:
    return [record.latency / SECOND for record in result.trace if record.kind == kind]


def test_a_rule_that_says_nothing_changes_nothing() -> None:
    for schedule in (NETWORK, ScheduleConfig(), ScheduleConfig(msg_delay=0.1)):
        plain, ruled = run(grid(), schedule), run(grid(lambda world, s, r: (1.0, 0.0)), schedule)
        ids = grid().hierarchy.ids
        assert ruled.trace.lines(ids) == plain.trace.lines(ids)
        assert (ruled.actions, ruled.messages, ruled.returns) == (plain.actions, plain.messages, plain.returns)


def test_delays_of_messages_are_multiplied_and_zero_stays_zero() -> None:
    schedule = ScheduleConfig(msg_delay=0.05, act_delay=0.1)
    found = run(grid(lambda world, s, r: (3.0, 0.0)), schedule)
    assert latencies(found, "ObservationRequest") == pytest.approx([0.15] * 10)
    assert {time for agent in found.actions for time, _ in found.actions[agent]} == {
        round(n + 0.15 + 0.15 + 0.1, 9) for n in range(5)
    }, "request, reply, and act_delay, which is no message"
    assert set(latencies(found, "CycleToken")) == {0.05}, "the cycle is reliable"
    assert run(grid(lambda world, s, r: (7.0, 0.0)), ScheduleConfig()).actions == run(grid(), ScheduleConfig()).actions


def test_losses_add_to_those_of_the_schedule_and_move_no_delay() -> None:
    all_lost = run(grid(lambda world, s, r: (1.0, 1.0 if r == PROXY else 0.0)), ScheduleConfig(msg_delay=0.05))
    assert all(not all_lost.actions[agent] for agent in all_lost.actions)
    some, none = (run(grid(lambda world, s, r, p=p: (1.0, p)), NETWORK) for p in (0.4, 0.0))
    assert some.messages.lost > none.messages.lost > 0
    kept = {(r.agent, r.number, r.t_ns) for r in none.trace if r.kind == "ObservationRequest"}
    assert {(r.agent, r.number, r.t_ns) for r in some.trace if r.kind == "ObservationRequest"} < kept


def test_chances_of_a_loss_are_those_of_independent_causes() -> None:
    half = ScheduleConfig(tick_interval=0.01, loss=0.5)
    both = run(grid(lambda world, s, r: (1.0, 0.5)), half).messages
    alone = run(grid(lambda world, s, r: (1.0, -1.0)), half).messages
    assert alone == run(grid(), half).messages, "no chance is below 0"
    tried = {"both": 1000, "alone": 1000}  # requests; what follows from them differs
    lost = {
        name: 1000 - len(latencies(run(grid(lambda world, s, r, p=p: (1.0, p)), half), "ObservationRequest"))
        for name, p in (("both", 0.5), ("alone", 0.0))
    }
    assert lost["both"] / tried["both"] == pytest.approx(0.75, abs=0.05)
    assert lost["alone"] / tried["alone"] == pytest.approx(0.5, abs=0.06)
    assert both.lost > alone.lost


def test_results_are_clipped() -> None:
    odd = run(grid(lambda world, s, r: (-3.0, -0.5)), ScheduleConfig(msg_delay=0.05))
    assert set(latencies(odd, "ObservationRequest")) == {0.0}
    assert odd.messages.lost == 0
    lost = run(grid(lambda world, s, r: (1.0, 17)), ScheduleConfig(msg_delay=0.05))
    assert lost.messages.delivered > 0 and not latencies(lost, "ObservationRequest")
    far = run(grid(lambda world, s, r: (math.inf, 0.0)), ScheduleConfig(msg_delay=1e-7))
    assert set(latencies(far, "ObservationRequest")) == {0.1}, "a factor of 1e6"


@pytest.mark.parametrize("told", [(math.nan, 0.0), (1.0, math.nan), 1.0, (1.0,), None, ("a", 0.0), (True, 0.0)])
def test_what_is_no_pair_of_numbers_is_refused(told: Any) -> None:
    with pytest.raises(RuleError, match=r"\('battery_1' to the proxy\) returned .*two numbers, none of them nan"):
        run(grid(lambda world, s, r: told))


def test_the_rule_sees_the_state_at_departure_and_who_sends_to_whom() -> None:
    asked: list[tuple[float, int, int]] = []

    def rule(world: Any, sender: int, receiver: int) -> tuple[float, float]:
        asked.append((float(world.time), sender, receiver))
        return (1.0 + world.time, 0.0)

    env = grid(rule)
    found = run(env, ScheduleConfig(msg_delay=0.05))
    batteries = {env.hierarchy.index[agent] for agent in env.possible_agents}
    assert {(s, r) for _, s, r in asked} >= {(b, PROXY) for b in batteries} | {(PROXY, b) for b in batteries}
    assert PROXY not in {s for _, s, r in asked if r == PROXY}
    requests = [r for r in found.trace if r.kind == "ObservationRequest"]
    assert [r.latency / SECOND for r in requests] == pytest.approx([0.05 * (1 + r.number) for r in requests])


def test_links_from_data_and_traces_go_with_it() -> None:
    env = grid(lambda world, s, r: (2.0, 0.1))
    found = env.run_event_driven(
        {"*": lambda v: np.array([0.3])}, seed=3, schedule=ScheduleConfig(msg_delay=Empirical([0.1, 0.2])), trace=True
    )
    assert {round(x, 9) for x in latencies(found, "ObservationRequest")} == {0.2, 0.4}
    assert found.messages.lost > 0


def test_the_compiled_clock_names_it() -> None:
    env = grid(lambda world, s, r: (1.0, 0.0))
    ruled = grid(lambda world, s, r: (1.0, 0.0), compile=True)
    own = grid(compile=True)
    own.link = lambda world, s, r: (1.0, 0.0)
    for one in (env, ruled, own):
        with pytest.raises(
            ConfigError, match=r"event'\): its hook link is a method: write @staticmethod @rule def link\("
        ):
            BatchEnv(lambda one=one: one, 2, clock="event")
    assert BatchEnv(lambda: grid(compile=True), 2, clock="event").num_envs == 2


class Foggy(type(grid())):  # type: ignore[misc]
    """A class that can be found again when a run is unpickled."""

    def link(self, world: Any, sender: int, receiver: int) -> tuple[float, float]:
        return 2.0, 0.2


def test_a_run_with_it_goes_on_after_pickling() -> None:
    env, other = grid(), grid()
    env.__class__ = other.__class__ = Foggy
    policies = {"*": lambda v: np.array([0.3])}
    whole = run(env)
    started = other.start_event_driven(policies, seed=3, schedule=NETWORK, trace=True)
    started.until(2.2)
    again = pickle.loads(pickle.dumps(started))
    again.attach(policies)
    again.until(None)
    assert again.result().trace.lines(env.hierarchy.ids) == whole.trace.lines(env.hierarchy.ids)


def by_charge(world: World, sender: int, receiver: int) -> tuple[float, float]:
    charge = world[Battery].BatteryChargeFeature.soc
    return 1.0 + 2.0 * charge[0] + 0.1 * sender, 0.1 * charge[1] + 0.01 * receiver


def at_a_time(world: World, sender: int, receiver: int) -> tuple[float, float]:
    return 1.0 + world.time, 0.0


def nan_from_the_proxy(world: World, sender: int, receiver: int) -> tuple[float, float]:
    return 1.0, math.nan if sender == PROXY and world.step > 1 else 0.0


def divides(world: World, sender: int, receiver: int) -> tuple[float, float]:
    return 1.0 / (3 - world.step), 0.0


def writes(world: World, sender: int, receiver: int) -> tuple[float, float]:
    world[Battery].BatteryChargeFeature.soc[0] = 1.0
    return 1.0, 0.0


def draws(world: World, sender: int, receiver: int) -> tuple[float, float]:
    return world.draw("way")[0], 0.0


def one(world: World, sender: int, receiver: int) -> Any:
    return 1.0


def a_truth(world: World, sender: int, receiver: int) -> Any:
    return 1.0, world.time > 1.0


def with_rule(function: Any, compile: bool = False) -> Any:
    """A BatteryGrid with this world rule."""
    kind = type("Grid", (BatteryGridEnv,), {"link": staticmethod(rule(function))})
    batteries = (Battery("battery_1", BatteryChargeFeature()), Battery("battery_2", BatteryChargeFeature()))
    return kind(SystemAgent("system_agent", Zone("zone_1", *batteries)), max_steps=5, compile=compile)


COMPILED = pytest.mark.parametrize("compile", [True, False])


def by_batch(function: Any, compile: bool, lanes: int = 1) -> Any:
    """The result of the first lane of an event batch."""
    batch: Any = BatchEnv(
        lambda: with_rule(function, compile), lanes, seed=3, clock="event", schedule=NETWORK, autoreset="disabled",
        record=("rewards", "actions", "messages"),
    )  # fmt: skip
    rows = batch.begin()
    while len(rows):
        rows = batch.answer(np.full((len(rows), 1), 0.3))
    return batch.result(0)


@COMPILED
@pytest.mark.parametrize("function", [by_charge, at_a_time])
def test_as_a_world_rule_it_says_what_a_method_says_in_both_clocks(function: Any, compile: bool) -> None:
    env = with_rule(function, compile)
    mine, plain, batch = run(env), run(grid(function)), by_batch(function, compile)
    assert mine.trace.lines(env.hierarchy.ids) == plain.trace.lines(env.hierarchy.ids)
    assert (repr(batch.actions), repr(batch.returns)) == (repr(plain.actions), repr(plain.returns))
    assert run(grid()).messages != plain.messages


@COMPILED
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (nan_from_the_proxy, r"link\(world, -1, \d\) \(the proxy to .*\) returned \(1.0, nan\); return \(factor"),
        (divides, r"Grid.link ended in ZeroDivisionError.* at .*test_link_rule.py:\d+: `return 1.0 / \(3 - world"),
    ],
)  # fmt: skip
def test_what_a_rule_is_refused_for_is_said_alike_by_both_clocks(function: Any, words: str, compile: bool) -> None:
    with pytest.raises(RuleError, match=words) as expected:
        run(with_rule(function, compile))
    for lanes in (1, 2):
        with pytest.raises(RuleError) as caught:
            by_batch(function, compile, lanes)
        assert str(caught.value) == str(expected.value)
        assert getattr(caught.value, "__notes__", []) == (["in link() of lane 0"] if lanes > 1 else [])


@pytest.mark.parametrize(
    ("function", "words", "compiled"),
    [
        (writes, r"Grid.link\(world, 2, -1\): it writes into the world, which it may only read", "may only read"),
        (draws, "it draws, where it may only read", "it draws, where it may only read"),
        (
            one,
            r"returned 1.0; return \(factor",
            r"Grid.link returns float64; return \(factor on the delay, probability",
        ),
        (a_truth, r"returned \(1.0, False\); return \(factor", r"Grid.link returns Tuple\(float64, bool\); return"),
    ],
)
def test_a_rule_reads_alone_and_returns_two_numbers(function: Any, words: str, compiled: str) -> None:
    with pytest.raises(RuleError, match=words):
        run(with_rule(function))
    with pytest.raises(RuleError, match=compiled):
        with_rule(function, compile=True).reset(seed=0)


def test_a_rule_is_static_and_takes_two_ends() -> None:
    with pytest.raises(RuleError, match=r"write def link\(world, sender, receiver\)"):
        with_rule(lambda world, sender: (1.0, 0.0))
