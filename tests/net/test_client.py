"""The client: several questions at once, their order, connections, keys, threads, and what is told of it all."""

import asyncio
import gc
import json
import logging
import os
import signal
import ssl
import threading
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_clock import FakeClock
from fault_server import FAULTS, Exchange, Fault, FaultServer, head

from heron_env.errors import ConfigError
from heron_env.net import client as client_module
from heron_env.net.client import Client, Limits, Question
from heron_env.net.guard import Address, Guard
from heron_env.net.limits import Circuit
from heron_env.net.outcome import Code, Failure

CANARY = "canary-d41d8cd98f00b204"
HERE = Guard(loopback=True)


@pytest.fixture
def clients() -> Iterator[list[Client]]:
    made: list[Client] = []
    yield made
    for client in made:
        client.close()


def ask(number: int = 0, **fields: Any) -> Question:
    return Question(lambda attempt, left: json.dumps({"request_id": f"{number}.{attempt}", **fields}).encode())


def test_questions_asked_at_once_are_answered_each_with_its_own_whatever_order_they_come_in(clients: list[Client]):
    arrived = [0]
    all_here = asyncio.Event()

    async def last_first(exchange: Exchange) -> None:
        arrived[0] += 1
        if arrived[0] == 5:
            all_here.set()
        await all_here.wait()
        for _ in range(50 * (5 - json.loads(exchange.body)["rank"])):
            await asyncio.sleep(0)
        await exchange.respond(exchange.good)

    with FaultServer(Fault("last first", last_first, "")) as server:
        clients.append(Client(server.url, HERE))
        outcomes = clients[0].call_all([ask(number, rank=number) for number in range(5)])
    assert [outcome.value["request_id"] for outcome in outcomes] == [f"{number}.1" for number in range(5)]


def test_checks_and_bookings_go_by_order_and_after_the_fifth_failure_none_counts(clients: list[Client]):
    checked: list[int] = []

    def question(number: int) -> Question:
        def check(answer: dict[str, Any]) -> None:
            checked.append(number)
            if number != 2:
                raise Failure(Code.INVALID_ACTION, "out of bounds")

        return Question(ask(number).body, check)

    with FaultServer() as server:
        clients.append(Client(server.url, HERE, clock=FakeClock()))
        outcomes = clients[0].call_all([question(number) for number in range(8)])
        assert checked == list(range(8))
        assert [outcome.code for outcome in outcomes] == [Code.INVALID_ACTION] * 2 + [Code.OK] + [
            Code.INVALID_ACTION
        ] * 5
        assert clients[0].circuit is Circuit.OPEN  # five in a row, after the good one
        assert clients[0].call(ask()).code is Code.CIRCUIT_OPEN
        assert server.requests == 8


def test_of_twenty_questions_at_a_half_open_circuit_one_is_sent(clients: list[Client]):
    clock = FakeClock()
    with FaultServer(*["503 Service Unavailable"] * 5, "good", clock=clock) as server:
        clients.append(client := Client(server.url, HERE, clock=clock))
        for _ in range(5):
            assert client.call(ask()).code is Code.INTERNAL
        clock.advance(30.0)
        outcomes = client.call_all([ask(number) for number in range(20)])
        assert [outcome.code for outcome in outcomes] == [Code.OK] + [Code.CIRCUIT_OPEN] * 19
        assert {outcome.circuit for outcome in outcomes} == {Circuit.HALF_OPEN}
        assert server.requests == 6
        assert client.call(ask()).code is Code.OK
        assert client.circuit is Circuit.CLOSED


def test_sixty_questions_at_once_keep_to_the_caps(clients: list[Client]):
    clock = FakeClock()
    with FaultServer(clock=clock) as server:
        clients.append(client := Client(server.url, HERE, clock=clock))
        outcomes = [outcome for _ in range(3) for outcome in client.call_all([ask(number) for number in range(60)])]
        assert {outcome.code for outcome in outcomes} == {Code.OK}
        assert server.most_in_flight <= 10
        assert [outcome.seconds for outcome in outcomes] == [0.0] * 100 + [1.0] * 20 + [0.0] * 60


def test_silence_ends_all_that_were_asked_at_once_at_the_same_deadline_queued_or_not(clients: list[Client]):
    clock = FakeClock()
    with FaultServer("silence", clock=clock) as server:
        clients.append(client := Client(server.url, HERE, clock=clock, limits=Limits(timeout=20.0, failures=11)))
        outcomes = client.call_all([ask(number) for number in range(12)])
        assert client.circuit is Circuit.CLOSED  # two were never sent: they say nothing about the endpoint
        assert {(outcome.code, outcome.seconds) for outcome in outcomes} == {(Code.TIMEOUT, 20.0)}
        assert [outcome.attempts for outcome in outcomes] == [1] * 10 + [0] * 2
        assert server.requests == 10


