"""How much of a fault a policy tolerates: a tile, a figure and a table of a report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from heron_env.errors import ConfigError
from heron_env.lab.figure_style import BLUE, GREY, INK, PALE, VERMILION, blank, end_labels, house_style
from heron_env.lab.output import TextTable, Tile, with_unit
from heron_env.lab.show.document import Picture, Section
from heron_env.lab.show.figures import apart
from heron_env.lab.sweep.conditions import CAUSES
from heron_env.lab.sweep.margin import Margin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {"kept": BLUE, "undecided": GREY, "lost": VERMILION}
APART = 0.07
"""Of the axis: what is between two of its numbers at least."""


def margin_tile(margin: Margin) -> Tile:
    """The estimate in large figures, its interval below."""
    label, note = f"Tolerated {CAUSES[margin.fault].words}", str(margin)
    if not margin.gains:
        return Tile(label, "no gain", note)
    value = f"{margin.amount(margin.low)} or more" if margin.high == math.inf else margin.amount(margin.nearest)
    return Tile(label, value, note)


def margin_part(margin: Margin, name: str) -> Section:
    """The figure and what was tried; `name`: of the figure's files."""
    head = [CAUSES[margin.fault].words, "verdict", "cases", "gain kept"]
    if not margin.gains:
        return Section(f"Margin: {head[0]}", [f"{margin}."])
    rows = [
        [margin.amount(p.level), p.verdict, str(p.cases), f"{100 * share:.1f} % ± {100 * half:.1f}"]
        for p, (share, half) in zip(margin.probes, margin.shares, strict=True)
    ]
    shares = "; ".join(f"{row[0]}: {row[3]}, {row[1]}" for row in rows)
    caption = (
        f"{margin}. Bars are the bounds of the tests, jointly correct with 95 %. "
        f"The band is the interval. Mean gain without the fault: {with_unit(f'{margin.gain:.3g}', margin.unit)}."
    )
    picture = Picture(name, margin_figure(margin), caption, f"Share of the gain kept against {head[0]}. {shares}.")
    return Section(f"Margin: {head[0]}", [picture, TextTable("What was tried", head, rows, words=2)])


def margin_figure(margin: Margin) -> Figure:
    """The share of its gain that a policy keeps, by the amount of a fault. Raises ConfigError as `Margin.plot`."""
    if not margin.gains:
        raise ConfigError(f"plot(): {margin}; there is nothing to draw")
    places = np.sqrt([probe.level for probe in margin.probes])
    shares, halves = 100.0 * np.array(margin.shares).T
    with house_style():
        figure, (axes,) = blank(3.6)
        ends = np.sqrt([margin.low, min(margin.high, margin.probes[-1].level)])
        axes.axvspan(*ends, color=PALE, alpha=0.7, linewidth=0, zorder=0.5)
        axes.plot(places, shares, color=INK, linewidth=1.0, zorder=1.5)
        for probe, x, share, half in zip(margin.probes, places, shares, halves, strict=True):
            colour = COLOURS[probe.verdict]
            axes.errorbar(x, share, half, color=colour, fmt="o", markersize=4.5, elinewidth=1.4, capsize=2.5)
        axes.axhline(100.0 * margin.keep, color=INK, linewidth=1.0, linestyle=(0, (5, 3)))
        ticks = apart(places, APART)
        axes.set_xticks(places[ticks], [f"{margin.probes[number].level:g}" for number in ticks])
        cause = CAUSES[margin.fault]
        axes.set_xlabel(f"{cause.words if cause.unit == '1' else f'{cause.words}, {cause.unit}'} (square-root scale)")
        axes.set_ylabel("gain kept, %")
        labels = [(float(shares[-1]), "mean", INK), (100.0 * margin.keep, f"{100 * margin.keep:g} %", INK)]
        end_labels(axes, labels)
        axes.set_title(
            f"Share of its gain that {margin.policy!r} keeps\n(blue: confirmed kept, orange: confirmed lost)"
        )
        return figure
