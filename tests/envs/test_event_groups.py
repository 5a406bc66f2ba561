"""Same-time groups: what many agents do at one instant is done as arrays, and nobody can tell."""

import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws.checks import RECORD, assert_same_course, check_parity
from laws.examples import ENDING, FIELD, NESTED, SEEN, ZONE
from strategies import Recipe, delays, recipes, ticks

from heron_env import FieldAgent, HeronEnv, ScheduleConfig, SystemAgent, Vector, make, quantity, rule
from heron_env.core.action import Continuous
from heron_env.core.feature import FeatureProvider
from heron_env.core.rule import Parent
from heron_env.envs.event import groups as event_groups
from heron_env.envs.event.context import EventContext
from heron_env.envs.event.crews import CrewLoop
from heron_env.envs.event.groups import Crew, CycleCrews, Group
from heron_env.envs.results import EpisodeResult
from heron_env.errors import InvalidAction
from heron_env.scheduling.events import ActionEffect, AgentTick
from heron_env.scheduling.messages import StateReport
from heron_env.scheduling.scheduler import EventScheduler

STEADY = ScheduleConfig(msg_delay=0.1, obs_delay=0.2, act_delay=0.3)
NEVER = 10**9


@contextmanager
def groups_from(size: int) -> Iterator[None]:
    """Groups of so many agents on are handled together."""
    with patch.object(event_groups, "WORTH", size):
        yield


def run(recipe: Recipe, schedule: Any, size: int, *, seed: int = 0, wait: float | None = None) -> Any:
    """A run with groups of `size` agents on, and everything that can be asked of it, on the way and at the end."""
    env = recipe.build(schedule)
    with groups_from(size):
        run = env.start_event_driven(recipe.policies(env), seed=seed, wait=wait, record=RECORD)
        told = []
        for t in (0.0, 0.35, 1.0, 1.7, None):
            run.until(None if t is None else t * recipe.dt)
            told.append(repr(run.state()))
            told.append(sorted(f"{type(e).__name__} {e[:2]}" for e in run.context.scheduler))
            told += [run.context.broker.counts(rank) for rank in range(len(env.hierarchy))]
            told += [env.proxy.version.tolist(), env.proxy.as_of.tolist(), run.context.scheduler.taken]
    return run.result(), told


def check_groups(recipe: Recipe, schedule: Any, *, seed: int = 0, wait: float | None = None) -> EpisodeResult:
    """Grouped or not: the same course, state, knowledge, accounts, events to come and events handled."""
    (single, before), (grouped, after) = (run(recipe, schedule, n, seed=seed, wait=wait) for n in (NEVER, 2))
    assert_same_course(single, grouped)
    for one, other in zip(before, after, strict=True):
        assert one == other
    for name in ("messages", "cancelled_effects", "end_time", "notes", "kpis"):
        assert getattr(single, name) == getattr(grouped, name), f"{name} differ"
    assert repr((single.staleness, single.latency)) == repr((grouped.staleness, grouped.latency))
    return grouped


@st.composite
def networks(draw: st.DrawFn, recipe: Recipe) -> Any:
    """Schedules under which some agents keep step and others don't: equal delays, jitter, duplicates, other ticks."""
    tenths = st.integers(0, 12).map(lambda n: n * recipe.dt / 10)
    steady = st.builds(
        ScheduleConfig,
        tick_interval=st.sampled_from([None, None, 0.5 * recipe.dt, 2.0 * recipe.dt]),
        phase=st.sampled_from([0.0, 0.0, recipe.dt]),
        obs_delay=st.one_of(st.just(0.0), tenths),
        act_delay=st.one_of(st.just(0.0), tenths),
        msg_delay=st.one_of(st.just(0.0), tenths),
    )
    keys = st.sampled_from([*recipe.ids, "field", "coordinator"])
    others = draw(st.dictionaries(keys, st.one_of(steady, delays(recipe.dt)), max_size=3))
    return {"*": draw(steady), **others}


