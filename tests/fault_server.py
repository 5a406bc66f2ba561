"""An endpoint on 127.0.0.1 that does all that endpoints do to their callers: raw asyncio, in a thread of its own.

    with FaultServer("silence", clock=FakeClock()) as server:
        ...server.url, server.requests

The n-th request gets the n-th of the faults, the last one for ever. `FAULTS` has them all, with what a client must make
of each; without a clock, pauses are real.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import socket
import ssl
import struct
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import formatdate
from functools import cache
from typing import Any, Protocol, Self
from weakref import WeakSet

MIB = 2**20
Json = dict[str, Any]


class Pausing(Protocol):
    """What the server needs of a clock: `FakeClock` has it."""

    def wall(self) -> float: ...

    async def pause(self, seconds: float, hung_up: asyncio.Future[Any]) -> bool: ...


class RealPauses:
    """The computer's clock."""

    def wall(self) -> float:
        return time.time()

    async def pause(self, seconds: float, hung_up: asyncio.Future[Any]) -> bool:
        """False: the client hung up."""
        done, _ = await asyncio.wait({hung_up}, timeout=None if math.isinf(seconds) else seconds)
        return not done


class HungUp(Exception):
    """The client has closed the connection."""


@dataclass
class Exchange:
    """One request and what is done to it."""

    server: FaultServer
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    body: bytes
    last: bool = False  # close the connection afterwards

    @property
    def good(self) -> bytes:
        """What a good agent answers."""
        return json.dumps(self.server.answer(json.loads(self.body))).encode()

    async def send(self, *parts: bytes) -> None:
        self.writer.write(b"".join(parts))
        await self.writer.drain()

    async def respond(self, body: bytes, status: str = "200 OK", *headers: str, length: int | None = None) -> None:
        """A response, true but for what is given; `length`: what its Content-Length says."""
        await self.send(head(status, f"Content-Length: {len(body) if length is None else length}", *headers), body)

    async def pause(self, seconds: float) -> None:
        hung_up = asyncio.ensure_future(self.reader.read(1))
        try:
            if not await self.server.clock.pause(seconds, hung_up):
                raise HungUp
        finally:
            hung_up.cancel()
            await asyncio.wait({hung_up})
            if not hung_up.cancelled():
                hung_up.exception()

    def reset(self) -> None:
        """RST, not FIN."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
        self.last = True


Behave = Callable[[Exchange], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """What the server does, and what the client must make of it.

    Attributes: code: of the outcome, empty for a good answer; requests: that the client sends; arrive: those of them
        that reach the server.
    """

    name: str
    behave: Behave
    code: str
    requests: int = 1
    arrive: int | None = None

    def __str__(self) -> str:
        return self.name


def head(status: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", "Content-Type: application/json", *headers, "", ""]).encode()


FAULTS: dict[str, Fault] = {}
"""All by name; `good` is none."""


def fault(code: str, name: str = "", *, requests: int = 1, arrive: int | None = None) -> Callable[[Behave], Behave]:
    def named(behave: Behave) -> Behave:
        key = name or behave.__name__.replace("_", " ")
        FAULTS[key] = Fault(key, behave, code, requests, arrive)
        return behave

    return named


def body_fault(code: str, name: str, body: Callable[[], bytes], *headers: str) -> None:
    """A response that is well-formed but for its body, which is made once."""
    made = cache(body)

    @fault(code, name)
    async def behave(exchange: Exchange) -> None:
        await exchange.respond(made(), "200 OK", *headers)


def status_fault(code: str, status: str, *headers: str, requests: int = 1, name: str = "") -> None:
    @fault(code, name or status, requests=requests)
    async def behave(exchange: Exchange) -> None:
        await exchange.respond(exchange.good, status, *headers)


async def good(exchange: Exchange) -> None:
    await exchange.respond(exchange.good)


GOOD = Fault("good", good, "")


@fault("TIMEOUT")
async def silence(exchange: Exchange) -> None:
    await exchange.pause(math.inf)


@fault("TIMEOUT")
async def slow_headers(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await exchange.pause(exchange.server.beat)
        await exchange.send(b"X-More: yes\r\n")


@fault("TIMEOUT")
async def dripping_body(exchange: Exchange) -> None:
    await exchange.send(head("200 OK", "Content-Length: 100000"), b'{"text": "')
    while True:
        await exchange.pause(exchange.server.beat)
        await exchange.send(b"a")


@fault("TIMEOUT")
async def silence_in_mid_body(exchange: Exchange) -> None:
    await exchange.send(head("200 OK", "Content-Length: 1000"), b'{"text": "')
    await exchange.pause(math.inf)


@fault("TIMEOUT")
async def late_answer(exchange: Exchange) -> None:
    await exchange.pause(exchange.server.late)
    await exchange.respond(exchange.good)


@fault("TIMEOUT")
async def interim_responses_for_ever(exchange: Exchange) -> None:
    while True:
        await exchange.send(b"HTTP/1.1 102 Processing\r\n\r\n")
        await exchange.pause(exchange.server.beat)


@fault("CONNECTION", arrive=0)
async def refused(exchange: Exchange) -> None:
    raise AssertionError("nobody listens")


@fault("CONNECTION")
async def reset_at_connect(exchange: Exchange) -> None:
    exchange.reset()


@fault("CONNECTION")
async def reset_before_the_answer(exchange: Exchange) -> None:
    exchange.reset()


@fault("CONNECTION")
async def reset_in_mid_body(exchange: Exchange) -> None:
    await exchange.send(head("200 OK", "Content-Length: 1000"), b'{"text": "')
    await asyncio.sleep(0)
    exchange.reset()


@fault("CONNECTION")
async def hung_up_without_an_answer(exchange: Exchange) -> None:
    exchange.last = True


status_fault("RATE_LIMITED", "429 Too Many Requests", requests=4, name="429 for ever")
status_fault("RATE_LIMITED", "429 Too Many Requests", "Retry-After: 5", requests=4, name="429, Retry-After 5")
status_fault("RATE_LIMITED", "429 Too Many Requests", "Retry-After: -7", requests=4, name="429, Retry-After negative")
status_fault("RATE_LIMITED", "429 Too Many Requests", "Retry-After: soon", requests=4, name="429, Retry-After in words")
status_fault("RATE_LIMITED", "429 Too Many Requests", "Retry-After: 3600", name="429, Retry-After beyond T")


@fault("RATE_LIMITED", "429, Retry-After date", requests=4)
async def retry_after_date(exchange: Exchange) -> None:
    date = formatdate(exchange.server.clock.wall() + 3, usegmt=True)
    await exchange.respond(b"", "429 Too Many Requests", f"Retry-After: {date}")


@fault("RATE_LIMITED", "429, Retry-After date beyond T")
async def retry_after_date_beyond(exchange: Exchange) -> None:
    date = formatdate(exchange.server.clock.wall() + 3600, usegmt=True)
    await exchange.respond(b"", "429 Too Many Requests", f"Retry-After: {date}")


for _status in ("500 Internal Server Error", "503 Service Unavailable", "599 Odd"):
    status_fault("INTERNAL", _status)
for _status in ("400 Bad Request", "401 Unauthorized", "404 Not Found", "422 Unprocessable"):
    status_fault("INVALID_REQUEST", _status)
for _status in ("301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"):
    status_fault("INVALID_RESPONSE", _status, "Location: /elsewhere")
status_fault("INVALID_RESPONSE", "302 Found", "Location: http://[::bad", name="302 to nowhere")


@fault("INVALID_RESPONSE", "204 without a body")
async def no_content(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 204 No Content\r\n\r\n")


@fault("INVALID_RESPONSE")
async def truncated(exchange: Exchange) -> None:
    await exchange.respond(exchange.good[:-3], length=len(exchange.good))
    exchange.last = True


@fault("INVALID_RESPONSE")
async def truncated_chunks(exchange: Exchange) -> None:
    await exchange.send(head("200 OK", "Transfer-Encoding: chunked"), b'5\r\n{"tex\r\n')
    exchange.last = True


@fault("INVALID_RESPONSE")
async def no_http(exchange: Exchange) -> None:
    await exchange.send(b"+OK ready\r\n\r\n")
    exchange.last = True


@fault("INVALID_RESPONSE")
async def headers_without_end(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\nX-More: ", b"a" * 300_000)
    exchange.last = True


@fault("INVALID_RESPONSE")
async def swapped_answer(exchange: Exchange) -> None:
    await exchange.respond(json.dumps({**json.loads(exchange.good), "request_id": "of another"}).encode())


body_fault("INVALID_RESPONSE", "html", lambda: b"<!DOCTYPE html><html><body>Welcome</body></html>")
body_fault("INVALID_RESPONSE", "empty", lambda: b"")
body_fault("INVALID_RESPONSE", "not UTF-8", lambda: b'{"action": 0, "text": "\xff\xfe"}')
body_fault("INVALID_RESPONSE", "UTF-16", lambda: '{"action": 0}'.encode("utf-16"))
body_fault("INVALID_RESPONSE", "byte order mark", lambda: b'\xef\xbb\xbf{"action": 0}')
body_fault("INVALID_RESPONSE", "half a surrogate", lambda: b'{"action": 0, "text": ["\\ud800"]}')
body_fault("INVALID_RESPONSE", "a list", lambda: b'[{"action": 0}]')
body_fault("INVALID_RESPONSE", "a number", lambda: b"0")
body_fault("INVALID_RESPONSE", "null", lambda: b"null")
body_fault("INVALID_RESPONSE", "two objects", lambda: b'{"action": 0}{"action": 1}')
body_fault("INVALID_RESPONSE", "text without an end", lambda: b'{"action": "' + b'\\"' * 10_000 + b"\\")
body_fault("INVALID_RESPONSE", "double keys", lambda: b'{"action": 0, "action": 1}')
body_fault("INVALID_RESPONSE", "double keys inside", lambda: b'{"debug": [{"a": 0, "\\u0061": 1}], "action": 0}')
body_fault("INVALID_RESPONSE", "100,000 deep", lambda: b'{"action":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
body_fault("INVALID_RESPONSE", "100,000 deep objects", lambda: b'{"a":' * 100_000 + b"0" + b"}" * 100_000)
body_fault("INVALID_RESPONSE", "33 deep", lambda: b'{"action":' + b"[" * 32 + b"]" * 32 + b"}")
body_fault("INVALID_ACTION", "NaN", lambda: b'{"action": NaN}')
body_fault("INVALID_ACTION", "minus Infinity", lambda: b'{"action": [0.0, -Infinity]}')
body_fault("INVALID_ACTION", "1e999", lambda: b'{"action": 1e999}')
body_fault("INVALID_ACTION", "a million digits", lambda: b'{"action": 1' + b"0" * 999_999 + b"}")
body_fault("RESPONSE_TOO_LARGE", "more than 1 MiB", lambda: b'{"text": "' + b"a" * MIB + b'"}')
body_fault("RESPONSE_TOO_LARGE", "many values", lambda: b'{"text": [' + b"[]," * 340_000 + b"0]}")
body_fault("RESPONSE_TOO_LARGE", "wide text", lambda: ('{"text": "😀' + "a" * (MIB - 50) + '"}').encode())
body_fault("RESPONSE_TOO_LARGE", "gzip", lambda: gzip.compress(b'{"action": 0}'), "Content-Encoding: gzip")
body_fault("RESPONSE_TOO_LARGE", "gzip bomb", lambda: gzip.compress(b" " * 32 * MIB), "Content-Encoding: gzip")
body_fault("RESPONSE_TOO_LARGE", "unknown encoding", lambda: b'{"action": 0}', "Content-Encoding: br, identity")


@fault("RESPONSE_TOO_LARGE")
async def chunks_without_end(exchange: Exchange) -> None:
    await exchange.send(head("200 OK", "Transfer-Encoding: chunked"))
    while True:
        await exchange.send(b"10000\r\n" + b" " * 65_536 + b"\r\n")


@fault("RESPONSE_TOO_LARGE")
async def chunks_of_a_little_more_than_1_MiB(exchange: Exchange) -> None:
    body = b'{"text": "' + b"a" * MIB + b'"}'
    await exchange.send(head("200 OK", "Transfer-Encoding: chunked"), b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))


@fault("RESPONSE_TOO_LARGE")
async def chunks_of_one_byte_with_much_around_it(exchange: Exchange) -> None:
    await exchange.send(head("200 OK", "Transfer-Encoding: chunked"))
    for byte in exchange.good:
        await exchange.send(b"1;" + b"a" * 80_000 + b"\r\n" + bytes([byte]) + b"\r\n")
    await exchange.send(b"0\r\n\r\n")


@fault("RESPONSE_TOO_LARGE", "Content-Length too large")
async def length_too_large(exchange: Exchange) -> None:
    await exchange.respond(exchange.good, length=10 * 1024 * MIB)
    exchange.last = True


@fault("RESPONSE_TOO_LARGE", "Content-Length too small")
async def length_too_small(exchange: Exchange) -> None:
    await exchange.respond(exchange.good + b" " * 5, length=len(exchange.good))


class FaultServer:
    """See the module; `beat` and `late` are the pauses of its behaviours, s.

    Attributes: answer: what a good agent makes of a request; requests: that arrived, also the connections that were
        reset before one could; heads, bodies: what arrived, where `record` is set; arrivals: when,
        `time.perf_counter()`; most_in_flight: requests that were under way at the same time.
    """

    def __init__(
        self,
        *faults: str | Fault,
        clock: Pausing | None = None,
        answer: Callable[[Json], Json] | None = None,
        record: bool = False,
        beat: float = 1.0,
        late: float = 60.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        chosen = [each if isinstance(each, Fault) else GOOD if each == "good" else FAULTS[each] for each in faults]
        self.faults = tuple(chosen) or (GOOD,)
        self.clock = clock or RealPauses()
        self.answer = answer or (lambda request: {"request_id": request.get("request_id"), "action": 0})
        self.record, self.beat, self.late, self.tls = record, beat, late, tls
        self.requests = self.in_flight = self.most_in_flight = 0
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.arrivals: list[float] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault server", daemon=True)
        self._closed_port: socket.socket | None = None
        self._handlers: set[asyncio.Task[None]] = set()
        self._transports: WeakSet[asyncio.WriteTransport] = WeakSet()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/respond"

    def __enter__(self) -> Self:
        if self.faults[0].behave is refused:
            self._closed_port = socket.socket()
            self._closed_port.bind(("127.0.0.1", 0))  # and never listens: nobody else gets the port
            self.port = self._closed_port.getsockname()[1]
        self._thread.start()
        if self._closed_port is None:
            self._server = self._run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self._closed_port is not None:
            self._closed_port.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=4 * MIB, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _stop(self) -> None:
        if self._closed_port is None:
            self._server.close()
        for handler in self._handlers:
            handler.cancel()
        if self._handlers:
            await asyncio.wait(self._handlers)
        for transport in self._transports:
            transport.abort()
        for _ in range(5):
            await asyncio.sleep(0)  # they close in the next passes of the loop

    def _next(self) -> Fault:
        return self.faults[min(self.requests, len(self.faults) - 1)]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        self._transports.add(writer.transport)
        task.add_done_callback(self._handlers.discard)
        try:
            if self._next().behave is reset_at_connect:
                self.requests += 1
                Exchange(self, reader, writer, b"").reset()
            while not writer.is_closing():
                await self._exchange(reader, writer)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError, HungUp):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read a request, do what is to be done to it."""
        header = await reader.readuntil(b"\r\n\r\n")
        lengths = [line[15:] for line in header.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        body = await reader.readexactly(int(lengths[0]))
        self.arrivals.append(time.perf_counter())
        chosen = self._next()
        self.requests += 1
        if self.record:
            self.heads.append(header)
            self.bodies.append(body)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        exchange = Exchange(self, reader, writer, body)
        try:
            await chosen.behave(exchange)
        finally:
            self.in_flight -= 1
        if exchange.last:
            writer.close()
