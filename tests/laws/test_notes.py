"""T18: the note on requests that outrun reports is what looking at each tick and each report would say."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws.test_plain_clock import networks, worlds

from heron_env.envs.event.notes import notes

OUTRUN = re.compile(r"requests reach the proxy before the report of '(.*)' .* up to (.*) s old \((.*)\)")
SETTLED = 40
"""Steps after which as many reports as ever are under way, whatever the delays drawn here."""


@given(st.data())
def test_a_request_that_outruns_a_report_is_noted(data: st.DataObject) -> None:
    recipe = data.draw(worlds())
    env = recipe.build(data.draw(networks(recipe)))
    for rank in env.simulation.possible:
        noted = [
            OUTRUN.match(note) for note in notes(env.simulation, env.timings, env.dt_ns, [rank], reports=env.reports)
        ]
        told = {match[1]: float(match[2]) for match in noted if match}
        ages = outrun(env, rank)
        oldest = {row: pytest.approx(max(ages.values()), abs=1e-8) for row in told if row in ages}
        assert told == oldest, env.hierarchy.ids[rank]
        assert bool(told) == bool(ages), env.hierarchy.ids[rank]


@given(st.data())
def test_a_report_that_comes_too_late_for_its_tick_is_noted(data: st.DataObject) -> None:
    recipe = data.draw(worlds())
    env = recipe.build(data.draw(networks(recipe)))
    for rank in env.simulation.possible if env.reports == 1 else ():
        found = notes(env.simulation, env.timings, env.dt_ns, [rank], reports=env.reports)
        assert any("reports are sent once a step" in note for note in found) == misses(env, rank)


def misses(env: Any, rank: int) -> bool:
    """Is there a tick at which the agent does not see some row as it is at the end of the last step?"""
    timings, own = env.timings, env.timings[rank]
    links = [max(timing.msg, timing.min_delay) for timing in (*timings, timings[0])]
    clock = timings[topmost(env, rank)]
    ticks = [clock.phase + number * clock.tick for number in range(200)]
    rows = [row for row in env.simulation.plan.views[rank].sources.tolist() if row != rank or not own.local]
    return any(
        tick // env.dt_ns * env.dt_ns + 2 * timings[0].msg + links[row] > tick + links[rank]
        for tick in ticks
        for row in rows
    )


def outrun(env: Any, rank: int) -> dict[str, float]:
    """Whose reports are overtaken, and how old what is seen of each is at worst when the agent decides, s."""
    timings, own = env.timings, env.timings[rank]
    links = [max(timing.msg, timing.min_delay) for timing in (*timings, timings[0])]
    late = 0 if env.reports > 1 else 2 * timings[0].msg
    clock = timings[topmost(env, rank)]
    ages: dict[str, int] = {}
    for row in env.simulation.plan.views[rank].sources.tolist():
        for number in range(200) if row != rank or not own.local else ():
            tick = clock.phase + number * clock.tick
            newest = tick * env.reports // env.dt_ns + 1
            while instant(env, newest) + late > tick:
                newest -= 1
            known, request = newest, tick + links[rank]
            while instant(env, known) + late + links[row] > request:
                known -= 1
            if known < newest and tick >= SETTLED * env.dt_ns:
                age = request + max(own.obs, own.min_delay) + links[rank] - instant(env, known)
                owner = env.simulation.layout.rows[row].owner_id
                ages[owner] = max(age, ages.get(owner, 0))
    return {owner: age / 1e9 for owner, age in ages.items()}


def instant(env: Any, number: int) -> int:
    """The time that report `number` tells of, ns."""
    return int(env.dt_ns * number // env.reports)


def topmost(env: Any, rank: int) -> int:
    """Whose ticks count."""
    return topmost(env, env.hierarchy.parent[rank]) if env.simulation.commanded[rank] else rank
