"""How frames travel between the hub and its nodes: over UDP or TCP here, over others by name.

A frame is a string of bytes that no transport looks into. Nothing that comes from the network raises: it is refused and
counted. Nothing that leaves waits without a limit: it is dropped and counted. All methods run in one event loop.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from heron_env.errors import ConfigError, checked_keywords, did_you_mean

T = TypeVar("T")
Receive = Callable[[str, bytes, int], None]
"""Of each frame: the sender's address, the bytes, time.monotonic_ns() of its arrival. May call `prove` and `drop`."""

LARGEST, LARGEST_DATAGRAM = 65_536, 1_200
"""Bytes of a frame: of any, and over UDP, where it is one packet on every common path."""
MOST_WAITING: Final = 262_144
"""Bytes of one connection that wait for the network."""
UNPROVED, UNPROVED_S, UNPROVED_BYTES = 16, 2.0, 4_096
"""Connections to a hub without a proved frame: how many, for how long, and what each may send."""
FIRST_PAUSE_S, LAST_PAUSE_S, CONNECT_S = 0.1, 2.0, 5.0
"""Before connecting again, doubled from the first to the last; how long one try may last."""


class Transport:
    """One side of a transport, hub or node.

    Attributes:
        address: where it listens, or what it connects to; `largest`: bytes of a frame.
        dropped: how many frames had no room or no connection.
        refused: how many frames and connections were not accepted, by reason.
    """

    _receive: Receive

    def __init__(self, address: str, largest: int) -> None:
        self.address, self.largest = address, largest
        self.dropped, self.refused = 0, Counter[str]()

    async def open(self, receive: Receive) -> str:
        """Start; returns where nodes connect. A node waits for its first connection. Raises ConfigError."""
        raise NotImplementedError

    async def close(self) -> None:
        """End every connection."""
        raise NotImplementedError

    def _put(self, to: str, frame: bytes) -> bool:
        raise NotImplementedError

    def refuse(self, reason: str) -> bool:
        """Count; False."""
        self.refused[reason] += 1
        return False

    def fits(self, frame: bytes) -> bool:
        """Whether a frame of its length is allowed; counted where not."""
        return 0 < len(frame) <= self.largest or self.refuse("length")

    def has_room(self, frame: bytes, waiting: int | None) -> bool:
        """Whether a frame may join so many bytes that wait; None: there is no connection. Counted where not."""
        if not self.fits(frame):
            return False
        if waiting is None or waiting + len(frame) > MOST_WAITING:
            self.dropped += 1
            return False
        return True


class HubTransport(Transport):
    """The hub's side; the addresses of nodes are opaque. It sends nothing to an address that is not proved."""

    def __init__(self, address: str, largest: int) -> None:
        super().__init__(address, largest)
        self._proved = set[str]()

    def send(self, to: str, frame: bytes) -> bool:
        """Never waits; False: dropped or refused."""
        return self._put(to, frame) if to in self._proved else self.refuse("unproved")

    def prove(self, address: str) -> None:
        """A frame from there was genuine: it may be answered, and its connection stays."""
        self._proved.add(address)

    def drop(self, address: str) -> None:
        """No more answers go there, and its connection ends."""
        self._proved.discard(address)


class NodeTransport(Transport):
    """A node's side, which has one hub."""

    def send(self, frame: bytes) -> bool:
        """Never waits; False: dropped or refused."""
        return self._put(self.address, frame)


class Udp(Transport, asyncio.DatagramProtocol):
    """A socket for datagrams, each of them a frame."""

    end = "local_addr"
    _socket: Any = None  # typeshed's DatagramTransport lacks get_write_buffer_size

    @checked_keywords
    def __init__(self, address: str, *, largest: int = LARGEST_DATAGRAM) -> None:
        super().__init__(address, largest)
        self._place = host_and_port(address)

    async def open(self, receive: Receive) -> str:
        self._receive = receive
        loop, places = asyncio.get_running_loop(), {self.end: self._place}
        await opened(self.address, loop.create_datagram_endpoint(lambda: self, **places))  # type: ignore[arg-type]
        end: socket.socket = self._socket.get_extra_info("socket")
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MOST_WAITING)  # for bursts: all nodes at one tick
        return joined(end.getsockname())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = transport

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        ns = time.monotonic_ns()
        if self.fits(data):
            self._receive(joined(addr), data, ns)

    def error_received(self, exc: Exception) -> None:
        self.refuse("unreachable")  # ICMP: the other side is gone, or not there yet

    def _put(self, to: str, frame: bytes) -> bool:
        closed = self._socket is None or self._socket.is_closing()
        if sent := self.has_room(frame, None if closed else self._socket.get_write_buffer_size()):
            self._socket.sendto(frame, None if self.end == "remote_addr" else host_and_port(to))
        return sent

    async def close(self) -> None:
        if self._socket is not None:
            self._socket.abort()
            await asyncio.sleep(0)  # the loop closes it in its next round


