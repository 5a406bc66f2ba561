"""Laws of the transports over UDP and TCP: frames cross intact and counted, and a stranger can do no harm."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import Counter
from importlib.metadata import EntryPoint
from itertools import pairwise
from typing import Any

import pytest
from real.wire_kit import Inbox, free_port, resident, run, until

from heron_env.errors import ConfigError, UnknownArgument
from heron_env.real import transports
from heron_env.real.transports import (
    LARGEST,
    LARGEST_DATAGRAM,
    MOST_WAITING,
    UNPROVED,
    UNPROVED_BYTES,
    hub_transport,
    node_transport,
)
from heron_env.seeding import stream

pytestmark = pytest.mark.law
BOTH = pytest.mark.parametrize("name", ["udp", "tcp"])


def random_frames(count: int, largest: int = 1_000) -> list[bytes]:
    draws = stream(0, "frames", largest)
    return [draws.bytes(int(n)) for n in draws.integers(1, largest + 1, count)]


async def pair(name: str, listen: str = "127.0.0.1:0", proving: bool = True) -> tuple[Any, Any, Inbox, Inbox]:
    """Hub and node that have exchanged one frame; of every sender the hub takes a first b"hello" as a proof."""
    hub, at_node = hub_transport(name, listen), Inbox()
    at_hub = Inbox(lambda address, frame: hub.prove(address) if proving and frame == b"hello" else None)
    node = node_transport(name, await hub.open(at_hub))
    await node.open(at_node)
    assert node.send(b"hello")
    await at_hub.holds(1)
    return hub, node, at_hub, at_node


async def close(*sides: Any) -> None:
    for side in sides:
        await side.close()
        await side.close()  # twice does no harm


@BOTH
def test_thousands_of_frames_cross_intact_in_both_directions(name: str):
    async def test() -> None:
        before = time.monotonic_ns()
        hub, node, at_hub, at_node = await pair(name)
        sender, frames = at_hub.items[0][0], random_frames(3_000)
        for n, frame in enumerate(frames, 1):
            assert node.send(frame)
            assert hub.send(sender, frame[::-1])
            if n % 50 == 0:  # no more than sockets hold
                await at_hub.holds(n + 1)
                await at_node.holds(n)
        assert at_hub.frames == [b"hello", *frames]
        assert at_node.frames == [frame[::-1] for frame in frames]
        assert {address for address, _, _ in at_hub.items} == {sender}
        stamps = [before, *(ns for _, _, ns in at_hub.items), time.monotonic_ns()]
        assert stamps == sorted(stamps)
        assert (hub.dropped, node.dropped, hub.refused, node.refused) == (0, 0, {}, {})
        await close(hub, node)

    run(test())


@BOTH
def test_ipv6_is_an_address_like_any_other(name: str):
    if not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("no IPv6 on this machine")

    async def test() -> None:
        hub, node, at_hub, at_node = await pair(name, "[::1]:0")
        assert at_hub.items[0][0].startswith("[::1]:")
        assert hub.send(at_hub.items[0][0], b"answer")
        assert (await at_node.holds(1)).frames == [b"answer"]
        await close(hub, node)

    run(test())


@pytest.mark.parametrize(("name", "largest"), [("udp", LARGEST_DATAGRAM), ("tcp", LARGEST)])
def test_the_largest_frame_passes_and_a_longer_or_empty_one_is_refused_and_counted(name: str, largest: int):
    async def test() -> None:
        hub, node, at_hub, _ = await pair(name)
        sender = at_hub.items[0][0]
        assert node.send(b"x" * largest)
        assert (await at_hub.holds(2)).frames[1] == b"x" * largest
        for frame in (b"x" * (largest + 1), b""):
            assert not node.send(frame)
            assert not hub.send(sender, frame)
        assert node.refused == hub.refused == {"length": 2}
        assert node.dropped == hub.dropped == 0
        await close(hub, node)

    run(test())


def test_what_all_nodes_send_at_one_tick_has_room_in_the_hubs_socket():
    async def test() -> None:
        hub, node, at_hub, _ = await pair("udp")
        for _ in range(130):
            assert node.send(b"x" * LARGEST_DATAGRAM)
        await at_hub.holds(131)
        await close(hub, node)

    run(test())


def test_a_udp_hub_sends_nothing_to_an_address_that_is_not_proved():
    async def test() -> None:
        hub, node, at_hub, at_node = await pair("udp", proving=False)
        sender = at_hub.items[0][0]
        assert not hub.send(sender, b"too early")
        hub.prove(sender)
        assert hub.send(sender, b"now")
        hub.drop(sender)
        assert not hub.send(sender, b"too late")
        assert (await at_node.holds(1)).frames == [b"now"]
        assert hub.refused == {"unproved": 2}
        await close(hub, node)

    run(test())


def test_foreign_datagrams_are_counted_and_leave_hub_and_node_as_they_are():
    async def test() -> None:
        hub, node, at_hub, at_node = await pair("udp")
        draws = stream(0, "foreign")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind(("127.0.0.1", 0))
            for n in range(2_000):
                stranger.sendto(draws.bytes(int(draws.integers(0, 4_000))), transports.host_and_port(node.address))
                await asyncio.sleep(0)
                if n == 500:
                    before = resident()
            await until(lambda: hub.refused["length"] > 300)  # of some 1,400; a busy system drops some
            stranger.setblocking(False)
            with pytest.raises(BlockingIOError):
                stranger.recv(1)  # nobody answered
        assert resident() - before < 4 * 2**20
        assert len(at_hub.items) + hub.refused["length"] <= 2_001
        assert node.send(b"still here")
        await until(lambda: at_hub.frames[-1] == b"still here")
        assert at_node.items == []
        await close(hub, node)

    run(test())


def test_a_udp_node_receives_from_its_hub_alone():
    async def test() -> None:
        hub, node, at_hub, at_node = await pair("udp")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"from elsewhere", transports.host_and_port(at_hub.items[0][0]))
        assert hub.send(at_hub.items[0][0], b"from the hub")
        assert (await at_node.holds(1)).frames == [b"from the hub"]
        await close(hub, node)

    run(test())


@BOTH
def test_a_hub_that_is_gone_and_back_is_heard_again(name: str):
    async def test() -> None:
        hub, node, _, at_node = await pair(name)
        address = node.address
        await hub.close()
        for _ in range(50):
            node.send(b"to nobody")
            await asyncio.sleep(0.001)
        lost = node.dropped + node.refused["unreachable"]
        assert lost > 30  # TCP: dropped; UDP: the system says that nobody listens
        back = hub_transport(name, address)
        inbox = Inbox(lambda address, frame: back.prove(address))
        await back.open(inbox)
        while not inbox.items:
            node.send(b"again")
            await asyncio.sleep(0.01)
        assert set(inbox.frames) == {b"again"}
        assert back.send(inbox.items[-1][0], b"welcome")
        assert (await at_node.holds(1)).frames == [b"welcome"]
        await close(back, node)
        assert not node.send(b"closed")

    run(test())


async def knock(address: str, data: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(*transports.host_and_port(address))
    writer.write(data)
    return reader, writer


async def is_ended(reader: asyncio.StreamReader) -> bool:
    """Whether the hub ends the connection, without a word."""
    try:
        return await asyncio.wait_for(reader.read(), 5) == b""
    except ConnectionError:
        return True


def test_of_a_hundred_half_open_connections_sixteen_stay_and_not_for_long(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(transports, "UNPROVED_S", 0.3)

    async def test() -> None:
        hub, node, at_hub, _ = await pair("tcp")
        strangers = [await knock(node.address) for _ in range(100)]
        await until(lambda: hub.refused["unproved"] == 100 - UNPROVED)  # the oldest yield
        assert all([await is_ended(reader) for reader, _ in strangers[: 100 - UNPROVED]])
        assert not any(reader.at_eof() for reader, _ in strangers[100 - UNPROVED :])
        assert all([await is_ended(reader) for reader, _ in strangers])
        assert hub.refused == {"unproved": 100}
        assert node.send(b"proved, and still here")
        await at_hub.holds(2)
        assert node.refused == {}
        await close(hub, node)
        for _, writer in strangers:
            writer.close()

    run(test())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xff\xff\xff" + b"x" * 1_000, "length"),
        ((LARGEST + 1).to_bytes(4, "big"), "length"),
        (b"\0\0\0\0", "length"),
        (b"GET / HTTP/1.1\r\n\r\n", "length"),
        ((UNPROVED_BYTES - 3).to_bytes(4, "big"), "unproved"),
        (b"\0\0\0\1x" * (UNPROVED_BYTES // 5 + 1), "unproved"),
        (b"\0\0\1\0cut", None),
        (b"\0\0", None),
    ],
)
def test_a_connection_that_sends_what_it_may_not_ends_and_is_counted(data: bytes, reason: str | None):
    async def test() -> None:
        hub, node, at_hub, _ = await pair("tcp")
        for n in range(1, 30):
            reader, writer = await knock(node.address, data)
            if reason is None:
                writer.write_eof()  # cut
            assert await is_ended(reader)
            writer.close()
            assert hub.refused == ({} if reason is None else {reason: n})
        assert node.send(b"still here")
        await until(lambda: at_hub.frames[-1] == b"still here")
        await close(hub, node)

    run(test())


def test_thousands_of_strangers_leave_no_memory_behind():
    async def test() -> None:
        hub, node, at_hub, _ = await pair("tcp")
        draws = stream(0, "strangers")
        for n in range(600):
            _, writer = await knock(node.address, b"\0\1\0\0" + draws.bytes(3_000))
            writer.transport.abort() if n % 2 else writer.close()
            if n == 200:
                before = resident()
        assert resident() - before < 4 * 2**20
        assert node.send(b"still here")
        await until(lambda: at_hub.frames[-1] == b"still here")
        await close(hub, node)

    run(test())


def test_a_proved_connection_may_stay_and_send_what_it_likes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(transports, "UNPROVED_S", 0.05)

    async def test() -> None:
        hub, node, at_hub, _ = await pair("tcp")
        await asyncio.sleep(0.1)
        for _ in range(3 * UNPROVED_BYTES // 1_000):
            assert node.send(b"x" * 1_000)
        await at_hub.holds(13)
        assert hub.refused == node.refused == {}
        await close(hub, node)

    run(test())


def test_a_proof_that_comes_as_time_is_up_comes_too_late(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(transports, "UNPROVED_S", 0.02)

    async def test() -> None:
        hub, loop = hub_transport("tcp", "127.0.0.1:0"), asyncio.get_running_loop()

        def late(address: str, frame: bytes) -> None:
            loop.call_later(0.03, hub.prove, address)
            loop.call_soon(time.sleep, 0.05)  # both times are up in one round of the loop

        reader, writer = await knock(await hub.open(Inbox(late)), b"\0\0\0\5hello")
        assert await is_ended(reader)
        assert hub.refused == {"unproved": 1}
        writer.close()
        await close(hub)

    run(test())


async def slow_reader() -> tuple[Any, str, asyncio.StreamReader, asyncio.StreamWriter]:
    """A hub, the address of a proved connection to it that does not read, and that connection."""
    hub = hub_transport("tcp", "127.0.0.1:0")
    at_hub = Inbox(lambda address, frame: hub.prove(address))
    reader, writer = await knock(await hub.open(at_hub), b"\0\0\0\5hello")
    await at_hub.holds(1)
    writer.transport.pause_reading()
    return hub, at_hub.items[0][0], reader, writer


FRAME = b"x" * 60_000


def test_frames_for_a_slow_reader_are_dropped_and_counted_never_piled_up():
    async def test() -> None:
        hub, sender, reader, writer = await slow_reader()
        before = resident()
        sent = sum(hub.send(sender, FRAME) for _ in range(2_000))
        assert hub.dropped == 2_000 - sent > 1_500
        assert resident() - before < 2 * MOST_WAITING + 4 * 2**20
        writer.transport.resume_reading()
        assert await reader.readexactly(60_004 * sent) == (b"\0\0\xea\x60" + FRAME) * sent
        assert hub.send(sender, b"again")
        assert await reader.readexactly(9) == b"\0\0\0\5again"
        writer.close()
        await close(hub)

    run(test())


def test_what_was_sent_before_a_connection_is_dropped_arrives():
    async def test() -> None:
        hub, sender, reader, writer = await slow_reader()
        sent = 0
        while hub.send(sender, FRAME):
            sent += 1
        hub.drop(sender)
        assert not hub.send(sender, b"after the end")
        assert hub.dropped == 2
        writer.transport.resume_reading()
        assert len(await reader.read()) == 60_004 * sent
        writer.close()
        await close(hub)

    run(test())


def test_who_does_not_read_can_not_stay_after_being_dropped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(transports, "UNPROVED_S", 0.05)

    async def test() -> None:
        hub, sender, reader, writer = await slow_reader()
        while hub.send(sender, FRAME):
            pass
        hub.drop(sender)
        await asyncio.sleep(0.1)
        writer.transport.resume_reading()
        assert len(await reader.read()) % 60_004 != 0  # cut
        writer.close()
        await close(hub)

    run(test())


class FullSocket(asyncio.DatagramTransport):
    """The system takes nothing more from it."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = 0

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def sendto(self, data: bytes, addr: Any = None) -> None:
        self.waiting += len(data)


