"""Do our QMIX and MAPPO learn heron/Spread-v0 as BenchMARL's do? With equal frames, networks, rates and minibatches.

    python training/benchmarl_peer.py train ours qmix 0            # one training; also: mappo; benchmarl; other seeds
    python training/benchmarl_peer.py report                       # of what is there

BenchMARL needs an interpreter of its own, see docs/use_with/benchmarl.md. Both sides train on the same environment
(discrete pushes, 3 agents, 25 steps; the same as mpe2's simple_spread_v3 with local_ratio 0.5), with observations and
state scaled by a warm-up, and are judged alike: the greedy policy's return of the team, summed over the agents, on 200
episodes that no training sees. Each training is kept as SIDE-ALGORITHM-SEED.json in --out, and the report as table.md.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env import BatchEnv, Hyperparameters, load_policy, mean_interval, train
from heron_env.files import write
from heron_env.lab import versions

SIDES, ALGORITHMS = ("ours", "benchmarl"), ("qmix", "mappo")
ENV, OPTIONS = "heron/Spread-v0", {"continuous": False}
EPISODE, EPISODES, FIRST_TEST_SEED = 25, 200, 1_000_000
FRAMES, ENVS, GAMMA, HIDDEN = 300_000, 60, 0.95, (64, 64)
RATE = {"qmix": 5e-4, "mappo": 1e-3}
STEPS = {"qmix": 25, "mappo": 50}
"""Of each environment between updates."""
BATCH = {"qmix": 256, "mappo": 750}
"""Transitions of the team in a minibatch."""
EPOCHS = {"qmix": 8, "mappo": 10}
"""How often a transition is learned from, in the mean."""
OUT = Path(__file__).parent / "results" / "benchmarl"
Act = Callable[[NDArray[np.float32]], NDArray[Any]]


def earned(act: Act) -> list[float]:
    """The team's return in each of the test episodes."""
    batch = BatchEnv(ENV, EPISODES, seed=FIRST_TEST_SEED, **OPTIONS)
    observations, total = batch.reset()[0], np.zeros(EPISODES)
    for _ in range(EPISODE):
        observations, rewards, *_ = batch.step({"agent": act(observations["agent"])})
        total += rewards["agent"].sum(axis=1)
    return [round(float(value), 6) for value in total]


def ours(algorithm: str, seed: int) -> list[float]:
    """Train with heron_env."""
    settings = Hyperparameters(
        num_envs=ENVS, n_steps=STEPS[algorithm], n_epochs=EPOCHS[algorithm], gamma=GAMMA, hidden=HIDDEN,
        learning_rate=RATE[algorithm], final_learning_rate=RATE[algorithm],
        batch_size=BATCH[algorithm] * (3 if algorithm == "mappo" else 1),  # PPO counts each agent's transitions
    )  # fmt: skip
    how = {"algorithm": "qmix"} if algorithm == "qmix" else {"critic": "central"}
    with tempfile.TemporaryDirectory() as folder:
        train(
            ENV, folder, total_steps=3 * FRAMES, seed=seed, env_options=OPTIONS, hyperparameters=settings,
            validations=0, validation_episodes=1, progress=False, **how,
        )  # fmt: skip
        policy: Any = load_policy(folder)["agent"]
    return earned(lambda seen: policy.forward_batch(seen.reshape(-1, seen.shape[-1])).reshape(EPISODES, -1, 1))


