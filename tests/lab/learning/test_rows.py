"""Laws of rows on the synchronous clock.

Plan: each lane's rows and ends are those of the event clock at zero delay (random hierarchies, ticks of several steps
with phases, ends by rule and by limit, masks, gamma); states and training rewards are those of the instant.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from laws.checks_event_batch import note, policies_of
from laws.examples import TALK
from laws.test_event_batch import worlds
from strategies import Node, Recipe

from heron_env import BatchEnv, Rows, ScheduleConfig, make
from heron_env.errors import InvalidAction, ScheduleError
from heron_env.lab.learning.rows import StepRows

GAMMA = 0.75
"""A power of two's multiple: products are exact however they are ordered."""
APART = replace(
    TALK,
    root=Node(
        "system",
        children=(
            Node("zone", protocol="vector", children=(Node("unit"), Node("talker"), Node("unit", named=True))),
            Node("zone", protocol="uneven", children=(Node("unit", value=1.0), Node("unit"))),
            Node("team", exchange="ring", children=(Node("talker"), Node("talker"), Node("talker", value=1.0))),
            Node("team", children=(Node("unit", above=0.6), Node("unit", own_policy=True))),
        ),
    ),
    mode="any",
    max_steps=9,
)
"""Lanes whose episodes end each at a time of its own: where the first of all is above a level."""


def course(batch: Any, rows: Rows, lanes: int, calls: int) -> list[list[dict[str, Any]]]:
    """Rows and ends of each lane in their order, and the ends apart; all who are asked answer by waves."""
    env, episodes = batch.env, np.zeros(lanes)
    policies, specs = policies_of(env), env.simulation.model.specs
    widths, size = {rank: env.simulation.model.plan.size(rank) for rank in policies}, max(spec.size for spec in specs)
    events: list[list[dict[str, Any]]] = [[] for _ in range(lanes)]
    for call in range(calls):
        note(events, rows.ended, widths, episodes, call)
        note(events, rows, widths, episodes, call)
        actions = np.full((len(rows), size), 9.0)  # what is behind an agent's own is ignored
        for n, rank in enumerate(rows.rank.tolist()):
            actions[n, : specs[rank].size] = policies[rank](rows.obs[n, : widths[rank]])
        rows = batch.answer(actions)
    return events


def by_agent(events: list[dict[str, Any]]) -> dict[int, list[dict[str, bytes | None]]]:
    """A lane's rows and ends without their calls: the event clock has none in which nobody is asked."""
    agents: dict[int, list[dict[str, bytes | None]]] = {}
    for event in events:
        bits = {name: None if value is None else np.asarray(value).tobytes() for name, value in event.items()}
        agents.setdefault(int(event["rank"]), []).append(bits | {"call": None})
    return agents


@settings(max_examples=12)
@given(worlds(), st.sampled_from([1, 1, 2, 3]), st.sampled_from([0, 0, 1, 2]))
@example(TALK, 1, 0)
@example(APART, 1, 0)
def test_rows_are_those_of_the_event_clock_at_zero_delay(recipe: Recipe, tick: int, phase: int):
    """Which laws/test_event_batch.py holds to the Python clock: masks, states, ends by rule and by limit, gamma."""
    schedule = ScheduleConfig(tick_interval=tick * recipe.dt, phase=phase * recipe.dt)
    options: dict[str, Any] = {"seed": 3, "gamma": GAMMA, "with_state": True}
    steps = StepRows(recipe.build(schedule), 2, **options)
    events = BatchEnv(recipe.build(), 2, clock="event", schedule=schedule, **options)
    try:
        course(steps, steps.reset(), 2, 2)  # and begun anew in the middle of an episode
        mine, theirs = course(steps, steps.reset(3), 2, 12), course(events, events.begin(), 2, 12)
    except ScheduleError as error:
        assert re.search("nobody decides anything|without a single (tick|observation)", str(error))
        return
    for one, other in zip(map(by_agent, mine), map(by_agent, theirs), strict=True):
        assert one and one.keys() <= other.keys()
        for rank, events_of in one.items():
            assert events_of == other[rank][: len(events_of)]