@given(st.data())
def test_groups_change_nothing(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    wait = data.draw(st.sampled_from([None, None, recipe.dt / 100]))
    check_groups(recipe, data.draw(networks(recipe)), seed=data.draw(st.integers(0, 3)), wait=wait)


WORLDS = pytest.mark.parametrize(
    "recipe", [FIELD, ZONE, NESTED, ENDING, SEEN], ids=["field", "zone", "nested", "ending", "seen"]
)


@WORLDS
@pytest.mark.parametrize("schedule", [None, STEADY, {"*": STEADY, "zone_1": ScheduleConfig(tick_interval=2.0)}])
def test_groups_change_nothing_in_any_kind_of_world(recipe: Recipe, schedule: Any) -> None:
    assert check_groups(replace(recipe, max_steps=8), schedule).messages.balanced()


@given(st.data())
def test_two_clocks_one_course_in_groups(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    with groups_from(2):
        check_parity(recipe, data.draw(ticks(recipe)))


@WORLDS
def test_a_run_with_groups_under_way_pickles(recipe: Recipe) -> None:
    env = recipe.build(STEADY)
    with groups_from(2):
        a = env.run_event_driven(recipe.policies(env), seed=1, record=RECORD)
        for t in (0.05, 0.15, 0.35, 0.45, 1.05, 1.25):
            other = recipe.build(STEADY)
            run = other.start_event_driven(recipe.policies(other), seed=1, record=RECORD)
            run.until(t)
            run = pickle.loads(pickle.dumps(run))
            run.attach(recipe.policies(run.env))
            run.until(None)
            assert_same_course(a, run.result())
            assert a.messages == run.result().messages
            assert repr((a.staleness, a.latency)) == repr((run.result().staleness, run.result().latency))


def grid(n: int = 40, **options: Any) -> HeronEnv:
    return make("heron/BatteryGrid-v0", **{"num_batteries": n, "zone_size": 10, "max_steps": 6, "dt": 1.0, **options})


class Counting:
    """A policy that can decide for several, and counts how often it is asked."""

    def __init__(self) -> None:
        self.single = self.together = 0

    def forward(self, vector: Any) -> Any:
        self.single += 1
        return np.sin(vector[:1] * 9)

    def forward_batch(self, vectors: Any) -> Any:
        self.together += 1
        return np.sin(vectors[:, :1] * 9)


@pytest.mark.parametrize("scope", ["public", "parent", "owner"])
def test_a_policy_that_can_is_asked_once_for_all(scope: str) -> None:
    policy, alone = Counting(), Counting()
    result = grid(scope=scope).run_event_driven({"*": policy}, seed=0, schedule=STEADY, record=RECORD)
    assert (policy.single, policy.together) == (0, 6)
    with groups_from(NEVER):
        single = grid(scope=scope).run_event_driven({"*": alone}, seed=0, schedule=STEADY, record=RECORD)
    assert (alone.single, alone.together) == (240, 0)
    assert_same_course(single, result)
    assert single.messages == result.messages


def test_few_are_asked_one_by_one_and_so_are_all_in_a_traced_run() -> None:
    for n, trace in ((event_groups.WORTH - 1, False), (40, True)):
        policy = Counting()
        grid(n).run_event_driven({"*": policy}, seed=0, trace=trace)
        assert (policy.single, policy.together) == (6 * n, 0)


def test_a_trace_changes_nothing() -> None:
    plain, traced = (
        grid().run_event_driven({"*": Counting()}, seed=0, schedule=STEADY, trace=t) for t in (False, True)
    )
    assert_same_course(plain, traced)
    assert plain.messages == traced.messages


JITTERY = ScheduleConfig(
    msg_delay=0.05, obs_delay=0.02, act_delay=0.15, jitter_type="uniform", jitter_ratio=0.3, loss=0.05, duplicate=0.05
)


@pytest.mark.parametrize("schedule", [None, STEADY, JITTERY, {"*": JITTERY, "zone_1": STEADY}])
def test_a_trace_of_groups_is_the_trace_of_their_events(schedule: Any) -> None:
    """Records, causes, ids and payloads, where groups hold and (messages that take no time) where there are none."""
    texts, rows = [], []
    for size in (NEVER, 2):
        with groups_from(size):
            env = grid(12)
            run = env.start_event_driven({"*": Counting()}, seed=3, schedule=schedule, trace=True)
            for t in (0.37, 1.21, None):  # in the middle of a cycle, too
                run.until(t)
            trace = run.result().trace
        texts.append(trace.lines(env.hierarchy.ids))
        rows.append(len({id(row[0]) for row in trace.rows if len(row) == 2}))
    assert texts[0] == texts[1]
    assert rows[0] == 0
    assert (rows[1] > 0) == (schedule in (STEADY, JITTERY))


def test_a_traced_group_comes_apart_where_another_event_falls_in_between() -> None:
    scheduler = EventScheduler()
    crew = Crew.of([1, 3, 5])
    scheduler.schedule_group(7, 1, Group(AgentTick, crew, 0))
    for rank, apart in ((6, False), (4, True)):
        scheduler.schedule(7, 1, rank, AgentTick(rank, 9))
        entry = heappop(scheduler.heap)
        assert scheduler.undo(entry) == apart
        if not apart:
            heappush(scheduler.heap, entry)
    popped = [scheduler.pop() for _ in range(5)]
    assert [(rank, event.number) for _, _, rank, event in popped] == [(1, 0), (3, 0), (4, 9), (5, 0), (6, 9)]


def test_two_policies_are_asked_apart() -> None:
    one, other = Counting(), Counting()
    env = grid()
    policies = {"*": one, "battery_3": other}
    grouped = env.run_event_driven(policies, seed=0)
    assert one.together == other.together == 0
    with groups_from(NEVER):
        assert_same_course(grid().run_event_driven(policies, seed=0), grouped)


class Careless(Counting):
    def forward_batch(self, vectors: Any) -> Any:
        vectors *= 0.0
        return super().forward_batch(vectors)

    def forward(self, vector: Any) -> Any:
        vector *= 0.0
        return super().forward(vector)


def test_a_policy_that_works_in_place_changes_no_record() -> None:
    grouped = grid().run_event_driven({"*": Careless()}, seed=0, record=RECORD)
    with groups_from(NEVER):
        single = grid().run_event_driven({"*": Careless()}, seed=0, record=RECORD)
    assert any(vector.any() for _, vector in grouped.observations["battery_1"])
    assert_same_course(single, grouped)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda v: v[:3, :1],
            "forward_batch() of Odd returned shape (3, 1) for 40 observations; one row each is needed",
        ),
        (lambda v: v[:, :2], "action of 'battery_1' has 2 elements, expected 1: [-1.0, 1.0]; reshape it"),
        (
            lambda v: v[:, :1] + 9,
            "action of 'battery_1': [9.5] lies outside [-1.0, 1.0]; clip it, or rescale your policy",
        ),
    ],
    ids=["rows", "columns", "bounds"],
)
def test_a_wrong_answer_for_many_names_who_it_is_for(answer: Any, message: str) -> None:
    class Odd:
        def forward(self, vector: Any) -> Any:
            return vector[:1]

        def forward_batch(self, vectors: Any) -> Any:
            return answer(vectors)

    with pytest.raises(InvalidAction, match=f"^{re.escape(message)}$"):
        grid().run_event_driven({"*": Odd()}, seed=0)


