"""MPC, central: one planner that has all homes' data and the whole forecast, as a reference without foresight.

It sees at once what nobody could gather in time: every meter, passive homes' included, as of now, and each home's
forecast (base series times the day's factor) quarter hour by quarter hour. It knows nothing of the fast layer ahead,
as no policy can. What the agents lack to it is communication; what it lacks to the optimum is foresight. Each step it
plans the rest of the day, zone by zone, and applies the plan's first step.

What is left of one zone's day as a small linear program, kept warm from step to step: steps first, then longer.

Stages have fixed lengths counted from now, so from one step to the next only prices, right-hand sides and bounds
change, and HiGHS goes on from the last basis. A stage that reaches beyond midnight counts in part.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError, NoOptimum
from heron_env.worlds.energy_management.agents import MAX_POWER, Battery, Constants, TransformerZone
from heron_env.worlds.energy_management.env import EnergyManagementEnv
from heron_env.worlds.energy_management.network import NetworkedEnergyManagementEnv
from heron_env.worlds.energy_management.optimum import LinearProgram
from heron_env.worlds.energy_management.site import DAY

STAGES: Final = (1, 1, 1, 2, 5, 5, *(15,) * 7, *(30,) * 4, *(60,) * 20)
"""Lengths in control steps: at 60 s a quarter of an hour in minutes, two hours in quarters, then hours."""
LOST: Final = 0.25
"""EUR/kWh. Losses are paid for, not taken from what is stored: else a plan would burn energy by charging and
discharging at once where a transformer overflows, and would keep no room for it."""
NEAR: Final = 13
"""Stages whose fluctuation is planned; the slow mean follows within a quarter of an hour."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Outlook:
    """What is expected of a zone's stages; powers are means over a stage as far as it lies before midnight.

    Attributes:
        net: `[stages, batteries]` kW, of the homes with batteries.
        background: `[stages]` kW.
        price: `[stages]` EUR/kWh.
        part: `[stages]` share of the stage before midnight.
        brighter: `[stages]` kW, by which generation exceeds what is expected half of the time, and falls short else.
        limit: kW.
        mean: kW, the slow mean now.
        energy: `[batteries]` kWh now.
    """

    net: Array
    background: Array
    price: Array
    part: Array
    brighter: Array
    limit: float
    mean: float
    energy: Array


