"""What a training needs besides its learners: seeds, scales, and rollouts until all is learned.

Scales of observations and rewards are fixed: measured once on warm-up episodes, before anything is learned.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.envs.batch.env import BatchEnv
from heron_env.envs.batch.rows import Ended, Rows
from heron_env.lab.episodes import Earned
from heron_env.lab.learning.events import Monitor, PolicyValidated
from heron_env.lab.learning.plan import Hyperparameters, Plan
from heron_env.lab.learning.step_rows import Role, RowSource, StepRows
from heron_env.lab.learning.validation import Episodes, Validation
from heron_env.lab.remembering import RememberingPolicy, recurrent_of
from heron_env.lab.run_files import GroupConfig
from heron_env.lab.trained import NetworkPolicy, Scaling, act_of, network_of
from heron_env.seeding import stream

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

    @property
    def rate(self) -> float:
        """By the progress so far."""
        return self.end + (self.start - self.end) * self.remaining


class Training(ABC):
    """A training of `plan`: rollout by rollout, measured on the way.

    Attributes:
        episodes: what the policies earned in the last validation.
        until: when to stop, s of the monitor.
    """

    def __init__(self, plan: Plan, validation: Validation) -> None:
        self.plan, self.validation = plan, validation
        settings = plan.hyperparameters
        self.annealing = Annealing(settings.learning_rate, settings.final_learning_rate)
        self.episodes, self.until, self._began = Episodes([], []), math.inf, 0.0

    @property
    @abstractmethod
    def transitions(self) -> Mapping[str, int]:
        """Decisions of each group; the last ones may not have been learned from."""

    @abstractmethod
    def policies(self) -> dict[str, NetworkPolicy | RememberingPolicy]:
        """The deterministic policies as they are now, by agent."""

    @abstractmethod
    def prepare(self) -> None:
        """What is done once, before the first rollout, and may take time: what runs is compiled."""

    @abstractmethod
    def rollout(self, monitor: Monitor) -> None:
        """Collect a rollout, and learn from it; neither goes on when it is time to stop."""

    def measure(self, monitor: Monitor) -> None:
        """What is earned now."""
        start = monitor.seconds
        self.episodes = self.validation.measure(self.policies(), monitor.tick)
        monitor.reserve = monitor.seconds - start
        if self.validation.runs:
            root, under = map(Earned.mean, self.episodes)
            monitor.tell(
                PolicyValidated, root_return=root.value, group_returns=root.by_group,
                return_under_schedule=under.value if self.episodes.under else None,
            )  # fmt: skip

    def share(self, now: float) -> float:
        """In [0, 1]: done of the transitions or of the time, whichever is farther on; `now` in s of the monitor."""
        transitions = sum(self.transitions.values()) / (self.plan.total_steps * len(self.transitions))
        return min(max(transitions, (now - self._began) / max(self.until - self._began, 1e-9)), 1.0)

    def run(self, monitor: Monitor) -> None:
        """Train to the plan's transitions, until it is time, or until a callback stops it."""
        plan, took = self.plan, 0.0
        wanted = [number / plan.validations for number in range(1, plan.validations)]
        monitor.begin(self)
        if plan.validations and monitor.seconds + 2.0 * monitor.reserve < monitor.limit:
            self.measure(monitor)
        self.prepare()
        self._began = monitor.seconds
        self.until = monitor.limit - monitor.reserve
        while (share := self.share(start := monitor.seconds)) < 1.0 and not monitor.due(self.until - took):
            self.annealing.remaining = 1.0 - share
            if wanted and share >= wanted[0]:
                wanted = [later for later in wanted if later > share]
                if start + monitor.reserve + took < self.until:
                    self.measure(monitor)
                    start = monitor.seconds
            self.rollout(monitor)
            took = monitor.seconds - start
        self.measure(monitor)


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


Floats = NDArray[np.float64]

EPISODES = 2
MAX_STEPS = 2000
LEAST_SPREAD = 1e-6
"""A column that varies less than this, times its size, is taken as constant."""
FARTHEST = 10.0
"""Scaled states are cut off here: a tally that never moved in the warm-up has no known spread and may grow large."""


