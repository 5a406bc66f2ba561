"""What must be shown of graph colouring, by one command: a table of bars; ends with 1 where one is missed.

    pip install heron_env[dcop,inject,train,plots]
    python training/coloring_bars.py                    # all; the trainings alone take about 20 minutes
    python training/coloring_bars.py --only dsa maxsum
    python training/coloring_bars.py --quick            # fewer repetitions; nothing is kept

Kept in --out: bars.json, bars.md, and figures. Bars of other runs stay in them until they are measured again.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])

from training.bars import Bar, carried_out, parser_of  # noqa: E402
from training.coloring import controls, learning, negotiation, solvers, talking  # noqa: E402

BARS: tuple[Bar, ...] = (*solvers.BARS, *negotiation.BARS, *controls.BARS, *talking.BARS, *learning.BARS)


def main(arguments: Sequence[str] | None = None, bars: Sequence[Bar] = BARS) -> int:
    """Measure, print, keep; 1 where a bar is missed."""
    given = parser_of(__doc__ or "", bars, "training/results/coloring").parse_args(arguments)
    return carried_out(given, bars, ROOT / "training/results/coloring")


if __name__ == "__main__":
    sys.exit(main())
