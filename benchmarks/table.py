"""The table for people: every comparison with its cases, then the bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from benchmarks.bars import Judged
from benchmarks.case import Role
from benchmarks.measure import Measured, Result, Spread
from benchmarks.report import Report

if TYPE_CHECKING:
    from rich.console import Group

HEADER: Final = ("", "median", "least to most", "ours to it")
WIDTHS: Final = (34, 7, 17, 15)
LARGE: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
SMALL: Final = ((1.0, ""), (1e-3, "m"), (1e-6, "\N{MICRO SIGN}"))


def number(value: float, unit: str) -> str:
    """Three digits and a prefix: 1.23 M, 45.6 k, 0.31 m; seconds get prefixes below one, shares none.

    >>> number(1_234_567.0, "env-steps/s"), number(0.0123, "s"), number(41.26, "%"), number(8e6, "agent-steps/s")
    ('1.23 M', '12.3 m', '41.3', '8 M')
    """
    seconds = unit in ("s", "CPU-s")
    steps = (*(() if seconds or unit in ("%", "x") else LARGE), *(SMALL if seconds else ()))
    for size, prefix in steps:
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}".strip()
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
    spread = f"{number(found.low, result.unit)} to {number(found.high, result.unit)}"
    role = "" if case.role is Role.OURS else f"{case.role}: "
    facts = [(f"    {name} {value:.3g}", "", "", "") for name, value in case.facts.items()]
    if case.cores and not 0.9 < (cores := Spread.of(case.cores).median) < 1.1:
        facts.append((f"    cores busy {cores:.2g}", "", "", ""))
    return [(f"  {role}{case.name}", number(found.median, result.unit), spread, " / ".join(ratios)), *facts]


def told(judged: Judged) -> str:
    """A bar in words: what is needed, what was reached, and whether that is enough.

    >>> from benchmarks.bars import Bar
    >>> told(Judged(Bar("all", 100e3, "events/s", lambda results: None), 40e3))
    'needed 100 k events/s, reached 40 k events/s: not met, 40 % of it'
    """
    bar = judged.bar
    needed = f"needed {'at most ' * bar.most}{_with_unit(bar.needed, bar.unit)}"
    if judged.reached is None or judged.share is None:
        return f"{needed}, not measured"
    if not judged.decided:
        return f"{needed}, reached {_with_unit(judged.reached, bar.unit)}: not decided, other programs were busy"
    verdict = "met" if judged.met else f"not met, {100.0 * judged.share:.0f} % of it"
    return f"{needed}, reached {_with_unit(judged.reached, bar.unit)}: {verdict}"


def _with_unit(value: float, unit: str) -> str:
    return f"{number(value, unit)} {'times as fast' if unit == 'x' else unit}"


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
    measured: Sequence[Judged] = [judged for judged in report.bars() if judged.reached is not None]
    for judged in measured:
        style = "green" if judged.met else "yellow"
        parts += [f"[{style}]{judged.bar.words}[/{style}]", f"  {told(judged)}"]
    left_out = len(report.bars()) - len(measured)
    machine, versions = report.machine, report.machine.get("versions", {})
    rounds = f"{report.rounds} round{'s' * (report.rounds > 1)} of {report.seconds:g} s"
    run = (
        f"{machine.get('cores')} cores, {machine.get('system')}, "
        f"{', '.join(f'{name} {found}' for name, found in versions.items())}; "
        f"{rounds}, cases in turns; ratios are medians of ratios within a round"
    )
    return Group(*parts, f"{left_out} more bars were not measured." if left_out else "", "", run, str(machine.get("c")))
