"""Laws P1 to P9 in the black box: what a plan does on any network, and faults that break them."""

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from plan_worlds import LENGTH, Integrator, Switch, feedback, integrate, rolled_out, with_prefix

from heron_env import Answer, Plan, Planned, ScheduleConfig, under_network
from heron_env.adapters.network import driver, sides
from heron_env.core import plans
from heron_env.core.plans import MERGES, PlanInForce
from heron_env.errors import ConfigError, InvalidAction
from heron_env.scheduling.sources import Empirical
from heron_env.seeding import key, uniforms


def played(env: Any, policy: Any, schedule: Any = None, seed: int = 0, noop: Any = None, **more: Any) -> Any:
    return under_network(env, schedule, noop=noop, **more).run_event_driven({"*": policy}, seed=seed)


def pushes(policy: Any, schedule: Any = None, seed: int = 0, wind: float = 0.0) -> list[float]:
    """What the integrator gets, step by step; 0 is the no-op. It starts at rest without wind."""
    env = Integrator(wind, rest=not wind)
    played(env, policy, schedule, seed)
    return env.pushes


def network(number: int) -> ScheduleConfig:
    """Delays, jitter, loss, reordering, ticks and phases, drawn."""
    pick = iter(uniforms(key("plans", number), 9).tolist())

    def one(*of: Any) -> Any:
        return of[int(next(pick) * len(of))]

    return ScheduleConfig(
        obs_delay=one(0.0, 1.0, 2.0, 0.4), act_delay=one(0.0, 1.0, 3.0, 0.7), msg_delay=one(0.0, 0.3, 1.0),
        jitter_type="lognormal", jitter_ratio=one(0.0, 0.5), loss=one(0.0, 0.2), reorder=one(True, False),
        tick_interval=one(1.0, 2.0, 3.0), phase=one(0.0, 1.0), on_missing=one("hold", "noop"),
    )  # fmt: skip


# P1


RULES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "CartPole-v1": (lambda seen: int(seen[2] + 0.3 * seen[3] > 0.0), 0),
    "Pendulum-v1": (lambda seen: np.array([np.clip(-2.0 * seen[2], -2.0, 2.0)], np.float32), None),
    "MountainCarContinuous-v0": (lambda seen: np.array([np.sign(seen[1])], np.float32), None),
    "Acrobot-v1": (lambda seen: int(seen[4] > 0.0) * 2, 1),
}


def look_at_plans_of_one(networks: int = 3) -> None:
    for name, (rule, noop) in RULES.items():
        for number in range(networks):
            env = gymnasium.make(name, max_episode_steps=60)
            one = played(env, rule, network(number), number, noop)
            other = played(env, lambda seen, rule=rule: Plan([rule(seen)]), network(number), number, noop)
            assert one.same_course(other) and one.messages == other.messages and one.latency == other.latency


# P2 and P3


def look_at_open_loop() -> None:
    """The plan of an episode at zero delay is its actions one by one, and one message."""
    whole = np.linspace(-2.0, 2.0, LENGTH)[:, None]
    steps = iter(whole)
    one, other = (
        played(Integrator(), lambda seen: next(steps)),
        played(Integrator(), Planned(lambda seen: whole, replan=10**6)),
    )
    assert one.rewards == other.rewards
    assert one.messages.sent - other.messages.sent == LENGTH - 1


def look_at_periods() -> None:
    """Sample and hold: action j belongs to [o + j period, o + (j + 1) period), o being the observation's time."""
    late = ScheduleConfig(act_delay=3.0, tick_interval=1e6)
    every = pushes(lambda seen: Plan([[1.0], [2.0], [-1.0]], period=2.0), late)
    assert every[:7] == [0.0, 0.0, 0.0, 2.0, -1.0, -1.0, -1.0]
    later = pushes(lambda seen: Plan([[1.0], [2.0], [-1.0]], start=2.0, end="noop"), late)
    assert later[:7] == [0.0, 0.0, 0.0, 2.0, -1.0, 0.0, 0.0]


