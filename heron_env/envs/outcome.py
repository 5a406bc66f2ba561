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

    Copies of the engine's rows are kept, by position; lists are made when somebody asks.

    Attributes:
        time: the boundary, s.
    """

    def __init__(self, lane: Lane) -> None:
        self.time, self._position, self._fields = lane.simulation.time, lane.position, lane.fields
        self._rewards = lane.rewards.copy()
        self._infos = lane.infos.copy() if lane.informs else lane.told[lane.number]
        self._terminated, self._truncated = lane.terminated.astype(bool), lane.truncated.astype(bool)

    @cached_property
    def rewards(self) -> list[float]:
        """Of every agent."""
        return self._rewards.take(self._position).tolist()  # type: ignore[no-any-return]

    @cached_property
    def terminated(self) -> list[bool]:
        """Who ended here by its own rule, or with the others."""
        return self._terminated.take(self._position).tolist()  # type: ignore[no-any-return]

    @cached_property
    def truncated(self) -> list[bool]:
        """Who was cut off here."""
        return self._truncated.take(self._position).tolist()  # type: ignore[no-any-return]

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
