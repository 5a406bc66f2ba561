"""The ordinary case of a step, read in one go: each deciding agent gives an array, or a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import ActionSpec

Floats = NDArray[np.float64]
NUMBERS = {float, int, np.float64, np.float32, np.int64, np.int32}


class JointActions:
    """Reads the actions of some agents, which all must act; `ids`, `specs`: theirs, in one order."""

    def __init__(self, ids: Sequence[str], specs: Sequence[ActionSpec]) -> None:
        self._pick = itemgetter(*ids) if len(ids) > 1 else lambda actions: (actions[ids[0]],)
        self._lengths = [spec.size for spec in specs]
        self._single = set(self._lengths) == {1}

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
