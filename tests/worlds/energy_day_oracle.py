"""One lane's day in plain numpy: the law of the fast layer written again, without the kernels' shortcuts.

Pulses are added up on a grid of 10 s; the clouds' edges are a moving mean of 20 s over a signal of 0 and 1, integrated
in long doubles; forecasts and the counterfactual are loops over the day.
"""

import math
from functools import lru_cache

import numpy as np

from heron_env.seeding import key, standard_normal, uniforms
from heron_env.worlds.energy_management.calendar import HOURS, LONGEST, TimeOfUse, hourly, summer_time

DAY, QUARTER, GRID = 86_400.0, 900.0, 10.0
QUARTER_EDGES = np.arange(97) * QUARTER


def local_hours(day: int, times: np.ndarray) -> np.ndarray:
    """Europe/Berlin hour of day in [0, 24) at `times` (s after midnight UTC+1, within the day)."""
    hours = times / 3600.0
    shift = summer_time()[(24 * day + hours.astype(np.int64)) % HOURS]
    return np.asarray((hours + shift) % 24.0)


@lru_cache(maxsize=8)
def year_of(tariff: TimeOfUse) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Per hour of the year (UTC+1): price, the next different price, and the hours from its start until then."""
    return hourly(tariff, np.concatenate([summer_time(), summer_time()[:LONGEST]]))


def tariff_series(tariff: TimeOfUse, day: int, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Price and next price (EUR/kWh) and the hours until it at `times` (s after midnight UTC+1), shape of `times`."""
    hour = times / 3600.0
    whole = hour.astype(np.int64)
    price, next_price, until = (column[(24 * day + whole) % HOURS] for column in year_of(tariff))
    return price, next_price, until - (hour - whole)


def cumulated(power, hours):
    return np.concatenate([[0.0], np.cumsum(power * hours)])


