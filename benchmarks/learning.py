"""Learning: our own PPO on simple_spread, and with and without a network."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.case import Case, Comparison, Role, Setting
from heron_env import ScheduleConfig

EPOCHS: Final = 4
LANES: Final = 64
NETWORKED: Final = {900: 64, 60: 256}
"""Lanes by control step in s."""
UNDER, WITHOUT = "under the network", "synchronous"
JITTERED: Final = ScheduleConfig(msg_delay=3.0, act_delay=2.0, jitter_type="uniform", jitter_ratio=0.3, loss=0.05)


def comparisons() -> list[Comparison]:
    """On Spread, and under a network beside the synchronous clock."""
    return [
        Comparison(
            "learning-spread", f"our own PPO on Spread, {LANES} environments, 64 x 64, as train() does it",
            "transitions per CPU s", _on_spread, rounds=5,
        ),
        *(
            Comparison(
                f"learning-network-{dt}", f"PPO on EnergyManagement-v1, steps of {dt} s, under the network and without",
                "decisions per CPU s", partial(_with_network, dt, lanes), rounds=5,
            )
            for dt, lanes in NETWORKED.items()
        ),
    ]  # fmt: skip


def _with_network(dt: int, lanes: int, setting: Setting) -> Sequence[Case]:
    options = {"dt": float(dt), "physics_substeps": 6, "report_interval": float(dt)}
    settings = {"num_envs": lanes, "n_steps": 96, "batch_size": 4096, "n_epochs": EPOCHS}
    under, without = (Updates("heron/EnergyManagement-v1", options, way, **settings) for way in (JITTERED, None))
    return [Case(UNDER, under), Case(WITHOUT, without, Role.CEILING)]


def _on_spread(setting: Setting) -> Sequence[Case]:
    updates = [
        (name, Updates("heron/Spread-v0", {}, None, num_envs=LANES, activation=name)) for name in ("tanh", "relu")
    ]
    return [Case(name, update, facts=update.shares) for name, update in updates]


class Updates:
    """Decisions collected and learned from per CPU second: whole updates of the lean trainer."""

    def __init__(self, env_id: str, options: dict[str, Any], schedule: ScheduleConfig | None, **settings: Any) -> None:
        import torch

        from heron_env import Hyperparameters
        from heron_env.lab.learning.events import Monitor, Stopwatch
        from heron_env.lab.learning.train import Training, TrainingPlan, Validation

        torch.set_num_threads(1)
        plan = TrainingPlan(
            env_id, Path("unused"), {}, options, None, total_steps=1, hyperparameters=Hyperparameters(**settings),
            schedule=schedule,
        )  # fmt: skip
        self._course = Training(plan, {}, Validation(plan, 0), Monitor([], Stopwatch(time.monotonic), None))
        self._course.begin()
        self._learning = self._spent = 0.0

    def __call__(self, seconds: float) -> float:
        """Updates for about so many seconds."""
        before, began, spent = sum(self._course.transitions.values()), time.process_time(), 0.0
        while spent < seconds:
            self._course.collect()
            collected = time.process_time()
            self._course.learn()
            spent = (now := time.process_time()) - began
            self._learning += now - collected
        self._spent += spent
        return (sum(self._course.transitions.values()) - before) / spent

    def shares(self) -> dict[str, float]:
        """The update's share of the time so far."""
        return {"update share": self._learning / self._spent}