def test_datagrams_that_the_system_does_not_take_are_dropped_and_counted():
    node, full = node_transport("udp", "127.0.0.1:9"), FullSocket()
    node.connection_made(full)
    sent = sum(node.send(b"x" * 1_000) for _ in range(1_000))
    assert full.waiting <= MOST_WAITING
    assert (sent, node.dropped) == (MOST_WAITING // 1_000, 1_000 - MOST_WAITING // 1_000)


def test_small_frames_leave_at_once(monkeypatch: pytest.MonkeyPatch):
    options = Counter[int]()
    written = asyncio.StreamWriter.write

    def write(self: asyncio.StreamWriter, data: bytes) -> None:
        options[self.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)] += 1
        written(self, data)

    monkeypatch.setattr(asyncio.StreamWriter, "write", write)

    async def test() -> None:
        hub, node, at_hub, at_node = await pair("tcp")
        assert hub.send(at_hub.items[0][0], b"answer")
        await at_node.holds(1)
        await close(hub, node)

    run(test())
    assert options == {1: 2}


def test_other_packages_declare_transports_by_entry_point(monkeypatch: pytest.MonkeyPatch):
    def declared(group: str) -> list[EntryPoint]:
        names = {"pigeon": "heron_env.real.transports:UDP", "udp": "nowhere:X", "owl": "no_such_package:X"}
        return [EntryPoint(name, value, group) for name, value in names.items()]

    monkeypatch.setattr(transports, "entry_points", declared)
    assert isinstance(hub_transport("pigeon", "127.0.0.1:0"), transports.UdpHub)
    assert isinstance(node_transport("udp", "127.0.0.1:1"), transports.UdpNode), "ours can't be replaced"
    with pytest.raises(ConfigError, match="transport='owl': No module named 'no_such_package'; install its package"):
        hub_transport("owl", "127.0.0.1:0")
    with pytest.raises(ConfigError, match="must be one of 'pigeon', 'udp', 'owl', 'tcp', 'mqtt'"):
        hub_transport("raven", "127.0.0.1:0")