def look_at_order() -> None:
    """Overtaken plans change nothing: the numbers in force only rise, and a plan is one message."""
    net = ScheduleConfig(act_delay=3.0, jitter_type="uniform", jitter_ratio=0.9, reorder=True, loss=0.2)
    for seed in range(3):
        env = under_network(Integrator(), net)
        result = env.run_event_driven({"*": Planned(rolled_out(12), merge="restart")}, seed=seed, trace=True)
        commands = [row for row in result.trace if row.kind == "ActionCommand"]
        numbers = [row.number for row in commands if not row.cancelled]
        assert numbers == sorted(set(numbers)) and any(row.cancelled for row in commands)
        assert len({row.number for row in commands}) == len(commands)


# P4


def look_at_merges() -> None:
    """By hand: plan n says 10 n + j at its j-th place; it arrives two steps after its question, one a step, of 4."""
    late = ScheduleConfig(act_delay=2.0)

    def steps(merge: Any, rows: int = 4, **more: Any) -> list[float]:
        class Counting:
            def answer(self, asked: Any) -> Answer:
                return Answer(Plan(0.1 * (10 * asked.number + np.arange(float(rows)))[:, None], merge=merge, **more))

        return [round(10.0 * value, 6) for value in pushes(Counting(), late)[2:6]]

    assert steps("drop") == [2.0, 12.0, 22.0, 32.0]
    assert steps("restart") == [0.0, 10.0, 20.0, 30.0]
    assert steps("append") == [0.0, 1.0, 2.0, 3.0]
    assert steps("blend", weight=0.75) == [2.0, 9.75, 19.75, 29.75]
    assert steps("ensemble", weight=0.0) == [2.0, (3 + 12) / 2, (13 + 22) / 2, (23 + 32) / 2]
    assert steps("ensemble", 6, weight=0.0)[2] == pytest.approx((4 + 13 + 22) / 3, abs=1e-6)
    old, new = np.exp(0.0), np.exp(-0.5)
    assert steps("ensemble", weight=0.5)[1] == pytest.approx((3 * old + 12 * new) / (old + new), abs=1e-6)


def look_at_blending() -> None:
    """Plans that agree are the plan, under every merge that keeps time."""
    whole = uniforms(key("agree"), 4 * LENGTH).reshape(-1, 1) * 4.0 - 2.0
    for delay in (0.0, 2.0, 5.0):
        found = []
        for merge in ("drop", "blend", "ensemble"):

            class Script:
                def answer(self, asked: Any, merge: Any = merge) -> Answer:
                    return Answer(Plan(whole[round(asked.time) :][:20], merge=merge))

            found.append(pushes(Script(), ScheduleConfig(tick_interval=2.0, act_delay=delay)))
        for other in found[1:]:
            assert np.allclose(found[0], other, rtol=1e-12, atol=1e-12)


def look_at_early_plans() -> None:
    """Before the first action of a plan what was in force goes on."""

    class Ahead:
        def answer(self, asked: Any) -> Answer:
            return Answer(Plan([[0.1 * asked.number]] * 3, start=2.0, merge="drop"))

    assert [round(10.0 * value) for value in pushes(Ahead())[:7]] == [0, 0, 0, 1, 2, 3, 4]


# P5 and P6


def look_at_ends() -> None:
    found = {}
    for end in plans.ENDS:
        planned = Planned(lambda seen: np.array([[1.0], [2.0], [-1.0]]), replan=10**6, end=end)
        found[end] = pushes(planned)
    assert found["hold"] == [1.0, 2.0] + [-1.0] * (LENGTH - 2)
    assert found["noop"] == [1.0, 2.0, -1.0] + [0.0] * (LENGTH - 3)
    late = ScheduleConfig(act_delay=5.0, tick_interval=1e6)
    past = played(Integrator(rest=True), lambda seen: Plan([[1.0], [2.0]], end="noop"), late)
    assert past.actions["agent"] == [] and past.cancelled_effects == 1
    assert pushes(lambda seen: Plan([[1.0], [2.0]]), late) == [0.0] * 5 + [2.0] * (LENGTH - 5)


