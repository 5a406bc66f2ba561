"""The environment: one day in the neighbourhood, step by step, and the factory that builds it."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.protocols.vertical import SetpointSplit
from heron_env.core.world import World
from heron_env.domains.energy_management.agents import Battery, GridOperator, TransformerZone
from heron_env.domains.energy_management.counterfactual import paid_without, power_without
from heron_env.domains.energy_management.day import DAY, FORECAST_ERROR, DaySeries, Site, build_day
from heron_env.domains.energy_management.evaluation import split_days
from heron_env.domains.energy_management.features import Charge, Clock, Constants, Tariff, Zone
from heron_env.domains.energy_management.neighbourhood import Neighbourhood, draw_neighbourhood
from heron_env.domains.energy_management.optimum import Optimum, Problem, solve
from heron_env.domains.energy_management.profiles import DAYS, load_profiles
from heron_env.domains.energy_management.tariff import TimeOfUse
from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError, ResetNeeded, did_you_mean

LIMIT_PER_HOME = 1.8  # kW of the transformer for each home behind it
SOC_START = (0.1, 0.9)
CONTROLS = ("field", "zone")

Array = NDArray[np.float64]


class EnergyManagementEnv(HeronEnv):
    """One day: `begin` picks it and draws its series, `finish` puts the next step's values in force.

    Args:
        site: neighbourhood, base series, tariff and limits.
        constants: prices and efficiency.
        days: the days an episode is drawn from; assign `env.days = (172,)` to choose among others later.
        dt: control step, s; divides 86,400.
        physics_substeps: substeps of physics in a step.
        control: who decides, "field" or "zone".
        options: as for HeronEnv.
    """

    metadata: ClassVar[dict[str, Any]] = {**HeronEnv.metadata, "name": "heron_energy_management_v0"}
    global_features = (Tariff, Clock, Constants)

    def __init__(
        self,
        site: Site,
        constants: Constants,
        *,
        days: tuple[int, ...],
        dt: float,
        physics_substeps: int,
        control: str,
        **options: Any,
    ) -> None:
        self.dt, self.physics_substeps = dt, physics_substeps
        self.site, self.constants, self.days = site, constants, days
        self.day = -1
        self._asked: int | None = None
        self._series: DaySeries | None = None
        self._without: tuple[Array, Array] | None = None
        homes = site.neighbourhood.batteries
        self.membership = site.neighbourhood.membership[:, :homes]
        self.limits = np.array(site.limits)
        super().__init__(hierarchy(site, control), **options)

    @property
    def series(self) -> DaySeries:
        """The exogenous series of the running day. Raises ResetNeeded before the first reset."""
        if self._series is None:
            raise ResetNeeded("series: no day is running; call reset() first")
        return self._series

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
        """As in HeronEnv; `options={"day": d}` chooses the day of this one episode. Raises ConfigError."""
        asked = (options or {}).get("day")
        self._asked = None if asked is None else checked_day(asked)
        try:
            return super().reset(seed=seed, options=options)
        finally:
            self._asked = None

    def begin(self, world: World) -> None:
        """Pick the day, draw its series and the batteries' content, and put the first values in force."""
        drawn = self.days[int(world.draw("day")[0] * len(self.days))]
        self.day = drawn if self._asked is None else self._asked
        self._series = series = build_day(self.site, self.day, self.dt, world.draw)
        self._without = paid_without(series, self.membership, self.limits, self.constants, self.dt)
        low, high = SOC_START
        world[Battery].Charge.soc[...] = low + (high - low) * world.draw("soc0", len(series.load[0]))
        zone = world[TransformerZone].Zone
        zone.power[...] = zone.mean_power[...] = power_without(series, self.membership)[0]
        for name in Constants.quantities:
            getattr(world.Constants, name)[...] = getattr(self.constants, name)
        self._put(world, 0)

    def finish(self, world: World) -> None:
        """The next step's values; after the last step of the day its own stay in force."""
        assert self._without is not None
        homes, zones = self._without
        last = min(world.step, self.series.steps) - 1
        world[Battery].Ledger.without[...] = homes[last]
        world[TransformerZone].Ledger.without[...] = zones[last]
        self._put(world, min(world.step, self.series.steps - 1))

    def _put(self, world: World, step: int) -> None:
        series, batteries, zones = self.series, world[Battery], world[TransformerZone]
        batteries.Meter.load[...] = series.load[step]
        batteries.Meter.pv[...] = series.pv[step]
        batteries.Forecast.surplus_rest[...] = series.surplus_rest[step]
        batteries.Forecast.deficit_12h[...] = series.deficit_12h[step]
        zones.Background.power[...] = series.background[step]
        zones.Zone.excess_rest[...] = series.excess_rest[step]
        tariff, clock = world.Tariff, world.Clock
        tariff.price[0], tariff.next_price[0], tariff.hours_to_change[0] = series.tariff[step]
        clock.hour_sin[0], clock.hour_cos[0], clock.season_sin[0], clock.season_cos[0] = series.clock[step]

    def training_signal(self) -> dict[str, float]:
        """EUR of the last step minus the same without any battery, for the trainer alone.

        A battery gets its own amount and its zone's; a deciding zone its own and its batteries'. What is subtracted does
        not depend on any action: the gradient stays unbiased and becomes far less noisy.
        """
        batteries, zones = self.world[Battery].Ledger, self.world[TransformerZone].Ledger
        home_gain, zone_gain = batteries.amount - batteries.without, zones.amount - zones.without
        of_home = home_gain + self.membership.T @ zone_gain
        of_zone = zone_gain + self.membership @ home_gain
        ids = self.hierarchy.ids
        signal: dict[str, float] = {}
        home = zone = 0
        for rank, agent in enumerate(self.hierarchy.agents):
            if isinstance(agent, Battery):
                signal[ids[rank]], home = float(of_home[home]), home + 1
            elif isinstance(agent, TransformerZone):
                signal[ids[rank]], zone = float(of_zone[zone]), zone + 1
        return {agent: signal[agent] for agent in self.possible_agents}

    def kpis(self) -> dict[str, float]:
        """The day so far: cost (EUR, energy bill of the homes with batteries), self_consumption (share of their
        generation used or stored), peak (kW, the higher zone's), overload_minutes (of all zones), full_cycles (mean)."""
        homes, zones = self.world[Battery], self.world[TransformerZone]
        generated = float(homes.HomeTally.generated.sum())
        return {
            "cost": float(homes.HomeTally.bill.sum()),
            "self_consumption": float(homes.HomeTally.self_used.sum()) / generated if generated > 0.0 else 0.0,
            "peak": float(zones.ZoneTally.peak.max()),
            "overload_minutes": float(zones.ZoneTally.overload_minutes.sum()),
            "full_cycles": float((homes.HomeTally.throughput / (2.0 * homes.Charge.capacity)).mean()),
        }

    def problem(self, seed: int, day: int) -> Problem:
        """Everything about one day, as the perfect-foresight optimum needs it; starts an episode of this environment."""
        self.reset(seed=seed, options={"day": day})
        charge = self.world[Battery].Charge
        capacity = charge.capacity.copy()
        energy = charge.soc * capacity
        return Problem(self.series, self.membership, self.limits, capacity, energy, self.constants, self.dt)

    def optimum(self, seed: int, day: int) -> Optimum:
        """The best possible return of `day` with `seed` in this environment; starts an episode."""
        return solve(self.problem(seed, day))

    def get_state(self) -> dict[str, Any]:
        """As in HeronEnv, with the day."""
        return {**super().get_state(), "day": self.day}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """As in HeronEnv; the day's series are built again."""
        self._asked = state["day"] if state["day"] >= 0 else None
        try:
            super().set_state(state)
        finally:
            self._asked = None


