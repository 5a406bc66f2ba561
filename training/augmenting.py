"""What an augmented observation gives back of what delay takes: PPO on Spread whose actions are three steps late.

    python training/augmenting.py    # half an hour; training/results/augmenting.json

Each seed is trained without delay, under it, and under it with its own last three decisions in sight; all are measured
under the delay on the same cases, the first one without it, too.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from heron_env import Hyperparameters, TrainingDelays, train
from heron_env.files import write_all
from heron_env.lab import Condition, Sweep
from heron_env.lab.runs import RunFolder

ENV, LATE, SEEDS, STEPS, CASES = "heron/Spread-v0", 3, 3, 150_000, 100
OUT, RUNS = Path("training/results/augmenting.json"), Path("runs/augmenting")
ARMS: dict[str, dict[str, Any]] = {
    "without delay": {},
    "under delay": {"training_delays": TrainingDelays(action=LATE)},
    "under delay, augmented": {
        "training_delays": TrainingDelays(action=LATE),
        "hyperparameters": Hyperparameters(augment=LATE, num_envs=64, n_steps=50, gamma=0.9, shared=True),
    },
}


def trained(arm: str, seed: int) -> str:
    """Its run folder."""
    folder = RUNS / f"{arm.replace(' ', '-').replace(',', '')}-{seed}"
    if not (folder / "config.json").exists():
        plain = Hyperparameters(num_envs=64, n_steps=50, gamma=0.9, shared=True)
        how = {"hyperparameters": plain, **ARMS[arm]}
        train(ENV, folder, total_steps=STEPS, seed=seed, validations=0, validation_episodes=0, progress=False, **how)
    return str(RunFolder.open(folder).path)


def main(*seeds: str) -> None:
    """Train, measure, keep, print."""
    for seed in map(int, seeds or range(SEEDS)):
        for arm in ARMS:
            trained(arm, seed)
    late = Condition(act_delay=LATE * 0.1)
    policies = {arm: [trained(arm, seed) for seed in range(SEEDS)] for arm in ARMS}
    result = Sweep.of(ENV, policies, [late], cases=CASES).run(processes=1, progress=False)
    sync, plain = result.table("without delay"), result.table("without delay", late)
    rows = {"without delay, sync": result.intervals.mean(sync).to_dict()}
    for arm in ARMS:
        table = result.table(arm, late)
        rows[arm] = result.intervals.mean(table).to_dict()
        rows[f"{arm}, share"] = result.intervals.share(table - plain, sync - plain).to_dict()
    print(json.dumps(rows, indent=1))
    write_all({OUT: json.dumps(rows, indent=1) + "\n"})


if __name__ == "__main__":
    main(*sys.argv[1:])
