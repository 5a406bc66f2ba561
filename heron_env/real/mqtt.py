"""Frames by way of an MQTT broker, which nobody trusts: topics heron/RUN/NODE/up and heron/RUN/NODE/down."""

import asyncio
import logging
import os
import re
import socket
import ssl
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import aiomqtt
from aiomqtt.exceptions import MqttConnectError

from heron_env.errors import ConfigError, checked_keywords
from heron_env.real.transports import (
    CONNECT_S,
    LARGEST,
    MOST_WAITING,
    HubTransport,
    NodeTransport,
    Reconnecting,
    host_and_port,
    is_loopback,
)

PASSWORD_FILE: Final = "HERON_MQTT_PASSWORD_FILE"
"""The environment variable with the file of the password."""
PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
UNLOGGED: Final = logging.Logger(__name__, logging.CRITICAL + 1)
"""A hostile broker could else fill a log; what matters is counted."""


class PassOn(asyncio.Queue[aiomqtt.Message]):
    """Passes each message on at once: none waits, none is stamped late."""

    def __init__(self, receive: Callable[[aiomqtt.Message], None], maxsize: int = 0) -> None:
        super().__init__(maxsize)
        self._receive = receive

    def put_nowait(self, item: aiomqtt.Message) -> None:
        """Called by aiomqtt while it reads."""
        self._receive(item)


class ClosingSocket(ssl.SSLSocket):
    """Closes where the handshake fails, which paho leaves to the garbage collector."""

    def do_handshake(self, block: bool = False) -> None:
        """Raises OSError."""
        try:
            super().do_handshake(block)
        except OSError:
            self.close()
            raise


class Mqtt(Reconnecting):
    """A client of the broker at `address`, mqtt://HOST[:PORT] or mqtts://HOST[:PORT]; nothing outlasts a connection.

    Args:
        run: the run's name, a level of every topic; `node`: a node's, and its address.
        qos: 0, 1 or 2.
        user: its password is in `password_file`, or in the file that HERON_MQTT_PASSWORD_FILE names.
        plain: mqtt:// may lead beyond this machine.
        ca: file of the certificates to trust over mqtts://, else the system's. The host's name is always checked.
        no_delay: sets TCP_NODELAY, which paho does not.
    """

    broken = (OSError, aiomqtt.MqttError)
    inbound, outbound = "heron/{run}/+/up", "heron/{run}/{to}/down"
    _client: aiomqtt.Client | None = None

    @checked_keywords
    def __init__(
        self, address: str, *, run: str, node: str = "", qos: int = 1, user: str | None = None,
        password_file: str | None = None, plain: bool = False, ca: str | None = None, no_delay: bool = False,
    ) -> None:  # fmt: skip
        host, port, context = broker(address, plain, ca)
        super().__init__(address, LARGEST)
        if qos not in (0, 1, 2):
            raise ConfigError(f"qos={qos!r:.60}: must be 0, 1 or 2")
        for level in (run, node) if isinstance(self, NodeTransport) else (run,):
            if not level or set(level) & set("/+#\0"):
                raise ConfigError(f"{level!r:.100}: runs and nodes over MQTT need names without '/', '+' and '#'")
        self._run, self._node, self._qos, self._waiting = run, node, qos, 0
        self._tasks = set[asyncio.Task[None]]()
        self._connect = partial(
            aiomqtt.Client, host, port, username=user, password=password(user, password_file), clean_session=True,
            timeout=CONNECT_S, logger=UNLOGGED, tls_context=context,
            queue_type=partial(PassOn, self._arrived),  # type: ignore[arg-type]  # aiomqtt calls it
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)] if no_delay else [],
        )  # fmt: skip

    async def _session(self) -> None:
        client = self._connect()
        client.pending_calls_threshold = MOST_WAITING  # it warns beyond
        try:
            async with client:
                answers = await client.subscribe(self._topic(self.inbound), self._qos)
                if any(getattr(answer, "is_failure", False) for answer in answers):
                    raise ConfigError(f"{self.address}: the broker refuses heron/{self._run}/...; allow these topics")
                self._client = client
                self._connected()
                async for _ in client.messages:
                    pass  # none waits: this is the end of the connection
        except aiomqtt.MqttError as error:
            if isinstance(error, MqttConnectError):
                raise ConfigError(f"{self.address}: {error}; correct user and password file") from error
            if isinstance(error.__context__, ssl.SSLCertVerificationError):
                raise ConfigError(f"{self.address}: {error}; name the file of its authority, ca=...") from error
            raise
        finally:
            self._client = None
            for task in self._tasks:
                task.cancel()
            client._client.disconnect()  # after an error while reading, aiomqtt leaves the socket open and watched

    def _topic(self, form: str, to: str = "") -> str:
        return form.format(run=self._run, node=self._node, to=to)

    def _arrived(self, message: aiomqtt.Message) -> None:
        ns = time.monotonic_ns()
        if message.retain:
            self.refuse("retained")
        elif not message.topic.matches(self._topic(self.inbound)):
            self.refuse("topic")
        elif self.fits(message.payload):
            self._receive(self.address if self._node else message.topic.value.split("/")[2], message.payload, ns)

    def _put(self, to: str, frame: bytes) -> bool:
        client = self._client
        if not self.has_room(frame, None if client is None else self._waiting) or client is None:
            return False
        self._waiting += len(frame)
        task = asyncio.create_task(client.publish(self._topic(self.outbound, to), frame, self._qos))
        self._tasks.add(task)
        task.add_done_callback(partial(self._published, len(frame)))
        return True

    def _published(self, length: int, task: asyncio.Task[None]) -> None:
        self._waiting -= length
        self._tasks.discard(task)
        if task.cancelled() or task.exception() is not None:
            self.dropped += 1


