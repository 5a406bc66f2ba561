"""The breaker against a model of its own, step by step, and its laws one by one."""

import threading

import breaker_model
import pytest
from breaker_model import compare_with_model

from heron_env.net.limits import Breaker, Circuit, Ticket


def test_the_breaker_is_its_model():
    assert compare_with_model(1_000) >= 1_000


@pytest.mark.draw
def test_the_breaker_is_its_model_over_many_steps():
    assert compare_with_model(10_000) >= 10_000


def breaker() -> tuple[Breaker, list[float]]:
    now = [0.0]
    return Breaker(lambda: now[0]), now


def let_in(breaker: Breaker) -> Ticket:
    ticket = breaker.admit()
    assert ticket is not None
    return ticket


def fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        breaker.book(let_in(breaker), succeeded=False)


def test_after_thirty_seconds_one_probe_at_a_time_and_two_good_ones_close_it():
    one, now = breaker()
    fail(one, 5)
    now[0] = 29.999
    assert one.admit() is None
    now[0] = 30.0
    for circuit in (Circuit.HALF_OPEN, Circuit.CLOSED):
        probe = let_in(one)
        assert one.admit() is None
        one.book(probe, succeeded=True)
        assert one.circuit is circuit
    assert one.admit() is not None


def test_a_probe_that_nobody_waits_for_makes_room_for_the_next():
    one, now = breaker()
    fail(one, 5)
    now[0] = 30.0
    probe = let_in(one)
    one.give_back(probe)
    assert one.admit() is not None
    one.give_back(probe)  # again: the place is another's now
    assert one.admit() is None


def test_results_of_an_older_generation_do_not_count():
    one, now = breaker()
    early = [let_in(one) for _ in range(3)]
    fail(one, 5)
    now[0] = 30.0
    probe = let_in(one)
    for ticket, good in zip(early, (True, False, True), strict=True):
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


@pytest.mark.parametrize("mutant", [OldResultsCount, SuccessForgetsNothing, FailedProbeDoesNotRestart])
def test_the_model_catches_a_breaker_that_is_not_one(mutant: type[Breaker], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(breaker_model, "Breaker", mutant)
    with pytest.raises(AssertionError):
        compare_with_model(3_000)
