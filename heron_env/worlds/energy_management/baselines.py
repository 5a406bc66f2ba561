"""Baselines: rules of thumb that read the observation's columns by name, as policies for either clock.

Each is written once, for a batch of observations. The constants of the two grid-friendly rules were tuned on validation
days only, by random search over their returns at dt = 60 s; the test days were not looked at.

MPC, each battery for itself: it plans the rest of its day from what it sees and begins with the plan's first power.

The forecast's sums become a profile (plan_kernel.py): an even demand and the sun's height, fitted to the sums of the
next 1, 3, 6, 12 h, each of which is kept; behind 12 h what of the surplus until midnight is left. What the zone expects
above its limit lies where the sun is high, an equal share for each battery. The plan is exact for that day. Its first
power also answers what the transformer measures, as though all batteries of the zone did the same; the older that is,
the less its fluctuation counts. Nothing is remembered between decisions, so it is the same policy in every clock.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from math import isfinite
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import OnBatches
from heron_env.engine.cache import cached_file
from heron_env.errors import ConfigError, did_you_mean
from heron_env.worlds.energy_management.agents import MAX_POWER, Constants, Forecast
from heron_env.worlds.energy_management.calendar import DAYS, TimeOfUse
from heron_env.worlds.energy_management.env import EnergyManagementEnv

Array = NDArray[np.float64]
Vectors = NDArray[np.float32]


class BatteryRule(OnBatches):
    """A battery's set-point from its observation vector; subclasses define `power`.

    Args:
        names: the columns of the observation, `env.observation_names(agent)` of any battery; what comes from the
            battery's zone is found whatever the zone is called.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.width, self.limit = len(names), MAX_POWER
        self.column = {_short(name): index for index, name in enumerate(names)}

    @abstractmethod
    def power(self, see: ObservationColumns) -> Array:
        """kW, `[n]`, positive charges; clipped to the inverter afterwards."""

    def forward_batch(self, vectors: Vectors) -> Array:
        """Set-points `[n, 1]` of observations `[n, d]`."""
        power = self.power(ObservationColumns(self.column, vectors))
        return np.minimum(np.maximum(power, -self.limit), self.limit)[:, None]


class ObservationColumns:
    """Columns of a batch of observations by name: `see["Meter.load"]` is `[n]`."""

    __slots__ = ("_index", "vectors")

    def __init__(self, index: dict[str, int], vectors: Vectors) -> None:
        self._index, self.vectors = index, vectors.astype(np.float64)

    def __getitem__(self, name: str) -> Array:
        """One column."""
        column: Array = self.vectors[:, self._index[name]]
        return column


def _short(name: str) -> str:
    """`zone_1.Zone.power` and `global.Tariff.price` without the owner."""
    return ".".join(name.split(".")[-2:])


class DoNothing(BatteryRule):
    """The battery stands still."""

    def power(self, see: ObservationColumns) -> Array:
        """0."""
        return np.zeros_like(see["Meter.load"])


class FollowTariff(BatteryRule):
    """Charge evenly through the cheap hours, cover the home's own demand in the dear ones, else stand still."""

    def __init__(self, names: Sequence[str], tariff: TimeOfUse) -> None:
        super().__init__(names)
        self.tariff = tariff

    def power(self, see: ObservationColumns) -> Array:
        """kW `[n]`."""
        price, standard = see["Tariff.price"], self.tariff.standard
        demand = np.maximum(see["Meter.load"] - see["Meter.pv"], 0.0)
        room = (1.0 - see["Charge.soc"]) * see["Charge.capacity"]
        filling = room / np.maximum(see["Tariff.hours_to_change"], 0.25)
        return np.where(price < standard - 1e-4, filling, np.where(price > standard + 1e-4, -demand, 0.0))


class SelfConsumption(BatteryRule):
    """Store the surplus, cover the demand: what is sold with most home batteries."""

    def power(self, see: ObservationColumns) -> Array:
        """kW `[n]`."""
        return see["Meter.pv"] - see["Meter.load"]


@dataclass(frozen=True)
class Tuning:
    """Free constants of the grid-friendly rules, tuned on validation days.

    Attributes:
        share: factor on the share of the surplus that fits into the battery; more fills it earlier.
        night: share of the deficit of the next 12 h that is bought in the cheap hours, less what the sun will bring.
        follow: share of the transformer's distance from its slow mean that the batteries take over together.
        guard: share of its distance above the limit that they take over, besides.
        margin: share of the limit at which the guard begins.
        spare: share of the zone's expected feed-in above the limit for which the batteries keep room.
    """

    share: float = 1.3
    night: float = 2.2
    follow: float = 0.15
    guard: float = 0.5
    margin: float = 0.65
    spare: float = 0.8


