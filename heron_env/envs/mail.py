"""The letters of one environment: who may write to whom, which have come and wait, and what became of all (T24).

A letter waits with the time at which it came, ns; synchronously that is the nominal time of the step in which it was
written, as it is in the event-driven clock over a link without delay, and it can be read from the next step on. So the
same letters reach the same question in both clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import CoordinatorAgent
from heron_env.agents.horizontal import Mail, as_protocols
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout
from heron_env.core.letters import Letter, LetterCounts, Sealed, Written, sealed
from heron_env.engine.called import Called
from heron_env.engine.model import Native
from heron_env.envs.exchange import ranks_of
from heron_env.errors import ConfigError, FeatureError, did_you_mean
from heron_env.given import several

Waiting = tuple[int, int, Sealed]
"""(when it came, ns; rank of the sender; the letter)."""


class Post:
    """The letters of one episode.

    Attributes:
        receivers: by rank of the sender, to whom it may write, by rank, in registration order; empty without Mail.
        readers: ranks that may still ask; who begins an episode says so. Letters to others are not kept.
        written: by rank, how many letters an agent has written in this episode; others have none.
        columns: of the truth, where a sender's number of these goes, by rank.
    """

    def __init__(self, hierarchy: Hierarchy, edges: Iterable[tuple[int, int]], columns: Mapping[int, int]) -> None:
        self._hierarchy, self.columns = hierarchy, columns
        receivers: dict[int, set[int]] = {}
        for sender, receiver in edges:
            receivers.setdefault(sender, set()).add(receiver)
        self.receivers = {sender: tuple(sorted(receivers[sender])) for sender in sorted(receivers)}
        self.readers: frozenset[int] = frozenset()
        self.reset()

    @classmethod
    def of(cls, hierarchy: Hierarchy, layout: Layout) -> Post:
        """Of all Mail that coordinators declare.

        Raises HierarchyError for agents that it can't connect, FeatureError for a sender without what counts letters.
        """
        edges, columns = list[tuple[int, int]](), dict[int, int]()
        for rank, agent in enumerate(hierarchy.agents):
            if isinstance(agent, CoordinatorAgent):
                for protocol in as_protocols(agent.exchange, repr(agent)):
                    if isinstance(protocol, Mail):
                        pairs = ranks_of(hierarchy, rank, protocol)
                        edges += pairs
                        if protocol.written is not None:
                            columns |= {sender: column_of(layout, sender, protocol) for sender, _ in pairs}
        return cls(hierarchy, edges, columns)

    def reset(self) -> None:
        """Nobody has written anything."""
        self._waiting: dict[int, list[Waiting]] = {}
        self.written: dict[int, int] = {}
        self._read = self._lost = self._under_way = 0

    def natives(
        self, called: Called, truth: NDArray[np.float64], layout: Layout, alive: Callable[[], Sequence[bool]]
    ) -> tuple[Native, ...]:
        """What letters do in a step: how many are written stands in the truth, and nobody reads those of the ended."""
        if not self.receivers:
            return ()

        def number(first: int, last: int) -> None:
            for rank, column in self.columns.items():
                truth[column] = min(self.written.get(rank, 0), layout.high[column])

        numbered = (called.native("before_physics", number),) if self.columns else ()
        return (*numbered, called.native("finish", lambda first, last: self.bury(alive())))

    def checked(self, sender: int, letters: Any) -> tuple[Written, ...]:
        """(rank of the receiver, letter) of each letter that an agent has written, sealed.

        Raises ConfigError for what is no letter, and for one that its writer may not send.
        """
        agent = self._hierarchy.ids[sender]
        written = several(letters, f"letters of {agent!r}")
        return tuple(self._checked_one(sender, letter, f"letter {i} of {agent!r}") for i, letter in enumerate(written))

    def _checked_one(self, sender: int, letter: Any, where: str) -> tuple[int, Sealed]:
        ids = self._hierarchy.ids
        if not isinstance(letter, Letter):
            raise ConfigError(f"{where}: {letter!r:.200} is no Letter; write Letter(sender, receiver, kind, body)")
        if letter.sender != ids[sender]:
            raise ConfigError(
                f"{where}: sender={letter.sender!r:.200}: an agent writes in its own name, {ids[sender]!r}"
            )
        allowed = [ids[rank] for rank in self.receivers.get(sender, ())]
        if letter.receiver not in allowed:
            text = str(letter.receiver)
            fault = "may not be written to by it" if text in ids else "does not exist"
            may = f"it may write to {allowed[:12]}" if allowed else "it may write to nobody"
            raise ConfigError(
                f"{where}: sender={letter.sender!r}, receiver={text!r:.200}: that agent {fault}; {may}, as Mail(edges) "
                f"in an `exchange` says.{did_you_mean(text, allowed)}"
            )
        return self._hierarchy.index[letter.receiver], sealed(letter, where)

    def book(self, sender: int, *, lost: bool) -> None:
        """A letter has left over a link, or got lost there."""
        self.written[sender] = self.written.get(sender, 0) + 1
        self._lost += lost
        self._under_way += not lost

    def land(self) -> None:
        """A letter that counted as lost is under way."""
        self._lost -= 1
        self._under_way += 1

    def lose(self) -> None:
        """A letter that was under way will not arrive."""
        self._lost += 1
        self._under_way -= 1

    def arrive(self, receiver: int, sender: int, letter: Sealed, now: int) -> None:
        """What had left has come, ns."""
        self._under_way -= 1
        self._keep(receiver, (now, sender, letter))

    def hand_over(self, sender: int, letters: Iterable[Written], now: int) -> None:
        """Synchronously: letters written in the step at `now`, ns, are there for questions of later steps."""
        for receiver, letter in letters:
            self.written[sender] = self.written.get(sender, 0) + 1
            self._keep(receiver, (now, sender, letter))

    def _keep(self, receiver: int, waiting: Waiting) -> None:
        if receiver in self.readers:
            self._waiting.setdefault(receiver, []).append(waiting)

    def bury(self, alive: Sequence[bool]) -> None:
        """Nobody reads the letters of those who have ended; `alive` by rank."""
        for rank in [rank for rank in self.readers if not alive[rank]]:
            self.readers -= {rank}
            self._waiting.pop(rank, None)

    def take(self, receiver: int, before: int | None = None) -> tuple[Letter, ...]:
        """Open what has come (before a time, ns), by arrival, then the sender's rank, then as they were written."""
        if receiver not in self.readers:
            self.readers |= {receiver}
        waiting = self._waiting.pop(receiver, None)
        if waiting is None:
            return ()
        waiting.sort(key=lambda one: one[:2])
        rest = [] if before is None else [one for one in waiting if one[0] >= before]
        if rest:
            self._waiting[receiver] = rest
        ready = waiting[: len(waiting) - len(rest)]
        self._read += len(ready)
        return tuple(letter.opened() for _, _, letter in ready)

    def counts(self) -> LetterCounts:
        """What became of the letters so far; those that wait are unread."""
        sent, read, lost, under_way = self._counts()
        return LetterCounts(sent, read, sent - read - lost - under_way, lost, under_way)

    def unless_it_fails(self, call: Callable[..., None], *args: Any) -> None:
        """What is read and written in this call counts only if it raises nothing."""
        waiting = {receiver: list(letters) for receiver, letters in self._waiting.items()}
        counts, written = self._counts(), dict(self.written)
        try:
            call(*args)
        except BaseException:
            self._waiting = waiting
            _, self._read, self._lost, self._under_way = counts
            self.written = written
            raise

    def state(self) -> dict[str, Any]:
        """What waits, and the counts: plain lists and numbers."""
        return {
            "waiting": {
                receiver: [(came, sender, *astuple(letter)) for came, sender, letter in letters]
                for receiver, letters in self._waiting.items()
            },
            "readers": sorted(self.readers),
            "counts": self._counts(),
            "written": dict(self.written),
        }

    def _counts(self) -> list[int]:
        return [sum(self.written.values()), self._read, self._lost, self._under_way]

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state()`. Raises ConfigError if it is of an environment with other mail."""
        waiting: Mapping[int, Sequence[Any]] = state["waiting"]
        for receiver, letters in waiting.items():
            for _, sender, *_ in letters:
                if receiver not in self.receivers.get(sender, ()):
                    raise ConfigError(
                        "set_state(): the state has a letter that nobody may write in this environment; build them "
                        "alike"
                    )
        self._waiting = {
            receiver: [(came, sender, Sealed(*letter)) for came, sender, *letter in letters]
            for receiver, letters in waiting.items()
        }
        self.readers = frozenset(state["readers"])
        _, self._read, self._lost, self._under_way = state["counts"]
        self.written = dict(state["written"])


def column_of(layout: Layout, sender: int, mail: Mail) -> int:
    """Where the number of letters that a sender has written goes. Raises FeatureError if it has no such quantity."""
    row, counted = layout.rows[sender], mail.written
    assert counted is not None and counted.owner is not None
    place = row.find(counted.owner)
    if place is None:
        raise FeatureError(
            f"{mail!r}: {row.owner_id!r} writes letters, but has no {counted!r}; add {counted.owner.__name__} to its "
            "`features`, or let others write"
        )
    return int(row.offsets[place] + row.features[place].quantities[counted.name].index)