def test_a_group_counts_as_many_events_as_it_has_agents() -> None:
    taken = []
    for size in (2, NEVER):
        with groups_from(size):
            run = grid().start_event_driven({"*": Counting()}, seed=0)
            run.until(3.0)
            taken.append((run.context.scheduler.taken, len(run.context.scheduler), len(list(run.context.scheduler))))
    trace = grid().run_event_driven({"*": Counting()}, seed=0, t_end=3.5, trace=True).trace
    assert taken[0] == taken[1]
    assert taken[0][0] == len(trace or [])


# Faults that the law must notice


class Power(FeatureProvider):
    visibility = ("public",)
    value: float = quantity(default=0.0)


class Follower(FieldAgent):
    """Takes twice what its parent has just set."""

    features = (Power,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Power.value)
    def apply_action(power: Power, parent: Parent[Power], action: Vector) -> float:
        return 2.0 * parent.value + action[0]


class Leader(SystemAgent):
    features = (Power,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Power.value)
    def apply_action(power: Power, action: Vector) -> float:
        return power.value + action[0]


def led() -> tuple[Any, Any]:
    """Rewards aside: the truth after a run in which a leader and two crews act at the same instants."""
    found = []
    for size in (NEVER, 2):
        env = HeronEnv(Leader("s", *(Follower(f"f{i}") for i in range(6))), max_steps=5)
        with groups_from(size):
            fast, slow = ScheduleConfig(), ScheduleConfig(tick_interval=2.0)
            schedule = {"*": fast, "f1": slow, "f4": slow, "s": ScheduleConfig(on_missing="noop")}
            env.run_event_driven({"*": lambda v: np.sin(1 + v[:1])}, seed=0, schedule=schedule)
        found.append(env.simulation.truth.tolist())
    return found[0], found[1]