def hierarchy(site: Site, control: str) -> GridOperator:
    """Grid operator, zones, batteries; with `control="zone"` a zone's set-point is split by the batteries' capacities."""
    homes = site.neighbourhood.homes[: site.neighbourhood.batteries]
    zones = []
    for number, limit in enumerate(site.limits):
        members = [(index, home) for index, home in enumerate(homes) if home.zone == number]
        batteries = [Battery(f"battery_{index + 1}", Charge(capacity=home.capacity)) for index, home in members]
        protocol = SetpointSplit([home.capacity for _, home in members]) if control == "zone" else None
        zones.append(TransformerZone(f"zone_{number + 1}", Zone(limit=limit), *batteries, protocol=protocol))
    return GridOperator("system_agent", *zones)


def checked_day(day: Any) -> int:
    """A day of the year, 0 to 364. Raises ConfigError."""
    if isinstance(day, bool) or not isinstance(day, (int, np.integer)) or not 0 <= day < DAYS:
        raise ConfigError(f"day={day!r} must be a whole number from 0 (January 1) to {DAYS - 1}")
    return int(day)


def energy_management(
    *,
    num_batteries: int = 6,
    zone_size: int = 3,
    passive_per_zone: int = 3,
    control: str = "field",
    dt: float = 60.0,
    physics_substeps: int = 6,
    split: str = "train",
    day: int | None = None,
    neighbourhood: int = 0,
    profiles: str | Path | None = None,
    tariff: TimeOfUse | None = None,
    limit_per_home: float = LIMIT_PER_HOME,
    forecast_error: float = FORECAST_ERROR,
    **options: Any,
) -> EnergyManagementEnv:
    """`make("heron/EnergyManagement-v0", ...)`: batteries of prosumers behind tight transformers, one day an episode.

    Args:
        num_batteries: homes with a battery; the last zone has fewer where `zone_size` does not divide it.
        zone_size: batteries behind one transformer.
        passive_per_zone: homes without a battery there, half of all with a roof; with them comes one business a zone.
        control: "field": batteries decide; "zone": zones decide their batteries' common power.
        dt: control step, s, a divisor of 86,400; 900 is the coarse mode for fast training.
        physics_substeps: substeps of physics in a step.
        split: "train", "validation" or "test": the days that episodes are drawn from. What is held out is weather and
            seeds; the loads' shapes nearly repeat from week to week.
        day: one fixed day instead, 0 to 364; `reset(options={"day": d})` chooses it for one episode.
        neighbourhood: seed of sizes, roofs, wallboxes and capacities, independent of the episode's.
        profiles: path of a CSV file instead of the shipped series; its columns: data/SOURCES.md.
        tariff: other prices or windows.
        limit_per_home: transformer limit for each home behind it, kW.
        forecast_error: standard deviation of the generation forecast's factor.
        options: constants by name (efficiency, feed_in_price, wear_price, stored_value, overload_price,
            fluctuation_price, mean_time), and what HeronEnv takes (max_steps, schedule, observe_age, ...).

    Raises:
        ConfigError: an argument is wrong.
        DataError: the profiles are.
    """
    constants = Constants(**{name: options.pop(name) for name in list(options) if name in Constants.quantities})
    _check(control=control, dt=dt, limit_per_home=limit_per_home, forecast_error=forecast_error, options=options)
    tariff = tariff or TimeOfUse()
    if tariff.lowest < constants.feed_in_price:
        raise ConfigError(
            f"feed_in_price={constants.feed_in_price} EUR/kWh exceeds the lowest price {tariff.lowest}: "
            "buying to sell back at once would pay; choose a lower feed_in_price"
        )
    days = split_days(split) if day is None else (checked_day(day),)
    homes = draw_neighbourhood(neighbourhood, num_batteries, zone_size, passive_per_zone)
    limits = tuple(limit_per_home * homes.connected(zone) for zone in range(homes.zones))
    site = Site(homes, load_profiles(profiles), tariff, limits, float(forecast_error))
    return EnergyManagementEnv(
        site, constants, days=days, dt=float(dt), physics_substeps=physics_substeps, control=control, **options
    )


