"""A site: who lives behind which transformer, base series of a year, and the exogenous series of a day."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import DataError, did_you_mean
from heron_env.files.reading import is_file, is_folder
from heron_env.given import ANY, MOST_AGENTS, require_count
from heron_env.seeding import stream
from heron_env.worlds.energy_management.calendar import DAYS, SHIPPED, Calendar, TimeOfUse
from heron_env.worlds.energy_management.days_tables import DAY as DAY
from heron_env.worlds.energy_management.days_tables import QUARTERS
from heron_env.worlds.energy_management.plausible import power, register, require_sunlight

QUARTERS_PER_YEAR: Final = DAYS * QUARTERS
COLUMNS: Final = ("household", "business", "pv_south", "pv_east", "pv_west")
ROOFS: Final = ("south", "east", "west")
SOUTH_YIELD: Final = 1000.0  # kWh per kWp and year
ENVELOPE_DAYS: Final = 15

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Profiles:
    """Base series of one year on a UTC+1 clock.

    Attributes:
        household, business: `[365, 96]`, kW per MWh/a; each holds exactly 1 MWh in the year.
        roofs: `[3, 365, 96]`, kW per kWp of the south, east and west roof.
    """

    household: Array
    business: Array
    roofs: Array

    @cached_property
    def clear_sky(self) -> Array:
        """`[3, 365, 96]` kW per kWp: the best power at that quarter hour within 15 days, on either side."""
        shifts = range(-ENVELOPE_DAYS, ENVELOPE_DAYS + 1)
        best = self.roofs.copy()
        for shift in shifts:
            np.maximum(best, np.roll(self.roofs, shift, axis=1), out=best)
        return best


def normalised(power: Array, energy: float = 1000.0) -> Array:
    """`power` (kW in quarter hours) scaled to `energy` kWh in the year."""
    return np.asarray(power * (energy / (power.sum() * 0.25)))


def load_profiles(path: str | Path | None = None) -> Profiles:
    """The shipped series (None) or those of a user's CSV file; its columns are documented in data/SOURCES.md.

    Raises:
        DataError: the file is missing, or one of its rows is wrong; the message has the line number.
    """
    return _shipped() if path is None else read_csv(Path(path))


@lru_cache(maxsize=1)
def _shipped() -> Profiles:
    with np.load(Path(__file__).parent / "data" / "profiles.npz") as file:
        table = np.stack([file[name].astype(np.float64) for name in COLUMNS])
    table[2:] *= SOUTH_YIELD / (table[2].sum() * 0.25)  # what float16 rounded away
    return _profiles(table)


def _profiles(table: Array) -> Profiles:
    household, business = (normalised(table[row]).reshape(DAYS, QUARTERS) for row in (0, 1))
    return Profiles(household, business, table[2:].reshape(3, DAYS, QUARTERS))


def read_csv(path: Path) -> Profiles:
    """Read a user's profiles: the header of COLUMNS, then 35,040 rows of numbers >= 0.

    Raises:
        DataError: naming file, line and column of the first wrong cell.
    """
    if not is_file(path):
        fault = "is a folder" if is_folder(path) else "no such file"
        raise DataError(f"profiles={str(path)!r}: {fault}; give a CSV file with the columns {','.join(COLUMNS)}")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            _require_columns(path.name, tuple(cell.strip() for cell in next(rows, [])))
            numbered = [(rows.line_num, _row(path.name, rows.line_num, row)) for row in rows if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path.name}: is no CSV file in UTF-8 ({error}); save it as one") from error
    lines, cells = [line for line, _ in numbered], [row for _, row in numbered]
    if len(cells) != QUARTERS_PER_YEAR:
        raise DataError(
            f"{path.name}: expected {QUARTERS_PER_YEAR} rows (quarter hours of 365 days), got {len(cells)}; "
            "hourly values must be repeated four times, and February 29 left out"
        )
    table = np.array(cells).T
    for name, column in zip(COLUMNS[:2], table[:2], strict=True):
        if not column.any():
            raise DataError(f"{path.name}: column {name} is 0 in every row; a load can't be normalised to 1 MWh/a then")
    for name, column in zip(COLUMNS, table, strict=True):
        if name in COLUMNS[2:]:
            require_sunlight(path.name, name, column, lines)
        if (words := register(column)) is not None:
            raise DataError(f"{path.name}:{lines[-1]}: {name}={column[-1]:g}: the column {words}")
    return _profiles(table)


def _require_columns(name: str, header: tuple[str, ...]) -> None:
    if header == COLUMNS:
        return
    words = f"{name}:1: expected the columns {','.join(COLUMNS)}, got {','.join(header) or 'none'}"
    unknown = next((column for column in header if column not in COLUMNS), "")
    if ";" in "".join(header):
        raise DataError(f"{words}; separate them by commas, and write decimals with a point")
    if set(header) == set(COLUMNS):
        raise DataError(f"{words}; put them into that order, each once")
    missing = [column for column in COLUMNS if column not in header]
    remedy = f"add {','.join(missing)}" if missing else f"remove {unknown}"
    raise DataError(f"{words}; {remedy}.{did_you_mean(unknown, COLUMNS)}")


def _row(name: str, line: int, row: list[str]) -> list[float]:
    if len(row) != len(COLUMNS):
        raise DataError(
            f"{name}:{line}: expected {len(COLUMNS)} cells, got {len(row)}; give one a column, decimals with a point"
        )
    return [power(f"{name}:{line}", column, text) for column, text in zip(COLUMNS, row, strict=True)]


ENERGY: Final = (2500.0, 6000.0)  # kWh/a of a home (BDEW H25)
BUSINESS: Final = (8000.0, 14000.0)  # kWh/a of a zone's business (BDEW G25)
PEAK: Final = (5.0, 10.0)  # kWp of a roof
CAPACITY: Final = (7.0, 13.0)  # kWh of a battery
WALLBOXES: Final = 0.35  # share of homes with a wallbox
LAG: Final = 60.0  # s, the most that a cloud's shadow takes to a roof


@dataclass(frozen=True)
class Home:
    """One home: energy in kWh/a, peak in kWp (0: no roof), roof 0 south, 1 east, 2 west; capacity 0: no battery."""

    zone: int
    energy: float
    peak: float
    roof: int
    lag: float
    capacity: float
    wallbox: bool


@dataclass(frozen=True)
class Neighbourhood:
    """Homes with batteries first, in the batteries' order, then the passive ones; one business per zone (kWh/a)."""

    homes: tuple[Home, ...]
    business: tuple[float, ...]

    @property
    def batteries(self) -> int:
        """Number of homes with a battery."""
        return sum(home.capacity > 0.0 for home in self.homes)

    @property
    def zones(self) -> int:
        """Number of zones."""
        return len(self.business)

    @cached_property
    def energy(self) -> Array:
        """`[homes]` kWh/a."""
        return np.array([home.energy for home in self.homes])

    @cached_property
    def peak(self) -> Array:
        """`[homes]` kWp."""
        return np.array([home.peak for home in self.homes])

    @cached_property
    def zone(self) -> NDArray[np.int64]:
        """`[homes]` number of the zone."""
        return np.array([home.zone for home in self.homes])

    @cached_property
    def roof(self) -> NDArray[np.int64]:
        """`[homes]` 0 south, 1 east, 2 west."""
        return np.array([home.roof for home in self.homes])

    @cached_property
    def lag(self) -> Array:
        """`[homes]` s."""
        return np.array([home.lag for home in self.homes])

    @cached_property
    def wallbox(self) -> NDArray[np.bool_]:
        """`[homes]` who has one."""
        return np.array([home.wallbox for home in self.homes])

    @cached_property
    def membership(self) -> Array:
        """`[zones, homes]` 1.0 where the home belongs to the zone."""
        return np.asarray(np.arange(self.zones)[:, None] == self.zone, dtype=np.float64)

    def connected(self, zone: int) -> int:
        """Number of homes behind the zone's transformer."""
        return sum(home.zone == zone for home in self.homes)


