"""Where rows come from: a batch on the synchronous clock, or on the event clock under a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.env import BatchEnv
from heron_env.envs.batch.rows import Rows
from heron_env.lab.learning.plan import Plan
from heron_env.lab.learning.step_rows import StepRows


class RowSource(Protocol):
    """What asks in rows and is answered."""

    env: HeronEnv
    num_envs: int

    def begin(self) -> Rows:
        """Begin an episode in every lane."""
        ...

    def reset(self, seed: Sequence[int] | None = None) -> Rows:
        """The same, of lanes of these seeds."""
        ...

    def answer(self, actions: Any) -> Rows:
        """Tell actions `[n, k]` of the rows handed out last."""
        ...


def row_source(plan: Plan, num_envs: int, seed: int, *, gamma: float, with_state: bool) -> RowSource:
    """A new batch of the plan's environments, on the clock that it trains on."""
    if plan.schedule is None:
        return StepRows(plan.make, num_envs, seed=seed, gamma=gamma, with_state=with_state)
    batch: Any = BatchEnv
    source: RowSource = batch(
        plan.make, num_envs, seed=seed, clock="event", schedule=plan.schedule, gamma=gamma, with_state=with_state
    )
    return source
