"""What happens in a training, as callbacks are told of it, and when it is to stop.

Loggers, the progress line and progress.csv are callbacks too. Time is wall time without that in which numba compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from heron_env.lab.learning.group import Training
    from heron_env.lab.runs import RunFolder

Reason = Literal["steps", "time limit", "callback"]
TICK: Final = 1.0
"""s between two events in which nothing but time has passed."""


@dataclass(frozen=True, kw_only=True)
class TrainingEvent:
    """Progress of a training. Events of this class itself come about once a second, between the others.

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
        """What loggers get: `rollout/training_signal/GROUP`, `update/LOSS/GROUP`, `validation/return`, `validation/
        group_return/GROUP`, and `validation/return_under_schedule` where there is one.
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
    """A rollout was collected. `signals`: mean training signal per transition in it, by group."""

    signals: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class PolicyUpdated(TrainingEvent):
    """Policies were improved on a rollout. `losses`: means over its minibatches, by group (joined by "+" where they
    share a policy) and by Stable-Baselines3's names.
    """

    losses: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, kw_only=True)
class PolicyValidated(TrainingEvent):
    """The deterministic policies were measured on the validation episodes: means.

    Attributes:
        root_return: of the root of the hierarchy, on the synchronous clock.
        group_returns: what the agents of each group earned there in sum.
        return_under_schedule: the root's on the event clock; None: there is no schedule.
    """

    root_return: float
    group_returns: Mapping[str, float]
    return_under_schedule: float | None


@dataclass(frozen=True, kw_only=True)
class TrainingEnded(TrainingEvent):
    """The run folder is written. `reason`: why the training ended."""

    run: RunFolder
    reason: Reason


Callback = Callable[[TrainingEvent], object]
"""What it returns does not matter, unless it is False: then the training stops, and its policies are kept."""


class Stopwatch:
    """Seconds since it was made; while it is `running`, those in which numba compiles are told apart.

    Attributes:
        compiled: those, s.
        at_compile: called with the seconds so far, these included, whenever something more is compiled.
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

    Args:
        callbacks: called in this order.
        limit: s, without compiling; None: no limit.

    Attributes:
        reserve: s that are kept for the last validation.
        stopped: has a callback returned False?
        updated: was any policy improved?
    """

    def __init__(self, callbacks: Sequence[Callback], stopwatch: Stopwatch, limit: float | None) -> None:
        self.callbacks, self.stopwatch, self.limit = callbacks, stopwatch, math.inf if limit is None else limit
        self.reserve, self.stopped, self.updated, self._last = 0.0, False, False, 0.0
        self._training: Training | None = None
        self._began = 0.0

    @property
    def seconds(self) -> float:
        """Since `train()` was called, without compiling."""
        return self.stopwatch.seconds

    @property
    def steps(self) -> int:
        """Transitions of all groups."""
        return sum(self._training.transitions.values()) if self._training else 0

    def begin(self, training: Training) -> None:
        """This training begins."""
        self._began, self._training = self.seconds, training
        self.tell(TrainingEvent)

    def tell(self, kind: type[TrainingEvent], **what: Any) -> None:
        """Call all callbacks with an event."""
        self._last = now = self.seconds
        self.updated |= kind is PolicyUpdated
        current = self._training
        done = current.share(now) if current else 0.0
        event = kind(
            steps=self.steps, transitions=current.transitions if current else {}, seconds=now,
            compile_seconds=self.stopwatch.compiled, done=done,
            seconds_left=(now - self._began) * (1.0 - done) / done if done else None, **what,
        )  # fmt: skip
        for callback in self.callbacks:
            wanted = callback(event)
            if isinstance(wanted, bool | np.bool_) and not wanted:
                self.stopped = True

    def tick(self) -> None:
        """Time has passed; cheap, to be called between steps."""
        if self.seconds - self._last >= TICK:
            self.tell(TrainingEvent)

    def due(self, until: float = math.inf) -> bool:
        """Is it to stop, because `until` (s) has come or a callback wants it?"""
        self.tick()
        return self.stopped or self.seconds >= until
