"""What a home draws: a smooth share of the base series, appliance pulses, and a wallbox's block in the evening.

Pulses use up half of the base series' energy in its own time, more where it is high: each lies at a random point of the
stretch of the series that holds its energy, and the last, unfinished one is left out. The smooth share is what keeps
the day's energy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.draw_kernel import uniform
from heron_env.engine.kernels import leaf, table_of
from heron_env.worlds.energy_management.days_tables import (
    APPLIANCE_BINS,
    APPLIANCE_POWER,
    APPLIANCES,
    ARRIVAL,
    BIN,
    CHARGING,
    DAY,
    DRAWN,
    ENERGY,
    FIRST_PULSE,
    FORMS,
    HAS_WALLBOX,
    HOUSEHOLD,
    LENGTH,
    PLUGGED,
    PULSE,
    PULSES,
    QUARTER,
    QUARTERS,
    SERIES,
    SMOOTH,
    START,
    WALLBOX,
    WALLBOX_POWER,
    WATTS,
)

of = table_of(FORMS)
SHORTEST, LONGEST = APPLIANCE_BINS
WEAKEST, STRONGER = 1000.0 * APPLIANCE_POWER[0], 1000.0 * (APPLIANCE_POWER[1] - APPLIANCE_POWER[0])  # W
HOUR_BINS = 3600.0 / BIN
DAY_BINS = int(DAY / BIN)
QUARTER_BINS = int(QUARTER / BIN)
NONE = 0xFFFF


@leaf
def draw_load(N: Any, lane: Any, home: Any, pulses: Any, arrival: Any) -> None:
    """A home's pulses from the key `pulses`, its wallbox from two uniforms of the key `arrival`, its smooth share."""
    day, drawn, at = of(N, "days")[lane], of(N, "drawn"), home * DRAWN
    energy = of(N, "homes")[home, ENERGY] * energy_of(N, HOUSEHOLD, day, QUARTERS)
    charging = 0.0
    if of(N, "places")[home, HAS_WALLBOX] > 0:
        charging = min(WALLBOX * energy, WALLBOX_POWER * DAY / 3600.0)
    rest = energy - _draw_pulses(N, lane, home, pulses) - charging
    drawn[lane, at + SMOOTH] = rest / energy if energy > 0.0 else 0.0
    length = charging / WALLBOX_POWER * 3600.0
    hour = ARRIVAL[0] + (ARRIVAL[1] - ARRIVAL[0]) * 0.5 * (uniform(arrival, 2 * home) + uniform(arrival, 2 * home + 1))
    hour -= of(N, "summer")[24 * day + 12]
    drawn[lane, at + PLUGGED] = min(max(hour * 3600.0, 0.0), DAY - length)
    drawn[lane, at + CHARGING] = length


