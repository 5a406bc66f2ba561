"""What happens in a training, who follows it, and when it is to stop.

Callbacks get events. Loggers, the progress line and progress.csv are callbacks too, each within a context that is
closed whatever ends the training. Time is wall time without that in which numba compiled.
"""

from __future__ import annotations

import csv
import io
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from heron_env.errors import ConfigError, did_you_mean
from heron_env.files.writing import Journal, write
from heron_env.given import accepts, is_one_of
from heron_env.lab import output
from heron_env.lab.output import Progress, bar, left
from heron_env.lab.run_files import CurvePoint

if TYPE_CHECKING:
    from heron_env.lab.runs import RunFolder

Reason = Literal["steps", "time limit", "callback"]
TICK: Final = 1.0
"""s between two events in which nothing but time has passed."""


@dataclass(frozen=True, kw_only=True)
class TrainingEvent:
    """Event: progress of a training. This class itself comes about once a second.

    Attributes:
        steps: transitions of all groups.
        transitions: of each group that is being trained.
        seconds: since `train()` was called, without those in which rules were compiled.
        compile_seconds: those.
        done: share in [0, 1] of the transitions or of the time limit, whichever is farther on.
        seconds_left: estimated from what is done; None: nothing is.
    """

    steps: int
    transitions: Mapping[str, int]
    seconds: float
    compile_seconds: float
    done: float
    seconds_left: float | None

    @property
    def figures(self) -> dict[str, float]:
        """Return values for loggers: `rollout/training_signal/GROUP`, `update/LOSS/GROUP`, `validation/return`,
        `validation/group_return/GROUP`, and `validation/return_under_schedule` where there is one.
        """
        match self:
            case RolloutEnded(signals=signals):
                return {f"rollout/training_signal/{group}": value for group, value in signals.items()}
            case PolicyUpdated(losses=losses):
                return {f"update/{name}/{group}": x for group, some in losses.items() for name, x in some.items()}
            case PolicyValidated(root_return=root, group_returns=earned, return_under_schedule=under):
                groups = {f"validation/group_return/{group}": value for group, value in earned.items()}
                late = {} if under is None else {"validation/return_under_schedule": under}
                return {"validation/return": root, **groups, **late}
        return {}


@dataclass(frozen=True, kw_only=True)
class RolloutEnded(TrainingEvent):
    """Event: a rollout was collected. `signals`: mean training signal per transition in it, by group."""

    signals: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class PolicyUpdated(TrainingEvent):
    """Event: policies were updated. `losses`: means over a rollout's minibatches, by group (joined by "+" where they
    share a policy) and by Stable-Baselines3's names.
    """

    losses: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, kw_only=True)
class PolicyValidated(TrainingEvent):
    """Event: the deterministic policies were validated; means over the validation episodes.

    Attributes:
        root_return: of the root of the hierarchy, on the synchronous clock.
        group_returns: sums over the agents of each group.
        return_under_schedule: the root's on the event clock; None: there is no schedule.
    """

    root_return: float
    group_returns: Mapping[str, float]
    return_under_schedule: float | None


@dataclass(frozen=True, kw_only=True)
class TrainingEnded(TrainingEvent):
    """Event: the run folder is written. `reason`: why the training ended."""

    run: RunFolder
    reason: Reason


Callback = Callable[[TrainingEvent], object]
"""What it returns does not matter, unless it is False: then the training stops, and its policies are kept."""
Log = Callable[[int, Mapping[str, float]], object]
"""Called with the transitions of all groups so far, and what was measured then, by name."""
Logger = str | Log


