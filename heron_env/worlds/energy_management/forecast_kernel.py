"""What is known ahead: energies that base series and the day's factor on the generation promise, tariff, and clock.

Forecasts know the base series, not the clouds and pulses. What is linear in the factor is read off the year's sums;
what is not (surplus, excess) is summed once a day, by quarter hour.
"""

from __future__ import annotations

import math
from typing import Any

from heron_env.engine.kernels import leaf, table_of
from heron_env.worlds.energy_management.days_tables import (
    AHEAD,
    BATTERIES,
    BUSINESS,
    DAY,
    DRAWN,
    ENERGY,
    FACTOR,
    FORMS,
    HORIZONS,
    HOUSEHOLD,
    PEAK,
    QUARTER,
    QUARTERS,
    ROOF,
    ROOFS,
    STEPS,
    ZONE,
)
from heron_env.worlds.energy_management.load_kernel import energy_of, energy_until, is_own, own_energy

of = table_of(FORMS)
CIRCLE = 2.0 * math.pi
HALF_DAY = 0.5 * DAY


@leaf
def sum_forecasts(N: Any, lane: Any) -> None:
    """Surplus of each battery's home and feed-in of each zone above its limit, from midnight on."""
    places, surplus, excess = of(N, "places"), of(N, "surplus"), of(N, "excess")
    business, limits, day = of(N, "business"), of(N, "limits"), of(N, "days")[lane]
    batteries, zones = int(of(N, "law")[BATTERIES]), len(limits)
    surplus[lane, :batteries], excess[lane, :zones] = 0.0, 0.0
    for quarter in range(AHEAD):
        until, base = (quarter + 1) * batteries, _base_of(N, lane, quarter)
        for home in range(batteries):
            net = expected(N, lane, home, base, quarter * QUARTER, (quarter + 1) * QUARTER)
            surplus[lane, until + home] = surplus[lane, until - batteries + home] + max(-net, 0.0)
    for quarter in range(QUARTERS):
        until, base = (quarter + 1) * zones, _base_of(N, lane, quarter)
        shops = energy_of(N, BUSINESS, day, quarter + 1) - energy_of(N, BUSINESS, day, quarter)
        for zone in range(zones):
            excess[lane, until + zone] = business[zone] * shops
        for home in range(len(places)):
            ahead = expected(N, lane, home, base, quarter * QUARTER, (quarter + 1) * QUARTER)
            excess[lane, until + places[home, ZONE]] += ahead
        for zone in range(zones):
            above = max(-excess[lane, until + zone] - limits[zone] * (QUARTER / 3600.0), 0.0)
            excess[lane, until + zone] = excess[lane, until - zones + zone] + above


@leaf
def _base_of(N: Any, lane: Any, quarter: Any) -> Any:
    """kWh of the base series in a quarter hour from midnight on: of households and of each roof."""
    day = of(N, "days")[lane]
    if quarter >= QUARTERS:
        day, quarter = of(N, "following")[day], quarter - QUARTERS
    return (
        energy_of(N, HOUSEHOLD, day, quarter + 1) - energy_of(N, HOUSEHOLD, day, quarter),
        energy_of(N, ROOFS, day, quarter + 1) - energy_of(N, ROOFS, day, quarter),
        energy_of(N, ROOFS + 1, day, quarter + 1) - energy_of(N, ROOFS + 1, day, quarter),
        energy_of(N, ROOFS + 2, day, quarter + 1) - energy_of(N, ROOFS + 2, day, quarter),
    )


@leaf
def expected(N: Any, lane: Any, home: Any, base: Any, begin: Any, end: Any) -> Any:
    """kWh that a home is expected to draw less what its roof yields from `begin` to `end`, s since midnight.

    base: of the base series in that time; an own site's home has series of its own.
    """
    if is_own(N):
        sun = own_energy(N, lane, home, True, end) - own_energy(N, lane, home, True, begin)
        load = own_energy(N, lane, home, False, end) - own_energy(N, lane, home, False, begin)
        return load - of(N, "drawn")[lane, home * DRAWN + FACTOR] * sun
    homes, roof = of(N, "homes"), of(N, "places")[home, ROOF]
    sun = base[1] if roof == 0 else base[2] if roof == 1 else base[3]
    return homes[home, ENERGY] * base[0] - of(N, "drawn")[lane, home * DRAWN + FACTOR] * homes[home, PEAK] * sun


