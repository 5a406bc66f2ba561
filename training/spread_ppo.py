"""PPO of Stable-Baselines3 on simple_spread: settings, environments of both kinds, what is measured of a training."""

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from heron_env import stream
from heron_env.adapters import HeronVecEnv
from heron_env.lab import versions
from heron_env.worlds.spread import Assigned, Drive

AGENTS, EPISODE = 3, 25
FIRST_TEST_SEED = 1_000_000
Builder = Callable[[int], VecEnv]
"""So many environments as one VecEnv."""


@dataclass(frozen=True)
class Settings:
    """Of PPO. `batch_size` divides num_envs x 3 agents x n_steps; a rollout holds whole episodes.

    `learning_rate` falls linearly to `final_learning_rate`, if there is one.
    """

    num_envs: int = 16
    n_steps: int = 125
    batch_size: int = 500
    n_epochs: int = 10
    learning_rate: float = 1e-3
    final_learning_rate: float | None = None
    gamma: float = 0.9
    gae_lambda: float = 0.9
    ent_coef: float = 0.0
    log_std_init: float = 0.0
    hidden: tuple[int, ...] = (64, 64)

    def model(self, venv: VecEnv, seed: int) -> PPO:
        """One policy for all agents, with a network drawn from `seed`; the environments start with seeds of their own.

        Environment i begins with 1,000 seed + i, so that no two trainings share episodes.
        """
        model = PPO(
            "MlpPolicy", venv, seed=seed, device="cpu", n_steps=self.n_steps, batch_size=self.batch_size,
            n_epochs=self.n_epochs, learning_rate=self._rate(), gamma=self.gamma, gae_lambda=self.gae_lambda,
            ent_coef=self.ent_coef,
            policy_kwargs={"net_arch": list(self.hidden), "log_std_init": self.log_std_init},
        )  # fmt: skip
        venv.seed(1000 * seed)
        return model

    def _rate(self) -> float | Callable[[float], float]:
        """What PPO takes: a number, or one for each share of the training that is left."""
        first, last = self.learning_rate, self.final_learning_rate
        return first if last is None else lambda left: last + (first - last) * left


