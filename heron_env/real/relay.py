"""A network made out of loopback: a process between hub and nodes that delays, loses and copies what passes.

    python -m heron_env.real.relay udp --to 127.0.0.1:7400 --delay 0.035 --ratio 0.5 --burst 0.02:0.3:0.8 --seed 1

It prints {"listening": "127.0.0.1:PORT"} and runs until SIGTERM comes or its stdin closes.
"""

import argparse
import asyncio
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from typing import Any, Final

from heron_env.errors import ConfigError
from heron_env.real.transports import host_and_port, is_loopback, joined, opened
from heron_env.scheduling.links import deviation
from heron_env.seeding import stream

RETRANSMISSION_S: Final = 0.2
"""A loss stops a TCP stream for so long: the least after which Linux sends again."""
MOST_CLIENTS: Final = 256
"""Of a UDP relay; the oldest goes where one more comes."""
PIECE, MOST_PIECES = 16_384, 64
"""Bytes of a TCP stream that are delayed as one, and how many pieces are under way before it is read no further."""


@dataclass(frozen=True)
class Link:
    """What happens in each direction to each datagram, or to each piece of a TCP stream, whose order stays.

    Attributes:
        delay, ratio: lognormal, its mean in s and its standard deviation / mean; ratio 0: constant.
        loss: the probability of a loss, which stops a TCP stream for 0.2 s.
        burst: the chain of Gilbert and Elliott, which moves at each one: P(enter), P(leave), P(loss) while inside.
        copies: the probability that a datagram arrives twice.
        breaks: the probability that the TCP connection breaks.
        seed: of all draws.
    """

    delay: float = 0.0
    ratio: float = 0.0
    loss: float = 0.0
    burst: tuple[float, ...] = (0.0, 1.0, 0.0)
    copies: float = 0.0
    breaks: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise ConfigError for what is out of range."""
        for name in ("loss", "burst", "copies", "breaks"):
            value = getattr(self, name)
            if not all(0.0 <= chance <= 1.0 for chance in (value if name == "burst" else (value,))):
                raise ConfigError(f"{name}={value!r:.100}: a probability is between 0 and 1")
        if len(self.burst) != 3:
            raise ConfigError(f"burst={self.burst!r:.100}: must be three: P(enter), P(leave), P(loss) while inside")
        if not (0.0 <= self.delay <= 60.0 and 0.0 <= self.ratio <= 10.0):
            raise ConfigError(f"delay={self.delay!r}, ratio={self.ratio!r}: must be within 0 to 60 s and 0 to 10")


class Direction:
    """One direction of one client's traffic; each piece has as many draws, whatever the options."""

    def __init__(self, link: Link, *names: str | int) -> None:
        self._link, self._draws, self._inside = link, stream(link.seed, *names), False

    def fate(self) -> tuple[bool, bool, list[float]]:
        """Of the next piece: whether it is lost, whether the connection breaks; delays of it and its copy, s."""
        link, (move, lost, lost_inside, copied, broken, *delays) = self._link, self._draws.random(7).tolist()
        enter, leave, loss = link.burst
        self._inside = move >= leave if self._inside else move < enter
        spread = [link.delay * (1.0 + deviation("lognormal", link.ratio, u)) for u in delays]
        is_lost = lost < link.loss or (self._inside and lost_inside < loss)
        return is_lost, broken < link.breaks, spread[: 1 + (copied < link.copies)]


class UdpRelay:
    """Has a socket towards the hub for each client, as a router with address translation does."""

    def __init__(self, listen: tuple[str, int], to: tuple[str, int], link: Link) -> None:
        self._to, self._link, self._number = to, link, 0
        self._clients = dict[Any, tuple[socket.socket, Direction]]()
        self._front = self._watched(self._upwards, listen[0])
        self._front.bind(listen)
        self.listening = joined(self._front.getsockname())

    def _watched(self, read: Callable[..., None], host: str, *values: Any) -> socket.socket:
        made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        made.setblocking(False)
        asyncio.get_running_loop().add_reader(made, read, made, *values)
        return made

    def _upwards(self, front: socket.socket) -> None:
        with suppress(OSError):
            data, client = front.recvfrom(65_536)
            if client not in self._clients:
                self._clients[client] = self._joined(client)
            back, direction = self._clients[client]
            pass_on(direction, back.send, data)

    def _joined(self, client: Any) -> tuple[socket.socket, Direction]:
        if len(self._clients) == MOST_CLIENTS:
            oldest, _ = self._clients.pop(next(iter(self._clients)))
            asyncio.get_running_loop().remove_reader(oldest)
            oldest.close()
        self._number += 1
        back = self._watched(self._downwards, self._to[0], client, Direction(self._link, "down", self._number))
        back.connect(self._to)
        return back, Direction(self._link, "up", self._number)

    def _downwards(self, back: socket.socket, client: Any, direction: Direction) -> None:
        with suppress(OSError):  # ICMP: nobody listens there
            pass_on(direction, lambda data: self._front.sendto(data, client), back.recv(65_536))


