"""Forms of forbidden addresses, name servers that change their mind, redirects: all refused, and no packet sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import httpcore
from fault_server import Exchange, Fault, FaultServer

from heron_env.errors import ConfigError
from heron_env.injection import Endpoint, ExternalPolicy
from heron_env.net.client import Client, Limits, Question
from heron_env.net.guard import Guard
from heron_env.net.outcome import Code
from training.bars import Bar, Found, Setting
from training.endpoints.client import asked_at, question
from training.endpoints.watching import watching

FORMS = {
    "decimal": "2130706433", "decimal, private": "167772161", "hex": "0x7f000001", "hex in parts": "0x7f.0.0.1",
    "octal": "0177.0.0.1", "octal, whole": "017700000001", "short": "127.1", "shorter": "0", "private, short": "10.1",
    "loopback": "127.0.0.1", "loopback by name": "localhost", "with a final dot": "127.0.0.1.",
    "in other digits": "①②⑦.0.0.1", "escaped": "%31%32%37.0.0.1", "unspecified": "0.0.0.0",
    "private, class A": "10.0.0.1", "private, class B": "172.16.0.1", "private, class C": "192.168.1.1",
    "link-local (metadata)": "169.254.169.254", "CGNAT": "100.64.0.1", "CGNAT, metadata": "100.100.100.200",
    "multicast": "224.0.0.1", "reserved": "240.0.0.1", "broadcast": "255.255.255.255", "benchmarking": "198.18.0.1",
    "documentation": "203.0.113.1", "6to4 relay": "192.88.99.1", "IPv6 loopback": "[::1]", "IPv6 unspecified": "[::]",
    "compatible": "[::127.0.0.1]", "mapped": "[::ffff:127.0.0.1]", "mapped, private": "[::ffff:10.0.0.1]",
    "mapped, public": "[::ffff:8.8.8.8]", "NAT64": "[64:ff9b::10.0.0.1]", "NAT64, local": "[64:ff9b:1::1]",
    "6to4": "[2002:7f00:1::]", "Teredo": "[2001:0:4136:e378::1]", "unique local": "[fd12:3456::1]",
    "IPv6 link-local": "[fe80::1]", "with a zone": "[fe80::1%25eth0]", "site-local": "[fec0::1]",
    "IPv6 multicast": "[ff02::1]", "IPv6 documentation": "[2001:db8::1]",
}  # fmt: skip
URLS = {
    "userinfo": "https://user:secret@agent.test/", "userinfo, hiding a host": "https://agent.test@10.0.0.1/",
    "backslash": "https://agent.test\\@10.0.0.1/", "CR LF": "https://agent.test/\r\nHost: 10.0.0.1",
    "blank": "https://agent.test/ a", "fragment": "https://agent.test/#@10.0.0.1", "another port": "https://agent.test:1/",
    "not on the list": "https://other.test/", "in clear": "http://agent.test:443/", "another scheme": "gopher://agent.test/",
    "file": "file:///etc/passwd",
}  # fmt: skip
LOCAL = ("127.0.0.1", "localhost", "[::1]")
"""What an `Endpoint` may name, as its own address says that it is this machine."""
ASK = Question(lambda attempt, left: b"{}")


def literals(guarded: Callable[[str], object]) -> list[str]:
    """Forms that were not refused, each with itself on the list."""
    passed = []
    for name, host in FORMS.items():
        for url in (f"http://{host}:443/", f"https://{host}/"):
            try:
                Client(url, Guard([host, f"{host}:443"])).call(ASK)
                passed.append(f"{name} {url}")
            except ConfigError:
                pass
    for name, url in URLS.items():
        try:
            guarded(url)
            passed.append(f"{name} {url}")
        except ConfigError:
            pass
    return passed


def endpoints() -> list[str]:
    """Forms that an `Endpoint` does not refuse: none, but what says of itself that it is this machine."""
    passed = []
    for name, host in FORMS.items():
        if host in LOCAL:
            continue
        try:
            ExternalPolicy(Endpoint(f"https://{host}/")).line.client.call(ASK)
            passed.append(f"Endpoint, {name}")
        except ConfigError:
            pass
    return passed


def resolvers() -> list[str]:
    """Names that lead to each of the forms, alone and behind a public address."""
    passed, led = [], [""]

    async def behind(host: str, port: int) -> Sequence[str]:
        return ["93.184.215.14", led[0]]

    async def alone(host: str, port: int) -> Sequence[str]:
        return [led[0]]

    for resolve in (behind, alone):
        client = Client("https://agent.test/", Guard(["agent.test"]), resolve=resolve, limits=Limits(failures=10_000))
        for name, host in FORMS.items():
            led[0] = host.strip("[]")
            if client.call(ASK).code is not Code.CONNECTION:
                passed.append(f"a name that leads to {name}")
        client.close()
    return passed


def rebinding() -> list[str]:
    """A name server that says a public address first and this machine ever after.

    The connection to the public address is stopped just below, where its target is noted.
    """
    asked, connected = list[str](), list[str]()

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["93.184.215.14"] if len(asked) == 1 else ["127.0.0.1"]

    async def unreachable(self: Any, host: str, *given: Any, **named: Any) -> Any:
        connected.append(host)
        raise httpcore.ConnectError

    client = Client("https://agent.test/", Guard(["agent.test"]), resolve=resolve)
    with patch.object(httpcore.AnyIOBackend, "connect_tcp", unreachable):
        codes = [client.call(ASK).code for _ in range(2)]
    fine = codes == [Code.CONNECTION] * 2 and connected == ["93.184.215.14"] and len(asked) == 2
    return [] if fine else [f"rebinding: {codes}, connected to {connected}"]


def redirects(tried: list[tuple[str, Any, Any]]) -> tuple[list[str], int]:
    """Three redirects; what was followed, and attempts to connect elsewhere than to the endpoint."""
    followed, elsewhere = [], 0
    with FaultServer() as other:
        targets = (other.url, "http://169.254.169.254/latest/meta-data/", "https://agent.test/")
        for status, location in zip(
            ("302 Found", "307 Temporary Redirect", "308 Permanent Redirect"), targets, strict=True
        ):

            async def redirect(exchange: Exchange, status: str = status, location: str = location) -> None:
                await exchange.respond(b"", status, f"Location: {location}")

            with FaultServer(Fault("redirect", redirect, "")) as server:
                policy, before = asked_at(server.url), len(tried)
                answer = policy.answer(question())
                policy.close()
                ports = [port for _, _, port in tried[before:]]
                elsewhere += sum(port != server.port for port in ports)
                if (
                    answer.origin is None
                    or answer.origin.code != "INVALID_RESPONSE"
                    or not ports
                    or server.requests != 1
                ):
                    followed.append(f"redirect to {location}: {answer.origin}, {len(ports)} connections")
        return followed, elsewhere + other.requests


def addresses(setting: Setting) -> Found:
    """All of them, with the sockets watched; only the redirecting server itself may be connected to."""
    with watching(lambda host, port: False) as tried:
        passed = [*literals(lambda url: Client(url, Guard(["agent.test", "10.0.0.1"])).call(ASK)), *endpoints()]
        passed += [*resolvers(), *rebinding()]
    packets = len(tried)
    with watching(lambda host, port: host == "127.0.0.1") as seen:
        followed, elsewhere = redirects(seen)
    if not seen:
        return Found("the watch saw not even the connection to the redirecting server", False)
    forms = len(FORMS) + len(URLS)
    words = (
        f"{forms} forms (each as a literal, {len(FORMS)} as a resolver's answer alone and beside a public address, "
        f"rebinding) and 3 redirects: {len(passed) + len(followed)} passed, {packets + elsewhere} packets"
    )
    problems = [*passed, *followed]
    met = not problems and packets + elsewhere == 0
    return Found(words + ("" if not problems else f": {problems[:5]}"), met, {"forms": forms, "passed": problems})


BARS = (
    Bar(
        "addresses", "address forms (>= 20) and rebinding resolver, + 3 redirects", "all refused, 0 packets", addresses
    ),
)  # fmt: skip
