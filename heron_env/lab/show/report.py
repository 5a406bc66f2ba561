"""Whole reports: of what `heron sweep`, `heron margin`, `heron train` and `heron trace` left behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.quantity import unit_text
from heron_env.errors import ConfigError, HeronError
from heron_env.files.reading import is_file
from heron_env.given import mapping, require_type
from heron_env.lab.black_boxes import BlackBox
from heron_env.lab.episodes import team_return
from heron_env.lab.output import Tile
from heron_env.lab.policies import Baseline, TrainedRun
from heron_env.lab.runs import RunFolder, versions
from heron_env.lab.show.curves import pooled_part
from heron_env.lab.show.document import Listing, Picture, Report, Section
from heron_env.lab.show.figures import Panel, day_figure
from heron_env.lab.show.parts import (
    EVERY_SWEEP,
    HIERARCHY,
    causes_part,
    environment_part,
    gap_part,
    held_out_words,
    look_at,
    subject,
    sweep_facts,
    sweep_notes,
    trace_part,
    training_facts,
    training_part,
    widest,
)
from heron_env.lab.show.profile import algorithms_part
from heron_env.lab.show.tolerance import margin_part, margin_tile
from heron_env.lab.show.verdict import episode_verdict, sweep_verdict, training_verdict
from heron_env.lab.sweep.conditions import SYNC, Condition
from heron_env.lab.sweep.margin import FILE, Margin, read_margin
from heron_env.lab.sweep.play import run_episode
from heron_env.lab.sweep.presets import realistic
from heron_env.lab.sweep.records import SETTINGS
from heron_env.lab.sweep.study import Item
from heron_env.lab.sweep.sweep import SweepResult, read_sweep
from heron_env.lab.sweep.words import costliest, finding, reasons
from heron_env.lab.traces import file as trace_file
from heron_env.lab.traces.episode import Episode
from heron_env.lab.traces.recording import record_episode
from heron_env.lab.traces.replaying import RECORD
from heron_env.registry import LIBRARIES, EnvironmentSpec, spec
from heron_env.trust import on_behalf_of

if TYPE_CHECKING:
    from heron_env.core.policy import Policies
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.episodes import EpisodeResult
    from heron_env.pictures.course import PictureSeries

HOUR = 3600.0
SYNC_NAME, EVENT_NAME, DISTURBED_NAME = "synchronous", "event-driven", "with disturbances"
OF_A_DAY = ("rewards", "actions", "observations")
OWN_SERIES = 3
"""Columns shown of an environment that has no `picture_series`, of those that vary."""


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
    """Take the series of two runs apart, which recorded `OF_A_DAY`: as the deciding agents saw them.

    `name` is what the second one is called.
    """
    panels, root = _panels(env, {SYNC_NAME: sync, name: event}), env.hierarchy.ids[0]
    return ComparedDay(panels, root, team_return(env, sync), team_return(env, event))


def _panels(env: HeronEnv, runs: dict[str, EpisodeResult]) -> list[Panel]:
    """What the environment's own picture shows, as far as it is seen; else the first own columns that vary."""
    first = env.possible_agents[0]
    if isinstance(env, BlackBox):
        root = env.hierarchy.ids[0]
        return [Panel(f"Return of {root} so far", "", {clock: _so_far(run, root) for clock, run in runs.items()})]
    panels = [panel for series in env.picture_series() for panel in _panels_of(env, series, runs)]
    if panels:
        return panels
    layout, columns = env.simulation.layout, env.simulation.plan.views[env.hierarchy.index[first]].columns
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


def _panels_of(env: HeronEnv, series: PictureSeries, runs: dict[str, EpisodeResult]) -> Iterator[Panel]:
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
    seen = run.observations[agent]
    return [t / HOUR for t, _ in seen], [float(vector[column]) for _, vector in seen]


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
NOT_DRAWN = "Not drawn"
"""How the text of a part begins that is missing."""
NOT_AGAIN = f"{NOT_DRAWN}: the endpoint would get the requests again, and its answers may differ."


