"""Figures of an evaluation: who is there, how it was learned, what delay costs.

Each function returns a matplotlib Figure and draws nothing on a screen. Lines carry their names, axes their units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from heron_env.errors import ConfigError
from heron_env.evaluation.benchmark import NOTHING
from heron_env.evaluation.figure_style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    PALE,
    PURPLE,
    SERIES,
    VERMILION,
    blank,
    end_labels,
    house_style,
)  # fmt: skip
from heron_env.evaluation.stats import Interval, paired_difference
from heron_env.evaluation.table import Row, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from heron_env.envs.base import HeronEnv


def hierarchy_figure(env: HeronEnv, most_children: int = 8) -> Figure:
    """The tree of agents, the root at the left; of many siblings only the first ones are drawn, the rest counted."""
    lines = _tree_lines(env, most_children)
    with house_style():
        figure, (axes,) = blank(0.36 * len(lines) + 0.75)
        axes.axis("off")
        deepest = max(depth for depth, _, _, _ in lines)
        for y, (depth, parent, name, what) in enumerate(lines):
            colour = BLUE if "decides" in what else INK
            if parent is not None:
                axes.plot([depth - 0.86, depth - 0.86, depth - 0.05], [parent + 0.28, y, y], color=PALE, linewidth=1.4)
            axes.text(depth, y, name, va="center", color=colour, fontweight="bold" if colour == BLUE else "normal")
            axes.text(deepest + 1.25, y, what, va="center", color=GREY, fontsize=9.0)
        axes.set_xlim(-0.1, deepest + 4.0)
        axes.set_ylim(len(lines) - 0.4, -0.6)
        axes.set_title("Hierarchy (agents that decide in blue)")
        return figure


def _tree_lines(env: HeronEnv, most: int) -> list[tuple[int, int | None, str, str]]:
    """(depth, line of the parent, name, what it does) of every line, top to bottom."""
    tree, specs = env.hierarchy, env.simulation.specs
    possible = set(env.possible_agents)
    lines: list[tuple[int, int | None, str, str]] = []

    def add(rank: int, depth: int, parent: int | None) -> None:
        name = tree.ids[rank]
        does = "decides" if name in possible else "obeys" if specs[rank].size else "watches"
        lines.append(
            (depth, parent, name, f"{does}, every {env.timings[rank].tick / 1e9:g} s" if does != "watches" else does)
        )
        here, children = len(lines) - 1, tree.children[rank]
        for child in children[:most]:
            add(child, depth + 1, here)
        if len(children) > most:
            lines.append((depth + 1, here, f"and {len(children) - most} more", ""))

    add(0, 0, None)
    return lines


def learning_figure(
    points: Sequence[tuple[float, float]], levels: Mapping[str, float], *, x_label: str, y_label: str
) -> Figure:
    """The learning curve, and for comparison the levels of policies that did not learn."""
    with house_style():
        figure, (axes,) = blank(3.1)
        x, y = np.array(points, dtype=np.float64).reshape(-1, 2).T
        axes.plot(x, y, color=BLUE, marker="o", markersize=3.0)
        labels = [(float(y[-1]), "in training", BLUE)] if len(y) else []
        for (name, level), colour in zip(levels.items(), (VERMILION, GREY, GREEN, PURPLE), strict=False):
            axes.axhline(level, color=colour, linewidth=1.2, linestyle=(0, (5, 3)))
            labels.append((level, name, colour))
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g} M" if x[-1] >= 4e5 else f"{value:g}")
        axes.margins(x=0.02, y=0.08)
        end_labels(axes, labels)
        axes.set_title("Learning curve")
        return figure


def delay_figure(table: Table) -> Figure:
    """Gain over doing nothing against delay, and below it the paired difference to the synchronous clock."""
    shown = [name for name in table.policies if any(row.clock.delay is not None for row in table.of(name))]
    if not shown:
        raise ConfigError("delay_figure(): the table has no event-driven row")
    unit = table.unit or "return"
    idle = table.row(NOTHING).returns if table.has(NOTHING) else None
    with house_style():
        figure, (top, bottom) = blank(5.4, rows=2, sharex=True, height_ratios=[1.25, 1.0])
        labels_top, labels_bottom = [], []
        for name, colour in zip(shown, SERIES, strict=False):
            rows = sorted(
                (row for row in table.of(name) if row.clock.delay is not None), key=lambda row: row.clock.delay or 0.0
            )
            levels = [_gain(row, idle) for row in rows]
            _band(top, rows, levels, colour)
            labels_top.append((levels[-1].mean, name, colour))
            if table.has(name):
                top.axhline(_gain(table.row(name), idle).mean, color=colour, linewidth=1.0, linestyle=(0, (5, 3)))
                changes = [row.to_sync for row in rows if row.to_sync is not None]
                _band(bottom, rows, changes, colour)
                labels_bottom.append((changes[-1].mean, name, colour))
        if idle is not None:
            top.axhline(0.0, color=GREY, linewidth=1.2)
            labels_top.append((0.0, NOTHING, GREY))
        bottom.axhline(0.0, color=GREY, linewidth=1.2)
        labels_bottom.append((0.0, "synchronous", GREY))
        end_labels(top, labels_top)
        end_labels(bottom, labels_bottom, gap=0.11)
        top.set_ylabel(unit)
        bottom.set_ylabel(unit)
        bottom.set_xlabel("delay from observation to effect, s")
        bottom.set_xticks(sorted({row.clock.delay for row in table.rows if row.clock.delay is not None}))
        what = "Gain over doing nothing" if idle is not None else "Return"
        top.set_title(f"{what} (dashed: synchronous clock)")
        bottom.set_title(
            "Difference to the synchronous clock, same days" if idle else "Difference to the synchronous clock"
        )
        return figure


def _gain(row: Row, idle: list[float] | None) -> Interval:
    return row.mean if idle is None else paired_difference(row.returns, idle)


def _band(axes: Axes, rows: Sequence[Row], levels: Sequence[Interval], colour: str) -> None:
    x = [row.clock.delay or 0.0 for row in rows]
    axes.plot(x, [level.mean for level in levels], color=colour, marker="o", markersize=4.5)
    if all(level.n > 1 for level in levels):
        axes.fill_between(x, [v.low for v in levels], [v.high for v in levels], color=colour, alpha=0.15, linewidth=0)
