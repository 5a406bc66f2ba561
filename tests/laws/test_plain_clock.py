"""The event clock equals a plain one, written from the law, under delay, jitter, loss and everything else."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.checks_clock import check_plain_clock, check_untraced
from laws.examples import FIELD, ROUGH
from laws.mutants import MUTANTS, require_caught
from laws.mutants_clock import CLOCK_MUTANTS
from strategies import (
    Node,
    Recipe,
    delays,
    observabilities,
    recipes,
    schedule_configs,
    seeing,
    talking,
    two_media,
    waiting,
    wrong_clocks,
)

from heron_env import Disturbance, ScheduleConfig

EXAMPLES = max(50, settings().max_examples)


@st.composite
def worlds(draw: st.DrawFn) -> Recipe:
    """Random hierarchies, some with meters, every second with neighbours that talk; telemetry more or less often."""
    recipe = replace(draw(recipes()), hooks="gusty")
    root, kinds = recipe.root, draw(st.sampled_from(["units", "units", "meters"]))
    exchange = draw(st.sampled_from(["", "", "ring", "star", "full"]))
    if kinds == "meters":
        root = metered(root)
    if exchange:
        root = talking(with_talkers(root), exchange, draw(st.booleans()))
    substeps = draw(st.sampled_from([1, 2, 3, 4, 4]))
    reports = draw(st.sampled_from([n for n in (1, 2, 3, 4) if substeps % n == 0]))
    recipe = replace(recipe, root=root, substeps=substeps, report_interval=recipe.dt / reports)
    recipe = replace(recipe, clocks=draw(st.booleans()))
    return draw(seeing(replace(recipe, observability=recipe.observability and draw(observabilities(recipe.ids)))))


def metered(node: Node) -> Node:
    """The same tree with meters for units."""
    kind = "metered" if node.kind == "unit" else node.kind
    return replace(node, kind=kind, children=tuple(map(metered, node.children)))


def with_talkers(root: Node) -> Node:
    """The same tree with three talkers in a team of their own."""
    talkers = tuple(Node("talker", value=value, at=at) for value, at in ((0.5, 0), (1.0, 2), (-1.0, 0)))
    return replace(root, children=(*root.children, Node("team", children=talkers)))


@st.composite
def networks(draw: st.DrawFn, recipe: Recipe) -> Any:
    """Some agents' links are of one kind, some of another; one in four is as bad as can be."""
    bad = schedule_configs(dt=recipe.dt)
    owning = st.sampled_from([None, "proxy", "local"])
    one = st.one_of(delays(recipe.dt), delays(recipe.dt), delays(recipe.dt), bad)
    one = st.builds(lambda config, own: replace(config, own_rows=own), one, owning)
    if draw(st.booleans()):
        media = draw(two_media(recipe.dt))
        one = one.flatmap(lambda config: st.one_of(st.just(config), waiting(recipe.dt, config, media)))
    if recipe.clocks:
        one = one.flatmap(wrong_clocks)
    keys = st.sampled_from([*recipe.ids, "field", "coordinator", "system"])
    return {"*": draw(one)} | draw(st.dictionaries(keys, one, max_size=4))


@st.composite
def disturbances(draw: st.DrawFn, recipe: Recipe) -> list[Disturbance]:
    """Gusts at any time, boundaries and substeps among them, some with physics; a sensor fails once at most."""
    times = st.integers(0, 12 * (recipe.max_steps - 1)).map(lambda n: round(n * recipe.dt / 12, 9))
    moved = st.sampled_from([*(f"{agent}.Level.value" for agent in recipe.ids), "global.Price.value"])
    gusts = st.builds(
        lambda t, what, by, physics: Disturbance(t, "gust", {"what": what, "by": by}, physics),
        times, moved, st.sampled_from([-0.5, 0.25]), st.booleans(),
    )  # fmt: skip
    found = draw(st.one_of(st.just([]), st.lists(gusts, max_size=4)))
    for agent in draw(st.lists(st.sampled_from(recipe.ids), unique=True, max_size=2)) if found else []:
        payload = {"agent": agent, "mode": draw(st.sampled_from(["vanish", "freeze"]))}
        lasts = draw(st.sampled_from([0.25, 1.0, 2.5])) * recipe.dt
        found.append(Disturbance(draw(times), "sensor_failure", payload, duration=lasts))
    return found


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_the_clock_is_the_plain_clock(data: st.DataObject) -> None:
    recipe = data.draw(worlds())
    if dt := data.draw(st.sampled_from([None, None, None, 1.2e7, 7.2e8])):  # beyond 2**53 ns, nearly 2**63
        recipe = replace(recipe, dt=dt, report_interval=dt * (recipe.report_interval or recipe.dt) / recipe.dt)
    wait = data.draw(st.sampled_from([None, None, None, recipe.dt / 100, recipe.dt / 2]))
    check_plain_clock(
        recipe if wait is None else replace(recipe, report_interval=None),
        data.draw(networks(recipe)),
        seed=data.draw(st.integers(0, 3)),
        wait=wait,
        t_end=data.draw(st.sampled_from([None, None, None, 2.0 * recipe.dt, 2.5 * recipe.dt])),
        disturbances=data.draw(disturbances(recipe)),
        looks=3 if recipe.dt < 1e6 else 1,  # a third of a longer step has nanoseconds that seconds do not show
    )


