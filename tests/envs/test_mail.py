"""Mail: who may write to whom, and when a letter is there (T24). Laws over random worlds: laws/test_letters.py."""

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heron_env import (
    Answer,
    Asked,
    BatchEnv,
    ConditionMonitor,
    Continuous,
    CoordinatorAgent,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Letter,
    Mail,
    ScheduleConfig,
    SystemAgent,
    TerminationConfig,
    Vector,
    check_env,
    quantity,
    record_episode,
    rule,
)
from heron_env.core.letters import LetterCounts
from heron_env.errors import ConfigError, FeatureError, HierarchyError, UnknownAgent
from heron_env.lab import describe_environment

Write = Callable[[Asked], Sequence[Letter]]


def nothing(asked: Asked) -> Sequence[Letter]:
    """Silence."""
    return ()


class Pen:
    """Writes what it is told to; keeps what it read as (agent, number, sender, body)."""

    def __init__(self, write: Write = nothing, thinking: float = 0.0) -> None:
        self.write, self.thinking = write, thinking
        self.read: list[tuple[str, int, str, Any]] = []

    def answer(self, asked: Asked) -> Answer:
        self.read += [(asked.agent, asked.number, letter.sender, letter.body) for letter in asked.letters]
        return Answer(np.array([0.5]), self.write(asked), thinking=self.thinking)  # type: ignore[arg-type]


class Meeting(Pen):
    """One that is asked for all its agents together."""

    def answer_all(self, questions: Sequence[Asked]) -> list[Answer]:
        return [self.answer(asked) for asked in questions]


class ToTheNext(Pen):
    """Each writes to all it may."""

    def answer(self, asked: Asked) -> Answer:
        letters = [Letter(asked.agent, name, "note", asked.number) for name in NAMES if name != asked.agent]
        return Answer(np.array([0.1 * len(asked.letters)]), tuple(letters))


class Stock(FeatureProvider):
    """What a trader has and gains in a second, and when it ends, s."""

    gain: float = quantity(default=0.0, low=-1.0, high=1.0)
    value: float = quantity(default=0.0, low=0.0, high=100.0)
    end: float = quantity(default=1e6, low=0.0, high=1e6, observed=False)


class Trader(FieldAgent):
    """Sets what it gains."""

    features = (Stock,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Stock.gain)
    def apply_action(action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=Stock.value)
    def advance(stock: Stock, dt: float) -> float:
        return stock.value + stock.gain * dt

    @staticmethod
    @rule
    def compute_local_reward(stock: Stock) -> float:
        return stock.value

    @staticmethod
    @rule
    def is_terminated(stock: Stock, time: float) -> bool:
        return time >= stock.end


class Room(HeronEnv):
    """Three agents, 4 steps of 1 s; bob may end before."""

    def __init__(self, mail: Any = (), pens: dict[str, Any] | None = None, bob: float = 1e6, **options: Any) -> None:
        ends = {"ann": 1e6, "bob": bob, "cid": 1e6}
        agents = [Trader(name, Stock(end=ends[name]), policy=(pens or {}).get(name)) for name in NAMES]
        top = SystemAgent("boss", *agents, exchange=mail)
        super().__init__(top, dt=1.0, termination=TerminationConfig(max_steps=4), **options)


NAMES = ("ann", "bob", "cid")


def room() -> HeronEnv:
    """By name."""
    return Room(Mail("ring"))


def to(receiver: str, sender: str = "ann") -> Write:
    """One of them writes to another at each tick: the tick's number."""
    return lambda asked: [Letter(sender, receiver, "note", asked.number)] if asked.agent == sender else ()


# Edges


def test_edges_say_who_may_write_to_whom() -> None:
    for mail, ann, boss in [
        (Mail("full"), ["bob", "cid"], []),
        (Mail("ring"), ["bob", "cid"], []),
        (Mail("star", hub="cid"), ["cid"], []),
        (Mail([("ann", "bob"), ("boss", "cid"), ("ann", "boss")]), ["boss", "bob"], ["cid"]),
        ([Mail([("ann", "bob")]), Mail([("ann", "bob"), ("ann", "cid")])], ["bob", "cid"], []),
        ((), [], []),
    ]:
        env = Room(mail)
        assert (env.may_write_to("ann"), env.may_write_to("boss")) == (ann, boss)
        with pytest.raises(UnknownAgent, match="may_write_to"):
            env.may_write_to("ana")


