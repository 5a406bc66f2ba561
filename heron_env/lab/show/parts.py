"""The parts of a report: what a sweep, a training, a trace or an environment tells, in words, tables and figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from heron_env.errors import HeronError
from heron_env.lab.benchmark import NOTHING
from heron_env.lab.episodes import Earned, groups_apart
from heron_env.lab.output import TextTable, with_unit
from heron_env.lab.robust_stats import Estimate
from heron_env.lab.runs import RunConfig, RunFolder
from heron_env.lab.show.description import (
    BY,
    HEADING,
    Description,
    SightLine,
    clock_words,
    describe_environment,
    sight_lines,
)
from heron_env.lab.show.document import Block, Listing, Picture, Section
from heron_env.lab.show.figures import METHODS, learning_figure, product_figure, sweep_figure, waterfall_figure
from heron_env.lab.show.tree import hierarchy_figure
from heron_env.lab.sweep.conditions import CAUSES, IDEAL, Condition
from heron_env.lab.sweep.decomposition import Decomposition
from heron_env.lab.sweep.results import SweepPoint
from heron_env.lab.sweep.study import Item
from heron_env.lab.sweep.sweep import SweepResult
from heron_env.lab.sweep.tables import heading, headings, intervals_words, legend, lines, more_tables, return_head
from heron_env.lab.sweep.words import shows_gap
from heron_env.lab.traces.episode import Episode
from heron_env.lab.traces.lanes import lanes
from heron_env.lab.traces.timeline import MOST_AGENTS, NS, draw, legible
from heron_env.registry import EnvironmentSpec
from heron_env.trust import on_behalf_of

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.scheduling.timing import Schedule

MOST_LINES = 60
HIERARCHY = "Hierarchy and visibility"


def environment_part(
    env_id: str,
    options: Mapping[str, Any],
    schedule: Callable[[HeronEnv], Schedule] | None = None,
    timing: str = "as the environment has them",
) -> Section:
    """Tree with rates and delays (of `schedule`, which `timing` names), visibility as a picture and as a table."""
    described, matrix = describe_environment(env_id, dict(options), schedule)
    lines = list(sight_lines(described))
    return Section(
        HIERARCHY,
        [
            _hierarchy(described, timing),
            Picture(
                "who_sees_what",
                matrix.plot(title="Who sees what"),
                f"Which quantities each observer sees, by {BY[described.seen.by]}. The last row is the central critic, "
                "which is used in training only; actors do not see these.",
                f"Matrix of observers and quantities. {_sight_words(lines)}",
            ),
            TextTable("Who sees what, as a table", HEADING, lines[:MOST_LINES], words=len(HEADING), folded=True),
        ],
    )


def _hierarchy(d: Description, timing: str) -> Picture:
    deciding = [agent.id for agent in d.agents if agent.role == "decides"]
    names = ", ".join(f"{a.id} below {a.parent}" if a.parent else a.id for a in d.agents[:12])
    counted = f"{len(deciding)} of {len(d.agents)} agents decide"
    return Picture(
        "hierarchy",
        hierarchy_figure(d),
        f"The hierarchy: {counted} (blue); the others command, obey or watch. Ticks and delays {timing}.",
        f"Tree of agents, {counted}; {clock_words(d)}. {names}{', and more' if len(d.agents) > 12 else ''}.",
    )


def _sight_words(lines: list[SightLine], most: int = 8) -> str:
    texts = [" ".join(part for part in (f"{x.observers} sees of {x.owners}:", x.what, x.how) if part) for x in lines]
    return "; ".join(texts[:most]) + (
        f"; and {len(texts) - most} more lines in the table" if len(texts) > most else "."
    )


def training_part(run: RunFolder, name: str = "learning") -> Section:
    """A curve for each group. Raises RunFolderError where progress.csv is missing."""
    rows, config = [row for row in run.curve() if math.isfinite(float(row["validation_return"]))], run.config
    curves = [[row for row in rows if row["group"] == group] for group in config.groups]
    drawn = [
        _learning(run, group, curve, name if len(curves) == 1 else f"{name}-{group.replace(':', '_')}")
        for group, curve in zip(config.groups, curves, strict=True)
        if len(curve) > 1
    ]
    return Section(
        "Training", drawn or ["The run folder has no learning curve, because the training had no validations."]
    )


def training_facts(run: RunFolder) -> dict[str, str]:
    """What was trained on what, in words."""
    config = run.config
    scores = sorted(config.validation.items(), key=lambda item: -item[1])
    late = "" if config.training_delays is None else f", {config.training_delays}"
    late += "" if config.schedule is None else f", on the event clock under {config.schedule}"
    options = ", ".join(f"{name} {value}" for name, value in config.training_options.items()) or "of the environment"
    rule = "decides alone" if config.base is None else f"corrects {config.base!r}"
    return {
        "Training": (
            f"{config.algorithm.upper()} with a {config.critic} critic, seed {config.seed}, {config.transitions:,} "
            f"transitions in {config.seconds:.0f} s, training options {options}{late}; it {rule}. "
            "One training seed."
        ),
        "Validation": (
            f"Mean return of {config.return_of} with the training options: "
            f"{', '.join(f'{n} {x:.2f}' for n, x in scores)}.{_by_group(config)}"
        ),
    }


def _by_group(config: RunConfig) -> str:
    """What each group earned in sum, where that is not what the root did."""
    kept = config.validation_by_group
    earned = {name: Earned(root, kept[name]) for name, root in config.validation.items() if name in kept}
    apart = groups_apart([*earned.values()])
    text = "; ".join(f"{name}: {each.words(apart)}" for name, each in earned.items())
    return f" In sum by group: {text}." if apart else ""


def _learning(run: RunFolder, group: str, rows: list[dict[str, str]], name: str) -> Picture:
    config = run.config
    points = [(float(row["transitions"]), float(row["validation_return"])) for row in rows]
    own = [(x, float(row.get("group_return", "nan"))) for (x, _), row in zip(points, rows, strict=True)]
    both = [Earned(root, {group: mine}) for (_, root), (_, mine) in zip(points, own, strict=True)]
    apart = groups_apart(both) and all(math.isfinite(mine) for _, mine in own)
    names = [policy for policy in (NOTHING, config.base) if policy in config.validation]
    others = [policy for policy in config.validation if policy != "trained"]
    best = [max(others, key=lambda policy: config.validation[policy])] if others else []
    levels = {policy: config.validation[policy] for policy in dict.fromkeys([*names, *best]) if policy is not None}
    with_step = f" at dt = {config.training_options['dt']:g} s" if "dt" in config.training_options else ""
    of_group = f" of {group}" if len(config.groups) > 1 else ""
    return Picture(
        name,
        learning_figure(
            points,
            levels,
            own if apart else (),
            x_label="transitions",
            y_label=training_unit(run) or "return",
            titles=(f"Learning curve: return of {config.return_of}", f"Sum of the returns of {group}"),
        ),
        f"Training{of_group} took {config.seconds:.0f} s and {config.transitions:,} transitions{with_step}, "
        f"with seed {config.seed}: mean return of {config.return_of} under the deterministic policy on validation "
        f"cases, which neither training nor the tables use.{f' Below, the sum of those of {group}.' if apart else ''}",
        f"Learning curve{of_group}: return of {config.return_of} from {points[0][1]:.1f} to {points[-1][1]:.1f}; "
        + (f"{group} in sum from {own[0][1]:.1f} to {own[-1][1]:.1f}; " if apart else "")
        + ", ".join(f"{policy} {level:.1f}" for policy, level in levels.items()),
    )


def training_unit(run: RunFolder) -> str:
    """For a label alone; "" of an environment that can't be built here."""
    try:
        return run.make().benchmark().unit
    except HeronError:
        return ""


