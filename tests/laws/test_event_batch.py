"""The compiled event clock equals the Python clock in random worlds, under any schedule, and tells rows truly."""

import ast
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from laws.checks_event_batch import check_event_batch, check_on_and_on
from laws.examples import ROUGH, SLOW, TALK
from laws.mutants_event import (
    EVENT_MUTANTS,
    GOING_ON_MUTANTS,
    LATE_MUTANTS,
    LINK_MUTANTS,
    SHARED_MUTANTS,
    TOGETHER_MUTANTS,
)
from laws.test_plain_clock import networks
from laws.uncompiled import PACKAGE, PLAIN
from strategies import Node, Recipe, batched, sourced

from heron_env import (
    BatchEnv,
    DrawnSchedule,
    Empirical,
    GilbertElliott,
    Markov,
    Medium,
    ObservabilityConfig,
    Recorded,
    Reliable,
    ScheduleConfig,
    make,
)
from heron_env.errors import HeronError, ScheduleError

FEW = max(60, settings().max_examples)
"""Worlds, each of several lanes."""
FAR = [1e7, 7.6e8]
"""Steps, s, of which a few are beyond 2**53 ns, where float64 begins to leave whole numbers out, or nearly 2**63."""


@st.composite
def worlds(draw: st.DrawFn) -> Recipe:
    """Hierarchies of one family, so that nothing is compiled anew: hooks in Python and none, telemetry, padding."""
    recipe = draw(batched("alone", "together", "none", "none", "signalling"))
    recipe = replace(recipe, dt=draw(st.sampled_from([recipe.dt, recipe.dt, recipe.dt, *FAR])))
    substeps = draw(st.sampled_from([1, 2, 4]))
    reports = draw(st.sampled_from([n for n in (1, 2, 4) if substeps % n == 0]))
    changes: dict[str, Any] = {"substeps": substeps, "report_interval": recipe.dt / reports}
    return replace(recipe, **changes, pad=draw(st.booleans()), clocks=draw(st.booleans()))


@settings(max_examples=FEW)
@given(st.data())
def test_every_lane_is_the_python_clock(data: st.DataObject) -> None:
    recipe = data.draw(worlds())
    keys = st.sampled_from([*recipe.ids, "field", "coordinator", "system"])
    from_data = st.builds(
        lambda one, more: {"*": one} | more, sourced(recipe.dt), st.dictionaries(keys, sourced(recipe.dt), max_size=2)
    )
    check_event_batch(
        recipe,
        data.draw(st.one_of(networks(recipe), networks(recipe), from_data)),
        seed=data.draw(st.sampled_from([0, 5, 2**40])),
        lanes=data.draw(st.integers(1, 3)),
        episodes=data.draw(st.sampled_from([1, 1, 2])),
        threads=data.draw(st.sampled_from([1, 1, 2])),
        gamma=data.draw(st.sampled_from([1.0, 0.9, 0.0])),
        with_state=data.draw(st.booleans()),
    )


@settings(max_examples=max(100, settings().max_examples))
@given(st.data())
def test_every_lane_is_the_python_clock_where_the_world_has_a_say_in_links(data: st.DataObject) -> None:
    """T20: the rule `link` is asked at the same departures, of the same state."""
    recipe = replace(data.draw(worlds()), sight="", visible=False)
    recipe = replace(recipe, hooks=data.draw(st.sampled_from(["linked", "linked", "linked alone"])))
    from_data = st.builds(lambda one: {"*": one}, sourced(recipe.dt))
    check_event_batch(
        replace(recipe, compile=data.draw(st.sampled_from([True, True, True, False]))),
        data.draw(st.one_of(networks(recipe), networks(recipe), networks(recipe), from_data)),
        seed=data.draw(st.sampled_from([0, 5, 2**40])),
        lanes=data.draw(st.integers(1, 2)),
        threads=data.draw(st.sampled_from([None, 2])) if recipe.hooks == "linked" else None,
    )


