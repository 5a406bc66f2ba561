"""Laws of the transport over MQTT: a broker may delay, drop, repeat or die, and is never trusted."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import gc
import resource
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from real.wire_kit import Inbox, broker, needs_broker, run, until

from heron_env.errors import ConfigError, UnknownArgument
from heron_env.real.transports import LARGEST, MOST_WAITING, hub_transport, node_transport
from heron_env.seeding import stream

aiomqtt = pytest.importorskip("aiomqtt")
pytestmark = pytest.mark.law


async def pair(url: str, **options: Any) -> tuple[Any, Any, Inbox, Inbox]:
    """Hub and node of one run; what the hub receives proves its sender."""
    hub, at_node = hub_transport("mqtt", url, run="r1", **options), Inbox()
    at_hub = Inbox(lambda address, frame: hub.prove(address))
    node = node_transport("mqtt", await hub.open(at_hub), run="r1", node="n1", **options)
    await node.open(at_node)
    return hub, node, at_hub, at_node


async def close(*sides: Any) -> None:
    for side in sides:
        await side.close()
        await side.close()  # twice does no harm


@needs_broker
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_frames_cross_intact_in_both_directions(qos: int, tmp_path: Path):
    async def test(url: str) -> None:
        hub, node, at_hub, at_node = await pair(url, qos=qos, no_delay=True)
        draws = stream(0, "mqtt frames")
        frames = [draws.bytes(int(n)) for n in draws.integers(1, 1_000, 1_000)] + [b"x" * LARGEST]
        for n, frame in enumerate(frames, 1):
            assert node.send(frame)
            if n % 50 == 0 or frame is frames[-1]:
                await at_hub.holds(n)
                for answer in frames[(n - 1) // 50 * 50 : n]:
                    assert hub.send("n1", answer[::-1])
                await at_node.holds(n)
        assert at_hub.frames == frames
        assert at_node.frames == [frame[::-1] for frame in frames]
        assert {address for address, _, _ in at_hub.items} == {"n1"}
        assert (hub.dropped, node.dropped, hub.refused, node.refused) == (0, 0, {}, {})
        await close(hub, node)

    with broker(tmp_path) as server:
        run(test(server.url))


@needs_broker
def test_what_is_retained_foreign_or_too_long_is_refused_and_counted(tmp_path: Path):
    async def test(server: Any) -> None:
        async with aiomqtt.Client("127.0.0.1", server.port) as stranger:
            for way in ("up", "down"):
                await stranger.publish(f"heron/r1/n1/{way}", b"of an earlier run", qos=1, retain=True)
            hub, node, at_hub, at_node = await pair(server.url)
            await until(lambda: hub.refused["retained"] == node.refused["retained"] == 1)
            await stranger.publish("heron/r2/n1/up", b"of another run", qos=1)
            await stranger.publish("heron/r1/n1/down/more", b"on another topic", qos=1)
            for frame in (b"x" * (LARGEST + 1), b"", b"from a stranger, as it may be"):
                await stranger.publish("heron/r1/n1/up", frame, qos=1)
        assert (await at_hub.holds(1)).frames == [b"from a stranger, as it may be"]
        assert hub.refused == {"retained": 1, "length": 2}
        assert not node.send(b"x" * (LARGEST + 1))
        assert not hub.send("n2", b"n2 has proved nothing")
        assert hub.send("n1", b"answer")
        assert (await at_node.holds(1)).frames == [b"answer"]
        hub.drop("n1")
        assert not hub.send("n1", b"no more")
        assert hub.refused["unproved"] == 2
        await close(hub, node)

    with broker(tmp_path) as server:
        run(test(server))


@needs_broker
def test_a_broker_that_is_killed_and_back_is_joined_again_by_both(tmp_path: Path):
    async def test(server: Any) -> None:
        hub, node, at_hub, at_node = await pair(server.url)
        node.send(b"before")
        await at_hub.holds(1)
        server.kill()
        await until(lambda: hub.refused["broken connection"] + node.refused["broken connection"] >= 2)
        sent = [node.send(b"meanwhile"), hub.send("n1", b"meanwhile")]
        assert sent == [False, False]
        assert (node.dropped, hub.dropped) == (1, 1)
        await asyncio.to_thread(server.start)
        await until(lambda: node.send(b"after") and len(at_hub.items) > 1)
        assert at_hub.frames[-1] == b"after"
        await until(lambda: hub.send("n1", b"answer") and bool(at_node.items))
        assert set(at_node.frames) == {b"answer"}
        await close(hub, node)

    with broker(tmp_path) as server:
        run(test(server))


@needs_broker
def test_frames_for_a_broker_that_stands_still_are_dropped_and_counted_never_piled_up(tmp_path: Path):
    async def test(server: Any) -> None:
        hub, node, at_hub, _ = await pair(server.url)
        server.process.send_signal(signal.SIGSTOP)
        sent = [node.send(b"x" * 1_000) for _ in range(2_000)]
        assert sum(sent) == MOST_WAITING // 1_000
        assert node.dropped == 2_000 - sum(sent)
        server.process.send_signal(signal.SIGCONT)
        await at_hub.holds(sum(sent))
        assert node.send(b"again")
        await until(lambda: at_hub.frames[-1] == b"again")
        await close(hub, node)

    with broker(tmp_path) as server:
        run(test(server))


def password_file(folder: Path, name: str, word: str) -> str:
    (folder / name).write_text(f"{word}\n")
    return str(folder / name)


@needs_broker
@pytest.mark.skipif(shutil.which("mosquitto_passwd") is None, reason="no mosquitto_passwd on this machine")
def test_a_password_comes_from_a_file_and_stands_in_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    users = tmp_path / "users"
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(users), "robot", "a-word"], check=True, capture_output=True)
    users.chmod(0o644)
    good, bad = password_file(tmp_path, "good", "a-word"), password_file(tmp_path, "bad", "another-word")

    async def test(url: str) -> None:
        monkeypatch.setenv("HERON_MQTT_PASSWORD_FILE", good)
        hub, node, at_hub, _ = await pair(url, user="robot")
        assert node.send(b"frame")
        await at_hub.holds(1)
        stranger = hub_transport("mqtt", url, run="r1", user="robot", password_file=bad)
        with pytest.raises(ConfigError, match="correct user and password file") as refused:
            await stranger.open(Inbox())
        assert "word" not in str(refused.value).replace("password file", "")
        await close(hub, node, stranger)

    with broker(tmp_path, "allow_anonymous false", f"password_file {users}") as server:
        run(test(server.url))


def certificates(folder: Path, host: str) -> None:
    """An authority, and a server's certificate of it for that host."""

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    use = ("-addext", "keyUsage=critical,keyCertSign")
    openssl(
        "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=an authority", "-days", "2", *use
    )
    openssl("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=a broker")
    (folder / "names").write_text(f"subjectAltName={host}\nauthorityKeyIdentifier=keyid\n")
    openssl(
        "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
        "-out", "server.pem", "-days", "2", "-extfile", "names",
    )  # fmt: skip
    (folder / "server.key").chmod(0o644)


