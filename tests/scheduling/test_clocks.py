"""T28: clocks that are wrong. They move ticks and the ages that are observed, and nothing that is true."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from laws.checks_clock import as_bytes, check_plain_clock
from laws.checks_event_batch import check_event_batch
from laws.uncompiled import Fault
from refusing import refuses
from strategies import Node, Recipe

from heron_env import BatchEnv, DrawnSchedule, ScheduleConfig, make, under_network
from heron_env.envs.event.context import EventContext
from heron_env.errors import ScheduleError
from heron_env.lab.sweep.conditions import Condition
from heron_env.scheduling.drawn import as_dict, drawn_or_fixed
from heron_env.testing import clock

WORLD = Recipe(
    Node(
        "system",
        children=(
            Node("zone", protocol="uneven", children=(Node("unit"), Node("unit", named=True))),
            Node("team", exchange="ring", children=(Node("talker"), Node("talker", value=0.5), Node("talker"))),
        ),
    ),
    substeps=2,
    max_steps=6,
    observe_age=True,
    report_interval=0.5,
    compile=True,
    clocks=True,
)
SLOW = ScheduleConfig(
    tick_interval=0.7, msg_delay=0.3, obs_delay=0.1, act_delay=0.2, jitter_type="uniform", jitter_ratio=0.5, loss=0.1,
)  # fmt: skip
AHEAD = {"system_agent": 3.0, "zone_1": -0.5, "talker_5": 1.25, "talker_7": -20.0, "unit_3": 0.3}
FAST = {"system_agent": 0.02, "zone_1": -0.1, "talker_5": 0.1, "talker_6": 1e-9, "unit_3": -0.03}
LOCAL = ("zone_1", "talker_6")


def schedule(offsets: Mapping[str, float] = AHEAD, drifts: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Of every agent of WORLD; some see their own rows themselves."""
    return {
        agent: replace(
            SLOW, clock_offset=offsets.get(agent, 0.0), clock_drift=(drifts or {}).get(agent, 0.0),
            own_rows="local" if agent in LOCAL else None,
        )
        for agent in WORLD.ids
    }  # fmt: skip


class Played:
    """An episode of policies that do not look."""

    def __init__(self, timed: Any) -> None:
        self.env = WORLD.build()
        self.run = self.env.start_event_driven(
            WORLD.constants(self.env), seed=2, schedule=timed, trace=True, record=("rewards", "actions", "observations")
        )
        self.run.until(None)
        self.result = self.run.result()

    def observed(self) -> Iterator[tuple[int, Any, Any, int, int]]:
        """(rank, columns that are no ages, ages in s, of which row, its true as-of in ns, when it was read, ns)."""
        plan = self.env.simulation.model.plan
        for rank in sorted(self.run.agents.deciding):
            sources, cut = plan.views[rank].sources.tolist(), len(plan.views[rank].columns)
            vectors = [vector for _, vector in self.result.observations[WORLD.ids[rank]]]
            for vector, (as_of, now) in zip(vectors, self.run.context.received[rank], strict=True):
                ages = dict(zip(sources, vector[cut:], strict=True))
                yield rank, vector[:cut].tobytes(), ages, dict(zip(sources, as_of.tolist(), strict=True)), now


def check_offsets() -> None:
    """Two runs that differ in offsets alone differ in nothing but ages that are shown, by exactly the difference."""
    right, wrong = Played(schedule({})), Played(schedule())
    for name in ("rewards", "actions", "staleness", "latency", "messages", "terminated", "end_time"):
        assert as_bytes(getattr(right.result, name)) == as_bytes(getattr(wrong.result, name)), f"{name} moved"
    events = [[(e.t_ns, e.kind, e.agent, e.number, e.cancelled) for e in p.result.trace] for p in (right, wrong)]
    assert events[0] == events[1], "an event moved"
    ahead = [round(AHEAD.get(agent, 0.0) * 1e9) for agent in WORLD.ids]
    moved = 0
    for (rank, seen, ages, since, now), (_, other, others, when, then) in zip(
        right.observed(), wrong.observed(), strict=True
    ):
        assert (seen, since, now) == (other, when, then), "something true moved"
        for row in ages:
            owner = row if row < len(WORLD.ids) else 0
            age = max(now - since[row], 0)
            assert ages[row] == np.float32(age / 1e9), "with clocks that are right ages are true"
            shown = (age + ahead[rank] - ahead[owner]) / 1e9
            assert others[row] == np.float32(shown), f"{WORLD.ids[rank]} reads {others[row]} of {row} for {shown}"
            moved += others[row] != ages[row]
    assert moved > 50