def _check(*, control: str, dt: float, limit_per_home: float, forecast_error: float, options: Mapping[str, Any]) -> None:
    """Raise ConfigError for the first argument that makes no sense."""
    if control not in CONTROLS:
        raise ConfigError(f"control={control!r} must be one of {list(CONTROLS)}.{did_you_mean(control, CONTROLS)}")
    numbers = {"dt": (dt, 0.0, DAY), "limit_per_home": (limit_per_home, 0.0, 100.0), "forecast_error": (forecast_error, -1e-12, 1.0)}
    for name, (value, above, most) in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not above < value <= most:
            raise ConfigError(f"{name}={value!r} must be a number > {max(above, 0.0):g} and <= {most:g}")
    if abs(DAY / dt - round(DAY / dt)) > 1e-9 * DAY / dt:
        raise ConfigError(f"dt={dt!r} s must divide the day's 86,400 s, as 60, 300 and 900 do")
    known = [*inspect.signature(energy_management).parameters, *Constants.quantities]
    known += [name for name in inspect.signature(HeronEnv.__init__).parameters if name not in ("self", "system")]
    for name in options:
        if name not in known:
            raise ConfigError(f"energy_management({name}=...): no such option.{did_you_mean(name, known)}")


__all__ = ["EnergyManagementEnv", "Neighbourhood", "energy_management"]