def pass_on(direction: Direction, send: Callable[[bytes], object], data: bytes) -> None:
    """Send a datagram, and its copy, after their delays; what the system does not take is lost."""

    def put() -> None:
        with suppress(OSError):
            send(data)

    lost, _, delays = direction.fate()
    for delay in () if lost else delays:
        asyncio.get_running_loop().call_later(delay, put)


class TcpRelay:
    """Has a connection to the hub for each client's."""

    def __init__(self, to: tuple[str, int], link: Link) -> None:
        self._to, self._link, self._number = to, link, 0
        self._tasks = set[asyncio.Task[None]]()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client's."""
        self._number += 1
        up, down = (Direction(self._link, way, self._number) for way in ("up", "down"))
        self._tasks.add(task := asyncio.create_task(self._connection(reader, writer, up, down)))
        task.add_done_callback(self._tasks.discard)

    async def _connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, up: Direction, down: Direction
    ) -> None:
        ends = [writer]
        try:
            back, ahead = await asyncio.open_connection(*self._to)
            ends.append(ahead)
            async with asyncio.TaskGroup() as both:
                both.create_task(forward(reader, ahead, up))
                both.create_task(forward(back, writer, down))
        except* OSError:  # broken by an end, or by us: both ends notice
            for end in ends:
                end.transport.abort()
        finally:
            for end in ends:
                end.close()


async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Direction) -> None:
    """Pass a stream on, each piece after its delay and none before another. Raises OSError where it breaks."""
    loop, due, pieces = asyncio.get_running_loop(), 0.0, asyncio.Queue[tuple[float, bytes]](MOST_PIECES)

    async def write() -> None:
        data = b"any"
        while data:
            at, data = await pieces.get()
            await asyncio.sleep(at - loop.time())
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    async with asyncio.TaskGroup() as writing:
        writing.create_task(write())
        data = b"any"
        while data:
            data = await reader.read(PIECE)
            lost, broken, (delay, *_) = direction.fate()
            if broken:
                raise ConnectionResetError
            due = max(due, loop.time() + delay + lost * RETRANSMISSION_S)
            await pieces.put((due, data))


def places(kind: str, listen: str, to: str, link: Link) -> tuple[tuple[str, int], tuple[str, int]]:
    """Where a relay listens and to whom it passes on. Raises ConfigError."""
    if kind not in ("udp", "tcp") or (link.copies if kind == "tcp" else link.breaks):
        raise ConfigError(f"relay({kind!r:.60}): must be 'udp', which has no breaks, or 'tcp', which has no copies")
    ends = host_and_port(listen), host_and_port(to)
    for host, _ in ends:
        if not is_loopback(host):
            raise ConfigError(f"{host!r:.100}: a relay is for this machine alone; take 127.0.0.1")
    return ends


async def serve(kind: str, listen: str, to: str, link: Link) -> None:
    """Relay until SIGTERM comes or stdin closes. Raises ConfigError."""
    front, back = places(kind, listen, to, link)
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_reader(sys.stdin, lambda: None if os.read(sys.stdin.fileno(), 4_096) else stop.set())
    if kind == "udp":
        listening = UdpRelay(front, back, link).listening
    else:
        server = await opened(listen, asyncio.start_server(TcpRelay(back, link).accept, *front))
        listening = joined(server.sockets[0].getsockname())
    print(json.dumps({"listening": listening}), flush=True)
    await stop.wait()


@contextmanager
def relay(kind: str, to: str, **options: Any) -> Iterator[str]:
    """A relay in a process of its own: the address where it listens. Raises ConfigError.

    Args:
        kind: "udp" or "tcp".
        to: where the hub, or the broker, listens.
        options: those of `Link`.
    """
    link = Link(**options)
    places(kind, "127.0.0.1:0", to, link)
    words = [
        f"--{name}={':'.join(map(str, value)) if name == 'burst' else value}" for name, value in vars(link).items()
    ]
    command = [sys.executable, "-m", __name__, kind, f"--to={to}", *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if not (line := process.stdout.readline()):
            raise ConfigError(f"the relay to {to!r:.100} did not start: see what it printed")
        yield json.loads(line)["listening"]
    finally:
        try:
            process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m heron_env.real.relay")
    parser.add_argument("kind", choices=("udp", "tcp"))
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--to", required=True)
    for option in fields(Link):
        reads = three if option.name == "burst" else type(option.default)
        parser.add_argument(f"--{option.name}", type=reads, default=option.default)
    words = vars(parser.parse_args())
    kind, listen, to = (words.pop(name) for name in ("kind", "listen", "to"))
    try:
        # select() waits to the microsecond, epoll to the millisecond
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
            runner.run(serve(kind, listen, to, Link(**words)))
    except ConfigError as error:
        parser.error(str(error))


def three(text: str) -> tuple[float, ...]:
    """ENTER:LEAVE:LOSS."""
    return tuple(map(float, text.split(":")))


if __name__ == "__main__":
    main()
