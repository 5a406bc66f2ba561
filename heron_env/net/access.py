"""Who may ask what we serve: the host that a request names, its token, the length of its body.

Everything that an application of ours is not to see is refused with one shape.
"""

from __future__ import annotations

import hmac
import json
import os
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any, Final, NamedTuple

from heron_env.errors import ConfigError

MOST_BYTES: Final = 2**20
"""Of a body."""
LOOPBACK: Final = "127.0.0.1"
LOCAL: Final = (LOOPBACK, "localhost")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Rejection(NamedTuple):
    """Why a request is not passed on."""

    status: int
    code: str
    words: str


MISDIRECTED: Final = Rejection(421, "MISDIRECTED", "the Host header names another server")
UNAUTHORIZED: Final = Rejection(
    401, "UNAUTHORIZED", "the header Authorization must be 'Bearer ' and the server's token"
)
TOO_LARGE: Final = Rejection(413, "TOO_LARGE", f"the body has more than {MOST_BYTES:,} bytes")


class Access(NamedTuple):
    """What a request must name: one of the `hosts` (empty: any), and the `token` (None: none)."""

    hosts: frozenset[str] = frozenset()
    token: str | None = None

    def refusal(self, host: str, authorization: str) -> Rejection | None:
        """Of a request with these headers; None: it is passed on."""
        if self.hosts and host not in self.hosts:
            return MISDIRECTED
        expected = f"Bearer {self.token}".encode()
        if self.token is not None and not hmac.compare_digest(authorization.encode(), expected):
            return UNAUTHORIZED
        return None


def is_too_long(length: str) -> bool:
    """Does a Content-Length, which is of digits, say more than is read?"""
    return len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES


def hosts_of(host: str, port: int) -> list[str]:
    """What the Host header may say to a server there; empty: anything."""
    return [f"{name}:{port}" for name in LOCAL] if host in LOCAL else []


def token_of(variable: str | None, host: str) -> str | None:
    """The token in an environment variable. Raises ConfigError where it is empty, or needed and not named."""
    if variable is None and host not in LOCAL:
        raise ConfigError(
            f"host={host!r}: others than loopback need a token; name its variable: token_env, --token-env"
        )
    token = None if variable is None else os.environ.get(variable, "")
    if token == "":
        raise ConfigError(f"token_env={variable!r}: that environment variable is empty; put the token in it")
    return token


def listening(host: str, port: int) -> tuple[socket.socket, list[str]]:
    """A socket that listens there, and what the Host header may say; empty: anything. Raises OSError.

    Its connections send small packets at once: they would else wait for the client's delayed ACK, some 40 ms.
    """
    listener = socket.create_server((host, port))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener, hosts_of(host, listener.getsockname()[1])


class GuardedApplication:
    """An ASGI application around another.

    Args:
        hosts: what the Host header may say; empty: anything.
        token: what `Authorization: Bearer` must bring; None: nothing is asked for.
    """

    def __init__(self, app: Any, *, hosts: Collection[str], token: str | None) -> None:
        self._app, self._access = app, Access(frozenset(hosts), token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refusal(headers)
        if refused is None:
            body, refused = await _body(receive)
        if refused is not None:
            await _send(send, refused)
            return
        left = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def again() -> MutableMapping[str, Any]:
            return left.pop() if left else await receive()

        await self._app(scope, again, send)

    def _refusal(self, headers: Mapping[str, str]) -> Rejection | None:
        refused = self._access.refusal(headers.get("host", ""), headers.get("authorization", ""))
        length = headers.get("content-length", "0")
        if refused is None and (not (length.isascii() and length.isdigit()) or is_too_long(length)):
            return TOO_LARGE
        return refused


async def _body(receive: Receive) -> tuple[bytearray, Rejection | None]:
    """All of it, as long as it is short enough."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return body, Rejection(400, "DISCONNECTED", "the client went away")
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            return body, TOO_LARGE
        if not message.get("more_body", False):
            return body, None


async def _send(send: Send, refusal: Rejection) -> None:
    status, code, words = refusal
    body = json.dumps({"error": {"code": code, "message": words}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 413:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
