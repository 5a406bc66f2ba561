"""Laws of rows on the synchronous clock.

Plan: each lane's rows and ends are those that a plain loop over the single environment makes (random hierarchies, ticks
of several steps with phases, ends by rule and by limit, gamma); masks are what the rule allows; states and training
rewards are those of the instant; at zero delay the event clock gives the same rows.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_worlds import expected, lamps
from strategies import Recipe, Wave, recipes

from heron_env import BatchEnv, HeronEnv, Rows, ScheduleConfig, make
from heron_env.errors import InvalidAction, ScheduleError
from heron_env.lab.learning.rows import StepRows

GAMMA = 0.75
"""A power of two's multiple: products are exact however they are ordered."""


def plain(env: HeronEnv, seed: int, waves: dict[str, Wave], steps: int) -> dict[str, list[Any]]:
    """What each agent is asked and told, by a loop over one environment, in so many control steps."""
    told: dict[str, list[Any]] = defaultdict(list)
    brought: dict[str, list[float]] = {}
    numbers: dict[str, int] = defaultdict(int)
    seen, infos = env.reset(seed=seed)
    step = 0
    for _ in range(steps):
        actions = {}
        for agent in env.agents:
            if infos[agent]["is_active"]:
                first = agent not in brought
                earned = sum(GAMMA**i * r for i, r in enumerate(brought.get(agent, ())))
                count = len(brought.get(agent, ()))
                told[agent].append(("row", numbers[agent], step * env.dt_ns / 1e9, first, earned, count, seen[agent]))
                brought[agent] = []
                numbers[agent] += 1
                actions[agent] = waves[agent](seen[agent])
        seen, rewards, terminated, truncated, infos = env.step(actions)
        step += 1
        for agent in list(brought):
            brought[agent].append(rewards[agent])
            if terminated[agent] or truncated[agent]:
                earned = sum(GAMMA**i * r for i, r in enumerate(brought.pop(agent)))
                told[agent].append(("end", terminated[agent], truncated[agent], earned, seen[agent]))
        if not env.agents:
            seen, infos = env.reset()
            brought.clear()
            numbers.clear()
            step = 0
    return told


def as_told(source: StepRows, rows: Rows, told: dict[tuple[int, str], list[Any]]) -> None:
    """Add rows, and ends before them, to what each lane's agents have been told."""
    ids = source.env.hierarchy.ids
    for group, part in rows.ended.parts.items():
        for i in range(part.start, part.stop):
            e, width = rows.ended, source.batch.observation_spaces[group].shape[0]
            end = ("end", bool(e.terminated[i]), bool(e.truncated[i]), e.reward[i], e.obs[i, :width])
            told[int(e.lane[i]), ids[e.rank[i]]].append(end)
            assert e.took[i] and not e.obs[i, width:].any()
    for group, part in rows.parts.items():
        for i in range(part.start, part.stop):
            width = source.batch.observation_spaces[group].shape[0]
            row = ("row", int(rows.number[i]), rows.time[i], bool(rows.first[i]), rows.reward[i], int(rows.steps[i]))
            told[int(rows.lane[i]), ids[rows.rank[i]]].append((*row, rows.obs[i, :width]))
            assert ids[rows.rank[i]] in source.groups[group] and rows.took[i] != rows.first[i]
            assert not rows.obs[i, width:].any()


def in_order(env: HeronEnv, rows: Any) -> bool:
    """By group, lane and rank, each agent once."""
    group = np.concatenate([np.full(p.stop - p.start, k) for k, p in enumerate(rows.parts.values())])
    keys = list(zip(group.tolist(), rows.lane.tolist(), rows.rank.tolist(), strict=True))
    return keys == sorted(set(keys)) and [p.stop for p in rows.parts.values()][-1] == len(rows)


def answered(source: StepRows, rows: Rows, waves: dict[str, Wave]) -> np.ndarray:
    """The waves' actions."""
    actions = np.full((len(rows), source.action_size), 9.0)  # what is behind an agent's own is ignored
    for group, part in rows.parts.items():
        width = source.batch.observation_spaces[group].shape[0]
        for i in range(part.start, part.stop):
            wave = waves[source.env.hierarchy.ids[rows.rank[i]]]
            actions[i, : wave.spec.size] = wave(rows.obs[i, :width])
    return actions


