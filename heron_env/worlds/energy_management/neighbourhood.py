"""The neighbourhood: who lives behind which transformer, drawn once and independent of the episode's seed."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env.given import ANY, MOST_AGENTS, require_count
from heron_env.seeding import stream

ENERGY: Final = (2500.0, 6000.0)  # kWh/a of a home (BDEW H25)
BUSINESS: Final = (8000.0, 14000.0)  # kWh/a of a zone's business (BDEW G25)
PEAK: Final = (5.0, 10.0)  # kWp of a roof
CAPACITY: Final = (7.0, 13.0)  # kWh of a battery
WALLBOXES: Final = 0.35  # share of homes with a wallbox
LAG: Final = 60.0  # s, the most that a cloud's shadow takes to a roof

Array = NDArray[np.float64]


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