@settings(max_examples=max(3, settings().max_examples // 10))
@given(st.data())
def test_lanes_go_on_from_episode_to_episode(data: st.DataObject) -> None:
    """By themselves, or because somebody tells some of them to; under one network, or one that is drawn."""
    recipe = replace(data.draw(worlds()), max_steps=data.draw(st.integers(1, 4)))
    fields = {"msg_delay": "0-3", "act_delay": "[0, 0.7, 2.5]", "loss": "[0, 0.4]", "on_missing": "[hold, noop]"}
    clocks = {"clock_offset": "-2-2", "clock_drift": [-0.1, 0.0, 0.1]} if recipe.clocks else {}
    drawn = st.just(DrawnSchedule({"*": fields, "field": fields | clocks}))
    patterns = st.lists(st.booleans(), min_size=1, max_size=3).map(tuple)
    options = {
        "seed": data.draw(st.sampled_from([0, 5, 2**40])),
        "lanes": data.draw(st.integers(1, 3)),
        "resets": data.draw(st.dictionaries(st.integers(0, 9), patterns, max_size=3)),
        "gamma": data.draw(st.sampled_from([1.0, 0.9])),
    }
    try:
        check_on_and_on(recipe, data.draw(st.one_of(networks(recipe), drawn)), calls=10, **options)
    except ScheduleError as silent:
        assert "without a single observation" in str(silent)
        reject()


ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "heron/BatteryGrid-v0": {"max_steps": 12, "control": "zone"},
    "heron/EnergyManagement-v1": {"max_steps": 4},
    "heron/TrafficCorridor-v0": {"max_steps": 12},
    "heron/WorldComm-v0": {"max_steps": 8},
    "heron/Crypto-v0": {"max_steps": 8, "continuous": False},
    "heron/GraphColoring-v0": {"max_steps": 10, "control": "cluster"},
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "heron/BatteryGrid-v0" else pytest.mark.e2e) for name in ENVIRONMENTS],
)
def test_so_are_the_environments_of_this_library(name: str) -> None:
    def build() -> Any:
        return make(name, compile=True, **ENVIRONMENTS[name])

    dt, delays = build().dt, ("msg_delay", "obs_delay", "act_delay")
    for schedule in (SLOW, ROUGH):
        times = {field: getattr(schedule, field) * dt for field in ("tick_interval", *delays)}
        check_event_batch(build, replace(schedule, **times, on_missing="noop"), seed=3, gamma=0.9, with_state=True)


def test_without_delay_rows_are_steps() -> None:
    """One row a step and agent, with that step's reward; its observation is the synchronous clock's."""
    recipe = replace(TALK, hooks="together", compile=True)
    batch: Any = BatchEnv(recipe.build(), 3, seed=4, clock="event", autoreset="disabled", with_state=True)
    steps = BatchEnv(recipe.build(), 3, seed=4, autoreset="disabled")
    specs, alike = batch.env.simulation.model.specs, True
    rows, (observations, _), rewards = batch.begin(), steps.reset(), None
    while len(rows):
        actions, size = {}, max(specs[rank].size for rank in batch.env.simulation.model.possible)
        answers = np.zeros((len(rows), size))
        for name, part in rows.parts.items():
            agents = [batch.env.hierarchy.index[agent] for agent in batch.groups[name]]
            places = [agents.index(rank) for rank in rows.rank[part].tolist()]
            seen = observations[name][rows.lane[part], places]
            alike &= np.array_equal(rows.obs[part, : seen.shape[1]], seen)
            if rewards is not None:
                alike &= np.array_equal(rows.reward[part], rewards[name][rows.lane[part], places])
                alike &= bool((rows.steps[part] == 1).all())
            alike &= np.array_equal(rows.state[part], steps.state()[rows.lane[part]])
            spec, width = specs[agents[0]], specs[agents[0]].size
            waves = np.sin(seen.sum(axis=1, keepdims=True) + np.arange(spec.dim_c))
            answers[part, : spec.dim_c] = waves * spec.high
            actions[name] = np.zeros((3, len(agents), width))
            actions[name][rows.lane[part], places] = answers[part, :width]
        assert alike, f"at {rows.time.max()} s rows are no steps"
        observations, rewards, *_ = steps.step(actions)
        rows = batch.answer(answers)
    assert not batch.running.any()
    for lane, result in enumerate(batch.results()):
        assert list(result.returns.values()) == steps.returns[lane].tolist()


