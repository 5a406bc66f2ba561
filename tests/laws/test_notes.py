"""T12, T18: the ages that notes tell are those that observations have, by source; and delays nobody lives to see."""

import re
from dataclasses import replace
from itertools import cycle
from math import lcm
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.test_plain_clock import networks, worlds
from strategies import NEVER, Node

from heron_env import (
    Answer,
    Continuous,
    CoordinatorAgent,
    Empirical,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Markov,
    Recorded,
    ScheduleConfig,
    SystemAgent,
    Vector,
    World,
    make,
    quantity,
    rule,
)
from heron_env.core.hierarchy import name_stem
from heron_env.envs.event import notes as notes_module

AGES = re.compile(r"what is observed is, without jitter and loss, up to (.*) old, (.*) s of this since the tick")
ONE_AGE = re.compile(r"([\d.e+-]+) s \((.*?)\)")
SETTLED, LONGEST = 30, 60
"""Steps after which all reports come, those of effects too, whatever the delays drawn here; of a run at most."""


def ages_in(notes: list[str], agent: str) -> set[tuple[str, float]]:
    """(whose values, age in s) of an agent's note."""
    told = [AGES.search(note) for note in notes if agent in note.rpartition(" (")[2].rstrip(")").split(", ")]
    pairs = [(age, names) for match in told if match for age, names in ONE_AGE.findall(match[1])]
    return {(name, float(age)) for age, names in pairs for name in names.split(", ")}


# By what a run measures


def lasting(node: Node) -> Node:
    """The same tree in which nobody ends."""
    return replace(node, at=0, cut=0, above=NEVER, children=tuple(map(lasting, node.children)))


def steady(config: ScheduleConfig) -> ScheduleConfig:
    """The same delays without chance, media and transports."""
    chance = {"jitter_ratio": 0.0, "tick_jitter_ratio": 0.0, "loss": 0.0, "clock_drift": 0.0}
    waits: dict[str, Any] = {"medium": None, "priority": 0, "keep": None, "lifespan": None, "transport": None}
    return replace(config, jitter_type="none", reorder=False, **chance, **waits)


def check_ages(recipe: Any, schedule: Any) -> None:
    """Each agent's note tells what its observations held, of each source that a request outruns, and no more."""
    network = {key: steady(config) for key, config in schedule.items()}
    env = replace(recipe, max_steps=2).build(network)
    ticks = [timing.tick for timing in env.timings]
    period = lcm(env.dt_ns, *ticks) // env.dt_ns
    env = replace(recipe, max_steps=min(SETTLED + period + 4, LONGEST)).build(network)
    run = env.start_event_driven(recipe.policies(env), seed=0)
    run.until(None)
    notes = notes_module.notes(
        env.simulation, env.timings, env.dt_ns, run.agents.deciding, reports=env.reports
    )  # of all names
    for rank in sorted(run.agents.deciding):
        agent = env.hierarchy.ids[rank]
        noted = {pair for note in notes for pair in ages_in([note], agent)}
        measured = measured_ages(env, run, rank)
        if SETTLED + period + 4 <= LONGEST:
            assert noted == measured, agent
        for name, age in measured:
            assert any(one == name and age <= most for one, most in noted), (agent, name, age)


