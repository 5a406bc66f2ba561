"""Algorithms beside each other in a report: performance profiles, and a table of differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from heron_env.lab.figure_style import SERIES, blank, house_style, line_and_band
from heron_env.lab.output import TextTable, with_unit
from heron_env.lab.show.document import Picture, Section
from heron_env.lab.sweep.results import Measurements
from heron_env.lab.sweep.words import comparisons

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THRESHOLDS: Final = 101
HEAD: Final = ("algorithms", "condition", "difference", "probability of improvement", "seeds that are enough")


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


def algorithms_part(result: Measurements, prefix: str = "") -> Section | None:
    """The profiles on the synchronous clock, and every comparison; None where fewer than two policies are pooled."""
    pairs = list(comparisons(result))
    if not pairs:
        return None
    rows = [
        [
            f"{pair.first} - {pair.second}", pair.condition.words, with_unit(pair.difference, result.sweep.unit),
            pair.improvement.percent(), "more cases, too" if pair.enough is None else f"about {pair.enough}",
        ]
        for pair in pairs
    ]  # fmt: skip
    note = "Intervals are 95 % t intervals over training seeds and cases; of shares Wilson's."
    picture = Picture(
        f"{prefix}profiles",
        profile_figure(result),
        "The share of runs and cases that gain at least so much over doing nothing, on the synchronous clock; the "
        "line of a better algorithm lies above. Bands are 95 % intervals, each for itself.",
        f"Performance profiles of {', '.join(dict.fromkeys(n for p in pairs for n in (p.first, p.second)))}.",
    )
    return Section("Algorithms compared", [picture, TextTable("Algorithms compared", HEAD, rows, words=2, note=note)])