def test_a_schedule_may_be_drawn_for_every_lane_and_episode() -> None:
    schedule = DrawnSchedule(
        {
            "*": {"msg_delay": "0-2", "loss": "[0, 0.3]", "on_missing": "[hold, noop]"},
            "field": {"act_delay": "lognormal(1, 0.5)", "tick_interval": "[0.3, 1.0]", "reorder": True},
        }
    )
    for episodes in (1, 2):
        course = check_event_batch(replace(TALK, max_steps=12, compile=True), schedule, lanes=4, episodes=episodes)
        assert len({result.messages.sent for result in course.results}) > 1


def test_a_heavy_tail_finds_room() -> None:
    """Messages pile up, a hundred times as late as usual: slots grow, and nothing is lost."""
    schedule = ScheduleConfig(
        tick_interval=0.05, msg_delay=2.0, obs_delay=1.0, act_delay=30.0, jitter_type="lognormal", jitter_ratio=3.0,
        reorder=True,
    )  # fmt: skip
    course = check_event_batch(replace(TALK, max_steps=40, compile=True), schedule, lanes=2)
    assert max(np.diff([row["time"] for row in course.rows[0]])) >= 0.0


def test_what_is_under_way_finds_room_however_late_it_is() -> None:
    """The truth at 20 to 30 boundaries, also in lanes that do not begin together, each with a delay of its own."""
    drawn = DrawnSchedule({"*": {"msg_delay": "10-15"}})
    check_event_batch(LATE, drawn, lanes=2, episodes=2)
    check_on_and_on(LATE, drawn, seed=5, lanes=2, calls=6, resets={3: (True, False)})


def test_a_delay_reserves_no_memory() -> None:
    """Only what is under way needs some, and of that there is no more than there are steps."""
    for late in (9e9, 9.2e9):
        look_late(late)
        batch: Any = BatchEnv(
            LATE.build(), 2, clock="event", schedule=ScheduleConfig(msg_delay=late), autoreset="disabled"
        )
        batch.begin()
        assert batch._lanes.arrays["ring"].nbytes < 2 * 100 * batch.truth[0].nbytes


