"""Training of VDN and QMIX on the synchronous clock: a team of each group, or of all, learns from what it remembers.

A transition is a control step of a whole team: what its agents see and choose, the state, the mean of their rewards,
and what they see then. Whose turn it is not can choose the no-op alone. Where a time limit ends an episode the future
counts, with the last observations and the masks that belong to them; where rules have ended all agents it does not.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heron_env.core.policy import Policies
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.env import BatchEnv
from heron_env.envs.batch.rows import Bools, Floats, Vectors
from heron_env.envs.hooks import has_training_rewards
from heron_env.envs.masking import GroupMasks
from heron_env.lab.learning.events import Monitor, PolicyUpdated, RolloutEnded
from heron_env.lab.learning.group import FIRST_SEED, SEEDS, Scales, StateScaling
from heron_env.lab.learning.plan import Plan
from heron_env.lab.learning.role_training import RoleStudent, RoleTraining
from heron_env.lab.learning.step_rows import Role
from heron_env.lab.learning.validation import Validation
from heron_env.lab.learning.value_networks import TeamValues, aims
from heron_env.scheduling.ticks import ticks_at
from heron_env.seeding import key

MOST_GRADIENT = 5.0
"""Longest gradient."""


class TeamView(NamedTuple):
    """What a team's agents see, in the network's units, and may choose, and the state, in all lanes.

    seen: float32 `[B, agents, d]`. allowed: bool `[B, agents, sum(ncats)]`. state: float32 `[B, s]`.
    """

    seen: Vectors
    allowed: Bools
    state: Vectors


class ReplayMemory:
    """The last `size` transitions, by column."""

    def __init__(self, size: int) -> None:
        self.size, self.count, self.columns = size, 0, dict[str, Any]()

    def add(self, **columns: NDArray[Any]) -> None:
        """Rows of each column, `[n, ...]`; the oldest go."""
        rows = {name: torch.from_numpy(np.ascontiguousarray(column[-self.size :])) for name, column in columns.items()}
        number = len(next(iter(rows.values())))
        if not self.columns:
            self.columns = {name: row.new_empty((self.size, *row.shape[1:])) for name, row in rows.items()}
        where = (self.count + torch.arange(number)) % self.size
        for name, row in rows.items():
            self.columns[name][where] = row
        self.count += number

    def draw(self, number: int, generator: torch.Generator, device: str) -> dict[str, Tensor]:
        """So many of them, by chance, with replacement."""
        where = torch.randint(min(self.count, self.size), (number,), generator=generator)
        return {name: column.index_select(0, where).to(device) for name, column in self.columns.items()}


class TeamStudent(RoleStudent):
    """A team's values, what it remembers, and what it sees now."""

    def __init__(self, plan: Plan, env: HeronEnv, role: Role, scales: Scales) -> None:
        super().__init__(role, scales)
        self._settings, self._device = plan.hyperparameters, plan.device
        seed = key(plan.seed, plan.algorithm, *role.groups)
        states, known = len(env.state_names), scales.state  # behind the state: which agent is meant, nothing to a mixer
        self._known = known and StateScaling(known.center[:states], known.scale[:states])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed % 2**63)
            network = TeamValues(role.width, states if known else 0, len(role.agents), role.spec, self._settings)
        self.network = network.to(plan.device)
        self._generator = torch.Generator().manual_seed(key(seed, "choices") % 2**63)
        self._optimizer = torch.optim.Adam(self.network.parameters(), lr=self._settings.learning_rate)
        self._target = copy.deepcopy(self.network)
        self.memory = ReplayMemory(self._settings.replay)
        self.now: TeamView

    def begin(self) -> None:
        """The weights are now those to begin with."""
        self._target.load_state_dict(self.network.state_dict())

    def view(self, observations: list[Vectors], allowed: list[Bools], state: Vectors) -> TeamView:
        """What it sees, from what its groups' agents do."""
        seen = self.scales.seen(np.concatenate(observations, axis=1))
        return TeamView(seen, np.concatenate(allowed, axis=1), self._known(state) if self._known else state)

    def choose(self, epsilon: float) -> NDArray[np.int64]:
        """Choices `[B, agents, k]`: the best by what it knows; each agent's with probability epsilon by chance."""
        seen, allowed = (torch.from_numpy(part).to(self._device) for part in self.now[:2])
        with torch.no_grad():
            values = self.network(seen, allowed).cpu()
        lots = torch.rand(values.shape, generator=self._generator).masked_fill(~allowed.cpu(), -1.0)
        explores = torch.rand((*values.shape[:2], 1), generator=self._generator) < epsilon
        choices: NDArray[np.int64] = self.network.best(torch.where(explores, lots, values)).numpy()
        return choices

    def remember(self, choices: NDArray[np.int64], earned: Floats, terminated: Bools, later: TeamView) -> None:
        """Note what choices have brought `[B, agents]`, and where it led."""
        seen, allowed, state = later
        self.memory.add(
            **self.now._asdict(), choices=choices, terminated=terminated, later_seen=seen, later_allowed=allowed,
            later_state=state, reward=(earned.mean(axis=1) * self.scales.reward).astype(np.float32),
        )  # fmt: skip

    def improve(self, rate: float) -> tuple[float, float]:
        """One step of gradient descent on a minibatch: loss, and mean of the team's values."""
        settings = self._settings
        batch = self.memory.draw(settings.batch_size, self._generator, self._device)
        total = self.network.total(self.network(batch["seen"], batch["allowed"]), batch["choices"], batch["state"])
        loss = torch.nn.functional.mse_loss(total, aims(self.network, self._target, batch, settings.gamma))
        self._optimizer.param_groups[0]["lr"] = rate
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), MOST_GRADIENT)
        self._optimizer.step()
        with torch.no_grad():
            for late, now in zip(self._target.parameters(), self.network.parameters(), strict=True):
                late.lerp_(now, settings.tau)
        return float(loss.detach()), float(total.detach().mean())