@dataclass(frozen=True)
class StateScaling(Scaling):
    """The scale of a central critic's state, cut off at +-10."""

    def __call__(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """`[..., s]` -> float32 `[..., s]`."""
        return np.clip(super().__call__(vectors), -FARTHEST, FARTHEST)


@dataclass(frozen=True)
class Scales:
    """Of what agents see, of rewards (a factor), and of the state, which is None for a local critic."""

    seen: Scaling
    reward: float
    state: StateScaling | None = None


def columns_of(table: Floats) -> Scaling:
    """Mean and spread of each column of `[n, d]`; a constant column keeps its unit."""
    center, scale = table.mean(axis=0), table.std(axis=0)
    constant = scale <= LEAST_SPREAD * np.maximum(np.abs(center), 1.0)
    return Scaling(center, np.where(constant, 1.0, scale))


def state_scaling(states: Floats | None, agents: int) -> StateScaling | None:
    """Of the state `[n, s]` and the columns behind it that say which of so many agents is meant; None: no state."""
    if states is None:
        return None
    scaling, identity = columns_of(states), agents if agents > 1 else 0
    center, scale = np.append(scaling.center, np.zeros(identity)), np.append(scaling.scale, np.ones(identity))
    return StateScaling(center, scale)


def measure_rows(
    source: RowSource, roles: Sequence[Role], *, seed: int, discount: float, central: bool
) -> list[Scales]:
    """The scales of each role, over two episodes of each lane.

    Of every observation column mean and spread, of discounted returns 1 / spread. Rules act where they are corrected;
    who corrects none holds one random action through an episode, which leads farther from the start than fresh draws
    would. With `central` the state is measured too, once per lane and step; the columns that say which agent is meant
    stay 0 and 1.
    """
    random, rows = stream(seed, "warm-up"), source.begin()
    warm_ups = [_WarmUp(role, source.num_envs, random, discount) for role in roles]
    states: list[NDArray[np.float32]] = []
    for _ in range(MAX_STEPS):
        if central and rows.state is not None:
            states.append(rows.state[np.unique(rows.lane, return_index=True)[1]])
        actions = np.zeros((len(rows), max(role.spec.size for role in roles)))
        for warm_up in warm_ups:
            actions[warm_up.role.part(rows), : warm_up.role.spec.size] = warm_up.answer(rows)
        rows = source.answer(actions)
        for warm_up in warm_ups:
            warm_up.end(rows.ended)
        if min(int(warm_up.ended.max(axis=1).min()) for warm_up in warm_ups) >= EPISODES:
            break
    state = np.concatenate(states).astype(np.float64) if central else None
    return [
        Scales(warm_up.seen_scaling(), warm_up.reward_scale(), state_scaling(state, len(warm_up.role.agents)))
        for warm_up in warm_ups
    ]


class _WarmUp:
    """What the warm-up episodes show of one role."""

    def __init__(self, role: Role, lanes: int, random: np.random.Generator, discount: float) -> None:
        self.role, self._random, self._discount = role, random, discount
        agents = len(role.agents)
        self._held = np.zeros((lanes * agents, role.spec.size))
        self._returns, self._running = list[Floats](), np.zeros(lanes * agents)
        self._seen = [np.zeros((0, role.width))]
        self.ended = np.zeros((lanes, agents), dtype=np.int64)

    def answer(self, rows: Rows) -> Floats:
        """Note rows, and act: as the rule does, or as drawn when the episode began."""
        role, slots, mine = self.role, self.role.slots(rows), self.role.part(rows)
        self._seen.append(role.seen(rows).astype(np.float64))
        later = ~rows.first[mine]
        self._add(slots[later], role.earned(rows)[later], rows.steps[mine][later])
        if role.corrects:
            return role.act(rows, np.zeros((len(slots), role.spec.size), dtype=np.float32))
        fresh = slots[rows.first[mine]]
        low, high = role.spec.low, role.spec.high
        drawn = self._random.uniform(size=(len(fresh), role.spec.size))
        numbers, choices = drawn[:, : role.spec.dim_c], drawn[:, role.spec.dim_c :]
        choices = np.minimum(np.floor(choices * role.spec.ncats), role.spec.ncats - 1)
        self._held[fresh] = np.concatenate([low + numbers * (high - low), choices], axis=1)
        return self._held[slots]

    def end(self, ended: Ended) -> None:
        """Note ends."""
        slots = self.role.slots(ended)
        self._add(slots, self.role.earned(ended), ended.steps[self.role.part(ended)])
        self._running[slots] = 0.0
        np.add.at(self.ended.reshape(-1), slots, 1)

    def _add(self, slots: NDArray[np.int64], reward: Floats, steps: NDArray[np.int64]) -> None:
        self._running[slots] = reward + self._discount**steps * self._running[slots]
        self._returns.append(self._running[slots])

    def seen_scaling(self) -> Scaling:
        """Of what its agents saw; where nobody saw anything, as it is."""
        seen = np.concatenate(self._seen)
        return columns_of(seen) if len(seen) else Scaling(np.zeros(self.role.width), np.ones(self.role.width))

    def reward_scale(self) -> float:
        """1 / spread of discounted returns."""
        returns = np.concatenate(self._returns)
        spread = float(np.std(returns)) if len(returns) else 0.0
        return 1.0 / spread if spread > LEAST_SPREAD else 1.0


def scales_of(kept: GroupConfig) -> Scales:
    """Those the run measured: the weights mean nothing in others."""
    state = StateScaling(np.array(kept.state_center), np.array(kept.state_scale)) if kept.state_center else None
    return Scales(Scaling(np.array(kept.center), np.array(kept.scale)), kept.reward_scale, state)


def role_scales(plan: Plan, roles: Sequence[Role], *, with_state: bool) -> list[Scales]:
    """The scales of each role: those of the run that it starts from, or measured in a warm-up on seeds of its own."""
    if plan.start is not None:
        return [scales_of(plan.start.config.groups[role.groups[0]]) for role in roles]
    settings, seed = plan.hyperparameters, FIRST_SEED + SEEDS * plan.seed + SEEDS // 2
    source = row_source(plan, min(settings.num_envs, WARM_UP_ENVS), seed, with_state=with_state)
    return measure_rows(source, roles, seed=plan.seed, discount=settings.gamma, central=plan.critic == "central")


def policies_of(
    role: Role, weights: Mapping[str, Any], scales: Scales, settings: Hyperparameters
) -> dict[str, NetworkPolicy | RememberingPolicy]:
    """The deterministic policies that a state dict of torch makes, by agent."""
    result: dict[str, NetworkPolicy | RememberingPolicy] = {}
    (network, log_std), recurrent, spec = network_of(weights, settings.activation), recurrent_of(weights), role.spec
    for agent in role.agents:
        act = act_of(spec.low, spec.high, tuple(map(int, spec.ncats)), role.rules.get(agent))
        decides = NetworkPolicy(network, scales.seen, act, log_std=log_std)
        result[agent] = decides if recurrent is None else RememberingPolicy(decides, recurrent=recurrent)
    return result