class CentralProgram:
    """The program of one zone.

    Args:
        capacity: `[batteries]` kWh.
        constants: prices and efficiency.
        dt: control step, s.
        share: of the fluctuation's price that counts in the first stage.

    Raises ConfigError where highspy is not installed.
    """

    def __init__(self, capacity: Array, constants: Constants, dt: float, share: float = 1.0) -> None:
        self.constants = constants
        self.hours = np.array(STAGES) * dt / 3600.0
        self.program = LinearProgram()
        self._build(capacity)
        self._distance_cost[0] *= share
        self._highs = self._loaded()

    def _build(self, capacity: Array) -> None:
        c, program, hours = self.constants, self.program, self.hours[:, None]
        shape = (len(STAGES), len(capacity))
        lost = LOST * (1.0 - c.efficiency) + c.wear_price, LOST * (1.0 / c.efficiency - 1.0) + c.wear_price
        charging = (c.feed_in_price + lost[0] - c.stored_value) * hours
        discharging = (lost[1] - c.feed_in_price + c.stored_value) * hours
        self.charge = program.variables(np.broadcast_to(charging, shape), 0.0, MAX_POWER)
        self.discharge = program.variables(np.broadcast_to(discharging, shape), 0.0, MAX_POWER)
        self.imported = program.variables(np.zeros(shape), 0.0, np.inf)
        energy = program.variables(np.zeros(shape), 0.0, capacity)
        flows = ((self.charge, -hours), (self.discharge, hours))
        first = ((column[0], factor[0]) for column, factor in flows)
        later = ((column[1:], factor[1:]) for column, factor in flows)
        self.stored = program.constrain(0.0, 0.0, (energy[0], 1.0), *first)
        program.constrain(0.0, 0.0, (energy[1:], 1.0), (energy[:-1], -1.0), *later)
        away = ((self.charge, 1.0), (self.discharge, -1.0), (self.imported, -1.0))
        self.home = program.constrain(-np.inf, 0.0, *away)
        whole = slice(None)
        bright, dull = (program.variables(0.5 * c.overload_price * self.hours, 0.0, np.inf) for _ in range(2))
        self.over = [program.constrain(-np.inf, 0.0, (x, -1.0), *self._powers(whole, 1.0)) for x in (bright, dull)]
        self.under = [program.constrain(-np.inf, 0.0, (x, -1.0), *self._powers(whole, -1.0)) for x in (bright, dull)]
        near = slice(0, NEAR)
        follow = -np.expm1(-self.hours[near] * 3600.0 / c.mean_time)
        self.distance = program.variables(c.fluctuation_price * follow * c.mean_time / 3600.0, 0.0, np.inf)
        mean = program.variables(np.zeros(NEAR), -np.inf, np.inf)
        self.follow, self.start = follow, mean[:1]
        self.above, self.beneath = (
            program.constrain(-np.inf, 0.0, (self.distance, -1.0), (mean, -sign), *self._powers(near, sign))
            for sign in (1.0, -1.0)
        )
        moved = self._powers(slice(0, NEAR - 1), -follow[:-1])
        self.moved = program.constrain(0.0, 0.0, (mean[1:], 1.0), (mean[:-1], follow[:-1] - 1.0), *moved)
        self._distance_cost = program.cost[self.distance]

    def _powers(self, stages: slice, factor: Any) -> list[tuple[NDArray[np.int64], Any]]:
        """Terms of all batteries' power in these stages."""
        pairs = (
            (self.charge[stages, battery], self.discharge[stages, battery]) for battery in range(self.charge.shape[1])
        )
        return [term for charge, discharge in pairs for term in ((charge, factor), (discharge, -1.0 * factor))]

    def _loaded(self) -> Any:
        try:
            import highspy
        except ImportError as error:
            raise ConfigError('"MPC, central" needs HiGHS: pip install "heron_env[solvers]"') from error
        program, lp = self.program, highspy.HighsLp()
        rows, columns, factors = program.entries()
        order = np.lexsort((rows, columns))
        lp.num_col_, lp.num_row_ = program.size, program.rows
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.cost, program.below, program.above
        lp.row_lower_, lp.row_upper_ = program.low, program.high
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.searchsorted(columns[order], np.arange(program.size + 1)).astype(np.int32)
        lp.a_matrix_.index_, lp.a_matrix_.value_ = rows[order].astype(np.int32), factors[order]
        highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, value in (("output_flag", False), ("threads", 1), ("presolve", "off"), ("solver", "simplex")):
            highs.setOptionValue(name, value)
        highs.passModel(lp)
        self._optimal = highspy.HighsModelStatus.kOptimal
        return highs

    def powers(self, outlook: Outlook) -> Array:
        """Set-points `[batteries]` kW of the step that begins. Raises NoOptimum."""
        c, part, hours = self.constants, outlook.part, self.hours
        batteries = self.charge.shape[1]
        self._cost(
            self.imported,
            np.repeat(
                (np.where(part > 0.0, (outlook.price - c.feed_in_price) * hours, 0.0))[:, None], batteries, axis=1
            ),
        )
        self._cost(self.distance, np.where(part[:NEAR] < 1.0, 0.0, self._distance_cost))
        most = np.repeat(MAX_POWER * part[:, None], batteries, axis=1)
        self._bounds(self.charge, np.zeros_like(most), most)
        self._bounds(self.discharge, np.zeros_like(most), most)
        self._bounds(self.start, np.array([outlook.mean]), np.array([outlook.mean]))
        free = -np.inf
        without = part * (outlook.background + outlook.net.sum(axis=1))
        near, moved = without[:NEAR], self.follow[:-1] * without[: NEAR - 1]
        self._rows(self.stored, outlook.energy, outlook.energy)
        self._rows(self.home, free, -part[:, None] * outlook.net)
        for over, under, brighter in zip(self.over, self.under, (outlook.brighter, -outlook.brighter), strict=True):
            self._rows(over, free, part * (outlook.limit + brighter) - without)
            self._rows(under, free, part * (outlook.limit - brighter) + without)
        self._rows(self.above, free, -near)
        self._rows(self.beneath, free, near)
        self._rows(self.moved, moved, moved)
        self._highs.run()
        if self._highs.getModelStatus() != self._optimal:
            self._highs.clearSolver()
            self._highs.run()
            if self._highs.getModelStatus() != self._optimal:
                raise NoOptimum(f"HiGHS found no plan: {self._highs.getModelStatus()}")
        found = np.array(self._highs.getSolution().col_value)
        return np.asarray(found[self.charge[0]] - found[self.discharge[0]])

    def _cost(self, columns: NDArray[np.int64], cost: Array) -> None:
        self._highs.changeColsCost(columns.size, columns.ravel().astype(np.int32), cost.ravel())

    def _bounds(self, columns: NDArray[np.int64], below: Array, above: Array) -> None:
        self._highs.changeColsBounds(columns.size, columns.ravel().astype(np.int32), below.ravel(), above.ravel())

    def _rows(self, rows: NDArray[np.int64], low: Any, high: Array) -> None:
        below = np.broadcast_to(low, rows.shape).ravel().astype(np.float64)
        self._highs.changeRowsBounds(rows.size, rows.ravel().astype(np.int32), below, high.ravel().astype(np.float64))


