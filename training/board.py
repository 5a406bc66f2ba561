"""The board's 80 policies: PPO in each world, without a network and under each condition, five seeds; then its entries.

    python training/board.py --minutes 120               # a piece: what is missing, and no training begun after that
    python training/board.py --worlds heron/Spread-v0 --seeds 0 --conditions none constant --entries

A finished run folder is left as it is; a training that was killed is begun anew by the same command. `--entries` plays
the baselines and all policies that are there under every condition, and writes entries and checkpoints to --out; an
entry that is there is not made again. Policies are called ppo (trained without a network) and ppo-CONDITION.
"""

import argparse
import time
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from heron_env import Hyperparameters, make, train
from heron_env.files.reading import is_file
from heron_env.lab.benchmark import NOTHING, RANDOM
from heron_env.lab.board import CONDITIONS, NONE, SEEDS, add_entry, board, stem_of, trained_name
from heron_env.lab.checkpoints import ZOO

SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "heron/Spread-v0": {
        "total_steps": 1_500_000,
        "hyperparameters": Hyperparameters(num_envs=64, n_steps=50, batch_size=1000, n_epochs=10, gamma=0.9),
        "training_options": {},
    },
    "heron/Tag-v0": {
        "total_steps": 2_000_000,
        "env_options": {"prey": "rule"},
        "hyperparameters": Hyperparameters(num_envs=64, n_steps=50, batch_size=1000, n_epochs=10, gamma=0.9),
    },
    "heron/EnergyManagement-v1": {"total_steps": 2_000_000},
    "heron/GraphColoring-v0": {"total_steps": 1_000_000},
}
"""What a training of each world takes, beside its own defaults."""
UNDER: Final[dict[str, dict[str, Any]]] = {"heron/EnergyManagement-v1": {"total_steps": 10_000_000}}
"""What is other under a condition: with steps of 60 s instead of 300 s, as many days are five times the transitions."""


class Training(NamedTuple):
    """One of the 80."""

    seed: int
    env_id: str
    condition: str

    def folder(self, runs: Path) -> Path:
        """Where its run lies."""
        return runs / self.env_id / stem_of(trained_name(self.condition), self.seed)

    def run(self, folder: Path) -> None:
        """Train it."""
        world, settings = board()[self.env_id], dict(SETTINGS[self.env_id])
        settings |= {} if self.condition == NONE else UNDER.get(self.env_id, {})
        env = make(self.env_id, **settings.get("env_options", {}))
        schedule = None if self.condition == NONE else world.condition(self.condition).schedule(env)
        run = train(self.env_id, folder, seed=self.seed, schedule=schedule, progress=False, **settings)
        print(folder, run.config.seconds, run.config.validation, run.config.validation_under_schedule, flush=True)


def entered(worlds: Sequence[str], runs: Iterable[Path], out: Path) -> None:
    """The entries that are missing."""
    for env_id, condition in product(worlds, CONDITIONS):
        for name in (NOTHING, RANDOM, *board()[env_id].rules):
            if not is_file(out / env_id / f"{stem_of(name, None)}@{condition}.json"):
                print(add_entry(name, condition, out, env=env_id), flush=True)
    for folder, condition in product(runs, CONDITIONS):
        if not is_file(out.joinpath(*folder.parts[-3:-1], f"{folder.name}@{condition}.json")):
            print(add_entry(str(folder), condition, out), flush=True)


def main() -> None:
    """Train, then enter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", choices=tuple(board()), default=list(board()))
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=CONDITIONS)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(SEEDS)))
    parser.add_argument("--minutes", type=float, default=120.0, help="0: train nothing")
    parser.add_argument("--entries", action="store_true")
    parser.add_argument("--runs", type=Path, default=Path("runs/board"))
    parser.add_argument("--out", type=Path, default=ZOO)
    given = parser.parse_args()
    end = time.monotonic() + 60.0 * given.minutes
    wanted = [Training(*one) for one in product(given.seeds, given.worlds, given.conditions)]
    finished = [one.folder(given.runs) for one in wanted if is_file(one.folder(given.runs) / "config.json")]
    for one in wanted:
        if (folder := one.folder(given.runs)) not in finished and time.monotonic() < end:
            one.run(folder)
            finished.append(folder)
    if given.entries:
        entered(given.worlds, finished, given.out)


if __name__ == "__main__":
    main()
