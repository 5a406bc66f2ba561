"""The tables of a sweep: JSON for machines, CSV for spreadsheets, Markdown for people; equal bytes for equal results.

Only `seconds`, the time that was needed, differs from run to run.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heron_env.files.writing import write_all
from heron_env.lab.episodes import TEAM, groups_apart
from heron_env.lab.output import TextTable, as_markdown, dumps
from heron_env.lab.policies import TrainedRun
from heron_env.lab.robust_stats import ENOUGH
from heron_env.lab.sweep.conditions import CAUSES, DISTURBANCES, SYNC, amount_text
from heron_env.lab.sweep.decomposition import Decomposition
from heron_env.lab.sweep.records import TABLES
from heron_env.lab.sweep.results import ELO_K, ELO_START
from heron_env.lab.sweep.sentences import finding, shows_gap

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from heron_env.lab.sweep.results import Measurements, SweepPoint

NONE: Final = "-"
MARK: Final = "*"
FIGURES: Final = (
    "decisions", "requests", "latency_p50_ms", "latency_p99_ms", "error_rate", "timeout_rate", "fallback_rate",
    "circuit_state", "preference_score", "elo_rating", "deterministic",
)  # fmt: skip
"""Columns for spreadsheets."""
ANSWERED: Final = (
    "Answers by origin and code (a fallback decided for the codes with fallback, and for those of a recording with a "
    "code other than CLIPPED). p50, p99: latency over all calls, failed ones included; none were made for recorded "
    "answers. Errors, timeouts, fallback: shares of all answers. Live: an endpoint answered, and may answer "
    "differently in another run; such rows cannot be repeated, and the table does not say whether their runs are "
    "identical. * marks rows with a fallback: their returns are not only the agent's."
)
COMPARED: Final = (
    "Preference: probability that the first policy yields more than the second in the same case, ties counting half; "
    f"Elo: ratings of all policies under the condition, from {ELO_START:g} with K {ELO_K:g}, cases in their order."
)


def mark(point: SweepPoint) -> str:
    """What stands behind a return that is not the agent's alone."""
    return MARK if point.external is not None and point.external.fallback_rate else ""


def percent(share: float | None) -> str:
    """`2.5 %`; a share that is not known is none, never 0."""
    return NONE if share is None else f"{100.0 * share:.3g} %"


def answer_values(result: Measurements, point: SweepPoint) -> dict[str, Any] | None:
    """Of a row for tables that machines read, with its preference to all other policies; what nobody judged is null."""
    if point.external is None:
        return None
    name, condition = point.policy, point.condition
    rating, preference = result.elo(condition).get(name), result.preference(name, condition)
    values = vars(replace(point.external, preference_score=preference, elo_rating=rating))
    return {**values, "deterministic": point.deterministic}


def comparison_values(result: Measurements) -> list[dict[str, Any]]:
    """Of each condition the preferences, pair by pair, and the ratings; nothing for one policy."""
    if len(result.policies) < 2:
        return []
    return [
        {
            "condition": condition.name,
            "preferences": [
                {"policy": a, "rival": b, **result.improvement(a, b, condition).to_dict()}
                for a, b in combinations(result.policies, 2)
            ],
            "elo": result.elo(condition),
        }
        for condition in result.sweep.conditions
    ]


def answer_table(result: Measurements) -> TextTable | None:
    """A row a point; None where no other program plays."""
    rows = [
        [
            point.policy,
            f"{point.condition.name}{mark(point)}",
            ", ".join(f"{origin} {count}" for origin, count in answers.counts.items()),
            *(NONE if ms is None else f"{ms:.3g} ms" for ms in (answers.latency_p50_ms, answers.latency_p99_ms)),
            *map(percent, (answers.error_rate, answers.timeout_rate, answers.fallback_rate)),
            "no" if point.deterministic else "yes",
        ]
        for point in result.points
        if (answers := point.external) is not None
    ]
    head = ["policy", "condition", "answers", "p50", "p99", "errors", "timeouts", "fallback", "live"]
    return TextTable("External agents", head, rows, 3, ANSWERED) if rows else None


def comparison(result: Measurements) -> TextTable | None:
    """A row for each pair and condition; None without an external agent, or without another policy."""
    if not result.external or len(result.policies) < 2:
        return None
    marked = {(p.policy, p.condition): f"{p.policy}{mark(p)}" for p in result.points}
    rows = []
    for condition in result.sweep.conditions:
        ratings = result.elo(condition)
        for a, b in combinations(result.policies, 2):
            better = result.improvement(a, b, condition)
            preference = better.percent() if better.known else f"{100.0 * better.value:.0f} %"
            names = [marked[a, condition], marked[b, condition], condition.name]
            rows.append([*names, preference, *(f"{ratings[name]:.0f}" for name in (a, b))])
    return TextTable(
        "Preference and Elo", ["policy", "against", "condition", "preference", "Elo", "its Elo"], rows, 3, COMPARED
    )


