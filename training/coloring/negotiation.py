"""Bars of the negotiation: what cluster agents reach on the study graph under delay and loss."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from heron_env.files import write
from heron_env.lab.figure_style import BLUE, VERMILION, blank, end_labels, house_style, to_svg
from training.coloring.bars import Bar, Found, Setting
from training.coloring.network import DELAYS, POLICIES, SEEDS, cells, remedies, share, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = {"messages 0 s": 0.98, "loss 0.3": 0.90, "messages 1.7 s": 0.85}
"""Share of seeds in which the stable process must reach consensus."""
SLOW = "messages 5 s"
FILE = "network.json.gz"


def measured(setting: Setting) -> dict[str, dict[str, Any]]:
    """Figures by policy and condition: of `network.json.gz` where it has them, which is kept with them."""
    folder, seeds = (setting.scratch, 10) if setting.quick or setting.figures is None else (setting.figures, SEEDS)
    found: dict[str, dict[str, Any]] = {policy: {} for policy in POLICIES}
    for policy, condition, runs in cells(seeds, Path(folder) / FILE):
        found[policy][condition] = runs
    return found


def network(setting: Setting) -> Found:
    """Consensus of the stable process by delay and loss, with its figure."""
    runs = measured(setting)
    stable = {condition: share(found["consensus"]) for condition, found in runs["stable process"].items()}
    if setting.figures is not None:
        write(setting.figures / "network.svg", to_svg(curve(runs), text=True))
    told = ", ".join(
        f"{condition.removeprefix('messages ')} {100 * of['share']:.0f} [{100 * of['low']:.0f}, {100 * of['high']:.0f}]"
        for condition, of in stable.items()
    )
    met = all(stable[condition]["share"] >= least for condition, least in LEAST.items())
    return Found(f"% of {stable['loss 0.3']['n']} seeds: {told}", met, {"stable": stable})


def remedy(setting: Setting) -> Found:
    """The patient process against the stable one under slow messages, the same seeds."""
    runs = measured(setting)
    gain = remedies({policy: {c: {"runs": r} for c, r in found.items()} for policy, found in runs.items()})
    shares = [share(runs[policy][SLOW]["consensus"])["share"] for policy in reversed(POLICIES)]
    words = f"{shares[0]:.2f} instead of {shares[1]:.2f}: {gain[SLOW]['mean']:+.2f} [{gain[SLOW]['low']:+.2f}, "
    return Found(f"{words}{gain[SLOW]['high']:+.2f}] of {gain[SLOW]['n']} seeds", True, gain)


def conflicts_left(setting: Setting) -> Found:
    """At a consensus, all conditions and both processes."""
    told = {
        f"{policy}, {condition}": summary(runs)
        for policy, found in measured(setting).items()
        for condition, runs in found.items()
    }
    left = sum(one["conflicts_at_consensus"] for one in told.values())
    reached = sum(round(one["consensus"]["share"] * one["consensus"]["n"]) for one in told.values())
    return Found(f"{left:g} at {reached} consensuses under {len(told)} conditions", not left, {"reached": reached})


def curve(runs: dict[str, dict[str, Any]]) -> Figure:
    """Consensus by the delay of messages, both processes, with 95 % intervals."""
    with house_style():
        figure, (axes,) = blank(3.2)
        labels = []
        for policy, colour in zip(POLICIES, (VERMILION, BLUE), strict=True):
            shares = [share(runs[policy][f"messages {delay:g} s"]["consensus"]) for delay in DELAYS]
            axes.fill_between(
                DELAYS, [s["low"] for s in shares], [s["high"] for s in shares], color=colour, alpha=0.15, lw=0
            )
            axes.plot(DELAYS, [s["share"] for s in shares], color=colour, marker="o", markersize=3.5)
            labels.append((shares[-1]["share"], policy, colour))
        axes.set_ylim(-0.02, 1.05)
        axes.set_xlabel("delay of messages, s (a turn takes 1 s, everybody's is due each 2 s)")
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        seeds = len(runs[POLICIES[0]]["loss 0.3"]["consensus"])
        axes.set_title(f"Episodes that end in consensus within 120 s ({seeds} seeds, 95 %)")
        end_labels(axes, labels)
        return figure


BARS = (
    Bar(
        "network",
        'G15, `turns="apart"`, consensus of the stable process',
        "≥ 98 %, loss 0.3 ≥ 90 %, 1.7 s ≥ 85 %",
        network,
    ),
    Bar("remedy", "messages of 5 s: patient process - stable process, paired", "difference with interval", remedy),
    Bar("conflicts", "conflicts left at a consensus of cluster agents, all conditions", "0", conflicts_left),
)
