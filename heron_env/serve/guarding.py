"""Before a request reaches the application: where it arrives, its Host, its token, its length.

Everything refused has one shape.
"""

from __future__ import annotations

import hmac
import json
import socket
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

from heron_env.injection.sdk import LOOPBACK, MOST_BYTES

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def listening(host: str, port: int) -> tuple[socket.socket, list[str]]:
    """A socket that listens there, and what the Host header may say; nothing: anything. Raises OSError.

    Its connections send small packets at once: they would else wait for the client's delayed ACK, some 40 ms.
    """
    listener = socket.create_server((host, port))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    names = dict.fromkeys((host, LOOPBACK, "localhost")) if host in (LOOPBACK, "localhost") else ()
    return listener, [f"{name}:{listener.getsockname()[1]}" for name in names]


class Guarding:
    """An ASGI application around another.

    Args:
        hosts: what the Host header may say; empty: anything.
        token: what `Authorization: Bearer` must bring; None: nothing is asked for.
    """

    def __init__(self, app: Any, *, hosts: Collection[str], token: str | None) -> None:
        self._app, self._hosts, self._token = app, frozenset(hosts), token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refused(headers)
        if refused is None:
            body, refused = await _body(receive)
        if refused is not None:
            await _send(send, *refused)
            return
        left = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def again() -> MutableMapping[str, Any]:
            return left.pop() if left else await receive()

        await self._app(scope, again, send)

    def _refused(self, headers: dict[str, str]) -> tuple[int, str, str] | None:
        host = headers.get("host", "")
        if self._hosts and host not in self._hosts:
            return 421, "MISDIRECTED", "the Host header names another server"
        told = headers.get("authorization", "")
        if self._token is not None and not hmac.compare_digest(told.encode(), f"Bearer {self._token}".encode()):
            return 401, "UNAUTHORIZED", "the header Authorization must be 'Bearer ' and the server's token"
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or len(length) > 15 or int(length) > MOST_BYTES:
            return _TOO_LARGE
        return None


_TOO_LARGE = (413, "TOO_LARGE", f"the body has more than {MOST_BYTES:,} bytes")


async def _body(receive: Receive) -> tuple[bytearray, tuple[int, str, str] | None]:
    """All of it, as long as it is short enough."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return body, (400, "DISCONNECTED", "the client went away")
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            return body, _TOO_LARGE
        if not message.get("more_body", False):
            return body, None


async def _send(send: Send, status: int, code: str, words: str) -> None:
    body = json.dumps({"error": {"code": code, "message": words}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 413:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
