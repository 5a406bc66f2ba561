"""Who may ask what we serve: the host that a request names, its token, the length of its body.

Everything that an application of ours is not to see is refused with one shape.
"""

from __future__ import annotations

import hmac
import json
import os
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from heron_env.errors import ConfigError

if TYPE_CHECKING:
    import uvicorn

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
        self._app, self._hosts, self._token = app, frozenset(hosts), token

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
        if self._hosts and headers.get("host", "") not in self._hosts:
            return MISDIRECTED
        bearer = headers.get("authorization", "").encode()
        if self._token is not None and not hmac.compare_digest(bearer, f"Bearer {self._token}".encode()):
            return UNAUTHORIZED
        length = headers.get("content-length", "0")
        digits = length.isascii() and length.isdigit()
        return None if digits and len(length) <= len(str(MOST_BYTES)) and int(length) <= MOST_BYTES else TOO_LARGE


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


def server_of(app: Any, farewell: int) -> uvicorn.Server:
    """What serves an application; its requests have `farewell` s to end. Raises ConfigError without uvicorn."""
    try:
        import uvicorn
    except ImportError as error:
        raise ConfigError("a server needs uvicorn: pip install 'heron_env[agents]'") from error
    settings = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_keep_alive=60, lifespan="off",
        timeout_graceful_shutdown=farewell,
    )  # fmt: skip
    return uvicorn.Server(settings)


class ServerThread:
    """A server of this process, in a thread of its own: `url`, and `close()`, or a `with` block.

    Args:
        application: makes the ASGI application of what the Host header may say.
        host, port: where it listens; port 0: any free one.

    Raises ConfigError, OSError where the port is taken.
    """

    def __init__(self, application: Callable[[Collection[str]], Any], host: str, port: int) -> None:
        self._listener, hosts = listening(host, port)
        try:
            self._server = server_of(application(hosts), farewell=2)
        except ConfigError:
            self._listener.close()
            raise
        self.url = f"http://{host}:{self._listener.getsockname()[1]}"
        self._thread = Thread(target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until Ctrl-C."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """Stop the server and close all connections."""
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