class GridFriendly(BatteryRule):
    """Self-consumption that spreads the day's surplus over the battery's room and buys the night's demand cheaply."""

    def __init__(self, names: Sequence[str], tariff: TimeOfUse, tuning: Tuning) -> None:
        super().__init__(names)
        self.tariff, self.tuning = tariff, tuning

    def power(self, see: ObservationColumns) -> Array:
        """kW `[n]`."""
        tuning, standard = self.tuning, self.tariff.standard
        price, capacity = see["Tariff.price"], see["Charge.capacity"]
        surplus_rest = see["Forecast.surplus_rest"]
        stored = see["Charge.soc"] * capacity
        room = capacity - stored
        net = see["Meter.pv"] - see["Meter.load"]
        charging = net * np.minimum(tuning.share * self.free(see, room) / np.maximum(surplus_rest, 0.1), 1.0)
        wanted = tuning.night * see["Forecast.deficit_12h"] - stored
        buying = np.minimum(np.maximum(wanted, 0.0), np.maximum(room - surplus_rest, 0.0))
        buying /= np.maximum(see["Tariff.hours_to_change"], 0.25)
        return np.where(net > 0.0, charging, np.where(price < standard - 1e-4, buying, net))

    def free(self, see: ObservationColumns, room: Array) -> Array:
        """Room for the home's own surplus, kWh `[n]`."""
        return room


class ZoneFeedback(GridFriendly):
    """The grid-friendly rule, corrected by what the transformer measured: the strongest, and the one that delay hurts.

    The batteries of a zone together take over part of its distance from the slow mean and of what exceeds the limit,
    and keep room for the feed-in that the zone expects above it.
    """

    def __init__(self, names: Sequence[str], tariff: TimeOfUse, tuning: Tuning, zone_size: int) -> None:
        super().__init__(names, tariff, tuning)
        self.zone_size = zone_size

    def free(self, see: ObservationColumns, room: Array) -> Array:
        """Room for the home's own surplus beside what the zone will need, kWh `[n]`."""
        return np.maximum(room - self.tuning.spare * see["Zone.excess_rest"] / self.zone_size, 0.0)

    def power(self, see: ObservationColumns) -> Array:
        """kW `[n]`."""
        tuning, plain = self.tuning, super().power(see)
        power, limit = see["Zone.power"], tuning.margin * see["Zone.limit"]
        within = np.minimum(np.maximum(power, -limit), limit)
        correction = tuning.follow * (see["Zone.mean_power"] - power) + tuning.guard * (within - power)
        return plain + correction / self.zone_size


KERNEL: Final = Path(__file__).with_name("plan_kernel.py")
SEEN: Final = (
    "Charge.soc", "Charge.capacity", "Meter.load", "Meter.pv", "Setpoint.power", "Forecast.surplus_rest",
    "Forecast.deficit_12h", "Forecast.net_1h", "Forecast.net_3h", "Forecast.net_6h", "Forecast.net_12h",
    "Zone.power", "Zone.mean_power", "Zone.limit", "Zone.excess_rest",
)  # fmt: skip
"""In the order of plan_kernel.py."""
CLOCK: Final = ("Clock.hour_sin", "Clock.hour_cos", "Clock.season_sin", "Clock.season_cos")
DAY: Final = 86_400.0  # s
ROUNDED: Final = 2.0  # s by which a clock in float32 may be behind midnight


@dataclass(frozen=True)
class Foresight:
    """Free constants of the MPC, tuned on validation days without a network.

    Attributes:
        follow: share of the fluctuation's price that counts; the rest is movement that will have to come anyway.
        window: kWh of stored energy over whose value the first power looks, so that it does not jump; above 0.
        excess: factor on the zone's expected feed-in above its limit: clouds make more of it than the forecast's mean.
        shoulder: sine of the sun's height below which none of it is expected.
        fading: s of age after which the zone's distance from its mean counts only 1/e; only where ages are observed. An
            overload always counts: at a lower price than the coming ones it would be left for later, and later again.
            Above 0.

    Raises ConfigError.
    """

    follow: float = 0.4
    window: float = 2.5
    excess: float = 1.5
    shoulder: float = 0.1
    fading: float = 60.0

    def __post_init__(self) -> None:
        for name in ("window", "fading"):
            if not getattr(self, name) > 0.0:
                raise ConfigError(f"Foresight({name}={getattr(self, name)!r}): must be above 0")


