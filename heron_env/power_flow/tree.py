"""The shape of a radial feeder: its buses in an order in which every bus comes after the one that feeds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heron_env.errors import ConfigError


@dataclass(frozen=True)
class Tree:
    """Position k is the k-th bus, breadth first from the source, which is position 0.

    Attributes:
        order: bus at each position.
        parent: position of the bus that feeds it; -1 at the source.
        line: index of the line that does; -1 at the source.
    """

    order: tuple[int, ...]
    parent: tuple[int, ...]
    line: tuple[int, ...]

    @classmethod
    def of(cls, buses: Sequence[str], ends: Sequence[tuple[int, int]], source: int) -> Tree:
        """Of lines by the indices of their ends. Raises ConfigError for a ring or a bus that nothing feeds."""
        at: list[list[tuple[int, int]]] = [[] for _ in buses]
        for number, (start, end) in enumerate(ends):
            at[start].append((number, end))
            at[end].append((number, start))
        order, parent, line, position = [source], [-1], [-1], {source: 0}
        for bus in order:  # grows while it is read
            here = position[bus]
            for number, other in at[bus]:
                if number == line[here]:
                    continue
                if other in position:
                    raise ConfigError(
                        f"Feeder: line {number} from {buses[bus]!r} to {buses[other]!r} closes a ring; a feeder is "
                        "radial: leave out the lines whose switches are open"
                    )
                position[other] = len(order)
                order.append(other)
                parent.append(here)
                line.append(number)
        missing = [name for index, name in enumerate(buses) if index not in position]
        if missing:
            raise ConfigError(
                f"Feeder: no line leads from the source {buses[source]!r} to {missing[:5]}"
                f"{' and others' * (len(missing) > 5)}; add it, or leave those buses out"
            )
        return cls(tuple(order), tuple(parent), tuple(line))
