"""The days of all lanes: `begin` draws them in one pass, `rows` makes what a step puts in force when it is due.

`N` is the address of the tables (days_tables.py). A row depends on the lane's day and on its step alone, in whatever
order rows are asked for; what the steps before it would have cost without batteries is carried from row to row, and
made again from midnight on where one goes back. Some rows are made at a time and kept: what they are made of is in the
fastest cache then. Compiled from a copy of this file in the engine's cache folder.

Forecasts know the base series, not the clouds and pulses. What is linear in the day's factor on the generation is read
off the year's sums; what is not (surplus, excess) is summed once a day, by quarter hour.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from heron_env.engine.draw_kernel import GOLDEN, key_with, standard_normal, uniform
from heron_env.engine.kernels import inlined, leaf, on_arrays, table, table_of, within
from heron_env.seeding import h
from heron_env.worlds.energy_management.days_tables import (
    AHEAD,
    APPROACH,
    BATTERIES,
    BIN_LENGTH,
    BUSINESS,
    DAY,
    DRAWN,
    DT,
    ENERGY,
    ERROR,
    FACTOR,
    FEED_IN,
    FLUCTUATION,
    FORMS,
    HORIZONS,
    HOUSEHOLD,
    MEAN_HOURS,
    OVERLOAD,
    PEAK,
    QUARTER,
    QUARTERS,
    ROOF,
    ROOFS,
    SOC_START,
    STEPS,
    WORST_ERROR,
    ZONE,
)
from heron_env.worlds.energy_management.load_kernel import (
    UNKNOWN,
    complete_touching,
    consumption,
    draw_clouds,
    draw_load,
    energy_of,
    energy_until,
    generation,
    is_own,
    own_energy,
    sun_factor,
    touch_nothing,
)

of = table_of(FORMS)


WORLD, DAY_DRAWN, SOC, CLOUDS, APPLIANCES, WALLBOX, FORECAST = (
    np.uint64(h(name)) for name in ("world", "day", "soc0", "clouds", "appliances", "wallbox", "forecast")
)
SOC_LOW, SOC_SPAN = SOC_START[0], SOC_START[1] - SOC_START[0]


@on_arrays
def draw(N: Any, lanes: Any, seeds: Any, episodes: Any) -> None:
    """Draw the `days` that begin in `lanes` `[b]`, of the uint64 keys `seeds` and `episodes` `[b]`."""
    for k in range(len(lanes)):
        _draw_day(N, lanes[k], _start_of(seeds[k], episodes[k]))


@on_arrays
def begin(D: Any, N: Any, first: Any, last: Any) -> Any:
    """EnergyManagementEnv.begin in the engine's lanes; nothing can fail (model.Native)."""
    chosen, seeds, episodes, truth = table(D, "chosen"), table(D, "seeds"), table(D, "episodes"), table(D, "truth")
    choices, starts, days = of(N, "choices"), of(N, "starts"), of(N, "days")
    for b in range(first, last):
        if chosen[b] != 0:
            start = _start_of(seeds[b], episodes[b])
            days[b] = choices[int(uniform(key_with(start, DAY_DRAWN), 0) * len(choices))]
            _draw_day(N, b, start)
            places, drawn = of(N, "soc_at"), key_with(start, SOC)
            for j in range(len(places)):
                truth[b, places[j]] = SOC_LOW + SOC_SPAN * uniform(drawn, j)
            _put(N, truth, b, of(N, "start_at"), starts, days[b])
            _put_row(N, truth, b, 0)
    return 0


@on_arrays
def finish(D: Any, N: Any, first: Any, last: Any) -> Any:
    """EnergyManagementEnv.finish in the engine's lanes."""
    over, ended, steps, truth = table(D, "over"), table(D, "ended"), table(D, "steps"), table(D, "truth")
    for b in range(first, last):
        if over[b] == 0 or ended[b] != 0:
            _put_row(N, truth, b, steps[b])
    return 0


@on_arrays
def at_close(D: Any, N: Any, first: Any, last: Any) -> Any:
    """EnergyManagementEnv.training_rewards in the engine's lanes."""
    over, ended, truth, training = table(D, "over"), table(D, "ended"), table(D, "truth"), table(D, "training")
    gains = of(N, "gains")
    for b in range(first, last):
        if over[b] == 0 or ended[b] != 0:
            for p in range(len(gains)):
                others = 0.0
                for k in range(2, 1 + gains[p, 0]):
                    others += truth[b, gains[p, k]] - truth[b, gains[p, k] + 1]
                training[b, p] = truth[b, gains[p, 1]] - truth[b, gains[p, 1] + 1] + others
    return 0


