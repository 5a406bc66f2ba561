"""A substep of the networks of zones of one size: loads from the truth, the power flow, its results and its price.

`N` is the address of their table (network_tables.py). Scenarios are zones of lanes, in blocks as the sweep takes them
(sweep_kernel.py). Compiled from a copy of this file in the engine's cache folder.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.kernels import leaf, number, on_arrays, table, table_of, within
from heron_env.power_flow.sweep_kernel import WIDTH, solve_block
from heron_env.worlds.energy_management.network import (
    AMOUNT,
    AMPERE,
    BACKGROUND,
    COLLAPSED_MINUTES,
    FAR_LOSSES,
    FORMS,
    HIGH_SIDE,
    HIGHEST_ALLOWED,
    HIGHEST_VOLTAGE,
    ITERATIONS,
    LINE_LOADING,
    LOADING_PRICE,
    LOSSES,
    LOST,
    LOW_SIDE,
    LOWEST_ALLOWED,
    LOWEST_VOLTAGE,
    MAX_LOADING,
    OUTSIDE_MINUTES,
    REACTIVE,
    SLACK,
    TOLERANCE,
    TRANSFORMER_LOADING,
    VOLTAGE_PRICE,
)

of = table_of(FORMS)


@on_arrays
def substep(D: Any, N: Any, first: Any, last: Any) -> Any:
    """In lanes [first, last) that are not over; returns 0: nothing can fail (model.Native).

    D: the engine's table (arrays.py), of which the truth, `over` and `dt_piece` are read. With dt = 0 nothing is paid
    and nothing counted. A zone with a load that is nan stays as it is: who checks the truth, or a rule, will say so.
    """
    rows, over, dt = table(D, "truth"), table(D, "over"), number(D, "dt_piece")
    tree, law, size = of(N, "tree"), of(N, "law"), len(of(N, "zones"))
    n = tree.shape[1]
    block, change, room = np.empty((n + 1, 6, WIDTH)), np.empty(WIDTH), np.empty((4, WIDTH, n))
    p, q, voltage, current = room[0], room[1], room[2], room[3]
    totals, iterations = np.empty((WIDTH, 5)), np.empty(WIDTH, np.int64)
    gathered = settled = (first, 0)  # lane and zone
    for start in range(first * size, last * size, WIDTH):
        count = min(WIDTH, last * size - start)
        for w in range(count):
            _gather(N, rows, *gathered, p, q, w)
            gathered = _next(*gathered, size)
        solve_block(
            0, count, p, q, tree[0], tree[1], tree[2], of(N, "branch"), of(N, "shunt"), law[SLACK], law[TOLERANCE],
            law[ITERATIONS], block, change, voltage, current, totals, iterations,
        )  # fmt: skip
        for w in range(count):
            b, z = settled
            if over[b] == 0 and np.isfinite(p[w].sum() + q[w].sum()):
                _settle(N, rows, b, z, dt, voltage, current, totals, w, iterations[w] > 0)
            settled = _next(b, z, size)
    return 0


@leaf
def _next(b: Any, z: Any, size: Any) -> Any:
    """Lane and zone of the scenario after that of zone `z` of lane `b`: no division, which is slow."""
    return (b, z + 1) if z + 1 < size else (b + 1, 0)


@leaf
def _gather(N: Any, rows: Any, b: Any, z: Any, p: Any, q: Any, w: Any) -> None:
    """kW and kvar of zone `z` of lane `b` by bus, as scenario `w`."""
    zones, buses, grid, load = of(N, "zones"), of(N, "buses"), of(N, "grid"), of(N, "load")
    reactive, batteries, fixed = of(N, "law")[REACTIVE], grid.shape[1], of(N, "fixed")
    for k in range(p.shape[1]):
        p[w, k], q[w, k] = fixed[0, k], fixed[1, k]
    for j in range(batteries):
        p[w, buses[j]] += rows[b, grid[z, j]]
        q[w, buses[j]] += reactive * rows[b, load[z, j]]
    share = rows[b, zones[z, BACKGROUND]] / (len(buses) - batteries)
    for j in range(batteries, len(buses)):
        p[w, buses[j]] += share
        q[w, buses[j]] += reactive * max(share, 0.0)


@leaf
def _settle(
    N: Any, rows: Any, b: Any, z: Any, dt: Any, voltage: Any, current: Any, totals: Any, w: Any, solved: Any
) -> None:
    """What zone `z` of lane `b` sees of scenario `w`; paid and counted. Nothing flows in a collapsed grid."""
    zone, buses, law = of(N, "zones")[z], of(N, "buses"), of(N, "law")
    terminals, shares = of(N, "voltage"), of(N, "shares")
    outside = line = transformer = losses = lowest = highest = 0.0
    if solved:
        transformer = max(totals[w, 3] * law[LOW_SIDE], totals[w, 4] * law[HIGH_SIDE])
        losses = totals[w, 0] + law[FAR_LOSSES]
        lowest = highest = voltage[w, 0]
        for k in range(voltage.shape[1]):
            lowest, highest = min(lowest, voltage[w, k]), max(highest, voltage[w, k])
        for k in range(len(shares)):
            line = max(line, current[w, k] * law[AMPERE] * shares[k])
    for j in range(len(buses)):
        level = voltage[w, buses[j]] if solved else 0.0
        outside += max(level - law[HIGHEST_ALLOWED], 0.0) + max(law[LOWEST_ALLOWED] - level, 0.0)
        if j < terminals.shape[1]:
            _write(N, rows, b, terminals[z, j], level)
    _write(N, rows, b, zone[TRANSFORMER_LOADING], transformer)
    _write(N, rows, b, zone[LINE_LOADING], line)
    _write(N, rows, b, zone[LOSSES], losses)
    _write(N, rows, b, zone[LOWEST_VOLTAGE], lowest)
    _write(N, rows, b, zone[HIGHEST_VOLTAGE], highest)
    if dt > 0.0:
        hours, minutes, loading = dt / 3600.0, dt / 60.0, max(transformer, line)
        paid = law[VOLTAGE_PRICE] * 100.0 * outside + law[LOADING_PRICE] * max(loading - 1.0, 0.0)
        _add(N, rows, b, zone[AMOUNT], -paid * hours)
        _add(N, rows, b, zone[OUTSIDE_MINUTES], minutes if outside > 0.0 else 0.0)
        _add(N, rows, b, zone[COLLAPSED_MINUTES], 0.0 if solved else minutes)
        _add(N, rows, b, zone[LOST], losses * hours)
        _write(N, rows, b, zone[MAX_LOADING], max(rows[b, zone[MAX_LOADING]], loading))


@leaf
def _write(N: Any, rows: Any, b: Any, column: Any, value: Any) -> None:
    """Write a number within its bounds."""
    rows[b, column] = within(value, of(N, "low")[column], of(N, "high")[column])


@leaf
def _add(N: Any, rows: Any, b: Any, column: Any, value: Any) -> None:
    """Add to a number within its bounds."""
    _write(N, rows, b, column, rows[b, column] + value)
