"""Policies that know who asks, in the event clock: asked together, with thinking that takes time (T23), and letters.

They are asked while the clock waits, or in threads (ThinkingThreads) while it goes on, driven by the wall clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from threading import Thread
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from heron_env.core.plans import SentPlan
from heron_env.core.policy import Asked
from heron_env.envs.answering import Asking, Taken, begin_policies, fetch, put, taken
from heron_env.envs.event.agents import NEVER, REPLY, REQUEST, AgentLoop
from heron_env.envs.event.context import EventContext
from heron_env.envs.planning import read
from heron_env.scheduling.arrivals import Arrivals, Delivery, RecordedAnswer, RecordedPolicy
from heron_env.scheduling.broker import Queue
from heron_env.scheduling.events import Answered, PushedAnswer
from heron_env.scheduling.messages import LetterUnderWay, ObservationReply
from heron_env.scheduling.records import make
from heron_env.scheduling.scheduler import Phase
from heron_env.scheduling.sharing import Offered, Transmit
from heron_env.scheduling.ticks import step_of
from heron_env.scheduling.timing import to_seconds

Questions = Sequence[tuple[Asking, Asked]]


class Waiting(NamedTuple):
    """A question that a thread got at `now`, ns: the event that its answer becomes, and what it follows from.

    `place`: which question to its agent it is, from 0.
    """

    question: Asked | None
    kind: type[Answered]
    number: int
    now: int
    rest: tuple[Any, ...]
    here: int
    place: int


THOUGHT = REQUEST
"""Phase in which a thought ends: after the deadlines of its instant (T11), before its observations, which it uses."""


class AnswerLoop:
    """Stands before `AgentLoop.receive_reply` for the agents whose policies are asked.

    The first observation of an instant that comes to a policy with `answer_all` brings the questions of all others that
    come to it at that instant; each answer counts when its own observation is handled, by rank. One of an agent that a
    pushed observation reaches at the same instant, too, is asked alone, as are pushed observations, and second ones.

    Attributes:
        thinking: by rank, for which decision's answer an agent waits.
        threads: ask policies while the clock goes on; None: the clock waits for their answers.
        waiting: by rank, the question that was given to a thread, and what becomes of its answer.
        longest: by rank, the longest thought, ns; of those that took time.
        recorded: by rank, the answers to all questions put to threads, or whose times a record says, in their order;
            None: it did not count, or not yet.
    """

    def __init__(self, context: EventContext, agents: AgentLoop) -> None:
        self.context, self.agents = context, agents
        self.thinking: dict[int, int] = {}
        self.threads: AnswerThreads | None = None
        self.waiting: dict[int, Waiting] = {}
        self.longest: dict[int, int] = {}
        self.recorded: dict[int, list[RecordedAnswer | None]] = {}
        self._ready: dict[int, Taken | Promise] = {}  # by id of the observation; of this instant only

    def receive_reply(self, reply: ObservationReply, now: int) -> None:
        """AgentLoop.receive_reply; who is thinking does not look."""
        rank, asking = reply.agent, self.agents.policies[reply.agent]
        if not isinstance(asking, Asking):
            self.agents.receive_reply(reply, now)
            return
        answer = self._ready.pop(reply.id, None)
        if answer is None:
            if not self._is_news(reply):
                return
            if rank in self.thinking:
                self.miss(rank)
                return
            answer = self._ask(asking, reply, now)
        event = self.accept(answer, Answered, rank, reply.number, now)
        if event is not None:
            self.agents.commit(rank, reply.number, event.values, now, "tick")

    def _is_news(self, reply: ObservationReply) -> bool:
        """T13: is its agent in the episode, and without a newer observation, which it decided on or thinks about?"""
        rank, newest = reply.agent, self.thinking.get(reply.agent, NEVER)
        return self.context.simulation.alive[rank] and reply.number > max(self.agents.decided[rank], newest)

    def miss(self, rank: int) -> None:
        """An observation has come to an agent that is thinking."""
        self.context.result.busy[self.context.simulation.model.hierarchy.ids[rank]] += 1

    def _ask(self, asking: Asking, reply: ObservationReply, now: int) -> Taken | Promise:
        """Ask all that can be asked with it; its own answer. Raises ConfigError, RunInterrupted."""
        replies = [reply] if asking.together is None else [reply, *self._others(asking, reply, now)]
        answers = self.ask([self._question(other, now) for other in replies], now)
        self._ready.update({other.id: answer for other, answer in zip(replies[1:], answers[1:], strict=True)})
        return answers[0]

    def _question(self, reply: ObservationReply, now: int) -> tuple[Asking, Asked]:
        asking, vector = self.agents.policies[reply.agent], self.agents.complete_observation(reply, now)
        assert isinstance(asking, Asking)
        asking.about = reply.id
        return asking, asking.question(vector, reply.number, step_of(reply.turn), reply.asked)

    def ask(self, questions: list[tuple[Asking, Asked]], now: int) -> Sequence[Taken | Promise]:
        """The answers of one policy; origins are noted. Raises ConfigError, RunInterrupted."""
        if self.threads is not None:
            return self.threads.put(questions)
        c = self.context
        for asking, _ in questions:
            if self._is_timed(asking.rank):
                self._begin_anew(asking)
        answers = put(questions)
        c.ownership.require(c.mark, c.simulation.model.hierarchy.ids[questions[0][0].rank], to_seconds(now))
        if c.delivery is None:
            for (asking, _), answer in zip(questions, answers, strict=True):
                self._note(asking.rank, answer, now)
        return answers

    def _note(self, rank: int, answer: Taken, now: int) -> None:
        self.context.result.note_answer(self.context.simulation.model.hierarchy.ids[rank], to_seconds(now), answer)

    def _is_timed(self, rank: int) -> bool:
        """Does somebody else say when an agent's answers count?"""
        delivery = self.context.delivery
        return delivery is not None and self.context.simulation.model.hierarchy.ids[rank] in delivery.thinks

    def _begin_anew(self, asking: Asking) -> None:
        """The agent's process was started again before this question: so is its policy's memory."""
        c, delivery = self.context, self.context.delivery
        agent = c.simulation.model.hierarchy.ids[asking.rank]
        begins = delivery.begins.get(agent, ()) if isinstance(delivery, Arrivals) else ()
        if len(self.recorded.get(asking.rank, ())) in begins and not isinstance(asking.policy, RecordedPolicy):
            begin_policies([asking.policy], c.proxy.seed, c.proxy.episode)

    def _others(self, asking: Asking, first: ObservationReply, now: int) -> list[ObservationReply]:
        """The further observations of this instant on which the same policy will be asked."""
        heap, down = self.context.scheduler.heap, self.context.simulation.down
        entries, coming = [], []
        while heap and heap[0][0] == now and heap[0][1] == REPLY:
            entries.append(heappop(heap))
        for entry in entries:
            heappush(heap, entry)
            if not isinstance(entry[4], Offered | Transmit):  # what waits for its medium has not come
                coming.append(entry[4])
        served = [m for m in coming if type(m) is not ObservationReply or m.id in self._ready]
        alone = {first.agent, *(message.agent for message in served)}
        others: dict[int, ObservationReply] = {}
        for reply in coming:
            rank = reply.agent
            free = rank not in alone and rank not in others and rank not in self.thinking and rank not in down
            same = free and getattr(self.agents.policies.get(rank), "key", None) == asking.key
            if same and self._is_news(reply) and not self.context.broker.is_second_copy(reply):
                others[rank] = reply
        return list(others.values())

    def accept(
        self, answer: Taken | Promise, kind: type[Answered], rank: int, number: int, now: int, *rest: Any
    ) -> Answered | None:
        """The answer to a question of now, if it counts now; None: until it counts the agent looks at nothing else."""
        if isinstance(answer, Promise):
            self._wait(rank, answer.question, kind, number, now, rest)
            return None
        if self.context.delivery is not None:
            return self._accept_at(self.context.delivery, answer, self._wait(rank, None, kind, number, now, rest), rank)
        event = self._event(answer, kind, rank, number, now, rest)
        new = answer.action is not None  # "nothing new" takes no time
        if new and (thinking := answer.thinking + self.context.links[rank].thinking(number, now)):
            self.think(event, thinking)
            return None
        self.trace(event, now)
        return event

    def think(self, answer: Answered, thinking: int) -> None:
        """It counts in `thinking` ns."""
        self.thinking[answer.agent] = answer.number
        scheduler = self.context.scheduler
        self.longest[answer.agent] = max(thinking, self.longest.get(answer.agent, 0))
        scheduler.schedule(scheduler.now + thinking, THOUGHT, answer.agent, answer)

    def _accept_at(self, delivery: Delivery, answer: Taken, waiting: Waiting, rank: int) -> Answered | None:
        """The same where a delivery may say when answers count; they are recorded."""
        due: tuple[int, bool] | None = waiting.now + answer.thinking, False
        if self._is_timed(rank):
            agent = self.context.simulation.model.hierarchy.ids[rank]
            due = delivery.answered(agent, waiting.place, waiting.now)
        return None if due is None else self._conclude_at(due[0], rank, waiting, None if due[1] else answer)

    def _wait(
        self, rank: int, question: Asked | None, kind: type[Answered], number: int, now: int, rest: tuple[Any, ...]
    ) -> Waiting:
        """The agent looks at nothing else until an answer to this question counts."""
        questions = self.recorded.setdefault(rank, [])
        waiting = Waiting(question, kind, number, now, rest, self.context.scheduler.here, len(questions))
        questions.append(None)
        self.thinking[rank], self.waiting[rank] = number, waiting
        return waiting

    def give_up(self, rank: int, now: int) -> None:
        """Nobody will answer what the agent was asked: its process is gone, as is noticed at `now`, ns."""
        if (waiting := self.waiting.get(rank)) is not None:
            self.context.scheduler.here = waiting.here
            self._conclude_at(self.context.stamp(now, message=False), rank, waiting, None)

    def _conclude_at(self, due: int, rank: int, waiting: Waiting, answer: Taken | None) -> Answered | None:
        """What an agent waits for counts at `due`, ns, or is given up then; the answer if that is now."""
        del self.waiting[rank]
        if answer is None:
            event: Answered = make(waiting.kind, (rank, waiting.number, None, waiting.now, None, (), *waiting.rest))
            self.recorded[rank][waiting.place] = RecordedAnswer(waiting.now, due, None)
        else:
            event = self._event(answer, waiting.kind, rank, waiting.number, waiting.now, waiting.rest)
            self._note(rank, answer, waiting.now)
            plan = event.values.tolist() if isinstance(event.values, SentPlan) else None
            action = () if isinstance(event.values, SentPlan) else tuple(event.values.tolist())
            self.recorded[rank][waiting.place] = RecordedAnswer(
                waiting.now, due, action, answer.letters, answer.origin, answer.tokens, plan
            )
        if due == waiting.now:
            del self.thinking[rank]
            self.trace(event, due)
            return event
        self.longest[rank] = max(due - waiting.now, self.longest.get(rank, 0))
        self.context.scheduler.schedule(due, THOUGHT, rank, event)
        return None

    def _event(
        self, answer: Taken, kind: type[Answered], rank: int, number: int, now: int, rest: tuple[Any, ...]
    ) -> Answered:
        c, agents = self.context, self.agents
        observed = min(rest[-1] if rest else c.timings[agents.clock[rank]].nominal(number), now)
        values = read(c.simulation, rank, answer.action, observed)
        event: Answered = make(kind, (rank, number, values, now, answer.origin, answer.letters, *rest))
        return event

    def come(self, came: Thought, now: int) -> None:
        """Answers from threads count `now`, ns, or when they have thought long enough, if that is later.

        The course is that of a clock that waited for them and was told how long they took (T23). Answers to questions
        that were taken back are dropped. Raises what the policy raised, ConfigError, RunInterrupted.
        """
        if isinstance(came.said, BaseException):
            raise came.said
        answers, c = taken(came.questions, came.said), self.context
        for (asking, question), answer in zip(came.questions, answers, strict=True):
            waiting = self.waiting.get(asking.rank)
            if waiting is not None and waiting.question is question:
                c.ownership.require(c.mark, c.simulation.model.hierarchy.ids[asking.rank], to_seconds(waiting.now))
                c.scheduler.here = waiting.here
                due = c.stamp(max(now, waiting.now + max(answer.thinking, 1)), message=False)
                self._conclude_at(due, asking.rank, waiting, answer)

    def cancel(self, rank: int) -> None:
        """An agent thinks no further."""
        self.thinking.pop(rank, None)
        self.agents.cancelled += self.waiting.pop(rank, None) is not None

    def trace(self, answer: Answered, now: int) -> None:
        """Note in the trace an answer that took no time; what it leads to follows from it. Its letters leave."""
        c = self.context
        if c.trace is not None:
            place = (answer.agent, answer.number, NEVER, c.scheduler.here, 0, answer)
            c.scheduler.here = c.trace.add(now, type(answer).__name__, *place)
        send_letters(c, answer, now)

    def conclude(self, answer: Answered, now: int) -> None:
        """The agent has thought."""
        if self.finish(answer, answer.number > self.agents.decided[answer.agent]):
            self.agents.commit(answer.agent, answer.number, answer.values, now, "tick")

    def finish(self, answer: Answered, in_time: bool) -> bool:
        """A thought is over; does it count, and do its letters leave?

        Not if its agent has ended or is down, or if the no-op took its place.
        """
        c, rank = self.context, answer.agent
        self.thinking.pop(rank, None)
        if in_time and answer.values is not None and c.simulation.alive[rank] and rank not in c.simulation.down:
            send_letters(c, answer, c.scheduler.now)
            return True
        self.agents.cancelled += 1
        c.mark_cancelled()
        return False


