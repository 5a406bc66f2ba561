"""The days of all lanes: `begin` draws them in one pass, `rows` makes what a step puts in force when it is due.

`N` is the address of the tables (days_tables.py). A row depends on the lane's day and on its step alone, in whatever
order rows are asked for; what the steps before it would have cost without batteries is carried from row to row, and
made again from midnight on where one goes back. Some rows are made at a time and kept: what they are made of is in the
fastest cache then. Compiled from a copy of this file in the engine's cache folder.
"""

from __future__ import annotations

from typing import Any

from heron_env.engine.draw_kernel import key_with
from heron_env.engine.kernels import leaf, on_arrays, table_of
from heron_env.worlds.energy_management.days_tables import (
    APPROACH,
    BATTERIES,
    BIN_LENGTH,
    BUSINESS,
    DRAWN,
    DT,
    FACTOR,
    FEED_IN,
    FLUCTUATION,
    FORMS,
    HOUSEHOLD,
    MEAN_HOURS,
    OVERLOAD,
    STEPS,
    ZONE,
)
from heron_env.worlds.energy_management.forecast_kernel import sum_forecasts, tell_calendar, tell_forecasts
from heron_env.worlds.energy_management.load_kernel import (
    UNKNOWN,
    consumption,
    draw_clouds,
    draw_load,
    energy_until,
    generation,
    is_own,
    own_energy,
    sun_factor,
)

of = table_of(FORMS)


@on_arrays
def begin(N: Any, lanes: Any, days: Any, keys: Any, factors: Any) -> None:
    """Draw the days that begin.

    lanes, days: `[b]`. keys: uint64 `[b, 3]`, of clouds, appliances, wallboxes. factors: of the forecasts on the
    generation, `[b, homes]`.
    """
    for k in range(len(lanes)):
        lane = lanes[k]
        of(N, "days")[lane] = days[k]
        of(N, "told")[lane] = of(N, "kept_from")[lane] = -1
        of(N, "clear")[lane, len(of(N, "homes"))] = UNKNOWN
        drawn = not is_own(N)
        if drawn:
            draw_clouds(N, lane, keys[k, 0])
        for home in range(len(of(N, "homes"))):
            of(N, "drawn")[lane, home * DRAWN + FACTOR] = factors[k, home]
            if drawn:
                draw_load(N, lane, home, key_with(keys[k, 1], home), keys[k, 2])
                sun_factor(N, lane, home)
        sum_forecasts(N, lane)


@on_arrays
def rows(N: Any, lanes: Any, steps: Any, out: Any) -> Any:
    """Write the rows of `lanes` `[b]`, each after so many `steps` `[b]`, into `out` `[b, width]` (days.py).

    Returns False, having written nothing more, at a lane that has no day.
    """
    days, kept, kept_from, last = of(N, "days"), of(N, "kept"), of(N, "kept_from"), int(of(N, "law")[STEPS])
    ahead = len(kept) // max(len(days), 1)
    for b in range(len(lanes)):
        lane, done = lanes[b], min(steps[b], last)
        if not 0 <= lane < len(days) or days[lane] < 0:
            return False
        if ahead == 0:
            _make_row(N, lane, done, out, b)
            continue
        if not 0 <= done - kept_from[lane] < ahead or kept_from[lane] < 0:
            for k in range(min(ahead, last - done + 1)):
                _make_row(N, lane, done + k, kept, lane * ahead + k)
            kept_from[lane] = done
        out[b] = kept[lane * ahead + done - kept_from[lane]]
    return True


@leaf
def _make_row(N: Any, lane: Any, done: Any, out: Any, b: Any) -> None:
    """The row of a lane after so many steps, into `out[b]`."""
    law, batteries, zones = of(N, "law"), int(of(N, "law")[BATTERIES]), len(of(N, "limits"))
    step = min(done, int(law[STEPS]) - 1)  # after the last step its own values stay in force
    if not _carry(N, lane, done, out, b):
        _tell_bins(N, lane, step, out, b)
    at = tell_forecasts(N, lane, step * law[DT], out, b, (2 * batteries + zones) * _bins(N))
    at = tell_calendar(N, lane, step, step * law[DT], out, b, at)
    for k in range(batteries + zones):
        out[b, at + k] = of(N, "without")[lane, k]
    at += batteries + zones
    for k in range(out.shape[1] - at):  # meters that show the coming step: its load and generation, one bin each
        out[b, at + k] = out[b, k]


@leaf
def _bins(N: Any) -> Any:
    """Number of bins in a step."""
    return int(of(N, "law")[DT] / of(N, "law")[BIN_LENGTH] + 0.5)


