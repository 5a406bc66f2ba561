"""T25 to T27 in the post office alone: media, waiting, transports; each with a fault that it notices."""

from __future__ import annotations

import bisect
import itertools
import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.shared_links import FORMS, Office, constant, content_size, exponential, tried
from heron_env import MessageBroker, ScheduleConfig, make
from heron_env.errors import ScheduleError
from heron_env.scheduling import sharing
from heron_env.scheduling.media import Medium, Reliable, as_medium, as_transport, mqtt, ros2, tcp
from heron_env.scheduling.sharing import Server, Sharing
from heron_env.testing.clock import SECOND


@pytest.fixture(autouse=True)
def _sized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "content_size", content_size)


ONE = Medium(rate=1.0)
WAITING: dict[str, dict[str, Any]] = {
    "all": {}, "newest": {"keep": 1}, "two": {"keep": 2}, "lifespan": {"lifespan": 4.0},
    "repeats": {"transport": Reliable(rto=0.5)},
    "repeats newest": {"transport": Reliable(rto=0.5, gaps=True), "keep": 2},
    "gives up": {"transport": Reliable(rto=0.0, tries=2), "lifespan": 6.0},
}  # fmt: skip
MEDIA = {
    "fifo": ONE, "limited": Medium(rate=1.0, limit=3.0), "nobody waits": Medium(rate=1.0, limit=0.0),
    "priority": Medium(rate=1.0, order="priority"), "duplex": Medium(rate=1.0, duplex=True, overhead=0.1),
    "listed": Medium(rate=1.0, limit=1e15),
}  # fmt: skip
HARD: dict[str, Any] = {"msg_delay": 0.5, "jitter_type": "lognormal", "jitter_ratio": 0.6}


def configs(medium: Medium | None, senders: int = 3, **fields: Any) -> list[ScheduleConfig]:
    """Of several senders, with priorities where there are some."""
    priority = medium is not None and medium.order == "priority"
    return [ScheduleConfig(medium=medium, priority=i % 2 if priority else 0, **fields) for i in range(senders)]


def office(medium: Medium | None = ONE, *, load: float = 0.9, seed: int = 5, senders: int = 3, **fields: Any) -> Office:
    """Several senders, at random."""
    gaps, sizes = exponential(senders / load, seed, 1), exponential(1.0, seed, 2)
    return Office(configs(medium, senders, **fields), senders, gaps, sizes, seed)


def departures(run: Office, messages: int, monkeypatch: pytest.MonkeyPatch) -> dict[int, list[int]]:
    """By id of a message, when its attempts departed, ns."""
    log: dict[int, list[int]] = {}
    depart = Sharing._depart

    def noted(self: Sharing, parcel: Any, leaves: int) -> None:
        log.setdefault(parcel.message.id, []).append(leaves)
        depart(self, parcel, leaves)

    with monkeypatch.context() as patch:
        patch.setattr(Sharing, "_depart", noted)
        run.run(messages).finish()
    return log


# Media


