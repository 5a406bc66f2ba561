"""The failure table: whatever an endpoint does, a call ends in time with the right code, and nothing else happens."""

import json
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fake_clock import FakeClock
from fault_server import FAULTS, MIB, Fault, FaultServer

from heron_env.net.client import Client, Limits, Question
from heron_env.net.guard import Guard
from heron_env.net.limits import Circuit
from heron_env.net.outcome import CallOutcome, Code, Failure

TABLE = [pytest.param(fault, id=name) for name, fault in FAULTS.items()]
ANSWERED = (Code.INVALID_RESPONSE, Code.INVALID_ACTION, Code.RESPONSE_TOO_LARGE)
SECONDS = {  # of those that take any, on the clock
    "429 for ever": 7,
    "429, Retry-After 5": 15,
    "429, Retry-After negative": 7,
    "429, Retry-After in words": 7,
    "429, Retry-After date": 3 + 3 + 4,
} | {name: 30 for name, fault in FAULTS.items() if fault.code == Code.TIMEOUT}


@contextmanager
def asking(*faults: str | Fault, **limits: Any) -> Iterator[tuple[Client, FaultServer, FakeClock]]:
    clock = FakeClock()
    with FaultServer(*faults, clock=clock, record=True) as server:
        client = Client(server.url, Guard(loopback=True), limits=Limits(**limits), clock=clock)
        try:
            yield client, server, clock
        finally:
            client.close()


def question(number: int = 0) -> Question:
    """One whose answer must carry its own request_id."""
    sent: list[str] = []

    def body(attempt: int, left: float) -> bytes:
        sent.append(f"{number}.{attempt}")
        return json.dumps({"request_id": sent[-1], "left": left}).encode()

    def check(answer: dict[str, Any]) -> Any:
        if answer.get("request_id", sent[-1]) != sent[-1]:
            raise Failure(Code.INVALID_RESPONSE, "an answer to another question")
        return answer["action"]

    return Question(body, check)


def shown(outcomes: list[CallOutcome]) -> list[tuple[Any, ...]]:
    return [(each.code, each.value, each.attempts, each.seconds, each.circuit) for each in outcomes]


@pytest.mark.parametrize("fault", TABLE)
def test_every_fault_has_its_code_its_requests_and_one_failure_for_the_breaker(fault: Fault):
    ran = []
    for _ in range(2):
        with asking(fault, failures=2) as (client, server, clock):
            began = clock.monotonic()
            outcomes = [client.call(question())]
            assert clock.monotonic() - began == SECONDS.get(fault.name, 0)
            arrived = fault.requests if fault.arrive is None else fault.arrive
            assert (server.requests, client.circuit) == (arrived, Circuit.CLOSED)
            outcomes.append(client.call(question()))
            assert (server.requests, client.circuit) == (2 * arrived, Circuit.OPEN)
            outcomes.append(client.call(question()))
            assert server.requests == 2 * arrived
            ran.append((shown(outcomes), [json.loads(body) for body in server.bodies]))
    first, second, third = ran[0][0]
    assert first[:3] == second[:3] == (fault.code, None, fault.requests)
    assert third[:4] == (Code.CIRCUIT_OPEN, None, 0, 0)
    assert ran[0] == ran[1]


@pytest.mark.parametrize("fault", [FAULTS[name] for name in FAULTS if FAULTS[name].code in ANSWERED], ids=str)
def test_no_body_takes_more_than_8_MiB(fault: Fault):
    with asking(fault) as (client, _, _):
        client.call(question())  # imports what it needs, and the server makes its body
        tracemalloc.start()
        try:
            client.call(question())
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 8 * MIB
