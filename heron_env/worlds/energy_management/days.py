"""The days of all lanes, drawn in one compiled pass: a step's values are made when they are due.

A single environment is lane 0. Memory: at most 58 kB a lane with 6 batteries, 2 zones and 6 other homes, more where a
row alone takes more than 16 kB: up to 30 kB, 1.5 kB a home (of which 1 kB for the pulses of its day with most energy),
1.2 kB a battery, 0.8 kB a zone.
"""

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import Agent
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import GLOBAL, Layout
from heron_env.engine.arrays import addresses
from heron_env.engine.cache import cached_file
from heron_env.engine.model import Native
from heron_env.worlds.energy_management import days_tables as tables
from heron_env.worlds.energy_management.agents import Battery, Bins, Constants, TransformerZone
from heron_env.worlds.energy_management.calendar import DAYS, hourly
from heron_env.worlds.energy_management.days_tables import AHEAD, CYCLES, DAY, DRAWN, FORMS, HORIZONS, QUARTERS
from heron_env.worlds.energy_management.site import DaySeries, OwnSite, Profiles, Site

KEPT: Final = 16384  # bytes of a lane's rows that are made ahead
KERNEL: Final = Path(__file__).with_name("days_kernel.py")
IN_BINS: Final = ("load", "pv", "background")
METERED: Final = ("load_metered", "pv_metered")
NO_SERIES: Final = ("homes_without", "zones_without", *METERED)
FIELDS: Final = {
    "load": "HomeSeries.load", "pv": "HomeSeries.pv", "background": "ZoneSeries.power",
    "excess_rest": "Zone.excess_rest", "homes_without": "Ledger.without", "zones_without": "Ledger.without",
    "load_metered": "Meter.load", "pv_metered": "Meter.pv",
}  # fmt: skip
"""What is no forecast of a battery."""
OF_ALL: Final = {
    "tariff": ("Tariff.price", "Tariff.next_price", "Tariff.hours_to_change"),
    "clock": ("Clock.hour_sin", "Clock.hour_cos", "Clock.season_sin", "Clock.season_cos"),
}

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Keys = NDArray[np.integer[Any]]


