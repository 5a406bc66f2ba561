"""What a run says about plans: each counter by hand, no plan and no action is lost among them, and faults."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import isnan, nan, sin
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium import spaces
from plan_worlds import Integrator, Switch

from heron_env import Answer, Plan, Planned, ScheduleConfig, under_network
from heron_env.adapters.network import driver
from heron_env.core.plans import MERGES, PlanInForce, SentPlan
from heron_env.envs.plan_counts import PlanCounts, PlanTally
from heron_env.lab import record_episode
from heron_env.lab.traces import file
from heron_env.lab.traces.replaying import replay
from heron_env.scheduling.messages import ActionCommand
from heron_env.seeding import key, uniforms

RANGE = 6.0
"""Of an Integrator's action."""


def level(value: float, k: int, **more: Any) -> Plan:
    return Plan(np.full((k, 1), value), **more)


def scripted(plans: Mapping[int, Any]) -> Any:
    """A policy that answers at these steps, and has nothing new at all others."""
    return type("Scripted", (), {"answer": lambda self, asked: Answer(plans.get(asked.turn))})()


def run(policy: Any, schedule: Any = None, t_end: float = 20.0, env: Any = None, **more: Any) -> Any:
    world = under_network(env or Integrator(rest=True), schedule, noop=0)
    return world.run_event_driven({"*": policy}, seed=0, t_end=t_end, **more)


def counted(*of: Any, **more: Any) -> PlanCounts:
    counts = run(*of, **more).plans["agent"]
    assert isinstance(counts, PlanCounts)
    return counts


def numbers(counts: PlanCounts) -> tuple[int, ...]:
    return counts.sent, counts.in_force, counts.overtaken, counts.too_late, counts.starved, counts.skipped


# By hand


def look_at_skipped_actions() -> None:
    """Asked at 0, 4 ... 16, in force at 2, 6 ... 18: of 40 actions 18 are executed, and the last plan has 4 to come."""
    late = counted(Planned(lambda seen: np.zeros((8, 1)), replan=4), ScheduleConfig(thinking=2.0))
    assert numbers(late) == (5, 5, 0, 0, 0, 40 - 18 - 4)
    assert (late.delay.count, late.delay.mean, late.delay.max) == (5, 2.0, 2.0)
    at_once = counted(Planned(lambda seen: np.zeros((8, 1)), replan=4))
    assert numbers(at_once) == (5, 5, 0, 0, 0, 4 * 4) and at_once.delay.max == 0.0
    slow = counted(scripted({0: level(0.0, 4, period=3.0), 7: level(0.0, 4, period=3.0)}), t_end=10.0)
    assert numbers(slow) == (2, 2, 0, 0, 0, 1)  # of times 0, 3, 6, 9 the last comes too late; then 7, and 3 are to come
    same = {0: level(0.0, 4, period=2.0), 5: level(0.0, 4, period=2.0, start=-1.0)}
    assert numbers(counted(scripted(same), t_end=6.0)) == (
        2,
        2,
        0,
        0,
        0,
        1,
    )  # both have an action of 4, both are executed
    ahead = {0: level(0.0, 8), 2: level(0.0, 4, start=4.0)}
    assert numbers(counted(scripted(ahead), t_end=4.0)) == (2, 2, 0, 0, 0, 2)  # 4 of 12 done, 2 + 4 to come, 2 replaced
    fast = counted(scripted({0: level(0.0, 8, period=0.25)}), t_end=3.0)
    assert numbers(fast) == (1, 1, 0, 0, 1, 5)  # the first, the fifth, and the last, which holds


def look_at_starving() -> None:
    """4 actions arrive after 2 steps: 2 are left out, 2 are executed, then the end rule acts until the next plan."""
    for end in ("hold", "noop"):
        plans = scripted({0: level(1.0, 4, end=end), 8: level(2.0, 4, end=end)})
        assert numbers(counted(plans, ScheduleConfig(act_delay=2.0), 14.0)) == (2, 2, 0, 0, 6 + 2, 2 + 2)


