"""Opening runs."""

from heron_env.lab.runs import CHECKPOINTS, MOST, ZOO, load_policy, open_run, shipped

__all__ = ["CHECKPOINTS", "MOST", "ZOO", "load_policy", "open_run", "shipped"]
