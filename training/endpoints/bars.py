"""Bars: what must be reached, what was measured, and the table of both."""

from __future__ import annotations

import json
import os
import platform
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from heron_env.files.writing import write

WORDS = {True: "yes", False: "NO", None: "not measured"}


@dataclass(frozen=True)
class Setting:
    """How to measure.

    Attributes:
        quick: fewer repetitions.
        scratch: an empty folder for what a measurement keeps while it runs.
        before: a checkout of the package as it was before external agents; None: that comparison is not measured.
        figures: where pictures go; None: nowhere.
    """

    quick: bool
    scratch: Path
    before: Path | None = None
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
    began, busy, own = time.perf_counter(), _busy(), _own()
    try:
        found = bar.measure(setting)
    except Exception as error:  # noqa: BLE001  (it is shown, and missed)
        traceback.print_exc()
        found = Found(f"the measurement failed: {type(error).__name__}: {error!s:.200}", False)
    seconds = time.perf_counter() - began
    others = None if busy is None else max(0.0, (_busy() or busy) - busy - (_own() - own)) / seconds
    return Row(bar.name, bar.words, bar.needed, found.measured, found.met, seconds, others, found.figures)


def _own() -> float:
    """CPU seconds of this process and of its children that are done."""
    return sum(os.times()[:4])


def _busy() -> float | None:
    from training.bench.watch import busy_seconds

    return busy_seconds()


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
    write(file, json.dumps(told, indent=1) + "\n")
    write(out / "bars.md", table(whole))
