"""Own sites from files: what homes.yaml says, the measured series that it names, and their whole days."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator

from heron_env.errors import ConfigError, DataError, DeclarationError, Problem, did_you_mean
from heron_env.files.models import ConfigModel, Many, NonNegative, Text, formatted, number
from heron_env.files.reading import is_file, read
from heron_env.files.yaml_file import MOST, YamlFile
from heron_env.given import MOST_AGENTS
from heron_env.worlds.energy_management.agents import Charge, Zone
from heron_env.worlds.energy_management.calendar import DAYS, Calendar, TimeOfUse, standard_of, zone_of
from heron_env.worlds.energy_management.days_tables import DAY, QUARTER
from heron_env.worlds.energy_management.own_site_columns import (
    MINUTE,
    MOST_KW,
    EvenSlots,
    Gaps,
    Series,
    Table,
    Times,
    TimeZone,
    Unit,
    read_table,
    slots_of,
)
from heron_env.worlds.energy_management.site import ROOFS, Home, Measured, Neighbourhood, OwnSite, load_profiles

DEFAULT_ZONE: Final = "zone_1"


def _date(value: object) -> date:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    if isinstance(value, datetime) or not isinstance(value, date):
        raise ValueError(f"must be a date such as 2025-10-26, got {formatted(value)}")
    return value


def _capacity(value: object) -> float:
    quantity, converted = Charge.quantities["capacity"], number(value)
    if not quantity.low <= converted <= quantity.high:
        raise ValueError(f"must be from {quantity.low:g} to {quantity.high:g} kWh, got {value!r}")
    return converted


def _peak(value: object) -> float:
    converted = number(value)
    if not 0.0 < converted <= MOST_KW:
        raise ValueError(f"must be above 0 and at most {MOST_KW:g} kWp, got {value!r}; is it in Wp? Divide by 1000")
    return converted


def _limit(value: object) -> float:
    most, converted = Zone.quantities["limit"].high, number(value)
    if not 0.0 < converted <= most:
        raise ValueError(f"must be above 0 and at most {most:g} kW, got {value!r}")
    return converted


Dates = Annotated[tuple[Annotated[date, BeforeValidator(_date)], ...], Many]


class Roof(ConfigModel):
    """Measured (file, column, unit), or of the shipped weather year (peak in kWp, and where it faces)."""

    file: Text | None = None
    column: Text | None = None
    unit: Unit = "kW"
    peak: Annotated[float, BeforeValidator(_peak)] | None = None
    facing: Literal["south", "east", "west"] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Roof:
        measured, drawn = (self.file, self.column), (self.peak, self.facing)
        if (None in measured and None in drawn) or (any(measured) and any(drawn)):
            raise ValueError("give file and column of what was measured, or peak (kWp) and facing, not both")
        return self

    @property
    def series(self) -> Series | None:
        """What was measured, if anything was."""
        if self.file is None or self.column is None:
            return None
        return Series(file=self.file, column=self.column, unit=self.unit)


class SiteBattery(ConfigModel):
    """A home's battery; its inverter has 5 kW."""

    capacity: Annotated[float, BeforeValidator(_capacity)]


class SiteHome(ConfigModel):
    """One home; without a battery it is part of its zone's background."""

    name: Text
    load: Series
    roof: Roof | None = None
    battery: SiteBattery | None = None
    zone: Text | None = None


class ZoneLimit(ConfigModel):
    """A transformer; without a limit: `limit_per_home` for each home behind it."""

    name: Text
    limit: Annotated[float, BeforeValidator(_limit)] | None = None