@leaf
def _tell_bins(N: Any, lane: Any, step: Any, out: Any, b: Any) -> None:
    """Means over the bins of a step, kW: load and generation by battery, the other consumers by zone."""
    law, places, business, day = of(N, "law"), of(N, "places"), of(N, "business"), of(N, "days")[lane]
    batteries, bins, length, homes, clear = int(law[BATTERIES]), _bins(N), law[BIN_LENGTH], len(places), of(N, "clear")
    own = is_own(N)
    for k in range(bins):
        begin, end = (step * bins + k) * length, (step * bins + k + 1) * length
        goes_on = clear[lane, homes] == begin
        clear[lane, homes] = end
        base = energy_until(N, HOUSEHOLD, day, end) - energy_until(N, HOUSEHOLD, day, begin)
        for zone in range(len(business)):
            energy = energy_until(N, BUSINESS, day, end) - energy_until(N, BUSINESS, day, begin)
            out[b, (2 * batteries + zone) * bins + k] = business[zone] * energy * 3600.0 / length
        for home in range(len(places)):
            if own:
                load = (
                    3600.0 / length * (own_energy(N, lane, home, False, end) - own_energy(N, lane, home, False, begin))
                )
                sun = 3600.0 / length * (own_energy(N, lane, home, True, end) - own_energy(N, lane, home, True, begin))
            else:
                load = consumption(N, lane, home, begin, end, base) / length
                before = clear[lane, home] if goes_on else UNKNOWN
                sun, clear[lane, home] = generation(N, lane, home, begin, end, before)
                sun /= length
            if home < batteries:
                out[b, home * bins + k], out[b, (batteries + home) * bins + k] = load, sun
            else:
                out[b, (2 * batteries + places[home, ZONE]) * bins + k] += load - sun


@leaf
def _carry(N: Any, lane: Any, done: Any, out: Any, b: Any) -> Any:
    """Bring `without` to the row of so many steps; returns whether that left the bins of that row in `out[b]`."""
    told, without, batteries = of(N, "told"), of(N, "without"), int(of(N, "law")[BATTERIES])
    zones, last = len(of(N, "limits")), int(of(N, "law")[STEPS])
    size = batteries + 2 * zones
    fresh = False
    if told[lane] < 0 or told[lane] > done:
        told[lane] = 0
        without[lane, :size] = 0.0
        for zone in range(zones):
            without[lane, batteries + zones + zone] = of(N, "start")[of(N, "days")[lane], zone]
        _tell_bins(N, lane, 0, out, b)
        _settle(N, lane, 0, out, b)
        fresh = True
    while told[lane] < done:
        for k in range(size):
            without[lane, k] = without[lane, size + k]
        told[lane] += 1
        if told[lane] < last:
            _tell_bins(N, lane, told[lane], out, b)
            _settle(N, lane, told[lane], out, b)
            fresh = True
        else:
            fresh = False
    return fresh


@leaf
def _settle(N: Any, lane: Any, step: Any, out: Any, b: Any) -> None:
    """What the step in `out[b]` costs without any battery, EUR (<= 0) by home and zone, and the slow means after it."""
    law, places, limits = of(N, "law"), of(N, "places"), of(N, "limits")
    batteries, zones, bins, hours = int(law[BATTERIES]), len(limits), _bins(N), law[BIN_LENGTH] / 3600.0
    without, size = of(N, "without"), batteries + 2 * zones
    price = of(N, "tariff")[0, 24 * of(N, "days")[lane] + int(step * law[DT] / 3600.0)]
    for home in range(batteries):
        paid = 0.0
        for k in range(bins):
            net = out[b, home * bins + k] - out[b, (batteries + home) * bins + k]
            paid += price * max(net, 0.0) - law[FEED_IN] * max(-net, 0.0)
        without[lane, size + home] = -paid * hours
    for zone in range(zones):
        mean, overload, distance = without[lane, batteries + zones + zone], 0.0, 0.0
        for k in range(bins):
            power = out[b, (2 * batteries + zone) * bins + k]
            for home in range(batteries):
                if places[home, ZONE] == zone:
                    power += out[b, home * bins + k] - out[b, (batteries + home) * bins + k]
            overload += max(abs(power) - limits[zone], 0.0)
            distance += abs(power - mean)
            mean += law[APPROACH] * (power - mean)
        paid = law[OVERLOAD] * overload * hours + law[FLUCTUATION] * distance * law[APPROACH] * law[MEAN_HOURS]
        without[lane, size + batteries + zone] = -paid
        without[lane, size + batteries + zones + zone] = mean
