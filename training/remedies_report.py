"""The remedy study's statistics, table and figure: see remedies.py."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.lab import Estimate, Intervals
from heron_env.lab.figure_style import BLUE, GREY, VERMILION, house_style, to_svg

RULE = "rule"
"""Names of the rule's remedies begin so."""
REFERENCE = "rule, tuned"
"""With constants for the condition; what all are compared with there."""
COLUMNS = (
    "policy", "seeds", "return, sync", "return, {}", "share of its gap closed [95 %]",
    "more than the tuned rule there [95 %]", "cost at sync [95 %]",
)  # fmt: skip
Floats = NDArray[np.float64]
Returns = dict[str, Any]
"""By condition, `[seed][day]`; which "seeds" these are."""


@dataclass(frozen=True)
class Line:
    """One policy in one condition: EUR a day, shares as fractions.

    Attributes:
        naive: is it what the others of its kind are compared with?
        gap: of the naive policy of its kind, J(sync) - J(condition).
        share: of that gap; None: where there is none to close.
        more: than the rule that is tuned for the condition earns there, paired by day; None: it is that, or was not
            measured.
        cost: J_naive(sync) - J(sync).
    """

    control: str
    condition: str
    name: str
    naive: bool
    seeds: int
    sync: float
    there: float
    gap: Estimate
    share: Estimate | None
    more: Estimate | None
    cost: Estimate


def closed(make: Intervals, own: Floats, sync: Floats, there: Floats) -> Estimate | None:
    """Share of a gap that is closed, all `[seeds, days]`; None where the gap's interval reaches 0."""
    share = make.share(own - there, sync - there)
    return share if share.known else None


def line(control: str, condition: str, name: str, table: dict[str, Returns], naive: str) -> Line:
    """What a policy does in a condition, against the naive one of the same seeds and days, and the tuned rule."""
    own_sync, own = np.array(table[name]["sync"]), np.array(table[name][condition])
    pairs = [table[naive]["seeds"].index(seed) for seed in table[name]["seeds"]]
    sync, there = np.array(table[naive]["sync"])[pairs], np.array(table[naive][condition])[pairs]
    tuned = f"{REFERENCE} for {condition}"
    make = Intervals(range(own.shape[1]))
    return Line(
        control, condition, name.removesuffix(f" for {condition}"), name == naive, len(pairs),
        float(own_sync.mean()), float(own.mean()),
        gap=make.mean(sync - there),
        share=closed(make, own, sync, there),
        more=None if name == tuned or tuned not in table else make.difference(own, np.array(table[tuned][condition])),
        cost=make.mean(sync - own_sync),
    )  # fmt: skip


def lines(results: dict[str, dict[str, Returns]], against: dict[str, str]) -> list[Line]:
    """Of all policies in all conditions; `against`: the naive one of each."""
    return [
        line(control, condition, name, table, against[name])
        for control, table in results.items()
        for condition in dict.fromkeys(c for returns in table.values() for c in returns if c not in ("sync", "seeds"))
        for name, returns in table.items()
        if condition in returns and against[name] in table
    ]


def markdown(found: list[Line], intro: str) -> str:
    """The tables, one for each control and condition."""
    text = [intro]
    for control, condition in dict.fromkeys((one.control, one.condition) for one in found):
        rows = [one for one in found if (one.control, one.condition) == (control, condition)]
        head = [column.format(condition) for column in COLUMNS]
        text += [f"\n## {control} control, {condition}\n", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
        text += [f"| {' | '.join(_cells(one))} |" for one in rows]
    return "\n".join(text) + "\n"


def _cells(one: Line) -> list[str]:
    share = f"naive; its gap: {one.gap}" if one.naive else percent(one.share)
    more = "" if one.more is None else str(one.more)
    return [
        one.name,
        str(one.seeds),
        f"{one.sync:.2f}",
        f"{one.there:.2f}",
        share,
        more,
        "" if one.naive else str(one.cost),
    ]


def percent(share: Estimate | None) -> str:
    """`57 % [48, 66]`."""
    if share is None:
        return "no gap to close"
    mean, low, high = (round(100 * x) for x in (share.value, share.low, share.high))
    return f"{mean} % [{low}, {high}]"


def figure(found: list[Line], conditions: dict[str, str]) -> bytes:
    """SVG: what each policy earns more than the tuned rule, a panel for each condition; `conditions`: their titles."""
    from matplotlib.figure import Figure

    controls = list(dict.fromkeys(one.control for one in found))
    names = list(dict.fromkeys(one.name for one in found if one.more is not None))
    names.sort(key=lambda name: [name.startswith(kind) for kind in ("PPO", "MPC", RULE)])
    with house_style():
        drawn = Figure(figsize=(8.6, 0.7 + len(controls) * (0.5 + 0.27 * len(names))), layout="constrained")
        panels = drawn.subplots(len(controls), len(conditions), squeeze=False, sharex=True, sharey=True)
        for row, control in zip(panels, controls, strict=True):
            for axes, (condition, title) in zip(row, conditions.items(), strict=True):
                own = [one for one in found if (one.control, one.condition) == (control, condition)]
                if own and names:  # of the reference alone there is nothing to compare
                    _panel(axes, own, names)
                    axes.set_title(f"{control}, {title}")
                else:
                    axes.set_axis_off()
        drawn.supxlabel("EUR a day more than the rule that is tuned for the condition, 95 % intervals", fontsize=10.0)
        return to_svg(drawn, text=True)


def _panel(axes: Any, own: list[Line], names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.axvline(0.0, color=GREY, linewidth=1.2)
    for one in own:
        if (more := one.more) is not None:
            y, colour = names.index(one.name), VERMILION if one.name.startswith(RULE) else BLUE
            axes.plot([more.low, more.high], [y, y], color=colour)
            axes.plot([more.value], [y], "o", color=colour, markersize=5)


def as_json(found: list[Line]) -> list[dict[str, Any]]:
    """For the JSON file."""

    def pair(x: Estimate | None) -> dict[str, float] | None:
        return None if x is None else {"mean": x.value, "low": x.low, "high": x.high}

    return [
        {"control": o.control, "condition": o.condition, "policy": o.name, "naive": o.naive, "seeds": o.seeds,
         "sync": o.sync, "there": o.there, "gap": pair(o.gap), "share_closed": pair(o.share),
         "more_than_tuned_rule": pair(o.more), "cost_at_sync": pair(o.cost)}
        for o in found
    ]  # fmt: skip
