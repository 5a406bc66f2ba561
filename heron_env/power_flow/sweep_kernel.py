"""The backward/forward sweep: currents of the loads, summed towards the source; then voltages outwards, until still.

Source: D. Shirmohammadi, H. W. Hong, A. Semlyen, G. X. Luo, "A compensation-based power flow method for weakly meshed
distribution and transmission networks", IEEE Transactions on Power Systems 3(2), 753-762, 1988.

Everything is per unit of 1 kVA and the nominal voltage. Scenarios run side by side in blocks of WIDTH, which the
compiler turns into vector instructions; none can see its neighbours, so a scenario's bits do not depend on its block.
Compiled from a copy of this file in the engine's cache folder.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.kernels import inlined, leaf, on_arrays

WIDTH = 16
"""Scenarios in a block."""
_2, _4, _8, _16 = (np.uintp(width) for width in (2, 4, 8, WIDTH))
"""Columns of a block that are computed: as few as hold the scenarios."""
P, Q, X, Y, REAL, IMAGINARY = (np.uintp(slot) for slot in range(6))
"""Slots of a position in a block's array, one number for each scenario: load, voltage, current.

All lie in one array, so that the compiler sees that what belongs to one position does not overlap; and indices are
unsigned, so that it need not ask each time whether one is negative and counts from the end.
"""


@on_arrays
def sweep(
    first: Any, last: Any, p: Any, q: Any, tree: Any, branch: Any, shunt: Any, slack: Any, tolerance: Any, most: Any,
    voltage: Any, current: Any, totals: Any, iterations: Any,
) -> None:  # fmt: skip
    """Solve the scenarios `first` to `last - 1`.

    Args:
        p, q: load, kW and kvar, `[B, buses]`.
        tree: order, parent, line of each position (tree.py), `[3, n]`.
        branch: r, x of what feeds each position, and g, b that it has at each of its ends, `[4, n]`; shunt: g, b of
            all at each position, `[2, n]`.
        slack: its voltage. tolerance: of the last change of any voltage. most: iterations.
        voltage: out, `[B, buses]`. current: out, at that end of a line where it is greater, `[B, lines]`.
        totals: out, losses, p and q from the slack, current at the near and the far end of what feeds the source,
            `[B, 5]`.
        iterations: out, 0 where there was no convergence, and nan everywhere else, `[B]`.
    """
    block = np.empty((tree.shape[1] + 1, 6, WIDTH))
    change = np.empty(WIDTH)
    for start in range(first, last, WIDTH):
        solve_block(
            start, min(WIDTH, last - start), p, q, tree[0], tree[1], tree[2], branch, shunt, slack, tolerance, most,
            block, change, voltage, current, totals, iterations,
        )  # fmt: skip


@leaf
def solve_block(
    start: Any, count: Any, p: Any, q: Any, order: Any, parent: Any, line: Any, branch: Any, shunt: Any, slack: Any,
    tolerance: Any, most: Any, block: Any, change: Any, voltage: Any, current: Any, totals: Any, iterations: Any,
) -> None:  # fmt: skip
    """Solve `count` scenarios from `start` on, at most WIDTH; see `sweep`.

    block, change: room, `[n + 1, 6, WIDTH]`, `[WIDTH]`.
    """
    width = 2 if count <= 2 else 4 if count <= 4 else 8 if count <= 8 else WIDTH
    _begin(start, count, p, q, order, slack, block, width)
    iterations[start : start + count], left, turn = -1, count, 0
    while left > 0 and turn < most:
        turn += 1
        if width == 2:
            _turn(parent, branch, shunt, block, change, _2)
        elif width == 4:
            _turn(parent, branch, shunt, block, change, _4)
        elif width == 8:
            _turn(parent, branch, shunt, block, change, _8)
        else:
            _turn(parent, branch, shunt, block, change, _16)
        for w in range(count):
            if iterations[start + w] < 0 and not change[w] > tolerance:  # nan is the end, too
                left -= 1
                good = change[w] <= tolerance
                iterations[start + w] = turn if good else 0
                _put(start + w, w, good, order, parent, line, branch, shunt, block, voltage, current, totals)
    for w in range(count):
        if iterations[start + w] < 0:
            iterations[start + w] = 0
            _put(start + w, w, False, order, parent, line, branch, shunt, block, voltage, current, totals)


@leaf
def _begin(start: Any, count: Any, p: Any, q: Any, order: Any, slack: Any, block: Any, width: Any) -> None:
    """Loads by position, flat voltages; what is left of the columns carries nothing. Row 0 is the slack."""
    for k in range(len(block)):
        for w in range(width):
            taken = k > 0 and w < count
            block[k, P, w] = p[start + w, order[k - 1]] if taken else 0.0
            block[k, Q, w] = q[start + w, order[k - 1]] if taken else 0.0
            block[k, X, w], block[k, Y, w] = slack, 0.0


@inlined
def _turn(parent: Any, branch: Any, shunt: Any, block: Any, change: Any, width: Any) -> None:
    """One iteration of the columns [0, width), a constant."""
    _inwards(shunt, parent, block, width)
    _outwards(branch, parent, block, change, width)


@inlined
def _inwards(shunt: Any, parent: Any, block: Any, width: Any) -> None:
    """Currents conj(s / v) + y v of each position, then of all behind it."""
    for position in range(len(parent)):
        k, g, b = np.uintp(position + 1), shunt[0, position], shunt[1, position]
        for w in range(width):
            p, q, x, y = block[k, P, w], block[k, Q, w], block[k, X, w], block[k, Y, w]
            scale = 1.0 / (x * x + y * y)
            block[k, REAL, w] = (p * x + q * y) * scale + (g * x - b * y)
            block[k, IMAGINARY, w] = (p * y - q * x) * scale + (g * y + b * x)
    for position in range(len(parent) - 1, 0, -1):
        k, up = np.uintp(position + 1), np.uintp(parent[position] + 1)
        for w in range(width):
            block[up, REAL, w] += block[k, REAL, w]
            block[up, IMAGINARY, w] += block[k, IMAGINARY, w]


@inlined
def _outwards(branch: Any, parent: Any, block: Any, change: Any, width: Any) -> None:
    """Voltages from the source outwards, and the greatest change of any; nan where one is nan."""
    change[:] = 0.0
    for position in range(len(parent)):
        k, up = np.uintp(position + 1), np.uintp(parent[position] + 1)
        r, z = branch[0, position], branch[1, position]
        for w in range(width):
            x = block[up, X, w] - (r * block[k, REAL, w] - z * block[k, IMAGINARY, w])
            y = block[up, Y, w] - (r * block[k, IMAGINARY, w] + z * block[k, REAL, w])
            moved = abs(x - block[k, X, w]) + abs(y - block[k, Y, w])
            change[w] = change[w] if moved <= change[w] or change[w] != change[w] else moved
            block[k, X, w], block[k, Y, w] = x, y


@leaf
def _put(
    b: Any, w: Any, good: Any, order: Any, parent: Any, line: Any, branch: Any, shunt: Any, block: Any, voltage: Any,
    current: Any, totals: Any,
) -> None:  # fmt: skip
    """One scenario's results; nan if it did not converge."""
    losses = 0.0
    for k in range(len(order)):
        square = block[k + 1, REAL, w] ** 2 + block[k + 1, IMAGINARY, w] ** 2
        level = block[k + 1, X, w] ** 2 + block[k + 1, Y, w] ** 2
        losses += branch[0, k] * square + shunt[0, k] * level
        voltage[b, order[k]] = np.sqrt(level) if good else np.nan
        near = _end(k + 1, k + 1, -branch[2, k], -branch[3, k], block, w)
        far = _end(k + 1, parent[k] + 1, branch[2, k], branch[3, k], block, w)
        if k > 0:
            current[b, line[k]] = max(near, far) if good else np.nan
        else:
            totals[b, 3], totals[b, 4] = (near, far) if good else (np.nan, np.nan)
    totals[b, 0] = losses if good else np.nan
    totals[b, 1] = block[0, X, w] * block[1, REAL, w] if good else np.nan
    totals[b, 2] = -block[0, X, w] * block[1, IMAGINARY, w] if good else np.nan


@leaf
def _end(k: Any, at: Any, g: Any, b: Any, block: Any, w: Any) -> Any:
    """Amount of the current of row k with what g + jb takes at the voltage of row `at`."""
    x, y = block[at, X, w], block[at, Y, w]
    real, imaginary = block[k, REAL, w] + (g * x - b * y), block[k, IMAGINARY, w] + (g * y + b * x)
    return np.sqrt(real**2 + imaginary**2)
