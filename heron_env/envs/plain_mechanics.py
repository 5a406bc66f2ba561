"""How a simulation moves in plain Python: each agent's rules, or methods on `self`, one call after another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import Vector
from heron_env.core.masking import Flags, enforced
from heron_env.core.rule import one_by_one
from heron_env.engine.binding import Binder
from heron_env.envs.bound import bind_agent
from heron_env.envs.mechanics import PlainOutcome
from heron_env.errors import RuleError

if TYPE_CHECKING:
    from heron_env.envs.simulation import Simulation

Floats = NDArray[np.float64]
CHILDLESS: Floats = np.zeros(0)
"""Rewards of no children."""


class PlainMechanics:
    """Runs every hierarchy; the only way for agents in the imperative style. See Mechanics for the methods."""

    def __init__(self, simulation: Simulation) -> None:
        s = self.simulation = simulation
        self.truth: Floats = np.zeros(s.layout.size)
        self.sources = [0] * len(s.hierarchy)
        self.decided: Mapping[int, Floats] = {}
        self.vectors = [Vector(spec.noop.tolist()) for spec in s.specs]
        binder = Binder(s.hierarchy, s.layout, s.global_features, self.truth, self.vectors)
        self.masked = [False] * len(s.hierarchy)
        self.bound = [bind_agent(binder, rank, s.plan, self.truth, s.specs[rank], s.dt) for rank in range(len(s.specs))]
        self.bottom_up = list(reversed(range(len(s.hierarchy))))
        self.collect()

    def collect(self) -> None:
        """Gather what each substep calls; again if `bound` has changed."""
        self._advances = [b.advance for r in self.bottom_up if (b := self.bound[r]).advance is not None]

    def restart(self, seed: int, episode: int, initial: Floats) -> None:
        """Initial values, no-op actions."""
        self.truth[:] = initial
        self.masked = [False] * len(self.masked)
        for agent, vector, spec in zip(
            self.simulation.hierarchy.agents, self.vectors, self.simulation.specs, strict=True
        ):
            agent.current_action._vector[:] = spec.noop
            vector._values = spec.noop.tolist()

    def offer(self, rank: int, own: NDArray[Any]) -> Flags:
        """The flat mask of an agent that has one, on its own observed columns."""
        mask = self.bound[rank].mask
        assert mask is not None
        return mask(own)

    def apply(self, rank: int, values: Floats) -> Floats:
        """Make `values` the agent's current action and let it act on the truth."""
        agent, bound = self.simulation.hierarchy.agents[rank], self.bound[rank]
        if bound.mask is not None:
            view = self.simulation.plan.views[rank]
            flags = bound.mask(self.truth[view.columns[: view.own]].astype(np.float32))
            values, self.masked[rank] = enforced(self.simulation.specs[rank], values, flags)
        agent.current_action._vector[:] = values
        self.vectors[rank]._values = values.tolist()
        for prepare in bound.before_apply:
            prepare(agent.current_action)
        if bound.apply is not None:
            bound.apply(self.simulation.dt, self.simulation.time)
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
        for advance in self._advances:
            advance(dt, time)

    def close(self, members: list[bool]) -> tuple[PlainOutcome, list[bool]]:
        """The step's outcome, and who is alive after it."""
        dt, time = self.simulation.dt, self.simulation.time
        rewards = self._rewards(members, dt, time)
        terminated, truncated, alive, over = self._ends(members, dt, time)
        infos = [{} if bound.info is None else bound.info(dt, time) for bound in self.bound]
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

    def _rewards(self, alive: list[bool], dt: float, time: float) -> list[float]:
        rewards = [0.0] * len(alive)
        for rank in self.bottom_up:
            if not alive[rank]:
                continue
            children = self.simulation.hierarchy.children[rank]
            reward = self.bound[rank].reward
            if reward is not None:
                value = reward(dt, time, np.array([rewards[child] for child in children]) if children else CHILDLESS)
                rewards[rank] = self._number(value, rank)
            elif children:
                rewards[rank] = one_by_one(rewards[child] for child in children)
        return rewards

    def _number(self, value: Any, rank: int) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = np.nan
        if not math.isfinite(number):
            agent, time = self.simulation.hierarchy.agents[rank], self.simulation.time
            raise RuleError(f"{agent!r}.compute_local_reward returned {value!r} at t={time} s; a number is needed")
        return number

    def _ends(self, alive: list[bool], dt: float, time: float) -> tuple[list[bool], list[bool], list[bool], bool]:
        """Who ends at this boundary; agents end for good, and with the last (or first) possible one the episode."""
        n, possible, termination = len(alive), self.simulation.possible, self.simulation.termination
        terminated = [alive[r] and (b := self.bound[r].terminated) is not None and bool(b(dt, time)) for r in range(n)]
        truncated = [alive[r] and (b := self.bound[r].truncated) is not None and bool(b(dt, time)) for r in range(n)]
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