def case_part(item: Item, recorded: tuple[float, float]) -> Section:
    """The case on both clocks, run again; says why where it can't be run here.

    `recorded`: what the sweep has for it, synchronous and under the item's condition; no other course is shown.
    """
    title = "One case on both clocks"
    if item.live:
        return Section(title, [NOT_AGAIN])
    deployed = DISTURBED_NAME if item.condition.synchronous else EVENT_NAME
    try:
        env, sync = run_episode(replace(item, condition=SYNC), OF_A_DAY)
        _, late = run_episode(item, OF_A_DAY)
        day = compare_day(env, sync, late, deployed)
    except HeronError as error:
        return Section(title, [f"{NOT_DRAWN}: {error}"])
    returns = day.sync_return, day.event_return
    if not np.allclose(returns, recorded, rtol=1e-6):
        then, now = ("{:.2f} synchronous, {:.2f} ".format(*pair) + deployed for pair in (recorded, returns))
        return Section(title, [f"{NOT_DRAWN}: the repeated run's return is {now}; in the sweep it is {then}."])
    text = (
        f"{item.name}, {item.case}, {item.condition.words}: return of {day.return_of} {day.sync_return:.2f} "
        f"synchronous, {day.event_return:.2f} {deployed}"
    )
    picture = Picture(
        "one_case",
        day_figure(day.panels, text),
        "One case on both clocks, as observed by the agents: the case whose loss is nearest to the mean under this "
        "condition.",
        f"Time series. {text}. Panels: {', '.join(panel.title for panel in day.panels)}.",
    )
    return Section(title, [picture])


def messages_part(item: Item, about: str, condition: Condition) -> Section:
    """A few control steps of the item's case under this network instead of its own."""
    options = {**item.options, **item.case.options}
    if item.live:
        return Section("How an event-driven run works", [NOT_AGAIN])
    try:
        env = item.env.make(**options)
        episode = record_episode(
            item.env.id, _for_trace(item, env), seed=item.case.seed, t_end=STEPS * env.dt,
            schedule=condition.schedule(env), options=options,
        )  # fmt: skip
        return trace_part(episode, (WINDOW[0] * env.dt, WINDOW[1] * env.dt), about=about)
    except HeronError as error:
        return Section("How an event-driven run works", [f"{NOT_DRAWN}: {error}"])


def _for_trace(item: Item, env: HeronEnv) -> str | Policies:
    """By name where it has one: the record then says whose it is."""
    if isinstance(item.policy, Baseline):
        return item.policy.name
    if isinstance(item.policy, TrainedRun):
        return item.policy.folder
    return item.policy.build(env, item.case.seed)


HOW = "How it was done"
ALIKE = {
    "env_options", "training_options", "algorithm", "trainer", "training_delays", "schedule", "base", "critic",
    "hyperparameters", "start_from",
}  # fmt: skip
"""What runs of several seeds have in common."""


@dataclass(frozen=True)
class Sources:
    """What a report is about; at least one of them, all of one environment."""

    sweeps: Sequence[SweepResult] = ()
    runs: Sequence[RunFolder] = ()
    traces: Sequence[Episode] = ()
    margins: Sequence[Margin] = ()


def read_sources(paths: Sequence[str | Path]) -> Sources:
    """Read folders of sweeps, of margins, of trainings, and of traces (or their files).

    Raises RunFolderError, TraceError for damaged ones, ConfigError for anything else, or more than one environment.
    """
    sweeps, runs, traces, margins = list[SweepResult](), list[RunFolder](), list[Episode](), list[Margin]()
    for path in map(Path, paths):
        if is_file(path / SETTINGS):
            sweeps.append(read_sweep(path))
        elif is_file(path / "config.json"):
            runs.append(RunFolder.open(path))
        elif is_file(path / FILE):
            margins.append(read_margin(path))
        elif is_file(path) or any(is_file(path / f"{trace_file.NAME}{end}") for end in ("", ".gz")):
            traces.append(trace_file.read(path))
        else:
            raise ConfigError(
                f"{path}: neither a folder of `heron sweep`, nor of `heron margin`, `heron train` or `heron trace`; a "
                "report needs the output of one of these"
            )
    sources = Sources(sweeps, runs, traces, margins)
    _environment(sources)
    return sources