def ticking(env: HeronEnv, draw: Any, dt: float) -> dict[str, ScheduleConfig]:
    """Ticks and phases of some steps."""
    steps = st.sampled_from([(1, 0), (1, 0), (2, 0), (3, 1), (1, 2)])
    return {
        agent: ScheduleConfig(tick_interval=tick * dt, phase=phase * dt)
        for agent in env.hierarchy.ids
        for tick, phase in [draw(steps)]
    }


def check_rows(recipe: Recipe, schedule: Any, calls: int = 12, lanes: int = 2) -> None:
    source = StepRows(lambda: recipe.build(schedule), lanes, seed=3, gamma=GAMMA)
    specs, index = source.env.simulation.specs, source.env.hierarchy.index
    waves = {agent: Wave(agent, specs[index[agent]]) for agent in source.env.possible_agents}
    told: dict[tuple[int, str], list[Any]] = defaultdict(list)
    try:
        rows = source.reset()
        for _ in range(calls):
            as_told(source, rows, told)
            assert in_order(source.env, rows) and in_order(source.env, rows.ended)
            rows = source.answer(answered(source, rows, waves))
    except ScheduleError as error:
        assert "nobody decides anything" in str(error)
        return
    for lane in range(lanes):
        expected = plain(recipe.build(schedule), 3 + lane, waves, 40)
        for agent in source.env.possible_agents:
            mine = told[lane, agent]
            assert len(mine) <= len(expected[agent])
            for got, wanted in zip(mine, expected[agent], strict=False):
                assert got[:-1] == wanted[:-1]
                assert got[-1].tobytes() == wanted[-1].tobytes()


@given(recipes(), st.data())
@settings(max_examples=25)
def test_the_rows_of_a_lane_are_those_of_a_loop_over_its_environment(recipe: Recipe, data: st.DataObject):
    if not recipe.build().possible_agents:
        return
    check_rows(recipe, ticking(recipe.build(), data.draw, recipe.dt) if data.draw(st.booleans()) else None)


def test_masks_are_what_the_rule_allows_on_what_is_seen():
    source = StepRows(lambda: lamps("lamp", "pair", "dimmer"), 2, seed=1)
    rows, env, drawn, forbidden = source.reset(), source.env, np.random.default_rng(0), 0
    for _ in range(40):
        actions = np.zeros((len(rows), source.action_size))
        for group, part in rows.parts.items():
            width, spec = source.batch.observation_spaces[group].shape[0], source.batch._groups[group].spec
            for i in range(part.start, part.stop):
                wanted = expected(env, env.hierarchy.ids[rows.rank[i]], rows.obs[i, :width])
                assert rows.mask[i, : len(wanted)].tolist() == [bool(flag) for flag in wanted]
                assert rows.mask[i, len(wanted) :].all()
                forbidden += wanted.count(0)
                choices = np.split(rows.mask[i, : len(wanted)], np.cumsum(spec.ncats)[:-1])
                actions[i, spec.dim_c : spec.size] = [drawn.choice(np.flatnonzero(each)) for each in choices]
        rows = source.answer(actions)
    assert forbidden > 50


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


@pytest.mark.parametrize(
    "env_id", ["heron/BatteryGrid-v0", pytest.param("heron/TrafficCorridor-v0", marks=pytest.mark.e2e)]
)
def test_at_zero_delay_the_event_clock_gives_the_same_rows(env_id: str):
    options = {"max_steps": 5, "compile": True, "gamma": GAMMA, "with_state": True, "seed": 7}
    one, other = StepRows(env_id, 3, **options), BatchEnv(env_id, 3, clock="event", **options)
    rows, twins = one.reset(), other.begin()
    for step in range(12):
        for mine, its in ((rows, twins), (rows.ended, twins.ended)):
            for name in set(mine.__slots__) - {"ended"}:
                here, there = getattr(mine, name), getattr(its, name)
                if isinstance(here, np.ndarray):
                    assert (here.dtype, here.shape, here.tobytes()) == (there.dtype, there.shape, there.tobytes()), name
                else:
                    assert here == there, name
        actions = np.full((len(rows), 1), float(step % 2))
        rows, twins = one.answer(actions), other.answer(actions)


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
