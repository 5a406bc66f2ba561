"""Padding: the vectors of like observers of different width, brought to one width with a mask of what is there.

A vector of d numbers, where the widest of its kind has D, becomes 2 D long: its own d numbers, D - d zeros, then D
numbers that say with 1 which of the first D are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats32 = NDArray[np.float32]
Bounds = tuple[Floats32, Floats32]


class Padding:
    """What comes after each observer's own numbers: nothing for those of a kind that are all equally wide.

    Args:
        kinds: of the observers, by rank; those of one kind get one width. None: nobody is padded.
        widths: how many numbers of its own each has.

    Attributes:
        tails: float32 `[zeros + mask]` of each observer, or `[0]`.
    """

    def __init__(self, kinds: Sequence[Hashable] | None, widths: Sequence[int]) -> None:
        alike: dict[Hashable, list[int]] = {}
        for rank, kind in enumerate(kinds or ()):
            alike.setdefault(kind, []).append(rank)
        self._widths = list(widths)
        together = [members for members in alike.values() if len({widths[rank] for rank in members}) > 1]
        self._mates = {rank: members for members in together for rank in members}
        self._together = together
        self.tails = tuple(
            _tail(width, room) if rank in self._mates else np.zeros(0, dtype=np.float32)
            for rank, (width, room) in enumerate(zip(widths, self.most(widths), strict=True))
        )
        self._bounds: dict[int, Bounds] = {}

    @property
    def any(self) -> bool:
        """Is anybody padded?"""
        return bool(self._together)

    def most(self, counts: Sequence[int]) -> list[int]:
        """Of each observer the largest count among those that are brought to its width."""
        found = list(counts)
        for members in self._together:
            largest = max(counts[rank] for rank in members)
            for rank in members:
                found[rank] = largest
        return found

    def names(self, rank: int) -> list[str]:
        """Of what comes after the observer's own numbers: `pad[7]`, then `mask[0]`."""
        room, width = len(self.tails[rank]) - self.zeros(rank), self._widths[rank]
        return [f"pad[{i}]" for i in range(width, width + self.zeros(rank))] + [f"mask[{i}]" for i in range(room)]

    def zeros(self, rank: int) -> int:
        """How many of an observer's numbers are missing beside the widest of its kind."""
        return (len(self.tails[rank]) - self._widths[rank]) // 2 if rank in self._mates else 0

    def bounds(self, rank: int, own: Callable[[int], Bounds]) -> Bounds:
        """Of the whole vector: at each place the widest of the kind's; `own` gives those of its own numbers."""
        if rank not in self._mates:
            return own(rank)
        members = self._mates[rank]
        if members[0] not in self._bounds:
            self._bounds[members[0]] = self._hull(members, own)
        low, high = self._bounds[members[0]]
        return low.copy(), high.copy()

    def _hull(self, members: Sequence[int], own: Callable[[int], Bounds]) -> Bounds:
        room = max(self._widths[rank] for rank in members)
        low, high = np.full(room, np.inf, dtype=np.float32), np.full(room, -np.inf, dtype=np.float32)
        for rank in members:
            mine = [np.append(bound, np.zeros(self.zeros(rank), dtype=np.float32)) for bound in own(rank)]
            low, high = np.minimum(low, mine[0]), np.maximum(high, mine[1])
        mask = np.ones(room, dtype=np.float32)
        return np.concatenate([low, 0 * mask]), np.concatenate([high, mask])


def _tail(width: int, room: int) -> Floats32:
    missing = room - width
    return np.repeat(np.array([0, 1, 0], dtype=np.float32), [missing, width, missing])