def report_of(sources: Sources, *, title: str | None = None, facts: Mapping[str, str] | None = None) -> Report:
    """The verdict first, then the finding in words, causes, one case, its messages, the training, the environment.

    Args:
        sources: sweeps, run folders, recorded episodes and margins of one environment.
        title: instead of a general one.
        facts: more about how it was done, by name.

    Returns:
        What `write_report` writes.

    Raises:
        ConfigError: there is no source, or they are of several environments.

    Example: `write_report("report", report_of(Sources(sweeps=[read_sweep("runs/sweep")])))`.
    """
    require_type(f"report_of(title={title!r:.60})", title, (str, type(None)), "a text, or None")
    env, options = _environment(sources)
    parts, words, notes = list[Section](), list[str](), list[Listing]()
    known, (about, folders) = dict(EVERY_SWEEP) if sources.sweeps else {}, _names(sources)
    for number, result in enumerate(sources.sweeps):
        suffix = "" if len(sources.sweeps) == 1 else f": {about[number]}"
        parts += _sweep_sections(result, number, suffix)
        new = set(result.policies) - {policy for before in sources.sweeps[:number] for policy in before.policies}
        words += [sentence for sentence in (finding(result) if new else reasons(result)) if sentence not in words]
        known |= {f"{name}{suffix}": text for name, text in sweep_facts(result).items()}
        notes += sweep_notes(result)
    if sources.sweeps:
        parts += _closely(sources.sweeps, with_messages=not sources.traces)
    for number, episode in enumerate(sources.traces):
        parts.append(trace_part(episode, name=f"timeline{number + 1 if number else ''}"))
        words += [] if sources.sweeps else [_episode_words(episode)]
    parts += [*_tolerated(sources.margins), *_learning(sources.runs)]
    for number, run in enumerate(sources.runs):
        known |= {f"{name}, {folders[number]}": text for name, text in training_facts(run).items()}
        words += [] if sources.sweeps else [training_facts(run)["Validation"]]
    if sources.sweeps and (more := held_out_words(env, options)):
        known["Held out"] = f"{EVERY_SWEEP['Held out']} {more}"
    known |= {**mapping({} if facts is None else facts, "report_of(facts)"), "Versions": _versions(sources)}
    parts += [_hierarchy(sources, env, options), Section(HOW, [known, *notes])]
    what = "return under the network" if sources.sweeps or sources.margins else "what was recorded"
    return Report(
        title or f"{env.id}: {what}", [*words, *(f"{one}." for one in sources.margins)], parts, _verdict(sources)
    )


def _tolerated(margins: Sequence[Margin]) -> list[Section]:
    """A part for each."""
    return [margin_part(found, f"margin{number + 1 if number else ''}") for number, found in enumerate(margins)]


def _learning(runs: Sequence[RunFolder]) -> Iterator[Section]:
    """How each of them was trained; seeds of one training together."""
    for number, pool in enumerate(_pools(runs)):
        name = f"learning{number + 1 if number else ''}"
        yield training_part(pool[0], name) if len(pool) == 1 else pooled_part(pool, name)


def _pools(runs: Sequence[RunFolder]) -> list[list[RunFolder]]:
    """Runs that differ in their seeds alone, and have one curve each, together."""
    pools = dict[str, list[RunFolder]]()
    for number, run in enumerate(runs):
        alike = run.config.model_dump_json(include=ALIKE)
        several = len(run.config.groups) > 1 or not run.config.validation
        pools.setdefault(f"{number}" if several else alike, []).append(run)
    return [*pools.values()]


def _verdict(sources: Sources) -> list[Tile]:
    """Of the first sweep; where there is none, of the first episode, or else of the first training; of all margins."""
    tolerated = [margin_tile(found) for found in sources.margins]
    if sources.sweeps:
        return sweep_verdict(sources.sweeps[0]) + tolerated
    if sources.traces:
        return episode_verdict(sources.traces[0]) + tolerated
    return (training_verdict(sources.runs[0]) if sources.runs else []) + tolerated


def _sweep_sections(result: SweepResult, number: int, suffix: str) -> list[Section]:
    """Return under the network, and causes of the gap; `suffix`: of the titles."""
    prefix = "" if not number else f"sweep{number + 1}-"
    sections = [algorithms_part(result, prefix), gap_part(result, prefix), causes_part(result, prefix)]
    return [Section(part.title + suffix, part.blocks) for part in sections if part is not None]