def test_states_and_training_rewards_are_those_of_the_instant():
    options = {"dt": 7200.0, "physics_substeps": 1}
    source = StepRows("heron/EnergyManagement-v1", 2, seed=4, with_state=True, **options)
    envs = [make("heron/EnergyManagement-v1", **options) for _ in range(2)]
    for lane, env in enumerate(envs):
        env.reset(seed=4 + lane)
    rows, ends = source.reset(), 0
    for step in range(30):
        for i, (lane, rank) in enumerate(zip(rows.lane, rows.rank, strict=True)):
            assert rows.state[i].tobytes() == envs[lane].state().tobytes()
            if not rows.first[i]:
                assert rows.training_reward[i] == envs[lane].training_signal()[envs[lane].hierarchy.ids[rank]]
        actions = np.sin(np.arange(len(rows)) + step)[:, None] * 0.5
        before, rows = rows, source.answer(actions)
        for lane, env in enumerate(envs):
            ids = env.hierarchy.ids
            env.step({ids[before.rank[i]]: actions[i] for i in np.flatnonzero(before.lane == lane)})
            for i in np.flatnonzero(rows.ended.lane == lane):
                assert rows.ended.state[i].tobytes() == env.state().tobytes()
                assert rows.ended.training_reward[i] == env.training_signal()[ids[rows.ended.rank[i]]]
                ends += 1
            if not env.agents:
                env.reset()
    assert ends == 24 and rows.training_reward is not None
    assert StepRows("heron/BatteryGrid-v0", 1, with_state=True).reset().training_reward is None
    assert source.reset().ended.state.shape == (0, len(envs[0].state_names))


def test_a_step_in_which_nobody_ticks_has_no_rows_and_what_it_brings_is_added_up():
    slow = ScheduleConfig(tick_interval=3.0, phase=1.0)
    source = StepRows("heron/BatteryGrid-v0", 2, schedule=slow, gamma=1.0, max_steps=6, compile=False)
    rows, course = source.reset(), []
    for _ in range(8):
        course.append((len(rows), sorted({*rows.time.tolist()}), [*rows.steps.tolist(), *rows.ended.steps.tolist()]))
        rows = source.answer(np.zeros((len(rows), 1)))
        if len(rows.ended):
            assert rows.ended.truncated.all() and rows.number.tolist() == [] and rows.ended.took.all()
    nothing = (0, [], [])
    began, later = (4, [1.0], [0] * 4), (4, [4.0], [3] * 4)
    assert course == [nothing, began, nothing, nothing, later, nothing, (0, [], [2] * 4), began]


def started() -> StepRows:
    source = StepRows("heron/BatteryGrid-v0", 1)
    source.reset()
    return source


def test_a_refused_action_is_named_and_changes_nothing():
    source, twin = started(), started()
    with pytest.raises(InvalidAction, match=r"action of 'battery_2': \[7.0\] lies outside"):
        source.answer(np.array([[0.0], [7.0]]))
    for rows, others in zip(going_on(source), going_on(twin), strict=True):
        assert rows.obs.tobytes() == others.obs.tobytes()


def going_on(source: StepRows) -> Iterator[Rows]:
    for _ in range(3):
        yield source.answer(np.array([[0.1], [0.2]]))


def test_a_batch_in_which_nobody_ever_ticks_is_refused():
    late = ScheduleConfig(phase=50.0)
    source = StepRows("heron/BatteryGrid-v0", 1, schedule=late, max_steps=3, compile=False)
    source.reset()
    with pytest.raises(ScheduleError, match="1000 episodes of environment 0 ended without a single tick"):
        for _ in range(3_001):
            source.answer(np.zeros((0, 1)))
