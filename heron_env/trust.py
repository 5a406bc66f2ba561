"""What a file may have run: what is registered here, and what somebody vouched for by its name, "module:function".

A run folder, a sweep and a trace name the environment they are of, and their options may name a policy. Names of
anything that can be imported would let whoever sends such a file run what he likes, so a name counts only if

- it is registered: `register()` was called by code that is imported already, or an installed package declares it (what
  lies in the working directory is not installed);
- the same command or call names it: `heron sweep mine:make RUN`, `Sweep.of("mine:make", ...)`;
- it was vouched for: `--trust mine:make`, `trust="mine:make"`, `with trusting("mine:make"):`, or the environment
  variable HERON_TRUST, names separated by commas. Worker processes inherit all of it.

What needs no environment, such as reading a sweep's table, builds none and asks for nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Final

from heron_env.errors import ConfigError, Untrusted

VARIABLE: Final = "HERON_TRUST"
MODEL_FILES: Final = (".zip", ".onnx")
"""Endings of files that hold a policy: unpacking a .zip runs what it holds, as importing a module does."""
Trust = str | Iterable[str]
"""One name, "module:function", or several."""

_vouched: ContextVar[frozenset[str]] = ContextVar("vouched", default=frozenset())
_named_by: ContextVar[str] = ContextVar("named_by", default="")


@contextmanager
def trusting(*names: str) -> Iterator[None]:
    """Within it files may name these callables, each "module:function". Raises ConfigError for what is no such name."""
    token = vouch(*names)
    try:
        yield
    finally:
        _vouched.reset(token)


def vouch(*names: str) -> Token[frozenset[str]]:
    """The same until the context ends, as a command's does. Raises ConfigError."""
    return _vouched.set(_vouched.get() | set(_checked(names)))


def listed(trust: Trust) -> tuple[str, ...]:
    """The names that a `trust=` argument holds. Raises ConfigError."""
    try:
        names = (trust,) if isinstance(trust, str) else tuple(trust)
    except TypeError as error:
        raise ConfigError(f"trust={trust!r:.200}: must be a name, 'module:function', or several") from error
    return _checked(names)


def named(env_id: str) -> tuple[str, ...]:
    """What a call that names this environment vouches for by it."""
    return (env_id,) if all(env_id.partition(":")[::2]) else ()


def vouched() -> frozenset[str]:
    """All names that somebody vouched for, here and now: what a worker process inherits."""
    told = os.environ.get(VARIABLE, "")
    return _vouched.get() | {name.strip() for name in told.split(",") if name.strip()}


@contextmanager
def on_behalf_of(file: str) -> Iterator[None]:
    """Within it, what is imported by name is imported since a file says so; "" leaves it as it is."""
    token = speak_for(file)
    try:
        yield
    finally:
        _named_by.reset(token)


def speak_for(file: str) -> Token[str]:
    """The same until the context ends."""
    return _named_by.set(file or _named_by.get())


def require_trust(name: str, file: str | None = None) -> None:
    """Raise Untrusted for a callable that a file names, and nobody vouched for.

    `file`: which one; None: that on whose behalf this runs, if any.
    """
    source = _named_by.get() if file is None else file
    if source and name not in vouched():
        raise Untrusted(
            f"{source} names {name!r}, which is not registered here: a file runs no code that nobody vouched for. "
            f"If you trust it, say --trust {name}, trust={name!r} or {VARIABLE}={name}; or register it under an id"
        )


def _checked(names: Iterable[object]) -> tuple[str, ...]:
    found = tuple(names)
    for name in found:
        if not isinstance(name, str) or not (name.endswith(MODEL_FILES) or all(name.partition(":")[::2])):
            raise ConfigError(f"trust={name!r}: must read 'module:function', as a file names it")
    return tuple(map(str, found))
