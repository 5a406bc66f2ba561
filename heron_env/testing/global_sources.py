"""What a rollout asks besides its seed: global random generators and clocks, with the place in the source."""

from __future__ import annotations

import datetime
import os
import random  # noqa: TID251  the very thing that is looked for
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import heron_env.core

CLOCKS: dict[Any, str] = {
    getattr(time, name): f"time.{name}()"
    for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time")
}
CLOCKS |= {datetime.datetime.now: "datetime.now()", datetime.date.today: "date.today()", os.urandom: "os.urandom()"}
PARTS = ("core", "observability", "scheduling", "agents", "engine", "envs", "testing", "seeding.py")
ROOT = Path(heron_env.core.__file__).parents[1]
OURS = tuple(str(ROOT / part) for part in PARTS)
"""Files of the library itself, which never ask the outside; worlds are judged like any user's."""
INSTALLED = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def is_ours(frame: FrameType) -> bool:
    """Is this code of the library itself?"""
    return frame.f_code.co_filename.startswith(OURS)


class Asked:
    """The outside sources asked so far: {source: function and place}."""

    def __init__(self) -> None:
        self.random: dict[str, str] = {}
        self.clock: dict[str, str] = {}
        self._last = _state()

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        """A profile function: notes calls of clocks, and functions after which a global generator has moved."""
        if event not in ("c_call", "return") or is_ours(frame) or _is_installed(frame):
            return
        if event == "c_call":
            name = _clock(argument)
            if name:
                self.clock.setdefault(name, _place(frame))
        else:
            now = _state()
            for name, state in now.items():
                if state != self._last[name]:
                    self.random.setdefault(name, _place(frame))
            self._last = now


def _is_installed(frame: FrameType) -> bool:
    """Is this somebody else's code: the standard library's (logging, say, notes the time) or a package's?"""
    return frame.f_code.co_filename.startswith(INSTALLED) and not frame.f_code.co_filename.startswith(str(ROOT))


def _clock(function: Any) -> str | None:
    try:
        known = CLOCKS.get(function)
    except TypeError:  # a method of something unhashable
        return None
    return known


def _state() -> dict[str, Any]:
    """Where the two global generators stand."""
    legacy: Any = np.random.get_state(legacy=False)  # noqa: NPY002  the very thing that is looked for
    words = legacy["state"]
    drawn = random.getstate()
    return {
        "np.random": (words["pos"], int(words["key"][0]), legacy["has_gauss"]),
        "random": (drawn[1][-1], drawn[1][0], drawn[2]),
    }


def _place(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_qualname} ({Path(code.co_filename).name}:{frame.f_lineno})"


def watch(task: Callable[[], Any]) -> Asked:
    """Run `task` and note what it asks."""
    asked = Asked()
    before = sys.getprofile()
    sys.setprofile(asked.note)
    try:
        task()
    finally:
        sys.setprofile(before)
    return asked


@contextmanager
def reseeded(seed: int) -> Iterator[None]:
    """Both global generators at another seed, put back afterwards."""
    legacy, drawn = np.random.get_state(), random.getstate()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(legacy)  # noqa: NPY002
        random.setstate(drawn)
