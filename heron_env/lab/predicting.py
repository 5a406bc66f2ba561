"""What a predictor is made of: a model of one decision, learned or given, and a policy that it is rolled over for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import Decide, Keys, Policy, decide_with
from heron_env.lab.remembering import Remembering
from heron_env.lab.trained import Floats, Network, Vectors, decide_batch

Model = Callable[[Vectors, Floats], Vectors]
"""One decision further: observations `[n, d]` and actions in force `[n, k]` to the next observations `[n, d]`."""
DEEPEST = 64
"""Decisions that are predicted over at most."""


class Predicted(Remembering):
    """Shows a policy what will be so when its decision takes effect: a model is rolled over its last decisions.

    Args:
        policy: decides on one observation.
        model: of one decision; never asked where nothing is late.
        noop: `[k]`, in force before the first decision.
        late: decisions by which effects are late, in the mean.
        age: column of the observation that is the age of the agent's own data, which is then added; None: there is
            none.
        tick: s between two decisions.
    """

    def __init__(
        self, policy: Policy | Decide, model: Model, noop: Floats, late: float, age: int | None = None,
        tick: float = 1.0,
    ) -> None:  # fmt: skip
        self.policy, self.model, self.late, self.age, self.tick = policy, model, late, age, tick
        self.on_rows = callable(getattr(policy, "forward_batch", None))
        self._noop = np.broadcast_to(noop, (DEEPEST, len(noop)))
        self._decided: Floats = np.zeros((0, *self._noop.shape))

    def forward_rows(
        self, vectors: Vectors, who: NDArray[np.int64], first: NDArray[np.bool_],
        masks: NDArray[np.int8] | None = None, draws: Keys | None = None,
    ) -> Floats:  # fmt: skip
        """As any that remembers."""
        decided, seen = self._predict(vectors, who, first)
        actions = decide_batch(self.policy, seen, masks, draws)
        self._decided[who] = np.concatenate([decided[:, 1:], actions[:, None]], axis=1)
        return actions

    def forward(self, observation: Vectors, mask: Any = None, draw: int | None = None) -> Any:
        """The policy's action, in its own form, for the agent's next observation `[d]`."""
        first, self._first = np.array([self._first]), False
        decided, seen = self._predict(np.asarray(observation)[None], np.zeros(1, dtype=np.int64), first)
        action = decide_one(self.policy, seen[0], mask, draw)
        self._decided[0] = np.concatenate([decided[0, 1:], np.reshape(action, (1, -1))])
        return action

    def _predict(self, vectors: Vectors, who: NDArray[np.int64], first: NDArray[np.bool_]) -> tuple[Floats, Vectors]:
        """What was decided lately, the newest last, `[n, DEEPEST, k]`, and what will be seen then, `[n, d]`."""
        missing = max(0, int(who.max(initial=-1)) + 1 - len(self._decided))
        self._decided = np.pad(self._decided, ((0, missing), (0, 0), (0, 0)))
        decided = np.where(first[:, None, None], self._noop, self._decided[who])
        ages = np.zeros(len(vectors)) if self.age is None else vectors[:, self.age] / self.tick
        steps = np.minimum(np.rint(ages + self.late), DEEPEST)
        seen = vectors
        for back in range(int(steps.max(initial=0)), 0, -1):
            seen = np.where(steps[:, None] >= back, self.model(seen, decided[:, -back]), seen)
        return decided, seen


def decide_one(policy: Policy | Decide, vector: Vectors, mask: Any, draw: int | None) -> Any:
    """What a policy decides on one vector `[d]`, in its own form."""
    return decide_with(policy, cast(Any, None), lambda _: mask)(vector, 0, lambda: cast(int, draw))


@dataclass(frozen=True, repr=False)
class LinearModel:
    """A model in which observations change by what is linear in them and in the action (a choice is its number)."""

    change: Network

    @classmethod
    def fitted(cls, episodes: Sequence[tuple[Vectors, Floats, Vectors]]) -> LinearModel:
        """By least squares, of observations `[n, d]`, actions `[n, k]` and the next observations `[n, d]`."""
        before, actions, after = (np.concatenate(part).astype(np.float64) for part in zip(*episodes, strict=True))
        inputs = np.concatenate([before, actions], axis=1)
        center, spread = inputs.mean(axis=0), inputs.std(axis=0)
        scale = np.where(spread > 0.0, spread, 1.0)
        columns = np.concatenate([(inputs - center) / scale, np.ones((len(inputs), 1))], axis=1)
        found = np.linalg.lstsq(columns, after - before, rcond=1e-6)[0]
        weights = found[:-1] / scale[:, None]
        bias = found[-1] - center @ weights
        return cls(Network(((weights.astype(np.float32), bias.astype(np.float32)),)))

    def __call__(self, vectors: Vectors, actions: Floats) -> Vectors:
        """The next observations, float32 `[n, d]`; a row's does not depend on the others."""
        return np.asarray(vectors + self.change(np.concatenate([vectors, actions], axis=1).astype(np.float32)))

    def __repr__(self) -> str:
        """By its weights' digest."""
        ((weights, bias),) = self.change.layers
        return f"LinearModel({hashlib.blake2b(weights.tobytes() + bias.tobytes(), digest_size=8).hexdigest()})"


class TransitionRecorder:
    """Notes what a policy saw and decided."""

    def __init__(self, policy: Policy | Decide) -> None:
        self.policy, self.seen, self.decided = policy, list[Vectors](), list[Any]()

    def forward(self, observation: Vectors, mask: Any = None, draw: int | None = None) -> Any:
        """The policy's action."""
        self.seen.append(np.array(observation))
        self.decided.append(decide_one(self.policy, observation, mask, draw))
        return self.decided[-1]

    def transitions(self) -> tuple[Vectors, Floats, Vectors]:
        """Observations, actions, next observations."""
        seen, decided = np.stack(self.seen), np.array(self.decided, np.float64).reshape(len(self.seen), -1)
        return seen[:-1], decided[:-1], seen[1:]
