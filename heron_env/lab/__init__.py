"""Evaluation of policies: run folders, statistics, sweeps under networks, margins, reports, real time.

Public are the names in `__init__.pyi`, and the modules `benchmark` (baselines, cases) and `board` (the leaderboard).
"""

from heron_env.lazily import lazily

_NETWORK = "policies of a run are NetworkPolicy, which load_policy(run) and RunFolder.open(run).policies(env) give"
_PLOT = "write plot() of the result"
GONE = {
    "Checkpoint": "RunFolder.save(file) writes one, load_policy(file) reads it",
    "Choice": _NETWORK,
    "Interval": "Estimate has the same figures, mean, low, high and n",
    "LiveCurve": "train(..., logger='tensorboard') draws curves as they grow, learning_curves(runs) finished ones",
    "Network": _NETWORK,
    "Predicting": "examples/predicting.py is one for a world of your own",
    "Scaling": _NETWORK,
    "WithoutAges": "use the policy in an environment without observe_age=True, or train it with the ages",
    "coalitions": "[c.only(*some) for n in range(len(c.causes) + 1) for some in itertools.combinations(c.causes, n)]",
    "export_checkpoint": "RunFolder.open(run).save(file)",
    "hierarchy_figure": "describe_environment(env_id, options)[0].plot()",
    "margin_figure": f"{_PLOT} of margin() or read_margin()",
    "network_of": _NETWORK,
    "run_demo": "run the command heron demo: it is train, Sweep.of(...).run and write_report",
    "sweep_figure": f"{_PLOT}, SweepResult.plot(cause)",
    "unique": "Sweep.of takes each condition once by itself; list(dict.fromkeys(conditions)) does the same",
    "waterfall_figure": "result.decompositions[0].plot(unit)",
}

__getattr__, __dir__, __all__ = lazily(__name__, __file__, GONE)
