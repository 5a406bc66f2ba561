"""Figures of a sweep: what delays (or anything else) cost a policy, cause by cause, and algorithms beside each other.

Each function returns a matplotlib Figure and draws nothing on a screen. Lines carry their names, axes their units.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError
from heron_env.lab.benchmark import NOTHING
from heron_env.lab.figure_style import (
    BLUE,
    GREY,
    INK,
    SERIES,
    VERMILION,
    blank,
    end_labels,
    house_style,
    line_and_band,
)
from heron_env.lab.robust_stats import Estimate
from heron_env.lab.sweep.conditions import CAUSES, SYNC
from heron_env.lab.sweep.decomposition import Decomposition
from heron_env.scheduling.sources import mean_s

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from heron_env.lab.sweep.results import Measurements, SweepPoint

Floats = NDArray[np.float64]
MOST_DOTS, FEW_LINES = 30, 3
"""Cases that get a dot each, where there are few lines; more would be a smear, and the band tells of them."""


class PolicyLine(NamedTuple):
    """One policy: what it earned under rising amounts `[n]` of a cause, and on the synchronous clock `[runs, cases]`.

    `returns`: of each amount, training seed and case, float64 `[n, runs, cases]`.
    """

    name: str
    amounts: Floats
    returns: Floats
    sync: Floats


def sweep_figure(result: Measurements, cause: str, policies: Sequence[str] | None = None) -> Figure:
    """Returns of a sweep, or of some of its policies, against one cause alone; below, the gap to the synchronous clock.

    Raises ConfigError where no condition has the cause alone.
    """
    names = result.policies if policies is None else policies
    lines = [_line(result, name, name, result.along(name, cause)) for name in names]
    if not all(len(line.amounts) for line in lines):
        raise ConfigError(f"plot(): no condition of this sweep has {cause!r} alone")
    return gap_figure(result, lines, cause)


def product_figure(result: Measurements, policy: str, cause: str, by: str) -> Figure:
    """Returns of one policy against a cause, a line for each amount of another. Raises ConfigError where none is."""
    points = [
        p
        for p in result.of(policy)
        if p.condition != SYNC
        and set(p.condition.causes) <= {cause, by}
        and math.isfinite(mean_s(getattr(p.condition, cause)))
        and not any(isinstance(amount, tuple) for amount in p.condition.causes.values())
    ]
    lines = []
    for level in sorted({mean_s(getattr(p.condition, by)) for p in points}):
        rows = [(mean_s(getattr(p.condition, cause)), p) for p in points if mean_s(getattr(p.condition, by)) == level]
        if len(rows) > 1:
            lines.append(_line(result, policy, f"{CAUSES[by].words} {level:g}", rows))
    if not lines:
        raise ConfigError(f"product_figure(): no conditions of this sweep have {cause!r} and {by!r}")
    return gap_figure(result, lines, cause)


def _line(result: Measurements, policy: str, name: str, points: Sequence[tuple[float, SweepPoint]]) -> PolicyLine:
    ordered = sorted(points, key=lambda pair: pair[0])
    returns = np.array([point.by_run for _, point in ordered])
    return PolicyLine(name, np.array([amount for amount, _ in ordered]), returns, result.table(policy))


def gap_figure(result: Measurements, lines: Sequence[PolicyLine], cause: str) -> Figure:
    """What policies gain over doing nothing against an amount, and below it the gap: the synchronous return minus this.

    Bands are intervals, dots are cases, dashed lines the synchronous clock. The best possible, where it is known, is a
    line, too. A line so far away that the policies would be flat is an arrow with its value.
    """
    nothing, unit = np.array(result.point(NOTHING).values), result.sweep.unit or "return"
    optima = [case.optimum for case in result.sweep.cases]
    optimum = None if None in optima else np.array(optima, dtype=np.float64) - nothing

    def curve(axes: Axes, line: PolicyLine, values: Floats, colour: str) -> tuple[float, str, str]:
        """Line and band of values `[n, runs, cases]`; its label."""
        made = [result.intervals.mean(of_amount) for of_amount in values]
        level, low, high = np.array([(one.value, one.low, one.high) for one in made]).T
        line_and_band(axes, line.amounts, level, (low, high), color=colour, marker="o", markersize=4.5)
        return float(level[-1]), line.name, colour

    with house_style():
        figure, (top, bottom) = blank(5.6, rows=2, sharex=True, height_ratios=[1.25, 1.0])
        spread = 0.012 * max(float(np.ptp(line.amounts)) for line in lines)
        above, below = [], [(0.0, "synchronous", GREY)]
        for number, (line, colour) in enumerate(zip(lines, SERIES, strict=False)):
            gains, gaps = line.returns - nothing, line.sync - line.returns
            if len(lines) <= FEW_LINES:
                aside = line.amounts + spread * (number - (len(lines) - 1) / 2)
                _dots(top, aside, gains, colour)
                _dots(bottom, aside, gaps, colour)
            above.append(curve(top, line, gains, colour))
            top.axhline(float(np.mean(line.sync - nothing)), color=colour, linewidth=1.0, linestyle=(0, (5, 3)))
            below.append(curve(bottom, line, gaps, colour))
        above += _levels(top, optimum)
        bottom.axhline(0.0, color=GREY, linewidth=1.2)
        for axes, labels, gap in ((top, above, 0.085), (bottom, below, 0.11)):
            end_labels(axes, labels, gap)
            axes.set_ylabel(unit)
        amounts = np.unique(np.concatenate([line.amounts for line in lines]))
        entry = CAUSES[cause]
        label = entry.words if entry.unit == "1" else f"{entry.words}, {entry.unit}"
        bottom.set(xlabel=label, xticks=amounts[apart(amounts, 0.06)], title="Gap: synchronous minus this, same case")
        top.set_title(f"Return of {result.sweep.return_of} above doing nothing\n(dashed: synchronous clock)")
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # which moves things a little whenever it is asked again
        return figure


def _levels(axes: Axes, optimum: Floats | None) -> Iterator[tuple[float, str, str]]:
    """Lines of what perfect foresight and doing nothing gain, as far as that is known; their labels."""
    levels = [] if optimum is None else [(float(np.mean(optimum)), "optimum", INK)]
    low, high = axes.get_ylim()  # of the policies
    for level, name, colour in [*levels, (0.0, NOTHING, GREY)]:
        if 2.0 * low - high <= level <= 2.0 * high - low:
            axes.axhline(level, color=colour, linewidth=1.2, linestyle="-" if name == NOTHING else (0, (1, 2)))
            yield level, name, colour
        elif level < low:
            yield low, f"\N{DOWNWARDS ARROW} {name}: {level:.3g}", colour
        else:
            yield high, f"\N{UPWARDS ARROW} {name}: {level:.3g}", colour


def _dots(axes: Axes, x: Floats, values: Floats, colour: str) -> None:
    """The cases themselves, means over the runs of `[n, runs, cases]`."""
    by_case = values.mean(axis=1)
    if 1 < by_case.shape[1] <= MOST_DOTS:
        across = np.repeat(x, by_case.shape[1])
        axes.plot(across, by_case.ravel(), "o", color=colour, markersize=3.4, markeredgewidth=0, alpha=0.5)


def apart(places: Floats, least: float) -> list[int]:
    """Which of the rising places can all be read: the last, and those before that are as far as that from the next."""
    chosen = [len(places) - 1]
    for number in range(len(places) - 2, -1, -1):
        if places[chosen[-1]] - places[number] >= least * np.ptp(places):
            chosen.append(number)
    return chosen[::-1]


TOGETHER: Final = "all together"
OF_CAUSES: Final = 46
"""Letters of a line of the title."""
METHODS: Final = {"one at a time": "each cause alone, then what they do together", "shapley": "Shapley values"}


def waterfall_figure(costs: Decomposition, unit: str) -> Figure:
    """What each cause takes from a policy: each bar begins where the one before ended."""
    rows = [(part.words, part.mean) for part in costs.parts] + [(TOGETHER, costs.gap.mean)]
    with house_style():
        figure, (axes,) = blank(0.34 * len(rows) + 1.3)
        reached = 0.0
        for y, (name, cost) in enumerate(rows):
            start = 0.0 if name == TOGETHER else reached
            _bar(axes, y, start, cost, INK if name == TOGETHER else VERMILION if cost.value >= 0.0 else BLUE)
            if y:
                axes.plot([reached, reached], [y - 1 + 0.3, y - 0.3], color=GREY, linewidth=0.8)
            reached = start + cost.value
        axes.axvline(0.0, color=GREY, linewidth=1.2)
        axes.set_yticks(range(len(rows)), [name for name, _ in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        axes.grid(visible=False, axis="y")
        axes.margins(x=0.04)
        _costs_beside(axes, costs.texts())
        axes.set_xlabel(f"less than on the synchronous clock{f', {unit}' if unit else ''}")
        axes.set_title(
            "\n".join(textwrap.wrap(f"What each cause takes from {costs.policy!r} ({costs.method})", OF_CAUSES))
        )
        return figure


def _costs_beside(axes: Axes, texts: Sequence[str]) -> None:
    for y, text in enumerate(texts):
        axes.annotate(
            text, (1.0, y), xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points",
            va="center", fontsize=9.0, annotation_clip=False,
        )  # fmt: skip


def _bar(axes: Axes, y: float, start: float, cost: Estimate, colour: str) -> None:
    axes.barh(y, cost.value, left=start, height=0.6, color=colour, linewidth=0)
    if cost.low == cost.low:
        axes.plot([start + cost.low, start + cost.high], [y, y], color=GREY, linewidth=2.4, zorder=3)
        axes.plot([start + cost.low, start + cost.high], [y, y], color="white", linewidth=0.8, zorder=3.1)


THRESHOLDS: Final = 101


def profile_figure(result: Measurements) -> Figure:
    """Performance profiles on the synchronous clock: the share of runs and cases that gain at least so much.

    One line a policy that is pooled over training seeds, with pointwise 95 % intervals (Dolan and More 2002; Agarwal et
    al. 2021). Raises ConfigError where matplotlib is missing (extra `plots`).
    """
    gains = {name: result.gain(name) for name in result.policies if len(result.table(name)) > 1}
    everything = np.concatenate([gain.ravel() for gain in gains.values()])
    thresholds = np.linspace(everything.min(), everything.max(), THRESHOLDS)
    with house_style():
        figure, (axes,) = blank(3.4)
        for number, (name, gain) in enumerate(gains.items()):
            shares = [result.intervals.proportion(gain >= least) for least in thresholds]
            colour, style = SERIES[number % len(SERIES)], ("-", "--", ":", "-.")[number % 4]
            level, low, high = np.array([(share.value, share.low, share.high) for share in shares]).T
            line_and_band(axes, thresholds, level, (low, high), linestyle=style, color=colour, label=name)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel(f"gain over doing nothing, {result.sweep.unit or 'return'}")
        axes.set_ylabel("share of runs that reach it")
        axes.set_title("Performance profiles")
        axes.legend(frameon=False)
        return figure
