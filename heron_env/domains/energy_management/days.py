"""The days of all lanes, drawn in one compiled pass: a step's values are made when they are due.

A single environment is lane 0. Memory: about 45 kB a lane with 6 batteries, 2 zones and 6 other homes, at any step and
bin: 8 kB, 3 kB a home (of which 2 kB for the pulses of its day with most energy), 1.2 kB a battery, 0.8 kB a zone.
"""

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.domains.energy_management import days_tables as tables
from heron_env.domains.energy_management.day import Site
from heron_env.domains.energy_management.days_tables import AHEAD, CYCLES, DAY, DRAWN, FORMS, HORIZONS, QUARTERS
from heron_env.domains.energy_management.features import Constants
from heron_env.domains.energy_management.profiles import DAYS, Profiles
from heron_env.domains.energy_management.tariff import summer_time, year_of
from heron_env.engine.arrays import addresses
from heron_env.engine.cache import cached_file
from heron_env.seeding import keys, standard_normal, uniform_rows

WORST_ERROR: Final = 3.0  # standard deviations at which a forecast's error is cut
KERNEL: Final = Path(__file__).with_name("days_kernel.py")
PARTS: Final = ("days_tables.py", "forecast_kernel.py", "load_kernel.py", "sun_kernel.py")

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]


class Days:
    """Row k of a lane is what is put in force when k steps are done; the row of a day that is over is its last step's.

    Args:
        site: who lives there, base series, tariff, limits.
        constants: prices, for what a step costs without batteries.
        dt: control step, s, a divisor of the day.
        bin_length: s, a divisor of `dt`.

    Attributes:
        steps: control steps in the day.
        bins: in a step.
        parts: where in a row something stands. load, pv: `batteries * bins`, those of a battery side by side;
            background: `zones * bins`, kW; surplus_rest, deficit_12h, net_1h, net_3h, net_6h, net_12h: of batteries,
            excess_rest: of zones, kWh; tariff: price, next_price, hours_to_change; clock: sine and cosine of hour and
            season; homes_without, zones_without: EUR (<= 0) that the last step would have cost without any battery.
        days: i64 `[lanes]`, the day that each lane runs; -1: none yet.
    """

    def __init__(self, site: Site, constants: Constants, dt: float, bin_length: float) -> None:
        homes = site.neighbourhood
        self.site, self.steps, self.bins = site, round(DAY / dt), round(dt / bin_length)
        self.batteries, self.zones = homes.batteries, homes.zones
        self.parts, self.width = _parts(self.batteries, self.zones, self.bins)
        approach = 1.0 - math.exp(-bin_length / constants.mean_time)
        law = (
            dt, bin_length, self.steps, self.batteries, constants.feed_in_price, constants.overload_price,
            constants.fluctuation_price, approach, constants.mean_time / 3600.0,
        )  # fmt: skip
        self._site = {"law": np.array(law, dtype=np.float64), **_of_site(site)}
        self._lanes: dict[str, NDArray[Any]] = {}
        self.days = np.zeros(0, dtype=np.int64)
        self._rows = np.zeros((0, self.width))

    @property
    def nbytes(self) -> int:
        """What all lanes' days take, bytes."""
        return sum(array.nbytes for array in self._lanes.values())

    def reserve(self, lanes: int) -> None:
        """Room for so many lanes; what is there stays."""
        had = len(self.days)
        if lanes <= had:
            return
        for name, width in self._widths().items():
            kind, axes = FORMS[name]
            grown = np.zeros((lanes, width) if axes == 2 else lanes, dtype=kind)
            if had:
                grown[:had] = self._lanes[name]
            self._lanes[name] = grown
        self.days = self._lanes["days"]
        self.days[had:] = -1
        self._table = addresses(FORMS, {**self._site, **self._lanes})  # compiled code knows addresses only

    def _widths(self) -> dict[str, int]:
        """Numbers of a lane by array."""
        homes = len(self._site["homes"])
        pulses = int(self._site["places"][:, tables.PULSES].sum())
        return {
            "days": 1, "told": 1, "cycles": CYCLES * tables.CLOUD, "cycle_at": QUARTERS + 1, "drawn": homes * DRAWN,
            "pulses": pulses * tables.PULSE, "touching": 2 * homes * QUARTERS,
            "surplus": self.batteries * (AHEAD + 1), "excess": self.zones * (QUARTERS + 1),
            "without": 2 * (self.batteries + 2 * self.zones),
        }  # fmt: skip

    def begin(self, lanes: Ints, days: Ints, seeds: Keys, episodes: Keys) -> None:
        """Draw the days `days` `[b]`, 0 to 364, of `lanes` `[b]` from these keys `[b]`, as World.draw makes them."""
        self.reserve(int(lanes.max(initial=-1)) + 1)
        drawn = (keys("world", seeds, episodes, 0, name) for name in ("clouds", "appliances", "wallbox"))
        uniform = uniform_rows(keys("world", seeds, episodes, 0, "forecast"), len(self._site["homes"]))
        z = np.array([standard_normal(u) for u in uniform.ravel().tolist()]).reshape(uniform.shape)
        factors = np.maximum(1.0 + self.site.forecast_error * np.clip(z, -WORST_ERROR, WORST_ERROR), 0.0)
        kernel().begin(self._table.ctypes.data, lanes, days, np.stack([*drawn], axis=1), factors)

    def rows(self, lanes: Ints, steps: Ints) -> Array:
        """Rows `[b, width]` of `lanes` `[b]`, each after its own number of steps; valid until the next call."""
        out = self._room(len(lanes))
        kernel().rows(self._table.ctypes.data, lanes, steps, out)
        return out

    def before(self, lanes: Ints) -> tuple[Array, Array, Array]:
        """kW of the base series' last quarter hour before midnight.

        Load and generation `[b, batteries]`, power of the zones without any battery `[b, zones]`.
        """
        out = np.empty((len(lanes), 2 * self.batteries + self.zones))
        kernel().before(self._table.ctypes.data, lanes, out)
        return out[:, : self.batteries], out[:, self.batteries : 2 * self.batteries], out[:, 2 * self.batteries :]

    def _room(self, lanes: int) -> Array:
        """`[lanes, width]`, used again: fresh memory for each step would cost more than filling it."""
        if len(self._rows) < lanes:
            self._rows = np.empty((lanes, self.width))
        return self._rows[:lanes]


