"""The board's 80 policies: PPO in each world, without a network and under each condition, five seeds; then its entries.

    python training/board.py --minutes 120               # a piece: what is missing, and no training begun after that
    python training/board.py --worlds heron/Spread-v0 --seeds 0 --conditions none constant --entries
    python training/board.py --pack                      # what --out has becomes the board's own

A finished run folder is left as it is; a training that was killed is begun anew by the same command. `--entries` plays
the baselines and all policies that are there under every condition, and writes entries and checkpoints to --out; an
entry that is there is not made again. Policies are called ppo (trained without a network) and ppo-CONDITION. `--pack`
puts these entries into training/results/board, the first seed's checkpoints into the package, and all checkpoints into
OUT/heron_board_checkpoints.tar, the asset of a release. `--cells` prints what training under each condition gains.
"""

import argparse
import gzip
import shutil
import tarfile
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.optimize import brentq

from heron_env import Hyperparameters, make, train
from heron_env.files.reading import is_file
from heron_env.files.writing import write
from heron_env.lab.benchmark import NOTHING, RANDOM
from heron_env.lab.board import (
    CONDITIONS,
    NONE,
    SEEDS,
    add_entry,
    board,
    intervals_of,
    own_entries,
    packed_file,
    read_entry,
    stem_of,
    trained_name,
)
from heron_env.lab.policies import ENDING
from heron_env.lab.robust_stats import Estimate, Intervals
from heron_env.lab.runs import CHECKPOINTS, ZOO

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


def pack(out: Path) -> None:
    """Make what a folder has the board's own: entries, the checkpoints of the first seed, and the archive of all."""
    for env_id in board():
        entries = own_entries(env_id) if is_file(packed_file(env_id)) else {}
        entries |= {entry.stem: entry for entry in map(read_entry, sorted((out / env_id).glob("*.json")))}
        if entries:
            lines = [entry.model_dump_json() + "\n" for _, entry in sorted(entries.items())]
            write(packed_file(env_id), gzip.compress("".join(lines).encode(), 9, mtime=0))
        for name in (f"{trained_name(condition)}{ENDING}" for condition in CONDITIONS):
            if is_file(out / env_id / name):
                shutil.copyfile(out / env_id / name, ZOO / env_id / name)
    with tarfile.open(out / CHECKPOINTS, "w") as archive:
        for path in sorted(out.rglob(f"*{ENDING}")):
            member = tarfile.TarInfo(path.relative_to(out).as_posix())  # no owner, no time: the same bytes anywhere
            member.size = path.stat().st_size
            with path.open("rb") as stream:
                archive.addfile(member, stream)


def gains() -> Iterator[tuple[str, str, Estimate, float]]:
    """(world, condition, return of ppo-CONDITION under it minus that of ppo, p) of each cell with all its entries."""
    own = {env_id: own_entries(env_id) for env_id in board()}
    for env_id, condition in product(board(), CONDITIONS[1:]):
        entries, names = own[env_id], [trained_name(condition), trained_name(NONE)]
        stems = [[f"{stem_of(name, seed)}@{condition}" for seed in range(SEEDS)] for name in names]
        if not all(stem in entries for stem in chain(*stems)):
            continue
        under, without = ([entries[stem].values for stem in some] for some in stems)
        labels = intervals_of(entries[stems[0][0]].cases).unit.tolist()
        yield env_id, condition, Intervals(labels).difference(under, without), p_value(labels, under, without)


def p_value(labels: Sequence[int], ours: list[list[float]], theirs: list[list[float]]) -> float:
    """Two-sided: 1 minus the level at which the interval of the difference just reaches 0."""

    def margin(level: float) -> float:
        found = Intervals(labels, level=level).difference(ours, theirs)
        return max(found.low, -found.high)

    return float(1.0 - brentq(margin, 1e-9, 1.0 - 1e-12)) if margin(1e-9) > 0.0 else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Corrected for being several (Holm, "A simple sequentially rejective multiple test procedure", 1979)."""
    order = np.argsort(p_values)
    steps = [min(1.0, (len(order) - n) * p_values[place]) for n, place in enumerate(order)]
    return np.maximum.accumulate(steps)[np.argsort(order)].tolist()


def cells() -> str:
    """The table of docs/science/training_under_networks.md; a cell may lack entries."""
    found = list(gains())
    corrected = dict(zip([cell[:2] for cell in found], holm([cell[3] for cell in found]), strict=True))
    rows = {cell[:2]: f"{cell[2]} | {corrected[cell[:2]]:.3f}".replace("| 0.000", "| <0.001") for cell in found}
    lines = ["| world | condition | gain of training under it | p, corrected |", "|---|---|---:|---:|"]
    for cell in product(board(), CONDITIONS[1:]):
        lines.append(f"| {cell[0].removeprefix('heron/')} | {cell[1]} | {rows.get(cell, 'no entries | ')} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Train, then enter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", choices=tuple(board()), default=list(board()))
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=CONDITIONS)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(SEEDS)))
    parser.add_argument("--minutes", type=float, default=120.0, help="0: train nothing")
    parser.add_argument("--entries", action="store_true")
    parser.add_argument("--pack", action="store_true")
    parser.add_argument("--cells", action="store_true")
    parser.add_argument("--runs", type=Path, default=Path("runs/board"))
    parser.add_argument("--out", type=Path, default=Path("runs/board_entries"))
    given = parser.parse_args()
    if given.pack:
        pack(given.out)
    if given.cells:
        print(cells(), end="")
    if given.pack or given.cells:
        return
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
