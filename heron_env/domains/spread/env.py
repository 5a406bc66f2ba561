"""The environment: agents spread out over as many landmarks, without bumping into each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.system import SystemAgent
from heron_env.core.world import Columns, World
from heron_env.domains.spread.agents import Chooser, Pusher
from heron_env.domains.spread.baselines import baselines
from heron_env.domains.spread.features import FAR, Team, landmarks, surroundings
from heron_env.domains.spread.physics import STEP, TOUCH, Floats, lengths, moved, repulsion, ways
from heron_env.envs.base import HeronEnv
from heron_env.envs.hooks import Benchmark, TrainingDefaults
from heron_env.errors import ConfigError

COVERED = 0.1
"""A landmark with an agent nearer than this is covered."""
RETURN_UNIT = "sum of rewards, all agents"


class SpreadEnv(HeronEnv):
    """MPE's simple_spread. Agents only write forces; `advance` moves them and tells each what is around it.

    Args:
        num_agents: agent_0 ... agent_{n-1}, and as many landmarks.
        continuous: continuous actions, else discrete ones.
        local_ratio: weight of an agent's own collisions in its reward; the rest is the team's.
        options: as for HeronEnv.
    """

    metadata = {**HeronEnv.metadata, "name": "heron/Spread-v0"}
    dt = STEP

    def __init__(self, num_agents: int, *, continuous: bool, local_ratio: float, **options: Any) -> None:
        self.kind, around = Pusher if continuous else Chooser, surroundings(num_agents)
        self.global_features = (landmarks(num_agents), Team)
        self._size, self._local_ratio = num_agents, local_ratio
        self._given: dict[str, Floats] = {}
        every = np.arange(num_agents)
        others = np.array([np.delete(every, i) for i in every], dtype=np.int64)
        self._others = (..., every[:, None], others)
        agents = (self.kind(f"agent_{i}", around()) for i in every)
        super().__init__(SystemAgent("system_agent", *agents), **options)

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
        """As in HeronEnv; `options={"agents": ..., "landmarks": ...}`, each `[n, 2]`, sets initial positions.

        Raises ConfigError for anything else.
        """
        if not isinstance(options, Mapping | None):
            raise ConfigError(
                f"reset(options={options!r}): must be a mapping; write {{'agents': ..., 'landmarks': ...}}"
            )
        asked = options or {}
        self._given = {name: self._positions(name, asked[name]) for name in ("agents", "landmarks") if name in asked}
        try:
            return super().reset(seed=seed, options=options)
        finally:
            self._given = {}

    def _positions(self, name: str, given: Any) -> Floats:
        """`given` as `[2, n]`: all x, all y."""
        where, needed = f"reset(options={{{name!r}: ...}})", f"give x and y of each, numbers of shape {(self._size, 2)}"
        try:
            positions = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{where}: {given!r} is no array of numbers; {needed}") from error
        if positions.shape != (self._size, 2):
            raise ConfigError(f"{where}: the shape is {positions.shape}; {needed}")
        if not (np.abs(positions) <= FAR).all():
            raise ConfigError(f"{where}: {positions.tolist()} lies outside [-{FAR}, {FAR}]; place them within")
        return positions.T

    def begin(self, world: World) -> None:
        """Everything lies somewhere in the square [-1, 1] x [-1, 1]; nobody moves."""
        position, marks = world[self.kind].Position, world.Landmarks
        points = self._start(world, "agents")
        position.x, position.y = points
        marks.x[..., 0, :], marks.y[..., 0, :] = self._start(world, "landmarks")
        world.Team.local_ratio = self._local_ratio
        self._look(world, points)

    def _start(self, world: World, name: str) -> Floats:
        """Initial positions `[2, ..., n]`: given, else drawn."""
        if name in self._given:
            return self._given[name]
        return np.moveaxis(2.0 * world.draw(name, (2, self._size)) - 1.0, -2, 0)

    def advance(self, world: World, dt: float) -> None:
        """One substep for all agents at once, then look around."""
        discs = world[self.kind]
        points, velocity, force = _both(discs.Position), _both(discs.Velocity), _both(discs.Force)
        points, velocity = moved(points, velocity, force + repulsion(points), dt)
        discs.Position.x, discs.Position.y = points
        discs.Velocity.x, discs.Velocity.y = velocity
        self._look(world, points)

    def _look(self, world: World, points: Floats) -> None:
        """Write what agents at `points` see around themselves, whom they touch, and how near landmarks the team is."""
        discs, team = world[self.kind], world.Team
        to_landmarks = ways(points, _both(world.Landmarks)[..., 0, :])
        _show(discs.Surroundings.landmarks, to_landmarks)
        nearest = lengths(to_landmarks).min(axis=-2)
        team.distance[..., 0] = nearest.sum(axis=-1)
        team.covered[..., 0] = (nearest < COVERED).sum(axis=-1)
        if self._size > 1:
            to_others = ways(points, points)[self._others]
            _show(discs.Surroundings.others, to_others)
            discs.Contact.others[...] = (lengths(to_others) < TOUCH).sum(axis=-1)

    def finish(self, world: World) -> None:
        """Add the step to the episode's sums."""
        team = world.Team
        team.distance_sum += team.distance
        team.contact_sum[..., 0] += world[self.kind].Contact.others.sum(axis=-1)

    def kpis(self) -> dict[str, float]:
        """The episode so far.

        distance: from the landmarks to their nearest agents, summed over landmarks, mean of the steps. contacts: of
        all agents with others. covered: landmarks covered now. mpe_return: the episode's return as the original MPE
        counts it: distance and contacts of all agents summed, every agent touching itself in every step.
        """
        team, steps = self.world.Team, self.simulation.step_index
        distance, contacts = float(team.distance_sum[0]), float(team.contact_sum[0])
        return {
            "distance": distance / max(steps, 1),
            "contacts": contacts,
            "covered": float(team.covered[0]),
            "mpe_return": -self._size * (distance + steps) - contacts,
        }

    def benchmark(self) -> Benchmark:
        """Two rules that drive to landmarks."""
        return Benchmark(baselines=lambda seed: baselines(self), strongest="assigned landmark", unit=RETURN_UNIT)

    def training_defaults(self) -> TrainingDefaults:
        """The policy decides alone."""
        return TrainingDefaults()


