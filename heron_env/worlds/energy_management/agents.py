"""Battery, zone and grid operator: their quantities, one substep of physics as rules, its money, the end of the day.

Energies are in kWh, powers in kW, positive from the grid; `dt` is the substep in seconds. The exogenous values are held
over a bin, so every formula is exact however finely the bin is split, as long as no battery runs full or empty.

Bins are the parts of a control step within which load and generation are held; features keep them. Load and generation
of the step under way are nobody's to see: `begin` and `finish` write them, one element a bin, and the rules of physics
take the element of their own time. Counting would not do: a disturbance may cut a substep.
"""

import math
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import CoordinatorAgent, FieldAgent, SystemAgent
from heron_env.core.action import Continuous, Vector
from heron_env.core.feature import FeatureProvider, quantity
from heron_env.core.rule import Children, rule

MAX_POWER = 5.0  # kW, every battery's inverter


class Charge(FeatureProvider):
    """Energy held by one battery."""

    visibility = ("owner", "upper_level")
    soc: float = quantity(default=0.5, low=0.0, high=1.0, unit="1")
    capacity: float = quantity(default=10.0, low=0.5, high=100.0, unit="kWh", noisy=False)


class Meter(FeatureProvider):
    """What the home drew and what its roof yielded: means of the last bin that has ended."""

    visibility = ("owner", "upper_level")
    load: float = quantity(default=0.0, low=0.0, high=100.0, unit="kW")
    pv: float = quantity(default=0.0, low=0.0, high=100.0, unit="kW")


class Setpoint(FeatureProvider):
    """Power the battery is asked for; positive charges."""

    visibility = ("owner", "upper_level")
    power: float = quantity(default=0.0, low=-MAX_POWER, high=MAX_POWER, unit="kW")


class Forecast(FeatureProvider):
    """Energies the home expects from the base series: its generation is off by one factor a day.

    `net_1h` to `net_12h`: demand less generation of the next hours, signed; `surplus_rest` until midnight.
    """

    visibility = ("owner",)
    surplus_rest: float = quantity(default=0.0, low=0.0, high=500.0, unit="kWh", foreknown=True)
    deficit_12h: float = quantity(default=0.0, low=0.0, high=500.0, unit="kWh", foreknown=True)
    net_1h: float = quantity(default=0.0, low=-500.0, high=500.0, unit="kWh", foreknown=True)
    net_3h: float = quantity(default=0.0, low=-500.0, high=500.0, unit="kWh", foreknown=True)
    net_6h: float = quantity(default=0.0, low=-500.0, high=500.0, unit="kWh", foreknown=True)
    net_12h: float = quantity(default=0.0, low=-500.0, high=500.0, unit="kWh", foreknown=True)


class Flow(FeatureProvider):
    """Power through the home's grid connection in the last substep (its transformer adds them up), and its load."""

    grid: float = quantity(default=0.0, low=-300.0, high=300.0, unit="kW", observed=False)
    load: float = quantity(default=0.0, low=0.0, high=200.0, unit="kW", observed=False)


class Metering(FeatureProvider):
    """What the meter has counted since the bin under way began."""

    load: float = quantity(default=0.0, low=0.0, high=1e9, unit="kWs", observed=False)
    pv: float = quantity(default=0.0, low=0.0, high=1e9, unit="kWs", observed=False)


class Disturbed(FeatureProvider):
    """What disturbances make of the home's series: a share of the generation, and load on top."""

    pv_factor: float = quantity(default=1.0, low=0.0, high=1.0, unit="1", observed=False)
    load: float = quantity(default=0.0, low=0.0, high=1e4, unit="kW", observed=False)


class Ledger(FeatureProvider):
    """Money of the step, integrated over its substeps; `without` is the same for a step without any battery."""

    amount: float = quantity(default=0.0, low=-1e6, high=1e6, unit="EUR", per_step=True, observed=False)
    without: float = quantity(default=0.0, low=-1e6, high=1e6, unit="EUR", observed=False)


