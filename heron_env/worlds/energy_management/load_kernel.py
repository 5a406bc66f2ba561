"""What a home draws: a smooth share of the base series, appliance pulses, and a wallbox's block in the evening.

Pulses use up half of the base series' energy in its own time, more where it is high: each lies at a random point of the
stretch of the series that holds its energy, and the last, unfinished one is left out. The smooth share is what keeps
the day's energy.

Clouds over the roofs: a telegraph signal common to all, whose integrals are known in closed form.

Within a cycle the sky is clear for just the share of time that keeps the mean of the quarter hour in its middle, so
that overcast and cloudless hours are steady. A roof sees the signal after its lag, and an edge takes 20 s to pass it;
what is left is one factor a home, which keeps the day's energy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.draw_kernel import uniform
from heron_env.engine.kernels import inlined, leaf, table_of
from heron_env.worlds.energy_management.days_tables import (
    APPLIANCE_BINS,
    APPLIANCE_POWER,
    APPLIANCES,
    ARRIVAL,
    BIN,
    CHARGING,
    CLOUD,
    CYCLE,
    DAY,
    DRAWN,
    ENERGY,
    FIRST_PULSE,
    FORMS,
    HAS_WALLBOX,
    HOME_LAG,
    HOUSEHOLD,
    LAG,
    LENGTH,
    LOW,
    PEAK,
    PLUGGED,
    PULSE,
    PULSES,
    QUARTER,
    QUARTERS,
    RAMP,
    ROOF,
    ROOFS,
    SERIES,
    SHARE,
    SKY,
    SMOOTH,
    SPAN,
    START,
    SUN,
    WALLBOX,
    WALLBOX_POWER,
    WATTS,
)

of = table_of(FORMS)


@inlined
def is_own(N: Any) -> Any:
    """Are load and sun measured, not drawn?"""
    return len(of(N, "own")) > 0


@leaf
def own_energy(N: Any, lane: Any, home: Any, roof: Any, time: Any) -> Any:
    """kWh that a home has drawn, or its roof yielded, since midnight; `time` in s, less than two days."""
    day = of(N, "days")[lane]
    if time <= DAY:
        return _energy_until(N, home, roof, day, time)
    whole = _energy_until(N, home, roof, day, DAY)
    return whole + _energy_until(N, home, roof, of(N, "following")[day], time - DAY)


@leaf
def _energy_until(N: Any, home: Any, roof: Any, day: Any, time: Any) -> Any:
    """The same of one day: power is even within a slot of the series."""
    own, homes = of(N, "own"), len(of(N, "homes"))
    slots = own.shape[1] // (2 * homes) - 1
    slot = min(int(time / DAY * slots), slots - 1)
    series = home + homes if roof else home
    at = slot * 2 * homes + series
    return own[day, at] + (time / DAY * slots - slot) * (own[day, at + 2 * homes] - own[day, at])


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
    return used


@leaf
def touch_nothing(N: Any, lane: Any) -> None:
    """No pulse of any home touches any quarter hour."""
    touching, size = of(N, "touching"), QUARTERS * len(of(N, "homes"))
    touching[lane, :size], touching[lane, size:] = NONE, 0


@leaf
def _touch(N: Any, lane: Any, home: Any, pulse: Any, begin: Any, end: Any) -> None:
    """This pulse, the latest so far, touches the quarter hours from `begin` to `end`."""
    touching, homes = of(N, "touching"), len(of(N, "homes"))
    for quarter in range(begin, end + 1):
        at = quarter * homes + home
        behind = QUARTERS * homes + at
        touching[lane, at], touching[lane, behind] = min(touching[lane, at], pulse), pulse + 1


@leaf
def complete_touching(N: Any, lane: Any) -> None:
    """Make the bounds rise with the quarter hours, so that those of several are the first's first, the last's last."""
    touching, homes = of(N, "touching"), len(of(N, "homes"))
    size = QUARTERS * homes
    for at in range(size + homes, 2 * size):
        touching[lane, at] = max(touching[lane, at], touching[lane, at - homes])
    for at in range(size - homes - 1, -1, -1):
        touching[lane, at] = min(touching[lane, at], touching[lane, at + homes])


@leaf
def consumption(N: Any, lane: Any, home: Any, begin: Any, end: Any, early: Any, late: Any, base: Any) -> Any:
    """kWs that a home draws from `begin` to `end`, s of the day, in which the households' base series holds `base`.

    early, late: the quarter hours in which these times are.
    """
    drawn, at = of(N, "drawn"), home * DRAWN
    total = drawn[lane, at + SMOOTH] * of(N, "homes")[home, ENERGY] * 3600.0 * base
    plugged = drawn[lane, at + PLUGGED]
    total += WALLBOX_POWER * max(min(end, plugged + drawn[lane, at + CHARGING]) - max(begin, plugged), 0.0)
    pulses, touching, first = of(N, "pulses"), of(N, "touching"), of(N, "places")[home, FIRST_PULSE]
    homes = len(of(N, "homes"))
    early, late = min(early, QUARTERS - 1), min(late, QUARTERS - 1)
    row, behind = np.uintp(lane), np.uintp(first) + np.uintp(touching[lane, (QUARTERS + late) * homes + home])
    pulse = np.uintp(first) + np.uintp(touching[lane, early * homes + home])
    while pulse < behind:
        at = pulse * np.uintp(PULSE)
        on = pulses[row, at + np.uintp(START)] * BIN
        both = min(end, on + pulses[row, at + np.uintp(LENGTH)] * BIN) - max(begin, on)
        total += pulses[row, at + np.uintp(WATTS)] / 1000.0 * max(both, 0.0)
        pulse += np.uintp(1)
    return total


@inlined
def energy_of(N: Any, series: Any, day: Any, quarter: Any) -> Any:
    """kWh per MWh/a or kWp of a base series from midnight to the start of a quarter hour."""
    return of(N, "base")[day, quarter * SERIES + series]


@inlined
def energy_until(N: Any, series: Any, day: Any, time: Any) -> Any:
    """The same to `time`, s of the day."""
    quarter = min(int(time / QUARTER), QUARTERS - 1)
    below = energy_of(N, series, day, quarter)
    return below + (time / QUARTER - quarter) * (energy_of(N, series, day, quarter + 1) - below)


BRIEFEST, SPREAD = CYCLE[0], CYCLE[1] - CYCLE[0]
BEFORE = LAG + RAMP
AFTER = DAY + CYCLE[1] + RAMP
UNKNOWN = -1.0


@leaf
def draw_clouds(N: Any, lane: Any, key: Any) -> None:
    """The cycles of a lane's day and how long the sky is clear in each."""
    cycles, cycle_at, sky, day = of(N, "cycles"), of(N, "cycle_at"), of(N, "sky"), of(N, "days")[lane]
    start, cycle, quarter = -BEFORE - BRIEFEST * uniform(key, 0), 0, 0
    cycles[lane, 0], cycles[lane, 1:CLOUD] = start, 0.0
    while start < AFTER:
        length = BRIEFEST + SPREAD * uniform(key, cycle + 1)
        middle = min(max(int((start + 0.5 * length) / QUARTER), 0), QUARTERS - 1)
        for roof in range(3):
            at = cycle * CLOUD + 1 + roof
            cycles[lane, at + CLOUD] = cycles[lane, at] + length * sky[day, (3 * middle + roof) * SKY + SHARE]
        start += length
        while quarter <= QUARTERS and quarter * QUARTER - BEFORE < start:
            cycle_at[lane, quarter] = cycle
            quarter += 1
        cycle += 1
        cycles[lane, cycle * CLOUD] = start


