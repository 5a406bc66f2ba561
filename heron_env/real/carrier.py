"""How a run's messages and questions travel to nodes and back: the event clock's delivery over a switchboard.

Every message between two places leaves at its nominal time and arrives when the hub learns that it has: what the hosts
take is a part of its delay. A question to a node goes over the bus once its observation has come; the answer counts
when it is back. In lockstep the clock waits for both, and they count at the time at which they left.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from queue import Empty
from typing import Any, Final

import numpy as np

from heron_env.core.letters import Letter, sealed
from heron_env.core.plans import Plan
from heron_env.core.policy import Answer, Asked, Origin
from heron_env.envs.answering import Asking
from heron_env.envs.event.clock import EventRun
from heron_env.envs.event.context import ends
from heron_env.envs.event.thinking import Promise, ThinkingThreads, Thought
from heron_env.envs.hooks import PROXY
from heron_env.errors import RunInterrupted
from heron_env.lab.real_time import Punctuality, keep_time
from heron_env.real import bus
from heron_env.real.node import letter_digest
from heron_env.real.record import RecordFile
from heron_env.real.switchboard import HUB, Came, Journey, Switchboard
from heron_env.scheduling.arrivals import Passage
from heron_env.scheduling.messages import LetterUnderWay, ObservationPush, ObservationReply
from heron_env.scheduling.timing import to_ns

AGAIN_S: Final = 0.25
"""In lockstep, what has not arrived by then is sent again."""
LINGER_S: Final = 1.0
"""After the end, what is still under way may arrive so long; what has not come by then counts as lost."""


class Remote:
    """Stands in the hub for the policy of one agent in a node. Asked itself, it waits for the answer (lockstep)."""

    def __init__(self, carrier: Carrier, agent: str) -> None:
        self._carrier, self.agent = carrier, agent

    def answer(self, asked: Asked) -> Answer:
        """The node's answer, however long it takes."""
        return self._carrier.wait_for_answer(asked)


