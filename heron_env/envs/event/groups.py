"""Same-time groups: events of many agents that fall at one (ns, phase), handled together as arrays.

Agents belong to a crew if they tick alike and their links draw nothing: their ticks, requests, replies, effects,
reports and receipts then fall together for good. The legs of the physics cycle never draw, so that equal delays are
enough. What such events do touches their own agent's state and row only (effects are applied in the order of ranks), so
nobody can tell in which order they came, but for a trace: a traced run has groups only for the legs of the cycle, where
all agents are in one and nothing falls in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.envs.event.context import EventContext
from heron_env.scheduling import messages
from heron_env.scheduling.broker import MessageGroup
from heron_env.scheduling.records import make
from heron_env.scheduling.scheduler import Phase

if TYPE_CHECKING:
    from heron_env.envs.event.physics import Cycle, PhysicsCycle

PHYSICS, REWARD = int(Phase.PHYSICS), int(Phase.REWARD)
WORTH = 32
"""Fewer agents are handled one by one, which is quick enough for them, and every event can be watched by itself."""
LIGHTER = 4
"""The legs of the cycle do so little one by one that a group pays from a quarter of that."""


@dataclass(frozen=True, slots=True, eq=False)
class Crew:
    """Agents whose events fall together: ranks ascending, once as numbers and once as an array, int64 `[k]`."""

    ranks: tuple[int, ...]
    members: NDArray[np.int64]

    @classmethod
    def of(cls, ranks: Iterable[int]) -> Crew:
        """Of these ranks, ascending."""
        ranks = tuple(ranks)
        return cls(ranks, np.asarray(ranks, dtype=np.int64))

    def of_those(self, keep: Sequence[bool]) -> Crew:
        """Those of whom `keep` (by rank) says so; itself if all."""
        kept = [rank for rank in self.ranks if keep[rank]]
        return self if len(kept) == len(self.ranks) else Crew.of(kept)


@dataclass(frozen=True, slots=True, eq=False)
class Group(MessageGroup):
    """One event of class `kind` for each of a crew, all of number `number`.

    `first` is the id of the first message, `sent` when they left, ns; `body` what they carry beyond that.
    """

    kind: type
    crew: Crew
    number: int
    first: int = 0
    sent: int = 0
    body: Any = None

    @property
    def ranks(self) -> tuple[int, ...]:  # type: ignore[override]
        """Whose events, ascending."""
        return self.crew.ranks

    @property
    def members(self) -> NDArray[np.int64]:  # type: ignore[override]
        """The same as an array."""
        return self.crew.members

    def each(self) -> Iterator[Any]:
        """The events one by one, as they would be on the heap."""
        return map(self.one, range(len(self.ranks)))

    def one(self, place: int) -> Any:
        """One of them."""
        rank = self.ranks[place]
        if issubclass(self.kind, messages.Message):
            body = () if self.body is None else self.body.of(place, rank)
            return make(self.kind, (rank, self.number, self.first + place, self.sent, *body))
        return make(self.kind, (rank, self.number, *(() if self.body is None else (self.body[place],))))


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """What an observation request carries."""

    turn: int

    def of(self, place: int, rank: int) -> tuple[Any, ...]:
        """The fields of one of them."""
        return (self.turn,)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What observation replies carry: one float32 vector an agent, and the as-of times of all rows, int64."""

    turn: int
    asked: int
    gathered: int
    vectors: Sequence[NDArray[np.float32]]
    as_of: NDArray[np.int64]
    views: Sequence[Any]

    def of(self, place: int, rank: int) -> tuple[Any, ...]:
        """The fields of one of them."""
        view = self.views[place]
        return (self.turn, self.asked, self.gathered, self.vectors[place], self.as_of[view.sources], view)


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What state reports carry: values float64, one agent's after another's, of the rows' reported `columns`."""

    versions: NDArray[np.int64]
    as_of: int
    values: NDArray[np.float64]
    effect: bool
    part: Reports

    def of(self, place: int, rank: int) -> tuple[Any, ...]:
        """The fields of one of them."""
        values = self.values[self.part.spans[place]]
        return (rank, int(self.versions[place]), self.as_of, values, self.effect, self.part.views[place])


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What legs 6 and 7 of the cycle carry."""

    outcome: Any

    def of(self, place: int, rank: int) -> tuple[Any, ...]:
        """The fields of one of them."""
        return (tick_result(self.outcome, rank),)


def tick_result(outcome: Any, rank: int) -> messages.TickResult:
    """An agent's part of the outcome of a step."""
    result: messages.TickResult = make(
        messages.TickResult,
        (outcome.rewards[rank], outcome.terminated[rank], outcome.truncated[rank], outcome.infos[rank]),
    )
    return result