@functools.cache
def kernel() -> Any:
    """days_kernel.py, compiled once for an installation."""
    return cached_file(KERNEL, *(KERNEL.with_name(name) for name in PARTS))


def _parts(batteries: int, zones: int, bins: int) -> tuple[dict[str, slice], int]:
    """Where in a row something stands, and its width."""
    nets = {f"net_{hours}h": batteries for hours in HORIZONS}
    sizes = {
        "load": batteries * bins, "pv": batteries * bins, "background": zones * bins,
        "surplus_rest": batteries, "deficit_12h": batteries, **nets, "excess_rest": zones,
        "tariff": 3, "clock": 4, "homes_without": batteries, "zones_without": zones,
    }  # fmt: skip
    ends = np.cumsum([*sizes.values()]).tolist()
    return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}, ends[-1]


def _of_site(site: Site) -> dict[str, NDArray[Any]]:
    """The site's arrays by name (days_tables.py)."""
    homes, profiles = site.neighbourhood, site.profiles
    base = _sums([profiles.household / 1000.0, profiles.business / 1000.0, *profiles.roofs])
    most = tables.APPLIANCES * base[:, -1, tables.HOUSEHOLD].max() * homes.energy
    room = (most / tables.LEAST_PULSE).astype(np.int64) + 1
    places = np.stack([homes.roof, homes.zone, homes.wallbox, np.cumsum(room) - room, room], axis=1)
    return {
        "homes": np.stack([homes.energy, homes.peak, homes.lag], axis=1), "places": places.astype(np.int64),
        "business": np.array(homes.business), "limits": np.array(site.limits, dtype=np.float64),
        "base": base.reshape(DAYS, -1), "sky": _sky(profiles).reshape(DAYS, -1),
        "tariff": np.stack(year_of(site.tariff)), "summer": summer_time(),
    }  # fmt: skip


def _sums(series: Sequence[Array]) -> Array:
    """kWh from midnight on `[days, 97, series]` of each series' kW in quarter hours `[days, 96]`."""
    sums = np.zeros((DAYS, QUARTERS + 1, len(series)))
    np.cumsum(np.stack(series, axis=-1) * 0.25, axis=1, out=sums[:, 1:])
    return sums


def _sky(profiles: Profiles) -> Array:
    """kW per kWp under a cloud, what a clear sky adds, its share of the time `[days, 96, roofs, 3]`."""
    low = np.minimum(profiles.roofs, tables.SHADE * profiles.clear_sky)
    span = profiles.clear_sky - low
    share = np.divide(profiles.roofs - low, span, out=np.zeros_like(span), where=span > 0.0)
    return np.ascontiguousarray(np.stack([low, span, share], axis=-1).transpose(1, 2, 0, 3))
