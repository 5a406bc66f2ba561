"""What happened in one episode: a case of a sweep on both clocks, run again, and messages on a timeline."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.core.quantity import unit_text
from heron_env.errors import HeronError
from heron_env.lab.black_boxes import BlackBox
from heron_env.lab.episodes import team_return
from heron_env.lab.figure_style import BLUE, GREEN, GREY, INK, PALE, VERMILION, blank, end_labels, house_style
from heron_env.lab.output import EARNS, Tile
from heron_env.lab.policies import Baseline, TrainedRun
from heron_env.lab.show.document import NOT_DRAWN, Picture, Section
from heron_env.lab.sweep.conditions import SYNC, Condition
from heron_env.lab.sweep.play import run_episode
from heron_env.lab.sweep.study import Item
from heron_env.lab.traces.episode import Episode
from heron_env.lab.traces.lanes import lanes
from heron_env.lab.traces.recording import record_episode
from heron_env.lab.traces.timeline import MOST_AGENTS, NS, draw, legible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from heron_env.core.policy import Policies
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.episodes import EpisodeResult
    from heron_env.pictures.course import PictureSeries

HOUR = 3600.0
SYNC_NAME, EVENT_NAME, DISTURBED_NAME = "synchronous", "event-driven", "with disturbances"
OF_A_DAY = ("rewards", "actions", "observations")
OWN_SERIES = 3
"""Columns shown of an environment that has no `picture_series`, of those that vary."""
SHOWN: Final = {"second copy": "duplicate"}


Series = tuple[list[float], list[float]]
"""Hours and values."""


def compared(env: HeronEnv, runs: Mapping[str, EpisodeResult]) -> list[Panel]:
    """What the environment's own picture shows, as far as its agents saw it; else the first own columns that vary.

    The runs, by name, recorded `OF_A_DAY`.
    """
    first = env.possible_agents[0]
    if isinstance(env, BlackBox):
        root = env.hierarchy.ids[0]
        return [Panel(f"Return of {root} so far", "", {clock: _so_far(run, root) for clock, run in runs.items()})]
    panels = [panel for series in env.picture_series() for panel in _panels_of(env, series, runs)]
    if panels:
        return panels
    layout, columns = env.simulation.model.layout, env.simulation.model.plan.views[env.hierarchy.index[first]].columns
    own = []
    for position, name in enumerate(env.observation_names(first)):
        lines = {clock: _column(run, first, position) for clock, run in runs.items()}
        words = layout.categories[columns[position]] if position < len(columns) else ()
        label = name.rpartition(".")[2] + unit_text(env.observation_units(first)[position], ", ")
        own.append(Panel(f"{name}, seen by {first}", label, lines, held=bool(words), words=words))
    return ([panel for panel in own if panel.varies] or own)[:OWN_SERIES]


def _so_far(run: EpisodeResult, agent: str) -> Series:
    """Hours, and what the agent has earned by then."""
    times, rewards = zip(*run.rewards[agent], strict=True)
    return [t / HOUR for t in times], np.cumsum(rewards).tolist()


def _panels_of(env: HeronEnv, series: PictureSeries, runs: Mapping[str, EpisodeResult]) -> Iterator[Panel]:
    """The panel of a series that the first deciding agent sees, and where the runs differ most."""
    first, parent = env.possible_agents[0], env.hierarchy.parent
    names = env.observation_names(first)
    if (column := _column_name(names, series.column)) is None:
        return
    near = [a for a in env.possible_agents if parent[env.hierarchy.index[a]] == parent[env.hierarchy.index[first]]]
    of = {a: env.observation_names(a) for a in (near if series.mean else [first])}
    places = {a: own.index(column) for a, own in of.items() if column in own}
    sync = runs[SYNC_NAME]
    lines = {name: _mean(run, places) for name, run in ({series.label: sync} if series.label else runs).items()}
    limit = _column_name(names, series.limit) if series.limit else None
    level = None if limit is None else _column(sync, first, names.index(limit))[1][0]
    yield Panel(series.title, series.unit, lines, limit=level, held=series.stepwise)
    if series.closer:
        window = _most_different(lines)
        yield Panel(series.closer, series.unit, lines, limit=level, held=series.stepwise, window=window)


def _most_different(lines: dict[str, Series], hours: float = 2.0) -> tuple[float, float]:
    """The window with the largest sum of absolute differences between the two lines, h; a quarter of a short case."""
    first, second = lines.values()
    t = np.asarray(first[0])
    hours = min(hours, float(t[-1] - t[0]) / 4.0)
    apart = np.concatenate([[0.0], np.cumsum(np.abs(np.asarray(first[1]) - _values_at(second, t)))])
    stop = np.searchsorted(t, t + hours)
    start = float(t[int(np.argmax(np.where(t + hours <= t[-1] + 1e-9, apart[stop] - apart[:-1], -1.0)))])
    return start, start + hours


def _values_at(series: Series, t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Its values at the times `[n]`: the latest there is, and the first one before that."""
    times, values = map(np.asarray, series)
    return np.asarray(values[np.maximum(np.searchsorted(times, t + 1e-9, side="right") - 1, 0)], dtype=np.float64)


