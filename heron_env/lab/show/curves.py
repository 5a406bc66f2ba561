"""Learning curves: of a training under way, in a notebook, and of finished runs, as a mean over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError
from heron_env.lab.figure_style import SERIES, blank, end_labels, house_style, line_and_band, to_png
from heron_env.lab.learning.events import PolicyValidated, RolloutEnded, TrainingEnded, TrainingEvent
from heron_env.lab.robust_stats import mean_interval
from heron_env.lab.runs import RunFolder
from heron_env.lab.show.document import Picture, Section
from heron_env.lab.show.figures import learning_figure
from heron_env.lab.show.parts import training_unit
from heron_env.pictures.notebook import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Run = RunFolder | str | Path
EVERY = 2.0
"""s between two drawings of a curve that grows."""


class LiveCurve:
    """A callback that draws the learning curve of a running training in a notebook, every 2 s at most.

    Above is the return in validation, below the mean training signal of each rollout, a mean over the groups.

    Args:
        show: gets each figure; None: it takes the place of the last one below the notebook's cell.

    Example: `train("heron/BatteryGrid-v0", "runs/grid", total_steps=100_000, callbacks=LiveCurve())`.
    """

    def __init__(self, show: Callable[[Figure], object] | None = None) -> None:
        self._show = _below_the_cell() if show is None else show
        self._validated, self._signals = list[tuple[float, float]](), list[tuple[float, float]]()
        self._drawn = 0.0

    def __call__(self, event: TrainingEvent) -> None:
        """Note what it tells, and draw."""
        if isinstance(event, PolicyValidated):
            self._validated.append((event.steps, event.root_return))
        if isinstance(event, RolloutEnded):
            self._signals.append((event.steps, float(np.mean([*event.signals.values()]))))
        if isinstance(event, TrainingEnded) or (self._signals and event.seconds >= self._drawn + EVERY):
            self._drawn = event.seconds
            titles = "Return in validation", "Training signal per transition"
            self._show(
                learning_figure(
                    self._validated, {}, self._signals, x_label="transitions", y_label="return", titles=titles
                )
            )


def _below_the_cell() -> Callable[[Figure], object]:
    try:
        notebook: Any = import_module("IPython.display")
    except ImportError as error:
        raise ConfigError("LiveCurve() draws in a notebook: pip install 'heron_env[notebooks]'") from error
    handle = notebook.display(display_id=True)
    return lambda figure: handle.update(notebook.Image(to_png(figure)))


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
