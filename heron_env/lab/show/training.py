"""How a policy was learned: learning curves of one run and of several seeds, and what was trained on what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError, HeronError
from heron_env.lab.benchmark import NOTHING
from heron_env.lab.episodes import Earned, groups_apart
from heron_env.lab.figure_style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    PURPLE,
    SERIES,
    VERMILION,
    blank,
    end_labels,
    house_style,
    line_and_band,
)
from heron_env.lab.output import EARNS, Tile, with_unit
from heron_env.lab.robust_stats import mean_interval
from heron_env.lab.runs import RunConfig, RunFolder
from heron_env.lab.show.document import Picture, Section
from heron_env.pictures.notebook import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Run = RunFolder | str | Path


def learning_curves(runs: Run | Sequence[Run] | Mapping[str, Sequence[Run]]) -> Figure:
    """Plot learning curves: the root's return in validation, mean over runs with its 95 % interval.

    The x axis is transitions of a group. Runs are interpolated linearly, over the range that all cover.

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
            late = ", under its network" * any(run.config.schedule is not None for run in some)
            labels.append((y[-1], f"{name}{late} (n = {len(curves)})".lstrip(), colour))
        label = "return"
        if run := next((run for some in named.values() for run in some), None):
            label = f"return of {run.config.return_of}, {training_unit(run)}".removesuffix(", ")
        axes.set(xlabel="transitions", ylabel=label)
        axes.set_title("Return in validation" + "\n(bands: 95 % intervals over seeds)" * bool(axes.collections))
        axes.locator_params(axis="x", nbins=5)
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
    rows, of = run.curve(), "validation_return" if run.config.schedule is None else "return_under_schedule"
    points = [(row["transitions"], row[of]) for row in rows if row["group"] == rows[-1]["group"]]
    curve = np.array(points, dtype=np.float64).reshape(-1, 2)
    return curve[np.isfinite(curve[:, 1])]


def training_part(run: RunFolder, name: str = "learning") -> Section:
    """A curve for each group. Raises RunFolderError where progress.csv is missing."""
    rows, config = [row for row in run.curve() if math.isfinite(float(row["validation_return"]))], run.config
    curves = [[row for row in rows if row["group"] == group] for group in config.groups]
    pictures = [
        _learning(run, group, curve, name if len(curves) == 1 else f"{name}-{group.replace(':', '_')}")
        for group, curve in zip(config.groups, curves, strict=True)
        if len(curve) > 1
    ]
    return Section(
        "Training", pictures or ["The run folder has no learning curve, because the training had no validations."]
    )


def training_facts(run: RunFolder) -> dict[str, str]:
    """What was trained on what, in words."""
    config = run.config
    scores = sorted(config.validation.items(), key=lambda item: -item[1])
    late = "" if config.training_delays is None else f", training delays {config.training_delays}"
    late += "" if config.schedule is None else f", on the event clock under {config.schedule}"
    options = ", ".join(f"{name} {value}" for name, value in config.training_options.items()) or "of the environment"
    rule = "decides alone" if config.base is None else f"corrects {config.base!r}"
    return {
        "Training": (
            f"{config.algorithm.upper()} with a {config.critic} critic, seed {config.seed}, {config.transitions:,} "
            f"transitions in {config.seconds:.0f} s, training options {options}{late}; it {rule}. "
            "One training seed."
        ),
        "Validation": (
            f"Mean return of {config.return_of} with the training options: "
            f"{', '.join(f'{n} {x:.2f}' for n, x in scores)}.{_by_group(config)}"
        ),
    }


def _by_group(config: RunConfig) -> str:
    """What each group earned in sum, where that is not what the root did."""
    by_group = config.validation_by_group
    earned = {name: Earned(root, by_group[name]) for name, root in config.validation.items() if name in by_group}
    apart = groups_apart([*earned.values()])
    text = "; ".join(f"{name}: {each.words(apart)}" for name, each in earned.items())
    return f" In sum by group: {text}." if apart else ""