class UdpHub(Udp, HubTransport):
    """Listens at `address`, HOST:PORT, port 0: any."""


class UdpNode(Udp, NodeTransport):
    """Sends to the hub at `address`, and receives from there alone."""

    end = "remote_addr"


class Tcp(Transport):
    """Connections with frames, each after its length in 4 bytes, big endian. asyncio sets TCP_NODELAY."""

    @checked_keywords
    def __init__(self, address: str, *, largest: int = LARGEST) -> None:
        super().__init__(address, largest)
        self._place = host_and_port(address)
        self._writers = dict[str, asyncio.StreamWriter]()
        self._unproved = dict[str, asyncio.Timeout]()

    async def _read(self, address: str, reader: asyncio.StreamReader) -> None:
        """Pass on each frame until the connection ends, or sends what it may not. Raises OSError, EOFError."""
        consumed = 0
        while True:
            length = int.from_bytes(await reader.readexactly(4), "big")
            consumed += 4 + length
            if not 0 < length <= self.largest:
                self.refuse("length")
                return
            if address in self._unproved and consumed > UNPROVED_BYTES:
                self.refuse("unproved")
                return
            frame = await reader.readexactly(length)
            self._receive(address, frame, time.monotonic_ns())

    def _put(self, to: str, frame: bytes) -> bool:
        writer = self._writers.get(to)
        waiting = None if writer is None or writer.is_closing() else writer.transport.get_write_buffer_size()
        if sent := self.has_room(frame, waiting):
            self._writers[to].write(len(frame).to_bytes(4, "big") + frame)
        return sent


class TcpHub(Tcp, HubTransport):
    """Listens at `address`, HOST:PORT, port 0: any. Connections that are not proved are few, and end soon."""

    _server: asyncio.Server | None = None
    ended: Callable[[str], None] | None = None
    """Called with the address of each connection that has ended."""

    async def open(self, receive: Receive) -> str:
        self._receive, self._tasks = receive, set[asyncio.Task[None]]()
        self._server = await opened(self.address, asyncio.start_server(self._accept, *self._place))
        return joined(self._server.sockets[0].getsockname())

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = joined(writer.get_extra_info("peername"))
        self._writers[address] = writer
        self._tasks.add(task := asyncio.create_task(self._serve(address, reader, writer)))
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(UNPROVED_S) as limit:
                if len(self._unproved) == UNPROVED:
                    self._limit(next(iter(self._unproved)), 0.0)  # the oldest ends
                self._unproved[address] = limit
                await self._read(address, reader)
        except (OSError, EOFError):
            if limit.expired():
                self.refuse("unproved")
        finally:
            writer.transport.abort()
            if self._writers.get(address) is writer:  # and no new connection from the same place
                del self._writers[address]
                self._unproved.pop(address, None)
                if self.ended is not None:
                    self.ended(address)

    def send(self, to: str, frame: bytes) -> bool:
        """To any connection: who has one has shown that it is at its address."""
        return self._put(to, frame)

    def _limit(self, address: str, end: float | None) -> None:
        limit = self._unproved.pop(address, None)
        if limit is not None and not limit.expired():
            limit.reschedule(end)

    def prove(self, address: str) -> None:
        self._limit(address, None)

    def drop(self, address: str) -> None:
        if address in self._writers:
            self._writers[address].close()  # what was sent before has a moment to arrive
            asyncio.get_running_loop().call_later(UNPROVED_S, self._writers[address].transport.abort)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            for writer in self._writers.values():
                writer.transport.abort()
            await asyncio.gather(*self._tasks)
            await self._server.wait_closed()


