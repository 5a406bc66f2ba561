"""How does everything public answer to bad values and to damaged files?

    python tests/hostile/run.py --calls 24000 --files 2000 --schedules 5000 --seed 0 --refusals refusals.md

Prints a table and what was found; exit code 0 only where nothing was. A finding is silent (an error without words, a
name that a report loses or runs, another answer of one clock), raw (a traceback of another kind than our errors) or a
hang. All can be repeated: it follows from the seed and its number. `--refusals` writes what users would read, each
refusal once, for somebody to read.
"""

import argparse
import contextlib
import faulthandler
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
for name, setting in (("HERON_COMPILE", "0"), ("OMP_NUM_THREADS", "1")):
    os.environ.setdefault(name, setting)

import beyond  # noqa: E402  after the settings
import calls  # noqa: E402
import damage  # noqa: E402
import schedules  # noqa: E402
from verdict import FINDINGS, Answer  # noqa: E402

BOTH_CLOCKS = 5
"""Every so many calls go to both clocks."""
STUCK = 240.0
"""s without an answer, after which a process gives up and shows where it is."""
EVERY = 20.0
"""s between two lines of progress."""
COLUMNS = ("works", "ours", "python", "apart", *FINDINGS)
SHAPE = re.compile(r"'[^']*'|\"[^\"]*\"|\[.*?\]|\(.*?\)|=\S+|/\S+|\d[\d.,e+-]*|\n.*", re.DOTALL)
"""What differs between two refusals that say the same."""
Answers = Iterator[tuple[int, str, Answer]]


@contextlib.contextmanager
def somewhere() -> Iterator[Path]:
    """A working directory, deep enough that '../..' lies within what is removed."""
    before, base = Path.cwd(), Path(tempfile.mkdtemp(prefix="hostile-"))
    inner = base / "a" / "b" / "c"
    inner.mkdir(parents=True)
    os.chdir(inner)
    try:
        yield base
    finally:
        os.chdir(before)
        shutil.rmtree(base, ignore_errors=True)


def all_calls(number: int, seed: int) -> Answers:
    """Number, what was called, and its answer."""
    known = calls.entries()
    with somewhere():
        for n in range(number):
            yield n, *(calls.both_clocks(n, seed) if n % BOTH_CLOCKS == 0 else calls.called(n, seed, known))


def all_files(number: int, seed: int) -> Answers:
    """Number, what was damaged and read, and the answer."""
    with somewhere() as base:
        made = damage.originals(base)
        for n in range(number):
            yield n, *damage.damaged(n, seed, base, made)


def all_schedules(number: int, seed: int) -> Answers:
    """Number, the way by which a schedule came, and the answer."""
    schedules.ran(None, batch=True)  # compiled here, which is no hang
    for n in range(number):
        yield n, *schedules.hostile_schedule(n, seed)


class Found:
    """Counts by what was called, findings, and refusals, each with the first that showed it."""

    def __init__(self) -> None:
        self.table: dict[str, Counter[str]] = {}
        self.findings: dict[tuple[str, str, str], list[Any]] = {}
        self.refusals: dict[tuple[str, str, str], list[Any]] = {}

    def add(self, name: str, number: int, answer: Answer) -> None:
        """One more answer."""
        kind = answer.kind if answer.kind in COLUMNS else "ours"
        self.table.setdefault(name, Counter())[kind] += 1
        if answer.is_finding:
            self._count(self.findings, (answer.kind, name, answer.told), name, number, answer)
        elif kind == "ours":
            self._count(
                self.refusals, (answer.place, answer.kind, SHAPE.sub("…", answer.told)[:24]), name, number, answer
            )

    @staticmethod
    def _count(counts: dict[Any, list[Any]], key: Any, name: str, number: int, answer: Answer) -> None:
        counts.setdefault(key, [0, name, number, answer.told])[0] += 1

    def show(self) -> None:
        """The table, then the findings."""
        print(f"{'':52}" + "".join(f"{column:>8}" for column in COLUMNS))
        for name in sorted(self.table):
            print(f"{name:52}" + "".join(f"{self.table[name][column]:8}" for column in COLUMNS))
        total = sum(self.table.values(), Counter())
        print(f"{'all':52}" + "".join(f"{total[column]:8}" for column in COLUMNS))
        for (kind, name, told), (count, _, number, _) in sorted(self.findings.items(), key=lambda one: -one[1][0]):
            print(f"{kind}: {count} x {name}, first number {number}: {told}")

    def write(self, path: Path) -> None:
        """Each refusal once, by the line of ours that raised it."""
        parts = [f"# {len(self.refusals)} refusals, by the line that raised them\n"]
        for (place, kind, _), (count, name, number, told) in sorted(self.refusals.items()):
            parts.append(f"## {place} {kind} ({count} x, first: {name}, number {number})\n\n    {told[:1200]!s}\n")
        path.write_text("\n".join(parts), encoding="utf-8", errors="backslashreplace")


def run(asked: argparse.Namespace) -> Found:
    """All of it."""
    found, began, told = Found(), time.monotonic(), 0.0
    shares = (
        ("", all_calls, asked.calls),
        ("file ", all_files, asked.files),
        ("schedule ", all_schedules, asked.schedules),
    )
    for part, answers, number in shares:
        for n, name, answer in answers(number, asked.seed):
            faulthandler.dump_traceback_later(STUCK, exit=True)  # a thread of ours that never ends
            found.add(part + name, n, answer)
            if answer.is_finding:
                print(f"{answer.kind}: {part}{n}, {name}: {answer.told}", file=sys.stderr, flush=True)
            if (now := time.monotonic() - began) - told > EVERY:
                told = now
                print(f"{part or 'call '}{n} of {number}, {now:.0f} s", file=sys.stderr, flush=True)
    faulthandler.cancel_dump_traceback_later()
    return found


def main() -> int:
    """Run, print, and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=24_000)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--schedules", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--refusals", type=Path, help="a file for what users would read")
    asked = parser.parse_args()
    began = time.monotonic()
    found = run(asked)
    found.show()
    if asked.refusals is not None:
        found.write(asked.refusals)
    if left := beyond.missing():
        print(f"not run, their libraries are not here: {', '.join(left)}")
    print(
        f"seed {asked.seed}, {time.monotonic() - began:.0f} s, {len(found.refusals)} different refusals, "
        f"{len(found.findings)} kinds of findings"
    )
    return 1 if found.findings else 0


if __name__ == "__main__":
    sys.exit(main())
