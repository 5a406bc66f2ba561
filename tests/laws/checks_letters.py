"""Laws of letters: equal in both clocks, for their receivers alone, in their order, and each accounted for (T24)."""

import pickle
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from laws.checks import RECORD, assert_same_course
from strategies import Recipe, Wave

from heron_env import Answer, Asked, EpisodeResult, HeronEnv, Letter, ScheduleConfig
from heron_env.seeding import key, uniforms
from heron_env.testing import clock

Question = tuple[Any, ...]


class Writer:
    """Writes 0 to 2 letters to each it may write to, at random by tick; every bit it sees and reads counts.

    Args: secret: what its letters say beside that; mute: it writes nothing; careless: neither what it does nor what it
        writes depends on what it sees or reads; thinking: how long its answers take at most, s; by tick.
    """

    def __init__(
        self, env: HeronEnv, agent: str, *, secret: str = "", mute: bool = False, careless: bool = False,
        thinking: float = 0.0,
    ) -> None:  # fmt: skip
        self.agent, self.secret, self.careless, self.thinking = agent, secret, careless, thinking
        self.receivers = [] if mute else env.may_write_to(agent)
        self.wave = Wave(agent, env.simulation.model.specs[env.hierarchy.index[agent]])
        self.questions: list[Question] = []
        self.written = 0
        self._kept: list[Letter] = []

    def answer(self, asked: Asked) -> Answer:
        """The answer to one question, which is noted."""
        assert asked.agent == self.agent
        said = [asked.number, asked.turn, asked.time, asked.seed, asked.episode, repr(asked.mask)]
        self.questions.append((*said, asked.vector.tobytes(), asked.letters))
        for mine in self._kept:
            mine.body["numbers"][:] = ["changed"]  # too late
        assert not any("changed" in letter.body["numbers"] for letter in asked.letters), "its writer changed a letter"
        heard = [sum(letter.body["numbers"]) for letter in asked.letters]
        told = np.concatenate([asked.vector, np.cumsum(heard), [float(len(heard))]])
        letters = [
            Letter(self.agent, receiver, f"note {i}", self._body(asked, told, i))
            for receiver in self.receivers
            for i in range(int(3.0 * uniforms(key(self.agent, receiver, asked.number), 1)[0]))
        ]
        self.written += len(letters)
        self._kept = letters
        action = self.wave(np.ones(1) if self.careless else told)
        for letter in asked.letters:
            letter.body["numbers"].append(1e9)  # it is its own
        return Answer(action, tuple(letters), self.thinking * float(uniforms(key(self.agent, asked.number), 1)[0]))

    def _body(self, asked: Asked, told: Any, i: int) -> Any:
        numbers = [float(asked.number), float(i)] if self.careless else [float(x) for x in told[-3:]]
        return {"numbers": numbers, "secret": self.secret, "index": i, "number": asked.number}


def writers(recipe: Recipe, env: HeronEnv, deaf: frozenset[str] = frozenset(), **how: Any) -> dict[str, Any]:
    """For all who decide; the deaf have policies that don't read."""
    known = {a: Wave(a, env.simulation.model.specs[env.hierarchy.index[a]]) for a in env.possible_agents}
    known |= recipe.policies(env)
    return {agent: wave if agent in deaf else Writer(env, agent, **how) for agent, wave in known.items()}


def asked_of(policies: dict[str, Any]) -> dict[str, list[Question]]:
    """What each was asked, with the letters as they were handed over."""
    return {agent: policy.questions for agent, policy in policies.items() if isinstance(policy, Writer)}