EXACTLY: Final = "exactly"
TIMING: Final = ("seconds",)
"""Columns that are no result."""
COLUMNS, LEAST = 80, 9
"""Letters that a terminal has in a line, and that a condition needs at least."""
FEW: Final = (
    f" (with 5 to {ENOUGH - 1} cases such intervals covered the true mean in 91 to 93 % of simulated studies, with "
    "outliers in 82 to 85 %)"
)
"""Of fewer than `ENOUGH` cases; see `robust_stats`."""
GROUPS: Final = (
    "Sum of the returns of the group's agents, mean over the cases. It is part of the return of {} "
    "only if every reward rule above the group counts its child_rewards, or there is none."
)
NOT_KEPT: Final = (
    ": the root's, as version 0.1.0 counted it: the sum over the deciding agents if the root's reward was 0 at every "
    "step; it stored neither the root's name nor the returns of the groups"
)
EXPLAINED: Final = {
    "return": "mean over the cases (and training seeds)",
    "optimum": "share of the gain of perfect foresight over doing nothing, if that is known",
    "gap": "synchronous return of the same case minus this one, mean over the cases; positive means a loss",
    "worse": "share of the cases with a lower return than on the synchronous clock",
    "equal": f"share with the same return; {EXACTLY}: all runs equal the synchronous ones, bit for bit (computed)",
    "lost": "the gap as a share of the policy's gain over doing nothing, where the interval of that gain lies above 0",
    "age p95": "95th percentile of the age of the observed information, mean over cases and agents",
    "fallback": "share of an external agent's decisions that a fallback made; * marks returns with such decisions",
    "tokens": "tokens of the answers in an episode, mean over the cases",
}
"""Columns for people, in their order, and what they hold."""


def write_tables(result: Measurements, folder: Path) -> None:
    """table.json, table.csv and table.md."""
    texts = (to_json(result), to_csv(result), to_markdown(result))
    write_all({folder / name: text for name, text in zip(TABLES, texts, strict=True)})


def to_json(result: Measurements) -> str:
    """Everything a reader needs to repeat or re-analyse the sweep; nan becomes null."""
    values = {
        **result.sweep.settings(),
        "heron_env": result.made_by,
        "finding": finding(result),
        "rows": [_row(result, point) for point in result.points],
        "decompositions": [decomposition.to_dict() for decomposition in result.decompositions],
        "interactions": [interaction.to_dict() for interaction in result.interactions],
        **({"comparisons": comparison_values(result)} if result.external else {}),
    }
    return dumps(values) + "\n"


def _row(result: Measurements, point: SweepPoint) -> dict[str, Any]:
    return {
        "policy": point.policy,
        "condition": point.condition.name,
        "causes": point.condition.to_dict(),
        "n": len(point.values),
        "values": list(point.values),
        "seeds": len(point.by_run),
        **({"by_run": [list(values) for values in point.by_run]} if len(point.by_run) > 1 else {}),
        "iqm": point.iqm.to_dict(),
        "mean": point.mean.to_dict(),
        "score": point.score,
        "gaps": list(point.gaps),
        "gap": point.gap.to_dict(),
        "shows_gap": shows_gap(result, point),
        "worse": point.worse.to_dict(),
        "equal": point.equal.to_dict(),
        "lost": point.lost.to_dict(),
        "identical": point.identical,
        "kpis": point.kpis,
        **({"by_group": point.by_group} if point.by_group else {}),
        "staleness_p95": point.staleness_p95,
        "latency_p95": point.latency_p95,
        "notes": list(point.notes),
        "seconds": point.seconds,
        **({"tokens": point.tokens} if point.tokens else {}),
        **({"external": answer_values(result, point), "deterministic": point.deterministic} if result.external else {}),
    }