def test_impossible_edges_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"Mail\(edges='rings'\): must be one of .* Did you mean 'ring'"):
        Mail("rings")
    with pytest.raises(ConfigError, match="an agent tells itself nothing"):
        Mail([("ann", "ann")])
    with pytest.raises(HierarchyError, match=r"the edges name 'ana', which does not exist.* Did you mean 'ann'"):
        Room(Mail([("ana", "bob")]))
    inner = CoordinatorAgent("team", Trader("ann"), exchange=Mail([("ann", "bob")]))
    with pytest.raises(HierarchyError, match="'bob', which is not below it; let an agent above both declare this"):
        HeronEnv(SystemAgent("boss", inner, Trader("bob")), dt=1.0)


def test_a_bad_letter_names_its_fault() -> None:
    for letters, said in [
        (
            [Letter("ann", "cid", "note", 1)],
            r"letter 0 of 'ann': sender='ann', receiver='cid': that agent may not be "
            r"written to by it; it may write to \['bob'\], as Mail\(edges\) in an `exchange` says",
        ),
        ([Letter("ann", "bobby", "note", 1)], r"receiver='bobby': that agent does not exist; .* Did you mean 'bob'\?"),
        ([Letter("ann", ["bob"], "note", 1)], "that agent does not exist"),
        (
            [Letter("ann", "bob", "note", 1), Letter("bob", "cid", "note", 1)],
            "letter 1 of 'ann': sender='bob': an agent writes in its own name, 'ann'",
        ),
        (["hello"], r"letter 0 of 'ann': 'hello' is no Letter; write Letter\(sender, receiver, kind, body\)"),
        (Letter("ann", "bob", "note", 1), "letters of 'ann'=Letter.*: must be a list or tuple"),
        ([Letter("ann", "bob", "", 1)], "letter 0 of 'ann': kind='': must be a text of 1 to 100 characters"),
        ([Letter("ann", "bob", "note", {"a": {1}})], "letter 0 of 'ann': body.a is a set"),
    ]:
        env = Room(Mail([("ann", "bob")]))
        policies = {"*": Pen(lambda asked, letters=letters: letters if asked.agent == "ann" else ())}
        for run in (env.run_synchronous, env.run_event_driven):
            with pytest.raises(ConfigError, match=said):
                run(policies)


def test_without_mail_nobody_writes() -> None:
    with pytest.raises(ConfigError, match=r"receiver='bob': that agent may not .*; it may write to nobody, as Mail"):
        Room().run_synchronous({"*": Pen(to("bob"))})


class Postage(FeatureProvider):
    """Letters written, of which three are counted, and what they cost so far."""

    letters: int = quantity(low=0, high=3)
    paid: float = quantity(default=0.0, low=0.0, high=100.0)


class Writer(Trader):
    features = (Stock, Postage)

    @staticmethod
    @rule(writes=Postage.paid)
    def advance(postage: Postage) -> float:
        return postage.paid + postage.letters


@pytest.mark.parametrize("compile", [True, False])
def test_physics_reads_how_many_letters_each_has_written(compile: bool) -> None:
    top = SystemAgent("boss", Writer("ann"), Writer("bob"), exchange=Mail("full", written=Postage.letters))
    env = HeronEnv(top, max_steps=4, compile=compile)
    for run in (env.run_synchronous, env.run_event_driven):
        run({"ann": Pen(to("bob")), "bob": Pen()})
        assert env.world[Writer].Postage.letters.tolist() == [3, 0], "never above the bound"
        assert env.world[Writer].Postage.paid.tolist() == [1.0 + 2.0 + 3.0 + 3.0, 0.0]


