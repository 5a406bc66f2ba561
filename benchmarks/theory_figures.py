"""Theory beside simulation in three figures, drawn from the results alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks import plant
from heron_env.lab.figure_style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    SKY,
    VERMILION,
    blank,
    end_labels,
    house_style,
    to_svg,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Results = Mapping[str, Any]


def age(found: Results) -> Figure:
    """Mean age against the time between two updates: lines are closed forms, dots the post office."""
    figure, (axes,) = blank(4.0)
    ends = []
    for line in found["periods"]:
        colour, style = VERMILION if line["reorder"] else BLUE, "--" if line["loss"] else "-"
        axes.plot(line["period"], line["expected"], color=colour, linestyle=style)
        axes.plot(line["sent_every"], line["simulated"], color=colour, marker="o", markersize=5.5, linestyle="none")
        order = "reorder" if line["reorder"] else "in order"
        lost = f"{line['loss']:.0%} lost" if line["loss"] else "none lost"
        ends.append((line["expected"][-1], f"{order}, {lost}", colour))
    axes.set_xscale("log")
    axes.set_xticks(line["sent_every"], [f"{period:g}" for period in line["sent_every"]])
    axes.minorticks_off()
    axes.set_ylim(0.0)
    axes.set_xlabel("time between two updates, s")
    axes.set_ylabel("mean age of information, s")
    axes.set_title("Lines: closed forms. Dots: the post office")
    end_labels(axes, ends)
    return figure


def stability(found: Results) -> Figure:
    """The first unstable delay against the gain: lines are roots of polynomials, dots the event clock."""
    figure, (axes,) = blank(4.0)
    gains = np.linspace(1.4, 4.05, 400)
    for each, colour, size in zip(found["stability"], (VERMILION, ORANGE, BLUE), (11, 8, 5), strict=True):
        h, edges = each["h"], np.array(each["edges"])
        axes.plot(
            gains, [h * np.argmax(edges < gain) for gain in gains], color=colour, label=f"decisions every {h:g} s"
        )
        axes.plot(
            each["gains"], h * np.array(each["simulated"]), color=colour, marker="o", markersize=size, linestyle="none",
            markeredgecolor="white", zorder=3,
        )  # fmt: skip
    axes.plot(gains, [plant.dead_time(gain) for gain in gains], color=INK, linestyle="--", label="continuous control")
    axes.set_xlim(1.35, 4.15)
    axes.set_ylim(0.0)
    axes.set_xlabel("gain k")
    axes.set_ylabel("first unstable delay, s")
    axes.set_title("Lines: roots of the polynomial. Dots: the event clock")
    axes.legend(frameon=False)
    return figure


def response(found: Results) -> Figure:
    """A step of the set-point: without dead time, with it, and with a predictor."""
    figure, (axes,) = blank(4.0)
    lines, late = found["response"], plant.DEAD * plant.STEP
    time = plant.STEP * np.arange(len(lines["prompt"]))
    axes.axhline(1.0, color=GREY, linewidth=1.0)
    axes.plot(time, lines["late"], color=SKY, label=f"PI, effects {late:g} s late")
    axes.plot(time, lines["prompt"], color=INK, linestyle="--", label="PI, no delay")
    axes.plot(time, lines["predicted"], color=VERMILION, label=f"Smith predictor, {late:g} s late")
    dots = slice(0, -plant.DEAD, 6)
    axes.plot(
        (time + late)[dots], lines["prompt"][dots], color=INK, marker="o", markersize=4.5, linestyle="none",
        label=f"PI, no delay, moved by {late:g} s",
    )  # fmt: skip
    axes.set_xlim(0.0, time[-1])
    axes.set_xlabel("time, s")
    axes.set_ylabel("output")
    axes.set_title("A step of the set-point, behind the event clock")
    axes.legend(frameon=False)
    return figure


DRAWN: Final[dict[str, Callable[[Results], Figure]]] = {
    "theory_age": age,
    "theory_stability": stability,
    "theory_response": response,
}


def drawn(found: Results, name: str) -> bytes:
    """The SVG of one of DRAWN."""
    with house_style():
        return to_svg(DRAWN[name](found), text=True)
