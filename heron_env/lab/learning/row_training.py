"""Training on rows, on either clock: all groups together, each with a policy of its own, or one for all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import Policies
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.rows import Ended, Rows
from heron_env.lab.learning.events import Monitor, PolicyUpdated, RolloutEnded
from heron_env.lab.learning.group import FIRST_SEED, SEEDS, Scales, row_source
from heron_env.lab.learning.plan import Plan
from heron_env.lab.learning.role_training import RoleStudent, RoleTraining
from heron_env.lab.learning.step_rows import Role
from heron_env.lab.learning.validation import Validation
from heron_env.seeding import key

if TYPE_CHECKING:
    from heron_env.lab.learning.lean_ppo import PolicyInputs


class Student(RoleStudent):
    """A role's learner, and what stands between it and rows."""

    def __init__(self, plan: Plan, role: Role, scales: Scales, lanes: int, states: int, *, masked: bool) -> None:
        from heron_env.lab.learning.lean_ppo import Learner

        super().__init__(role, scales)
        settings, agents = plan.hyperparameters, len(role.agents)
        identity = agents if agents > 1 else 0
        self._central = scales.state is not None
        self._identity = np.eye(agents, dtype=np.float32)[:, :identity]
        self._choices = int(role.spec.ncats.sum()) if masked else 0
        self.learner = Learner(
            lanes * agents, role.width, (states + identity) * self._central, role.spec, settings,
            log_std=settings.first_log_std(role.corrects), masked=self._choices > 0,
            seed=key(plan.seed, "lean", *role.groups) % 2**63, agents=agents, device=plan.device,
        )  # fmt: skip
        self.network = self.learner.network

    def take(self, rows: Rows) -> None:
        """What has ended, then what waits for actions."""
        from heron_env.lab.learning.lean_ppo import DecisionRewards

        role = self.role
        for each in (rows.ended, rows):
            mine = role.part(each)
            brought = DecisionRewards(role.earned(each) * self.scales.reward, each.steps[mine], each.took[mine])
            first = rows.first[mine] if isinstance(each, Rows) else np.zeros(len(brought.reward), dtype=bool)
            seen = self._seen(each, first)
            if isinstance(each, Ended):
                if len(first):
                    self.learner.end(seen, brought, each.truncated[mine] & ~each.terminated[mine])
            else:
                self.learner.ask(seen, brought)
            for group in role.groups:
                part = slice(each.parts[group].start - mine.start, each.parts[group].stop - mine.start)
                self.count(group, role.earned(each)[part][~first[part]])

    def _seen(self, rows: Rows | Ended, first: NDArray[np.bool_]) -> PolicyInputs:
        from heron_env.lab.learning.lean_ppo import PolicyInputs

        role, mine, slot = self.role, self.role.part(rows), self.role.slots(rows)
        obs = self.scales.seen(role.seen(rows))
        state = np.zeros((len(slot), 0), dtype=np.float32)
        if self.scales.state is not None and rows.state is not None:
            identity = self._identity[role.places(rows)]
            state = self.scales.state(np.concatenate([rows.state[mine], identity], axis=1))
        mask = rows.mask[mine, : self._choices] if isinstance(rows, Rows) and rows.mask is not None else None
        return PolicyInputs(slot, obs, state, mask if self._choices else None, first)


class RowTraining(RoleTraining[Student]):
    """PPO for all groups of `env`'s kind."""

    def __init__(self, plan: Plan, env: HeronEnv, rules: Policies, validation: Validation) -> None:
        super().__init__(plan, env, rules, validation)
        settings, first_seed = plan.hyperparameters, FIRST_SEED + SEEDS * plan.seed
        self._seeds = [first_seed + lane // settings.twins for lane in range(settings.num_envs)]
        self._source = row_source(plan, settings.num_envs, first_seed, with_state=self.with_state)
        roles = [student.role for student in self.students]
        self._rollout = settings.num_envs * settings.n_steps * sum(len(role.agents) for role in roles)
        self._width = max(role.spec.size for role in roles)
        self._rows: Rows  # set by `prepare`

    def student(self, env: HeronEnv, role: Role, scales: Scales) -> Student:
        """A learner with no weights but random ones."""
        masked, lanes = bool(env.simulation.masks.ranks), self.plan.hyperparameters.num_envs
        return Student(self.plan, role, scales, lanes, len(env.state_names), masked=masked)

    def prepare(self) -> None:
        """Begin an episode in every lane."""
        self._rows = self.begin()

    def rollout(self, monitor: Monitor) -> None:
        """Collect a rollout, and learn from it, as far as there is time."""
        stops = partial(monitor.due, self.until)
        self._rows = self.collect(self._rows, stops)
        if stops():
            return
        monitor.tell(RolloutEnded, signals=self.signals())
        if losses := self.learn(stops):
            monitor.tell(PolicyUpdated, losses=losses)

    def begin(self) -> Rows:
        """Begin an episode in every lane: the first rows."""
        rows = self._source.reset(self._seeds)
        self._take(rows)
        return rows

    def collect(self, rows: Rows, stops: Callable[[], bool] = bool) -> Rows:
        """A rollout from these rows on, noted by the learners: the rows after it; less, once `stops` says so."""
        wanted = sum(self.transitions.values()) + self._rollout
        while sum(self.transitions.values()) < wanted and not stops():
            rows = self._source.answer(self._decide(rows))
            self._take(rows)
        return rows

    def learn(self, stops: Callable[[], bool] = bool) -> dict[str, dict[str, float]]:
        """Improve all policies on what was noted, until `stops` says so: the losses of each, where there are any."""
        rate = self.annealing.rate
        losses = {"+".join(each.role.groups): each.learner.learn(rate, stops) for each in self.students}
        return {groups: {**some, "learning_rate": rate} for groups, some in losses.items() if some}

    def _take(self, rows: Rows) -> None:
        for student in self.students:
            student.take(rows)

    def _decide(self, rows: Rows) -> NDArray[np.float64]:
        """Actions of all rows."""
        actions = np.zeros((len(rows), self._width))
        for student in self.students:
            outputs = student.learner.decide()
            actions[student.role.part(rows), : outputs.shape[1]] = student.role.act(rows, outputs)
        return actions