@on_arrays
def rows(N: Any, lanes: Any, steps: Any, out: Any) -> Any:
    """Write the rows of `lanes` `[b]`, each after so many `steps` `[b]`, into `out` `[b, width]` (days.py).

    Returns False, having written nothing more, at a lane that has no day.
    """
    days = of(N, "days")
    for b in range(len(lanes)):
        lane = lanes[b]
        if not 0 <= lane < len(days) or days[lane] < 0:
            return False
        at = _row_of(N, lane, steps[b])
        out[b] = of(N, "kept")[at]
    return True


@leaf
def _start_of(seed: Any, episode: Any) -> Any:
    """The key of all that is drawn when an episode begins, as World.draw has it."""
    return key_with(key_with(key_with(key_with(GOLDEN, WORLD), seed), episode), 0)


@leaf
def _draw_day(N: Any, lane: Any, start: Any) -> None:
    """The day that `days` says, from the key of what is drawn when an episode begins."""
    of(N, "told")[lane] = of(N, "kept_from")[lane] = -1
    of(N, "clear")[lane, len(of(N, "homes"))] = UNKNOWN
    drawn, spread, errors = not is_own(N), of(N, "law")[ERROR], key_with(start, FORECAST)
    if drawn:
        draw_clouds(N, lane, key_with(start, CLOUDS))
        touch_nothing(N, lane)
    for home in range(len(of(N, "homes"))):
        error = within(standard_normal(uniform(errors, home)), -WORST_ERROR, WORST_ERROR)
        of(N, "drawn")[lane, home * DRAWN + FACTOR] = max(1.0 + spread * error, 0.0)
        if drawn:
            draw_load(N, lane, home, key_with(key_with(start, APPLIANCES), home), key_with(start, WALLBOX))
            sun_factor(N, lane, home)
    if drawn:
        complete_touching(N, lane)
    sum_forecasts(N, lane)


@leaf
def _put_row(N: Any, truth: Any, b: Any, steps: Any) -> None:
    """Put the row after so many steps in force."""
    _put(N, truth, b, of(N, "row_at"), of(N, "kept"), _row_of(N, b, steps))


@leaf
def _put(N: Any, truth: Any, b: Any, columns: Any, values: Any, row: Any) -> None:
    """A row of values into columns of the truth, within their bounds."""
    low, high, of_values, of_truth = of(N, "low"), of(N, "high"), np.uintp(row), np.uintp(b)
    for j in range(np.uintp(len(columns))):
        column = np.uintp(columns[j])
        truth[of_truth, column] = within(values[of_values, j], low[column], high[column])


@leaf
def _row_of(N: Any, lane: Any, steps: Any) -> Any:
    """Where the row of a lane after so many steps lies in `kept`; it and the next are made if it is not there."""
    kept, kept_from, last = of(N, "kept"), of(N, "kept_from"), int(of(N, "law")[STEPS])
    ahead, done = len(kept) // len(of(N, "days")), min(steps, last)
    if not 0 <= done - kept_from[lane] < ahead or kept_from[lane] < 0:
        for k in range(min(ahead, last - done + 1)):
            _make_row(N, lane, done + k, kept, lane * ahead + k)
        kept_from[lane] = done
    return lane * ahead + done - kept_from[lane]


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
    own, end = is_own(N), step * bins * length
    late, base_end, shops_end = _all_until(N, day, end)
    for k in range(bins):
        begin, early, base_begin, shops_begin = end, late, base_end, shops_end
        end = (step * bins + k + 1) * length
        late, base_end, shops_end = _all_until(N, day, end)
        goes_on = clear[lane, homes] == begin
        clear[lane, homes] = end
        base, shops = base_end - base_begin, shops_end - shops_begin
        for zone in range(len(business)):
            out[b, (2 * batteries + zone) * bins + k] = business[zone] * shops * 3600.0 / length
        for home in range(len(places)):
            if own:
                load = (
                    3600.0 / length * (own_energy(N, lane, home, False, end) - own_energy(N, lane, home, False, begin))
                )
                sun = 3600.0 / length * (own_energy(N, lane, home, True, end) - own_energy(N, lane, home, True, begin))
            else:
                load = consumption(N, lane, home, begin, end, early, late, base) / length
                before = clear[lane, home] if goes_on else UNKNOWN
                sun, clear[lane, home] = generation(N, lane, home, begin, end, early, late, before)
                sun /= length
            if home < batteries:
                out[b, home * bins + k], out[b, (batteries + home) * bins + k] = load, sun
            else:
                out[b, (2 * batteries + places[home, ZONE]) * bins + k] += load - sun


