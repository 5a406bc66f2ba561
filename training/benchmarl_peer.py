"""Do our QMIX and MAPPO learn as BenchMARL's do? With equal frames, networks, rates and minibatches.

    python training/benchmarl_peer.py train Spread ours qmix 0    # also: SpeakerListener, benchmarl, mappo, other seeds
    python training/benchmarl_peer.py report                      # of what is there

BenchMARL needs an interpreter of its own, see docs/use_with/benchmarl.md. Both sides train on the same environment
(choices, 25 steps), with observations and state scaled by a warm-up, and are judged alike: the greedy policy's return
of the team, summed over the agents, on 200 episodes that no training sees. Each group of agents has a policy of its
own, and a critic or a mixer that is given the state: one for Spread's three agents, one each for speaker and listener,
whose observations and choices differ; there QMIX has one value to mix. Each training is kept as
ENV-SIDE-ALGORITHM-SEED.json in --out, and the report as table.md.
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
TEAMS = {"Spread": {"agent": (3, 5)}, "SpeakerListener": {"speaker": (1, 3), "listener": (1, 5)}}
"""Environments: how many agents each group has, and how many choices."""
EPISODE, EPISODES, FIRST_TEST_SEED = 25, 200, 1_000_000
FRAMES, ENVS, GAMMA, HIDDEN = 1_000_000, 60, 0.95, (64, 64)
RATE = {"qmix": 5e-4, "mappo": 1e-3}
STEPS = {"qmix": 25, "mappo": 50}
"""Of each environment between updates."""
BATCH = {"qmix": 256, "mappo": 750}
"""Transitions of the team in a minibatch."""
EPOCHS = {"qmix": 8, "mappo": 10}
"""How often a transition is learned from, in the mean."""
OUT = Path(__file__).parent / "results" / "benchmarl"
Act = Callable[[str, NDArray[np.float32]], NDArray[Any]]
"""What a group of that name does, `[n, agents, 1]`, where it sees `[n, agents, d]`."""


def batch_of(env: str, lanes: int, seed: int) -> BatchEnv:
    """Environments that step together."""
    return BatchEnv(f"heron/{env}-v0", lanes, seed=seed, continuous=False)


def earned(env: str, act: Act) -> list[float]:
    """The team's return in each of the test episodes."""
    batch = batch_of(env, EPISODES, FIRST_TEST_SEED)
    observations, total = batch.reset()[0], np.zeros(EPISODES)
    for _ in range(EPISODE):
        observations, rewards, *_ = batch.step({group: act(group, seen) for group, seen in observations.items()})
        total += sum(gained.sum(axis=1) for gained in rewards.values())
    return [round(float(value), 6) for value in total]


def ours(env: str, algorithm: str, seed: int) -> list[float]:
    """Train with heron_env."""
    agents = next(iter(TEAMS[env].values()))[0]  # of each group; PPO counts each agent's transitions
    settings = Hyperparameters(
        num_envs=ENVS, n_steps=STEPS[algorithm], n_epochs=EPOCHS[algorithm], gamma=GAMMA, hidden=HIDDEN,
        learning_rate=RATE[algorithm], final_learning_rate=RATE[algorithm],
        batch_size=BATCH[algorithm] * (agents if algorithm == "mappo" else 1),
    )  # fmt: skip
    how = {"algorithm": "qmix"} if algorithm == "qmix" else {"critic": "central"}
    with tempfile.TemporaryDirectory() as folder:
        train(
            f"heron/{env}-v0", folder, total_steps=agents * FRAMES, seed=seed, env_options={"continuous": False},
            hyperparameters=settings, validations=0, validation_episodes=1, progress=False, **how,
        )  # fmt: skip
        policies: Any = load_policy(folder)

    def act(group: str, seen: NDArray[np.float32]) -> NDArray[Any]:
        return np.asarray(policies[group].forward_batch(seen.reshape(-1, seen.shape[-1])).reshape(EPISODES, -1, 1))

    return earned(env, act)


def benchmarl(env: str, algorithm: str, seed: int) -> list[float]:
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
    usual, scales = [], warm_up(env, seed)
    for name, (center, scale) in scales.items():
        where: Any = name if name == "state" else (name, "observation")
        usual.append(ObservationNorm(torch.tensor(center), torch.tensor(scale), [where], [where], standard_normal=True))
    model = replace(MlpConfig.get_from_yaml(), num_cells=list(HIDDEN), activation_class=torch.nn.Tanh)
    with tempfile.TemporaryDirectory() as folder:
        config = replace(ExperimentConfig.get_from_yaml(), save_folder=folder, **settings)
        task = HeronTask(f"heron/{env}-v0", {"continuous": False, "with_state": True}, usual)
        kinds: Any = {"qmix": QmixConfig, "mappo": MappoConfig}
        experiment = Experiment(task, kinds[algorithm].get_from_yaml(), model, seed=seed, config=config)
        experiment.run()

    def act(group: str, seen: NDArray[np.float32]) -> NDArray[Any]:
        center, scale = scales[group]
        scaled = torch.from_numpy((seen - center) / scale)
        told = TensorDict({group: TensorDict({"observation": scaled}, scaled.shape[:2])}, [EPISODES])
        with torch.no_grad(), set_exploration_type("deterministic"):
            return np.asarray(experiment.group_policies[group](told)[group, "action"].reshape(EPISODES, -1, 1))

    return earned(env, act)