class Reconnecting(Transport):
    """Connects to a server, and again whenever its `_session`, one connection, ends."""

    broken: tuple[type[Exception], ...] = (OSError, EOFError)
    """What ends a session without being a fault of ours."""
    _task: asyncio.Task[None] | None = None

    async def open(self, receive: Receive) -> str:
        self._receive, self._closing = receive, False
        self._first = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._reconnect())
        await asyncio.wait({self._task, self._first}, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done() and not self._closing:
            await self._task  # raises what never worked
        return self.address

    async def _session(self) -> None:
        """Connect, call `_connected`, wait for the end of the connection."""
        raise NotImplementedError

    def _connected(self) -> None:
        if not self._first.done():
            self._first.set_result(None)

    async def _reconnect(self) -> None:
        pause = FIRST_PAUSE_S
        while not self._closing:
            begun = time.monotonic()
            try:
                await self._session()
            except self.broken:
                pass  # counted below
            except ConfigError:
                if not self._first.done():
                    raise
            self.refuse("broken connection")
            pause = FIRST_PAUSE_S if time.monotonic() - begun > LAST_PAUSE_S else pause
            await asyncio.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE_S)

    async def close(self) -> None:
        if self._task is not None:
            self._closing = True  # aiomqtt may put an error of its own in place of the cancellation
            self._connected()
            self._task.cancel()
            await asyncio.wait({self._task})


class TcpNode(Tcp, Reconnecting, NodeTransport):
    """Connects to the hub at `address`. What leaves while there is no connection is dropped."""

    async def _session(self) -> None:
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(*self._place)
        self._writers[self.address] = writer
        self._connected()
        try:
            await self._read(self.address, reader)
        finally:
            writer.transport.abort()


GROUP: Final = "heron_env.transports"
"""Entry points of other packages, each a pair of classes, HubTransport and NodeTransport."""
UDP: Final = (UdpHub, UdpNode)
TCP: Final = (TcpHub, TcpNode)
OURS: Final = {"udp": f"{__name__}:UDP", "tcp": f"{__name__}:TCP", "mqtt": "heron_env.real.mqtt:MQTT"}


def hub_transport(name: str, address: str, **options: Any) -> HubTransport:
    """The hub's side of a transport; `address`: "127.0.0.1:0", or a broker's URL. Raises ConfigError."""
    return _sides(name)[0](address, **options)


def node_transport(name: str, address: str, **options: Any) -> NodeTransport:
    """A node's side; `address`: what `open` of the hub's side returned. Raises ConfigError."""
    return _sides(name)[1](address, **options)


def _sides(name: str) -> tuple[Callable[..., HubTransport], Callable[..., NodeTransport]]:
    values = {entry.name: entry.value for entry in entry_points(group=GROUP)} | OURS
    if name not in values:
        raise ConfigError(
            f"transport={name!r:.100}: must be one of {', '.join(map(repr, values))}.{did_you_mean(name, values)}"
        )
    try:
        hub, node = EntryPoint(name, values[name], GROUP).load()
    except ImportError as error:
        install = f"pip install 'heron_env[{name}]'" if name in OURS else "install its package anew"
        raise ConfigError(f"transport={name!r}: {error}; {install}") from error
    return hub, node


async def opened(address: str, opening: Awaitable[T]) -> T:
    """What it opens. Raises ConfigError where the system refuses."""
    try:
        return await opening
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"address {address!r:.100}: {error}; take another, or port 0 for any free one") from error


def host_and_port(address: str) -> tuple[str, int]:
    """Of "HOST:PORT" or "[::1]:8080". Raises ConfigError."""
    try:
        parts = urlsplit(f"//{address}")
        if parts.hostname and parts.port is not None and parts.netloc == address and "@" not in address:
            parts.hostname.encode("idna")
            return parts.hostname, parts.port
    except ValueError:
        pass  # the words below say it all
    raise ConfigError(f"address {address!r:.100}: must be HOST:PORT, as '127.0.0.1:7400' or '[::1]:7400'")


def joined(place: tuple[Any, ...]) -> str:
    """HOST:PORT of a socket's address."""
    host, port = place[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its name or address alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