def benchmarl(algorithm: str, seed: int) -> list[float]:
    """Train with BenchMARL."""
    import torch
    from benchmarl.algorithms import MappoConfig, QmixConfig
    from benchmarl.experiment import Experiment, ExperimentConfig
    from benchmarl.models.mlp import MlpConfig
    from tensordict import TensorDict
    from torchrl.envs import ObservationNorm, set_exploration_type

    from heron_env.adapters import HeronTask

    torch.set_num_threads(1)
    kind = "off_policy" if algorithm == "qmix" else "on_policy"
    frames, batch, epochs = ENVS * STEPS[algorithm], BATCH[algorithm], EPOCHS[algorithm]
    settings: dict[str, Any] = {
        "loggers": [], "create_json": False, "render": False, "evaluation": False, "max_n_frames": FRAMES,
        "gamma": GAMMA, "lr": RATE[algorithm], "prefer_continuous_actions": False, "exploration_eps_init": 1.0,
        "exploration_eps_end": 0.05, "exploration_anneal_frames": FRAMES // 2, "off_policy_memory_size": 100_000,
        f"{kind}_n_envs_per_worker": ENVS, f"{kind}_collected_frames_per_batch": frames,
    }  # fmt: skip
    settings |= (
        {"off_policy_n_optimizer_steps": -(-frames * epochs // batch), "off_policy_train_batch_size": batch}
        if algorithm == "qmix"
        else {"on_policy_n_minibatch_iters": epochs, "on_policy_minibatch_size": batch}
    )
    usual = []
    for name, (center, scale) in zip(("observation", "state"), warm_up(seed), strict=True):
        where: Any = "state" if name == "state" else ("agent", name)
        usual.append(ObservationNorm(torch.tensor(center), torch.tensor(scale), [where], [where], standard_normal=True))
    model = replace(MlpConfig.get_from_yaml(), num_cells=list(HIDDEN), activation_class=torch.nn.Tanh)
    with tempfile.TemporaryDirectory() as folder:
        config = replace(ExperimentConfig.get_from_yaml(), save_folder=folder, **settings)
        task = HeronTask(ENV, {**OPTIONS, "with_state": True}, usual)
        kinds: Any = {"qmix": QmixConfig, "mappo": MappoConfig}
        experiment = Experiment(task, kinds[algorithm].get_from_yaml(), model, seed=seed, config=config)
        experiment.run()
    center, scale = warm_up(seed)[0]

    def act(seen: NDArray[np.float32]) -> NDArray[Any]:
        scaled = torch.from_numpy((seen - center) / scale)
        told = TensorDict({"agent": TensorDict({"observation": scaled}, [EPISODES, 3])}, [EPISODES])
        with torch.no_grad(), set_exploration_type("deterministic"):
            return np.asarray(experiment.policy(told)["agent", "action"].reshape(EPISODES, 3, 1))

    return earned(act)


def warm_up(seed: int) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Mean and spread of each column of observations and state, under one random push held through an episode."""
    batch, chance = BatchEnv(ENV, 16, seed=seed, **OPTIONS), np.random.default_rng(seed)
    seen, states = [batch.reset()[0]["agent"].copy()], [batch.state()]
    for pushes in np.repeat(chance.integers(5, size=(2, 16, 3, 1)), EPISODE, axis=0):
        seen.append(batch.step({"agent": pushes})[0]["agent"].copy())
        states.append(batch.state())
    tables = np.concatenate(seen).reshape(-1, seen[0].shape[-1]), np.concatenate(states)
    spreads = [np.where(table.std(axis=0) > 1e-6, table.std(axis=0), 1.0) for table in tables]
    return [(table.mean(axis=0), spread.astype(np.float32)) for table, spread in zip(tables, spreads, strict=True)]


def run(side: str, algorithm: str, seed: int, out: Path) -> None:
    """Train, judge, keep."""
    began = time.process_time()
    returns = {"ours": ours, "benchmarl": benchmarl}[side](algorithm, seed)
    kept = {
        "side": side, "algorithm": algorithm, "seed": seed, "frames": FRAMES, "envs": ENVS, "gamma": GAMMA,
        "hidden": HIDDEN, "rate": RATE[algorithm], "steps": STEPS[algorithm], "batch": BATCH[algorithm],
        "epochs": EPOCHS[algorithm], "cpu_seconds": round(time.process_time() - began, 1),
        "return": round(float(np.mean(returns)), 4), "versions": versions(), "returns": returns,
    }  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    write(out / f"{side}-{algorithm}-{seed}.json", json.dumps(kept) + "\n")


def report(out: Path) -> str:
    """A row for each algorithm and side, over the seeds that are there."""
    chance = np.random.default_rng(0)
    random = float(np.mean(earned(lambda seen: chance.integers(5, size=(EPISODES, 3, 1)))))
    lines = [f"Random pushes earn {random:.1f}.", "", "| | seeds | team return [95 %] | each seed | CPU min |"]
    lines.append("|---|---|---|---|---|")
    for algorithm, side in product(ALGORITHMS, SIDES):
        found = [json.loads(file.read_text("utf-8")) for file in sorted(out.glob(f"{side}-{algorithm}-*.json"))]
        if len(found) > 1:
            values, spent = ([one[name] for one in found] for name in ("return", "cpu_seconds"))
            each, minutes = ", ".join(f"{value:.1f}" for value in values), np.mean(spent) / 60
            name = f"{algorithm.upper()}, {side}"
            lines.append(f"| {name} | {len(found)} | {mean_interval(values)} | {each} | {minutes:.1f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    tasks = parser.add_subparsers(dest="task", required=True)
    tasks.add_parser("report")
    one = tasks.add_parser("train")
    one.add_argument("side", choices=SIDES)
    one.add_argument("algorithm", choices=ALGORITHMS)
    one.add_argument("seed", type=int)
    given = parser.parse_args()
    if given.task == "train":
        run(given.side, given.algorithm, given.seed, given.out)
    else:
        write(given.out / "table.md", report(given.out))


if __name__ == "__main__":
    main()
