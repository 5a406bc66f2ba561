"""A battery's plan for the rest of its day, exactly, and the power it begins with: compiled.

What a kWh in the battery saves is a non-increasing function of how many there are. A quarter hour's choices (store the
surplus, buy, cover the demand, feed in) are pieces of a convex function, too; going back one quarter hour in time
merges the two lists of pieces in the order of their slopes and cuts off what lies below empty or above full. No grid,
no iteration: a plan of 96 quarter hours takes about 20 us. Compiled from a copy of this file in the engine's cache
folder.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from heron_env.engine.kernels import leaf, on_arrays

(
    SOC, CAPACITY, LOAD, PV, POWER, SURPLUS_REST, DEFICIT_12H, NET_1H, NET_3H, NET_6H, NET_12H,
    ZONE_POWER, ZONE_MEAN, ZONE_LIMIT, EXCESS_REST, AGE, TIME, DAY, AHEAD,
) = range(19)  # fmt: skip
"""What is known, a row for each decision: observed columns by their names, then the age of what the zone says (s), the
time of day (s), the day, and the hours that the local clock is ahead of it."""
(
    EFFICIENCY, FEED_IN, WEAR, STORED, OVERLOAD, FLUCTUATION, MOST, ZONE_SIZE, FOLLOW, WINDOW, EXCESS, SHOULDER, FADING,
) = range(13)  # fmt: skip
"""The law: prices, the inverter's power, the number of batteries in the zone; then the constants of `Foresight`."""

DAY_LENGTH, QUARTER, QUARTERS = 86_400.0, 900.0, 96
EDGES = (0, 4, 12, 24, 48)
"""Quarter hours from now between which the forecast tells the net energy."""
LATITUDE, NOON, TILT = math.radians(51.0), 12.33, math.radians(23.44)
"""Of Germany's middle; NOON in hours UTC+1."""
PIECES, KINKS = 640, 5
NEGLIGIBLE = 1e-9
FULL, FORBIDDEN = 1e-3, 10.0
"""How near to full or empty (share) a battery no longer charges or discharges: the price (EUR/kWh) that says so."""


@on_arrays
def decide(known: Any, prices: Any, law: Any, powers: Any) -> None:
    """Fill `powers` `[n]` (kW, positive charges) for the rows of `known` `[n, 19]`; `prices` `[24]` of local hours."""
    slope, length, kept_slope, kept_length = (
        np.empty(PIECES),
        np.empty(PIECES),
        np.empty(PIECES),
        np.empty(PIECES),
    )
    sun, net, excess = np.empty(QUARTERS), np.empty(QUARTERS), np.empty(QUARTERS)
    stage, kink = np.empty((2, 4)), np.empty((2, KINKS))
    for row in range(len(known)):
        seen = known[row]
        stages = min(math.ceil((DAY_LENGTH - seen[TIME]) / QUARTER - NEGLIGIBLE), QUARTERS)
        for k in range(stages):
            sun[k] = _sun(seen, k)
        _shape(seen, sun, net, stages)
        _shape_excess(seen, law, sun, excess, stages)
        slope[0], length[0], pieces = -law[STORED], seen[CAPACITY], 1
        for k in range(stages - 1, -1, -1):
            hours = min(QUARTER, DAY_LENGTH - seen[TIME] - k * QUARTER) / 3600.0
            room = _choices(law, net[k], excess[k], _price(seen, prices, k), hours, stage)
            pieces = _back(slope, length, pieces, stage, seen[CAPACITY], room, kept_slope, kept_length)
        powers[row] = _choose(seen, law, _price(seen, prices, -1), slope, length, pieces, kink)


@leaf
def _hour(seen: Any, k: Any) -> Any:
    """Hour UTC+1 in the middle of quarter hour k from now; k = -1: now."""
    return (seen[TIME] + (k + 0.5 if k >= 0 else 0.0) * QUARTER) / 3600.0


@leaf
def _price(seen: Any, prices: Any, k: Any) -> Any:
    """EUR/kWh in quarter hour k; k = -1: now."""
    return prices[int(_hour(seen, k) + seen[AHEAD] + 1e-4) % 24]