QUARTER: Final = 900.0
"""s; forecasts are even within it."""


@dataclass(frozen=True)
class Central:
    """Central planner as a PolicySpec, for the synchronous clock.

    Attributes:
        memory: s after which 1/e of what is metered beside the forecast is still expected, from the second step on;
            in the first one all of it.
        gleam: share of the zone's expected generation by which it is planned to be more and less, each half of the
            time, in later stages: clouds come and go, and an overload does not even out.
        near: stages that are planned with the mean.
        follow: share of the fluctuation's price that counts in the first step.
    """

    memory: float = 300.0
    gleam: float = 0.15
    near: int = 4
    follow: float = 1.3

    def build(self, env: Any, seed: int) -> dict[str, "BatteryPlan"]:
        """Build one policy for each battery. Raises ConfigError where observations do not suffice for planning."""
        if not isinstance(env, EnergyManagementEnv) or isinstance(env, NetworkedEnergyManagementEnv):
            raise ConfigError(
                f'"MPC, central" plans heron/EnergyManagement without a network, not {type(env).__name__}; leave it out'
            )
        if not isinstance(env.hierarchy.agents[env.hierarchy.index[env.possible_agents[0]]], Battery):
            raise ConfigError('"MPC, central" sets the power of each battery; it needs control="field"')
        planner = Planner(env, self)
        return {agent: BatteryPlan(planner, place) for place, agent in enumerate(env.possible_agents)}


class BatteryPlan:
    """Where one battery gets its set-point from the common plan."""

    def __init__(self, planner: "Planner", place: int) -> None:
        self.planner, self.place = planner, place

    def forward(self, observation: NDArray[np.float32]) -> Array:
        """Set-point `[1]` kW, whatever the battery itself observes. Raises ConfigError in the event-driven clock."""
        return self.planner.powers()[self.place : self.place + 1]


