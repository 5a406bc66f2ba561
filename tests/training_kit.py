"""Trainings so small that they cost next to nothing: what they learn does not matter."""

from pathlib import Path
from typing import Any

from heron_env import Hyperparameters, train
from heron_env.lab import RunFolder

GRID = "heron/BatteryGrid-v0"


def tiny(**changes: Any) -> Hyperparameters:
    """Two environments, rollouts of 16 transitions, two layers of 8."""
    few: dict[str, Any] = {"num_envs": 2, "n_steps": 8, "batch_size": 16, "n_epochs": 2, "hidden": (8, 8)}
    return Hyperparameters(**{**few, **changes})


def trained(folder: Path, env_id: str = GRID, **options: Any) -> RunFolder:
    """A run of a few rollouts with one validation of one episode."""
    few: dict[str, Any] = {"total_steps": 64, "validations": 1, "validation_episodes": 1, "progress": False}
    return train(env_id, folder, **{"hyperparameters": tiny(), **few, **options})


class Ticking:
    """A clock that moves on by so many s whenever it is read; `now` may be moved by hand."""

    def __init__(self, tick: float = 0.0) -> None:
        self.now, self.tick = 0.0, tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now