class ModelPredictive(BatteryRule):
    """Plans with every decision anew.

    Args:
        names: as for BatteryRule; with `observe_age=True` the zone's age is among them.
        tariff: known for the whole day, as to the rules.
        constants: prices and efficiency.
        zone_size: batteries behind the transformer.
        foresight: constants.
    """

    def __init__(
        self,
        names: Sequence[str],
        tariff: TimeOfUse,
        constants: Constants,
        zone_size: int,
        foresight: Foresight | None = None,
    ) -> None:
        super().__init__(names)
        self.foresight = foresight or Foresight()
        zone = next((name.split(".")[0] for name in names if name.endswith("Zone.power")), "")
        self.age = f"age.{zone}" if f"age.{zone}" in self.column else None
        self.prices = tariff.prices(np.arange(24.0))
        c = constants
        prices = (c.feed_in_price, c.wear_price, c.stored_value, c.overload_price, c.fluctuation_price)
        self.law = np.array([c.efficiency, *prices, MAX_POWER, zone_size, *astuple(self.foresight)])

    @staticmethod
    def fits(names: Sequence[str]) -> bool:
        """Is all that it needs among these columns?"""
        return {*SEEN, *CLOCK} <= {".".join(name.split(".")[-2:]) for name in names}

    def power(self, see: ObservationColumns) -> Array:
        """kW `[n]`."""
        time, day, ahead = _instant(see)
        age = np.zeros_like(time) if self.age is None else see[self.age]
        known = np.column_stack([*(see[name] for name in SEEN), age, time, day, ahead])
        powers = np.empty(len(known))
        kernel().decide(known, self.prices, self.law, powers)
        return powers


def _instant(see: ObservationColumns) -> tuple[Array, Array, Array]:
    """Time of day (s, UTC+1), day of the year, hours that the local clock is ahead: each `[n]`, off the Clock."""
    hour_sin, hour_cos, season_sin, season_cos = (see[name] for name in CLOCK)
    season = np.arctan2(season_sin, season_cos) / (2.0 * np.pi) % 1.0 * DAYS * DAY + ROUNDED
    day = np.floor(season / DAY)
    time = np.maximum(season - day * DAY - ROUNDED, 0.0)
    local = np.arctan2(hour_sin, hour_cos) / (2.0 * np.pi) * 24.0
    return time, day % DAYS, np.rint(local - time / 3600.0) % 24.0


@functools.cache
def kernel() -> Any:
    """plan_kernel.py, compiled once for an installation."""
    return cached_file(KERNEL)


NOTHING = "do nothing"
FRIENDLY = "grid-friendly"
STRONGEST = "grid-friendly with zone feedback"
MPC = "MPC"
OWN_FEATURES = ("Charge", "Meter", "Setpoint")
RuleConstants = Tuning | Foresight
CONSTANTS: Final[Mapping[str, type[RuleConstants]]] = {FRIENDLY: Tuning, STRONGEST: Tuning, MPC: Foresight}
"""Of the baselines that have some."""


class ZoneTotal(OnBatches):
    """A zone's set-point: what its batteries would choose by a rule, added up.

    A zone does not see its homes' forecasts: the rule then expects neither surplus nor deficit.

    Args:
        names: the zone's columns.
        make: builds the battery's rule from the columns a battery would have.
    """

    def __init__(self, names: Sequence[str], make: Callable[[Sequence[str]], BatteryRule]) -> None:
        children = list(dict.fromkeys(name.split(".")[0] for name in names if name.split(".")[-2] == "Meter"))
        shared = [name for name in names if name.split(".")[-2] not in OWN_FEATURES]
        own = [name.partition(".")[2] for name in names if name.startswith(f"{children[0]}.")]
        place = {name: index for index, name in enumerate(names)}
        common = [place[name] for name in shared]
        self.pick = np.array([[place[f"{child}.{name}"] for name in own] + common for child in children])
        unseen = [f"Forecast.{name}" for name in Forecast.names()]
        self.rule, self.unseen = make([*own, *shared, *unseen]), len(unseen)

    def forward_batch(self, vectors: Vectors) -> Array:
        """Totals `[n, 1]` of observations `[n, d]`."""
        seen = vectors[:, self.pick]
        seen = np.concatenate([seen, np.zeros((*seen.shape[:2], self.unseen), dtype=seen.dtype)], axis=2)
        powers = self.rule.forward_batch(seen.reshape(-1, seen.shape[2]))
        total: Array = powers.reshape(len(vectors), -1).sum(axis=1, keepdims=True)
        return total


