"""The environment: one day in the neighbourhood, step by step."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.world import World
from heron_env.envs.base import HeronEnv
from heron_env.envs.description import Benchmark, TrainingDefaults
from heron_env.envs.hooks import natively
from heron_env.envs.snapshot import KEPT, require_state
from heron_env.errors import ConfigError, ResetNeeded
from heron_env.pictures.course import PictureSeries
from heron_env.scheduling.disturbances import Disturbance
from heron_env.worlds.energy_management import disturbances as disturbing
from heron_env.worlds.energy_management.agents import (
    LEAST,
    Battery,
    Bins,
    Clock,
    Constants,
    GridOperator,
    Tariff,
    TransformerZone,
    bins_of,
)
from heron_env.worlds.energy_management.calendar import (
    OPTIMA_DT,
    RETURN_UNIT,
    SHIPPED,
    evaluation_cases,
    shipped_optima,
)
from heron_env.worlds.energy_management.days import Days
from heron_env.worlds.energy_management.days_tables import SOC_START
from heron_env.worlds.energy_management.optimum import DayOptimum, DayProblem, solve
from heron_env.worlds.energy_management.site import DAY, DaySeries, Site

NEUTRAL = frozenset(
    {
        "control", "split", "day", "dt", "physics_substeps", "report_interval", "metering", "schedule",
        "observability", "observe_age", "pad", "render_mode", "compile",
    }
)  # fmt: skip
"""Options that leave the best possible return as it is: how a day is seen and run; dt and bins are asked for beside."""

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
        metering: "past": meters show the last bin; "coming": at each boundary the step that begins.
        options: as for HeronEnv; `report_interval` None: a bin.

    Attributes:
        bins: of a step.
        bin_length: s.
        tables: the days of all lanes; a single environment is lane 0.
    """

    batched = True
    reset_options = ("day",)
    metadata = {**HeronEnv.metadata, "name": "heron_energy_management_v1"}
    global_features = (Tariff, Clock, Constants, Bins)
    disturbance_types = disturbing.TYPES

    def __init__(
        self,
        system: GridOperator,
        site: Site,
        constants: Constants,
        *,
        days: tuple[int, ...],
        dt: float,
        physics_substeps: int,
        metering: str = "past",
        report_interval: float | None = None,
        **options: Any,
    ) -> None:
        self.dt, self.physics_substeps, self.metering = dt, physics_substeps, metering
        self.bins = bins_of(dt, physics_substeps)
        self.bin_length = dt / self.bins
        self.site, self.constants, self.days = site, constants, days
        self.membership = site.neighbourhood.membership[:, : site.neighbourhood.batteries]
        self.limits = np.array(site.limits)
        self._zone_of = self.membership.argmax(axis=0)
        super().__init__(
            system, report_interval=self.bin_length if report_interval is None else report_interval, **options
        )
        first = self.hierarchy.index[self.possible_agents[0]]
        self._batteries_decide = isinstance(self.hierarchy.agents[first], Battery)

    def _build(self) -> None:
        super()._build()
        self.tables = Days(self.site, self.constants, dt=self.dt, bins=self.bins, coming=self.metering == "coming")
        self.tables.settle(self.hierarchy, self.simulation.model.layout, self.simulation.model.possible)
        self.tables.choose(self.days)
        place = {name: column for column, name in enumerate(self.simulation.model.layout.full_names)}
        batteries = [agent.agent_id for agent in self.hierarchy.agents if isinstance(agent, Battery)]

        def columns(*fields: str) -> NDArray[np.int64]:
            return np.array([place[f"{battery}.{field}"] for field in fields for battery in batteries])

        self._meters = columns("Meter.load", "Meter.pv")
        self._foreseen = columns("HomeSeries.load[0]", "Disturbed.load", "HomeSeries.pv[0]", "Disturbed.pv_factor")

    @property
    def days(self) -> Sequence[int]:
        """The days an episode is drawn from; assign others to choose among them from the next episode on."""
        return self._days

    @days.setter
    def days(self, days: Sequence[int]) -> None:
        self._days = days
        if hasattr(self, "tables"):
            self.tables.choose(days)

    @contextmanager
    def _choosing(self, day: int | None) -> Iterator[None]:
        """Episodes that begin in this block are of this day; None: one of `days`."""
        self.tables.choose(self.days if day is None else (day,))
        try:
            yield
        finally:
            self.tables.choose(self.days)

    @property
    def day(self) -> int:
        """The running day, from 0 on; -1 before the first reset. All lanes' days are in `tables.days`."""
        lane, days = self.world.lanes, self.tables.days
        return int(days[lane]) if lane < len(days) else -1

    @property
    def series(self) -> DaySeries:
        """A copy of the running day's exogenous series. Raises ResetNeeded before the first reset."""
        if self.day < 0:
            raise ResetNeeded("series: no day is running; call reset() first")
        return self.tables.series(self.world.lanes)

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
        """Like HeronEnv's; `options={"day": d}` chooses the day of this one episode. Raises ConfigError."""
        if not isinstance(options, Mapping | None):
            raise ConfigError(f"reset(options={options!r}): must be a mapping; write {{'day': 172}}")
        asked = (options or {}).get("day")
        with self._choosing(None if asked is None else self.site.calendar.checked(asked)):
            return super().reset(seed=seed, options=options)

    @natively(lambda env, lanes: env.tables.natives("begin", lanes))
    def begin(self, world: World) -> None:
        """Pick the day, draw its series and the batteries' content, and put the first values in force.

        Until the first bin and substep have ended, what is measured is what was before midnight, all batteries at rest.
        """
        choices = self.tables.choices
        days = choices[(world.draw("day")[..., 0] * len(choices)).astype(np.int64)]
        lanes, seeds, episodes = (np.ravel(keys) for keys in (world.lanes, world.seed, world.episode))
        self.tables.begin(lanes, seeds, episodes, np.ravel(days))
        low, high = SOC_START
        charge = world[Battery].Charge
        charge.soc[...] = low + (high - low) * world.draw("soc0", charge.soc.shape[-1])
        world.put(self.tables.start_at, self.tables.starts[days])
        self.finish(world)

    @natively(lambda env, lanes: env.tables.natives("finish", lanes))
    def finish(self, world: World) -> None:
        """Set the next step's series and forecasts; after the last step of the day they stay."""
        world.put(self.tables.row_at, self.tables.at(world.lanes, world.step))

    def uphold(self, world: World, disturbances: Sequence[Disturbance]) -> None:
        """Write derated transformers, clouds and extra loads; meters that show the coming step show them."""
        disturbing.uphold(self, world, disturbances)
        if self.metering == "coming":
            load, more, pv, factor = world.get(self._foreseen).reshape(4, -1)
            world.put(self._meters, np.concatenate([load + more, pv * factor]))

    def require_disturbance(self, disturbance: Disturbance) -> None:
        """Raise ConfigError, UnknownAgent for an impossible disturbance."""
        super().require_disturbance(disturbance)
        disturbing.require(self, disturbance)

    def disturbance_sets(self) -> Mapping[str, Callable[[int], list[Disturbance]]]:
        """Return the sets `derating`, `clouds`, `spikes`, `sensors`, `crashes`, and `all`."""
        return disturbing.sets_of(self)

    @natively(lambda env, lanes: env.tables.natives("at_close", lanes))
    def training_rewards(self, world: World) -> Array:
        """Return EUR of the last step minus the same without any battery, for the trainer alone.

        A battery gets its own amount and its zone's; a deciding zone its own and its batteries'. What is subtracted
        does not depend on any action: the gradient stays unbiased and becomes far less noisy.
        """
        batteries, zones = world[Battery].Ledger, world[TransformerZone].Ledger
        home_gain, zone_gain = batteries.amount - batteries.without, zones.amount - zones.without
        if self._batteries_decide:
            return np.asarray(home_gain + zone_gain[..., self._zone_of])
        total = np.zeros_like(zone_gain)
        for battery, zone in enumerate(self._zone_of):  # one after another, as compiled code adds
            total[..., zone] += home_gain[..., battery]
        return np.asarray(zone_gain + total)

    def training_defaults(self) -> TrainingDefaults:
        """Return steps of 300 s without substeps on the training days, correcting MPC, else the strongest rule.

        Meters show the mean of the coming step there: of what a coarse step can show, that is nearest to the last 10 s
        of a world of 60 s steps. The mean of the past one is old before anybody acts on it. Chosen on validation days:
        training/results/energy_management/selection.md. Under a schedule clock and meters are those of evaluation, and
        a rollout is a whole day that twins live: training/results/under_the_network/gradient.md.
        """
        from heron_env.worlds.energy_management import baselines

        options = {"dt": 300.0, "physics_substeps": 1, "metering": "coming", "split": "train"}
        day = {"n_steps": 288, "gamma": 0.99 ** (1 / 3), "gae_lambda": 0.9 ** (1 / 3)}  # as far in time as at 900 s
        offered = baselines.baselines(self)
        base = baselines.MPC if baselines.MPC in offered else baselines.STRONGEST
        whole = {"n_steps": round(DAY / self.dt), "gamma": 1.0, "gae_lambda": 1.0, "twins": 4}
        return TrainingDefaults(options, base, day, TrainingDefaults({"split": "train"}, base, whole))

    def benchmark(self) -> Benchmark:
        """Return rules, held-out days, and their optima at the default constants."""
        from heron_env.worlds.energy_management import baselines

        shipped = self.site.calendar is SHIPPED
        return Benchmark(
            baselines=lambda seed: baselines.baselines(self),
            tuned=lambda name, constants, seed: baselines.TunedRule.of(name, constants).build(self, seed),
            strongest=baselines.STRONGEST,
            cases=partial(evaluation_cases, calendar=self.site.calendar),
            optima=shipped_optima if shipped and (self.dt, self.bin_length) == (OPTIMA_DT, LEAST) else None,
            neutral=NEUTRAL,
            at_reset=frozenset({"day"}),
            unit=RETURN_UNIT,
            held_out="Weather and seeds of a held-out day are not used in training; its load profiles are nearly those "
            "of any other day.",
        )

    def kpis(self) -> dict[str, float]:
        """Return figures of the day so far, from accumulators that no agent sees.

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

    def data_files(self) -> Mapping[str, str]:
        """Return the SHA-256 of profiles, a grid, an own site and its series, by name."""
        return self.site.files

    def local_time(self, time: float) -> str:
        """Return the local time of the running day, with its offset."""
        return self.site.calendar.local(self.day, time).isoformat()

    def picture_series(self) -> Sequence[PictureSeries]:
        """Return three panels: content of a zone's batteries, price, power through the zone's transformer."""
        zone = self.hierarchy.ids[max(self.hierarchy.parent[self.hierarchy.index[self.possible_agents[0]]], 0)]
        power = f"Power through the transformer of {zone}"
        return (
            PictureSeries(f"Content of the batteries of {zone}, mean", "share", "soc", mean=True),
            PictureSeries("Price", "EUR/kWh", "Tariff.price", stepwise=True, label="tariff"),
            PictureSeries(
                power, "kW", "Zone.power", limit="Zone.limit", stepwise=True, closer="Where the clocks differ most"
            ),
        )

    def draw_frame(self, axes: Any, world: World, observed: Any, artists: Any = None) -> Any:
        """Draw homes, loads, batteries, transformers and the sun; dashed: the observer's knowledge."""
        from heron_env.worlds.energy_management.drawing import SiteDrawing

        return (artists or SiteDrawing(axes, self.site.neighbourhood)).show(world, observed)

    def problem(self, day: int, seed: int) -> DayProblem:
        """Return the data of one day for the perfect-foresight optimum; starts an episode."""
        self.reset(seed=seed, options={"day": day})
        charge = self.world[Battery].Charge
        capacity = charge.capacity.copy()
        energy = charge.soc * capacity
        start = self.site.before(day).power
        return DayProblem(self.series, self.membership, self.limits, capacity, energy, start, self.constants, self.dt)

    def optimum(self, day: int, seed: int) -> DayOptimum:
        """Return the best possible return of `day` with `seed` in this environment; starts an episode."""
        return solve(self.problem(day, seed))

    def __getstate__(self) -> dict[str, Any]:
        """Like HeronEnv's; the day's series are built again."""
        state = super().__getstate__()
        del state["declared"]["tables"]
        return state

    def get_state(self) -> dict[str, Any]:
        """Like HeronEnv's, and the day."""
        return {**super().get_state(), "day": self.day}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Like HeronEnv's; the day's series are built again."""
        require_state(state, {*KEPT, "day"})
        with self._choosing(None if state["day"] == -1 else self.site.calendar.checked(state["day"])):
            super().set_state(state)
