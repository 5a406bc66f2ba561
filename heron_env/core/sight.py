"""Who sees whom at a moment (V11): a column for each pair of an observer and a target, behind those of the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class SightColumns:
    """Columns `[first, first + targets * observers)`, 1 where the observer sees the target, else 0.

    A target's lie side by side, so that they travel with its row: a row and who sees it are one measurement.

    Attributes:
        observers, targets: ranks, each of one class of agents, in registration order.
        first: column of the first pair.
    """

    observers: tuple[int, ...]
    targets: tuple[int, ...]
    first: int

    @property
    def size(self) -> int:
        """How many columns."""
        return len(self.observers) * len(self.targets)

    @cached_property
    def places(self) -> tuple[dict[int, int], dict[int, int]]:
        """By rank, where it stands among the observers, and among the targets."""
        return tuple({rank: k for k, rank in enumerate(ranks)} for ranks in (self.observers, self.targets))  # type: ignore[return-value]

    def column(self, observer: int, target: int) -> int:
        """Of two ranks that are among them."""
        return self.of_target(target)[self.places[0][observer]]

    def of_target(self, target: int) -> range:
        """The columns of one target, by observer."""
        first = self.first + len(self.observers) * self.places[1][target]
        return range(first, first + len(self.observers))


def numbered(sight: SightColumns, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Of pairs of ranks, (observer, target): where they stand among the agents of their classes, and their column."""
    observers, targets = sight.places
    return [(observers[o], targets[t], sight.column(o, t)) for o, t in pairs]
