"""Building the environment: its arguments, its hierarchy, and what is refused."""

import hashlib
import inspect
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from heron_env.agents.vertical import SetpointSplit
from heron_env.envs.base import HeronEnv
from heron_env.envs.settings import divided_step
from heron_env.errors import ConfigError, did_you_mean
from heron_env.files.reading import read
from heron_env.given import is_number, require_one_of
from heron_env.worlds.energy_management.agents import (
    Battery,
    Charge,
    Constants,
    GridOperator,
    TransformerZone,
    Zone,
    bins_of,
    home_series,
    zone_series,
)
from heron_env.worlds.energy_management.calendar import TimeOfUse
from heron_env.worlds.energy_management.env import EnergyManagementEnv
from heron_env.worlds.energy_management.network import (
    ConnectedBattery,
    Network,
    NetworkedEnergyManagementEnv,
    NetworkZone,
)
from heron_env.worlds.energy_management.optimum import DayOptimum
from heron_env.worlds.energy_management.own_site import read_site
from heron_env.worlds.energy_management.site import DAY, FORECAST_ERROR, Site, draw_neighbourhood, load_profiles

LIMIT_PER_HOME = 1.8  # kW of the transformer for each home behind it
CONTROLS = ("field", "zone")
METERING = ("past", "coming")


def energy_management(
    *,
    num_batteries: int = 6,
    zone_size: int = 3,
    passive_per_zone: int = 3,
    control: str = "field",
    dt: float = 60.0,
    physics_substeps: int = 30,
    metering: str = "past",
    split: str = "train",
    day: int | None = None,
    neighbourhood: int = 0,
    profiles: str | Path | None = None,
    tariff: TimeOfUse | None = None,
    limit_per_home: float = LIMIT_PER_HOME,
    forecast_error: float = FORECAST_ERROR,
    network: Network | str | Path | None = None,
    homes: str | Path | None = None,
    **options: Any,
) -> EnergyManagementEnv:
    """Batteries of prosumers behind tight transformers, one day an episode, on real load and weather data.

    Args:
        num_batteries: homes with a battery; the last zone has fewer where `zone_size` does not divide it.
        zone_size: batteries behind one transformer.
        passive_per_zone: homes without a battery there, half of all with a roof; with them comes one business a zone.
        control: "field": batteries decide; "zone": zones decide their batteries' common power.
        dt: control step, s, a divisor of 86,400; 900 is the coarse mode for fast training.
        physics_substeps: substeps of physics in a step. Load and generation are held, metered and reported in bins: the
            shortest whole number of substeps that divides the step and lasts 10 s; `report_interval` says otherwise.
        metering: what a meter shows. "past": the mean of the last bin that has ended. "coming", for coarse training
            alone, where a step is one bin: at each boundary the mean of the step that begins.
        split: "train", "validation" or "test": the days that episodes are drawn from. What is held out is weather and
            seeds; the loads' shapes nearly repeat from week to week.
        day: one fixed day instead, 0 to 364; `reset(options={"day": d})` chooses it for one episode.
        neighbourhood: seed of sizes, roofs, wallboxes and capacities, independent of the episode's.
        profiles: path of a CSV file instead of the shipped series; its columns: data/SOURCES.md.
        tariff: other prices or windows.
        limit_per_home: transformer limit for each home behind it, kW.
        forecast_error: standard deviation of the generation forecast's factor.
        network: "radial": a low-voltage network behind each transformer, with voltages, loading and losses; a Network
            has its numbers, and the path of a pandapower JSON brings a grid of your own. None: none.
        homes: path of a YAML file that names an own site's homes, batteries, roofs, tariff and measured series: they
            are instead of what is drawn, and their days are the episodes' (docs/how_to/own_site.md).
        options: constants by name (efficiency, feed_in_price, wear_price, stored_value, overload_price,
            fluctuation_price, mean_time), and what HeronEnv takes (max_steps, report_interval, schedule, ...).

    Raises:
        ConfigError: an argument is wrong.
        DataError: the profiles are.
    """
    constants = Constants(**{name: options.pop(name) for name in list(options) if name in Constants.quantities})
    require_one_of(f"control={control!r:.60}", control, CONTROLS)
    _check(dt=dt, limit_per_home=limit_per_home, forecast_error=forecast_error, options=options)
    if not isinstance(tariff, TimeOfUse | None):
        raise ConfigError(f"tariff={tariff!r}: must be a TimeOfUse; write TimeOfUse(low=0.2)")
    of_all: dict[str, Any] = {
        "limit_per_home": limit_per_home,
        "forecast_error": float(forecast_error),
        "tariff": tariff,
    }
    drawn: dict[str, Any] = {
        "num_batteries": num_batteries, "zone_size": zone_size, "passive_per_zone": passive_per_zone,
        "neighbourhood": neighbourhood, "profiles": profiles,
    }  # fmt: skip
    if homes is None:
        site = _drawn_site(**drawn, **of_all)
    else:
        _require_defaults(homes, drawn)
        site = read_site(Path(homes), **of_all)
    if site.tariff.lowest < constants.feed_in_price:
        raise ConfigError(
            f"feed_in_price={constants.feed_in_price} EUR/kWh exceeds the lowest price {site.tariff.lowest}: "
            "buying to sell back at once would pay; choose a lower feed_in_price"
        )
    days = site.calendar.split(split) if day is None else (site.calendar.checked(day),)
    bins = _checked_bins(float(dt), physics_substeps, metering)
    divided = {"dt": float(dt), "physics_substeps": int(physics_substeps)}
    options = {**options, **divided, "days": days, "metering": metering}
    wires = Network.of(network)
    if isinstance(network, str | Path) and network != "radial":
        site = replace(site, files={**site.files, **_digests(network)})
    if wires is None:
        return EnergyManagementEnv(hierarchy(site, control, bins), site, constants, **options)
    system = hierarchy(site, control, bins, battery=ConnectedBattery, transformer_zone=NetworkZone)
    return NetworkedEnergyManagementEnv(system, site, constants, network=wires, **options)