@needs_broker
@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl on this machine; install it")
def test_over_tls_the_authority_and_the_hosts_name_are_checked(tmp_path: Path):
    certificates(tmp_path, "IP:127.0.0.1")

    async def test(port: int) -> None:
        ca = str(tmp_path / "ca.pem")
        hub, node, at_hub, _ = await pair(f"mqtts://127.0.0.1:{port}", ca=ca)
        assert node.send(b"frame")
        await at_hub.holds(1)
        stranger = hub_transport("mqtt", f"mqtts://127.0.0.1:{port}", run="r1")
        with pytest.raises(
            ConfigError, match=r"certificate verify failed.*; name the file of its authority, ca="
        ) as refused:
            await stranger.open(Inbox())
        other_name = hub_transport("mqtt", f"mqtts://localhost:{port}", run="r1", ca=ca)
        with pytest.raises(ConfigError, match=r"Hostname mismatch.*localhost") as wrong_name:
            await other_name.open(Inbox())
        await close(hub, node, stranger, other_name)
        del refused, wrong_name, stranger, other_name
        gc.collect()  # complains of sockets that nobody closed

    files = (f"cafile {tmp_path}/ca.pem", f"certfile {tmp_path}/server.pem", f"keyfile {tmp_path}/server.key")
    with broker(tmp_path, "allow_anonymous true", *files) as server:
        run(test(server.port))


class Impostor:
    """Says to each client that it is connected and subscribed, then these bytes, and waits for it to go."""

    def __init__(self, data: bytes) -> None:
        self.data, self.visits, self.ends = data, 0, 0

    async def __aenter__(self) -> str:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return f"mqtt://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.visits += 1
        await reader.read(1_000)
        writer.write(b"\x20\x02\0\0")
        request = await reader.read(1_000)
        writer.write(b"\x90\x03%b\1" % request[2:4])
        await asyncio.sleep(0.02)
        writer.write(self.data)
        with contextlib.suppress(OSError):
            while await reader.read(1_000):
                pass
        self.ends += 1
        writer.close()

    async def __aexit__(self, *error: object) -> None:
        self.server.close()
        await until(lambda: self.visits == self.ends)  # no socket is left open


