"""One policy in one case, looked at closely: the day on both clocks, and a few control steps of the messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import HeronError
from heron_env.lab.episodes import team_return
from heron_env.lab.figures import Panel, day_figure
from heron_env.lab.gap.conditions import SYNC, Condition
from heron_env.lab.gap.records import Item, run_episode
from heron_env.lab.policies import Baseline, TrainedRun
from heron_env.lab.reports.document import Part, Picture
from heron_env.lab.reports.parts import trace_part
from heron_env.lab.traces.recording import record_episode

if TYPE_CHECKING:
    from heron_env.core.policy import Policies
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.episodes import EpisodeResult

HOUR = 3600.0
SYNC_NAME, EVENT_NAME, DISTURBED_NAME = "synchronous", "event-driven", "with disturbances"
RECORD = ("rewards", "actions", "observations")
OWN_SERIES = 3
"""Columns shown of an environment whose quantities we do not know."""


Series = tuple[list[float], list[float]]
"""Hours and values."""


@dataclass(frozen=True)
class ComparedDay:
    """What the figure of one day shows, and the returns of the root behind it."""

    panels: list[Panel]
    return_of: str
    sync_return: float
    event_return: float


def compare_day(env: HeronEnv, sync: EpisodeResult, event: EpisodeResult, name: str = EVENT_NAME) -> ComparedDay:
    """Take the series of two runs apart, which recorded `RECORD`: as the deciding agents saw them.

    `name` is what the second one is called.
    """
    panels, root = _panels(env, {SYNC_NAME: sync, name: event}), env.hierarchy.ids[0]
    return ComparedDay(panels, root, team_return(env, sync), team_return(env, event))


def _panels(env: HeronEnv, runs: dict[str, EpisodeResult]) -> list[Panel]:
    """Content of the batteries, power of the first zone against its limit, price; else the first own columns."""
    names = {agent: env.observation_names(agent) for agent in env.possible_agents}
    first = env.possible_agents[0]
    of_zone = [a for a in env.possible_agents if _parent(env, a) == _parent(env, first)]
    panels = []
    content = _named(names[first], ".soc")
    if content is not None and not content.startswith("global."):
        shared = [a for a in of_zone if content in names[a]]
        lines = {name: _mean(run, shared, [names[a].index(content) for a in shared]) for name, run in runs.items()}
        panels.append(Panel(f"Content of the batteries of {_parent(env, first)}, mean", "share", lines))
    power, limit, price = (_named(names[first], end) for end in (".Zone.power", ".Zone.limit", ".Tariff.price"))
    if power is not None:
        lines = {name: _column(run, first, names[first].index(power)) for name, run in runs.items()}
        level = None if limit is None else float(_column(runs[SYNC_NAME], first, names[first].index(limit))[1][0])
        shown = Panel(f"Power through the transformer of {_parent(env, first)}", "kW", lines, limit=level, held=True)
        closer = replace(shown, title="Where the clocks differ most", window=_most_different(lines))
        panels += [shown, closer]
    if price is not None:
        tariff = _column(runs[SYNC_NAME], first, names[first].index(price))
        panels.insert(min(1, len(panels)), Panel("Price", "EUR/kWh", {"tariff": tariff}, held=True))
    if panels:
        return panels
    own = list(zip(names[first], env.observation_units(first), strict=True))[:OWN_SERIES]
    return [
        Panel(f"{column}, seen by {first}", unit, {name: _column(run, first, position) for name, run in runs.items()})
        for position, (column, unit) in enumerate(own)
    ]


def _most_different(lines: dict[str, Series], hours: float = 2.0) -> tuple[float, float]:
    """The window with the largest sum of absolute differences between the two lines, h; a quarter of a short case."""
    first, second = lines.values()
    t = np.asarray(first[0])
    hours = min(hours, float(t[-1] - t[0]) / 4.0)
    apart = np.concatenate([[0.0], np.cumsum(np.abs(np.asarray(first[1]) - _held(second, t)))])
    stop = np.searchsorted(t, t + hours)
    start = float(t[int(np.argmax(np.where(t + hours <= t[-1] + 1e-9, apart[stop] - apart[:-1], -1.0)))])
    return start, start + hours


def _held(series: Series, t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Its values at the times `[n]`: the latest there is, and the first one before that."""
    times, values = map(np.asarray, series)
    return np.asarray(values[np.maximum(np.searchsorted(times, t + 1e-9, side="right") - 1, 0)], dtype=np.float64)


def _named(names: Sequence[str], end: str) -> str | None:
    return next((name for name in names if f".{name}".endswith(end)), None)


def _parent(env: HeronEnv, agent: str) -> str:
    parent = env.hierarchy.parent[env.hierarchy.index[agent]]
    return env.hierarchy.ids[max(parent, 0)]


def _column(run: EpisodeResult, agent: str, column: int) -> Series:
    """Hours, and what the agent saw then."""
    seen = run.observations[agent]
    return [t / HOUR for t, _ in seen], [float(vector[column]) for _, vector in seen]


def _mean(run: EpisodeResult, agents: Sequence[str], columns: Sequence[int]) -> Series:
    """Over the agents, at the times of the first one: an observation that was lost leaves the one before."""
    series = [_column(run, agent, column) for agent, column in zip(agents, columns, strict=True)]
    t = np.asarray(series[0][0])
    return t.tolist(), np.mean([_held(each, t) for each in series], axis=0).tolist()


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