def check_drifts() -> None:
    """Ages are by both clocks as they are: the reader's now, the owner's when it stamped."""
    played, rows, between = Played(schedule(AHEAD, FAST)), set[int](), 0
    for rank, _, ages, since, now in played.observed():
        for row, age in ages.items():
            owner = WORLD.ids[row if row < len(WORLD.ids) else 0]
            mine, theirs = (
                round(AHEAD.get(agent, 0.0) * 1e9) + round(FAST.get(agent, 0.0) * ns)
                for agent, ns in ((WORLD.ids[rank], now), (owner, since[row]))
            )
            shown = (max(now - since[row], 0) + mine - theirs) / 1e9
            assert age == np.float32(shown), f"{WORLD.ids[rank]} reads {age} s of {owner} for {shown} s"
            rows.add(row)
            between += shown < 0
    assert len(rows) > 4 and between > 20, "too little was read"


def test_an_offset_moves_nothing_but_the_ages_shown_by_exactly_the_difference() -> None:
    check_offsets()


def test_drifting_clocks_are_read_now_and_stamped_when_it_was_measured() -> None:
    check_drifts()


def ticks(played: Played, agent: str) -> list[int]:
    """When an agent ticked, ns."""
    return [e.t_ns for e in played.result.trace if e.kind == "AgentTick" and e.agent == WORLD.ids.index(agent)]


def test_drift_moves_the_ticks_of_its_agent_and_of_no_other() -> None:
    right, wrong = Played(schedule({})), Played(schedule({}, {"talker_5": 0.1, "talker_6": -0.1}))
    assert ticks(right, "talker_5") == [n * 700_000_000 for n in range(9)]
    assert ticks(wrong, "talker_5") == [n * 636_363_636 for n in range(10)]
    assert ticks(wrong, "talker_6") == [n * 777_777_778 for n in range(8)]
    assert ticks(wrong, "talker_7") == ticks(right, "talker_7")


def test_the_phase_is_the_networks_time() -> None:
    timing = clock.Timing.of("a", ScheduleConfig(tick_interval=2.0, phase=3.0, clock_drift=-0.1, clock_offset=9.0), 1)
    assert (timing.phase, timing.tick, timing.nominal(2)) == (3 * 10**9, 2_222_222_222, 7_444_444_444)
    assert clock.Timing.of("a", ScheduleConfig(clock_drift=0.1), 10**9).tick == 909_090_909


def test_of_its_own_row_an_agent_reads_its_own_clock_twice() -> None:
    """An offset does not show; of drift what has come since."""
    ahead, fast = Played(schedule({"talker_6": 7.0})), Played(schedule({}, {"talker_6": 0.1}))
    rank = WORLD.ids.index("talker_6")
    of = [[each for each in played.observed() if each[0] == rank] for played in (ahead, fast)]
    assert len(of[0]) > 5 and len(of[1]) > 5
    for _, _, ages, since, now in of[0]:
        assert ages[rank] == np.float32(max(now - since[rank], 0) / 1e9)
    grown = [ages[rank] - max(now - since[rank], 0) / 1e9 for _, _, ages, since, now in of[1]]
    lasted = [now - since[rank] for _, _, _, since, now in of[1]]
    assert np.allclose(grown, 0.1 * np.array(lasted) / 1e9, atol=1e-6) and max(grown) > 0.01


def test_the_global_row_has_the_system_agents_stamp() -> None:
    wrong = Played(schedule({"system_agent": 4.0}))
    last, read = len(WORLD.ids), 0
    for rank, _, ages, since, now in wrong.observed():
        if last in ages and rank:
            read += 1
            assert ages[last] == np.float32((max(now - since[last], 0) - 4 * 10**9) / 1e9)
    assert read > 20


# Where ages are shown


def test_observation_spaces_begin_below_0_where_the_constructor_was_given_a_clock() -> None:
    def low(timed: Any, **options: Any) -> set[float]:
        env = make("heron/BatteryGrid-v0", num_batteries=2, observe_age=True, schedule=timed, **options)
        agent = env.possible_agents[0]
        names = env.observation_names(agent)
        return {x for name, x in zip(names, env.observation_space(agent).low, strict=True) if name.startswith("age.")}

    assert low(None) == low(ScheduleConfig(msg_delay=0.1)) == low({"field": ScheduleConfig()}) == {0.0}
    assert low(ScheduleConfig(clock_offset=-1e-9)) == low({"system": ScheduleConfig(clock_drift=0.1)}) == {-1e6}
    assert low(DrawnSchedule(clock_offset="[-1, 1]")) == low(DrawnSchedule(clock_offset="0-1")) == {-1e6}
    assert low(DrawnSchedule(clock_offset="[0, 0]", msg_delay="0-1")) == {0.0}


