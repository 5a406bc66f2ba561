"""What a report says of sweeps: tiles, figures with their captions, tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from heron_env.errors import HeronError
from heron_env.lab.output import EARNS, TextTable, Tile, with_unit
from heron_env.lab.robust_stats import Estimate
from heron_env.lab.show import figures
from heron_env.lab.show.document import Block, Picture, Section
from heron_env.lab.sweep.conditions import CAUSES, IDEAL, Condition
from heron_env.lab.sweep.decomposition import Decomposition
from heron_env.lab.sweep.results import Measurements, SweepPoint
from heron_env.lab.sweep.sentences import NEGLIGIBLE, UNCLEAR, Changes, Level, comparisons, shows_gap
from heron_env.lab.sweep.study import Item
from heron_env.lab.sweep.sweep import SweepResult
from heron_env.lab.sweep.tables import by_policy, headings, intervals_words, legend, lines, more_tables, return_head
from heron_env.registry import EnvironmentSpec
from heron_env.trust import on_behalf_of

COSTS: Final = "The network costs it"


def sweep_verdict(result: Measurements) -> list[Tile]:
    """What the first policy earns, what the network costs it, and its difference to the nearest other policy.

    Where these cases can't tell a cost or a difference from none, the tile says so.
    """
    policy, unit = result.policies[0], result.sweep.unit
    level, changes = Level(result, policy), Changes(result, policy)
    share = f"; {level.foresight}" if level.foresight else ""
    none = f"; {level.no_gain.removesuffix('.')}" if level.no_gain else ""
    tiles = [_tile(EARNS, level.sync, unit, f"{policy!r} on {level.cases}, synchronous clock{share}{none}")]
    if changes.costs:
        tiles.append(_cost_tile(changes, unit))
    if level.against:
        other, more = min(level.against, key=lambda pair: pair[1].value)
        apart = "" if more.excludes_zero else f"; {UNCLEAR}"
        tiles.append(_tile(f"Difference to {other!r}", more, unit, f"synchronous clock{apart}"))
    return tiles


def _cost_tile(changes: Changes, unit: str) -> Tile:
    largest, kind, none = changes.largest, changes.kind, "no cost found"
    under = f"under {largest.condition}"
    if kind == "no interval":
        return _tile(COSTS, largest.gap, unit, f"{under}; one case, so no claim")
    if kind == "no gap" and changes.of_gain:
        return Tile(COSTS, "next to nothing", f"less than {100 * NEGLIGIBLE:g} % of its gain in {changes.conditions}")
    if kind == "no gap":
        return Tile(COSTS, "nothing", f"no change in {changes.conditions}")
    if changes.lowers:
        share = f"{largest.lost.percent()} of its gain, " if largest.lost.known else ""
        among = "among " if changes.rivals else ""
        rank = f", {among}the largest of {changes.conditions}" if len(changes.costs) > 1 else ""
        return _tile(COSTS, largest.gap, unit, f"{share}{under}{rank}")
    if changes.raised is not None:
        return Tile(COSTS, none, f"the return is higher under {changes.raised}")
    return Tile(COSTS, none, f"the largest is {UNCLEAR}, or negligible: {largest}")


def _tile(label: str, mean: Estimate, unit: str, note: str) -> Tile:
    """The mean in large figures, its interval below them."""
    figure, _, interval = str(mean).partition(" ")
    return Tile(label, with_unit(figure, unit), f"{note}; 95 % interval {interval}" if interval else note)


CURVE, ALONE = 3, 2
"""Amounts of a cause from which on it gets a figure of its own; of the only cause there is."""
FEW = 2
"""Causes that are named one by one."""
UNTOLD: Final = "no amount is distinguishable from zero, or it is negligible"

EVERY_SWEEP: Final = {
    "Held out": "Cases that are not used in training.",
    "Network": (
        "A condition replaces the environment's own delays, jitter and loss; what it does not name is ideal. Ticks are "
        "the environment's own. Delays are rounded down to whole physics substeps. Jitter alone is left out: it scales "
        "delays, so without one it changes nothing; what it adds to delays is part of the interaction."
    ),
    "Pairs": (
        "All conditions use the same random draws in the same case, so a difference is caused by the condition. "
        "Intervals are 95 % t intervals, each for itself: over training seeds and cases if seeds are pooled, else over "
        "the cases alone. Then other training seeds may differ."
    ),
}
"""How each one is done."""


def gap_part(result: SweepResult, prefix: str = "") -> Section:
    """A figure for each cause that was varied, and the table."""
    wrong = {cause for condition in result.sweep.conditions for cause in condition.causes}
    least = ALONE if len(wrong) == 1 else CURVE
    causes = [cause for cause in CAUSES if len(result.along(result.policies[0], cause)) >= least]
    pictures = [_curve(result, cause, prefix) for cause in causes]
    pictures += [_product(result, policy, *pair, prefix) for pair in _products(result) for policy in result.policies]
    grid = TextTable("Policies under conditions", headings(result), lines(result), words=2, note=legend(result))
    return Section("Return under the network", [*pictures, grid, *more_tables(result), *_counted(result)])


def _counted(result: SweepResult) -> list[TextTable]:
    """What the environment itself counts, its kpis(), for each policy and condition; none where it counts nothing."""
    names = list(result.points[0].kpis)
    rows = by_policy(result, lambda point: (f"{point.kpis[name]:.4g}" for name in names))
    text = "Values at the end of each episode, mean over the cases."
    return [TextTable("Figures of the environment", ["policy", "condition", *names], rows, 2, text)] if names else []


def causes_part(result: SweepResult, prefix: str = "") -> Section | None:
    """A waterfall for each policy and method; None where the sweep has no conditions for one."""
    blocks: list[Block] = []
    for part in result.decompositions:
        number = f"{len(blocks) + 1}" if blocks else ""
        blocks.append(_waterfall(part, result.sweep.unit, f"{prefix}causes{number}"))
    return Section("Causes of the gap", blocks) if blocks else None


def sweep_facts(result: SweepResult) -> dict[str, str]:
    """What was run."""
    sweep = result.sweep
    return {
        "Sweep": f"{f'preset {sweep.preset}, ' if sweep.preset else ''}{len(sweep.conditions)} conditions, "
        f"{len(sweep.cases)} held-out cases ({'; '.join(map(str, sweep.cases))}), control step {sweep.dt:g} s.",
        "Options": ", ".join(f"{name} {value}" for name, value in sweep.options.items()) or "the environment's own",
    }


def sweep_notes(result: SweepResult) -> list[str]:
    """Notes of the clock on delays that have no effect."""
    return list(dict.fromkeys(note for point in result.points for note in point.notes))


def held_out_words(env: EnvironmentSpec, options: dict[str, Any]) -> str:
    """What the environment says of its held-out cases; "" of one that can't be built here."""
    try:
        env.require_trust()
        with on_behalf_of(env.named_by):
            return env.make(**options).benchmark().held_out
    except HeronError:
        return ""


