"""What the trainings have in common that teach all groups at once, each with a policy of its own, or one for all."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from heron_env.core.policy import Policies
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.rows import Floats
from heron_env.envs.hooks import has_training_rewards
from heron_env.lab.episodes import Earned
from heron_env.lab.learning.events import Monitor
from heron_env.lab.learning.group import Scales, Training, policies_of, role_scales
from heron_env.lab.learning.plan import Plan, load_weights
from heron_env.lab.learning.step_rows import Role
from heron_env.lab.learning.validation import Validation
from heron_env.lab.remembering import RememberingPolicy
from heron_env.lab.run_files import GroupConfig, group_config
from heron_env.lab.trained import NetworkPolicy
from heron_env.lab.weights import packed_weights


class RoleStudent:
    """What one role learns.

    Attributes:
        network: torch's, with all weights that a model file keeps.
        transitions: decisions by group.
    """

    network: Any

    def __init__(self, role: Role, scales: Scales) -> None:
        self.role, self.scales = role, scales
        self.transitions = dict.fromkeys(role.groups, 0)
        self._signal = {group: [0.0, 0] for group in role.groups}

    def count(self, group: str, earned: Floats) -> None:
        """Decisions of a group have brought so much."""
        self.transitions[group] += earned.size
        self._signal[group][0] += float(earned.sum())
        self._signal[group][1] += earned.size

    def signal(self, group: str) -> float:
        """Mean training signal per decision since this was last asked."""
        total, count = self._signal[group]
        self._signal[group] = [0.0, 0]
        return total / count if count else float("nan")


S = TypeVar("S", bound=RoleStudent)


class RoleTraining(Training, Generic[S]):
    """A student for each role, and the policies that they make.

    Args:
        plan: what was asked for.
        env: any environment of the kind.
        rules: the baseline to correct, by agent; empty: none.
        validation: episodes to measure on.

    Attributes:
        configs: what config.json keeps, by group.
        with_state: is the state, or a training reward, needed?
        kept_at: transitions after which the weights were those that are kept; None: all of them.
    """

    def __init__(self, plan: Plan, env: HeronEnv, rules: Policies, validation: Validation) -> None:
        super().__init__(plan, validation)
        settings, groups = plan.hyperparameters, list(env.group_map)
        roles = [Role(env, names, rules) for names in ([groups] if settings.shared else [[g] for g in groups])]
        self.with_state = plan.critic == "central" or has_training_rewards(env)
        scales = role_scales(plan, roles, with_state=self.with_state)
        self.students = [self.student(env, role, scaling) for role, scaling in zip(roles, scales, strict=True)]
        self.configs: dict[str, GroupConfig] = {
            group: group_config(
                env, group, scaling.seen, scaling.reward, state=scaling.state, activation=settings.activation
            )
            for role, scaling in zip(roles, scales, strict=True)
            for group in role.groups
        }  # fmt: skip
        if plan.start is not None:
            for student in self.students:
                load_weights(student.network, plan.start, student.role.groups[0])
        self._student_of = {group: student for student in self.students for group in student.role.groups}
        self._best, self._best_episodes, self._kept = -np.inf, self.episodes, list[Any]()
        self.kept_at: int | None = None

    @abstractmethod
    def student(self, env: HeronEnv, role: Role, scales: Scales) -> S:
        """A student with random weights."""

    @property
    def transitions(self) -> Mapping[str, int]:
        """Decisions of each group."""
        return {group: student.transitions[group] for group, student in self._student_of.items()}

    def signals(self) -> dict[str, float]:
        """Mean training signal per decision of each group since this was last asked."""
        return {group: student.signal(group) for group, student in self._student_of.items()}

    def weights(self, group: str) -> bytes:
        """A model file: the state dict of the network."""
        return packed_weights(self._student_of[group].network.state_dict())

    def policies(self) -> dict[str, NetworkPolicy | RememberingPolicy]:
        """The deterministic policies as they are now, by agent."""
        result: dict[str, NetworkPolicy | RememberingPolicy] = {}
        for student in self.students:
            weights = student.network.state_dict()
            result |= policies_of(student.role, weights, student.scales, self.plan.hyperparameters)
        return result

    def run(self, monitor: Monitor) -> None:
        """As any training; in the end the weights are those that earned most, if these are to be kept."""
        super().run(monitor)
        if self._kept:
            self.episodes = self._best_episodes
        for student, weights in zip(self.students, self._kept, strict=False):
            student.network.load_state_dict(weights)

    def measure(self, monitor: Monitor) -> None:
        """As any training, and keep the best weights, if they are wanted."""
        super().measure(monitor)
        judged = self.episodes.sync if self.plan.schedule is None else self.episodes.under
        earned = Earned.mean(judged).value
        if self.plan.hyperparameters.keep_best and not earned <= self._best:
            self._best, self._best_episodes = earned, self.episodes
            self.kept_at = sum(self.transitions.values())
            self._kept = [copy.deepcopy(student.network.state_dict()) for student in self.students]