GARBAGE = {
    "a topic that is no text": b"\x30\5\0\2\xff\xfe1",
    "a topic with a wildcard": b"\x30\5\0\2+#x",
    "half an acknowledgement": b"\x40\1\0",
    "an empty message": b"\x30\0",
    "an unknown command": b"\xf0\0",
    "quality of service 3": b"\x36\5\0\1axx",
    "another protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n" * 4,
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_a_broker_that_talks_nonsense_ends_a_connection_at_most(garbage: bytes):
    async def test() -> None:
        impostor = Impostor(garbage)
        async with impostor as url:
            hub, inbox = hub_transport("mqtt", url, run="r1"), Inbox()
            await hub.open(inbox)
            await until(lambda: hub.refused["broken connection"] >= 1)
            await until(lambda: impostor.ends >= 1)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
            await asyncio.sleep(0.05)
            assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 0.03, "the loop spins"
            assert inbox.items == []
            await close(hub)

    run(test())


def test_what_a_broker_sends_on_another_topic_or_acknowledges_without_cause_is_refused():
    async def test() -> None:
        foreign = [f"heron/{rest}".encode() for rest in ("r2/n1/up", "r1/n1/down", "r1/n1/up/up", "r1/up")]
        messages = b"".join(bytes([0x30, 3 + len(topic), 0, len(topic)]) + topic + b"!" for topic in foreign)
        async with Impostor(b"\x90\3\x99\x99\1\x40\2\x99\x99" + messages) as url:
            hub, inbox = hub_transport("mqtt", url, run="r1"), Inbox()
            await hub.open(inbox)
            await until(lambda: hub.refused == {"topic": 4})
            assert inbox.items == []
            await close(hub)

    run(test())


def test_a_node_waits_for_a_broker_that_is_not_there_yet():
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"mqtt://127.0.0.1:{listener.getsockname()[1]}"
        node = node_transport("mqtt", url, run="r1", node="n1")
        opening = asyncio.create_task(node.open(Inbox()))
        await until(lambda: node.refused["broken connection"] >= 2)
        assert not opening.done()
        assert not node.send(b"frame")
        await close(node)
        await opening

    run(test())


REFUSED = [
    ({"address": "mqtt://robot:hush@h:1"}, "without user and password .not quoted here"),
    ({"address": "mqtt://hush@127.0.0.1"}, "without user and password .not quoted here"),
    ({"address": "http://127.0.0.1"}, "must be mqtt://HOST:PORT or mqtts://HOST:PORT"),
    ({"address": "127.0.0.1:1883"}, "must be mqtt://HOST:PORT"),
    ({"address": "mqtt://[::1]:99999"}, r"address '\[::1\]:99999': must be HOST:PORT"),
    ({"address": "mqtt://127.0.0.1/path"}, "address '127.0.0.1/path:1883': must be HOST:PORT"),
    ({"address": "mqtts://a..b:1", "plain": True}, "address 'a..b:1': must be HOST:PORT"),
    ({"address": "mqtt://broker.example"}, "anybody on the way can read it; take mqtts://, or allow it: plain=True"),
    ({"address": "mqtt://192.168.1.5"}, "take mqtts://"),
    ({"ca": "x.pem"}, "ca='x.pem': certificates are for mqtts://"),
    ({"address": "mqtts://127.0.0.1", "ca": "no/such.pem"}, "ca='no/such.pem': .*; name a file of certificates"),
    ({"qos": 3}, "qos=3: must be 0, 1 or 2"),
    ({"run": "a/b"}, "'a/b': .*names without '/'"),
    ({"run": ""}, "'': .*names without '/'"),
    ({"node": "n+"}, r"'n\+': .*names without '/'"),
    ({"node": "+"}, r"'\+': .*names without '/'"),
    ({"password_file": "x"}, "password_file='x': there is no user; name it: user="),
    ({"password_file": "no/such", "user": "u"}, "password_file='no/such': can't be read .FileNotFoundError.; correct"),
    ({"password_file": "/dev/null", "user": "u"}, "password_file='/dev/null': is empty; put the password of 'u' in it"),
]


@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_what_a_broker_can_not_have_is_refused(options: dict[str, Any], words: str):
    right = {"address": "mqtt://127.0.0.1", "run": "r1", "node": "n1"}
    with pytest.raises(ConfigError, match=words) as refused:
        node_transport("mqtt", **(right | options))
    assert "hush" not in str(refused.value)


def test_plain_and_tls_are_allowed_where_they_are_meant():
    node_transport("mqtt", "mqtt://broker.example:1884", run="r", node="n", plain=True)
    node_transport("mqtt", "mqtts://broker.example", run="r", node="n")
    node_transport("mqtt", "mqtt://[::1]", run="r", node="n")
    with pytest.raises(UnknownArgument, match="insecure"):
        node_transport("mqtt", "mqtts://broker.example", run="r", node="n", insecure=True)


def test_without_aiomqtt_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "heron_env.real.mqtt", raising=False)
    imports = builtins.__import__

    def none_of_it(name: str, *rest: Any) -> Any:
        if name == "aiomqtt":
            raise ImportError("No module named 'aiomqtt'")
        return imports(name, *rest)

    monkeypatch.setattr(builtins, "__import__", none_of_it)
    with pytest.raises(ConfigError, match=r"transport='mqtt': No module.*'aiomqtt'; pip install 'heron_env\[mqtt\]'"):
        hub_transport("mqtt", "mqtt://127.0.0.1", run="r1")
