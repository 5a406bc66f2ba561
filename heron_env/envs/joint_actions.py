"""The ordinary case of a step, read in one go: each deciding agent gives an array, or a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import ActionSpec

Floats = NDArray[np.float64]
NUMBERS = {float, int, np.float64, np.float32, np.int64, np.int32}


class JointActions:
    """Reads the actions of some agents, which all must act.

    ids, specs: theirs, in one order. spans: each agent's elements in the joint vector, `elements` long.
    """

    def __init__(self, ids: Sequence[str], specs: Sequence[ActionSpec]) -> None:
        self._pick = itemgetter(*ids) if len(ids) > 1 else lambda actions: (actions[ids[0]],)
        self._lengths = [spec.size for spec in specs]
        self._single = set(self._lengths) == {1}
        stops = np.cumsum([0, *self._lengths]).tolist()
        self.elements = stops[-1]
        self.spans = [slice(a, b) for a, b in pairwise(stops)]
        self._low = np.concatenate([np.concatenate([spec.low, np.zeros(spec.dim_d)]) for spec in specs])
        self._high = np.concatenate([np.concatenate([spec.high, spec.ncats - 1.0]) for spec in specs])
        whole = [np.arange(spec.size) >= spec.dim_c for spec in specs]
        self._whole = np.flatnonzero(np.concatenate(whole))

    def read(self, actions: Mapping[str, Any]) -> Floats | None:
        """All actions one after another, float64 `[elements]`, fresh; None where anything is out of the ordinary.

        What it gives are the bits of ActionSpec.parse, agent by agent; that also says what is wrong with the rest.
        """
        joint = np.empty(self.elements)
        return joint if self.read_into(joint, actions) and self._accepts(joint) else None

    def read_into(self, joint: Floats, actions: Mapping[str, Any]) -> bool:
        """Write all actions into `joint` `[elements]`, of whatever value; False, and anything in it, if it can't."""
        if type(actions) is not dict or len(actions) != len(self._lengths):
            return False
        try:
            values = self._pick(actions)
            if set(map(type, values)) == {np.ndarray}:
                if list(map(len, values)) != self._lengths:
                    return False
                np.concatenate(values, 0, joint, casting="same_kind")
            elif self._single and set(map(type, values)) <= NUMBERS:
                joint[:] = values
            else:
                return False
        except (KeyError, TypeError, ValueError, OverflowError):
            return False
        return True

    def _accepts(self, joint: Floats) -> bool:
        """Does every number lie within its bounds, and is every choice whole?"""
        if np.count_nonzero((joint >= self._low) & (joint <= self._high)) != len(joint):
            return False
        if not len(self._whole):
            return True
        choices = joint.take(self._whole)
        return int(np.count_nonzero(choices == np.floor(choices))) == len(choices)
