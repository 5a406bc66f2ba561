"""What may come of a hostile call: an answer, or an error of our own tree; anything else is a finding."""

import contextlib
import io
import signal
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import heron_env
from heron_env.errors import HeronError

PACKAGE = Path(heron_env.__file__).parent

SECONDS, WAITING = 20, 120
"""After so long of computing, or of anything on a busy machine, something hangs."""
FINDINGS = ("silent", "raw", "hang")
"""An error without words, one that isn't ours, and no answer at all."""
APART = ("torch", "torchrl", "tensordict", "benchmarl")
"""What they convert is theirs to refuse."""


class Hangs(BaseException):
    """It took too long."""


@dataclass(frozen=True)
class Answer:
    """`kind`: "works", the name of an error of ours, "python" for a call that Python itself refuses, "apart" for what
    torch raises, or one of FINDINGS; `place`: the line of ours that raised it.
    """

    kind: str
    told: str = ""
    value: Any = None
    place: str = ""

    @property
    def is_finding(self) -> bool:
        return self.kind in FINDINGS


@contextmanager
def limited(seconds: int = SECONDS) -> Iterator[None]:
    """Raise Hangs after so many seconds of CPU time, or WAITING."""

    def late(number: int, frame: FrameType | None) -> None:
        raise Hangs(f"not done after {seconds} s of computing, or {WAITING} s")

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, WAITING)}
    before = {number: signal.signal(number, late) for number in timers}
    for timer, most in timers.values():
        signal.setitimer(timer, most)
    try:
        yield
    finally:
        for timer, _ in timers.values():
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def asked(call: Callable[[], Any], where: str = "") -> Answer:
    """What comes of a call, without its prints and warnings; `where`: a part of the name of what is called."""
    silent = io.StringIO()
    try:
        with contextlib.ExitStack() as within:
            for around in (limited(), contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent)):
                within.enter_context(around)
            within.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            return Answer("works", value=call())
    except HeronError as error:
        told, place = str(error), place_of(ours_of(traceback.extract_tb(error.__traceback__)))
        if not told.strip():
            return Answer("silent", f"{type(error).__name__} at {place}: not a word", place=place)
        return Answer(type(error).__name__, told, place=place)
    except Hangs as error:
        ours = ours_of(traceback.extract_tb(error.__traceback__))
        return Answer("hang", f"{place_of(ours)}: {error}", place=place_of(ours))
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever it is, it is told
        frames = traceback.extract_tb(error.__traceback__)
        ours = ours_of(frames)
        if isinstance(error, TypeError) and not ours:
            return Answer("python")  # a wrong keyword, or a wrong count of values
        if isinstance(error, AttributeError | KeyError | IndexError | TypeError | ValueError) and not ours:
            return Answer("python")
        if frames[-1].name == "<lambda>" and frames[-1].filename.endswith("hostile/values.py"):
            return Answer("python")  # the caller's own function raised it, and hears of it as it is
        if any(f"site-packages/{library}/" in frames[-1].filename for library in APART):
            return Answer("apart")
        last = ours[-1] if ours else frames[-1]
        if isinstance(error, OSError) and error.filename and Path(last.filename) == PACKAGE / "files" / "writing.py":
            return Answer("OSError", str(error))  # as its docstring promises: what can't be written names the file
        place, words = place_of([last]), (str(error).splitlines() or [""])[0]
        return Answer("raw", f"{type(error).__name__} at {place}: {words[:160]}", place=place)


def ours_of(frames: Iterable[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Those in files of the package: a clone may be named heron_env too, and its tests are not ours."""
    return [frame for frame in frames if Path(frame.filename).is_relative_to(PACKAGE)]


def place_of(frames: list[traceback.FrameSummary]) -> str:
    """The last of these lines, `envs/base.py:210`, from the package's folder on where it is below it."""
    if not frames:
        return ""
    file = Path(frames[-1].filename)
    return f"{file.relative_to(PACKAGE) if file.is_relative_to(PACKAGE) else file}:{frames[-1].lineno}"
