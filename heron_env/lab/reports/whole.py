"""Whole reports: of what `heron sweep`, `heron train` and `heron trace` left behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heron_env.errors import ConfigError, Untrusted
from heron_env.files.reading import is_file
from heron_env.given import mapping, require_type
from heron_env.lab.gap.presets import realistic
from heron_env.lab.gap.reading import read_sweep
from heron_env.lab.gap.records import SETTINGS
from heron_env.lab.gap.results import SweepResult
from heron_env.lab.gap.words import costliest, finding, reasons
from heron_env.lab.reports.closely import case_part, messages_part
from heron_env.lab.reports.document import Listing, Part, Report
from heron_env.lab.reports.parts import (
    EVERY_SWEEP,
    HIERARCHY,
    causes_part,
    environment_part,
    gap_part,
    look_at,
    subject,
    sweep_facts,
    sweep_notes,
    trace_part,
    training_facts,
    training_part,
    widest,
)
from heron_env.lab.runs import RunFolder, versions
from heron_env.lab.traces import file as trace_file
from heron_env.lab.traces.episode import Episode
from heron_env.lab.traces.replaying import RECORD
from heron_env.registry import EnvironmentSpec, spec
from heron_env.trust import on_behalf_of

HOW = "How it was done"


@dataclass(frozen=True)
class Sources:
    """What a report is about; at least one of them, all of one environment."""

    sweeps: Sequence[SweepResult] = ()
    runs: Sequence[RunFolder] = ()
    traces: Sequence[Episode] = ()


def read_sources(paths: Sequence[str | Path]) -> Sources:
    """Read folders of sweeps, of trainings, and of traces (or their files).

    Raises RunFolderError, TraceError for damaged ones, ConfigError for anything else, or more than one environment.
    """
    sweeps, runs, traces = list[SweepResult](), list[RunFolder](), list[Episode]()
    for path in map(Path, paths):
        if is_file(path / SETTINGS):
            sweeps.append(read_sweep(path))
        elif is_file(path / "config.json"):
            runs.append(RunFolder.open(path))
        elif is_file(path) or any(is_file(path / f"{trace_file.NAME}{end}") for end in ("", ".gz")):
            traces.append(trace_file.read(path))
        else:
            raise ConfigError(
                f"{path}: neither a folder of `heron sweep`, nor of `heron train`, nor of `heron trace`; a report is "
                "made of what these leave behind"
            )
    sources = Sources(sweeps, runs, traces)
    _environment(sources)
    return sources


def report_of(sources: Sources, *, title: str | None = None, facts: Mapping[str, str] | None = None) -> Report:
    """The result first, then its causes, one case, its messages, the training, and the environment.

    Args:
        title: instead of a general one.
        facts: more about how it was done, by name.
    """
    require_type(f"report_of(title={title!r:.60})", title, (str, type(None)), "a text, or None")
    env, options = _environment(sources)
    parts, words, notes = list[Part](), list[str](), list[Listing]()
    known = dict(EVERY_SWEEP) if sources.sweeps else {}
    about, whose = _names(sources)
    for number, result in enumerate(sources.sweeps):
        prefix = "" if not number else f"sweep{number + 1}-"
        told = "" if len(sources.sweeps) == 1 else f": {about[number]}"
        found = [gap_part(result, prefix), causes_part(result, prefix)]
        parts += [Part(part.title + told, part.blocks) for part in found if part is not None]
        new = set(result.policies) - {policy for before in sources.sweeps[:number] for policy in before.policies}
        words += [sentence for sentence in (finding(result) if new else reasons(result)) if sentence not in words]
        known |= {f"{name}{told}": text for name, text in sweep_facts(result).items()}
        notes += sweep_notes(result)
    if sources.sweeps:
        parts += _closely(sources.sweeps, with_messages=not sources.traces)
    for number, episode in enumerate(sources.traces):
        parts.append(trace_part(episode, name=f"timeline{number + 1 if number else ''}"))
        words += [] if sources.sweeps else [_told(episode)]
    for number, run in enumerate(sources.runs):
        parts.append(training_part(run, f"learning{number + 1 if number else ''}"))
        known |= {f"{name}, {whose[number]}": text for name, text in training_facts(run).items()}
        words += [] if sources.sweeps else [training_facts(run)["Validation"]]
    known |= {**mapping({} if facts is None else facts, "report_of(facts)"), "Versions": _versions(sources)}
    parts += [_hierarchy(sources, env, options), Part(HOW, [known, *notes])]
    what = "how much survives the network" if sources.sweeps else "what was recorded"
    return Report(title or f"{env.id}: {what}", words, parts)


def _versions(sources: Sources) -> str:
    """Of the program that writes the page, and of those that made what it shows, where they are others."""
    now = versions()
    made = [
        *(result.made_by for result in sources.sweeps),
        *(of.get("heron_env", "unknown") for of in (run.config.versions for run in sources.runs)),
        *(of.get("heron_env", "unknown") for of in (episode.setting.versions for episode in sources.traces)),
    ]
    others = [version for version in dict.fromkeys(made) if version != now["heron_env"]]
    told = ", ".join(f"{name} {version}" for name, version in now.items())
    return f"{told}; some of what is shown was made by heron_env {', '.join(others)}" if others else told


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
    found: list[tuple[EnvironmentSpec, dict[str, Any]]] = [
        *((result.sweep.env, dict(result.sweep.options)) for result in sources.sweeps),
        *((spec(episode.setting.env_id, RECORD), dict(episode.setting.options)) for episode in sources.traces),
        *((run.spec, dict(run.config.env_options)) for run in sources.runs),
    ]
    ids = list(dict.fromkeys(env.id for env, _ in found))
    if len(ids) != 1:
        raise ConfigError(f"a report is about one environment, these are of {ids or 'none'}; make one for each")
    return found[0]


def _closely(sweeps: Sequence[SweepResult], with_messages: bool) -> list[Part]:
    """The costliest condition of the first policy; messages where most is wrong, or else where they can be seen."""
    first = sweeps[0]
    point = costliest(first, first.policies[0])
    if point is None:
        return []
    look, condition = look_at(first, point), widest(sweeps)
    about = f"A few control steps under {condition.words}."
    if not condition.msg_delay:
        condition = realistic(first.sweep.dt)
        about = f"A few control steps, with delays on every leg so that they can be seen: {condition.words}."
    messages = [messages_part(look, about, condition)] if with_messages else []
    recorded = first.point(point.policy).by_run[0][look.number], point.by_run[0][look.number]
    return [case_part(look, recorded), *messages]


def _hierarchy(sources: Sources, env: EnvironmentSpec, options: dict[str, Any]) -> Part:
    """Says so where files name an environment, or in its options a policy, that is not trusted."""
    try:
        env.require_trust()
        with on_behalf_of(env.told_by):
            if not sources.sweeps:
                return environment_part(env.id, options)
            condition = widest(sources.sweeps)
            return environment_part(env.id, options, condition.schedule, f"under {condition.words}")
    except Untrusted as error:
        return Part(HIERARCHY, [f"Not drawn: {error}"])


def _told(episode: Episode) -> str:
    system = episode.world.agents[0]
    return (
        f"One episode of {episode.outcome.end_time:g} s, seed {episode.setting.seed}, by "
        f"{episode.setting.policy.name or 'own policies'}: {system} is paid {episode.returns[system]:.2f}."
    )