def look_at_freezes() -> None:
    """Who thinks for d steps about plans of 6 acts in 6 of 6 + d steps; what it could not look at is counted."""
    for thought in (0.0, 2.0, 4.0):
        asked = 0

        def plan(seen: Any) -> Any:
            nonlocal asked
            asked += 1
            return np.ones((6, 1))

        frozen = Planned(plan, replan="end", merge="restart", end="noop")
        result = played(env := Integrator(), frozen, ScheduleConfig(thinking=thought))
        whole, rest = divmod(LENGTH, 6 + round(thought))
        assert sum(env.pushes) == 6 * whole + max(rest - round(thought), 0)
        assert result.busy["agent"] == pytest.approx(asked * (thought - 1.0) if thought else 0.0, abs=thought)


# P7


def look_at_perfect_models() -> None:
    """Constant latency, an exact model and the prefix: the undelayed controller, after the first no-ops."""
    for delay in (0, 1, 3, 7, 12):
        for way in ("act_delay", "thinking"):
            seen_late = delay // 3
            net = ScheduleConfig(tick_interval=4.0, obs_delay=float(seen_late), **{way: float(delay - seen_late)})
            late = played(Integrator(), Planned(with_prefix(30)), net, seed=delay)
            number, first = 0, -(-seen_late // 4) * 4 + delay - seen_late

            def at_once(seen: Any, first: int = first) -> Any:
                nonlocal number
                number += 1
                return np.array([0.0 if number <= first else feedback(seen)])

            assert late.rewards == played(Integrator(), at_once, seed=delay).rewards, (delay, way)


def look_at_what_is_running() -> None:
    """`remaining[:prefix]` is what is then carried out."""
    net = ScheduleConfig(tick_interval=5.0, obs_delay=2.0, act_delay=3.0, thinking=1.0)
    notes = []

    class Spy(Planned):
        def answer(self, asked: Any) -> Answer:
            notes.append((asked.time - 2.0, asked.running))
            return super().answer(asked)

    done = pushes(Spy(rolled_out(30), merge="blend"), net, seed=1, wind=0.5)
    compared = 0
    for time, running in notes[3:]:
        assert running.number >= 0 and running.age in (2, 3, 4, 5, 6)
        for j, action in enumerate(running.remaining[: running.prefix]):
            if time + j < LENGTH:
                assert done[round(time) + j] == float(action[0])
                compared += 1
    assert compared > 60


# P8 and P9


def look_at_masks_and_choices() -> None:
    env = Switch()
    for merge, weight in (("drop", None), ("blend", 0.3)):
        choices = Planned(lambda seen: [1, 1, 2, 1], replan=4, merge=merge, weight=weight)
        result = played(env, choices, noop=0)
        assert env.taken == [1, 0, 2, 0] * 3 and result.masked["agent"] == 6
    two = Planned(lambda seen: [int(seen[0]) % 3] * 4, replan=2, merge="blend", weight=0.3)
    played(Switch(), two, noop=0)
    both = plans.mixed({"a": np.array([1.0]), "b": 1}, {"a": np.array([2.0]), "b": 2}, 0.3)
    assert both["a"] == pytest.approx(1.3) and both["b"] == 1
    assert plans.mixed(1, 2, 0.5) == 2


def look_at_missing_commands() -> None:
    """With on_missing="noop" a plan stands for the ticks up to its last action's, then the no-op, whatever its end."""
    lost = ScheduleConfig(on_missing="noop")
    once = Planned(lambda seen: np.ones((5, 1)), replan=10**6, end="hold")
    assert pushes(once, lost) == [1.0] * 6 + [0.0] * (LENGTH - 6)


LAWS = [value for name, value in globals().items() if name.startswith("look_at_")]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__.removeprefix("look_at_"))
def test_law(law: Callable[[], None]) -> None:
    law()


