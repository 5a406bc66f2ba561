"""How late may messages and actions be? Delays up to which policies keep 95 % of their gain, EnergyManagement.

    python training/margins.py              # the rule, MPC, and PPO, which is trained where its run is missing
    python training/margins.py --days 8 --policies rule --out runs/margins     # a small one

All 73 test days; delays from 2 s, one substep of physics, to 60 s. PPO is the first of the five training seeds of
honest_gap.py: these margins say nothing about others. A margin that is in --out is not made again.
"""

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Final

import honest_gap

from heron_env.lab import margin
from heron_env.lab.figure_style import to_svg
from heron_env.lab.show.tolerance import margin_figure

POLICIES: Final[dict[str, Callable[[], str]]] = {
    "rule": lambda: honest_gap.STRONGEST,
    honest_gap.MPC: lambda: honest_gap.MPC,
    honest_gap.TRAINED: lambda: honest_gap.Study(seeds=(0,)).train()[0],
}
FAULTS: Final = ("msg_delay", "act_delay")
LARGEST: Final = 60.0
OUT: Final = Path("training/results/margins")


def measured(policies: list[str], out: Path = OUT, days: int = 73) -> None:
    """Each policy under each fault, in a folder of its own."""
    for name in policies:
        for fault in FAULTS:
            folder = out / f"{name}-{fault}"
            if folder.exists():
                continue
            found = margin(
                honest_gap.ENV, POLICIES[name](), name=name, fault=fault, largest=LARGEST, cases=days, progress=print
            )
            found.write(folder)
            if not math.isnan(found.low):
                (folder / "margin.svg").write_bytes(to_svg(margin_figure(found), text=True))
            print(found, flush=True)


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument("--days", type=int, default=73)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    measured(given.policies, given.out, given.days)


if __name__ == "__main__":
    main()
