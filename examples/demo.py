"""Train, evaluate on both clocks, write a report: `python examples/demo.py [--short] [--seed N] [--out DIR]`."""

import argparse
import sys

from heron_env.lab import run_demo

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few seconds of training and two days, for CI")
    parser.add_argument("--seed", type=int, default=0, help="of the training")
    parser.add_argument("--out", default="runs/demo", help="folder for the policy, two sweeps and the report")
    given = parser.parse_args()
    sys.exit(run_demo(given.out, short=given.short, seed=given.seed))
