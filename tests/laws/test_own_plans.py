"""Laws P1 and P10 to P12 in environments of ours: plans in both clocks and under `under_network`, among commanders,
crashed, stored and taken up again; and faults that break them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws.checks import RECORD, assert_same_course, check_parity, check_resume
from laws.examples import ENDING, FIELD, NESTED, ZONE
from laws.planning import Planning, planners, planning
from plan_worlds import line, rolled_out_from
from strategies import Node, Recipe, delays, recipes, schedules, seeing, ticks

from heron_env import (
    Answer,
    Asked,
    ConditionMonitor,
    Disturbance,
    Plan,
    Planned,
    ScheduleConfig,
    under_network,
)
from heron_env.core import plans
from heron_env.core.plans import MERGES, PlanInForce
from heron_env.envs import planning as own
from heron_env.envs.event import agents, plan_loop, thinking
from heron_env.errors import HeronError, InvalidAction

LATE = ScheduleConfig(act_delay=0.7, msg_delay=0.4, obs_delay=0.3, jitter_type="uniform", jitter_ratio=1.0, loss=0.2)
UNEQUAL = {"*": ScheduleConfig(tick_interval=2.0), "field": ScheduleConfig(tick_interval=3.0, phase=1.0)}
TALK = Recipe(Node("system", children=(Node("talker"), Node("chooser"), Node("unit"))), max_steps=12, compile=False)
BELOW = Recipe(
    Node("system", children=(
        Node("team", protocol="broadcast", children=(
            Node("zone", at=2, protocol="split", children=(Node("hand"), Node("unit"))), Node("unit"),
        )),
        Node("hand"),
    ))
)  # fmt: skip
"""A commander that is commanded itself, and ends."""
CRASHES = [
    Disturbance(2.0, "agent_crash", {"agent": who, "meanwhile": how}, duration=3.5)
    for who, how in (("zone_1", "noop"), ("unit_4", "hold"), ("zone_6", "hold"), ("unit_7", "noop"))
]


def short(recipe: Recipe, **rules: Any) -> Planning:
    return planning(replace(recipe, max_steps=10, compile=False), **rules)


# P1


def check_plan_of_one(recipe: Recipe, schedule: Any, seed: int = 0) -> None:
    """Each action as a plan of one gives the same course, messages and latencies, on any network."""
    runs = []
    for world in (recipe, planning(recipe, form="one")):
        env = world.build(schedule)
        runs.append(env.run_event_driven(world.policies(env), seed=seed, record=RECORD))
    assert_same_course(*runs)
    for name in ("messages", "cancelled_effects", "unfinished_effects"):
        assert getattr(runs[0], name) == getattr(runs[1], name), f"{name} differ"
    assert repr([runs[0].latency, runs[0].staleness]) == repr([runs[1].latency, runs[1].staleness])


@given(st.data())
def test_a_plan_of_one_is_its_action(data: st.DataObject) -> None:
    recipe = data.draw(recipes().flatmap(seeing))
    check_plan_of_one(recipe, data.draw(st.one_of(delays(recipe.dt), schedules(recipe.ids, dt=recipe.dt))))


def look_at_plans_of_one() -> None:
    for seed, recipe in enumerate((FIELD, NESTED, ENDING, TALK)):
        late = replace(LATE, on_missing=("hold", "noop")[seed % 2], tick_jitter_ratio=0.3 * seed)
        check_plan_of_one(replace(recipe, max_steps=10, compile=False), late, seed)


# P11


@given(st.data())
def test_two_clocks_play_plans_alike(data: st.DataObject) -> None:
    """Of plans whose actions begin with steps, which is all that the synchronous clock knows; it misses no command."""
    recipe = data.draw(recipes().flatmap(seeing).flatmap(lambda recipe: planners(recipe, whole_steps=True)))
    schedule = data.draw(ticks(recipe)) or {}
    check_parity(recipe, {name: replace(config, on_missing="hold") for name, config in schedule.items()})


def look_at_both_clocks() -> None:
    each = iter((ZONE, NESTED, ENDING, BELOW, TALK) * 3)
    for end, tick in (("hold", None), ("noop", UNEQUAL), ("hold", UNEQUAL)):
        for merge in MERGES:
            check_parity(short(next(each), merge=merge, end=end, k=4, replan=3), tick)


def look_at_counts() -> None:
    for recipe, merge in ((ZONE, "drop"), (BELOW, "blend"), (ENDING, "append"), (TALK, "restart")):
        world = short(recipe, merge=merge, end="noop", k=2, replan=4)
        env = world.build(UNEQUAL)
        sync, event = (run(world.policies(env), seed=0) for run in (env.run_synchronous, env.run_event_driven))
        assert repr(sync.plans) == repr(event.plans) and sync.plans
        starved = [count.starved for count in sync.plans.values() if count.sent == count.in_force]
        assert len(starved) == len(sync.plans) and (any(starved) or recipe is ENDING), sync.plans


def look_at_early_plans() -> None:
    """What begins later leaves what is in force, a single action, too."""
    for recipe in (ZONE, TALK):
        check_parity(short(recipe, start=2.0, k=2, replan=3, period=2.0))

    class Later:
        def answer(self, asked: Asked) -> Answer:
            return Answer([1.0] if not asked.number else Plan([[2.0]], start=0.3) if asked.number == 1 else None)

    actions = line().run_event_driven({"cart": Later()}, seed=0).actions["cart"]
    assert [float(value[0]) for _, value in actions] == [1.0, 1.0, 2.0] and actions[-1][0] == 0.4


def check_black_box(merge: Any, replan: Any, end: Any, thinking: float, act_delay: float) -> None:
    """The own clock and `under_network` give one course; what is running goes into the plans."""
    config = ScheduleConfig(thinking=thinking, act_delay=act_delay)
    policy = partial(Planned, rolled_out_from(8), replan=replan, merge=merge, end=end)
    mine = line().run_event_driven({"cart": policy()}, seed=0, schedule=config)
    box = under_network(line(), {"cart": config}, dt=0.1).run_event_driven({"cart": policy()}, seed=0)
    assert mine.rewards["cart"] == box.rewards["cart"], (merge, replan, end, thinking, act_delay)
    counts = (replace(result.plans["cart"], sent=0) for result in (mine, box))  # in one, a thought is not sent yet
    if thinking != 0.55:  # a plan that arrives within a step
        assert repr(next(counts)) == repr(next(counts)), (merge, replan, end, thinking, act_delay)


WAYS = [(way, act) for way in (0.0, 0.1, 0.2, 0.3, 0.55, 0.8) for act in (0.0, 0.2)]
RULES = [(merge, replan, end) for merge in MERGES for replan in (1, 3, "end") for end in ("hold", "noop")]


@pytest.mark.e2e
@pytest.mark.parametrize("rules", RULES, ids=str)
def test_the_own_clock_is_the_black_box(rules: Any) -> None:
    for way in WAYS:
        check_black_box(*rules, *way)


def look_at_a_black_box() -> None:
    for number, rules in enumerate(RULES):
        check_black_box(*rules, *WAYS[number * 5 % len(WAYS)])


def look_at_what_is_running() -> None:
    """With constant delays that is carried out which was foretold (P7)."""
    questions = list[Asked]()

    class Planner(Planned):
        def answer(self, asked: Asked) -> Answer:
            questions.append(asked)
            return super().answer(asked)

    late = ScheduleConfig(obs_delay=0.2, act_delay=0.1, thinking=0.1)
    result = line().run_event_driven({"cart": Planner(rolled_out_from(6), replan=2)}, seed=0, schedule=late)
    acts = [(round(time, 6), value) for time, value in result.actions["cart"]]
    for asked in questions:
        assert asked.running.age == 2 and asked.running.prefix == 4
        for j, row in enumerate(asked.running.remaining[: min(4, 30 - asked.turn)]):
            before = [value for time, value in acts if time <= round(asked.time + 0.1 * j, 6)]
            assert np.array_equal(row, before[-1] if before else [0.0]), (asked.time, j)


# P10, P12


def look_at_commands() -> None:
    """A plan of a commander is one command for each child, which goes on where the commander ends (P10)."""
    zone = Node("zone", protocol="vector", at=3, children=(Node("unit"),) * 2)
    recipe = Recipe(Node("system", children=(zone, Node("hand"))))
    counts = {}
    for k in (1, 9):
        world = short(recipe, k=k, replan=k)
        env = world.build()
        result = env.run_event_driven(world.policies(env), seed=0, trace=True)
        kinds = [record.kind for record in result.trace or ()]
        counts[k] = kinds.count("Command"), [len(result.actions[name]) for name in env.hierarchy.ids[2:4]]
    assert counts == {1: (6, [3, 3]), 9: (2, [9, 9])}, counts


def look_at_masks() -> None:
    """Each action is checked when it falls due; the no-op stands for one that is forbidden, and is counted (P8)."""
    talkers = tuple(Node("talker", value=value) for value in (0.8, 0.2, -0.6, 1.5))
    world = short(replace(TALK, root=Node("system", children=talkers)), k=5, replan=5)
    env = world.build()
    sync, event = (run(world.policies(env), seed=0) for run in (env.run_synchronous, env.run_event_driven))
    assert sync.masked == event.masked and 3 < sum(sync.masked.values()) < 30, sync.masked
    old, new = np.array([0.0, 1.0, 0.0]), np.array([0.4, 2.0, 1.0])
    spec = env.simulation.model.specs[1]
    assert own.mixing(spec)(old, new, 0.5).tolist() == [0.2, 2.0, 1.0]
    assert own.mixing(spec)(old, new, 0.25).tolist() == [0.1, 1.0, 0.0]


def look_at_missing_commands() -> None:
    """With on_missing="noop" a plan stands for the ticks up to its last action's, and no longer (P9)."""

    class Once:
        def answer(self, asked: Asked) -> Answer:
            return Answer(Plan([[1.0], [2.0], [3.0]]) if asked.number == 0 else None)

    def applied(env: Any, schedule: Any) -> list[float]:
        result = env.run_event_driven({"cart": Once()}, seed=0, schedule=schedule)
        return [float(value[0]) for _, value in result.actions["cart"]][:6]

    missing = ScheduleConfig(on_missing="noop")
    assert applied(line(), None) == [1.0, 2.0, 3.0]
    assert applied(line(), missing) == [1.0, 2.0, 3.0, 0.0, 0.0, 0.0]


