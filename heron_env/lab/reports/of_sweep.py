"""The parts of a report on a sweep: what survives each condition, and what causes the gap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from heron_env.lab.cause_figures import METHODS, waterfall_figure
from heron_env.lab.figures import product_figure, sweep_figure
from heron_env.lab.gap.conditions import CAUSES, IDEAL, Condition
from heron_env.lab.gap.decomposition import Decomposition
from heron_env.lab.gap.records import Item
from heron_env.lab.gap.results import Point, SweepResult
from heron_env.lab.gap.tables import heading, headings, intervals_told, legend, lines, more_tables, return_head
from heron_env.lab.gap.words import shows_gap
from heron_env.lab.reports.document import Block, Grid, Listing, Part, Picture
from heron_env.lab.robust_stats import Estimate

CURVE, ALONE = 3, 2
"""Amounts of a cause from which on it gets a figure of its own; of the only cause there is."""
FEW = 2
"""Causes that are named one by one."""
UNTOLD: Final = "these cases can't tell any amount from none, or what they tell is negligible"

EVERY_SWEEP: Final = {
    "Held out": (
        "Cases that training has not seen. Where the environment has days, what is held out is weather and seeds: the "
        "shapes of the loads nearly repeat from day to day."
    ),
    "Network": (
        "A condition says all of it: what it does not name is ideal, and only ticks are the environment's own. Delays "
        "are rounded down to whole physics substeps."
    ),
    "Pairs": (
        "Cases share every random draw that two conditions both make, so differences are those of the condition. "
        "Intervals are 95 % t intervals, each for itself: over training seeds and cases where seeds are pooled, else "
        "over the cases alone, and then they say nothing about other training seeds."
    ),
}
"""How each one is done."""


def gap_part(result: SweepResult, prefix: str = "") -> Part:
    """A figure for each cause that was varied, and the table."""
    wrong = {cause for condition in result.sweep.conditions for cause in condition.causes}
    least = ALONE if len(wrong) == 1 else CURVE
    causes = [cause for cause in CAUSES if len(result.along(result.policies[0], cause)) >= least]
    pictures = [_curve(result, cause, prefix) for cause in causes]
    pictures += [_product(result, policy, *pair, prefix) for pair in _products(result) for policy in result.policies]
    grid = Grid("Policies under conditions", headings(result), lines(result), words=2, note=legend(result))
    beside = [Grid(told.caption, told.head, told.rows, told.words, told.note) for told in more_tables(result)]
    return Part("What survives the network", [*pictures, grid, *beside, *_counted(result)])


def _counted(result: SweepResult) -> list[Grid]:
    """What the environment itself counts, its kpis(), for each policy and condition; none where it counts nothing."""
    names = list(result.points[0].kpis)
    rows = [
        ["" if number else heading(result, policy), point.condition.words, *(f"{point.kpis[k]:.4g}" for k in names)]
        for policy in result.sweep.shown
        for number, point in enumerate(result.of(policy))
    ]
    told = "Means over the cases, each at the end of its episode."
    return [Grid("What the environment counts", ["policy", "condition", *names], rows, 2, told)] if names else []


def causes_part(result: SweepResult, prefix: str = "") -> Part | None:
    """A waterfall for each policy and method; None where the sweep has no conditions for one."""
    blocks: list[Block] = []
    for found in result.decompositions:
        number = f"{len(blocks) + 1}" if blocks else ""
        blocks.append(_waterfall(found, result.sweep.unit, f"{prefix}causes{number}"))
    return Part("What causes the gap", blocks) if blocks else None


def sweep_facts(result: SweepResult) -> dict[str, str]:
    """What was run."""
    sweep = result.sweep
    return {
        "Sweep": f"{f'preset {sweep.preset}, ' if sweep.preset else ''}{len(sweep.conditions)} conditions, "
        f"{len(sweep.cases)} held-out cases ({'; '.join(map(str, sweep.cases))}), control step {sweep.dt:g} s.",
        "Options": ", ".join(f"{name} {value}" for name, value in sweep.options.items()) or "the environment's own",
    }


def sweep_notes(result: SweepResult) -> list[Listing]:
    """What the clock says about delays that can't show."""
    notes = list(dict.fromkeys(note for point in result.points for note in point.notes))
    return [Listing(notes)] if notes else []