class SiteTariff(ConfigModel):
    """Prices in EUR/kWh, windows in whole local hours: as TimeOfUse."""

    low: NonNegative = TimeOfUse.low
    standard: NonNegative = TimeOfUse.standard
    high: NonNegative = TimeOfUse.high
    low_hours: Annotated[tuple[int, ...], Many] = TimeOfUse.low_hours
    high_hours: Annotated[tuple[int, ...], Many] = TimeOfUse.high_hours

    @model_validator(mode="after")
    def _possible(self) -> SiteTariff:
        self.made()
        return self

    def made(self) -> TimeOfUse:
        """The tariff. Raises ConfigError."""
        return TimeOfUse(**dict(self))


class HeldOut(ConfigModel):
    """Dates that are kept for validation and for tests; all others are for training."""

    validation: Dates = ()
    test: Dates = ()

    @model_validator(mode="after")
    def _apart(self) -> HeldOut:
        for place, day in enumerate(self.test):
            if day in self.validation:
                raise DeclarationError([Problem(("test", place), f"{day} is a validation day already; keep one")])
        return self


class SiteFile(ConfigModel):
    """The whole file."""

    timezone: TimeZone
    homes: Annotated[tuple[SiteHome, ...], Many, Field(min_length=1)]
    zones: Annotated[tuple[ZoneLimit, ...], Many] = ()
    times: Times = Times()
    gaps: Gaps = Gaps()
    tariff: SiteTariff = SiteTariff()
    held_out: HeldOut | None = None

    @model_validator(mode="after")
    def _fits(self) -> SiteFile:
        for where, count in (("homes", len(self.homes)), ("zones", len(self.zones))):
            if count > MOST_AGENTS:
                raise DeclarationError([Problem((where,), f"{count:,} are too many; take {MOST_AGENTS:,} at the most")])
        problems = [*_repeated("homes", self.homes), *_repeated("zones", self.zones)]
        known = self.zone_names
        for place, home in enumerate(self.homes):
            if home.zone is None and len(known) > 1:
                problems.append(Problem(("homes", place, "zone"), f"must be given: one of {list(known)}"))
            elif home.zone is not None and home.zone not in known:
                near = did_you_mean(home.zone, known) or f" Zones: {list(known)}"
                problems.append(Problem(("homes", place, "zone"), f"no zone is called {home.zone!r}.{near}"))
        for place, zone in enumerate(known):
            if not problems and not any(home.battery and home.zone in (zone, None) for home in self.homes):
                told = "no home with a battery is in it, so nobody decides there; give one a battery, or remove it"
                problems.append(Problem(("zones", place) if self.zones else ("homes",), told))
        if problems:
            raise DeclarationError(problems)
        return self

    @property
    def zone_names(self) -> tuple[str, ...]:
        """In their order; one where none is named."""
        return tuple(zone.name for zone in self.zones) or (DEFAULT_ZONE,)


def _repeated(where: str, named: tuple[SiteHome, ...] | tuple[ZoneLimit, ...]) -> list[Problem]:
    first: dict[str, int] = {}
    return [
        Problem((where, place, "name"), f"{name!r} is there already; give each a name of its own")
        for place, name in enumerate([each.name for each in named])
        if first.setdefault(name, place) != place
    ]


SECONDS: Final = int(DAY)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SiteSources:
    """What a site's files say, and where in `homes.yaml` they are named."""

    file: YamlFile
    declared: SiteFile
    tables: dict[str, Table]
    digests: dict[str, str]
    standard: int

    def slots(self, series: Series) -> EvenSlots:
        """The powers of a column. Raises DataError."""
        declared = self.declared
        return slots_of(self.tables[series.file], series, declared.gaps, declared.times.stamps, self.standard)


