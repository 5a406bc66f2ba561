"""Trained policies that remember what their agent has seen in this episode: frames, or a recurrent layer, in numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.masking import flat
from heron_env.lab.trained import Network, NetworkPolicy, Vectors


@dataclass(frozen=True)
class Recurrent:
    """A gated recurrent layer (GRU, as torch's): `seen` and `kept` give the three gates' shares, reset, update, new.

    Each is one layer, `[d, 3 units]` and `[units, 3 units]`; sums are those of `Network`, the same for one row as for
    many.
    """

    seen: Network
    kept: Network

    @property
    def units(self) -> int:
        """How many numbers it remembers."""
        return len(self.kept.layers[0][0])

    def __call__(self, x: Vectors, hidden: Vectors) -> Vectors:
        """`[n, d]` and `[n, units]` -> what is remembered then, `[n, units]`."""
        (reset, update, new), (kept_reset, kept_update, kept_new) = (
            np.split(layer(values), 3, axis=1) for layer, values in ((self.seen, x), (self.kept, hidden))
        )
        reset, update = _gate(reset + kept_reset), _gate(update + kept_update)
        new = np.tanh(new + reset * kept_new)
        return np.asarray(new + update * (hidden - new), dtype=np.float32)


def _gate(x: Vectors) -> Vectors:
    """1 / (1 + exp(-x))."""
    return np.asarray(np.float32(0.5) * (np.tanh(np.float32(0.5) * x) + np.float32(1.0)))


def recurrent_of(weights: Mapping[str, Any]) -> Recurrent | None:
    """The recurrent layer in a state dict of torch, if there is one."""
    if "memory.weight_ih_l0" not in weights:
        return None
    seen, kept = (
        Network(((_array(weights[f"memory.weight_{side}_l0"]).T.copy(), _array(weights[f"memory.bias_{side}_l0"])),))
        for side in ("ih", "hh")
    )
    return Recurrent(seen, kept)


def _array(tensor: Any) -> NDArray[Any]:
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float32)


class RememberingPolicy:
    """What a training with memory leaves behind for one agent, in either clock; each agent needs an object of its own.

    An episode begins with `begin`, and each decision is remembered: it is to be asked once for each. Batches refuse it,
    for they ask about many lanes at once.

    Args:
        decides: from what is seen and remembered to actions.
        frames: how many of the agent's last observations are seen together, the newest last; before there are as many,
            the first stands in.
        recurrent: what it remembers beside; None: nothing.
    """

    def __init__(self, decides: NetworkPolicy, *, frames: int = 1, recurrent: Recurrent | None = None) -> None:
        self.decides, self.frames, self.recurrent = decides, frames, recurrent
        self.begin()

    def begin(self, seed: int = 0, episode: int = 0) -> None:
        """Forget the last episode."""
        self._shown: Vectors = np.zeros((0, 0), dtype=np.float32)
        self._hidden: Vectors = np.zeros((1, 0 if self.recurrent is None else self.recurrent.units), dtype=np.float32)

    def forward(self, observation: NDArray[np.float32], mask: Any = None) -> NDArray[np.float64]:
        """The action `[k]` of the agent's next observation `[d]`."""
        vectors = self.decides.require_width(np.asarray(observation, dtype=np.float32)[None])
        seen = self.decides.scaling(vectors)
        before = self._shown if len(self._shown) else np.repeat(seen, self.frames, axis=0)
        self._shown = np.concatenate([before[1:], seen])
        inputs = self._shown.reshape(1, -1)
        if self.recurrent is not None:
            self._hidden = self.recurrent(inputs, self._hidden)
            inputs = np.concatenate([inputs, self._hidden], axis=1)
        masks = None if mask is None else flat(mask)[None]
        return np.asarray(self.decides.choose(vectors, inputs, masks, keyed=inputs)[0])

    def reset(self, seed: int) -> None:
        """Draw other actions from now on."""
        self.decides.reset(seed)