class HomeTally(FeatureProvider):
    """The day so far at one home: energy bill, own generation used or stored, energy through the battery's cells."""

    bill: float = quantity(default=0.0, low=-1e6, high=1e6, unit="EUR", observed=False)
    generated: float = quantity(default=0.0, low=0.0, high=1e6, unit="kWh", observed=False)
    self_used: float = quantity(default=0.0, low=0.0, high=1e6, unit="kWh", observed=False)
    throughput: float = quantity(default=0.0, low=0.0, high=1e6, unit="kWh", observed=False)


class Zone(FeatureProvider):
    """What the transformer measured in the last substep. It reaches the batteries by message, so it can be stale."""

    visibility = ("owner", "subordinates", "system")
    power: float = quantity(default=0.0, low=-1000.0, high=1000.0, unit="kW")
    mean_power: float = quantity(default=0.0, low=-1000.0, high=1000.0, unit="kW")
    limit: float = quantity(default=10.8, low=0.0, high=1000.0, unit="kW", noisy=False)
    excess_rest: float = quantity(default=0.0, low=0.0, high=5000.0, unit="kWh", foreknown=True)


class Background(FeatureProvider):
    """Homes without batteries and the business, together, in the last substep; `extra`: what disturbances add to it.

    It is part of the zone's measurement and seen by nobody.
    """

    power: float = quantity(default=0.0, low=-1000.0, high=1000.0, unit="kW", observed=False)
    extra: float = quantity(default=0.0, low=0.0, high=1e4, unit="kW", observed=False)


class ZoneTally(FeatureProvider):
    """The day so far at one transformer."""

    peak: float = quantity(default=0.0, low=0.0, high=1000.0, unit="kW", observed=False)
    overload_minutes: float = quantity(default=0.0, low=0.0, high=1440.0, unit="min", observed=False)


class Tariff(FeatureProvider):
    """The price in force, the next one, and the time until it comes."""

    visibility = ("public",)
    price: float = quantity(default=0.338, low=0.0, high=10.0, unit="EUR/kWh", noisy=False, foreknown=True)
    next_price: float = quantity(default=0.338, low=0.0, high=10.0, unit="EUR/kWh", noisy=False, foreknown=True)
    hours_to_change: float = quantity(default=0.0, low=0.0, high=24.0, unit="h", noisy=False, foreknown=True)


class Clock(FeatureProvider):
    """Local hour of day and season, on circles."""

    visibility = ("public",)
    hour_sin: float = quantity(default=0.0, low=-1.0, high=1.0, noisy=False, foreknown=True)
    hour_cos: float = quantity(default=1.0, low=-1.0, high=1.0, noisy=False, foreknown=True)
    season_sin: float = quantity(default=0.0, low=-1.0, high=1.0, noisy=False, foreknown=True)
    season_cos: float = quantity(default=1.0, low=-1.0, high=1.0, noisy=False, foreknown=True)


class Constants(FeatureProvider):
    """What physics and money are computed with. Overload and fluctuation prices are design constants, no market's.

    The feed-in price is a German feed-in remuneration; wear is paid per kWh through the inverter; stored energy keeps
    `stored_value`, so that emptying the battery at midnight is no trick.
    """

    visibility = ()
    efficiency: float = quantity(default=0.95, low=0.5, high=1.0, unit="1", observed=False)
    feed_in_price: float = quantity(default=0.0786, low=0.0, high=10.0, unit="EUR/kWh", observed=False)
    wear_price: float = quantity(default=0.01, low=0.0, high=10.0, unit="EUR/kWh", observed=False)
    stored_value: float = quantity(default=0.20, low=0.0, high=10.0, unit="EUR/kWh", observed=False)
    overload_price: float = quantity(default=1.0, low=0.0, high=100.0, unit="EUR/kWh", observed=False)
    fluctuation_price: float = quantity(default=0.10, low=0.0, high=100.0, unit="EUR/kWh", observed=False)
    mean_time: float = quantity(default=900.0, low=1.0, high=86_400.0, unit="s", observed=False)


LEAST: Final = 10.0
"""s; what is metered more often says what is coming."""
NEAR: Final = 1e-6
"""Of a bin: so near to an edge is on it."""
MOST: Final = 1000.0  # kW


def bins_of(dt: float, physics_substeps: int) -> int:
    """Bins in a step: as many as divide its substeps evenly and last 10 s at least; one where none do."""
    most = min(physics_substeps, int(dt / (LEAST * (1.0 - 1e-9))))
    return next((n for n in range(most, 0, -1) if physics_substeps % n == 0), 1)


