"""What is known ahead: energies that base series and the day's factor on the generation promise, tariff, and clock.

Forecasts know the base series, not the clouds and pulses. What is linear in the factor is read off the year's sums;
what is not (surplus, excess) is summed once a day, by quarter hour.
"""

from __future__ import annotations

import math
from typing import Any

from heron_env.domains.energy_management.days_tables import (
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
from heron_env.domains.energy_management.load_kernel import energy_of, energy_until
from heron_env.engine.kernels import leaf, table_of

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
        until = (quarter + 1) * batteries
        for home in range(batteries):
            net = expected(N, lane, home, quarter)
            surplus[lane, until + home] = surplus[lane, until - batteries + home] + max(-net, 0.0)
    for quarter in range(QUARTERS):
        until = (quarter + 1) * zones
        shops = energy_of(N, BUSINESS, day, quarter + 1) - energy_of(N, BUSINESS, day, quarter)
        for zone in range(zones):
            excess[lane, until + zone] = business[zone] * shops
        for home in range(len(places)):
            excess[lane, until + places[home, ZONE]] += expected(N, lane, home, quarter)
        for zone in range(zones):
            above = max(-excess[lane, until + zone] - limits[zone] * (QUARTER / 3600.0), 0.0)
            excess[lane, until + zone] = excess[lane, until - zones + zone] + above


@leaf
def expected(N: Any, lane: Any, home: Any, quarter: Any) -> Any:
    """kWh that a home is expected to draw in a quarter hour from midnight on, less what its roof yields."""
    day, homes, roof = of(N, "days")[lane], of(N, "homes"), ROOFS + of(N, "places")[home, ROOF]
    if quarter >= QUARTERS:
        day, quarter = (day + 1) % 365, quarter - QUARTERS
    load = energy_of(N, HOUSEHOLD, day, quarter + 1) - energy_of(N, HOUSEHOLD, day, quarter)
    sun = energy_of(N, roof, day, quarter + 1) - energy_of(N, roof, day, quarter)
    return homes[home, ENERGY] * load - of(N, "drawn")[lane, home * DRAWN + FACTOR] * homes[home, PEAK] * sun


@leaf
def _two_days_until(N: Any, series: Any, day: Any, time: Any) -> Any:
    """kWh of a base series from midnight to `time`, s, less than two days."""
    if time <= DAY:
        return energy_until(N, series, day, time)
    return energy_of(N, series, day, QUARTERS) + energy_until(N, series, (day + 1) % 365, time - DAY)


@leaf
def _expected_within(N: Any, lane: Any, home: Any, begin: Any, end: Any) -> Any:
    """kWh that a home is expected to draw from `begin` to `end`, s, less what its roof yields."""
    day, homes, roof = of(N, "days")[lane], of(N, "homes"), ROOFS + of(N, "places")[home, ROOF]
    load = _two_days_until(N, HOUSEHOLD, day, end) - _two_days_until(N, HOUSEHOLD, day, begin)
    sun = _two_days_until(N, roof, day, end) - _two_days_until(N, roof, day, begin)
    return homes[home, ENERGY] * load - of(N, "drawn")[lane, home * DRAWN + FACTOR] * homes[home, PEAK] * sun


@leaf
def _sum_until(sums: Any, lane: Any, of_whom: Any, every: Any, last: Any, time: Any) -> Any:
    """A sum by quarter hour, of one of `every`, at `time`; the day has `last` quarter hours."""
    quarter = min(int(time / QUARTER), last - 1)
    below, above = sums[lane, quarter * every + of_whom], sums[lane, (quarter + 1) * every + of_whom]
    return below + (time / QUARTER - quarter) * (above - below)


@leaf
def tell_forecasts(N: Any, lane: Any, time: Any, out: Any, b: Any, at: Any) -> Any:
    """Write what is expected at `time`; returns the place behind it in `out[b]`.

    By battery: surplus_rest, deficit_12h, then the net energies of each horizon; by zone: excess_rest.
    """
    surplus, excess = of(N, "surplus"), of(N, "excess")
    batteries, zones = int(of(N, "law")[BATTERIES]), len(of(N, "limits"))
    for home in range(batteries):
        place = at + home
        gone = _sum_until(surplus, lane, home, batteries, AHEAD, time)
        coming = _sum_until(surplus, lane, home, batteries, AHEAD, time + HALF_DAY) - gone
        out[b, place] = max(surplus[lane, QUARTERS * batteries + home] - gone, 0.0)
        for k in range(len(HORIZONS)):
            net = _expected_within(N, lane, home, time, time + 3600.0 * HORIZONS[k])
            out[b, place + (2 + k) * batteries] = net
        out[b, place + batteries] = max(net + coming, 0.0)  # the last horizon is half a day
    at += (2 + len(HORIZONS)) * batteries
    for zone in range(zones):
        gone = _sum_until(excess, lane, zone, zones, QUARTERS, time)
        out[b, at + zone] = max(excess[lane, QUARTERS * zones + zone] - gone, 0.0)
    return at + zones


@leaf
def tell_calendar(N: Any, lane: Any, step: Any, time: Any, out: Any, b: Any, at: Any) -> Any:
    """Write price, next price, hours until then; sine and cosine of the local hour and of the season."""
    day, tariff = of(N, "days")[lane], of(N, "tariff")
    whole = int(time / 3600.0)
    hour = 24 * day + whole
    local = (time / 3600.0 + of(N, "summer")[hour]) % 24.0 * (CIRCLE / 24.0)
    season = (day + step / of(N, "law")[STEPS]) * (CIRCLE / 365.0)
    out[b, at], out[b, at + 1], out[b, at + 2] = (
        tariff[0, hour],
        tariff[1, hour],
        tariff[2, hour] - time / 3600.0 + whole,
    )
    out[b, at + 3], out[b, at + 4] = math.sin(local), math.cos(local)
    out[b, at + 5], out[b, at + 6] = math.sin(season), math.cos(season)
    return at + 7
