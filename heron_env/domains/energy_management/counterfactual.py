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


def paid_without(
    series: DaySeries, membership: Array, limits: Array, start: Array, constants: Constants, dt: float
) -> tuple[Array, Array]:
    """EUR of each step without any battery: homes `[steps, batteries]`, zones `[steps, zones]` (<= 0).

    Summed over the bins of a step, as physics sums it over substeps.

    Args:
        series: the day's.
        membership: `[zones, batteries]`.
        limits: `[zones]` kW.
        start: `[zones]` kW, where the slow mean of each zone starts.
        constants: prices.
        dt: control step, s.
    """
    length, net = dt / series.bins, series.load - series.pv
    hours, power = length / 3600.0, net @ membership.T + series.background
    price = np.repeat(series.tariff[:, :1], series.bins, axis=0)
    homes = -(price * np.maximum(net, 0.0) - constants.feed_in_price * np.maximum(-net, 0.0)) * hours
    overload = np.maximum(np.abs(power) - limits, 0.0) * hours
    approach = 1.0 - math.exp(-length / constants.mean_time)
    distance = _distance(power, start, approach) * (approach * constants.mean_time / 3600.0)
    zones = -constants.overload_price * overload - constants.fluctuation_price * distance
    return _steps(homes, series.bins), _steps(zones, series.bins)


def _steps(amounts: Array, bins: int) -> Array:
    """Sums `[steps, n]` of amounts `[bins of the day, n]`."""
    return np.asarray(amounts.reshape(-1, bins, amounts.shape[1]).sum(axis=1))


def _distance(power: Array, start: Array, approach: float) -> Array:
    """|power - slow mean| at the start of each bin, `[bins of the day, zones]`."""
    columns = []
    for column, mean in zip(power.T.tolist(), start.tolist(), strict=True):
        distances = []
        for value in column:
            distances.append(abs(value - mean))
            mean += approach * (value - mean)
        columns.append(distances)
    return np.array(columns).T