def to_csv(result: Measurements) -> str:
    """One line a point; amounts by cause, empty where something is not known."""
    stream = io.StringIO()
    figures = ("iqm", "mean", "gap", "worse", "equal", "lost")
    heads = [f"{name}{end}" for name in figures for end in ("", "_low", "_high")]
    writer = csv.writer(stream, lineterminator="\n")
    others = ("score", "identical", "staleness_p95", "latency_p95", *TIMING)
    more = FIGURES if result.external else ()
    writer.writerow(["policy", "condition", *CAUSES, DISTURBANCES, "n", "seeds", *heads, *others, *more])
    for point in result.points:
        numbers = [x for name in figures for x in getattr(point, name).to_dict().values()]
        network = [
            "" if point.condition.synchronous else amount_text(getattr(point.condition, cause)) for cause in CAUSES
        ]
        causes = [*network, amount_text(point.condition.disturbances)]
        figures_of = answer_values(result, point) or {}
        values = [*numbers, *(getattr(point, name) for name in others), *(figures_of.get(name) for name in more)]
        sizes = (len(point.values), len(point.by_run))
        writer.writerow([point.policy, point.condition.name, *causes, *sizes, *map(_field, values)])
    return stream.getvalue()


def to_markdown(result: Measurements) -> str:
    """What was found, the table, and the gap by cause."""
    sweep = result.sweep
    title = f"# {as_markdown(sweep.env.id)}: {f'preset {sweep.preset}' if sweep.preset else 'sweep'}"
    table = TextTable(title, headings(result), lines(result), words=2)
    parts = [title, *map(as_markdown, finding(result)), table.to_markdown(), as_markdown(legend(result))]
    for more in more_tables(result):
        parts.append(f"## {as_markdown(more.caption)}\n\n{more.to_markdown()}")
        parts.append(as_markdown(more.note))
    parts += [_by_cause(decomposition) for decomposition in result.decompositions]
    if notes := dict.fromkeys(note for point in result.points for note in point.notes):
        parts.append("Notes:\n" + "\n".join(f"- {as_markdown(note)}" for note in notes))
    return "\n\n".join(parts) + "\n"


def to_rich(result: Measurements) -> Group:
    """For a terminal of 80 columns: a part for each policy, below its name; long conditions are folded."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    names = columns(result)
    rows = {
        heading(result, policy): [{**cells(p), **_short_cells(p)} for p in result.of(policy)]
        for policy in result.sweep.shown
    }
    all_rows = [row for of_policy in rows.values() for row in of_policy]
    widths = {name: max(len(name), *(len(row[name]) for row in all_rows)) for name in ("condition", *names)}
    room = COLUMNS - sum(widths[name] + 1 for name in names)
    widths["condition"] = min(widths["condition"], max(room, LEAST))

    def part(policy: str | None) -> Table:
        table = Table(
            title=policy if policy is None else Text(policy), title_justify="left", title_style="bold",
            show_header=policy is None, box=box.SIMPLE_HEAD, show_edge=False, padding=0,
        )  # fmt: skip
        table.add_column("condition", overflow="fold", width=widths["condition"])
        for name in names:
            table.add_column(name, justify="right", width=widths[name], no_wrap=True)
        for row in [] if policy is None else rows[policy]:
            table.add_row(*(Text(row[name]) for name in ("condition", *names)))
        return table

    extra = [part for grid in more_tables(result, short=True) for part in grid.to_rich()]
    unit = f", {result.sweep.unit}" if result.sweep.unit else ""
    head = Text(f"Mean {return_head(result)}{unit}, {len(result.sweep.cases)} cases")
    return Group(head, part(None), *map(part, rows), *extra)


def more_tables(result: Measurements, *, short: bool = False) -> list[TextTable]:
    """Beside the table: what each group earned, how external agents answered, and who yields more."""
    tables = group_returns(result, only_sync=short), answer_table(result), comparison(result)
    return [table for table in tables if table is not None]


def group_returns(result: Measurements, *, only_sync: bool = False) -> TextTable | None:
    """A row a point; None where every group earns in sum what the root does, or it was not kept."""
    apart = groups_apart([point.earned for point in result.points])
    rows = by_policy(result, lambda p: (p.earned.words(apart), f"{p.mean.value:.2f}"), only_sync=only_sync)
    head = ["policy", "condition", "return of each group", return_head(result)]
    return TextTable("Returns by group", head, rows, 3, GROUPS.format(result.sweep.return_of)) if apart else None


def return_head(result: Measurements) -> str:
    """`return of system_agent`: everything else in the table is made of it."""
    return f"return of {result.sweep.return_of}"


def headings(result: Measurements) -> list[str]:
    """Of `lines`: two of words, then those of numbers."""
    return ["policy", "condition", *(return_head(result) if c == "return" else c for c in columns(result))]


def lines(result: Measurements) -> list[list[str]]:
    """A line a point, for people."""
    names = columns(result)
    return by_policy(result, lambda point: (cells(point)[name] for name in names))


def by_policy(
    result: Measurements, texts: Callable[[SweepPoint], Iterable[str]], *, only_sync: bool = False
) -> list[list[str]]:
    """A line a point: the policy's name where its points begin, the condition, and these texts."""
    return [
        ["" if number else heading(result, policy), point.condition.words, *texts(point)]
        for policy in result.sweep.shown
        for number, point in enumerate(result.of(policy)[: 1 if only_sync else None])
    ]