class ParallelSlots(VecEnv):
    """PettingZoo parallel environments in a loop, one slot per agent, as HeronVecEnv orders, seeds and resets them.

    For environments whose agents all end together by a time limit, as simple_spread's do.
    """

    def __init__(self, build: Callable[[], Any], num_envs: int) -> None:
        self.envs = [build() for _ in range(num_envs)]
        self.agents = list(self.envs[0].possible_agents)
        first = self.agents[0]
        super().__init__(
            num_envs * len(self.agents), self.envs[0].observation_space(first), self.envs[0].action_space(first)
        )
        self._actions = np.zeros((num_envs, len(self.agents), *self.action_space.shape))

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """For the next reset: environment i gets seed + i."""
        first = [None if seed is None else seed + env for env in range(len(self.envs))]
        self._seeds = [number for number in first for _ in self.agents]
        return self._seeds

    def reset(self) -> NDArray[np.float32]:
        """Start an episode everywhere."""
        seeds = self._seeds[:: len(self.agents)]
        shown = [self._rows(env.reset(seed=seed)[0]) for env, seed in zip(self.envs, seeds, strict=True)]
        self._reset_seeds()
        return np.concatenate(shown)

    def step_async(self, actions: NDArray[np.float32]) -> None:
        """Take the actions of all slots."""
        self._actions = actions.reshape(self._actions.shape)

    def step_wait(self) -> Any:
        """Step every environment; those that are over are reset at once."""
        shown, rewards, dones, infos = [], [], [], []
        for env, chosen in zip(self.envs, self._actions, strict=True):
            seen, gained, terminated, truncated, _ = env.step(dict(zip(self.agents, chosen, strict=True)))
            rows, over = self._rows(seen), not env.agents
            told = [{} for _ in self.agents]
            if over:
                told = [
                    {"terminal_observation": row, "TimeLimit.truncated": truncated[a] and not terminated[a]}
                    for a, row in zip(self.agents, rows, strict=True)
                ]
                rows = self._rows(env.reset()[0])
            shown.append(rows)
            rewards += [gained[agent] for agent in self.agents]
            dones += [over] * len(self.agents)
            infos += told
        return np.concatenate(shown), np.array(rewards, dtype=np.float32), np.array(dones), infos

    def _rows(self, seen: dict[str, Any]) -> NDArray[np.float32]:
        return np.stack([seen[agent] for agent in self.agents])

    def close(self) -> None:
        """Close the environments."""
        for env in self.envs:
            env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The attribute of each slot's environment."""
        return [getattr(self.envs[slot // len(self.agents)], attr_name) for slot in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Nothing here needs it."""
        raise NotImplementedError("ParallelSlots: set attributes in `build`")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Nothing here needs it."""
        raise NotImplementedError("ParallelSlots: call methods in `build`")

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """Never wrapped by Gymnasium wrappers."""
        return [False for _ in self._get_indices(indices)]


def heron(num_envs: int) -> VecEnv:
    """Ours, with an agent's own rewards."""
    return HeronVecEnv(
        "heron/Spread-v0", num_envs, use_training_signal=False,
        num_agents=AGENTS, local_ratio=0.5, continuous=True, max_steps=EPISODE,
    )  # fmt: skip


def mpe2(num_envs: int) -> VecEnv:
    """Farama's."""
    try:
        build = import_module("mpe2.simple_spread_v3").parallel_env
    except ImportError as error:
        raise SystemExit(
            f"the side of mpe2 needs it ({error}); pip install mpe2, in an environment of its own"
        ) from error
    return ParallelSlots(
        lambda: build(N=AGENTS, local_ratio=0.5, max_cycles=EPISODE, continuous_actions=True), num_envs
    )


SIDES: dict[str, Builder] = {"heron": heron, "mpe2": mpe2}


class Returns(BaseCallback):
    """The learning curve: rows (environment steps, mean return of the episodes that ended in a rollout, how many)."""

    def __init__(self) -> None:
        super().__init__()
        self.curve: list[list[float]] = []
        self.loads: list[float] = []

    def _on_training_start(self) -> None:
        self._sums = np.zeros(self.training_env.num_envs)
        self._ended: list[float] = []

    def gained(self) -> NDArray[np.float32]:
        """Rewards of the step just made."""
        return np.asarray(self.locals["rewards"])

    def _on_step(self) -> bool:
        self._sums += self.gained()
        dones = self.locals["dones"]
        if dones.any():
            self._ended += self._sums[dones].tolist()
            self._sums[dones] = 0.0
        return True

    def _on_rollout_end(self) -> None:
        self.curve.append([self.num_timesteps // AGENTS, round(float(np.mean(self._ended)), 5), len(self._ended)])
        self.loads.append(load())
        self._ended = []


def load() -> float:
    """Processes that wanted the machine in the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def earned(act: Callable[[Any], Any], build: Builder, episodes: int) -> float:
    """Mean return of an agent that acts by `act` over episodes that no training has seen."""
    venv = build(episodes)
    venv.seed(FIRST_TEST_SEED)
    shown, total = venv.reset(), 0.0
    for _ in range(EPISODE):
        shown, rewards, _, _ = venv.step(act(shown))
        total += float(rewards.astype(np.float64).sum())
    venv.close()
    return total / venv.num_envs


def played(model: PPO, build: Builder, episodes: int) -> float:
    """`earned` by the deterministic policy."""
    return earned(lambda shown: model.predict(shown, deterministic=True)[0], build, episodes)


def as_kept(settings: Settings) -> dict[str, Any]:
    """The settings as they come back from JSON, without what is not in force."""
    given = {**asdict(settings), "hidden": list(settings.hidden)}
    return {name: value for name, value in given.items() if value is not None}


def all_versions(side: str) -> dict[str, str]:
    """Of what took part."""
    found = versions()
    if side == "mpe2":
        with contextlib.suppress(PackageNotFoundError):
            found["mpe2"] = version("mpe2")
    return found


def levels(episodes: int) -> dict[str, float]:
    """What policies that learn nothing earn, mean return of an agent, over the episodes that `played` uses."""
    n = AGENTS
    chance = stream(FIRST_TEST_SEED, "chance")
    rules = {
        "random": lambda shown: chance.random((len(shown), 5), dtype=np.float32),
        "nearest landmark": Drive(n, continuous=True).forward_batch,
        "assigned landmark": Assigned(n, continuous=True).forward_batch,
    }
    return {name: round(earned(act, heron, episodes), 5) for name, act in rules.items()}


def in_mpe_form(agent_return: float) -> float:
    """The episode's return as the original MPE counts it, from an agent's mean return with local_ratio 0.5.

    There every agent gets -(distance + contacts), itself counted as one contact a step, and agents are summed.
    """
    return 2.0 * AGENTS * agent_return - AGENTS * EPISODE
