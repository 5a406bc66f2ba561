"""How a simulation moves in plain Python: each agent's rules, or methods on `self`, one call after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heron_env.engine.python_rules import PythonRules
from heron_env.envs.mechanics import PlainOutcome

if TYPE_CHECKING:
    from heron_env.envs.simulation import Simulation

Floats = NDArray[np.float64]


class PlainMechanics(PythonRules):
    """Runs every hierarchy; the only way for agents in the imperative style. See Mechanics for the methods."""

    def __init__(self, simulation: Simulation, truth: Floats) -> None:
        s = self.simulation = simulation
        super().__init__(s, truth)
        self.sources, self.masked = [0] * len(s.hierarchy), [False] * len(s.hierarchy)
        self.decided: Mapping[int, Floats] = {}

    def restart(self, seed: int, episode: int, initial: Floats) -> None:
        """Initial values, no-op actions."""
        self.truth[:] = initial
        self.masked = [False] * len(self.masked)
        for agent, vector, spec in zip(
            self.simulation.hierarchy.agents, self.vectors, self.simulation.specs, strict=True
        ):
            agent.current_action._vector[:] = spec.noop
            vector._values = spec.noop.tolist()

    def apply(self, rank: int, values: Floats) -> Floats:
        """Make `values` the agent's current action and let it act on the truth."""
        values, self.masked[rank] = self.act(rank, values, self.simulation.time)
        return values

    def fall(self, sources: list[int], decided: Mapping[int, Floats]) -> None:
        """Decisions that take effect in a synchronous step, by rank, top-down; and the code of each agent's."""
        self.sources, self.decided = sources, decided
        self.masked = [False] * len(self.masked)
        self.decided = {rank: self.apply(rank, values) for rank, values in decided.items()}

    def advance(self, number: int) -> None:
        """The agents' own physics, bottom-up; what counts per step starts at 0."""
        layout, (dt, time) = self.simulation.layout, self.simulation.substep_times(number)
        if number == 0 and len(layout.per_step) and not (self.simulation.piece and self.simulation.piece[0]):
            self.truth[layout.per_step] = 0.0
        self.move(dt, time)

    def close(self, members: list[bool]) -> tuple[PlainOutcome, list[bool]]:
        """The step's outcome, and who is alive after it."""
        time = self.simulation.time
        rewards = self.rewards(members, time)
        terminated, truncated, alive, over = self._ends(members, time)
        infos = self.infos(time)
        return PlainOutcome(self.simulation.possible, time, over, rewards, terminated, truncated, infos), alive

    def info(self, rank: int) -> dict[str, float]:
        """The agent's own info numbers, from the truth."""
        info = self.bound[rank].info
        return {} if info is None else info(self.simulation.dt, self.simulation.time)

    def decisions(self) -> list[int]:
        """Codes of the last decisions of the agents that decide."""
        return [self.sources[rank] for rank in self.simulation.possible]

    def actions(self) -> list[list[float]]:
        """Actions in force, by rank."""
        return [list(vector._values) for vector in self.vectors]

    def restore(self, actions: Sequence[Sequence[float]], alive: Sequence[bool], over: bool) -> None:
        """Take over a running episode; the truth is written already."""
        for agent, vector, values in zip(self.simulation.hierarchy.agents, self.vectors, actions, strict=True):
            vector._values = list(values)
            agent.current_action._vector[:] = values

    def _ends(self, alive: list[bool], time: float) -> tuple[list[bool], list[bool], list[bool], bool]:
        """Who ends at this boundary; agents end for good, and with the last (or first) possible one the episode."""
        n, possible, termination = len(alive), self.simulation.possible, self.simulation.termination
        terminated, truncated = self.ends(alive, time)
        if termination.mode == "any":
            if any(terminated[r] for r in possible):
                terminated = list(alive)
            elif any(truncated[r] for r in possible):
                truncated = list(alive)
        if termination.reached(self.simulation.step_index, time):
            truncated = list(alive)
        remaining = [alive[r] and not (terminated[r] or truncated[r]) for r in range(n)]
        if any(remaining[r] for r in possible):
            return terminated, truncated, remaining, False
        for rank in (r for r in range(n) if remaining[r]):
            terminated[rank], truncated[rank] = not any(truncated), any(truncated)
        return terminated, truncated, [False] * n, True