class Oracle:
    """Everything about one day of one lane; `rows()` has what `Days` tells, each `[steps + 1, ...]`."""

    def __init__(self, site, constants, dt, bin_length, *, day, seed, episode):
        self.site, self.constants, self.day, self.dt, self.bin = site, constants, day, dt, bin_length
        self.homes = site.neighbourhood
        self.load, self.pv, self.business = site.base(day)
        self.count = len(self.homes.homes)

        def draw(name, shape, *number):
            return uniforms(key("world", seed, episode, 0, name, *number), shape)

        self.draw = draw
        z = np.array([standard_normal(u) for u in draw("forecast", self.count)])
        self.factor = np.maximum(1.0 + site.forecast_error * np.clip(z, -3.0, 3.0), 0.0)
        self.edges = np.arange(round(DAY / bin_length) + 1) * bin_length

    def homes_load(self):
        """kW of each home in each bin."""
        arrivals = self.draw("wallbox", (self.count, 2)).mean(axis=1)
        return np.array([self._home_load(home, arrivals[home]) for home in range(self.count)])

    def _home_load(self, home, arrival):
        energy = cumulated(self.load[home], 0.25)
        half, pulses, end = 0.5 * energy, np.zeros(8641), 0.0
        for u in self.draw("appliances", (4000, 3), home):
            power, bins = np.rint(1500.0 + 2000.0 * u[0]) / 1000.0, 12 + int(49 * u[1])
            amount = power * bins / 360.0
            if end + amount > half[-1]:
                break
            end += amount
            middle = np.interp(end - u[2] * amount, half, QUARTER_EDGES) / GRID
            start = int(np.clip(np.rint(middle - bins / 2), 0, 8640 - bins))
            pulses[start] += power
            pulses[start + bins] -= power
        charging = 0.3 * energy[-1] if self.homes.homes[home].wallbox else 0.0
        hour = 16.0 + 5.0 * arrival - summer_time()[24 * self.day + 12]
        length = charging / 11.0 * 3600.0
        plugged = min(hour * 3600.0, DAY - length)
        smooth = (energy[-1] - end - charging) / energy[-1]
        kwh = smooth * np.interp(self.edges, QUARTER_EDGES, energy)
        kwh += np.interp(self.edges, np.arange(8641) * GRID, cumulated(np.cumsum(pulses)[:-1], GRID / 3600.0))
        kwh += 11.0 * np.clip(self.edges - plugged, 0.0, length) / 3600.0
        return np.diff(kwh) * 3600.0 / self.bin

    def homes_pv(self):
        """kW of each home's roof in each bin."""
        return np.array([self._home_pv(home) for home in self.homes.homes])

    def _home_pv(self, home):
        if home.peak == 0.0:
            return np.zeros(len(self.edges) - 1)
        roof, clear = (p[home.roof, self.day] for p in (self.site.profiles.roofs, self.site.profiles.clear_sky))
        low = np.minimum(roof, 0.25 * clear)
        span = clear - low
        share = np.divide(roof - low, span, out=np.zeros(96), where=span > 0.0)
        shadow = self._shadow(share)
        fine = np.unique(np.concatenate([self.edges, QUARTER_EDGES]))
        seconds = np.diff(shadow(fine - home.lag)).astype(np.float64)
        quarter = (fine[:-1] / QUARTER).astype(int)
        kws = cumulated(low[quarter] * np.diff(fine) + span[quarter] * seconds, 1.0)
        if kws[-1] == 0.0:
            return np.zeros(len(self.edges) - 1)
        factor = home.peak * roof.sum() * QUARTER / kws[-1]
        return factor * np.diff(kws[np.searchsorted(fine, self.edges)]) / self.bin

    def _shadow(self, share):
        """Seconds of clear sky until a time, its edges rounded by a moving mean over 20 s."""
        u = self.draw("clouds", 460)
        starts = np.cumsum(np.concatenate([[-70.0 - 200.0 * u[0]], 200.0 + 200.0 * u[1:]])).astype(np.longdouble)
        length = np.diff(starts)
        middle = np.clip((starts[:-1] + length / 2) / QUARTER, 0, 95).astype(int)
        ends = starts[:-1] + length * share[middle]
        at = np.stack([starts[:-1], ends], axis=1).ravel()
        seconds = np.stack([np.zeros_like(length), ends - starts[:-1]], axis=1).ravel().cumsum()
        slope = np.stack([np.ones_like(length), np.zeros_like(length)], axis=1).ravel()
        area = np.concatenate([[0.0], np.cumsum((seconds[1:] + seconds[:-1]) / 2 * np.diff(at))])

        def integral(time):
            k = np.maximum(np.searchsorted(at, time, side="right") - 1, 0)
            past = np.maximum(time - at[k], 0)
            return area[k] + seconds[k] * past + slope[k] * past * past / 2

        return lambda time: (integral(time + np.longdouble(10)) - integral(time - np.longdouble(10))) / 20

    def rows(self):
        """By name, a row for each number of steps done."""
        batteries, bins = self.homes.batteries, round(self.dt / self.bin)
        load, pv = self.homes_load(), self.homes_pv()
        quarter = np.interp(self.edges, QUARTER_EDGES, np.arange(97))
        shops = np.array([np.interp(quarter, np.arange(97), cumulated(b, 0.25)) for b in self.business])
        passive = self.homes.membership[:, batteries:] @ (load - pv)[batteries:]
        background = passive + np.diff(shops, axis=1) * 3600.0 / self.bin

        def by_step(series):
            steps = series.reshape(len(series), -1, bins).transpose(1, 2, 0)
            return np.concatenate([steps, steps[-1:]])

        told = {"load": by_step(load[:batteries]), "pv": by_step(pv[:batteries]), "background": by_step(background)}
        steps = len(told["load"]) - 1
        times = np.append(np.arange(steps), steps - 1) * self.dt
        told |= self.forecasts(times)
        told["tariff"] = np.stack(tariff_series(self.site.tariff, self.day, times), axis=1)
        hour = local_hours(self.day, times) * 2 * np.pi / 24
        season = (self.day + times / DAY) * 2 * np.pi / 365
        told["clock"] = np.stack([np.sin(hour), np.cos(hour), np.sin(season), np.cos(season)], axis=1)
        told["homes_without"], told["zones_without"] = self.without(told, steps)
        return told

    def forecasts(self, times):
        """What the base series promise at `times`."""
        homes, batteries = self.homes, self.homes.batteries
        next_load, next_pv, _ = self.site.base((self.day + 1) % 365)
        today = self.load - self.factor[:, None] * self.pv
        net = np.concatenate([today, next_load - self.factor[:, None] * next_pv], axis=1)[:batteries]

        def within(power, begin, end):
            edges = np.arange(power.shape[1] + 1) * QUARTER
            sums = [cumulated(row, 0.25) for row in power]
            return np.stack([np.interp(end, edges, row) - np.interp(begin, edges, row) for row in sums], axis=1)

        told = {f"net_{h}h": within(net, times, times + 3600.0 * h) for h in (1, 3, 6, 12)}
        told["surplus_rest"] = within(np.maximum(-net, 0.0), times, np.full_like(times, DAY))
        told["deficit_12h"] = within(np.maximum(net, 0.0), times, times + 12 * 3600.0)
        zones = homes.membership @ today + self.business
        above = np.maximum(-zones - np.array(self.site.limits)[:, None], 0.0)
        told["excess_rest"] = within(above, times, np.full_like(times, DAY))
        return told

    def without(self, told, steps):
        """EUR of each step without batteries, told when it has ended."""
        constants, hours, members = self.constants, self.bin / 3600.0, self.homes.membership[:, : self.homes.batteries]
        load, pv, business = self.site.base((self.day - 1) % 365)
        mean = (self.homes.membership @ (load - pv) + business)[:, -1]
        homes, zones = [np.zeros(members.shape[1])], [np.zeros(len(members))]
        keep = math.exp(-self.bin / constants.mean_time)
        for k in range(steps):
            net = told["load"][k] - told["pv"][k]
            price = told["tariff"][k, 0]
            paid = np.where(net > 0.0, price * net, constants.feed_in_price * net)
            homes.append(-paid.sum(axis=0) * hours)
            amount = np.zeros(len(members))
            for power in net @ members.T + told["background"][k]:
                amount -= constants.overload_price * np.maximum(np.abs(power) - self.site.limits, 0.0) * hours
                distance = np.abs(power - mean) * (1.0 - keep) * constants.mean_time / 3600.0
                amount -= constants.fluctuation_price * distance
                mean = power + (mean - power) * keep
            zones.append(amount)
        return np.array(homes), np.array(zones)