def look_at_late_plans() -> None:
    """Wholly in the past: the last action holds on and was executed so, or the plan is refused."""
    late = ScheduleConfig(act_delay=5.0)
    assert numbers(counted(scripted({0: level(1.0, 2)}), late, 10.0)) == (1, 1, 0, 0, 5, 1)
    assert numbers(counted(scripted({0: level(1.0, 1)}), late, 10.0)) == (1, 1, 0, 0, 5, 0)
    assert numbers(counted(scripted({0: level(1.0, 2, end="noop")}), late, 10.0)) == (1, 0, 0, 1, 0, 0)


def look_at_overtaken_plans() -> None:
    """Commands of tick j that come after tick j + 1 find the no-op in their place: 8 of 10, and 2 are under way."""
    missed = ScheduleConfig(act_delay=2.0, on_missing="noop")
    assert numbers(counted(lambda seen: level(1.0, 1), missed, 10.0)) == (10, 0, 8, 0, 0, 0)


def look_at_delays() -> None:
    """In whole periods, in s, from the first action's time; a plan that starts later has none."""
    late = ScheduleConfig(act_delay=3.0)
    for more, delay in (({}, 3.0), ({"period": 2.0}, 2.0), ({"start": 2.0}, 1.0), ({"start": 9.0}, 0.0)):
        assert counted(scripted({0: level(1.0, 9, **more)}), late).delay.mean == delay
        assert counted(scripted({0: level(1.0, 9, merge="restart", **more)}), late).delay.mean == delay


class Pair(pettingzoo.ParallelEnv[str, Any, Any]):
    """Two agents; a ends after 4 steps, b after 8."""

    possible_agents = ["a", "b"]
    metadata = {"name": "pair"}

    def observation_space(self, agent: str) -> Any:
        return spaces.Box(-1.0, 1.0, (1,), np.float64)

    action_space = observation_space

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents, self.number = ["a", "b"], 0
        return {agent: np.zeros(1) for agent in self.agents}, {}

    def step(self, actions: Any) -> Any:
        there, self.number = self.agents, self.number + 1
        ended = {"a": self.number >= 4, "b": self.number >= 8}
        self.agents = [agent for agent in there if not ended[agent]]
        over = {agent: ended[agent] for agent in there}
        return {a: np.zeros(1) for a in there}, dict.fromkeys(there, 0.0), over, dict.fromkeys(there, False), {}


def look_at_ends_of_agents() -> None:
    """What comes after the end is too late; what an agent has left when it ends is neither executed nor skipped."""
    late, policies = ScheduleConfig(act_delay=2.0), {"a": lambda seen: level(0.5, 6), "b": lambda seen: np.zeros(1)}
    result = under_network(Pair(), late).run_event_driven(policies)
    assert list(result.plans) == ["a"]  # no entry for who never planned
    assert numbers(result.plans["a"]) == (4, 2, 0, 2, 0, 12 - 2 - 3)
    assert run(lambda seen: np.zeros(1)).plans == {}


# The seam


def look_at_seams() -> None:
    """Plans of one sine: the jump is its own slope at 6, 10, 14 and 18."""
    schedule = ScheduleConfig(tick_interval=4.0, thinking=2.0)
    sines = {t: Plan(np.array([[sin(0.7 * (t + j))] for j in range(8)])) for t in range(0, 20, 4)}
    by_hand = np.mean([abs(sin(0.7 * t) - sin(0.7 * (t - 1))) for t in (6, 10, 14, 18)]) / RANGE
    assert counted(scripted(sines), schedule).seam == pytest.approx(by_hand, rel=1e-12)


def look_at_where_seams_are() -> None:
    """Where the newer plan begins to act: at its arrival, at its start, after what it is appended to."""
    for more in ({}, {"start": 2.0}, {"merge": "append"}, {"merge": "append", "period": 0.5}):
        plans = {t: level(0.1 * t, 6, **more) for t in (0, 4, 8)}
        assert counted(scripted(plans)).seam == pytest.approx(0.4 / RANGE), more
    ends = scripted({0: level(1.0, 2, end="noop"), 5: level(3.0, 2, end="noop")})
    assert counted(ends).seam == 3.0 / RANGE  # from the no-op
    between = scripted({0: level(1.0, 2), 3: np.ones(1), 5: level(3.0, 2), 7: level(2.0, 2)})
    assert counted(between).seam == 1.0 / RANGE  # a single action was in force before the second