class MqttHub(Mqtt, HubTransport):
    """The hub's side: subscribes to every node of its run."""


class MqttNode(Mqtt, NodeTransport):
    """A node's side."""

    inbound, outbound = "heron/{run}/{node}/down", "heron/{run}/{node}/up"


MQTT: Final = (MqttHub, MqttNode)


def broker(url: str, plain: bool, ca: str | None) -> tuple[str, int, ssl.SSLContext | None]:
    """Host, port, and what TLS needs. Raises ConfigError, in which no password is repeated."""
    scheme, _, place = url.partition("://")
    if scheme not in PORTS or "@" in url:
        raise ConfigError(
            "the address of a broker must be mqtt://HOST:PORT or mqtts://HOST:PORT, without user and password (not "
            "quoted here, as it may hold a secret); write user=... and password_file=..."
        )
    host, port = host_and_port(place if re.search(r":\d+$", place) else f"{place}:{PORTS[scheme]}")
    if scheme == "mqtts":
        try:
            context = ssl.create_default_context(cafile=ca)
        except OSError as error:
            raise ConfigError(f"ca={ca!r:.200}: {error}; name a file of certificates in PEM") from error
        context.sslsocket_class = ClosingSocket
        return host, port, context
    if ca is not None:
        raise ConfigError(f"ca={ca!r:.200}: certificates are for mqtts://, not for {url}")
    if not (plain or is_loopback(host)):
        raise ConfigError(f"{url}: anybody on the way can read it; take mqtts://, or allow it: plain=True")
    return host, port, None


def password(user: str | None, file: str | None) -> str | None:
    """Of the user, from the file or that of the environment. Raises ConfigError."""
    file = file or os.environ.get(PASSWORD_FILE)
    if file is None:
        return None
    if user is None:
        raise ConfigError(f"password_file={file!r:.200}: there is no user; name it: user=...")
    try:
        word = Path(file).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"password_file={file!r:.200}: can't be read ({type(error).__name__}); correct it") from error
    if not word:
        raise ConfigError(f"password_file={file!r:.200}: is empty; put the password of {user!r:.100} in it")
    return word
