"""One environment as rows of arrays: a group's actions in; observations, rewards and ends out, without dictionaries."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import DecideAt, Policies
from heron_env.envs.base import HeronEnv
from heron_env.envs.decisions import decides, shares
from heron_env.envs.hooks import Hooks
from heron_env.envs.simulation import StepOutcome
from heron_env.errors import ConfigError, UnknownAgent, did_you_mean

Floats = NDArray[np.float64]


class Lane:
    """`agents` (one group) of `env`. Equal to `env.step()` bit for bit; where nobody else decides and everyone acts in
    every step it drives the simulation directly, without making dictionaries.

    Args:
        others: policies of the other deciding agents, by id, group or "*".
        use_training_signal: rewards from `env.training_signal()`.
    """

    def __init__(self, env: HeronEnv, agents: list[str], others: Policies, use_training_signal: bool) -> None:
        self.env, self.agents = env, agents
        self.simulation = env.simulation
        self.ranks = [env.hierarchy.index[agent] for agent in agents]
        self.rows = list(zip(range(len(agents)), agents, self.ranks, strict=True))
        self.spec = self.simulation.specs[self.ranks[0]]
        self.others = _others(env, agents, others)
        self.width = env.observation_space(agents[0]).shape[0]
        self._read = self.simulation.plan.reader(self.ranks)
        own_signal = type(env).training_signal is not Hooks.training_signal
        self._signal = env.training_signal if use_training_signal and own_signal else None
        self._direct = self._is_direct()
        self._commanders = any(env.hierarchy.agents[rank].protocol is not None for rank in self.ranks)
        self._order = [rank for rank, spec in enumerate(self.simulation.specs) if spec.size]
        self._started = time.monotonic()
        self._live = [True] * len(agents)
        self._total, self._steps = 0.0, 0
        self._outcome: StepOutcome | None = None

    def _is_direct(self) -> bool:
        """May the simulation be driven without `step()`?"""
        env, kind = self.env, type(self.env)
        usual = kind.step is HeronEnv.step and kind.advance_step is HeronEnv.advance_step
        alone = set(env.possible_agents) == set(self.agents) and not any(agent.policy for agent in env.hierarchy.agents)
        every_step = all(t.phase == 0 and t.tick == env.dt_ns for t in (env.timings[rank] for rank in self.ranks))
        return usual and alone and every_step

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> list[dict[str, Any]]:
        """Start an episode; the infos of this group's agents."""
        _, infos = self.env.reset(seed=seed, options=options)
        self._live = [True] * len(self.agents)
        self._total, self._steps = 0.0, 0
        return [infos[agent] for agent in self.agents]

    def observe(self, out: Floats) -> None:
        """Write the vectors of all agents into `out` `[agents, width]`; ended ones keep showing where they ended."""
        values = self._read(self.simulation.truth, self.simulation.moment)
        out[:, : len(values) // len(self.ranks)] = values.reshape(len(self.ranks), -1)

    def step(self, values: Floats, rewards: Floats) -> bool:
        """One control step with `values` `[agents, size]`; writes `rewards` `[agents]`. Did any agent end?"""
        outcome = self._drive(values) if self._direct else self._step(values)
        self._outcome = outcome
        self._total += outcome.rewards[0]
        self._steps += 1
        if self._signal is not None:
            signal = self._signal()
            for row, agent, _ in self.rows:
                rewards[row] = signal[agent] if self._live[row] else 0.0
        else:
            for row, _, rank in self.rows:
                rewards[row] = outcome.rewards[rank]
        return outcome.over or any(outcome.terminated) or any(outcome.truncated) or not all(self._live)

    def close(self, seen: Floats, dones: NDArray[np.bool_], infos: list[dict[str, Any]]) -> None:
        """Fill in dones and infos after a step in which an agent ended or had ended, and reset where all is over.

        `seen` `[agents, width]` holds the observations, and then those to act on next.
        """
        outcome = self._outcome
        assert outcome is not None
        for row, _, rank in self.rows:
            if not self._live[row]:
                infos[row]["idle"] = True
                seen[row] = 0.0
            elif outcome.terminated[rank] or outcome.truncated[rank]:
                self._live[row], dones[row] = False, True
                infos[row]["terminal_observation"] = seen[row].astype(np.float32)
                infos[row]["TimeLimit.truncated"] = outcome.truncated[rank] and not outcome.terminated[rank]
                seen[row] = 0.0
        if not outcome.over:
            return
        seconds = round(time.monotonic() - self._started, 6)
        for row, info in enumerate(infos):
            if not dones[row]:
                info["terminal_observation"], info["TimeLimit.truncated"] = np.zeros(self.width, np.float32), False
            info["episode"] = {"r": self._total, "l": self._steps, "t": seconds}
        dones[:] = True
        self.reset(None, None)
        self.observe(seen)

    def mask(self, row: int) -> NDArray[np.int8]:
        """The choices that count in the coming step, int8 `[sum(ncats)]`."""
        rank = self.ranks[row]
        return self.simulation.specs[rank].mask(self.env.is_active(rank))

    def _drive(self, values: Floats) -> StepOutcome:
        """What `advance_step` does, with checked actions and no dictionaries of agents."""
        simulation = self.simulation
        if self._commanders:
            self._command(values)
        else:
            for row, _, rank in self.rows:
                if self._live[row]:
                    simulation.apply(rank, values[row])
        for number in range(simulation.substeps):
            simulation.substep(number)
        outcome = simulation.close_step()
        env = self.env
        env.proxy.time = outcome.time
        if any(outcome.terminated) or any(outcome.truncated):
            env.agents = [agent for agent in env.agents if simulation.alive[env.hierarchy.index[agent]]]
        return outcome

    def _command(self, values: Floats) -> None:
        """Hand the coordinators' actions down and apply all top-down."""
        simulation = self.simulation
        given: dict[int, Floats] = {rank: values[row] for row, _, rank in self.rows}
        for rank in self._order:
            if rank in given and simulation.alive[rank]:
                given.update(shares(simulation, rank, given[rank]))
                simulation.apply(rank, given[rank])

    def _step(self, values: Floats) -> StepOutcome:
        """Through `advance_step`, with the other agents' policies."""
        env, simulation = self.env, self.simulation
        actions: dict[str, Any] = {agent: values[row] for row, agent, _ in self.rows if self._live[row]}
        for rank, decide in self.others.items():
            if simulation.alive[rank]:
                vector = simulation.plan.vector(rank, simulation.truth, simulation.moment)
                actions[env.hierarchy.ids[rank]] = decide(vector, simulation.step_index)
        outcome, _ = env.advance_step(actions)
        env.agents = [agent for agent in env.agents if simulation.alive[env.hierarchy.index[agent]]]
        return outcome


def _others(env: HeronEnv, agents: list[str], policies: Policies) -> dict[int, DecideAt]:
    """The functions that decide for the other deciding agents, by rank. Raises UnknownAgent, ConfigError."""
    named = {"*": env.possible_agents, **env.group_map, **{agent: [agent] for agent in env.possible_agents}}
    found: dict[int, DecideAt] = {}
    for key in policies:
        if key not in named:
            known = [name for name in named if name != "*"]
            raise UnknownAgent(
                f"others: {key!r} decides nothing here; there are {known[:12]}.{did_you_mean(key, known)}"
            )
    for key in (name for name in named if name in policies):  # the more special wins
        for agent in named[key]:
            if agent not in agents:
                rank = env.hierarchy.index[agent]
                found[rank] = decides(env, rank, policies[key])
            elif key != "*":
                raise ConfigError(f"others[{key!r}]: {agent!r} is in the group that is trained; leave it out")
    return found