def read_site(
    path: str | Path, *, limit_per_home: float, forecast_error: float, tariff: TimeOfUse | None = None
) -> OwnSite:
    """The site of a file.

    Args:
        path: of `homes.yaml`; the files in it are found from its folder on.
        limit_per_home: kW, of transformers without a limit.
        forecast_error: as in `energy_management`.
        tariff: instead of the file's.

    Raises:
        DeclarationError: the file, with the line of each mistake.
        DataError: a series, with file and line.
        ConfigError: `homes.yaml` can't be read, or pyarrow is missing for a parquet file.
    """
    sources = _sources(Path(path))
    declared = sources.declared
    order = _order(declared)
    homes = [declared.homes[place] for place in order]
    loads = [sources.slots(home.load) for home in homes]
    roofs = [sources.slots(home.roof.series) if home.roof and home.roof.series else None for home in homes]
    calendar, minutes = _calendar(sources, [*loads, *filter(None, roofs)], any(map(_weathered, homes)))
    load = np.stack([_cut(slots, calendar, minutes) for slots in loads], axis=-1)
    drawn = (_weather(home, calendar, minutes) for home in homes)
    pv = np.stack(
        [rest if slots is None else _cut(slots, calendar, minutes) for slots, rest in zip(roofs, drawn, strict=True)],
        axis=-1,
    )
    neighbourhood = _neighbourhood(declared, homes, load, pv)
    measured = Measured(load, pv, dict(_filled_values(homes, loads, roofs)))
    return OwnSite(
        neighbourhood=neighbourhood, profiles=load_profiles(), tariff=tariff or declared.tariff.made(),
        limits=_limits(declared, neighbourhood, limit_per_home), forecast_error=forecast_error,
        files=sources.digests, dates=calendar, measured=measured, names=tuple(home.name for home in homes),
    )  # fmt: skip


def _sources(path: Path) -> SiteSources:
    file = YamlFile.read(path)
    declared = file.build(SiteFile)
    zone, clock = zone_of(declared.timezone), zone_of(declared.times.clock or declared.timezone)
    wanted: dict[str, list[str]] = {}
    for where, series in _named(declared):
        if not is_file(path.parent / series.file):
            near = chain(path.parent.glob("*.*"), path.parent.glob("*/*.*"))
            beside = [str(other.relative_to(path.parent)) for other in islice(near, 1000) if is_file(other)]
            told = f"{series.file!r}: no such file beside {path.name}.{did_you_mean(series.file, beside)}"
            raise file.located(DeclarationError([Problem((*where, "file"), told)]))
        wanted.setdefault(series.file, []).append(series.column)
    tables = {
        name: read_table(path.parent / name, name, columns, declared.times, clock) for name, columns in wanted.items()
    }
    first, last = (end(int(pick(t.times)) for t in tables.values()) for end, pick in ((min, np.min), (max, np.max)))
    standard = standard_of(zone, *(datetime.fromtimestamp(time, UTC) for time in (first, last)))
    digests = {path.name: hashlib.sha256(read(path, MOST)).hexdigest()}
    return SiteSources(file, declared, tables, {**digests, **{t.name: t.digest for t in tables.values()}}, standard)


def _named(declared: SiteFile) -> Iterator[tuple[tuple[str | int, ...], Series]]:
    for place, home in enumerate(declared.homes):
        yield ("homes", place, "load"), home.load
        if home.roof is not None and home.roof.series is not None:
            yield ("homes", place, "roof"), home.roof.series


def _order(declared: SiteFile) -> list[int]:
    """Places of the homes in the neighbourhood's order: those with batteries by zone, then the others."""
    zones = declared.zone_names
    zone = [zones.index(home.zone) if home.zone else 0 for home in declared.homes]
    return sorted(range(len(zone)), key=lambda place: (declared.homes[place].battery is None, zone[place], place))