def check_same_letters_in_both_clocks(
    recipe: Recipe, schedule: Any = None, deaf: frozenset[str] = frozenset(), wait: float | None = None
) -> None:
    """At zero delay the same letters reach the same questions, and the same become unread."""
    env = recipe.build(schedule)
    first, second = writers(recipe, env, deaf), writers(recipe, env, deaf)
    sync = env.run_synchronous(first, seed=3, record=RECORD)
    event = env.run_event_driven(second, seed=3, wait=wait, record=RECORD)
    assert asked_of(first) == asked_of(second), "the clocks asked different questions"
    assert_same_course(sync, event)
    assert sync.letters == event.letters
    check_books(first, sync)
    check_books(second, event)


def check_books(policies: dict[str, Any], result: EpisodeResult) -> None:
    """What was written and what was read, counted by those who did."""
    counts, mine = result.letters, [p for p in policies.values() if isinstance(p, Writer)]
    assert counts.balanced(), counts
    assert min(counts.unread, counts.lost, counts.in_flight) >= 0, counts
    if result.trace is None:
        assert counts.sent == sum(writer.written for writer in mine)
    else:
        assert counts.sent == sum(len(record.payload.letters) for record in thoughts(result))
    assert counts.read == sum(len(question[-1]) for writer in mine for question in writer.questions)


def thoughts(result: EpisodeResult) -> list[Any]:
    """The records of answers that counted: those of the ended, and those that came too late, don't."""
    assert result.trace is not None
    return [record for record in result.trace if isinstance(record.payload, clock.Answered) and not record.cancelled]


def letter_events(result: EpisodeResult) -> list[Any]:
    """The records of letters that came."""
    assert result.trace is not None
    return [record for record in result.trace if isinstance(record.payload, clock.LetterUnderWay)]


def check_nothing_is_lost_uncounted(
    recipe: Recipe, schedule: Any, t: float, deaf: frozenset[str] = frozenset(), thinking: float = 0.0
) -> None:
    """In mid-run and at the end: counted by writers and readers, in the trace, and in the heap."""
    env = recipe.build(schedule)
    policies = writers(recipe, env, deaf, thinking=thinking)
    run = env.start_event_driven(policies, seed=3, trace=True)
    for limit in (t, None):
        run.until(limit)
        result = run.result() if limit is None else run.context.result
        result.letters = env.letter_counts
        came = {record.id for record in letter_events(result)}
        coming = {event.id for event in run.context.scheduler if isinstance(event, clock.LetterUnderWay)}
        counts, messages = result.letters, run.context.broker.total()
        assert counts.in_flight == len(coming - came)
        assert counts.read + counts.unread == len(came)
        assert messages.balanced(), messages
        check_books(policies, result)
    copies = Counter(record.id for record in letter_events(result))
    assert set(copies.values()) <= {1}, "a letter came twice"


def check_letters_come_in_order(recipe: Recipe, schedule: Any) -> None:
    """By arrival, then the sender's rank, then as they were written; all that came since the last question."""
    env = recipe.build(schedule)
    policies = writers(recipe, env)
    result = env.run_event_driven(policies, seed=3, trace=True)
    came: dict[str, list[tuple[Any, ...]]] = {agent: [] for agent in policies}
    for record in letter_events(result):
        letter = record.payload.letter.opened()
        place = (record.t_ns, record.agent)
        came.setdefault(letter.receiver, []).append((*place, letter.sender, letter.body["number"], letter.kind))
    for agent, policy in policies.items():
        read = [(one.sender, one.body["number"], one.kind) for q in policy.questions for one in q[-1]]
        expected = sorted(came[agent], key=lambda one: one[:2])
        assert read == [one[2:] for one in expected][: len(read)], f"{agent} read them in another order"