def test_what_is_shown_lies_in_its_space() -> None:
    played = Played(schedule())
    spaces = {agent: played.env.observation_space(agent) for agent in played.env.possible_agents}
    shown = [(a, v) for a in spaces for _, v in played.result.observations[a]]
    assert all(spaces[agent].contains(vector) for agent, vector in shown)
    assert min(float(vector.min()) for _, vector in shown) < -10.0


UNKNOWN = (
    "schedule: clock_offset or clock_drift is set, so that observed ages (observe_age=True) may be below 0, where the "
    "observation spaces of this environment end; build it with a schedule that sets a clock, schedule=..., or with "
    "observe_age=False"
)


@pytest.mark.parametrize(
    "timed",
    [
        ScheduleConfig(clock_offset=1.0), {"field": ScheduleConfig(clock_drift=0.01)},
        DrawnSchedule(clock_offset=[0.0, 1.0]), DrawnSchedule({"system": {"clock_drift": "0-0.01"}}),
    ],
)  # fmt: skip
def test_a_run_that_brings_clocks_needs_an_environment_that_knows_of_them(timed: Any) -> None:
    def build(**options: Any) -> Any:
        return make("heron/BatteryGrid-v0", num_batteries=2, max_steps=3, **options)

    policies = {"battery": lambda vector: [0.1]}
    aware, unaware = build(observe_age=True, schedule=ScheduleConfig(clock_offset=0.5)), build(observe_age=True)
    with refuses(ScheduleError, UNKNOWN):
        unaware.run_event_driven(policies, seed=0, schedule=timed)
    with refuses(ScheduleError, UNKNOWN):
        BatchEnv(unaware, 2, clock="event", schedule=timed)
    assert aware.run_event_driven(policies, seed=0, schedule=timed).messages.sent
    assert len(BatchEnv(aware, 2, clock="event", schedule=timed).begin())
    assert build().run_event_driven(policies, seed=0, schedule=timed).messages.sent


# The synchronous clock, and black boxes


def test_the_synchronous_clock_takes_offsets_where_no_ages_are_observed_and_is_the_event_clock_then() -> None:
    env = make("heron/BatteryGrid-v0", num_batteries=2, max_steps=5, schedule=ScheduleConfig(clock_offset=-2.0))
    plain = make("heron/BatteryGrid-v0", num_batteries=2, max_steps=5)
    policies = {"battery": lambda vector: [float(np.sin(vector.sum()))]}
    runs = [each.run_event_driven(policies, seed=1) for each in (env, plain)]
    steps = [each.run_synchronous(policies, seed=1) for each in (env, plain)]
    assert as_bytes([run.rewards for run in runs]) == as_bytes([run.rewards for run in steps])
    assert runs[0].returns == runs[1].returns


TRUE_AGES = (
    "the environment's schedule sets clock_offset or clock_drift, and the synchronous clock shows true ages; use "
    "run_event_driven() or BatchEnv(clock='event'), or build it with observe_age=False"
)


@pytest.mark.parametrize(
    ("timed", "message"),
    [
        (ScheduleConfig(clock_offset=1.0), TRUE_AGES),
        ({"system": ScheduleConfig(clock_drift=0.1)}, TRUE_AGES),
        (DrawnSchedule(clock_offset="0-1"), TRUE_AGES),
        (
            ScheduleConfig(clock_drift=0.1),
            "agent 'battery_1': tick_interval / (1 + clock_drift)=0.909090909 s is not a whole multiple of the env's "
            "dt=1.0 s, which the synchronous clock needs. Use clock_drift=0.0, change dt, or give this schedule to "
            "run_event_driven() only",
        ),
    ],
)
def test_it_refuses_clocks_that_it_would_have_to_show(timed: Any, message: str) -> None:
    env = make("heron/BatteryGrid-v0", num_batteries=2, observe_age=True, schedule=timed)
    with refuses(ScheduleError, message):
        env.reset(seed=0)
    with refuses(ScheduleError, message):
        BatchEnv(env, 2)


def test_it_does_not_draw_drift() -> None:
    message = (
        "schedule['*']: clock_drift='0.0-0.1': the environment's own schedule is the synchronous clock's, too, which "
        "can't draw it; give it to run_event_driven(schedule=...)"
    )
    with refuses(ScheduleError, message):
        make("heron/BatteryGrid-v0", num_batteries=2, schedule=DrawnSchedule(clock_drift="0-0.1"))


