"""Lateness: training delays in one environment: what its agents see late, and which of their decisions fall when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heron_env.envs.decisions import Vectors, clock_of
from heron_env.envs.publishing import spans_of
from heron_env.envs.training_delays import DelayLines, TrainingDelays
from heron_env.errors import ConfigError

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

KEY = 2**64


def lateness_of(env: HeronEnv, delays: TrainingDelays | None) -> Lateness | None:
    """What there is for an environment with `delays`; None without. Raises ConfigError for what is none."""
    if not isinstance(delays, TrainingDelays | None):
        example = "TrainingDelays(observation=1, action=(0, 2))"
        raise ConfigError(f"training_delays={delays!r}: must be a TrainingDelays; write {example}")
    return None if delays is None else Lateness(env, delays)


def lines_of(env: HeronEnv, delays: TrainingDelays, acting: Sequence[int], observing: int, lanes: int) -> DelayLines:
    """Lines for the agents `acting` (ranks), of which the first `observing` see.

    A commanded agent shares its commander's delays, as it does its ticks (T10).
    """
    simulation, plan, ids = env.simulation, env.simulation.plan, env.hierarchy.ids
    seeing = [number < observing for number in range(len(acting))]
    aged = [see and plan.observe_age for see in seeing]
    return DelayLines(
        delays,
        [ids[clock_of(simulation, rank)] for rank in acting],
        [plan.size(rank) if see else 0 for rank, see in zip(acting, seeing, strict=True)],
        [simulation.specs[rank].size for rank in acting],
        lanes,
        sources=[len(plan.views[rank].sources) if age else 0 for rank, age in zip(acting, aged, strict=True)],
        tails=[len(plan.padding.tails[rank]) if see else 0 for rank, see in zip(acting, seeing, strict=True)],
        own=[undelayed(env, rank) if see else 0 for rank, see in zip(acting, seeing, strict=True)],
        dt_ns=env.dt_ns,
    )


def undelayed(env: HeronEnv, rank: int) -> int:
    """How many columns at the beginning of an agent's observation it reads itself, and never late (T19)."""
    return env.simulation.plan.views[rank].own if env.timings[rank].local else 0


class Lateness:
    """The delay lines of one environment in the synchronous clock.

    What waits in the lines of actions are decisions as they were made: commands are split when the commander decides,
    so that each agent's share falls even if the commander has ended by then, as an effect under way does in the
    event-driven clock. Agents that have ended do nothing any more.
    """

    def __init__(self, env: HeronEnv, delays: TrainingDelays) -> None:
        simulation = env.simulation
        self._env, self._simulation = env, simulation
        self.acting = [rank for rank, spec in enumerate(simulation.specs) if spec.size]
        self.lines = lines_of(env, delays, self.acting, len(self.acting), 1)
        self._gather = simulation.plan.gather(self.acting)
        self._seen = dict(zip(self.acting, spans_of([simulation.plan.size(r) for r in self.acting]), strict=True))
        self._acts = dict(zip(self.acting, spans_of([simulation.specs[r].size for r in self.acting]), strict=True))
        self._place = {rank: place for place, rank in enumerate(self.acting)}
        self._shown: NDArray[np.float32] = np.zeros(0, dtype=np.float32)
        self._old: NDArray[np.float64] = np.zeros(len(self.acting))

    @property
    def _step(self) -> NDArray[np.int64]:
        return np.array([self._simulation.step_index])

    def begin(self) -> None:
        """An episode begins: draw its delays, forget the last one's."""
        keys = [np.array([key % KEY], dtype=np.uint64) for key in self._simulation.moment[:2]]
        self.lines.begin(np.zeros(1, dtype=np.int64), *keys)

    def look(self) -> None:
        """To be called once in each step, before anybody decides: what there is to see now enters the lines."""
        vectors = np.concatenate(self._gather(self._simulation.truth, self._simulation.moment))
        self._shown = self.lines.see(self._step, vectors[None])[0]
        self._old = self.lines.ages(self._step)[0]

    def vector(self, rank: int) -> NDArray[np.float32]:
        """What an agent sees now, float32 `[n]`, fresh."""
        return self._shown[self._seen[rank]].copy()

    def step(self, rank: int) -> int:
        """The control step that an agent sees now: of one without an action this one; before the first, negative."""
        late = int(self.lines.observation[0, self._place[rank]]) if rank in self._place else 0
        return self._simulation.step_index - late

    def ages(self, rank: int) -> NDArray[np.float64]:
        """How old that is, s, one for each of the agent's sources."""
        ages = np.full(len(self._simulation.plan.views[rank].sources), self._old[self._place[rank]])
        ages[: undelayed(self._env, rank) > 0] = 0.0
        return ages

    def fall(self, sources: Sequence[int], decided: Vectors, held: int) -> tuple[list[int], Vectors]:
        """Put this step's decisions into the lines; source codes by rank, and the decisions that take effect now.

        `held`: the code of agents for whom nothing falls due.
        """
        values, given = np.zeros((1, sum(s.size for s in self._simulation.specs))), [0] * len(self.acting)
        for rank, vector in decided.items():
            values[0, self._acts[rank]] = vector
            given[self._place[rank]] = sources[rank]
        values, codes = self.lines.act(self._step, values, np.array([given], dtype=np.uint8))
        now, falling = list(sources), Vectors()
        for rank, code in zip(self.acting, codes[0].tolist(), strict=True):
            if self._simulation.alive[rank]:
                now[rank] = code or held
                if code:
                    falling[rank] = values[0, self._acts[rank]].copy()
        return now, falling