def send_letters(c: EventContext, answer: Answered, now: int) -> None:
    """The letters of an answer leave; those to one receiver are numbered, which keeps their draws apart (T8)."""
    sender, numbers = answer.agent, Counter[int]()
    occasion = f" on {answer.cause}" if isinstance(answer, PushedAnswer) else ""
    for receiver, letter in answer.letters:
        message = make(LetterUnderWay, (sender, answer.number, c.broker.next_id(), now, receiver, letter))
        cause = f"letter {numbers[receiver]} to {letter.receiver}{occasion}"
        arrival = c.broker.send(message, int(Phase.REPORT), Queue.LETTER, c.timings[sender].msg, cause)
        c.simulation.post.book(sender, lost=arrival is None)
        numbers[receiver] += 1


def receive_letter(c: EventContext, message: LetterUnderWay, now: int) -> None:
    """A letter has come to its receiver; it waits for the next question."""
    c.simulation.post.arrive(message.receiver, message.agent, message.letter, now)


class Promise(NamedTuple):
    """Stands where the answer to a question will be."""

    question: Asked


class Thought(NamedTuple):
    """What a policy said to its questions of one instant, as it said it, or what it raised; after how many seconds."""

    questions: Questions
    said: Sequence[Any] | BaseException
    seconds: float


