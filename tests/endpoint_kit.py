"""A loopback endpoint whose answers a test writes as a function, and questions to ask it."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from heron_env import Asked, Letter, injection

Brain = Callable[[dict[str, Any]], Any]
"""A request's body -> what is answered: JSON with status 200, or (status, JSON)."""


class Endpoint:
    """Its address, and what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []


@contextmanager
def serving(brain: Brain) -> Iterator[Endpoint]:
    """The endpoint on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            endpoint.raw.append(body)
            endpoint.asked.append(json.loads(body))
            endpoint.headers.append(dict(self.headers))
            told = brain(endpoint.asked[-1])
            status, content = told if isinstance(told, tuple) else (200, told)
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint = Endpoint(f"http://127.0.0.1:{server.server_port}/respond")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def fast(url: str, **options: Any) -> injection.Endpoint:
    """The address as a policy has it, with no limit on the rate."""
    return injection.Endpoint(url, concurrency=injection.ConcurrencyConfig(qps_cap=10_000), **options)


BOX = spaces.Box(-1.0, 1.0, (1,), np.float32)


def question(agent: str = "battery_1", number: int = 0, **changes: Any) -> Asked:
    """One question; `changes` of its fields."""
    given: dict[str, Any] = {
        "vector": np.array([0.5, 100.0], np.float32),
        "names": ("Charge.soc", "Charge.capacity"),
        "turn": number,
        "time": float(number),
        "seed": 7,
        "episode": 0,
        "space": BOX,
    }
    return Asked(agent=agent, number=number, **{**given, **changes})


def letter(sender: str, receiver: str, body: Any = "hello") -> Letter:
    """Words."""
    return Letter(sender, receiver, "message", body)


def soc_rule(body: dict[str, Any]) -> dict[str, Any]:
    """A rule: charge below half, discharge above it, by as much as is missing."""
    soc = float(np.float32(body["decision"]["observation"]["vector"][0]))
    return {"action": [float(np.clip(0.6 - soc, -1.0, 1.0))], "request_id": body["request_id"]}


@contextmanager
def no_sockets() -> Iterator[None]:
    """Whoever makes one fails."""

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("a socket was made")

    with pytest.MonkeyPatch.context() as patch:
        for name in ("socket", "create_connection", "getaddrinfo"):
            patch.setattr(socket, name, forbidden)
        yield
