"""One case looked at closely: the same day on both clocks, and a few minutes of the event-driven run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env.core.policy import Policies
from heron_env.evaluation.benchmark import Case
from heron_env.evaluation.clocks import Clock
from heron_env.evaluation.episodes import team_return
from heron_env.evaluation.time_figures import Panel
from heron_env.scheduling.timing import ScheduleConfig

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.results import EpisodeResult

HOUR = 3600.0
SYNC_NAME, EVENT_NAME = "synchronous", "event-driven"
OWN_SERIES = 3
"""Columns shown of an environment whose quantities we do not know."""


@dataclass(frozen=True)
class ComparedDay:
    """What the figure of one day shows, and the team returns behind it."""

    panels: list[Panel]
    sync_return: float
    event_return: float


def compare_day(env: HeronEnv, policies: Policies, case: Case, clock: Clock) -> ComparedDay:
    """Run `case` on both clocks and take the series apart: as the deciding agents saw them."""
    record = ("rewards", "actions", "observations")
    sync = env.run_synchronous(policies, seed=case.seed, record=record)
    event = env.run_event_driven(policies, seed=case.seed, schedule=clock.applied_to(env.schedule), record=record)
    return ComparedDay(
        _panels(env, {SYNC_NAME: sync, EVENT_NAME: event}), team_return(env, sync), team_return(env, event)
    )


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
        closer = replace(shown, title="The two hours in which the clocks differ most", window=_most_different(lines))
        panels += [shown, closer]
    if price is not None:
        tariff = _column(runs[SYNC_NAME], first, names[first].index(price))
        panels.insert(min(1, len(panels)), Panel("Price", "EUR/kWh", {"tariff": tariff}, held=True))
    if panels:
        return panels
    return [
        Panel(f"{column} of {first}", "", {name: _column(run, first, position) for name, run in runs.items()})
        for position, column in enumerate(names[first][:OWN_SERIES])
    ]


def _most_different(lines: dict[str, tuple[list[float], list[float]]], hours: float = 2.0) -> tuple[float, float]:
    """The window with the largest sum of absolute differences between the two lines, h."""
    (times, a), (_, b) = lines.values()
    t = np.asarray(times)
    apart = np.concatenate([[0.0], np.cumsum(np.abs(np.asarray(a[: len(t)]) - np.asarray(b[: len(t)])))])
    stop = np.searchsorted(t, t + hours)
    start = float(t[int(np.argmax(np.where(t + hours <= t[-1] + 1e-9, apart[stop] - apart[:-1], -1.0)))])
    return start, start + hours


def _named(names: Sequence[str], end: str) -> str | None:
    return next((name for name in names if f".{name}".endswith(end)), None)


def _parent(env: HeronEnv, agent: str) -> str:
    parent = env.hierarchy.parent[env.hierarchy.index[agent]]
    return env.hierarchy.ids[max(parent, 0)]


def _column(run: EpisodeResult, agent: str, column: int) -> tuple[list[float], list[float]]:
    """Hours, and what the agent saw then."""
    seen = run.observations[agent]
    return [t / HOUR for t, _ in seen], [float(vector[column]) for _, vector in seen]


def _mean(run: EpisodeResult, agents: Sequence[str], columns: Sequence[int]) -> tuple[list[float], list[float]]:
    series = [_column(run, agent, column) for agent, column in zip(agents, columns, strict=True)]
    length = min(len(times) for times, _ in series)
    return series[0][0][:length], np.mean([values[:length] for _, values in series], axis=0).tolist()


@dataclass(frozen=True)
class Excerpt:
    """A few control steps of an event-driven run, with what is needed to draw it."""

    trace: Sequence[Any]
    ids: Sequence[str]
    lanes: list[str]
    start: float
    end: float
    schedule: ScheduleConfig


def excerpt(env: HeronEnv, policies: Policies, case: Case, steps: int = 3) -> Excerpt:
    """Trace the start of the case with delays on every leg, so that they can be seen: a picture, no measurement."""
    dt = env.dt
    schedule = ScheduleConfig(
        msg_delay=0.06 * dt, act_delay=0.4 * dt, jitter_type="lognormal", jitter_ratio=0.2, obs_delay=0.05 * dt
    )
    run = env.run_event_driven(policies, seed=case.seed, t_end=(steps + 3) * dt, schedule=schedule, trace=True)
    assert run.trace is not None
    first = env.possible_agents[0]
    parent = env.hierarchy.parent[env.hierarchy.index[first]]
    siblings = [env.hierarchy.ids[r] for r in env.hierarchy.children[parent]] if parent >= 0 else []
    lanes = list(dict.fromkeys(([env.hierarchy.ids[parent]] if parent >= 0 else []) + [first, *siblings[:3]]))
    start = 1.9 * dt
    return Excerpt(run.trace, env.hierarchy.ids, lanes, start, start + (steps - 0.6) * dt, schedule)
