"""What the trainings of a group have in common, whoever trains: seeds, scales, and rollouts until all is learned."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heron_env.envs.batch.env import BatchEnv
from heron_env.lab.learning.plan import Plan, scales_of
from heron_env.lab.learning.scales import Scales, measure_rows
from heron_env.lab.learning.step_rows import Role, RowSource, StepRows
from heron_env.lab.learning.validation import Curve
from heron_env.lab.trained import NetworkPolicy, RememberingPolicy, act_of, network_of, recurrent_of

FIRST_SEED = 10_000_000
"""Training seeds begin here, far from those of evaluations."""
SEEDS = 100_000
"""Distance between the training seeds of two runs."""
WARM_UP_ENVS = 16


@dataclass
class Annealing:
    """The learning rate at `remaining` (1 at the start, 0 at the end), which the training loop keeps up to date."""

    start: float
    end: float
    remaining: float = field(default=1.0)

    def __call__(self, _: float) -> float:
        """SB3 asks with its own idea of the progress, which does not know about time."""
        return self.end + (self.start - self.end) * self.remaining


class Course(ABC):
    """A training of `plan`: rollout by rollout, measured on the way."""

    def __init__(self, plan: Plan) -> None:
        self.plan, settings = plan, plan.hyperparameters
        self.annealing = Annealing(settings.learning_rate, settings.final_learning_rate)

    @property
    @abstractmethod
    def transitions(self) -> int:
        """Decisions that were learned from."""

    @abstractmethod
    def rollout(self) -> None:
        """Collect a rollout, and learn from it."""

    @abstractmethod
    def measure(self, curve: Curve) -> None:
        """A row of the learning curve for each group: what was earned since the last, what is earned now."""

    def run(self, total: int, curve: Curve, tell: Callable[[float, str], None], deadline: float | None) -> None:
        """Train to `total` transitions, or to the deadline (monotonic s) if that comes first."""
        began, validations = time.monotonic(), self.plan.validations
        wanted = [(number + 1) / max(validations, 1) for number in range(validations)]
        if validations:
            self.measure(curve)
        done = 0.0
        while done < 1.0:
            before = time.monotonic()
            self.rollout()
            now = time.monotonic()
            done = self.transitions / total
            if deadline is not None:
                done = max(done, (now - began) / (deadline - began), float(now + (now - before) > deadline))
            self.annealing.remaining = max(1.0 - done, 0.0)
            tell(done, f"{self.transitions:,} transitions")
            if wanted and (done >= wanted[0] or done >= 1.0):
                self.measure(curve)
                wanted = [share for share in wanted if share > done]


def row_source(plan: Plan, num_envs: int, seed: int, *, with_state: bool) -> RowSource:
    """A new batch of the plan's environments, on the clock that it trains on."""
    gamma = plan.hyperparameters.gamma
    if plan.schedule is None:
        return StepRows(plan.make, num_envs, seed=seed, gamma=gamma, with_state=with_state)
    batch: Any = BatchEnv
    source: RowSource = batch(
        plan.make, num_envs, seed=seed, clock="event", schedule=plan.schedule, gamma=gamma, with_state=with_state
    )
    return source


def role_scales(plan: Plan, roles: Sequence[Role], *, with_state: bool) -> list[Scales]:
    """The scales of each role: those of the run that it starts from, or measured in a warm-up on seeds of its own."""
    if plan.start is not None:
        return [scales_of(plan.start.config.groups[role.groups[0]]) for role in roles]
    settings, seed = plan.hyperparameters, FIRST_SEED + SEEDS * plan.seed + SEEDS // 2
    source = row_source(plan, min(settings.num_envs, WARM_UP_ENVS), seed, with_state=with_state)
    return measure_rows(source, roles, seed=plan.seed, discount=settings.gamma, central=plan.critic == "central")


def policies_of(
    role: Role, weights: Mapping[str, Any], scales: Scales, frames: int = 1
) -> dict[str, NetworkPolicy | RememberingPolicy]:
    """The deterministic policies that a state dict of torch makes, by agent."""
    found: dict[str, NetworkPolicy | RememberingPolicy] = {}
    (network, log_std), recurrent, spec = network_of(weights), recurrent_of(weights), role.spec
    for agent in role.agents:
        act = act_of(spec.low, spec.high, tuple(map(int, spec.ncats)), role.rules.get(agent))
        decides = NetworkPolicy(network, scales.seen, act, log_std=log_std)
        remembers = frames > 1 or recurrent is not None
        found[agent] = RememberingPolicy(decides, frames=frames, recurrent=recurrent) if remembers else decides
    return found
