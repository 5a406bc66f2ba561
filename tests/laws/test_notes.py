"""T18: the note on requests that outrun reports is what looking at each tick and each report would say."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from laws.test_plain_clock import networks, worlds

from heron_env.envs.event.notes import notes

OUTRUN = re.compile(r"requests come to the proxy before the report of '(.*)' .* up to (.*) s old \((.*)\)")
SETTLED = 40
"""Steps after which as many reports as ever are under way, whatever the delays drawn here."""


@given(st.data())
def test_a_request_that_outruns_a_report_is_noted(data: st.DataObject) -> None:
    recipe = data.draw(worlds())
    env = recipe.build(data.draw(networks(recipe)))
    for rank in env.simulation.possible:
        noted = [OUTRUN.match(note) for note in notes(env, env.timings, env.dt_ns, [rank])]
        told = [(match[1], float(match[2])) for match in noted if match]
        assert told == outrun(env, rank), env.hierarchy.ids[rank]


def outrun(env: Any, rank: int) -> list[tuple[str, float]]:
    """Whose report is overtaken, and how old the worst is when the agent decides, s; the first of equals."""
    timings, own = env.timings, env.timings[rank]
    links = [max(timing.msg, timing.min_delay) for timing in (*timings, timings[0])]
    interval, late = env.dt_ns // env.reports, 0 if env.reports > 1 else 2 * timings[0].msg
    clock = timings[topmost(env, rank)]
    ages: dict[str, int] = {}
    for row in env.simulation.plan.views[rank].sources.tolist():
        for number in range(400) if row != rank or not own.local else ():
            tick = clock.phase + number * clock.tick
            newest = (tick - late) // interval
            request, known = tick + links[rank], newest
            while known * interval + late + links[row] > request:
                known -= 1
            if known < newest and tick >= SETTLED * env.dt_ns:
                age = request + max(own.obs, own.min_delay) + links[rank] - known * interval
                owner = env.simulation.layout.rows[row].owner_id
                ages[owner] = max(age, ages.get(owner, 0))
    worst = max(ages, key=ages.__getitem__, default=None)
    return [] if worst is None else [(worst, ages[worst] / 1e9)]


def topmost(env: Any, rank: int) -> int:
    """Whose ticks count."""
    return topmost(env, env.hierarchy.parent[rank]) if env.simulation.commanded[rank] else rank