class Reports:
    """The reported columns of several agents' rows, one after another."""

    def __init__(self, context: EventContext, crew: Crew) -> None:
        rows = context.simulation.layout.rows
        self.crew = crew
        self.views = [rows[rank].reported for rank in crew.ranks]
        self.columns = np.concatenate([np.zeros(0, np.int64), *(view.columns for view in self.views)])
        stops = np.cumsum([0, *(len(view.columns) for view in self.views)]).tolist()
        self.spans = [slice(a, b) for a, b in pairwise(stops)]


def together(
    ranks: Iterable[int], alike: Callable[[int], Any], least: int | None = None
) -> tuple[list[Crew], list[int]]:
    """Crews of those alike, and the ranks of whom there are fewer than `least`, or than are worth while."""
    least = WORTH if least is None else least
    found: dict[Any, list[int]] = {}
    for rank in ranks:
        found.setdefault(alike(rank), []).append(rank)
    crews = [Crew.of(same) for same in found.values() if len(same) >= least]
    grouped = {rank for crew in crews for rank in crew.ranks}
    return crews, [rank for rank in ranks if rank not in grouped]


class CycleCrews:
    """Legs 3 to 7 of the physics cycle for whole crews; all but leg 3 draw nothing: equal delays are enough."""

    def __init__(self, context: EventContext, physics: PhysicsCycle) -> None:
        self.context, self.physics = context, physics
        self.bind()

    def bind(self) -> None:
        """Work out who reports together."""
        c = self.context
        rows = c.simulation.layout.rows
        ideal = [r for r in range(len(rows) - 1) if rows[r].reported.counts and c.links[r].ideal and c.grouping]
        ideal = [] if c.traced else ideal
        crews, _ = together(ideal, lambda rank: c.timings[rank].msg)
        self.reporters = [Reports(c, crew) for crew in crews]
        self.grouped = frozenset(rank for crew in crews for rank in crew.ranks)
        self._members: tuple[list[int], list[Crew], list[int]] = ([], [], [])

    def __getstate__(self) -> dict[str, Any]:
        """Nothing that `bind` works out."""
        return {"context": self.context, "physics": self.physics}

    def report(self, step: int, cycle: Cycle, now: int) -> None:
        """Leg 3 of all crews leaves."""
        c = self.context
        for part in self.reporters:
            ranks = part.crew.ranks
            facts = Facts(np.full(len(ranks), cycle.version), cycle.as_of, cycle.truth[part.columns], False, part)
            group = Group(messages.StateReport, part.crew, step, c.broker.next_ids(len(ranks)), now, facts)
            c.broker.send_group(group, PHYSICS, now + c.timings[ranks[0]].msg)

    def complete(self, members: list[int], step: int, leaves: int) -> list[int]:
        """Leg 4 of all crews leaves; who is in none."""
        c = self.context
        if not c.grouping:
            return members
        if members != self._members[0]:
            crews, others = together(members, lambda rank: c.timings[rank].msg, max(2, WORTH // LIGHTER))
            at_once = not members or c.timings[members[0]].msg == 0  # legs would follow each other within the instant
            if c.traced and (len(crews) != 1 or others or at_once):
                crews, others = [], members
            self._members = (members, crews, others)
        _, crews, others = self._members
        for crew in crews:
            group = Group(messages.CycleCompletion, crew, step, c.broker.next_ids(len(crew.ranks)), leaves)
            c.broker.send_group(group, PHYSICS, leaves + c.timings[crew.ranks[0]].msg)
        return others

    def ask(self, group: Group, now: int) -> None:
        """PhysicsCycle.ask_score for all."""
        self._next(messages.LocalStateRequest, group, now, None)

    def answer(self, group: Group, now: int) -> None:
        """PhysicsCycle.answer_score for all."""
        scores = Scores(self.physics.cycles[group.number].outcome)
        self._next(messages.LocalStateReply, group, now, scores)
        self.physics.answered(group.number, len(group.ranks))

    def learn(self, group: Group, now: int) -> None:
        """PhysicsCycle.learn_score for all."""
        self._next(messages.TickResultReport, group, now, group.body)

    def _next(self, kind: type, group: Group, now: int, body: Any) -> None:
        c = self.context
        leg = Group(kind, group.crew, group.number, c.broker.next_ids(len(group.ranks)), now, body)
        c.broker.send_group(leg, REWARD, now + c.timings[group.ranks[0]].msg)
