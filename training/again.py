"""Policies of a recorded sweep, measured again with this version of heron_env: where a law has changed.

    python training/again.py training/results/honest_gap references random

What was recorded stays as it is; the new episodes are kept beside it (episodes.py), and of a policy that was measured
again those are read.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import episodes

from heron_env import Sweep
from heron_env.lab import SweepResult


def measured(study: Path, name: str, policies: Sequence[str], processes: int) -> SweepResult:
    """Measure these policies of a sweep that a study keeps again, and keep them."""
    recorded = episodes.read(study, name, again=False).sweep
    sweep = Sweep.of(
        recorded.env.id, {name: recorded.policies[name] for name in policies}, recorded.conditions,
        cases=recorded.cases, options=recorded.options,
    )  # fmt: skip
    with TemporaryDirectory() as folder:
        found = sweep.run(folder, processes=processes)
        episodes.keep(study, {f"{name}/{episodes.AGAIN}": Path(folder)})
    return found


def main() -> None:
    """Measure again; what is read by which script, its report tells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="the folder that keeps its episodes")
    parser.add_argument("sweep", help="its name there")
    parser.add_argument("policies", nargs="+", help="their names in it")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    measured(given.study, given.sweep, given.policies, given.processes)


if __name__ == "__main__":
    main()
