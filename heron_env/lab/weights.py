"""Weights in files: safetensors, and what versions before 0.3 wrote; nothing in them is unpickled.

A file holds float32 arrays, called as torch's state dict calls them, and texts about them. A run folder has one for
each group; in the one file that `RunFolder.save` writes, the number of a group stands before each name, and the text
`config` is the run's configuration.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError, RunFolderError
from heron_env.files.reading import MOST, parsed
from heron_env.lab.remembering import Recurrent, recurrent_of
from heron_env.lab.trained import Network, array_of, network_of

if TYPE_CHECKING:
    from heron_env.lab.run_files import GroupConfig

Arrays = Mapping[str, NDArray[np.float32]]
ACTS: Final = ("mlp_extractor.policy_net.", "action_net.", "log_std", "memory.")
"""How the names of what acts begin; the others value."""
FORMER: Final = "policy.pth"
"""In a zip of Stable-Baselines3, and in those of this library before 0.3."""


def packed_weights(weights: Mapping[str, Any], **about: str) -> bytes:
    """The file of a state dict of torch, or of arrays; equal ones give equal files."""
    from safetensors.numpy import save

    return save({name: array_of(tensor) for name, tensor in weights.items()}, about or None)


def weights_in(data: bytes, file: Path) -> tuple[Arrays, Mapping[str, str]]:
    """The arrays by name, and the texts about them. Raises RunFolderError; ConfigError where torch is missing."""
    try:
        if data.startswith(b"PK"):
            return _of_former_versions(data)
        from safetensors.numpy import load

        arrays = load(data)
        if other := [name for name, array in arrays.items() if array.dtype != np.float32]:
            raise ValueError(f"{other[0]!r:.60} holds {arrays[other[0]].dtype}, no float32")
        header = parsed(data[8 : 8 + int.from_bytes(data[:8], "little")])
        return dict(sorted(arrays.items())), header.get("__metadata__", {})
    except ImportError as error:
        raise ConfigError(
            f"{file}: was written before 0.3, to read it takes torch: pip install 'heron_env[train]'"
        ) from error
    except Exception as error:  # a damaged file may end in anything
        raise no_model(file, error) from error


def _of_former_versions(data: bytes) -> tuple[Arrays, Mapping[str, str]]:
    """Of a zip with torch's state dict, or an `.npz` whose array `config` is a text."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {member.filename: member.file_size for member in archive.infolist()}
        if FORMER in members:
            if members[FORMER] > MOST:
                raise ValueError(f"{FORMER} in it has more than {MOST:,} bytes")
            return {name: array_of(tensor) for name, tensor in _state_dict(archive.read(FORMER)).items()}, {}
    if sum(members.values()) > len(data):
        raise ValueError("it is packed, and may be of any size")
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return arrays, {"config": arrays.pop("config").tobytes().decode()}


def _state_dict(data: bytes) -> Mapping[str, Any]:
    import torch

    try:
        weights: Mapping[str, Any] = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:  # whose advice is to run what is in the file
        raise ValueError(f"{FORMER} in it can't be read") from error
    return weights


class Actor(NamedTuple):
    """What acts: the network, `[k]` of its normal distribution (None: it chooses alone), and what remembers."""

    network: Network
    log_std: NDArray[Any] | None
    recurrent: Recurrent | None


def actor_of(weights: Mapping[str, Any], group: GroupConfig, file: Path) -> Actor:
    """What acts, of the weights in a file. Raises RunFolderError unless it fits the configuration."""
    try:
        network, log_std = network_of(weights, group.activation)
        recurrent = recurrent_of(weights)
        _require_fit(network, log_std, recurrent, group)
    except Exception as error:  # an array may have any shape
        raise no_model(file, error) from error
    return Actor(network, log_std if group.action_low else None, recurrent)


def _require_fit(
    network: Network, log_std: NDArray[Any] | None, recurrent: Recurrent | None, group: GroupConfig
) -> None:
    """Raise ValueError for layers that do not follow one another, or are not of this configuration."""
    numbers, observed = len(group.action_low), len(group.observation_names)
    width, units = observed * group.frames + (numbers + len(group.ncats)) * group.augment, 0
    memory = [] if recurrent is None else [*recurrent.seen.layers, *recurrent.kept.layers]
    if memory:
        units = len(memory[1][0])
        if [(w.shape, b.shape) for w, b in memory] != [((d, 3 * units), (3 * units,)) for d in (width, units)]:
            raise ValueError("it has a memory that does not fit")
    sizes = [width + units, *(bias.size for _, bias in network.layers)]
    if [weights.shape for weights, _ in network.layers] != [*pairwise(sizes)] or any(
        bias.ndim != 1 for _, bias in network.layers
    ):
        raise ValueError(f"its layers do not fit each other and the {sizes[0]} numbers that it observes")
    if sizes[-1] != numbers + sum(group.ncats) or not len(group.center) == len(group.scale) == observed:
        raise ValueError(f"it has {sizes[-1]} outputs, its configuration is of another run")
    if numbers and (log_std is None or log_std.shape != (numbers,)):
        raise ValueError(f"it has no spread for {numbers} outputs")
    arrays = [array for layer in (*network.layers, *memory) for array in layer]
    if not all(np.isfinite(array).all() for array in (*arrays, 0.0 if log_std is None else log_std)):
        raise ValueError("it holds nan or infinities")


def no_model(file: Path, why: object) -> RunFolderError:
    """The error of a file that holds no policy."""
    why = f"it lacks {why}" if isinstance(why, KeyError) else why
    return RunFolderError(f"{file} is no model of a training ({why}); restore the file, or train again")