def warm_up(env: str, seed: int) -> dict[str, tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Mean and spread of each column of each group's observations, and of the state.

    Under one random choice of each agent held through an episode, in two episodes.
    """
    batch, chance = batch_of(env, 16, seed), np.random.default_rng(seed)
    seen = {group: [part.copy()] for group, part in batch.reset()[0].items()}
    states = [batch.state()]
    held = {group: chance.integers(choices, size=(2, 16, agents, 1)) for group, (agents, choices) in TEAMS[env].items()}
    for step in range(2 * EPISODE):
        observations = batch.step({group: chosen[step // EPISODE] for group, chosen in held.items()})[0]
        for group, part in observations.items():
            seen[group].append(part.copy())
        states.append(batch.state())
    tables = {group: np.concatenate(parts).reshape(-1, parts[0].shape[-1]) for group, parts in seen.items()}
    result = {}
    for name, table in {**tables, "state": np.concatenate(states)}.items():
        spread = table.std(axis=0)
        result[name] = table.mean(axis=0), np.where(spread > 1e-6, spread, 1.0).astype(np.float32)
    return result


def run(env: str, side: str, algorithm: str, seed: int, out: Path) -> None:
    """Train, judge, keep."""
    began = time.process_time()
    returns = {"ours": ours, "benchmarl": benchmarl}[side](env, algorithm, seed)
    kept = {
        "env": env, "side": side, "algorithm": algorithm, "seed": seed, "frames": FRAMES, "envs": ENVS, "gamma": GAMMA,
        "hidden": HIDDEN, "rate": RATE[algorithm], "steps": STEPS[algorithm], "batch": BATCH[algorithm],
        "epochs": EPOCHS[algorithm], "cpu_seconds": round(time.process_time() - began, 1),
        "return": round(float(np.mean(returns)), 4), "versions": versions(), "returns": returns,
    }  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    write(out / f"{env}-{side}-{algorithm}-{seed}.json", json.dumps(kept) + "\n")


def by_chance(env: str) -> float:
    """What random choices earn."""
    chance, teams = np.random.default_rng(0), TEAMS[env]
    shapes = {group: (EPISODES, agents, 1) for group, (agents, _) in teams.items()}
    return float(np.mean(earned(env, lambda group, _: chance.integers(teams[group][1], size=shapes[group]))))


def report(out: Path) -> str:
    """A row for each environment, algorithm and side, over the seeds that are there."""
    nothing = {env: np.mean(earned(env, lambda _, seen: np.zeros((*seen.shape[:2], 1)))) for env in TEAMS}
    known = " and ".join(f"{by_chance(env):.1f} in {env} (choice 0: {nothing[env]:.1f})" for env in TEAMS)
    lines = [f"Random actions earn {known}.", "", "| | seeds | team return [95 %] | each seed | CPU min |"]
    lines.append("|---|---|---|---|---|")
    for env, algorithm, side in product(TEAMS, ALGORITHMS, SIDES):
        found = [json.loads(file.read_text("utf-8")) for file in sorted(out.glob(f"{env}-{side}-{algorithm}-*.json"))]
        if found:
            values, spent = ([one[name] for one in found] for name in ("return", "cpu_seconds"))
            each, minutes = ", ".join(f"{value:.1f}" for value in values), np.mean(spent) / 60
            name = f"{env}, {algorithm.upper()}, {side}"
            lines.append(f"| {name} | {len(found)} | {mean_interval(values)} | {each} | {minutes:.1f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    tasks = parser.add_subparsers(dest="task", required=True)
    tasks.add_parser("report")
    one = tasks.add_parser("train")
    one.add_argument("env", choices=TEAMS)
    one.add_argument("side", choices=SIDES)
    one.add_argument("algorithm", choices=ALGORITHMS)
    one.add_argument("seed", type=int)
    given = parser.parse_args()
    if given.task == "train":
        run(given.env, given.side, given.algorithm, given.seed, given.out)
    else:
        write(given.out / "table.md", report(given.out))


if __name__ == "__main__":
    main()
