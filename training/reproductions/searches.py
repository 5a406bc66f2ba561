"""MGM, MGM-2 and LAMDLS-2 as agents that know their own tables and decide by letters alone.

A course is a generator: it writes letters, then waits for others; each time it goes on is one computation, and an agent
makes at most one a tick. Letters carry the turn that they belong to, so they may overtake each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

import numpy as np

from heron_env import Answer, Asked, Letter
from heron_env.seeding import stream
from training.reproductions.dcops import Dcop, Table

Course = Iterator[Callable[[], bool]]
"""What it yields says whether it can go on."""


class Member:
    """One agent of a search. It reads its first value off its observation, and knows no more than its tables.

    Attributes:
        values: those of its neighbours, as they last said.
        history: its value at the end of each turn.
    """

    def __init__(self, problem: Dcop, agent: int, names: list[str], course: Callable[[Member], Course]) -> None:
        self.name, self._course = names[agent], course
        self.tables = {names[other]: table for other, table in problem.near[agent].items()}
        self.neighbours = list(self.tables)

    def begin(self, seed: int, episode: int) -> None:
        """An episode begins: nothing is known."""
        self.value, self.values, self.history = -1, dict[str, int](), list[int]()
        self.inbox: defaultdict[tuple[str, int], dict[str, Any]] = defaultdict(dict)
        self.draws = stream(seed, "ca_dcop", self.name)
        self._outbox: list[Letter] = []
        self._going = self._course(self)
        self._ready: Callable[[], bool] = lambda: bool(self.neighbours)

    def answer(self, asked: Asked) -> Answer:
        """Reads, goes on if it can, and writes. Its action is its value."""
        if self.value < 0:
            self.value = int(asked.vector[0])
        for letter in asked.letters:
            turn, body = letter.body
            self.inbox[letter.kind, turn][letter.sender] = body
        if self._ready():
            self._ready = next(self._going)
        written, self._outbox = self._outbox, []
        return Answer(self.value, tuple(written))

    def write(self, kind: str, turn: int, body: Any, to: Iterable[str]) -> None:
        """The same letter to each of them."""
        self._outbox += [Letter(self.name, other, kind, [turn, body]) for other in to]

    def has(self, kind: str, turn: int, of: Iterable[str]) -> Callable[[], bool]:
        """Has such a letter come from each of them?"""
        box, wanted = self.inbox[kind, turn], [*of]
        return lambda: all(other in box for other in wanted)

    def costs(self, without: str = "") -> Table:
        """What each own value costs `[values]`, with the values that are known, one neighbour left out."""
        rows = [table[:, self.values[other]] * (other != without) for other, table in self.tables.items()]
        return np.asarray(np.sum(rows, axis=0, dtype=np.int64))

    def best_alone(self) -> tuple[int, int]:
        """(value, gain); its own value unless another is strictly better, then the first of the best."""
        costs = self.costs()
        gain = int(costs[self.value] - costs.min())
        return (int(costs.argmin()) if gain else self.value), gain

    def best_together(self, other: str, costs: list[int]) -> tuple[int, int, int]:
        """(own value, the other's, gain) with one whose values cost it so much without this agent; ties as above."""
        pair = self.costs(other)[:, None] + np.array(costs) + self.tables[other]
        gain = int(pair[self.value, self.values[other]] - pair.min())
        if not gain:
            return self.value, self.values[other], 0
        mine, theirs = np.unravel_index(pair.argmin(), pair.shape)
        return int(mine), int(theirs), gain

    def wins(self, gain: int, gains: dict[str, int]) -> bool:
        """Is a gain the greatest around? Of equal ones the first name's counts."""
        return gain > 0 and all((-gain, self.name) < (-other, name) for name, other in gains.items())


def mgm(me: Member) -> Course:
    """Values, then gains; the greatest gain around moves (Maheswaran, Pearce, Tambe 2004)."""
    for turn in count():
        me.write("value", turn, me.value, me.neighbours)
        yield me.has("value", turn, me.neighbours)
        me.values = me.inbox["value", turn]
        value, gain = me.best_alone()
        me.write("gain", turn, gain, me.neighbours)
        yield me.has("gain", turn, me.neighbours)
        if me.wins(gain, me.inbox["gain", turn]):
            me.value = value
        me.history.append(me.value)


OFFERING = 0.5
"""How probably an agent of MGM-2 makes an offer in a turn."""


def mgm2(me: Member) -> Course:
    """Values, offers, replies and gains, then go or no go between partners (Maheswaran, Pearce, Tambe 2004)."""
    for turn in count():
        me.write("value", turn, me.value, me.neighbours)
        yield me.has("value", turn, me.neighbours)
        me.values = me.inbox["value", turn]
        asked = me.neighbours[me.draws.integers(len(me.neighbours))] if me.draws.random() < OFFERING else ""
        for other in me.neighbours:
            me.write("offer", turn, me.costs(other).tolist() if other == asked else None, [other])
        yield me.has("offer", turn, me.neighbours)
        offers = {other: costs for other, costs in sorted(me.inbox["offer", turn].items()) if costs is not None}
        (value, gain), partner = me.best_alone(), ""
        if asked:
            me.write("reply", turn, None, offers)
            yield me.has("reply", turn, [asked])
            if (reply := me.inbox["reply", turn][asked]) is not None:
                partner, (value, gain) = asked, reply
        elif offers:
            found = {other: me.best_together(other, costs) for other, costs in offers.items()}
            partner = max(found, key=lambda other: found[other][2])
            value, theirs, gain = found[partner]
            for other in offers:
                me.write("reply", turn, [theirs, gain] if other == partner else None, [other])
        others = [other for other in me.neighbours if other != partner]
        me.write("gain", turn, gain, others)
        yield me.has("gain", turn, others)
        go = me.wins(gain, me.inbox["gain", turn])
        if partner:
            me.write("go", turn, go, [partner])
            yield me.has("go", turn, [partner])
            go = go and me.inbox["go", turn][partner]
        if go:
            me.value = value
        me.history.append(me.value)


def lamdls2(me: Member) -> Course:
    """Latency-aware monotonic distributed local search by pairs (Rachmut, Zivan, Yeoh, CP 2024).

    In each turn an agent acts twice. First, after its neighbours with smaller numbers (drawn anew in each turn): it
    moves alone and takes the first colour that none of these has. Then, after its neighbours with smaller colours: it
    offers itself to a neighbour with the next colour, or answers an offer with the best move of both, or moves alone.
    """
    number = me.draws.random()
    me.write("start", 0, [me.value, number], me.neighbours)
    yield me.has("start", 0, me.neighbours)
    numbers = {}
    for other, (value, of_other) in me.inbox["start", 0].items():
        me.values[other], numbers[other] = value, of_other
    for turn in count():
        before = [other for other in me.neighbours if numbers[other] < number]
        yield me.has("colour", turn, before)
        said = me.inbox["colour", turn]
        me.values |= {other: said[other][0] for other in before}
        me.value, _ = me.best_alone()
        taken = {said[other][1] for other in before}
        colour = next(free for free in count() if free not in taken)
        upcoming = me.draws.random()
        me.write("colour", turn, [me.value, colour, upcoming], me.neighbours)
        yield me.has("colour", turn, me.neighbours)
        me.values |= {other: said[other][0] for other in me.neighbours}
        colours = {other: said[other][1] for other in me.neighbours}
        yield from in_pairs(me, turn, {other: c - colour for other, c in colours.items()}, numbers)
        numbers, number = {other: said[other][2] for other in me.neighbours}, upcoming
        me.history.append(me.value)


def in_pairs(me: Member, turn: int, above: dict[str, int], numbers: dict[str, float]) -> Course:
    """The second part of a turn; `above`: by neighbour, how much greater its colour is."""
    done, offered, partner = me.inbox["done", turn], me.inbox["offer", turn], ""
    smaller = [other for other in me.neighbours if above[other] < 0]
    yield lambda: all(other in done or other in offered for other in smaller)
    me.values |= done
    waiting = [other for other in smaller if other not in done]
    following = [other for other in me.neighbours if above[other] == 1]
    if waiting:
        partner = min(waiting, key=numbers.__getitem__)
        me.value, me.values[partner], _ = me.best_together(partner, offered[partner])
        me.write("reply", turn, [me.values[partner], me.value], [partner])
    else:
        if following:
            asked = min(following, key=numbers.__getitem__)
            me.write("offer", turn, me.costs(asked).tolist(), [asked])
            reply = me.inbox["reply", turn]
            yield lambda: asked in reply or asked in done
            if asked in reply:
                partner, (me.value, me.values[asked]) = asked, reply[asked]
            me.values |= done
        if not partner:
            me.value, _ = me.best_alone()
    others = [other for other in me.neighbours if other != partner]
    me.write("done", turn, me.value, others)
    yield me.has("done", turn, others)
    me.values |= done


SEARCHES: dict[str, Callable[[Member], Course]] = {"MGM": mgm, "MGM-2": mgm2, "LAMDLS-2": lamdls2}
