"""PPO of Stable-Baselines3 on the event clock beside the lean trainer, at equal numbers of decisions.

    python training/sb3_event.py             # killed and run again, it goes on; --seeds 0 1: these alone
    python training/sb3_event.py --quick     # in seconds, whether everything runs; the figures say nothing

EnergyManagement-v1 in steps of 900 s: messages and actions are late, one message in twenty is lost. Both learn from the
same days with the same sizes of networks, rates and minibatches, and play the same episodes of other seeds under the
network, on days of the same split.
Stable-Baselines3 discounts by decision, the lean trainer by step. Results: study.json and table.md in --out.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize
from under_network_report import SEEDS, once

from heron_env import BatchEnv, Hyperparameters, ScheduleConfig, load_policy, train
from heron_env.adapters import DecisionBuffer, HeronVecEnv
from heron_env.files import write_all
from heron_env.lab import Intervals, versions

ID: Final = "heron/EnergyManagement-v1"
OPTIONS: Final[dict[str, Any]] = {"dt": 900.0, "physics_substeps": 15, "report_interval": 900.0}
NETWORK: Final = {"msg_delay": 300.0, "act_delay": 300.0, "jitter_type": "uniform", "jitter_ratio": 0.3, "loss": 0.05}
DECISIONS, ENVS, STEPS, BATCH = 405_504, 32, 96, 1024
FIRST_RATE, LAST_RATE = 1e-3, 1e-4
CASES, FIRST_CASE = 50, 2_000_000
SB3, LEAN, WHOLE = "Stable-Baselines3", "the lean trainer", "the lean trainer, as EnergyManagement sets it"
Act = Callable[[Any], Any]


class Counter(BaseCallback):
    """Counts decisions, and stops after so many."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most, self.done = most, 0

    def _on_step(self) -> bool:
        self.done += int(self.locals["env"].venv.waiting.slots.sum())
        return self.done < self.most


def by_sb3(seed: int, decisions: int, played: Callable[[Act], Any]) -> dict[str, Any]:
    """Train with PPO of Stable-Baselines3; what the policy earns."""
    torch.set_num_threads(1)
    schedule = ScheduleConfig(**NETWORK)
    lanes = HeronVecEnv(
        ID, ENVS, clock="event", schedule=schedule, seed=1000 * seed, threads=1, **OPTIONS, split="train"
    )
    venv, counter = VecNormalize(lanes, gamma=0.99), Counter(decisions)
    model = PPO(
        "MlpPolicy", venv, n_steps=2 * STEPS, batch_size=BATCH, n_epochs=5, gamma=0.99, gae_lambda=0.9, seed=seed,
        learning_rate=lambda _: FIRST_RATE + (LAST_RATE - FIRST_RATE) * min(counter.done / decisions, 1.0),
        device="cpu", rollout_buffer_class=DecisionBuffer, rollout_buffer_kwargs={"waiting": lanes.waiting},
    )  # fmt: skip
    model.learn(100 * decisions, callback=counter)
    venv.training = False
    return {
        "decisions": counter.done,
        "returns": played(lambda rows: model.predict(venv.normalize_obs(rows), deterministic=True)[0]),
    }


def by_lean(seed: int, decisions: int, played: Callable[[Act], Any], **more: Any) -> dict[str, Any]:
    """Train with `train`; what the policy earns. `more`: other hyperparameters."""
    equal: dict[str, Any] = {
        "num_envs": ENVS, "n_steps": STEPS, "batch_size": BATCH, "n_epochs": 5, "gamma": 0.99, "gae_lambda": 0.9,
        "learning_rate": FIRST_RATE, "final_learning_rate": LAST_RATE, "log_std": 0.0,
    }  # fmt: skip
    settings = Hyperparameters(**equal | more)
    with TemporaryDirectory() as folder:
        run = train(
            ID, folder, total_steps=decisions, seed=seed, schedule=ScheduleConfig(**NETWORK), env_options=OPTIONS,
            training_options={"split": "train"}, residual=None, hyperparameters=settings, validations=1,
            validation_episodes=1, progress=False,
        )  # fmt: skip
        policy: Any = load_policy(run.path)["battery"]
        return {"decisions": run.config.transitions, "returns": played(policy.forward_batch)}


