"""Ownership: who drives an environment or a batch, one at a time, and the mark of where it stands (T21)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from threading import Lock, get_ident
from typing import ParamSpec, TypeVar

from heron_env.errors import ResetNeeded, RunInterrupted, ended_in

P = ParamSpec("P")
R = TypeVar("R")
Calls = frozenset[str]

NOTHING: Calls = frozenset()
EVERYTHING: Calls = frozenset({"reset()", "set_state()", "step()"})
"""What a run lends to the environment's own reset(), which a subclass may have written."""
RUN: Calls = frozenset({"start_event_driven()", "until()"})
"""What a whole event-driven run is made of."""
DECISION: Calls = frozenset({"set_state()"})
"""What is lent to a decision of the synchronous clock."""
LOOK_AHEAD: Calls = DECISION | {"step()"}
"""The same, once it has kept the state."""
COPY = "plan on a copy, made before: model = {}"
UP_TO_DATE = f"{COPY.format('copy.deepcopy(env)')}; model.set_state(env.get_state()) brings it here"

_arriving = Lock()


class Ownership:
    """One environment's or batch's: calls that move it go through `drive`, one inside another only where that was lent.

    Args:
        what: whose, in errors.
        another: how to come by another of them.

    Attributes:
        mark: where the environment stands: a number that no other standing in this process has, new at every reset,
            start of a run and step.
        lent: what those who are being asked (a policy, the environment's own reset) may call.
        lock: held by the one who drives; call, thread: what that is, and in which thread.
        changing: has the step that is under way, or that failed last, changed anything?
        torn: what left the environment elsewhere by an error: nobody steps on before a reset; "": nothing.
    """

    marks = itertools.count(1)
    """What nobody stands at yet, one after the other: of all of this process."""

    def __init__(self, what: str = "environment", another: str = "copy.deepcopy(env)") -> None:
        self._what, self._another = what, another
        self.mark = next(self.marks)
        self.lent = NOTHING
        self.lock = Lock()
        self.call, self.thread = "", 0
        self.changing, self.torn = False, ""

    def move(self, torn: str | None = None) -> None:
        """The environment stands elsewhere from now on; `torn`: what left it so, None: as before."""
        self.mark = next(self.marks)
        self.torn = self.torn if torn is None else torn

    def require_intact(self, call: str) -> None:
        """Raise ResetNeeded where an error left the environment elsewhere."""
        if self.torn:
            raise ResetNeeded(f"{call}: {self.torn}; call reset() first")

    def arrive(self, mark: int) -> None:
        """It stands where a snapshot with this `mark`, perhaps of another process, was taken."""
        with _arriving:
            if mark >= next(self.marks):
                Ownership.marks = itertools.count(mark + 1)
        self.mark = mark

    def drive(self, call: str, do: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
        """`do(...)`, as the one who drives; `call`: what the user wrote. Raises RunInterrupted where another does."""
        if self.lock.acquire(False):
            try:
                self.call, self.thread, self.lent = call, get_ident(), NOTHING
                return self._unless_torn(call, do, *args, **keywords)
            finally:
                self.lock.release()
        before = self.borrow(call)
        try:
            return self._unless_torn(call, do, *args, **keywords)
        finally:
            self.lent = before

    def _unless_torn(self, call: str, do: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
        mark = self.mark
        try:
            return do(*args, **keywords)
        except BaseException as error:
            if self.mark != mark:
                self.torn = ended_in(call, error)
            raise

    def saved(self) -> None:
        """The state has been taken: whoever decides may try out steps from here on."""
        if self.lent is DECISION and self.thread == get_ident():
            self.lent = LOOK_AHEAD

    def require(self, mark: int, who: str, time: float) -> None:
        """Raise RunInterrupted if the environment does not stand at `mark` any more, after a decision of `who`."""
        if self.mark != mark:
            raise RunInterrupted(
                f"{self.call}: the decision of {who!r} at t={time} s left the environment elsewhere; end a look-ahead "
                f"with env.set_state(state), the state that env.get_state() gave in this decision, or {UP_TO_DATE}"
            )

    def borrow(self, call: str) -> Calls:
        """What was lent, and is not while it is used. Raises RunInterrupted for what was not."""
        lent, driving = self.lent, self.call
        if self.thread != get_ident():
            raise RunInterrupted(
                f"{call}: another thread is in {driving} of this {self._what}; give each thread its own: "
                f"{self._another}"
            )
        if call not in lent:
            raise RunInterrupted(
                f"{call}: called inside {driving} of the same {self._what}; {self._remedy(call, lent)}"
            )
        self.lent = NOTHING
        return lent

    def _remedy(self, call: str, lent: Calls) -> str:
        """What to do instead; only where something is lent can a model be brought to where the environment stands."""
        if not lent:
            return COPY.format(self._another)
        trying = ", or keep the state first: state = env.get_state(), and env.set_state(state) after the steps"
        return UP_TO_DATE + (trying if call == "step()" else "")