@pytest.mark.parametrize(
    "address", ["", "7400", "127.0.0.1", ":7400", "a:b", "a:70000", "u:p@h:1", "h:1/x", "[::1:7", "a..b:7"]
)
@BOTH
def test_an_address_is_host_and_port(name: str, address: str):
    for make in (hub_transport, node_transport):
        with pytest.raises(ConfigError, match=r"must be HOST:PORT, as '127\.0\.0\.1:7400'"):
            make(name, address)


def test_what_is_no_transport_or_no_option_is_refused():
    with pytest.raises(ConfigError, match=r"transport='upd': must be one of .*\. Did you mean 'udp'\?"):
        node_transport("upd", "127.0.0.1:1")
    with pytest.raises(UnknownArgument, match=r"UdpHub.largets=.* Did you mean 'largest'"):
        hub_transport("udp", "127.0.0.1:0", largets=3)


@BOTH
def test_an_address_that_is_taken_is_refused_with_the_systems_words(name: str):
    async def test() -> None:
        first = hub_transport(name, "127.0.0.1:0")
        address = await first.open(Inbox())
        with pytest.raises(ConfigError, match=r"address '127.*': .*in use.*; take another, or port 0"):
            await hub_transport(name, address).open(Inbox())
        await close(first)

    run(test())


