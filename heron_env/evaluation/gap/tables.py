"""The tables of a sweep: JSON for machines, CSV for spreadsheets, Markdown for people; equal bytes for equal results.

Only `seconds`, the time that was needed, differs from run to run.
"""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heron_env.evaluation.gap.conditions import CAUSES, DISTURBANCES, SYNC, shown
from heron_env.evaluation.gap.decomposition import Decomposition
from heron_env.evaluation.gap.words import finding, shows_gap
from heron_env.evaluation.table import dumps

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from heron_env.evaluation.gap.results import Point, SweepResult

TIMING: Final = ("seconds",)
"""Columns that are no result."""
EXPLAINED: Final = (
    "return: interquartile mean over the cases; gap: mean of the same case's synchronous return minus this one, so "
    "more than 0 costs; both with 95 % bootstrap intervals over the cases. worse: probability that a case yields less "
    "than on the synchronous clock, ties counting half. lost: the gap as a share of what the policy gains over doing "
    "nothing. age p95: 95th percentile of the age of what agents saw, s."
)


def write_tables(result: SweepResult, folder: Path) -> None:
    """table.json, table.csv and table.md."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"table.json": to_json(result), "table.csv": to_csv(result), "table.md": to_markdown(result)}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def to_json(result: SweepResult) -> str:
    """Everything a reader needs to repeat or re-analyse the sweep; nan becomes null."""
    told = {
        **result.sweep.settings(),
        "finding": finding(result),
        "rows": [_row(point) for point in result.points],
        "decompositions": [decomposition.to_dict() for decomposition in result.decompositions],
        "interactions": [interaction.to_dict() for interaction in result.interactions],
    }
    return dumps(told) + "\n"


def _row(point: Point) -> dict[str, Any]:
    return {
        "policy": point.policy,
        "condition": point.condition.name,
        "causes": point.condition.to_dict(),
        "n": len(point.values),
        "values": list(point.values),
        "iqm": point.iqm.to_dict(),
        "mean": point.mean.to_dict(),
        "gaps": list(point.gaps),
        "gap": point.gap.to_dict(),
        "shows_gap": shows_gap(point),
        "worse": point.worse.to_dict(),
        "lost": point.lost,
        "identical": point.identical,
        "kpis": point.kpis,
        "staleness_p95": point.staleness_p95,
        "latency_p95": point.latency_p95,
        "notes": list(point.notes),
        "seconds": point.seconds,
    }


def to_csv(result: SweepResult) -> str:
    """One line a point; amounts by cause, empty where something is not known."""
    stream = io.StringIO()
    figures = ("iqm", "mean", "gap", "worse")
    heads = [f"{name}{end}" for name in figures for end in ("", "_low", "_high")]
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(
        [
            "policy",
            "condition",
            *CAUSES,
            DISTURBANCES,
            "n",
            *heads,
            "lost",
            "identical",
            "staleness_p95",
            "latency_p95",
            *TIMING,
        ]
    )
    for point in result.points:
        numbers = [x for name in figures for x in getattr(point, name).to_dict().values()]
        network = ["" if point.condition.synchronous else shown(getattr(point.condition, cause)) for cause in CAUSES]
        causes = [*network, shown(point.condition.disturbances)]
        known = [*numbers, point.lost, point.identical, point.staleness_p95, point.latency_p95, point.seconds]
        writer.writerow([point.policy, point.condition.name, *causes, len(point.values), *map(_field, known)])
    return stream.getvalue()


def to_markdown(result: SweepResult) -> str:
    """What was found, a table for each policy, and the gap by cause."""
    sweep = result.sweep
    title = f"# {sweep.env.id}: {f'preset {sweep.preset}' if sweep.preset else 'sweep'}"
    parts = [title, *finding(result)]
    for policy in result.policies:
        rows = [[point.condition.words, *cells(point)] for point in result.of(policy)]
        parts += [f"## {policy}", _pipes(["condition", *HEADINGS], rows)]
    parts.append(EXPLAINED + (f" Returns in {sweep.unit}." if sweep.unit else ""))
    parts += [_by_cause(decomposition) for decomposition in result.decompositions]
    if notes := dict.fromkeys(note for point in result.points for note in point.notes):
        parts.append("Notes:\n" + "\n".join(f"- {note}" for note in notes))
    return "\n\n".join(parts) + "\n"


def to_rich(result: SweepResult, policy: str) -> RichTable:
    """One policy's table for a terminal of 80 columns."""
    from rich import box
    from rich.table import Table as RichTable

    table = RichTable(title=policy, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("condition", overflow="fold", min_width=18)
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for point in result.of(policy):
        _, *others = cells(point)
        table.add_row(point.condition.name, f"{point.iqm.value:.2f}", *others)
    return table


HEADINGS: Final = ("return", "gap", "worse", "lost", "age p95")


def cells(point: Point) -> list[str]:
    """The texts below `HEADINGS`."""
    reference = point.condition == SYNC
    return [
        str(point.iqm),
        "-" if reference else str(point.gap),
        "-" if reference else f"{100 * point.worse.value:.0f} %",
        "-" if reference or math.isnan(point.lost) else f"{100 * point.lost:.1f} %",
        f"{point.staleness_p95:.3g} s" if point.staleness_p95 > 0.0 else "-",
    ]


def _by_cause(decomposition: Decomposition) -> str:
    rows = [[part.cause, str(part.mean)] for part in decomposition.parts]
    rows.append(["sum", str(decomposition.gap.mean)])
    title = f"{decomposition.policy} under {decomposition.condition.words}: gap by cause, {decomposition.method}"
    return f"## {title}\n\n{_pipes(['cause', 'cost'], rows)}"


def _pipes(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _field(value: float | bool | None) -> str:
    """For CSV: as short as it can be read back, empty for what is not known."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value)
