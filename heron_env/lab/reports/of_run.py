"""The part of a report on a training: the learning curve of a run folder."""

from __future__ import annotations

import math

from heron_env.errors import Untrusted
from heron_env.lab.benchmark import NOTHING
from heron_env.lab.episodes import Earned, groups_apart
from heron_env.lab.figures import learning_figure
from heron_env.lab.reports.document import Part, Picture
from heron_env.lab.runs import RunConfig, RunFolder


def training_part(run: RunFolder, name: str = "learning") -> Part:
    """A curve for each group. Raises RunFolderError where progress.csv is missing."""
    rows, config = [row for row in run.curve() if math.isfinite(float(row["validation_return"]))], run.config
    curves = [[row for row in rows if row["group"] == group] for group in config.groups]
    drawn = [
        _learning(run, group, curve, name if len(curves) == 1 else f"{name}-{group.replace(':', '_')}")
        for group, curve in zip(config.groups, curves, strict=True)
        if len(curve) > 1
    ]
    return Part("Training", drawn or ["The run folder has no curve: there were no validations while it was trained."])


def training_facts(run: RunFolder) -> dict[str, str]:
    """What was trained on what, in words."""
    config = run.config
    scores = sorted(config.validation.items(), key=lambda item: -item[1])
    late = "" if config.training_delays is None else f", {config.training_delays}"
    late += "" if config.schedule is None else f", on the event clock under {config.schedule}"
    options = ", ".join(f"{name} {value}" for name, value in config.training_options.items()) or "of the environment"
    rule = "decides alone" if config.base is None else f"corrects {config.base!r}"
    return {
        "Training": (
            f"PPO with a {config.critic} critic, seed {config.seed}, {config.transitions:,} transitions in "
            f"{config.seconds:.0f} s, training options {options}{late}; it {rule}. "
            "One training seed."
        ),
        "Validation": (
            f"Mean return of {config.return_of} with the training options: "
            f"{', '.join(f'{n} {x:.2f}' for n, x in scores)}.{_by_group(config)}"
        ),
    }


def _by_group(config: RunConfig) -> str:
    """What each group earned in sum, where that is not what the root did."""
    kept = config.validation_by_group
    earned = {name: Earned(root, kept[name]) for name, root in config.validation.items() if name in kept}
    apart = groups_apart([*earned.values()])
    told = "; ".join(f"{name}: {each.words(apart)}" for name, each in earned.items())
    return f" In sum by group: {told}." if apart else ""


def _learning(run: RunFolder, group: str, rows: list[dict[str, str]], name: str) -> Picture:
    config = run.config
    points = [(float(row["transitions"]), float(row["validation_return"])) for row in rows]
    own = [(x, float(row.get("group_return", "nan"))) for (x, _), row in zip(points, rows, strict=True)]
    both = [Earned(root, {group: mine}) for (_, root), (_, mine) in zip(points, own, strict=True)]
    apart = groups_apart(both) and all(math.isfinite(mine) for _, mine in own)
    names = [known for known in (NOTHING, config.base) if known in config.validation]
    others = [known for known in config.validation if known != "trained"]
    best = [max(others, key=lambda known: config.validation[known])] if others else []
    levels = {known: config.validation[known] for known in dict.fromkeys([*names, *best]) if known is not None}
    with_step = f" at dt = {config.training_options['dt']:g} s" if "dt" in config.training_options else ""
    whose = f" of {group}" if len(config.groups) > 1 else ""
    return Picture(
        name,
        learning_figure(
            points,
            levels,
            own if apart else (),
            x_label="transitions",
            y_label=_unit(run),
            titles=(f"Learning curve: return of {config.return_of}", f"Sum of the returns of {group}"),
        ),
        f"Training{whose} took {config.seconds:.0f} s and {config.transitions:,} transitions{with_step}, "
        f"with seed {config.seed}: mean return of {config.return_of} under the deterministic policy on validation "
        f"cases, which neither training nor the tables use.{f' Below, the sum of those of {group}.' if apart else ''}",
        f"Learning curve{whose}: return of {config.return_of} from {points[0][1]:.1f} to {points[-1][1]:.1f}; "
        + (f"{group} in sum from {own[0][1]:.1f} to {own[-1][1]:.1f}; " if apart else "")
        + ", ".join(f"{known} {level:.1f}" for known, level in levels.items()),
    )


def _unit(run: RunFolder) -> str:
    """For a label alone; of an environment that may not be built here it stays unknown."""
    try:
        return run.make().benchmark().unit or "return"
    except Untrusted:
        return "return"