def _learning(run: RunFolder, group: str, rows: list[dict[str, str]], name: str) -> Picture:
    config = run.config
    points = [(float(row["transitions"]), float(row["validation_return"])) for row in rows]
    own = [(x, float(row.get("group_return", "nan"))) for (x, _), row in zip(points, rows, strict=True)]
    both = [Earned(root, {group: mine}) for (_, root), (_, mine) in zip(points, own, strict=True)]
    apart = groups_apart(both) and all(math.isfinite(mine) for _, mine in own)
    names = [policy for policy in (NOTHING, config.base) if policy in config.validation]
    others = [policy for policy in config.validation if policy != "trained"]
    best = [max(others, key=lambda policy: config.validation[policy])] if others else []
    levels = {policy: config.validation[policy] for policy in dict.fromkeys([*names, *best]) if policy is not None}
    with_step = f" at dt = {config.training_options['dt']:g} s" if "dt" in config.training_options else ""
    of_group = f" of {group}" if len(config.groups) > 1 else ""
    return Picture(
        name,
        learning_figure(
            points,
            levels,
            own if apart else (),
            x_label="transitions",
            y_label=training_unit(run) or "return",
            titles=(f"Learning curve: return of {config.return_of}", f"Sum of the returns of {group}"),
        ),
        f"Training{of_group} took {config.seconds:.0f} s and {config.transitions:,} transitions{with_step}, "
        f"with seed {config.seed}: mean return of {config.return_of} under the deterministic policy on validation "
        f"cases, which neither training nor the tables use.{f' Below, the sum of those of {group}.' if apart else ''}",
        f"Learning curve{of_group}: return of {config.return_of} from {points[0][1]:.1f} to {points[-1][1]:.1f}; "
        + (f"{group} in sum from {own[0][1]:.1f} to {own[-1][1]:.1f}; " if apart else "")
        + ", ".join(f"{policy} {level:.1f}" for policy, level in levels.items()),
    )


def training_unit(run: RunFolder) -> str:
    """For a label alone; "" of an environment that can't be built here."""
    try:
        return run.make().benchmark().unit
    except HeronError:
        return ""


def learning_figure(
    points: Sequence[tuple[float, float]],
    levels: Mapping[str, float],
    below: Sequence[tuple[float, float]] = (),
    *,
    x_label: str,
    y_label: str,
    titles: tuple[str, str],
) -> Figure:
    """The learning curve, for comparison the levels of policies that did not learn, and `below` another curve."""
    with house_style():
        figure, (axes, *lowers) = blank(4.7 if below else 3.1, rows=2 if below else 1, sharex=True)
        for lower in lowers:
            lower.plot(*np.array(below, dtype=np.float64).T, color=BLUE, marker="o", markersize=3.0)
            lower.set_ylabel(y_label)
            lower.set_title(titles[1])
        x, y = np.array(points, dtype=np.float64).reshape(-1, 2).T
        axes.plot(x, y, color=BLUE, marker="o", markersize=3.0)
        labels = [(float(y[-1]), "in training", BLUE)] if len(y) else []
        others = iter((VERMILION, GREEN, PURPLE, INK))
        for name, level in levels.items():
            colour = GREY if name == NOTHING else next(others)
            axes.axhline(level, color=colour, linewidth=1.2, linestyle=(0, (5, 3)))
            labels.append((level, name, colour))
        figure.axes[-1].set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.xaxis.set_major_formatter(
            lambda value, _: f"{value / 1e6:g} M" if value and x.max(initial=0.0) >= 4e5 else f"{value:g}"
        )
        axes.margins(x=0.02, y=0.08)
        end_labels(axes, labels)
        axes.set_title(titles[0])
        return figure


def training_verdict(run: RunFolder) -> list[Tile]:
    """What the trained policy earns in validation, and what the best other one does."""
    config = run.config
    scores, unit = dict(config.validation), training_unit(run)
    options = "with the training options, one training seed"
    own = scores.pop("trained", None)
    tiles = [] if own is None else [Tile(EARNS, with_unit(f"{own:.2f}", unit), f"mean return in validation, {options}")]
    if scores:
        best = max(scores, key=lambda name: scores[name])
        tiles.append(
            Tile(f"{best!r} earns", with_unit(f"{scores[best]:.2f}", unit), "the best of the others, same episodes")
        )
    return tiles
