"""What only a process of its own can tell: imports, compiling with an empty cache, memory.

`python -m benchmarks.alone WHAT NUMBER...` prints one number.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.case import EPISODE, Case, Comparison, Setting
from heron_env import HeronEnv, make
from heron_env.errors import HeronError

MIB: Final = 2.0**20
SPREAD, GRID = "heron/Spread-v0", "heron/BatteryGrid-v0"
IMPORT, IMPORT_ENV = "import heron_env", "import heron_env, HeronEnv"
COLD, WARM = "cold cache", "warm cache"
SAMPLES: Final = {"batch": ((1024, 10), (16384, 10), (65536, 10)), "single": ((1, 1000), (1, 10_000))}
"""Environments and agents whose memory is told."""


def comparisons() -> list[Comparison]:
    """Starting up, resetting, and how much memory it takes."""
    return [
        Comparison("startup-import", "Import", "CPU-s", _imports, less=True, quick=True),
        Comparison("startup-compile", "Spread, 3 agents: make, reset, step", "s", _compiles, less=True, rounds=3),
        Comparison("startup-reset", "BatteryGrid, parent scope: reset", "s", _resets, less=True, quick=True),
        Comparison("memory", "BatteryGrid, parent scope: peak memory beyond a small one's", "bytes/agent", _memory,
                   less=True, rounds=2),
    ]  # fmt: skip


def _imports(setting: Setting) -> Sequence[Case]:
    return [Case(IMPORT, importing("import heron_env")), Case(IMPORT_ENV, importing("from heron_env import HeronEnv"))]


def importing(statement: str) -> Callable[[float], float]:
    """The `run` of a case: CPU seconds of an import in a new interpreter."""
    code = f"import time; start = time.process_time(); {statement}; print(time.process_time() - start)"
    return lambda seconds: _answer([sys.executable, "-c", code])


def _compiles(setting: Setting) -> Sequence[Case]:
    kept = tempfile.TemporaryDirectory()
    compile_seconds(Path(kept.name))  # fills it
    return [
        Case(COLD, lambda seconds: cold_seconds()),
        Case(WARM, lambda seconds: compile_seconds(Path(kept.name)), close=kept.cleanup),
    ]


def cold_seconds() -> float:
    """Seconds from building to the first step with nothing compiled yet."""
    with tempfile.TemporaryDirectory() as empty:
        return compile_seconds(Path(empty))


def compile_seconds(cache: Path) -> float:
    """Seconds from building to the first step in a new process, whose compiled code is kept in `cache`."""
    return _answer([sys.executable, "-m", __name__, "compile"], {"HERON_CACHE_DIR": str(cache)})


def _resets(setting: Setting) -> Sequence[Case]:
    return [_reset(n) for n in (2, 10, 100, 1000)]


def _reset(n: int) -> Case:
    from benchmarks.case import rate

    env = make(GRID, num_batteries=n, scope="parent")
    env.reset(seed=0)
    return Case(f"{n:,} agents", lambda seconds: 1.0 / rate(env.reset, 1.0, seconds))


def _memory(setting: Setting) -> Sequence[Case]:
    samples = [Sample(kind, *size) for kind, sizes in SAMPLES.items() for size in sizes]
    return [Case(sample.name, sample.run, facts=sample.facts) for sample in samples]


class Sample:
    """Memory of so many environments of so many agents: what a process's peak grows by, beyond small ones."""

    def __init__(self, kind: str, lanes: int, agents: int) -> None:
        self.name = f"{lanes:,} environments of {agents:,} agents" if kind == "batch" else f"{agents:,} agents"
        self._command = [sys.executable, "-m", __name__, kind, str(lanes), str(agents)]
        self._agents, self._bytes = lanes * agents, 0.0

    def run(self, seconds: float) -> float:
        """Bytes an agent."""
        self._bytes = _answer(self._command)
        return self._bytes / self._agents

    def facts(self) -> dict[str, float]:
        """All of it."""
        return {"MiB": self._bytes / MIB}


def _answer(command: Sequence[str], extra: dict[str, str] | None = None) -> float:
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(extra or {})}, check=False)
    if done.returncode:
        raise HeronError(f"{' '.join(command[1:])} failed:\n{done.stderr}")
    return float(done.stdout.split()[-1])


def peak_bytes() -> int:
    """The most memory this process has held so far.

    From /proc where there is one: `ru_maxrss` begins with the peak of the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(line for line in status.read_text("ascii").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _first_step() -> float:
    start = time.perf_counter()
    env = make(SPREAD, num_agents=3, continuous=False, max_steps=EPISODE)
    env.reset(seed=0)
    env.step({})
    return time.perf_counter() - start


def _grown(kind: str, lanes: int, agents: int) -> int:
    """Step a small environment, then this one; bytes between."""
    kept = []
    sizes: list[int] = []
    for count, n in ((min(lanes, 2), 10), (lanes, agents)):
        kept.append(_stepped(kind, count, n))
        sizes.append(peak_bytes())
    return sizes[1] - sizes[0]


def _stepped(kind: str, lanes: int, agents: int) -> object:
    if kind == "batch":
        from heron_env import BatchEnv

        batch = BatchEnv(GRID, lanes, num_batteries=agents, scope="parent")
        batch.reset()
        batch.step({})
        return batch
    env: HeronEnv = make(GRID, num_batteries=agents, scope="parent")
    env.reset(seed=0)
    env.step({})
    return env


if __name__ == "__main__":
    what, *numbers = sys.argv[1:]
    print(_first_step() if what == "compile" else _grown(what, *map(int, numbers)))