def look_at_reports() -> None:
    """The reports of a plan's actions have draws of their own (T8)."""
    lossy, lost = ScheduleConfig(loss=0.5), list[int]()
    for seed in range(6):
        policy = Planned(rolled_out_from(20), replan=20)
        result = line().run_event_driven({"cart": policy}, seed=seed, schedule=lossy, trace=True)
        reports = [record for record in result.trace or () if record.kind == "StateReport" and record.payload.effect]
        lost.append(len(reports))
    assert all(2 < count < 18 for count in lost), lost


def look_at_crashes() -> None:
    for merge in ("drop", "append"):
        for tick in (None, UNEQUAL):
            for storm in ([*CRASHES[:3]], [CRASHES[3]]):
                check_crashes(short(NESTED, merge=merge, k=4, replan=2), storm, tick)


def look_at_pushes() -> None:
    """A plan on an observation that was pushed begins when it was pushed (P12)."""
    monitor = ConditionMonitor(agent="cart", watch="cart.Mass.x", below=0.9)
    slow = ScheduleConfig(tick_interval=10.0, act_delay=0.15)
    plan = Plan([[-1.0], [-2.0], [-3.0]])
    result = line().run_event_driven({"cart": lambda seen: plan}, seed=0, schedule=slow, monitors=[monitor])
    times = [(round(time, 6), float(value[0])) for time, value in result.actions["cart"]]
    pushed = next(time for time, _ in times if time > 0.4) - 0.15
    assert times[:2] == [(0.15, -2.0), (0.2, -3.0)]
    assert times[2:] == [(round(pushed + 0.15, 6), -2.0), (round(pushed + 0.2, 6), -3.0)], times


