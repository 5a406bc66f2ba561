"""The gap by cause as a picture: a waterfall whose steps add up to what all causes together cost."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from heron_env.lab.figure_style import BLUE, GREY, INK, VERMILION, blank, house_style
from heron_env.lab.gap.decomposition import Decomposition
from heron_env.lab.robust_stats import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOGETHER: Final = "all together"
TITLE: Final = 46
"""Letters of a line of the title."""
METHODS: Final = {"one at a time": "each cause alone, then what they do together", "shapley": "Shapley values"}


def waterfall_figure(found: Decomposition, unit: str) -> Figure:
    """Each part begins where the one before ended; thin lines are the intervals of its parts."""
    rows = [(part.words, part.mean) for part in found.parts] + [(TOGETHER, found.gap.mean)]
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
        for y, text in enumerate(found.texts()):
            axes.annotate(
                text, (1.0, y), xycoords=("axes fraction", "data"), xytext=(6, 0),
                textcoords="offset points", va="center", fontsize=9.0, annotation_clip=False,
            )  # fmt: skip
        axes.set_xlabel(f"less than on the synchronous clock{f', {unit}' if unit else ''}")
        axes.set_title("\n".join(textwrap.wrap(f"What each cause takes from {found.policy!r} ({found.method})", TITLE)))
        return figure


def _bar(axes: Axes, y: float, start: float, cost: Estimate, colour: str) -> None:
    axes.barh(y, cost.value, left=start, height=0.6, color=colour, linewidth=0)
    if cost.low == cost.low:
        axes.plot([start + cost.low, start + cost.high], [y, y], color=GREY, linewidth=2.4, zorder=3)
        axes.plot([start + cost.low, start + cost.high], [y, y], color="white", linewidth=0.8, zorder=3.1)