def _calendar(sources: SiteSources, series: list[EvenSlots], weathered: bool) -> tuple[Calendar, int]:
    """The whole days that all series have, and the minutes of a slot that divides theirs."""
    start, end = max(slots.start for slots in series), min(slots.end for slots in series)
    first = -(-(start + sources.standard) // SECONDS)
    days = (end + sources.standard) // SECONDS - first
    if days < 1:
        begin, stop = (datetime.fromtimestamp(time, UTC).isoformat(" ", "minutes") for time in (start, end))
        raise DataError(
            f"{sources.file.name}: its series have no whole day in common: from {begin} to {stop}; bring more of them. "
            "Days begin at midnight of standard time"
        )
    zone = sources.declared.timezone
    date = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=first)).date()
    plain = Calendar(date, days, zone, sources.standard)
    try:
        _ = plain.ahead
    except ConfigError as error:
        raise sources.file.located(DeclarationError([Problem(("timezone",), str(error))])) from error
    minutes = math.gcd(*(slots.minutes for slots in series), *([int(QUARTER) // MINUTE] if weathered else []))
    return Calendar(date, days, zone, sources.standard, _held_out(sources, plain)), minutes


def _held_out(sources: SiteSources, calendar: Calendar) -> dict[str, frozenset[int]] | None:
    declared = sources.declared.held_out
    if declared is None:
        return None
    found: dict[str, frozenset[int]] = {}
    for name, dates in (("validation", declared.validation), ("test", declared.test)):
        numbers = set()
        for place, day in enumerate(dates):
            try:
                numbers.add(calendar.number(day))
            except ConfigError as error:
                problem = Problem(("held_out", name, place), str(error))
                raise sources.file.located(DeclarationError([problem])) from error
        found[name] = frozenset(numbers)
    return found


def _cut(slots: EvenSlots, calendar: Calendar, minutes: int) -> Array:
    """`[days, slots]` kW of the calendar's days, in slots of so many minutes."""
    start = int(datetime.combine(calendar.first, datetime.min.time(), UTC).timestamp()) - calendar.standard
    finer = np.repeat(slots.power, slots.minutes // minutes)
    begin = (start - slots.start) // (minutes * MINUTE)
    a_day = SECONDS // (minutes * MINUTE)
    return np.asarray(finer[begin : begin + calendar.days * a_day].reshape(calendar.days, a_day))


def _weathered(home: SiteHome) -> bool:
    return home.roof is not None and home.roof.series is None


def _weather(home: SiteHome, calendar: Calendar, minutes: int) -> Array:
    """The same of a roof that was not measured: the shipped year's, at its date; without a roof 0."""
    a_day = SECONDS // (minutes * MINUTE)
    if home.roof is None or home.roof.peak is None or home.roof.facing is None:
        return np.zeros((calendar.days, a_day))
    year = load_profiles().roofs[ROOFS.index(home.roof.facing)]
    days = np.minimum(calendar.season.astype(np.int64), len(year) - 1)
    return np.asarray(home.roof.peak * np.repeat(year[days], int(QUARTER) // (minutes * MINUTE), axis=1))


def _neighbourhood(declared: SiteFile, homes: list[SiteHome], load: Array, pv: Array) -> Neighbourhood:
    zones = declared.zone_names
    made = [
        Home(
            zone=zones.index(home.zone) if home.zone else 0, energy=float(load[..., place].mean() * 24.0 * DAYS),
            peak=float(pv[..., place].max()), roof=0, lag=0.0, wallbox=False,
            capacity=home.battery.capacity if home.battery else 0.0,
        )
        for place, home in enumerate(homes)
    ]  # fmt: skip
    return Neighbourhood(tuple(made), (0.0,) * len(zones))


def _limits(declared: SiteFile, homes: Neighbourhood, limit_per_home: float) -> tuple[float, ...]:
    given = [zone.limit for zone in declared.zones] or [None]
    return tuple(limit_per_home * homes.connected(zone) if limit is None else limit for zone, limit in enumerate(given))


def _filled_values(
    homes: list[SiteHome], loads: list[EvenSlots], roofs: list[EvenSlots | None]
) -> Iterator[tuple[str, int]]:
    for home, load, roof in zip(homes, loads, roofs, strict=True):
        yield f"{home.load.file}: {home.load.column}", load.filled
        if home.roof is not None and home.roof.series is not None and roof is not None:
            yield f"{home.roof.file}: {home.roof.column}", roof.filled
