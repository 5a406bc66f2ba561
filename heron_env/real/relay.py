"""A network made out of loopback: a process between hub and nodes that delays, loses and copies what passes.

    python -m heron_env.real.relay udp --to 127.0.0.1:7400 --delay 0.035 --ratio 0.5 --burst 0.02:0.3:0.8 --seed 1

It prints {"listening": "127.0.0.1:PORT"} and runs until SIGTERM comes or its stdin closes.
"""

import argparse
import asyncio
import json
import math
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Final

from heron_env.errors import ConfigError
from heron_env.real.transports import host_and_port, is_loopback, joined, opened
from heron_env.seeding import standard_normal, stream

RETRANSMISSION_S: Final = 0.2
"""A loss stops a TCP stream for so long: the least after which Linux sends again."""
PIECE, MOST_PIECES = 16_384, 64
"""Bytes of a TCP stream that are delayed as one, and how many pieces are under way before it is read no further."""


@dataclass(frozen=True)
class Impairment:
    """What happens in each direction to each datagram, or to each piece of a TCP stream, whose order stays.

    Attributes:
        delay, ratio: lognormal, its mean in s and its standard deviation / mean; ratio 0: constant.
        loss: the probability of a loss, which stops a TCP stream for 0.2 s.
        burst: the chain of Gilbert and Elliott, which moves at each one: P(enter), P(leave), P(loss) while inside.
        copies: the probability that a datagram arrives twice; `breaks`: that the TCP connection breaks.
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
        chances = {"loss": (self.loss,), "burst": self.burst, "copies": (self.copies,), "breaks": (self.breaks,)}
        for name, values in chances.items():
            if not all(0.0 <= chance <= 1.0 for chance in values):
                raise ConfigError(f"{name}={getattr(self, name)!r:.100}: a probability is between 0 and 1")
        if len(self.burst) != 3:
            raise ConfigError(f"burst={self.burst!r:.100}: must be three: P(enter), P(leave), P(loss) while inside")
        if not (0.0 <= self.delay <= 60.0 and 0.0 <= self.ratio <= 10.0):
            raise ConfigError(f"delay={self.delay!r}, ratio={self.ratio!r}: must be within 0 to 60 s and 0 to 10")


class Direction:
    """One direction of one client's traffic; each piece has as many draws, whatever the options."""

    def __init__(self, law: Impairment, way: str, client: int) -> None:
        self._law, self._draws, self._inside = law, stream(law.seed, way, client), False

    def fate(self) -> tuple[bool, bool, list[float]]:
        """Of the next piece: whether it is lost, whether the connection breaks; delays of it and its copy, s."""
        law, (move, lost, lost_inside, copied, broken, *delays) = self._law, self._draws.random(7).tolist()
        enter, leave, loss = law.burst
        self._inside = move >= leave if self._inside else move < enter
        s = math.sqrt(math.log1p(law.ratio**2))
        spread = [law.delay * math.exp(s * standard_normal(u) - s * s / 2) for u in delays]
        is_lost = lost < law.loss or (self._inside and lost_inside < loss)
        return is_lost, broken < law.breaks, spread[: 1 + (copied < law.copies)]

    def pass_on(self, send: Callable[[bytes], object], data: bytes) -> None:
        """Send a datagram, and its copy, after their delays."""
        lost, _, delays = self.fate()
        for delay in () if lost else delays:
            asyncio.get_running_loop().call_later(delay, attempt, send, data)


def attempt(send: Callable[[bytes], object], data: bytes) -> None:
    """Send; lost where the system does not take it."""
    with suppress(OSError):
        send(data)


def relay_datagrams(listen: tuple[str, int], to: tuple[str, int], law: Impairment) -> str:
    """With a socket towards the hub for each client, as a router translates addresses; returns where it listens."""
    loop, clients = asyncio.get_running_loop(), dict[Any, Callable[[bytes], None]]()

    def datagrams(host: str) -> socket.socket:
        made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        made.setblocking(False)
        return made

    def upwards() -> None:
        with suppress(OSError):
            data, client = front.recvfrom(65_536)
            if client not in clients:
                up, down = (Direction(law, way, len(clients)) for way in ("up", "down"))
                back = datagrams(to[0])
                back.connect(to)
                loop.add_reader(back, downwards, back, down, lambda data: front.sendto(data, client))
                clients[client] = partial(up.pass_on, back.send)
            clients[client](data)

    def downwards(back: socket.socket, down: Direction, send: Callable[[bytes], object]) -> None:
        with suppress(OSError):  # ICMP: nobody listens there
            down.pass_on(send, back.recv(65_536))

    front = datagrams(listen[0])
    front.bind(listen)
    loop.add_reader(front, upwards)
    return joined(front.getsockname())


