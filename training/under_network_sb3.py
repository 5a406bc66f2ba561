"""Stable-Baselines3 on Gymnasium's environments behind a network: what training under the network is worth.

    python training/under_network_sb3.py             # killed and run again, it goes on; --envs CartPole-v1: that alone
    python training/under_network_sb3.py --choose    # how the networks were chosen: one training, a ladder of networks
    python training/under_network_sb3.py --quick     # in seconds, whether everything runs; the figures say nothing

Hyperparameters are those of RL Baselines3 Zoo (Raffin 2020), hyperparams/ppo.yml and a2c.yml; CartPole-v1 is trained
for half as many steps. Two trainings of a seed differ in the network alone; both are played with and without it, in the
same cases. Results: sb3.json, sb3.md, sb3.svg in --out.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from under_network_report import BARE, CASES, CHOICE, POLICIES, SEEDS, UNDER, once, write_report

from heron_env import ScheduleConfig, under_network
from heron_env.lab import versions

Array = NDArray[Any]


@dataclass(frozen=True)
class Recipe:
    """One environment: how it is trained, behind which network, which networks were tried for that (delays, steps)."""

    env: str
    algorithm: type[Any]
    steps: int
    num_envs: int
    normalize: bool
    hyperparameters: Mapping[str, Any]
    noop: Any
    ladder: tuple[tuple[float, float], ...]
    delays: tuple[float, float]

    @property
    def schedules(self) -> dict[str, dict[str, Any] | None]:
        """Of the places, as ScheduleConfig takes them."""
        return {BARE: None, UNDER: network(*self.delays)}

    def build(self, schedule: Mapping[str, Any] | None) -> Any:
        """The environment behind a network; None: without delay and loss, which is the environment itself."""
        config = None if schedule is None else ScheduleConfig(**schedule)
        return under_network(gymnasium.make(self.env), config, noop=self.noop)


def network(obs_delay: float, act_delay: float) -> dict[str, Any]:
    """Observations and actions so many steps late, with jitter, and a tenth of all messages lost."""
    jitter = {"jitter_type": "lognormal", "jitter_ratio": 0.3}
    return {"obs_delay": obs_delay, "act_delay": act_delay, "loss": 0.1, **jitter}


RECIPES: Final = {
    recipe.env: recipe
    for recipe in (
        Recipe(
            "CartPole-v1", PPO, 50_000, 8, False,
            {
                "n_steps": 32, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98, "n_epochs": 20, "ent_coef": 0.0,
                "learning_rate": lambda left: 0.001 * left, "clip_range": lambda left: 0.2 * left,
            },
            noop=0, delays=(1.0, 1.0), ladder=((1.0, 0.0), (1.0, 1.0), (2.0, 1.0), (2.0, 2.0)),
        ),
        Recipe(
            "MountainCarContinuous-v0", A2C, 100_000, 4, True,
            {
                "n_steps": 100, "ent_coef": 0.0, "use_sde": True, "sde_sample_freq": 16,
                "policy_kwargs": {"log_std_init": 0.0, "ortho_init": False},
            },
            noop=None, delays=(20.0, 10.0),
            ladder=((5.0, 0.0), (5.0, 5.0), (10.0, 5.0), (10.0, 10.0), (20.0, 10.0), (20.0, 20.0)),
        ),
    )
}  # fmt: skip


def train(recipe: Recipe, schedule: Mapping[str, Any] | None, seed: int) -> Callable[[Array], Array]:
    """The deterministic policy of a training. Environment i begins with seed 1,000 seed + i."""
    torch.set_num_threads(1)
    venv: Any = DummyVecEnv([lambda: recipe.build(schedule)] * recipe.num_envs)
    if recipe.normalize:
        venv = VecNormalize(venv, gamma=recipe.hyperparameters.get("gamma", 0.99))
    model = recipe.algorithm("MlpPolicy", venv, seed=seed, device="cpu", **recipe.hyperparameters)
    venv.seed(1000 * seed)
    model.learn(recipe.steps)
    scaled = venv.normalize_obs if recipe.normalize else lambda rows: rows
    return lambda rows: model.predict(scaled(rows), deterministic=True)[0]


def returns(
    recipe: Recipe, schedule: Mapping[str, Any] | None, act: Callable[[Array], Array], cases: Sequence[int]
) -> list[float]:
    """Of one episode for each case, the seed of the environment and of the network; side by side, to be fast."""
    lanes, total, running = [recipe.build(schedule) for _ in cases], np.zeros(len(cases)), list(range(len(cases)))
    observations = np.stack([lane.reset(seed=case)[0] for lane, case in zip(lanes, cases, strict=True)])
    while running:
        going_on = []
        for lane, action in zip(running, act(observations[running]), strict=True):
            observations[lane], gained, terminated, truncated, _ = lanes[lane].step(action)
            total[lane] += gained
            going_on += [] if terminated or truncated else [lane]
        running = going_on
    return [round(value, 4) for value in total.tolist()]


def in_both(recipe: Recipe, act: Callable[[Array], Array], cases: Sequence[int]) -> dict[str, list[float]]:
    """`returns` without and under the network."""
    return {where: returns(recipe, schedule, act, cases) for where, schedule in recipe.schedules.items()}


def trained(recipe: Recipe, where: str, seed: int, cases: Sequence[int]) -> dict[str, Any]:
    """Train once, play; what the training took of the processor, s."""
    began = time.process_time()
    act = train(recipe, recipe.schedules[where], seed)
    cpu = round(time.process_time() - began, 1)
    return {"cpu_seconds": cpu, **in_both(recipe, act, cases)}


def random(recipe: Recipe) -> Callable[[Array], Array]:
    """An action of the space, drawn."""
    space = recipe.build(None).action_space
    space.seed(CASES[0])
    return lambda rows: np.array([space.sample() for _ in rows])


def study(recipe: Recipe, runs: Path, seeds: Sequence[int], cases: Sequence[int]) -> dict[str, Any]:
    """Everything that is measured of one environment; trainings that `runs` has are not repeated."""
    done: dict[str, list[dict[str, Any]]] = {where: [] for where in POLICIES}
    settings = {"network": recipe.schedules[UNDER], "steps": recipe.steps, "cases": [cases[0], len(cases)]}
    for seed in seeds:
        for number, where in enumerate(POLICIES):
            file = runs / f"{recipe.env}-{number}-{seed}.json"
            run = once(file, settings, lambda where=where, seed=seed: trained(recipe, where, seed, cases))
            done[where].append(run)
            print(f"{recipe.env}, seed {seed}, trained {where}: {run['cpu_seconds']} s", flush=True)
    space = recipe.build(None).action_space
    nothing = np.zeros(space.shape, space.dtype)
    levels = {
        "random actions": in_both(recipe, random(recipe), cases),
        "always action 0": in_both(recipe, lambda rows: np.array([nothing] * len(rows)), cases),
    }
    played = {POLICIES[where]: {at: [run[at] for run in ran] for at in POLICIES} for where, ran in done.items()}
    return {
        "schema_version": 1, "env": recipe.env, "algorithm": recipe.algorithm.__name__, "seeds": [*seeds], **settings,
        "versions": versions(),
        "cpu_seconds": {where: [run["cpu_seconds"] for run in ran] for where, ran in done.items()},
        "returns": played | {name: {at: [values] for at, values in level.items()} for name, level in levels.items()},
    }  # fmt: skip


def choose(recipe: Recipe) -> None:
    """Print what a policy that was trained without a network earns under each of the ladder."""
    cases, act = range(1_000_000, 1_000_032), train(recipe, None, CHOICE)
    levels = [np.mean(returns(recipe, None, policy, cases)) for policy in (random(recipe), act)]
    print(f"{recipe.env}: random actions {levels[0]:.1f}; without a network {levels[1]:.1f}")
    for delays in recipe.ladder:
        earned = np.mean(returns(recipe, network(*delays), act, cases))
        print(f"observations {delays[0]:g}, actions {delays[1]:g} steps late: {earned:.1f}", flush=True)


def main() -> None:
    """Choose, or train what is missing and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", choices=list(RECIPES), default=list(RECIPES))
    parser.add_argument("--choose", action="store_true", help="print the ladder, and stop")
    parser.add_argument("--quick", action="store_true", help="two seeds, two episodes; give --out, too")
    parser.add_argument("--runs", type=Path, default=Path("runs/under_network"), help="where trainings are kept")
    parser.add_argument("--out", type=Path, default=Path("training/results/under_network"))
    args = parser.parse_args()
    recipes, seeds, cases = [RECIPES[name] for name in args.envs], SEEDS, CASES
    if args.choose:
        for recipe in recipes:
            choose(recipe)
        return
    if args.quick:
        recipes, seeds, cases = [replace(recipe, steps=8) for recipe in recipes], SEEDS[:2], CASES[:2]
    print(write_report(args.out, "sb3", {recipe.env: study(recipe, args.runs, seeds, cases) for recipe in recipes}))


if __name__ == "__main__":
    main()
