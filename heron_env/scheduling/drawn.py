"""Schedules that are drawn anew in every episode: the network itself is random.

The value of a field in an episode is a function of (seed, episode, key of the entry, field) and of nothing else:

    u = uniform(key(seed, episode, "schedule", KEY, FIELD))          (heron_env.seeding)

KEY is the agent, group, level ("field", "coordinator", "system") or "*" as text; a level given as a number has the key
of its name. All agents of one entry share its draw: one network, not one for each; name agents where they shall differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations, product
from pathlib import Path
from typing import Any, Final

from heron_env.errors import ScheduleError, did_you_mean
from heron_env.scheduling.distributions import Lognormal, Uniform, is_plain_number
from heron_env.scheduling.media import Medium, as_medium, as_transport
from heron_env.scheduling.sources import as_source
from heron_env.scheduling.timing import GONE, LEVELS, Key, Schedule, ScheduleConfig, require_one_meaning
from heron_env.seeding import key, uniform

EVERYONE: Final = "*"
FIELDS: Final = [field.name for field in fields(ScheduleConfig)]
WORDS: Final = ("jitter_type", "on_missing", "own_rows")
"""Fields whose values are words."""
WHOLE: Final = ("keep", "priority")
"""Fields whose values are whole numbers."""
NEEDS: Final = {
    "jitter_ratio": ("jitter_type",), "tick_jitter_ratio": ("jitter_type",), "keep": ("medium", "transport"),
    "lifespan": ("medium", "transport"), "priority": ("medium",), "loss": ("transport",),
}  # fmt: skip
"""By field, others that allow or forbid its values; all else is legal or not on its own."""
SYNCHRONOUS: Final = ("tick_interval", "phase", "own_rows", "clock_drift")
"""What the synchronous clock knows of a schedule."""


class DrawnSchedule:
    """A schedule whose fields may be drawn, once an episode.

        DrawnSchedule(msg_delay="0-10", loss="[0, 0.05]")                       # of everyone
        DrawnSchedule({"field": {"act_delay": "lognormal(60, 0.5)"}, "*": {}})  # by agent, group, level or "*"

    A value is what ScheduleConfig takes, a mapping for a source (`sources.as_source`), or drawn: '0-10' is
    uniform, 'lognormal(3, 0.5)' has that mean and standard deviation / mean, a list is a choice of one of its values;
    as text or as Uniform, Lognormal, Choice. Every value that may come is checked here.

    Args:
        entries: fields by agent id, group, level or "*", as of a schedule; or none, and the fields of everyone by name.

    Raises ScheduleError naming the entry, the field and the value that can't be.
    """

    __slots__ = ("entries",)

    entries: dict[str, dict[str, Any]]
    """By key, what is given of its fields: plain values and Uniform, Lognormal, Choice."""

    def __init__(self, entries: Mapping[Key, Any] | None = None, /, **everyone: Any) -> None:
        if entries is not None and not isinstance(entries, Mapping):
            raise ScheduleError(f"DrawnSchedule({entries!r:.200}): must be a mapping, as {{'field': {{'loss': 0.1}}}}")
        if (entries is None) == (not everyone):
            raise ScheduleError("DrawnSchedule(...): give entries by key, or fields of everyone by name")
        levels: Mapping[Any, Any] = {EVERYONE: everyone} if entries is None else entries
        self.entries = {}
        for who, values in levels.items():
            name = named_level(who)
            if name in self.entries:
                raise ScheduleError(f"schedule[{who!r}]: another entry means the same level; keep one")
            self.entries[name] = _entry(name, values)
        media = [values["medium"] for values in self.entries.values() if values.get("medium") is not None]
        for one, other in combinations(media, 2):
            if one != other:  # those that are drawn alike are one, whatever is drawn
                for pair in product(_media(one), _media(other)):
                    require_one_meaning(pair)

    def at(self, seed: int, episode: int) -> dict[Key, ScheduleConfig]:
        """Return the schedule of an episode; it depends on seed and episode alone."""

        def drawn(who: str, name: str, value: Drawn) -> Any:
            if name == "medium":  # all entries with one medium draw one rate, and of one list the same
                who = next((medium.name for medium in _media(value)), who)
                name = "medium.rate" if isinstance(value, DrawnMedium) else name
            return value.at(uniform(key(seed, episode, "schedule", who, name)))

        return self._with(drawn)

    def nominal(self) -> dict[Key, ScheduleConfig]:
        """Return the schedule with means for draws; of whole numbers rounded, of words the first."""

        def mean(who: str, name: str, value: Drawn) -> Any:
            return round(value.nominal) if name in WHOLE and value.nominal is not None else value.nominal

        return self._with(mean)

    def _with(self, value_of: Callable[[str, str, Drawn], Any]) -> dict[Key, ScheduleConfig]:
        """The schedule with these values in place of what is drawn."""
        return {
            who: ScheduleConfig(**{n: value_of(who, n, v) if isinstance(v, Drawn) else v for n, v in values.items()})
            for who, values in self.entries.items()
        }

    def require_fixed(self, names: tuple[str, ...] = SYNCHRONOUS) -> None:
        """Raise ScheduleError if one of these fields is drawn."""
        for who, values in self.entries.items():
            for name in names:
                if isinstance(values.get(name), Drawn):
                    raise ScheduleError(
                        f"schedule[{who!r}]: {name}={values[name].plain()!r}: the environment's own schedule is the "
                        "synchronous clock's, too, which can't draw it; give it to run_event_driven(schedule=...)"
                    )

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """For JSON: fields by key; draws as text or list."""
        return as_dict(self)

    @classmethod
    def from_dict(cls, entries: Mapping[Key, Any]) -> DrawnSchedule:
        """Rebuild from `to_dict()`. Raises ScheduleError."""
        return cls(entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DrawnSchedule) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(tuple((who, tuple(values)) for who, values in self.entries.items()))

    def __repr__(self) -> str:
        return f"DrawnSchedule({self.to_dict()!r})"


AnySchedule = Schedule | DrawnSchedule


def named_level(who: Any) -> str:
    """A key as text: 1 is "field". Raises ScheduleError for what is no key."""
    name = LEVELS.get(who) if type(who) is int else who
    if not isinstance(name, str):
        raise ScheduleError(f"schedule[{who!r:.200}]: a key is an agent, group, level (1 to 3) or '*'")
    return name


def plain(value: Any) -> Any:
    """A value of a field for JSON."""
    return value.to_dict() if hasattr(value, "to_dict") else value


def drawn_or_fixed(entries: Mapping[Key, Mapping[str, Any]]) -> AnySchedule:
    """A DrawnSchedule if anything in it is drawn, otherwise a plain one. Raises ScheduleError."""
    schedule = DrawnSchedule(entries)
    drawn = any(isinstance(value, Drawn) for values in schedule.entries.values() for value in values.values())
    return schedule if drawn else schedule.nominal()


def entries_of(schedule: AnySchedule) -> dict[str, dict[str, Any]]:
    """The fields of each entry, of a plain schedule all of them; {} for None. Raises ScheduleError for odd keys."""
    if isinstance(schedule, DrawnSchedule):
        return schedule.entries
    table = schedule if isinstance(schedule, Mapping) else {} if schedule is None else {EVERYONE: schedule}
    return {named_level(who): config_fields(config) for who, config in table.items()}


def may_wait(schedule: AnySchedule) -> bool:
    """May messages wait for a medium or another attempt, in any episode?"""
    return any(
        values.get(name) is not None for values in entries_of(schedule).values() for name in ("medium", "transport")
    )


def as_dict(schedule: AnySchedule) -> dict[str, dict[str, Any]]:
    """For JSON: fields by key, without those that have their default. `drawn_or_fixed` takes it back."""
    usual = config_fields(ScheduleConfig())
    return {
        who: {
            name: value.plain() if isinstance(value, Drawn) else plain(value)
            for name, value in values.items() if isinstance(schedule, DrawnSchedule) or value != usual[name]
        }
        for who, values in entries_of(schedule).items()
    }  # fmt: skip


def _media(value: Any) -> list[Medium]:
    """All media that this may become."""
    return [one for one in (value.extremes if isinstance(value, Drawn) else (value,)) if one is not None]


def config_fields(config: ScheduleConfig) -> dict[str, Any]:
    """All fields of a ScheduleConfig by name. Raises ScheduleError for what is none."""
    if not isinstance(config, ScheduleConfig):
        raise ScheduleError(f"schedule: {config!r:.200} is no ScheduleConfig; write ScheduleConfig(msg_delay=...)")
    return {name: getattr(config, name) for name in FIELDS}


def _entry(who: str, values: Any) -> dict[str, Any]:
    """The fields of one entry, all that they may become checked."""
    if isinstance(values, ScheduleConfig):
        return config_fields(values)
    if not isinstance(values, Mapping):
        raise ScheduleError(
            f"schedule[{who!r}]={values!r:.200}: must be a mapping of fields to values, as {{'msg_delay': '0-10'}}"
        )
    fields: dict[str, Any] = {}
    for name, value in values.items():
        if name in GONE and is_plain_number(value) and value == 0:
            continue  # all schedules that were written down had it
        if name not in FIELDS:
            if name in GONE:
                raise ScheduleError(f"schedule[{who!r}]: {name}={value!r:.60}: {gone(name)}")
            raise ScheduleError(
                f"schedule[{who!r}]: no field {name!r:.100}; fields are {FIELDS}.{did_you_mean(name, FIELDS)}"
            )
        try:
            fields[name] = field_value(name, value)
        except ScheduleError as error:
            raise ScheduleError(f"schedule[{who!r}]: {name}={error}") from error
    for _, fault in faults_of(fields):
        raise ScheduleError(f"schedule[{who!r}]: {fault}")
    return fields


def gone(name: str) -> str:
    """What to say of a field that is no more."""
    return f"is gone since an earlier 0.x: {GONE[name]}"


def faults_of(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What ScheduleConfig would not take of what these fields may become: (field, fault)."""
    extremes = {name: value.extremes if isinstance(value, Drawn) else (value,) for name, value in values.items()}
    for name in sorted(extremes, key=lambda name: name in NEEDS):
        together = [other for other in (*NEEDS.get(name, ()), name) if other in extremes]
        for some in product(*(extremes[other] for other in together)):
            if fault := _fault(dict(zip(together, some, strict=True)), values):
                yield name, fault


