"""The truth at the boundaries of some episodes, who moved what in between, and what the coming step depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.world import World
from heron_env.envs.base import HeronEnv
from heron_env.envs.decisions import act
from heron_env.testing.probes import choices, waves

Floats = NDArray[np.float64]
Columns = NDArray[np.int64]
LITTLE = 0.01
"""Of the range that a quantity has passed through."""


class Boundaries:
    """Episodes of an environment in plain Python (`in_python`), watched between effects, substeps and `finish`.

    Attributes:
        shown: of each episode, float64 `[boundaries, columns]`: what may be observed there, the first after `begin`.
        written: at how many boundaries `finish` changed the column, int64 `[columns]`.
        moved: has anything else changed it within a step? bool `[columns]`
    """

    def __init__(self, env: HeronEnv) -> None:
        self.env, self.simulation = env, env.simulation
        size = self.simulation.layout.size
        self.shown: list[Floats] = []
        self.written, self.moved = np.zeros(size, np.int64), np.zeros(size, dtype=bool)
        self._start = self._end = self.simulation.truth.copy()
        self._recording = self._trying = False
        self._run_hook, self._substep = env.run_hook, self.simulation.substep
        env.run_hook = self._watched_hook  # type: ignore[method-assign]
        self.simulation.substep = self._watched_substep  # type: ignore[method-assign]

    def record(self, seed: int, steps: int) -> None:
        """So many steps, from the beginning of an episode of this seed on, and of the following ones if it ends."""
        policies, (seen, _) = waves(self.env), self.env.reset(seed=seed)
        course, self._recording = [self._boundary()], True
        for _ in range(steps):
            if not self.env.agents:
                self.shown.append(np.array(course))
                seen, _ = self.env.reset()
                course = [self._boundary()]
            seen, *_ = self.env.step(choices(self.env, policies, seen))
            course.append(self._boundary())
        self.shown.append(np.array(course))
        self._recording = False

    def _boundary(self) -> Floats:
        self._start = self.simulation.truth.copy()
        return self._start

    def _watched_substep(self, number: int) -> None:
        self._note()  # what effects have done
        self._substep(number)
        self._note()

    def _note(self) -> None:
        if self._recording:
            self.moved |= self.simulation.truth != self._start

    def _watched_hook(self, name: str, world: World, *more: float) -> None:
        if name != "finish":
            self._run_hook(name, world, *more)
            return
        self._end = self.simulation.truth.copy()
        if self._trying:
            return
        self._run_hook(name, world, *more)
        if self._recording:
            after = self.simulation.truth.copy()
            self.simulation.layout.clip(after)
            self.written += after != self._end

    def on_which_depends(self, quantities: Mapping[str, Columns], seed: int, steps: int) -> set[str]:
        """Those of the quantities (columns by name) for other values of which a step comes out different."""
        env, pending, found = self.env, dict(quantities), set[str]()
        policies, (seen, _) = waves(env), env.reset(seed=seed)
        before = self.simulation.truth.copy()
        for step in range(steps):
            if not (pending and env.agents):
                break
            actions = choices(env, policies, seen)
            if step and self._differs(np.concatenate(list(pending.values())), before, actions):
                found |= {name for name, columns in pending.items() if self._differs(columns, before, actions)}
                pending = {name: columns for name, columns in pending.items() if name not in found}
            before = self.simulation.truth.copy()
            seen, *_ = env.step(actions)
        return found

    def _differs(self, columns: Columns, before: Floats, actions: Mapping[str, Any]) -> bool:
        """Does the coming step come out different if these columns are a little different, or as they were `before`?"""
        plain = self._tried(columns, None, actions)
        others = (self._a_little_different(columns), before[columns])
        return any(not np.array_equal(plain, self._tried(columns, values, actions)) for values in others)

    def _a_little_different(self, columns: Columns) -> Floats:
        layout, now = self.simulation.layout, self.simulation.truth[columns]
        passed = np.concatenate([course[:, columns] for course in self.shown])
        change = np.where(layout.whole[columns], 1.0, LITTLE * (passed.max(axis=0) - passed.min(axis=0)))
        return np.asarray(np.where(now + change <= layout.high[columns], now + change, now - change))

    def _tried(self, columns: Columns, values: Floats | None, actions: Mapping[str, Any]) -> Floats:
        """What the coming step makes of all other columns, and the rewards; everything is put back."""
        env, simulation = self.env, self.simulation
        standing, decided, self._trying = simulation.state(), list(env.decided), True
        if values is not None:
            simulation.truth[columns] = values
        try:
            act(env, actions)
            for number in range(simulation.substeps):
                simulation.substep(number)
            rewards = simulation.close_step(deliver=False).rewards
            return np.concatenate([np.delete(self._end, columns), rewards])
        except Exception:  # noqa: BLE001  a step that breaks off comes out different
            return np.array([np.nan])
        finally:
            self._trying = False
            simulation.restore(standing)
            env.decided = decided


def named(names: Sequence[str], columns: Columns) -> dict[str, Columns]:
    """Columns by quantity, whoever owns them: `Meter.load`."""
    found: dict[str, list[int]] = {}
    for column in columns.tolist():
        found.setdefault(names[column].partition("[")[0], []).append(column)
    return {name: np.asarray(places) for name, places in found.items()}
