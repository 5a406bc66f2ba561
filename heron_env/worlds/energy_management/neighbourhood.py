"""The neighbourhood: who lives behind which transformer, drawn once and independent of the episode's seed."""

import csv
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import DataError, did_you_mean
from heron_env.files.reading import is_file, is_folder
from heron_env.given import ANY, MOST_AGENTS, require_count
from heron_env.seeding import stream

DAYS: Final = 365
QUARTERS_PER_DAY: Final = 96
QUARTERS: Final = DAYS * QUARTERS_PER_DAY
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
    household, business = (normalised(table[row]).reshape(DAYS, QUARTERS_PER_DAY) for row in (0, 1))
    return Profiles(household, business, table[2:].reshape(3, DAYS, QUARTERS_PER_DAY))


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
            cells = [_row(path.name, rows.line_num, row) for row in rows if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path.name}: is no CSV file in UTF-8 ({error}); save it as one") from error
    if len(cells) != QUARTERS:
        raise DataError(
            f"{path.name}: expected {QUARTERS} rows (quarter hours of 365 days), got {len(cells)}; "
            "hourly values must be repeated four times, and February 29 left out"
        )
    table = np.array(cells).T
    for name, column in zip(COLUMNS[:2], table[:2], strict=True):
        if not column.any():
            raise DataError(f"{path.name}: column {name} is 0 in every row; a load can't be normalised to 1 MWh/a then")
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


def power(where: str, column: str, text: str) -> float:
    """The legal value of a cell: finite, and not below 0. Raises DataError that begins with `where`."""
    try:
        value = float(text)
    except ValueError as error:
        raise DataError(f"{where}: {column}={text!r:.60} is not a number; correct or fill in the cell") from error
    if not math.isfinite(value):
        raise DataError(f"{where}: {column}={text.strip()} must be finite; fill in the cell")
    if value < 0.0:
        raise DataError(f"{where}: {column}={text.strip()} must be >= 0 (generation is positive, too)")
    return value


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