def test_a_tcp_node_waits_for_a_hub_that_is_not_there_yet():
    async def test() -> None:
        address, hub = f"127.0.0.1:{free_port()}", None
        node = node_transport("tcp", address)
        opening = asyncio.create_task(node.open(Inbox()))
        await until(lambda: node.refused["broken connection"] >= 2)
        assert not opening.done()
        hub = hub_transport("tcp", address)
        await hub.open(Inbox())
        await asyncio.wait_for(opening, 5)
        await close(hub, node)

    run(test())


def test_a_node_waits_longer_from_try_to_try_up_to_a_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(transports, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(transports, "LAST_PAUSE_S", 0.08)
    times: list[float] = []

    def close_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        times.append(time.monotonic())
        writer.close()

    async def test() -> None:
        server = await asyncio.start_server(close_at_once, "127.0.0.1", 0)
        node = node_transport("tcp", transports.joined(server.sockets[0].getsockname()))
        await node.open(Inbox())
        await until(lambda: len(times) == 7)
        await close(node)
        server.close()

    run(test())
    pauses = [later - earlier for earlier, later in pairwise(times)]
    for pause, least in zip(pauses, (0.02, 0.04, 0.08, 0.08, 0.08, 0.08), strict=True):
        assert pause > 0.9 * least
    assert min(pauses[3:]) < 0.14, "they grow no further"