def check_crashes(recipe: Planning, storm: Any, schedule: Any = None) -> None:
    """P12: in both clocks who is down keeps its plan, or not, as it keeps its set-point."""
    env = recipe.build(schedule)
    options: dict[str, Any] = {"seed": 0, "record": ("rewards", "actions"), "disturbances": storm}
    sync = env.run_synchronous(recipe.policies(env), **options)
    assert sync.rewards == env.run_event_driven(recipe.policies(env), **options).rewards


# Stored


@given(st.data())
def test_a_run_stored_in_mid_plan_goes_on(data: st.DataObject) -> None:
    recipe = data.draw(recipes().flatmap(seeing).flatmap(planners))
    schedule = replace(data.draw(delays(recipe.dt)), thinking=data.draw(st.sampled_from([0.0, 0.6, 1.5])) * recipe.dt)
    check_resume(recipe, schedule, data.draw(st.integers(0, 10 * recipe.max_steps)) * recipe.dt / 10)


def look_at_stored_runs() -> None:
    for recipe, t in ((NESTED, 3.3), (ENDING, 2.0), (TALK, 5.2)):
        for form in ("rows", "function"):
            check_resume(short(recipe, form=form, k=4, replan=3), replace(LATE, thinking=0.6), t)


def look_at_forgotten_returns() -> None:
    """A function that returns nothing, and has not planned, is refused in both clocks."""
    for policy in (lambda seen: None, lambda seen, running: None):
        for run in (line().run_synchronous, line().run_event_driven):
            with pytest.raises(InvalidAction):
                run({"cart": policy}, seed=0)


LAWS = [value for name, value in globals().items() if name.startswith("look_at_")]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__.removeprefix("look_at_"))
def test_law(law: Callable[[], None]) -> None:
    law()


