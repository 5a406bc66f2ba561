"""Progress bars, in a terminal and in a notebook; where nobody looks, nothing is written."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

FORM = "{desc}: {percentage:3.0f} %|{bar}|{postfix}"


class Progress(NamedTuple):
    """How far a sweep is; `seconds_left` is estimated from the episodes of this run, None before there are enough."""

    done: int
    total: int
    seconds_left: float | None


def watched() -> bool:
    """Does somebody look: is stderr a terminal, or this the kernel of a notebook?"""
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


@contextmanager
def bar(name: str, wanted: bool = True) -> Iterator[Callable[[float, str], None]]:
    """A function to tell how far `name` is: (share done in [0, 1], words beside the bar).

    Drawn by tqdm (its environment variable TQDM_DISABLE=1 switches it off) if it is wanted and somebody looks.
    """
    if not (wanted and watched()):
        yield _silently
        return
    from tqdm.auto import tqdm

    with tqdm(total=1.0, desc=name, bar_format=FORM, dynamic_ncols=True) as drawn:

        def tell(share: float, words: str) -> None:
            drawn.set_postfix_str(words, refresh=False)
            drawn.update(max(0.0, min(share, 1.0) - drawn.n))
            drawn.refresh()

        yield tell


@contextmanager
def sweep_bar(wanted: bool = True) -> Iterator[Callable[[Progress], None]]:
    """What `Sweep.run(progress=...)` may call."""
    with bar("episodes", wanted) as tell:
        yield lambda p: tell(p.done / max(p.total, 1), f"{p.done} of {p.total}{left(p, ', ')}")


def left(progress: Progress, before: str = "") -> str:
    """`about 3 min left`, "" as long as nobody knows."""
    if progress.seconds_left is None or progress.done == progress.total:
        return ""
    seconds = math.ceil(progress.seconds_left)
    return f"{before}about {seconds} s left" if seconds < 120 else f"{before}about {math.ceil(seconds / 60)} min left"


def _silently(*told: Any) -> None:
    """Nobody looks."""
