"""One policy in one case, looked at closely: the day on both clocks, and a few control steps of the messages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from heron_env.errors import HeronError
from heron_env.lab.gap.conditions import SYNC, Condition
from heron_env.lab.gap.records import Item, run_episode
from heron_env.lab.one_day import DISTURBED_NAME, EVENT_NAME, RECORD, compare_day
from heron_env.lab.policies import Baseline, TrainedRun
from heron_env.lab.reports.document import Part, Picture
from heron_env.lab.reports.of_trace import trace_part
from heron_env.lab.time_figures import day_figure
from heron_env.lab.traces.recording import record_episode

if TYPE_CHECKING:
    from heron_env.core.policy import Policies
    from heron_env.envs.base import HeronEnv

STEPS = 6
"""Control steps that are recorded for the timeline; it shows some of them."""
WINDOW = 1.9, 4.3
"""What it shows, in control steps: after the first ones, where nothing is old yet."""
NOT_AGAIN = "Not drawn: an endpoint would be asked again, and may answer otherwise."


def case_part(item: Item, recorded: tuple[float, float]) -> Part:
    """The case on both clocks, run again; says why where it can't be run here.

    `recorded`: what the sweep has for it, synchronous and under the item's condition; no other course is shown.
    """
    title = "One case on both clocks"
    if item.live:
        return Part(title, [NOT_AGAIN])
    deployed = DISTURBED_NAME if item.condition.synchronous else EVENT_NAME
    try:
        env, sync = run_episode(replace(item, condition=SYNC), RECORD)
        _, late = run_episode(item, RECORD)
        day = compare_day(env, sync, late, deployed)
    except HeronError as error:
        return Part(title, [f"Not drawn: {error}"])
    found = day.sync_return, day.event_return
    if not np.allclose(found, recorded, rtol=1e-6):
        then, now = ("{:.2f} synchronous, {:.2f} ".format(*pair) + deployed for pair in (recorded, found))
        return Part(title, [f"Not drawn: run again it takes another course, return {now}; the sweep has {then}."])
    told = (
        f"{item.name}, {item.case}, {item.condition.words}: return of {day.return_of} {day.sync_return:.2f} "
        f"synchronous, {day.event_return:.2f} {deployed}"
    )
    picture = Picture(
        "one_case",
        day_figure(day.panels, told),
        "One case on both clocks, as the agents saw it: the one whose loss is nearest to the mean under this "
        "condition.",
        f"Time series. {told}. Panels: {', '.join(panel.title for panel in day.panels)}.",
    )
    return Part(title, [picture])


def messages_part(item: Item, about: str, condition: Condition) -> Part:
    """A few control steps of the item's case under this network instead of its own."""
    options = {**item.options, **item.case.options}
    if item.live:
        return Part("How an event-driven run works", [NOT_AGAIN])
    try:
        env = item.env.make(**options)
        episode = record_episode(
            item.env.id, _for_trace(item, env), seed=item.case.seed, t_end=STEPS * env.dt,
            schedule=condition.schedule(env), options=options,
        )  # fmt: skip
        return trace_part(episode, (WINDOW[0] * env.dt, WINDOW[1] * env.dt), about=about)
    except HeronError as error:
        return Part("How an event-driven run works", [f"Not drawn: {error}"])


def _for_trace(item: Item, env: HeronEnv) -> str | Policies:
    """By name where it has one: the record then says whose it is."""
    if isinstance(item.policy, Baseline):
        return item.policy.name
    if isinstance(item.policy, TrainedRun):
        return item.policy.folder
    return item.policy.build(env, item.case.seed)