def _fault(extremes: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    try:
        ScheduleConfig(**extremes)
    except ScheduleError as error:
        drawn = [name for name in extremes if isinstance(values[name], Drawn)]
        if drawn:
            cause = ", ".join(f"{name}={values[name].plain()!r} can be {extremes[name]!r}" for name in drawn)
            return f"{cause}: {error}"
        words = [name for name, value in extremes.items() if isinstance(value, str) and name not in WORDS]
        file = "or a file of delays, latency.csv; " if any(name.endswith("_delay") for name in words) else ""
        return f"{error}{f'; {file}or one that is drawn: {FORMS}' if words else ''}"
    return ""


FORMS: Final = "'0-10' (uniform), 'lognormal(3, 0.5)' (mean, standard deviation / mean), [1, 2, 5] (one of them)"
"""How a drawn value is written."""
_NUMBER: Final = r"(-?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?))"
_RANGE: Final = re.compile(rf"\s*{_NUMBER}\s*-\s*{_NUMBER}\s*")
_LOGNORMAL: Final = re.compile(r"\s*lognormal\s*\((.*),(.*)\)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values, all alike: number `floor(u * n)`. Raises ScheduleError for none at all."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise ScheduleError("[]: nothing to choose from; give one value or more")
        if any(isinstance(value, Uniform | Lognormal | Choice) for value in self.values):
            raise ScheduleError(f"{self.plain()!r:.200}: a choice is among fixed values; write them out")

    def at(self, u: float) -> Any:
        """The value of a uniform u in [0, 1)."""
        return self.values[int(u * len(self.values))]

    @property
    def extremes(self) -> tuple[Any, ...]:
        """All values."""
        return self.values

    @property
    def nominal(self) -> Any:
        """The mean of numbers; of others the first."""
        if all(is_plain_number(value) for value in self.values):
            return sum(self.values) / len(self.values)
        return self.values[0]

    def plain(self) -> list[Any]:
        """As it is written."""
        return [plain(value) for value in self.values]


@dataclass(frozen=True, slots=True)
class DrawnMedium:
    """A medium whose rate is drawn; `values`: its other fields. Raises ScheduleError."""

    values: tuple[tuple[str, Any], ...]
    rate: Uniform | Lognormal | Choice

    def __post_init__(self) -> None:
        _ = self.extremes

    @property
    def name(self) -> str:
        """Of the medium."""
        return str(dict(self.values).get("name", "medium"))

    def _with(self, rate: float) -> Any:
        return as_medium({**dict(self.values), "rate": rate})

    def at(self, u: float) -> Any:
        """The medium of a uniform u in [0, 1)."""
        return self._with(self.rate.at(u))

    @property
    def extremes(self) -> tuple[Any, ...]:
        """With the least and the greatest rate."""
        return tuple(map(self._with, self.rate.extremes))

    @property
    def nominal(self) -> Any:
        """With the mean rate."""
        return self._with(self.rate.nominal)

    def plain(self) -> dict[str, Any]:
        """As it is written."""
        return {**dict(self.values), "rate": self.rate.plain()}


Drawn = Uniform | Lognormal | Choice | DrawnMedium


def field_value(name: str, value: Any, folder: Path | None = None) -> Any:
    """The value of a field, of what a file or a command line says: drawn, a source, a medium or a transport.

    Files of sources lie below `folder`. Raises ScheduleError, DataError.
    """
    if name == "transport":
        return Choice(tuple(map(as_transport, value))) if isinstance(value, list | tuple) else as_transport(value)
    if name != "medium":
        return as_drawn(value, folder)
    if isinstance(value, list | tuple):
        return Choice(tuple(map(as_medium, value)))
    if isinstance(value, Mapping) and isinstance(rate := as_drawn(value.get("rate")), Uniform | Lognormal | Choice):
        return DrawnMedium(tuple((k, v) for k, v in value.items() if k != "rate"), rate)
    return as_medium(value)


def as_drawn(value: Any, folder: Path | None = None) -> Any:
    """What is drawn if this is one of FORMS, a source if it tells of one, otherwise the value itself.

    Files of sources lie below `folder`. Raises ScheduleError, DataError.
    """
    if isinstance(value, list | tuple):
        return Choice(tuple(as_source(one, folder) for one in value))
    if isinstance(value, Mapping):
        return as_source(value, folder)
    if not isinstance(value, str):
        return value
    if match := _RANGE.fullmatch(value):
        return Uniform(float(match[1]), float(match[2]))
    if match := _LOGNORMAL.fullmatch(value):
        try:
            return Lognormal(float(match[1]), float(match[2]))
        except ValueError as error:
            if isinstance(error, ScheduleError):
                raise
            raise ScheduleError(f"{value!r}: must be two numbers, as lognormal(3, 0.5)") from error
    if value.strip().startswith("["):
        return Choice(tuple(as_source(one, folder) for one in _listed(value)))
    return as_source(value, folder)


def _listed(text: str) -> Sequence[Any]:
    """The values of `[1, 2]` and of `[hold, noop]`."""
    try:
        values = json.loads(text)
    except json.JSONDecodeError:
        inside = text.strip()
        if not inside.endswith("]"):
            raise ScheduleError(f"{text!r:.200}: the list has no end; close it with ]") from None
        return [_word(part.strip()) for part in inside[1:-1].split(",") if part.strip()]
    return list(values)


def _word(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