def test_effects_of_one_instant_fall_by_rank_over_all_groups() -> None:
    single, grouped = led()
    assert single == grouped


def _late_reports_win(self: Any, group: Group, now: int) -> None:
    facts = group.body
    self.context.proxy.cache[facts.part.columns] = facts.values


def _everyone_lives(self: EventContext, crew: Crew) -> Crew:
    return crew


def _reports_all_look_new(original: Any) -> Any:
    def report(self: CycleCrews, step: int, cycle: Any, now: int) -> None:
        kept, cycle.version = cycle.version, cycle.version + 3
        original(self, step, cycle, now)
        cycle.version = kept

    return report


def _half_effects(original: Any) -> Any:
    def act(self: CrewLoop, group: Group, now: int) -> None:
        original(self, replace(group, body=[values / 2 for values in group.body]), now)

    return act


FAULTS: list[tuple[Any, str, Any, Recipe, Any]] = [
    (CrewLoop, "receive", _late_reports_win, FIELD, STEADY),
    (EventContext, "living", _everyone_lives, ENDING, STEADY),
    (CycleCrews, "report", _reports_all_look_new(CycleCrews.report), FIELD, replace(STEADY, act_delay=0.7)),
    (CrewLoop, "act", _half_effects(CrewLoop.act), FIELD, None),
]


@pytest.mark.parametrize(("owner", "name", "fault", "recipe", "schedule"), FAULTS, ids=[f[1] for f in FAULTS])
def test_a_planted_fault_breaks_the_law(owner: Any, name: str, fault: Any, recipe: Recipe, schedule: Any) -> None:
    check_groups(recipe, schedule)
    with patch.object(owner, name, fault), pytest.raises(AssertionError):
        check_groups(recipe, schedule)


def test_groups_were_made_where_the_law_looks() -> None:
    env = FIELD.build(STEADY)
    with groups_from(2):
        run = env.start_event_driven(FIELD.policies(env), seed=0)
        kinds = set()
        for t in np.arange(0.0, 2.0, 0.05):
            run.until(float(t))
            kinds |= {entry[4].kind for entry in run.context.scheduler.heap if isinstance(entry[4], Group)}
    assert {ActionEffect, StateReport} < kinds
    assert len(kinds) >= 8
