"""The best that could have been done by who knows the whole day: every bin of load and generation before it comes.

Perfect foresight decides what the agents decide, one set-point a battery, held for a control step (60 s), and is paid
exactly what the environment pays; it only knows each bin (10 s) of the whole day at its start. No policy can know that,
so part of the way to it is not there to be gone: how much, "MPC, central" tells.

Zones share nothing and are solved one by one (zone_program.py). A linear program can't forbid charging and discharging
one battery at once, which burns energy where a transformer overflows. On days on which that pays it becomes a mixed
integer program: one binary wherever the last solution did both, until no solution does (SciPy's HiGHS).
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env.worlds.energy_management.day import DaySeries
from heron_env.worlds.energy_management.features import Constants
from heron_env.worlds.energy_management.zone_program import Flows, ZoneDay, ZoneProgram

BOTH_WAYS: Final = 1e-4  # kW; above what a binary that is nearly 0 or 1 lets through
GAP: Final = 0.05  # EUR a day
SECONDS: Final = 600.0
LEAST: Final = 5.0  # s a zone at least

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Optimum:
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
class Problem:
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


def solve(problem: Problem, gap: float = GAP, seconds: float = SECONDS) -> Optimum:
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
    return Optimum(value, max(bound, value), set_points)


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


def _both(flows: Flows) -> NDArray[np.bool_]:
    """Where a battery is charged and discharged at once."""
    return np.asarray(np.minimum(flows.charge, flows.discharge) > BOTH_WAYS)


def _net(flows: Flows) -> Array:
    return flows.charge - flows.discharge
