"""One case looked at closely: the same day on both clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heron_env.lab.episodes import team_return
from heron_env.lab.time_figures import Panel

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.results import EpisodeResult

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
