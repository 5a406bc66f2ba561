"""Seeing: the compiled observation loop against copying memory, and the observations of the object form."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from benchmarks.case import Case, Comparison, Role, Setting, timed
from heron_env import (
    Continuous,
    DefaultObservability,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ObservabilityConfig,
    ObservabilityLevel,
    SimulationState,
    SystemAgent,
    construct_observation,
    create_agent_state_model,
    quantity,
)
from heron_env.observability.noise import Moment

AGENTS, VARIABLES = 100, 20
ELEMENTS: Final = 10_000_000
BYTES: Final = 8
"""Counted for each element: what is read of it."""
GATHER, LAW = "gather", "gather and noise, the full law"
COPY, COPY_THREADS = "copying memory", "copying memory, threads"
ONE, ALL, ALL_VECTORS = "one observer, objects", "all observers, objects", "all observers, vectors"
NOISE: Final = 0.1


class Watcher(FieldAgent):
    """Sees everything of everybody."""

    action = Continuous(-1.0, 1.0)


def comparisons() -> list[Comparison]:
    """The loop, and the objects."""
    return [
        Comparison("observation-kernel", "Observation loop, 10 M elements", "GB/s", _kernel),
        Comparison(
            "observation-objects", f"{AGENTS} agents with {VARIABLES} variables, all insiders, with noise", "CPU-s",
            _objects, less=True, quick=True,
        ),
    ]  # fmt: skip


def wide(noise: float, observers: int = 1) -> HeronEnv:
    """An environment of AGENTS agents with VARIABLES numbers each, all seen by so many watchers."""
    body = {f"x{i}": quantity(default=1.0, low=-9.0, high=9.0) for i in range(VARIABLES)}
    feature: Any = type("Many", (FeatureProvider,), {**body, "__annotations__": dict.fromkeys(body, float)})
    agent: Any = type("Wide", (FieldAgent,), {"features": (feature,)})
    system = SystemAgent(
        "root", *(Watcher(f"watcher_{i}") for i in range(observers)), *(agent(f"wide_{i}") for i in range(AGENTS))
    )
    return HeronEnv(system, observability=everyone(noise))


def everyone(noise: float) -> ObservabilityConfig:
    """Everybody sees all of everybody with this noise."""
    return ObservabilityConfig(default=DefaultObservability(level=ObservabilityLevel.INSIDER, noise=noise))


def _kernel(setting: Setting) -> Sequence[Case]:
    from benchmarks.floors import Copying

    elements = ELEMENTS // 10 if setting.quick else ELEMENTS
    per_call = BYTES * elements / 1e9
    cases = [
        Case(name, timed(observing(noise, elements // (AGENTS * VARIABLES), setting.threads), per_call))
        for name, noise in {GATHER: 0.0, LAW: NOISE}.items()
    ]
    for name, threads in {COPY: 1, COPY_THREADS: setting.threads}.items():
        if name == COPY or threads > 1:
            copying = Copying(elements, threads)
            cases.append(Case(name, timed(copying, per_call), Role.FLOOR, close=copying.threads.close))
    return cases


def observing(noise: float, lanes: int, threads: int) -> Callable[[], Any]:
    """The observations of so many environments, AGENTS x VARIABLES elements each."""
    from heron_env.engine.lanes import Lanes
    from heron_env.envs.lane import blueprint_of

    env = wide(noise)
    env.reset(seed=0)
    loop = Lanes(blueprint_of(env.simulation), lanes, threads)
    loop.arrays.initial[:] = env.simulation.truth
    loop.restart(np.ones(lanes, np.uint8))
    return loop.observe


def _objects(setting: Setting) -> Sequence[Case]:
    names = [f"wide_{i}" for i in range(AGENTS)]
    member = create_agent_state_model({f"x{i}": {"type": "float", "default": 1.0} for i in range(VARIABLES)})
    truth = SimulationState(turn=0, agents={name: member() for name in names}, global_state={})
    config = everyone(NOISE)
    env = wide(NOISE, AGENTS)
    env.reset(seed=0)
    plan, array = env.simulation.plan, env.simulation.truth
    look = plan.gather([env.hierarchy.index[agent] for agent in env.possible_agents])
    turns = iter(range(10**9))
    return [
        Case(ONE, cpu_seconds(lambda: construct_observation(names[7], truth, config))),
        Case(ALL, cpu_seconds(lambda: [construct_observation(name, truth, config) for name in names])),
        Case(ALL_VECTORS, cpu_seconds(lambda: look(array, Moment(0, 0, next(turns))))),
    ]


def cpu_seconds(work: Callable[[], Any]) -> Callable[[float], float]:
    """The `run` of a case that tells the CPU seconds of one call."""
    return lambda seconds: 1.0 / max(_cpu_rate(work, seconds), 1e-12)


def _cpu_rate(work: Callable[[], Any], seconds: float) -> float:
    from benchmarks.case import rate

    return rate(work, 1.0, seconds, time.process_time)
