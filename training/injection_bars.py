"""What must be shown of external agents, by one command: a table of bars; ends with 1 where one is missed.

    pip install heron_env[inject,serve,train,dev]
    python training/injection_bars.py --before DIR     # all; DIR: a checkout of ce9fb5e, from before external agents
    python training/injection_bars.py --only breaker deadline
    python training/injection_bars.py --quick          # fewer repetitions; nothing is kept

Kept in --out: bars.json, bars.md, and thinking.svg. Bars of other runs stay in them until they are measured again.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])

from training.bars import Bar, carried_out, parser_of  # noqa: E402
from training.endpoints import before, canary, client, faults, fidelity, guard, memory, service, speed, thinking  # noqa: E402

BARS: tuple[Bar, ...] = (
    *faults.BARS, *client.BARS, *memory.BARS, *speed.BARS, *canary.BARS, *guard.BARS, *fidelity.BARS, *service.BARS,
    *thinking.BARS, *before.BARS,
)  # fmt: skip


def main(arguments: Sequence[str] | None = None, bars: Sequence[Bar] = BARS) -> int:
    """Measure, print, keep; 1 where a bar is missed."""
    parser = parser_of(__doc__ or "", bars, "training/results/injection")
    parser.add_argument("--before", type=Path, metavar="DIR", help="a checkout from before external agents")
    given = parser.parse_args(arguments)
    return carried_out(given, bars, ROOT / "training/results/injection", before=given.before)


if __name__ == "__main__":
    sys.exit(main())
