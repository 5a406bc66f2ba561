"""What the studies of delay in Spread share: trainings that go on where they stopped, returns, tables, a figure.

Returns are kept by arm and condition, `[seeds, cases]`: all arms play the same cases. Intervals are 95 %, t, over
training seeds and cases (`heron_env.lab.robust_stats`).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from heron_env import Condition, Sweep, train
from heron_env.files import write
from heron_env.lab import SYNC, Baseline, TrainedRun
from heron_env.lab.benchmark import NOTHING, RANDOM
from heron_env.lab.figure_style import blank, end_labels, house_style, line_and_band, to_svg
from heron_env.lab.robust_stats import Estimate, Intervals
from training import packed

STEP: Final = 0.1
"""s."""
CASES: Final = 256
"""Of each of five seeds: 1,280 episodes of an arm under each condition."""
RECKONED: Final = ", reckoned"
"""Ends the name of an arm that has the trainings of another."""
Returns = dict[str, dict[str, list[list[float]]]]


@dataclass(frozen=True)
class Arm:
    """A baseline, or what is learned with several seeds, under some conditions by label.

    Attributes:
        how: it is trained; None: its run folders are another arm's, or it is the baseline of its name.
        run: name of its run folders; "": a baseline.
        around: what is made of each policy.
        options: of the environment in which it is measured.
    """

    conditions: Mapping[str, Condition]
    how: Mapping[str, Any] | None = None
    run: str = ""
    around: Callable[[Any], Any] = lambda policy: policy
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Study:
    """One of the studies.

    Attributes:
        name: of its files and folders.
        doc: of its command.
        arms: with names; the first one's returns are what others are compared with. An arm may come in parts.
        panels: the figure's: titles, and colours by arm.
        columns: conditions that the tables show.
        steps: transitions of each training.
    """

    name: str
    doc: str
    env_id: str
    arms: Sequence[tuple[str, Arm]]
    panels: Mapping[str, Mapping[str, str]]
    columns: Sequence[str]
    steps: int

    def main(self, arguments: Sequence[str] | None = None) -> None:
        """Train and measure what is missing, write the table and the figure."""
        parser = argparse.ArgumentParser(description=self.doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        results = Path("training/results") / self.name
        parser.add_argument("--out", type=Path, default=results, help="returns, table, figure")
        parser.add_argument("--runs", type=Path, default=Path("runs") / self.name, help="where trainings are kept")
        parser.add_argument("--seeds", type=int, default=5, help="trainings of each arm, two at least")
        parser.add_argument("--steps", type=int, default=self.steps, help="transitions of each training")
        parser.add_argument("--cases", type=int, default=CASES, help="test episodes of each policy and condition")
        parser.add_argument("--processes", type=int, default=1, help="trainings at a time")
        parser.add_argument("--report", action="store_true", help="only the table and the figure of what is there")
        given = parser.parse_args(arguments)
        file = given.out / f"{self.name}.json.gz"
        if not given.report:
            self.train(given)
            self.measure(file, given)
        found = packed.load(file)
        write(given.out / "table.md", markdown(found, self.columns))
        write(given.out / f"{self.name}.svg", to_svg(figure(found, self.panels), text=True))

    def train(self, given: argparse.Namespace) -> None:
        """The first seed of all arms, then the next one."""
        arms = [arm for _, arm in self.arms if arm.how is not None]
        wanted = [(given.runs / f"{arm.run}-{seed}", seed, arm.how) for seed in range(given.seeds) for arm in arms]
        one = partial(trained, self.env_id, given.steps)
        if given.processes == 1:
            [*map(one, *zip(*wanted, strict=True))]
            return
        with ProcessPoolExecutor(given.processes) as pool:
            [*pool.map(one, *zip(*wanted, strict=True))]

    def measure(self, file: Path, given: argparse.Namespace) -> None:
        """The returns that are missing; each arm's are kept at once."""
        found: Returns = packed.load(file) if file.exists() else {}
        for name, arm in self.arms:
            known = found.setdefault(name, {})
            if arm.conditions.keys() <= known.keys():
                continue
            runs = [TrainedRun(str(given.runs / f"{arm.run}-{seed}")) for seed in range(given.seeds)]
            policy = [*map(arm.around, runs)] if arm.run else arm.around(Baseline(name.removesuffix(RECKONED)))
            late = [condition for condition in arm.conditions.values() if condition != SYNC]
            sweep = Sweep.of(self.env_id, {"arm": policy}, late, cases=given.cases, options=arm.options)
            result = sweep.run(processes=1, progress=False)
            known |= {label: result.table("arm", c).round(2).tolist() for label, c in arm.conditions.items()}
            file.parent.mkdir(parents=True, exist_ok=True)
            write(file, packed.dumped(found))
            print(name, {label: round(float(np.mean(known[label])), 2) for label in arm.conditions}, flush=True)