class AnswerThreads(Protocol):
    """Where policies think while the clock goes on."""

    def put(self, questions: Questions) -> Sequence[Promise]:
        """Have one policy's questions of one instant answered."""
        ...


class ThinkingThreads:
    """One thread for each policy object, which answers one instant's questions after another.

    Threads end with the process, also where a policy never answers.
    """

    def __init__(self) -> None:
        self._queues: dict[int, SimpleQueue[tuple[Questions, float]]] = {}
        self._came: SimpleQueue[Thought] = SimpleQueue()
        self.open = 0
        """Instants whose questions have no answers yet."""

    def put(self, questions: Questions) -> list[Promise]:
        """Have them answered."""
        policy = id(questions[0][0].policy)
        if policy not in self._queues:
            self._queues[policy] = SimpleQueue()
            Thread(target=self._answer, args=(self._queues[policy],), daemon=True).start()
        self._queues[policy].put((questions, perf_counter()))
        self.open += 1
        return [Promise(question) for _, question in questions]

    def next(self, wait: float) -> Thought | None:
        """What has come, or comes within `wait` s of the system's clock."""
        try:
            came = self._came.get(timeout=wait) if wait > 0.0 else self._came.get_nowait()
        except Empty:
            return None
        self.open -= 1
        return came

    def _answer(self, queue: SimpleQueue[tuple[Questions, float]]) -> None:
        while True:
            questions, since = queue.get()
            said: Sequence[Any] | BaseException
            try:
                said = fetch(questions)
            except BaseException as error:  # noqa: BLE001 - raised again where the clock runs
                said = error
            self._came.put(Thought(questions, said, perf_counter() - since))