@leaf
def _draw_pulses(N: Any, lane: Any, home: Any, key: Any) -> Any:
    """A home's pulses in the order of their time, and which of them touch each quarter hour; their energy in kWh."""
    pulses, day, share = of(N, "pulses"), of(N, "days")[lane], APPLIANCES * of(N, "homes")[home, ENERGY]
    first, room = of(N, "places")[home, FIRST_PULSE], of(N, "places")[home, PULSES]
    total, used, quarter, pulse = share * energy_of(N, HOUSEHOLD, day, QUARTERS), 0.0, 0, 0
    _touch_nothing(N, lane, home)
    while pulse < room:
        watts = np.rint(WEAKEST + STRONGER * uniform(key, 3 * pulse))
        length = SHORTEST + int(uniform(key, 3 * pulse + 1) * (LONGEST - SHORTEST + 1))
        energy = watts / 1000.0 * length / HOUR_BINS
        if used + energy > total:
            break
        used += energy
        point = used - uniform(key, 3 * pulse + 2) * energy
        while quarter < QUARTERS - 1 and share * energy_of(N, HOUSEHOLD, day, quarter + 1) < point:
            quarter += 1
        below = share * energy_of(N, HOUSEHOLD, day, quarter)
        held = share * energy_of(N, HOUSEHOLD, day, quarter + 1) - below
        middle = (quarter + (point - below) / held if held > 0.0 else quarter + 1.0) * QUARTER_BINS
        start, at = min(max(int(np.rint(middle - 0.5 * length)), 0), DAY_BINS - length), (first + pulse) * PULSE
        pulses[lane, at + START], pulses[lane, at + LENGTH], pulses[lane, at + WATTS] = start, length, watts
        _touch(N, lane, home, pulse, start // QUARTER_BINS, (start + length - 1) // QUARTER_BINS)
        pulse += 1
    _complete(N, lane, home)
    return used


@leaf
def _touch_nothing(N: Any, lane: Any, home: Any) -> None:
    """No pulse touches any quarter hour."""
    touching, homes = of(N, "touching"), len(of(N, "homes"))
    for quarter in range(QUARTERS):
        at = 2 * (quarter * homes + home)
        touching[lane, at], touching[lane, at + 1] = NONE, 0


@leaf
def _touch(N: Any, lane: Any, home: Any, pulse: Any, begin: Any, end: Any) -> None:
    """This pulse, the latest so far, touches the quarter hours from `begin` to `end`."""
    touching, homes = of(N, "touching"), len(of(N, "homes"))
    for quarter in range(begin, end + 1):
        at = 2 * (quarter * homes + home)
        touching[lane, at], touching[lane, at + 1] = min(touching[lane, at], pulse), pulse + 1


@leaf
def _complete(N: Any, lane: Any, home: Any) -> None:
    """Make the bounds rise with the quarter hours, so that those of several are the first's first, the last's last."""
    touching, homes = of(N, "touching"), len(of(N, "homes"))
    for quarter in range(1, QUARTERS):
        at = 2 * (quarter * homes + home) + 1
        touching[lane, at] = max(touching[lane, at], touching[lane, at - 2 * homes])
        back = 2 * ((QUARTERS - 1 - quarter) * homes + home)
        touching[lane, back] = min(touching[lane, back], touching[lane, back + 2 * homes])


@leaf
def consumption(N: Any, lane: Any, home: Any, begin: Any, end: Any, base: Any) -> Any:
    """kWs that a home draws from `begin` to `end`, s of the day, in which the households' base series holds `base`."""
    drawn, at = of(N, "drawn"), home * DRAWN
    total = drawn[lane, at + SMOOTH] * of(N, "homes")[home, ENERGY] * 3600.0 * base
    plugged = drawn[lane, at + PLUGGED]
    total += WALLBOX_POWER * max(min(end, plugged + drawn[lane, at + CHARGING]) - max(begin, plugged), 0.0)
    pulses, touching, first = of(N, "pulses"), of(N, "touching"), of(N, "places")[home, FIRST_PULSE]
    homes = len(of(N, "homes"))
    early, late = min(int(begin / QUARTER), QUARTERS - 1), min(int(end / QUARTER), QUARTERS - 1)
    pulse = np.int64(touching[lane, 2 * (early * homes + home)])
    behind = np.int64(touching[lane, 2 * (late * homes + home) + 1])
    while pulse < behind:
        at = (first + pulse) * PULSE
        on = pulses[lane, at + START] * BIN
        both = min(end, on + pulses[lane, at + LENGTH] * BIN) - max(begin, on)
        if both > 0.0:
            total += pulses[lane, at + WATTS] / 1000.0 * both
        pulse += 1
    return total


@leaf
def energy_of(N: Any, series: Any, day: Any, quarter: Any) -> Any:
    """kWh per MWh/a or kWp of a base series from midnight to the start of a quarter hour."""
    return of(N, "base")[day, quarter * SERIES + series]


@leaf
def energy_until(N: Any, series: Any, day: Any, time: Any) -> Any:
    """The same to `time`, s of the day."""
    quarter = min(int(time / QUARTER), QUARTERS - 1)
    below = energy_of(N, series, day, quarter)
    return below + (time / QUARTER - quarter) * (energy_of(N, series, day, quarter + 1) - below)
