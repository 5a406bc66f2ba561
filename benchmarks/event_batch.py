"""Event-driven episodes side by side in compiled code, beside the Python clock and the synchronous batch; CPU time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from benchmarks.case import Case, Comparison, Role, Setting, rate
from benchmarks.events import SCHEDULES, SIZES, Echo
from heron_env import BatchEnv, EventBatchEnv, HeronEnv, ScheduleConfig, make

LANES: Final = 1024
NETWORKS: Final = {
    "jitter": ScheduleConfig(msg_delay=3.0, act_delay=2.0, jitter_type="uniform", jitter_ratio=0.3, loss=0.05),
    "steady": ScheduleConfig(msg_delay=3.0, act_delay=2.0, loss=0.05),
}
"""3 s messages and 2 s actions, one message in twenty lost; with jitter and without."""
OPTIONS: Final[Mapping[str, dict[str, Any]]] = {
    "dt": {"physics_substeps": 6, "report_interval": 60.0},
    "defaults": {},
}
"""Telemetry once a step of 60 s and 6 substeps; as it comes (10 s, 30 substeps)."""
COMPILED, PYTHON, STEPS = "compiled event clock", "Python event clock", "synchronous batch"
BYTES: Final = "bytes a lane"


def comparisons() -> list[Comparison]:
    """EnergyManagement-v1 with and without jitter, and as it comes; BatteryGrid in phase, one lane."""
    days = [("jitter", "dt"), ("steady", "dt"), ("jitter", "defaults")]
    return [
        Comparison(
            f"eventbatch-{network}-{telemetry}", f"EnergyManagement-v1, {network}, telemetry: {telemetry}",
            "env-steps per CPU s", _days(network, telemetry), quick=(network, telemetry) == ("jitter", "dt"),
        )
        for network, telemetry in days
    ] + [
        Comparison(
            f"eventbatch-phase-{n}-{scope}", f"BatteryGrid in phase, one lane, {n:,} agents, {scope}",
            "model events per CPU s", _phase(n, scope),
        )
        for n in SIZES for scope in ("parent", "public")
    ]  # fmt: skip


def _days(network: str, telemetry: str) -> Callable[[Setting], Sequence[Case]]:
    def build(setting: Setting) -> Sequence[Case]:
        def env() -> HeronEnv:
            return make("heron/EnergyManagement-v1", **OPTIONS[telemetry])

        lanes = LaneSteps(env(), LANES, NETWORKS[network])
        return [
            Case(COMPILED, lanes, facts=lanes.facts),
            Case(PYTHON, PythonSteps(env(), NETWORKS[network]), Role.FLOOR),
            Case(STEPS, BatchSteps(env()), Role.CEILING),
        ]

    return build


class LaneSteps:
    """Control steps of all lanes per CPU second, from decision to decision; the no-op costs nothing."""

    def __init__(self, env: HeronEnv, lanes: int, schedule: ScheduleConfig) -> None:
        self.batch = EventBatchEnv(env, lanes, seed=0, schedule=schedule, threads=1)
        self._rows = self.batch.begin()
        self._width = max(spec.size for spec in env.simulation.model.specs)

    def _done(self) -> int:
        steps = self.batch._lanes.steps
        return int(steps.steps.sum()) + int(steps.last_length.max()) * int(steps.episodes.astype(np.int64).sum())

    def __call__(self, seconds: float) -> float:
        """Calls of `answer` for about so many seconds."""
        before, began, spent = self._done(), time.process_time(), 0.0
        while spent < seconds:
            self._rows = self.batch.answer(np.zeros((len(self._rows), self._width)))
            spent = time.process_time() - began
        return (self._done() - before) / spent

    def facts(self) -> dict[str, float]:
        """Memory of a lane, of clock, world and day."""
        lanes = self.batch._lanes
        held = sum(array.nbytes for array in (*lanes.arrays.values(), *lanes.steps.arrays))
        tables = getattr(self.batch.env, "tables", None)
        days = sum(array.nbytes for array in vars(tables).values() if isinstance(array, np.ndarray)) if tables else 0
        return {BYTES: (held + days) / self.batch.num_envs}


class PythonSteps:
    """The same of one episode after another in the Python clock: of the first hours of a day."""

    def __init__(self, env: HeronEnv, schedule: ScheduleConfig, hours: float = 2.0) -> None:
        self._env, self._schedule, self._end = env, schedule, 3600.0 * hours
        specs = env.simulation.model.specs
        self._policies = {env.hierarchy.ids[r]: _Still(specs[r].noop) for r in env.simulation.model.possible}

    def __call__(self, seconds: float) -> float:
        """Episodes of about so many seconds."""
        return rate(self._episode, self._end / self._env.dt, seconds, time.process_time)

    def _episode(self) -> None:
        self._env.run_event_driven(self._policies, t_end=self._end, seed=0, schedule=self._schedule, record=())


class _Still:
    def __init__(self, noop: Any) -> None:
        self.noop = noop

    def forward(self, vector: Any) -> Any:
        """The no-op."""
        return self.noop


class BatchSteps:
    """Control steps of the synchronous batch per CPU second."""

    def __init__(self, env: HeronEnv) -> None:
        self._batch = BatchEnv(env, LANES, seed=0, threads=1)
        self._batch.reset()
        sizes = {name: (LANES, len(group), env.simulation.model.specs[env.hierarchy.index[group[0]]].size)
                 for name, group in self._batch.groups.items()}  # fmt: skip
        self._still = {name: np.zeros(size) for name, size in sizes.items()}

    def __call__(self, seconds: float) -> float:
        """Steps for about so many seconds."""
        return rate(lambda: self._batch.step(self._still), LANES, seconds, time.process_time)


def _phase(n: int, scope: str) -> Callable[[Setting], Sequence[Case]]:
    def build(setting: Setting) -> Sequence[Case]:
        steps = max(5, 5_000 // n)
        env = make("heron/BatteryGrid-v0", num_batteries=n, scope=scope, max_steps=steps)
        run = env.start_event_driven({"*": Echo()}, seed=0, schedule=SCHEDULES["in phase"], record=())
        run.until(None)
        events = run.context.scheduler.taken
        return [
            Case(COMPILED, PhaseEvents(env, events)),
            Case(PYTHON, lambda seconds: rate(lambda: _whole(env), events, seconds, time.process_time), Role.FLOOR),
        ]

    return build


def _whole(env: HeronEnv) -> None:
    env.run_event_driven({"*": Echo()}, seed=0, schedule=SCHEDULES["in phase"], record=())


class PhaseEvents:
    """Events that the Python clock would have handled, per CPU second, in whole episodes of one lane."""

    def __init__(self, env: HeronEnv, events: int) -> None:
        self._batch = EventBatchEnv(env, 1, seed=0, schedule=SCHEDULES["in phase"], threads=1, autoreset="disabled")
        self._events = events

    def __call__(self, seconds: float) -> float:
        """Episodes of about so many seconds."""
        return rate(self._episode, self._events, seconds, time.process_time)

    def _episode(self) -> None:
        rows = self._batch.begin()
        while len(rows):
            rows = self._batch.answer(rows.obs[:, :1])
