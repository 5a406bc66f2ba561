"""The table for people: every comparison with its cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.case import Role
from benchmarks.measure import Measured, Result, Spread
from benchmarks.report import Report

if TYPE_CHECKING:
    from rich.console import Group

HEADER: Final = ("", "median", "least to most", "ours to it")
WIDTHS: Final = (34, 7, 17, 15)
PREFIXES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def number(value: float) -> str:
    """Three digits and a prefix.

    >>> number(1_234_567.0), number(45_600.0), number(41.26)
    ('1.23 M', '45.6 k', '41.3')
    """
    for size, prefix in PREFIXES:
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g}"


Line = tuple[str, str, str, str]


def rows(result: Result) -> list[Line]:
    """A comparison's cases, with how many times as fast ours are, and below each what else it tells."""
    return [line for case in result.cases for line in _lines(result, case)]


def _lines(result: Result, case: Measured) -> list[Line]:
    found = case.spread
    ratios = [
        f"{ratio.median:.3g}"
        for ours in result.of(Role.OURS)
        if case.role is not Role.OURS and (ratio := result.ratio(ours.name, case.name))
    ]
    spread = f"{number(found.low)} to {number(found.high)}"
    role = "" if case.role is Role.OURS else f"{case.role}: "
    facts = [(f"    {name} {value:.3g}", "", "", "") for name, value in case.facts.items()]
    if case.cores and not 0.9 < (cores := Spread.of(case.cores).median) < 1.1:
        facts.append((f"    cores busy {cores:.2g}", "", "", ""))
    return [(f"  {role}{case.name}", number(found.median), spread, " / ".join(ratios)), *facts]


def rendered(report: Report) -> Group:
    """The whole report for a terminal."""
    from rich.console import Group, RenderableType
    from rich.table import Table as Grid

    parts: list[RenderableType] = []
    for result in report.results:
        figures = Grid(*HEADER, box=None, pad_edge=False, padding=(0, 1, 0, 0))
        for column, width in zip(figures.columns, WIDTHS, strict=True):
            column.min_width = width
        for column in figures.columns[1:]:
            column.justify = "right"
        for line in rows(result):
            figures.add_row(*line)
        disturbed = sum(result.disturbed)
        busy = f"; other programs were busy in {disturbed} of {len(result.foreign)} rounds" if disturbed else ""
        parts += [f"[bold]{result.title}[/bold], {result.unit}{busy}", figures, ""]
    machine, versions = report.machine, report.machine.get("versions", {})
    rounds = f"{report.rounds} round{'s' * (report.rounds > 1)} of {report.seconds:g} s"
    run = (
        f"{machine.get('cores')} cores, {machine.get('system')}, "
        f"{', '.join(f'{name} {found}' for name, found in versions.items())}; "
        f"{rounds}, cases in turns; ratios are medians of ratios within a round"
    )
    return Group(*parts, run, str(machine.get("c")))
