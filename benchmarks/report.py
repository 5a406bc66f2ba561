"""What a run found: results, and the machine it ran on; JSON for machines."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from benchmarks.figure import Series, alternative, draw, series
from benchmarks.measure import Result
from heron_env import __version__
from heron_env.files import write_all
from heron_env.lab.figure_style import to_svg
from heron_env.lab.output import dumps

SCHEMA: Final = 1
"""Version of the JSON form; it grows when a reader of the old one would be misled."""
PACKAGES: Final = ("numpy", "numba", "gymnasium", "pettingzoo", "stable-baselines3", "torch", "power-grid-model")


@dataclass(frozen=True)
class Report:
    """One run of the benchmark."""

    results: Sequence[Result]
    quick: bool
    rounds: int
    seconds: float
    """Time slice of a case in a round."""
    machine: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "schema_version": SCHEMA,
            "quick": self.quick,
            "rounds": self.rounds,
            "slice_seconds": self.seconds,
            "machine": self.machine,
            "comparisons": [result.to_dict() for result in self.results],
            "figure": {"file": "bench.svg", "alternative": alternative(lines)} if (lines := self.lines()) else None,
        }

    def lines(self) -> Series:
        """What the figure shows; empty where Spread with 3 agents was not timed at two sizes."""
        return series(self.results)

    def write(self, folder: Path) -> list[Path]:
        """Write bench.json and, where there is something to draw, bench.svg; the folder is made."""
        contents: dict[Path, str | bytes] = {folder / "bench.json": dumps(self.to_dict()) + "\n"}
        if lines := self.lines():
            contents[folder / "bench.svg"] = to_svg(draw(lines), text=True)
        write_all(contents)
        return list(contents)


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine_facts() -> dict[str, Any]:
    """What the figures depend on: cores and their load before the run, system, versions. Nobody's name, no paths."""
    versions = {"heron_env": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "cores": cores(), "load_before": load, "system": f"{platform.system()} {platform.machine()}",
        "versions": versions,
    }  # fmt: skip
