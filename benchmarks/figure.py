"""The one figure: env-steps per CPU second against the number of environments, simple_spread with 3 agents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from benchmarks import spread
from benchmarks.measure import Result, Spread
from benchmarks.peers import PEERS
from heron_env.lab.figure_style import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    VERMILION,
    blank,
    end_labels,
    house_style,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AGENTS: Final = 3
LOOKS: Final = {
    spread.BATCH: ("heron_env", BLUE, "o", "-"),
    spread.SINGLE: ("heron_env, PettingZoo", BLUE, "D", ""),
    spread.C: ("C loop, float32", INK, "s", "--"),
    spread.NUMPY: ("plain numpy", GREEN, "^", "-."),
    PEERS["jaxmarl"]: ("JaxMARL", VERMILION, "v", "-"),
    PEERS["jax"]: ("JaxEnv", BLUE, "v", ""),
    PEERS["vmas"]: ("VMAS", PURPLE, "P", "-"),
    PEERS["mpe2"]: ("MPE, PettingZoo", ORANGE, "X", ""),
}
"""Of each case: its name in the figure, colour, marker and line."""
Series = Mapping[str, Sequence[tuple[int, Spread]]]
"""By case: (environments, env-steps per CPU second)."""


def series(results: Sequence[Result]) -> Series:
    """The lines that these results have; empty without Spread at two sizes or more."""
    by_name = {result.name: result for result in results}
    sizes = [(lanes, by_name[name]) for lanes in spread.LANES if (name := spread.spread_name(AGENTS, lanes)) in by_name]
    if len(sizes) < 2:
        return {}
    lines = {case: [(lanes, found.spread) for lanes, result in sizes if (found := result.case(case))] for case in LOOKS}
    return {case: points for case, points in lines.items() if points}


def draw(lines: Series) -> Figure:
    """Logarithmic in both directions; bars span the rounds; names stand beside the lines' ends."""
    with house_style():
        figure, (axes,) = blank(4.4)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        last = max(points[-1][0] for points in lines.values())
        at_the_end = []
        for case, points in lines.items():
            name, colour, marker, line = LOOKS[case]
            x, middle = [lanes for lanes, _ in points], [found.median for _, found in points]
            below = [found.median - found.low for _, found in points]
            above = [found.high - found.median for _, found in points]
            axes.errorbar(
                x, middle, yerr=(below, above), color=colour, marker=marker, linestyle=line or "none", markersize=5.0,
                elinewidth=1.0,
            )  # fmt: skip
            if x[-1] == last:
                at_the_end.append((math.log10(middle[-1]), name, colour))
            else:
                axes.annotate(
                    name, (x[-1], middle[-1]), xytext=(9, 0), textcoords="offset points", color=INK, va="center",
                    fontsize=9.0, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0}, zorder=5,
                )  # fmt: skip
        axes.set_xticks(sizes := [lanes for lanes, _ in max(lines.values(), key=len)], [f"{size:,}" for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel("environments at once")
        axes.set_ylabel("env-steps per CPU second, one thread")
        axes.set_title(f"simple_spread, {AGENTS} agents, a reset every 25 steps")
        beside = axes.twinx()  # end_labels wants a linear axis
        beside.set_ylim(*(math.log10(limit) for limit in axes.get_ylim()))
        beside.axis("off")
        end_labels(beside, at_the_end, gap=0.062)
        return figure


def alternative(lines: Series) -> str:
    """The figure in words, for those who can't see it."""
    told = []
    for case, points in lines.items():
        ends = [f"{found.median:,.0f} with {lanes:,}" for lanes, found in dict.fromkeys((points[0], points[-1]))]
        told.append(f"{LOOKS[case][0]}: {', '.join(ends)}")
    return f"Env-steps per CPU second by number of environments, {AGENTS} agents. " + "; ".join(told) + "."