def test_a_count_of_letters_that_nobody_can_keep_is_refused() -> None:
    with pytest.raises(FeatureError, match=r"Mail\(written='gain'\): must be a quantity of a feature class, as in Tal"):
        Mail("full", written="gain")
    with pytest.raises(
        FeatureError, match=r"Mail\(edges: 1\): 'boss' writes letters, but has no Stock.gain; add Stock"
    ):
        Room(Mail([("boss", "ann")], written=Stock.gain))


# Time


def test_a_thought_that_comes_to_nothing_sends_nothing() -> None:
    env, pen = Room(Mail("full"), bob=2.0), Pen(to("cid", "bob"), thinking=0.9)
    schedule = {"bob": ScheduleConfig(tick_interval=1.0, phase=0.5)}
    result = env.run_event_driven({"bob": pen, "*": Pen()}, schedule=schedule)
    assert result.letters.sent == 1, "of two thoughts, begun at 0.5 and 1.5 s, the second ends when bob has"
    assert result.cancelled_effects == 1


def test_an_agent_that_is_woken_writes_too() -> None:
    """By a push in each step, with the number of the tick before: its letters have delays of their own."""
    env, pen = Room(Mail("full")), Pen(to("cid"))
    monitor = ConditionMonitor(agent="ann", watch="ann.Stock.value", above=0.4, cooldown=1.0)
    late = ScheduleConfig(phase=0.5, msg_delay=0.01, jitter_type="uniform", jitter_ratio=0.9)
    result = env.run_event_driven({"*": pen}, monitors=[monitor], schedule={"ann": late}, trace=True)
    assert result.trace is not None and result.letters.balanced()
    delays: dict[int, list[int]] = {}
    for record in result.trace:
        if record.kind == "LetterUnderWay":
            delays.setdefault(record.number, []).append(record.latency)
    woken = [found for found in delays.values() if len(found) > 1]
    assert woken and all(len(set(found)) == len(found) for found in woken)


def test_letters_of_one_step_are_read_by_the_rank_of_their_senders_however_policies_are_shared() -> None:
    env = Room(Mail("full"))

    def to_ann(asked: Asked) -> list[Letter]:
        return [Letter(asked.agent, "ann", "note", asked.number)] if asked.agent != "ann" else []

    shared, alone = Meeting(to_ann), Meeting(to_ann)
    env.run_synchronous({"cid": shared, "ann": shared, "bob": alone})
    sync = shared.read.copy()
    shared.read.clear()
    env.run_event_driven({"cid": shared, "ann": shared, "bob": alone})
    assert sync == shared.read == [("ann", n + 1, name, n) for n in range(3) for name in ("bob", "cid")]


def test_letters_wait_for_the_first_question() -> None:
    late = {"cid": ScheduleConfig(tick_interval=1.0, phase=2.0)}
    own = {"ann": Pen(to("cid")), "bob": Pen(), "cid": Pen()}
    env, stepped = Room(Mail("full"), schedule=late), Room(Mail("full"), own, schedule=late)
    stepped.reset(seed=0)
    while stepped.agents:
        stepped.step({})
    for run in (env.run_synchronous, env.run_event_driven):
        pens = {"ann": Pen(to("cid")), "bob": Pen(), "cid": Pen()}
        run(pens)
        assert pens["cid"].read == own["cid"].read == [("cid", 0, "ann", 0), ("cid", 0, "ann", 1), ("cid", 1, "ann", 2)]


# What becomes of them


def test_letters_to_the_ended_and_to_those_who_do_not_read_are_unread() -> None:
    env = Room(Mail("full"), bob=2.0)

    def to_both(asked: Asked) -> list[Letter]:
        return [Letter("ann", name, "note", asked.number) for name in ("bob", "cid")]

    policies = {"ann": Pen(to_both), "bob": Pen(), "cid": lambda vector: np.array([0.5])}
    for run in (env.run_synchronous, env.run_event_driven):
        result = run(policies)
        assert result.letters == LetterCounts(sent=8, read=1, unread=7, lost=0, in_flight=0)
        assert not env.simulation.post.state()["waiting"], "letters that nobody will read are kept"


