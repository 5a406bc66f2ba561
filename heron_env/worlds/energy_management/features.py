"""The quantities of the neighbourhood, their bounds and units, and who sees them."""

from heron_env.core.feature import FeatureProvider, quantity

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
