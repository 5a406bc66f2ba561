"""The figure over virtual time: one case on both clocks."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from heron_env.lab.figure_style import BLUE, GREEN, GREY, INK, PALE, VERMILION, blank, end_labels, house_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Panel:
    """One quantity over time: lines by name, in the colours of the clocks where they bear a clock's name."""

    title: str
    unit: str
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    """(time in h, value) by name."""
    limit: float | None = None
    """A level that should not be exceeded, in either direction."""
    held: bool = False
    """Is a value valid until the next one? Then it is drawn in steps."""
    window: tuple[float, float] | None = None
    """Only these hours; they are marked in the panel above."""


TITLE: Final = 84
"""Letters of a line of the title."""
UNITS: Final = (("h", 1.0, 2.0), ("min", 60.0, 0.05), ("s", 3600.0, 0.0))
"""Of time: name, how many of it an hour has, and the shortest course in h that is drawn in it."""
CLOCKS: Final = {"synchronous": (BLUE, 2.0), "event-driven": (VERMILION, 1.0)}
"""Colour and width of a line: the thin one lies on the broad one, so that both are seen where they agree."""


def day_figure(panels: Sequence[Panel], title: str) -> Figure:
    """Quantities of the same day on both clocks, one below the other."""
    longest = max(max(t) for panel in panels for t, _ in panel.lines.values())
    unit, per_hour = next((name, factor) for name, factor, least in UNITS if longest >= least)
    with house_style():
        figure, axes = blank(1.7 * len(panels) + 0.9, rows=len(panels))
        for number, (panel, ax) in enumerate(zip(panels, axes, strict=True)):
            _draw_panel(ax, panel, per_hour)
            if panel.window is not None and number:
                start, end = panel.window
                axes[number - 1].axvspan(
                    start * per_hour, end * per_hour, color=PALE, alpha=0.6, linewidth=0, zorder=0.5
                )
        axes[-1].set_xlabel(f"virtual time, {unit}")
        figure.suptitle("\n".join(textwrap.wrap(title, TITLE)), x=0.01, ha="left", fontsize=10.0, color=GREY)
        return figure


def _draw_panel(ax: Axes, panel: Panel, per_hour: float) -> None:
    start, end = panel.window or (0.0, max(max(t) for t, _ in panel.lines.values()))
    labels, lowest = [], 0.0
    for name, (times, numbers) in panel.lines.items():
        t, values = np.asarray(times), np.asarray(numbers)
        inside = (t >= start) & (t <= end)
        t, values = t[inside], values[inside]
        colour, width = CLOCKS.get(name, (GREEN, 1.5))
        ax.plot(
            t * per_hour, values, color=colour, linewidth=width, drawstyle="steps-post" if panel.held else "default"
        )
        labels.append((float(values[-max(1, len(values) // 50) :].mean()), name, colour))
        lowest = min(lowest, float(values.min()))
    if panel.limit is not None:
        for level in (panel.limit, -panel.limit)[: 1 + (lowest < -0.6 * panel.limit)]:
            ax.axhline(level, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        labels.append((panel.limit, "limit", INK))
    ax.set_title(panel.title)
    ax.set_ylabel(panel.unit)
    ax.set_xlim(start * per_hour, end * per_hour)
    ax.margins(y=0.1)
    if panel.window is None and end > 20.0:
        ax.set_xticks(range(0, 25, 3))
    if panel.window is not None and per_hour == 1.0:
        ax.set_xticks(np.arange(np.ceil(2 * start), 2 * end + 0.01) / 2)
        ax.xaxis.set_major_formatter(lambda hour, _: f"{int(hour):02d}:{round(60 * (hour % 1)):02d}")
    end_labels(ax, labels, gap=0.17)
