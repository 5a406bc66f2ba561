"""Learning: Stable-Baselines3's PPO on simple_spread, and where its time goes; ours with and without a network."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.case import EPISODE, Case, Comparison, Role, Setting, timed
from heron_env import ScheduleConfig
from heron_env.errors import ConfigError

SIZES: Final = {"8 environments": (8, 1024, 8192), "1,024 environments": (1024, EPISODE, 9600)}
"""Environments, steps of a rollout, size of a batch."""
AGENTS: Final = 3
EPOCHS: Final = 4
FEW, MANY = SIZES
LANES: Final = 64
NETWORKED: Final = {900: 64, 60: 256}
"""Lanes by control step in s."""
UNDER, WITHOUT = "under the network", "synchronous"
JITTERED: Final = ScheduleConfig(msg_delay=3.0, act_delay=2.0, jitter_type="uniform", jitter_ratio=0.3, loss=0.05)


def comparisons() -> list[Comparison]:
    """Few environments and many."""
    title = f"SB3 PPO on Spread, {AGENTS} agents, 64 x 64, {EPOCHS} epochs"
    return [
        Comparison("learning-ppo", title, "env-steps/s", _cases, rounds=5),
        Comparison(
            "learning-spread", f"our own PPO on Spread, {LANES} environments, 64 x 64, as train() does it",
            "transitions per CPU s", _on_spread, rounds=5,
        ),
        *(
            Comparison(
                f"learning-network-{dt}", f"PPO on EnergyManagement-v1, steps of {dt} s, under the network and without",
                "decisions per CPU s", partial(_with_network, dt, lanes), rounds=5,
            )
            for dt, lanes in NETWORKED.items()
        ),
    ]  # fmt: skip


def _cases(setting: Setting) -> Sequence[Case]:
    return [ppo_case(name, *size) for name, size in SIZES.items()]


def _with_network(dt: int, lanes: int, setting: Setting) -> Sequence[Case]:
    options = {"dt": float(dt), "physics_substeps": 6, "report_interval": float(dt)}
    settings = {"num_envs": lanes, "n_steps": 96, "batch_size": 4096, "n_epochs": EPOCHS}
    under, without = (Updates("heron/EnergyManagement-v1", options, way, **settings) for way in (JITTERED, None))
    return [Case(UNDER, under), Case(WITHOUT, without, Role.CEILING)]


def _on_spread(setting: Setting) -> Sequence[Case]:
    updates = [
        (name, Updates("heron/Spread-v0", {}, None, num_envs=LANES, activation=name)) for name in ("tanh", "relu")
    ]
    return [Case(name, update, facts=update.shares) for name, update in updates]


class Updates:
    """Decisions collected and learned from per CPU second: whole updates of the lean trainer."""

    def __init__(self, env_id: str, options: dict[str, Any], schedule: ScheduleConfig | None, **settings: Any) -> None:
        import torch

        from heron_env import Hyperparameters
        from heron_env.lab.learning.plan import make_plan
        from heron_env.lab.learning.row_training import RowTraining
        from heron_env.lab.learning.validation import Validation

        torch.set_num_threads(1)
        plan = make_plan(
            env_id, Path("unused"), {}, options, None, total_steps=1, seed=0, time_limit=None,
            hyperparameters=Hyperparameters(**settings), validations=0, schedule=schedule,
        )  # fmt: skip
        env = plan.make()
        self._course = RowTraining(plan, env, {}, Validation(env, plan.env_id, plan.options, 0))
        self._rows = self._course.begin()
        self._learning = self._spent = 0.0

    def __call__(self, seconds: float) -> float:
        """Updates for about so many seconds."""
        before, began, spent = sum(self._course.transitions.values()), time.process_time(), 0.0
        while spent < seconds:
            self._rows = self._course.collect(self._rows)
            collected = time.process_time()
            self._course.learn()
            spent = (now := time.process_time()) - began
            self._learning += now - collected
        self._spent += spent
        return (sum(self._course.transitions.values()) - before) / spent

    def shares(self) -> dict[str, float]:
        """The update's share of the time so far."""
        return {"update share": self._learning / self._spent}


class Stopwatch:
    """How long some methods of objects took; `wrap` replaces a method by one that is timed."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: dict[str, float] = {}
        self._clock = clock

    def timed(self, part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, with its time added to that of `part`."""
        self.seconds.setdefault(part, 0.0)

        def around(*args: Any, **options: Any) -> Any:
            start = self._clock()
            try:
                return call(*args, **options)
            finally:
                self.seconds[part] += self._clock() - start

        return around

    def wrap(self, owner: Any, method: str, part: str) -> None:
        """Time a method of this one object."""
        setattr(owner, method, self.timed(part, getattr(owner, method)))

    def shares(self) -> dict[str, float]:
        """Each part's share of "total", and what lies in none of them."""
        total = self.seconds["total"]
        shares = {f"{part} share": spent / total for part, spent in self.seconds.items() if part != "total"}
        return {**shares, "rest share": 1.0 - sum(shares.values())}


def ppo_case(name: str, envs: int, steps: int, batch: int) -> Case:
    """One iteration of PPO: a rollout and its update. Raises ConfigError where SB3 is missing."""
    try:
        from stable_baselines3 import PPO
    except ImportError as error:
        raise ConfigError(
            "the learning case needs Stable-Baselines3: pip install 'heron_env[train]', or name other cases by --only"
        ) from error
    from heron_env.adapters import HeronVecEnv

    env = HeronVecEnv("heron/Spread-v0", envs, num_agents=AGENTS, continuous=False)
    network = {"net_arch": [64, 64]}
    model: Any = PPO(
        "MlpPolicy", env, n_steps=steps, batch_size=batch, n_epochs=EPOCHS, policy_kwargs=network, seed=0, device="cpu"
    )
    watch = Stopwatch()
    watch.wrap(env, "step", "env")
    watch.wrap(model.policy, "forward", "policy")
    watch.wrap(model, "train", "update")
    iteration = steps * envs * AGENTS
    learn = watch.timed("total", lambda: model.learn(iteration, reset_num_timesteps=False))
    return Case(name, timed(learn, steps * envs), facts=watch.shares, close=env.close)
