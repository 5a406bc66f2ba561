"""How does everything public answer to bad values, and to damaged files? A table, and exit code 1 for any finding.

    python tests/hostile/run.py --calls 20000 --files 2000 --seed 0

A finding is a raw traceback of another kind than our errors, a hang, an error without words, or, for inputs that both
clocks take, another answer of one clock. All can be repeated: it follows from the seed and its number.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
for name, setting in (("HERON_COMPILE", "0"), ("OMP_NUM_THREADS", "1")):
    os.environ.setdefault(name, setting)

import calls  # noqa: E402  after the settings
import damage  # noqa: E402
from verdict import Answer  # noqa: E402

BOTH_CLOCKS = 5
"""Every so many calls go to both clocks."""


def all_calls(number: int, seed: int, first: int = 0) -> Iterator[tuple[int, str, Answer]]:
    """Number, what was called, and its answer, from `first` on."""
    known = calls.entries()
    for n in range(first, first + number):
        name, answer = calls.both_clocks(n, seed) if n % BOTH_CLOCKS == 0 else calls.called(n, seed, known)
        yield n, name, answer


def all_files(number: int, seed: int) -> Iterator[tuple[int, str, Answer]]:
    """Number, what was damaged and read, and the answer."""
    base = Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        made = damage.originals(base)
        for n in range(number):
            name, answer = damage.damaged(n, seed, base, made)
            yield n, name, answer
    finally:
        shutil.rmtree(base)


def kind_of(answer: Answer) -> str:
    """The column of the table."""
    return answer.kind if answer.kind in ("works", "python", "raw") else "ours"


def main() -> int:
    """Run, print, and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first call, to run a share of them")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    table: dict[str, Counter[str]] = {}
    findings: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], int] = {}
    began = time.process_time()
    for part, answers in (
        ("", all_calls(asked.calls, asked.seed, asked.first)),
        ("file ", all_files(asked.files, asked.seed)),
    ):
        for number, name, answer in answers:
            table.setdefault(part + name, Counter())[kind_of(answer)] += 1
            if answer.is_finding:
                print(f"{part}{number}, {name}: {answer.told}", file=sys.stderr, flush=True)
                findings[part + name, answer.told] += 1
                first.setdefault((part + name, answer.told), number)
    columns = ("works", "ours", "python", "raw")
    print(f"{'':44}" + "".join(f"{column:>8}" for column in columns))
    for name in sorted(table):
        print(f"{name:44}" + "".join(f"{table[name][column]:8}" for column in columns))
    total = sum(table.values(), Counter())
    print(f"{'all':44}" + "".join(f"{total[column]:8}" for column in columns))
    for (name, told), count in findings.most_common():
        print(f"{count} x {name}, first number {first[name, told]}: {told}")
    print(f"seed {asked.seed}, {time.process_time() - began:.0f} s of CPU, {len(findings)} kinds of findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
