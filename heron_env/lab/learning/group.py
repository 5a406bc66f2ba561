"""One group's training: environments, scales, and PPO rollout by rollout."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from gymnasium import spaces

from heron_env.core.policy import Policies
from heron_env.envs.base import HeronEnv
from heron_env.lab.episodes import Earned
from heron_env.lab.learning.plan import Plan, load_weights, scales_of
from heron_env.lab.learning.scales import Anchors, Scales, measure
from heron_env.lab.learning.validation import Curve, Validation
from heron_env.lab.run_groups import group_config
from heron_env.lab.trained import Choice, Correction, NetworkPolicy, network_of, on_vectors

if TYPE_CHECKING:
    from heron_env.adapters.sb3 import HeronVecEnv

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


class GroupTraining:
    """PPO for one group of `env`'s kind.

    Args:
        plan: what was asked for.
        env: any environment of the kind.
        group: of `env.group_map`.
        acting: policies of all agents, by agent; those of the other groups act beside.
        rules: the baseline to correct, by agent; empty: none.
        validation: episodes to measure on.
    """

    def __init__(
        self, plan: Plan, env: HeronEnv, group: str, acting: Policies, rules: Policies, validation: Validation
    ) -> None:
        from heron_env.adapters.ctde import CentralCriticPolicy
        from heron_env.adapters.sb3 import ManySlotsPPO, MappedVecEnv

        self.plan, self.group, self.validation = plan, group, validation
        agents = env.group_map[group]
        spec = env.simulation.specs[env.hierarchy.index[agents[0]]]
        self.rules = {agent: on_vectors(rules[agent]) for agent in agents} if rules and not spec.dim_d else {}
        anchors = Anchors(list(self.rules.values())) if self.rules else None
        self.others = {agent: policy for agent, policy in acting.items() if agent not in agents}
        settings, first_seed = plan.hyperparameters, FIRST_SEED + SEEDS * plan.seed
        scales = (
            self._measured(anchors, first_seed) if plan.start is None else scales_of(plan.start.config.groups[group])
        )
        self.scaling = scales.seen
        self.config = group_config(env, group, scales.seen, scales.reward, state=scales.state)
        act = Correction(spec.low, spec.high, anchors)
        unit = spaces.Box(-1.0, 1.0, shape=(spec.dim_c,), dtype=np.float32)
        self.venv = MappedVecEnv(
            self._venv(settings.num_envs, first_seed, plan.critic),
            observe=self.scaling,
            state=scales.state,
            act=(lambda observations, choices: choices) if spec.dim_d else act,
            reward_scale=scales.reward,
            action_space=None if spec.dim_d else unit,
        )
        self.annealing = Annealing(settings.learning_rate, settings.final_learning_rate)
        self.model = ManySlotsPPO(
            "MlpPolicy" if plan.critic == "local" else CentralCriticPolicy,
            self.venv,
            learning_rate=self.annealing,
            n_steps=settings.n_steps,
            batch_size=_divisor(settings.n_steps * self.venv.num_envs, settings.batch_size),
            n_epochs=settings.n_epochs,
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
            policy_kwargs={"net_arch": list(settings.hidden), "log_std_init": settings.first_log_std(bool(self.rules))},
            seed=plan.seed,
            device="cpu",
        )
        self.venv.seed(first_seed)  # PPO seeded the environments with its own seed
        if plan.start is not None:
            load_weights(self.model.policy, plan.start, group)

    def _measured(self, anchors: Anchors | None, first_seed: int) -> Scales:
        """From warm-up episodes of their own seeds."""
        settings, central = self.plan.hyperparameters, self.plan.critic == "central"
        venv = self._venv(min(settings.num_envs, WARM_UP_ENVS), first_seed + SEEDS // 2)
        return measure(venv, anchors, seed=self.plan.seed, discount=settings.gamma, central=central)

    def _venv(self, num_envs: int, seed: int, critic: str = "local") -> HeronVecEnv:
        from heron_env.adapters.sb3 import HeronVecEnv

        return HeronVecEnv(self.plan.make, num_envs, group=self.group, seed=seed, others=self.others, critic=critic)

    def policies(self) -> dict[str, NetworkPolicy]:
        """The deterministic policies as they are now, by agent."""
        network, log_std = network_of(self.model.policy.state_dict())
        low, high, ncats = np.array(self.config.action_low), np.array(self.config.action_high), tuple(self.config.ncats)
        if ncats:
            return dict.fromkeys(self.config.agents, NetworkPolicy(network, self.scaling, Choice(ncats)))
        return {
            agent: NetworkPolicy(network, self.scaling, Correction(low, high, self.rules.get(agent)), log_std=log_std)
            for agent in self.config.agents
        }

    def run(self, curve: Curve, tell: Callable[[float, str], None], deadline: float | None) -> None:
        """Train to the planned number of transitions, or to the deadline (monotonic s) if that comes first."""
        model, total, began = self.model, self.plan.total_steps, time.monotonic()
        wanted = [(number + 1) / max(self.plan.validations, 1) for number in range(self.plan.validations)]
        rollout = self.venv.num_envs * self.plan.hyperparameters.n_steps
        if self.plan.validations:
            self._measure(curve)
        while True:
            before = time.monotonic()
            model.learn(rollout, reset_num_timesteps=False, log_interval=1_000_000)
            now = time.monotonic()
            done = model.num_timesteps / total
            if deadline is not None:
                done = max(done, (now - began) / (deadline - began), float(now + (now - before) > deadline))
            self.annealing.remaining = max(1.0 - done, 0.0)
            tell(done, f"{model.num_timesteps:,} transitions")
            if wanted and (done >= wanted[0] or done >= 1.0):
                self._measure(curve)
                wanted = [share for share in wanted if share > done]
            if done >= 1.0:
                return

    def _measure(self, curve: Curve) -> None:
        """A row of the learning curve: what was earned since the last row, what the deterministic policy earns now."""
        venv = self.venv
        signal = venv.reward_sum / venv.transitions if venv.transitions else float("nan")
        venv.reward_sum, venv.transitions = 0.0, 0
        earned = Earned.mean(self.validation.returns({**self.others, **self.policies()}))
        curve.row(self.group, self.model.num_timesteps, signal, earned)


def _divisor(total: int, most: int) -> int:
    """The greatest divisor of `total` that is not above `most`: minibatches of one size."""
    return next(size for size in range(min(total, most), 0, -1) if total % size == 0)
