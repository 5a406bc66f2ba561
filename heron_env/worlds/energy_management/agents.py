"""Battery, zone and grid operator as rules: one substep of physics, the money it costs, the end of the day.

Energies are in kWh, powers in kW, positive from the grid; `dt` is the substep in seconds. The exogenous values are held
over a bin, so every formula is exact however finely the bin is split, as long as no battery runs full or empty.
"""

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import CoordinatorAgent, FieldAgent, SystemAgent
from heron_env.core.action import Continuous, Vector
from heron_env.core.feature import FeatureProvider
from heron_env.core.rule import Children, rule
from heron_env.worlds.energy_management.bins import Bins, HomeSeries, ZoneSeries, bin_at
from heron_env.worlds.energy_management.features import (
    MAX_POWER,
    Background,
    Charge,
    Constants,
    Disturbed,
    Flow,
    Forecast,
    HomeTally,
    Ledger,
    Meter,
    Metering,
    Setpoint,
    Tariff,
    Zone,
    ZoneTally,
)

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
        """The action is a set-point; only physics moves energy."""
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
        """The day is over: a true end, nothing to bootstrap from."""
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
        """The day is over."""
        return time > LAST_MOMENT


class GridOperator(SystemAgent):
    """Watches all zones. Its reward is the sum of theirs: the team's return, with every amount in it once."""

    @staticmethod
    @rule
    def is_terminated(time: float) -> bool:
        """The day is over."""
        return time > LAST_MOMENT