@leaf
def sun_factor(N: Any, lane: Any, home: Any) -> None:
    """Peak and what keeps the energy of the day, as one factor on `sunshine`."""
    day, roof, peak = of(N, "days")[lane], of(N, "places")[home, ROOF], of(N, "homes")[home, PEAK]
    factor = 0.0
    if peak > 0.0:
        total, _ = sunshine(N, lane, home, 0.0, DAY, 0, QUARTERS, UNKNOWN)
        if total > 0.0:
            factor = peak * of(N, "base")[day, QUARTERS * SERIES + ROOFS + roof] * 3600.0 / total
    of(N, "drawn")[lane, home * DRAWN + SUN] = factor


@leaf
def generation(N: Any, lane: Any, home: Any, begin: Any, end: Any, early: Any, late: Any, clear: Any) -> Any:
    """kWs of a home's roof from `begin` to `end`, s of the day; and `clear` as sunshine gives it."""
    factor = of(N, "drawn")[lane, home * DRAWN + SUN]
    if factor <= 0.0:
        return 0.0, UNKNOWN
    total, clear = sunshine(N, lane, home, begin, end, early, late, clear)
    return factor * total, clear


@leaf
def sunshine(N: Any, lane: Any, home: Any, begin: Any, end: Any, early: Any, late: Any, clear: Any) -> Any:
    """kWs per kWp, before the factor that keeps the day's energy; and seconds of clear sky before `end`.

    early, late: the quarter hours in which these times are; clear: seconds before `begin`, UNKNOWN as long as nobody
    needed them.
    """
    day, roof, lag = of(N, "days")[lane], of(N, "places")[home, ROOF], of(N, "homes")[home, HOME_LAG]
    sky = of(N, "sky")
    quarter, last = min(early, QUARTERS - 1), min(late, QUARTERS - 1)
    total, since = 0.0, begin
    while since < end:
        until = min(end, QUARTER * (quarter + 1)) if quarter < last else end
        at = (3 * quarter + roof) * SKY
        low, span = sky[day, at + LOW], sky[day, at + SPAN]
        if span > 0.0:
            before = clear if clear >= 0.0 else clear_until(N, lane, roof, quarter, since - lag)
            clear = clear_until(N, lane, roof, quarter + 1 if quarter < last else late, until - lag)
            total += low * (until - since) + span * (clear - before)
        else:
            clear = UNKNOWN
        since = until
        quarter += 1
    return total, clear


@leaf
def clear_until(N: Any, lane: Any, roof: Any, quarter: Any, time: Any) -> Any:
    """Seconds of clear sky before `time`, which is not before this quarter hour by more than the greatest lag."""
    cycles, row, size = of(N, "cycles"), np.uintp(lane), np.uintp(CLOUD)
    at = np.uintp(of(N, "cycle_at")[lane, quarter]) * size
    while cycles[row, at + size] <= time:
        at += size
    behind, at = at + size + size, at - size if at > 0 else at
    over = np.uintp(1 + roof)
    total = before = cycles[row, at + over]
    while at < behind:  # the others are over, or have not begun
        until = cycles[row, at + size + over]
        past, clear = time - cycles[row, at], until - before
        total += _passed(past) - _passed(past - clear)
        before = until
        at += size
    return total


@inlined
def _passed(past: Any) -> Any:
    """Integral of an edge from 0 to 1 whose middle was `past` seconds ago."""
    if past >= RAMP:
        return past
    return (past + RAMP) ** 2 / (4.0 * RAMP) if past > -RAMP else 0.0
