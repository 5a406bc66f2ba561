"""The clock that everything in this room is given."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager
from typing import Protocol


class Clock(Protocol):
    """Time as calls see it; tests pass one that moves by itself."""

    def monotonic(self) -> float:
        """Never goes back, s."""
        ...

    def wall(self) -> float:
        """Seconds since 1970, for dates in headers."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass: nothing else is awaited."""
        ...

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Cancels what is awaited inside after that long and raises TimeoutError."""
        ...


class SystemClock:
    """The computer's."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(seconds)
