"""Does LAMDLS-2 get there sooner than MGM-2 where letters are late? Rachmut, Zivan and Yeoh (CP 2024), on this clock.

    python -m training.reproductions.ca_dcop             # half an hour of CPU time; it goes on where it stopped
    python -m training.reproductions.ca_dcop --report    # only the table and the figure of what is there

Searches: MGM, MGM-2 and LAMDLS-2 (searches.py), and beside them agents that do nothing and agents that take any value
at each tick. 20 problems of each family (dcops.py), 5 seeds each; a seed draws the start and what the searches draw, so
all searches start alike. An agent computes once a tick, which is the unit of time; a letter that takes L of them is
read floor(L) + 1 after it was written. Letters may overtake each other. A search is over when no two agents could gain
(MGM: no one), else after 600. Kept in --out: every run (ca_dcop.json.gz), table.md, ca_dcop.svg.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env import Answer, Asked, Empirical, ScheduleConfig
from heron_env.files import write
from heron_env.lab.figure_style import to_svg
from heron_env.seeding import stream
from training import packed
from training.reproductions.ca_dcop_report import HORIZON, TIMES, complete, figure, markdown
from training.reproductions.dcops import FAMILIES, Dcop, drawn
from training.reproductions.letters_world import LettersWorld
from training.reproductions.searches import SEARCHES, Member

AGENTS: Final = 12
FEW: Final = 60
"""Steps of those that do not search."""
PROBLEMS, SEEDS = 20, 5
NOTHING, CHANCE = "do nothing", "random"
OUT: Final = Path("training/results/ca_dcop")
FILE: Final = "ca_dcop.json.gz"
QUANTILES: Final = 1000
OPTIMA: Final = {"MGM": 1, "MGM-2": 2, "LAMDLS-2": 2}
PATIENCE: Final = 16
"""For so long nothing must change before a search counts as over: one of a pair may still be on its way."""
SHARE: Final = 0.95
"""Of a search's own descent, after which it counts as arrived."""


def poisson(mean: float) -> Empirical:
    """Delays whose shares are those of a Poisson law, to a thousandth."""
    from scipy.stats import poisson as law

    return Empirical([float(x) for x in law.ppf((np.arange(QUANTILES) + 0.5) / QUANTILES, mean)])


def late(msg_delay: Any, **jitter: Any) -> ScheduleConfig:
    """Letters that take so long, and may overtake each other."""
    return ScheduleConfig(msg_delay=msg_delay, reorder=True, **jitter)


UNIFORM: Final = {"jitter_type": "uniform", "jitter_ratio": 1.0}
NONE, LOSS = "no latency", "1 % lost"
CONDITIONS: Final[Mapping[str, tuple[ScheduleConfig, float]]] = {
    NONE: (late(0.0), 0.0),
    "uniform, 0 to 2": (late(1.0, **UNIFORM), 0.0),
    "uniform, 0 to 8": (late(4.0, **UNIFORM), 0.0),
    "always 4": (late(4.0), 0.0),
    "Poisson, mean 4": (late(poisson(4.0)), 0.0),
    LOSS: (late(0.0), 0.01),
}
"""By name: how long letters take, and which share of them is lost."""
UNIFORM_MEANS: Final = {NONE: 0.0, "uniform, 0 to 2": 1.0, "uniform, 0 to 8": 4.0}
CELLS: Final = [
    *((family, condition) for condition in (NONE, "uniform, 0 to 8") for family in FAMILIES),
    *(("sparse", condition) for condition in ("always 4", "Poisson, mean 4", LOSS)),
    *((family, "uniform, 0 to 2") for family in FAMILIES),
]
Runs = dict[str, list[Any]]
"""By figure, its values by run: those of problem 0 first, in the order of seeds."""


