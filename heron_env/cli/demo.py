"""`heron demo`: train without and under a network, evaluate under it, split the loss by cause, and write a report."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from heron_env.cli.application import INTERRUPTED, Json
from heron_env.errors import ConfigError, did_you_mean
from heron_env.lab.sweep.conditions import SYNC, Condition, along, one_at_a_time

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.lab.runs import RunFolder
    from heron_env.lab.show.document import Report
    from heron_env.lab.sweep.sweep import SweepResult

UNDECIDED: Final = 1
"""Exit code: the returns are not in the order that the demo shows, or their intervals overlap."""
WITHOUT, UNDER, TUNED, NOTHING, RANDOM = "trained without it", "trained under it", "tuned", "do nothing", "random"
LEARNING: Final = "Training"
"""Title of the report's sections about it."""
EVALUATION, CAUSES = "evaluation", "causes"
"""Folders of the two sweeps."""
PROCESSES: Final = 2


@dataclass(frozen=True)
class Demo:
    """What is trained, measured and shown.

    Attributes:
        trainings: by name of the policy: the network that it is trained under, or None.
        training: arguments of every `train()`.
        network: that policies are evaluated under, beside the synchronous clock.
        also: more conditions of the evaluation.
        wrong: several causes, for the split of the loss.
        cases, cause_cases: held-out cases of the two sweeps.
        rules: baselines that are evaluated, too; alone: on the synchronous clock alone.
        candidates: constants of the rule "rule"; the best under the network, on `tuning` validation cases, is shown.
        order: names, best first: returns that the demo is about, under the network, or on the synchronous clock.
        film: who is filmed, under the network.
    """

    env_id: str
    trainings: Mapping[str, Mapping[str, float] | None]
    training: Mapping[str, Any]
    network: Condition
    wrong: Condition
    order: tuple[tuple[str, ...], ...]
    also: tuple[Condition, ...] = ()
    cases: int = 100
    cause_cases: int = 24
    rules: tuple[str, ...] = (NOTHING,)
    alone: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    tuning: int = 12
    film: tuple[str, str] | None = None


LATE: Final = Condition(msg_delay=0.5)
DEMOS: Final = {
    "words": Demo(
        "heron/GuidedWalker-v0",
        {WITHOUT: None, UNDER: LATE.to_dict()},
        {"total_steps": 600_000, "critic": "central"},
        LATE, Condition(msg_delay=0.5, act_delay=0.2, loss=0.1),
        ((UNDER, NOTHING, WITHOUT),),
        candidates=tuple(f"rule(gain={gain}, damping={x})" for gain in (0.2, 0.25, 0.3) for x in (0.1, 0.2, 0.3)),
        film=(UNDER, "walker_0"),
    ),
    "energy": Demo(
        "heron/EnergyManagement-v1",
        {"trained": None},
        {"total_steps": 1_200_000, "time_limit": 90.0},
        Condition(act_delay=60.0), Condition(obs_delay=6.0, msg_delay=6.0, act_delay=30.0, loss=0.05, noise=0.1),
        (("trained", NOTHING), ("trained", RANDOM)),
        also=tuple(along(act_delay=(0.0, 30.0, 120.0))), cases=10, cause_cases=20,
        rules=(NOTHING, RANDOM), alone=(NOTHING, RANDOM),
    ),
}  # fmt: skip
"""By name."""
SHORT: Final[dict[str, dict[str, Any]]] = {
    "words": {"training": {"total_steps": 20_000, "critic": "central", "validations": 1}, "cases": 3, "cause_cases": 2},
    "energy": {"training": {"total_steps": 1_200_000, "time_limit": 25.0, "validations": 2}, "cases": 2,
               "cause_cases": 1, "also": ()},
}  # fmt: skip
"""What is other with --short."""