def _both(columns: Columns) -> Floats:
    """x and y of a feature, `[2, ...]`."""
    return np.array((columns.x, columns.y))


def _show(seen: Floats, way: Floats) -> None:
    """Write ways `[2, ..., n, m]` as the agents see them: `[..., n, 2m]`, x and y in turn."""
    seen[..., 0::2], seen[..., 1::2] = way


def spread(
    num_agents: int = 3,
    local_ratio: float = 0.5,
    continuous: bool = True,
    max_steps: int | None = 25,
    **options: Any,
) -> SpreadEnv:
    """MPE's simple_spread: agents cover as many landmarks without bumping into each other.

    Args:
        num_agents: agents, and landmarks.
        local_ratio: weight of an agent's own collisions in its reward, in [0, 1]; the rest is the team's.
        continuous: five pushes in [0, 1] (stay, left, right, down, up); False: one of five directions.
        max_steps: steps an episode.
        options: of HeronEnv.

    Raises ConfigError naming the argument and its value.
    """
    if isinstance(num_agents, bool) or not isinstance(num_agents, int) or num_agents < 1:
        raise ConfigError(f"spread(num_agents={num_agents!r}): must be a whole number >= 1")
    if not isinstance(local_ratio, int | float) or not 0.0 <= local_ratio <= 1.0:
        raise ConfigError(f"spread(local_ratio={local_ratio!r}): must be a number in [0, 1]")
    if not isinstance(continuous, bool):
        raise ConfigError(f"spread(continuous={continuous!r}): must be True or False")
    return SpreadEnv(num_agents, continuous=continuous, local_ratio=local_ratio, max_steps=max_steps, **options)
