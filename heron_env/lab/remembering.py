"""Trained policies that remember what their agent has seen in this episode: frames, or a recurrent layer, in numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.masking import flat
from heron_env.core.policy import Keys
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
        return self.remembered(self.seen(x), self.kept(hidden), hidden)

    def remembered(self, seen: Vectors, kept: Vectors, hidden: Vectors) -> Vectors:
        """`[n, units]` from the gates' shares, each `[n, 3 units]`, and what was remembered before."""
        (reset, update, new), (kept_reset, kept_update, kept_new) = (np.split(each, 3, axis=1) for each in (seen, kept))
        reset, update = _gate(reset + kept_reset), _gate(update + kept_update)
        new = np.tanh(new + reset * kept_new)
        later: Vectors = new + update * (hidden - new)
        return later


def _gate(x: Vectors) -> Vectors:
    """1 / (1 + exp(-x))."""
    share: Vectors = np.float32(0.5) * (np.tanh(np.float32(0.5) * x) + np.float32(1.0))
    return share


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

    An episode begins with `begin`, and each decision is remembered: it is to be asked once for each. Synchronous
    batches refuse it, for they ask about many lanes at once and do not say which; `forward_rows` is told.

    Args:
        decides: from what is seen and remembered to actions.
        frames: how many of the agent's last observations are seen together, the newest last; before there are as many,
            the first stands in.
        recurrent: what it remembers beside; None: nothing.
    """

    def __init__(self, decides: NetworkPolicy, *, frames: int = 1, recurrent: Recurrent | None = None) -> None:
        self.decides, self.frames, self.recurrent = decides, frames, recurrent
        self._shown: Vectors = np.zeros((0, frames, len(decides.scaling.center)), dtype=np.float32)
        self._hidden: Vectors = np.zeros((0, 0 if recurrent is None else recurrent.units), dtype=np.float32)
        self.begin()

    def begin(self, seed: int = 0, episode: int = 0) -> None:
        """Forget the last episode."""
        self._first = True

    def forward(
        self, observation: NDArray[np.float32], mask: Any = None, draw: int | None = None
    ) -> NDArray[np.float64]:
        """The action `[k]` of the agent's next observation `[d]`."""
        first, self._first = np.array([self._first]), False
        masks = None if mask is None else flat(mask)[None]
        draws = None if draw is None else np.array([draw], dtype=np.uint64)
        rows = self.forward_rows(np.asarray(observation)[None], np.zeros(1, dtype=np.int64), first, masks, draws)
        return np.asarray(rows[0])

    def forward_rows(
        self,
        vectors: Vectors,
        who: NDArray[np.int64],
        first: NDArray[np.bool_],
        masks: NDArray[np.int8] | None = None,
        draws: Keys | None = None,
    ) -> NDArray[np.float64]:
        """Actions `[n, k]` of observations `[n, d]`, each of another agent or another episode.

        Args:
            who: `[n]`, from 0 up: whose memory, one number for each agent of each lane.
            first: `[n]`: is it the first of its episode? What was remembered is forgotten there.
            masks, draws: as of NetworkPolicy.
        """
        vectors = self.decides.require_width(np.asarray(vectors, dtype=np.float32))
        self._make_room(int(who.max(initial=-1)) + 1)
        seen = self.decides.scaling(vectors)[:, None]
        shown = np.concatenate([self._shown[who, 1:], seen], axis=1)
        self._shown[who] = shown = np.where(first[:, None, None], seen, shown)
        inputs = shown.reshape(len(shown), -1)
        if self.recurrent is not None:
            hidden = self.recurrent(inputs, np.where(first[:, None], np.float32(0.0), self._hidden[who]))
            self._hidden[who] = hidden
            inputs = np.concatenate([inputs, hidden], axis=1)
        return self.decides.choose(vectors, inputs, masks, draws)

    def _make_room(self, size: int) -> None:
        """For as many memories."""
        if missing := max(0, size - len(self._shown)):
            room = ((0, missing), (0, 0), (0, 0))
            self._shown, self._hidden = np.pad(self._shown, room), np.pad(self._hidden, room[:2])

    def reset(self, seed: int) -> None:
        """Draw other actions from now on."""
        self.decides.reset(seed)
