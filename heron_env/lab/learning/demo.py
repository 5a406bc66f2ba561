"""The main job from end to end: train on the synchronous clock, evaluate on both, say in words what was found."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from heron_env.lab.benchmark import NOTHING, RANDOM
from heron_env.lab.learning.validation import unfinished
from heron_env.lab.output import styled, terminal
from heron_env.lab.policies import Baseline, PolicySpec, TrainedRun
from heron_env.lab.runs import RunFolder, files_of_run
from heron_env.lab.show.document import PAGE, write_report
from heron_env.lab.show.report import Sources, report_of
from heron_env.lab.sweep.conditions import along, one_at_a_time
from heron_env.lab.sweep.presets import preset, realistic
from heron_env.lab.sweep.records import SETTINGS
from heron_env.lab.sweep.sweep import Sweep
from heron_env.lab.sweep.tables import to_rich
from heron_env.registry import make

if TYPE_CHECKING:
    from rich.console import Console

    from heron_env.lab.learning.plan import Hyperparameters

TRAINED = "trained"
WORSE, INTERRUPTED = 1, 130
"""Exit codes: the trained policy earns no more in the mean than chance and doing nothing; the user stopped it."""


@dataclass(frozen=True)
class DemoPlan:
    """How much is done.

    Attributes:
        train_seconds: time limit of the training, s, for machines that are slower than most.
        total_steps: transitions of a group after which training ends, if the time limit has not ended it before.
        days: held-out test cases.
        cause_days: test cases on which the gap is taken apart by cause.
        delays: of actions, s; the synchronous clock is always there for comparison.
    """

    env_id: str = "heron/EnergyManagement-v1"
    train_seconds: float = 90.0
    total_steps: int = 1_200_000
    days: int = 10
    cause_days: int = 3
    delays: tuple[float, ...] = (0.0, 30.0, 60.0, 120.0)
    processes: int = 2
    validations: int = 6
    validation_episodes: int = 8
    hyperparameters: Hyperparameters | None = None


FULL = DemoPlan()
SHORT = replace(
    FULL, train_seconds=25.0, days=2, cause_days=1, delays=(0.0, 60.0), validations=3, validation_episodes=4
)
DELAYS, CAUSES = "delays", "causes"
"""Folders of the two sweeps."""


def run_demo(
    out: str | Path = "runs/demo",
    short: bool = False,
    seed: int = 0,
    *,
    plan: DemoPlan | None = None,
    quiet: bool = False,
) -> int:
    """Train, evaluate, report; files go to `out`: policy/ (the run), delays/ and causes/ (sweeps), and report.html.

    Args:
        out: folder; what a former demo left there is replaced.
        short: a few seconds of training and two days, for CI; `plan` overrides it.
        seed: of the training.
        plan: how much is done.
        quiet: print nothing.

    Returns:
        0; 1 if the trained policy does not beat random and do-nothing on the synchronous clock; 130 if interrupted.

    Raises:
        ConfigError: something that it needs is missing (extras `train` and `plots`).

    Example: `run_demo("runs/demo", short=True)`.
    """
    chosen, out = plan or (SHORT if short else FULL), Path(out)
    console, started, run = terminal(quiet=quiet), time.monotonic(), None
    out.mkdir(parents=True, exist_ok=True)
    (out / PAGE).unlink(missing_ok=True)
    for folder in (out / DELAYS, out / CAUSES):
        if (folder / SETTINGS).is_file():
            shutil.rmtree(folder)
    try:
        run = _trained(out, chosen, seed, console)
        return _evaluated(out, chosen, run, started, console)
    except KeyboardInterrupt:
        console.print(f"\nInterrupted. {_left_behind(out / 'policy', run)}")
        return INTERRUPTED


def _trained(out: Path, plan: DemoPlan, seed: int, console: Console) -> RunFolder:
    from heron_env.lab.learning.ppo import train

    console.print(
        styled(
            ("1. Training", "bold"),
            f" on {plan.env_id}, synchronous clock, {plan.total_steps:,} transitions, "
            f"{plan.train_seconds:g} s at most; rules are compiled at the first use",
        )
    )
    return train(
        plan.env_id, out / "policy", total_steps=plan.total_steps, seed=seed, time_limit=plan.train_seconds,
        hyperparameters=plan.hyperparameters, validations=plan.validations,
        validation_episodes=plan.validation_episodes, progress=not console.quiet,
    )  # fmt: skip


def _evaluated(out: Path, plan: DemoPlan, run: RunFolder, started: float, console: Console) -> int:
    trained = time.monotonic()
    console.print(styled(("2. Evaluation", "bold"), f" of the same policy on both clocks, {plan.days} held-out cases"))
    trained_policy = TrainedRun(str(run.path))
    delays = _delays(plan, trained_policy, run.config.base).run(
        out / DELAYS, processes=plan.processes, progress=not console.quiet
    )
    console.print(to_rich(delays))
    evaluated = time.monotonic()
    text = f" of the gap, each alone and all together, {plan.cause_days} held-out cases"
    console.print(styled(("3. Causes", "bold"), text))
    causes = _causes(plan, trained_policy).run(out / CAUSES, processes=plan.processes, progress=not console.quiet)
    seconds = {"training": trained - started, "evaluation": evaluated - trained, "causes": time.monotonic() - evaluated}
    report = report_of(
        Sources(sweeps=[delays, causes], runs=[run]),
        title=f"{plan.env_id}: trained on one clock, evaluated on two",
        facts={"Time": ", ".join(f"{name} {s:.0f} s" for name, s in seconds.items())},
    )
    write_report(out, report)
    console.print("\n".join(report.finding), style="bold")
    files = ", ".join(str(out / name) for name in (PAGE, "policy", DELAYS, CAUSES))
    console.print(f"{files}; {time.monotonic() - started:.0f} s in all.")
    own, *others = (delays.point(name).mean.value for name in (TRAINED, NOTHING, RANDOM))
    if own > max(others):
        return 0
    text = f"In the mean {TRAINED!r} earns no more than {NOTHING!r} and {RANDOM!r} on the synchronous clock."
    console.print(text, style="red")
    return WORSE


def _delays(plan: DemoPlan, policy: PolicySpec, base: str | None) -> Sweep:
    """The policy beside what it corrects, the environment's best rule, doing nothing and chance."""
    rule = make(plan.env_id).benchmark().strongest
    beside = (NOTHING, RANDOM)
    names = dict.fromkeys(name for name in (base, rule, *beside) if name is not None)
    specs = {TRAINED: policy, **{name: Baseline(name) for name in names}}
    return Sweep.of(plan.env_id, specs, along(act_delay=plan.delays), cases=plan.days, sync_only=beside)


def _causes(plan: DemoPlan, policy: PolicySpec) -> Sweep:
    """The gap of the policy under a realistic network, by cause."""
    quick = preset("quick")
    options = quick.options if quick.env_id == plan.env_id else {}
    conditions = one_at_a_time(realistic(make(plan.env_id, **options).dt))
    return Sweep.of(plan.env_id, {TRAINED: policy}, conditions, cases=plan.cause_days, options=options)


def _left_behind(folder: Path, run: RunFolder | None) -> str:
    """What an interrupted demo leaves, and what can be done with it."""
    if run is not None:
        return f"The policy is trained and kept: heron sweep {folder} --preset delays"
    former = "; beside it the policy of a former demo" if files_of_run(folder) else ""
    return f"{unfinished(folder)}{former}."
