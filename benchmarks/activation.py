"""Does ReLU learn the same as tanh? The lean PPO on three worlds, five seeds, equal updates, paired by seed.

    python -m benchmarks.activation    # 10 CPU-minutes; goes on where it was stopped

Said before it was run: ReLU becomes the default if in each world the 95 % interval of what it earns more than tanh (the
final policy, validation episodes) ends at 0 or above, and its lower end is a loss of at most a tenth of what tanh
learned beyond doing nothing.
"""

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from heron_env import Hyperparameters, make, paired_difference, train
from heron_env.files import write_all
from heron_env.lab import RunFolder, mean_interval, versions

OUT: Final = Path("benchmarks/results/activation.json")
STEPS: Final = {"heron/Spread-v0": 600_000, "heron/TrafficCorridor-v0": 250_000, "heron/BatteryGrid-v0": 300_000}
"""Transitions of each group, by world."""
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "heron/Spread-v0": {"n_steps": 25, "batch_size": 480, "n_epochs": 10, "gamma": 0.9}
}
"""Of worlds whose own settings teach little in so few transitions."""
SEEDS: Final = range(5)
LEAST: Final = 0.1
"""The loss that would still be called the same, as a share of what tanh learned."""


def trained(env_id: str, seed: int, activation: Any) -> dict[str, Any]:
    """Train once, in a folder that is thrown away."""
    settings = Hyperparameters.of(env_id, make(env_id).training_defaults())
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        run: RunFolder = train(
            env_id, folder, total_steps=STEPS[env_id], seed=seed, validations=4, validation_episodes=20,
            hyperparameters=replace(settings, activation=activation, **SETTINGS.get(env_id, {})), progress=False,
        )  # fmt: skip
        curve = [float(row["validation_return"]) for row in run.curve() if row["validation_return"] != "nan"]
    return {
        "env_id": env_id, "seed": seed, "activation": activation, "transitions": run.config.transitions,
        "cpu_seconds": round(time.process_time() - began, 1), "curve": curve,
        "earned": run.config.validation["trained"], "nothing": run.config.validation["do nothing"],
    }  # fmt: skip


def summary(runs: list[dict[str, Any]], env_id: str) -> dict[str, Any]:
    """What the runs of a world say."""
    tanh, relu = (
        [one for one in runs if (one["env_id"], one["activation"]) == (env_id, name)] for name in ("tanh", "relu")
    )
    more = paired_difference([one["earned"] for one in relu], [one["earned"] for one in tanh])
    learned = mean_interval([one["earned"] - one["nothing"] for one in tanh])
    return {
        "tanh": str(mean_interval([one["earned"] for one in tanh])), "learned by tanh": str(learned),
        "relu": str(mean_interval([one["earned"] for one in relu])), "relu - tanh": str(more),
        "same": more.high >= 0.0 and more.low >= -LEAST * learned.mean,
        "cpu": sum(one["cpu_seconds"] for one in relu) / sum(one["cpu_seconds"] for one in tanh),
    }  # fmt: skip


def main() -> None:
    """Train what is not there yet, keep each run, and compare."""
    runs = json.loads(OUT.read_text(encoding="utf-8"))["runs"] if OUT.is_file() else []
    done = {(one["env_id"], one["seed"], one["activation"]) for one in runs}
    for env_id in STEPS:
        for seed in SEEDS:
            for activation in ("tanh", "relu"):
                if (env_id, seed, activation) not in done:
                    runs.append(trained(env_id, seed, activation))
                    write_all({OUT: json.dumps({"schema_version": 1, "runs": runs, "versions": versions()}) + "\n"})
        print(env_id, json.dumps(summary(runs, env_id), indent=1), flush=True)


if __name__ == "__main__":
    main()