def trained(env_id: str, steps: int, folder: Path, seed: int, how: Mapping[str, Any]) -> None:
    """One training, if it is not there."""
    if not (folder / "config.json").is_file():
        how = {"training_options": {}, "validations": 0, "validation_episodes": 0, "progress": False, **how}
        run = train(env_id, folder, seed=seed, total_steps=steps, **how)
        print(f"{folder}: {run.config.seconds:.0f} s", flush=True)


def estimates(found: Returns, change: str | None = None) -> dict[str, dict[str, Estimate]]:
    """Mean returns by arm and condition, or their change from the first arm's: "undelayed", or under "the same"."""
    reference = next(iter(found))
    intervals = Intervals(range(len(next(iter(found[reference].values()))[0])))

    def estimate(name: str, label: str, values: Any) -> Estimate:
        if change is None:
            return intervals.mean(np.array(values))
        beside = found[reference]["0" if change == "undelayed" else label]
        same_trainings = name.removesuffix(RECKONED) == reference
        return intervals.mean(np.subtract(values, beside)) if same_trainings else intervals.difference(values, beside)

    return {name: {label: estimate(name, label, x) for label, x in of.items()} for name, of in found.items()}


def markdown(found: Returns, columns: Sequence[str]) -> str:
    """Three tables: returns, what they are less than without delay, and more than the first arm's under it."""
    first = next(iter(found))
    titles = {
        "Mean return of the team": None,
        f"Change from {first} without delay": "undelayed",
        f"Change from {first} under the same delay": "the same",
    }
    return "\n".join(
        line for title, change in titles.items() for line in table(title, columns, estimates(found, change))
    )


def table(title: str, columns: Sequence[str], rows: Mapping[str, Mapping[str, Estimate]]) -> Iterator[str]:
    """Its lines."""
    yield f"## {title}\n"
    yield f"| | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * len(columns)}"
    for name, of in rows.items():
        cells = [f"{x.value:.1f} [{x.low:.1f}, {x.high:.1f}]" if (x := of.get(label)) else "" for label in columns]
        yield f"| {name} | {' | '.join(cells)} |".replace("-0.0", "0.0")
    yield ""


def figure(found: Returns, panels: Mapping[str, Mapping[str, str]]) -> Any:
    """Mean returns against delays of one number of steps; names at the right."""
    means = estimates(found)
    with house_style():
        drawn, axes = blank(0.4 + 3.4 * len(panels), rows=len(panels), sharey=True)
        for axis, (title, colours) in zip(axes, panels.items(), strict=True):
            for name, colour in colours.items():
                steps, ends = zip(*((int(x), one) for x, one in means[name].items() if x.isdigit()), strict=True)
                mean, low, high = np.array([(one.value, one.low, one.high) for one in ends]).T
                style = {"linestyle": "--" if name in (NOTHING, RANDOM) else "-", "marker": "o", "markersize": 3}
                line_and_band(axis, steps, mean, (low, high), color=colour, **style)
            axis.set(title=title, ylabel="return of the team")
        axes[-1].set_xlabel("delay, steps of 0.1 s")
        for axis, colours in zip(axes, panels.values(), strict=True):  # their common height is known now
            last = {name: [one for x, one in means[name].items() if x.isdigit()][-1].value for name in colours}
            end_labels(axis, [(last[name], name, colour) for name, colour in colours.items()])
        return drawn