@inlined
def _all_until(N: Any, day: Any, time: Any) -> Any:
    """The quarter hour of a time of the day, and the base series' energies from midnight to it."""
    return int(time / QUARTER), energy_until(N, HOUSEHOLD, day, time), energy_until(N, BUSINESS, day, time)


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


CIRCLE = 2.0 * math.pi
HALF_DAY = 0.5 * DAY


@leaf
def sum_forecasts(N: Any, lane: Any) -> None:
    """Surplus of each battery's home and feed-in of each zone above its limit, from midnight on."""
    places, surplus, excess = of(N, "places"), of(N, "surplus"), of(N, "excess")
    business, limits, day = of(N, "business"), of(N, "limits"), of(N, "days")[lane]
    batteries, zones = int(of(N, "law")[BATTERIES]), len(limits)
    surplus[lane, :batteries], excess[lane, :zones] = 0.0, 0.0
    for quarter in range(QUARTERS):
        shops = energy_of(N, BUSINESS, day, quarter + 1) - energy_of(N, BUSINESS, day, quarter)
        for zone in range(zones):
            excess[lane, (quarter + 1) * zones + zone] = business[zone] * shops
    own, homes, following = is_own(N), of(N, "homes"), of(N, "following")[day]
    for home in range(len(places)):
        gone, zone, roof = 0.0, places[home, ZONE], ROOFS + places[home, ROOF]
        energy, sun = homes[home, ENERGY], of(N, "drawn")[lane, home * DRAWN + FACTOR] * homes[home, PEAK]
        for quarter in range(AHEAD if home < batteries else QUARTERS):
            if own:
                net = _own_net(N, lane, home, quarter * QUARTER, (quarter + 1) * QUARTER)
            else:
                of_day, q = (day, quarter) if quarter < QUARTERS else (following, quarter - QUARTERS)
                drawn = energy_of(N, HOUSEHOLD, of_day, q + 1) - energy_of(N, HOUSEHOLD, of_day, q)
                net = energy * drawn - sun * (energy_of(N, roof, of_day, q + 1) - energy_of(N, roof, of_day, q))
            if home < batteries:
                gone += max(-net, 0.0)
                surplus[lane, (quarter + 1) * batteries + home] = gone
            if quarter < QUARTERS:
                excess[lane, (quarter + 1) * zones + zone] += net
    for quarter in range(QUARTERS):
        until = (quarter + 1) * zones
        for zone in range(zones):
            above = max(-excess[lane, until + zone] - limits[zone] * (QUARTER / 3600.0), 0.0)
            excess[lane, until + zone] = excess[lane, until - zones + zone] + above


@leaf
def _own_net(N: Any, lane: Any, home: Any, begin: Any, end: Any) -> Any:
    """The same of an own site's home, which has series of its own."""
    sun = own_energy(N, lane, home, True, end) - own_energy(N, lane, home, True, begin)
    load = own_energy(N, lane, home, False, end) - own_energy(N, lane, home, False, begin)
    return load - of(N, "drawn")[lane, home * DRAWN + FACTOR] * sun


@inlined
def expected(N: Any, lane: Any, home: Any, base: Any, begin: Any, end: Any) -> Any:
    """kWh that a home is expected to draw less what its roof yields from `begin` to `end`, s since midnight.

    base: of the base series in that time.
    """
    if is_own(N):
        return _own_net(N, lane, home, begin, end)
    homes, roof = of(N, "homes"), of(N, "places")[home, ROOF]
    sun = base[1] if roof == 0 else base[2] if roof == 1 else base[3]
    return homes[home, ENERGY] * base[0] - of(N, "drawn")[lane, home * DRAWN + FACTOR] * homes[home, PEAK] * sun


@leaf
def _two_days_until(N: Any, series: Any, day: Any, time: Any) -> Any:
    """kWh of a base series from midnight to `time`, s, less than two days."""
    if time <= DAY:
        return energy_until(N, series, day, time)
    return energy_of(N, series, day, QUARTERS) + energy_until(N, series, of(N, "following")[day], time - DAY)


@inlined
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
