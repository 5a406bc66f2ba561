"""What `homes.yaml` says: homes, their batteries, roofs and series, the tariff, and what to do about gaps."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from heron_env.errors import DeclarationError, Problem, did_you_mean
from heron_env.files.models import Declared, Many, NonNegative, Positive, Text, formatted, non_negative, number
from heron_env.given import MOST_AGENTS
from heron_env.worlds.energy_management.calendar import TimeOfUse, zone_of
from heron_env.worlds.energy_management.features import Charge, Zone

DEFAULT_ZONE: Final = "zone_1"
Unit = Literal["kW", "W", "kWh", "Wh"]


def _zone_name(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be the name of a time zone, such as 'Europe/Berlin', got {formatted(value)}")
    zone_of(value)
    return value


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


def _limit(value: object) -> float:
    most, converted = Zone.quantities["limit"].high, number(value)
    if not 0.0 < converted <= most:
        raise ValueError(f"must be above 0 and at most {most:g} kW, got {value!r}")
    return converted


def _minutes(value: object) -> float:
    converted = non_negative(value)
    if not 0.0 < converted <= 1440.0:
        raise ValueError(f"must be above 0 and at most 1440 minutes, a day, got {value!r}")
    return converted


TimeZone = Annotated[str, BeforeValidator(_zone_name)]
Dates = Annotated[tuple[Annotated[date, BeforeValidator(_date)], ...], Many]


class Series(Declared):
    """A column of a CSV or parquet file. Of kWh and Wh each value is the energy of its slot."""

    file: Text
    column: Text
    unit: Unit = "kW"


class Roof(Declared):
    """Measured (file, column, unit), or of the shipped weather year (peak in kWp, and where it faces)."""

    file: Text | None = None
    column: Text | None = None
    unit: Unit = "kW"
    peak: Positive | None = None
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


class Battery(Declared):
    """A home's battery; its inverter has 5 kW."""

    capacity: Annotated[float, BeforeValidator(_capacity)]


class Home(Declared):
    """One home; without a battery it is part of its zone's background."""

    name: Text
    load: Series
    roof: Roof | None = None
    battery: Battery | None = None
    zone: Text | None = None


class ZoneLimit(Declared):
    """A transformer; without a limit: `limit_per_home` for each home behind it."""

    name: Text
    limit: Annotated[float, BeforeValidator(_limit)] | None = None


class Gaps(Declared):
    """What to do where values are missing: refuse, hold the last one, or interpolate, for `longest` minutes at most."""

    fill: Literal["refuse", "hold", "interpolate"] = "refuse"
    longest: Annotated[float, BeforeValidator(_minutes)] = 60.0

    @classmethod
    def written_out(cls, given: object) -> object:
        """`gaps: hold` is short for `gaps: {fill: hold}`."""
        return {"fill": given} if isinstance(given, str) else given


class Times(Declared):
    """How files tell time: column, which end of a slot it names, and the clock of times without an offset."""

    column: Text = "time"
    stamps: Literal["start", "end"] = "start"
    clock: TimeZone | None = None


class Tariff(Declared):
    """Prices in EUR/kWh, windows in whole local hours: as TimeOfUse."""

    low: NonNegative = TimeOfUse.low
    standard: NonNegative = TimeOfUse.standard
    high: NonNegative = TimeOfUse.high
    low_hours: Annotated[tuple[int, ...], Many] = TimeOfUse.low_hours
    high_hours: Annotated[tuple[int, ...], Many] = TimeOfUse.high_hours

    @model_validator(mode="after")
    def _possible(self) -> Tariff:
        self.made()
        return self

    def made(self) -> TimeOfUse:
        """The tariff. Raises ConfigError."""
        return TimeOfUse(**dict(self))


class HeldOut(Declared):
    """Dates that are kept for validation and for tests; all others are for training."""

    validation: Dates = ()
    test: Dates = ()

    @model_validator(mode="after")
    def _apart(self) -> HeldOut:
        for place, day in enumerate(self.test):
            if day in self.validation:
                raise DeclarationError([Problem(("test", place), f"{day} is a validation day already; keep one")])
        return self


class SiteFile(Declared):
    """The whole file."""

    timezone: TimeZone
    homes: Annotated[tuple[Home, ...], Many, Field(min_length=1)]
    zones: Annotated[tuple[ZoneLimit, ...], Many] = ()
    times: Times = Times()
    gaps: Gaps = Gaps()
    tariff: Tariff = Tariff()
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


def _repeated(where: str, named: tuple[Home, ...] | tuple[ZoneLimit, ...]) -> list[Problem]:
    first: dict[str, int] = {}
    return [
        Problem((where, place, "name"), f"{name!r} is there already; give each a name of its own")
        for place, name in enumerate([each.name for each in named])
        if first.setdefault(name, place) != place
    ]