@leaf
def _two_days_until(N: Any, series: Any, day: Any, time: Any) -> Any:
    """kWh of a base series from midnight to `time`, s, less than two days."""
    if time <= DAY:
        return energy_until(N, series, day, time)
    return energy_of(N, series, day, QUARTERS) + energy_until(N, series, of(N, "following")[day], time - DAY)


@leaf
def _share_of(sums: Any, lane: Any, at: Any, every: Any, share: Any) -> Any:
    """A sum by quarter hour, `share` of the way from the one at `at` to the next; those of a quarter: `every`."""
    below = sums[lane, at]
    return below + share * (sums[lane, at + every] - below)


@leaf
def tell_forecasts(N: Any, lane: Any, time: Any, out: Any, b: Any, at: Any) -> Any:
    """Write what is expected at `time`; returns the place behind it in `out[b]`.

    By battery: surplus_rest, deficit_12h, then the net energies of each horizon; by zone: excess_rest. What homes have
    in common, the base series' energies, is read once.
    """
    surplus, excess = of(N, "surplus"), of(N, "excess")
    batteries, zones = int(of(N, "law")[BATTERIES]), len(of(N, "limits"))
    now = _base_until(N, lane, time)
    for k in range(len(HORIZONS)):
        until = time + 3600.0 * HORIZONS[k]
        then = _base_until(N, lane, until)
        base = (then[0] - now[0], then[1] - now[1], then[2] - now[2], then[3] - now[3])
        for home in range(batteries):
            out[b, at + (2 + k) * batteries + home] = expected(N, lane, home, base, time, until)
    early, late = min(int(time / QUARTER), AHEAD - 1), min(int((time + HALF_DAY) / QUARTER), AHEAD - 1)
    since, until = time / QUARTER - early, (time + HALF_DAY) / QUARTER - late
    for home in range(batteries):
        gone = _share_of(surplus, lane, early * batteries + home, batteries, since)
        coming = _share_of(surplus, lane, late * batteries + home, batteries, until) - gone
        net = out[b, at + (1 + len(HORIZONS)) * batteries + home]  # the last horizon is half a day
        out[b, at + home] = max(surplus[lane, QUARTERS * batteries + home] - gone, 0.0)
        out[b, at + batteries + home] = max(net + coming, 0.0)
    at += (2 + len(HORIZONS)) * batteries
    early = min(int(time / QUARTER), QUARTERS - 1)
    since = time / QUARTER - early
    for zone in range(zones):
        gone = _share_of(excess, lane, early * zones + zone, zones, since)
        out[b, at + zone] = max(excess[lane, QUARTERS * zones + zone] - gone, 0.0)
    return at + zones


@leaf
def _base_until(N: Any, lane: Any, time: Any) -> Any:
    """kWh of the base series of households and of each roof from midnight to `time`, s, less than two days."""
    day = of(N, "days")[lane]
    return (
        _two_days_until(N, HOUSEHOLD, day, time),
        _two_days_until(N, ROOFS, day, time),
        _two_days_until(N, ROOFS + 1, day, time),
        _two_days_until(N, ROOFS + 2, day, time),
    )


@leaf
def tell_calendar(N: Any, lane: Any, step: Any, time: Any, out: Any, b: Any, at: Any) -> Any:
    """Write price, next price, hours until then; sine and cosine of the local hour and of the season."""
    day, tariff = of(N, "days")[lane], of(N, "tariff")
    whole = int(time / 3600.0)
    hour = 24 * day + whole
    local = (time / 3600.0 + of(N, "summer")[hour]) % 24.0 * (CIRCLE / 24.0)
    season = (of(N, "season")[day] + step / of(N, "law")[STEPS]) * (CIRCLE / 365.0)
    out[b, at], out[b, at + 1], out[b, at + 2] = (
        tariff[0, hour],
        tariff[1, hour],
        tariff[2, hour] - time / 3600.0 + whole,
    )
    out[b, at + 3], out[b, at + 4] = math.sin(local), math.cos(local)
    out[b, at + 5], out[b, at + 6] = math.sin(season), math.cos(season)
    return at + 7