def _versions(sources: Sources) -> str:
    """Of the program that writes the page, and of those that made what it shows, where they are others."""
    now = versions()
    made = [
        *(result.made_by for result in sources.sweeps),
        *(of.get("heron_env", "unknown") for of in (run.config.versions for run in sources.runs)),
        *(of.get("heron_env", "unknown") for of in (episode.setting.versions for episode in sources.traces)),
    ]
    others = [version for version in dict.fromkeys(made) if version != now["heron_env"]]
    text = ", ".join(f"{name} {version}" for name, version in now.items())
    return f"{text}; parts of this page were made by heron_env {', '.join(others)}" if others else text


def _names(sources: Sources) -> tuple[list[str], list[str]]:
    """Of each sweep and of each run: short, and longer where two are called the same."""

    def apart(short: list[str], long: list[str]) -> list[str]:
        return [more if short.count(name) > 1 else name for name, more in zip(short, long, strict=True)]

    about, runs = [subject(result) for result in sources.sweeps], [run.path for run in sources.runs]
    policies = [", ".join(map(repr, result.policies)) for result in sources.sweeps]
    longer = [f"{what} ({k + 1}: {names})" for k, (what, names) in enumerate(zip(about, policies, strict=True))]
    return apart(about, longer), apart([path.name for path in runs], [str(path) for path in runs])


def _environment(sources: Sources) -> tuple[EnvironmentSpec, dict[str, Any]]:
    """What it is, and its options; the sweep's, if there is one. Raises ConfigError for none, or for several ids."""
    candidates: list[tuple[EnvironmentSpec, dict[str, Any]]] = [
        *((result.sweep.env, dict(result.sweep.options)) for result in sources.sweeps),
        *((spec(episode.setting.env_id, RECORD), dict(episode.setting.options)) for episode in sources.traces),
        *((run.spec, dict(run.config.env_options)) for run in sources.runs),
        *((spec(found.env, FILE), dict(found.options)) for found in sources.margins),
    ]
    ids = list(dict.fromkeys(env.id for env, _ in candidates))
    if len(ids) != 1:
        raise ConfigError(f"a report is about one environment, these are of {ids or 'none'}; make one for each")
    return candidates[0]


def _closely(sweeps: Sequence[SweepResult], with_messages: bool) -> list[Section]:
    """The costliest condition of the first policy; messages where most is wrong, or else where they can be seen."""
    first = sweeps[0]
    point = costliest(first, first.policies[0])
    if point is None:
        return []
    look, condition = look_at(first, point), widest(sweeps)
    about = f"A few control steps under {condition.words}."
    if not condition.msg_delay:
        condition = realistic(first.sweep.dt)
        if first.sweep.env.id.partition(":")[0] in LIBRARIES:
            condition = replace(condition, noise=0.0)
        about = (
            f"A few control steps, with a delay on every message and action to make them visible: {condition.words}."
        )
    messages = [messages_part(look, about, condition)] if with_messages else []
    recorded = first.point(point.policy).by_run[0][look.number], point.by_run[0][look.number]
    return [case_part(look, recorded), *messages]


def _hierarchy(sources: Sources, env: EnvironmentSpec, options: dict[str, Any]) -> Section:
    """Says so where files name an environment, or in its options a policy, that is not trusted."""
    if env.id.partition(":")[0] in LIBRARIES:
        return Section(HIERARCHY, ["A black box: it has no hierarchy, and nothing in it can be looked at."])
    try:
        env.require_trust()
        with on_behalf_of(env.named_by):
            if not sources.sweeps:
                return environment_part(env.id, options)
            condition = widest(sources.sweeps)
            return environment_part(env.id, options, condition.schedule, f"under {condition.words}")
    except ConfigError as error:  # nobody vouched for it, it can't be built, or it is a black box
        return Section(HIERARCHY, [f"{NOT_DRAWN}: {error}"])


def _episode_words(episode: Episode) -> str:
    system = episode.world.agents[0]
    return (
        f"One episode of {episode.outcome.end_time:g} s, seed {episode.setting.seed}, by "
        f"{episode.setting.policy.name or 'own policies'}: {system} is paid {episode.returns[system]:.2f}."
    )