class Chance:
    """Takes any value, at each tick anew; at the first one it keeps what it has."""

    def __init__(self, values: int, name: str) -> None:
        self.values, self.name = values, name

    def begin(self, seed: int, episode: int) -> None:
        """Draws of its own."""
        self.draws = stream(seed, "chance", self.name)

    def answer(self, asked: Asked) -> Answer:
        """Without a letter."""
        return Answer(int(self.draws.integers(self.values)) if asked.number else int(asked.vector[0]))


class Still:
    """Keeps the value that it has."""

    def answer(self, asked: Asked) -> Answer:
        """Without a letter."""
        return Answer(int(asked.vector[0]))


def members(problem: Dcop, names: list[str], search: str) -> dict[str, Any]:
    """A policy for each agent."""
    if search in SEARCHES:
        return {name: Member(problem, i, names, SEARCHES[search]) for i, name in enumerate(names)}
    return {name: Still() if search == NOTHING else Chance(problem.values, name) for name in names}


def episode(
    problem: Dcop, search: str, condition: str, seed: int, most: int = HORIZON
) -> tuple[NDArray[np.float64], Any, LettersWorld]:
    """Costs at each boundary until it is over `[steps]`, the result, and the world as it is then."""
    schedule, loss = CONDITIONS[condition]
    env = LettersWorld(problem, optimum=OPTIMA.get(search, 0), patience=PATIENCE, loss=loss, max_steps=most)
    result = env.run_event_driven(members(problem, env.names, search), seed=seed, schedule=schedule)
    return -np.array([reward for _, reward in result.rewards["judge"]]), result, env


def measured(family: str, condition: str, search: str, seeds: int, number: int) -> Runs:
    """The runs of one problem, by seed."""
    runs: Runs = {name: [] for name in ("costs", "mean", "reached", "optimal", "rises", "letters")}
    problem = drawn(family, number, AGENTS)
    for seed in range(seeds):
        costs, result, env = episode(problem, search, condition, seed, HORIZON if search in SEARCHES else FEW)
        rest = costs[1:].mean() if search == CHANCE else costs[-1]  # what is random goes on as it began
        full = np.append(costs, np.full(HORIZON - len(costs), rest))
        runs["costs"].append([int(cost) for cost in full[TIMES - 1]])
        runs["mean"].append(float(full.mean()))
        runs["reached"].append(int(np.argmax(full <= full[0] - SHARE * (full[0] - full[-1]))))
        runs["optimal"].append(bool(env.optimal))
        runs["rises"].append(int((np.diff(costs) > 0).sum()))
        runs["letters"].append(result.letters.sent)
    return runs


def study(out: Path, problems: int, seeds: int, processes: int) -> dict[str, Any]:
    """All runs, by family, condition and search; those in `out` are not run again, each cell is kept at once."""
    file = out / FILE
    found: dict[str, Any] = packed.load(file) if file.exists() else {}
    with ProcessPoolExecutor(processes) as pool:
        for family, condition in CELLS:
            for search in (*SEARCHES, *((NOTHING, CHANCE) if condition == NONE else ())):
                cells = found.setdefault(family, {}).setdefault(condition, {})
                if search in cells and len(cells[search]["mean"]) >= problems * seeds:
                    continue
                work = partial(measured, family, condition, search, seeds)
                rows = [*pool.map(work, range(problems))]
                cells[search] = {name: [x for row in rows for x in row[name]] for name in rows[0]}
                out.mkdir(parents=True, exist_ok=True)
                write(file, packed.dumped(found))
                print(f"{family}, {condition}, {search}: {np.mean(cells[search]['reached']):.0f}", flush=True)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, write the table and the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT, help="every run, the table, the figure")
    parser.add_argument("--problems", type=int, default=PROBLEMS, help="of each family")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of each problem")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="only the table and the figure of what is there")
    given = parser.parse_args(arguments)
    if not given.report:
        study(given.out, given.problems, given.seeds, given.processes)
    found = complete(packed.load(given.out / FILE))
    write(given.out / "table.md", markdown(found, given.seeds))
    write(given.out / "ca_dcop.svg", to_svg(figure(found, given.seeds, UNIFORM_MEANS), text=True))


if __name__ == "__main__":
    main()