def look_at_what_has_no_seam() -> None:
    assert isnan(counted(scripted({0: level(1.0, 2)})).seam)
    assert isnan(counted(Planned(lambda seen: [0, 2, 0, 2], replan=2), env=Switch()).seam)
    free = Integrator(rest=True)
    free.action_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    assert isnan(counted(Planned(lambda seen: np.ones((4, 1)), replan=2), env=free).seam)


def look_at_clocks_by_hand() -> None:
    """As any clock calls it: two numbers of different ranges."""
    tally, s = PlanTally(np.array([-1.0, 0.0]), np.array([1.0, 10.0])), 10**9
    first, second = ((np.array(row),) * 4 for row in ([0.0, 5.0], [1.0, 0.0]))
    forces = [PlanInForce(rows, o, s, "hold", o // s, (1,) * 4) for rows, o in ((first, 0), (second, s))]
    tally.sent()
    tally.arrived(SentPlan(first, 0, s, "drop", "hold", 0.0), None, forces[0], 0)
    tally.executed(forces[0], 0, first[0])
    tally.arrived(SentPlan(second, s, s, "drop", "hold", 0.0), *forces, 2 * s)
    tally.executed(forces[1], 2 * s, second[1])
    counts = tally.counts(forces[1], 3 * s)
    assert (counts.sent, counts.in_force, counts.skipped) == (1, 2, 8 - 2 - 2)
    assert counts.seam == pytest.approx((1.0 / 2.0 + 5.0 / 10.0) / 2.0)


# Conservation


def network(number: int) -> ScheduleConfig:
    pick = iter(uniforms(key("counts", number), 7).tolist())

    def one(*of: Any) -> Any:
        return of[int(next(pick) * len(of))]

    return ScheduleConfig(
        obs_delay=one(0.0, 1.0, 2.0), act_delay=one(0.0, 2.0, 4.0), thinking=one(0.0, 0.0, 3.0), loss=one(0.0, 0.3),
        jitter_type="lognormal", jitter_ratio=one(0.0, 0.9), reorder=True, tick_interval=one(1.0, 2.0, 3.0),
        on_missing=one("hold", "hold", "noop"),
    )  # fmt: skip


def look_at_conservation(networks: int = 24) -> None:
    """Plans: sent = in force + overtaken + too late + lost + under way. Actions, all different, of the plans in force:
    executed + skipped + to come; each is counted here from what the environment got and the trace.
    """
    late_plans = overtaken = skipped = 0
    for number in range(networks):
        draws, made = uniforms(key("rows", number), 10**4), list[Plan]()

        class Planner:
            def answer(self, asked: Any, draws: Any = draws, made: Any = made, number: int = number) -> Answer:
                if draws[asked.number] < 0.3:
                    return Answer(None)
                k, n = 1 + (asked.number * 7 + number) % 9, 10 * asked.number
                pick: Any = {name: of[(asked.number + number) % len(of)] for name, of in OPTIONS.items()}
                made.append(Plan(1e-3 + draws[100 + n : 100 + n + k][:, None], **pick))
                return Answer(made[-1])

        env = Integrator(rest=True)
        world = under_network(env, network(number), noop=0)
        result = world.run_event_driven({"*": Planner()}, seed=number, t_end=90.0, trace=True)
        counts, played = result.plans["agent"], world.played
        commands = [r for r in result.trace if r.kind == "ActionCommand"]
        lost = sum(isinstance(message, ActionCommand) for message, _ in played.broker.lost)
        under_way = sum(isinstance(message, ActionCommand) for message in played.broker.under_way())
        assert counts.sent == len(made) == len(commands) + lost + under_way
        assert counts.in_force == len([r for r in commands if not r.cancelled]) == counts.delay.count
        assert counts.sent == counts.in_force + counts.overtaken + counts.too_late + lost + under_way
        force, done = played.sides[0].plan, {push for push in env.pushes if push}
        grid = range(played.now, played.now + 60 * 10**9, 10**9 // 4)
        coming = {float(said[0][0]) for t in grid if force is not None and (said := force.planned(t)) is not None}
        rows = sum(len(r.payload.action.rows) for r in commands if not r.cancelled)
        assert rows == len(done) + counts.skipped + len(coming - done), number
        late_plans, skipped = late_plans + counts.too_late, skipped + counts.skipped
        overtaken += counts.overtaken
    assert networks < 24 or (late_plans and overtaken and skipped)


OPTIONS: dict[str, tuple[Any, ...]] = {
    "merge": MERGES, "end": ("hold", "noop", "noop"), "period": (None, 0.5, None, 2.0),
    "start": (0.0, 0.0, -1.0, 3.0, 0.0, 0.0, 0.0),
}  # fmt: skip
LAWS = [value for name, value in globals().items() if name.startswith("look_at_")]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__.removeprefix("look_at_"))
def test_law(law: Callable[[], None]) -> None:
    law()


# Faults

SENT, REFUSED, ARRIVED, EXECUTED, COUNTS = (
    getattr(PlanTally, name) for name in ("sent", "refused", "arrived", "executed", "counts")
)


def after(whole: Callable[..., Any], **fields: Any) -> Callable[..., Any]:
    """The method, then other values; of a function: of the old one."""

    def method(self: Any, *of: Any, **more: Any) -> Any:
        result = whole(self, *of, **more)
        for name, value in fields.items():
            setattr(self, name, value(self) if callable(value) else value)
        return result

    return method


def begins_at_arrival(self: Any, plan: Any, old: Any, force: Any, now: int) -> None:
    ARRIVED(self, plan, old, force, now)
    self._begins[-1] = now


def forgets_single_actions(self: Any, plan: Any, old: Any, force: Any, now: int) -> None:
    action = self._action
    ARRIVED(self, plan, old, force, now)
    self._action = action


def each_step_anew(self: Any, *of: Any) -> None:
    self._slot = None
    EXECUTED(self, *of)


FAULTS: dict[str, tuple[Any, str, Any]] = {
    "sent_twice": (PlanTally, "sent", lambda self: (SENT(self), SENT(self))),
    "overtaken_is_too_late": (PlanTally, "refused", lambda self, overtaken: REFUSED(self, overtaken=False)),
    "too_late_is_overtaken": (PlanTally, "refused", lambda self, overtaken: REFUSED(self, overtaken=True)),
    "refusals_forgotten": (PlanTally, "refused", lambda self, overtaken: None),
    "never_starved": (PlanTally, "executed", after(EXECUTED, _counts=lambda self: self._counts - Counter(starved=1))),
    "starved_a_step_late": (PlanTally, "executed", lambda self, f, now, a: EXECUTED(self, f, now - 10**9, a)),
    "executed_each_step": (PlanTally, "executed", each_step_anew),
    "nothing_to_come": (PlanTally, "counts", lambda self, force, now: COUNTS(self, None, now)),
    "a_step_too_late": (PlanTally, "counts", lambda self, force, now: COUNTS(self, force, now + 10**9)),
    "nothing_before_to_come": (PlanTally, "counts", lambda self, force, now: COUNTS(
        self, force and replace(force, before=None), now)),
    "same_times_are_the_same_action": (PlanTally, "executed", lambda self, f, now, a: EXECUTED(
        self, f, now, a) if self._slot > 10**18 or f.origin + f.place(now) * f.period != self._slot else None),
    "delay_in_periods": (PlanTally, "arrived", lambda self, p, o, f, now: ARRIVED(
        self, p, o, replace(f, delay=f.delay * 10**9 // f.period), now)),
    "delay_of_one_more": (PlanTally, "arrived", lambda self, p, o, f, now: ARRIVED(
        self, p, o, replace(f, delay=f.delay + 1), now)),
    "seam_at_arrival": (PlanTally, "arrived", begins_at_arrival),
    "seam_from_long_ago": (PlanTally, "arrived", forgets_single_actions),
    "seam_of_the_first": (PlanTally, "arrived", after(ARRIVED, _action=lambda self: (
        np.zeros(1) if self._action is None else self._action))),
    "seam_in_units": (PlanTally, "executed", after(EXECUTED, _span=lambda self: (
        None if self._span is None else np.ones_like(self._span)))),
    "no_op_is_no_action": (driver.NetworkEpisode, "_apply", lambda self, side, mask=None: (
        (side.plans and setattr(side.plans, "_span", None) if side.plan and side.due(self.now) is None else None),
        APPLY(self, side, mask))[1]),
}  # fmt: skip
APPLY = driver.NetworkEpisode._apply


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
                law(6) if law is look_at_conservation else law()
            except AssertionError:
                return
    pytest.fail(f"{name}: nobody noticed")


# What is shown and kept


def test_who_never_plans_has_no_tally(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*of: Any, **more: Any) -> None:
        raise AssertionError("nobody planned")

    for name in ("__init__", "sent", "refused", "arrived", "executed"):
        monkeypatch.setattr(PlanTally, name, refuse)
    assert run(lambda seen: np.ones(1), ScheduleConfig(act_delay=2.0, on_missing="noop")).plans == {}
    env = under_network(Integrator())  # nor who steps by hand
    env.reset(seed=0)
    env.step(level(1.0, 3))


def test_a_trace_says_that_a_command_is_a_plan() -> None:
    result = run(Planned(lambda seen: np.zeros((8, 1)), replan=4, merge="blend"), trace=True)
    commands = [line for line in result.trace.table(["agent"]).splitlines() if "ActionCommand" in line]
    assert len(commands) == 5 and all("{set_plan: {actions: 8, period_s: 1, merge: blend" in line for line in commands)
    assert "'set_plan': {'actions': 8" in next(x for x in result.trace.lines(["agent"]) if "ActionCommand" in x)
    assert "plans of agent: 5 sent, 5 in force, 0 starved steps, 16 skipped actions" in result._repr_html_()
    assert "accounts of plans" in result.digests(()) and "accounts of plans" not in run(lambda s: [0.0]).digests(())


def test_a_recorded_episode_keeps_plans_and_what_became_of_them(tmp_path: Path) -> None:
    gymnasium.register("Integrator-v0", Integrator)
    try:
        policies = {"*": Planned(lambda seen: np.zeros((70, 1)), replan=4, end="noop")}
        episode = record_episode("gymnasium:Integrator-v0", policies, schedule=ScheduleConfig(thinking=2.0), t_end=20.0)
        read = file.read(file.write(episode, tmp_path))
        plan = next(m for m in read.messages if m.kind == "ActionCommand").content["action"]
        assert (plan["actions"], plan["period_s"], plan["merge"], plan["end"]) == (70, 1.0, "drop", "noop")
        assert read.outcome.plans == episode.outcome.plans and read.outcome.plans["agent"].sent == 5
        trust = "gymnasium:Integrator-v0"
        assert replay(file.write(episode, tmp_path), policies=policies, trust=trust).identical
        plans = {"agent": replace(episode.outcome.plans["agent"], starved=1)}
        other = replay(replace(read, outcome=replace(read.outcome, plans=plans)), policies=policies, trust=trust)
        assert str(other.difference) == "at 20.0 s, agent, plans: starved: recorded 1, now 0"
        empty = record_episode(trust, {"*": Planned(lambda seen: np.zeros((3, 1)))}, t_end=0.0)
        assert empty.outcome.plans == {} and '"plans"' not in file.as_text(empty)
        unknown = replace(episode.outcome.plans["agent"], seam=nan)
        text = file.as_text(replace(episode, outcome=replace(episode.outcome, plans={"agent": unknown})))
        (tmp_path / "nan.json").write_text(text)
        assert isnan(file.read(tmp_path / "nan.json").outcome.plans["agent"].seam)
    finally:
        del gymnasium.registry["Integrator-v0"]