READING = (
    "Lines are messages, bars are waiting and acting. `heron trace` writes the whole episode, with every message and "
    "the age of information, for ui.perfetto.dev."
)


def trace_part(
    episode: Episode, window: tuple[float, float] | None = None, *, about: str = "", name: str = "timeline"
) -> Section:
    """`window` (s) of the episode, or as much as is legible; `about`: why this one is shown."""
    start, end = legible(episode, window)
    agents, last = len(episode.world.agents), episode.outcome.end_time
    some = f", and the first {MOST_AGENTS} of {agents} agents" if agents > MOST_AGENTS else ""
    counts = ", ".join(f"{count} {fate}" for fate, count in episode.counts.items())
    summary = f"It shows {start / NS:g} to {end / NS:g} s of {last:g} s{some}. Messages: {counts}."
    ages = [age.oldest for agent in episode.world.decides for age in episode.ages(agent) if start <= age.t <= end]
    oldest = f"The oldest value in an observation was {max(ages):.4g} s old when it arrived." if ages else ""
    words = " ".join(text for text in (about, READING, summary, oldest) if text)
    return Section(
        "How an event-driven run works",
        [Picture(name, draw(episode, window), words, f"Timeline of {', '.join(lanes(episode))}. {summary} {oldest}")],
    )


CURVE, ALONE = 3, 2
"""Amounts of a cause from which on it gets a figure of its own; of the only cause there is."""
FEW = 2
"""Causes that are named one by one."""
UNTOLD: Final = "no amount is distinguishable from zero, or it is negligible"

EVERY_SWEEP: Final = {
    "Held out": "Cases that are not used in training.",
    "Network": (
        "A condition replaces the environment's own delays, jitter and loss; what it does not name is ideal. Ticks are "
        "the environment's own. Delays are rounded down to whole physics substeps."
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
    rows = [
        ["" if number else heading(result, policy), point.condition.words, *(f"{point.kpis[k]:.4g}" for k in names)]
        for policy in result.sweep.shown
        for number, point in enumerate(result.of(policy))
    ]
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


def sweep_notes(result: SweepResult) -> list[Listing]:
    """Notes of the clock on delays that have no effect."""
    notes = list(dict.fromkeys(note for point in result.points for note in point.notes))
    return [Listing(notes)] if notes else []


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
        sweep_figure(result, cause),
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
        product_figure(result, policy, cause, by),
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
        waterfall_figure(decomposition, unit),
        f"The gap of {where} by cause ({METHODS[decomposition.method]}). Each bar starts at the end of the previous "
        f"one{_thin(gap)}. A bar to the left raises the return.{flat}",
        f"Waterfall of {where}: {text}; all together {with_unit(f'{gap.value:.2f}', unit)} less than synchronous.",
    )