# Faults


def first_row(simulation: Any, rank: int, values: Any) -> Any:
    parts = SHARES(simulation, rank, values)
    return {child: p._replace(rows=p.rows[:1]) if hasattr(p, "rows") else p for child, p in parts.items()}


def stays(self: Any, event: Any, now: int) -> Any:
    force = self.force.get(event.agent)
    values = TAKE_UP(self, event, now)
    if event.agent not in self.force:
        self.force[event.agent] = force
    return values


def of_now(self: Any, rank: int, known: int) -> Any:
    return RUNNING(self, rank, self.context.scheduler.now)


def forgets(self: Any, rank: int, known: int) -> Any:
    self.under_way.pop(rank, None)
    return RUNNING(self, rank, known)


def at_the_dead(self: Any, rank: int, number: int, plan: Any, now: int) -> None:
    simulation = self._env.simulation
    old, mix = self.force.get(rank), own.mixing(simulation.model.specs[rank])
    before = old[1] if old else plans.held(np.array(simulation.lane.actions()[rank]), now, plan.period)
    if (taken := plans.merged(plan, before, now, mix)) is not None:
        self.force[rank], self.due[rank] = (number, taken), now
    for child, part in own.shares(simulation, rank, plan).items():
        if child not in self._deciders:
            self._arrive(child, number, part, now)


def plays_on(self: Any, event: Any, now: int) -> None:
    if self.context.simulation.alive[event.agent] and self.plans.is_due(event.agent, now):
        self._carry_out(event.agent, event.number, self.plans.action(event.agent, now), now)


def without_plans(self: Any) -> Any:
    return STORED(self) | {"plans": plan_loop.PlanLoop(self.context, self.clock)}


SHARES, TAKE_UP, RUNNING = own.shares, plan_loop.PlanLoop.take_up, plan_loop.PlanLoop.running
PLAY, STORED, ACCEPT = own.PlayedPlans._play, agents.AgentLoop.__getstate__, thinking.AnswerLoop.accept
FAULTS: dict[str, tuple[Any, str, Any]] = {
    "children_get_one_row": (agents, "shares", first_row),
    "a_single_action_leaves_the_plan": (plan_loop.PlanLoop, "take_up", stays),
    "old_steps_go_on": (plan_loop.PlanLoop, "is_due", lambda self, rank, now: rank in self.due),
    "an_effect_of_now_is_not_waited_for": (plan_loop.PlanLoop, "is_due", lambda self, rank, now: (
        self.due.get(rank) == now)),
    "status_of_now": (plan_loop.PlanLoop, "running", of_now),
    "forgets_what_is_under_way": (plan_loop.PlanLoop, "running", forgets),
    "reports_draw_alike": (plan_loop.PlanLoop, "cause", lambda self, *of: "effect"),
    "plans_stand_for_no_tick": (plan_loop.PlanLoop, "decide", lambda self, rank, number, values, due: (
        self.under_way.setdefault(rank, []).append((number, due, values)) if hasattr(values, "rows") else None)),
    "choices_mixed": (own, "mixing", lambda spec: lambda old, new, w: (1.0 - w) * old + w * new),
    "nothing_holds_before": (own, "held", lambda *of: None),
    "held_in_the_own_clock_alone": (own.PlayedPlans, "_play", lambda self, now: {
        rank: (action, own.Source.EXPLICIT) for rank, (action, _) in PLAY(self, now).items()}),
    "the_dead_command": (own.PlayedPlans, "_arrive", at_the_dead),
    "who_is_down_plays_on": (agents.AgentLoop, "play_on", plays_on),
    "a_stored_run_forgets": (agents.AgentLoop, "__getstate__", without_plans),
    "plans_begin_with_the_run": (thinking, "read", lambda simulation, rank, action, observed: (
        own.read(simulation, rank, action, 0))),
    "a_push_counts_from_its_tick": (agents, "read", lambda simulation, rank, action, observed: (
        own.read(simulation, rank, action, observed // 10**9 * 10**9))),
    "restart_within_a_step": (own, "merged", lambda new, old, now, mix: plans.merged(
        new, old, now + 10**7 if new.merge == "restart" else now, mix)),
    "changes_are_missed": (PlanInForce, "changes_after", lambda self, now: None),
    "nothing_new_takes_time": (thinking.AnswerLoop, "accept", lambda self, answer, *of: (
        ACCEPT(self, answer if answer.action is not None else answer._replace(action=plans.NOTHING_NEW), *of))),
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
                law()
            except (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError, HeronError):
                return
    pytest.fail(f"{name}: nobody noticed")