def bin_at(time: float, length: float) -> int:
    """Number of the bin, of `length` s, that holds `time` or begins there."""
    return int(time / length + NEAR)


class Bins(FeatureProvider):
    """Length of a bin: what a meter's mean is of."""

    visibility = ()
    length: float = quantity(default=LEAST, low=0.0, high=86_400.0, unit="s", observed=False)


class HomeSeries(FeatureProvider):
    """What the home draws and its roof yields in the step under way, `[bins]` kW, before disturbances."""

    if TYPE_CHECKING:  # `home_series` adds them
        load: NDArray[np.float64] = quantity(default=0.0)
        pv: NDArray[np.float64] = quantity(default=0.0)


class ZoneSeries(FeatureProvider):
    """What homes without batteries and the business draw in the step under way, `[bins]` kW, before disturbances."""

    if TYPE_CHECKING:
        power: NDArray[np.float64] = quantity(default=0.0)


def home_series(bins: int) -> type[HomeSeries]:
    """The series of a home for steps of so many bins."""
    made: type[HomeSeries] = _sized(HomeSeries, bins, (("load", 0.0), ("pv", 0.0)))
    return made


def zone_series(bins: int) -> type[ZoneSeries]:
    """The series of a zone for steps of so many bins."""
    made: type[ZoneSeries] = _sized(ZoneSeries, bins, (("power", -MOST),))
    return made


@cache
def _sized(base: Any, bins: int, fields: tuple[tuple[str, float], ...]) -> Any:
    """The subclass with vectors of a name and a lower bound; one class for each number of bins."""
    body = {
        name: quantity(default=0.0, low=low, high=MOST, unit="kW", shape=(bins,), observed=False)
        for name, low in fields
    }
    names = {"__module__": __name__, "__doc__": base.__doc__, "feature_name": base.__name__}
    return type(
        f"{base.__name__}{bins}", (base,), {**names, **body, "__annotations__": dict.fromkeys(body, np.ndarray)}
    )


def __getattr__(name: str) -> Any:
    """`HomeSeries6`, `ZoneSeries6`: by these names copies and pickles of environments find their features."""
    for base, make in ((HomeSeries, home_series), (ZoneSeries, zone_series)):
        number = name.removeprefix(base.__name__)
        if number != name and number.isdigit():
            return make(int(number))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


LAST_MOMENT = 86_400.0 - 1e-3  # s, the end of the day within rounding


class Battery(FieldAgent):
    """A home with a roof and a battery; it decides the battery's power, and reads its own meter by wire."""

    features: ClassVar[tuple[type[FeatureProvider], ...]] = (
        Charge,
        Meter,
        Setpoint,
        Forecast,
        HomeSeries,
        Disturbed,
        Metering,
        Flow,
        Ledger,
        HomeTally,
    )
    action = Continuous(-MAX_POWER, MAX_POWER, unit="kW")
    own_rows = "local"

    @staticmethod
    @rule(writes=Setpoint.power)
    def apply_action(setpoint: Setpoint, action: Vector) -> float:
        """Write the set-point; only physics moves energy."""
        return action[0]

    @staticmethod
    @rule(
        writes=(
            Charge.soc,
            Meter.load,
            Meter.pv,
            Metering.load,
            Metering.pv,
            Flow.grid,
            Flow.load,
            Ledger.amount,
            HomeTally.bill,
            HomeTally.generated,
            HomeTally.self_used,
            HomeTally.throughput,
        )
    )
    def advance(
        charge: Charge,
        meter: Meter,
        setpoint: Setpoint,
        series: HomeSeries,
        disturbed: Disturbed,
        metering: Metering,
        ledger: Ledger,
        tally: HomeTally,
        tariff: Tariff,
        constants: Constants,
        bins: Bins,
        dt: float,
        time: float,
    ) -> tuple[float, float, float, float, float, float, float, float, float, float, float, float]:
        """Charge or discharge as far as the battery's content allows, then pay for what crosses the meter.

        The meter counts, and shows the mean of a bin when it has ended.
        """
        hours = dt / 3600.0
        efficiency = constants.efficiency
        capacity = charge.capacity
        soc = charge.soc
        power = setpoint.power
        if power > 0.0:
            power = min(power, (capacity - soc * capacity) / (efficiency * hours))
            stored = efficiency * power * hours
            used = power * hours
        else:
            power = max(power, -efficiency * soc * capacity / hours)
            stored = power * hours / efficiency
            used = -power * hours
        number = bin_at(time, bins.length)
        place = number % len(series.load)
        load = float(series.load[place]) + disturbed.load
        pv = float(series.pv[place]) * disturbed.pv_factor
        grid = load - pv + power
        feed_in = max(-grid, 0.0)
        bill = (tariff.price * max(grid, 0.0) - constants.feed_in_price * feed_in) * hours
        amount = -bill - constants.wear_price * used + constants.stored_value * stored
        shown_load, shown_pv = meter.load, meter.pv
        counted_load, counted_pv = metering.load + load * dt, metering.pv + pv * dt
        if bin_at(time + dt, bins.length) > number:
            shown_load, shown_pv = counted_load / bins.length, counted_pv / bins.length
            counted_load = counted_pv = 0.0
        return (
            soc + stored / capacity,
            shown_load,
            shown_pv,
            counted_load,
            counted_pv,
            grid,
            load,
            ledger.amount + amount,
            tally.bill + bill,
            tally.generated + pv * hours,
            tally.self_used + max(pv - feed_in, 0.0) * hours,
            tally.throughput + abs(stored),
        )

    @staticmethod
    @rule
    def compute_local_reward(ledger: Ledger) -> float:
        """EUR of the step."""
        return ledger.amount

    @staticmethod
    @rule
    def is_terminated(time: float) -> bool:
        """Has the day ended? It is a true end: nothing to bootstrap from."""
        return time > LAST_MOMENT


