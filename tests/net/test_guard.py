"""The guard: every form of a forbidden address is refused before anything is sent."""

import asyncio
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

import httpcore
import pytest
from fault_server import FaultServer

from heron_env.cli.application import _allow
from heron_env.declared.configuration import EndpointConfig
from heron_env.errors import ConfigError
from heron_env.injection.endpoint import Endpoint, client_of
from heron_env.lab.policies import display_names, policy_spec
from heron_env.net.client import Client, Limits, Question
from heron_env.net.guard import Guard
from heron_env.net.outcome import CallOutcome, Code, Failure

ASK = Question(lambda attempt, left: b"{}")


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Where anybody tried to connect to, and did: only this machine is let through."""
    tried: list[Any] = []
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def seen(call: Any) -> Any:
        def guarded(self: socket.socket, address: Any) -> Any:
            tried.append(address)
            assert address[0] in ("127.0.0.1", "::1"), "a test tried to send a packet off this machine"
            return call(self, address)

        return guarded

    def looked_up(*_: object, **__: object) -> Any:
        raise AssertionError("a test asked a name server")

    monkeypatch.setattr(socket.socket, "connect", seen(connect))
    monkeypatch.setattr(socket.socket, "connect_ex", seen(connect_ex))
    monkeypatch.setattr(asyncio.BaseEventLoop, "sock_connect", None, raising=False)
    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    yield tried


LITERALS = [
    "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001",
    "127.0.0.1.", "0", "0.0.0.0", "00.0.0.0", "localhost", "LOCALHOST", "localhost.", "%31%32%37.0.0.1",
    "①②⑦.0.0.1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "100.100.100.200", "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
    "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "167772161", "0xa.0.0.1", "010.0.0.1", "10.1",
    "3232235777", "1.2.3.4.5", "256.1.1.1", "[::]", "[::1]", "[::127.0.0.1]", "[::ffff:127.0.0.1]",
    "[::ffff:10.0.0.1]", "[::ffff:8.8.8.8]", "[::ffff:0:10.0.0.1]", "[64:ff9b::10.0.0.1]", "[64:ff9b::808:808]",
    "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2002:808:808::1]", "[2001:0:4136:e378::1]", "[2001:db8::1]", "[3fff::1]",
    "[fc00::1]", "[fd12:3456::1]", "[fe80::1]", "[fe80::1%25eth0]", "[fec0::1]", "[ff02::1]", "[100::1]",
    "[5f00::1]", "[::1", "[1:2:3]", "[v1.a]",
]  # fmt: skip


def test_every_form_of_a_forbidden_address_is_refused_even_when_it_is_on_the_list(connections: list[Any]):
    passed = []
    for host in LITERALS:
        for listed in ([], [host], [f"{host}:443"]):
            for scheme in ("http", "https"):
                try:
                    Client(f"{scheme}://{host}:443/", Guard(listed))
                    passed.append(host)
                except ConfigError:
                    continue
    assert passed == []
    assert connections == []


def test_no_name_leads_there_either(connections: list[Any]):
    led: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["93.184.215.14", led[-1]]

    client = Client("https://agent.test/", Guard(["agent.test"]), resolve=resolve, limits=Limits(failures=1000))
    for host in LITERALS:
        led.append(host.strip("[]"))
        outcome = client.call(ASK)
        assert (outcome.code, outcome.attempts, "not allowed" in outcome.message) == (Code.CONNECTION, 1, True), host
    assert connections == []


@pytest.mark.parametrize(
    "url",
    [
        "https://user:secret@agent.test/",
        "https://secret@agent.test/",
        "https://agent.test@evil.test/",
        "https://agent.test:443:secret/",
        "https://agent.test\\@evil.test/",
        "https://agent.test/\r\nX-Secret: 1",
        "https://agent.test/\nsecret",
        "https://agent.test /",
        "https://agent.test/secret path",
        "https://agent.test/#secret",
        "https://agent.test?secret",
        "https://agent.test/é",
        "https:/agent.test/",
        "https:agent.test",
        "//agent.test/",
        "file:///etc/secret",
        "gopher://agent.test/",
        "ws://agent.test/",
        "",
        None,
    ],
)
def test_an_address_that_two_programs_could_read_differently_is_refused_and_not_quoted(url: Any):
    with pytest.raises(ConfigError) as caught:
        Guard(["agent.test", "evil.test"]).passed(url)
    assert "secret" not in str(caught.value).replace("a secret)", "")
    assert "https://host:port/path" in str(caught.value)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://other.test/", "https://other.test: not allowed; add 'other.test:443' to the list"),
        ("https://agent.test:444/", "https://agent.test: not allowed; add 'agent.test:444' to the list"),
        ("https://agent.test.evil.test/", "not allowed"),
        ("http://agent.test:443/", "http://agent.test: must be https; http is allowed only for this machine"),
        ("http://localhost/", "http://localhost: this machine may not be talked to; allow it with loopback=True"),
        ("https://agent..test/", "https://agent..test: no host name"),
        ("https://agent.test:0/", "port 0 does not exist"),
        ("https://agent.test:65536/", "port 65536 does not exist"),
        ("https://10.0.0.1/", "https://10.0.0.1: inside 10.0.0.0/8; take a public address"),
        ("https://[fd00::1]/", "https://[fd00::1]: an IPv6 address outside 2000::/3; take a public address"),
        ("https://0x0a.1/", "https://0x0a.1: an odd notation of an IP address; write it as 203.0.113.7"),
    ],
)
def test_a_refusal_says_why_and_how_to_mend_it(url: str, words: str):
    with pytest.raises(ConfigError) as caught:
        Guard(["agent.test", "10.0.0.1", "[fd00::1]"]).passed(url)
    assert words in str(caught.value)


@pytest.mark.parametrize("entry", ["", "*", "https://agent.test", "agent.test/", "a@agent.test", "127.1", 443, None])
def test_an_entry_of_the_list_is_a_host_with_or_without_a_port(entry: Any):
    with pytest.raises(ConfigError, match=r"allow="):
        Guard([entry])
    with pytest.raises(ConfigError, match=r"must be a list or tuple"):
        Guard("agent.test")


def test_what_is_listed_and_public_passes():
    guard = Guard(["Agent.test:8443", "93.184.215.14", "[2606:2800:21f:cb07::1]:8443"], loopback=True)
    assert guard.passed("https://AGENT.test:8443/a?b=c%20d").url == "https://agent.test:8443/a?b=c%20d"
    assert guard.passed("https://93.184.215.14").url == "https://93.184.215.14:443/"
    assert guard.passed("https://[2606:2800:21F:CB07:0::1]:8443/").place == "https://[2606:2800:21f:cb07::1]:8443"
    assert guard.passed("http://127.0.0.2:8000/").local
    assert guard.checked(guard.passed("https://agent.test:8443/"), ["93.184.215.14"]) == ("93.184.215.14",)
    assert repr(guard).startswith("Guard(['2606:")


def test_a_listed_name_never_leads_to_this_machine_even_where_this_machine_is_allowed(connections: list[Any]):
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    client = Client("https://agent.test/", Guard(["agent.test"], loopback=True), resolve=resolve)
    assert client.call(ASK).code is Code.CONNECTION
    assert connections == []


@pytest.mark.parametrize("answers", [[], OSError("no such name")])
def test_a_name_that_leads_nowhere_is_a_failed_connection(answers: Any):
    async def resolve(host: str, port: int) -> Sequence[str]:
        if isinstance(answers, OSError):
            raise answers
        return list(answers)

    outcome = Client("https://agent.test/", Guard(["agent.test"]), resolve=resolve).call(ASK)
    assert (outcome.code, outcome.attempts) == (Code.CONNECTION, 1)


def test_a_resolver_that_changes_its_mind_is_asked_once_per_connection(monkeypatch: pytest.MonkeyPatch):
    """What was checked is what is connected to: no second look-up could lead elsewhere."""
    asked: list[str] = []
    connected: list[str] = []

    async def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["93.184.215.14", "2606:2800:21f:cb07::1"] if len(asked) == 1 else ["127.0.0.1"]

    async def unreachable(self: Any, host: str, *_: object, **__: object) -> Any:
        connected.append(host)
        raise httpcore.ConnectError

    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", unreachable)
    client = Client("https://agent.test/", Guard(["agent.test"]), resolve=rebinding, limits=Limits(timeout=5))
    outcomes: list[CallOutcome] = [client.call(ASK), client.call(ASK)]
    assert [outcome.code for outcome in outcomes] == [Code.CONNECTION] * 2
    assert connected == ["93.184.215.14", "2606:2800:21f:cb07::1"]  # and never where the second answer led
    assert asked == ["agent.test"] * 2


def test_localhost_is_asked_for_at_nobody(connections: list[Any]):
    with FaultServer() as server:
        client = Client(server.url.replace("127.0.0.1", "localhost"), Guard(loopback=True))
        assert client.call(ASK).code is Code.OK
        client.close()
    assert {address[0] for address in connections} <= {"127.0.0.1"}


OWN = ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "[fc00::1]", "[fd12:3456::1]"]


def test_of_closed_networks_only_private_ones_can_be_allowed_and_only_machine_by_machine(connections: list[Any]):
    allowed = []
    for host in LITERALS:
        try:
            guard = Guard(private=[f"{host}:8000"])
        except ConfigError:
            continue
        allowed.append(host)
        assert guard.passed(f"http://{host}:8000/act").private and guard.passed(f"https://{host}:8000/act").private
        for other in (f"{host}:8001", host, "10.0.0.2:8000", "[fd12:3456::2]:8000", "agent.test:8000"):
            with pytest.raises(ConfigError):
                guard.passed(f"http://{other}/act")
        for name in ("agent.test:8000", "localhost:8000"):
            with pytest.raises(ConfigError, match=r"must be 'IP:PORT'"):
                Guard(private=[name])
    assert allowed == OWN
    assert connections == []


def test_no_name_leads_to_a_machine_that_is_allowed_by_its_address(connections: list[Any]):
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["192.168.1.1"]

    guard = Guard(["agent.test:8000"], private=["192.168.1.1:8000"])
    outcome = Client("https://agent.test:8000/", guard, resolve=resolve).call(ASK)
    assert outcome.code is Code.CONNECTION and "named by its IP address" in outcome.message
    assert guard.checked(guard.passed("http://192.168.1.1:8000/"), ["192.168.1.1"]) == ("192.168.1.1",)
    with pytest.raises(Failure):
        guard.checked(guard.passed("http://192.168.1.1:8000/"), ["192.168.1.1", "192.168.1.2"])
    assert connections == []


@contextmanager
def rewired(patched: pytest.MonkeyPatch, *faults: str) -> Iterator[list[Any]]:
    """A server here answers whatever address is connected to; these addresses."""
    led: list[Any] = []
    connect = httpcore.AnyIOBackend.connect_tcp
    with FaultServer(*faults) as server:

        async def here(self: Any, host: str, port: int, *rest: Any, **options: Any) -> Any:
            led.append((host, port))
            return await connect(self, "127.0.0.1", server.port, *rest, **options)

        patched.setattr(httpcore.AnyIOBackend, "connect_tcp", here)
        yield led


@pytest.mark.usefixtures("connections")
def test_an_endpoint_on_the_local_network_is_asked_once_it_is_allowed(monkeypatch: pytest.MonkeyPatch):
    with rewired(monkeypatch) as led:
        for url, allow in (("http://192.168.7.7:8000/", "192.168.7.7:8000"), ("http://[fd00::7]/", "[fd00::7]:80")):
            with pytest.raises(ConfigError, match=re.escape(f"allow='{allow}' (commands: --allow {allow})")):
                Endpoint(url)
            client = client_of(Endpoint(url, allow=allow))
            assert client.call(ASK).code is Code.OK
            client.close()
    assert led == [("192.168.7.7", 8000), ("fd00::7", 80)]


@pytest.mark.usefixtures("connections")
def test_an_allowed_machine_leads_nowhere_else(monkeypatch: pytest.MonkeyPatch):
    with rewired(monkeypatch, "307 Temporary Redirect") as led:
        client = client_of(Endpoint("http://192.168.7.7:8000/", allow="192.168.7.7:8000"))
        assert client.call(ASK).code is Code.INVALID_RESPONSE
        client.close()
    assert led == [("192.168.7.7", 8000)]


@pytest.mark.parametrize("allow", ["192.168.7.8:8000", "192.168.7.7:8001", "192.168.7.7", "agent.lan:8000", 8000, ""])
def test_what_is_allowed_is_the_machine_of_the_address(allow: Any):
    with pytest.raises(ConfigError, match="allow="):
        Endpoint("http://192.168.7.7:8000/", allow=allow)


def test_a_command_allows_what_it_names_and_only_for_itself():
    url, machine = "http://192.168.7.7:8000/act", "192.168.7.7:8000"

    def asked() -> object:
        _allow([machine])
        return policy_spec(url), display_names([url, f"new={url}"])

    copy_context().run(asked)
    with pytest.raises(ConfigError, match="allow="):
        policy_spec(url)
    with pytest.raises(ConfigError, match="must be 'IP:PORT'"):
        copy_context().run(_allow, ["agent.test:8000"])


def test_a_file_allows_a_machine_by_its_key():
    entry = {"agent_id": "a", "url": "http://10.0.0.9:8000/"}
    assert EndpointConfig(**entry, allow="10.0.0.9:8000").allow == "10.0.0.9:8000"
    with pytest.raises(
        ConfigError, match=r"url: http://10\.0\.0\.9: inside 10\.0\.0\.0/8; .* allow='10\.0\.0\.9:8000'"
    ):
        EndpointConfig(**entry)
