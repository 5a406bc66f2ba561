"""T7, T8, T13: the post office delivers in order, loses by the link's law, and accounts for every message."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from heron_env import EventScheduler, MessageBroker, ScheduleConfig
from heron_env.testing import clock

SHARES = st.sampled_from([0.0, 0.2, 0.5, 1.0])
JITTERS = st.sampled_from(["uniform", "gaussian", "lognormal"])
PLANS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(list(clock.Queue)), st.integers(0, 3 * clock.SECOND), st.booleans()),
    max_size=25,
)
WILD: dict[str, Any] = {"jitter_type": "lognormal", "jitter_ratio": 1.0}


class Post:
    """A broker, its heap, and a log of arrivals (ns, message, accepted)."""

    def __init__(self, agents: int = 1, seed: int = 0, **fields: Any) -> None:
        config = ScheduleConfig(**fields)
        self.scheduler = EventScheduler()
        names = [f"agent_{rank}" for rank in range(agents)]
        links = [clock.link(name, config, seed=seed) for name in names]
        self.broker = MessageBroker(self.scheduler, links)
        self.log: list[tuple[int, Any, bool]] = []

    def send(
        self,
        number: int,
        sent: int,
        *,
        agent: int = 0,
        queue: clock.Queue = clock.Queue.UP,
        nominal: int = clock.SECOND,
    ) -> int | None:
        message = clock.ObservationRequest(agent, number, self.broker.next_id(), sent, 0)
        return self.broker.send(message, clock.Phase.REQUEST, queue, nominal, "tick")

    def deliver(self) -> "Post":
        while self.scheduler:
            ns, _, _, message = self.scheduler.pop()
            self.log.append((ns, message, self.broker.accept(message)))
        return self

    def numbers(self) -> list[int]:
        return [message.number for _, message, accepted in self.log if accepted]

    def arrivals(self) -> dict[int, int]:
        return {message.number: ns for ns, message, accepted in self.log if accepted}


# Order


def test_a_reordering_link_lets_messages_overtake() -> None:
    post = Post(reorder=True)
    post.send(0, 0, nominal=9)
    assert post.send(1, 1, nominal=2) == 3
    assert post.deliver().numbers() == [1, 0]
    jittered = Post(reorder=True, **WILD)
    for number in range(50):
        jittered.send(number, number * clock.SECOND // 10)
    assert jittered.deliver().numbers() != list(range(50))


@given(st.integers(0, 10**6), JITTERS, SHARES, st.lists(st.integers(0, clock.SECOND), max_size=30))
def test_nothing_overtakes_on_a_fifo_link(seed: int, jitter: str, loss: float, gaps: list[int]) -> None:
    post = Post(seed=seed, jitter_type=jitter, jitter_ratio=1.0, loss=loss)
    time = 0
    for number, gap in enumerate(gaps):
        time += gap
        post.send(number, time)
    numbers = post.deliver().numbers()
    assert numbers == sorted(set(numbers))


# Loss


@given(st.integers(0, 10**6), st.floats(0.0, 1.0))
def test_loss_moves_no_other_message(seed: int, loss: float) -> None:
    lossy, whole = (Post(seed=seed, loss=share, **WILD) for share in (loss, 0.0))
    for number in range(25):
        for post in (lossy, whole):
            post.send(number, number * clock.SECOND // 10)
    assert lossy.deliver().arrivals().items() <= whole.deliver().arrivals().items()


# The physics cycle


# Accounting


@settings(deadline=None)
@given(st.integers(0, 10**6), JITTERS, SHARES, st.booleans(), PLANS)
def test_every_message_is_accounted_for(
    seed: int, jitter: str, loss: float, reorder: bool, plan: list[tuple[int, clock.Queue, int, bool]]
) -> None:
    post = Post(2, seed, jitter_type=jitter, jitter_ratio=0.7, loss=loss, reorder=reorder)
    broker, accepted = post.broker, {0: 0, 1: 0}

    def check() -> None:
        waiting = [message.agent for message in post.scheduler]
        for rank in (0, 1):
            counts = broker.counts(rank)
            assert counts.balanced()
            assert counts.in_flight == waiting.count(rank)
            assert counts.delivered == accepted[rank]
        assert broker.total().sent == broker.counts(0).sent + broker.counts(1).sent
        assert broker.total().balanced()

    for number, (agent, queue, nominal, deliver) in enumerate(plan):
        if deliver and post.scheduler:
            message = post.scheduler.pop()[3]
            accepted[message.agent] += broker.accept(message)
        else:
            message: clock.Message = clock.ReportReceived(agent, number, broker.next_id(), post.scheduler.now)
            if queue is clock.Queue.ACKNOWLEDGEMENT:
                broker.send_reliable(message, clock.Phase.PHYSICS, nominal)
            else:
                broker.send(message, clock.Phase.REPORT, queue, nominal, "effect")  # type: ignore[arg-type]
        check()
    while post.scheduler:
        message = post.scheduler.pop()[3]
        accepted[message.agent] += broker.accept(message)
    check()
    assert broker.total().in_flight == 0


def test_an_unbalanced_account_is_noticed() -> None:
    assert clock.MessageCounts(5, 1, 3, 2, 1, 0).balanced()
    assert not clock.MessageCounts(5, 1, 3, 2, 2, 0).balanced()
