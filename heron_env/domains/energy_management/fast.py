"""The fast layer: what clouds, appliances and wallboxes add within a quarter hour, on a grid of 10 s.

Everything preserves the mean exactly: each home's energy of the day, in load and in generation, stays what the base
series say. Draws come from outside: `draw(name, shape)` gives uniforms in [0, 1).
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Draw = Callable[[str, tuple[int, ...]], Array]

BIN: Final = 10.0  # s
BINS: Final = 8640
BINS_PER_QUARTER: Final = 90
CYCLE: Final = (200.0, 400.0)  # s, one cloud and the gap behind it; 300 s in the mean
RAMP: Final = (0.25, 0.5, 0.25)  # a ramp of 20 s as means over bins of 10 s
SHADE: Final = 0.25  # power under a cloud, as a share of the clear sky's
APPLIANCES: Final = 0.5  # share of a home's load
APPLIANCE_POWER: Final = (1.5, 3.5)  # kW
APPLIANCE_BINS: Final = (12, 60)  # 2 to 10 min, 6 min in the mean
MEAN_PULSE: Final = 0.25  # kWh
WALLBOX: Final = 0.3  # share of the load of a home that has one
WALLBOX_POWER: Final = 11.0  # kW
ARRIVAL: Final = (16.0, 21.0)  # local hours between which the car is plugged in


def spread(quarters: Array) -> Array:
    """`[..., 96]` quarter hours to `[..., 8640]` bins, held constant."""
    return np.repeat(quarters, BINS_PER_QUARTER, axis=-1)


def sunlight(draw: Draw, roofs: Array, clear_sky: Array, roof: NDArray[np.int64], lags: Array) -> Array:
    """Generation `[homes, 8640]` in kW per kWp under passing clouds.

    A telegraph signal common to all roofs, each of which sees it after its lag (s): within a cycle the sky is clear for
    just the share of time that keeps the quarter hour's mean. Overcast and cloudless hours are therefore steady.

    Args:
        draw: the source of uniforms.
        roofs, clear_sky: `[3, 96]` kW per kWp: base power and cloudless power of the three roofs.
        roof: `[homes]` index of each home's roof.
        lags: `[homes]` s.
    """
    shaded = np.minimum(roofs, SHADE * clear_sky)
    span = clear_sky - shaded
    clear_share = np.divide(roofs - shaded, span, out=np.zeros_like(span), where=span > 0.0)
    margin = 2 + int(max(lags, default=0.0) / BIN)
    phase = _phase(draw, BINS + margin + 1)
    share = spread(np.concatenate([clear_share[:, :1], clear_share, clear_share[:, -1:]], axis=1))
    start = BINS_PER_QUARTER - margin
    lit = (phase < share[:, start : start + BINS + margin + 1]).astype(np.float64)
    lit[:, 1:-1] = RAMP[0] * lit[:, :-2] + RAMP[1] * lit[:, 1:-1] + RAMP[2] * lit[:, 2:]
    low, high = spread(shaded), spread(span)
    energy = roofs.sum(axis=-1) * BINS_PER_QUARTER
    power = np.empty((len(roof), BINS))
    for home, (side, lag) in enumerate(zip(roof, lags, strict=True)):
        first = margin - int(lag / BIN)
        np.multiply(high[side], lit[side, first : first + BINS], out=power[home])
        power[home] += low[side]
        total = power[home].sum()
        power[home] *= energy[side] / total if total > 0.0 else 0.0
    return power


def _phase(draw: Draw, bins: int) -> Array:
    """`[bins]` position in [0, 1) within the current cloud cycle, at the middle of each bin."""
    shortest, longest = CYCLE
    count = int(bins * BIN / shortest) + 2
    uniform = draw("clouds", (count + 1,))
    ends = np.cumsum(shortest + (longest - shortest) * uniform[1:]) - uniform[0] * shortest
    starts = np.concatenate([[-uniform[0] * shortest], ends[:-1]])
    times = (np.arange(bins) + 0.5) * BIN
    cycle = np.searchsorted(ends, times, side="right")
    return np.asarray((times - starts[cycle]) / (ends - starts)[cycle])


def household_load(draw: Draw, base: Array, wallbox: NDArray[np.bool_], arrival_shift: float) -> Array:
    """Load `[homes, 8640]` in kW: a smooth share, appliance pulses, and the wallbox's block in the evening.

    Args:
        draw: the source of uniforms.
        base: `[homes, 96]` kW.
        wallbox: `[homes]` who has one.
        arrival_shift: hours that the local clock is ahead of the series' clock.
    """
    energy = base.sum(axis=-1) * 0.25
    pulses = _pulses(draw, APPLIANCES * base)
    rest = energy - pulses.sum(axis=-1) * (BIN / 3600.0)
    charging = np.where(wallbox, WALLBOX * energy, 0.0)
    smooth = np.divide(rest - charging, energy, out=np.zeros_like(energy), where=energy > 0.0)
    pulses += spread(base * smooth[:, None])
    arrivals = draw("wallbox", (len(base), 2)).mean(axis=1)
    for home in np.flatnonzero(wallbox):
        hour = ARRIVAL[0] + (ARRIVAL[1] - ARRIVAL[0]) * arrivals[home] - arrival_shift
        pulses[home] += _block(hour * 3600.0, charging[home])
    return pulses


def _pulses(draw: Draw, part: Array) -> Array:
    """Pulses `[homes, 8640]` that use up the energy of `part` `[homes, 96]` in its own time: more where it is high.

    Each pulse lies at a random point of the stretch of `part` that holds its energy; the last, unfinished one is left
    out.
    """
    homes = len(part)
    cumulated = np.zeros((homes, part.shape[1] + 1))
    np.cumsum(part * 0.25, axis=1, out=cumulated[:, 1:])
    count = 16 + int(1.6 * cumulated[:, -1].max(initial=0.0) / MEAN_PULSE)
    uniform = draw("appliances", (3, homes, count))
    power = APPLIANCE_POWER[0] + (APPLIANCE_POWER[1] - APPLIANCE_POWER[0]) * uniform[0]
    shortest, longest = APPLIANCE_BINS
    length = shortest + (uniform[1] * (longest - shortest + 1)).astype(np.int64)
    energy = power * length * (BIN / 3600.0)
    end = np.cumsum(energy, axis=1)
    fits = end <= cumulated[:, -1:]
    quarters = np.arange(part.shape[1] + 1) * float(BINS_PER_QUARTER)
    point = end - uniform[2] * energy
    middle = np.stack([np.interp(*row, quarters) for row in zip(point, cumulated, strict=True)])
    start = np.clip(np.rint(middle - length / 2), 0, BINS - length).astype(np.int64)
    row = np.broadcast_to(np.arange(homes)[:, None] * (BINS + 1), start.shape)[fits]
    edges = np.concatenate([row + start[fits], row + (start + length)[fits]])
    steps = np.bincount(edges, np.concatenate([power[fits], -power[fits]]), homes * (BINS + 1))
    return np.maximum(np.cumsum(steps.reshape(homes, BINS + 1), axis=1)[:, :BINS], 0.0)


def _block(start: float, energy: float) -> Array:
    """`[8640]` kW: the wallbox's power from `start` (s) until `energy` (kWh) is delivered, within the day."""
    length = min(energy / WALLBOX_POWER * 3600.0, BINS * BIN)
    start = min(max(start, 0.0), BINS * BIN - length)
    edges = np.arange(BINS + 1) * BIN
    delivered = np.clip(edges - start, 0.0, length)
    return np.asarray(np.diff(delivered) * (WALLBOX_POWER / BIN))
