"""Policies of a recorded sweep, measured again with this version of heron_env: where a law has changed.

    python training/again.py training/results/honest_gap/references random

The sweep stays as it was recorded; the new episodes are in the folder `again` inside it. `read` has both, and of a
policy that was measured again the new ones.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from heron_env import Sweep
from heron_env.lab import SweepResult, read_sweep

AGAIN: Final = "again"


def read(folder: Path) -> SweepResult:
    """A recorded sweep, with what was measured again."""
    return read_sweep(folder, *([folder / AGAIN] if (folder / AGAIN / "table.json").is_file() else []))


def measured(folder: Path, policies: Sequence[str], processes: int) -> SweepResult:
    """Measure these policies of a recorded sweep again."""
    recorded = read_sweep(folder).sweep
    sweep = Sweep.of(
        recorded.env.id, {name: recorded.policies[name] for name in policies}, recorded.conditions,
        cases=recorded.cases, options=recorded.options,
    )  # fmt: skip
    return sweep.run(folder / AGAIN, processes=processes)


def main() -> None:
    """Measure again; what is read by which script, its report tells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of the sweep")
    parser.add_argument("policies", nargs="+", help="their names in it")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    measured(given.folder, given.policies, given.processes)


if __name__ == "__main__":
    main()
