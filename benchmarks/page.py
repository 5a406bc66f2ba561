"""docs/science/speed.md: its table of Spread, made of the results that are committed beside it."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks import spread
from benchmarks.case import Role
from benchmarks.figure import draw
from benchmarks.measure import Measured, Result
from benchmarks.peers import PEERS
from benchmarks.report import Report
from benchmarks.suite import everything
from benchmarks.table import number
from heron_env.files import write_all
from heron_env.lab.figure_style import to_svg
from heron_env.lab.output import dumps

ROOT: Final = Path(__file__).parents[1]
PAGE, RESULTS = ROOT / "docs" / "science" / "speed.md", ROOT / "benchmarks" / "results" / "bench.json.gz"
OURS: Final = (spread.BATCH, spread.SINGLE, PEERS["jax"])
OTHERS: Final = (*(name for peer, name in PEERS.items() if peer != "jax"), spread.C)


def publish(report: Report) -> None:
    """Put what a run measured in the place of what is committed of it, and on the page."""
    report = merged(committed(), report)
    results = report.to_dict()
    write_all(
        {
            RESULTS: gzip.compress(dumps(results).encode(), mtime=0),
            RESULTS.with_name("bench.svg"): to_svg(draw(report.lines()), text=True),
            PAGE: with_table(PAGE.read_text(encoding="utf-8"), results),
        }
    )


def committed() -> dict[str, Any]:
    """The results in the repository."""
    results: dict[str, Any] = json.loads(gzip.decompress(RESULTS.read_bytes()))
    return results


def merged(old: Mapping[str, Any], new: Report) -> Report:
    """The new results, with the old ones of comparisons and peers that they leave out."""
    results = {result.name: result for result in (*map(_result, old["comparisons"]), *new.results)}
    machine = {**new.machine, "peers": {**old["machine"]["peers"], **new.machine["peers"]}}
    return replace(new, results=[results[each.name] for each in everything() if each.name in results], machine=machine)


def _result(told: Mapping[str, Any]) -> Result:
    """What `Result.to_dict` was made of."""
    cases = [
        Measured(each["name"], Role(each["role"]), each["rounds"], each["facts"], each["cores"])
        for each in told["cases"]
    ]
    return Result(told["name"], told["title"], told["unit"], cases, told["foreign_cores"])


def with_table(page: str, results: Mapping[str, Any]) -> str:
    """The page with the table of these results in the place of the one that it has."""
    head = ("agents x environments", "", "env-steps", *(f"to {name}" for name in OTHERS))
    table = [head, ("---",) * 2 + ("---:",) * (len(head) - 2), *_rows(results)]
    lines = "".join(f"| {' | '.join(cells)} |\n" for cells in table)
    return re.sub(r"^\| agents x environments .*?\n(?!\|)", lines, page, count=1, flags=re.DOTALL | re.MULTILINE)


def _rows(results: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    comparisons = {comparison["name"]: comparison for comparison in results["comparisons"]}
    for n in spread.AGENTS:
        for lanes in spread.LANES:
            found = comparisons[spread.spread_name(n, lanes)]
            cases = {case["name"]: case["median"] for case in found["cases"]}
            ratios = {(ratio["of"], ratio["to"]): ratio["median"] for ratio in found["ratios"]}
            for ours in (name for name in OURS if name in cases):
                to = [_ratio(ratios[ours, name]) if name in cases else "" for name in OTHERS]
                yield f"{n} x {lanes:,}", ours, number(cases[ours]), *to


def _ratio(times: float) -> str:
    """Ours to theirs, three digits.

    >>> _ratio(6.351), _ratio(20.13), _ratio(2070.0)
    ('6.35x', '20.1x', '2,070x')
    """
    digits = 2 if times < 10.0 else 1 if times < 100.0 else 0
    return f"{times:,.{digits}f}x"
