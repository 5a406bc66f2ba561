"""A linear program that is written down piece by piece: variables with costs and bounds, rows of terms."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class LinearProgram:
    """Minimise cost @ x with low <= matrix @ x <= high and below <= x <= above."""

    def __init__(self) -> None:
        self.size = self.rows = 0
        self._costs: list[Array] = []
        self._below: list[Array] = []
        self._above: list[Array] = []
        self._entries: list[tuple[Indices, Indices, Array]] = []
        self._low: list[Array] = []
        self._high: list[Array] = []

    def variables(self, cost: Array, below: Any, above: Any) -> Indices:
        """Columns of new variables, in the shape of their cost."""
        places: Indices = self.size + np.arange(cost.size).reshape(cost.shape)
        self.size += cost.size
        self._costs.append(cost.ravel())
        self._below.append(np.broadcast_to(below, cost.shape).ravel().astype(np.float64))
        self._above.append(np.broadcast_to(above, cost.shape).ravel().astype(np.float64))
        return places

    def constrain(self, low: Any, high: Any, *terms: tuple[Indices, Any]) -> Indices:
        """New rows, low <= sum of factor x variable <= high, in the shape that all terms have."""
        shape = terms[0][0].shape
        rows: Indices = self.rows + np.arange(terms[0][0].size)
        self.rows += rows.size
        for columns, factor in terms:
            self._entries.append((rows, columns.ravel(), np.broadcast_to(factor, shape).ravel()))
        self._low.append(np.broadcast_to(low, shape).ravel())
        self._high.append(np.broadcast_to(high, shape).ravel())
        return rows.reshape(shape)

    @property
    def cost(self) -> Array:
        """`[size]`."""
        return np.concatenate(self._costs)

    @property
    def below(self) -> Array:
        """`[size]`."""
        return np.concatenate(self._below)

    @property
    def above(self) -> Array:
        """`[size]`."""
        return np.concatenate(self._above)

    @property
    def low(self) -> Array:
        """`[rows]`."""
        return np.concatenate(self._low)

    @property
    def high(self) -> Array:
        """`[rows]`."""
        return np.concatenate(self._high)

    def entries(self) -> tuple[Indices, Indices, Array]:
        """Row, column and factor of each term."""
        rows, columns, factors = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        return rows, columns, factors
