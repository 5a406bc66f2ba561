"""Clouds over the roofs: a telegraph signal common to all, whose integrals are known in closed form.

Within a cycle the sky is clear for just the share of time that keeps the mean of the quarter hour in its middle, so
that overcast and cloudless hours are steady. A roof sees the signal after its lag, and an edge takes 20 s to pass it;
what is left is one factor a home, which keeps the day's energy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.draw_kernel import uniform
from heron_env.engine.kernels import leaf, table_of
from heron_env.worlds.energy_management.days_tables import (
    CLOUD,
    CYCLE,
    DAY,
    DRAWN,
    FORMS,
    HOME_LAG,
    LAG,
    LOW,
    PEAK,
    QUARTER,
    QUARTERS,
    RAMP,
    ROOF,
    ROOFS,
    SERIES,
    SHARE,
    SKY,
    SPAN,
    SUN,
)

of = table_of(FORMS)
SHORTEST, SPREAD = CYCLE[0], CYCLE[1] - CYCLE[0]
BEFORE = LAG + RAMP
AFTER = DAY + CYCLE[1] + RAMP
UNKNOWN = -1.0


@leaf
def draw_clouds(N: Any, lane: Any, key: Any) -> None:
    """The cycles of a lane's day and how long the sky is clear in each."""
    cycles, cycle_at, sky, day = of(N, "cycles"), of(N, "cycle_at"), of(N, "sky"), of(N, "days")[lane]
    start, cycle, quarter = -BEFORE - SHORTEST * uniform(key, 0), 0, 0
    cycles[lane, 0], cycles[lane, 1:CLOUD] = start, 0.0
    while start < AFTER:
        length = SHORTEST + SPREAD * uniform(key, cycle + 1)
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
        total, _ = sunshine(N, lane, home, 0.0, DAY, UNKNOWN)
        if total > 0.0:
            factor = peak * of(N, "base")[day, QUARTERS * SERIES + ROOFS + roof] * 3600.0 / total
    of(N, "drawn")[lane, home * DRAWN + SUN] = factor


@leaf
def generation(N: Any, lane: Any, home: Any, begin: Any, end: Any, clear: Any) -> Any:
    """kWs of a home's roof from `begin` to `end`, s of the day; and `clear` as sunshine gives it."""
    factor = of(N, "drawn")[lane, home * DRAWN + SUN]
    if factor <= 0.0:
        return 0.0, UNKNOWN
    total, clear = sunshine(N, lane, home, begin, end, clear)
    return factor * total, clear


@leaf
def sunshine(N: Any, lane: Any, home: Any, begin: Any, end: Any, clear: Any) -> Any:
    """kWs per kWp, before the factor that keeps the day's energy; and seconds of clear sky before `end`.

    clear: those before `begin`; UNKNOWN as long as nobody needed them.
    """
    day, roof, lag = of(N, "days")[lane], of(N, "places")[home, ROOF], of(N, "homes")[home, HOME_LAG]
    sky = of(N, "sky")
    quarter = min(int(begin / QUARTER), QUARTERS - 1)
    total, since = 0.0, begin
    while since < end:
        until = min(end, QUARTER * (quarter + 1)) if quarter < QUARTERS - 1 else end
        at = (3 * quarter + roof) * SKY
        low, span = sky[day, at + LOW], sky[day, at + SPAN]
        if span > 0.0:
            before = clear if clear >= 0.0 else clear_until(N, lane, roof, quarter, since - lag)
            clear = clear_until(N, lane, roof, quarter, until - lag)
            total += low * (until - since) + span * (clear - before)
        else:
            clear = UNKNOWN
        since = until
        quarter += 1
    return total, clear


@leaf
def clear_until(N: Any, lane: Any, roof: Any, quarter: Any, time: Any) -> Any:
    """Seconds of clear sky before `time`, which is not before this quarter hour by more than the greatest lag."""
    cycles = of(N, "cycles")
    cycle = np.int64(of(N, "cycle_at")[lane, quarter])
    while cycles[lane, (cycle + 1) * CLOUD] <= time:
        cycle += 1
    first = (cycle - 1 if cycle > 0 else 0) * CLOUD
    total = cycles[lane, first + 1 + roof]
    for at in range(first, (cycle + 2) * CLOUD, CLOUD):  # the others are over, or have not begun
        past, clear = time - cycles[lane, at], cycles[lane, at + CLOUD + 1 + roof] - cycles[lane, at + 1 + roof]
        total += _passed(past) - _passed(past - clear)
    return total


@leaf
def _passed(past: Any) -> Any:
    """Integral of an edge from 0 to 1 whose middle was `past` seconds ago."""
    if past >= RAMP:
        return past
    return (past + RAMP) ** 2 / (4.0 * RAMP) if past > -RAMP else 0.0
