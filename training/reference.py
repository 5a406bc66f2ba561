"""The committed reference result: longer training, several seeds, more held-out days than the demo.

`python training/reference.py` trains each seed (coarse mode), evaluates them pooled beside a rule on both clocks, and
writes into `--out`: `table.json`, `.csv` and `.md` of the sweep, `gap.svg`, and each seed's learning curve. Run
folders and the sweep itself are kept in `--runs`; `--only-evaluate` uses the run folders that are there, and goes on
with a sweep that was stopped.
"""

import argparse
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from heron_env.evaluation.benchmark import NOTHING, RANDOM
from heron_env.evaluation.figure_style import to_svg
from heron_env.evaluation.figures import sweep_figure
from heron_env.evaluation.gap.presets import preset
from heron_env.evaluation.gap.sweep import Sweep
from heron_env.learning.ppo import train
from heron_env.registry import make

ENV = "heron/EnergyManagement-v0"


def train_seed(seed: int, folder: str, steps: int) -> float:
    """Train one seed into `folder`; the seconds it took."""
    return train(ENV, folder, total_steps=steps, seed=seed, validations=20, progress=False).config.seconds


def main() -> None:
    """Train, evaluate, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("training/results/energy_management"))
    parser.add_argument("--runs", type=Path, default=Path("runs/reference"), help="run folders of the seeds")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--steps", type=int, default=5_000_000, help="transitions of each seed")
    parser.add_argument("--days", type=int, default=24, help="held-out test days")
    parser.add_argument("--only-evaluate", action="store_true")
    given = parser.parse_args()
    folders = {seed: str(given.runs / f"seed{seed}") for seed in given.seeds}
    if not given.only_evaluate:
        with ProcessPoolExecutor(2) as pool:
            seconds = pool.map(train_seed, folders, folders.values(), [given.steps] * len(folders))
            print("training took, s:", list(seconds))
        shutil.rmtree(given.runs / "sweep", ignore_errors=True)  # of other policies
    env, delays = make(ENV), preset("delays")
    rule, beside = env.benchmark().strongest, ["self-consumption", NOTHING, RANDOM]
    policies = {"trained": list(folders.values()), **{name: name for name in [rule, *beside]}}
    sweep = Sweep.of(ENV, policies, delays.conditions(env.dt), cases=given.days, sync_only=beside, preset=delays.name)
    result = sweep.run(given.runs / "sweep")
    result.write(given.out)
    (given.out / "gap.svg").write_bytes(to_svg(sweep_figure(result, "act_delay")))
    for seed, folder in folders.items():
        shutil.copy(Path(folder) / "progress.csv", given.out / f"learning_seed{seed}.csv")


if __name__ == "__main__":
    main()