def _column_name(names: Sequence[str], end: str) -> str | None:
    """The first name that ends with `end`, "Feature.field" or "field"."""
    return next((name for name in names if f".{name}".endswith(f".{end}")), None)


def _column(run: EpisodeResult, agent: str, column: int) -> Series:
    """Hours, and what the agent saw then."""
    observations = run.observations[agent]
    return [t / HOUR for t, _ in observations], [float(vector[column]) for _, vector in observations]


def _mean(run: EpisodeResult, columns: Mapping[str, int]) -> Series:
    """Over the agents, at the times of the first one: an observation that was lost leaves the one before."""
    series = [_column(run, agent, column) for agent, column in columns.items()]
    if len(series) == 1:
        return series[0]
    t = np.asarray(series[0][0])
    return t.tolist(), np.mean([_values_at(each, t) for each in series], axis=0).tolist()


STEPS = 6
"""Control steps that are recorded for the timeline; it shows some of them."""
WINDOW = 1.9, 4.3
"""What it shows, in control steps: after the first ones, where nothing is old yet."""
ONE_CASE, HOW_IT_WORKS = "One case on both clocks", "How an event-driven run works"
NOT_AGAIN = f"{NOT_DRAWN}: the endpoint would get the requests again, and its answers may differ."


def case_part(item: Item, recorded: tuple[float, float]) -> Section:
    """The case on both clocks, run again; says why where it can't be run here.

    `recorded`: what the sweep has for it, synchronous and under the item's condition; no other course is shown.
    """
    if item.live:
        return Section(ONE_CASE, [NOT_AGAIN])
    deployed = DISTURBED_NAME if item.condition.synchronous else EVENT_NAME
    try:
        env, sync = run_episode(replace(item, condition=SYNC), OF_A_DAY)
        _, late = run_episode(item, OF_A_DAY)
        panels, returns = (
            compared(env, {SYNC_NAME: sync, deployed: late}),
            (team_return(env, sync), team_return(env, late)),
        )
    except HeronError as error:
        return Section(ONE_CASE, [f"{NOT_DRAWN}: {error}"])
    now, then = ("{:.2f} synchronous, {:.2f} ".format(*pair) + deployed for pair in (returns, recorded))
    if not np.allclose(returns, recorded, rtol=1e-6):
        return Section(ONE_CASE, [f"{NOT_DRAWN}: the repeated run's return is {now}; in the sweep it is {then}."])
    text = f"{item.name}, {item.case}, {item.condition.words}: return of {env.hierarchy.ids[0]} {now}"
    picture = Picture(
        "one_case",
        day_figure(panels, text),
        "One case on both clocks, as observed by the agents: the case whose loss is nearest to the mean under this "
        "condition.",
        f"Time series. {text}. Panels: {', '.join(panel.title for panel in panels)}.",
    )
    return Section(ONE_CASE, [picture])


def messages_part(item: Item, about: str, condition: Condition) -> Section:
    """A few control steps of the item's case under this network instead of its own."""
    if item.live:
        return Section(HOW_IT_WORKS, [NOT_AGAIN])
    options = {**item.options, **item.case.options}
    try:
        env = item.env.make(**options)
        episode = record_episode(
            item.env.id, _for_trace(item, env), seed=item.case.seed, t_end=STEPS * env.dt,
            schedule=condition.schedule(env), options=options,
        )  # fmt: skip
        return trace_part(episode, (WINDOW[0] * env.dt, WINDOW[1] * env.dt), about=about)
    except HeronError as error:
        return Section(HOW_IT_WORKS, [f"{NOT_DRAWN}: {error}"])


def _for_trace(item: Item, env: HeronEnv) -> str | Policies:
    """By name where it has one: the record then says whose it is."""
    match item.policy:
        case Baseline(name) | TrainedRun(name):
            return name
    return item.policy.build(env, item.case.seed)


@dataclass(frozen=True)
class Panel:
    """One quantity over time, lines by name, in the colours of the clocks where they bear a clock's name."""

    title: str
    unit: str
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    """(time in h, value) by name."""
    limit: float | None = None
    """A level that should not be exceeded, in either direction."""
    held: bool = False
    """Is a value valid until the next one? Then it is drawn in steps."""
    window: tuple[float, float] | None = None
    """Only these hours; they are marked in the panel above."""
    words: Sequence[str] = ()
    """Categories that the values number."""

    @property
    def varies(self) -> bool:
        """Is it more than one value?"""
        return len({value for _, values in self.lines.values() for value in values}) > 1


OF_DAY: Final = 84
"""Letters of a line of the title."""
UNITS: Final = (("h", 1.0, 2.0), ("min", 60.0, 0.05), ("s", 3600.0, 0.0))
"""Of time: name, how many of it an hour has, and the shortest course in h that is drawn in it."""
CLOCKS: Final = {SYNC_NAME: (BLUE, 2.0), EVENT_NAME: (VERMILION, 1.0)}
"""Colour and width of a line: the thin one lies on the broad one, so that both are seen where they agree."""


