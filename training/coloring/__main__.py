"""What graph colouring reaches, by one command: a table of bars; ends with 1 where one is missed.

    pip install heron_env[solvers,train,plots]
    python -m training.coloring                    # all; the trainings alone take about 20 minutes
    python -m training.coloring --only dsa maxsum
    python -m training.coloring --quick            # fewer repetitions; nothing is kept

Kept in --out: bars.json, bars.md, and figures. Bars of other runs stay in them until they are measured again.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from training.coloring import controls, learning, negotiation, solvers
from training.coloring.bars import Bar, parser_of, run_bars

BARS: tuple[Bar, ...] = (*solvers.BARS, *negotiation.BARS, *controls.BARS, *learning.BARS)
RESULTS = Path(__file__).resolve().parents[1] / "results" / "coloring"


def main(arguments: Sequence[str] | None = None, bars: Sequence[Bar] = BARS) -> int:
    """Measure, print, keep; 1 where a bar is missed."""
    return run_bars(parser_of(__doc__ or "", bars).parse_args(arguments), bars, RESULTS)


if __name__ == "__main__":
    sys.exit(main())
