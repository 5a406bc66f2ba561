"""Schedules in words: `FIELD=VALUE`, `WHO.FIELD=VALUE` and YAML files, on top of what an environment has of its own;
and whether a world that is trained in resolves their delays.

A file has the fields of ScheduleConfig by agent, group, level or "*" (everyone):

    "*": {jitter_type: lognormal, jitter_ratio: 0.1, loss: 0-0.05}
    field: {act_delay: lognormal(60, 0.5)}
    battery_1:
      msg_delay: [1, 2, 5]
    zone_1:
      msg_delay: {recorded: latency.csv}
      loss: {gilbert_elliott: {p_bad: 0.01, p_good: 0.2, loss_bad: 0.7, loss_good: 0, period: 1}}

Values are those of ScheduleConfig, drawn once an episode as DrawnSchedule has them, or sources (files lie beside it).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from heron_env.envs.base import HeronEnv
from heron_env.envs.event.notes import Note, below_substep, legs, together
from heron_env.errors import ConfigError, DeclarationError, Problem, ScheduleError, did_you_mean
from heron_env.files.yaml_file import YamlFile
from heron_env.given import is_number
from heron_env.scheduling.drawn import (
    EVERYONE,
    FIELDS,
    NEEDS,
    AnySchedule,
    Choice,
    DrawnSchedule,
    config_fields,
    drawn_or_fixed,
    entries_of,
    faults_of,
    field_value,
    gone,
    named_level,
)
from heron_env.scheduling.timing import GONE, Key, Schedule, ScheduleConfig, Timing, to_seconds

YAML = (".yaml", ".yml")


class ScheduleSetting(NamedTuple):
    """One field for somebody; `said`: where and how, for errors."""

    who: str
    name: str
    value: Any
    said: str


def with_settings(own: AnySchedule, settings: Sequence[str]) -> AnySchedule:
    """`own` with what each of these says: `FIELD=VALUE` of everyone, `WHO.FIELD=VALUE` of an agent, group or level, or
    the path of a YAML file.

    What is said of everyone is set in all entries, and before the rest. Who gets an entry of its own that way keeps the
    fields that everyone has. Something drawn in it makes it a DrawnSchedule.

    Raises ScheduleError, of files with file and line.
    """
    if not settings:
        return own
    fixed = not isinstance(own, DrawnSchedule)
    table: dict[Key, dict[str, Any]] = {who: dict(values) for who, values in entries_of(own).items()}
    table.setdefault(EVERYONE, config_fields(ScheduleConfig()) if fixed else {})
    entries = [setting for text in settings for setting in _said(text)]
    for who, name, value, _ in entries:
        if who == EVERYONE:
            for values in table.values():
                values[name] = value
    for who, name, value, _ in entries:
        if who != EVERYONE:
            table.setdefault(who, dict(table[EVERYONE]))[name] = value
    for key, values in table.items():
        for name, fault in faults_of(values):
            raise ScheduleError(f"{_source(entries, key, name)}: {fault}")
    return drawn_or_fixed(table)


def _source(entries: Sequence[ScheduleSetting], who: Key, name: str) -> str:
    """Where this field was set last; where it was not, one that allows or forbids its values."""
    fields = [(field, own) for field in (name, *NEEDS.get(name, ())) for own in (who, EVERYONE)]
    sources = [one.said for field, own in fields for one in reversed(entries) if (one.name, one.who) == (field, own)]
    return sources[0] if sources else f"schedule[{who!r}]"


def _said(text: str) -> Iterator[ScheduleSetting]:
    """What one text says."""
    if text.endswith(YAML) and "=" not in text:
        yield from _of_file(text)
        return
    setting = _parsed(text)
    try:
        yield setting._replace(value=field_value(setting.name, setting.value))
    except ConfigError as error:
        raise ScheduleError(f"{setting.said}: {error}") from error


def _of_file(path: str) -> Iterator[ScheduleSetting]:
    """What a YAML file says."""
    try:
        file = YamlFile.read(path)
    except ConfigError as error:
        raise ScheduleError(f"--schedule {error}") from error
    problems, entries = [], []
    for who, values in file.data.items():
        for where, entry in _of_entry(who, values, Path(path).parent):
            if isinstance(entry, str):
                problems.append(Problem(where, entry))
            else:
                entries.append(entry)
    if problems:
        raise ScheduleError(str(file.located(DeclarationError(problems))))
    places = file.located(DeclarationError(Problem((one.who, one.name), "") for one in entries)).problems
    for one, place in zip(entries, places, strict=True):
        yield one._replace(said=place.source)


def _of_entry(who: Any, values: Any, folder: Path) -> Iterator[tuple[tuple[str, ...], ScheduleSetting | str]]:
    """(path, setting or fault) of what a file says of somebody."""
    try:
        owner = named_level(who)
    except ScheduleError as error:
        yield (str(who),), str(error)
        return
    if not isinstance(values, Mapping):
        remedy = f"; for everyone write '*': {{{owner}: {values!r:.60}}}" if owner in FIELDS else ""
        yield (str(who),), f"must be a mapping of fields to values, got {values!r:.100}{remedy}"
        return
    for name, value in values.items():
        if name in GONE:
            if not (is_number(value) and value == 0):  # all schedules that were written down had it
                yield (str(who), name), gone(name)
            continue
        if name not in FIELDS:
            yield (str(who), str(name)), f"no such field; fields are {FIELDS}.{did_you_mean(name, FIELDS)}"
            continue
        try:
            yield (str(who), name), ScheduleSetting(owner, name, field_value(name, value, folder), "")
        except ConfigError as error:
            yield (str(who), name), str(error)


def _parsed(text: str) -> ScheduleSetting:
    """`WHO.FIELD=VALUE`."""
    left, equals, word = text.partition("=")
    who, dot, name = left.rpartition(".")
    if name in GONE:
        raise ScheduleError(f"--schedule {text!r}: {gone(name)}")
    if not equals or name not in FIELDS:
        near = "" if name in FIELDS else did_you_mean(name, FIELDS)
        raise ScheduleError(
            f"--schedule {text!r}: must read FIELD=VALUE or WHO.FIELD=VALUE, with a field of {FIELDS}; "
            f"msg_delay=0.5, field.tick_interval=1.{near}"
        )
    return ScheduleSetting(who if dot else EVERYONE, name, _value(word), f"--schedule {text!r}")


def _value(word: str) -> Any:
    """As JSON has it; nan and inf are numbers, too, which a schedule refuses by name; others are words."""
    try:
        return json.loads(word)
    except json.JSONDecodeError:
        return float(word) if word.lstrip("+-").lower() in ("nan", "inf", "infinity") else word


# What a world makes of them (T1)

WELL_BELOW: Final = 5
"""Substeps that a delay must take in the mean where it is random; one that is the same always is rounded as it is."""


def require_resolved(schedule: AnySchedule, world: HeronEnv, env: HeronEnv, options: Mapping[str, Any]) -> list[str]:
    """What a training under this schedule is to say of delays that its world rounds down, as it is in evaluation.

    Args:
        schedule: what is trained under.
        world: as in evaluation.
        env: as in training.
        options: of training alone; they make the difference.

    Raises ConfigError where the options hide a delay, or ticks, that evaluation resolves.
    """
    own, its = _substep(world), _substep(env)
    random = isinstance(schedule, DrawnSchedule)
    reported, reports = (to_seconds(each.dt_ns // each.reports) for each in (world, env))
    if "report_interval" in options and reports > reported:
        raise ConfigError(
            f"train(schedule=...): with training_options={dict(options)!r} agents report every {reports:g} s, in "
            f"evaluation every {reported:g} s; write report_interval={reported:g} there, or leave out what changes it"
        )
    notes = list[Note]()
    for fixed in _examples(schedule):
        timings = env.timings_of(fixed)
        for timing in timings if its > own else ():
            for name, length in _lengths(timing):
                if length >= own and not _resolves(its, name, length, timing, random=random):
                    raise ConfigError(
                        f"train(schedule=...): {name}={to_seconds(length):g} s of {timing.agent!r} is lost in "
                        f"training: with training_options={dict(options)!r} a physics substep takes "
                        f"{to_seconds(its):g} s, in evaluation {to_seconds(own):g} s. Leave out what makes it coarser, "
                        f"or write physics_substeps={math.ceil(env.dt_ns / own)} there"
                    )
        deciding = [env.hierarchy.index[agent] for agent in env.possible_agents]
        notes += below_substep(env.simulation, timings, deciding)
        notes += [note for rank in deciding for note in _rounded(its, timings[rank], random=random)]
    return together(notes)


def _examples(schedule: AnySchedule) -> Iterator[Schedule]:
    """The schedule; of one that is drawn the nominal one, and one for each value of each choice."""
    if not isinstance(schedule, DrawnSchedule):
        yield schedule
        return
    yield schedule.nominal()
    for who, values in schedule.entries.items():
        for name, value in values.items():
            for one in value.values if isinstance(value, Choice) else ():
                yield {**schedule.nominal(), **DrawnSchedule({who: {**values, name: one}}).nominal()}


def _substep(env: HeronEnv) -> int:
    """Of physics, ns."""
    return env.dt_ns // env.physics_substeps


def _lengths(timing: Timing) -> Iterator[tuple[str, int]]:
    """Nominal times of which each is to show in what happens when, ns."""
    message, gathering, acting = legs(timing)
    yield from (("2 msg_delay", 2 * message), ("obs_delay", gathering), ("act_delay", acting))
    yield from (("tick_interval", timing.tick), ("phase", timing.phase))


def _varies(timing: Timing) -> bool:
    return timing.sourced or timing.config.jitter_type != "none"


def _resolves(substep: int, name: str, length: int, timing: Timing, *, random: bool) -> bool:
    varies = name not in ("tick_interval", "phase") and (random or _varies(timing))
    return length >= substep * (WELL_BELOW if varies else 1)


def _rounded(substep: int, timing: Timing, *, random: bool) -> Iterator[Note]:
    """What is the same always, and is rounded down to whole substeps; ticks that come faster than physics."""
    message, gathering, acting = legs(timing)
    late = 2 * message + gathering + acting
    unit = f"physics substeps of {to_seconds(substep):g} s"
    if timing.tick < substep:
        often = f"tick_interval={to_seconds(timing.tick):g} s is below {unit}"
        yield f"{often}: of several actions in one only the last counts", timing.agent
    in_step = timing.tick % substep == timing.phase % substep == 0
    if late > substep and late % substep and in_step and not (random or _varies(timing)):
        counted = to_seconds(late // substep * substep)
        yield (
            f"2 msg_delay + obs_delay + act_delay = {to_seconds(late):g} s counts as {counted:g} s: it is rounded down "
            f"to whole {unit}",
            timing.agent,
        )
