"""Own sites for tests: one home whose load at any instant is known, in files of any clock."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

BERLIN = ZoneInfo("Europe/Berlin")
SPRING, AUTUMN = datetime(2025, 3, 28, 23, tzinfo=UTC), datetime(2025, 10, 24, 22, tzinfo=UTC)
"""Midnight in Berlin, a day before its clock changes."""
HOMES = """\
timezone: Europe/Berlin
homes:
  - name: mill
    load: {file: mill.csv, column: load}
    battery: {capacity: 10}
"""


def load_at(time: datetime) -> float:
    """kW of the slot that begins at an instant: each quarter hour of two months has its own."""
    return 1.0 + ((time - SPRING).total_seconds() // 60 % 10_007) / 10_007


def local(time: datetime) -> str:
    """What a clock in Berlin shows."""
    return time.astimezone(BERLIN).strftime("%Y-%m-%d %H:%M")


def rows_of(
    start: datetime, days: float, minutes: int = 15, told: Callable[[datetime], str] = local, end: bool = False
) -> list[str]:
    """Header and rows from `start` on; with `end` a row is told by the end of its slot."""
    times = [start + timedelta(minutes=minutes * row) for row in range(round(days * 1440 / minutes))]
    shift = timedelta(minutes=minutes if end else 0)
    return ["time,load", *(f"{told(time + shift)},{load_at(time)!r}" for time in times)]


def write_site(folder: Path, rows: Iterable[str], homes: str = HOMES, name: str = "mill.csv") -> Path:
    """The path of `homes.yaml` beside the rows' file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "homes.yaml").write_text(homes, encoding="utf-8")
    return folder / "homes.yaml"
