"""What config.json keeps of one group, and whether an environment still has it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from heron_env.errors import RunFolderError
from heron_env.files.reading import MOST, read
from heron_env.lab.columns import columns_misfit
from heron_env.lab.remembering import OwnDecisions, Recurrent, recurrent_of
from heron_env.lab.trained import Activation, Network, Scaling, network_of, read_weights

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

SMALLEST, LARGEST = 1e-12, 1e15
"""Of a scale; what a float32 observation then becomes is still one. Training measures 1e-6 at least."""
MOST_CHOICES, MOST_FRAMES = 10**6, 10**4


def _plain(name: str) -> str:
    if name != Path(name).name or "\\" in name or "\0" in name:
        raise ValueError("must be the name of a file in this folder")
    return name


FileName = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_plain)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Center = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Scale = Annotated[float, Field(ge=SMALLEST, le=LARGEST)]


class GroupConfig(BaseModel):
    """One group's policy: its model file, its spaces, and the fixed scales around the network.

    Attributes:
        clip: where scaled observations are cut off.
        activation: between the layers of its network.
        frames: how many of an agent's last observations the network sees together, in runs of versions before 0.3.
        augment: how many of its last decisions, behind them, likewise.
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
    clip: Scale | None = None
    reward_scale: Scale
    activation: Activation = "tanh"
    frames: Annotated[int, Field(ge=1, le=MOST_FRAMES)] = 1
    augment: Annotated[int, Field(ge=0, le=MOST_FRAMES)] = 0
    state_center: list[Center] = []
    state_scale: list[Scale] = []

    @property
    def scaling(self) -> Scaling:
        """Of what its agents observe."""
        return Scaling(np.array(self.center), np.array(self.scale), self.clip)


def group_config(
    env: HeronEnv,
    group: str,
    scaling: Scaling,
    reward_scale: float,
    *,
    state: Scaling | None = None,
    activation: Activation = "tanh",
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
        clip=scaling.clip,
        reward_scale=reward_scale,
        activation=activation,
        state_center=[] if state is None else state.center.tolist(),
        state_scale=[] if state is None else state.scale.tolist(),
    )


def misfit(env: HeronEnv, group: str, kept: GroupConfig) -> str:
    """What a group sees or does otherwise now, in words; empty where nothing is."""
    now = group_config(env, group, Scaling(np.zeros(0), np.zeros(0)), 1.0)
    if differs := columns_misfit(kept.observation_names, now.observation_names, env, now.agents[0]):
        return f"group {group!r} was trained on observations with other columns: {differs}"
    old, new = ((of.action_low, of.action_high, of.ncats) for of in (kept, now))
    return "" if old == new else f"group {group!r} was trained on actions {old}, the environment now has {new}"


def own_decisions(kept: GroupConfig) -> OwnDecisions | None:
    """What its agents see of their own; None: nothing."""
    low, high = np.array(kept.action_low, np.float64), np.array(kept.action_high, np.float64)
    return OwnDecisions.of(kept.augment, low, high, kept.ncats) if kept.augment else None


WEIGHTS = "policy.pth"


def packed_weights(weights: Mapping[str, Any]) -> bytes:
    """A model file of a state dict of torch, packed as Stable-Baselines3 packs it; equal weights, equal files."""
    import torch

    state, packed = io.BytesIO(), io.BytesIO()
    torch.save(weights, state)
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(zipfile.ZipInfo(WEIGHTS), state.getvalue())  # of no date
    return packed.getvalue()


def weights_in(file: Path) -> Mapping[str, Any]:
    """Actor and critic as a state dict of torch. Raises RunFolderError."""
    try:
        with zipfile.ZipFile(io.BytesIO(read(file))) as archive:
            kept = archive.getinfo(WEIGHTS)
            if kept.file_size > MOST:
                raise ValueError(f"{WEIGHTS} in it has more than {MOST:,} bytes")
            data = archive.read(kept)
    except Exception as error:  # a damaged archive may end in anything
        raise _no_model(file, str(error)) from error
    try:
        weights = read_weights(data)
    except ImportError:
        raise
    except Exception as error:  # so may what torch reads; its own advice is to run what is in the file
        raise _no_model(file, f"{WEIGHTS} in it can't be read") from error
    if not isinstance(weights, Mapping):
        raise _no_model(file, f"{WEIGHTS} in it is no state dict")
    return weights


class Actor(NamedTuple):
    """What acts: the network, `[k]` of its normal distribution (None: it chooses alone), and what remembers."""

    network: Network
    log_std: NDArray[Any] | None
    recurrent: Recurrent | None


def actor_of(weights: Mapping[str, Any], kept: GroupConfig, file: Path) -> Actor:
    """What acts, of the weights in a file. Raises RunFolderError unless it fits the configuration."""
    try:
        network, log_std = network_of(weights, kept.activation)
        recurrent = recurrent_of(weights)
    except Exception as error:  # a tensor that is missing, none, or of another kind
        raise _no_model(file, f"it lacks, or has another, {error}") from error
    _require_whole(file, network, log_std)
    size = len(kept.action_low) + len(kept.ncats)
    seen, units = len(kept.observation_names) * kept.frames + size * kept.augment, 0
    if recurrent is not None:
        units = recurrent.units if recurrent.kept.layers[0][0].ndim == 2 else -1
        for layer, width in ((recurrent.seen, seen), (recurrent.kept, units)):
            _require_whole(file, layer, None)
            if layer.layers[0][0].shape != (width, 3 * units):
                raise _no_model(file, "it has a memory that does not fit")
    sizes = (len(network.layers[0][0]), len(network.layers[-1][1]))
    wanted = (seen + units, sum(kept.ncats) + len(kept.action_low))
    if sizes != wanted or not len(kept.center) == len(kept.scale) == len(kept.observation_names):
        raise RunFolderError(
            f"{file} maps {sizes[0]} observations to {sizes[1]} outputs, its configuration says {wanted[0]} to "
            f"{wanted[1]}: the two are not of one run; restore the folder, or train again"
        )
    numbers = len(kept.action_low)
    if numbers and (log_std is None or log_std.shape != (numbers,)):
        raise _no_model(file, f"it has no spread for {numbers} outputs")
    return Actor(network, log_std if numbers else None, recurrent)


def _require_whole(file: Path, network: Network, log_std: NDArray[Any] | None) -> None:
    """Layers that follow one another, and numbers that are some."""
    width = len(network.layers[0][0]) if network.layers[0][0].ndim == 2 else -1
    for weights, bias in network.layers:
        if weights.ndim != 2 or bias.ndim != 1 or weights.shape != (width, len(bias)):
            raise _no_model(file, "it has layers that do not fit each other")
        width = len(bias)
    numbers = [array for layer in network.layers for array in layer] + ([] if log_std is None else [log_std])
    if not all(np.isfinite(array).all() for array in numbers):
        raise _no_model(file, "it holds nan or infinities")


def _no_model(file: Path, why: str) -> RunFolderError:
    return RunFolderError(f"{file} is no model of a training ({why}); restore the file, or train again")