# Faults


def by_merge(change: Callable[..., Any]) -> Callable[..., Any]:
    whole = plans.merged
    return lambda new, old, now, mix: change(whole, new, old, now, mix)


def called(old: str, new: str) -> Callable[..., Any]:
    """One merge taken for another."""
    return by_merge(lambda w, n, *of: w(n._replace(merge=new if n.merge == old else n.merge), *of))


def without_counts(whole: Any, *of: Any) -> Any:
    force = whole(*of)
    return force and replace(force, counts=(1,) * len(force.rows))


def held(self: PlanInForce, now: int) -> Any:
    return self.rows[min(max(self.index(now), 0), len(self.rows) - 1)]


def never_held(self: PlanInForce, now: int) -> Any:
    return self.rows[self.index(now)] if 0 <= self.index(now) < len(self.rows) else None


def by_place(whole: Any, new: Any, old: Any, now: int, mix: Any) -> Any:
    aligned = old and replace(old, origin=new.origin) if new.merge in ("blend", "ensemble") else old
    return whole(new, aligned, now, mix)


def forgets(self: Any, *of: Any) -> Any:
    self.under_way = ()
    return RUNNING(self, *of)


def of_now(self: Any, now: int, *of: Any) -> Any:
    copies, self.copies = self.copies, [(now, self.copies[0][1])]
    try:
        return RUNNING(self, now, *of)
    finally:
        self.copies = copies


def older_wins(self: Any, command: Any) -> Any:
    side = self.sides[command.agent]
    side.force = (-1, side.force[1])
    return TAKE_EFFECT(self, command)


RUNNING, TAKE_EFFECT = sides.AgentSide.running, driver.NetworkEpisode._take_effect
FAULTS: dict[str, tuple[Any, str, Any]] = {
    "shifted_by_one": (driver, "merged", by_merge(lambda w, n, *of: w(n._replace(origin=n.origin + n.period), *of))),
    "drop_is_restart": (driver, "merged", called("drop", "restart")),
    "restart_is_drop": (driver, "merged", called("restart", "drop")),
    "append_is_restart": (driver, "merged", called("append", "restart")),
    "always_held": (PlanInForce, "at", held),
    "never_held": (PlanInForce, "at", never_held),
    "weights_beyond_one": (driver, "mixed", lambda old, new, w: 1.01 * ((1.0 - w) * old + w * new)),
    "choices_mixed": (plans, "mixed", lambda old, new, w: (1.0 - w) * old + w * new),
    "blends_by_place": (driver, "merged", by_merge(by_place)),
    "forgets_what_is_under_way": (sides.AgentSide, "running", forgets),
    "status_of_now": (sides.AgentSide, "running", of_now),
    "older_plan_wins": (driver.NetworkEpisode, "_take_effect", older_wins),
    "nothing_before": (driver, "merged", by_merge(lambda w, *of: (f := w(*of)) and replace(f, before=None))),
    "late_plans_accepted": (driver, "merged", by_merge(lambda w, n, *of: w(n, *of) or w(n._replace(end="hold"), *of))),
    "ensemble_forgets_counts": (driver, "merged", by_merge(without_counts)),
    "thinks_forever_awake": (sides.AgentSide, "is_thinking", lambda self, now: False),
    "prefix_without_thinking": (sides.AgentSide, "way", property(lambda self: self.timing.act - self.timing.thinking)),
    "missed_by_number_alone": (sides.AgentSide, "is_missed", lambda self, number, action, ticks, now: (
        self.timing.config.on_missing == "noop" and self.timing.nominal(number + ticks) < now)),
}  # fmt: skip