def widest(results: Sequence[SweepResult]) -> Condition:
    """The condition with most causes."""
    return max((c for result in results for c in result.sweep.conditions), key=lambda condition: len(condition.causes))


def subject(result: SweepResult) -> str:
    """What a sweep is about: its preset, or what was varied."""
    causes = dict.fromkeys(cause for condition in result.sweep.conditions for cause in condition.causes)
    told = ", ".join(CAUSES[cause].words if cause in CAUSES else cause for cause in causes)
    return result.sweep.preset or (told if len(causes) <= FEW else f"{len(causes)} causes")


def look_at(result: SweepResult, point: Point) -> Item:
    """The case of this point whose gap is nearest to its mean; of a pool the first training seed."""
    sweep, name = result.sweep, point.policy
    number = int(np.argmin(np.abs(np.array(point.gaps) - point.gap.value)))
    run = sweep.members(name)[0]
    return Item(
        sweep.env,
        sweep.options,
        run,
        sweep.policies[run],
        number,
        sweep.cases[number],
        point.condition,
        not point.deterministic,
    )


def _curve(result: SweepResult, cause: str, prefix: str) -> Picture:
    told, quiet = [], []
    for policy in result.policies:
        found = result.along(policy, cause)
        told += [f"{policy}, {CAUSES[cause].words} {amount:g}: {p.mean.value:.2f}" for amount, p in found]
        if not any(shows_gap(result, p) for _, p in found if p.condition != IDEAL):
            quiet.append(policy)
    bands = intervals_told(result, "bands")
    flat = f" No gap to be told for {', '.join(map(repr, quiet))}: {UNTOLD}." if quiet else ""
    return Picture(
        f"{prefix}{cause}",
        sweep_figure(result, cause),
        f"The {return_head(result)} against {CAUSES[cause].words} alone{bands}. Dots are "
        f"the cases themselves; below, differences of the same case.{flat}",
        f"R{return_head(result)[1:]} against {CAUSES[cause].words}. {'; '.join(told)}.",
    )


def _products(result: SweepResult) -> list[tuple[str, str]]:
    """Pairs of causes that were varied together, the one with more amounts first."""
    pairs = Counter(tuple(c.causes) for c in result.sweep.conditions if len(c.causes) == 2)
    varied = [pair for pair, count in pairs.items() if count > CURVE]

    def amounts(cause: str) -> int:
        return len({getattr(c, cause) for c in result.sweep.conditions})

    return [(a, b) if amounts(a) >= amounts(b) else (b, a) for a, b in varied]


def _product(result: SweepResult, policy: str, cause: str, by: str, prefix: str) -> Picture:
    among = result.policies.index(policy)
    told = [
        f"{p.condition.words}: {p.mean.value:.2f}" for p in result.of(policy) if set(p.condition.causes) == {cause, by}
    ]
    return Picture(
        f"{prefix}{cause}_by_{by}{among + 1 if among else ''}",
        product_figure(result, policy, cause, by),
        f"What {policy!r} earns {result.sweep.return_of} against {CAUSES[cause].words} under several amounts of "
        f"{CAUSES[by].words}; bands and lines as above.",
        f"R{return_head(result)[1:]} by {policy}, against {CAUSES[cause].words} by {CAUSES[by].words}. "
        f"{'; '.join(told)}.",
    )


def _thin(gap: Estimate) -> str:
    over = "training seeds and cases" if gap.runs > 1 else "the cases alone"
    return f"; thin lines are 95 % t intervals over {over}" if gap.known else ""


def _waterfall(found: Decomposition, unit: str, name: str) -> Picture:
    told = ", ".join(f"{part.words} {part.mean.value:.2f}" for part in found.parts)
    gap, whose = found.gap.mean, f"{found.policy!r} under {found.condition.words}"
    flat = "" if gap.excludes_zero or not gap.known else " These cases can't tell the whole gap from none."
    return Picture(
        name,
        waterfall_figure(found, unit),
        f"The gap of {whose} by cause ({METHODS[found.method]}), each bar from where the one before ended"
        f"{_thin(gap)}. Steps to the left give something "
        f"back.{flat}",
        f"Waterfall of {whose}: {told}; all together {gap.value:.2f} {unit} less than synchronous.",
    )
