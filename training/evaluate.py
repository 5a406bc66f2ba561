"""Evaluate run folders and baselines on both clocks, as `heron eval`: see `python training/evaluate.py --help`."""

import sys

from heron_env.cli import app

if __name__ == "__main__":
    app(["eval", *sys.argv[1:]], prog_name="heron")