def optimum(day: int, seed: int, dt: float = 60.0, **options: Any) -> DayOptimum:
    """The best possible return of a day, with perfect foresight; `options` as for `energy_management`."""
    return energy_management(dt=dt, **options).optimum(day, seed)


def _drawn_site(
    *, num_batteries: int, zone_size: int, passive_per_zone: int, neighbourhood: int, profiles: str | Path | None,
    limit_per_home: float, forecast_error: float, tariff: TimeOfUse | None,
) -> Site:  # fmt: skip
    """A neighbourhood that is drawn, on the shipped series or a user's. Raises ConfigError, DataError."""
    homes = draw_neighbourhood(neighbourhood, num_batteries, zone_size, passive_per_zone)
    if not isinstance(profiles, str | Path | None):
        raise ConfigError(f"profiles={profiles!r}: must be the path of a CSV file, or None for the shipped series")
    limits = tuple(limit_per_home * homes.connected(zone) for zone in range(homes.zones))
    series = load_profiles(profiles)
    return Site(homes, series, tariff or TimeOfUse(), limits, forecast_error, _digests(profiles))


def _digests(path: str | Path | None) -> dict[str, str]:
    """SHA-256 of a file by its name."""
    return {} if path is None else {Path(path).name: hashlib.sha256(read(path)).hexdigest()}


def _require_defaults(homes: object, drawn: Mapping[str, Any]) -> None:
    """Raise ConfigError for an argument about what is drawn, where a file says who lives there."""
    if not isinstance(homes, str | Path):
        raise ConfigError(f"homes={homes!r:.60}: must be the path of a YAML file, say 'homes.yaml'")
    defaults = inspect.signature(energy_management).parameters
    for name, value in drawn.items():
        if value != defaults[name].default:
            raise ConfigError(
                f"{name}={value!r:.60}: homes={str(homes)!r:.200} says who lives there; leave out {name}, or homes"
            )


def _check(*, dt: float, limit_per_home: float, forecast_error: float, options: Mapping[str, Any]) -> None:
    """Raise ConfigError for the first argument that makes no sense."""
    numbers = {"dt": (dt, DAY), "limit_per_home": (limit_per_home, 100.0), "forecast_error": (forecast_error, 1.0)}
    for name, (value, most) in numbers.items():
        if not is_number(value) or not 0.0 <= value <= most or (value == 0.0 and name != "forecast_error"):
            above = ">=" if name == "forecast_error" else ">"
            raise ConfigError(f"{name}={value!r:.200} must be a number {above} 0 and <= {most:g}")
    steps = DAY / float(dt)
    if not math.isfinite(steps) or abs(steps - round(steps)) > 1e-9 * steps:
        raise ConfigError(f"dt={dt!r} s must divide the day's 86,400 s, as 60, 300 and 900 do")
    known = [*inspect.signature(energy_management).parameters, *Constants.quantities]
    known += [name for name in inspect.signature(HeronEnv.__init__).parameters if name not in ("self", "system")]
    for name in options:
        if name not in known:
            raise ConfigError(f"energy_management({name}=...): no such option.{did_you_mean(name, known)}")


def _checked_bins(dt: float, physics_substeps: int, metering: str) -> int:
    """Bins in a step. Raises ConfigError for a number of substeps that is none, or metering that is not known here."""
    require_one_of(f"metering={metering!r:.60}", metering, METERING)
    divided_step(dt, physics_substeps, None)
    bins = bins_of(dt, int(physics_substeps))
    if metering == "coming" and bins > 1:
        raise ConfigError(
            f"metering='coming': a step of {dt:g} s and {physics_substeps} substeps has {bins} bins; "
            "it is for coarse training, dt=900 with physics_substeps=1; write metering='past'"
        )
    return bins


def hierarchy(
    site: Site,
    control: str,
    bins: int,
    battery: type[Battery] = Battery,
    transformer_zone: type[TransformerZone] = TransformerZone,
) -> GridOperator:
    """Grid operator, zones, batteries; with `control="zone"` a zone's set-point is split by capacity."""
    homes = site.neighbourhood.homes[: site.neighbourhood.batteries]
    zones, of_home, of_zone = [], home_series(bins), zone_series(bins)
    for number, limit in enumerate(site.limits):
        members = [(index, home) for index, home in enumerate(homes) if home.zone == number]
        batteries = [
            battery(f"battery_{index + 1}", Charge(capacity=home.capacity), of_home()) for index, home in members
        ]
        protocol = SetpointSplit([home.capacity for _, home in members]) if control == "zone" else None
        zones.append(
            transformer_zone(f"zone_{number + 1}", Zone(limit=limit), of_zone(), *batteries, protocol=protocol)
        )
    return GridOperator("system_agent", *zones)