def test_a_run_is_over_once_its_end_has_passed_whether_anything_happens_then_or_not() -> None:
    env = FIELD.build()
    run = env.start_event_driven(FIELD.policies(env), t_end=2.5)
    run.until(2.7)
    assert run.state()["closed"]


@settings(max_examples=EXAMPLES // 2)
@given(st.data())
def test_without_a_trace_the_run_and_its_accounts_are_the_same(data: st.DataObject) -> None:
    recipe = data.draw(worlds())
    wait = data.draw(st.sampled_from([None, None, recipe.dt / 100, recipe.dt / 2]))
    check_untraced(
        recipe if wait is None else replace(recipe, report_interval=None),
        data.draw(networks(recipe)),
        seed=data.draw(st.integers(0, 3)),
        wait=wait,
        t_end=data.draw(st.sampled_from([None, None, 2.0 * recipe.dt, 2.5 * recipe.dt])),
        disturbances=data.draw(disturbances(recipe)),
    )


TELEMETRIC = Recipe(
    Node(
        "system",
        children=(
            Node("zone", protocol="vector", children=(Node("metered", value=1.0), Node("hand"))),
            Node("team", children=(Node("metered", at=3), Node("metered", value=-1.0), Node("unit"))),
            Node(
                "team", exchange="ring", when=True, children=(Node("talker"), Node("talker", value=0.5), Node("talker"))
            ),
        ),
    ),
    substeps=4,
    max_steps=6,
    observe_age=True,
    hooks="gusty",
    report_interval=0.5,
)
GUSTS = [
    Disturbance(1.5, "gust", {"what": "unit_7.Level.value", "by": 0.5}),
    Disturbance(2.0, "gust", {"what": "metered_2.Level.value", "by": -0.5}),
    Disturbance(2.25, "sensor_failure", {"agent": "metered_6", "mode": "vanish"}, duration=1.5),
]
AT_ONCE = ScheduleConfig(tick_interval=0.5)
"""No delay: what happens at one instant must happen in the law's order."""
STEADY = replace(ROUGH, reorder=False)
"""Messages queue behind each other, and some are lost."""
CASES = [
    ("no_versions_on_reports", ROUGH), ("shared_streams", ROUGH),
    ("a_late_reply_is_used", ROUGH), ("loss_moves_another_message", STEADY),
    ("a_raised_flag_stays_up", AT_ONCE), ("who_says_nothing_is_heard", AT_ONCE),
    ("telemetry_after_disturbances", AT_ONCE), ("running_sums_are_reported", ROUGH),
]  # fmt: skip


@pytest.mark.parametrize(("name", "schedule"), CASES, ids=[name for name, _ in CASES])
def test_a_planted_fault_makes_another_clock(name: str, schedule: ScheduleConfig) -> None:
    law = partial(check_plain_clock, TELEMETRIC, schedule, disturbances=GUSTS)
    require_caught((MUTANTS | CLOCK_MUTANTS)[name], law)


QUIET = replace(TELEMETRIC, substeps=1, report_interval=None)
SELDOM = ScheduleConfig(tick_interval=3.0, msg_delay=0.31)
"""Little happens between the legs of the cycle."""
UNTRACED = ["the_last_leg_is_not_counted", "legs_count_up_to_the_last_event"]


@pytest.mark.parametrize("name", UNTRACED)
def test_a_planted_fault_in_the_accounts_shows(name: str) -> None:
    check_untraced(QUIET, SELDOM, looks=20)
    with CLOCK_MUTANTS[name](), pytest.raises(AssertionError, match="without a trace"):
        check_untraced(QUIET, SELDOM, looks=20)