class Carrier:
    """Delivers over a switchboard: the `Delivery` of a run, and its `threads`.

    Attributes:
        places: by agent, its node.
        thinks: nobody: the wall clock says when answers count.
        came: by message number, when each copy arrived, ns.
        passages: by message number, its link and its departure.
        begins: as of Arrivals.
        first: is added to a message's number on its way, so that none of an earlier episode is taken for it.
        record, log: the file of the run, if one is kept, and what is to be written there.
    """

    thinks: Collection[str] = ()

    def __init__(self, board: Switchboard, places: Mapping[str, str], *, lockstep: bool, first: int) -> None:
        self.board, self.places, self.lockstep, self._first = board, dict(places), lockstep, first
        self.record: RecordFile | None = None
        self.log: list[Any] = []
        self.passages: dict[int, Passage] = {}
        self.came: dict[int, list[int]] = {}
        self.begins: dict[str, list[int]] = {}
        self.gone: set[str] = set()
        self._pending: dict[int, tuple[Any, int]] = {}
        self._numbers: dict[int, int] = {}
        self._questions: dict[str, tuple[Asking, Asked]] = {}
        self._void: set[int] = set()  # messages that had come to a process that is gone
        self._unanswerable: list[str] = []  # agents that were asked on one of them
        self._anew: set[str] = set()
        self._others = ThinkingThreads()
        self.stopped = False

    def stop(self, *signal: object) -> None:
        """End the run at its next instant: between two events, so that its record repeats; the second time, at once."""
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = True
        self.board.inbox.put(Came(time.monotonic_ns(), "", bus.Ready()))  # who waits for something wakes

    def bind(self, run: EventRun) -> None:
        """The run whose messages these are."""
        self.run, self._ids = run, run.env.hierarchy.ids
        self._asking = {policy.policy.agent: policy for policy in run.agents.policies.values()
                        if isinstance(policy, Asking) and isinstance(policy.policy, Remote)}  # fmt: skip

    # Delivery

    def seed_of(self, seed: int | None) -> int | None:
        """Any."""
        return seed

    def times(self, number: int, message: Any, phase: int) -> Sequence[int]:
        """Send it; nobody knows when it will come, but in lockstep: then it has come."""
        sender, receiver = ends(message, self.run.env.simulation)
        places = self._place(sender), self._place(receiver)
        self.passages[number] = passage = Passage(bus.link_name(message, self.run.env), message.sent)
        self.log.append(["sent", number, passage.link, message.sent])
        self._pending[number], self._numbers[message.id] = (message, phase), number
        if not self.gone.isdisjoint(places):
            return ()
        route = Journey(*places, bus.payload_of(self._first + number, message))
        self.board.depart(self._first + number, route)
        if not self.lockstep:
            return ()
        while not (came := self.came.get(number)):
            if not self.gone.isdisjoint(places):
                return ()
            if not self.take(AGAIN_S):
                self.board.depart(self._first + number, route)
        return came

    def answered(self, agent: str, question: int, now: int) -> None:
        """Answers come when they come."""

    def _place(self, rank: int) -> str | None:
        return HUB if rank == PROXY else self.places.get(self._ids[rank], HUB)

    # Threads of the run

    def put(self, questions: Sequence[tuple[Asking, Asked]]) -> Sequence[Promise]:
        """Ask the node; other policies that know who asks think in threads of the hub."""
        asking, asked = questions[0]
        if not isinstance(asking.policy, Remote):
            return self._others.put(questions)
        self._ask(asking, asked)
        return [Promise(asked)]

    def _ask(self, asking: Asking, asked: Asked) -> None:
        self._questions[asked.agent] = (asking, asked)
        number = self._numbers[asking.about]
        if number in self._void:
            self._pass_over(asked.agent)
            return
        message, _ = self._pending[number]
        assert isinstance(message, ObservationReply | ObservationPush)
        context, rank = self.run.context, asking.rank
        own = message.vector[: message.view.own].tolist() if context.timings[rank].local else None
        adds = context.simulation.model.plan.observe_age
        old = context.shown_ages(rank, message.as_of, context.scheduler.now).tolist() if adds else None
        letters = [sealed(letter, "a letter") for letter in asked.letters]
        digests, again = [letter_digest(letter) for letter in letters], list[tuple[str, str, str, str]]()
        if asked.agent in self._anew:  # they may have come to its process of before
            digests, again = [], [(each.sender, each.receiver, each.kind, each.text) for each in letters]
        self._anew.discard(asked.agent)
        id = self._first + number
        running, remaining = asked.running, [row.tolist() for row in asked.running.remaining]
        doing = bus.Doing(
            running.number, running.index, remaining, running.age, running.prefix, running.left, running.delay
        )
        word = bus.Ask(id, asked.agent, asked.number, asked.turn, asked.time, own, old, digests, again, doing)
        self.board.tell(self.places[asked.agent], word)

    def _pass_over(self, agent: str) -> None:
        """Its process has been started again since, and has not got what this question is about."""
        if self.lockstep:
            raise RunInterrupted(f"{agent!r}: its node was started again; run it again")
        self._unanswerable.append(agent)
        asked, begins = len(self.run.answers.recorded.get(self._asking[agent].rank, ())), self.begins.get(agent, [])
        if begins[-1:] == [asked]:  # the new process begins with the next question
            self._begins(agent, asked + 1)

    def _begins(self, agent: str, asked: int) -> None:
        self.begins.setdefault(agent, []).append(asked)
        self.log.append(["begins", agent, asked])

    def wait_for_answer(self, asked: Asked) -> Answer:
        """Lockstep: ask, and wait. Raises RunInterrupted where its node is gone."""
        asking = self._asking[asked.agent]
        self._ask(asking, asked)
        self._answer: Answer | None = None
        while self._answer is None:
            if self.places[asked.agent] in self.gone:
                raise RunInterrupted(f"{asked.agent!r}: its node {self.places[asked.agent]!r} is gone; run it again")
            self.take(AGAIN_S)
        return self._answer

    # What comes

    def take(self, wait: float) -> bool:
        """Wait at most `wait` s for something from outside; did anything come? Raises RunInterrupted."""
        if self.stopped and not self.lockstep:
            raise KeyboardInterrupt
        if self.record is not None and not self.lockstep:
            self.record.note(self)
        if self._unanswerable:
            self._give_up(self._unanswerable.pop(), self.virtual(time.monotonic_ns()))
            return True
        if self._others.open and (thought := self._others.next(0.0)) is not None:
            self.run.come(thought, self.virtual(time.monotonic_ns()) / 1e9)
            return True
        limit = min(wait, 0.002) if self._others.open else wait
        try:
            came = self.board.inbox.get(timeout=limit) if limit > 0.0 else self.board.inbox.get_nowait()
        except Empty:
            return limit < wait
        self.handle(came)
        return True

    def virtual(self, ns: int) -> int:
        """Time of the run, ns, at `ns` of the monotonic clock."""
        return int((ns - self.begun) * self.speed)

    def handle(self, came: Came) -> None:
        """Bring what came into the run. Raises RunInterrupted for a node that says that it failed."""
        match came.word:
            case bus.Arrived(id):
                self._land(id - self._first, self.virtual(came.ns))
            case bus.NodeAnswer():
                self._answered(came.node, came.word, self.virtual(came.ns))
            case bus.Failed(why):
                raise RunInterrupted(f"node {came.node!r} failed: {why}")
            case None if came.gone:
                self._lose(came.node, self.virtual(came.ns))
            case None:
                self._return(came.node, self.virtual(came.ns))

    def _land(self, id: int, now: int) -> None:
        """The first copy counts, the second is dropped by its receiver; there are no more."""
        if id not in self._pending:
            return  # of an episode before
        message, phase = self._pending[id]
        times = self.came.setdefault(id, [])
        if self.lockstep and not times:
            times.append(message.sent)
            self.log.append(["came", id, message.sent])
        elif not self.lockstep and len(times) < 2:
            ns = self.run.context.stamp(max(now, message.sent), message=True)
            self.run.context.broker.land(message, phase, ns, times[0] if times else None)
            if isinstance(message, LetterUnderWay) and not times:
                self.run.context.simulation.post.land()
            times.append(ns)
            self.log.append(["came", id, ns])

    def _answered(self, node: str, said: bus.NodeAnswer, now: int) -> None:
        agent = next(
            (a for a, (asking, _) in self._questions.items() if self._first + self._numbers[asking.about] == said.id),
            None,
        )
        if agent is None or self.places[agent] != node:
            self.board.refused["not asked"] += 1
            return
        asking, asked = self._questions.pop(agent)
        if zlib.crc32(asked.vector.tobytes()) != said.observation:
            raise RunInterrupted(
                f"{agent!r}: its node {node!r} decided on another observation than the proxy sent: are both of one "
                "version and one environment?"
            )
        try:
            letters = tuple(Letter(agent, each.receiver, each.kind, json.loads(each.body)) for each in said.letters)
        except (ValueError, RecursionError) as error:
            raise RunInterrupted(f"{agent!r}: its node {node!r} wrote a letter that is no JSON: {error}") from error
        origin = Origin(said.source, said.code, said.attempts, said.circuit) if said.source else None
        answer = Answer(_action_of(said), letters, said.thinking, origin, said.tokens)
        if self.lockstep:
            self._answer = answer
        else:
            self.run.answers.come(Thought([(asking, asked)], [answer], 0.0), now)

    def _lose(self, node: str, now: int) -> None:
        """A node is gone: what was asked of it is given up, what it would send is lost."""
        self.gone.add(node)
        to = {number: ends(self._pending[number][0], self.run.env.simulation)[1] for number in self.came}
        self._void |= {number for number, rank in to.items() if self._place(rank) == node}
        self._give_up_all(node, now)

    def _give_up_all(self, node: str, now: int) -> None:
        for agent, place in self.places.items():
            if place == node:
                self._give_up(agent, now)

    def _give_up(self, agent: str, now: int) -> None:
        if self._questions.pop(agent, None) is not None and not self.lockstep:
            self.run.answers.give_up(self.run.env.hierarchy.index[agent], now)

    def _return(self, node: str, now: int) -> None:
        """It is there again, and begins anew."""
        if node not in self.gone:
            return
        self.gone.discard(node)
        self._give_up_all(node, now)  # observations that had come before it went, and were looked at after
        for agent, place in self.places.items():
            if place == node and agent in self._asking:
                self._begins(agent, len(self.run.answers.recorded.get(self._asking[agent].rank, ())))
                self._anew.add(agent)
        self.board.tell(node, bus.Begin(self.run.context.result.seed, self.run.context.result.episode))

    def play(self, speed: float, tolerance: float) -> tuple[int | None, Punctuality | None]:
        """Run to the end; the time up to which all has happened, ns, where it was ended before, and how punctual."""
        run, begun = self.run, time.monotonic_ns()
        self.begun, self.speed = begun, speed
        if self.lockstep:
            return self._play_in_lockstep(), None
        run.think_in_threads(self)
        punctuality = Punctuality(float(speed), float(tolerance))
        through = keep_time(run, punctuality, begun / 1e9, time.monotonic, self.take)
        end, self.stopped = time.monotonic() + LINGER_S, False
        with suppress(KeyboardInterrupt):
            while self._under_way() and (left := end - time.monotonic()) > 0.0:
                self.take(left)
        skipped, seconds = dict(run.context.result.busy), (time.monotonic_ns() - begun) / 1e9
        return through, replace(punctuality, skipped=skipped, seconds=seconds, interrupted=through is not None)

    def _play_in_lockstep(self) -> int | None:
        through = 0.0
        try:
            while (due := self.run.due) is not None:
                self.run.until(due if self.run.t_end is None or to_ns(due, "t") < self.run.t_end else None)
                through = due
                if self.record is not None:
                    self.record.note(self)
                if self.stopped:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            return to_ns(through, "t")
        return None

    def _under_way(self) -> bool:
        """Can anything that was sent still come?"""
        return len(self.came) < len(self.passages)

    def passed(self) -> dict[int, Passage]:
        """All messages that left for another place, and when they came."""
        return {id: replace(each, came=tuple(self.came.get(id, ()))) for id, each in self.passages.items()}


def _action_of(said: bus.NodeAnswer) -> Any:
    """An action vector, a plan, or None: nothing new. Raises ConfigError."""
    if (plan := said.plan) is None:
        return np.array(said.action)
    rules = {name: getattr(plan, name) for name in ("period", "start", "merge", "end", "weight")}
    return Plan(np.array(plan.actions), **rules) if plan.actions else None
