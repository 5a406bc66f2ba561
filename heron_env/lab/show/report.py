"""Whole reports: of what `heron sweep`, `heron margin`, `heron train` and `heron trace` left behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heron_env.errors import ConfigError
from heron_env.files.reading import is_file
from heron_env.given import mapping, require_type
from heron_env.lab.output import Tile
from heron_env.lab.runs import RunFolder, versions
from heron_env.lab.show import courses, sweeps, tolerance, training, tree
from heron_env.lab.show.document import NOT_DRAWN, Report, Section
from heron_env.lab.sweep.margin import FILE, Margin, read_margin
from heron_env.lab.sweep.presets import realistic
from heron_env.lab.sweep.records import SETTINGS
from heron_env.lab.sweep.sentences import costliest, finding, reasons
from heron_env.lab.sweep.summary import summary
from heron_env.lab.sweep.sweep import SweepResult, read_sweep
from heron_env.lab.traces import file as trace_file
from heron_env.lab.traces.episode import Episode
from heron_env.lab.traces.replaying import RECORD
from heron_env.registry import LIBRARIES, EnvironmentSpec, spec
from heron_env.trust import on_behalf_of

HOW = "How it was done"
ALIKE = {
    "env_options", "training_options", "algorithm", "trainer", "training_delays", "schedule", "base", "critic",
    "hyperparameters", "start_from",
}  # fmt: skip
"""What runs of several seeds have in common."""


@dataclass(frozen=True)
class Sources:
    """Content of a report: at least one of these, all of one environment."""

    sweeps: Sequence[SweepResult] = ()
    runs: Sequence[RunFolder] = ()
    traces: Sequence[Episode] = ()
    margins: Sequence[Margin] = ()


def read_sources(paths: Sequence[str | Path]) -> Sources:
    """Read folders of sweeps, of margins, of trainings, and of traces (or their files).

    Raises RunFolderError, TraceError for damaged ones, ConfigError for anything else, or more than one environment.
    """
    swept, runs, traces, margins = list[SweepResult](), list[RunFolder](), list[Episode](), list[Margin]()
    for path in map(Path, paths):
        if is_file(path / SETTINGS):
            swept.append(read_sweep(path))
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
    sources = Sources(swept, runs, traces, margins)
    _environment(sources)
    return sources


def report_of(sources: Sources, *, title: str | None = None, facts: Mapping[str, str] | None = None) -> Report:
    """Make a report: finding, verdict, causes, one case, its messages, the training, the environment.

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
    parts, words, notes = list[Section](), list[str](), list[list[str]]()
    details, (about, folders) = dict(sweeps.EVERY_SWEEP) if sources.sweeps else {}, _names(sources)
    for number, result in enumerate(sources.sweeps):
        suffix = "" if len(sources.sweeps) == 1 else f": {about[number]}"
        parts += _sweep_sections(result, number, suffix)
        new = set(result.policies) - {policy for before in sources.sweeps[:number] for policy in before.policies}
        words += [sentence for sentence in (finding(result) if new else reasons(result)) if sentence not in words]
        details |= {f"{name}{suffix}": text for name, text in sweeps.sweep_facts(result).items()}
        notes += filter(None, [sweeps.sweep_notes(result)])
    if sources.sweeps:
        parts += _closely(sources.sweeps, with_messages=not sources.traces)
    for number, episode in enumerate(sources.traces):
        parts.append(courses.trace_part(episode, name=_numbered("timeline", number)))
        words += [] if sources.sweeps else [courses.episode_words(episode)]
    parts += [tolerance.margin_part(one, _numbered("margin", number)) for number, one in enumerate(sources.margins)]
    parts += _learning(sources.runs)
    for number, run in enumerate(sources.runs):
        details |= {f"{name}, {folders[number]}": text for name, text in training.training_facts(run).items()}
        words += [] if sources.sweeps else [training.training_facts(run)["Validation"]]
    if sources.sweeps and (more := sweeps.held_out_words(env, options)):
        details["Held out"] = f"{sweeps.EVERY_SWEEP['Held out']} {more}"
    details |= {**mapping({} if facts is None else facts, "report_of(facts)"), "Versions": _versions(sources)}
    parts += [_hierarchy(sources, env, options), Section(HOW, [details, *notes])]
    what = "return under the network" if sources.sweeps or sources.margins else "what was recorded"
    margins = [f"{one}." for one in sources.margins]
    short = [*summary(sources.sweeps), *margins][:3] if sources.sweeps else []
    title, seeds = title or f"{env.id}: {what}", [str(run.config.seed) for run in sources.runs]
    seeds_text = f"Training seed{'s' * (len(seeds) > 1)} {', '.join(seeds)}." if seeds else ""
    return Report(title, [*words, *margins], parts, _verdict(sources), short, seeds_text)


def _numbered(name: str, number: int) -> str:
    """`timeline`, `timeline2`: of the files of a figure."""
    return f"{name}{number + 1}" if number else name


