"""Adapters beside the BatchEnv that they stand on: one thread, CPU time, every array that is returned is read."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any, Final

import numpy as np

from benchmarks.case import EPISODE, Case, Comparison, Setting, timed

LANES: Final = (1, 1024, 16384)
AGENTS: Final = 3
BATCH, VECTOR, SLOTS = "BatchEnv", "HeronVectorEnv", "HeronVecEnv"
SPREAD: Final = {
    "env": "heron/Spread-v0", "num_agents": AGENTS, "continuous": False, "max_steps": EPISODE, "threads": 1,
}  # fmt: skip


def comparisons() -> list[Comparison]:
    """One size each."""
    return [
        Comparison(
            f"adapters-{lanes}", f"Adapters, Spread, {AGENTS} agents, {lanes:,} environment{'s' * (lanes > 1)}",
            "env-steps/CPU-s", _builder(lanes), quick=lanes < 16384,
        )
        for lanes in LANES
    ]  # fmt: skip


def _builder(lanes: int) -> Callable[[Setting], Sequence[Case]]:
    return lambda setting: [
        Case(name, timed(make(lanes), EPISODE * lanes, time.process_time)) for name, make in MAKERS.items()
    ]


def _episode(step: Callable[[Any], Sequence[Any]], bank: Sequence[Any]) -> Callable[[], None]:
    """As many steps as an episode has, each with every array read."""
    actions = cycle(bank)

    def work() -> None:
        for _ in range(EPISODE):
            for array in step(next(actions)):
                array.sum()

    return work


def _bank(*shape: int) -> list[Any]:
    draw = np.random.default_rng(0)
    return [draw.integers(0, 5, shape) for _ in range(8)]


def batch(lanes: int) -> Callable[[], None]:
    """An episode of the BatchEnv."""
    from heron_env import BatchEnv

    options: dict[str, Any] = SPREAD
    env = BatchEnv(num_envs=lanes, **options)
    env.reset()

    def step(actions: Any) -> list[Any]:
        return [part["agent"] for part in env.step({"agent": actions})[:4]]

    return _episode(step, _bank(lanes, AGENTS))


def vector(lanes: int) -> Callable[[], None]:
    """An episode of Gymnasium's form."""
    from heron_env.adapters import HeronVectorEnv

    options: dict[str, Any] = SPREAD
    env = HeronVectorEnv(num_envs=lanes, **options)
    env.reset(seed=0)
    return _episode(lambda actions: env.step(actions)[:4], _bank(lanes, AGENTS))


def slots(lanes: int) -> Callable[[], None]:
    """An episode of Stable-Baselines3's form."""
    from heron_env.adapters import HeronVecEnv

    options: dict[str, Any] = {**SPREAD, "make_env": SPREAD["env"]}
    del options["env"]
    env = HeronVecEnv(num_envs=lanes, **options)
    env.reset()

    def step(actions: Any) -> Sequence[Any]:
        env.step_async(actions)
        return env.step_wait()[:3]

    return _episode(step, _bank(lanes * AGENTS))


MAKERS: Final = {BATCH: batch, VECTOR: vector, SLOTS: slots}
