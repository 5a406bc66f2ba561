"""The board's 80 policies: PPO in each world, without a network and under each condition, five seeds; then its entries.

    python training/board.py --minutes 120               # a piece: what is missing, and no training begun after that
    python training/board.py --worlds heron/Spread-v0 --seeds 0 1 --entries

A finished run folder is left as it is; a training that was killed is begun anew by the same command. `--entries` plays
the baselines and all policies that are there under every condition, and writes entries and checkpoints to --out; an
entry that is there is not made again. Policies are called ppo (trained without a network) and ppo-CONDITION.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final

from heron_env import Hyperparameters, make, train
from heron_env.files.reading import is_file
from heron_env.lab.benchmark import NOTHING, RANDOM
from heron_env.lab.board import CONDITIONS, NONE, SEEDS, board, stem_of, trained_name
from heron_env.lab.board import add_entry as add
from heron_env.lab.checkpoints import ZOO

RUNS: Final = Path("runs/board")
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "heron/Spread-v0": {
        "total_steps": 2_000_000,
        "hyperparameters": Hyperparameters(num_envs=64, n_steps=50, batch_size=1000, n_epochs=10, gamma=0.9),
        "training_options": {},
    },
    "heron/EnergyManagement-v1": {"total_steps": 2_000_000},
    "heron/GraphColoring-v0": {"total_steps": 1_000_000},
}
"""What a training of each world takes, beside its own defaults: 2 to 11 CPU-minutes."""


def policies(worlds: Sequence[str], seeds: Sequence[int]) -> Iterator[tuple[str, str, int, Path]]:
    """World, condition, seed and run folder of each training, the first seed of all of them first."""
    for seed, env_id, condition in product(seeds, worlds, CONDITIONS):
        yield env_id, condition, seed, RUNS / env_id / stem_of(trained_name(condition), seed)


def trained(worlds: Sequence[str], seeds: Sequence[int], minutes: float) -> None:
    """Train what is missing, as long as there is time to begin."""
    end = time.monotonic() + 60.0 * minutes
    for env_id, condition, seed, folder in policies(worlds, seeds):
        if is_file(folder / "config.json") or time.monotonic() > end:
            continue
        env = make(env_id)
        schedule = None if condition == NONE else board()[env_id].condition(condition).schedule(env)
        run = train(
            env_id, folder, seed=seed, schedule=schedule, validation_episodes=32, progress=False, **SETTINGS[env_id]
        )
        print(folder, run.config.seconds, run.config.validation, run.config.validation_under_schedule, flush=True)


def entered(worlds: Sequence[str], seeds: Sequence[int], out: Path) -> None:
    """The entries that are missing."""
    for env_id, condition in product(worlds, CONDITIONS):
        for name in (NOTHING, RANDOM, *board()[env_id].rules):
            if not is_file(out / env_id / f"{name}@{condition}.json"):
                print(add(name, condition, out, env=env_id), flush=True)
    for env_id, _, _, folder in policies(worlds, seeds):
        for condition in CONDITIONS:
            done = is_file(out / env_id / f"{folder.name}@{condition}.json")
            if is_file(folder / "config.json") and not done:
                print(add(str(folder), condition, out), flush=True)


def main() -> None:
    """Train, then enter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", choices=tuple(board()), default=list(board()))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(SEEDS)))
    parser.add_argument("--minutes", type=float, default=120.0, help="0: train nothing")
    parser.add_argument("--entries", action="store_true")
    parser.add_argument("--out", type=Path, default=ZOO)
    given = parser.parse_args()
    trained(given.worlds, given.seeds, given.minutes)
    if given.entries:
        entered(given.worlds, given.seeds, given.out)


if __name__ == "__main__":
    main()
