"""Figures over virtual time: one day on both clocks, and a few minutes of an event-driven run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from heron_env.evaluation.figure_style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PALE,
    PURPLE,
    SKY,
    VERMILION,
    blank,
    end_labels,
    house_style,
)  # fmt: skip

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


CLOCKS: Final = {"synchronous": (BLUE, 2.0), "event-driven": (VERMILION, 1.0)}
"""Colour and width of a line: the thin one lies on the broad one, so that both are seen where they agree."""


def day_figure(panels: Sequence[Panel], title: str) -> Figure:
    """Quantities of the same day on both clocks, one below the other."""
    with house_style():
        figure, axes = blank(1.7 * len(panels) + 0.9, rows=len(panels))
        for number, (panel, ax) in enumerate(zip(panels, axes, strict=True)):
            _draw_panel(ax, panel)
            if panel.window is not None and number:
                axes[number - 1].axvspan(*panel.window, color=PALE, alpha=0.6, linewidth=0, zorder=0.5)
        axes[-1].set_xlabel("virtual time, h")
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.0, color=GREY)
        return figure


def _draw_panel(ax: Axes, panel: Panel) -> None:
    start, end = panel.window or (0.0, max(max(t) for t, _ in panel.lines.values()))
    labels, lowest = [], 0.0
    for name, (times, numbers) in panel.lines.items():
        t, values = np.asarray(times), np.asarray(numbers)
        inside = (t >= start) & (t <= end)
        t, values = t[inside], values[inside]
        colour, width = CLOCKS.get(name, (GREEN, 1.5))
        ax.plot(t, values, color=colour, linewidth=width, drawstyle="steps-post" if panel.held else "default")
        labels.append((float(values[-max(1, len(values) // 50) :].mean()), name, colour))
        lowest = min(lowest, float(values.min()))
    if panel.limit is not None:
        for level in (panel.limit, -panel.limit)[: 1 + (lowest < -0.6 * panel.limit)]:
            ax.axhline(level, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        labels.append((panel.limit, "limit", INK))
    ax.set_title(panel.title)
    ax.set_ylabel(panel.unit)
    ax.set_xlim(start, end)
    ax.margins(y=0.1)
    if panel.window is None and end > 20.0:
        ax.set_xticks(range(0, 25, 3))
    if panel.window is not None:
        ax.set_xticks(np.arange(np.ceil(2 * start), 2 * end + 0.01) / 2)
        ax.xaxis.set_major_formatter(lambda hour, _: f"{int(hour):02d}:{round(60 * (hour % 1)):02d}")
    end_labels(ax, labels, gap=0.17)


# A few minutes of an event-driven run


def timeline_figure(
    trace: Sequence[Any], ids: Sequence[str], lanes: Sequence[str], *, start: float, end: float, title: str
) -> Figure:
    """What happened between `start` and `end` (s): a lane for physics, and one for each agent in `lanes`.

    Bars: waiting for the observation, action under way, report under way. Marks: tick, observation, command, effect.
    """
    with house_style():
        figure, (axes,) = blank(0.62 * (len(lanes) + 1) + 1.75)
        records = [r for r in trace if start - 600.0 <= r.t_ns / 1e9 <= end + 600.0]
        physics = [r for r in records if r.kind == "Simulation"]
        last = max((r.payload.substep for r in physics), default=0)
        for r in physics:
            axes.vlines(r.t_ns / 1e9, -0.22, 0.22, color=INK, linewidth=1.0)
            if r.payload.substep == last:
                axes.axvline(r.t_ns / 1e9, color=GREY, linewidth=1.2, zorder=0.8)
        for y, name in enumerate(lanes, start=1):
            _draw_lane(axes, [r for r in records if ids[r.agent] == name], y)
        axes.set_yticks(range(len(lanes) + 1), ["physics", *lanes])
        axes.set_ylim(len(lanes) + 0.6, -0.6)
        axes.set_xlim(start, end)
        axes.set_xlabel("virtual time, s")
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        axes.grid(visible=False)
        axes.set_title(title)
        figure.legend(
            handles=_legend(), loc="outside lower left", ncols=2, frameon=False, fontsize=9.0, columnspacing=1.4
        )
        return figure


MARKS: Final = {
    "AgentTick": ("|", INK, "tick: it asks what it sees"),
    "ObservationReply": ("o", BLUE, "its observation has come"),
    "Command": ("v", PURPLE, "command of its coordinator"),
    "ActionEffect": ("D", VERMILION, "effect: the set-point changes"),
}
BARS: Final = {
    "wait": (SKY, "waiting for the observation"),
    "act": (ORANGE, "action under way"),
    "report": (GREEN, "state report under way"),
}


def _draw_lane(axes: Axes, records: Sequence[Any], y: int) -> None:
    at: dict[tuple[str, int], float] = {(r.kind, r.number): r.t_ns / 1e9 for r in records}
    for (kind, number), time in at.items():
        begun = [at[k] for k in (("ObservationReply", number), ("Command", number)) if k in at]
        if kind == "ObservationReply" and ("AgentTick", number) in at:
            _bar(axes, at["AgentTick", number], time, y - 0.06, "wait")
        if kind == "ActionEffect" and begun:
            _bar(axes, begun[0], time, y - 0.06, "act")
        if kind in MARKS:
            marker, colour, _ = MARKS[kind]
            size = 15.0 if marker == "|" else 5.5
            axes.plot(
                time, y - 0.06, marker, color=colour, markersize=size, markeredgewidth=1.8 if marker == "|" else 0.5
            )
    for r in records:
        if r.kind == "StateReport":
            _bar(axes, (r.t_ns - r.latency) / 1e9, r.t_ns / 1e9, y + 0.26, "report", height=0.12)


def _bar(axes: Axes, start: float, end: float, y: float, what: str, height: float = 0.2) -> None:
    axes.barh(y, end - start, left=start, height=height, color=BARS[what][0], linewidth=0, alpha=0.85, zorder=1.5)


def _legend() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    bars = [Patch(color=colour, label=text) for colour, text in BARS.values()]
    marks = [
        Line2D([], [], marker=m, color=c, linestyle="none", label=text, markersize=10 if m == "|" else 5.5)
        for kind, (m, c, text) in MARKS.items()
        if kind != "Command"
    ]
    return [*bars, Line2D([], [], color=GREY, linewidth=1.2, label="end of a control step"), *marks]
