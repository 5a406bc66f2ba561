"""Train a policy, as `heron train`: see `python training/train.py --help`."""

import sys

from heron_env.cli import app

if __name__ == "__main__":
    app(["train", *sys.argv[1:]], prog_name="heron")
