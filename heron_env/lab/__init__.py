"""What a policy is worth: run folders and their policies, statistics, both clocks, sweeps of what is wrong with one.

Public are the names below, and the modules `benchmark` (references) and `figure_style` (how figures look).
"""

from typing import TYPE_CHECKING

from heron_env.lazily import lazily

if TYPE_CHECKING:
    from heron_env.lab.cause_figures import waterfall_figure
    from heron_env.lab.describing.description import describe_environment
    from heron_env.lab.describing.description_figure import hierarchy_figure
    from heron_env.lab.episodes import team_return
    from heron_env.lab.exporting.onnx_file import export_onnx
    from heron_env.lab.figures import sweep_figure
    from heron_env.lab.gap.axes import along, coalitions, one_at_a_time, unique
    from heron_env.lab.gap.conditions import IDEAL, SYNC, Condition
    from heron_env.lab.gap.reading import read_sweep
    from heron_env.lab.gap.results import SweepResult
    from heron_env.lab.gap.sweep import Sweep
    from heron_env.lab.gap.words import finding
    from heron_env.lab.learning.demo import run_demo
    from heron_env.lab.learning.plan import Hyperparameters
    from heron_env.lab.learning.ppo import train
    from heron_env.lab.policies import Baseline, PolicySpec, TrainedRun
    from heron_env.lab.real_time import Punctuality, run_real_time
    from heron_env.lab.remedies import LocalFallback, Smoothing, WithoutAges
    from heron_env.lab.reports.document import write_report
    from heron_env.lab.reports.whole import Sources, report_of
    from heron_env.lab.robust_stats import Estimate, Intervals
    from heron_env.lab.runs import RunFolder, load_policy, versions
    from heron_env.lab.stats import Interval, mean_interval, paired_difference
    from heron_env.lab.traces.recording import record_episode
    from heron_env.lab.traces.series import TimeSeries
    from heron_env.lab.traces.timeline import draw
    from heron_env.lab.trained import Choice, Network, NetworkPolicy, Scaling, network_of

_HOMES = {
    "cause_figures": ("waterfall_figure",),
    "describing.description": ("describe_environment",),
    "describing.description_figure": ("hierarchy_figure",),
    "episodes": ("team_return",),
    "exporting.onnx_file": ("export_onnx",),
    "figures": ("sweep_figure",),
    "gap.axes": (
        "along",
        "coalitions",
        "one_at_a_time",
        "unique",
    ),
    "gap.conditions": (
        "Condition",
        "IDEAL",
        "SYNC",
    ),
    "gap.reading": ("read_sweep",),
    "gap.results": ("SweepResult",),
    "gap.sweep": ("Sweep",),
    "gap.words": ("finding",),
    "learning.demo": ("run_demo",),
    "learning.plan": ("Hyperparameters",),
    "learning.ppo": ("train",),
    "policies": (
        "Baseline",
        "PolicySpec",
        "TrainedRun",
    ),
    "real_time": (
        "Punctuality",
        "run_real_time",
    ),
    "remedies": (
        "LocalFallback",
        "Smoothing",
        "WithoutAges",
    ),
    "reports.document": ("write_report",),
    "reports.whole": (
        "Sources",
        "report_of",
    ),
    "robust_stats": (
        "Estimate",
        "Intervals",
    ),
    "runs": (
        "RunFolder",
        "load_policy",
        "versions",
    ),
    "stats": (
        "Interval",
        "mean_interval",
        "paired_difference",
    ),
    "traces.recording": ("record_episode",),
    "traces.series": ("TimeSeries",),
    "traces.timeline": ("draw",),
    "trained": (
        "Choice",
        "Network",
        "NetworkPolicy",
        "Scaling",
        "network_of",
    ),
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "IDEAL",
    "SYNC",
    "Baseline",
    "Choice",
    "Condition",
    "Estimate",
    "Hyperparameters",
    "Interval",
    "Intervals",
    "LocalFallback",
    "Network",
    "NetworkPolicy",
    "PolicySpec",
    "Punctuality",
    "RunFolder",
    "Scaling",
    "Smoothing",
    "Sources",
    "Sweep",
    "SweepResult",
    "TimeSeries",
    "TrainedRun",
    "WithoutAges",
    "along",
    "coalitions",
    "describe_environment",
    "draw",
    "export_onnx",
    "finding",
    "hierarchy_figure",
    "load_policy",
    "mean_interval",
    "network_of",
    "one_at_a_time",
    "paired_difference",
    "read_sweep",
    "record_episode",
    "report_of",
    "run_demo",
    "run_real_time",
    "sweep_figure",
    "team_return",
    "train",
    "unique",
    "versions",
    "waterfall_figure",
    "write_report",
]
