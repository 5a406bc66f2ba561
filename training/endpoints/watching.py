"""Watching this process's sockets: every attempt to connect, send or look up is seen, and may be forbidden.

By the interpreter's audit events, which no library gets around; `with watching(...) as tried`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import AF_INET, AF_INET6
from typing import Any

EVENTS = (
    "socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
    "socket.gethostbyaddr", "socket.getnameinfo",
)  # fmt: skip
MAKING = "socket.__new__"
_watchers: list[Callable[[str, tuple[Any, ...]], None]] = []
_hooked = False


class Forbidden(BaseException):
    """A packet was about to leave: nothing catches it on the way."""


def _hook(event: str, given: tuple[Any, ...]) -> None:
    if _watchers and (event in EVENTS or event == MAKING):
        for watcher in list(_watchers):
            watcher(event, given)


def target(event: str, given: tuple[Any, ...]) -> tuple[Any, Any]:
    """Host and port of an attempt."""
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        place = given[1]
        return (place[0], place[1]) if isinstance(place, tuple) else (place, None)
    return given[0], given[1] if len(given) > 1 else None


@contextmanager
def watching(allowed: Callable[[Any, Any], bool], *, sockets: bool = True) -> Iterator[list[tuple[str, Any, Any]]]:
    """Attempts as (event, host, port), in order; one that is not allowed is stopped.

    `sockets=False`: whoever only makes one, for the network, is stopped.
    """
    global _hooked
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked = True
    tried: list[tuple[str, Any, Any]] = []

    def watcher(event: str, given: tuple[Any, ...]) -> None:
        if event == MAKING:
            if not sockets and given[1] in (AF_INET, AF_INET6):
                tried.append((event, None, None))
                raise Forbidden("a socket was made")
            return
        host, port = target(event, given)
        tried.append((event, host, port))
        if not allowed(host, port):
            raise Forbidden(f"{event} to {host!r}:{port!r}")

    _watchers.append(watcher)
    try:
        yield tried
    finally:
        _watchers.remove(watcher)
