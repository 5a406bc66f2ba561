"""The network below the client: connections go to checked addresses alone, and bytes are counted."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

import httpcore

from heron_env.net.guard import LOOPBACK, Address, Guard
from heron_env.net.outcome import Code, Failure

T = TypeVar("T")


class BackgroundLoop:
    """Started with the first call, and anew in a forked process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop of this process, running."""
        with self._lock:
            if self._loop is None or self._process != os.getpid():
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                threading.Thread(target=self._loop.run_forever, name="heron_env.net", daemon=True).start()
            return self._loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Its result; an interrupted caller cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


SHARED = BackgroundLoop()


MOST_HEAD = 128 * 1024
"""Bytes of status and headers; the parser below refuses a single block above 100 kB."""

HEAD_END = re.compile(rb"\n\r?\n")

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def resolve(host: str, port: int) -> list[str]:
    """The IP addresses of a name, by the system. Raises OSError."""
    addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(where[0]) for *_, where in addresses]


class PinnedNetwork(httpcore.AsyncNetworkBackend):
    """Resolves the one endpoint's name once per connection, checks every address, and connects to those checked."""

    def __init__(self, address: Address, guard: Guard, resolve: Resolve, most_bytes: int) -> None:
        self._address, self._guard, self._resolve, self._most = address, guard, resolve, most_bytes + MOST_HEAD
        self._below = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        refused: Exception | None = None
        for ip in self._guard.checked(self._address, await self._addresses()):
            try:
                stream = await self._below.connect_tcp(ip, self._address.port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                refused = error
            else:
                return CountedStream(stream, self._most)
        raise refused or httpcore.ConnectError

    async def _addresses(self) -> Sequence[str]:
        host = self._address.host
        if host == "localhost":
            return LOOPBACK  # of the system's two this is sure
        if ":" in host or host.rpartition(".")[2].isdigit():
            return (host,)
        try:
            return await self._resolve(host, self._address.port)
        except OSError:
            return ()


class CountedStream(httpcore.AsyncNetworkStream):
    """A connection that counts what comes in answer to each request, and stops beyond `most` bytes."""

    def __init__(self, below: httpcore.AsyncNetworkStream, most: int) -> None:
        self._below, self._most = below, most
        self._received, self._head, self._written = 0, bytearray(), False

    def beyond(self, length: int) -> bool:
        """Did more come than the head and a body of that length?"""
        end = HEAD_END.search(self._head)
        return end is not None and self._received > end.end() + length

    @property
    def asked_first(self) -> bool:
        """Did anything come after the request was sent? What was there before it is no answer to it."""
        return self._received > 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next bytes; empty at the end. Raises Failure."""
        self._written = False
        data = await self._below.read(max_bytes, timeout)
        if not data and not self._received:
            raise httpcore.ReadError
        self._received += len(data)
        if self._received > self._most:
            raise Failure(Code.RESPONSE_TOO_LARGE, "its answer has too many bytes")
        if not HEAD_END.search(self._head):
            self._head += data
            while self._head.startswith(b"HTTP/1.1 1") and (end := HEAD_END.search(self._head)):
                self._received -= end.end()
                del self._head[: end.end()]
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send; the first bytes after an answer begin the next count."""
        if not self._written:
            self._received, self._head, self._written = 0, bytearray(), True
        await self._below.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._below.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return CountedStream(await self._below.start_tls(ssl_context, server_hostname, timeout), self._most)

    def get_extra_info(self, info: str) -> Any:
        return self._below.get_extra_info(info)
