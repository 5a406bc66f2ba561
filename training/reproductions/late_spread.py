"""What the studies of delay in Spread share: trainings that go on where they stopped, returns, tables, a figure.

Returns are kept by arm and condition, `[seeds, cases]`: all arms play the same cases. Intervals are 95 %, t, over
training seeds and cases (`heron_env.lab.robust_stats`).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from heron_env import Condition, Sweep, train
from heron_env.files import write
from heron_env.lab import SYNC
from heron_env.lab.benchmark import NOTHING, RANDOM
from heron_env.lab.figure_style import blank, end_labels, house_style, line_and_band, to_svg
from heron_env.lab.robust_stats import Estimate, Intervals
from training import packed

STEP: Final = 0.1
"""s."""
SEEDS: Final = 5
CASES: Final = 256
"""Of each seed: 1,280 episodes of an arm under each condition."""
Returns = dict[str, dict[str, list[list[float]]]]


@dataclass(frozen=True)
class Training:
    """One that is wanted: its folder says what it is, `how` goes to train()."""

    folder: Path
    env_id: str
    seed: int
    steps: int
    how: Mapping[str, Any]

    def run(self) -> str:
        """Train, if that is not done; the run folder."""
        if not (self.folder / "config.json").is_file():
            fixed: dict[str, Any] = {"validations": 0, "validation_episodes": 0, "progress": False}
            how = {"training_options": {}, **self.how, **fixed}
            run = train(self.env_id, self.folder, seed=self.seed, total_steps=self.steps, **how)
            print(f"{self.folder}: {run.config.seconds:.0f} s", flush=True)
        return str(self.folder)


@dataclass(frozen=True)
class Arm:
    """A policy, or the pooled ones of several training seeds, under some conditions by label."""

    env_id: str
    policy: Any
    conditions: Mapping[str, Condition]
    options: Mapping[str, Any]

    def measured(self, cases: int) -> dict[str, list[list[float]]]:
        """Returns by condition."""
        wrong = [condition for condition in self.conditions.values() if condition != SYNC]
        sweep = Sweep.of(self.env_id, {"arm": self.policy}, wrong, cases=cases, options=self.options)
        found = sweep.run(processes=1, progress=False)
        return {label: found.table("arm", which).round(2).tolist() for label, which in self.conditions.items()}


@dataclass(frozen=True)
class Study:
    """One of the studies.

    Attributes:
        name: of its files and folders.
        doc: of its command.
        trainings: those of each arm for so many seeds, of so many steps, below a folder.
        arms: by name, with the run folders of those trainings; those of one name are conditions of one line.
        panels: the figure's: its title and colours by arm.
        steps: transitions of each training.
    """

    name: str
    doc: str
    trainings: Callable[[Path, int, int], Mapping[str, Sequence[Training]]]
    arms: Callable[[Mapping[str, Sequence[str]]], Iterator[tuple[str, Arm]]]
    panels: Mapping[str, Mapping[str, str]]
    steps: int

    def main(self, arguments: Sequence[str] | None = None) -> None:
        """Train and measure what is missing, write the table and the figure."""
        parser = argparse.ArgumentParser(description=self.doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument(
            "--out", type=Path, default=Path("training/results") / self.name, help="returns, table, figure"
        )
        parser.add_argument("--runs", type=Path, default=Path("runs") / self.name, help="where trainings are kept")
        parser.add_argument("--seeds", type=int, default=SEEDS, help="trainings of each arm, two at least")
        parser.add_argument("--steps", type=int, default=self.steps, help="transitions of each training")
        parser.add_argument("--cases", type=int, default=CASES, help="test episodes of each policy and condition")
        parser.add_argument("--processes", type=int, default=1, help="trainings at a time")
        parser.add_argument("--report", action="store_true", help="only the table and the figure of what is there")
        given = parser.parse_args(arguments)
        file = given.out / f"{self.name}.json.gz"
        if not given.report:
            self.measure(file, self.train(given), given.cases)
        found = packed.load(file)
        write(given.out / "table.md", markdown(found))
        write(given.out / f"{self.name}.svg", to_svg(figure(found, self.panels), text=True))

    def train(self, given: argparse.Namespace) -> dict[str, list[str]]:
        """Run folders by arm; first seeds first."""
        wanted = self.trainings(given.runs, given.seeds, given.steps)
        by_seed = sorted((one for of in wanted.values() for one in of), key=lambda one: one.seed)
        with ProcessPoolExecutor(given.processes) as pool:
            [*pool.map(Training.run, by_seed)]
        return {name: [str(one.folder) for one in of] for name, of in wanted.items()}

    def measure(self, file: Path, folders: Mapping[str, Sequence[str]], cases: int) -> None:
        """The returns that are missing; each arm's are kept at once."""
        found: Returns = packed.load(file) if file.exists() else {}
        for name, arm in self.arms(folders):
            known = found.setdefault(name, {})
            if not arm.conditions.keys() <= known.keys():
                known |= arm.measured(cases)
                file.parent.mkdir(parents=True, exist_ok=True)
                write(file, packed.dumped(found))
                print(name, {label: round(float(np.mean(known[label])), 2) for label in arm.conditions}, flush=True)