def test_reset_forgets_all_letters() -> None:
    env = Room(Mail("full"), {name: Pen(to("cid")) for name in NAMES})
    env.reset(seed=0)
    env.step({})
    assert env.letter_counts == LetterCounts(sent=1, unread=1)
    env.reset()
    assert env.letter_counts == LetterCounts()
    assert not env.simulation.post.state()["waiting"]


def test_an_agents_own_policy_writes_in_step() -> None:
    pens = {name: Pen(to("cid")) for name in NAMES}
    env = Room(Mail("full"), pens)
    _, silent = env.reset(seed=0), Room((), {name: Pen() for name in NAMES})
    silent.reset(seed=0)
    while env.agents:
        assert repr(env.step({})) == repr(silent.step({})), "letters show where they should not"
    assert pens["cid"].read == [("cid", n, "ann", n - 1) for n in (1, 2, 3)]


def test_a_step_that_raises_has_neither_read_nor_sent_a_letter() -> None:
    pens = {"ann": Pen(to("cid")), "bob": Pen(), "cid": Pen()}
    env = Room(Mail("full"), pens)
    env.reset(seed=0)
    env.step({})
    before, pens["bob"].write = env.simulation.post.state(), lambda asked: ["no letter"]  # type: ignore[list-item]
    with pytest.raises(ConfigError):
        env.step({})
    assert env.simulation.post.state() == before
    pens["bob"].write = lambda asked: ()
    env.step({})
    assert env.letter_counts == LetterCounts(sent=2, read=1, unread=1)


@pytest.mark.parametrize("way", ["deepcopy", "set_state"])
def test_a_copy_has_the_letters_that_wait(way: str) -> None:
    env = Room(Mail("full"), {name: Pen(to("cid")) for name in NAMES})
    env.reset(seed=0)
    env.step({})
    if way == "deepcopy":
        other = copy.deepcopy(env)
    else:
        other = Room(Mail("full"))
        other.set_state(env.get_state())
    assert other.simulation.post.state() == env.simulation.post.state()
    for agent in other.hierarchy.agents[1:]:
        agent.policy = Pen()
    other.step({})
    assert other.letter_counts == LetterCounts(sent=1, read=1)
    assert env.letter_counts == LetterCounts(sent=1, unread=1)


def test_a_state_with_letters_that_nobody_may_write_is_refused() -> None:
    env = Room(Mail("full"), {name: Pen(to("cid")) for name in NAMES})
    env.reset(seed=0)
    env.step({})
    with pytest.raises(ConfigError, match="a letter that nobody may write in this environment; build them alike"):
        Room().set_state(env.get_state())


# Elsewhere


def test_a_batch_has_no_letters() -> None:
    lanes, plain = BatchEnv(Room(Mail("full")), 2), BatchEnv(Room(), 2)
    lanes.reset(seed=0), plain.reset(seed=0)
    actions = {name: np.zeros((2, len(ids), 1)) for name, ids in lanes.groups.items()}
    assert repr(lanes.step(actions)) == repr(plain.step(actions))


def test_mail_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    described, _ = describe_environment("test_mail:room", {})
    assert [(told.sender, told.receiver, told.what) for told in described.exchange[:2]] == [
        ("ann", "bob", "letters"), ("ann", "cid", "letters"),
    ]  # fmt: skip
    assert described.agents[0].exchange == ["Mail('ring')"]


def test_an_environment_with_mail_keeps_every_law() -> None:
    report = check_env(lambda: Room(Mail("ring"), {name: ToTheNext() for name in NAMES}))
    report.raise_if_failed()


def test_a_recorded_episode_names_sender_and_receiver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    episode = record_episode("test_mail:room", {"*": Pen(to("cid"))}, schedule=ScheduleConfig(msg_delay=0.1, loss=0.3))
    letters = [message for message in episode.messages if message.kind == "LetterUnderWay"]
    assert letters and {(message.sender, message.receiver) for message in letters} == {("ann", "cid")}
    assert {message.fate for message in letters} >= {"delivered"}
