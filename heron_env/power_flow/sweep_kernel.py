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

from heron_env.engine.kernels import leaf, on_arrays

WIDTH = 8
"""Scenarios in a block."""
ZERO = np.uintp(0)


@on_arrays
def sweep(
    first: Any, last: Any, p: Any, q: Any, order: Any, parent: Any, line: Any, branch: Any, shunt: Any, slack: Any,
    tolerance: Any, most: Any, voltage: Any, current: Any, totals: Any, iterations: Any,
) -> None:  # fmt: skip
    """Solve the scenarios `first` to `last - 1`.

    Args:
        p, q: load, kW and kvar, `[B, buses]`.
        order, parent, line: of each position (tree.py), `[n]`.
        branch: r, x of what feeds each position, `[2, n]`; shunt: g, b at each position, `[2, n]`.
        slack: its voltage. tolerance: of the last change of any voltage. most: iterations.
        voltage: out, `[B, buses]`. current: out, `[B, lines]`.
        totals: out, losses, p and q from the slack, current of the source, `[B, 4]`.
        iterations: out, 0 where there was no convergence, and nan everywhere else, `[B]`.
    """
    n = len(order)
    load, v, j = np.empty((n, 2, WIDTH)), np.empty((n + 1, 2, WIDTH)), np.empty((n, 2, WIDTH))
    change, done = np.empty(WIDTH), np.empty(WIDTH, np.bool_)
    for start in range(first, last, WIDTH):
        count = min(WIDTH, last - start)
        _begin(start, count, p, q, order, slack, load, v)
        done[:count], done[count:], left = False, True, count
        turn = 0
        while left > 0 and turn < most:
            turn += 1
            _inwards(load, shunt, parent, v, j)
            _outwards(branch, parent, v, j, change)
            for w in range(count):
                if not done[w] and not change[w] > tolerance:  # nan is the end, too
                    done[w] = True
                    left -= 1
                    good = change[w] <= tolerance
                    iterations[start + w] = turn if good else 0
                    _put(start + w, w, good, order, line, branch, shunt, v, j, voltage, current, totals)
        for w in range(count):
            if not done[w]:
                iterations[start + w] = 0
                _put(start + w, w, False, order, line, branch, shunt, v, j, voltage, current, totals)


@leaf
def _begin(start: Any, count: Any, p: Any, q: Any, order: Any, slack: Any, load: Any, v: Any) -> None:
    """Loads by position, flat voltages; what is left of the block carries nothing."""
    for k in range(len(order)):
        for w in range(WIDTH):
            load[k, 0, w] = p[start + w, order[k]] if w < count else 0.0
            load[k, 1, w] = q[start + w, order[k]] if w < count else 0.0
    for k in range(len(v)):
        for w in range(WIDTH):
            v[k, 0, w], v[k, 1, w] = slack, 0.0


@leaf
def _inwards(load: Any, shunt: Any, parent: Any, v: Any, j: Any) -> None:
    """Currents j = conj(s / v) + y v of each position, then of all behind it; `v[0]` is the slack's.

    Indices are unsigned: whether one is negative, and counts from the end, need not be asked for every element.
    """
    one, two, wide = np.uintp(1), np.uintp(2), np.uintp(WIDTH)
    for position in range(len(parent)):
        k = np.uintp(position)
        g, b = shunt[ZERO, k], shunt[one, k]
        for w in range(wide):
            p, q, x, y = load[k, ZERO, w], load[k, one, w], v[k + one, ZERO, w], v[k + one, one, w]
            scale = 1.0 / (x * x + y * y)
            j[k, ZERO, w] = (p * x + q * y) * scale + (g * x - b * y)
            j[k, one, w] = (p * y - q * x) * scale + (g * y + b * x)
    for position in range(len(parent) - 1, 0, -1):
        k, up = np.uintp(position), np.uintp(parent[position])
        for part in range(two):
            for w in range(wide):
                j[up, part, w] += j[k, part, w]


@leaf
def _outwards(branch: Any, parent: Any, v: Any, j: Any, change: Any) -> None:
    """Voltages from the source outwards, and the greatest change of any; nan where one is nan."""
    one, wide = np.uintp(1), np.uintp(WIDTH)
    for w in range(wide):
        change[w] = 0.0
    for position in range(len(parent)):
        k, up = np.uintp(position), np.uintp(parent[position] + 1)
        r, x = branch[ZERO, k], branch[one, k]
        for w in range(wide):
            real = v[up, ZERO, w] - (r * j[k, ZERO, w] - x * j[k, one, w])
            imaginary = v[up, one, w] - (r * j[k, one, w] + x * j[k, ZERO, w])
            moved = abs(real - v[k + one, ZERO, w]) + abs(imaginary - v[k + one, one, w])
            change[w] = change[w] if moved <= change[w] or change[w] != change[w] else moved
            v[k + one, ZERO, w] = real
            v[k + one, one, w] = imaginary


@leaf
def _put(
    b: Any, w: Any, good: Any, order: Any, line: Any, branch: Any, shunt: Any, v: Any, j: Any, voltage: Any,
    current: Any, totals: Any,
) -> None:  # fmt: skip
    """One scenario's results; nan if it did not converge."""
    losses = 0.0
    for k in range(len(order)):
        square = j[k, 0, w] ** 2 + j[k, 1, w] ** 2
        level = v[k + 1, 0, w] ** 2 + v[k + 1, 1, w] ** 2
        losses += branch[0, k] * square + shunt[0, k] * level
        voltage[b, order[k]] = np.sqrt(level) if good else np.nan
        if k > 0:
            current[b, line[k]] = np.sqrt(square) if good else np.nan
    totals[b, 0] = losses if good else np.nan
    totals[b, 1] = v[0, 0, w] * j[0, 0, w] if good else np.nan
    totals[b, 2] = -v[0, 0, w] * j[0, 1, w] if good else np.nan
    totals[b, 3] = np.sqrt(j[0, 0, w] ** 2 + j[0, 1, w] ** 2) if good else np.nan