async def relay_streams(listen: tuple[str, int], to: tuple[str, int], law: Impairment) -> str:
    """With a connection to the hub for each client's; returns where it listens."""
    tasks = list[asyncio.Task[None]]()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.create_task(connect(reader, writer, len(tasks))))

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: int) -> None:
        ends = [writer]
        try:
            back, ahead = await asyncio.open_connection(*to)
            ends.append(ahead)
            async with asyncio.TaskGroup() as both:
                both.create_task(forward(reader, ahead, Direction(law, "up", client)))
                both.create_task(forward(back, writer, Direction(law, "down", client)))
        except* OSError:  # broken by an end, or by us: both ends notice
            for end in ends:
                end.transport.abort()
        for end in ends:
            end.close()

    server = await opened(joined(listen), asyncio.start_server(accept, *listen))
    return joined(server.sockets[0].getsockname())


async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Direction) -> None:
    """Pass a stream on, each piece after its delay and none before another. Raises OSError where it breaks."""
    loop, due, pieces = asyncio.get_running_loop(), 0.0, asyncio.Queue[tuple[float, bytes]](MOST_PIECES)

    async def write() -> None:
        while (piece := await pieces.get())[1]:
            await asyncio.sleep(piece[0] - loop.time())
            writer.write(piece[1])
            await writer.drain()
        writer.write_eof()

    async with asyncio.TaskGroup() as writing:
        writing.create_task(write())
        while data := await reader.read(PIECE):
            lost, broken, (delay, *_) = direction.fate()
            if broken:
                raise ConnectionResetError
            due = max(due, loop.time() + delay + lost * RETRANSMISSION_S)
            await pieces.put((due, data))
        await pieces.put((due, b""))


def places(kind: str, listen: str, to: str, law: Impairment) -> tuple[tuple[str, int], tuple[str, int]]:
    """Where a relay listens and to whom it passes on. Raises ConfigError."""
    if kind not in ("udp", "tcp") or (law.copies if kind == "tcp" else law.breaks):
        raise ConfigError(f"relay({kind!r:.60}): must be 'udp', which has no breaks, or 'tcp', which has no copies")
    ends = host_and_port(listen), host_and_port(to)
    for host, _ in ends:
        if not is_loopback(host):
            raise ConfigError(f"{host!r:.100}: a relay is for this machine alone; take 127.0.0.1")
    return ends


async def serve(kind: str, listen: str, to: str, law: Impairment) -> None:
    """Relay until SIGTERM comes or stdin closes. Raises ConfigError."""
    ends = places(kind, listen, to, law)
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_reader(sys.stdin, lambda: None if os.read(sys.stdin.fileno(), 4_096) else stop.set())
    listening = relay_datagrams(*ends, law) if kind == "udp" else await relay_streams(*ends, law)
    print(json.dumps({"listening": listening}), flush=True)
    await stop.wait()


@contextmanager
def relay(kind: str, to: str, **options: Any) -> Iterator[str]:
    """A relay in a process of its own: the address where it listens. Raises ConfigError.

    Args:
        kind: "udp" or "tcp".
        to: where the hub, or the broker, listens.
        options: those of `Impairment`.
    """
    law = Impairment(**options)
    places(kind, "127.0.0.1:0", to, law)
    texts = {**vars(law), "burst": ":".join(map(str, law.burst))}
    command = [sys.executable, "-m", __name__, kind, f"--to={to}", *(f"--{name}={texts[name]}" for name in texts)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:  # waits for its end
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                raise ConfigError(f"relay to {to}: it did not start; see what it printed")
            yield json.loads(line)["listening"]
        finally:
            process.terminate()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m heron_env.real.relay")
    parser.add_argument("kind", choices=("udp", "tcp"))
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--to", required=True)
    for option in fields(Impairment):
        reads = burst if option.name == "burst" else type(option.default)
        parser.add_argument(f"--{option.name}", type=reads, default=option.default)
    words = vars(parser.parse_args())
    kind, listen, to = (words.pop(name) for name in ("kind", "listen", "to"))
    try:
        # select() waits to the microsecond, epoll to the millisecond
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
            runner.run(serve(kind, listen, to, Impairment(**words)))
    except ConfigError as error:
        parser.error(str(error))


def burst(text: str) -> tuple[float, ...]:
    """ENTER:LEAVE:LOSS."""
    return tuple(map(float, text.split(":")))


if __name__ == "__main__":
    main()