@pytest.mark.parametrize(
    ("timed", "message"),
    [
        (ScheduleConfig(clock_offset=1.5), "agent 'agent': clock_offset=1.5: a black box stamps nothing; use 0"),
        (ScheduleConfig(clock_drift=1e-12), "agent 'agent': clock_drift=1e-12: a black box stamps nothing; use 0"),
        (
            ScheduleConfig(clock_drift=0.1),
            "agent 'agent': tick_interval / (1 + clock_drift)=0.909090909 s is not a whole multiple of the env's "
            "dt=1.0 s, which a black box needs. Use clock_drift=0.0, or change dt",
        ),
    ],
)
def test_a_black_box_has_no_clocks(timed: ScheduleConfig, message: str) -> None:
    with refuses(ScheduleError, message):
        under_network(gymnasium.make("CartPole-v1"), timed, noop=0)


# What a schedule says


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"clock_offset": 1e6}, "must be less than 1e6 seconds"),
        ({"clock_offset": -2e6}, "must be less than 1e6 seconds"),
        ({"clock_offset": math.nan}, "must be finite"),
        ({"clock_offset": "1"}, "must be a number, got str"),
        ({"clock_drift": 0.11}, "must be between -0.1 and 0.1"),
        ({"clock_drift": -0.2}, "must be between -0.1 and 0.1"),
        ({"clock_drift": True}, "must be a number, got bool"),
    ],
)
def test_impossible_clocks_are_refused(fields: dict[str, Any], message: str) -> None:
    ((name, value),) = fields.items()
    with refuses(ScheduleError, f"ScheduleConfig({name}={value!r}): {message}"):
        ScheduleConfig(**fields)
    with pytest.raises(ScheduleError, match=message):
        DrawnSchedule({"field": {name: [0.0, value]}})


TOO_LONG = (
    "agent 'a': tick_interval / (1 + clock_drift)=10000000000.0 s: must be below 9.2e9 seconds (time is kept in int64 "
    "ns)"
)


def test_a_tick_after_the_end_of_time_is_refused() -> None:
    timed = ScheduleConfig(tick_interval=9e9, clock_drift=-0.1)
    with refuses(ScheduleError, TOO_LONG):
        clock.Timing.of("a", timed, 10**9)


def test_clocks_may_be_drawn_below_0_too_and_are_written_where_they_are_set() -> None:
    drawn = DrawnSchedule({"*": {"clock_offset": "-0.5-0.5"}, "field": {"clock_drift": "-2e-2--1e-5", "loss": "0-.1"}})
    assert drawn == DrawnSchedule.from_dict(drawn.to_dict())
    found = [drawn.at(seed, 0) for seed in range(200)]
    offsets, drifts = [each["*"].clock_offset for each in found], [each["field"].clock_drift for each in found]
    assert -0.5 <= min(offsets) < -0.4 and 0.4 < max(offsets) < 0.5
    assert -2e-2 <= min(drifts) < -0.019 and -0.001 < max(drifts) < -1e-5
    assert as_dict(ScheduleConfig()) == {"*": {}}
    right = {"*": ScheduleConfig(clock_offset=-1.0, clock_drift=1e-3)}
    assert as_dict(right) == {"*": {"clock_offset": -1.0, "clock_drift": 1e-3}}
    assert drawn_or_fixed(as_dict(right)) == right


def test_a_condition_of_a_sweep_has_each_drift_once() -> None:
    env = make("heron/BatteryGrid-v0", num_batteries=2, schedule=ScheduleConfig(clock_drift=0.1, clock_offset=2.0))
    timed = Condition(msg_delay=0.5).schedule(env)["battery_1"]
    assert (timed.tick_interval, timed.clock_drift, timed.clock_offset) == (1.0, 0.1, 2.0)


# Faults, planted


def _error(run: EventContext, rank: int, ns: Any) -> Any:
    timing = run.timings[rank if rank < len(run.timings) else 0]
    return timing.offset + np.rint(timing.config.clock_drift * ns)


def _shown(stamper: Callable[[int, int], int], *, now_only: bool = False) -> Callable[..., Any]:
    """Ages as they are shown, but by the clock of another agent, or by what a clock says now."""

    def shown(run: EventContext, rank: int, as_of: Any, now: int) -> Any:
        rows = run.simulation.model.plan.views[rank].sources.tolist()
        theirs = [_error(run, stamper(row, rank), now if now_only else t) for row, t in zip(rows, as_of, strict=True)]
        return (np.maximum(now - as_of, 0) + _error(run, rank, now) - np.array(theirs)) / 1e9

    return shown


