"""What worlds without external agents pay for them: rates before and after, in turns, each in a process of its own."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from training.bars import Bar, Found, Setting
from training.endpoints import rates

LEAST = 0.95
TURNS, SLICES = 7, 24


class Side:
    """A process with one of the two checkouts."""

    def __init__(self, checkout: Path, seconds: float) -> None:
        command = [sys.executable, "-P", str(Path(rates.__file__).resolve()), str(seconds)]
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=checkout
        )
        self.cases: list[str] = json.loads(self._read())

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def rate(self, case: str) -> tuple[float, float]:
        """Per second of CPU time, and of the wall's."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{case}\n")
        self._process.stdin.flush()
        cpu, wall = json.loads(self._read())
        return cpu, wall

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def compared(setting: Setting) -> Found:
    """Judged by CPU time, which other programs on the machine take least from; the wall's rates are given beside."""
    if setting.before is None:
        return Found("needs --before DIR, a checkout from before external agents (ce9fb5e)", None)
    if not (setting.before / "heron_env/__init__.py").is_file():
        return Found(f"--before {setting.before}: holds no heron_env", False)
    turns, seconds = (2, 0.02) if setting.quick else (TURNS, 0.06)
    root = Path(__file__).resolve().parents[2]
    with ExitStack() as closing:
        sides = {name: Side(where, seconds) for name, where in (("before", setting.before), ("after", root))}
        for side in sides.values():
            closing.callback(side.close)
        found = {case: turned(sides, case, turns) for case in sides["after"].cases}
    ratios = {case: each["ratio"] for case, each in found.items()}
    worst = min(ratios, key=lambda case: ratios[case][0])
    told = "; ".join(f"{case} {cpu:.3f} (wall {wall:.3f})" for case, (cpu, wall) in ratios.items())
    words = f"least {ratios[worst][0]:.3f}, {worst}; after / before, median of {turns}: {told}"
    return Found(words, ratios[worst][0] >= LEAST, found)


def turned(sides: dict[str, Side], case: str, turns: int) -> dict[str, list[float]]:
    """Medians over the turns of the ratios by CPU time and by the wall.

    A turn is many short slices of both sides next to each other, who is first in turns, and its ratio the median of
    theirs: what other programs do to a slice they do to the next one, too.
    """
    rates: dict[str, list[float]] = {name: [] for name in sides}
    ratios: list[list[float]] = []
    for turn in range(-1, turns):
        slices: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        for number in range(SLICES if turn >= 0 else 1):
            for name in sides if (turn + number) % 2 else reversed(sides):
                slices[name].append(sides[name].rate(case))
        if turn >= 0:
            both = list(zip(slices["after"], slices["before"], strict=True))
            ratios.append([statistics.median(new[place] / old[place] for new, old in both) for place in (0, 1)])
            for name, each in slices.items():
                rates[name].append(statistics.median(cpu for cpu, _ in each))
    medians = [statistics.median(turn[place] for turn in ratios) for place in (0, 1)]
    return {"ratio": medians, "turns": [cpu for cpu, _ in ratios], **rates}


BARS = (
    Bar(
        "before", "events/s and steps/s without external agents, before / after, in turns, median of 7", ">= 0.95",
        compared,
    ),
)  # fmt: skip
