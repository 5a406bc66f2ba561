"""What config.json keeps of one group, and whether an environment still has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from heron_env.lab.trained import Scaling

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv


LEAST, MOST = 1e-12, 1e15
"""Of a scale; what a float32 observation then becomes is still one. Training measures 1e-6 at least."""
MOST_CHOICES, MOST_FRAMES = 10**6, 10**4


def _plain(name: str) -> str:
    if name != Path(name).name or "\\" in name or "\0" in name:
        raise ValueError("must be the name of a file in this folder")
    return name


FileName = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_plain)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Center = Annotated[float, Field(ge=-MOST, le=MOST)]
Scale = Annotated[float, Field(ge=LEAST, le=MOST)]


class GroupConfig(BaseModel):
    """One group's policy: its model file, its spaces, and the fixed scales around the network.

    Attributes:
        frames: how many of an agent's last observations the network sees together.
        state_center, state_scale: of a central critic's state (and which agent is meant); only training on needs them.
    """

    model_config = ConfigDict(extra="forbid")
    model: FileName
    agents: list[str] = Field(min_length=1)
    observation_names: list[str]
    action_low: list[Number] = []
    action_high: list[Number] = []
    ncats: list[Annotated[int, Field(ge=1, le=MOST_CHOICES)]] = []
    center: list[Center]
    scale: list[Scale]
    reward_scale: Scale
    frames: Annotated[int, Field(ge=1, le=MOST_FRAMES)] = 1
    state_center: list[Center] = []
    state_scale: list[Scale] = []


def group_config(
    env: HeronEnv, group: str, scaling: Scaling, reward_scale: float, *, state: Scaling | None = None, frames: int = 1
) -> GroupConfig:
    """What config.json keeps of a group."""
    agents = env.group_map[group]
    spec = env.simulation.specs[env.hierarchy.index[agents[0]]]
    return GroupConfig(
        model=f"{group.replace(':', '_')}.zip",
        agents=agents,
        observation_names=env.observation_names(agents[0]),
        action_low=spec.low.tolist(),
        action_high=spec.high.tolist(),
        ncats=spec.ncats.tolist(),
        center=scaling.center.tolist(),
        scale=scaling.scale.tolist(),
        reward_scale=reward_scale,
        frames=frames,
        state_center=[] if state is None else state.center.tolist(),
        state_scale=[] if state is None else state.scale.tolist(),
    )


def misfit(env: HeronEnv, group: str, kept: GroupConfig) -> str:
    """What a group sees or does otherwise now, in words; empty where nothing is."""
    now = group_config(env, group, Scaling(np.zeros(0), np.zeros(0)), 1.0)
    for what, old, new in (
        ("observations", kept.observation_names, now.observation_names),
        ("actions", (kept.action_low, kept.action_high, kept.ncats), (now.action_low, now.action_high, now.ncats)),
    ):
        if old != new:
            return f"group {group!r} was trained on {what} {old}, the environment now has {new}"
    return ""
