"""The law of linear cost as functions: counts of floats, messages and calls at growing numbers of agents."""

import gc
import os
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import heron_env
from heron_env import HeronEnv, make
from heron_env.core import layout
from heron_env.observability.plan import ObservationPlan

PACKAGE = os.path.join(os.path.dirname(heron_env.__file__), "")


def battery_grid(n: int, zone_size: int = 10, **options: Any) -> HeronEnv:
    """A grid in which only a battery's zone sees its charge."""
    return make("heron/BatteryGrid-v0", num_batteries=n, zone_size=zone_size, scope="parent", max_steps=2, **options)


def neighbours(n: int) -> dict[str, Any]:
    """A matrix in which each battery sees the next one, and the world, with noise: rows grow with the agents."""
    rows = [[f"battery_{i}", f"battery_{i % n + 1}", "insider", 0.1] for i in range(1, n + 1)]
    return {"matrix": [*rows, *([f"battery_{i}", "global", "insider", 0.1] for i in range(1, n + 1))]}


def idle(vector: Any) -> list[float]:
    """The no-op."""
    return [0.0]


def assert_linear(what: str, sizes: tuple[int, ...], counts: list[int]) -> None:
    """The growth per agent does not grow."""
    (a, b, c), (x, y, z) = sizes, counts
    slope, later = (y - x) / (b - a), (z - y) / (c - b)
    assert later <= 1.03 * slope + 0.01, f"{what}: {counts} for {sizes} agents: {slope:.2f}, then {later:.2f} per agent"


def check_linear_sizes(sizes: tuple[int, ...] = (10, 100, 1000)) -> None:
    """Columns of the plan, of the layout, messages and events of a run of two steps."""
    columns, widths, sent, handled = [], [], [], []
    for n in sizes:
        env = battery_grid(n)
        columns.append(sum(len(view.columns) for view in env.simulation.model.plan.views))
        widths.append(env.simulation.model.layout.size)
        result = env.run_event_driven({"*": idle}, seed=0, trace=True)
        assert result.trace is not None
        sent.append(result.messages.sent)
        handled.append(len(result.trace))
    for what, counts in (("columns", columns), ("truth", widths), ("messages", sent), ("events", handled)):
        assert_linear(what, sizes, counts)


def check_linear_cost(zone_size: int, counts: tuple[int, ...]) -> None:
    """Calls of Python and C functions while building, resetting, stepping, and running event-driven."""
    made: list[list[int]] = []
    for n in counts:
        env = battery_grid(n, zone_size)
        actions = {agent: [0.0] for agent in env.possible_agents}
        tasks: list[Callable[[], Any]] = [
            lambda n=n: battery_grid(n, zone_size),
            lambda env=env: env.reset(seed=0),
            lambda env=env, actions=actions: env.step(actions),
            lambda env=env: env.run_event_driven({"*": idle}, seed=0),
        ]
        made.append([min(calls(task), calls(task)) for task in tasks])  # caches of Python's own fill up in between
    for what, column in zip(("build", "reset", "step", "event-driven run"), zip(*made, strict=True), strict=True):
        assert_linear(f"calls to {what}", counts, list(column))


def check_linear_cost_of_a_matrix(counts: tuple[int, ...]) -> None:
    """Calls, ids hashed too, while compiling a plan from a matrix and reading everything by it."""
    real, made = layout.h, []

    def counted(text: str) -> int:
        return real(text)  # a call of Python, which the profile sees; the cached function it does not

    with patch.object(layout, "h", counted):
        for n in counts:
            env = battery_grid(n, observability=neighbours(n))
            fresh = battery_grid(n)
            simulation = env.simulation

            def task(fresh: Any = fresh.simulation, config: Any = env.observability) -> None:
                plan = ObservationPlan(fresh.model.hierarchy, fresh.model.layout, False, config)
                for rank in range(len(plan.views)):
                    plan.vector(rank, fresh.truth, fresh.moment)

            assert sum(view.factors.any() for view in simulation.model.plan.views) == n
            made.append([calls(task), sum(len(view.columns) for view in simulation.model.plan.views)])
    for what, column in zip(("calls", "columns"), zip(*made, strict=True), strict=True):
        assert_linear(f"{what} of a matrix", counts, list(column))


def calls(task: Callable[[], Any]) -> int:
    """How many functions are called, with the collector off: its callbacks would count wherever it happens to run."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()
    sys.setprofile(note)
    try:
        task()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def lines_run(work: Callable[[], Any]) -> int:
    """How many lines of this package's Python run: a count of work that no clock disturbs."""
    count = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
