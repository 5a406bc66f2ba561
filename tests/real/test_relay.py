"""Laws of the relay: its losses, delays and copies are those that were asked for, and TCP keeps its order."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from real.wire_kit import Inbox, run, until

from heron_env.errors import ConfigError
from heron_env.real.relay import Direction, Impairment, main, relay
from heron_env.real.transports import hub_transport, node_transport

pytestmark = pytest.mark.law
DRAWS = 20_000


def fates(**options: Any) -> tuple[np.ndarray, np.ndarray, list[list[float]]]:
    """Of each of many pieces: is it lost, does the connection break, its delays."""
    direction = Direction(Impairment(**options), "up", 1)
    lost, broken, delays = zip(*(direction.fate() for _ in range(DRAWS)), strict=True)
    return np.array(lost), np.array(broken), list(delays)


def test_delays_are_lognormal_of_the_mean_and_ratio():
    first = np.array([delays[0] for delays in fates(delay=0.035, ratio=0.5, seed=1)[2]])
    assert first.min() > 0
    assert first.mean() == pytest.approx(0.035, rel=0.02)
    assert first.std() == pytest.approx(0.0175, rel=0.05)
    assert np.log(first).std() == pytest.approx(np.sqrt(np.log(1.25)), rel=0.03)
    assert {delays[0] for delays in fates(delay=0.035)[2]} == {0.035}


def test_losses_copies_and_breaks_come_as_often_as_asked():
    lost, broken, delays = fates(delay=0.1, ratio=0.5, loss=0.1, copies=0.02, breaks=0.05, seed=2)
    twice = np.array([len(each) == 2 for each in delays])
    for happened, chance in ((lost, 0.1), (twice, 0.02), (broken, 0.05)):
        assert happened.mean() == pytest.approx(chance, abs=4 * np.sqrt(chance / DRAWS))
        after = happened[1:][happened[:-1]].mean()
        assert after == pytest.approx(chance, abs=5 * np.sqrt(chance / happened.sum())), "each one for itself"
    assert all(a != b for a, b in (each for each in delays if len(each) == 2)), "a copy has a delay of its own"


def test_bursts_are_the_chain_of_gilbert_and_elliott():
    lost, _, _ = fates(burst=(0.02, 0.2, 0.7), seed=3)
    share = 0.02 / (0.02 + 0.2)
    assert lost.mean() == pytest.approx(0.7 * share, rel=0.15)
    assert lost[1:][lost[:-1]].mean() == pytest.approx(0.7 * 0.8, rel=0.1), "after a loss the chain is inside"
    later = lost[30:][lost[:-30]].mean()
    assert later < 3 * lost.mean(), "and forgets"


def test_one_cause_moves_no_draw_of_another():
    plain, _, delays = fates(delay=0.1, ratio=1.0, loss=0.1, seed=4)
    more, _, same_delays = fates(delay=0.1, ratio=1.0, loss=0.1, burst=(0.1, 0.2, 0.5), copies=0.3, seed=4)
    assert [each[0] for each in delays] == [each[0] for each in same_delays]
    assert (plain <= more).all()


async def crossing(listening: str, hub: Any, at_hub: Inbox, count: int) -> tuple[dict[int, list[float]], ...]:
    """Delays in s by number of what a node sends, and of what the hub sends back, four each ms."""
    at_node = Inbox()
    node = node_transport("udp", listening)
    await node.open(at_node)
    while not at_hub.items:
        node.send(b"\0" * 8)
        await asyncio.sleep(0.005)
    sender, sent = at_hub.items[-1][0], {}
    for number in range(1, count + 1):
        sent[number] = time.monotonic_ns()
        node.send(number.to_bytes(8, "big"))
        hub.send(sender, number.to_bytes(8, "big"))
        if number % 4 == 0:
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.06)  # nothing is under way for longer
    await node.close()
    ways = []
    for inbox in (at_hub, at_node):
        delays: dict[int, list[float]] = {}
        for _, frame, ns in inbox.items:
            if number := int.from_bytes(frame, "big"):
                delays.setdefault(number, []).append((ns - sent[number]) / 1e9)
        ways.append(delays)
    return tuple(ways)


def crossed(count: int, **options: Any) -> tuple[dict[int, list[float]], ...]:
    ways: list[dict[int, list[float]]] = []

    async def test() -> None:
        hub = hub_transport("udp", "127.0.0.1:0")
        at_hub = Inbox(lambda address, frame: hub.prove(address))
        with relay("udp", await hub.open(at_hub), **options) as listening:
            ways.extend(await crossing(listening, hub, at_hub, count))
        await hub.close()

    run(test())
    return tuple(ways)


def test_datagrams_are_delayed_to_the_millisecond_in_both_directions():
    for way in crossed(300, delay=0.03):
        delays = np.array([each[0] for each in way.values()])
        assert len(delays) == 300
        assert delays.min() >= 0.03
        assert np.quantile(delays, 0.25) < 0.032  # a busy machine is late with some
        assert all(len(each) == 1 for each in way.values())


def test_datagrams_are_lost_copied_and_overtaken_in_both_directions():
    for way in crossed(800, delay=0.01, ratio=0.5, loss=0.2, copies=0.1, seed=1):
        assert len(way) / 800 == pytest.approx(0.8, abs=0.06)
        copies = sum(len(each) - 1 for each in way.values())
        assert copies / len(way) == pytest.approx(0.1, abs=0.05)
        arrived = [number for number, each in sorted(way.items(), key=lambda item: item[1][0] + item[0] / 4e3)]
        assert arrived != sorted(arrived), "some overtake others"


def test_each_client_of_a_udp_relay_has_a_socket_of_its_own_and_the_hub_may_be_gone_for_a_while():
    async def test() -> None:
        hub = hub_transport("udp", "127.0.0.1:0")
        at_hub = Inbox(lambda address, frame: (hub.prove(address), hub.send(address, frame[::-1])))
        address = await hub.open(at_hub)
        with relay("udp", address) as listening:
            inboxes = [Inbox() for _ in range(5)]
            nodes = [node_transport("udp", listening) for _ in inboxes]
            for n, (node, inbox) in enumerate(zip(nodes, inboxes, strict=True)):
                await node.open(inbox)
                node.send(b"from %d" % n)
            for n, inbox in enumerate(inboxes):
                assert (await inbox.holds(1)).frames == [(b"from %d" % n)[::-1]]
            assert len({address for address, _, _ in at_hub.items}) == 5
            await hub.close()
            for _ in range(10):
                node.send(b"to nobody")
                await asyncio.sleep(0.002)
            hub, at_hub = hub_transport("udp", address), Inbox()
            await hub.open(at_hub)
            await until(lambda: node.send(b"frame") and len(at_hub.items) > 0)
            for node in nodes:
                await node.close()
        await hub.close()

    run(test())


def stream_crossed(count: int, pause: float, **options: Any) -> tuple[list[tuple[int, float]], Any, Any]:
    """Over TCP, from node to hub: number and delay in s of each frame in the order of their arrival; both sides."""
    result: list[tuple[int, float]] = []
    sides: list[Any] = []

    async def test() -> None:
        hub = hub_transport("tcp", "127.0.0.1:0")
        at_hub = Inbox(lambda address, frame: hub.prove(address))
        with relay("tcp", await hub.open(at_hub), **options) as listening:
            node, sent = node_transport("tcp", listening), {}
            sides.extend((hub, node))
            await node.open(Inbox())
            for number in range(count):
                sent[number] = time.monotonic_ns()
                node.send(number.to_bytes(4, "big"))
                await asyncio.sleep(pause)
            if not options.get("breaks"):
                await at_hub.holds(count)
            result.extend(
                (number, (ns - sent[number]) / 1e9)
                for _, frame, ns in at_hub.items
                for number in [int.from_bytes(frame, "big")]
            )
            await node.close()
        await hub.close()

    run(test())
    return result, sides[0], sides[1]


def test_a_tcp_stream_is_delayed_stops_for_a_loss_and_keeps_its_order():
    arrived, _, node = stream_crossed(100, 0.002, delay=0.03, ratio=0.5, loss=0.02, seed=1)
    assert [number for number, _ in arrived] == list(range(100))
    delays = [delay for _, delay in arrived]
    assert np.mean(delays) > 0.03, "who waits for one before it is later than its own delay"
    assert 0.2 < max(delays) < 0.9
    assert min(delays) < 0.1
    assert node.refused == {}


def test_a_tcp_connection_breaks_and_is_made_again():
    arrived, hub, node = stream_crossed(150, 0.002, breaks=0.04, seed=1)
    numbers = [number for number, _ in arrived]
    assert numbers == sorted(set(numbers))
    assert node.refused["broken connection"] >= 1
    assert node.dropped > 0
    assert hub.refused == {}, "a cut frame is no offence"


def test_much_crosses_a_tcp_relay_intact_both_ways():
    async def test() -> None:
        hub = hub_transport("tcp", "127.0.0.1:0")
        at_hub = Inbox(lambda address, frame: (hub.prove(address), hub.send(address, frame)))
        with relay("tcp", await hub.open(at_hub), delay=0.002, ratio=0.5) as listening:
            at_node = Inbox()
            node = node_transport("tcp", listening)
            await node.open(at_node)
            frames = [b"small"] + [bytes([n]) * 50_000 for n in range(60)]
            for n, frame in enumerate(frames, 1):
                assert node.send(frame)
                await at_node.holds(n - 3)
            assert (await at_node.holds(len(frames))).frames == frames
            await node.close()
        await hub.close()

    run(test())


REFUSED = [
    ("udp", "127.0.0.1:9", {"loss": 1.5}, "loss=1.5: a probability is between 0 and 1"),
    ("udp", "127.0.0.1:9", {"loss": float("nan")}, "loss=nan: a probability"),
    ("udp", "127.0.0.1:9", {"burst": (0.1, 2.0, 0.1)}, r"burst=.0.1, 2.0, 0.1.: a probability"),
    ("udp", "127.0.0.1:9", {"burst": (0.1, 0.2)}, r"burst=.0.1, 0.2.: must be three"),
    ("udp", "127.0.0.1:9", {"delay": -1.0}, "delay=-1.0, ratio=0.0: must be within"),
    ("udp", "127.0.0.1:9", {"breaks": 0.1}, "'udp', which has no breaks"),
    ("tcp", "127.0.0.1:9", {"copies": 0.1}, "'tcp', which has no copies"),
    ("mqtt", "127.0.0.1:9", {}, "must be 'udp'"),
    ("udp", "192.168.1.5:9", {}, "'192.168.1.5': a relay is for this machine alone"),
    ("udp", "example.org:9", {}, "'example.org': a relay is for this machine alone"),
    ("udp", "nowhere", {}, "must be HOST:PORT"),
]


@pytest.mark.parametrize(("kind", "to", "options", "words"), REFUSED)
def test_what_a_relay_can_not_do_is_refused(kind: str, to: str, options: dict[str, Any], words: str):
    with pytest.raises(ConfigError, match=words), relay(kind, to, **options):
        pass


def command(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "heron_env.real.relay", *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_the_command_prints_where_it_listens_and_ends_with_its_stdin_or_by_a_signal():
    options = "--delay 0.035 --ratio 0.5 --loss 0.1 --burst 0.02:0.3:0.8 --seed 1"
    both = [command("udp", "--to", "127.0.0.1:9", *options.split()), command("tcp", "--to", "[::1]:9")]
    for process in both:
        assert process.stdout is not None
        assert re.fullmatch(r"127\.0\.0\.1:\d+", json.loads(process.stdout.readline())["listening"])
    both[0].send_signal(signal.SIGTERM)
    for process in both:
        _, errors = process.communicate(timeout=5)
        assert (process.returncode, errors) == (0, "")


def test_the_command_refuses_in_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    for words, line in (
        (["--listen=0.0.0.0:0"], "'0.0.0.0': a relay is for this machine alone; take 127.0.0.1"),
        (["--loss=2"], "loss=2.0: a probability is between 0 and 1"),
        (["--burst=0.1:0.2"], "burst=(0.1, 0.2): must be three: P(enter), P(leave), P(loss) while inside"),
        (["--burst=a"], "argument --burst: invalid burst value: 'a'"),
    ):
        monkeypatch.setattr(sys, "argv", ["relay", "udp", "--to=127.0.0.1:9", *words])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 2
        assert capsys.readouterr().err.endswith(f"error: {line}\n")
