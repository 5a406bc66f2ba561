"""Spread with three agents that see all around them by sensors, one for each entity, each with a link of its own.

As in RDC's code: an agent's own velocity and place are never late; where a landmark or another agent is, seen from
where the agent was when it was measured, is as old as that sensor's link makes it. Each sensor reports in every step,
and an agent knows the newest report of each. A condition that delays the group "sensor" delays nothing else.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env import (
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Policy,
    ScheduleConfig,
    SystemAgent,
    World,
    load_policy,
    quantity,
    rule,
)
from heron_env.core.policy import Decide
from heron_env.lab import PolicySpec, TrainedRun
from heron_env.lab.benchmark import by_agent
from heron_env.lab.remembering import Remembering
from heron_env.lab.trained import decide_batch
from heron_env.worlds.spread import Chooser, SpreadEnv
from heron_env.worlds.spread.discs import FAR, STEP, WRITTEN, Disc, Surroundings, Team, landmarks

AGENTS: Final = 3
ENTITIES: Final = 2 * AGENTS - 1
"""Around each agent: the landmarks, then the others."""
MOST_STEPS: Final = 25


class Bearing(FeatureProvider):
    """Where an entity is, seen from the agent."""

    x: float = quantity(low=-2.0 * FAR, high=2.0 * FAR)
    y: float = quantity(low=-2.0 * FAR, high=2.0 * FAR)


class Sensor(FieldAgent):
    """Measures where one entity is, for one agent."""

    features = (Bearing,)


class Truth(Surroundings):
    """What the sensors measure; its agent does not see it."""

    feature_name = "Surroundings"
    landmarks: np.ndarray = quantity(shape=(2 * AGENTS,), low=-2.0 * FAR, high=2.0 * FAR, observed=False)
    others: np.ndarray = quantity(shape=(2 * AGENTS - 2,), low=-2.0 * FAR, high=2.0 * FAR, observed=False)


def measure(around: Any, bearing: Any) -> None:
    """What all sensors see now."""
    for i in range(AGENTS):
        for k in range(AGENTS):
            bearing.x[i * ENTITIES + k] = around.landmarks[i, 2 * k]
            bearing.y[i * ENTITIES + k] = around.landmarks[i, 2 * k + 1]
        for k in range(AGENTS - 1):
            bearing.x[i * ENTITIES + AGENTS + k] = around.others[i, 2 * k]
            bearing.y[i * ENTITIES + AGENTS + k] = around.others[i, 2 * k + 1]


class SensedSpread(SpreadEnv):
    """Discrete actions, 25 steps; observations are velocity, place, landmarks and others `[14]`, as in Spread."""

    def __init__(self, **options: Any) -> None:
        self.kind, self._size, self._given = Chooser, AGENTS, {}
        self.global_features = (landmarks(AGENTS), Team)
        agents = [Chooser(f"agent_{i}", Truth()) for i in range(AGENTS)]
        sensors = [Sensor(f"sensor_{number}") for number in range(AGENTS * ENTITIES)]
        rows = [(f"agent_{n // ENTITIES}", sensor.agent_id, "insider", 0.0) for n, sensor in enumerate(sensors)]
        late = {"sensor": ScheduleConfig(reorder=True)}
        settings = {"max_steps": MOST_STEPS, "observability": {"matrix": rows}, "schedule": late, **options}
        HeronEnv.__init__(self, SystemAgent("system_agent", *agents, *sensors), **settings)

    def start_episode(self, seed: int | None) -> None:
        """As in Spread, with positions that were given; seen by the sensors."""
        super().start_episode(seed)
        measure(self.world[Disc].Surroundings, self.world[Sensor].Bearing)

    @staticmethod
    @rule
    def begin(world: World) -> None:
        """As in Spread, seen by the sensors."""
        begin(world)
        measure(world[Disc].Surroundings, world[Sensor].Bearing)

    @staticmethod
    @rule(writes=(*WRITTEN, Bearing.x, Bearing.y))
    def advance(world: World, dt: float) -> None:
        """As in Spread, seen by the sensors."""
        advance(world, dt)
        measure(world[Disc].Surroundings, world[Sensor].Bearing)


begin, advance = SpreadEnv.begin, SpreadEnv.advance


class Reckoned(Remembering):
    """Shows a policy where things are by now if they stand still: what was seen then, less the agent's own way since.

    Args:
        policy: decides on an observation without ages.
    """

    def __init__(self, policy: Policy | Decide) -> None:
        self.policy = policy
        self._places = np.zeros((0, MOST_STEPS, 2))

    def forward_rows(
        self, vectors: Any, who: Any, first: Any, masks: Any = None, draws: Any = None
    ) -> NDArray[np.float64]:
        """As any that remembers."""
        if missing := max(0, int(who.max(initial=-1)) + 1 - len(self._places)):
            self._places = np.pad(self._places, ((0, missing), (0, 0), (0, 0)))
        here = vectors[:, None, 2:4]
        places = np.concatenate([self._places[who, 1:], here], axis=1)
        self._places[who] = places = np.where(first[:, None, None], here, places)
        ages = np.rint(vectors[:, -ENTITIES:] / STEP).astype(np.int64)
        seen = vectors[:, : -ENTITIES - 1].copy()
        seen[:, 4:] += (places[np.arange(len(seen))[:, None], -1 - ages] - here).reshape(len(seen), -1)
        return decide_batch(self.policy, seen, masks, draws)


@dataclass(frozen=True)
class Reckoning:
    """`Reckoned` around the policies of `of`, which were made without ages; for an environment with them."""

    of: PolicySpec

    def build(self, env: HeronEnv, seed: int) -> dict[str, Reckoned]:
        """One for each agent."""
        policies = loaded(self.of.folder) if isinstance(self.of, TrainedRun) else self.of.build(env, seed)
        return {agent: Reckoned(policy) for agent, policy in by_agent(policies, env).items()}


loaded = cache(load_policy)
