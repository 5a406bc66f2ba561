"""Going on from a finished run: its weights and scales, once they are known to fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError
from heron_env.lab.learning.scales import Scales, StateScaling
from heron_env.lab.run_groups import GroupConfig
from heron_env.lab.runs import RunFolder
from heron_env.lab.trained import Scaling


def opened(start_from: str | Path, env_id: str, critic: str) -> RunFolder:
    """The run to go on from. Raises RunFolderError; ConfigError for another environment or critic."""
    run = RunFolder.open(start_from)
    for what, ours, its in (("env_id", env_id, run.config.env_id), ("critic", critic, run.config.critic)):
        if ours != its:
            raise ConfigError(
                f"train(start_from={str(start_from)!r}): that run has {what}={its!r}, this one {ours!r}; "
                "its weights would mean something else: give the same, or start anew"
            )
    return run


def require_same(run: RunFolder, env: HeronEnv, base: str | None) -> None:
    """Raise ConfigError unless `env` has the run's groups, columns and actions, and its rule is to be corrected."""
    fault = run.misfit(env)
    if not fault and base != run.config.base:
        fault = f"the run corrects {run.config.base!r}, this one {base!r}"
    if fault:
        raise ConfigError(
            f"train(start_from={str(run.path)!r}): {fault}; give the run's env_options and residual, or start anew"
        )


def scales_of(kept: GroupConfig) -> Scales:
    """Those the run measured: the weights mean nothing in others."""
    state = StateScaling(*_pair(kept.state_center, kept.state_scale)) if kept.state_center else None
    return Scales(Scaling(*_pair(kept.center, kept.scale)), kept.reward_scale, state)


def load_weights(policy: Any, run: RunFolder, group: str) -> None:
    """Put the run's actor, critic and spread into a network of either trainer, read without unpickling.

    Raises ConfigError.
    """
    try:
        policy.load_state_dict(run.weights(group))
    except RuntimeError as error:
        raise ConfigError(
            f"train(start_from={str(run.path)!r}): its network has hidden layers "
            f"{run.config.hyperparameters.get('hidden')} and {run.config.hyperparameters.get('gru', 0)} units that "
            "remember; give Hyperparameters(hidden=..., gru=...) the same, or start anew"
        ) from error


def _pair(center: list[float], scale: list[float]) -> tuple[Any, Any]:
    return np.array(center), np.array(scale)
