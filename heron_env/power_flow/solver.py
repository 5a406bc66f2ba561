"""The solver: a feeder turned into numbers once, and batches of loads solved on it."""

from __future__ import annotations

import functools
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heron_env.engine.cache import cached_file
from heron_env.errors import ConfigError
from heron_env.given import is_number, require_type, whole
from heron_env.power_flow.feeder import Feeder

Floats = NDArray[np.float64]

KERNEL = Path(__file__).with_name("sweep_kernel.py")
PARALLEL_FROM = 16_384
"""Below this many bus voltages in a call a second thread costs more than it saves."""


@dataclass(frozen=True)
class Flows:
    """Solutions of B scenarios; a row is nan where `converged` is False: there is no solution, or it needs more
    iterations.

    Attributes:
        voltage: pu, `[B, buses]`.
        current: A at that end of a line where it is greater, `[B, lines]`.
        loading: of the lines' ratings, 1 is full, `[B, lines]`; 0 where there is no rating.
        transformer: loading, current over the rated one on that side where it is greater, `[B]`; 0 where there is none.
        losses: kW in lines, transformer and shunts, `[B]`.
        slack_p, slack_q: what comes into the feeder, kW and kvar, `[B]`.
        converged: bool `[B]`.
        iterations: `[B]`; 0 where there was no convergence.
    """

    voltage: Floats
    current: Floats
    loading: Floats
    transformer: Floats
    losses: Floats
    slack_p: Floats
    slack_q: Floats
    converged: NDArray[np.bool_]
    iterations: NDArray[np.int64]