Rule = BatteryRule | ZoneTotal


def baselines(
    env: EnergyManagementEnv, *, tuning: Tuning | None = None, foresight: Foresight | None = None
) -> dict[str, dict[str, Rule]]:
    """Policies by name of the baseline: what `run_synchronous` and `run_event_driven` take.

    The keys of each are the environment's groups; where a group's zones differ in size, its agents. "MPC" is there
    where batteries decide and see what it needs: a zone does not see its homes' forecasts and has nothing to plan with.
    """
    tariff, chosen = env.site.tariff, tuning or Tuning()
    field = env.possible_agents[0].startswith("battery")

    def table(make: Callable[[Sequence[str], int], BatteryRule]) -> dict[str, Rule]:
        def total(names: Sequence[str], size: int) -> Rule:
            return ZoneTotal(names, lambda own: make(own, size))

        return _by_group(env, make if field else total)

    offered = {
        NOTHING: table(lambda names, size: DoNothing(names)),
        "tariff": table(lambda names, size: FollowTariff(names, tariff)),
        "self-consumption": table(lambda names, size: SelfConsumption(names)),
        FRIENDLY: table(lambda names, size: GridFriendly(names, tariff, chosen)),
        STRONGEST: table(lambda names, size: ZoneFeedback(names, tariff, chosen, size)),
    }
    if field and all(ModelPredictive.fits(env.observation_names(agent)) for agent in env.possible_agents):
        offered[MPC] = table(lambda names, size: ModelPredictive(names, tariff, env.constants, size, foresight))
    return offered


@dataclass(frozen=True)
class TunedRule:
    """A baseline with other constants, as a PolicySpec: `TunedRule(MPC, Foresight(follow=0.15))`.

    As a name, for sweeps, `residual` and the command line: `MPC(follow=0.15)`; see `benchmark.baseline`.
    """

    name: str
    tuning: RuleConstants

    @classmethod
    def of(cls, name: str, constants: Mapping[str, float]) -> Self:
        """Make it from constants by name; others keep their defaults. Raises ConfigError."""
        kind = _constants(name)
        known = [field.name for field in fields(kind)]
        for constant, value in constants.items():
            if constant not in known:
                raise ConfigError(
                    f"{name!r} has no constant {constant!r}, only {known}.{did_you_mean(constant, known)}"
                )
            if not isfinite(value):
                raise ConfigError(f"{name!r}: {constant}={value}: must be a finite number")
        return cls(name, kind(**constants))

    def build(self, env: EnergyManagementEnv, seed: int) -> dict[str, Rule]:
        """Build the baseline. Raises ConfigError for an unknown baseline or constant."""
        kind = _constants(self.name)
        if not isinstance(self.tuning, kind):
            raise ConfigError(f"TunedRule({self.name!r}, {self.tuning!r}): its constants are a {kind.__name__}")
        if isinstance(self.tuning, Tuning):
            offered = baselines(env, tuning=self.tuning)
        else:
            offered = baselines(env, foresight=self.tuning)
        if self.name not in offered:
            raise ConfigError(f"{self.name!r} is not among the baselines here, {list(offered)}: it plans for batteries")
        return offered[self.name]


def _constants(name: str) -> type[RuleConstants]:
    """The class of a baseline's constants. Raises ConfigError."""
    if name not in CONSTANTS:
        raise ConfigError(
            f"{name!r} has no constants; those that do are {list(CONSTANTS)}.{did_you_mean(name, CONSTANTS)}"
        )
    return CONSTANTS[name]


def _by_group(env: EnergyManagementEnv, make: Callable[[Sequence[str], int], Rule]) -> dict[str, Rule]:
    """One policy for a group whose zones have one size, else one for each agent."""
    policies: dict[str, Rule] = {}
    for group, agents in env.group_map.items():
        sizes = {agent: _zone_size(env, agent) for agent in agents}
        if len(set(sizes.values())) == 1:
            policies[group] = make(env.observation_names(agents[0]), sizes[agents[0]])
        else:
            policies.update({agent: make(env.observation_names(agent), size) for agent, size in sizes.items()})
    return policies


def _zone_size(env: EnergyManagementEnv, agent: str) -> int:
    """Number of batteries behind the agent's transformer."""
    tree = env.hierarchy
    rank = tree.index[agent]
    zone = rank if tree.children[rank] else tree.parent[rank]
    return len(tree.children[zone])
