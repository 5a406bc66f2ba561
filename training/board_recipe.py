"""Two questions about the board's policies: does the headline's recipe help there, and what does Tag's delay teach?

    python training/board_recipe.py --minutes 30    # a piece: what is missing, and no training begun after that
    python training/board_recipe.py --minutes 0     # only the tables of what is there

The recipe is that of `under_the_network.py`: four twins, rollouts of whole episodes, gamma = lambda = 1, the best
weights on validation episodes. All is measured on the board's own cases. Arms have as many transitions as the board's
policies, but "longer":

    recipe sync, recipe    the recipe, without a network and under the condition
    longer                 the board's settings under the condition, four times as long
    steps late             the board's settings on the synchronous clock, observations four steps late: credit by step
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from board import SETTINGS, holm, p_value
from numpy.typing import NDArray

from heron_env import TrainedRun, TrainingDelays, make, train
from heron_env.files.reading import is_file
from heron_env.lab import Intervals
from heron_env.lab.board import CONDITIONS, NONE, board, earned, intervals_of, own_entries, stem_of, trained_name

TAG, SPREAD = "heron/Tag-v0", "heron/Spread-v0"
RECIPE_SYNC, RECIPE, LONGER, LATE = "recipe sync", "recipe", "longer", "steps late"
EPISODES: Final = 2
"""Of 25 steps, in a rollout of each lane."""
Floats = NDArray[np.float64]


class Arm(NamedTuple):
    """A way of training in a world; the first has no network, so no condition."""

    world: str
    condition: str
    name: str

    def folder(self, runs: Path, seed: int) -> Path:
        """`Tag-constant-longer-0`."""
        of = "" if self.name == RECIPE_SYNC else f"-{self.condition}"
        return runs / f"{self.world[6:-3]}{of}-{self.name.replace(' ', '-')}-{seed}"

    def train(self, folder: Path, seed: int) -> None:
        """A run folder, and the CPU time that it took."""
        began, settings = time.process_time(), dict[str, Any](SETTINGS[self.world])
        if self.name in (RECIPE, RECIPE_SYNC):
            settings["hyperparameters"] = replace(
                settings["hyperparameters"], n_steps=25 * EPISODES, twins=4, gamma=1.0, gae_lambda=1.0, keep_best=True
            )
        if self.name == LONGER:
            settings["total_steps"] *= 4
        if self.name in (RECIPE, LONGER):
            env = make(self.world, **settings.get("env_options", {}))
            settings["schedule"] = board()[self.world].condition(self.condition).schedule(env)
        if self.name == LATE:
            settings["training_delays"] = TrainingDelays(observation=4)
        train(self.world, folder, seed=seed, progress=False, **settings)
        print(folder, f"{time.process_time() - began:.0f} CPU-s", flush=True)

    def returns(self, runs: Path, seeds: Sequence[int], condition: str) -> Floats:
        """Under a condition, `[seeds, cases]`, of the seeds that are trained."""
        world, folders = board()[self.world], [self.folder(runs, seed) for seed in seeds]
        there = [str(folder) for folder in folders if is_file(folder / "config.json")]
        return np.array([earned(world.sweep(TrainedRun(run), condition), range(world.cases)) for run in there])


ARMS: Final = tuple(
    Arm(world, condition, name)
    for world in (TAG, SPREAD)
    for condition in CONDITIONS[1:]
    for name in (RECIPE_SYNC, RECIPE, *((LONGER, LATE) if (world, condition) == (TAG, "constant") else ()))
)


def shipped_returns(world: str, under: str, condition: str) -> Floats:
    """Of the board's policies, `[seeds, cases]`."""
    own, names = own_entries(world), [stem_of(trained_name(under), seed) for seed in range(5)]
    return np.array([own[f"{name}@{condition}"].values for name in names])


def recipes(runs: Path, seeds: Sequence[int]) -> Iterator[str]:
    """What the recipe's training under each condition gains over the recipe without, and over the board's settings."""
    yield "| world | condition | recipe under it - recipe without | p, corrected | recipe - board's, both under it |"
    yield "|---|---|---:|---:|---:|"
    rows = []
    for world in (TAG, SPREAD):
        for condition in CONDITIONS[1:]:
            own, without = (
                Arm(world, condition, name).returns(runs, seeds, condition) for name in (RECIPE, RECIPE_SYNC)
            )
            if len(own) > 1 and len(without) > 1:
                labels = intervals_of(own_entries(world)[f"ppo@{condition}"].cases).unit.tolist()
                board_own, difference = shipped_returns(world, condition, condition), Intervals(labels).difference
                rows.append(
                    (
                        f"| {world[6:]} | {condition} | {difference(own, without)} | ",
                        p_value(labels, own.tolist(), without.tolist()),
                        difference(own, board_own),
                    )
                )
    for (text, _, board_text), p in zip(rows, holm([row[1] for row in rows]), strict=True):
        yield f"{text}{p:.3f} | {board_text} |"


def explanations(runs: Path, seeds: Sequence[int]) -> Iterator[str]:
    """What policies that Tag's constant delay, or something like it, has taught earn without a network and under it."""
    yield "| Tag | no network | constant delay |"
    yield "|---|---:|---:|"
    every = {
        "PPO without a network": [shipped_returns(TAG, NONE, of) for of in (NONE, "constant")],
        "PPO under the delay": [shipped_returns(TAG, "constant", of) for of in (NONE, "constant")],
    }
    for name in (LONGER, LATE):
        every[name] = [Arm(TAG, "constant", name).returns(runs, seeds, of) for of in (NONE, "constant")]
    labels = intervals_of(own_entries(TAG)["ppo@none"].cases).unit.tolist()
    for name, (without, under) in every.items():
        if len(without) > 1:
            means = " | ".join(str(Intervals(labels).mean(each)) for each in (without, under))
            yield f"| {name}, {len(without)} seeds | {means} |"


def main() -> None:
    """Train what is missing, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--worlds", nargs="+", choices=(TAG, SPREAD), default=[TAG, SPREAD])
    parser.add_argument("--runs", type=Path, default=Path("runs/board_recipe"))
    given = parser.parse_args()
    end = time.monotonic() + 60.0 * given.minutes
    for seed in given.seeds:
        for arm in (arm for arm in ARMS if arm.world in given.worlds):
            folder = arm.folder(given.runs, seed)
            if not is_file(folder / "config.json") and time.monotonic() < end:
                arm.train(folder, seed)
    print("\n".join([*recipes(given.runs, given.seeds), "", *explanations(given.runs, given.seeds)]))


if __name__ == "__main__":
    main()
