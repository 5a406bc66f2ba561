"""The main job from end to end: train on the synchronous clock, evaluate on both, say in words what was found."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from heron_env.errors import ConfigError
from heron_env.evaluation.benchmark import NOTHING, RANDOM, Case
from heron_env.evaluation.evaluate import evaluate
from heron_env.evaluation.finding import beats, finding
from heron_env.evaluation.pictures import pictures
from heron_env.evaluation.policies import Baseline, PolicySpec, TrainedRun
from heron_env.evaluation.report import Report, write_report
from heron_env.evaluation.table import Table
from heron_env.registry import make

if TYPE_CHECKING:
    from rich.console import Console

    from heron_env.evaluation.runs import RunFolder
    from heron_env.learning.plan import Hyperparameters

TRAINED = "trained"
WORSE, INTERRUPTED = 1, 130
"""Exit codes: the trained policy does not beat chance and doing nothing; the user stopped it."""


@dataclass(frozen=True)
class DemoPlan:
    """How much is done.

    Attributes:
        train_seconds: time limit of the training, s, for machines that are slower than most.
        total_steps: transitions of a group after which training ends, if the time limit has not ended it before.
        days: held-out test cases.
        delays: from observation to effect, s; the synchronous clock is always among the clocks.
    """

    env_id: str = "heron/EnergyManagement-v0"
    train_seconds: float = 90.0
    total_steps: int = 2_500_000
    days: int = 10
    delays: tuple[float, ...] = (0.0, 30.0, 60.0, 120.0)
    processes: int = 2
    validations: int = 6
    validation_episodes: int = 8
    hyperparameters: Hyperparameters | None = None


FULL = DemoPlan()
SHORT = replace(FULL, train_seconds=15.0, days=2, validations=3, validation_episodes=4)


def run_demo(
    out: str | Path = "runs/demo",
    short: bool = False,
    seed: int = 0,
    *,
    plan: DemoPlan | None = None,
    quiet: bool = False,
) -> int:
    """Train, evaluate, report; files go to `out`: policy/ (the run folder), table.json, report.html.

    Args:
        out: folder; what a former demo left there is replaced.
        short: a few seconds of training and two days, for CI; `plan` overrides it.
        seed: of the training.
        plan: how much is done.
        quiet: print nothing.

    Returns:
        0; 1 if the trained policy does not beat random and do-nothing on the synchronous clock; 130 if interrupted.
    """
    from rich.console import Console

    chosen, out = plan or (SHORT if short else FULL), Path(out)
    console = Console(quiet=quiet, highlight=False)
    out.mkdir(parents=True, exist_ok=True)
    for name in ("table.json", "report.html"):
        (out / name).unlink(missing_ok=True)
    try:
        return _run(out, chosen, seed, console)
    except KeyboardInterrupt:
        console.print(f"\nInterrupted. {_left_behind(out)}")
        return INTERRUPTED


def _run(out: Path, plan: DemoPlan, seed: int, console: Console) -> int:
    from heron_env.learning.ppo import train

    started = time.monotonic()
    console.print(
        f"[bold]1. Training[/bold] on {plan.env_id}, synchronous clock, {plan.total_steps:,} transitions, "
        f"{plan.train_seconds:g} s at most; rules are compiled at the first use"
    )
    run = train(
        plan.env_id, out / "policy", total_steps=plan.total_steps, seed=seed, time_limit=plan.train_seconds,
        hyperparameters=plan.hyperparameters, validations=plan.validations,
        validation_episodes=plan.validation_episodes, progress=not console.quiet,
    )  # fmt: skip
    trained = time.monotonic()
    console.print(f"[bold]2. Evaluation[/bold] of the same policy on both clocks, {plan.days} held-out cases")
    specs, rule = _policies(plan, run)
    table = _evaluate(plan, specs, rule, console)
    table.write(out / "table.json")
    evaluated = time.monotonic()
    console.print(table.to_rich())
    words = finding(table, TRAINED, rule)
    report = Report(
        title=f"{plan.env_id}: trained on one clock, evaluated on two",
        finding=words,
        table=table,
        pictures=pictures(table, TRAINED, specs[TRAINED], run),
        facts=facts(table.cases, run)
        | {"Time": f"training {trained - started:.0f} s, evaluation {evaluated - trained:.0f} s"},
    )
    write_report(out / "report.html", report)
    console.print(words, style="bold")
    console.print(
        f"{out / 'report.html'}, {out / 'table.json'}, {out / 'policy'}; {time.monotonic() - started:.0f} s in all."
    )
    if beats(table, TRAINED):
        return 0
    console.print(f"[red]The trained policy does not beat {NOTHING!r} and {RANDOM!r} on the synchronous clock.[/red]")
    return WORSE


def _policies(plan: DemoPlan, run: RunFolder) -> tuple[dict[str, PolicySpec], str | None]:
    """What is compared, by name; and the name of the environment's best rule."""
    rule = make(plan.env_id).benchmark().strongest
    names = [name for name in (rule, NOTHING, RANDOM) if name is not None]
    return {TRAINED: TrainedRun(str(run.path)), **{name: Baseline(name) for name in names}}, rule


def _evaluate(plan: DemoPlan, specs: dict[str, PolicySpec], rule: str | None, console: Console) -> Table:
    from rich.progress import Progress

    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("episodes")
        return evaluate(
            plan.env_id, specs, clocks=("sync", *plan.delays), cases=plan.days, processes=plan.processes,
            sync_only=[name for name in specs if name not in (TRAINED, rule)],
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip


def facts(cases: list[Case], run: RunFolder | None = None) -> dict[str, str]:
    """How an evaluation was done, for the report."""
    told = {
        "Held out": (
            "Test cases that neither training nor tuning has seen. Where the environment has days, what is held out is "
            "weather and seeds: the shapes of the loads nearly repeat from day to day."
        ),
        "Cases": "; ".join(map(str, cases)),
        "Delay": (
            "Latency from observation to effect, put into act_delay of every agent: what is seen is fresh, what is "
            "done comes late. Delays are rounded down to whole physics substeps."
        ),
        "Intervals": (
            "Student's t, 95 %, over the cases; differences are paired by case. They say nothing about other "
            "training seeds."
        ),
    }
    if run is None:
        return told
    config = run.config
    scored = ", ".join(
        f"{name} {value:.2f}" for name, value in sorted(config.validation.items(), key=lambda item: -item[1])
    )
    told["Training"] = (
        f"PPO with a {config.critic} critic, seed {config.seed}, {config.transitions:,} transitions in "
        f"{config.seconds:.0f} s, training options {config.training_options}, corrects {config.base!r}. "
        "One training seed."
    )
    told["Validation"] = f"Mean returns with the training options: {scored}."
    return told


def _left_behind(out: Path) -> str:
    """What an interrupted demo leaves, and what can be done with it."""
    from heron_env.evaluation.runs import RunFolder

    try:
        RunFolder.open(out / "policy")
    except ConfigError:
        return f"Training was not finished; its course so far is in {out / 'policy' / 'progress.csv'}."
    return f"The policy is trained and kept: heron eval {out / 'policy'}"