def demo(
    which: Annotated[
        str, typer.Argument(help="words: a guide and a walker who talk; energy: a distribution grid.")
    ] = "words",
    short: Annotated[
        bool, typer.Option("--short", help="Little training and few cases, for CI; nothing is decided.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the trainings.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for policies, sweeps, film and report.")] = Path("runs/demo"),
    as_json: Json = False,
) -> None:
    """Train without and under a network, evaluate under it, split the loss by cause; about two minutes.

    Exit code 1 if the returns are not in the order that the demo shows, or their intervals overlap.
    """  # fmt: skip
    from heron_env.lab.output import terminal
    from heron_env.lab.show.document import write_report

    if which not in DEMOS:
        raise ConfigError(f"heron demo {which!r:.60}: there are {', '.join(DEMOS)}.{did_you_mean(which, DEMOS)}")
    plan, console = replace(DEMOS[which], **SHORT[which] if short else {}), terminal(quiet=as_json)
    _clear(out)
    runs, evaluation, causes = _stages(plan, out, seed, console)
    verdicts = [_verdict(evaluation, plan, order) for order in plan.order]
    write_report(out, _report(plan, runs, evaluation, causes, seed, [words for words, _ in verdicts]))
    console.print("\n".join(words for words, _ in verdicts), style="bold")
    console.print(", ".join(map(str, [out / "report.html", *_film(plan, runs, out), out / EVALUATION, out / CAUSES])))
    if as_json:
        typer.echo((out / EVALUATION / "table.json").read_text(encoding="utf-8"), nl=False)
    if not short and not all(decided for _, decided in verdicts):
        console.print("This is not the order that the demo shows, or intervals overlap.", style="red")
        raise typer.Exit(UNDECIDED)


def _stages(plan: Demo, out: Path, seed: int, console: Any) -> tuple[dict[str, RunFolder], SweepResult, SweepResult]:
    """Train and measure. Ctrl-C says what is left, and ends the program."""
    from heron_env.lab.learning.train import unfinished
    from heron_env.lab.output import styled
    from heron_env.lab.sweep.tables import to_rich

    runs: dict[str, RunFolder] = {}
    try:
        what = f"{' and '.join(plan.trainings)}, {plan.training['total_steps']:,} steps, seed {seed}"
        console.print(styled(("1. Training", "bold"), f" on {plan.env_id}: {what}"))
        runs = _trained(plan, out, seed)
        console.print(styled(("2. Evaluation", "bold"), f" under {plan.network.words}, {plan.cases} held-out cases"))
        evaluation = _evaluated(plan, runs, out)
        console.print(to_rich(evaluation))
        console.print(styled(("3. Causes", "bold"), f" of the loss, {plan.cause_cases} held-out cases"))
        return runs, evaluation, _split(plan, runs, out)
    except KeyboardInterrupt as error:
        left = " ".join(unfinished(_folder(out, name)) for name in plan.trainings)
        if runs:
            left = f"The policies are trained and kept: heron sweep {_folder(out, next(iter(runs)))} --preset delays"
        console.print(f"\nInterrupted. {left}")
        raise typer.Exit(INTERRUPTED) from error


def _folder(out: Path, name: str) -> Path:
    """Of a training."""
    return out / name.replace(" ", "-")


def _clear(out: Path) -> None:
    """Remove what a former demo left there, which is of other policies."""
    out.mkdir(parents=True, exist_ok=True)
    for name in ("report.html", "film.gif"):
        (out / name).unlink(missing_ok=True)
    for folder in (out / EVALUATION, out / CAUSES):
        if (folder / "sweep.json").is_file():
            shutil.rmtree(folder)


def _trained(plan: Demo, out: Path, seed: int) -> dict[str, RunFolder]:
    """All at once, a process each: they share nothing."""
    from heron_env.lab.runs import RunFolder

    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        begun = {
            name: pool.submit(_train, plan.env_id, str(_folder(out, name)), seed, network, dict(plan.training))
            for name, network in plan.trainings.items()
        }
        return {name: RunFolder.open(future.result()) for name, future in begun.items()}


def _train(env_id: str, folder: str, seed: int, network: Any, settings: dict[str, Any]) -> str:
    """In a process of its own."""
    from heron_env.lab.learning.train import train
    from heron_env.scheduling.timing import ScheduleConfig

    schedule = None if network is None else ScheduleConfig(**network)
    return str(train(env_id, folder, seed=seed, schedule=schedule, progress=False, **settings).path)