UNEVEN = Node("zone", at=5, protocol="uneven", children=(Node("unit"), Node("unit", at=9)))
BUSY = Recipe(
    Node(
        "system",
        children=(
            Node("zone", protocol="vector", children=(UNEVEN, Node("metered", value=1.0), Node("chooser"))),
            Node("team", exchange="ring", children=(Node("talker"), Node("talker", value=0.5, at=7), Node("talker"))),
            Node("zone", at=6, protocol="broadcast", children=(Node("unit", value=1.0), Node("unit"))),
            Node("team", children=(Node("chooser"), Node("metered"))),
        ),
    ),
    substeps=4,
    max_steps=12,
    observe_age=True,
    report_interval=0.5,
    compile=True,
)
"""Nested commands, shares beyond bounds, neighbours, masks, agents and commanders that end, telemetry."""
NOISY = replace(BUSY, observability=ObservabilityConfig(enabled=True, default={"level": "insider", "noise": 0.3}))
STRICT = replace(ROUGH, on_missing="noop", min_delay=0.15, own_rows="local", jitter_ratio=2.0)
QUEUED = replace(STRICT, reorder=False, jitter_ratio=1.0, loss=0.4)
FORGIVING = replace(ROUGH, on_missing="hold", loss=0.0, tick_interval=0.3)
AT_ONCE = ScheduleConfig(tick_interval=0.5, act_delay=0.5, own_rows="local")
BETWEEN = ScheduleConfig(tick_interval=0.35, act_delay=0.3, own_rows="local", on_missing="noop", msg_delay=0.1)
FROM_DATA = ScheduleConfig(
    tick_interval=0.4, msg_delay=Markov([0.1, Empirical([0.4, 0.9])], [0.2, 0.3], 0.3), act_delay=Empirical([0.2, 0.7]),
    obs_delay=Recorded([0.0, 0.7, 1.6], [0.1, 0.4, 0.2]), loss=GilbertElliott(0.1, 0.4, 0.7, 0.05, 0.25),
    jitter_type="gaussian", jitter_ratio=0.3,
)  # fmt: skip
WORLDS = [
    (BUSY, FROM_DATA),
    (NOISY, STRICT),
    (replace(BUSY, hooks="signalling"), QUEUED),
    (BUSY, FORGIVING),
    (BUSY, AT_ONCE),
    (BUSY, BETWEEN),
    (replace(BUSY, report_interval=1.0), STRICT),
]


ON_AND_ON: dict[str, Any] = {
    "schedule": DrawnSchedule(msg_delay="0-1.5", act_delay="[0, 1.5, 5]", reorder=True),
    "seed": 5, "calls": 14, "resets": {5: (True, False), 9: (False, True)}, "gamma": 0.9,
}  # fmt: skip
"""Effects fall later than episodes last, so that lanes end before anybody is asked; some are told to begin anew."""


def look(**options: Any) -> None:
    """At worlds in which a fault of any event shows."""
    for recipe, schedule in WORLDS:
        check_event_batch(recipe, schedule, lanes=1, seed=3, gamma=0.9, with_state=True, **options)


def look_on_and_on(**options: Any) -> None:
    """At lanes in which a fault between episodes shows."""
    check_on_and_on(replace(TALK, max_steps=4, compile=True), **ON_AND_ON, **options)


LATE = replace(TALK, max_steps=60, compile=True)


def look_late(delay: float = 0.0, **options: Any) -> None:
    """At lanes in which a fault shows that only long delays bring about."""
    for late in (delay,) if delay else (13.0, 9e9):
        check_event_batch(LATE, ScheduleConfig(msg_delay=late), lanes=2, **options)


def look_together(**options: Any) -> None:
    """At several lanes, each in a substep of its own, with hooks one by one."""
    check_event_batch(replace(TALK, compile=True), ROUGH, lanes=3, seed=3, **options)


RADIO = Medium("radio", rate=120.0, overhead=3, order="priority", sizes={"request": 2, "report": 12})
BUS = Medium("bus", rate=150.0, overhead=2, limit=80, duplex=True)
LOSSY = ScheduleConfig(
    tick_interval=0.4, msg_delay=0.1, obs_delay=0.3, loss=0.3, jitter_type="uniform", jitter_ratio=0.5,
    on_missing="noop",
)  # fmt: skip
SHARED: list[dict[str, ScheduleConfig]] = [
    {
        "*": replace(LOSSY, medium=RADIO, priority=1, transport=Reliable(rto=0.3, gaps=True)),
        "field": replace(LOSSY, medium=RADIO, keep=1, lifespan=1.5, transport=Reliable(rto=0.1, tries=3)),
    },
    {
        "*": replace(LOSSY, medium=BUS, reorder=True, transport=Reliable(rto=0.2, backoff=1.5, gaps=True)),
        "field": replace(LOSSY, medium=BUS, keep=2, lifespan=0.8),
        "system": replace(LOSSY, transport=Reliable(rto=0.2, tries=2)),
    },
    {"*": replace(LOSSY, medium=Medium(rate=300.0), transport=Reliable(rto=0.0, tries=3))},
    {"*": replace(LOSSY, medium=Medium(rate=300.0))},
    {"*": ScheduleConfig(medium=Medium(rate=1e-9, overhead=1.0))},
]


