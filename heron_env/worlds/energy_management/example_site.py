"""Writes an example of an own site: four homes, quarter hours of three weeks around a clock change.

    python -m heron_env.worlds.energy_management.example_site FOLDER

What a meter would have shown is drawn from a seed: an own site's series are measured, these are not.
"""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np

from heron_env.files.writing import write
from heron_env.seeding import stream
from heron_env.worlds.energy_management.calendar import zone_of

NAMES: Final = ("alder", "birch", "cedar", "dogwood")
AUTUMN: Final = date(2025, 10, 13)
"""First day of three weeks with a local day of 25 h."""
ZONE: Final = "Europe/Berlin"
MINUTES: Final = 15
LOST: Final = {"birch": (700, 702)}
"""Rows that a meter has lost."""
YAML: Final = """\
timezone: Europe/Berlin        # prices and observed hours follow its clock
times: {column: time}          # times without an offset are of that clock, too
gaps: {fill: interpolate, longest: 30}
tariff: {low: 0.25, standard: 0.33, high: 0.42, low_hours: [1, 5], high_hours: [17, 20]}
zones:
  - {name: mill lane, limit: 6.0}
homes:
  - name: alder
    load: {file: alder.csv, column: load}
    roof: {file: alder.csv, column: pv}
    battery: {capacity: 10.0}
  - name: birch
    load: {file: birch.csv, column: load}
    roof: {file: birch.csv, column: pv}
    battery: {capacity: 7.5}
  - name: cedar
    load: {file: cedar.csv, column: load}
    roof: {peak: 6.0, facing: west}
    battery: {capacity: 12.0}
  - name: dogwood
    load: {file: dogwood.csv, column: load}
"""


def write_example(folder: str | Path, *, first: date = AUTUMN, days: int = 21, seed: int = 0) -> Path:
    """Write `homes.yaml` and a CSV file for each home into `folder`; the path of the former."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for place, name in enumerate(NAMES):
        write(folder / f"{name}.csv", _csv(name, place, first, days, seed))
    write(folder / "homes.yaml", YAML)
    return folder / "homes.yaml"


def _csv(name: str, place: int, first: date, days: int, seed: int) -> str:
    """Rows in local time without offsets: in autumn the clock shows an hour twice, in spring it skips one."""
    zone = zone_of(ZONE)
    begin, end = (
        datetime.combine(day, datetime.min.time(), zone).astimezone(UTC)
        for day in (first, first + timedelta(days=days))
    )
    draws = stream(seed, "example_site", name)
    bright = draws.uniform(0.2, 1.0, days + 1)
    roofed = name in ("alder", "birch")
    lines = ["time,load,pv" if roofed else "time,load"]
    for row in range(int((end - begin).total_seconds()) // (60 * MINUTES)):
        local = (begin + timedelta(minutes=MINUTES * row)).astimezone(zone)
        hour = local.hour + local.minute / 60.0
        evening, morning = (float(np.exp(-(((hour - peak) / 1.8) ** 2))) for peak in (19.0 + 0.3 * place, 7.5))
        load = (0.15 + 0.05 * place + 0.9 * evening + 0.4 * morning) * float(draws.uniform(0.4, 1.6))
        sun = max(0.0, float(np.sin((hour - local.utcoffset().total_seconds() / 3600.0 - 6.0) / 11.0 * np.pi)))  # type: ignore[union-attr]
        pv = (7.0 - 2.0 * place) * sun * float(bright[(local.date() - first).days] * draws.uniform(0.7, 1.0))
        if not (name in LOST and LOST[name][0] <= row < LOST[name][1]):
            lines.append(f"{local:%Y-%m-%d %H:%M},{load:.3f}" + (f",{pv:.3f}" if roofed else ""))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(f"wrote {write_example(*sys.argv[1:2])}" if len(sys.argv) > 1 else __doc__)
