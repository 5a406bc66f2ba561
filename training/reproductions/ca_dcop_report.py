"""The table and the figure of the study of late letters: see ca_dcop.py. Intervals are 95 %, t, over problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env import mean_interval, paired_difference
from heron_env.lab.figure_style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VERMILION,
    blank,
    end_labels,
    house_style,
    line_and_band,
)
from heron_env.lab.robust_stats import Estimate

Runs = Mapping[str, list[Any]]
"""By figure, its values by run: those of problem 0 first, in the order of seeds."""
Found = Mapping[str, Mapping[str, Mapping[str, Runs]]]
"""By family, condition and search."""
Floats = NDArray[np.float64]
HORIZON: Final = 600
TIMES: Final = np.unique(np.geomspace(1, HORIZON, 28).astype(int))
"""At which costs are kept, units."""
COLUMNS: Final = ("MGM", "MGM-2", "LAMDLS-2")
COLOURS: Final = {"MGM": GREEN, "MGM-2": VERMILION, "LAMDLS-2": BLUE, "do nothing": GREY, "random": ORANGE}


def complete(found: Found) -> Found:
    """Without conditions in which a search is missing."""
    return {
        family: {name: searches for name, searches in conditions.items() if searches.keys() >= {*COLUMNS}}
        for family, conditions in found.items()
    }


def by_problem(runs: Runs, figure: str, seeds: int) -> Floats:
    """Means over seeds `[problems, ...]`."""
    values = np.array(runs[figure], dtype=float)
    return np.asarray(values.reshape(-1, seeds, *values.shape[1:]).mean(axis=1))


def share(runs: Runs, figure: str, seeds: int) -> Floats:
    """Of a cost in the start's, %, by problem: `[problems, ...]`."""
    start = by_problem(runs, "costs", seeds)[:, 0]
    return 100.0 * (by_problem(runs, figure, seeds).T / start).T


def halfway(runs: Runs, seeds: int) -> Floats:
    """Units until half of each run's own descent, straight between the times at which costs were kept, by problem."""
    found = []
    for costs in np.array(runs["costs"], dtype=float):
        level = (costs[0] + costs[-1]) / 2.0
        k = max(int(np.argmax(costs <= level)), 1)
        part = (costs[k - 1] - level) / max(costs[k - 1] - costs[k], 1.0)
        found.append(TIMES[k - 1] + part * (TIMES[k] - TIMES[k - 1]) - 1.0)
    return by_problem({"found": found}, "found", seeds)


ENDED: Final = "Runs that end at an optimum of their kind, %"
FIGURES: Final[dict[str, Callable[[Runs, int], Floats]]] = {
    "Mean cost over 600 units, % of the start's": lambda runs, seeds: share(runs, "mean", seeds),
    "Units until half of its own descent": halfway,
    "Units until 95 % of its own descent": lambda runs, seeds: by_problem(runs, "reached", seeds),
    "Cost after 600 units, % of the start's": lambda runs, seeds: share(runs, "costs", seeds)[:, -1],
    ENDED: lambda runs, seeds: 100.0 * by_problem(runs, "optimal", seeds),
    "Boundaries at which the cost rose, of a run": lambda runs, seeds: by_problem(runs, "rises", seeds),
}


def formatted(interval: Estimate, most: float = np.inf) -> str:
    """With one decimal; no end lies beyond what can be."""
    return f"{interval.mean:.1f} [{interval.low:.1f}, {min(interval.high, most):.1f}]".replace("-0.0", "0.0")


def markdown(found: Found, seeds: int) -> str:
    """A table for each figure: by family and condition, each search, and the paired difference of the last two."""
    return "\n".join(line for title, figure in FIGURES.items() for line in table(found, seeds, title, figure))


def table(found: Found, seeds: int, title: str, figure: Callable[[Runs, int], Floats]) -> Iterator[str]:
    """Its lines."""
    yield f"## {title}\n"
    yield f"| | {' | '.join(COLUMNS)} | LAMDLS-2 - MGM-2 |"
    yield f"|---|{'---:|' * 4}"
    for family, conditions in found.items():
        for condition, searches in conditions.items():
            values = {name: figure(searches[name], seeds).tolist() for name in COLUMNS}
            cells = [formatted(mean_interval(values[name]), 100.0 if title == ENDED else np.inf) for name in COLUMNS]
            cells.append(formatted(paired_difference(values["LAMDLS-2"], values["MGM-2"])))
            yield f"| {family}, {condition} | {' | '.join(cells)} |"
    yield ""


def figure(found: Found, seeds: int, means: Mapping[str, float]) -> Any:
    """Costs of sparse problems by time without latency and with much, and how latency slows each search.

    Args:
        means: of uniform latencies, by condition.
    """
    sparse = found["sparse"]
    rows = [name for name in means if name in sparse]
    idle = {name: runs for name, runs in sparse[rows[0]].items() if name not in COLUMNS}
    with house_style():
        drawn, axes = blank(8.4, rows=3)
        for axis, row in zip(axes, (rows[0], rows[-1]), strict=False):
            searches = {**sparse[row], **idle}
            draw(axis, TIMES, {name: share(runs, "costs", seeds) for name, runs in searches.items()})
            axis.set(xscale="log", xlabel="units of time, one computation each", ylabel="cost, % of the start's")
            axis.set_xticks([1, 10, 100, 600], ["1", "10", "100", "600"])
            axis.minorticks_off()
            axis.set_title(
                f"Letters with {row}" if means[row] == 0 else f"Letters that take {row.replace('uniform, ', '')} units"
            )
        lines = {name: np.array([halfway(sparse[row][name], seeds) for row in rows]).T for name in COLUMNS}
        draw(axes[2], np.array([means[row] for row in rows]), lines, marker="o", markersize=4)
        axes[2].set(xlabel="mean latency of a letter (uniform), units", ylabel="units")
        axes[2].set_title("Time until half of its own descent")
        return drawn


def draw(axis: Any, x: Floats, lines: Mapping[str, Floats], **style: Any) -> None:
    """Means `[len(x)]` of `[problems, len(x)]` with their intervals; names at the right."""
    ends = []
    for name, values in lines.items():
        intervals = [mean_interval(column) for column in values.T]
        mean, low, high = (np.array([getattr(i, end) for i in intervals]) for end in ("mean", "low", "high"))
        dashes = "--" if name == "do nothing" else "-"
        line_and_band(axis, x, mean, (low, high), color=COLOURS[name], linestyle=dashes, **style)
        ends.append((float(mean[-1]), name, COLOURS[name]))
    axis.set_ylim(bottom=0.0)
    end_labels(axis, ends, gap=0.11)
