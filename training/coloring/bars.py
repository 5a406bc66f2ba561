"""Bars: what must be reached, what was measured, the table of both, and the command that measures them."""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.watch import busy_seconds, own_cpu
from heron_env.files import write

WORDS = {True: "yes", False: "NO", None: "not measured"}


@dataclass(frozen=True)
class Setting:
    """How to measure.

    Attributes:
        quick: fewer repetitions.
        scratch: an empty folder for what a measurement keeps while it runs.
        figures: where pictures go; None: nowhere.
    """

    quick: bool
    scratch: Path
    figures: Path | None = None


@dataclass(frozen=True)
class Found:
    """What was measured, in words and figures; `met` is None where nothing was."""

    measured: str
    met: bool | None
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Bar:
    """What must be reached: its name for `--only`, what is judged, the value, and who measures and judges it."""

    name: str
    words: str
    needed: str
    measure: Callable[[Setting], Found]


@dataclass(frozen=True)
class Row:
    """A bar that was judged."""

    name: str
    words: str
    needed: str
    measured: str
    met: bool | None
    seconds: float
    cores_taken_by_others: float | None
    figures: Mapping[str, Any]


def judged(bar: Bar, setting: Setting) -> Row:
    """Measure one bar; whatever a measurement raises is a bar that is missed."""
    began, busy, own = time.perf_counter(), busy_seconds(), own_cpu()
    try:
        found = bar.measure(setting)
    except Exception as error:  # noqa: BLE001  (it is shown, and missed)
        traceback.print_exc()
        found = Found(f"the measurement failed: {type(error).__name__}: {error!s:.200}", False)
    seconds = time.perf_counter() - began
    others = None if busy is None else max(0.0, (busy_seconds() or busy) - busy - (own_cpu() - own)) / seconds
    return Row(bar.name, bar.words, bar.needed, found.measured, found.met, seconds, others, found.figures)


def missed(rows: Sequence[Row]) -> list[str]:
    """Names of the bars that were not met."""
    return [row.name for row in rows if row.met is False]


def table(rows: Sequence[Row]) -> str:
    """In Markdown."""
    cells = [("name", "bar", "value", "measured", "met")]
    cells += [(row.name, row.words, row.needed, row.measured, WORDS[row.met]) for row in rows]
    lines = [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in cells]
    lines.insert(1, "|---|---|---|---|---|")
    open_ = [row.name for row in rows if row.met is None]
    end = [f"missed: {', '.join(missed(rows)) or 'none'}; not measured: {', '.join(open_) or 'none'}"]
    return "\n".join([*lines, "", *end]) + "\n"


def kept(out: Path, rows: Sequence[Row], order: Sequence[str]) -> None:
    """Write bars.json and bars.md; bars that were measured at another time stay where they are not measured now."""
    file = out / "bars.json"
    before = json.loads(file.read_text(encoding="utf-8"))["bars"] if file.is_file() else []
    known = {row["name"]: Row(**row) for row in before} | {row.name: row for row in rows}
    whole = [known[name] for name in order if name in known]
    out.mkdir(parents=True, exist_ok=True)
    machine = {"python": platform.python_version(), "system": platform.system(), "cores": os.cpu_count()}
    told = {"schema_version": 1, "machine": machine, "bars": [asdict(row) for row in whole]}
    write(file, json.dumps(told) + "\n")
    write(out / "bars.md", table(whole))


def parser_of(words: str, bars: Sequence[Bar]) -> argparse.ArgumentParser:
    """Its options."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[bar.name for bar in bars], metavar="NAME", help="these alone")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions; keeps nothing unless --out is given")
    parser.add_argument("--out", type=Path, help="default: training/results/coloring")
    parser.add_argument("--list", action="store_true", help="names of the bars, and what they judge")
    return parser


def run_bars(given: argparse.Namespace, bars: Sequence[Bar], default: Path) -> int:
    """Measure, print, keep; 1 where a bar is missed."""
    if given.list:
        print("\n".join(f"{bar.name:12} {bar.words}: {bar.needed}" for bar in bars))
        return 0
    out = given.out or (None if given.quick else default)
    chosen = [bar for bar in bars if not given.only or bar.name in given.only]
    with tempfile.TemporaryDirectory() as scratch:
        rows: list[Row] = []
        for row in _run(chosen, Setting(given.quick, Path(scratch), out)):
            rows.append(row)
            if out is not None:
                kept(out, rows, [bar.name for bar in bars])
    print("\n" + table(rows))
    return 1 if missed(rows) else 0


def _run(bars: Sequence[Bar], setting: Setting) -> Iterator[Row]:
    """Measure them one after the other, each in a folder of its own."""
    for bar in bars:
        with tempfile.TemporaryDirectory(dir=setting.scratch) as folder:
            row = judged(bar, replace(setting, scratch=Path(folder)))
        print(f"{bar.name} ({row.seconds:.1f} s): {row.measured}; met: {WORDS[row.met]}", flush=True)
        yield row
