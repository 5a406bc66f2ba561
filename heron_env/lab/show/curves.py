"""Learning curves of finished runs, as a mean over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError
from heron_env.lab.figure_style import SERIES, blank, end_labels, house_style, line_and_band
from heron_env.lab.robust_stats import mean_interval
from heron_env.lab.runs import RunFolder
from heron_env.lab.show.document import Picture, Section
from heron_env.lab.show.parts import training_unit
from heron_env.pictures.notebook import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Run = RunFolder | str | Path


def learning_curves(runs: Run | Sequence[Run] | Mapping[str, Sequence[Run]]) -> Figure:
    """Return of the root in validation against the transitions of a group: the mean over runs, with its 95 % interval.

    Where runs were measured at different transitions, there are straight lines between; drawn is what all cover.

    Args:
        runs: finished runs, or their folders; by name: a line for each.

    Raises:
        RunFolderError: one is no finished run.
        ConfigError: none of a name was validated, or matplotlib is missing.

    Example: `learning_curves({"lean": ["runs/lean-0", "runs/lean-1"], "sb3": ["runs/sb3-0", "runs/sb3-1"]})`.
    """
    one = [runs] if isinstance(runs, Run) else runs
    named = {name: [*map(_opened, some)] for name, some in (one if isinstance(one, Mapping) else {"": one}).items()}
    with house_style():
        figure, (axes,) = blank(3.1)
        labels = []
        for number, (name, some) in enumerate(named.items()):
            colour, curves = SERIES[number % len(SERIES)], [*filter(len, map(_curve, some))]
            if not curves:
                raise ConfigError(f"learning_curves(): no run of {name!r} was validated; train some, or leave it out")
            first, last = max(curve[0, 0] for curve in curves), min(curve[-1, 0] for curve in curves)
            if first > last:
                raise ConfigError(f"learning_curves(): runs of {name!r} were validated at no common transitions")
            x = np.unique([at for curve in curves for at in curve[:, 0] if first <= at <= last])
            values = np.array([np.interp(x, *curve.T) for curve in curves])
            means = [mean_interval(column) for column in values.T]
            y, low, high = np.array([(one.mean, one.low, one.high) for one in means]).T
            line_and_band(axes, x, y, (low, high), color=colour, marker="o", markersize=3.0, label=name)
            labels.append((y[-1], f"{name} (n = {len(curves)})".lstrip(), colour))
        label = "return"
        if run := next((run for some in named.values() for run in some), None):
            label = f"return of {run.config.return_of}, {training_unit(run)}".removesuffix(", ")
        axes.set(xlabel="transitions", ylabel=label)
        axes.set_title("Return in validation" + "\n(bands: 95 % intervals over seeds)" * bool(axes.collections))
        end_labels(axes, labels)
    return figure


def pooled_part(runs: Sequence[RunFolder], name: str) -> Section:
    """One curve of the trainings of several seeds."""
    seeds, root = shortened([str(run.config.seed) for run in runs], 8), runs[0].config.return_of
    text = (
        f"Mean return of {root} in validation over {len(runs)} trainings, seeds {seeds}; the band is its 95 % interval."
    )
    return Section("Training", [Picture(name, learning_curves(runs), text, f"Learning curve. {text}")])


def _opened(run: Run) -> RunFolder:
    return run if isinstance(run, RunFolder) else RunFolder.open(run)


def _curve(run: RunFolder) -> NDArray[np.float64]:
    """`[n, 2]`: transitions and return; of the group that was trained last, where they were trained one by one."""
    rows = run.curve()
    points = [(row["transitions"], row["validation_return"]) for row in rows if row["group"] == rows[-1]["group"]]
    curve = np.array(points, dtype=np.float64).reshape(-1, 2)
    return curve[np.isfinite(curve[:, 1])]
