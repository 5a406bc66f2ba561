"""Algorithms for graph colouring side by side: medians over seeds, and the best so far after each cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env import files
from heron_env.dcop import ALGORITHMS, Problem, Solution, solve
from heron_env.errors import ConfigError
from heron_env.given import require_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWING = ("dsa", "mgm", "maxsum")
"""Algorithms that differ from seed to seed."""


@dataclass(frozen=True)
class ComparedAlgorithm:
    """One algorithm on one problem: a solution a seed, or why there is none."""

    problem: Problem
    algo: str
    results: tuple[Solution, ...]
    why_not: str = ""

    @property
    def conflicts(self) -> float:
        """Median."""
        return median(one.conflicts for one in self.results)

    def against_optimum(self) -> tuple[float, float] | None:
        """(sat_ratio, norm_gap), medians; None where the optimum is not known.

        sat_ratio = (E - c) / (E - c*): of the edges that can be satisfied, the share that is. norm_gap = (E/D - c) /
        (E/D - c*): 0 is a random colouring with D colours in the mean, 1 the optimum. E edges, c conflicts, c* least.
        """
        if self.problem.optimum is None or not self.results:
            return None
        edges, least = len(self.problem.edges), self.problem.optimum.conflicts
        chance = edges / len(self.problem.domain)
        if edges == least or chance == least:
            return None
        return (edges - self.conflicts) / (edges - least), (chance - self.conflicts) / (chance - least)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        ratios = self.against_optimum() or (None, None)
        values: dict[str, Any] = {"instance": self.problem.name, "algorithm": self.algo}
        if not self.results:
            return {**values, "why_not": self.why_not}
        runs = {"conflicts": [one.conflicts for one in self.results], "seconds": [one.seconds for one in self.results]}
        means = {name: median(getattr(one, name) for one in self.results) for name in ("messages", "cycles")}
        return {**values, **runs, "sat_ratio": ratios[0], "norm_gap": ratios[1], **means}

    def words(self) -> tuple[str, ...]:
        """For a table: instance, algorithm, conflicts, sat_ratio, norm_gap, messages, cycles, seconds."""
        if not self.results:
            return self.problem.name, self.algo, *["-"] * 6
        each = [one.conflicts for one in self.results]
        spread = f" [{min(each)}-{max(each)}]" if len(each) > 1 else ""
        ratios = [f"{ratio:.3f}" for ratio in self.against_optimum() or ()] or ["?", "?"]
        counts = [f"{median(getattr(one, name) for one in self.results):g}" for name in ("messages", "cycles")]
        seconds = f"{median(one.seconds for one in self.results):.2g}"
        return self.problem.name, self.algo, f"{self.conflicts:g}{spread}", *ratios, *counts, seconds


def compared(
    problems: Sequence[Problem],
    algorithms: Sequence[str] | None = None,
    *,
    seeds: int = 9,
    cycles: int = 100,
    seconds: float | None = None,
) -> list[ComparedAlgorithm]:
    """Every algorithm on every problem.

    Args: problems: what to colour; algorithms: names; None: all, without those that can't (OR-Tools is missing, the
        graph is too dense); seeds: 0 ... seeds - 1, of algorithms that draw; cycles, seconds: as in `solve`.

    Raises: ConfigError: an algorithm that was asked for by name can't solve a problem, or an argument makes no sense.
    """
    require_count(f"compared(seeds={seeds!r:.60})", seeds)
    rows = []
    for problem in problems:
        for algo in algorithms or ALGORITHMS:
            runs = range(seeds if algo in DRAWING else 1)
            try:
                solutions = tuple(solve(problem, algo, seed=seed, cycles=cycles, seconds=seconds) for seed in runs)
                rows.append(ComparedAlgorithm(problem, algo, solutions))
            except ConfigError as error:
                if algorithms:
                    raise
                rows.append(ComparedAlgorithm(problem, algo, (), str(error)))
    return rows


def anytime_figure(rows: Sequence[ComparedAlgorithm]) -> Figure:
    """Cost left after each cycle in conflicts, a panel a problem: median over seeds, and from least to most."""
    from heron_env.lab.figure_style import blank, house_style

    named = {
        row.problem.name: [other for other in rows if other.problem is row.problem and other.results] for row in rows
    }
    with house_style():
        figure, panels = blank(2.3 * len(named), rows=len(named))
        for axes, (name, shown) in zip(panels, named.items(), strict=True):
            _anytime_panel(axes, shown)
            axes.set_title(f"{name}: conflicts left")
        panels[-1].set_xlabel("cycle")
        return figure


def _anytime_panel(axes: Axes, rows: Sequence[ComparedAlgorithm]) -> None:
    from heron_env.lab.figure_style import GREY, SERIES, end_labels

    colours = dict(zip(DRAWING, SERIES, strict=False))
    longest = max((len(one.curve) for row in rows for one in row.results), default=1)
    ends: dict[tuple[float, str], list[str]] = {}
    axes.set_yscale("symlog", linthresh=1.0)
    for row in rows:
        left = np.array([np.pad(one.curve, (0, longest - len(one.curve)), "edge") for one in row.results])
        left /= row.problem.conflict_penalty
        low, middle, high = lines = np.array([left.min(axis=0), np.median(left, axis=0), left.max(axis=0)])
        colour, moves = colours.get(row.algo, GREY), np.any(np.diff(lines, axis=1) != 0.0, axis=0)
        cycles = np.flatnonzero(np.append(True, moves) | np.append(moves, True))  # all others lie on a level line
        axes.plot(cycles, middle[cycles], color=colour, linewidth=1.4 if row.algo in colours else 0.9)
        axes.fill_between(cycles, low[cycles], high[cycles], color=colour, alpha=0.15, lw=0)
        ends.setdefault((float(middle[-1]), colour), []).append(row.algo)
    bottom, top = 0.0, axes.get_ylim()[1]
    axes.set_ylim(bottom, top)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    to_fraction = axes.transData + axes.transAxes.inverted()  # labels are placed on a straight scale
    heights = {end: bottom + (top - bottom) * float(to_fraction.transform((0.0, end[0]))[1]) for end in ends}
    end_labels(axes, [(heights[end], ", ".join(names), end[1]) for end, names in ends.items()])


def written(figure: Figure, path: Path) -> Path:
    """The figure as a file, `.svg` or `.png`."""
    from heron_env.lab.figure_style import to_png, to_svg

    return files.write(path, to_svg(figure) if path.suffix == ".svg" else to_png(figure))
