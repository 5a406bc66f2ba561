"""The best that could have been done by who knows the whole day: every bin of load and generation before it comes.

Perfect foresight decides what the agents decide, one set-point a battery, held for a control step (60 s), and is paid
exactly what the environment pays; it only knows each bin (10 s) of the whole day at its start. No policy can know that,
so part of the way to it is not there to be gone: how much, "MPC, central" tells.

Zones share nothing, so each is a program of its own. A linear program can't forbid charging and discharging one battery
at once, which burns energy where a transformer overflows. On days on which that pays it becomes a mixed integer
program: one binary wherever the last solution did both, until no solution does (SciPy's HiGHS).

Bins are merged where that changes nothing. A set-point holds for a step and its bins differ only where load or
generation change within it: bins of equal net power are one piece. Over such a run the slow mean approaches the power
without passing it, so the distance paid is the first one times a constant, and a home's import has one kink. What no
set-point can reach (a limit, a change of sign) is left out. All of it is exact.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import NoOptimum
from heron_env.worlds.energy_management.agents import MAX_POWER, Constants
from heron_env.worlds.energy_management.site import DaySeries

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class LinearProgram:
    """Minimise cost @ x with low <= matrix @ x <= high and below <= x <= above."""

    def __init__(self) -> None:
        self.size = self.rows = 0
        self._costs: list[Array] = []
        self._below: list[Array] = []
        self._above: list[Array] = []
        self._entries: list[tuple[Indices, Indices, Array]] = []
        self._low: list[Array] = []
        self._high: list[Array] = []

    def variables(self, cost: Array, below: Any, above: Any) -> Indices:
        """Columns of new variables, in the shape of their cost."""
        places: Indices = self.size + np.arange(cost.size).reshape(cost.shape)
        self.size += cost.size
        self._costs.append(cost.ravel())
        self._below.append(np.broadcast_to(below, cost.shape).ravel().astype(np.float64))
        self._above.append(np.broadcast_to(above, cost.shape).ravel().astype(np.float64))
        return places

    def constrain(self, low: Any, high: Any, *terms: tuple[Indices, Any]) -> Indices:
        """New rows, low <= sum of factor x variable <= high, in the shape that all terms have."""
        shape = terms[0][0].shape
        rows: Indices = self.rows + np.arange(terms[0][0].size)
        self.rows += rows.size
        for columns, factor in terms:
            self._entries.append((rows, columns.ravel(), np.broadcast_to(factor, shape).ravel()))
        self._low.append(np.broadcast_to(low, shape).ravel())
        self._high.append(np.broadcast_to(high, shape).ravel())
        return rows.reshape(shape)

    @property
    def cost(self) -> Array:
        """`[size]`."""
        return np.concatenate(self._costs)

    @property
    def below(self) -> Array:
        """`[size]`."""
        return np.concatenate(self._below)

    @property
    def above(self) -> Array:
        """`[size]`."""
        return np.concatenate(self._above)

    @property
    def low(self) -> Array:
        """`[rows]`."""
        return np.concatenate(self._low)

    @property
    def high(self) -> Array:
        """`[rows]`."""
        return np.concatenate(self._high)

    def entries(self) -> tuple[Indices, Indices, Array]:
        """Row, column and factor of each term."""
        rows, columns, factors = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        return rows, columns, factors


EQUAL: Final = 1e-7  # kW; powers nearer than this are one
SAFE: Final = 0.8  # of the gap is asked for: cost @ x may grow a little beyond that of the relaxed program


@dataclass(frozen=True)
class ZoneDay:
    """What is known of one zone's day.

    Attributes:
        net: `[bins of the day, batteries]` kW, demand less generation of the homes with batteries.
        background: `[bins of the day]` kW.
        price: `[steps]` EUR/kWh.
        limit, start: kW, of the transformer, and where its slow mean starts.
        capacity, energy: `[batteries]` kWh.
        constants: prices and efficiency.
        dt: control step, s.
    """

    net: Array
    background: Array
    price: Array
    limit: float
    start: float
    capacity: Array
    energy: Array
    constants: Constants
    dt: float

    @property
    def steps(self) -> int:
        """Control steps in the day."""
        return len(self.price)

    @property
    def bin_length(self) -> float:
        """s."""
        return self.dt * self.steps / len(self.background)

    @cached_property
    def runs(self) -> tuple[Array, Array, Indices]:
        """Power without batteries (kW), length (s) and step of the stretches of steady power, each `[runs]`."""
        power = self.net.sum(axis=1) + self.background
        bins = len(power) // self.steps
        changes = np.abs(np.diff(power, prepend=np.inf)) > EQUAL
        changes[::bins] = True
        first = np.flatnonzero(changes)
        return power[first], np.diff(np.append(first, len(power))) * self.bin_length, first // bins

    def returned(self, set_points: Array) -> float:
        """EUR of the day with set-points `[steps, batteries]` kW, as the environment's physics pays it."""
        c, hours = self.constants, self.dt / 3600.0
        power, stored = np.empty_like(set_points), self.energy.copy()
        for step, wanted in enumerate(set_points):
            low, high = -c.efficiency * stored / hours, (self.capacity - stored) / (c.efficiency * hours)
            power[step] = np.minimum(np.maximum(wanted, low), high)
            stored += np.where(power[step] > 0.0, c.efficiency, 1.0 / c.efficiency) * power[step] * hours
        grid = self.net + np.repeat(power, len(self.net) // self.steps, axis=0)
        price = np.repeat(self.price, len(self.net) // self.steps)[:, None]
        bill = (
            (price * np.maximum(grid, 0.0) - c.feed_in_price * np.maximum(-grid, 0.0)).sum() * self.bin_length / 3600.0
        )
        wear = c.wear_price * np.abs(power).sum() * hours
        return float(c.stored_value * (stored - self.energy).sum() - bill - wear) - self._zone_pays(power.sum(axis=1))

    def _zone_pays(self, added: Array) -> float:
        """EUR of overload and fluctuation with `added` `[steps]` kW of the batteries."""
        c, (without, length, step) = self.constants, self.runs
        mean, paid = self.start, 0.0
        approach = -np.expm1(-length / c.mean_time)
        for power, near, seconds in zip(
            (without + added[step]).tolist(), approach.tolist(), length.tolist(), strict=True
        ):
            overload = max(abs(power) - self.limit, 0.0) * seconds
            distance = abs(power - mean) * near * c.mean_time
            paid += (c.overload_price * overload + c.fluctuation_price * distance) / 3600.0
            mean += near * (power - mean)
        return paid


@dataclass(frozen=True)
class BatteryFlows:
    """A solution: its value and what nothing can exceed, EUR; `charge` and `discharge` `[steps, batteries]` kW."""

    value: float
    bound: float
    charge: Array
    discharge: Array


class ZoneProgram(LinearProgram):
    """Minimise cost @ x with low <= matrix @ x <= high, below <= x <= above; the value is -(cost @ x) - fixed.

    Variables: charge, discharge, energy of each step and battery; import of each kink of a home's bill; overload,
    distance and mean of each run.
    """

    def __init__(self, day: ZoneDay) -> None:
        super().__init__()
        self.day = day
        shape = (day.steps, len(day.capacity))
        c, hours = day.constants, day.dt / 3600.0
        into, out = c.efficiency * hours, hours / c.efficiency
        charging = (c.feed_in_price + c.wear_price) * hours - c.stored_value * into
        discharging = (c.wear_price - c.feed_in_price) * hours + c.stored_value * out
        self.charge = self.variables(np.full(shape, charging), 0.0, MAX_POWER)
        self.discharge = self.variables(np.full(shape, discharging), 0.0, MAX_POWER)
        self.energy = self.variables(np.zeros(shape), 0.0, day.capacity)
        self.fixed = c.feed_in_price * day.net.sum() * day.bin_length / 3600.0
        self._add_storage(into, out)
        self._add_imports()
        self._add_transformer()

    def _add_storage(self, into: float, out: float) -> None:
        start = self.day.energy
        flows = ((self.charge, -into), (self.discharge, out))
        self.constrain(start, start, (self.energy[0], 1.0), *((column[0], factor) for column, factor in flows))
        later = ((column[1:], factor) for column, factor in flows)
        self.constrain(0.0, 0.0, (self.energy[1:], 1.0), (self.energy[:-1], -1.0), *later)

    def _add_imports(self) -> None:
        """What each home imports costs the difference between price and feed-in, from the kink at -net on."""
        day, bins = self.day, len(self.day.net) // self.day.steps
        c, hours = day.constants, day.bin_length / 3600.0
        for battery, net in enumerate(day.net.T):
            order = np.sort(net.reshape(day.steps, bins), axis=1)
            new = np.diff(order, axis=1, prepend=-np.inf) > EQUAL
            first = np.flatnonzero(new.ravel())
            step, kink = first // bins, order.ravel()[first]
            cost = (day.price[step] - c.feed_in_price) * np.diff(np.append(first, order.size)) * hours
            always, never = kink >= MAX_POWER, kink <= -MAX_POWER
            self.fixed += float((cost * kink)[always].sum())
            np.add.at(self._costs[0], self.charge[step[always], battery], cost[always])
            np.add.at(self._costs[1], self.discharge[step[always], battery] - self.discharge[0, 0], -cost[always])
            open_ = ~(always | never)
            at, kink = step[open_], kink[open_]
            imported = self.variables(cost[open_], 0.0, np.inf)
            self.constrain(
                -np.inf,
                -kink,
                (self.charge[at, battery], 1.0),
                (self.discharge[at, battery], -1.0),
                (imported, -1.0),
            )

    def _add_transformer(self) -> None:
        """Overload, distance and slow mean of the runs."""
        day, c, (power, length, step) = self.day, self.day.constants, self.day.runs
        near = -np.expm1(-length / c.mean_time)
        reach = MAX_POWER * len(day.capacity)
        for sign in (1.0, -1.0):
            over = np.flatnonzero(sign * power + reach > day.limit)
            overload = self.variables(c.overload_price * length[over] / 3600.0, 0.0, np.inf)
            self.constrain(-np.inf, day.limit - sign * power[over], (overload, -1.0), *self._powers(step[over], sign))
        mean = self.variables(np.zeros(len(power)), -np.inf, np.inf)
        self._below[-1][0] = self._above[-1][0] = day.start
        distance = self.variables(c.fluctuation_price * near * c.mean_time / 3600.0, 0.0, np.inf)
        for sign in (1.0, -1.0):
            terms = ((distance, -1.0), (mean, -sign), *self._powers(step, sign))
            self.constrain(-np.inf, -sign * power, *terms)
        followed = self._powers(step[:-1], -near[:-1])
        right = near[:-1] * power[:-1]
        self.constrain(right, right, (mean[1:], 1.0), (mean[:-1], near[:-1] - 1.0), *followed)

    def _powers(self, step: Indices, factor: Any) -> list[tuple[Indices, Any]]:
        """Terms of all batteries' power in these steps."""
        columns = (
            (self.charge[step, battery], self.discharge[step, battery]) for battery in range(len(self.day.capacity))
        )
        return [term for charge, discharge in columns for term in ((charge, factor), (discharge, -1.0 * factor))]

    def _matrix(self) -> Any:
        from scipy.sparse import csr_matrix

        rows, columns, factors = self.entries()
        return csr_matrix((factors, (rows, columns)), shape=(self.rows, self.size))

    def relaxed(self, charging: NDArray[np.bool_] | None = None) -> BatteryFlows:
        """Solve the linear program; `charging` `[steps, batteries]` fixes the directions. Raises NoOptimum."""
        from scipy.optimize import linprog

        matrix, low, high = self._matrix(), self.low, self.high
        above, equal = self.above, low == high
        if charging is not None:
            above[self.charge], above[self.discharge] = MAX_POWER * charging, MAX_POWER * ~charging
        program = {
            "A_ub": matrix[~equal], "b_ub": high[~equal], "A_eq": matrix[equal], "b_eq": low[equal],
            "bounds": np.stack([self.below, above], axis=1),
        }  # fmt: skip
        for presolve in (True, False):  # HiGHS sometimes answers "unknown" after presolve
            found = linprog(self.cost, **program, method="highs-ipm", options={"presolve": presolve})
            if found.status == 0:
                value = -float(found.fun) - self.fixed
                return BatteryFlows(value, value, found.x[self.charge], found.x[self.discharge])
        raise NoOptimum(f"HiGHS found no optimum of the day: {found.message}")

    def one_way(
        self, places: NDArray[np.bool_], relaxed: BatteryFlows, gap: float, seconds: float
    ) -> BatteryFlows | None:
        """Solve with either charge or discharge 0 in `places` `[steps, batteries]`, to `gap` EUR or for `seconds` s.

        `relaxed` is the solution without. None: no solution was found in that time.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_matrix, hstack, identity, vstack

        number = int(places.sum())
        chosen, matrix = MAX_POWER * identity(number), self._matrix()

        def picked(columns: Indices) -> Any:
            return csr_matrix((np.ones(number), (np.arange(number), columns[places])), shape=(number, self.size))

        blocks = [hstack([matrix, csr_matrix((self.rows, number))])]
        blocks += [hstack([picked(self.charge), -chosen]), hstack([picked(self.discharge), chosen])]
        low = np.concatenate([self.low, np.full(2 * number, -np.inf)])
        high = np.concatenate([self.high, np.zeros(number), np.full(number, MAX_POWER)])
        below, above = (
            np.concatenate(parts) for parts in ([self.below, np.zeros(number)], [self.above, np.ones(number)])
        )
        size = max(abs(relaxed.value + self.fixed), 0.1)  # HiGHS wants the gap as a share of cost @ x
        found = milp(
            np.concatenate([self.cost, np.zeros(number)]),
            integrality=np.repeat([0, 1], [self.size, number]),
            bounds=Bounds(below, above),
            constraints=LinearConstraint(vstack(blocks, format="csr"), low, high),
            options={"time_limit": seconds, "mip_rel_gap": SAFE * gap / size},
        )
        if found.x is None:
            return None
        value, bound = -float(found.fun) - self.fixed, -float(found.mip_dual_bound) - self.fixed
        return BatteryFlows(value, bound, found.x[self.charge], found.x[self.discharge])


BOTH_WAYS: Final = 1e-4  # kW; above what a binary that is nearly 0 or 1 lets through
GAP: Final = 0.05  # EUR a day
SECONDS: Final = 600.0
LEAST: Final = 5.0  # s a zone at least


@dataclass(frozen=True)
class DayOptimum:
    """EUR of the team on one day.

    Attributes:
        value: what `set_points` return in the environment.
        bound: what nothing can exceed, with that knowledge or less. (But for cents: a battery that is asked for more
            than it holds stops within a step, which the program does not plan.)
        set_points: `[steps, batteries]` kW.
    """

    value: float
    bound: float
    set_points: Array

    @property
    def gap(self) -> float:
        """EUR between value and bound."""
        return self.bound - self.value


@dataclass(frozen=True)
class DayProblem:
    """One day with everything known.

    Attributes:
        series: the day's exogenous series.
        membership: `[zones, batteries]`.
        limits: `[zones]` kW.
        capacity, energy: `[batteries]` kWh, the latter at the start of the day.
        start: `[zones]` kW, where the slow means start.
        constants: prices and efficiency.
        dt: control step, s.
    """

    series: DaySeries
    membership: Array
    limits: Array
    capacity: Array
    energy: Array
    start: Array
    constants: Constants
    dt: float

    def zones(self) -> Iterator[tuple[NDArray[np.int64], ZoneDay]]:
        """The numbers of each zone's batteries, and the zone's day."""
        series = self.series
        net = series.load - series.pv
        for zone, members in enumerate(self.membership):
            batteries = np.flatnonzero(members)
            yield (
                batteries,
                ZoneDay(
                    net=net[:, batteries],
                    background=series.background[:, zone],
                    price=series.tariff[:, 0],
                    limit=float(self.limits[zone]),
                    start=float(self.start[zone]),
                    capacity=self.capacity[batteries],
                    energy=self.energy[batteries],
                    constants=self.constants,
                    dt=self.dt,
                ),
            )


def solve(problem: DayProblem, gap: float = GAP, seconds: float = SECONDS) -> DayOptimum:
    """Solve the day; 0.2 s at 900 s and 6 to 12 s at 60 s, on sunny days up to `seconds`.

    Args:
        problem: the day.
        gap: EUR between value and bound at which the search ends.
        seconds: at which it ends, however great the gap; the linear programs come before.

    Raises NoOptimum.
    """
    set_points, value, bound = np.empty((problem.series.steps, len(problem.capacity))), 0.0, 0.0
    end, left = time.monotonic() + seconds, len(problem.limits)
    for batteries, day in problem.zones():
        share = max((end - time.monotonic()) / left, LEAST)
        best, highest = _solve_zone(day, gap / len(problem.limits), share)
        set_points[:, batteries] = best
        value, bound, left = value + day.returned(best), bound + highest, left - 1
    return DayOptimum(value, max(bound, value), set_points)


def _solve_zone(day: ZoneDay, gap: float, seconds: float) -> tuple[Array, float]:
    """Set-points `[steps, batteries]` kW of a zone, and the bound of its value, EUR."""
    program, end = ZoneProgram(day), time.monotonic() + seconds
    relaxed = program.relaxed()
    places, new, bound = np.zeros_like(relaxed.charge, dtype=bool), _both(relaxed), relaxed.bound
    candidates = [_net(relaxed)]
    if new.any():
        candidates.append(_net(program.relaxed(charging=relaxed.charge >= relaxed.discharge)))
    while new.any() and time.monotonic() < end:
        places |= new
        mixed = program.one_way(places, relaxed, gap, max(end - time.monotonic(), LEAST))
        if mixed is None:
            break
        candidates.append(_net(mixed))
        new, bound = _both(mixed) & ~places, min(bound, mixed.bound)
    return max(candidates, key=day.returned), bound


def _both(flows: BatteryFlows) -> NDArray[np.bool_]:
    """Where a battery is charged and discharged at once."""
    return np.asarray(np.minimum(flows.charge, flows.discharge) > BOTH_WAYS)


def _net(flows: BatteryFlows) -> Array:
    return flows.charge - flows.discharge
