"""What runs the rules of a simulation, and what a control step yields: the same for both executions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.int8]
Published = tuple[list[float], list[bool], list[bool]]
"""Rewards, terminated, truncated of the deciding agents, in their order."""


class StepOutcome(Protocol):
    """Results of one control step, by rank; agents that ended before have reward 0 and False."""

    @property
    def time(self) -> float:
        """The boundary, s."""
        ...

    @property
    def over(self) -> bool:
        """Is the episode over?"""
        ...

    @property
    def ended(self) -> bool:
        """Did anybody end here?"""
        ...

    @property
    def rewards(self) -> list[float]:
        """Of every agent."""
        ...

    @property
    def terminated(self) -> list[bool]:
        """Who ended here by its own rule, or with the others."""
        ...

    @property
    def truncated(self) -> list[bool]:
        """Who was cut off here."""
        ...

    @property
    def infos(self) -> list[dict[str, float]]:
        """Each agent's own info numbers."""
        ...

    @property
    def seen(self) -> NDArray[np.float32] | None:
        """The deciding agents' vectors after the step, one after another, if they are known already."""
        ...

    def published(self) -> Published:
        """Rewards and ends of the agents that decide; ends only if anybody ended."""
        ...


@dataclass(slots=True)
class PlainOutcome:
    """A StepOutcome as lists; `possible`: ranks of the agents that decide."""

    possible: tuple[int, ...]
    time: float
    over: bool
    rewards: list[float]
    terminated: list[bool]
    truncated: list[bool]
    infos: list[dict[str, float]]
    seen: None = None

    @property
    def ended(self) -> bool:
        """Did anybody end here?"""
        return any(self.terminated) or any(self.truncated)

    def published(self) -> Published:
        """Rewards and ends of the agents that decide."""
        ranks, rewards, terminated, truncated = self.possible, self.rewards, self.terminated, self.truncated
        return [rewards[r] for r in ranks], [terminated[r] for r in ranks], [truncated[r] for r in ranks]


class Mechanics(Protocol):
    """What runs the rules of a simulation's agents on its truth: PlainMechanics, or CompiledMechanics.

    truth: float64 `[layout.size]`.
    """

    truth: Floats

    @property
    def decided(self) -> Mapping[int, Floats]:
        """Actions that took effect in the last synchronous step, by rank."""
        ...

    @property
    def sources(self) -> list[int]:
        """Code of each agent's last decision, by rank (decisions.Source)."""
        ...

    @sources.setter
    def sources(self, codes: list[int]) -> None: ...

    def decisions(self) -> list[int]:
        """The same of the agents that decide."""
        ...

    @property
    def masked(self) -> list[bool]:
        """Whose last effect, in this step, had a choice that was forbidden when it fell, by rank."""
        ...

    @masked.setter
    def masked(self, flags: list[bool]) -> None: ...

    def offer(self, rank: int, own: NDArray[Any]) -> Flags:
        """The flat mask of an agent that has one, on its own observed columns `[view.own]`."""
        ...

    def restart(self, seed: int, episode: int, initial: Floats) -> None:
        """Initial values, no-op actions; compiled: the rule `begin`, too."""
        ...

    def apply(self, rank: int, values: Floats) -> Floats:
        """Make `values` the agent's current action and let it act on the truth; what became of them by its mask."""
        ...

    def fall(self, sources: list[int], decided: Mapping[int, Floats]) -> None:
        """Decisions that take effect in a synchronous step, by rank, top-down; and the code of each agent's."""
        ...

    def advance(self, number: int) -> None:
        """The agents' own physics, bottom-up; compiled: then the rule `advance`."""
        ...

    def close(self, members: list[bool]) -> tuple[StepOutcome, list[bool]]:
        """The step's outcome, and who is alive after it; compiled: then the rule `finish`."""
        ...

    def info(self, rank: int) -> dict[str, float]:
        """The agent's own info numbers, from the truth."""
        ...

    def actions(self) -> list[list[float]]:
        """Actions in force, by rank."""
        ...

    def restore(self, actions: Sequence[Sequence[float]], alive: Sequence[bool], over: bool) -> None:
        """Take over a running episode; the truth is written already."""
        ...
