"""Power flow: 4,096 load scenarios of the 33-bus feeder at once, beside power-grid-model where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks import baran_wu
from benchmarks.case import Case, Comparison, Role, Setting, timed
from heron_env.power_flow import PowerFlow

Floats = NDArray[np.float64]
NAME: Final = "power-flow-33"
SCENARIOS: Final = 4096
ONE, THREADS = "one thread", "threads"
METHODS: Final = ("newton_raphson", "iterative_current")
"""Of power-grid-model; the others are approximations."""
LINES, LOADS, SOURCE = 1000, 2000, 3000
"""Where the numbers of its components begin."""


def comparisons() -> list[Comparison]:
    """The one comparison."""
    title = f"Power flow, 33-bus feeder, {SCENARIOS:,} scenarios"
    return [Comparison(NAME, title, "scenarios/s", _cases, quick=True)]


def scenarios(count: int) -> tuple[Floats, Floats]:
    """The nominal loads times factors from 0.2 to 1.5, drawn for each bus and scenario: kW and kvar `[count, 33]`."""
    factor = np.random.default_rng(0).uniform(0.2, 1.5, (count, 33))
    p, q = baran_wu.nominal_load()
    return factor * p, factor * q


def _cases(setting: Setting) -> Sequence[Case]:
    feeder, (p, q) = baran_wu.feeder(), scenarios(SCENARIOS)
    counts = {ONE: 1, THREADS: setting.threads} if setting.threads > 1 else {ONE: 1}
    solvers = {name: PowerFlow(feeder, threads=threads) for name, threads in counts.items()}
    ours = [
        Case(name, timed(lambda solver=solver: solver.solve(p, q), len(p)), close=solver.close)  # type: ignore[misc]
        for name, solver in solvers.items()
    ]
    return [*ours, *_power_grid_model(p, q, setting.threads)]


def _power_grid_model(p: Floats, q: Floats, threads: int) -> list[Case]:
    """Its two exact methods with as many threads, asked for voltages only; none where it is not installed."""
    if find_spec("power_grid_model") is None:
        return []
    from power_grid_model import CalculationMethod, ComponentType, PowerGridModel, initialize_array

    model, update = PowerGridModel(grid_of(initialize_array)), {"sym_load": loads_of(initialize_array, p, q)}

    def work(method: Any) -> Any:
        return lambda: model.calculate_power_flow(
            calculation_method=method, update_data=update, threading=threads,
            output_component_types={ComponentType.node: ["u_pu"]},
        )  # fmt: skip

    return [
        Case(f"power-grid-model, {name}", timed(work(CalculationMethod[name]), len(p)), Role.PEER) for name in METHODS
    ]


def loads_of(array: Any, p: Floats, q: Floats) -> Any:
    """The scenarios in power-grid-model's words."""
    loads = array("update", "sym_load", p.shape)
    loads["id"] = np.arange(LOADS, LOADS + p.shape[1])
    loads["p_specified"], loads["q_specified"] = 1e3 * p, 1e3 * q
    return loads


def grid_of(array: Any) -> dict[str, Any]:
    """The feeder in power-grid-model's words: SI units, every component with a number."""
    feeder = baran_wu.feeder()
    node, line = array("input", "node", len(feeder.buses)), array("input", "line", len(feeder.lines))
    node["id"], node["u_rated"] = np.arange(len(node)), 1e3 * feeder.base_kv
    line["id"] = LINES + np.arange(len(line))
    line["from_node"] = [feeder.buses.index(each.start) for each in feeder.lines]
    line["to_node"] = [feeder.buses.index(each.end) for each in feeder.lines]
    line["from_status"] = line["to_status"] = 1
    line["r1"], line["x1"] = [each.r for each in feeder.lines], [each.x for each in feeder.lines]
    line["c1"] = line["tan1"] = 0.0
    line["i_n"] = 1000.0
    load, source = array("input", "sym_load", len(node)), array("input", "source", 1)
    load["id"], load["node"] = LOADS + node["id"], node["id"]
    load["status"], load["type"] = 1, 0  # 0: constant power
    load["p_specified"] = load["q_specified"] = 0.0
    source["id"], source["node"], source["status"], source["u_ref"] = SOURCE, 0, 1, feeder.slack_voltage
    source["sk"] = 1e20
    return {"node": node, "line": line, "sym_load": load, "source": source}