class Days:
    """Row k of a lane is what is put in force when k steps are done; the row of a day that is over is its last step's.

    Args:
        site: who lives there, base series, tariff, limits.
        constants: prices, for what a step costs without batteries.
        dt: control step, s, a divisor of the day.
        bins: in a step.
        coming: rows end with what meters show of the step that comes: its own load and generation, in one bin.

    Attributes:
        steps: control steps in the day.
        parts: where in a row something stands. load, pv: `batteries * bins`, those of a battery side by side;
            background: `zones * bins`, kW; surplus_rest, deficit_12h, net_1h, net_3h, net_6h, net_12h: of batteries,
            excess_rest: of zones, kWh; tariff: price, next_price, hours_to_change; clock: sine and cosine of hour and
            season; homes_without, zones_without: EUR (<= 0) that the last step would have cost without any battery;
            with `coming` load_metered and pv_metered, kW.
        days: i64 `[lanes]`, the day that each lane runs; -1: none yet.
    """

    def __init__(self, site: Site, constants: Constants, *, dt: float, bins: int, coming: bool = False) -> None:
        homes, bin_length = site.neighbourhood, dt / bins
        assert bins == 1 or not coming, "which of the bins would a meter show?"
        self.site, self.steps, self.bins = site, round(DAY / dt), bins
        self.batteries, self.zones = homes.batteries, homes.zones
        self.parts, self.width = _parts(self.batteries, self.zones, bins, METERED if coming else ())
        self._ahead = max(KEPT // (8 * self.width), 1)
        approach = 1.0 - math.exp(-bin_length / constants.mean_time)
        law = (
            dt, bin_length, self.steps, self.batteries, constants.feed_in_price, constants.overload_price,
            constants.fluctuation_price, approach, constants.mean_time / 3600.0, site.forecast_error,
        )  # fmt: skip
        self._constants = [getattr(constants, name) for name in Constants.quantities]
        self._site = {
            "law": np.array(law, dtype=np.float64),
            **(_of_own_site(site) if isinstance(site, OwnSite) else _of_site(site)),
        }
        self._lanes: dict[str, NDArray[Any]] = {}
        self._table = addresses(FORMS, {})
        self.address = int(self._table.ctypes.data)
        self._make_room(0)

    @property
    def nbytes(self) -> int:
        """What all lanes' days take, bytes."""
        return sum(array.nbytes for array in self._lanes.values())

    def reserve(self, lanes: int) -> None:
        """Room for so many lanes; what is there stays. Those that come in parts are given room for some more."""
        if lanes > (had := len(self.days)):
            self._make_room(max(lanes, had + had // 4))

    def _make_room(self, lanes: int) -> None:
        had = len(self._lanes["days"]) if self._lanes else 0
        for name, width in self._widths().items():
            kind, axes = FORMS[name]
            each = self._ahead if name == "kept" else 1
            grown = np.zeros((lanes * each, width) if axes == 2 else lanes, dtype=kind)
            if had:
                grown[: had * each] = self._lanes[name]
            self._lanes[name] = grown
        self.days = self._lanes["days"]
        self.days[had:] = -1
        self._note()

    def _note(self) -> None:
        """Where the arrays are now: compiled code knows addresses only."""
        self._table[:] = addresses(FORMS, {**self._site, **self._lanes})

    def _widths(self) -> dict[str, int]:
        """Numbers of a lane by array."""
        homes = len(self._site["homes"])
        pulses = int(self._site["places"][:, tables.PULSES].sum())
        return {
            "days": 1, "told": 1, "kept": self.width, "kept_from": 1,
            "cycles": CYCLES * tables.CLOUD, "cycle_at": QUARTERS + 1, "drawn": homes * DRAWN,
            "pulses": pulses * tables.PULSE, "touching": 2 * homes * QUARTERS,
            "clear": homes + 1, "surplus": self.batteries * (AHEAD + 1), "excess": self.zones * (QUARTERS + 1),
            "without": 2 * (self.batteries + 2 * self.zones),
        }  # fmt: skip

    def begin(self, lanes: Ints, seeds: Keys, episodes: Keys, days: Ints) -> None:
        """A day begins in each of `lanes`; all `[b]`. Seed and episode key its draws as World.draw does."""
        self.reserve(int(lanes.max(initial=-1)) + 1)
        self.days[lanes] = days
        whose = (np.ascontiguousarray(given, dtype=np.uint64) for given in (seeds, episodes))
        kernel().draw(self.address, _whole(lanes), *whose)

    def factors(self, lane: int) -> Array:
        """By what the forecasts of the homes' generation are off on a lane's day, `[homes]`."""
        return np.array(self._lanes["drawn"][lane].reshape(-1, DRAWN)[:, tables.FACTOR])

    def at(self, lanes: int | Ints, steps: int | Ints) -> Array:
        """What is put in force after so many steps, 0 at the day's begin: `[width]`, `[b, width]` of many."""
        if isinstance(steps, int):
            return np.asarray(self._write(np.array([lanes]), np.array([steps]), np.empty((1, self.width)))[0])
        return self._write(_whole(lanes), _whole(steps), np.empty((len(steps), self.width)))

    def series(self, lane: int) -> DaySeries:
        """A lane's day."""
        shape = (self.steps, self.width)
        rows = self._write(np.full(self.steps, lane), np.arange(self.steps), np.empty(shape))
        found = {name: rows[:, part].copy() for name, part in self.parts.items() if name not in NO_SERIES}
        for name in IN_BINS:
            found[name] = found[name].reshape(self.steps, -1, self.bins).transpose(0, 2, 1)
            found[name] = found[name].reshape(self.steps * self.bins, -1)
        return DaySeries(**found)

    def settle(self, hierarchy: Hierarchy, layout: Layout, deciding: Sequence[int]) -> None:
        """Note which columns of the truth, numbered as `layout.full_names`, days are put into, and who decides."""
        before, days = self.site.before(np.arange(self.site.calendar.days)), self.site.calendar.days
        of_all = np.tile([*self._constants, DAY / self.steps / self.bins], (days, 1))
        batteries, zones = _ids(hierarchy, Battery), _ids(hierarchy, TransformerZone)
        place = {name: column for column, name in enumerate(layout.full_names)}
        names = [f"{owner}.{field}" for owners, field in (
            (batteries, "Meter.load"), (batteries, "Flow.load"), (batteries, "Meter.pv"), (zones, "Background.power"),
            (zones, "Zone.power"), (zones, "Zone.mean_power"),
        ) for owner in owners]  # fmt: skip
        names += [f"{GLOBAL}.{kind.__name__}.{name}" for kind in (Constants, Bins) for name in kind.quantities]
        self.soc_at = np.array([place[f"{battery}.Charge.soc"] for battery in batteries])
        self.row_at, self.start_at = self.columns(hierarchy, layout), np.array([place[name] for name in names])
        self.starts = np.concatenate(
            [before.load, before.load, before.pv, before.background, before.power, before.power, of_all], axis=1
        )
        gains = [[place[f"{owner}.Ledger.amount"] for owner in _gaining(hierarchy, rank)] for rank in deciding]
        most = max(map(len, gains))
        self._site |= {
            "gains": np.array([[len(row), *row, *[0] * (most - len(row))] for row in gains]),
            "soc_at": self.soc_at, "row_at": self.row_at, "start_at": self.start_at, "starts": self.starts,
            "low": layout.low, "high": layout.high,
        }  # fmt: skip
        self._note()

    def choose(self, days: Sequence[int]) -> None:
        """Draw from these days when the next episodes begin."""
        self._site["choices"] = self.choices = np.array(days, dtype=np.int64)
        self._note()

    def natives(self, loop: str, lanes: int) -> tuple[Native, ...]:
        """`begin`, `finish` or `at_close`, in so many lanes of the engine."""
        self.reserve(lanes)
        return (Native(loop, getattr(kernel(), loop), self.address),)

    def columns(self, hierarchy: Hierarchy, layout: Layout) -> Ints:
        """`[width]` columns of the truth, numbered as `layout.full_names`, that a row is for."""
        place = {name: column for column, name in enumerate(layout.full_names)}
        batteries, zones = _ids(hierarchy, Battery), _ids(hierarchy, TransformerZone)
        owners = {"background": zones, "excess_rest": zones, "zones_without": zones}
        names: list[str] = []
        for part in self.parts:
            if part in OF_ALL:
                names += [f"{GLOBAL}.{field}" for field in OF_ALL[part]]
                continue
            fields = [FIELDS.get(part, f"Forecast.{part}")]
            fields = [f"{fields[0]}[{number}]" for number in range(self.bins)] if part in IN_BINS else fields
            names += [f"{owner}.{field}" for owner in owners.get(part, batteries) for field in fields]
        return np.array([place[name] for name in names])

    def _write(self, lanes: Ints, steps: Ints, out: Array) -> Array:
        begun = kernel().rows(self.address, lanes, steps, out)
        assert begun, f"not all of the lanes {lanes} have a day: begin it first"
        return out


def _gaining(hierarchy: Hierarchy, rank: int) -> list[str]:
    """Whose money trainers count for an agent: its own first, then its zone's, or that of its batteries."""
    others = hierarchy.children[rank] or [hierarchy.parent[rank]]
    return [hierarchy.ids[other] for other in (rank, *others)]


def _ids(hierarchy: Hierarchy, kind: type[Agent]) -> list[str]:
    return [agent.agent_id for agent in hierarchy.agents if isinstance(agent, kind)]


@functools.cache
def kernel() -> Any:
    """days_kernel.py, compiled once for an installation."""
    return cached_file(KERNEL)


def _whole(numbers: int | Ints) -> Ints:
    return np.ascontiguousarray(numbers, dtype=np.int64)


def _parts(batteries: int, zones: int, bins: int, metered: Sequence[str]) -> tuple[dict[str, slice], int]:
    """Where in a row something stands, and its width."""
    nets = {f"net_{hours}h": batteries for hours in HORIZONS}
    sizes = {
        "load": batteries * bins, "pv": batteries * bins, "background": zones * bins,
        "surplus_rest": batteries, "deficit_12h": batteries, **nets, "excess_rest": zones,
        "tariff": 3, "clock": 4, "homes_without": batteries, "zones_without": zones,
        **dict.fromkeys(metered, batteries),
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
        **_of_calendar(site), "own": np.zeros((0, 1)),
        "base": base.reshape(DAYS, -1), "sky": _sky(profiles).reshape(DAYS, -1),
    }  # fmt: skip


def _of_own_site(site: OwnSite) -> dict[str, NDArray[Any]]:
    """The same of measured series: nothing is drawn, and there is no base series."""
    homes, days = site.neighbourhood, site.calendar.days
    nothing = np.zeros(len(homes.homes), dtype=np.int64)
    return {
        "homes": np.stack([homes.energy, homes.peak, homes.lag], axis=1),
        "places": np.stack([homes.roof, homes.zone, nothing, nothing, nothing], axis=1).astype(np.int64),
        **_of_calendar(site), "own": np.ascontiguousarray(site.energies.reshape(days, -1)),
        "base": np.zeros((days, (QUARTERS + 1) * tables.SERIES)), "sky": np.zeros((days, QUARTERS * 3 * tables.SKY)),
    }  # fmt: skip


def _of_calendar(site: Site) -> dict[str, NDArray[Any]]:
    """What holds on each day, measured or drawn."""
    calendar, hours = site.calendar, 24 * site.calendar.days
    return {
        "business": np.array(site.neighbourhood.business), "limits": np.array(site.limits, dtype=np.float64),
        "start": np.ascontiguousarray(site.before(np.arange(calendar.days)).power),
        "tariff": np.stack(hourly(site.tariff, calendar.ahead)), "summer": calendar.ahead[:hours].copy(),
        "following": calendar.following, "season": calendar.season,
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
