"""The tree of agents, flattened once in depth-first order: ids, parents, children, levels, groups by name stem.

How large an environment may become that is built for somebody else (`at_most`) is counted while it is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import HierarchyError, UnknownAgent, did_you_mean
from heron_env.given import is_one_of
from heron_env.seeding import h

RESERVED = ("global", "*", "env", "proxy")


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Agents by rank (registration order: depth first, as written)."""

    agents: tuple[Any, ...]
    ids: tuple[str, ...]
    parent: tuple[int, ...]
    """Rank of the parent, -1 for the system agent."""
    children: tuple[tuple[int, ...], ...]
    level: tuple[int, ...]
    index: dict[str, int] = field(repr=False)

    @classmethod
    def of(cls, system: Any) -> Hierarchy:
        """Flatten the tree below `system`. Raises HierarchyError on duplicate or reserved ids and shared agents."""
        agents: list[Any] = []
        parents: list[int] = []
        children: list[list[int]] = []
        stack: list[tuple[Any, int]] = [(system, -1)]
        while stack:
            agent, parent = stack.pop()
            rank = len(agents)
            agents.append(agent)
            parents.append(parent)
            children.append([])
            if parent >= 0:
                children[parent].append(rank)
            stack.extend((child, rank) for child in reversed(agent.subordinates))
        index: dict[str, int] = {}
        for rank, agent in enumerate(agents):
            if agent.agent_id in RESERVED:
                raise HierarchyError(
                    f"an agent can't be called {agent.agent_id!r}: that name is reserved; choose another"
                )
            if agent.agent_id in index and agents[index[agent.agent_id]] is agent:
                raise HierarchyError(
                    f"agent {agent.agent_id!r} appears twice in the tree: build one object for each place"
                )
            if agent.agent_id in index:
                raise HierarchyError(f"two agents are called {agent.agent_id!r}: ids must be unique; rename one")
            index[agent.agent_id] = rank
        levels = tuple(agent.level for agent in agents)
        return cls(tuple(agents), tuple(index), tuple(parents), tuple(map(tuple, children)), levels, index)

    def rank(self, agent_id: str, where: str) -> int:
        """Rank of `agent_id`. Raises UnknownAgent saying `where` it was used, what exists, and the nearest id."""
        if not is_one_of(agent_id, self.index):
            shown = list(self.ids[:12]) + (["..."] if len(self.ids) > 12 else [])
            raise UnknownAgent(f"{where} {agent_id!r}; this env has {shown}.{did_you_mean(agent_id, self.ids)}")
        return self.index[agent_id]

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """`seeding.h` of each id, `[agents]`: what an agent's keyed draws are keyed by."""
        return np.array([h(agent) for agent in self.ids], dtype=np.uint64)

    def depth(self, rank: int) -> int:
        """Of an agent below the root, whose depth is 0."""
        steps = 0
        while rank > 0:
            steps, rank = steps + 1, self.parent[rank]
        return steps

    def __len__(self) -> int:
        return len(self.ids)


def name_stem(agent_id: str) -> str:
    """`battery` for `battery_12`: the part before the last underscore, if a number follows it."""
    stem, _, number = agent_id.rpartition("_")
    return stem if stem and number.isdigit() else agent_id


@dataclass
class Room:
    """So many agents, and so many numbers: of all their features, and of all that they observe."""

    agents: int
    numbers: int
    limit: str


_room: ContextVar[Room | None] = ContextVar("room", default=None)


@contextmanager
def at_most(*, agents: int, numbers: int) -> Iterator[None]:
    """Within it no larger environment can be built."""
    limit = f"at most {agents:,} agents, and {numbers:,} numbers in features and observations together"
    token = _room.set(Room(agents, numbers, limit))
    try:
        yield
    finally:
        _room.reset(token)


def require_room(*, agents: int = 0, numbers: int = 0) -> None:
    """Count what is made now. Raises HierarchyError where a limit is in force, and exceeded."""
    room = _room.get()
    if room is None:
        return
    room.agents, room.numbers = room.agents - agents, room.numbers - numbers
    if room.agents < 0 or room.numbers < 0:
        raise HierarchyError(f"this environment is too large: {room.limit}; ask for a smaller one")