def widest(results: Sequence[SweepResult]) -> Condition:
    """The condition with most causes."""
    return max((c for result in results for c in result.sweep.conditions), key=lambda condition: len(condition.causes))


def subject(result: SweepResult) -> str:
    """What a sweep is about: its preset, or what was varied."""
    causes = dict.fromkeys(cause for condition in result.sweep.conditions for cause in condition.causes)
    text = ", ".join(CAUSES[cause].words if cause in CAUSES else cause for cause in causes)
    return result.sweep.preset or (text if len(causes) <= FEW else f"{len(causes)} causes")


def look_at(result: SweepResult, point: SweepPoint) -> Item:
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
    texts, unaffected = [], []
    for policy in result.policies:
        points = result.along(policy, cause)
        texts += [f"{policy}, {CAUSES[cause].words} {amount:g}: {p.mean.value:.2f}" for amount, p in points]
        if not any(shows_gap(result, p) for _, p in points if p.condition != IDEAL):
            unaffected.append(policy)
    bands = intervals_words(result, "bands")
    flat = f" No clear gap for {', '.join(map(repr, unaffected))}: {UNTOLD}." if unaffected else ""
    return Picture(
        f"{prefix}{cause}",
        figures.sweep_figure(result, cause),
        f"The {return_head(result)} against {CAUSES[cause].words} alone{bands}. Dots are "
        f"single cases. Below: the gap of the same case; above 0 the network costs something.{flat}",
        f"R{return_head(result)[1:]} against {CAUSES[cause].words}. {'; '.join(texts)}.",
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
    texts = [
        f"{p.condition.words}: {p.mean.value:.2f}" for p in result.of(policy) if set(p.condition.causes) == {cause, by}
    ]
    return Picture(
        f"{prefix}{cause}_by_{by}{among + 1 if among else ''}",
        figures.product_figure(result, policy, cause, by),
        f"Return of {result.sweep.return_of} by {policy!r} against {CAUSES[cause].words} under several amounts of "
        f"{CAUSES[by].words}; bands and lines as above.",
        f"R{return_head(result)[1:]} by {policy}, against {CAUSES[cause].words} by {CAUSES[by].words}. "
        f"{'; '.join(texts)}.",
    )


def _thin(gap: Estimate) -> str:
    over = "training seeds and cases" if gap.runs > 1 else "the cases alone"
    return f"; thin lines are 95 % t intervals over {over}" if gap.known else ""


def _waterfall(decomposition: Decomposition, unit: str, name: str) -> Picture:
    text = ", ".join(f"{part.words} {part.mean.value:.2f}" for part in decomposition.parts)
    gap, where = decomposition.gap.mean, f"{decomposition.policy!r} under {decomposition.condition.words}"
    flat = "" if gap.excludes_zero or not gap.known else " The whole gap is not distinguishable from zero."
    return Picture(
        name,
        figures.waterfall_figure(decomposition, unit),
        f"The gap of {where} by cause ({figures.METHODS[decomposition.method]}). Each bar starts at the end of the "
        f"previous one{_thin(gap)}. A bar to the left raises the return.{flat}",
        f"Waterfall of {where}: {text}; all together {with_unit(f'{gap.value:.2f}', unit)} less than synchronous.",
    )


HEAD: Final = ("algorithms", "condition", "difference", "probability of improvement", "seeds that are enough")


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
        figures.profile_figure(result),
        "The share of runs and cases that gain at least so much over doing nothing, on the synchronous clock; the "
        "line of a better algorithm lies above. Bands are 95 % intervals, each for itself.",
        f"Performance profiles of {', '.join(dict.fromkeys(n for p in pairs for n in (p.first, p.second)))}.",
    )
    return Section("Algorithms compared", [picture, TextTable("Algorithms compared", HEAD, rows, words=2, note=note)])