def test_after_429_a_question_is_sent_again_and_says_so_and_what_time_is_left(clients: list[Client]):
    clock = FakeClock()
    with FaultServer("429 for ever", "429, Retry-After 5", "good", clock=clock, record=True) as server:
        clients.append(client := Client(server.url, HERE, clock=clock))
        question = Question(lambda attempt, left: json.dumps({"attempt": attempt, "left": left}).encode())
        outcome = client.call(question)
        assert (outcome.code, outcome.attempts, outcome.seconds) == (Code.OK, 3, 6.0)
        sent = [json.loads(body) for body in server.bodies]
        assert sent == [{"attempt": n, "left": left} for n, left in ((1, 30.0), (2, 29.0), (3, 24.0))]


def test_a_health_check_is_not_counted_and_asks_even_an_open_circuit(clients: list[Client]):
    with FaultServer(*["404 Not Found"] * 5, "good") as server:
        clients.append(client := Client(server.url, HERE))
        for _ in range(5):
            client.call(ask())
        probe = client.call(Question(ask().body, counted=False))
        assert (probe.code, probe.circuit) == (Code.OK, Circuit.OPEN)
        assert (client.circuit, server.requests) == (Circuit.OPEN, 6)


def test_connections_are_used_again_and_cookies_are_not_sent_back(clients: list[Client]):
    peers: set[Any] = set()

    async def with_cookie(exchange: Exchange) -> None:
        peers.add(exchange.writer.get_extra_info("peername"))
        await exchange.respond(exchange.good, "200 OK", "Set-Cookie: a=b")

    with FaultServer(Fault("cookie", with_cookie, ""), record=True) as server:
        clients.append(client := Client(server.url, HERE))
        for _ in range(5):
            assert client.call(ask()).code is Code.OK
    assert len(peers) == 1
    assert b"cookie" not in b"".join(server.heads).lower()
    assert {b"accept-encoding: identity", b"content-type: application/json"} <= set(
        server.heads[4].lower().splitlines()
    )


def test_an_answer_that_was_there_before_the_question_is_none(clients: list[Client]):
    async def two_answers(exchange: Exchange) -> None:
        response = head("200 OK", "Transfer-Encoding: chunked") + b'd\r\n{"action": 0}\r\n0\r\n\r\n'
        await exchange.send(response + response)

    with FaultServer(Fault("two answers", two_answers, ""), "good") as server:
        clients.append(client := Client(server.url, HERE))
        assert client.call(ask()).code is Code.OK
        assert client.call(ask()).code is Code.INVALID_RESPONSE
        assert client.call(ask()).code is Code.OK


def test_it_works_inside_a_running_loop_as_in_a_notebook(clients: list[Client]):
    async def cell() -> Code:
        return clients[0].call(ask()).code

    with FaultServer() as server:
        clients.append(Client(server.url, HERE))
        assert asyncio.run(cell()) is Code.OK


def test_a_body_or_check_that_raises_is_the_callers_own_error_and_frees_the_probe(clients: list[Client]):
    def broken(*_: object) -> Any:
        raise ZeroDivisionError

    clock = FakeClock()
    with FaultServer(*["400 Bad Request"] * 5, "good", clock=clock) as server:
        clients.append(client := Client(server.url, HERE, clock=clock))
        for _ in range(5):
            client.call(ask())
        clock.advance(30.0)
        for question in (Question(broken), Question(ask().body, broken)):
            with pytest.raises(ZeroDivisionError):
                client.call(question)
        assert client.call(ask()).code is Code.OK


def test_a_client_that_nobody_has_any_more_hangs_up():
    gone = threading.Event()

    async def watched(exchange: Exchange) -> None:
        await exchange.respond(exchange.good)
        assert await exchange.reader.read(1) == b""
        gone.set()

    with FaultServer(Fault("watched", watched, "")) as server:
        client = Client(server.url, HERE)
        assert client.call(ask()).code is Code.OK
        del client
        gc.collect()
        assert gone.wait(10)