def check_a_letter_reaches_nobody_else(recipe: Recipe, schedule: Any, sender: str, receiver: str) -> None:
    """Other words from one agent to another change nothing that anybody else sees, reads or gets."""
    found = []
    for secret in ("plain", "other"):
        env = recipe.build(schedule)
        policies = writers(recipe, env, careless=True)
        if isinstance(policies.get(sender), Writer):
            policies[sender] = Whisperer(env, sender, secret=secret, careless=True)
            policies[sender].receiver = receiver
        result = env.run_event_driven(policies, seed=3, schedule=schedule, record=RECORD)
        found.append((asked_of(policies), result))
    (first, a), (second, b) = found
    assert_same_course(a, b)
    assert a.letters == b.letters
    for agent in first:
        if agent != receiver:
            assert first[agent] == second[agent], f"{agent} read what {sender} wrote to {receiver}"
    assert [q[:-1] for q in first.get(receiver, [])] == [q[:-1] for q in second.get(receiver, [])]


class Whisperer(Writer):
    """Tells its secret to `receiver` alone."""

    receiver = ""

    def answer(self, asked: Asked) -> Answer:
        """The same letters, with the secret in those to one agent."""
        answer = super().answer(asked)
        bodies = [one.body if one.receiver == self.receiver else one.body | {"secret": ""} for one in answer.letters]
        pairs = zip(answer.letters, bodies, strict=True)
        return Answer(answer.action, tuple(replace(letter, body=body) for letter, body in pairs))


def check_letters_move_no_other_draw(recipe: Recipe, config: ScheduleConfig, loss: float = 0.4) -> None:
    """Whether agents write, and whether the network loses something, shifts nothing else: all draws have keys (T8)."""
    lossy = ScheduleConfig(**{name: getattr(config, name) for name in config.__slots__} | {"loss": loss})
    found = [_journal(recipe, schedule, mute) for schedule, mute in ((config, False), (config, True), (lossy, False))]
    talk, silence, bad = found
    others = {what: when for what, when in talk.items() if what[0] != "LetterUnderWay"}
    assert others == silence, "letters moved something else"
    for what in talk.keys() & bad.keys() if config.reorder else ():  # else they wait for each other
        if what[0] in ("LetterUnderWay", "ObservationRequest"):
            assert talk[what] == bad[what], f"loss moved {what}: {talk[what]} became {bad[what]}"


def _journal(recipe: Recipe, schedule: Any, mute: bool) -> dict[Any, Any]:
    """How long each message took that came: by class, agent, leg, number and, of letters, receiver and index."""
    env = recipe.build(schedule)
    result = env.run_event_driven(writers(recipe, env, careless=True, mute=mute), seed=3, trace=True)
    assert result.trace is not None
    found: dict[Any, Any] = {}
    count: Counter[Any] = Counter()
    for record in result.trace:
        what: tuple[Any, ...] = (record.kind, record.agent, record.number)
        if isinstance(record.payload, clock.LetterUnderWay):
            what += (record.payload.receiver, record.payload.letter.kind)
        elif record.kind in ("CycleToken", "CycleCompletion", "Answered"):
            continue
        if record.latency or record.kind == "LetterUnderWay":
            found[*what, count[what]] = record.latency
            count[what] += 1
    return found


def check_a_stored_run_keeps_its_letters(recipe: Recipe, schedule: Any, t: float, thinking: float = 0.0) -> None:
    """Letters under way, and those that wait, are stored with a run that is stopped in between."""
    whole, halved = recipe.build(schedule), recipe.build(schedule)
    first, second = writers(recipe, whole, thinking=thinking), writers(recipe, halved, thinking=thinking)
    a = whole.run_event_driven(first, seed=3, trace=True, record=RECORD)
    run = halved.start_event_driven(second, seed=3, trace=True, record=RECORD)
    run.until(t)
    run = pickle.loads(pickle.dumps(run))
    third = writers(recipe, run.env, thinking=thinking)
    run.attach(third)
    run.until(None)
    b = run.result()
    assert_same_course(a, b)
    assert a.letters == b.letters
    assert a.trace is not None and b.trace is not None
    assert a.trace.lines(whole.hierarchy.ids) == b.trace.lines(whole.hierarchy.ids)
    both = {agent: second[agent].questions + third[agent].questions for agent in third}
    assert both == asked_of(first)
