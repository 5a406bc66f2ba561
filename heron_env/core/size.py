"""How large an environment may become that is built for somebody else, counted while it is made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from heron_env.errors import HierarchyError


class Room:
    """So many agents, and so many numbers: of all their features, and of all that they observe."""

    def __init__(self, agents: int, numbers: int) -> None:
        self._agents, self._numbers = agents, numbers
        self._words = f"at most {agents:,} agents, and {numbers:,} numbers in features and observations together"

    def take(self, agents: int, numbers: int) -> None:
        """Raise HierarchyError where there is no more."""
        self._agents -= agents
        self._numbers -= numbers
        if self._agents < 0 or self._numbers < 0:
            raise HierarchyError(f"this environment is too large: {self._words}; ask for a smaller one")


_room: ContextVar[Room | None] = ContextVar("room", default=None)


@contextmanager
def at_most(*, agents: int, numbers: int) -> Iterator[None]:
    """Within it no larger environment can be built."""
    token = _room.set(Room(agents, numbers))
    try:
        yield
    finally:
        _room.reset(token)


def take(*, agents: int = 0, numbers: int = 0) -> None:
    """Count what is made now. Raises HierarchyError where a limit is in force, and exceeded."""
    room = _room.get()
    if room is not None:
        room.take(agents, numbers)