def day_figure(panels: Sequence[Panel], title: str) -> Figure:
    """Quantities of the same day on both clocks, one below the other."""
    longest = max(max(t) for panel in panels for t, _ in panel.lines.values())
    unit, per_hour = next((name, factor) for name, factor, least in UNITS if longest >= least)
    with house_style():
        figure, axes = blank(1.7 * len(panels) + 0.9, rows=len(panels))
        for number, (panel, ax) in enumerate(zip(panels, axes, strict=True)):
            _draw_panel(ax, panel, per_hour)
            if panel.window is not None and number:
                start, end = panel.window
                axes[number - 1].axvspan(
                    start * per_hour, end * per_hour, color=PALE, alpha=0.6, linewidth=0, zorder=0.5
                )
        axes[-1].set_xlabel(f"virtual time, {unit}")
        figure.suptitle("\n".join(textwrap.wrap(title, OF_DAY)), x=0.01, ha="left", fontsize=10.0, color=GREY)
        return figure


def _draw_panel(ax: Axes, panel: Panel, per_hour: float) -> None:
    start, end = panel.window or (0.0, max(max(t) for t, _ in panel.lines.values()))
    labels, lowest = [], 0.0
    for name, (times, numbers) in panel.lines.items():
        t, values = np.asarray(times), np.asarray(numbers)
        inside = (t >= start) & (t <= end)
        t, values = t[inside], values[inside]
        colour, width = CLOCKS.get(name, (GREEN, 1.5))
        ax.plot(
            t * per_hour, values, color=colour, linewidth=width, drawstyle="steps-post" if panel.held else "default"
        )
        labels.append((float(values[-max(1, len(values) // 50) :].mean()), name, colour))
        lowest = min(lowest, float(values.min()))
    if panel.limit is not None:
        for level in (panel.limit, -panel.limit)[: 1 + (lowest < -0.6 * panel.limit)]:
            ax.axhline(level, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        labels.append((panel.limit, "limit", INK))
    ax.set_title(panel.title)
    ax.set_ylabel("" if panel.unit == "1" else panel.unit)
    if panel.words:
        ax.set_yticks(range(len(panel.words)), panel.words)
    ax.set_xlim(start * per_hour, end * per_hour)
    ax.margins(y=0.1)
    if panel.window is None and end > 20.0:
        ax.set_xticks(range(0, 25, 3))
    if panel.window is not None and per_hour == 1.0:
        ax.set_xticks(np.arange(np.ceil(2 * start), 2 * end + 0.01) / 2)
        ax.xaxis.set_major_formatter(lambda hour, _: f"{int(hour):02d}:{round(60 * (hour % 1)):02d}")
    end_labels(ax, labels, gap=0.17)


READING = (
    "Lines are messages, bars are waiting and acting. `heron trace` writes the whole episode, with every message and "
    "the age of information, for ui.perfetto.dev."
)


def trace_part(
    episode: Episode, window: tuple[float, float] | None = None, *, about: str = "", name: str = "timeline"
) -> Section:
    """`window` (s) of the episode, or as much as is legible; `about`: why this one is shown."""
    start, end = legible(episode, window)
    agents, last = len(episode.world.agents), episode.outcome.end_time
    some = f", and the first {MOST_AGENTS} of {agents} agents" if agents > MOST_AGENTS else ""
    counts = ", ".join(f"{count} {SHOWN.get(fate, fate)}" for fate, count in episode.counts.items())
    summary = f"It shows {start / NS:g} to {end / NS:g} s of {last:g} s{some}. Messages: {counts}."
    ages = [age.oldest for agent in episode.world.decides for age in episode.ages(agent) if start <= age.t <= end]
    oldest = f"The oldest value in an observation was {max(ages):.4g} s old when it arrived." if ages else ""
    words = " ".join(text for text in (about, READING, summary, oldest) if text)
    return Section(
        HOW_IT_WORKS,
        [Picture(name, draw(episode, window), words, f"Timeline of {', '.join(lanes(episode))}. {summary} {oldest}")],
    )


def episode_verdict(episode: Episode) -> list[Tile]:
    """What one recorded episode paid the root, what became of its messages, and how busy media were."""
    counts, root, setting = episode.counts, episode.world.agents[0], episode.setting
    media = episode.outcome.media
    fates = ", ".join(f"{count} {SHOWN.get(fate, fate)}" for fate, count in counts.items())
    about = f"{root} in one episode of {episode.outcome.end_time:g} s, seed {setting.seed}, by {setting.policy.name!r}"
    return [
        Tile(EARNS, f"{episode.returns[root]:.2f}", about),
        Tile("Messages", f"{sum(counts.values()):,}", fates),
        *(Tile(f"Medium {name}", f"{100.0 * use.busy:.0f} % busy", str(use)) for name, use in media.items()),
    ]


def episode_words(episode: Episode) -> str:
    """A sentence for the finding of a report."""
    system = episode.world.agents[0]
    return (
        f"One episode of {episode.outcome.end_time:g} s, seed {episode.setting.seed}, by "
        f"{episode.setting.policy.name or 'own policies'}: {system} is paid {episode.returns[system]:.2f}."
    )
