"""The breaker against a model of its own, step by step, and its laws one by one."""

import threading
from typing import Any

import pytest
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

from heron_env.net.breaker import Breaker, Circuit, Ticket


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


def test_the_breaker_is_its_model():
    assert compare_with_model(1_000) >= 1_000


@pytest.mark.slow
def test_the_breaker_is_its_model_over_many_steps():
    assert compare_with_model(10_000) >= 10_000


def breaker() -> tuple[Breaker, list[float]]:
    now = [0.0]
    return Breaker(lambda: now[0]), now


def fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        ticket = breaker.admit()
        assert ticket is not None
        breaker.book(ticket, succeeded=False)


def test_five_failures_in_a_row_open_it_and_a_success_between_them_does_not():
    one, _ = breaker()
    fail(one, 4)
    assert (ticket := one.admit()) is not None
    one.book(ticket, succeeded=True)
    fail(one, 4)
    assert one.circuit is Circuit.CLOSED
    fail(one, 1)
    assert (one.circuit, one.admit()) == (Circuit.OPEN, None)


def test_after_thirty_seconds_one_probe_at_a_time_and_two_good_ones_close_it():
    one, now = breaker()
    fail(one, 5)
    now[0] = 29.999
    assert one.admit() is None
    now[0] = 30.0
    for circuit in (Circuit.HALF_OPEN, Circuit.CLOSED):
        assert (probe := one.admit()) is not None
        assert one.admit() is None
        one.book(probe, succeeded=True)
        assert one.circuit is circuit
    assert one.admit() is not None


def test_a_failed_probe_opens_it_for_the_whole_time_again():
    one, now = breaker()
    fail(one, 5)
    now[0] = 45.0
    fail(one, 1)
    now[0] = 74.999
    assert one.admit() is None
    now[0] = 75.0
    assert one.admit() is not None


def test_a_probe_that_nobody_waits_for_makes_room_for_the_next():
    one, now = breaker()
    fail(one, 5)
    now[0] = 30.0
    assert (probe := one.admit()) is not None
    one.give_back(probe)
    assert one.admit() is not None
    one.give_back(probe)  # again: the place is another's now
    assert one.admit() is None


def test_results_of_an_older_generation_do_not_count():
    one, now = breaker()
    early = [one.admit() for _ in range(3)]
    fail(one, 5)
    now[0] = 30.0
    assert (probe := one.admit()) is not None
    for ticket, good in zip(early, (True, False, True), strict=True):
        assert ticket is not None
        one.book(ticket, succeeded=good)
    assert (one.circuit, one.admit()) == (Circuit.HALF_OPEN, None)
    one.book(probe, succeeded=True)
    assert one.circuit is Circuit.HALF_OPEN


def test_of_twenty_threads_at_a_half_open_circuit_one_is_let_in():
    one, now = breaker()
    fail(one, 5)
    now[0] = 30.0
    at_once = threading.Barrier(20)
    let_in: list[bool] = []

    def ask() -> None:
        at_once.wait()
        let_in.append(one.admit() is not None)

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(let_in) == 1


# Mutants: faults of published breakers, which the model must tell from ours.


class AllProbesAtOnce(Breaker):
    def admit(self) -> Ticket | None:
        self._probe = None
        return super().admit()


class OldResultsCount(Breaker):
    def book(self, ticket: Ticket, *, succeeded: bool) -> None:
        super().book(Ticket(self._generation, ticket.circuit), succeeded=succeeded)


class SuccessForgetsNothing(Breaker):
    def book(self, ticket: Ticket, *, succeeded: bool) -> None:
        count = self._count
        super().book(ticket, succeeded=succeeded)
        if self._opened is None and succeeded and ticket.circuit is Circuit.CLOSED:
            self._count = count


class FailedProbeDoesNotRestart(Breaker):
    def _turn(self, opened: float | None) -> None:
        super()._turn(opened if self._opened is None or opened is None else self._opened)


class OneProbeIsEnough(Breaker):
    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._enough = 1


@pytest.mark.parametrize(
    "mutant", [AllProbesAtOnce, OldResultsCount, SuccessForgetsNothing, FailedProbeDoesNotRestart, OneProbeIsEnough]
)
def test_the_model_catches_a_breaker_that_is_not_one(mutant: type[Breaker], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(globals(), "Breaker", mutant)
    with pytest.raises(AssertionError):
        compare_with_model(3_000)