def look_shared(**options: Any) -> None:
    """At what waits: for others, for another attempt, behind what was lost."""
    for schedule in SHARED:
        check_event_batch(replace(BUSY, max_steps=20), schedule, lanes=2, seed=3, episodes=2, **options)


def test_what_waits_finds_room() -> None:
    """A medium that is offered ten times what it carries: parcels grow, and nothing is lost."""
    schedule = ScheduleConfig(tick_interval=0.2, medium=Medium(rate=60.0, order="priority"))
    course = check_event_batch(replace(BUSY, max_steps=30), schedule, lanes=2)
    use = course.results[0].media["medium"]
    assert use.load > 3.0 and use.waiting > 1000.0 and use.busy > 0.99
    assert any("was offered" in note for note in course.results[0].notes)


def look_linked(**options: Any) -> None:
    """At worlds in which a fault shows in what is asked of the rule `link`."""
    recipe = replace(BUSY, hooks="linked", report_interval=1.0)
    for schedule in (STRICT, *SHARED[2:4]):
        check_event_batch(recipe, schedule, lanes=1, seed=3, **options)


def test_its_text_in_python_asks_the_rule_link() -> None:
    look_linked(text=True)


@pytest.mark.parametrize("name", LINK_MUTANTS)
def test_a_fault_in_asking_the_rule_link_makes_another_clock(name: str) -> None:
    with pytest.raises((AssertionError, IndexError, ValueError, HeronError)):
        look_linked(text=True, fault=LINK_MUTANTS[name])


@pytest.mark.e2e
@pytest.mark.parametrize("text", [False, True], ids=["compiled", "in Python"])
def test_its_text_in_python_is_the_same_clock(text: bool) -> None:
    look(text=text)
    look_on_and_on(text=text)
    look_late(text=text)
    look_together(text=text)
    look_shared(text=text)


LONG = {"a_noop_undoes_what_fell_before", "ends_looked_at_too_early"}
LONG |= {*GOING_ON_MUTANTS, *(name for name, fault in EVENT_MUTANTS.items() if fault[0] in PLAIN)}
MUTANTS = EVENT_MUTANTS | GOING_ON_MUTANTS | LATE_MUTANTS | TOGETHER_MUTANTS | SHARED_MUTANTS


@pytest.mark.e2e
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.e2e] if name in LONG else []) for name in MUTANTS]
)
def test_a_fault_in_its_text_makes_another_clock(name: str) -> None:
    try:
        looking = look_on_and_on if name in GOING_ON_MUTANTS else look_late if name in LATE_MUTANTS else look
        looking = look_together if name in TOGETHER_MUTANTS else look_shared if name in SHARED_MUTANTS else looking
        looking(text=True, fault=MUTANTS[name])
    except (AssertionError, IndexError, ValueError, HeronError):
        return
    pytest.fail(f"{name}: nobody noticed")


TWINS = {
    "agents": {
        "tick", "deadline", "awaits_command", "replace_missing", "answer_request", "receive_reply",
        "complete_observation", "receive_command", "commit", "take_effect",
    },
    "physics": {"schedule_substep", "simulate", "score", "pass_token"},
}  # fmt: skip
"""Jobs that both clocks have, by file."""


@pytest.mark.parametrize("file", TWINS)
def test_a_job_has_one_name_in_both_clocks_and_stands_in_one_order(file: str) -> None:
    compiled, plain = (_jobs(f"{room}/event/{file}.py") for room in ("engine", "envs"))
    both = [name for name in compiled if name in plain]
    assert both == [name for name in plain if name in compiled]
    assert {*both} >= TWINS[file]


def _jobs(file: str) -> list[str]:
    """The functions and methods of a module, in their order."""
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