class Stopwatch:
    """Seconds since it was made; while it is `running`, those in which numba compiles are counted apart.

    Attributes: compiled: those, s; at_compile: called with the seconds so far, these included, whenever something more
        is compiled.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._started, self.compiled = clock, clock(), 0.0
        self.at_compile: Callable[[float], object] = float

    @property
    def seconds(self) -> float:
        """Without compiling."""
        return self._clock() - self._started - self.compiled

    @contextmanager
    def running(self) -> Iterator[None]:
        """Listen to numba."""
        from numba.core.event import Listener, install_listener

        watch, begun = self, list[float]()

        class Compiling(Listener):  # type: ignore[misc]
            def on_start(self, event: object) -> None:
                begun.append(watch._clock())
                watch.at_compile(begun[-1] - watch._started)

            def on_end(self, event: object) -> None:
                since = begun.pop()
                watch.compiled += 0.0 if begun else watch._clock() - since

        with install_listener("numba:compile", Compiling()):
            yield


class Monitor:
    """Tells callbacks what happens in a training, and the training when to stop.

    Args: callbacks: called in this order; limit: s, without compiling; None: no limit.

    Attributes: transitions: of each group; empty before the training begins; share: of the training that is done, in
        [0, 1], at so many s; reserve: s that are kept for the last validation; stopped: has a callback returned False?;
        updated: was any policy improved?.
    """

    def __init__(self, callbacks: Sequence[Callback], stopwatch: Stopwatch, limit: float | None) -> None:
        self.callbacks, self.stopwatch, self.limit = callbacks, stopwatch, math.inf if limit is None else limit
        self.reserve, self.stopped, self.updated, self._last, self._began = 0.0, False, False, 0.0, 0.0
        self.transitions: Mapping[str, int] = {}
        self.share: Callable[[float], float] = lambda now: 0.0

    @property
    def seconds(self) -> float:
        """Since `train()` was called, without compiling."""
        return self.stopwatch.seconds

    @property
    def steps(self) -> int:
        """Transitions of all groups."""
        return sum(self.transitions.values())

    def begin(self, transitions: Mapping[str, int], share: Callable[[float], float]) -> None:
        """A training begins, which counts its transitions here."""
        self._began, self.transitions, self.share = self.seconds, transitions, share
        self.tell(TrainingEvent)

    def tell(self, kind: type[TrainingEvent], **what: Any) -> None:
        """Call all callbacks with an event."""
        self._last = now = self.seconds
        self.updated |= kind is PolicyUpdated
        done = self.share(now)
        event = kind(
            steps=self.steps, transitions=dict(self.transitions), seconds=now,
            compile_seconds=self.stopwatch.compiled, done=done,
            seconds_left=(now - self._began) * (1.0 - done) / done if done else None, **what,
        )  # fmt: skip
        for callback in self.callbacks:
            answer = callback(event)
            if isinstance(answer, bool | np.bool_) and not answer:
                self.stopped = True

    def tick(self) -> None:
        """Time has passed; cheap, to be called between steps."""
        if self.seconds - self._last >= TICK:
            self.tell(TrainingEvent)

    def due(self, until: float = math.inf) -> bool:
        """Is it to stop, because `until` (s) has come or a callback wants it?"""
        self.tick()
        return self.stopped or self.seconds >= until


# Who follows

*COLUMNS, UNDER = CurvePoint.model_fields
"""Of progress.csv; the last one is of trainings under a schedule."""
EVERY: Final = 10.0
"""s between two lines where there is no terminal."""
FILES: Final = {"csv": "figures.csv", "tensorboard": "tensorboard"}
"""What loggers write in the run folder; W&B gives each training a folder of its own."""


@contextmanager
def _rows_in(file: Path, head: Sequence[str]) -> Iterator[Callable[[Iterable[Sequence[object]]], None]]:
    """A new CSV file that grows by whole rows. Raises OSError naming it."""

    def text(rows: Iterable[Sequence[object]]) -> str:
        csv.writer(buffer := io.StringIO(newline="")).writerows(rows)
        return buffer.getvalue()

    write(file, text([head]))
    with Journal(file, sync=False) as journal:
        yield lambda rows: journal.append(text(rows).encode())


@contextmanager
def progress_csv(file: Path, *, scheduled: bool) -> Iterator[Callback]:
    """Rows of `CurvePoint`: for each rollout, and for each validation, one of each group."""
    nan = math.nan
    with _rows_in(file, [*COLUMNS, UNDER] if scheduled else COLUMNS) as add:

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
    with _rows_in(folder / FILES["csv"], ["step", "figure", "value"]) as add:
        yield lambda step, figures: add([step, name, f"{value:.6g}"] for name, value in figures.items())


LOGGERS: Final[dict[str, Callable[[Path, Mapping[str, Any]], AbstractContextManager[Log]]]] = {
    "csv": _csv_log, "tensorboard": _tensorboard, "wandb": _wandb,
}  # fmt: skip


def each_of(what: str, value: Any, count: int, words: str, names: Iterable[str] = ()) -> list[Any]:
    """What stands for callbacks or loggers: nothing, one, or several. Raises ConfigError for what is none."""
    some = [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
    for one in some:
        if not is_one_of(one, names) and not (callable(one) and accepts(one, count)):
            near = did_you_mean(one, names)
            raise ConfigError(f"train({what}={one!r:.60}): must be {words}, or several in a list.{near}")
    return some


@contextmanager
def opened(loggers: Sequence[Logger], folder: Path, facts: Mapping[str, Any]) -> Iterator[list[Callback]]:
    """A callback for each logger, of a training of these facts. Raises ConfigError where a package is missing."""
    for one in (name for name in loggers if isinstance(name, str) and name in FILES):
        if (file := folder / FILES[one]).exists():
            raise ConfigError(
                f"train(logger={one!r}): {file} is of a former training; remove it, or name another folder"
            )

    def following(log: Log) -> Callback:
        def follow(event: TrainingEvent) -> None:
            if figures := {name: value for name, value in event.figures.items() if math.isfinite(value)}:
                log(event.steps, figures)

        return follow

    with ExitStack() as stack:
        yield [
            following(stack.enter_context(LOGGERS[one](folder, facts)) if isinstance(one, str) else one)
            for one in loggers
        ]