def _learning(runs: Sequence[RunFolder]) -> Iterator[Section]:
    """How each was trained; runs that differ in their seeds alone together."""
    pools = dict[str, list[RunFolder]]()
    for number, run in enumerate(runs):
        several = len(run.config.groups) > 1 or not run.config.validation  # no curve, or more than one
        pools.setdefault(str(number) if several else run.config.model_dump_json(include=ALIKE), []).append(run)
    for number, pool in enumerate(pools.values()):
        name = _numbered("learning", number)
        yield training.training_part(pool[0], name) if len(pool) == 1 else training.pooled_part(pool, name)


def _verdict(sources: Sources) -> list[Tile]:
    """Of the first sweep; where there is none, of the first episode, or else of the first training; of all margins."""
    first: list[Tile] = []
    if sources.sweeps:
        first = sweeps.sweep_verdict(sources.sweeps[0])
    elif sources.traces:
        first = courses.episode_verdict(sources.traces[0])
    elif sources.runs:
        first = training.training_verdict(sources.runs[0])
    return first + [tolerance.margin_tile(one) for one in sources.margins]


def _sweep_sections(result: SweepResult, number: int, suffix: str) -> list[Section]:
    """Return under the network, and causes of the gap; `suffix`: of the titles."""
    prefix = "" if not number else f"sweep{number + 1}-"
    sections = [
        sweeps.algorithms_part(result, prefix),
        sweeps.gap_part(result, prefix),
        sweeps.causes_part(result, prefix),
    ]
    return [Section(part.title + suffix, part.blocks) for part in sections if part is not None]


def _versions(sources: Sources) -> str:
    """Of the program that writes the page, and of those that made what it shows, where they are others."""
    now = versions()
    recorded = [run.config.versions for run in sources.runs] + [episode.setting.versions for episode in sources.traces]
    made = [result.made_by for result in sources.sweeps] + [of.get("heron_env", "unknown") for of in recorded]
    others = [version for version in dict.fromkeys(made) if version != now["heron_env"]]
    text = ", ".join(f"{name} {version}" for name, version in now.items())
    return f"{text}; parts of this page were made by heron_env {', '.join(others)}" if others else text


def _names(sources: Sources) -> tuple[list[str], list[str]]:
    """Of each sweep and of each run: short, and longer where two are called the same."""

    def apart(short: list[str], long: list[str]) -> list[str]:
        return [more if short.count(name) > 1 else name for name, more in zip(short, long, strict=True)]

    about, runs = [sweeps.subject(result) for result in sources.sweeps], [run.path for run in sources.runs]
    policies = [", ".join(map(repr, result.policies)) for result in sources.sweeps]
    longer = [f"{what} ({k + 1}: {names})" for k, (what, names) in enumerate(zip(about, policies, strict=True))]
    return apart(about, longer), apart([path.name for path in runs], [str(path) for path in runs])


def _environment(sources: Sources) -> tuple[EnvironmentSpec, dict[str, Any]]:
    """What it is, and its options; the sweep's, if there is one. Raises ConfigError for none, or for several ids."""
    candidates: list[tuple[EnvironmentSpec, dict[str, Any]]] = [
        *((result.sweep.env, dict(result.sweep.options)) for result in sources.sweeps),
        *((spec(episode.setting.env_id, RECORD), dict(episode.setting.options)) for episode in sources.traces),
        *((run.spec, dict(run.config.env_options)) for run in sources.runs),
        *((spec(margin.env, FILE), dict(margin.options)) for margin in sources.margins),
    ]
    ids = list(dict.fromkeys(env.id for env, _ in candidates))
    if len(ids) != 1:
        raise ConfigError(f"a report is about one environment, these are of {ids or 'none'}; make one for each")
    return candidates[0]


def _closely(swept: Sequence[SweepResult], with_messages: bool) -> list[Section]:
    """The costliest condition of the first policy; messages where most is wrong, or else where they can be seen."""
    first = swept[0]
    point = costliest(first, first.policies[0])
    if point is None:
        return []
    look, condition = sweeps.look_at(first, point), sweeps.widest(swept)
    about = f"A few control steps under {condition.words}."
    if not condition.msg_delay:
        condition = realistic(first.sweep.dt)
        if first.sweep.env.id.partition(":")[0] in LIBRARIES:
            condition = replace(condition, noise=0.0)
        about = (
            f"A few control steps, with a delay on every message and action to make them visible: {condition.words}."
        )
    messages = [courses.messages_part(look, about, condition)] if with_messages else []
    recorded = first.point(point.policy).by_run[0][look.number], point.by_run[0][look.number]
    return [courses.case_part(look, recorded), *messages]


def _hierarchy(sources: Sources, env: EnvironmentSpec, options: dict[str, Any]) -> Section:
    """Says so where files name an environment, or in its options a policy, that is not trusted."""
    if env.id.partition(":")[0] in LIBRARIES:
        return Section(tree.HIERARCHY, ["A black box: it has no hierarchy, and nothing in it can be looked at."])
    try:
        env.require_trust()
        with on_behalf_of(env.named_by):
            if not sources.sweeps:
                return tree.environment_part(env.id, options)
            condition = sweeps.widest(sources.sweeps)
            return tree.environment_part(env.id, options, condition.schedule, f"under {condition.words}")
    except ConfigError as error:  # nobody vouched for it, it can't be built, or it is a black box
        return Section(tree.HIERARCHY, [f"{NOT_DRAWN}: {error}"])