TRAINERS: Final = {SB3: by_sb3, LEAN: by_lean, WHOLE: partial(by_lean, gamma=1.0, gae_lambda=1.0, twins=4)}


def days(cases: int) -> Callable[[Act], list[float]]:
    """What a policy earns under the network, by day."""

    def played(act: Act) -> list[float]:
        batch: Any = BatchEnv(
            ID, cases, seed=FIRST_CASE, clock="event", schedule=ScheduleConfig(**NETWORK), autoreset="disabled",
            threads=1, **OPTIONS,
        )  # fmt: skip
        rows = batch.begin()
        while len(rows):
            rows = batch.answer(np.asarray(act(rows.obs), dtype=np.float64))
        return [round(result.returns["system_agent"], 4) for result in batch.results()]

    return played


def study(runs: Path, seeds: Sequence[int], decisions: int, cases: int) -> dict[str, Any]:
    """Everything that is measured; trainings that `runs` has are not repeated."""
    settings = {"network": NETWORK, "options": OPTIONS, "decisions": decisions, "cases": [FIRST_CASE, cases]}
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in TRAINERS}
    for seed in seeds:
        for number, (name, trained) in enumerate(TRAINERS.items()):

            def measured(seed: int = seed, trained: Any = trained) -> dict[str, Any]:
                began = time.process_time()
                result = trained(seed, decisions, days(cases))
                return {"cpu_seconds": round(time.process_time() - began, 1), **result}

            run = once(runs / f"{number}-{seed}.json", settings, measured)
            results[name].append(run)
            mean = np.mean(run["returns"])
            print(f"seed {seed}, {name}: {mean:.2f}, {run['decisions']:,}, {run['cpu_seconds']} s", flush=True)
    nothing = days(cases)(lambda rows: np.zeros((len(rows), 1)))
    facts = {key: {name: [run[key] for run in ran] for name, ran in results.items()} for key in results[SB3][0]}
    del facts["settings"]
    return {"schema_version": 1, "env": ID, "seeds": [*seeds], **settings, "versions": versions(), **facts,
            "nothing": nothing}  # fmt: skip


def table(results: dict[str, Any]) -> str:
    """Markdown."""
    of = Intervals(range(results["cases"][1]))
    returns = {name: np.array(each) for name, each in results["returns"].items()}
    lines = ["| | return, EUR a day | CPU s a training |", "|---|---:|---:|"]
    for name, each in returns.items():
        lines.append(f"| {name} | {of.mean(each)} | {np.mean(results['cpu_seconds'][name]):.0f} |")
    lines.append(f"| nobody acts | {of.mean(np.array([results['nothing']]))} | |")
    differences = "; ".join(f"minus {name}: {of.difference(returns[SB3], returns[name])}" for name in (LEAN, WHOLE))
    return "\n".join([*lines, "", f"Stable-Baselines3 {differences}.", ""])


def main() -> None:
    """Train what is missing, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[*SEEDS])
    parser.add_argument("--quick", action="store_true", help="few decisions and days; give --out, too")
    parser.add_argument("--runs", type=Path, default=Path("runs/sb3_event"), help="where trainings are kept")
    parser.add_argument("--out", type=Path, default=Path("training/results/sb3_event"))
    args = parser.parse_args()
    decisions, cases = (4_000, 2) if args.quick else (DECISIONS, CASES)
    results = study(args.runs, args.seeds, decisions, cases)
    args.out.mkdir(parents=True, exist_ok=True)
    write_all({args.out / "study.json": json.dumps(results) + "\n", args.out / "table.md": (text := table(results))})
    print(text)


if __name__ == "__main__":
    main()