class PowerFlow:
    """Backward/forward sweeps over one feeder: constant-power loads, exact AC, each scenario on its own.

    A scenario counts as solved when no voltage moved by more than `tolerance` in the last sweep. Sweeps converge
    linearly, and one that takes all of `iterations` shrinks its steps by at least 2 % a sweep, so what is left is below
    50 times the tolerance: 5e-9 pu. Loads beyond the feeder's limit (voltage collapse) do not converge, and say so.

    Args:
        feeder: what is solved.
        threads: how many share a large batch; results do not depend on it.
        tolerance: pu.
        iterations: at most.

    Attributes:
        tables: the feeder and the law, as compiled sweeps are given them (sweep_kernel.py).
        ampere: A of 1 kVA at nominal voltage. shares: of its rating that each line carries with 1 A, `[lines]`.
        sides: of its rating that the transformer's low and high side carry with the current of 1 kVA; 0 without one.
        far_side: kW and kvar, a complex number, in the half of the transformer's shunt that the sweep does not see.
    """

    def __init__(self, feeder: Feeder, *, threads: int = 1, tolerance: float = 1e-10, iterations: int = 1000) -> None:
        require_type(f"PowerFlow({feeder!r:.60})", feeder, Feeder, "a Feeder")
        counted = all(map(is_number, (threads, iterations))) and min(threads, iterations) >= 1
        if not (counted and is_number(tolerance) and 0.0 < tolerance < 1e-3):
            raise ConfigError(
                f"PowerFlow(threads={threads!r:.60}, tolerance={tolerance!r:.60}, iterations={iterations!r:.60}): "
                "threads and iterations must be >= 1, the tolerance > 0 and < 1e-3 pu"
            )
        threads = whole(threads, "PowerFlow(): threads", 1, 4096)
        iterations = whole(iterations, "PowerFlow(): iterations", 1)
        self.feeder, self.threads = feeder, threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None
        tree = feeder.tree
        order = np.array([tree.order, tree.parent, tree.line], np.int64)
        branch, shunt, far = per_unit(feeder)
        self.tables = order, branch, shunt, float(feeder.slack_voltage), tolerance, iterations
        self.far_side = far * feeder.slack_voltage * feeder.slack_voltage
        self.ampere = 1.0 / (math.sqrt(3.0) * feeder.base_kv)
        self.shares = np.array([1.0 / line.rating for line in feeder.lines])
        plate = feeder.transformer
        self.sides = (0.0, 0.0) if plate is None else (plate.sides[0] / plate.rating, plate.sides[1] / plate.rating)

    def solve(self, p: ArrayLike, q: ArrayLike) -> Flows:
        """Solve B scenarios.

        Args:
            p, q: what each bus takes, kW and kvar of all three phases, `[B, buses]`; negative feeds in. What is fixed
                in the feeder comes on top.

        Raises:
            ConfigError: the shapes are others, or a number is not finite.
        """
        power, reactive = self._checked("p", p), self._checked("q", q)
        if power.shape != reactive.shape:
            raise ConfigError(
                f"solve(p, q): p is {list(power.shape)} and q is {list(reactive.shape)}; give both [B, buses]"
            )
        fixed, fixed_reactive = self.feeder.fixed_power
        power, reactive = power + fixed, reactive + fixed_reactive
        lanes = len(power)
        voltage, current = np.empty(power.shape), np.empty((lanes, len(self.feeder.lines)))
        totals, iterations = np.empty((lanes, 5)), np.empty(lanes, np.int64)

        def run(first: int, last: int) -> None:
            kernel().sweep(first, last, power, reactive, *self.tables, voltage, current, totals, iterations)

        self._share_out(lanes, power.size, run)
        current *= self.ampere
        return Flows(
            voltage=voltage,
            current=current,
            loading=current * self.shares,
            transformer=np.maximum(totals[:, 3] * self.sides[0], totals[:, 4] * self.sides[1]),
            losses=totals[:, 0] + self.far_side.real,
            slack_p=totals[:, 1] + self.far_side.real,
            slack_q=totals[:, 2] - self.far_side.imag,
            converged=iterations > 0,
            iterations=iterations,
        )

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _checked(self, name: str, given: ArrayLike) -> Floats:
        buses = len(self.feeder.buses)
        shape = f"give numbers [B, {buses}], a row for each scenario and a column for each bus"
        try:
            values = np.ascontiguousarray(given, np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise ConfigError(f"solve({name}): {given!r:.60} are no numbers; {shape}") from error
        if values.ndim != 2 or values.shape[1] != buses:
            raise ConfigError(f"solve({name}): got the shape {np.shape(given)}; {shape}")
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise ConfigError(
                f"solve({name}): scenario {row} has {values[row, column]} at the bus {self.feeder.buses[column]!r}; "
                "loads are finite numbers"
            )
        return values

    def _share_out(self, lanes: int, voltages: int, run: Any) -> None:
        """All scenarios, in equal parts for the threads if there are many."""
        if self._pool is None or voltages < PARALLEL_FROM:
            run(0, lanes)
            return
        cuts = [lanes * part // self.threads for part in range(self.threads + 1)]
        others = [self._pool.submit(run, *cuts[part : part + 2]) for part in range(self.threads - 1)]
        run(*cuts[-2:])
        for other in others:
            other.result()


def per_unit(feeder: Feeder) -> tuple[Floats, Floats, complex]:
    """What feeds each position and what lies there in shunt, per unit of 1 kVA and the nominal voltage.

    branch: r, x, and g, b of the half of its shunt that it has at each of its ends, `[4, n]`. shunt: g, b of all that
    lies at a position, these halves with it, `[2, n]`. And the admittance on the transformer's far side.
    """
    tree, ohm = feeder.tree, 1.0 / (1000.0 * feeder.base_kv**2)  # of 1 kVA
    series, half, shunt = np.zeros((3, len(tree.order)), complex)
    if feeder.transformer is not None:
        series[0] = feeder.transformer.impedance / feeder.transformer.rating
        shunt[0] = half[0] = feeder.transformer.admittance * feeder.transformer.rating / 2.0
    for k in range(1, len(tree.order)):
        line = feeder.lines[tree.line[k]]
        series[k], half[k] = complex(line.r, line.x) * ohm, 0.5j * line.charging / ohm
        shunt[[k, tree.parent[k]]] += half[k]
    position = {feeder.buses[bus]: k for k, bus in enumerate(tree.order)}
    for one in feeder.shunts:
        shunt[position[one.bus]] += complex(one.g, one.b) / ohm
    branch = np.stack([series.real, series.imag, half.real, half.imag])
    return branch, np.stack([shunt.real, shunt.imag]), complex(half[0])


@functools.cache
def kernel() -> Any:
    """sweep_kernel.py, compiled once for an installation."""
    return cached_file(KERNEL)