class ValueTraining(RoleTraining[TeamStudent]):
    """VDN or QMIX for all groups of `env`'s kind; each learns its own team's value."""

    def __init__(self, plan: Plan, env: HeronEnv, rules: Policies, validation: Validation) -> None:
        super().__init__(plan, env, rules, validation)
        seed = FIRST_SEED + SEEDS * plan.seed
        self._batch = batch = BatchEnv(plan.make, plan.hyperparameters.num_envs, seed=seed, autoreset="disabled")
        index, timings = batch.env.hierarchy.index, batch.env.timings
        ranks = {name: [index[agent] for agent in agents] for name, agents in batch.groups.items()}
        self._masks = {name: GroupMasks(batch.env.simulation, of) for name, of in ranks.items()}
        self._ticks = {n: np.array([[timings[r].tick, timings[r].phase] for r in of]).T for n, of in ranks.items()}
        self._signals: dict[str, Any] = {}
        self._active: dict[str, Bools] = {}
        if has_training_rewards(env):
            batch.at_close.append(self._look)
        for student in self.students:
            student.begin()

    def student(self, env: HeronEnv, role: Role, scales: Scales) -> TeamStudent:
        """A team with random weights."""
        return TeamStudent(self.plan, env, role, scales)

    @property
    def epsilon(self) -> float:
        """How often an agent chooses by chance: falls linearly from 1, or where a run is gone on with stays low."""
        settings = self.plan.hyperparameters
        left = 1.0 - (1.0 - self.annealing.remaining) / max(settings.exploration, 1e-9)
        share = 0.0 if self.plan.start is not None else max(left, 0.0)
        return settings.final_epsilon + (1.0 - settings.final_epsilon) * share

    def prepare(self) -> None:
        """Begin an episode in every lane."""
        self._show(*self._batch.reset())

    def rollout(self, monitor: Monitor) -> None:
        """Some steps of all lanes, and then as many minibatches as n_epochs says, as far as there is time."""
        stops, settings = partial(monitor.due, self.until), self.plan.hyperparameters
        for _ in range(settings.n_steps):
            if stops():
                return
            self._step()
        monitor.tell(RolloutEnded, signals=self.signals())
        rate, updates = self.annealing(1.0), settings.num_envs * settings.n_steps * settings.n_epochs
        losses = dict[str, dict[str, float]]()
        for student in self.students:
            some = list[tuple[float, float]]()
            while len(some) * settings.batch_size < updates and not stops():
                some.append(student.improve(rate))
            if some:
                loss, value = np.mean(some, axis=0).tolist()
                told = {"loss": loss, "value": value, "epsilon": self.epsilon, "learning_rate": rate}
                losses["+".join(student.role.groups)] = told
        if losses:
            monitor.tell(PolicyUpdated, losses=losses)

    def _step(self) -> None:
        batch, actions = self._batch, dict[str, NDArray[np.int64]]()
        chosen = [student.choose(self.epsilon) for student in self.students]
        for student, choices in zip(self.students, chosen, strict=True):
            sizes = [len(batch.groups[group]) for group in student.role.groups]
            actions |= zip(student.role.groups, np.split(choices, np.cumsum(sizes)[:-1], axis=1), strict=True)
        observations, rewards, _, truncated, infos = batch.step(actions)
        earned, over = self._signals or rewards, batch.over.copy()
        for student, choices in zip(self.students, chosen, strict=True):
            groups = student.role.groups
            for group in groups:
                student.count(group, earned[group][self._active[group]])
            cut_off = np.concatenate([truncated[group] for group in groups], axis=1).any(axis=1)
            brought = np.concatenate([earned[group] for group in groups], axis=1)
            later = self._view(student, observations, infos, truncated)
            student.remember(choices, brought, over & ~cut_off, later)
            student.now = later
        if over.any():
            self._show(*batch.reset(mask=over))

    def _show(self, observations: Mapping[str, Vectors], infos: Mapping[str, Any]) -> None:
        """What there is to see at the beginning of an episode."""
        nobody = {name: np.zeros(seen.shape[:2], dtype=bool) for name, seen in observations.items()}
        for student in self.students:
            student.now = self._view(student, observations, infos, nobody)

    def _view(
        self, student: TeamStudent, observations: Mapping[str, Vectors], infos: Mapping[str, Any],
        truncated: Mapping[str, Bools],
    ) -> TeamView:  # fmt: skip
        batch, allowed = self._batch, list[Bools]()
        now = (batch.steps * batch.env.dt_ns)[:, None]
        for group in student.role.groups:  # who was cut off would go on
            active = (infos[group]["is_active"] != 0) | truncated[group] & ticks_at(now, *self._ticks[group])
            self._active[group] = active
            allowed.append(self._masks[group].offered(batch._engine.lanes, observations[group], active) != 0)
        state = batch.state() if self.plan.critic == "central" else np.zeros((batch.num_envs, 0), dtype=np.float32)
        return student.view([observations[group] for group in student.role.groups], allowed, state)

    def _look(self) -> None:
        """What the trainer should use instead of the rewards of this step."""
        self._signals = {name: self._batch.training_rewards(name) for name in self._batch.groups}
