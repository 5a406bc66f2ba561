"""Stable-Baselines3's form of the event clock beside the batch that it stands on and copies behind a network; CPU time.

Rows: observations that were answered; idle slots are none. Everything that is returned is made and read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium import spaces

from benchmarks.case import Case, Comparison, Role, Setting
from benchmarks.event_batch import NETWORKS, OPTIONS
from heron_env import EventBatchEnv, ScheduleConfig, make, under_network

LANES, COPIES, ID = 256, 4, "heron/EnergyManagement-v1"
SLOTS, BATCH = "HeronVecEnv, event clock", "event batch"
BARE, BEHIND = "under_network", "under_network in DummyVecEnv"
DELAYS: Final = {"actions": NETWORKS["jitter"], "messages": replace(NETWORKS["jitter"], act_delay=0.0)}
"""Messages and actions are late: two slots in three have a row at an answer; messages alone: one in six."""


def comparisons() -> list[Comparison]:
    """By what is late, with the environment's training signal and without."""
    return [
        Comparison(
            f"sb3event-{late}-{signal}", f"Slots of EnergyManagement-v1, {LANES} environments, {late} late, {signal}",
            "rows per CPU s", _builder(DELAYS[late], signal=signal == "signal"), quick=(late, signal) == pair,
        )
        for pair in [("actions", "signal")] for late in DELAYS for signal in ("signal", "rewards")
    ]  # fmt: skip


def _builder(schedule: ScheduleConfig, *, signal: bool) -> Callable[[Setting], Sequence[Case]]:
    return lambda setting: [
        Case(SLOTS, _timed(slots(schedule, signal=signal))),
        Case(BATCH, _timed(batch(schedule)), Role.CEILING),
        Case(BARE, _timed(copies(schedule)), Role.FLOOR),
        Case(BEHIND, _timed(vectorised(schedule)), Role.FLOOR),
    ]


def _timed(step: Callable[[], int]) -> Callable[[float], float]:
    """Rows per CPU second; a step says how many it answered."""

    def run(seconds: float) -> float:
        rows, began, spent = 0, time.process_time(), 0.0
        while spent < seconds:
            rows += step()
            spent = time.process_time() - began
        return rows / spent

    return run


def slots(schedule: ScheduleConfig, *, signal: bool) -> Callable[[], int]:
    """A step of Stable-Baselines3's form."""
    from heron_env.adapters import HeronVecEnv

    env: Any = HeronVecEnv(
        ID, LANES, clock="event", schedule=schedule, threads=1, use_training_signal=signal, **OPTIONS["dt"]
    )
    env.reset()
    still = np.zeros((env.num_envs, 1), dtype=np.float32)

    def step() -> int:
        rows = int(env.waiting.slots.sum())
        observations, rewards, dones, infos = env.step(still)
        observations.sum(), rewards.sum(), dones.sum(), len(infos)  # which makes them
        return rows

    return step


def batch(schedule: ScheduleConfig) -> Callable[[], int]:
    """An answer of the batch within it, whose rows have the training signal, too."""
    env = EventBatchEnv(ID, LANES, schedule=schedule, threads=1, **OPTIONS["dt"])
    rows = env.begin()

    def step() -> int:
        nonlocal rows
        number = len(rows)
        rows = env.answer(np.zeros((number, 1)))
        rows.obs.sum(), rows.reward.sum(), rows.ended.obs.sum()
        return number

    return step


def copies(schedule: ScheduleConfig) -> Callable[[], int]:
    """A step of copies behind the network, bare."""
    envs = [under_network(make(ID, **OPTIONS["dt"]), schedule, dt=60.0) for _ in range(COPIES)]
    still = np.zeros(1, dtype=np.float32)
    infos: list[Any] = [env.reset(seed=number)[1] for number, env in enumerate(envs)]

    def step() -> int:
        rows = 0
        for number, env in enumerate(envs):
            rows += sum(bool(info["is_active"]) for info in infos[number].values())
            infos[number] = env.step(dict.fromkeys(env.agents, still))[4]
            if not env.agents:
                infos[number] = env.reset()[1]
        return rows

    return step


def vectorised(schedule: ScheduleConfig) -> Callable[[], int]:
    """The same in Stable-Baselines3's own vectoriser, the agents of a copy as one."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    venv = DummyVecEnv([lambda: Team(under_network(make(ID, **OPTIONS["dt"]), schedule, dt=60.0))] * COPIES)
    venv.reset()
    width = int(np.prod(venv.action_space.shape or ()))
    still, active = np.zeros((COPIES, width), dtype=np.float32), [0] * COPIES

    def step() -> int:
        nonlocal active
        rows, infos = sum(active), venv.step(still)[3]
        active = [info["active"] for info in infos]
        return rows

    return step


class Team(gymnasium.Env[Any, Any]):
    """The agents of a ParallelEnv as one: observations and actions side by side, the mean reward."""

    def __init__(self, env: Any) -> None:
        self.env, agents = env, env.possible_agents
        see, act = ([each(agent) for agent in agents] for each in (env.observation_space, env.action_space))
        self.observation_space, self.action_space = (
            spaces.Box(np.concatenate([box.low for box in boxes]), np.concatenate([box.high for box in boxes]))
            for boxes in (see, act)
        )

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """As of any."""
        seen, infos = self.env.reset(seed=seed)
        return np.concatenate(list(seen.values())), self._info(infos)

    def step(self, action: Any) -> Any:
        """As of any."""
        given = dict(zip(self.env.possible_agents, action[:, None], strict=True))
        seen, rewards, terminated, truncated, infos = self.env.step(given)
        ends = (any(end.values()) for end in (terminated, truncated))
        return np.concatenate(list(seen.values())), float(np.mean(list(rewards.values()))), *ends, self._info(infos)

    def _info(self, infos: Any) -> dict[str, Any]:
        return {"active": sum(bool(info["is_active"]) for info in infos.values()), **infos}