def measured_ages(env: Any, run: Any, rank: int) -> set[tuple[str, float]]:
    """The greatest age of each source whose last measurement before a tick was ever missed at its decision."""
    own, received = env.timings[rank], run.context.received[rank]
    message, gathering = (max(delay, own.min_delay) for delay in (own.msg, own.obs))
    found = set()
    for place, row in enumerate(env.simulation.model.plan.views[rank].sources.tolist()):
        if row == rank and own.local:
            continue
        missed, oldest = False, 0
        for as_of, now in (one for one in received if one[1] >= SETTLED * env.dt_ns):
            tick = now - 2 * message - gathering
            last = env.dt_ns * (((tick + 1) * env.reports - 1) // env.dt_ns) // env.reports
            missed |= bool(as_of[place] < last)
            oldest = max(oldest, now - int(as_of[place]))
        if missed:
            name = name_stem(env.simulation.model.layout.rows[row].owner_id)
            found.add(("its own features" if row == rank else name, oldest / 1e9))
    return found


@settings(max_examples=settings().max_examples // 2)
@given(st.data())
def test_the_ages_of_a_note_are_those_of_the_observations(data: st.DataObject) -> None:
    recipe = data.draw(worlds())
    recipe = replace(recipe, root=lasting(recipe.root), hooks="none", mode="all")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(notes_module, "MOST_NAMES", 99)
        patch.setattr(notes_module, "together", lambda texts: [f"{text} ({agent})" for text, agent in texts])
        check_ages(recipe, data.draw(networks(recipe)))


# By a clock that is observed


class Clock(FeatureProvider):
    """What time it is."""

    visibility = ("public",)
    now: float = quantity(default=0.0, low=0.0, high=1e4)


class Hand(FeatureProvider):
    """What an action does."""

    value: float = quantity(default=0.0, low=0.0, high=1.0)


class Mast(FieldAgent):
    """A sensor: it does not act."""

    features = (Clock,)

    @staticmethod
    @rule(writes=Clock.now)
    def advance(clock: Clock, dt: float) -> float:
        return clock.now + dt


class Actor(Mast):
    features, action = (Clock, Hand), Continuous(0.0, 1.0)

    @staticmethod
    @rule(writes=Hand.value)
    def apply_action(action: Vector) -> float:
        return action[0]


class Sky(FeatureProvider):
    """The same time, which belongs to the world."""

    visibility = ("public",)
    now: float = quantity(default=0.0, low=0.0, high=1e4)


class Yard(HeronEnv):
    physics_substeps, global_features = 10, (Sky,)

    def advance(self, world: World, dt: float) -> None:
        world.Sky.now[...] += dt


def yard(**options: Any) -> HeronEnv:
    crew = CoordinatorAgent("crew", Actor("actor_1"), Actor("other_1"), Mast("mast_1"))
    return Yard(SystemAgent("root", crew), max_steps=60, **options)


SOURCES = {"its own features": "Clock.now", "other": "other_1.Clock.now", "mast": "mast_1.Clock.now"}
SOURCES |= {"global": "global.Sky.now"}
LATE = ScheduleConfig(msg_delay=3.0)
NETWORKS = [
    *({"*": ScheduleConfig(msg_delay=delay)} for delay in (0.1, 0.4, 1.0, 3.0)),
    {"*": ScheduleConfig(msg_delay=0.4, obs_delay=0.7, act_delay=1.5)},
    {"*": ScheduleConfig(msg_delay=0.2), "mast_1": LATE}, {"*": ScheduleConfig(msg_delay=0.2), "other_1": LATE},
    {"*": ScheduleConfig(msg_delay=0.2), "root": LATE}, {"*": ScheduleConfig(), "actor_1": LATE},
    {"*": ScheduleConfig(msg_delay=0.3, tick_interval=2.0), "actor_1": ScheduleConfig(msg_delay=0.5, phase=0.3)},
    {"*": ScheduleConfig(msg_delay=0.6, tick_interval=0.7)},
]  # fmt: skip


@pytest.mark.parametrize(
    ("schedule", "report_interval"), [*zip(NETWORKS, cycle([None, 0.1, 0.5]), strict=False)], ids=range(len(NETWORKS))
)
def test_the_age_of_a_note_is_what_an_observed_clock_is_behind(schedule: Any, report_interval: float | None) -> None:
    env = yard(report_interval=report_interval, schedule=schedule)
    names, columns = env.observation_names("actor_1"), {}
    behind: dict[str, float] = dict.fromkeys(SOURCES, 0.0)
    run: Any = None

    def decide(vector: Any) -> list[float]:
        now = run.context.scheduler.now / 1e9
        for name, column in SOURCES.items():
            if now >= SETTLED:
                behind[name] = max(behind[name], now - float(vector[columns[column]]))
        return [0.5]

    columns = {name: place for place, name in enumerate(names)}
    run = env.start_event_driven({"actor_1": decide, "*": lambda vector: [0.5]}, seed=0)
    run.until(None)
    own = env.timings[env.hierarchy.index["actor_1"]]
    noted = dict(ages_in(run.result().notes, "actor_1"))
    for name, age in behind.items():
        newest = (2 * own.msg + own.obs) / 1e9
        if name in noted:
            assert noted[name] == pytest.approx(age, abs=1e-4), name
        else:  # what was measured at the tick, or by the last report before
            assert age < newest + (report_interval or 1.0) + 1e-4, name


def test_thinking_does_not_make_the_note_too_young() -> None:
    class Slow:
        def answer(self, asked: Any) -> Answer:
            return Answer([0.5], thinking=1.2)

    result = yard(observe_age=True).run_event_driven(
        {"*": Slow()}, seed=0, schedule=ScheduleConfig(msg_delay=0.4, tick_interval=4.0)
    )
    oldest = max(age for _, age in ages_in(result.notes, "actor_1"))
    assert result.staleness["actor_1"].max <= oldest + 1e-9


# Delays beyond the episode, and thoughts below a substep

HOURS = [
    ScheduleConfig(msg_delay=200.0), ScheduleConfig(msg_delay=Recorded([0.0, 5.0], [200.0, 900.0])),
    ScheduleConfig(msg_delay=Empirical([60.0, 400.0])), ScheduleConfig(min_delay=61.0),
    ScheduleConfig(msg_delay=Markov([200.0, Empirical([70.0, 80.0])], 0.5, 1.0)),
    ScheduleConfig(msg_delay=900.0, jitter_type="lognormal", jitter_ratio=0.1),
]  # fmt: skip


@pytest.mark.parametrize("config", HOURS, ids=range(len(HOURS)))
def test_a_delay_longer_than_the_episode_is_noted(config: ScheduleConfig) -> None:
    result = yard().run_event_driven({"*": lambda vector: [0.5]}, seed=0, schedule=config)
    assert not any(result.actions.values())
    (note,) = [note for note in result.notes if "are the delays in seconds?" in note]
    assert note.startswith("no message arrived before the end: it takes ")
    assert note.endswith("the episode 60.0 s; are the delays in seconds? (root, crew, actor_1, ...)")


@pytest.mark.parametrize(
    ("config", "what"),
    [
        (ScheduleConfig(msg_delay=30.0), "observation arrived"),
        (ScheduleConfig(obs_delay=60.0), "observation arrived"),
        (ScheduleConfig(act_delay=250.0), "decision took effect"),
        (ScheduleConfig(msg_delay=20.0, act_delay=20.0, on_missing="noop"), "decision took effect"),
    ],
)
def test_what_never_happens_for_delay_is_noted(config: ScheduleConfig, what: str) -> None:
    result = yard().run_event_driven({"*": lambda vector: [0.5]}, seed=0, schedule=config)
    (note,) = [note for note in result.notes if "are the delays in seconds?" in note]
    assert note.startswith(f"no {what} before the end: ") and note.endswith("(actor_1, other_1)")
    assert all(float(values[0]) == 0.0 for _, values in result.actions["actor_1"])


def test_a_command_that_never_arrives_is_noted() -> None:
    env = make("heron/BatteryGrid-v0", num_batteries=4, zone_size=2, max_steps=20, control="zone")
    result = env.run_event_driven(
        {"*": lambda vector: np.zeros(2)}, seed=0, schedule={"battery": ScheduleConfig(act_delay=30.0)}
    )
    (note,) = [note for note in result.notes if "are the delays in seconds?" in note]
    assert note.startswith("no decision took effect before the end: it takes 30.0 s or more")


@pytest.mark.parametrize(
    "config", [ScheduleConfig(msg_delay=59.0), ScheduleConfig(msg_delay=Empirical([0.1, 200.0])),
               ScheduleConfig(msg_delay=200.0, jitter_type="uniform", jitter_ratio=1.0), ScheduleConfig(loss=1.0)],
)  # fmt: skip
def test_a_message_that_may_arrive_is_no_such_note(config: ScheduleConfig) -> None:
    result = yard().run_event_driven({"*": lambda vector: [0.5]}, seed=0, schedule=config)
    assert not [note for note in result.notes if "no message" in note]


def test_a_run_that_goes_on_tells_nothing_of_its_end() -> None:
    run = yard().start_event_driven({"*": lambda vector: [0.5]}, seed=0, schedule=ScheduleConfig(msg_delay=5.0))
    run.until(2.0)
    assert not [note for note in run.result().notes if "before the end" in note]
    run.until(None)
    assert not [note for note in run.result().notes if "before the end" in note]


class Thinker:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def answer(self, asked: Any) -> Answer:
        return Answer([1.0], thinking=self.seconds)


@pytest.mark.parametrize(("seconds", "substeps"), [(0.3, 1), (0.02, 10), (0.3, 10), (1.5, 1), (0.0, 1)])
def test_a_thought_below_a_substep_is_noted(seconds: float, substeps: int) -> None:
    env = yard(physics_substeps=substeps)
    notes = env.run_event_driven({"*": Thinker(seconds)}, seed=0).notes
    below = 0.0 < seconds < 1.0 / substeps
    assert [note for note in notes if "thinking" in note] == [
        f"thinking takes up to {seconds} s, below one physics substep of {1.0 / substeps} s: on its own it has no "
        "effect (actor_1, other_1)"
    ] * below
