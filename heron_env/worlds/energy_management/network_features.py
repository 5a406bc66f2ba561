"""What a network adds to batteries and zones: voltages, loading, losses, and the day's account of them."""

from heron_env.core.feature import FeatureProvider, quantity
from heron_env.worlds.energy_management.agents import Battery, TransformerZone


class Terminal(FeatureProvider):
    """Voltage where the home is connected; 0 where the grid has collapsed."""

    visibility = ("owner", "upper_level")
    voltage: float = quantity(default=1.0, low=0.0, high=2.0, unit="pu")


class Grid(FeatureProvider):
    """The state of the zone's network in the last substep; loadings are shares of ratings."""

    visibility = ("owner", "subordinates", "system")
    transformer_loading: float = quantity(default=0.0, low=0.0, high=100.0, unit="1")
    line_loading: float = quantity(default=0.0, low=0.0, high=100.0, unit="1")
    losses: float = quantity(default=0.0, low=0.0, high=1e4, unit="kW")
    lowest_voltage: float = quantity(default=1.0, low=0.0, high=2.0, unit="pu")
    highest_voltage: float = quantity(default=1.0, low=0.0, high=2.0, unit="pu")


class GridTally(FeatureProvider):
    """The day so far in the zone's network."""

    outside_minutes: float = quantity(default=0.0, low=0.0, high=1440.0, unit="min", observed=False)
    collapsed_minutes: float = quantity(default=0.0, low=0.0, high=1440.0, unit="min", observed=False)
    max_loading: float = quantity(default=0.0, low=0.0, high=100.0, unit="1", observed=False)
    lost: float = quantity(default=0.0, low=0.0, high=1e6, unit="kWh", observed=False)


class ConnectedBattery(Battery):
    """A battery that sees the voltage at its home."""

    features = (*Battery.features, Terminal)


class NetworkZone(TransformerZone):
    """A zone that sees what its transformer and cables carry."""

    features = (*TransformerZone.features, Grid, GridTally)
