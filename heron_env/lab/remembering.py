"""Policies that know what their agent saw and decided in this episode, by frames or a recurrent layer, in numpy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.masking import flat
from heron_env.core.policy import Keys
from heron_env.lab.trained import Floats, Network, NetworkPolicy, Scaling, Vectors, array_of


@dataclass(frozen=True)
class OwnDecisions:
    """An agent's last `count` decisions as a network sees them: from -1 to 1, and 0 before the first."""

    count: int
    scaling: Scaling

    @classmethod
    def of(cls, count: int, low: Floats, high: Floats, ncats: Sequence[int]) -> OwnDecisions:
        """Of actions with these bounds and choices."""
        most = np.concatenate([high, np.asarray(ncats, np.float64) - 1.0])
        least = np.concatenate([low, np.zeros(len(ncats))])
        return cls(count, Scaling((least + most) / 2.0, np.maximum((most - least) / 2.0, 0.5 * (most == least))))

    def none(self, many: int) -> Vectors:
        """Of so many that have not decided, `[many, count, k]`."""
        return np.zeros((many, self.count, len(self.scaling.center)), dtype=np.float32)

    def later(self, decided: Vectors, actions: Floats) -> Vectors:
        """With one more each: `[n, count, k]` and actions `[n, k]`."""
        return np.concatenate([decided, self.scaling(actions.astype(np.float64))[:, None]], axis=1)[:, 1:]


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

    def remembered(self, x: Vectors, h: Vectors, hidden: Vectors) -> Vectors:
        """`[n, units]` from the gates' shares, each `[n, 3 units]`, and what was remembered before."""
        (reset, update, new), (kept_reset, kept_update, kept_new) = (np.split(each, 3, axis=1) for each in (x, h))
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
    inputs, memory = (
        Network(
            ((array_of(weights[f"memory.weight_{side}_l0"]).T.copy(), array_of(weights[f"memory.bias_{side}_l0"])),)
        )
        for side in ("ih", "hh")
    )
    return Recurrent(inputs, memory)


class Remembering(ABC):
    """A policy of one agent that remembers, in either clock; each agent needs an object of its own.

    An episode begins with `begin`, and each decision is remembered: it is to be asked once for each. Synchronous
    batches refuse it, for they ask about many lanes at once and do not say which; `forward_rows` is told.
    """

    _first = True
    on_rows = True
    """Does `forward_rows` decide as `forward` does?"""

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

    @abstractmethod
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


class RememberingPolicy(Remembering):
    """What a training with memory leaves behind for one agent.

    Args:
        decides: from what is seen and remembered to actions.
        frames: how many of the agent's last observations are seen together, the newest last; before there are as many,
            the first stands in. Trained before 0.3, as with `own`.
        recurrent: what it remembers beside; None: nothing.
        own: its own last decisions, which are seen behind the frames; None: they are not.
    """

    def __init__(
        self, decides: NetworkPolicy, *, frames: int = 1, recurrent: Recurrent | None = None,
        own: OwnDecisions | None = None,
    ) -> None:  # fmt: skip
        self.decides, self.frames, self.recurrent, self.own = decides, frames, recurrent, own
        self._decided = np.zeros((0, 0, 0), dtype=np.float32) if own is None else own.none(0)
        self._shown: Vectors = np.zeros((0, frames, len(decides.scaling.center)), dtype=np.float32)
        self._hidden: Vectors = np.zeros((0, 0 if recurrent is None else recurrent.units), dtype=np.float32)

    def forward_rows(
        self,
        vectors: Vectors,
        who: NDArray[np.int64],
        first: NDArray[np.bool_],
        masks: NDArray[np.int8] | None = None,
        draws: Keys | None = None,
    ) -> NDArray[np.float64]:
        """As any that remembers."""
        vectors = self.decides.require_width(np.asarray(vectors, dtype=np.float32))
        self._make_room(int(who.max(initial=-1)) + 1)
        scaled = self.decides.scaling(vectors)[:, None]
        shown = np.concatenate([self._shown[who, 1:], scaled], axis=1)
        self._shown[who] = shown = np.where(first[:, None, None], scaled, shown)
        inputs = shown.reshape(len(shown), -1)
        decided = np.where(first[:, None, None], np.float32(0.0), self._decided[who])
        inputs = np.concatenate([inputs, decided.reshape(len(inputs), self._decided[0].size)], axis=1)
        if self.recurrent is not None:
            hidden = self.recurrent(inputs, np.where(first[:, None], np.float32(0.0), self._hidden[who]))
            self._hidden[who] = hidden
            inputs = np.concatenate([inputs, hidden], axis=1)
        actions = self.decides.choose(vectors, inputs, None if masks is None else masks != 0, draws)
        if self.own is not None:
            self._decided[who] = self.own.later(decided, actions)
        return actions

    def _make_room(self, size: int) -> None:
        """For as many memories."""
        if missing := max(0, size - len(self._shown)):
            room = ((0, missing), (0, 0), (0, 0))
            self._shown, self._decided = np.pad(self._shown, room), np.pad(self._decided, room)
            self._hidden = np.pad(self._hidden, room[:2])

    def reset(self, seed: int) -> None:
        """Use another seed for draws from now on."""
        self.decides.reset(seed)
