"""The committed reference result: longer training, several seeds, more held-out days than the demo.

`python training/reference.py --out training/results/energy_management` trains each seed (coarse mode), evaluates all of
them and the best rule on both clocks, and writes `table.json`, `table.md`, `gap.svg` and each seed's learning curve. It
took about an hour on two cores; `--only-evaluate` uses the run folders that are there.
"""

import argparse
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from heron_env.evaluation.benchmark import NOTHING, RANDOM
from heron_env.evaluation.evaluate import evaluate
from heron_env.evaluation.figure_style import to_svg
from heron_env.evaluation.figures import delay_figure
from heron_env.evaluation.table import Table
from heron_env.learning.ppo import train
from heron_env.registry import make

ENV = "heron/EnergyManagement-v0"
CLOCKS = ("sync", 0.0, 30.0, 60.0, 120.0)


def train_seed(seed: int, folder: str, steps: int) -> float:
    """Train one seed into `folder`; the seconds it took."""
    return train(ENV, folder, total_steps=steps, seed=seed, validations=20, progress=False).config.seconds


def main() -> None:
    """Train, evaluate, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("training/results/energy_management"))
    parser.add_argument("--runs", type=Path, default=Path("runs/reference"), help="run folders of the seeds")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=7_700_000, help="transitions of each seed")
    parser.add_argument("--days", type=int, default=24, help="held-out test days")
    parser.add_argument("--only-evaluate", action="store_true")
    given = parser.parse_args()
    folders = {seed: str(given.runs / f"seed{seed}") for seed in given.seeds}
    if not given.only_evaluate:
        with ProcessPoolExecutor(2) as pool:
            seconds = pool.map(train_seed, folders, folders.values(), [given.steps] * len(folders))
            print("training took, s:", list(seconds))
    rule = make(ENV).benchmark().strongest
    names = [name for name in (rule, "self-consumption", NOTHING, RANDOM) if name]
    policies = {f"trained, seed {seed}": folder for seed, folder in folders.items()} | {name: name for name in names}
    began = time.monotonic()
    table = evaluate(ENV, policies, clocks=CLOCKS, cases=given.days, sync_only=[n for n in names if n != rule])
    write(table, given.out, time.monotonic() - began)
    for seed, folder in folders.items():
        shutil.copy(Path(folder) / "progress.csv", given.out / f"learning_seed{seed}.csv")


def write(table: Table, out: Path, seconds: float) -> None:
    """The table for machines and for people, and the figure."""
    out.mkdir(parents=True, exist_ok=True)
    table.write(out / "table.json")
    draw(table, out / "gap.svg")
    lines = [
        f"{len(table.cases)} held-out test days, {ENV} at its defaults; team return in EUR a day, 95 % intervals",
        f"over days, differences paired by day. Evaluation took {seconds:.0f} s in two processes.",
        "",
        "| policy | clock | return | of optimum | against sync | of the gain lost | identical |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in table.rows:
        known = ["" if row.to_sync is None else str(row.to_sync), "" if row.identical is None else str(row.identical)]
        lost = "" if row.to_sync is None else f"{100 * row.lost:.1f} %"
        share = f"{100 * row.score:.0f} %"
        lines.append(f"| {row.policy} | {row.clock} | {row.mean} | {share} | {known[0]} | {lost} | {known[1]} |")
    (out / "table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def draw(table: Table, path: Path) -> None:
    """The first seed and the rule against delay: the seeds would lie on each other."""
    first, *others = [name for name in table.policies if name.startswith("trained")]
    rows = [replace(row, policy="trained (PPO)") if row.policy == first else row for row in table.rows]
    shown = replace(table, rows=[row for row in rows if row.policy not in others])
    path.write_bytes(to_svg(delay_figure(shown)))


if __name__ == "__main__":
    main()