def check_lindley(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message departs `work` after the later of its offer and the departure before it."""
    sizes = list(itertools.islice(exponential(1.0, 5, 2)(0), 200))
    run = Office(ScheduleConfig(medium=ONE, msg_delay=0.25), 1, exponential(1.2, 5, 1), lambda i: iter(sizes), 0)
    run.run(200).finish()
    free = 0
    for (_, sent, arrived), size in zip(run.arrived[0], sizes, strict=True):
        free = max(sent, free) + ONE.work(size)
        assert arrived == free + SECOND // 4


def check_fifo_by_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Departures that are known at the offer are those of the waiting list, and of equal priorities."""
    for extra in ({}, HARD | {"loss": 0.3}, HARD | {"loss": 0.3, "transport": Reliable(rto=0.5)}):
        runs = [office(MEDIA[name], **extra).run(400).finish() for name in ("fifo", "listed")]
        equal = Office(
            [ScheduleConfig(medium=MEDIA["priority"], **extra)] * 3,
            3,
            exponential(3 / 0.9, 5, 1),
            exponential(1.0, 5, 2),
            5,
        )
        runs.append(equal.run(400).finish())
        assert runs[0].arrived == runs[1].arrived == runs[2].arrived


def check_loss_moves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without transports a lost message occupies its medium: no departure moves, nor what arrives."""
    for medium, waiting in itertools.product(MEDIA.values(), ("all", "newest", "lifespan")):
        runs = [office(medium, loss=loss, **HARD, **WAITING[waiting]) for loss in (0.0, 0.4)]
        logs = [departures(run, 300, monkeypatch) for run in runs]
        assert logs[0] == logs[1]
        for whole, lossy in zip(runs[0].arrived, runs[1].arrived, strict=True):
            assert {*lossy} < {*whole}


def check_conservation(monkeypatch: pytest.MonkeyPatch) -> None:
    """At any time: messages, and bytes of each way."""
    for medium, waiting in itertools.product([*MEDIA.values(), None], WAITING.values()):
        if medium is None and "transport" not in waiting:
            continue
        run = office(medium, load=1.3, loss=0.3, **HARD, **waiting)
        for _ in range(9):
            run.run(len(run.sent) + 30)
            total = run.broker.total()
            assert total.balanced() and total.sent == len(run.sent)
            assert total.delivered == sum(map(len, run.arrived))
            for use in run.broker.media(run.scheduler.now).values():
                assert use.offered == pytest.approx(use.carried + use.refused + use.waiting) and use.waiting >= 0.0
                assert 0.0 <= use.busy <= 1.0 + 1e-9
        run.finish()
        assert run.broker.total().in_flight == 0


def check_no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """No medium rests while something waits for it."""
    for medium, waiting in itertools.product(MEDIA.values(), WAITING.values()):
        run = office(medium, load=1.2, loss=0.2, **HARD, **waiting)
        while len(run.sent) < 200:
            run.handle()
            assert run.broker.sharing is not None
            if run.scheduler.peek() != run.scheduler.now:  # all of this instant is done
                assert all(not s.waiting or s.free > run.scheduler.now for s in run.broker.sharing.servers)


def check_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `reorder` nothing arrives before what left its sender earlier, with a transport too."""
    for medium, waiting in itertools.product([*MEDIA.values(), None], WAITING.values()):
        if medium is None and "transport" not in waiting:
            continue
        run = office(medium, load=1.1, loss=0.3, **HARD, **waiting).run(300).finish()
        for rows in run.arrived:
            assert [number for number, *_ in rows] == sorted(number for number, *_ in rows) and len(rows) > 5


def check_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another medium has to do does not show."""
    arrived = []
    for rate in (1.0, 0.05):
        media = [Medium("a", rate=0.5), Medium("b", rate=rate), Medium("a", rate=0.5)]
        gaps, sizes = exponential(5.0, 7, 1), exponential(1.0, 7, 2)
        run = Office([ScheduleConfig(medium=medium) for medium in media], 3, gaps, sizes).run(200)
        arrived.append([run.arrived[0][:30], run.arrived[2][:30]])
    assert arrived[0] == arrived[1]


def check_priorities(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smaller number waits less; what is being sent is finished."""
    run = office(MEDIA["priority"], load=0.95, senders=2).run(2000).finish()
    waits = [np.mean([arrived - sent for _, sent, arrived in rows]) for rows in run.arrived]
    assert 2.0 * waits[0] < waits[1]


# Transports


def alone(loss: float, transport: Reliable | None, messages: int = 3000, **fields: Any) -> Office:
    """One sender whose messages never meet."""
    config = ScheduleConfig(loss=loss, transport=transport, msg_delay=0.5, reorder=True, **fields)
    return Office(config, 1, constant(5000.0), constant(1.0), 4).run(messages).finish()


def check_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their losses are independent; without loss a transport changes nothing; for ever loses nothing."""
    rto = 0.4
    plain, clean = (alone(0.0, transport).arrived for transport in (None, Reliable(rto=rto)))
    assert plain == clean
    for p in (0.3, 0.6):
        run = alone(p, Reliable(rto=rto, backoff=1.0, tries=100))
        waits = [(arrived - sent - SECOND // 2) / (rto * SECOND + SECOND) for _, sent, arrived in run.arrived[0]]
        assert run.broker.total().lost == 0 and all(abs(wait - round(wait)) < 1e-9 for wait in waits)
        counts = np.bincount(np.round(waits).astype(int))
        assert run.broker.total().repeated == (counts * np.arange(len(counts))).sum()
        for k in range(3):
            share = (1 - p) * p**k
            assert abs(counts[k] / len(waits) - share) < 4 * math.sqrt(share * (1 - share) / len(waits))
        lost = alone(p, Reliable(rto=rto, tries=3)).broker.total().lost / 3000
        assert abs(lost - p**3) < 4 * math.sqrt(p**3 / 3000)


def check_first_attempts_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """What arrives at once without a transport does so with one."""
    plain = {number: arrived for number, _, arrived in alone(0.3, None).arrived[0]}
    repeated = {number: arrived for number, _, arrived in alone(0.3, Reliable()).arrived[0]}
    assert plain.items() < repeated.items() and len(repeated) == 3000


def check_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """The n-th wait is (rto + round trip) * backoff ** n, 120 s at the most, from the departure."""
    late = ScheduleConfig(loss=0.9, transport=Reliable(rto=0.2, backoff=3.0), msg_delay=0.1, reorder=True)
    log = departures(Office(late, 1, constant(1e5), constant(1.0), 4), 60, monkeypatch)
    longest = max(log.values(), key=len)
    assert len(longest) > 8
    for n, (before, after) in enumerate(itertools.pairwise(longest)):
        assert after - before == min(round(0.4 * SECOND * 3.0**n), 120 * SECOND)


def check_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes later tells what is missing: never later than a timer, no sooner than word can be back."""
    for reorder in (False, True):
        logs = []
        for gaps in (False, True):
            config = ScheduleConfig(loss=0.3, transport=Reliable(rto=5.0, gaps=gaps), msg_delay=0.1, reorder=reorder)
            logs.append(departures(Office(config, 1, constant(1.0), constant(1.0), 4), 2000, monkeypatch))
        slow, quick = logs
        sooner, every = 0, sorted(itertools.chain(*quick.values()))
        for id, (before, *repeated) in quick.items():
            if repeated:
                witness = every[bisect.bisect_right(every, before)]  # word of what left next is back 0.2 s later
                timer = before + round(5.2 * SECOND)
                assert min(witness + SECOND // 5, timer) <= repeated[0] <= timer
                sooner += repeated[0] < timer
            assert slow[id][0] == before
        assert sooner > 300


def check_gaps_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost repetition is noticed by its timer alone, whose waits count no gap as a timeout."""
    config = ScheduleConfig(loss=0.5, transport=Reliable(rto=5.0, gaps=True), msg_delay=0.1)
    log = departures(Office(config, 1, constant(1.0), constant(1.0), 4), 1000, monkeypatch)
    twice = [left for left in log.values() if len(left) > 2 and left[1] - left[0] < 5 * SECOND]
    assert len(twice) > 50
    assert all(left[2] - left[1] == round(5.2 * SECOND) for left in twice)


def check_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """One course whether it is stored half-way or not."""
    for medium, waiting in itertools.product([MEDIA["fifo"], MEDIA["priority"], None], WAITING.values()):
        if medium is None and "transport" not in waiting:
            continue
        whole, half = (office(medium, load=1.1, loss=0.3, **HARD, **waiting) for _ in range(2))
        half.run(100)
        scheduler, broker = pickle.loads(pickle.dumps((half.scheduler, half.broker)))
        half.scheduler, half.broker = scheduler, broker
        assert broker.scheduler is scheduler
        assert broker.sharing is None or broker.sharing._scheduler is scheduler
        assert whole.run(200).arrived == half.run(200).arrived


LAWS: list[Callable[[pytest.MonkeyPatch], None]] = [
    check_lindley, check_fifo_by_list, check_loss_moves_nothing, check_conservation, check_no_rest, check_order,
    check_apart, check_priorities, check_attempts, check_first_attempts_stay, check_backoff, check_gaps,
    check_gaps_once, check_pieces,
]  # fmt: skip


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__[6:])
def test_law(law: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    law(monkeypatch)


# Faults


def early(original: Any) -> Any:
    """It leaves a nanosecond early."""
    return lambda self, parcel, leaves: original(self, parcel, max(leaves - 1, self._scheduler.now))


def lost_takes_no_time(original: Any) -> Any:
    """A lost message does not occupy its medium."""

    def depart(self: Any, parcel: Any, leaves: int) -> None:
        before = self._broker.accounts[parcel.message.agent].lost
        original(self, parcel, leaves)
        if self._broker.accounts[parcel.message.agent].lost > before and parcel.server:
            parcel.server.free -= parcel.work

    return depart


def last_first(original: Any) -> Any:
    """Last come, first served."""

    def transmit(self: Any, server: Any) -> None:
        server.waiting.reverse()
        original(self, server)
        server.waiting.reverse()

    return transmit


def rests(original: Any) -> Any:
    """The medium waits a little where several wait for it."""

    def plan(self: Any, server: Any) -> None:
        free, server.free = server.free, server.free + SECOND // 2 * (len(server.waiting) > 2)
        original(self, server)
        server.free = free

    return plan


def one_draw(original: Any) -> Any:
    """All attempts share the first one's draw."""
    return lambda cause, attempt: cause


def running_count(original: Any) -> Any:
    """Attempts are drawn by how many there were."""
    count = itertools.count(1)
    return lambda cause, attempt: next(count)


def nothing_waits(original: Any) -> Any:
    """What comes behind a lost message arrives before it."""

    def arrive(self: Any, rank: int, queue: int) -> None:
        line = self._lines[rank, queue]
        for parcel in [each for each in line if each.arrival >= 0 and not each.gone]:
            line.remove(parcel)
            line.appendleft(parcel)
        original(self, rank, queue)

    return arrive


def bytes_forgotten(original: Any) -> Any:
    """Of what is discarded the bytes are not counted."""

    def discard(self: Any, parcel: Any) -> None:
        before = parcel.server.refused if parcel.server else 0.0
        original(self, parcel)
        if parcel.server:
            parcel.server.refused = before

    return discard


def not_discarded(original: Any) -> Any:
    """Discarded messages are nowhere."""
    return lambda self, message: None


def known_at_once(original: Any) -> Any:
    """A gap is known before word of it can be back."""
    return lambda self, rank, queue, left, due: original(self, rank, queue, left, self._scheduler.now)


def a_gap_is_a_timeout(original: Any) -> Any:
    """What is told of a gap counts as a timer that has run out."""
    return lambda self, parcel, at, timed: original(self, parcel, at, timed=True)


def all_one(original: Any) -> Any:
    """All media are one."""

    def ways_of(configs: Any) -> Any:
        ways, ends = original(configs)
        return ways, dict.fromkeys(ends, (0, 0))

    return ways_of


def overtaking(original: Any) -> Any:
    """Messages overtake in their queue."""
    return lambda self, agent, queue, arrival: arrival


def no_choice(original: Any) -> Any:
    """Priorities are not looked at."""

    def transmit(self: Any, server: Any) -> None:
        medium, server.medium = server.medium, ONE
        original(self, server)
        server.medium = medium

    return transmit


FAULTS: list[tuple[Any, Any, str, Callable[[pytest.MonkeyPatch], None]]] = [
    (early, Sharing, "_depart", check_lindley), (lost_takes_no_time, Sharing, "_depart", check_loss_moves_nothing),
    (last_first, Sharing, "_transmit", check_fifo_by_list), (rests, Sharing, "_plan", check_no_rest),
    (one_draw, sharing, "repeated", check_attempts), (running_count, sharing, "repeated", check_pieces),
    (nothing_waits, Sharing, "_arrive", check_order), (bytes_forgotten, Sharing, "_discard", check_conservation),
    (not_discarded, MessageBroker, "discard", check_conservation), (known_at_once, Sharing, "_reveal", check_gaps),
    (a_gap_is_a_timeout, Sharing, "_repeat", check_gaps_once), (all_one, sharing, "ways_of", check_apart),
    (overtaking, MessageBroker, "behind", check_order), (no_choice, Sharing, "_transmit", check_priorities),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "owner", "name", "law"), FAULTS, ids=[fault.__name__ for fault, *_ in FAULTS])
def test_a_planted_fault_breaks_its_law(
    fault: Any, owner: Any, name: str, law: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, fault(getattr(owner, name)))
    with pytest.raises((AssertionError, KeyError, IndexError, ScheduleError)):
        law(monkeypatch)


# Accounts and results


def test_what_waits_may_be_displaced_limited_or_too_old() -> None:
    for waiting, medium in (
        ("newest", ONE),
        ("lifespan", ONE),
        ("all", MEDIA["limited"]),
        ("all", MEDIA["nobody waits"]),
    ):
        run = office(medium, load=1.5, **WAITING[waiting]).run(400).finish()
        total, use = run.broker.total(), run.broker.media(run.scheduler.now)["medium"]
        assert 20 < total.discarded < 300 and total.lost == 0 and use.refused > 0.0
        assert total.delivered == 400 - total.discarded


def test_duplex_media_have_two_ways() -> None:
    assert [*office(MEDIA["duplex"]).run(50).broker.media(SECOND)] == ["medium, up", "medium, down"]


def test_a_medium_says_how_busy_it_was() -> None:
    run = office(ONE, load=0.5).run(3000)
    assert run.broker.media(run.scheduler.now)["medium"].busy == pytest.approx(0.5, abs=0.05)


# What users write

WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: Medium(""), "Medium(name=''): must be a word"),
    (lambda: Medium(rate=0.0), "Medium(rate=0.0): must be bytes a second, above 0"),
    (lambda: Medium(rate=math.nan), "Medium(rate=nan): must be bytes a second, above 0"),
    (lambda: Medium(overhead=-1), "Medium(overhead=-1): must be bytes, 0 or more"),
    (lambda: Medium(limit=math.inf), "Medium(limit=inf): must be bytes, 0 or more"),
    (lambda: Medium(order="fif"), "Medium(order='fif'): must be one of 'fifo', 'priority'. Did you mean 'fifo'?"),
    (lambda: Medium(duplex=1), "Medium(duplex=1): must be True or False"),  # type: ignore[arg-type]
    (
        lambda: Medium(sizes={"replies": 3}),
        "Medium(sizes={'replies': 3}): must be bytes, 0 or more, by kind of message",
    ),
    (lambda: Reliable(rto=-1.0), "Reliable(rto=-1.0): must be seconds, 0 to 1e6"),
    (lambda: Reliable(backoff=0.5), "Reliable(backoff=0.5): must be a factor, 1 to 1e6"),
    (lambda: Reliable(tries=0), "Reliable(tries=0): must be 1 to 1000, or None"),
    (lambda: Reliable(gaps=1), "Reliable(gaps=1): must be True or False"),  # type: ignore[arg-type]
    (lambda: mqtt(3), "mqtt(qos=3): must be 0, 1 or 2"),
    (lambda: ros2("best"), "ros2(reliability='best'): must be 'reliable' or 'best_effort'"),
    (lambda: as_medium({"rates": 3}), "Medium('rates'=...): no such field; fields are name, rate"),
    (lambda: as_transport({"rto": 1, "x": 2}), "Reliable('x'=...): no such field; fields are rto"),
    (lambda: ScheduleConfig(medium=3), "ScheduleConfig(medium=3): must be None or Medium("),  # type: ignore[arg-type]
    (lambda: ScheduleConfig(transport="tcp"), "ScheduleConfig(transport='tcp'): must be None or"),  # type: ignore[arg-type]
    (lambda: ScheduleConfig(keep=1), "ScheduleConfig(keep=1): needs a medium or a transport"),
    (lambda: ScheduleConfig(keep=0, medium=ONE), "ScheduleConfig(keep=0): must be a whole number, 1 or more"),
    (lambda: ScheduleConfig(lifespan=1.0), "ScheduleConfig(lifespan=1.0): needs a medium or a transport"),
    (lambda: ScheduleConfig(lifespan=0.0, medium=ONE), "ScheduleConfig(lifespan=0.0): must be above 0"),
    (lambda: ScheduleConfig(priority=1), "ScheduleConfig(priority=1): needs a medium with order='priority'"),
    (
        lambda: ScheduleConfig(priority=1, medium=ONE),
        "ScheduleConfig(priority=1): needs a medium with order='priority'",
    ),
    (lambda: ScheduleConfig(priority=0.5, medium=ONE), "ScheduleConfig(priority=0.5): must be a whole number"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "words"), WRONG, ids=[words.partition(":")[0] for _, words in WRONG])