def _evaluated(plan: Demo, runs: Mapping[str, RunFolder], out: Path) -> SweepResult:
    """The policies beside rules, without and under the network."""
    from heron_env.lab.sweep.sweep import Sweep
    from heron_env.registry import make

    env = make(plan.env_id)
    policies = {name: str(run.path) for name, run in runs.items()} | {rule: rule for rule in plan.rules}
    if plan.candidates:
        best = _tuned(plan, env)
        policies[f"{TUNED} {best}"] = best
    elif (strongest := env.benchmark().strongest) is not None:
        policies[strongest] = strongest
    conditions = [plan.network, *plan.also]
    sweep = Sweep.of(plan.env_id, policies, conditions, cases=plan.cases, sync_only=plan.alone)
    return sweep.run(out / EVALUATION, processes=PROCESSES, progress=False)


def _tuned(plan: Demo, env: HeronEnv) -> str:
    """The candidate that earns most under the network, on validation cases."""
    from heron_env.lab.benchmark import cases
    from heron_env.lab.sweep.sweep import Sweep

    held = cases(env, plan.tuning, split="validation")
    sweep = Sweep.of(plan.env_id, {name: name for name in plan.candidates}, [plan.network], cases=held)
    found = sweep.run(processes=PROCESSES, progress=False)
    return max(plan.candidates, key=lambda name: found.point(name, plan.network).mean.value)


def _split(plan: Demo, runs: Mapping[str, RunFolder], out: Path) -> SweepResult:
    """What each cause costs the policy that was trained without a network."""
    from heron_env.lab.sweep.sweep import Sweep

    name = next(iter(runs))
    sweep = Sweep.of(plan.env_id, {name: str(runs[name].path)}, one_at_a_time(plan.wrong), cases=plan.cause_cases)
    return sweep.run(out / CAUSES, processes=PROCESSES, progress=False)


def _verdict(result: SweepResult, plan: Demo, order: tuple[str, ...]) -> tuple[str, bool]:
    """Returns in the order that is shown, best first; whether their intervals are in that order, and apart."""
    condition = SYNC if {*order} & {*plan.alone} else plan.network
    means = [result.point(name, condition).mean for name in order]
    texts = (f"{name} {mean}" for name, mean in zip(order, means, strict=True))
    decided = all(first.low > second.high for first, second in pairwise(means))
    return f"With {condition.words}, mean returns are ({result.sweep.unit}): {', '.join(texts)}.", decided


def _report(
    plan: Demo, runs: Mapping[str, RunFolder], evaluation: SweepResult, causes: SweepResult, seed: int, words: list[str]
) -> Report:
    """The returns that the demo is about come first; the trainings share one figure."""
    from heron_env.lab.show.document import Picture, Section
    from heron_env.lab.show.report import Sources, report_of
    from heron_env.lab.show.training import learning_curves

    title = f"{plan.env_id}: trained, and evaluated under a network"
    report = report_of(Sources(sweeps=[evaluation, causes], runs=[*runs.values()]), title=title)
    about = "Return in validation: of each policy on the clock, and under the network, that it is trained on."
    curves = Picture("learning", learning_curves({name: [run] for name, run in runs.items()}), about, about)
    parts = [part for part in report.parts if part.title != LEARNING]
    parts.insert(-2, Section(LEARNING, [curves]))
    summary = [*words, *_tuned_words(evaluation, plan), *report.summary[-1:]]
    return replace(report, parts=parts, summary=summary, about=f"Training seed {seed}.")


def _tuned_words(result: SweepResult, plan: Demo) -> Iterator[str]:
    """What the tuned rule earns, where there is one."""
    if plan.candidates:
        rule = next(name for name in result.policies if name.startswith(TUNED))
        mean = result.point(rule, plan.network).mean
        yield f"A rule of two numbers, {rule}, earns {mean}."


def _film(plan: Demo, runs: Mapping[str, RunFolder], out: Path) -> Iterator[Path]:
    """An episode under the network."""
    if plan.film is None:
        return
    from heron_env.registry import make

    name, agent = plan.film
    env = make(plan.env_id)
    result = env.run_event_driven(
        runs[name].policies(), seed=0, schedule=plan.network.schedule(env), record=("rewards", "frames")
    )
    path = out / "film.gif"
    result.watch(agent, every=env.dt).save(path)
    yield path