@leaf
def _sun(seen: Any, k: Any) -> Any:
    """Sine of the sun's height in quarter hour k, 0 at night: the shape of generation."""
    declination = -TILT * math.cos(2.0 * math.pi * (seen[DAY] + 10.0) / 365.0)
    angle = (_hour(seen, k) - NOON) * math.pi / 12.0
    upright = math.sin(LATITUDE) * math.sin(declination)
    return max(upright + math.cos(LATITUDE) * math.cos(declination) * math.cos(angle), 0.0)


@leaf
def _shape(seen: Any, sun: Any, net: Any, stages: Any) -> None:
    """Net demand (kW) of the quarter hours from the forecast's sums, each of which is kept.

    An even demand and a peak of generation that fit the four sums best are the shape; what is left of a sum is even
    demand, or, where none would be left, all of it follows the sun. Behind 12 h: the mean demand of the 12 h, and what
    of the surplus until midnight is left for then.
    """
    hours_hours = hours_light = light_light = hours_total = light_total = 0.0
    for i in range(4):
        hours, light, total = _stretch(seen, i)
        hours_hours, hours_light, light_light = (
            hours_hours + hours * hours,
            hours_light + hours * light,
            (light_light + light * light),
        )
        hours_total, light_total = hours_total + hours * total, light_total + light * total
    determinant = hours_hours * light_light - hours_light * hours_light
    peak = 0.0
    if determinant > NEGLIGIBLE:
        peak = max((hours_light * hours_total - hours_hours * light_total) / determinant, 0.0)
    for i in range(4):
        hours, light, total = _stretch(seen, i)
        demand = (total + peak * light) / hours
        for k in range(EDGES[i], min(EDGES[i + 1], stages)):
            net[k] = demand - peak * sun[k] if demand >= 0.0 or light < NEGLIGIBLE else total / light * sun[k]
    light = 0.0
    for k in range(EDGES[4], stages):
        light += 0.25 * sun[k]
    left = max(seen[SURPLUS_REST] - (seen[DEFICIT_12H] - seen[NET_12H]), 0.0)
    for k in range(EDGES[4], stages):
        net[k] = -left * sun[k] / light if light > NEGLIGIBLE and sun[k] > 0.0 else seen[DEFICIT_12H] / 12.0


@leaf
def _stretch(seen: Any, i: Any) -> Any:
    """Length (h), light (h of full sun) and net energy (kWh) of the forecast's stretch i."""
    light = 0.0
    for k in range(EDGES[i], EDGES[i + 1]):
        light += 0.25 * _sun(seen, k)
    before = seen[NET_1H + i - 1] if i > 0 else 0.0
    return 0.25 * (EDGES[i + 1] - EDGES[i]), light, seen[NET_1H + i] - before


@leaf
def _shape_excess(seen: Any, law: Any, sun: Any, excess: Any, stages: Any) -> None:
    """This battery's share (kW) of the zone's feed-in above the limit: where the sun is high."""
    highest = total = 0.0
    for k in range(stages):
        highest = max(highest, sun[k])
    for k in range(stages):
        excess[k] = max(sun[k] - law[SHOULDER], 0.0)
        total += 0.25 * excess[k]
    share = law[EXCESS] * seen[EXCESS_REST] / law[ZONE_SIZE]
    for k in range(stages):
        excess[k] = excess[k] * share / total if total > NEGLIGIBLE else 0.0


@leaf
def _choices(law: Any, net: Any, excess: Any, price: Any, hours: Any, stage: Any) -> Any:
    """Slopes (EUR/kWh of energy taken from the battery) and lengths (kWh) of a stage's pieces, ascending.

    Between the powers at which something changes (the home's balance, standing still, the share of the zone's excess)
    costs are linear. Where charging brings money, the loss counts the other way: else it would pay to burn energy.
    Returns the energy (kWh) of all pieces that charge.
    """
    most, efficiency = law[MOST], law[EFFICIENCY]
    balance, excess = max(min(-net, most), -most), min(excess, most)
    room = 0.0
    edges = (-most, min(balance, 0.0), min(max(balance, 0.0), excess), max(balance, excess), most)
    for i in range(4):
        low, high = edges[i], edges[i + 1]
        middle = 0.5 * (low + high)
        cost = price if net + middle > 0.0 else law[FEED_IN]
        if middle < excess and excess > 0.0:
            cost -= law[OVERLOAD]
        cost += law[WEAR] if middle > 0.0 else -law[WEAR]
        loss = efficiency if (middle > 0.0) == (cost > 0.0) else 1.0 / efficiency
        at, piece = i, -cost / loss
        while at > 0 and stage[0, at - 1] > piece:
            stage[0, at], stage[1, at], at = stage[0, at - 1], stage[1, at - 1], at - 1
        stage[0, at] = piece
        stage[1, at] = (high - low) * hours * (efficiency if middle > 0.0 else 1.0 / efficiency)
        room += stage[1, at] if middle > 0.0 else 0.0
    return room


