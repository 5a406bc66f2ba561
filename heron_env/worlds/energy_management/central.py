"""MPC, central: one planner that has all homes' data and the whole forecast, as a reference without foresight.

It sees at once what nobody could gather in time: every meter, passive homes' included, as of now, and each home's
forecast (base series times the day's factor) quarter hour by quarter hour. It knows nothing of the fast layer ahead,
as no policy can. What the agents lack to it is communication; what it lacks to the optimum is foresight. Each step it
plans the rest of the day, zone by zone (central_program.py), and applies the plan's first step.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError
from heron_env.worlds.energy_management.agents import Battery, TransformerZone
from heron_env.worlds.energy_management.central_program import STAGES, CentralProgram, Outlook
from heron_env.worlds.energy_management.day import DAY
from heron_env.worlds.energy_management.env import EnergyManagementEnv
from heron_env.worlds.energy_management.network_env import NetworkedEnergyManagementEnv

Array = NDArray[np.float64]

QUARTER: Final = 900.0
"""s; forecasts are even within it."""


@dataclass(frozen=True)
class Central:
    """The policy, to be built for an environment in its synchronous clock; a PolicySpec.

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

    def build(self, env: Any, seed: int) -> dict[str, "Seat"]:
        """One seat for each battery. Raises ConfigError where there is nothing for it to plan with."""
        if not isinstance(env, EnergyManagementEnv) or isinstance(env, NetworkedEnergyManagementEnv):
            raise ConfigError(
                f'"MPC, central" plans heron/EnergyManagement without a network, not {type(env).__name__}; leave it out'
            )
        if not isinstance(env.hierarchy.agents[env.hierarchy.index[env.possible_agents[0]]], Battery):
            raise ConfigError('"MPC, central" sets the power of each battery; it needs control="field"')
        planner = Planner(env, self)
        return {agent: Seat(planner, place) for place, agent in enumerate(env.possible_agents)}


class Seat:
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
            self._expect(*episode)
        if (now := (*episode, env.simulation.step_index)) != self._made:
            self._made, self._powers = now, self._planned()
        return self._powers

    def _expect(self, seed: int, episode: int, day: int) -> None:
        """Energies (kWh) that are expected since midnight, cumulated at the quarter hours' edges, and the prices."""
        site = self.env.site
        homes, batteries = site.neighbourhood, site.neighbourhood.batteries
        keys = (np.array([key]) for key in (seed, episode))
        factors = self.env.tables.factors(*keys)[0]
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
