"""One entry of the error catalogue: how a user provokes an error, and every word it must answer with."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from heron_env.errors import HeronError

FOLDER = "DIR"
"""Stands in the messages for the folder that the case works in."""
REGISTERED = "REGISTERED"
"""Stands for the list of registered ids: other tests add theirs."""


class Case(NamedTuple):
    """A bad input.

    Attributes:
        name: unique; the test's id.
        error: the class it must raise, exactly; None for the command line, which prints instead.
        provoke: takes an empty folder, the working directory; returns what the command line printed, if it is that.
        culprit: what of the input the message must show, as the user wrote it.
        remedy: the part of the message that says how to mend.
        message: all of it.
        near: what it must propose (`Did you mean 'x'?`), where the input nearly is something known.
    """

    name: str
    error: type[HeronError] | None
    provoke: Callable[[Path], Any]
    culprit: str
    remedy: str
    message: str
    near: str | None = None
