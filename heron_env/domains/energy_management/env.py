"""The environment: one day in the neighbourhood, step by step."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.world import World
from heron_env.domains.energy_management.agents import Battery, GridOperator, TransformerZone
from heron_env.domains.energy_management.counterfactual import paid_without, power_without
from heron_env.domains.energy_management.day import DaySeries, Site, build_day
from heron_env.domains.energy_management.evaluation import RETURN_UNIT, checked_day, evaluation_cases, shipped_optima
from heron_env.domains.energy_management.features import Clock, Constants, Tariff
from heron_env.domains.energy_management.optimum import Optimum, Problem, solve
from heron_env.envs.base import HeronEnv
from heron_env.envs.hooks import Benchmark, TrainingDefaults
from heron_env.errors import ConfigError, ResetNeeded

SOC_START = (0.1, 0.9)

Array = NDArray[np.float64]


class EnergyManagementEnv(HeronEnv):
    """One day: `begin` picks it and draws its series, `finish` puts the next step's values in force.

    Args:
        system: the hierarchy, its zones and batteries in the order of the site.
        site: neighbourhood, base series, tariff and limits.
        constants: prices and efficiency.
        days: the days an episode is drawn from; assign `env.days = (172,)` to choose among others later.
        dt: control step, s; divides 86,400.
        physics_substeps: substeps of physics in a step.
        options: as for HeronEnv.
    """

    metadata = {**HeronEnv.metadata, "name": "heron_energy_management_v0"}
    global_features = (Tariff, Clock, Constants)

    def __init__(
        self,
        system: GridOperator,
        site: Site,
        constants: Constants,
        *,
        days: tuple[int, ...],
        dt: float,
        physics_substeps: int,
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
        super().__init__(system, **options)
        first = self.hierarchy.index[self.possible_agents[0]]
        self._batteries_decide = isinstance(self.hierarchy.agents[first], Battery)

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
        if not isinstance(options, Mapping | None):
            raise ConfigError(f"reset(options={options!r}): must be a mapping; write {{'day': 172}}")
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

        A battery gets its own amount and its zone's; a deciding zone its own and its batteries'. What is subtracted
        does not depend on any action: the gradient stays unbiased and becomes far less noisy.
        """
        batteries, zones = self.world[Battery].Ledger, self.world[TransformerZone].Ledger
        home_gain, zone_gain = batteries.amount - batteries.without, zones.amount - zones.without
        of_home = home_gain + self.membership.T @ zone_gain
        of_zone = zone_gain + self.membership @ home_gain
        deciding = of_home if self._batteries_decide else of_zone
        return dict(zip(self.possible_agents, deciding.tolist(), strict=True))

    def training_defaults(self) -> TrainingDefaults:
        """Quarter hours without substeps on the training days (96 steps a day), correcting self-consumption."""
        return TrainingDefaults({"dt": 900.0, "physics_substeps": 1, "split": "train"}, base="self-consumption")

    def benchmark(self) -> Benchmark:
        """Rules, held-out days, and their optima at the default constants."""
        from heron_env.domains.energy_management import baselines

        return Benchmark(
            baselines=lambda seed: baselines.baselines(self, seed=seed),
            strongest=baselines.STRONGEST,
            cases=evaluation_cases,
            optima=shipped_optima,
            neutral=frozenset({"control", "split", "day", "schedule", "render_mode"}),
            unit=RETURN_UNIT,
        )

    def kpis(self) -> dict[str, float]:
        """The day so far, from accumulators that no agent sees.

        cost (EUR, energy bill of the homes with batteries), self_consumption (share of their generation used or
        stored), peak (kW, the higher zone's), overload_minutes (of all zones), full_cycles (mean of the batteries).
        """
        homes, zones = self.world[Battery], self.world[TransformerZone]
        generated = float(homes.HomeTally.generated.sum())
        return {
            "cost": float(homes.HomeTally.bill.sum()),
            "self_consumption": float(homes.HomeTally.self_used.sum()) / generated if generated > 0.0 else 0.0,
            "peak": float(zones.ZoneTally.peak.max()),
            "overload_minutes": float(zones.ZoneTally.overload_minutes.sum()),
            "full_cycles": float((homes.HomeTally.throughput / (2.0 * homes.Charge.capacity)).mean()),
        }

    def problem(self, day: int, seed: int) -> Problem:
        """Everything about one day, as the perfect-foresight optimum needs it; starts an episode."""
        self.reset(seed=seed, options={"day": day})
        charge = self.world[Battery].Charge
        capacity = charge.capacity.copy()
        energy = charge.soc * capacity
        return Problem(self.series, self.membership, self.limits, capacity, energy, self.constants, self.dt)

    def optimum(self, day: int, seed: int) -> Optimum:
        """The best possible return of `day` with `seed` in this environment; starts an episode."""
        return solve(self.problem(day, seed))

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