class TransformerZone(CoordinatorAgent):
    """Homes behind one transformer; it measures, and with `control="zone"` it decides their common power."""

    features: ClassVar[tuple[type[FeatureProvider], ...]] = (Zone, ZoneSeries, Background, Ledger, ZoneTally)

    @staticmethod
    @rule(
        writes=(
            Zone.power,
            Zone.mean_power,
            Background.power,
            Ledger.amount,
            ZoneTally.peak,
            ZoneTally.overload_minutes,
        )
    )
    def advance(
        zone: Zone,
        series: ZoneSeries,
        background: Background,
        ledger: Ledger,
        tally: ZoneTally,
        flows: Children[Flow],
        constants: Constants,
        bins: Bins,
        dt: float,
        time: float,
    ) -> tuple[float, float, float, float, float, float]:
        """Add up the flows, follow them with the slow mean, and pay for overload and fluctuation.

        While the power is held the mean approaches it exponentially; the fluctuation paid is the integral of the
        distance over the substep, so it does not depend on how finely a step is split.
        """
        others = float(series.power[bin_at(time, bins.length) % len(series.power)]) + background.extra
        power = float(flows.grid.sum()) + others
        overload = max(abs(power) - zone.limit, 0.0)
        mean_time = constants.mean_time
        approach = 1.0 - math.exp(-dt / mean_time)
        distance = power - zone.mean_power
        fluctuation = abs(distance) * approach * mean_time / 3600.0
        paid = constants.overload_price * overload * dt / 3600.0 + constants.fluctuation_price * fluctuation
        overloaded = dt / 60.0 if overload > 0.0 else 0.0
        return (
            power,
            zone.mean_power + approach * distance,
            others,
            ledger.amount - paid,
            max(tally.peak, abs(power)),
            tally.overload_minutes + overloaded,
        )

    @staticmethod
    @rule
    def compute_local_reward(ledger: Ledger, child_rewards: NDArray[np.float64]) -> float:
        """EUR of the step: what the transformer costs, and what its batteries earn."""
        return ledger.amount + float(child_rewards.sum())

    @staticmethod
    @rule
    def is_terminated(time: float) -> bool:
        """Has the day ended?"""
        return time > LAST_MOMENT


class GridOperator(SystemAgent):
    """Watches all zones. Its reward is the sum of theirs: the team's return, with every amount in it once."""

    @staticmethod
    @rule
    def is_terminated(time: float) -> bool:
        """Has the day ended?"""
        return time > LAST_MOMENT
