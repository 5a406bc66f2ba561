"""Footage: what is kept of an episode so that it can be watched: the truth at many moments, messages, observations."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from heron_env.core.world import World
from heron_env.pictures.frames import ObservedWorld

Floats = NDArray[np.float64]


class ObservationTaken(NamedTuple):
    """An observation as it came to its agent: when, s, values `[columns]`, as-of times, s, `[sources]` or of all.

    What its agent sees as relative is in it as it is.
    """

    time: float
    values: NDArray[Any]
    as_of: Floats | float


class MessageFlight(NamedTuple):
    """A copy of a message: ranks of its ends (-1: the proxy), and times, s.

    `sent`: when it was ready to leave; `arrives`: nan, it does not; `left`: when it left, or was given up; until then
    it waits at its sender, with inf to the end.
    """

    sender: int
    receiver: int
    sent: float
    arrives: float
    left: float


@dataclass(eq=False)
class Footage:
    """One episode's.

    Attributes:
        env: a HeronEnv.
        columns: of the truth that each deciding agent observes, int64 `[columns]`.
        times: s, of `truths`, float64 `[columns]` each.
        observations: by agent, in the order in which they came.
        flights: of messages, those of the physics cycle left out; none in the synchronous clock.
        title: id of the environment, and its network; "": the name of its class.
        hub: what all messages go through.
        earned: (time, s, reward) of the team.
    """

    env: Any
    columns: dict[str, NDArray[np.int64]]
    times: list[float] = field(default_factory=list)
    truths: list[Floats] = field(default_factory=list)
    observations: dict[str, list[ObservationTaken]] = field(default_factory=dict)
    flights: list[MessageFlight] = field(default_factory=list)
    title: str = ""
    hub: str = "proxy"
    earned: list[tuple[float, float]] = field(default_factory=list)

    @classmethod
    def of(cls, env: Any, deciding: Iterable[int]) -> Self:
        """Nothing filmed yet, of agents that decide, by rank."""
        views = env.simulation.model.plan.views
        return cls(env, {env.hierarchy.ids[rank]: views[rank].columns for rank in sorted(deciding)})

    def look(self, time: float) -> None:
        """Keep the truth of now."""
        self.times.append(time)
        self.truths.append(self.env.simulation.truth.copy())

    def take(self, agent: str, observation: ObservationTaken) -> None:
        """Keep what an agent sees."""
        self.observations.setdefault(agent, []).append(observation)

    def truth(self, time: float) -> Floats:
        """The last one kept by then, `[columns]`."""
        return self.truths[max(bisect_right(self.times, time) - 1, 0)]

    def paid(self, rewards: Iterable[Iterable[tuple[float, float]]]) -> Self:
        """Keep (time, reward) of the team: of the root, the first agent, or in a black box of all."""
        self.earned = [reward for one in [*rewards][: 1 if self.hub == "proxy" else None] for reward in one]
        return self

    def earned_by(self, time: float) -> float:
        """Return of the team until then."""
        return sum(reward for at, reward in self.earned if at <= time + 1e-9)

    def course(self, agent: str, times: Iterable[float]) -> tuple[Floats, Floats, Floats]:
        """At each time the truth and what an agent knew, `[times, columns]`, and the greatest age of that, s."""
        moments = [(self.truth(time), self.known(agent, time)) for time in times]
        ages = np.array([max(known.ages.values(), default=0.0) for _, known in moments])
        return np.array([truth for truth, _ in moments]), np.array([known.world.rows[0] for _, known in moments]), ages

    def known(self, agent: str, time: float) -> ObservedWorld:
        """What an agent knew then."""
        layout, columns = self.env.simulation.model.layout, self.columns[agent]
        array = np.full(layout.size, np.nan)
        came = self.observations.get(agent, [])
        place = bisect_right(came, time, key=lambda taken: taken.time) - 1
        world = World(layout, array)
        world.time = time
        if place < 0:
            return ObservedWorld(agent, {}, {}, world)
        taken = came[place]
        array[columns] = taken.values[: len(columns)]
        names = [layout.full_names[i] for i in columns.tolist()]
        owners = dict.fromkeys(layout.owner_of[columns].tolist())
        ages = np.broadcast_to(np.maximum(time - taken.as_of, 0.0), len(owners)).tolist()
        return ObservedWorld(
            agent,
            dict(zip(names, array[columns].tolist(), strict=True)),
            {layout.rows[row].owner_id: age for row, age in zip(owners, ages, strict=True)},
            world,
        )
