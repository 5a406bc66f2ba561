"""Where a training is followed: progress.csv, a line or a bar, TensorBoard, Weights & Biases, functions of the user's.

Each is a context that yields a callback, and is closed whatever ends the training.
"""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import asdict
from importlib import import_module
from math import isfinite, nan
from pathlib import Path
from typing import Any, Final

from heron_env.errors import ConfigError, did_you_mean
from heron_env.files.writing import Journal, write
from heron_env.given import accepts, is_one_of
from heron_env.lab import output
from heron_env.lab.learning.events import (
    Callback,
    PolicyValidated,
    RolloutEnded,
    Stopwatch,
    TrainingEvent,
)
from heron_env.lab.learning.plan import Plan
from heron_env.lab.output import Progress, bar, left

Log = Callable[[int, Mapping[str, float]], object]
"""Called with the transitions of all groups so far, and what was measured then, by name."""
Logger = str | Log
COLUMNS = ("group", "transitions", "seconds", "training_signal", "validation_return", "group_return")
UNDER = "return_under_schedule"
EVERY: Final = 10.0
"""s between two lines where there is no terminal."""


@contextmanager
def rows_in(file: Path, head: Sequence[str]) -> Iterator[Callable[[Iterable[Sequence[object]]], None]]:
    """A new CSV file that grows by whole rows. Raises OSError naming it."""
    write(file, _csv([head]))
    with Journal(file, sync=False) as journal:
        yield lambda rows: journal.append(_csv(rows).encode())


def _csv(rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue()


@contextmanager
def progress_csv(file: Path, *, scheduled: bool) -> Iterator[Callback]:
    """Rows of `CurvePoint`: for each rollout, and for each validation, one of each group."""
    with rows_in(file, [*COLUMNS, UNDER] if scheduled else COLUMNS) as add:

        def follow(event: TrainingEvent) -> None:
            match event:
                case RolloutEnded():
                    figures = {group: (signal, nan, nan, nan) for group, signal in event.signals.items()}
                case PolicyValidated(root_return=root, group_returns=earned, return_under_schedule=under):
                    under = nan if under is None else under
                    figures = {group: (nan, root, earned.get(group, nan), under) for group in event.transitions}
                case _:
                    return
            add(
                [group, event.transitions[group], f"{event.seconds:.1f}"]
                + [f"{value:.6g}" for value in (some if scheduled else some[:-1])]
                for group, some in figures.items()
            )

        yield follow


@contextmanager
def progress_line(name: str, stopwatch: Stopwatch) -> Iterator[Callback]:
    """A bar where somebody looks, else a line to stderr every 10 s."""
    looked_at, returned, due = output.watched(), "", EVERY
    with bar(name) as draw:

        def show(done: float, elapsed: float, words: str) -> None:
            nonlocal due
            if looked_at:
                draw(done, words)
            elif elapsed >= due:
                due = elapsed - elapsed % EVERY + EVERY
                print(f"{name}: {done:.0%}, {words}", file=sys.stderr, flush=True)

        def follow(event: TrainingEvent) -> None:
            nonlocal returned
            if isinstance(event, PolicyValidated):
                returned = f", return {event.root_return:.4g}"
            took = event.compile_seconds
            compiled = f", compiled in {took:.1f} s" if took else ""
            rest = left(Progress(int(event.done >= 1.0), 1, event.seconds_left), ", ")
            show(event.done, event.seconds + took, f"{event.steps:,} transitions{returned}{compiled}{rest}")

        stopwatch.at_compile = lambda elapsed: show(0.0, elapsed, "compiling")
        yield follow
        stopwatch.at_compile = float


@contextmanager
def _tensorboard(folder: Path, facts: Mapping[str, Any]) -> Iterator[Log]:
    with closing(_summary_writer()(str(folder / FILES["tensorboard"]))) as writer:

        def log(step: int, figures: Mapping[str, float]) -> None:
            for name, value in figures.items():
                writer.add_scalar(name, value, step)

        yield log


def _summary_writer() -> Any:
    for module in ("torch.utils.tensorboard", "tensorboardX"):
        try:
            return import_module(module).SummaryWriter
        except ImportError:
            continue
    raise ConfigError("train(logger='tensorboard'): needs TensorBoard's writer; install it: pip install tensorboard")


@contextmanager
def _wandb(folder: Path, facts: Mapping[str, Any]) -> Iterator[Log]:
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # read when it is imported
    try:
        import wandb
    except ImportError as error:
        raise ConfigError("train(logger='wandb'): needs Weights & Biases; install it: pip install wandb") from error
    folder.mkdir(parents=True, exist_ok=True)
    settings = wandb.Settings(console="off", silent=True, x_disable_stats=True)
    mode: Any = os.environ.get("WANDB_MODE", "offline")
    with wandb.init(dir=str(folder), mode=mode, config=dict(facts), settings=settings) as run:
        yield lambda step, figures: run.log(dict(figures), step=step)


@contextmanager
def _csv_log(folder: Path, facts: Mapping[str, Any]) -> Iterator[Log]:
    with rows_in(folder / FILES["csv"], ["step", "figure", "value"]) as add:
        yield lambda step, figures: add([step, name, f"{value:.6g}"] for name, value in figures.items())


LOGGERS: Final[dict[str, Callable[[Path, Mapping[str, Any]], AbstractContextManager[Log]]]] = {
    "csv": _csv_log, "tensorboard": _tensorboard, "wandb": _wandb,
}  # fmt: skip


FILES: Final = {"csv": "figures.csv", "tensorboard": "tensorboard"}
"""What they write in the run folder; W&B gives each training a folder of its own."""


def each_of(what: str, value: Any, count: int, words: str, names: Iterable[str] = ()) -> list[Any]:
    """What stands for callbacks or loggers: nothing, one, or several. Raises ConfigError for what is none."""
    some = [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
    for one in some:
        if not is_one_of(one, names) and not (callable(one) and accepts(one, count)):
            near = did_you_mean(one, names)
            raise ConfigError(f"train({what}={one!r:.60}): must be {words}, or several in a list.{near}")
    return some


@contextmanager
def opened(loggers: Sequence[Logger], plan: Plan) -> Iterator[list[Callback]]:
    """A callback for each logger. Raises ConfigError where a package is missing."""
    for one in (name for name in loggers if isinstance(name, str) and name in FILES):
        if (file := plan.run_dir / FILES[one]).exists():
            raise ConfigError(
                f"train(logger={one!r}): {file} is of a former training; remove it, or name another folder"
            )
    facts = {"env_id": plan.env_id, "seed": plan.seed, **asdict(plan.hyperparameters)}
    with ExitStack() as stack:
        logs = [
            stack.enter_context(LOGGERS[one](plan.run_dir, facts)) if isinstance(one, str) else one for one in loggers
        ]
        yield [_logging(log) for log in logs]


def _logging(log: Log) -> Callback:
    def follow(event: TrainingEvent) -> None:
        if figures := {name: value for name, value in event.figures.items() if isfinite(value)}:
            log(event.steps, figures)

    return follow