@leaf
def _back(
    slope: Any, length: Any, pieces: Any, stage: Any, capacity: Any, room: Any, kept_slope: Any, kept_length: Any
) -> Any:
    """The value before a stage from the value behind it, in place; returns the number of pieces.

    Merged pieces begin where the battery would be below empty by all that the stage can charge (`room`, kWh).
    """
    below, above = room, capacity
    i = j = count = 0
    while above > NEGLIGIBLE and (i < pieces or j < 4):
        if j == 4 or (i < pieces and slope[i] <= stage[0, j]):
            steep, long, i = slope[i], length[i], i + 1
        else:
            steep, long, j = stage[0, j], stage[1, j], j + 1
        cut = min(long, below)
        below, long = below - cut, min(long - cut, above)
        if long > 0.0:
            above -= long
            if count > 0 and kept_slope[count - 1] == steep:
                kept_length[count - 1] += long
            else:
                kept_slope[count], kept_length[count], count = steep, long, count + 1
    for i in range(count):
        slope[i], length[i] = kept_slope[i], kept_length[i]
    return count


@leaf
def _mean_slope(slope: Any, length: Any, pieces: Any, low: Any, high: Any) -> Any:
    """EUR/kWh that a kWh more is worth between two contents (kWh), the mean of the pieces there; negative."""
    total = start = 0.0
    for i in range(pieces):
        total += slope[i] * max(min(high, start + length[i]) - max(low, start), 0.0)
        start += length[i]
    return total / (high - low)


@leaf
def _choose(seen: Any, law: Any, price: Any, slope: Any, length: Any, pieces: Any, kink: Any) -> Any:
    """The power (kW) from now on: where the marginal cost of a kW more becomes positive.

    A zone's costs are counted as though all batteries behind it did what this one does: its own share of what they
    change together. Between kinks the marginal cost is constant; at each it grows by the kink's height.
    """
    stored, capacity, window, efficiency = seen[SOC] * seen[CAPACITY], seen[CAPACITY], law[WINDOW], law[EFFICIENCY]
    fill, drain = FORBIDDEN, -FORBIDDEN
    if stored < (1.0 - FULL) * capacity:
        fill = _mean_slope(slope, length, pieces, stored, min(stored + window, capacity))
    if stored > FULL * capacity:
        drain = _mean_slope(slope, length, pieces, max(stored - window, 0.0), stored)
    power = seen[POWER]
    if (stored <= 0.0 and power < 0.0) or (stored >= capacity and power > 0.0):
        power = 0.0
    trust = math.exp(-seen[AGE] / law[FADING])
    overload, follow, size = law[OVERLOAD], trust * law[FOLLOW] * law[FLUCTUATION], law[ZONE_SIZE]
    others = seen[ZONE_POWER] - size * power
    kink[0, 0], kink[1, 0] = seen[PV] - seen[LOAD], price - law[FEED_IN]
    kink[0, 1], kink[1, 1] = 0.0, 2.0 * law[WEAR] + efficiency * fill - drain / efficiency
    kink[0, 2], kink[1, 2] = (seen[ZONE_MEAN] - others) / size, 2.0 * follow
    kink[0, 3], kink[1, 3] = (seen[ZONE_LIMIT] - others) / size, overload
    kink[0, 4], kink[1, 4] = (-seen[ZONE_LIMIT] - others) / size, overload
    marginal = law[FEED_IN] - law[WEAR] + drain / efficiency - follow - overload
    most, best = law[MOST], law[MOST]
    for _ in range(KINKS):
        nearest = 0
        for i in range(1, KINKS):
            if kink[0, i] < kink[0, nearest]:
                nearest = i
        if marginal <= 0.0:
            best, marginal = kink[0, nearest], marginal + kink[1, nearest]
            if marginal <= 0.0:
                best = most
        kink[0, nearest] = math.inf
    return max(min(best, most), -most)