def heading(result: Measurements, policy: str) -> str:
    """`trained (5 seeds pooled)`."""
    runs = len(result.sweep.members(policy))
    return f"{policy} ({runs} seeds pooled)" if runs > 1 else policy


def legend(result: Measurements) -> str:
    """What the columns hold, and what the intervals are over."""
    unit = f"; returns and gaps in {result.sweep.unit}" if result.sweep.unit else ""
    n, with_optimum = len(result.sweep.cases), sum(case.optimum is not None for case in result.sweep.cases)
    of = {"optimum": f" (for {with_optimum} of {n} cases)"} if with_optimum < n else {}
    if result.sweep.return_of == TEAM:
        of["return"] = NOT_KEPT
    heads = zip(columns(result), headings(result)[2:], strict=True)
    text = "; ".join(f"{head}: {EXPLAINED[name]}{of.get(name, '')}" for name, head in heads)
    return f"{n} case{'s' * (n > 1)}{unit}{intervals_words(result)}. {text}."


def intervals_words(result: Measurements, marks: str = "brackets") -> str:
    """`; brackets are 95 % t intervals over the cases alone ...`, with what they can't say; nothing of one case."""
    n, pools = result.intervals.units, result.sweep.pools
    if n < 2:
        return "; one case has no interval"
    pooled = [name for name in result.sweep.shown if name in pools]
    over = "over the cases alone"
    if pooled:
        rest = f", {over} for the others" if len(pooled) < len(result.sweep.shown) else ""
        over = f"over training seeds and cases for {', '.join(map(repr, pooled))}{rest}"
    single = any(
        isinstance(policy, TrainedRun) and not any(name in members for members in pools.values())
        for name, policy in result.sweep.policies.items()
    )
    seed = "; a trained policy that is not pooled is one training seed: other seeds may differ" if single else ""
    few = FEW if n < ENOUGH else ""
    return f"; {marks} are 95 % t intervals {over}, each for itself{few}{seed}"


def columns(result: Measurements) -> list[str]:
    """Names of the columns; those that hold nothing at all are left out."""
    return [name for name in EXPLAINED if any(cells(point)[name] != NONE for point in result.points)]


def cells(point: SweepPoint) -> dict[str, str]:
    """The texts of a point by column."""
    reference = point.condition == SYNC
    return {
        "return": f"{point.mean}{mark(point)}",
        "optimum": NONE if math.isnan(point.score) else f"{100 * point.score:.0f} %",
        "gap": NONE if reference else point.gap.beside(max(abs(point.mean.value), abs(point.gap.value))),
        "worse": NONE if reference else f"{100 * point.worse.value:.0f} %",
        "equal": NONE if reference else EXACTLY if point.identical else f"{100 * point.equal.value:.0f} %",
        "lost": NONE if reference else point.lost.percent(),
        "age p95": f"{_short(point.staleness_p95)} s" if point.staleness_p95 > 0.0 else NONE,
        "fallback": NONE if point.external is None else percent(point.external.fallback_rate),
        "tokens": f"{point.tokens:.0f}" if point.tokens else NONE,
    }


def _short_cells(point: SweepPoint) -> dict[str, str]:
    """What a terminal has less room for: values alone, and a condition's name."""
    lost = cells(point)["lost"].split(" [")[0]
    return {"condition": point.condition.name, "return": f"{point.mean.value:.2f}{mark(point)}", "lost": lost}


def _by_cause(decomposition: Decomposition) -> str:
    causes = [*(part.words for part in decomposition.parts), "sum"]
    rows = [list(row) for row in zip(causes, decomposition.texts(), strict=True)]
    title = f"{decomposition.policy} under {decomposition.condition.words}: gap by cause, {decomposition.method}"
    over = "seeds and cases" if decomposition.gap.mean.runs > 1 else "cases alone"
    return f"## {as_markdown(title)}\n\n{TextTable(title, ['cause', f'cost [95 %, over {over}]'], rows).to_markdown()}"


def _short(number: float) -> str:
    """Three digits, or all that stand before the point."""
    return f"{number:.3g}" if number < 1000.0 else f"{number:.0f}"


def _field(value: object) -> str:
    """For CSV: as short as it can be read back, empty for what is not known."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value)
