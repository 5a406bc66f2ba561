"""What the same day would have cost without any battery: the baseline of the training signal.

It depends on the day alone, never on an action, so subtracting it leaves the policy gradient unbiased and far less
noisy.
"""

import math

import numpy as np
from numpy.typing import NDArray

from heron_env.domains.energy_management.day import DaySeries
from heron_env.domains.energy_management.features import Constants

Array = NDArray[np.float64]


def power_without(series: DaySeries, membership: Array) -> Array:
    """Power of each zone without any battery, `[steps, zones]` kW; `membership` is `[zones, batteries]`."""
    return (series.load - series.pv) @ membership.T + series.background


def paid_without(
    series: DaySeries, power: Array, limits: Array, constants: Constants, dt: float
) -> tuple[Array, Array]:
    """EUR of each step without any battery: homes `[steps, batteries]`, zones `[steps, zones]` (<= 0).

    `power` is `power_without` of the series.
    """
    hours = dt / 3600.0
    net = series.load - series.pv
    price = series.tariff[:, :1]
    homes = -(price * np.maximum(net, 0.0) - constants.feed_in_price * np.maximum(-net, 0.0)) * hours
    overload = np.maximum(np.abs(power) - limits, 0.0) * hours
    approach = 1.0 - math.exp(-dt / constants.mean_time)
    distance = _distance(power, approach) * (approach * constants.mean_time / 3600.0)
    return homes, -constants.overload_price * overload - constants.fluctuation_price * distance


def _distance(power: Array, approach: float) -> Array:
    """|power - slow mean| at the start of each step, `[steps, zones]`; the mean starts at the first power."""
    columns = []
    for column in power.T.tolist():
        mean, distances = column[0], []
        for value in column:
            distances.append(abs(value - mean))
            mean += approach * (value - mean)
        columns.append(distances)
    return np.array(columns).T