@pytest.mark.parametrize("key", ["canary-d41d8cd98f00b204", 'canary"-\\d41d8cd98f'])
@pytest.mark.parametrize("escaped", [False, True])
def test_an_answer_that_holds_the_key_is_none(
    key: str, escaped: bool, clients: list[Client], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENT_KEY", key)

    async def echo(exchange: Exchange) -> None:
        body = json.dumps({"action": 0, "explanation": f"Bearer {key}"})
        await exchange.respond((body.replace("canary", "\\u0063anary") if escaped else body).encode())

    with FaultServer(Fault("echo", echo, "")) as server:
        clients.append(client := Client(server.url, HERE, key_env="AGENT_KEY"))
        outcome = client.call(ask())
        assert (outcome.code, outcome.value) == (Code.INVALID_RESPONSE, None)
        assert "sends back the key" in outcome.message
        assert key not in outcome.message


def test_a_short_key_may_be_part_of_an_answer(clients: list[Client], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGENT_KEY", "action")
    with FaultServer() as server:
        clients.append(client := Client(server.url, HERE, key_env="AGENT_KEY"))
        assert client.call(ask()).code is Code.OK


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_a_loop_and_connections_of_its_own(clients: list[Client]):
    with FaultServer() as server:
        clients.append(client := Client(server.url, HERE))
        assert client.call(ask()).code is Code.OK
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # ends it where it would wait for ever
            os._exit(0 if client.call(ask()).code is Code.OK else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert client.call(ask()).code is Code.OK


class AgentTestIsHere(Guard):
    """The name agent.test leads to this machine, by decree of this test."""

    def checked(self, address: Address, resolved: Sequence[str]) -> tuple[str, ...]:
        assert (address.host, resolved) == ("agent.test", ["93.184.215.14"])
        return ("127.0.0.1",)


@pytest.mark.parametrize("known", [True, False])
def test_tls_asks_for_the_name_though_the_connection_goes_to_the_checked_address(known: bool, clients: list[Client]):
    pem = Path(__file__).with_name("agent_test.pem")
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(pem)
    named: list[str] = []
    ours.sni_callback = lambda _, name, __: named.append(name)

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["93.184.215.14"]

    with FaultServer(record=True, tls=ours) as server:
        guard = AgentTestIsHere([f"agent.test:{server.port}"])
        trusted = ssl.create_default_context(cafile=str(pem)) if known else None
        clients.append(Client(f"https://agent.test:{server.port}/", guard, resolve=resolve, tls=trusted))
        assert clients[0].call(ask()).code is (Code.OK if known else Code.CONNECTION)
    assert named == ["agent.test"]
    assert [f"host: agent.test:{server.port}".encode() in head.lower() for head in server.heads] == [True] * known


@pytest.mark.parametrize("name", ["good", *{fault.code: name for name, fault in FAULTS.items()}.values(), "html"])
def test_a_key_is_sent_and_shown_nowhere(
    name: str, clients: list[Client], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("AGENT_KEY", CANARY)
    caplog.set_level(logging.DEBUG)
    clock = FakeClock()
    with FaultServer(name, clock=clock, record=True) as server:
        clients.append(client := Client(server.url, HERE, key_env="AGENT_KEY", clock=clock))
        outcome = client.call(ask())
    if server.heads:
        assert f"authorization: bearer {CANARY}".encode() in server.heads[0].lower()
    shown = [repr(client), repr(outcome), outcome.message, repr(vars(client)), caplog.text]
    assert CANARY not in "".join(shown) + b"".join(server.bodies).decode()
    if name not in ("good", "html"):
        assert "Welcome" not in outcome.message and "{" not in outcome.message


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("AGENT_KEY", None, "the environment variable 'AGENT_KEY' is not set; export it before the start"),
        ("AGENT_KEY", f"{CANARY}\r\nX: y", "'AGENT_KEY' has a blank or a character beyond printable ASCII"),
        ("AGENT_KEY", f"{CANARY}é", "'AGENT_KEY' has a blank or a character beyond printable ASCII"),
        (CANARY, None, "must be the name of an environment variable, never the key itself (not quoted)"),
        (CANARY.replace("-", "_"), None, "the environment variable that key_env names is not set"),
        (7, None, "must be the name of an environment variable"),
    ],
)
def test_a_wrong_key_is_refused_without_being_quoted(
    name: Any, value: str | None, words: str, monkeypatch: pytest.MonkeyPatch
):
    if value is not None:
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as caught:
        Client("http://127.0.0.1:1/", HERE, key_env=name)
    assert words in str(caught.value)
    told = "".join(traceback.format_exception(caught.value))
    assert "canary" not in told


def test_what_happens_inside_is_never_in_the_chain_of_an_error(clients: list[Client], monkeypatch: pytest.MonkeyPatch):
    """The errors of the libraries below hold the request, and it the key: no outcome holds one of them."""
    monkeypatch.setenv("AGENT_KEY", CANARY)
    with FaultServer("reset in mid body") as server:
        clients.append(client := Client(server.url, HERE, key_env="AGENT_KEY"))
        outcome = client.call(ask())
    assert not any(isinstance(each, BaseException) for each in gc.get_referents(outcome))


@pytest.mark.parametrize(
    ("name", "value"),
    [("timeout", 0), ("timeout", float("nan")), ("timeout", True), ("probe_after", "30"), ("in_flight", 0),
     ("per_second", 1.5), ("failures", -1), ("most_bytes", 2**40)],
)  # fmt: skip
def test_a_wrong_limit_is_named(name: str, value: Any):
    with pytest.raises(ConfigError, match=rf"Limits\({name}="):
        Limits(**{name: value})


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120.0), ("0", 0.0), ("-5", 0.0), ("", 0.0), ("1.5", 0.0), ("9" * 400, 0.0), ("soon", 0.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 40.0), ("Thursday, 01-Jan-70 00:01:40 GMT", 40.0),
        ("Thu Jan  1 00:01:40 1970", 40.0), ("Thu, 01 Jan 1970 00:00:01 GMT", 0.0), ("Thu, 99 Jan 1970 00:00:01", 0.0),
    ],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date_and_never_negative(header: str, seconds: float):
    assert client_module._seconds(header, 60.0) == seconds
