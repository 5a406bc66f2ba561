"""Batches of lanes beside the same environments in plain Python, one step at a time."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from heron_env import HeronEnv, World
from heron_env.testing import inspect

RESULTS = (
    "truth", "applied", "rewards", "terminated", "truncated", "alive", "ended", "infos", "source", "returns",
    "last_returns", "last_length",
)  # fmt: skip
"""Arrays that two executions of the same lanes must share, bit for bit."""


class Batch:
    """`lanes` copies of one environment in lanes; its Python hooks are called for each, between the phases."""

    def __init__(
        self, env: HeronEnv, lanes: int, seed: int = 0, *, threads: int = 1, parallel_from: int = 0, final: bool = False
    ) -> None:
        self.env, self.simulation = env, env.simulation
        self.lanes = inspect(env).lanes(lanes, threads, final=final)
        self.lanes.parallel_from = parallel_from
        self.arrays = self.lanes.arrays
        self.arrays.initial[:] = self.simulation.initial
        self.arrays.seeds[:] = np.arange(seed, seed + lanes)
        self.size = self.simulation.model.layout.size
        self.copies = [copy.copy(env) for _ in range(lanes)]
        self.worlds = [World(self.simulation.model.layout, row[: self.size]) for row in self.arrays.truth]
        self.python = [name for name in ("begin", "advance", "finish") if name not in env.world_rules()]
        self.restart()
        self.lanes.observe()

    def hook(self, name: str, which: Any, time: Callable[[int], float], *more: float) -> None:
        for b in which if name in self.python else ():
            world, arrays = self.worlds[b], self.arrays
            world.seed, world.episode = int(arrays.seeds[b]), int(arrays.episodes[b])
            world.step, world.time = int(arrays.steps[b]), time(b)
            getattr(self.copies[b], name)(world, *more)
            self.simulation.model.layout.clip_columns(arrays.truth[b, : self.size])

    def act(self, lanes: range | None = None) -> None:
        """Actions are checked first: nothing has changed if this raises InvalidAction."""
        self.lanes.act(lanes)

    def restart(self) -> None:
        which = np.flatnonzero(self.arrays.over)
        self.lanes.restart()
        self.hook("begin", which, lambda b: 0.0)
        self.lanes.inform()

    def step(self) -> dict[str, Any]:
        """A step with restarts; what the arrays held before those."""
        s, live = self.simulation, np.flatnonzero(self.arrays.over == 0)
        dt = s.model.dt / s.model.substeps
        self.act()
        for number in range(s.model.substeps):
            self.lanes.substep(number)
            self.hook("advance", live, lambda b, k=number: self.arrays.steps[b] * s.model.dt + k * dt, dt)
        self.lanes.close()
        self.hook("finish", live, lambda b: self.arrays.steps[b] * s.model.dt)
        result = {name: getattr(self.arrays, name).copy() for name in RESULTS}
        self.restart()
        result["observations"] = self.lanes.observe().observations.copy()
        return result

    def give(self, rng: np.random.Generator, share: float = 0.8) -> list[dict[str, Any]]:
        """Random actions for most agents, for commanded ones now and then; the same by name, for each lane."""
        s, named = self.simulation, list[dict[str, Any]]()
        self.arrays.source_in[:] = 0
        for b in range(len(self.worlds)):
            named.append({})
            for rank, spec in enumerate(s.model.specs):
                if spec.size and rng.random() < (0.15 if s.model.commanded[rank] else share):
                    value = np.concatenate([rng.uniform(spec.low, spec.high), rng.integers(spec.ncats)])
                    self.arrays.actions[b, self.lanes.action_slice(rank)] = value
                    self.arrays.source_in[b, self.lanes.position[rank]] = 1
                    named[-1][s.model.hierarchy.ids[rank]] = value
        return named

    def take_from(self, other: "Batch", which: slice = slice(None)) -> None:
        """The actions of (some lanes of) another batch."""
        self.arrays.actions[:] = other.arrays.actions[which]
        self.arrays.source_in[:] = other.arrays.source_in[which]


def distance(env: HeronEnv, batch: Batch, b: int, found: dict[str, Any]) -> float:
    """How far lane `b` is from the same environment in plain Python, after the same step; ends must be equal."""
    s, lane = env.simulation, env.simulation.lane
    place = list(batch.lanes.position)
    worst = float(np.abs(s.truth - found["truth"][b, : batch.size]).max(initial=0.0))
    worst = max(worst, float(np.abs(np.subtract(s.last_rewards, found["rewards"][b, place])).max()))
    for name in ("terminated", "truncated"):
        assert (
            found[name][b, place].astype(bool).tolist() == getattr(lane, name).take(lane.position).astype(bool).tolist()
        ), name
    assert found["alive"][b, place].astype(bool).tolist() == list(s.alive)
    assert found["source"][b, place].tolist() == [int(code) for code in env.decided]
    assert bool(found["ended"][b]) == s.over
    for rank, info in enumerate(lane.own_infos()):
        assert list(info) == list(batch.lanes.info_fields(rank))
        told = found["infos"][b, batch.lanes.info_slice(rank)]
        worst = max(worst, float(np.abs(np.subtract(list(info.values()), told)).max(initial=0.0)))
    return worst
