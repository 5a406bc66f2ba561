"""What must be shown of external agents, by one command: a table of bars; ends with 1 where one is missed.

    pip install heron_env[inject,serve,train,dev]
    python training/injection_bars.py --before DIR     # all; DIR: a checkout of ce9fb5e, from before external agents
    python training/injection_bars.py --only breaker deadline
    python training/injection_bars.py --quick          # fewer repetitions; nothing is kept

Kept in --out: bars.json, bars.md, and thinking.svg. Bars of other runs stay in them until they are measured again.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])

from training.endpoints import before, canary, client, faults, fidelity, guard, memory, service, speed, thinking  # noqa: E402
from training.endpoints.bars import WORDS, Bar, Row, Setting, judged, kept, missed, table  # noqa: E402

BARS: tuple[Bar, ...] = (
    *faults.BARS, *client.BARS, *memory.BARS, *speed.BARS, *canary.BARS, *guard.BARS, *fidelity.BARS, *service.BARS,
    *thinking.BARS, *before.BARS,
)  # fmt: skip


def run(bars: Sequence[Bar], setting: Setting) -> Iterator[Row]:
    """Measure them one after the other, each in a folder of its own."""
    for bar in bars:
        with tempfile.TemporaryDirectory(dir=setting.scratch) as folder:
            row = judged(bar, replace(setting, scratch=Path(folder)))
        print(f"{bar.name} ({row.seconds:.1f} s): {row.measured}; met: {WORDS[row.met]}", flush=True)
        yield row


def main(arguments: Sequence[str] | None = None, bars: Sequence[Bar] = BARS) -> int:
    """Measure, print, keep; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[bar.name for bar in bars], metavar="NAME", help="these alone")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions; keeps nothing unless --out is given")
    parser.add_argument("--before", type=Path, metavar="DIR", help="a checkout from before external agents")
    parser.add_argument("--out", type=Path, help="default: training/results/injection")
    parser.add_argument("--list", action="store_true", help="names of the bars, and what they judge")
    given = parser.parse_args(arguments)
    if given.list:
        print("\n".join(f"{bar.name:12} {bar.words}: {bar.needed}" for bar in bars))
        return 0
    out = given.out or (None if given.quick else ROOT / "training/results/injection")
    chosen = [bar for bar in bars if not given.only or bar.name in given.only]
    with tempfile.TemporaryDirectory() as scratch:
        rows: list[Row] = []
        for row in run(chosen, Setting(given.quick, Path(scratch), given.before, out)):
            rows.append(row)
            if out is not None:
                kept(out, rows, [bar.name for bar in bars])
    print("\n" + table(rows))
    return 1 if missed(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