class Planner:
    """Plans once a step for all batteries."""

    def __init__(self, env: EnergyManagementEnv, how: Central) -> None:
        self.env, self.how = env, how
        homes = env.site.neighbourhood
        capacity = np.array([home.capacity for home in homes.homes[: homes.batteries]])
        self.members = [np.flatnonzero(row) for row in env.membership]
        self.programs = [
            CentralProgram(capacity[members], env.constants, env.dt, how.follow) for members in self.members
        ]
        self.lengths = np.array(STAGES) * env.dt
        self.edges = np.concatenate([[0.0], np.cumsum(self.lengths)])
        self._made: tuple[Any, ...] | None = None
        self._day: tuple[Any, ...] | None = None
        self._powers = np.zeros(homes.batteries)

    def powers(self) -> Array:
        """Set-points `[batteries]` kW of the step that begins."""
        env = self.env
        if env._event_driven:
            raise ConfigError(
                '"MPC, central" is a reference of the synchronous clock: it reads all homes as they are now; '
                "leave it out of event-driven conditions (Sweep.of(sync_only=...))"
            )
        episode = (int(env.world.seed), int(env.world.episode), env.day)
        if episode != self._day:
            self._day, self._made = episode, None
            self._expect(env.day)
        if (now := (*episode, env.simulation.step_index)) != self._made:
            self._made, self._powers = now, self._planned()
        return self._powers

    def _expect(self, day: int) -> None:
        """Energies (kWh) that are expected since midnight, cumulated at the quarter hours' edges, and the prices."""
        site = self.env.site
        homes, batteries = site.neighbourhood, site.neighbourhood.batteries
        factors = self.env.tables.factors(self.env.world.lanes)
        load, pv, business = site.base(day)
        net = load - factors[:, None] * pv
        background = homes.membership[:, batteries:] @ net[batteries:] + business
        generation = homes.membership @ (load - net)
        rows = np.concatenate([net[:batteries], background, generation])
        self.energy = np.zeros((len(rows), rows.shape[1] + 1))
        np.cumsum(rows * (QUARTER / 3600.0), axis=1, out=self.energy[:, 1:])
        hours = np.arange(24.0)
        ahead = float(np.rint(24.0 * np.arctan2(*self._hour()) / (2.0 * np.pi) - self._time() / 3600.0) % 24.0)
        self.prices = np.concatenate([[0.0], np.cumsum(site.tariff.prices((hours + ahead) % 24.0))])

    def _hour(self) -> tuple[float, float]:
        clock = self.env.world.Clock
        return float(np.ravel(clock.hour_sin)[0]), float(np.ravel(clock.hour_cos)[0])

    def _time(self) -> float:
        return float(self.env.simulation.time)

    def _planned(self) -> Array:
        env, how = self.env, self.how
        edges = np.minimum(self._time() + self.edges, DAY)
        seconds = np.diff(edges)
        part, known = seconds / self.lengths, np.maximum(seconds, 1e-9)
        quarters = np.arange(self.energy.shape[1]) * QUARTER
        expected = np.stack([np.diff(np.interp(edges, quarters, row)) for row in self.energy]) * 3600.0 / known
        price = np.diff(np.interp(edges / 3600.0, np.arange(25.0), self.prices)) * 3600.0 / known
        batteries, zones = env.world[Battery], env.world[TransformerZone]
        metered = np.concatenate([batteries.Meter.load - batteries.Meter.pv, zones.Background.power])
        begins, ends = np.maximum(self.edges[:-1] - env.dt, 0.0), np.maximum(self.edges[1:] - env.dt, 0.0)
        fading = (np.exp(-begins / how.memory) - np.exp(-ends / how.memory)) * how.memory / self.lengths
        fading[0] = 1.0
        brighter = how.gleam * expected[len(metered) :]
        brighter[:, : how.near] = 0.0
        expected = expected[: len(metered)]
        expected += (metered - expected[:, 0])[:, None] * fading
        powers = np.empty(len(env.membership[0]))
        for zone, members in enumerate(self.members):
            outlook = Outlook(
                net=expected[members].T,
                background=expected[len(powers) + zone],
                price=price,
                part=part,
                limit=float(zones.Zone.limit[zone]),
                brighter=brighter[zone],
                mean=float(zones.Zone.mean_power[zone]),
                energy=(batteries.Charge.soc * batteries.Charge.capacity)[members],
            )
            powers[members] = self.programs[zone].powers(outlook)
        return np.clip(powers, -5.0, 5.0)
