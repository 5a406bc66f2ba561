"""`heron demo`: train, evaluate on both clocks, split the gap by cause, and write a report."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from heron_env.cli.application import INTERRUPTED, Json

if TYPE_CHECKING:
    from heron_env.lab.runs import RunFolder
    from heron_env.lab.sweep.sweep import SweepResult

WORSE: Final = 1
"""Exit code: the trained policy earns no more in the mean than chance and doing nothing."""
TRAINED: Final = "trained"
RUN, DELAYS, CAUSES = "policy", "delays", "causes"
"""Folders of the run and of the two sweeps."""
ALONE: Final = ("do nothing", "random")
"""What needs no network to be measured."""


@dataclass(frozen=True)
class DemoPlan:
    """How much is done.

    Attributes:
        training: arguments of `train()`; its time limit is for machines that are slower than most.
        days: held-out test cases.
        cause_days: test cases on which the gap is taken apart by cause.
        delays: of actions, s; the synchronous clock is always there for comparison.
    """

    env_id: str = "heron/EnergyManagement-v1"
    training: dict[str, Any] = field(default_factory=lambda: {"total_steps": 1_200_000, "time_limit": 90.0})
    days: int = 10
    cause_days: int = 3
    delays: tuple[float, ...] = (0.0, 30.0, 60.0, 120.0)
    processes: int = 2


FULL = DemoPlan()
SHORT = DemoPlan(
    training={"total_steps": 1_200_000, "time_limit": 25.0, "validations": 3, "validation_episodes": 4},
    days=2, cause_days=1, delays=(0.0, 60.0),
)  # fmt: skip


def demo(
    short: Annotated[bool, typer.Option("--short", help="A few seconds of training and two days, for CI.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of networks, exploration and episodes.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the policy, two sweeps and the report.")] = Path("runs/demo"),
    as_json: Json = False,
) -> None:
    """Train on the synchronous clock, evaluate on both, split the loss by cause, write a report; about four minutes.

    Exit code 1 if the trained policy does not beat random and do-nothing.
    """
    from heron_env.lab.learning.train import train, unfinished
    from heron_env.lab.output import styled, terminal
    from heron_env.lab.show.document import write_report
    from heron_env.lab.show.report import Sources, report_of
    from heron_env.lab.sweep.tables import to_rich

    plan, console, run = SHORT if short else FULL, terminal(quiet=as_json), None
    _clear(out)
    try:
        console.print(styled(("1. Training", "bold"), f" on {plan.env_id}, synchronous clock"))
        run = train(plan.env_id, out / RUN, seed=seed, progress=not as_json, **plan.training)
        console.print(styled(("2. Evaluation", "bold"), f" on both clocks, {plan.days} held-out cases"))
        sweeps = _sweeps(plan, run, out, progress=not as_json)
        console.print(to_rich(delays := next(sweeps)))
        console.print(styled(("3. Causes", "bold"), f" of the gap, {plan.cause_days} held-out cases"))
        causes = next(sweeps)
    except KeyboardInterrupt as error:
        left = unfinished(out / RUN)
        if run is not None:
            left = f"The policy is trained and kept: heron sweep {out / RUN} --preset delays"
        console.print(f"\nInterrupted. {left}")
        raise typer.Exit(INTERRUPTED) from error
    title = f"{plan.env_id}: trained on one clock, evaluated on two"
    report = report_of(Sources(sweeps=[delays, causes], runs=[run]), title=title)
    write_report(out, report)
    console.print("\n".join(report.finding), style="bold")
    console.print(", ".join(str(out / name) for name in ("report.html", RUN, DELAYS, CAUSES)))
    if as_json:
        typer.echo((out / DELAYS / "table.json").read_text(encoding="utf-8"), nl=False)
    if not _beats_others(delays):
        console.print(f"In the mean {TRAINED!r} earns no more than {' and '.join(map(repr, ALONE))}.", style="red")
        raise typer.Exit(WORSE)


def _beats_others(delays: SweepResult) -> bool:
    """Does the policy earn more than chance and doing nothing?"""
    own, *others = (delays.point(name).mean.value for name in (TRAINED, *ALONE))
    return own > max(others)


def _clear(out: Path) -> None:
    """Remove what a former demo left there, which is of another policy."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "report.html").unlink(missing_ok=True)
    for folder in (out / DELAYS, out / CAUSES):
        if (folder / "sweep.json").is_file():
            shutil.rmtree(folder)


def _sweeps(plan: DemoPlan, run: RunFolder, out: Path, *, progress: bool) -> Iterator[SweepResult]:
    """Under late actions, beside what it corrects and rules; under a realistic network, cause by cause."""
    from heron_env.lab.sweep.conditions import along, one_at_a_time
    from heron_env.lab.sweep.presets import realistic
    from heron_env.lab.sweep.sweep import Sweep
    from heron_env.registry import make

    env, policy = make(plan.env_id), {TRAINED: str(run.path)}
    rules = {name: name for name in (run.config.base, env.benchmark().strongest, *ALONE) if name is not None}
    late, causes = along(act_delay=plan.delays), one_at_a_time(realistic(env.dt))
    first = Sweep.of(plan.env_id, {**policy, **rules}, late, cases=plan.days, sync_only=ALONE)
    yield first.run(out / DELAYS, processes=plan.processes, progress=progress)
    second = Sweep.of(plan.env_id, policy, causes, cases=plan.cause_days)
    yield second.run(out / CAUSES, processes=plan.processes, progress=progress)
