"""The event loop that all clients of a process share, in a thread of its own: it works inside a running loop, too."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundLoop:
    """Started with the first call, and anew in a forked process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop of this process, running."""
        with self._lock:
            if self._loop is None or self._process != os.getpid():
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                threading.Thread(target=self._loop.run_forever, name="heron_env.net", daemon=True).start()
            return self._loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Its result; an interrupted caller cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


SHARED = BackgroundLoop()