def draw_neighbourhood(seed: int, num_batteries: int, zone_size: int, passive_per_zone: int) -> Neighbourhood:
    """Homes and businesses from one seed; the last zone may have fewer batteries than `zone_size`.

    Raises:
        ConfigError: a count is no whole number, too small, or more than can be built.
    """
    for name, count, least, most in (
        ("neighbourhood", seed, 0, ANY),
        ("num_batteries", num_batteries, 1, MOST_AGENTS),
        ("zone_size", zone_size, 1, ANY),
    ):
        require_count(f"{name}={count!r:.60}", count, least, most)
    zones = -(-num_batteries // zone_size)
    require_count(f"passive_per_zone={passive_per_zone!r:.60}", passive_per_zone, 0, MOST_AGENTS // zones)
    active = [(index // zone_size, True, True) for index in range(num_batteries)]
    passive = [(index // passive_per_zone, False, index % 2 == 0) for index in range(zones * passive_per_zone)]
    places = active + passive
    wallbox = _wallboxes(seed, "battery", len(active)) + _wallboxes(seed, "passive", len(passive))
    homes = tuple(
        _home(stream(seed, "energy_management", *_name(index, num_batteries)), *place, wallbox=wallbox[index])
        for index, place in enumerate(places)
    )
    business = (stream(seed, "energy_management", "business", zone).uniform(*BUSINESS) for zone in range(zones))
    return Neighbourhood(homes, tuple(float(energy) for energy in business))


def _wallboxes(seed: int, kind: str, count: int) -> list[bool]:
    """Who among `count` homes has a wallbox: exactly the share, rounded."""
    order = np.argsort(stream(seed, "energy_management", "wallbox", kind).random(count), kind="stable")
    owners = set(order[: round(WALLBOXES * count)].tolist())
    return [home in owners for home in range(count)]


def _name(index: int, batteries: int) -> tuple[str, int]:
    """What a home's stream is called: adding batteries changes no passive home, and the other way round."""
    return ("battery", index) if index < batteries else ("passive", index - batteries)


def _home(generator: np.random.Generator, zone: int, battery: bool, roofed: bool, *, wallbox: bool) -> Home:
    energy, peak, capacity = (float(generator.uniform(*bounds)) for bounds in (ENERGY, PEAK, CAPACITY))
    roof, lag = int(generator.integers(3)), float(generator.uniform(0.0, LAG))
    return Home(zone, energy, peak if roofed else 0.0, roof, lag, capacity if battery else 0.0, wallbox)


FORECAST_ERROR: Final = 0.15


@dataclass(frozen=True)
class Before:
    """What was metered in the bin before midnight: the base series' last quarter hour of the day before, kW.

    Attributes:
        load, pv: `[batteries]`.
        background: `[zones]`.
        power: `[zones]`, of the transformers with all batteries at rest.
    """

    load: Array
    pv: Array
    background: Array
    power: Array

    def of(self, days: int | NDArray[np.int64]) -> Before:
        """Those of `days` `[b]` out of one for each day of the year."""
        return Before(*(getattr(self, column.name)[days] for column in fields(self)))


@dataclass(frozen=True)
class DaySeries:
    """Powers in kW (means over a bin), energies in kWh, prices in EUR/kWh; row k holds in bin, or from step, k on.

    Attributes:
        load, pv: `[bins of the day, batteries]`.
        background: `[bins of the day, zones]`.
        surplus_rest, deficit_12h, net_1h, net_3h, net_6h, net_12h: `[steps, batteries]`.
        excess_rest: `[steps, zones]`.
        tariff: `[steps, 3]` price, next_price, hours_to_change.
        clock: `[steps, 4]` sine and cosine of the local hour, sine and cosine of the season.
    """

    load: Array
    pv: Array
    background: Array
    surplus_rest: Array
    deficit_12h: Array
    net_1h: Array
    net_3h: Array
    net_6h: Array
    net_12h: Array
    excess_rest: Array
    tariff: Array
    clock: Array

    @property
    def steps(self) -> int:
        """Number of control steps in the day."""
        return len(self.clock)

    @property
    def bins(self) -> int:
        """Number of bins in a step."""
        return len(self.load) // len(self.clock)


@dataclass(frozen=True)
class Site:
    """What all days have in common: who lives there, the year's base series, the tariff, the zones' limits (kW).

    files: SHA-256 by name of each file that it was read from.
    """

    neighbourhood: Neighbourhood
    profiles: Profiles
    tariff: TimeOfUse
    limits: tuple[float, ...]
    forecast_error: float = FORECAST_ERROR
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def calendar(self) -> Calendar:
        """Which days there are."""
        return SHIPPED

    def base(self, day: int) -> tuple[Array, Array, Array]:
        """Load and generation `[homes, 96]` and the businesses' load `[zones, 96]` of a day, kW in quarter hours."""
        homes = self.neighbourhood
        load = homes.energy[:, None] * (self.profiles.household[day] / 1000.0)
        roofs = self.profiles.roofs[homes.roof, day]
        business = np.array(homes.business)[:, None] * (self.profiles.business[day] / 1000.0)
        return load, homes.peak[:, None] * roofs, business

    def before(self, day: int | NDArray[np.int64]) -> Before:
        """What the meters had shown when the day began; of `days` `[b]`: `[b, n]`."""
        return self._before.of(day)

    @cached_property
    def _before(self) -> Before:
        """Of each day, `[days, n]`."""
        homes, batteries = self.neighbourhood, self.neighbourhood.batteries
        load, pv, shops = self._at_midnight()
        background = (load - pv)[:, batteries:] @ homes.membership[:, batteries:].T + shops
        power = background + (load - pv)[:, :batteries] @ homes.membership[:, :batteries].T
        return Before(load[:, :batteries], pv[:, :batteries], background, power)

    def _at_midnight(self) -> tuple[Array, Array, Array]:
        """Load and generation `[days, homes]` and the businesses' load `[days, zones]` before each day, kW."""
        homes = self.neighbourhood
        household, shops = (
            np.roll(power[:, -1], 1)[:, None] / 1000.0 for power in (self.profiles.household, self.profiles.business)
        )
        roofs = np.roll(self.profiles.roofs[:, :, -1], 1, axis=1)
        return household * homes.energy, roofs[homes.roof].T * homes.peak, shops * np.array(homes.business)


DAY_HOURS: Final = 24.0


@dataclass(frozen=True)
class Measured:
    """Powers of homes as they were measured, in the order of the neighbourhood's homes.

    Attributes:
        load, pv: `[days, slots, homes]` kW, means over a slot; as many slots as divide the day.
        filled: slots that no meter filled, by file and column.
    """

    load: Array
    pv: Array
    filled: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class OwnSite(Site):
    """A site whose series are what happens: nothing is drawn on them.

    Attributes:
        dates: which days were measured.
        measured: loads and roofs.
        names: of the homes, in the order of the neighbourhood.
    """

    dates: Calendar
    measured: Measured
    names: tuple[str, ...]

    @property
    def calendar(self) -> Calendar:
        """The days that were measured."""
        return self.dates

    @cached_property
    def energies(self) -> Array:
        """`[days, slots + 1, 2 * homes]` kWh since midnight: of loads, then of roofs."""
        powers = np.concatenate([self.measured.load, self.measured.pv], axis=2)
        days, slots, series = powers.shape
        sums = np.zeros((days, slots + 1, series))
        np.cumsum(powers * (DAY_HOURS / slots), axis=1, out=sums[:, 1:])
        return sums

    def base(self, day: int) -> tuple[Array, Array, Array]:
        """As in Site: what forecasts know, the quarter hours' means."""
        sums = self.energies[day]
        slots, quarters = np.linspace(0.0, 1.0, len(sums)), np.linspace(0.0, 1.0, QUARTERS + 1)
        means = np.stack([np.diff(np.interp(quarters, slots, series)) for series in sums.T]) * QUARTERS / DAY_HOURS
        homes = len(self.neighbourhood.homes)
        return means[:homes], means[homes:], np.zeros((self.neighbourhood.zones, QUARTERS))

    def _at_midnight(self) -> tuple[Array, Array, Array]:
        last, days = (self.measured.load[:, -1], self.measured.pv[:, -1]), self.calendar.before
        return last[0][days], last[1][days], np.zeros((len(days), self.neighbourhood.zones))
