"""Distributed constraint optimisation problems with any costs: an agent owns a variable, pairs of them pay by table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heron_env.seeding import stream

Table = NDArray[np.int64]
"""`[own value, other's value]`: what a pair pays."""
FAMILIES = ("sparse", "dense", "colouring")
SPARSE, DENSE = 0.35, 0.7
"""Shares of all pairs that have a table."""
VALUES, COLOURS = 10, 3


@dataclass(frozen=True)
class Dcop:
    """Minimise the sum over pairs of `tables[i, j][x_i, x_j]`; i < j, costs are whole numbers >= 0."""

    agents: int
    values: int
    tables: Mapping[tuple[int, int], Table]

    @cached_property
    def near(self) -> list[dict[int, Table]]:
        """By agent, its neighbours and the tables with them, its own value first."""
        found: list[dict[int, Table]] = [{} for _ in range(self.agents)]
        for (i, j), table in self.tables.items():
            found[i][j], found[j][i] = table, table.T
        return found

    def cost(self, x: NDArray[np.int64]) -> int:
        """Of an assignment `[agents]`."""
        return sum(int(table[x[i], x[j]]) for (i, j), table in self.tables.items())

    def alone(self, x: NDArray[np.int64], agent: int, without: int = -1) -> Table:
        """What each of its values costs an agent `[values]`, the others staying, one of them left out."""
        rows = [table[:, x[other]] for other, table in self.near[agent].items() if other != without]
        return np.asarray(np.sum([np.zeros(self.values, dtype=np.int64), *rows], axis=0))

    def one_opt(self, x: NDArray[np.int64]) -> bool:
        """Can no agent lower the cost alone?"""
        return all(costs[x[i]] == costs.min() for i in range(self.agents) for costs in (self.alone(x, i),))

    def two_opt(self, x: NDArray[np.int64]) -> bool:
        """Can no agent, and no two neighbours together, lower the cost? Two that are no neighbours gain no more."""
        return self.one_opt(x) and all(
            pair[x[i], x[j]] == pair.min()
            for (i, j), table in self.tables.items()
            for pair in (self.alone(x, i, j)[:, None] + self.alone(x, j, i) + table,)
        )


def drawn(family: str, number: int, agents: int) -> Dcop:
    """Problem `number` of a family.

    "sparse", "dense": 35 or 70 % of the pairs have tables of costs 1 to 100, 10 values each. "colouring": 35 %, 3
    colours, and equal ones cost what is drawn of 10 to 100 for each pair and colour.
    """
    draw = stream(number, "ca_dcop", family)
    values, share = (COLOURS, SPARSE) if family == "colouring" else (VALUES, {"sparse": SPARSE, "dense": DENSE}[family])
    pairs = [(i, j) for i in range(agents) for j in range(i + 1, agents) if draw.random() < share]
    if family == "colouring":
        return Dcop(agents, values, {pair: np.diag(draw.integers(10, 101, values)) for pair in pairs})
    return Dcop(agents, values, {pair: draw.integers(1, 101, (values, values)) for pair in pairs})