def _stamped_by_itself(original: Any) -> Any:
    """What is measured is of the time that its owner's clock shows."""

    def send_report(
        run: Any, row: int, values: Any, number: int, now: int, as_of: int, *rest: Any, **more: Any
    ) -> None:
        original(run, row, values, number, now, int(as_of + _error(run, row, as_of)), *rest, **more)

    return send_report


FAULTS: dict[str, tuple[str, Any, Callable[[], None]]] = {
    "errors are of now": ("shown_ages", _shown(lambda row, rank: row, now_only=True), check_drifts),
    "the reader stamps": ("shown_ages", _shown(lambda row, rank: rank), check_offsets),
    "a neighbour stamps": ("shown_ages", _shown(lambda row, rank: max(row - 1, 0)), check_offsets),
    "the system agent stamps all": ("shown_ages", _shown(lambda row, rank: 0), check_offsets),
    "a wrong clock moves what is true": (
        "send_report", _stamped_by_itself(EventContext.send_report), check_offsets,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, fault, law = FAULTS[name]
    monkeypatch.setattr(EventContext, method, fault)
    with pytest.raises(AssertionError):
        law()


def test_the_faults_are_the_law_but_for_what_is_wrong_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EventContext, "shown_ages", _shown(lambda row, rank: row))
    check_drifts()


# Both clocks

BOTH = schedule(AHEAD, FAST)


def test_the_clock_is_the_plain_clock() -> None:
    check_plain_clock(replace(WORLD, compile=None), BOTH, seed=4)


@pytest.mark.parametrize("text", [False, True], ids=["compiled", "in Python"])
def test_every_lane_has_the_clocks_of_the_python_clock(text: bool) -> None:
    check_event_batch(WORLD, BOTH, seed=3, lanes=1 if text else 3, text=text)


@pytest.mark.parametrize("compiled", [False, True])
def test_lanes_take_clocks_and_ticks_of_the_environments_own_schedule(compiled: bool) -> None:
    """Also where each lane begins by its environment's own reset()."""
    timed = {"*": replace(SLOW, clock_offset=-1.0), "battery_2": replace(SLOW, clock_offset=2.0, clock_drift=0.05)}

    def build() -> Any:
        return make(
            "heron/BatteryGrid-v0", num_batteries=2, max_steps=6, observe_age=True, schedule=timed, compile=compiled
        )

    check_event_batch(build, None, seed=3, lanes=2)


def test_clocks_are_drawn_for_every_lane_and_episode() -> None:
    drawn = DrawnSchedule(
        {"*": {"msg_delay": "0-1", "clock_offset": "-9-9"}, "field": {"clock_drift": [-0.1, 0.0, 0.1]}}
    )
    check_event_batch(WORLD, drawn, lanes=3, episodes=2)


COMPILED: dict[str, Fault] = {
    "errors are of now": ("agents", "clock_error(E, b, stamper, as_of)", "clock_error(E, b, stamper, now)"),
    "the reader stamps": ("agents", "clock_error(E, b, stamper, as_of)", "clock_error(E, b, r, as_of)"),
    "the global row has no clock": (
        "agents",
        'stamper = row if row < of(E, "sizes")[f.RANKS] else 0',
        'stamper = row if row < of(E, "sizes")[f.RANKS] else r',
    ),
    "drift is cut off": ("agents", 'np.rint(of(E, "odds")[at, f.DRIFT] * ns)', 'of(E, "odds")[at, f.DRIFT]'),
    "a wrong clock moves what is true": (
        "agents",
        "            age = max(now - as_of[since, k], 0)\n",
        "            age = as_of[since, k] = max(now - as_of[since, k], 0)\n",
    ),
    "ages are those of the reader": ("agents", 'of(E, "source")[sources[r] + k], age,', "r, age,"),
}


@pytest.mark.parametrize("name", COMPILED)
def test_a_fault_in_the_compiled_clock_is_noticed(name: str) -> None:
    with pytest.raises(AssertionError):
        check_event_batch(WORLD, BOTH, seed=3, lanes=1, text=True, fault=COMPILED[name])


def test_notes_tell_ages_without_drift() -> None:
    def notes(**fields: float) -> list[str]:
        timed = {"*": ScheduleConfig(msg_delay=0.3, **fields), "battery_2": ScheduleConfig(msg_delay=0.3)}
        env = make("heron/BatteryGrid-v0", num_batteries=2, max_steps=4, schedule=timed)
        return env.run_event_driven({"battery": lambda vector: [0.1]}, seed=0).notes

    right = notes()
    assert any("without jitter and loss, up to" in note for note in right)
    assert notes(clock_offset=0.5) == right
    assert notes(clock_drift=0.1) == [note.replace("jitter and loss", "jitter, loss and drift") for note in right]