def test_what_cannot_be_is_refused(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        make()
    assert str(caught.value).startswith(words)


MEDIUMS = st.builds(
    Medium, st.sampled_from(["radio", "bus"]), rate=st.sampled_from([1.0, 250.0, math.inf]),
    overhead=st.sampled_from([0, 20.0]), order=st.sampled_from(["fifo", "priority"]), limit=st.none() | st.just(100.0),
    duplex=st.booleans(), sizes=st.dictionaries(st.sampled_from(["reply", "letter"]), st.integers(0, 9)),
)  # fmt: skip
RELIABLE = st.builds(Reliable, rto=st.sampled_from([0.001, 0.2]), tries=st.none() | st.just(3), gaps=st.booleans())


@given(MEDIUMS, RELIABLE)
def test_what_is_written_down_is_read_again(medium: Medium, transport: Reliable) -> None:
    assert as_medium(medium.to_dict()) == medium and hash(as_medium(medium.to_dict())) == hash(medium)
    assert as_transport(transport.to_dict()) == transport
    assert as_transport("tcp") == tcp()["transport"] and as_medium(None) is None


def presets() -> Iterator[dict[str, Any]]:
    yield from (tcp(), mqtt(), mqtt(2), ros2(), ros2("best_effort", 5))


def test_presets_are_fields_of_a_schedule() -> None:
    for preset in presets():
        config = ScheduleConfig(msg_delay=0.02, loss=0.01, medium=ONE, **preset)
        assert config.keep is not None or config.transport == tcp()["transport"]


def test_two_media_of_one_name_are_refused() -> None:
    from heron_env import make

    schedule = {"field": ScheduleConfig(medium=Medium("radio", rate=1.0)), "*": ScheduleConfig(medium=Medium("radio"))}
    with pytest.raises(ScheduleError, match=r"two media 'radio', with rate=1.0 and rate=inf; give both the same"):
        make("heron/Spread-v0", schedule=schedule)


def test_a_server_is_used_for_a_share_of_the_time() -> None:
    server = Server(ONE, 0, "medium")
    server.free, server.busy = 5 * SECOND, 3 * SECOND
    assert server.use(4 * SECOND).busy == 0.5


# Closed forms

SIZES = [(4, 5_000), pytest.param((10, 100_000), marks=pytest.mark.draw)]
"""Seeds, and messages of each."""


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", FORMS)
def test_ages_and_shares_are_those_of_closed_forms(name: str, size: tuple[int, int]) -> None:
    values, score = tried(name, *size)
    near = abs(np.mean(values) / FORMS[name].value - 1.0) <= 0.01
    assert near or abs(score) <= 3.0, f"{np.mean(values)}, expected {FORMS[name].value}: {score} standard errors"


def test_a_result_says_what_became_of_messages_and_how_busy_media_were() -> None:
    schedule = ScheduleConfig(loss=0.2, keep=2, medium=Medium("radio", rate=150.0, overhead=20.0), transport=Reliable())
    result = make("heron/BatteryGrid-v0", max_steps=6).run_event_driven(
        {"*": lambda vector: 0.5}, seed=0, schedule=schedule
    )
    counts, use = result.messages, result.media["radio"]
    words = f"{counts.lost:,} lost, {counts.discarded:,} discarded, {counts.repeated:,} repeated"
    assert counts.discarded and counts.repeated and words in repr(result)
    assert f"medium radio: busy {100 * use.busy:.0f} % of the time" in result._repr_html_()
