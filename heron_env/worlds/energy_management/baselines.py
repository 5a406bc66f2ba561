"""The baselines of one environment, ready for either clock, whoever decides."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import isfinite
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import OnBatches
from heron_env.errors import ConfigError, did_you_mean
from heron_env.worlds.energy_management.env import EnergyManagementEnv
from heron_env.worlds.energy_management.features import Forecast
from heron_env.worlds.energy_management.rules import (
    BatteryRule,
    DoNothing,
    FollowTariff,
    Foresight,
    GridFriendly,
    ModelPredictive,
    SelfConsumption,
    Tuning,
    ZoneFeedback,
)

Array = NDArray[np.float64]
Vectors = NDArray[np.float32]

NOTHING = "do nothing"
FRIENDLY = "grid-friendly"
STRONGEST = "grid-friendly with zone feedback"
MPC = "MPC"
OWN_FEATURES = ("Charge", "Meter", "Setpoint")
Constants = Tuning | Foresight
CONSTANTS: Final[Mapping[str, type[Constants]]] = {FRIENDLY: Tuning, STRONGEST: Tuning, MPC: Foresight}
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
    tuning: Constants

    @classmethod
    def of(cls, name: str, constants: Mapping[str, float]) -> Self:
        """Of constants by name; the others keep their defaults. Raises ConfigError."""
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
        """Raises ConfigError for a baseline that is not there, or has other constants or none."""
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


def _constants(name: str) -> type[Constants]:
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
