"""What compiled code knows of a site and of its lanes' days: names, forms and places of numbers in its tables.

A lane's day is kept as what its draws decide, never as a series: cloud cycles, appliance pulses with the quarter hours
they touch, one number a home where one is enough, and sums of the forecasts by quarter hour. The kernels
(days_kernel.py, load_kernel.py) make of it what a step needs when it is due.
"""

from typing import Final

DAY: Final = 86_400.0  # s
QUARTER: Final = 900.0  # s
QUARTERS: Final = 96
AHEAD: Final = 144  # quarter hours that forecasts look at from midnight on: the day and 12 h
BIN: Final = 10.0  # s, the finest that exogenous values change
HORIZONS: Final = (1, 3, 6, 12)  # h, of the forecasts of the net energy; the last is that of the deficit

LAG: Final = 60.0  # s, the most that a cloud's shadow takes to a roof
CYCLE: Final = (200.0, 400.0)  # s, one cloud and the gap behind it; 300 s in the mean
CYCLES: Final = 440  # more than fit into a day
RAMP: Final = 10.0  # s, half of the time in which a shadow's edge passes a roof
SHADE: Final = 0.25  # power under a cloud, as a share of the clear sky's

APPLIANCES: Final = 0.5  # share of a home's load
APPLIANCE_POWER: Final = (1.5, 3.5)  # kW
APPLIANCE_BINS: Final = (12, 60)  # of 10 s: 2 to 10 min, 6 min in the mean
LEAST_PULSE: Final = APPLIANCE_POWER[0] * APPLIANCE_BINS[0] * BIN / 3600.0  # kWh
WALLBOX: Final = 0.3  # share of the load of a home that has one
WALLBOX_POWER: Final = 11.0  # kW
ARRIVAL: Final = (16.0, 21.0)  # local hours between which the car is plugged in

SOC_START: Final = (0.1, 0.9)  # between which the batteries' content is when a day begins
WORST_ERROR: Final = 3.0  # standard deviations at which a forecast's error is cut

(ROOF, ZONE, HAS_WALLBOX, FIRST_PULSE, PULSES) = range(5)
"""Places in a row of `places`."""
(HOUSEHOLD, BUSINESS, ROOFS, SERIES) = (0, 1, 2, 5)
"""Places of a quarter hour's sums in `base`, the roofs by their number, and how many there are."""
(LOW, SPAN, SHARE, SKY) = range(4)
"""Places in `sky`: kW per kWp under a cloud, what clear sky adds, its share of the time, and how many there are."""
CLOUD: Final = 4
"""Numbers of a cycle in `cycles`."""
(START, LENGTH, WATTS, PULSE) = range(4)
"""Places of a pulse in `pulses`: 10 s, 10 s, W; and how many there are."""
(ENERGY, PEAK, HOME_LAG) = range(3)
"""Places in a row of `homes`: MWh/a, kWp, s."""
(SMOOTH, SUN, FACTOR, PLUGGED, CHARGING) = range(5)
DRAWN: Final = 5
"""Places among the numbers of a home in `drawn`: the share of its base load that is smooth, the factor on its sunshine,
the forecast's on its generation, the wallbox's start and length (s); and how many there are."""
(DT, BIN_LENGTH, STEPS, BATTERIES, FEED_IN, OVERLOAD, FLUCTUATION, APPROACH, MEAN_HOURS, ERROR) = range(10)
"""Places in `law`: seconds, numbers, prices, of the slow mean over a bin, of the forecasts' errors."""

FORMS: dict[str, tuple[str, int]] = {
    # of the site
    "law": ("float64", 1),
    "homes": ("float64", 2), "places": ("int64", 2),  # `[homes, 3]`, `[homes, 5]`, those with batteries first
    "business": ("float64", 1), "limits": ("float64", 1),  # `[zones]` MWh/a, kW
    "start": ("float64", 2),  # `[days, zones]` kW before midnight, where the slow means of a day begin
    "base": ("float64", 2),  # `[days, 97 * SERIES]` kWh per MWh/a or kWp from midnight on
    "sky": ("float64", 2),  # `[days, 96 * 3 * SKY]`
    "own": ("float64", 2),  # `[days, (slots + 1) * 2 * homes]` kWh from midnight on of an own site: loads, then
    # roofs; no rows where they are drawn
    "tariff": ("float64", 2),  # `[3, 24 * days]` price, next price, hours until then
    "summer": ("float64", 1),  # `[24 * days]` hours that the local clock is ahead
    "following": ("int64", 1),  # `[days]` the day that forecasts see behind midnight
    "season": ("float64", 1),  # `[days]` days since January 1
    "choices": ("int64", 1),  # days of which one is drawn
    "soc_at": ("int64", 1), "row_at": ("int64", 1),  # columns of the truth: of the batteries' contents, and of a row
    "start_at": ("int64", 1), "starts": ("float64", 2),  # of what stands at the start of each day, `[days, width]`
    "gains": ("int64", 2),  # `[deciding agents, 1 + most]` how many columns, and these: whose amounts trainers count
    "low": ("float64", 1), "high": ("float64", 1),  # of the truth
    # of the lanes
    "days": ("int64", 1),
    "cycles": ("float64", 2),  # `[L, CYCLES * CLOUD]` s: start of each cycle, and clear sky before it over each roof
    "cycle_at": ("uint16", 2),  # `[L, 97]` the cycle that has reached the nearest roof's quarter hour, or one before
    "drawn": ("float64", 2),  # `[L, homes * DRAWN]`
    "pulses": ("uint16", 2),  # `[L, pulses * PULSE]`
    "touching": ("uint16", 2),  # `[L, 2 * 96 * homes]` first pulse that may touch a quarter hour, one past the last
    "clear": ("float64", 2),  # `[L, homes + 1]` s of clear sky before the end of the bin made last, and that end
    "surplus": ("float64", 2),  # `[L, (AHEAD + 1) * batteries]` kWh from midnight on
    "excess": ("float64", 2),  # `[L, 97 * zones]` kWh from midnight on
    "kept": ("float64", 2), "kept_from": ("int64", 1),  # `[L * k, width]` rows made ahead; step of the first, -1: none
    "told": ("int64", 1),  # `[L]` the row that was made last; -1: none
    "without": ("float64", 2),  # `[L, 2 * (batteries + 2 * zones)]` EUR and slow means, of that row and of the next
}  # fmt: skip
"""Element type and number of axes of every array in the table."""
