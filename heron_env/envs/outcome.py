"""What a control step yields, by rank."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from heron_env.envs.lane import Lane

Floats = NDArray[np.float64]
Infos = list[dict[str, float]]
"""Info numbers by name, by rank."""


class StepOutcome:
    """Results of one control step, by rank; agents that ended before have reward 0 and False.

    Attributes:
        time: the boundary, s.
        rewards, terminated, truncated: of every agent; who ended here by its own rule or with the others, or was cut
            off.
    """

    def __init__(self, lane: Lane) -> None:
        self.time, self._fields = lane.simulation.time, lane.fields
        self.rewards: list[float] = lane.rewards.take(lane.position).tolist()
        self.terminated: list[bool] = lane.terminated.take(lane.position).astype(bool).tolist()
        self.truncated: list[bool] = lane.truncated.take(lane.position).astype(bool).tolist()
        self._infos = lane.infos.copy() if lane.informs else lane.told[lane.number]

    @cached_property
    def infos(self) -> Infos:
        """Each agent's own info numbers."""
        return named(self._infos, self._fields)


def named(infos: Floats | Infos, fields: Sequence[tuple[tuple[str, ...], slice]]) -> Infos:
    """Infos by rank, fresh, from the numbers of all, or from what rules in Python told."""
    if isinstance(infos, list):
        return [dict(one) for one in infos]
    numbers = infos.tolist()
    return [dict(zip(names, numbers[span], strict=True)) for names, span in fields]
