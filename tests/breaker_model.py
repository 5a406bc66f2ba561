"""A circuit breaker as a model, and a machine that compares ours with it, step by step."""

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from heron_env.net.limits import Breaker, Ticket


class Model:
    """What a breaker is, written as a history: it keeps everything that happened since it last turned."""

    def __init__(self, failures: int, probe_after: float, successes: int) -> None:
        self.failures, self.probe_after, self.successes = failures, probe_after, successes
        self.state, self.since, self.era = "closed", 0.0, 0
        self.results: list[bool] = []
        self.probing = False

    def turn(self, state: str, now: float) -> None:
        self.state, self.since, self.era = state, now, self.era + 1
        self.results, self.probing = [], False

    def circuit(self, now: float) -> str:
        if self.state == "closed":
            return "CLOSED"
        return "HALF_OPEN" if now >= self.since + self.probe_after else "OPEN"

    def lets_in(self, now: float) -> bool:
        circuit = self.circuit(now)
        allowed = circuit == "CLOSED" or (circuit == "HALF_OPEN" and not self.probing)
        self.probing = self.probing or (allowed and circuit == "HALF_OPEN")
        return allowed

    def result(self, era: int, good: bool, now: float) -> None:
        if era != self.era:
            return
        self.results.append(good)
        self.probing = False
        if self.state == "closed":
            if len(self.results) >= self.failures and not any(self.results[-self.failures :]):
                self.turn("open", now)
        elif not good:
            self.turn("open", now)
        elif len(self.results) == self.successes:
            self.turn("closed", now)


class BreakerMachine(RuleBasedStateMachine):
    """Random callers, results in any order, time in between."""

    steps = 0

    @initialize(failures=st.integers(1, 5), successes=st.integers(1, 3))
    def start(self, failures: int, successes: int) -> None:
        self.now = 0.0
        self.breaker = Breaker(lambda: self.now, failures=failures, probe_after=30.0, successes=successes)
        self.model = Model(failures, 30.0, successes)
        self.out: list[tuple[Ticket, int]] = []

    @rule()
    def ask(self) -> None:
        ticket = self.breaker.admit()
        assert (ticket is not None) == self.model.lets_in(self.now)
        if ticket is not None:
            self.out.append((ticket, self.model.era))

    @precondition(lambda self: self.out)
    @rule(which=st.integers(0), good=st.booleans())
    def book(self, which: int, good: bool) -> None:
        ticket, era = self.out.pop(which % len(self.out))
        self.breaker.book(ticket, succeeded=good)
        self.model.result(era, good, self.now)

    @precondition(lambda self: self.out)
    @rule(good=st.booleans(), times=st.integers(1, 6))
    def ask_and_book(self, good: bool, times: int) -> None:
        for _ in range(times):
            self.ask()
            if self.out:
                self.book(len(self.out) - 1, good)

    @precondition(lambda self: self.out)
    @rule(which=st.integers(0))
    def give_back(self, which: int) -> None:
        ticket, era = self.out.pop(which % len(self.out))
        self.breaker.give_back(ticket)
        if era == self.model.era and self.model.state == "open":
            self.model.probing = False

    @rule(seconds=st.sampled_from([0.0, 1.0, 29.0, 29.875, 30.0, 31.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def equal(self) -> None:
        if hasattr(self, "breaker"):
            BreakerMachine.steps += 1
            assert self.breaker.circuit == self.model.circuit(self.now)


def compare_with_model(steps: int) -> int:
    """At least that many steps in runs of up to 100; how many there were. Raises AssertionError."""
    began = BreakerMachine.steps
    run_state_machine_as_test(
        BreakerMachine,
        settings=settings(
            max_examples=steps // 50,  # many a run is shorter
            stateful_step_count=100,
            deadline=None,
            derandomize=True,
            database=None,
            report_multiple_bugs=False,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    return BreakerMachine.steps - began