@contextmanager
def planted(where: Any, name: str, fault: Any) -> Iterator[None]:
    sound = vars(where)[name]
    setattr(where, name, fault)
    try:
        yield
    finally:
        setattr(where, name, sound)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_breaks_a_law(name: str) -> None:
    with planted(*FAULTS[name]):
        for law in LAWS:
            try:
                law(1) if law is look_at_plans_of_one else law()
            except (AssertionError, IndexError, TypeError, ValueError, InvalidAction):
                return
    pytest.fail(f"{name}: nobody noticed")


# The rest


def test_times_from_a_file_of_thoughts_are_drawn_by_the_decision() -> None:
    net = ScheduleConfig(thinking=Empirical([1.0, 2.0, 6.0]))
    one, other = (played(Integrator(), Planned(rolled_out(20), replan=3), net, seed=4) for _ in range(2))
    assert one.same_course(other)
    lossy = replace(net, loss=0.5)
    busy = [played(Integrator(), Planned(rolled_out(20)), each, seed=4).busy for each in (net, lossy)]
    assert busy[0] == busy[1]


def test_the_schedule_and_the_answer_think_alike() -> None:
    class Slow(Planned):
        def answer(self, asked: Any) -> Answer:
            return replace(super().answer(asked), thinking=3.0)

    one = played(Integrator(), Planned(rolled_out(20)), ScheduleConfig(thinking=3.0))
    other = played(Integrator(), Slow(rolled_out(20)))
    assert one.same_course(other)
    bare = under_network(Integrator(), ScheduleConfig(thinking=3.0))
    assert bare.run_synchronous({"*": Slow(rolled_out(20))}, seed=0).same_course(
        bare.run_synchronous({"*": Planned(rolled_out(20))}, seed=0)
    )


def test_nothing_new_keeps_what_is_in_force_and_sends_nothing() -> None:
    numbers = iter(range(LENGTH))
    result = played(Integrator(rest=True), lambda seen: None if next(numbers) else Plan([[1.0], [2.0]]))
    assert [float(values[0]) for _, values in result.actions["agent"]] == [1.0, 2.0]
    assert result.messages.sent == LENGTH + 1 + 1


def test_lost_plans_stop_nobody() -> None:
    for loss in (0.3, 0.6):
        for again in (1, 0.5, "end"):
            result = played(
                Integrator(), Planned(rolled_out(8), replan=again), ScheduleConfig(loss=loss, act_delay=2.0)
            )
            assert len(result.actions["agent"]) > LENGTH // 3


def test_what_is_wrong_with_a_plan_is_said() -> None:
    for wrong, words in (
        ({"actions": []}, "one action or more"), ({"actions": [1], "merge": "mean"}, "must be one of"),
        ({"actions": [1], "period": 0.0}, "above 0"), ({"actions": [1], "end": "stop"}, "must be one of"),
        ({"actions": [1], "merge": "blend", "weight": 2.0}, "at most 1"),
        ({"actions": [1], "start": np.nan}, "must be a number of seconds"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=words):
            Plan(**wrong)
    for wrong, words in (({"horizon": 0}, "horizon"), ({"replan": 0}, "replan"), ({"merge": "x"}, "merge")):
        with pytest.raises(ConfigError, match=words):
            Planned(rolled_out(3), **wrong)  # type: ignore[arg-type]
    letters = type("Letters", (), {"answer": lambda self, asked: Answer([0.0], letters=("hello",))})()  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="have no letters"):
        played(Integrator(), letters)


def test_all_merges_are_tried() -> None:
    assert set(MERGES) == {"drop", "restart", "append", "blend", "ensemble"}
    assert pickle.loads(pickle.dumps(Planned(feedback, replan=0.5))).replan == 0.5
    assert integrate(np.zeros(2), 9.0)[1] == pytest.approx(0.15)