def estimates(found: Returns, change: str | None = None) -> dict[str, dict[str, Estimate]]:
    """Mean returns by arm and condition, or their change from the first arm's: "undelayed", or under "the same"."""
    reference = next(iter(found.values()))
    first = next(iter(reference))
    intervals = Intervals(range(len(reference[first][0])))
    result: dict[str, dict[str, Estimate]] = {}
    for name, by_condition in found.items():
        of = result[name] = {}
        for label, values in by_condition.items():
            beside = reference[first if change == "undelayed" else label]
            if change is None:
                of[label] = intervals.mean(np.array(values))
            elif by_condition is reference:  # the same trainings
                of[label] = intervals.mean(np.subtract(values, beside))
            else:
                of[label] = intervals.difference(values, beside)
    return result


def markdown(found: Returns) -> str:
    """Three tables: returns, what is lost to the delay, and what is gained beside the first arm under the same one."""
    first = next(iter(found))
    titles = {
        "Mean return of the team": None,
        f"Change from {first} without delay": "undelayed",
        f"Change from {first} under the same delay": "the same",
    }
    labels = list(next(iter(found.values())))
    lines = []
    for title, change in titles.items():
        lines += [f"## {title}\n", f"| | {' | '.join(labels)} |", f"|---|{'---:|' * len(labels)}"]
        for name, of in estimates(found, change).items():
            cells = [
                f"{one.value:.1f} [{one.low:.1f}, {one.high:.1f}]" if (one := of.get(label)) else "" for label in labels
            ]
            lines.append(f"| {name} | {' | '.join(cells)} |".replace("-0.0", "0.0"))
        lines.append("")
    return "\n".join(lines)


def figure(found: Returns, panels: Mapping[str, Mapping[str, str]]) -> Any:
    """Mean returns against delays of one number of steps; names at the right."""
    means = estimates(found)
    with house_style():
        drawn, axes = blank(0.4 + 3.4 * len(panels), rows=len(panels), sharey=True)
        names = []
        for axis, (title, colours) in zip(axes, panels.items(), strict=True):
            for name, colour in colours.items():
                points = {int(label): one for label, one in means[name].items() if label.isdigit()}
                mean, low, high = (
                    np.array([getattr(one, end) for one in points.values()]) for end in ("value", "low", "high")
                )
                dashes = "--" if name in (NOTHING, RANDOM) else "-"
                line_and_band(
                    axis, [*points], mean, (low, high), color=colour, linestyle=dashes, marker="o", markersize=3
                )
                names.append((axis, (float(mean[-1]), name, colour)))
            axis.set(title=title, ylabel="return of the team")
        axes[-1].set_xlabel("delay, steps of 0.1 s")
        for axis in axes:  # their common height is known now
            end_labels(axis, [label for where, label in names if where is axis])
        return drawn
